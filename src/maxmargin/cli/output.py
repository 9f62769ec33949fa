"""What commands say and how they end: lines for people or one JSON object, and exit codes.

Results go to standard output. With ``--json`` that is exactly one JSON object; without it, text
that is coloured on terminals and plain in pipes. Progress, remarks of the moment and warnings go to
standard error. ``CommandLine.main`` is the one place where errors become a sentence and an exit
code.
"""

import functools
import json
import math
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pkgutil import resolve_name
from typing import Any

import click

from maxmargin.errors import DistributedFitError

SCHEMA = 1
PIPE_WIDTH = 100
HEADING_WIDTH = 14  # so that facts printed one after the other stand below each other


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


# ------------------------------------------------------------------- what is said


class Output:
    """What one run of a command says."""

    def __init__(self, command: str, as_json: bool) -> None:
        self.command = command
        self.as_json = as_json
        self._console: Any = None

    @property
    def console(self) -> Any:
        """The console for standard output."""
        if self._console is None:
            from rich.console import Console

            use_replacements(sys.stdout)
            self._console = Console(highlight=False)
            self._console.on_broken_pipe = _raise_broken_pipe
            if not self._console.is_terminal:
                self._console.width = PIPE_WIDTH
        return self._console

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Print sentences beside their headings; an empty heading continues the one before."""
        if self.as_json:
            return
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 2))
        grid.add_column(min_width=HEADING_WIDTH)
        for heading, sentence in facts:
            grid.add_row(Text(heading, style="bold"), Text(sentence))
        self._print(grid)

    def table(
        self, heads: Sequence[str], rows: Iterable[Sequence[object]], indent: int = 0
    ) -> None:
        """Print a table without lines; numbers stand to the right."""
        if self.as_json:
            return
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        rows, grid = list(rows), Table.grid(padding=(0, 2))
        lines = [[_cell(value) for value in row] for row in rows]
        for k in range(len(heads)):
            numbers = all(isinstance(row[k], int | float) for row in rows)
            grid.add_column(justify="right" if numbers else "left")
        grid.add_row(*(Text(head, style="bold") for head in heads))
        for line in lines:
            grid.add_row(*map(Text, line))
        self._print(Padding(grid, (0, 0, 0, indent)))

    def _print(self, shown: Any) -> None:
        """Print a table or text; in a pipe without spaces at the end of lines."""
        if self.console.is_terminal:
            self.console.print(shown)
            return
        with self.console.capture() as captured:
            self.console.print(shown)
        lines = captured.get().splitlines()
        self.console.file.write("".join(f"{line.rstrip()}\n" for line in lines))

    def text(self, sentence: str = "", style: str = "") -> None:
        """Print a paragraph."""
        if not self.as_json:
            from rich.text import Text

            self._print(Text(sentence, style=style))

    def command_line(self, line: str) -> None:
        """Print a command line as it is, without breaks, so that it can be copied."""
        if not self.as_json:
            from rich.text import Text

            self.console.print(Text(f"  {line}"), soft_wrap=True)

    def note(self, sentence: str) -> None:
        """Say something on standard error, where it is in nobody's way."""
        click.echo(sentence, err=True)

    def finish(self, code: Exit = Exit.DONE, **fields: Any) -> Exit:
        """Print the JSON object, if that is asked for, and return the exit code."""
        if self.as_json:
            print_json(self.command, STATUSES[code], **fields)
        return code


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def use_replacements(stream: Any) -> None:
    """Let a stream print ? for characters that it does not have, instead of failing."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")


# ------------------------------------------------------------------- JSON


def print_json(command: str, status: str, **fields: Any) -> None:
    """Print the one JSON object of a command."""
    document = {"schema": SCHEMA, "command": command, "status": status, **fields}
    click.echo(json.dumps(plain(document), ensure_ascii=True, allow_nan=False))


def plain(value: Any) -> Any:
    """Return numbers, strings, lists and dicts: NaN as None, infinities as "inf" and "-inf".

    >>> plain({"gap": float("inf"), "scores": (1.5, float("nan"))})
    {'gap': 'inf', 'scores': [1.5, None]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, str | bool | int | None):
        return value
    if hasattr(value, "tolist"):  # of numpy
        return plain(value.tolist())
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Iterable):
        return [plain(entry) for entry in value]
    return str(value)


# ------------------------------------------------------------------- subcommands


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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of a command line; say which commands take several files."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as wrong:
            if "unexpected extra argument" not in wrong.message or not {"data", "file"} & {
                *ctx.params
            }:
                raise
            raise click.UsageError(
                f"{wrong.message}. This command reads one file; maxmargin fit, predict, score and "
                "certify read several.",
                ctx,
            ) from wrong

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


_ENDS = (Exit.DONE, Exit.ERROR, Exit.USAGE)


def command(
    name: str,
    *,
    example: str,
    see_also: Sequence[str] = (),
    exits: Sequence[Exit] = _ENDS,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a subcommand with ``--json`` and ``--debug``; the function gets an ``Output`` first."""

    def decorate(run: Callable[..., Any]) -> click.Command:
        @click.option(
            "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
        )
        @click.option("--debug", is_flag=True, help="Show where an unexpected error comes from.")
        @functools.wraps(run)
        def callback(as_json: bool, debug: bool, **given: Any) -> Any:
            return run(Output(name, as_json), **given)

        make = click.command(name, cls=Command, example=example, exits=exits, see_also=see_also)
        made: click.Command = make(callback)
        made.params = [*made.params[2:], *made.params[:2]]  # what all commands have comes last
        return made

    return decorate


# ------------------------------------------------------------------- the command itself


class CommandLine(click.Group):
    """Subcommands that are imported when they run.

    ``sections`` has their names with the place of each (module:name) and a line of help, so that
    listing them imports nothing.
    """

    def __init__(
        self,
        *given: Any,
        sections: Mapping[str, Mapping[str, tuple[str, str]]],
        hidden_commands: Mapping[str, str],
        **named: Any,
    ) -> None:
        super().__init__(*given, **named)
        self.sections = sections
        self.places = dict(hidden_commands)
        for entries in sections.values():
            self.places |= {name: place for name, (place, _) in entries.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the sections."""
        return [name for entries in self.sections.values() for name in entries]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand."""
        place = self.places.get(cmd_name)
        found: click.Command | None = None if place is None else resolve_name(place)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a subcommand; for a name that is misspelt, say which one may be meant."""
        from maxmargin.errors import did_you_mean

        name = args[0]
        if name not in self.places and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(
                f"No such command {name!r}.{did_you_mean(name, self.places)}", ctx
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; if the reader of its output has seen enough (| head), end quietly."""
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
            return found
        except BrokenPipeError:
            _forget_output()
            return Exit.DONE

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands by section."""
        widest = max(map(len, self.places))
        for section, entries in self.sections.items():
            with formatter.section(section):
                rows = [(f"{name:{widest}}", line) for name, (_, line) in entries.items()]
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete names of subcommands without importing them."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=line)
            for entries in self.sections.values()
            for name, (_, line) in entries.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

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
        with warnings_as_lines():
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
            return _fail(args, f"not enough memory ({too_large or 'no details'}); try fewer rows")
        except (OSError, ValueError, TypeError, ImportError, DistributedFitError) as wrong:
            return _fail(args, describe_error(wrong), trace=True)
        except Exception as unexpected:
            kind = type(unexpected).__name__
            return _fail(
                args,
                f"{kind}: {unexpected} (this is a fault of the program; --debug shows where)",
                trace=True,
            )


def describe_error(wrong: Exception) -> str:
    """Return what is wrong in one line, in the terms of the command line."""
    message = str(wrong)
    if isinstance(wrong, OSError) and wrong.filename is not None and wrong.strerror:
        message = f"{wrong.filename}: {wrong.strerror}"
    return in_options(" ".join(message.split())) or type(wrong).__name__


_OPTIONS = ("max_time", "max_iter", "class_weight", "multi_class", "tol", "zero_based")
_OPTION = re.compile(rf"(?<![\w-])({'|'.join(_OPTIONS)})(?![\w=])")
_WAYS_OUT = {  # of the library, and here
    ", or continue with warm_start=True": "",
    " (see the witness)": "",
    "Use LinearSVC, which": "Use --model linear-svc, which",
    "or AveragedPerceptron, or raise max_epochs": "or --model averaged-perceptron, or raise "
    "--param max_epochs=…",
    ": ends=True searches for it": "",
    "mm.certify(model, X, y)": "maxmargin certify",
    "use keep='best'": "use --param keep=best",
    "Set label_noise to": "Set --param label_noise=… to",
    "is beyond n_features=": "is beyond the columns of the model, ",
    "pass a larger n_features, or None to take as many columns as there are": "leave it out, or "
    "fit a model to rows that have it",
    "label=…, or --label": "--label",
    "label=…, on the command line --label": "--label",
}


def in_options(sentence: str) -> str:
    """Return a sentence of the library with parameters as they are called on the command line.

    >>> in_options("stopped at max_time; raise it, or continue with warm_start=True")
    'stopped at --max-time; raise it'
    """
    for theirs, ours in _WAYS_OUT.items():
        sentence = sentence.replace(theirs, ours)
    return _OPTION.sub(lambda found: f"--{found[1].replace('_', '-')}", sentence)


def _fail(args: list[str], message: str, code: int = Exit.ERROR, trace: bool = False) -> int:
    """Say what went wrong, and return the exit code."""
    if trace and "--debug" in args:
        traceback.print_exc()
    if "--json" in args:
        name = next((word for word in args if not word.startswith("-")), "")
        status = STATUSES.get(Exit(code), "error") if code == Exit.INTERRUPTED else "error"
        print_json(name, status, error={"message": message})
    else:
        click.echo(f"Error: {message}" if code != Exit.INTERRUPTED else message, err=True)
    return int(code)


def _raise_broken_pipe() -> None:
    """Leave it to the command line that nobody reads on; rich would end the program."""
    raise BrokenPipeError


def _forget_output() -> None:
    """Send what is still to be written nowhere, so that nothing fails when the program ends."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print warnings for users as one line each, every one once; others are not for them."""
    said: set[str] = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        sentence = in_options(" ".join(str(message).split()))
        if sentence not in said:
            said.add(sentence)
            click.echo(f"warning: {sentence}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
