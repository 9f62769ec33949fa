"""A grid of C and γ with five folds: SVCSearchCV beside GridSearchCV around the peers."""

import importlib.util
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn import svm
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import datasets, pictures
from benchmarks.measure import Timings, interleave, ratio, spread, timed
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report, Table

OURS, LIBSVM, ONEDAL = "SVCSearchCV", "GridSearchCV, LIBSVM", "GridSearchCV, oneDAL"
TARGETS = {LIBSVM: 20.0, ONEDAL: 8.0}
SETS = ("satimage", "usps", "magic04")
ROWS = {"magic04": 5000}
CS = np.logspace(-2, 3, 10)
GAMMAS = np.logspace(-1.5, 1, 5)  # times 1/d, for columns of spread 1
JOBS = 2


class Case(NamedTuple):
    """What was measured on one set."""

    name: str
    shape: str
    timings: Timings[str]
    searches: dict[str, Any]

    def times(self, peer: str) -> Any:
        """Return how many times as long a peer takes."""
        return spread(ratio(self.timings.wall(peer), self.timings.wall(OURS)))

    def behind(self, peer: str) -> float:
        """Return by how much the peer's winner scores better in our results than ours."""
        ours, theirs = self.searches[OURS], self.searches[peer]
        scores = ours.cv_results_["mean_test_score"]
        return float(ours.best_score_ - scores[theirs.best_index_])


def run(options: Options) -> Report:
    """Measure every set that can be had."""
    chosen = options.chosen(SETS)
    report = Report("search")
    cases = [
        measured(dataset, options)
        for dataset in datasets.available(chosen, options.data, options.quick)
    ]
    if not cases:
        report.notes.append("no set could be had")
        return report
    peers = list(cases[0].searches)[1:]
    if ONEDAL not in peers:
        report.notes.append("oneDAL is left out: scikit-learn-intelex is not installed")
    report.tables.append(_table(cases, peers))
    report.checks += [check for case in cases for peer in peers for check in _checks(case, peer)]
    bars = {f"{peer} / ours": {c.name: (c.times(peer), TARGETS[peer]) for c in cases}
            for peer in peers}  # fmt: skip
    report.draw = lambda: pictures.lying_bars(bars, "times as long (black: target)")
    return report


def measured(dataset: datasets.Dataset, options: Options) -> Case:
    """Time the searches by turns in this process."""
    print(f"search: {dataset.name}", flush=True)
    if dataset.name in ROWS:
        dataset = datasets.sampled(dataset, options.rows or ROWS[dataset.name])
    X, y = prepared(dataset)
    grid = {"C": CS.tolist(), "gamma": (GAMMAS / X.shape[1]).tolist()}
    jobs = options.threads or JOBS
    common: dict[str, Any] = {
        "param_grid": grid,
        "cv": StratifiedKFold(5, shuffle=True, random_state=0),
        "n_jobs": jobs,
        "refit": False,
    }
    searches = {
        OURS: mm.SVCSearchCV(mm.SVC(), **common),
        LIBSVM: GridSearchCV(svm.SVC(), **common),
    }
    if importlib.util.find_spec("sklearnex") is not None:
        sklearnex = importlib.import_module("sklearnex.svm")
        searches[ONEDAL] = GridSearchCV(sklearnex.SVC(), **common)
    # Compiles: above 2000 rows kernel values are float32.
    some = np.random.default_rng(0).permutation(len(y))[:2500]
    small = {name: values[:1] for name, values in grid.items()}
    mm.SVCSearchCV(mm.SVC(), small, cv=2, refit=False).fit(X[some], y[some])
    with threadpool_limits(jobs):
        timings = interleave(
            {name: timed(partial(search.fit, X, y)) for name, search in searches.items()},
            options.repeats,
            warm_ups=0,
        )
    return Case(dataset.name, dataset.shape, timings, searches)


def prepared(dataset: datasets.Dataset) -> tuple[Any, Any]:
    """Return dense columns of spread 1, and digits as two classes: up to 5 and above."""
    X = dataset.X.toarray() if dataset.sparse else np.asarray(dataset.X)
    y = np.asarray(dataset.y)
    if dataset.name == "usps":
        y = np.where(y <= np.unique(y)[5], 0, 1)
    spreads = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spreads > 0, spreads, 1.0), y


def _table(cases: list[Case], peers: list[str]) -> Table:
    rows: list[list[Cell]] = []
    for case in cases:
        ours = case.searches[OURS]
        row: list[Cell] = [case.name, case.shape, spread(case.timings.wall(OURS))]
        row.append(spread(case.timings.cpu(OURS)))
        row.append(float(ours.cv_results_["max_relative_gap"].max()))
        for peer in peers:
            row += [spread(case.timings.wall(peer)), case.times(peer), case.behind(peer)]
        rows.append(row)
    headings = ["set", "size", "ours, s", "ours, CPU s", "largest gap"]
    for peer in peers:
        headings += [f"{peer}, s", "times ours", "its winner behind ours, by our scores"]
    title = f"{len(CS)} C × {len(GAMMAS)} γ × 5 folds, {JOBS} jobs"
    return Table(title, tuple(headings), rows)


def _checks(case: Case, peer: str) -> list[Check]:
    times, behind = case.times(peer).median, case.behind(peer)
    return [
        Check(
            "same problem",
            f"{case.name}: the winner of {peer} is ours, up to a few rows",
            bool(behind <= 2e-3),
            f"behind by {behind:.1g}",
        ),
        Check(
            "target",
            f"{case.name}: {peer} takes at least {TARGETS[peer]:g} times as long",
            bool(times >= TARGETS[peer]),
            f"{times:.1f} times",
        ),
    ]
