"""What kernel machines are raced on: sets, how their columns are scaled, and (C, γ).

Parameters are those remembered from the ``source`` (which was not looked up again) or, where that
is "cv", the best of a grid (3 folds of 1500 rows, scikit-learn) that
``python -m benchmarks.suite.kernel_cases DIR`` goes through again.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Dataset, UnavailableError, load, sampled
from benchmarks.options import Options
from benchmarks.solvers.kernel import Machine

QUICK_ROWS = 400
GRID_ROWS = 1500
EPSILON = 0.1  # of targets with standard deviation 1

Columns = Callable[[Any], tuple[Any, Any]]  # from rows: what is subtracted, what is divided by


def _to_range(X: Any) -> tuple[Any, Any]:
    low, high = X.min(axis=0), X.max(axis=0)
    return 0.5 * (low + high), np.where(high > low, 0.5 * (high - low), 1.0)


def _to_unit_variance(X: Any) -> tuple[Any, Any]:
    deviation = X.std(axis=0)
    return X.mean(axis=0), np.where(deviation > 0, deviation, 1.0)


SCALINGS: dict[str, Columns] = {
    "as published": lambda X: (0.0, 1.0),
    "[-1,1]": _to_range,
    "standardised": _to_unit_variance,
    "/255": lambda X: (0.0, 255.0),
}


@dataclass(frozen=True)
class Case:
    """A set, and how it is learnt from; ``rows`` bounds how many of them are drawn."""

    name: str
    scaling: str
    C: float
    gamma: float
    source: str
    rows: int | None = None
    epsilon: float | None = None
    tol: float = 1e-4  # of ours: a little less than the gap at which the others stop by default

    @property
    def machine(self) -> Machine:
        """What is minimised."""
        return Machine(self.C, self.gamma, self.epsilon, self.tol)


CASES = (
    Case("a9a", "as published", 1.0, 0.05, "Platt 1999", tol=5e-6),
    Case("ijcnn1", "as published", 32.0, 2.0, "Hsieh et al. 2014", tol=1e-4),
    Case("usps", "as published", 10.0, 1 / 128, "Schölkopf et al. 1997", tol=1e-3),
    Case("mnist", "/255", 10.0, 0.02, "customary", rows=10_000, tol=1e-3),
    Case("magic04", "standardised", 10.0, 0.1, "γ = 1/d", tol=5e-6),
    Case("satimage", "[-1,1]", 16.0, 1.0, "Hsu & Lin 2002", tol=1e-3),
    Case("pendigits", "[-1,1]", 8.0, 0.5, "cv", tol=1e-3),
    Case("shuttle", "[-1,1]", 2048.0, 8.0, "Hsu & Lin 2002", tol=1e-3),
    Case("higgs-7k", "standardised", 8.0, 1 / 128, "cv", tol=5e-6),
    Case("mushrooms", "as published", 2.0, 0.125, "cv", tol=1e-2),
    Case("svmguide1", "[-1,1]", 2.0, 2.0, "Hsu, Chang & Lin 2003", tol=1e-5),
    Case("cpusmall", "[-1,1]", 32.0, 0.125, "cv", epsilon=EPSILON, tol=2e-5),
    Case("casp", "standardised", 2.0, 0.5, "cv", rows=10_000, epsilon=EPSILON, tol=1e-5),
    Case("abalone", "[-1,1]", 128.0, 0.125, "cv", epsilon=EPSILON, tol=2e-6),
)
GROWTH = Case("covtype-binary", "standardised", 32.0, 1 / 128, "cv")


def cases(chosen: list[str], options: Options) -> Iterator[tuple[Case, Dataset]]:
    """Yield the cases whose sets can be had, and print why the others cannot."""
    for case in CASES:
        if case.name in chosen:
            try:
                yield case, prepared(case, options, case.rows)
            except UnavailableError as reason:
                print(f"skipped {case.name}: {reason}")


def prepared(case: Case, options: Options, rows: int | None) -> Dataset:
    """Return a set as it is learnt from: rows drawn at random, dense, scaled, in float64."""
    bounds = [rows, options.rows, QUICK_ROWS if options.quick else None]
    dataset = load(case.name, options.data)
    most = min((bound for bound in bounds if bound is not None), default=None)
    if most is not None:
        dataset = sampled(dataset, most)
    dataset = scaled(dataset, case.scaling)
    return dataset if case.epsilon is None else with_unit_targets(dataset)


def scaled(dataset: Dataset, how: str) -> Dataset:
    """Return dense float64 rows, scaled by what the training rows say."""
    X = _dense(dataset.X)
    shift, unit = SCALINGS[how](X)
    tests = None if dataset.X_test is None else (_dense(dataset.X_test) - shift) / unit
    return replace(dataset, X=np.ascontiguousarray((X - shift) / unit), X_test=tests)


def with_unit_targets(dataset: Dataset) -> Dataset:
    """Return the set with targets of mean 0 and standard deviation 1."""
    mean, deviation = np.mean(dataset.y), np.std(dataset.y) or 1.0
    tests = None if dataset.y_test is None else (dataset.y_test - mean) / deviation
    return replace(dataset, y=(dataset.y - mean) / deviation, y_test=tests)


def _dense(X: Any) -> Any:
    return (X.toarray() if sp.issparse(X) else X).astype(np.float64)


def best_of_grid(case: Case, folder: Path) -> tuple[float, float, float]:
    """Return the best score of three folds over a grid, and its C and γ (smallest of equals)."""
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
    from sklearn.svm import SVC, SVR

    dataset = prepared(case, Options(data=folder), GRID_ROWS)
    estimator, folds = (SVC, StratifiedKFold) if case.epsilon is None else (SVR, KFold)
    split = folds(3, shuffle=True, random_state=0)
    found = []
    for C in (2.0**k for k in range(-1, 10, 2)):
        for gamma in (2.0**k for k in range(-7, 4, 2)):
            parameters = replace(case.machine, C=C, gamma=gamma).parameters
            model = estimator(**parameters, max_iter=200_000)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                score = cross_val_score(model, dataset.X, dataset.y, cv=split).mean()
            found.append((-round(float(score), 4), C, gamma))
    score, C, gamma = min(found)
    return -score, C, gamma


if __name__ == "__main__":
    for each in (*CASES, GROWTH):
        if each.source == "cv":
            print(each.name, *best_of_grid(each, Path(sys.argv[1])), flush=True)
