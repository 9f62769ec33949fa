"""Which regressor the data need: a plane, a kernel machine, or none.

``maxmargin.diagnose`` is about classes. For numbers, a plane and a kernel machine are
cross-validated beside the median of the training rows, and compared row by row: the difference d of
absolute errors is beyond noise if mean(d) > 2.58 · deviation(d)/√n, which happens by chance in one
of a hundred cases.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

from maxmargin.cli.inputs import Dataset
from maxmargin.cli.models import make_machine
from maxmargin.cli.training import make_pipeline

ROWS = 2000  # cross-validated at most
FOLDS = 5
BEYOND_NOISE = 2.58  # standard errors: p = 0.01, two-sided
TOL = 1e-3  # of the fits, which are compared and thrown away


@dataclass(frozen=True)
class RegressionDiagnosis:
    """What was compared, and what follows."""

    verdict: str  # "linear", "non-linear" or "no signal"
    reason: str
    model: str  # as --model calls it
    scores: dict[str, dict[str, float]]  # R² and mean absolute error by model
    rows: int

    def __str__(self) -> str:
        return f"Verdict: {self.verdict}\nWhy: {self.reason}\nUse: {self.model}"


def diagnose_regression(dataset: Dataset, seed: int, max_time: float | None) -> RegressionDiagnosis:
    """Compare a plane, a kernel machine and the median on rows that they were not fitted to."""
    rng = np.random.default_rng(seed)
    some = np.sort(rng.permutation(len(dataset.y))[:ROWS])
    part = dataset.taken(some)
    if len(some) < 2 * FOLDS:
        raise ValueError(f"{len(some)} rows are too few to compare models; {2 * FOLDS} are needed")
    y = np.asarray(part.y, dtype=np.float64)
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    models = {"median": DummyRegressor(strategy="median")}
    limit = None if max_time is None else max_time / (2 * FOLDS)
    for name in ("linear-svr", "svr"):
        machine = make_machine(name, "regression", y, {"tol": TOL, "max_time": limit})
        models[name] = make_pipeline(part, machine, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that were stopped: their errors show their worth
        predicted = {
            name: cross_val_predict(clone(model), part.X, y, cv=folds)
            for name, model in models.items()
        }
    errors = {name: np.abs(y - found) for name, found in predicted.items()}
    scores = {
        name: {"r2": float(r2_score(y, found)), "mean_absolute_error": float(errors[name].mean())}
        for name, found in predicted.items()
    }
    return _conclude(errors, scores, len(some))


def _conclude(
    errors: dict[str, Any], scores: dict[str, dict[str, float]], n: int
) -> RegressionDiagnosis:
    bends = _is_smaller(errors["svr"], errors["linear-svr"])
    best = "svr" if bends else "linear-svr"
    listed = ", ".join(
        f"{name} {score['mean_absolute_error']:.4g} (R² {score['r2']:.3f})"
        for name, score in scores.items()
    )
    where = f"mean absolute error in {FOLDS} folds of {n} rows: {listed}"
    if not _is_smaller(errors[best], errors["median"]):
        verdict, reason = "no signal", "neither predicts better than the median of the targets"
    elif bends:
        verdict, reason = "non-linear", "a kernel machine predicts better than a plane"
    else:
        verdict, reason = "linear", "a kernel machine predicts no better than a plane"
    return RegressionDiagnosis(verdict, f"{reason}; {where}.", best, scores, n)


def _is_smaller(first: Any, second: Any) -> bool:
    """Tell whether errors are smaller beyond noise, row by row."""
    less = second - first
    return bool(less.mean() > BEYOND_NOISE * less.std() / np.sqrt(len(less)))
