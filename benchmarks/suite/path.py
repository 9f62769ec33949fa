"""A path of 20 costs against the single hardest fit on it, and against 20 fits from nothing."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import datasets, pictures
from benchmarks.measure import Timings, interleave, ratio, spread, timed
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table

TARGET = 3.0  # times the hardest fit
CS = np.geomspace(1e-2, 1e2, 20)
ROWS = 5000  # of each set, at most, unless --rows says otherwise
SETS = ("magic04", "ijcnn1", "a9a", "satimage", "dense-float64")
MACHINES = {"LinearSVC": mm.LinearSVC, "SVC": mm.SVC}
PATH, HARDEST, FITS = "path", "hardest fit", "20 fits"


class Case(NamedTuple):
    """What was measured for one machine on one set."""

    name: str
    shape: str
    hardest: float  # C
    timings: Timings[str]
    path: Any
    apart: float  # of the objectives of path and fits, relative

    def times_hardest(self, name: str) -> Any:
        """Return how many times the hardest fit something takes."""
        return spread(ratio(self.timings.wall(name), self.timings.wall(HARDEST)))


def run(options: Options) -> Report:
    """Measure every case that can be had."""
    names = [f"{data} {machine}" for data in SETS for machine in MACHINES]
    chosen = options.chosen(names)
    wanted = [data for data in SETS if any(name.split()[0] == data for name in chosen)]
    report, cases = Report("path"), []
    with threadpool_limits(options.threads):
        for dataset in datasets.available(wanted, options.data, options.quick):
            rows = datasets.sampled(dataset, options.rows or (1000 if options.quick else ROWS))
            cases += [
                measured(rows, machine, options)
                for machine in MACHINES
                if f"{dataset.name} {machine}" in chosen
            ]
    if not cases:
        report.notes.append("no set could be had")
        return report
    report.tables.append(_table(cases))
    report.checks += [check for case in cases for check in _checks(case)]
    report.draw = lambda: pictures.lying_bars(
        {"a path of 20 costs": {case.name: (case.times_hardest(PATH), TARGET) for case in cases}},
        "times the hardest fit (black: target)",
    )
    return report


def measured(dataset: datasets.Dataset, machine: str, options: Options) -> Case:
    """Time the path, the fit that takes longest, and all fits, by turns in this process."""
    print(f"path: {dataset.name}, {machine}", flush=True)
    X, y = prepared(dataset)
    model = MACHINES[machine](n_jobs=options.threads)
    _fits(model, X, y)  # compiles
    hardest = float(CS[int(np.argmax([_seconds(model, C, X, y) for C in CS]))])
    path = _path(model, X, y)
    primal = np.array([part.primal for part in path.certificates])
    fresh = np.array([fitted.certificate_.primal for fitted in _fits(model, X, y)])
    timings = interleave(
        {
            PATH: timed(partial(_path, model, X, y)),
            HARDEST: timed(partial(_fit, model, hardest, X, y)),
            FITS: timed(partial(_fits, model, X, y)),
        },
        options.repeats,
        warm_ups=0,
    )
    apart = float(np.abs(primal / fresh - 1).max())
    n, d = X.shape
    return Case(f"{dataset.name}, {machine}", f"{n}×{d}", hardest, timings, path, apart)


def prepared(dataset: datasets.Dataset) -> tuple[Any, Any]:
    """Return two classes, and narrow sets dense, with columns of spread 1."""
    X, y = dataset.X, dataset.y
    if len(np.unique(y)) > 2:
        y = datasets.one_against_rest(dataset, dataset.name).y
    if dataset.sparse and X.shape[1] <= 64:
        X = X.toarray()
    if not hasattr(X, "toarray"):
        spreads = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spreads > 0, spreads, 1.0)
    return X, y


def _path(model: Any, X: Any, y: Any) -> Any:
    return mm.regularization_path(X, y, model, Cs=CS, exact=False)


def _fit(model: Any, C: float, X: Any, y: Any) -> Any:
    return type(model)(C=C, n_jobs=model.n_jobs).fit(X, y)


def _fits(model: Any, X: Any, y: Any) -> list[Any]:
    return [_fit(model, C, X, y) for C in CS]


def _seconds(model: Any, C: float, X: Any, y: Any) -> float:
    return timed(partial(_fit, model, C, X, y))().wall


def _table(cases: list[Case]) -> Table:
    rows: list[list[Cell]] = [
        [
            case.name,
            case.shape,
            f"{case.hardest:.3g}",
            spread(case.timings.wall(HARDEST)),
            spread(case.timings.wall(PATH)),
            case.times_hardest(PATH),
            case.times_hardest(FITS),
            max(part.relative_gap for part in case.path.certificates),
        ]
        for case in cases
    ]
    return Table(
        f"{len(CS)} costs from {CS[0]:g} to {CS[-1]:g}",
        (
            "set, machine",
            "size",
            "hardest C",
            "its fit, s",
            "path, s",
            "path / hardest fit",
            "20 fits / hardest fit",
            "largest gap",
        ),
        rows,
    )


def _checks(case: Case) -> list[Check]:
    tol = case.path.tol
    found = case.times_hardest(PATH).median
    return [
        Check(
            "same problem",
            f"{case.name}: all of the path is certified, and agrees with the fits",
            bool(case.path.certified and case.apart <= 2 * tol),
            f"objectives differ by {case.apart:.1g}",
        ),
        Check(
            "target",
            f"{case.name}: at most {TARGET:g} times the hardest fit",
            bool(found <= TARGET),
            f"{found:.2f} times",
        ),
    ]
