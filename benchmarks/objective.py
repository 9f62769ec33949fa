"""What is compared: whether all solved the same problem, and how well."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Dataset
from benchmarks.report import Check

# Weights that agree so far came from the same updates, rounding apart.
SAME_WEIGHTS = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-3}
# The last weights of a perceptron are a matter of luck: rates this close say nothing is wrong.
CLOSE_RATES = 0.02
ROWS_AT_ONCE = 1 << 16  # of float32 rows, float64 copies are made


class Outcome(NamedTuple):
    """How good the weights of a classifier are."""

    mistakes: int
    mistake_rate: float
    test_accuracy: float | None


def outcome(model: Any, dataset: Dataset) -> Outcome:
    """Count the training mistakes of a fitted classifier, and judge it on the test rows."""
    mistakes = int(np.count_nonzero(model.predict(dataset.X) != dataset.y))
    judged = None if dataset.X_test is None else model.score(dataset.X_test, dataset.y_test)
    return Outcome(mistakes, mistakes / len(dataset.y), judged)


def weight_difference(ours: Any, theirs: Any) -> float:
    """Return the largest difference of two fitted linear models, relative to their size."""
    mine = np.column_stack([ours.coef_, ours.intercept_])
    others = np.column_stack([theirs.coef_, theirs.intercept_])
    if mine.shape != others.shape:
        return np.inf
    return float(np.abs(mine - others).max() / max(np.abs(mine).max(), 1e-300))


def same_updates(ours: Any, theirs: Any, dataset: Dataset) -> Check:
    """Check that two perceptrons on the same rows in the same order made the same updates."""
    difference = weight_difference(ours, theirs)
    rates = [outcome(model, dataset).mistake_rate for model in (ours, theirs)]
    allowed = SAME_WEIGHTS[np.dtype(dataset.X.dtype)]
    holds: bool | None = difference <= allowed
    if not holds and abs(rates[0] - rates[1]) <= CLOSE_RATES:
        holds = None  # one visit decided by rounding is enough for another course
    found = (
        f"weights differ by {difference:.1e} of the largest, {allowed:.0e} allowed; "
        f"training mistakes {rates[0]:.2%} and {rates[1]:.2%}"
    )
    return Check("same problem", f"{dataset.name}: in order, the same weights", holds, found)


def largest_difference(values: npt.ArrayLike, reference: npt.ArrayLike) -> float:
    """Return max|a − b|, in float64."""
    return float(np.abs(np.asarray(values, np.float64) - np.asarray(reference, np.float64)).max())


@dataclass(frozen=True)
class LinearObjective:
    """What a linear machine minimises: ½‖w‖² + C Σ loss, and ½b² where b is penalised.

    The loss is max(0, 1 − y f), or with an ``epsilon`` max(0, |y − f| − ε).
    """

    intercept: Literal["penalized", "free"]
    C: float = 1.0
    epsilon: float | None = None

    def value(self, dataset: Dataset, w: npt.NDArray[np.float64], b: float) -> float:
        """Return the objective at a plane, in float64."""
        total = 0.0
        for start in range(0, dataset.X.shape[0], ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            scores, y = dataset.X[rows] @ w + b, dataset.y[rows]
            if self.epsilon is None:
                total += float(np.maximum(0.0, 1.0 - y * scores).sum())
            else:
                total += float(np.maximum(0.0, np.abs(y - scores) - self.epsilon).sum())
        penalised = float(w @ w) + (b * b if self.intercept == "penalized" else 0.0)
        return 0.5 * penalised + self.C * total


def suboptimality(value: float, bound: float) -> float:
    """Return how far a value is above a lower bound of the optimum, relative to the bound."""
    return (value - bound) / abs(bound)
