"""A path of 20 costs against the single hardest fit on it, and against 20 fits from nothing."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import contest, datasets
from benchmarks.contest import Contest, Results
from benchmarks.measure import timed
from benchmarks.options import Options
from benchmarks.report import Check, Report

TARGET = 3.0  # times the hardest fit
CS = np.geomspace(1e-2, 1e2, 20)
ROWS, QUICK_ROWS = 5000, 1000  # of each set, at most, unless --rows says otherwise
NARROW = 64  # columns up to which sparse rows are made dense
SETS = ("magic04", "ijcnn1", "a9a", "satimage", "dense-float64")
MACHINES = {"LinearSVC": mm.LinearSVC, "SVC": mm.SVC}
PATH, HARDEST, FITS = "path", "hardest fit", "20 fits"


def run(options: Options) -> Report:
    """Measure every case that can be had."""
    with threadpool_limits(options.threads):
        report, _ = contest.run("path", _contests(options), options)
    report.notes.append(f"{len(CS)} costs from {CS[0]:g} to {CS[-1]:g}")
    return report


def _contests(options: Options) -> Iterator[Contest]:
    chosen = options.chosen(f"{data} {machine}" for data in SETS for machine in MACHINES)
    wanted = list(dict.fromkeys(name.split()[0] for name in chosen))
    for dataset in datasets.available(wanted, options.data, options.quick):
        most = options.at_most(ROWS, QUICK_ROWS)
        for machine in MACHINES:
            if f"{dataset.name} {machine}" in chosen:
                yield _contest(datasets.sampled(dataset, most), machine, options)


def _contest(dataset: datasets.Dataset, machine: str, options: Options) -> Contest:
    X, y = prepared(dataset)

    def fit(C: float) -> Any:
        return MACHINES[machine](C=C, n_jobs=options.threads).fit(X, y)

    def fits() -> list[Any]:
        return [fit(C) for C in CS]

    def path() -> Any:
        model = MACHINES[machine](n_jobs=options.threads)
        return mm.regularization_path(X, y, model, Cs=CS, exact=False)

    fits(), path()  # compiles
    hardest = float(max(CS, key=lambda C: timed(partial(fit, C))().wall))
    name = f"{dataset.name}, {machine}"
    return Contest(
        f"{name}, hardest at C={hardest:.3g}",
        f"{X.shape[0]}×{X.shape[1]}",
        {PATH: path, HARDEST: partial(fit, hardest), FITS: fits},
        base=HARDEST,
        most={PATH: TARGET},
        checks=partial(_checks, name),
    )


def prepared(dataset: datasets.Dataset) -> tuple[Any, Any]:
    """Return two classes, and narrow sets dense, with columns of spread 1."""
    y = dataset.y
    if len(np.unique(y)) > 2:
        y = datasets.one_against_rest(dataset, dataset.name).y
    wide = dataset.sparse and dataset.X.shape[1] > NARROW
    return dataset.X if wide else datasets.scaled(dataset, "standardised").X, y


def _checks(name: str, results: Results) -> list[Check]:
    path = results[PATH]
    primal = np.array([part.primal for part in path.certificates])
    fresh = np.array([fitted.certificate_.primal for fitted in results[FITS]])
    apart = float(np.abs(primal / fresh - 1).max())
    claim = f"{name}: all of the path is certified, and agrees with the fits"
    holds = bool(path.certified and apart <= 2 * path.tol)
    return [Check("same problem", claim, holds, f"objectives differ by {apart:.1g}")]
