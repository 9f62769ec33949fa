"""What is asked of a perceptron after each epoch, and what is remembered of its course."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.problem import Status

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Trace:
    """The course of a fit.

    Attributes
    ----------
    mistakes, updates : list of float
        Per epoch.
    """

    mistakes: list[float]
    updates: list[float]


@dataclass(frozen=True)
class LinearTrace(Trace):
    """The course of a fit, update by update.

    Attributes
    ----------
    row, step : ndarray of shape (n_updates,)
        Which training row, and by how much (signed for two classes).
    label, rival : ndarray of shape (n_updates,)
        With more than two classes: the class that gained and the one that lost.
    coef : ndarray of shape (n_updates + 1, 1 or n_classes, n_features)
        The weights before the first update and after each one.
    intercept : ndarray of shape (n_updates + 1, 1 or n_classes)
        The intercepts that belong to ``coef``.
    """

    row: Ints
    step: Floats
    label: Ints
    rival: Ints
    coef: Floats
    intercept: Floats


class BestKept:
    """The pocket: a rule that never stops, but remembers the weights that did best."""

    def __init__(self, learner: Any, merit: Callable[[], float]) -> None:
        self._merit = merit
        self.learner = learner
        self.merit = merit()
        self.snapshot = learner.snapshot()

    def __call__(self, epoch: Any) -> Status | None:
        """Look at the weights; never stop."""
        merit = self._merit()
        if merit > self.merit:
            self.merit, self.snapshot = merit, epoch.learner.snapshot()
        return None


class NoBetter:
    """Stop when a score has not improved for ``patience`` epochs."""

    def __init__(self, score: Callable[[], float], patience: int) -> None:
        self._score = score
        self.patience = patience
        self.best, self.since = -np.inf, 0

    def __call__(self, _epoch: Any) -> Status | None:
        """Return HELD_OUT or None."""
        score = self._score()
        self.since = 0 if score > self.best else self.since + 1
        self.best = max(score, self.best)
        return Status.HELD_OUT if self.since >= self.patience else None


def labelled_margins(scores: Floats, labels: Ints) -> Floats:
    """Return y f for one column of scores, s_y − max of the others for several."""
    if scores.shape[1] == 1:
        return scores[:, 0] * (2.0 * labels - 1.0)
    rows = np.arange(len(labels))
    own = scores[rows, labels]
    others = scores.copy()
    others[rows, labels] = -np.inf
    return np.asarray(own - others.max(axis=1))


def accuracy(scores: Floats, labels: Ints, weight: Floats) -> float:
    """Return the weighted fraction of rows on the right side (ties are mistakes)."""
    return float(weight @ (labelled_margins(scores, labels) > 0) / weight.sum())
