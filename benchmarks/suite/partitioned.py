"""Machines on cells beside one machine on all rows: seconds, accuracy on other rows, and proofs.

``python -m benchmarks.run partitioned --data DIR --only waves-million --repeats 1 --limit 1800``:
the machine on all rows stops at ``--limit`` seconds (default 600) with the best it has.
"""

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import contest, datasets
from benchmarks.contest import Contest, Results
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report

LIMIT = 600.0  # seconds for the machine on all rows
TARGET = 0.5  # of its time, where there are many rows that overlap
LOSS = 0.02  # of accuracy that cells may cost
COST = 10.0
TESTS = 0.2  # part of the rows of a set without a test part
WAVES = {"waves-50k": 50_000, "waves-200k": 200_000, "waves-million": 1_000_000}
REAL = ("magic04", "ijcnn1", "shuttle", "covtype")
WHOLE, TREE, CHOSEN = "all rows", "cells", "cells, C and γ chosen"
GRID: dict[str, Any] = {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.03, 0.3]}


def run(options: Options) -> Report:
    """Measure every case that can be had."""
    small = waves("small", 300)
    mm.PartitionedSVC(size=100, **GRID).fit(small.X, small.y)  # so that all loops are compiled
    with threadpool_limits(options.threads):
        return contest.run("partitioned", _contests(options), options)[0]


def _contests(options: Options) -> Iterator[Contest]:
    chosen = options.chosen((*WAVES, *REAL))
    for name in chosen:
        if name in WAVES:
            yield _contest(waves(name, options.at_most(WAVES[name], 3000)), options)
    real = [name for name in chosen if name in REAL]
    for dataset in datasets.available(real, options.data, options.quick):
        dataset = _with_tests(dataset)
        if options.rows is not None:
            dataset = datasets.sampled(dataset, options.rows)
        yield _contest(datasets.scaled(dataset, "standardised"), options)


def waves(name: str, n: int) -> datasets.Dataset:
    """Return ten columns, of which three decide: a wave and a saddle, with noise."""
    rng = np.random.default_rng(datasets.SEED)
    tests = max(1000, n // 10)
    X = rng.standard_normal((n + tests, 10))
    noise = 0.3 * rng.standard_normal(n + tests)
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise > 0, 1, -1)
    return datasets.Dataset(name, X[:n], y[:n], X[n:], y[n:], "a wave and a saddle, with noise")


def _with_tests(dataset: datasets.Dataset) -> datasets.Dataset:
    """Return a set with a test part: its own, or rows drawn at random."""
    if dataset.X_test is not None:
        return dataset
    order = np.random.default_rng(datasets.SEED).permutation(dataset.X.shape[0])
    tests = int(TESTS * len(order))
    test, train = np.sort(order[:tests]), np.sort(order[tests:])
    parts = (dataset.X[train], dataset.y[train], dataset.X[test], dataset.y[test])
    return datasets.Dataset(dataset.name, *parts, dataset.notes)


def _contest(dataset: datasets.Dataset, options: Options) -> Contest:
    jobs = options.threads
    models = {
        WHOLE: mm.SVC(C=COST, n_jobs=jobs, max_time=options.limit or LIMIT),
        TREE: mm.PartitionedSVC(C=COST, n_jobs=jobs),
        CHOSEN: mm.PartitionedSVC(**GRID, n_jobs=jobs),
    }
    return Contest(
        dataset.name,
        dataset.shape,
        {name: partial(_fit, model, dataset) for name, model in models.items()},
        base=WHOLE,
        most={TREE: TARGET} if dataset.name in WAVES else {},
        facts=partial(_facts, dataset),
        checks=partial(_checks, dataset),
    )


def _fit(model: Any, dataset: datasets.Dataset) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(dataset.X, dataset.y)


def _accuracy(dataset: datasets.Dataset, model: Any) -> float:
    return float(model.score(dataset.X_test, dataset.y_test))


def _facts(dataset: datasets.Dataset, name: str, model: Any) -> dict[str, Cell]:
    parts = [model.certificate_] if name == WHOLE else model.certificates_
    return {
        "accuracy": _accuracy(dataset, model),
        "cells": 1 if name == WHOLE else model.n_cells_,
        "worst gap": max(part.relative_gap for part in parts),
    }


def _checks(dataset: datasets.Dataset, results: Results) -> list[Check]:
    found = []
    whole = _accuracy(dataset, results[WHOLE])
    for name in (TREE, CHOSEN):
        model = results[name]
        holds = all(part.holds(model.tol) for part in model.certificates_)
        claim = f"{dataset.name}, {name}: every cell is solved to {model.tol:g}"
        found.append(Check("same problem", claim, holds, f"{model.n_cells_} cells"))
        lost = whole - _accuracy(dataset, model)
        claim = f"{dataset.name}, {name}: cells cost at most {LOSS:.0%} of accuracy"
        found.append(Check("target", claim, lost <= LOSS, f"{lost:+.4f} lost"))
    return found
