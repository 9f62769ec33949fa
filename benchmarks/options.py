"""What the command line asks of a benchmark."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Options:
    """Arguments of one run; None leaves a choice to the benchmark."""

    data: Path | None = None  # folder with real sets; without it they are skipped
    only: Sequence[str] = ()  # names of the cases to run; empty for all
    repeats: int = 5  # measured rounds
    quick: bool = False  # small sizes: shows that everything runs, measures nothing worth quoting
    threads: int | None = None  # allowed to BLAS and to us
    limit: float | None = None  # seconds allowed for one fit
    rows: int | None = None  # of each set, at most
    defaults: bool = False  # whether a race is of default tolerances only, not of whole sweeps
    out: Path | None = None  # where results go, and what is known before a long run has ended
    against: Path | None = None  # another checkout of the library, to be compared with

    def at_most(self, rows: int, quick: int) -> int:
        """Return how many rows to take of a set, where a benchmark would take so many."""
        return min(self.rows or rows, quick if self.quick else rows)

    def chosen(self, cases: Iterable[str]) -> list[str]:
        """Return the cases asked for, in the benchmark's order; refuse names it does not have."""
        known = list(cases)
        if unknown := [name for name in self.only if name not in known]:
            raise SystemExit(f"--only {' '.join(unknown)}: this benchmark has {', '.join(known)}")
        return [name for name in known if not self.only or name in self.only]
