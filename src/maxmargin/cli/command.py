"""Subcommands, the ``maxmargin`` command itself, and how they end.

``CommandLine.main`` is the one place where errors become a sentence and an exit code.
"""

import functools
import os
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from importlib import import_module
from typing import Any

import click

from maxmargin.errors import DistributedFitError, parameter_of


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


def command(
    name: str, short_help: str, *, example: str, module: str = ""
) -> Callable[[Callable[[], None]], click.Command]:
    """Make a subcommand with ``--json`` and ``--debug`` of a function that has only its help.

    What it does is ``run`` of the module, by default that of its name, which gets an ``Output``.
    """
    shown = f"\b\nExample:\n{textwrap.indent(example.strip(), '  ')}"

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

        made: click.Command = click.command(name, short_help=short_help, epilog=shown)(callback)
        made.params = [*made.params[2:], *made.params[:2]]  # what all commands have comes last
        return made

    return decorate


# ------------------------------------------------------------------- the command itself


class CommandLine(click.Group):
    """Subcommands, listed in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return list(self.commands)

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


# The options of the parameters of readers and models.
OPTIONS = {"random_state": "--seed", "n_jobs": "--jobs"} | {
    name: f"--{name.replace('_', '-')}"
    for name in (
        *("label", "memory", "checkpoint", "max_time", "zero_based", "task", "C", "gamma"),
        *("kernel", "nu", "epsilon", "quantile", "class_weight", "probability", "tol"),
    )
}


def describe_error(wrong: Exception) -> str:
    """Return what is wrong in one line; an error about a parameter begins with its option."""
    message = str(wrong)
    if isinstance(wrong, OSError) and wrong.filename is not None and wrong.strerror:
        message = f"{wrong.filename}: {wrong.strerror}"
    message = " ".join(message.split()) or type(wrong).__name__
    option = OPTIONS.get(parameter_of(wrong) or "")
    return message if option is None else f"{option}: {message}"


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
