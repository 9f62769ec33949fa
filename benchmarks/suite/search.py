"""A grid of C and γ with five folds: SVCSearchCV beside GridSearchCV around the peers."""

import importlib
import importlib.util
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits

import maxmargin as mm
from benchmarks import contest, datasets
from benchmarks.contest import Contest, Results
from benchmarks.options import Options
from benchmarks.report import Cell, Check, Report

OURS, LIBSVM, ONEDAL = "SVCSearchCV", "GridSearchCV, LIBSVM", "GridSearchCV, oneDAL"
TARGETS = {LIBSVM: 20.0, ONEDAL: 8.0}
SETS = ("satimage", "usps", "magic04")
ROWS = {"magic04": 5000}
CS = np.logspace(-2, 3, 10)
GAMMAS = np.logspace(-1.5, 1, 5)  # times 1/d, for columns of spread 1
JOBS = 2
BEHIND = 2e-3  # of accuracy: a few rows


def run(options: Options) -> Report:
    """Measure every set that can be had."""
    with threadpool_limits(options.threads or JOBS):
        report, _ = contest.run("search", _contests(options), options)
    report.notes.append(f"{len(CS)} C × {len(GAMMAS)} γ × 5 folds")
    if importlib.util.find_spec("sklearnex") is None:
        report.notes.append("oneDAL is left out: scikit-learn-intelex is not installed")
    return report


def _contests(options: Options) -> Iterator[Contest]:
    for dataset in datasets.available(options.chosen(SETS), options.data, options.quick):
        most = options.rows or ROWS.get(dataset.name, len(dataset.y))
        X, y = prepared(datasets.sampled(dataset, most))
        searches = _searches(X, options.threads or JOBS)
        _compile(X, y)
        yield Contest(
            dataset.name,
            f"{X.shape[0]}×{X.shape[1]}",
            {name: partial(search.fit, X, y) for name, search in searches.items()},
            base=OURS,
            least={peer: TARGETS[peer] for peer in searches if peer != OURS},
            facts=_facts,
            checks=partial(_checks, dataset.name),
        )


def _searches(X: Any, jobs: int) -> dict[str, Any]:
    common: dict[str, Any] = {
        "param_grid": {"C": CS.tolist(), "gamma": (GAMMAS / X.shape[1]).tolist()},
        "cv": StratifiedKFold(5, shuffle=True, random_state=0),
        "n_jobs": jobs,
        "refit": False,
    }
    found = {
        OURS: mm.SVCSearchCV(mm.SVC(), **common),
        LIBSVM: GridSearchCV(svm.SVC(), **common),
    }
    if importlib.util.find_spec("sklearnex") is not None:
        found[ONEDAL] = GridSearchCV(importlib.import_module("sklearnex.svm").SVC(), **common)
    return found


def _compile(X: Any, y: Any) -> None:
    """Search once on few rows, but above 2000 of them: from there kernel values are float32."""
    some = np.random.default_rng(0).permutation(len(y))[:2500]
    mm.SVCSearchCV(mm.SVC(), {"C": [1.0]}, cv=2, refit=False).fit(X[some], y[some])


def prepared(dataset: datasets.Dataset) -> tuple[Any, Any]:
    """Return dense columns of spread 1, and digits as two classes: up to 5 and above."""
    y = np.asarray(dataset.y)
    if dataset.name == "usps":
        y = np.where(y <= np.unique(y)[5], 0, 1)
    return datasets.scaled(dataset, "standardised").X, y


def _facts(name: str, search: Any) -> dict[str, Cell]:
    gaps = search.cv_results_.get("max_relative_gap")
    return {
        "best score": f"{search.best_score_:.4f}",
        "largest gap": None if gaps is None else float(np.max(gaps)),
    }


def _checks(data: str, searches: Results) -> list[Check]:
    """Check that the peers' winners score as well in our results as ours."""
    ours, checks = searches[OURS], []
    for peer, theirs in searches.items():
        if peer != OURS:
            scores = ours.cv_results_["mean_test_score"]
            behind = float(ours.best_score_ - scores[theirs.best_index_])
            claim = f"{data}: the winner of {peer} is ours, up to a few rows"
            found = f"behind by {behind:.1g}"
            checks.append(Check("same problem", claim, bool(behind <= BEHIND), found))
    return checks
