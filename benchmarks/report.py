"""What a benchmark found: tables on paper, the same numbers in JSON, and a picture."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import Spread

Cell = str | float | int | Spread | None


@dataclass(frozen=True)
class Table:
    """A title, and rows of cells by the names of their columns (with units)."""

    title: str
    rows: Sequence[Mapping[str, Cell]]

    def __str__(self) -> str:
        if not self.rows:
            return "(nothing)"
        columns = list(self.rows[0])
        lines = [columns, *([shown(row[name]) for name in columns] for row in self.rows)]
        numeric = [not any(isinstance(row[name], str) for row in self.rows) for name in columns]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rule = [
            "-" * (width - 1) + (":" if right else "-")
            for width, right in zip(widths, numeric, strict=True)
        ]
        return "\n".join(
            "| " + " | ".join(map(_padded, line, widths, numeric)) + " |"
            for line in (lines[0], rule, *lines[1:])
        )


@dataclass(frozen=True)
class Check:
    """Something that should hold: ``holds`` is None where it cannot be decided.

    Kind "same problem" says whether the figures may be compared at all; "target" is a wish.
    """

    kind: str
    claim: str
    holds: bool | None
    found: str

    def __str__(self) -> str:
        verdict = {True: "yes", False: "NO", None: "undecided"}[self.holds]
        return f"- {self.kind}: {self.claim}: {verdict} ({self.found})"


@dataclass
class Report:
    """Everything one benchmark has to say."""

    name: str
    tables: list[Table] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    draw: Callable[[], Any] | None = None  # returns a matplotlib figure

    @property
    def comparable(self) -> bool:
        """Whether all solved the same problem, as far as could be decided."""
        return not any(c.holds is False for c in self.checks if c.kind == "same problem")

    def __str__(self) -> str:
        parts = [f"# {self.name}"]
        parts += [f"## {table.title}\n\n{table}" for table in self.tables]
        parts += ["\n".join(map(str, self.checks))] if self.checks else []
        parts += ["\n".join(f"- note: {note}" for note in self.notes)] if self.notes else []
        return "\n\n".join(parts)

    def save(self, folder: Path, facts: dict[str, Any]) -> list[Path]:
        """Write NAME.json and, if there is something to draw, NAME.png; return what was written."""
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / f"{self.name}.json"]
        content = {
            "benchmark": self.name,
            "facts": facts,
            "tables": [vars(table) for table in self.tables],
            "checks": [vars(check) for check in self.checks],
            "notes": self.notes,
        }
        text = json.dumps(plain(content), indent=1, allow_nan=False, ensure_ascii=False)
        written[0].write_text(text + "\n", encoding="utf-8")
        if self.draw is not None:
            written.append(folder / f"{self.name}.png")
            self.draw().savefig(written[1], dpi=120)
        return written


def shown(cell: Cell) -> str:
    """Return a cell as text: three digits, and the quartiles where there are any."""
    if cell is None:
        return "–"
    if isinstance(cell, Spread):
        if not cell.rounds:
            return "lost in noise"
        text = f"{digits(cell.median)} ({digits(cell.low)}–{digits(cell.high)})"
        # Rounds are lost where a difference of times fell below zero: not by chance, so say it.
        return text if cell.rounds == cell.of else f"{text}, {cell.rounds} of {cell.of} rounds"
    return digits(cell) if isinstance(cell, float) else str(cell)


def digits(value: float) -> str:
    """Return a number with three significant digits, without an exponent where that is shorter."""
    if not math.isfinite(value):
        return "–"
    size = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.3g}" if size < -4 else f"{value:,.{max(0, 2 - size)}f}"


def plain(value: Any) -> Any:
    """Return a value as JSON knows it: no NaN, no numpy numbers, a Spread by its names."""
    if isinstance(value, Spread):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(name): plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _padded(text: str, width: int, to_the_right: bool) -> str:
    return text.rjust(width) if to_the_right else text.ljust(width)
