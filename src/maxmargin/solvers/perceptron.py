"""Perceptrons with explicit weights.

    visit rows in order; where  y f(x) ≤ margin:   w += η y x,  b += η y

which is stochastic gradient descent on Σ max(0, −y f). With more than two classes the update adds
to the row's class and takes from the best other one. Rosenblatt (1958); Freund & Schapire (1999).
"""

from collections.abc import Iterator
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import loops
from maxmargin.geometry.inputs import row_products
from maxmargin.loops.records import Rule, Updates
from maxmargin.solvers.epochs import Counts, relative

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# So many multiplications between two looks at the clock: some hundredths of a second at most.
_WORK_PER_ITERATE = 2**23


@dataclass
class LinearState:
    """What a perceptron has learnt so far: all that a next chunk of rows needs.

    Weights (d,) and intercept (1,) for two classes; (d, K) and (K,) for more. ``lag`` is Σ t·(the
    update made after t visits), so that the mean of (w, b) after each visit is (w, b) − lag/visits.
    """

    weights: Floats
    intercept: Floats
    averaged: InitVar[bool] = False
    lag: Floats = field(init=False)
    lag_intercept: Floats = field(init=False)
    book: Floats = field(init=False)  # visits, mistakes, updates, and what is left of a row

    def __post_init__(self, averaged: bool) -> None:
        self.lag = np.zeros(self.weights.shape if averaged else (0,) * self.weights.ndim)
        self.lag_intercept = np.zeros(self.intercept.shape if averaged else 0)
        self.book = np.zeros(4)

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
        return Counts(*self.book[:3].tolist())

    def vector(self) -> tuple[Floats, Floats]:
        """Return a copy of (w, b)."""
        return self.weights.copy(), self.intercept.copy()

    def mean(self) -> tuple[Floats, Floats]:
        """Return the mean of (w, b) after each visit."""
        visits = max(self.counts.visits, 1e-300)  # no visits: no lag either
        return self.weights - self.lag / visits, self.intercept - self.lag_intercept / visits


class LinearLearner:
    """A perceptron at work on given rows."""

    def __init__(
        self, state: LinearState, rule: Rule, X: Any, labels: Ints, weight: Floats
    ) -> None:
        self.state = state
        self.rule = rule
        self.X = X
        self.began = state.vector()
        self._rows = loops.rows.rows(X)
        self._y = 2.0 * labels - 1.0 if self._binary else labels
        self._weight = weight
        state.book[3] = 0.0
        self._full_logs: list[Updates] = []
        self._log, self._used = Updates.room(1024 if rule.logged else 0), np.zeros(1, np.int64)
        self.squared_radius = loops.perceptron.largest_squared_norm(self._rows, X.shape[0])

    @property
    def _binary(self) -> bool:
        return self.state.weights.ndim == 1

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
        return self.state.counts

    @property
    def start_norm(self) -> float:
        """‖(w₀, b₀)‖."""
        return float(np.hypot(np.linalg.norm(self.began[0]), np.linalg.norm(self.began[1])))

    def visit(self, order: Ints) -> Iterator[None]:
        """Visit rows in the given order, pausing now and then."""
        entries = self.X.nnz if sp.issparse(self.X) else self.X.size
        work_per_row = 1 + entries // max(1, self.X.shape[0]) * len(self.state.intercept)
        segment = max(1, _WORK_PER_ITERATE // work_per_row)
        for start in range(0, len(order), segment):
            rest = order[start : start + segment]
            while len(rest):
                rest = rest[self._pass(rest) :]
                yield

    def _pass(self, order: Ints) -> int:
        state = self.state
        one_pass = (
            loops.perceptron.binary_pass if self._binary else loops.perceptron.multiclass_pass
        )
        if self.rule.logged and self._used[0] == len(self._log.row):
            self._full_logs.append(self._log)
            self._log, self._used = Updates.room(2 * len(self._log.row)), np.zeros(1, np.int64)
        visited: int = one_pass(
            self._rows, self._y, self._weight, order, self.rule, state.weights, state.intercept,
            state.lag, state.lag_intercept, state.book, self._log, self._used,
        )  # fmt: skip
        return visited

    def updates(self) -> Updates:
        """Return the updates logged on these rows."""
        return Updates.joined([*self._full_logs, self._log.first(int(self._used[0]))])

    def scores(self, weights: Floats, intercept: Floats) -> Floats:
        """Return the scores that weights give to these rows: (n, 1) or, for K classes, (n, K)."""
        loop = (
            loops.perceptron.binary_scores if self._binary else loops.perceptron.multiclass_scores
        )
        scores = np.empty((self.X.shape[0], len(intercept)))
        loop(self._rows, weights, intercept, scores)
        return scores

    def training_scores(self) -> Floats:
        """Return f on these rows."""
        return self.scores(self.state.weights, self.state.intercept)

    def snapshot(self) -> tuple[Floats, Floats]:
        """Return a copy of (w, b)."""
        return self.state.vector()

    def restore(self, snapshot: tuple[Floats, Floats]) -> None:
        """Go back to a snapshot."""
        self.state.weights, self.state.intercept = snapshot

    def relative_change(self, snapshot: tuple[Floats, Floats]) -> float:
        """Return ‖w − w'‖/‖w‖ for an earlier w'."""
        change = np.linalg.norm(self.state.weights - snapshot[0])
        return relative(float(change), float(np.linalg.norm(self.state.weights)))


def linear_scores(X: Any, weights: Floats, intercept: Floats) -> Floats:
    """Return Xw + b in float64 as (n, K), for weights (d,) or (d, K)."""
    return row_products(X, weights.reshape(X.shape[1], -1)) + intercept
