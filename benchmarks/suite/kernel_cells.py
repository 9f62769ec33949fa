"""The cells of the table of kernel machines, on disk as soon as they are known."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import Table, plain
from maxmargin.problems.problem import Status

NAME = "kernel-table"
OPTIMAL = Status.OPTIMAL.name


class Key(NamedTuple):
    """What a cell is a fit of."""

    data: str
    version: str
    C: float
    factor: float  # of the default γ
    tol: float

    def __str__(self) -> str:
        return f"{self.data} {self.version}, C={self.C:g}, γ×{self.factor:g}, tol={self.tol:g}"


@dataclass(frozen=True)
class Found:
    """One fit: what it was of, how it ended, and its gap computed anew."""

    data: str
    version: str
    C: float
    factor: float
    tol: float
    size: str
    source: str  # a digest of the package
    status: str = ""
    why: str = ""
    gap: float | None = None
    dual: float | None = None
    seconds: float = 0.0
    cpu: float = 0.0
    certify_seconds: float = 0.0
    iterations: int = 0
    vectors: int = 0
    compared: str = ""  # how LIBSVM ended, if it was asked
    lead: float | None = None  # of our dual objective, relative to LIBSVM's
    their_gap: float | None = None

    @property
    def key(self) -> Key:
        """What it was of."""
        return Key(self.data, self.version, self.C, self.factor, self.tol)

    @property
    def proved(self) -> bool:
        """Whether the gap is at most what was asked for."""
        return self.gap is not None and self.gap <= self.tol


class Kept:
    """All cells ever found with the same sizes; the last of each key is shown."""

    def __init__(self, folder: Path, of: str) -> None:
        self._of = of
        self._file = folder / f"{NAME}.cells.jsonl"
        self._table = folder / f"{NAME}.md"
        self._cells: dict[tuple[str, Key], Found] = {}
        self._last: dict[Key, Found] = {}
        folder.mkdir(parents=True, exist_ok=True)
        text = self._file.read_text("utf-8") if self._file.exists() else ""
        if text and not text.endswith("\n"):  # a run was killed while it wrote
            text = text[: text.rfind("\n") + 1]
            self._file.write_text(text, encoding="utf-8")
        for said in map(json.loads, text.splitlines()):
            if said.pop("of") == of:
                self._know(Found(**said))

    def get(self, key: Key, source: str) -> Found | None:
        """Return a cell if it is known for this source; from now on it is the last of its key."""
        found = self._cells.get((source, key))
        if found is not None:
            self._last[key] = found
        return found

    def add(self, found: Found) -> None:
        """Write a cell down."""
        self._know(found)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(plain({"of": self._of, **asdict(found)})) + "\n")

    def cells(self) -> list[Found]:
        """Return the last of each key, whatever version of the package it is of."""
        return list(self._last.values())

    def write_table(self, table: Table) -> None:
        """Write what is known as a table to read."""
        self._table.write_text(f"{table}\n", encoding="utf-8")

    def _know(self, found: Found) -> None:
        self._cells[found.source, found.key] = found
        self._last[found.key] = found
