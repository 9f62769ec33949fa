"""The cells of the table of kernel machines, on disk as soon as they are known."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import Table, plain
from maxmargin.problem import Status

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
    """All cells ever found with the same sizes, the last of each key and source."""

    def __init__(self, folder: Path, of: str) -> None:
        self._of = of
        self._file = folder / f"{NAME}.cells.jsonl"
        self._table = folder / f"{NAME}.md"
        self._cells: dict[tuple[str, Key], Found] = {}
        folder.mkdir(parents=True, exist_ok=True)
        text = self._file.read_text("utf-8") if self._file.exists() else ""
        if text and not text.endswith("\n"):  # a run was killed while it wrote
            text = text[: text.rfind("\n") + 1]
            self._file.write_text(text, encoding="utf-8")
        for said in map(json.loads, text.splitlines()):
            if said.pop("of") == of:
                found = Found(**said)
                self._cells[found.source, found.key] = found
        self._source = ""

    def get(self, key: Key, source: str) -> Found | None:
        """Return a cell if it is known for this source."""
        return self._cells.get((source, key))

    def add(self, found: Found) -> None:
        """Write a cell down."""
        self._cells[found.source, found.key] = found
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(plain({"of": self._of, **asdict(found)})) + "\n")

    def cells(self, source: str) -> list[Found]:
        """Return all that is known of a source."""
        self._source = source
        return [found for (of, _), found in self._cells.items() if of == source]

    def of_other_sources(self) -> int:
        """Return how many cells there are that were not among the last ones returned."""
        return sum(of != self._source for of, _ in self._cells)

    def write_table(self, table: Table) -> None:
        """Write what is known as a table to read."""
        self._table.write_text(f"{table}\n", encoding="utf-8")
