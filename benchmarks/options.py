"""What the command line asks of a benchmark."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """Arguments of one run.

    Attributes
    ----------
    data : Path or None
        Folder with real data sets; without it they are skipped.
    only : tuple of str
        Names of the cases to run; empty for all.
    repeats : int
        Measured rounds, after one warm-up.
    quick : bool
        Small sizes: shows that everything runs, measures nothing worth quoting.
    threads : int or None
        Threads allowed to BLAS and to us; None leaves the choice to the benchmark.
    limit : float or None
        Seconds allowed for one fit of a kernel machine; None leaves the choice to the benchmark.
    rows : int or None
        At most so many rows of each set a kernel machine learns from; None: as each case says.
    compare : bool
        Whether kernel-table lets LIBSVM fit each cell too.
    out : Path or None
        Where results go; a benchmark of kernel machines writes there what is known so far.
    against : Path or None
        Another checkout of the library to compare with, instead of other tools.
    """

    data: Path | None = None
    only: tuple[str, ...] = ()
    repeats: int = 5
    quick: bool = False
    threads: int | None = None
    limit: float | None = None
    rows: int | None = None
    compare: bool = False
    out: Path | None = None
    against: Path | None = None

    def chosen(self, cases: Iterable[str]) -> list[str]:
        """Return the cases asked for, in the benchmark's order; refuse names it does not have."""
        known = list(cases)
        if unknown := [name for name in self.only if name not in known]:
            raise SystemExit(f"--only {' '.join(unknown)}: this benchmark has {', '.join(known)}")
        return [name for name in known if not self.only or name in self.only]
