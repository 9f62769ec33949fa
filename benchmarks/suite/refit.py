"""A refit with ``warm_start`` after 1 % of the rows came or went, against a fit from nothing."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import contest, datasets
from benchmarks.contest import Contest, Results
from benchmarks.options import Options
from benchmarks.report import Check, Report

TARGET = 0.2  # of a fit from nothing
PART = 100  # one row in so many comes or goes
ROWS, QUICK_ROWS = 20_000, 1000  # of each set, at most, unless --rows says otherwise
NARROW = 300  # columns up to which sparse rows are made dense
CASES = {
    "magic04": "SVC",
    "ijcnn1": "SVC",
    "usps": "SVC",
    "dense-float64": "LinearSVC",
    "a9a": "LinearSVC",
    "news20-binary": "LinearSVC",
}
MACHINES = {"LinearSVC": mm.LinearSVC, "SVC": mm.SVC}
COLD, ADDED, AMONG, REMOVED = "a fit from nothing", "rows added", "added among them", "rows removed"


def run(options: Options) -> Report:
    """Measure every case that can be had."""
    with threadpool_limits(options.threads):
        return contest.run("refit", _contests(options), options)[0]


def _contests(options: Options) -> Iterator[Contest]:
    chosen = list(options.chosen(CASES))
    for dataset in datasets.available(chosen, options.data, options.quick):
        most = options.at_most(ROWS, QUICK_ROWS)
        yield _contest(datasets.sampled(dataset, most), CASES[dataset.name], options)


def _contest(dataset: datasets.Dataset, machine: str, options: Options) -> Contest:
    X, y = dataset.X, dataset.y
    if not (dataset.sparse and X.shape[1] > NARROW):
        X = datasets.scaled(dataset, "standardised").X
    rng, n = np.random.default_rng(0), X.shape[0]
    order = rng.permutation(n)
    stay, every = np.sort(order[n // PART :]), np.arange(n)
    model = MACHINES[machine](n_jobs=options.threads, warm_start=True)
    fitted = {len(rows): deepcopy(model).fit(X[rows], y[rows]) for rows in (stay, every)}

    def refit(first: int, rows: Any) -> Callable[[], Any]:
        data = X[rows], y[rows]
        return lambda: deepcopy(fitted[first]).fit(*data)

    name = f"{dataset.name}, {machine}"
    return Contest(
        name,
        f"{n}×{X.shape[1]}",
        {
            COLD: lambda: deepcopy(model).fit(X, y),
            ADDED: refit(len(stay), np.append(stay, np.sort(order[: n // PART]))),
            AMONG: refit(len(stay), order),
            REMOVED: refit(n, stay),
        },
        base=COLD,
        most={ADDED: TARGET, AMONG: TARGET, REMOVED: TARGET},
        checks=partial(_checks, name),
    )


def _checks(name: str, results: Results) -> list[Check]:
    cold = results[COLD].certificate_
    warm = [results[each].certificate_ for each in (ADDED, AMONG)]
    apart = max(abs(each.primal / cold.primal - 1) for each in warm)
    every = [*warm, results[REMOVED].certificate_]
    tol = results[COLD].tol
    holds = bool(all(each.holds(tol) for each in every) and apart <= 2 * tol)
    claim = f"{name}: every refit is certified, and agrees with the fit from nothing"
    return [Check("same problem", claim, holds, f"objectives differ by {apart:.1g}")]
