"""Kernel SVMs on every set: whether each fit ends with a proof, whatever C, γ and scale.

A cell is one fit within 300 s; with ``--compare`` LIBSVM fits it too, at its tol=1e-6 and within
60 s, and the dual objectives are compared. ``--only`` takes sets and tolerances ("tol=1e-6").
A cell is on disk as soon as it is known: later runs do not fit again what is known of the same
source, and show all that is known.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import pictures
from benchmarks.datasets import COLUMNS, Dataset, available, sampled
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table
from benchmarks.solvers.kernel import Libsvm, Machine, Ours
from benchmarks.solvers.kernel_worker import (
    LOADING,
    Answer,
    FailedError,
    SlowError,
    Worker,
    store,
)
from benchmarks.suite.kernel_cases import EPSILON, scaled, with_unit_targets
from benchmarks.suite.kernel_cells import NAME, OPTIMAL, Found, Kept, Key
from benchmarks.suite.linear_table import REGRESSION, fingerprint

TEXT = ("reuters-money-fx", "20newsgroups-bydate", "news20")
COSTS = (1e-2, 1.0, 1e3)
FACTORS = (1e-2, 1.0, 1e2)  # of γ = 1/(d · variance), scikit-learn's "scale"
TOLERANCES = (1e-4, 1e-6)
TIGHT = min(TOLERANCES)
ROWS, QUICK_ROWS = 20_000, 60
MAX_TIME, THEIR_TIME, QUICK_TIME = 300.0, 60.0, 5.0
WARMING = 10.0  # seconds for a fit that is not counted
GRACE = 120.0  # seconds beyond max_time before a fit is killed
ROUNDING = 1e-9  # relative: by so much a dual objective may be below another
FOLDER = Path(__file__).parents[1] / "results"  # unless another is given


def run(options: Options) -> Report:
    """Fit everything asked for."""
    tolerances = {f"tol={tol:.0e}".replace("e-0", "e-"): tol for tol in TOLERANCES}
    sets, named = _asked(options, list(tolerances))
    chosen = [tol for name, tol in tolerances.items() if not named or name in named]
    kept = Kept(options.out or FOLDER, f"{_most_rows(options)} rows, {_seconds(options):g} s")
    for dataset in available(sets, options.data):
        for version, problem in versions(dataset, options):
            print(f"{NAME}: {dataset.name} {version} ({problem.shape})", flush=True)
            with Bench(problem, version, options) as bench:
                for key in keys(dataset.name, version, chosen):
                    _fill(bench, key, kept, options)
    report = Report(NAME)
    cells = kept.cells()
    if cells:
        report.tables.append(table(cells))
        report.checks += checks(cells)
        report.draw = lambda: picture(cells)
        report.notes.append("several classes: the gap is that of the worst pair of them")
    sources = Counter(found.source for found in cells)
    if len(sources) > 1:
        said = ", ".join(f"{count} of {source[:8]}" for source, count in sources.items())
        report.notes.append(f"the cells are of several versions of the source: {said}")
    return report


def _asked(options: Options, tolerances: list[str]) -> tuple[list[str], list[str]]:
    """Return the sets and the tolerances named; no set named is all of them."""
    named = options.chosen([*COLUMNS, *tolerances])
    sets = [name for name in named if name in COLUMNS]
    return sets or list(COLUMNS), [name for name in named if name in tolerances]


def _most_rows(options: Options) -> int:
    return min(options.rows or ROWS, QUICK_ROWS if options.quick else ROWS)


def _seconds(options: Options) -> float:
    return options.limit or (QUICK_TIME if options.quick else MAX_TIME)


def keys(data: str, version: str, tolerances: list[float]) -> Iterator[Key]:
    """Yield the cells of one version of a set, loose ones first."""
    for tol in tolerances:
        for C in COSTS:
            for factor in FACTORS:
                yield Key(data, version, C, factor, tol)


def versions(dataset: Dataset, options: Options) -> Iterator[tuple[str, Dataset]]:
    """Yield a set scaled and, where that makes a difference, as it is; texts by unit rows."""
    dataset = sampled(dataset, _most_rows(options))
    dataset = replace(dataset, X_test=None, y_test=None)
    if dataset.name in REGRESSION:
        dataset = with_unit_targets(dataset)
    if dataset.name in TEXT:
        yield "unit rows", replace(dataset, X=_unit_rows(dataset.X))
        return
    as_it_is = scaled(dataset, "as published")
    if np.abs(as_it_is.X).max() > 1:
        yield "scaled", scaled(dataset, "[-1,1]")
    yield "as it is", as_it_is


def _unit_rows(X: Any) -> Any:
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    result = X.copy().astype(np.float64)
    result.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(X.indptr))
    return result


def default_gamma(X: Any) -> float:
    """Return 1/(d · variance of all entries)."""
    variance = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else X.var()
    return 1.0 / (X.shape[1] * float(variance)) if variance > 0 else 1.0


# ------------------------------------------------------------ a cell


class Bench:
    """One version of a set, and the processes that fit it; a process that was killed is replaced.

    Used in a ``with`` statement.
    """

    def __init__(self, dataset: Dataset, version: str, options: Options) -> None:
        self.dataset, self.version = dataset, version
        self.threads = options.threads or os.cpu_count() or 1
        self.max_time = _seconds(options)
        self.their_time = min(THEIR_TIME, self.max_time)
        self.gamma = default_gamma(dataset.X)
        self.epsilon = EPSILON if dataset.name in REGRESSION else None
        self.source = ""  # of the code that our process runs
        self._workers: dict[str, Worker] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "Bench":
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        machine = Machine(1.0, self.gamma, self.epsilon)
        self._file = store(folder / "problem.pickle", self.dataset, machine)
        self.source = fingerprint()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.close()
        self._stack.close()

    def machine(self, key: Key) -> Machine:
        """Return what a cell minimises."""
        return Machine(key.C, key.factor * self.gamma, self.epsilon)

    def ask(self, tool: str, what: str, limit: float, **settings: Any) -> Answer:
        """Ask the process of a tool, a new one if need be."""
        try:
            if tool not in self._workers:
                self._workers[tool] = Worker(self._file, tool, self.threads)
                if tool == Ours.name:
                    self.source = fingerprint()
                    self._workers[tool].ask("warm", max_time=WARMING)
            return self._workers[tool].ask(what, limit, **settings)
        except SlowError:
            self._workers.pop(tool).close()
            raise
        except FailedError as error:
            if "its process ended" in str(error):
                self._workers.pop(tool).close()
            raise


def _fill(bench: Bench, key: Key, kept: Kept, options: Options) -> None:
    """Fit a cell unless it is known."""
    found = kept.get(key, bench.source)
    fresh = found is None
    if found is None:
        found = cell(bench, key)
    if options.compare and key.tol == TIGHT and not found.compared:
        found, fresh = compared(bench, key, found), True
    if fresh:
        kept.add(found)
        kept.write_table(table(kept.cells()))
    print(f"  {line(found)}", flush=True)


def cell(bench: Bench, key: Key) -> Found:
    """Fit once, and certify."""
    machine = vars(bench.machine(key))
    blank = Found(*key, bench.dataset.shape, bench.source)
    try:
        said = bench.ask(
            Ours.name,
            "fit",
            bench.max_time + GRACE,
            machine=machine,
            tol=key.tol,
            max_time=bench.max_time,
        )
        proof = bench.ask(Ours.name, "certify", LOADING)
    except SlowError as reason:
        return replace(blank, source=bench.source, status="KILLED", why=str(reason))
    except FailedError as reason:
        return replace(blank, source=bench.source, status="FAILED", why=str(reason))
    return replace(
        blank,
        source=bench.source,
        status=said["status"],
        gap=_number(proof["worst"]),
        dual=_number(proof["dual"]),
        seconds=said["wall"],
        cpu=said["cpu"],
        certify_seconds=proof["seconds"],
        iterations=said["iterations"],
        vectors=proof["vectors"],
    )


def compared(bench: Bench, key: Key, found: Found) -> Found:
    """Return the cell with LIBSVM's dual objective, or why there is none."""
    machine = vars(bench.machine(key))
    try:
        said = bench.ask(Libsvm.name, "fit", bench.their_time, machine=machine, tol=TIGHT)
        proof = bench.ask(Libsvm.name, "certify", LOADING)
    except (SlowError, FailedError) as reason:
        return replace(found, compared=f"none: {reason}")
    theirs, ours = _number(proof["dual"]), found.dual
    if theirs is None or ours is None:
        return replace(found, compared="none: no dual objective")
    lead = (ours - theirs) / max(abs(theirs), 1e-300)
    return replace(found, compared=f"{said['wall']:.3g} s", lead=lead, their_gap=proof["worst"])


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


# ------------------------------------------------------------ what is said


def line(found: Found) -> str:
    """Return a cell in words."""
    gap = "no gap" if found.gap is None else f"gap {found.gap:.1e}"
    lead = "" if found.lead is None else f", dual {found.lead:+.1e} of LIBSVM's"
    why = f" ({found.why})" if found.why else ""
    return (
        f"{found.key}: {found.status}{why}, {gap}, {found.seconds:.3g} s, "
        f"{found.iterations} iterations{lead}"
    )


def table(cells: list[Found]) -> Table:
    """Return a row a fit."""
    rows: list[list[Cell]] = [
        [
            found.data,
            found.size,
            found.version,
            f"{found.C:g}",
            f"{found.factor:g}",
            f"{found.tol:.0e}",
            found.status,
            "–" if found.gap is None else f"{found.gap:.1e}",
            found.seconds,
            found.certify_seconds,
            found.iterations,
            found.vectors,
            "–" if found.lead is None else f"{found.lead:+.1e}",
            found.compared or "–",
            found.source[:8],
        ]
        for found in cells
    ]
    return Table(
        f"Gaussian kernel, γ as a multiple of 1/(d · variance), max_time={MAX_TIME:g}, at most "
        f"{ROWS:,} rows; regression: targets of standard deviation 1, ε = {EPSILON:g}; scaled: "
        "columns to [-1,1]; lead: our dual objective above LIBSVM's, relative",
        (
            "data",
            "size",
            "rows",
            "C",
            "γ",
            "tol",
            "status",
            "certified gap",
            "s",
            "certify s",
            "iterations",
            "support vectors",
            "lead",
            "LIBSVM",
            "source",
        ),
        rows,
    )


def checks(cells: list[Found]) -> list[Check]:
    """Check that what is claimed is proved, that all is, and that no dual is below LIBSVM's."""
    false = [found for found in cells if found.status == OPTIMAL and not found.proved]
    said = "; ".join(str(found.key) for found in false)
    made = [Check("same problem", "no fit claims more than is proved", not false, said or "none")]
    for tol in TOLERANCES:
        wanted = [found for found in cells if found.tol == tol]
        missed = [found for found in wanted if not found.proved]
        named = "; ".join(line(found) for found in missed)
        count = f"{len(wanted) - len(missed)} of {len(wanted)}"
        claim = f"every fit is proved to {tol:g} within {MAX_TIME:g} s"
        holds = not missed if wanted else None
        made.append(Check("target", claim, holds, count + (f", not {named}" if named else "")))
    raced = [found for found in cells if found.lead is not None]
    behind = [found for found in raced if (found.lead or 0.0) < -ROUNDING]
    named = "; ".join(f"{found.key} ({found.lead:.1e})" for found in behind)
    claim = f"at {TIGHT:g} our dual objective is at least LIBSVM's"
    count = f"{len(raced) - len(behind)} of {len(raced)} compared"
    said = count + (f", not {named}" if named else "")
    made.append(Check("target", claim, not behind if raced else None, said))
    return made


def picture(cells: list[Found]) -> Any:
    """Draw the certified gap of each fit against its seconds."""
    drawn, (axis,) = pictures.figure(1, width=6.0, height=4.2)
    for k, tol in enumerate(TOLERANCES):
        shown = [f for f in cells if f.tol == tol and f.gap is not None]
        axis.scatter(
            [f.seconds for f in shown],
            [max(f.gap or 0.0, 1e-17) for f in shown],
            color=pictures.COLOURS[k],
            marker=pictures.MARKERS[k],
            label=f"tol={tol:g}",
        )
        axis.axhline(tol, color=pictures.COLOURS[k], linewidth=0.8)
    axis.set(xscale="log", yscale="log", xlabel="seconds", ylabel="certified relative gap")
    axis.grid(alpha=0.3)
    axis.legend()
    return drawn
