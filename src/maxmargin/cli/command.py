"""Subcommands, the ``maxmargin`` command itself, and how they end.

``CommandLine.main`` is the one place where errors become a sentence and an exit code.
"""

import functools
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from importlib import import_module
from typing import Any

import click

from maxmargin.errors import DistributedFitError, did_you_mean, parameter_of


class Exit(IntEnum):
    """How a command ended."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    NOT_CONVERGED = 3
    INTERRUPTED = 130


MEANINGS = {
    Exit.DONE: "done",
    Exit.ERROR: "error in the input",
    Exit.USAGE: "wrong usage",
    Exit.NOT_CONVERGED: "not converged to --tol: what was reached is given all the same",
    Exit.INTERRUPTED: "interrupted",
}
STATUSES = {
    Exit.DONE: "done",
    Exit.NOT_CONVERGED: "not converged",
    Exit.INTERRUPTED: "interrupted",
}


class Command(click.Command):
    """A subcommand whose help ends with an example, exit codes and neighbours, as manuals do."""

    def __init__(
        self,
        *given: Any,
        example: str = "",
        exits: Sequence[Exit] = (),
        see_also: Sequence[str] = (),
        **named: Any,
    ) -> None:
        super().__init__(*given, **named)
        self.example, self.exits, self.see_also = example, exits, see_also

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections after the options."""
        if self.example:
            with formatter.section("Example"):
                for line in self.example.strip("\n").splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
        if self.exits:
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(int(code)), MEANINGS[code]) for code in self.exits])
        if self.see_also:
            with formatter.section("See also"):
                formatter.write_text(", ".join(f"maxmargin {name}" for name in self.see_also))


def command(
    name: str,
    short_help: str,
    *,
    example: str,
    see_also: Sequence[str],
    exits: Sequence[Exit] = (Exit.DONE, Exit.ERROR, Exit.USAGE),
    module: str = "",
) -> Callable[[Callable[[], None]], click.Command]:
    """Make a subcommand with ``--json`` and ``--debug`` of a function that has only its help.

    What it does is ``run`` of the module, by default that of its name, which gets an ``Output``.
    """
    shown = {"example": example, "exits": exits, "see_also": see_also, "short_help": short_help}

    def decorate(declared: Callable[[], None]) -> click.Command:
        @click.option(
            "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
        )
        @click.option("--debug", is_flag=True, help="Show where an unexpected error comes from.")
        @functools.wraps(declared)
        def callback(as_json: bool, debug: bool, **given: Any) -> Any:
            from maxmargin.cli.printing import Output

            return import_module(f"maxmargin.cli.{module or name}").run(
                Output(name, as_json), **given
            )

        made: click.Command = click.command(name, cls=Command, **shown)(callback)
        made.params = [*made.params[2:], *made.params[:2]]  # what all commands have comes last
        return made

    return decorate


# ------------------------------------------------------------------- the command itself


class CommandLine(click.Group):
    """Subcommands in sections, whose work is imported when they run."""

    def __init__(
        self, *given: Any, sections: Mapping[str, Sequence[click.Command]], **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self.sections = sections
        for command in (each for commands in sections.values() for each in commands):
            self.add_command(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a subcommand; for a name that is misspelt, say which one may be meant."""
        name = args[0]
        if name not in self.commands and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(
                f"No such command {name!r}.{did_you_mean(name, self.commands)}", ctx
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; if the reader of its output has seen enough (| head), end quietly."""
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
            return found
        except BrokenPipeError:
            with open(os.devnull, "w") as nowhere:  # nothing may fail when the program ends
                os.dup2(nowhere.fileno(), sys.stdout.fileno())
            return Exit.DONE

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands by section."""
        widest = max(map(len, self.commands))
        for section, commands in self.sections.items():
            with formatter.section(section):
                lines = [(f"{each.name:{widest}}", each.short_help or "") for each in commands]
                formatter.write_dl(lines)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a subcommand; whatever happens ends in a sentence and an exit code."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        given = sys.argv[1:] if args is None else list(args)
        use_replacements(sys.stderr)
        with _warnings_as_lines():
            code = self._run(given, prog_name, complete_var, extra)
        sys.exit(code)

    def _run(
        self, args: list[str], prog_name: str | None, complete_var: str | None, extra: Any
    ) -> int:
        """Return the exit code of a run."""
        try:
            code = super().main(args, prog_name, complete_var, False, **extra)
            return int(code or Exit.DONE)
        except (click.Abort, KeyboardInterrupt):
            return _fail(args, "interrupted", Exit.INTERRUPTED)
        except click.ClickException as wrong:
            if "--json" not in args:
                wrong.show()
                return wrong.exit_code
            return _fail(args, wrong.format_message(), wrong.exit_code)
        except MemoryError as too_large:
            details = too_large or "no details"
            return _fail(args, f"not enough memory ({details}); try fewer rows or columns")
        except (OSError, ValueError, TypeError, ImportError, DistributedFitError) as wrong:
            return _fail(args, describe_error(wrong), trace=True)
        except Exception as unexpected:
            kind = type(unexpected).__name__
            return _fail(
                args,
                f"{kind}: {unexpected} (this is a fault of the program; --debug shows where)",
                trace=True,
            )


# ------------------------------------------------------------------- errors and warnings


def use_replacements(stream: Any) -> None:
    """Let a stream print ? for characters that it does not have, instead of failing."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")


# Parameters of the library that have options here; those of models have the same name.
_OPTIONS = {
    "random_state": "seed",
    "n_jobs": "jobs",
    **{name: name for name in ("label", "memory", "checkpoint", "max_time", "zero_based", "task")},
}


def describe_error(wrong: Exception) -> str:
    """Return what is wrong in one line; an error about a parameter begins with its option."""
    message = str(wrong)
    if isinstance(wrong, OSError) and wrong.filename is not None and wrong.strerror:
        message = f"{wrong.filename}: {wrong.strerror}"
    message = " ".join(message.split()) or type(wrong).__name__
    option = _OPTIONS.get(parameter_of(wrong) or "")
    return message if option is None else f"--{option.replace('_', '-')}: {message}"


def _fail(args: list[str], message: str, code: int = Exit.ERROR, trace: bool = False) -> int:
    """Say what went wrong, and return the exit code."""
    if trace and "--debug" in args:
        traceback.print_exc()
    if "--json" in args:
        from maxmargin.cli.printing import print_json

        name = next((word for word in args if not word.startswith("-")), "")
        status = STATUSES[Exit.INTERRUPTED] if code == Exit.INTERRUPTED else "error"
        print_json(name, status, error={"message": message})
    else:
        click.echo(f"Error: {message}" if code != Exit.INTERRUPTED else message, err=True)
    return int(code)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print warnings for users as one line each, every one once; others are not for them."""
    shown: set[str] = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        sentence = " ".join(str(message).split())
        if sentence not in shown:
            shown.add(sentence)
            click.echo(f"warning: {sentence}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
