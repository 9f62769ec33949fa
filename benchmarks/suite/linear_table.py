"""Linear SVMs on every set: whether each fit ends with a proof, scaled or not, whatever C.

One fit a cell with ``tol=1e-6`` and two minutes. A cell is on disk as soon as it is known: a run
that was ended goes on where it stopped, as long as the package has not changed.
"""

import hashlib
import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import pictures
from benchmarks.datasets import COLUMNS, Dataset, available, one_against_rest
from benchmarks.objective import LinearObjective
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table, plain
from benchmarks.solvers.linear import Ours, warm_up
from maxmargin.problems.problem import Status

REGRESSION = ("housing_scale", "abalone", "cpusmall", "casp")
COSTS = (1e-2, 1.0, 1e2)
TOL, MAX_TIME = 1e-6, 120.0
NAME = "linear-table"
FOLDER = Path(__file__).parents[1] / "results"  # for what is known before the run has ended
OPTIMAL = Status.OPTIMAL.name


@dataclass(frozen=True)
class Found:
    """One fit: what it was of, how it ended, and its gap computed anew."""

    data: str
    size: str
    scaled: bool
    C: float
    status: str
    gap: float | None
    seconds: float
    certify_seconds: float
    iterations: int
    solver: str

    @property
    def proved(self) -> bool:
        """Whether the gap is at most what was asked for."""
        return self.gap is not None and self.gap <= TOL


def run(options: Options) -> Report:
    """Fit everything asked for."""
    names = options.chosen(COLUMNS)
    kept = Kept(FOLDER, f"{fingerprint()} {'quick' if options.quick else ''}".strip())
    cells: list[Found] = []
    with threadpool_limits(options.threads):
        for dataset in available(names, options.data, options.quick):
            for scaled, problem in _versions(dataset):
                warm_up(Ours(), problem, LinearObjective("free", epsilon=_epsilon(problem)))
                for C in COSTS:
                    found = kept.get(dataset.name, scaled, C)
                    if found is None:
                        found = cell(problem, scaled, C, 5.0 if options.quick else MAX_TIME)
                        kept.add(found)
                    cells.append(found)
                    print(_line(found), flush=True)
                    kept.write_table(cells)
    report = Report(NAME)
    if cells:
        report.tables.append(table(cells))
        report.checks += _checks(cells)
        report.draw = lambda: picture(cells)
    kept.forget()
    return report


def _versions(dataset: Dataset) -> Iterator[tuple[bool, Dataset]]:
    """Yield a set as it is and scaled, as a two-class or regression problem."""
    if dataset.name not in REGRESSION and len(np.unique(dataset.y)) > 2:
        dataset = one_against_rest(dataset, dataset.name)
    if dataset.X.dtype == np.uint8:
        dataset = replace(dataset, X=dataset.X.astype(np.float32))
    yield False, dataset
    yield True, replace(dataset, X=scaled_by_largest(dataset.X))


def scaled_by_largest(X: Any) -> Any:
    """Return X with each column divided by its largest absolute value."""
    if sp.issparse(X):
        largest = np.asarray(abs(X).max(axis=0).todense()).ravel()
        result = X.copy()
        result.data = X.data / np.where(largest > 0, largest, 1.0)[X.indices]
        return result
    largest = np.abs(X).max(axis=0)
    return X / np.where(largest > 0, largest, 1).astype(X.dtype)


def _epsilon(dataset: Dataset) -> float | None:
    return 0.1 * float(np.std(dataset.y)) if dataset.name in REGRESSION else None


def cell(dataset: Dataset, scaled: bool, C: float, max_time: float) -> Found:
    """Fit once, and certify."""
    said: dict[str, Any] = {"C": C, "tol": TOL, "max_time": max_time}
    epsilon = _epsilon(dataset)
    if epsilon is None:
        model: Any = mm.LinearSVC(**said)
    else:
        model = mm.LinearSVR(epsilon=epsilon, **said)
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # how it ended is in the status
            model.fit(dataset.X, dataset.y)
    except Exception as error:  # one cell that fails must not take the others with it
        seconds, kind = time.perf_counter() - began, type(error).__name__
        print(f"  {kind}: {error}", flush=True)
        return Found(dataset.name, dataset.shape, scaled, C, kind, None, seconds, 0.0, 0, "–")
    seconds = time.perf_counter() - began
    certificate: Any = mm.certify(model, dataset.X, dataset.y)
    certifying = time.perf_counter() - began - seconds
    gap = float(certificate.relative_gap)
    return Found(
        dataset.name,
        dataset.shape,
        scaled,
        C,
        model.status_.name,
        gap if np.isfinite(gap) else None,
        seconds,
        certifying,
        int(model.n_iter_),
        model.solver_,
    )


class Kept:
    """The cells of a run that has not ended yet, on disk."""

    def __init__(self, folder: Path, of: str) -> None:
        self._of = of
        self._file = folder / f"{NAME}.partial.jsonl"
        self._table = folder / f"{NAME}.md"
        self._cells: dict[tuple[str, bool, float], Found] = {}
        folder.mkdir(parents=True, exist_ok=True)
        lines = self._file.read_text("utf-8").splitlines() if self._file.exists() else []
        self.forget()  # the last line may be half a line
        for said in (json.loads(line) for line in lines if line.endswith("}")):
            if said.pop("of") == of:
                self.add(Found(**said))
        if self._cells:
            print(f"{len(self._cells)} cells are known from a run that was ended", flush=True)

    def get(self, data: str, scaled: bool, C: float) -> Found | None:
        """Return a cell if it is known."""
        return self._cells.get((data, scaled, C))

    def add(self, found: Found) -> None:
        """Write a cell down."""
        self._cells[found.data, found.scaled, found.C] = found
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(plain({"of": self._of, **asdict(found)})) + "\n")

    def write_table(self, cells: list[Found]) -> None:
        """Write what is known as a table to read."""
        self._table.write_text(f"{table(cells)}\n", encoding="utf-8")

    def forget(self) -> None:
        """Start anew the next time: the run has ended."""
        self._file.unlink(missing_ok=True)


def fingerprint() -> str:
    """Return a digest of the package's source."""
    digest = hashlib.sha256()
    for file in sorted(Path(mm.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _line(found: Found) -> str:
    gap = "no gap" if found.gap is None else f"gap {found.gap:.1e}"
    how = "scaled" if found.scaled else "as it is"
    return (
        f"{found.data} ({found.size}) {how}, C={found.C:g}: {found.status}, {gap}, "
        f"{found.seconds:.3g} s, {found.iterations} iterations ({found.solver})"
    )


def table(cells: list[Found]) -> Table:
    """Return a row a fit."""
    rows: list[list[Cell]] = [
        [
            found.data,
            found.size,
            "scaled" if found.scaled else "as it is",
            f"{found.C:g}",
            found.status,
            "–" if found.gap is None else f"{found.gap:.1e}",
            found.seconds,
            found.certify_seconds,
            found.iterations,
            found.solver,
        ]
        for found in cells
    ]
    return Table(
        f"tol={TOL:g}, max_time={MAX_TIME:g}, hinge loss (regression: ε = 0.1 sd(y)), free "
        "intercept; several classes: the largest against the rest; scaled: each column divided by "
        "its largest absolute value",
        (
            "data",
            "size",
            "columns",
            "C",
            "status",
            "certified gap",
            "s",
            "certify s",
            "iterations",
            "solver",
        ),
        rows,
    )


def _checks(cells: list[Found]) -> list[Check]:
    missed = [f for f in cells if not f.proved]
    false = [f for f in cells if f.status == OPTIMAL and not f.proved]
    named = "; ".join(f"{f.data} {'scaled ' if f.scaled else ''}C={f.C:g}" for f in missed)
    return [
        Check("same problem", "no fit claims more than is proved", not false, f"{len(false)} do"),
        Check(
            "target",
            f"every fit is proved to {TOL:g} within {MAX_TIME:g} s",
            not missed,
            f"{len(cells) - len(missed)} of {len(cells)}" + (f", not {named}" if missed else ""),
        ),
    ]


def picture(cells: list[Found]) -> Any:
    """Draw the certified gap of each fit against its seconds."""
    drawn, (axis,) = pictures.figure(1, width=6.0, height=4.2)
    for k, scaled in enumerate((False, True)):
        shown = [f for f in cells if f.scaled == scaled and f.gap is not None]
        axis.scatter(
            [f.seconds for f in shown],
            [max(f.gap or 0.0, 1e-17) for f in shown],
            color=pictures.COLOURS[k],
            marker=pictures.MARKERS[k],
            label="scaled" if scaled else "as it is",
        )
    axis.axhline(TOL, color="black", linewidth=0.8)
    axis.set(xscale="log", yscale="log", xlabel="seconds", ylabel="certified relative gap")
    axis.grid(alpha=0.3)
    axis.legend()
    return drawn
