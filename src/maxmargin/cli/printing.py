"""What commands print: facts, tables and sentences for people, or one JSON object for programs.

Results go to standard output. With ``--json`` that is exactly one JSON object; without it, text
that is coloured on terminals and plain in pipes. Progress, remarks of the moment and warnings go to
standard error.
"""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from maxmargin.cli.command import STATUSES, Exit, use_replacements

SCHEMA = 1
PIPE_WIDTH = 100
HEADING_WIDTH = 14  # so that facts printed one after the other stand below each other


class Output:
    """What one run of a command prints; with ``--json`` only ``finish`` does."""

    def __init__(self, command: str, as_json: bool) -> None:
        use_replacements(sys.stdout)  # a terminal without × still gets the numbers
        self.command, self.as_json = command, as_json
        self.console = Console(highlight=False, quiet=as_json)
        self.console.on_broken_pipe = _raise_broken_pipe  # type: ignore[method-assign]
        if not self.console.is_terminal:
            self.console.width = PIPE_WIDTH

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Print sentences beside their headings; an empty heading continues the one before."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(min_width=HEADING_WIDTH)
        for heading, sentence in facts:
            grid.add_row(Text(heading, style="bold"), Text(sentence))
        if grid.row_count:
            self._print(grid)

    def table(
        self, heads: Sequence[str], rows: Iterable[Sequence[object]], indent: int = 0
    ) -> None:
        """Print a table without lines; numbers stand to the right."""
        rows, grid = list(rows), Table.grid(padding=(0, 2))
        for k in range(len(heads)):
            numbers = all(isinstance(row[k], int | float) for row in rows)
            grid.add_column(justify="right" if numbers else "left")
        grid.add_row(*(Text(head, style="bold") for head in heads))
        for row in rows:
            cells = (f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row)
            grid.add_row(*map(Text, cells))
        self._print(grid, indent)

    def text(self, sentence: str = "", indent: int = 0) -> None:
        """Print a paragraph."""
        self._print(Text(sentence), indent)

    def heading(self, heading: str) -> None:
        """Print a heading after an empty line."""
        self._print(Text(f"\n{heading}", style="bold"))

    def _print(self, shown: Any, indent: int = 0) -> None:
        """Print a table or text; in a pipe without spaces at the end of lines."""
        shown = Padding(shown, (0, 0, 0, indent)) if indent else shown
        if self.console.is_terminal:
            self.console.print(shown)
            return
        with self.console.capture() as captured:
            self.console.print(shown)
        lines = captured.get().splitlines()
        self.console.file.write("".join(f"{line.rstrip()}\n" for line in lines))

    def command_line(self, line: str) -> None:
        """Print a command line as it is, without breaks, so that it can be copied."""
        self.console.print(Text(f"  {line}"), soft_wrap=True)

    def note(self, sentence: str) -> None:
        """Say something on standard error, where it is in nobody's way."""
        click.echo(sentence, err=True)

    def finish(self, code: Exit = Exit.DONE, **fields: Any) -> Exit:
        """Print the JSON object, if that is asked for, and return the exit code."""
        if self.as_json:
            print_json(self.command, STATUSES[code], **fields)
        return code


def _raise_broken_pipe() -> None:
    """Leave it to the command line that nobody reads on; rich would end the program."""
    raise BrokenPipeError


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


def certificate_to_json(machine: Any, tol: float | None = None) -> dict[str, Any] | None:
    """Return the numbers of a fitted machine's certificate, or of a certificate."""
    found = getattr(machine, "certificate_", machine)
    if not hasattr(found, "relative_gap"):
        return None
    names = ("primal", "dual", "gap", "relative_gap", "rounding", "infeasibility", "drift")
    numbers = {name: getattr(found, name) for name in (*names, "max_kkt_violation")}
    numbers |= {"caveat": found.caveat, "sentence": str(found)}
    tol = getattr(machine, "tol", None) if tol is None else tol
    return numbers if tol is None else {**numbers, "tol": tol, "holds": found.holds(tol)}
