"""The course of a fit, update by update, and how well scores agree with labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.geometry.bounds import leads
from maxmargin.loops.records import Updates
from maxmargin.solvers.perceptron import Epoch


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

    @classmethod
    def of(cls, history: list[Epoch]) -> "Trace":
        """Return the counts of these epochs."""
        return Trace([epoch.mistakes for epoch in history], [epoch.updates for epoch in history])


@dataclass(frozen=True)
class LinearTrace(Trace):
    """The course of a fit, update by update.

    Attributes
    ----------
    row, step : ndarray of shape (n_updates,)
        Which training row, and by how much (signed for two classes).
    label, rival : ndarray of shape (n_updates,)
        With more than two classes: the class that gained and the one that lost.
    start : (weights, intercept)
        Where it began: (1, d) and (1,) for two classes, (K, d) and (K,) for more.
    """

    row: Ints
    step: Floats
    label: Ints
    rival: Ints
    start: tuple[Floats, Floats]
    lift: float
    moved: Any

    @property
    def coef(self) -> Floats:
        """The weights before the first update and after each one: (n_updates + 1, 1 or K, d).

        Dense, and built on demand: for many updates of many columns ask ``after`` instead.
        """
        dense = self.moved.toarray() if hasattr(self.moved, "toarray") else self.moved
        changes = self._steps()[:, :, np.newaxis] * dense[:, np.newaxis, :]
        return np.cumsum(np.concatenate([self.start[0][np.newaxis], changes]), axis=0)

    @property
    def intercept(self) -> Floats:
        """The intercepts that belong to ``coef``: (n_updates + 1, 1 or K)."""
        changes = self._steps() * self.lift
        return np.cumsum(np.concatenate([self.start[1][np.newaxis], changes]), axis=0)

    def after(self, k: int) -> tuple[Floats, Floats]:
        """Return weights and intercept after the first k updates."""
        steps = self._steps()[:k]
        weights = self.start[0] + np.asarray((self.moved[:k].T @ steps).T)
        return weights, self.start[1] + self.lift * steps.sum(axis=0)

    def _steps(self) -> Floats:
        """Return by how much each column of scores moved: (n_updates, 1 or K)."""
        outputs = len(self.start[1])
        if outputs == 1:
            return self.step[:, np.newaxis]
        steps = np.zeros((len(self.step), outputs))
        each = np.arange(len(self.step))
        steps[each, self.label] += self.step
        steps[each, self.rival] -= self.step
        return steps

    @classmethod
    def from_log(
        cls,
        history: Trace,
        updates: Updates,
        rows: Ints,
        X: Any,
        start: tuple[Floats, Floats],
        lift: float,
    ) -> "LinearTrace":
        """Return the trace of a learner's log; ``rows`` are the user's numbers of the rows of X."""
        weights, intercept = start
        return cls(
            history.mistakes,
            history.updates,
            rows[updates.row],
            updates.step,
            updates.label,
            updates.rival,
            (weights.reshape(len(weights), -1).T.copy(), intercept),
            lift,
            X[updates.row].astype(np.float64),
        )


def compute_margins(scores: Floats, labels: Ints) -> Floats:
    """Return y f for one column of scores, s_y − max of the others for several."""
    if scores.shape[1] == 1:
        return scores[:, 0] * (2.0 * labels - 1.0)
    return leads(scores, labels)


def compute_accuracy(scores: Floats, labels: Ints, weight: Floats) -> float:
    """Return the weighted fraction of rows on the right side (ties are mistakes)."""
    return float(weight @ (compute_margins(scores, labels) > 0) / weight.sum())
