"""Small data beside scikit-learn, whose fits take about a millisecond there; and a time limit.

A call is a whole fit with the defaults of its library. (The two ``LinearSVC`` differ: ours has the
hinge loss and an unpenalised intercept.) Each round makes several calls and counts their mean.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sklearn.svm
from sklearn.datasets import load_iris, make_blobs
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import contest
from benchmarks.beside.solvers import fitted
from benchmarks.contest import Contest
from benchmarks.options import Options
from benchmarks.report import Report

OURS, THEIRS = "maxmargin", "scikit-learn"
LIMIT = "SVC(max_time=1)"
CALLS = 10  # a round: of fits that take less than the clocks can tell apart


def run(options: Options) -> Report:
    """Measure everything asked for."""
    with threadpool_limits(options.threads or 1):
        return contest.run("everyday", _contests(options), options, warm_ups=1)[0]


def _contests(options: Options) -> Iterator[Contest]:
    iris = load_iris(return_X_y=True)
    many = make_blobs(1000, n_features=10, centers=30, cluster_std=3.0, random_state=0)
    cases: dict[str, tuple[Callable[[], Any], Callable[[], Any], tuple[Any, Any], int]] = {
        "SVC, iris": (mm.SVC, sklearn.svm.SVC, iris, CALLS),
        "LinearSVC, iris": (mm.LinearSVC, sklearn.svm.LinearSVC, iris, CALLS),
        "SVC, 1,000 rows of 30 classes": (mm.SVC, sklearn.svm.SVC, many, 1),
        "LinearSVC, 1,000 rows of 30 classes": (mm.LinearSVC, sklearn.svm.LinearSVC, many, 1),
    }
    chosen = options.chosen([*cases, LIMIT])
    for name in (name for name in cases if name in chosen):
        ours, theirs, (X, y), calls = cases[name]
        fits = {
            tool: partial(_fits, kind, X, y, calls)
            for tool, kind in ((OURS, ours), (THEIRS, theirs))
        }
        yield Contest(name, f"{X.shape[0]}×{X.shape[1]}", fits, base=OURS)
    if LIMIT in chosen:
        X, y = mm.datasets.overlapping(options.at_most(100_000, quick=2000), 20)
        limited = partial(fitted, mm.SVC(max_time=1.0), X, y)
        yield Contest(LIMIT, f"{X.shape[0]}×{X.shape[1]}", {OURS: limited}, base=OURS)


def _fits(kind: Callable[[], Any], X: Any, y: Any, calls: int) -> dict[str, float]:
    """Return the mean seconds of several fits."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        fitted(kind(), X, y)
    return {
        "wall": (time.perf_counter() - wall) / calls,
        "cpu": (time.process_time() - cpu) / calls,
    }
