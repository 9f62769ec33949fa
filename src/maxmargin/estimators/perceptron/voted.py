"""The voted perceptron: every weight vector of a fit votes, weighted by how long it survived."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.estimators.perceptron.base import LinearPerceptron
from maxmargin.loops.records import Updates
from maxmargin.runtime import clock
from maxmargin.solvers.perceptron import BlockLearner, LinearLearner
from maxmargin.validation.data import stacked

_PRODUCTS = 2**22  # of a block of rows with all rows updated on: 32 MB
_VOTES = 2**27  # of a block of rows: a fraction of a second


@dataclass(frozen=True)
class Votes:
    """Weight vectors by their updates: vector k is the start plus the first k updates."""

    start: tuple[Floats, Floats]  # weights and intercept
    rows: Any  # the distinct rows that were updated on
    updates: Updates  # what was added when; ``updates.row`` indexes ``rows``
    visits: float  # altogether
    lift: float  # 1 with an intercept, 0 without

    @classmethod
    def from_learner(cls, learner: LinearLearner | BlockLearner) -> Self:
        """Return the votes of a learner on the rows it has."""
        updates = learner.updates()
        distinct, slot = np.unique(updates.row, return_inverse=True)
        return cls(
            learner.began,
            learner.rows_at(distinct).astype(np.float64),
            updates._replace(row=slot),
            learner.counts.visits,
            float(learner.rule.fit_intercept),
        )

    @classmethod
    def join(cls, chunks: list["Votes"]) -> "Votes":
        """Return the votes of all chunks of a stream."""
        if len(chunks) == 1:
            return chunks[0]
        offsets = np.cumsum([0, *(chunk.rows.shape[0] for chunk in chunks)])
        rows = [chunk.rows for chunk in chunks]
        updates = [
            chunk.updates._replace(row=chunk.updates.row + offset)
            for chunk, offset in zip(chunks, offsets[:-1], strict=True)
        ]
        return cls(
            chunks[0].start,
            stacked(rows),
            Updates.joined(updates),
            chunks[-1].visits,
            chunks[0].lift,
        )

    def shares(self, X: Any) -> Floats:
        """Return, for each row, the sum of votes divided by their number.

        Two classes: one column in [−1, 1], votes for the second class less votes for the first.
        More: the share of votes for each class.
        """
        u = self.updates
        survival = np.diff(np.concatenate([[0.0], u.clock, [self.visits]]))
        weights, intercept = self.start[0].reshape(X.shape[1], -1), self.start[1]
        out = np.zeros((X.shape[0], len(intercept)))
        size = min(_PRODUCTS // max(1, self.rows.shape[0]), _VOTES // len(survival))
        size = max(1, size)
        for i in range(0, X.shape[0], size):
            clock.check()
            block = X[i : i + size]
            scores = _multiply(block, weights) + intercept
            products = _multiply(block, self.rows.T)
            if len(intercept) == 1:
                loops.perceptron.binary_votes(
                    products, u.row, u.step, survival, self.lift, scores[:, 0], out[i : i + size, 0]
                )
            else:
                loops.perceptron.multiclass_votes(
                    products, u.row, u.step, u.label, u.rival, survival, self.lift, scores,
                    out[i : i + size],
                )  # fmt: skip
        return out / max(self.visits, 1.0)


def _multiply(A: Any, B: Any) -> Floats:
    products = A.astype(np.float64, copy=False) @ B
    return np.ascontiguousarray(products.toarray() if sp.issparse(products) else products)


class VotedPerceptron(LinearPerceptron):
    """The perceptron whose answer is a vote of all its weight vectors, weighted by survival.

    A vector's weight is the number of examples it survived. Only the rows updated on and the order
    of updates are stored, not the vectors; prediction rebuilds all scores of a row from its
    products with those rows, by BLAS. Freund & Schapire (1999).

    Parameters
    ----------
    eta : float > 0, default=1.0
        Step length η.
    margin : float ≥ 0, default=0.0
        Update where y f(x) ≤ margin: a *functional* threshold, in units of f.
    fit_intercept : bool, default=True
        Learn b; otherwise b = 0 and the planes go through the origin.
    init : "zeros", "random", array or (array, intercept), default="zeros"
        Where to start: zeros, uniform on (0, 1), or given weights.
    stop : {"all_correct", "epochs", "one_pass", "small_change", "held_out"}, default="all_correct"
        As for :class:`Perceptron`; the held-out score is that of the vote.
    max_epochs : int or "auto", default="auto"
        Epochs allowed. "auto" is a million visits altogether, but at least 10 epochs and at most
        1000. Prediction takes time in proportion to ``updates_``.
    shuffle : bool, default=True
        Visit rows in a new random order each epoch, otherwise in the order given. Rows of a source
        are visited in their order.
    class_weight : dict, "balanced" or None, default=None
        Multiplies sample_weight, by class.
    change_tol : float, default=1e-3
        For ``stop="small_change"``.
    validation_fraction : float in (0, 1), default=0.1
        Part of each class held out for ``stop="held_out"``.
    n_iter_no_change : int, default=5
        Epochs without a better held-out score before stopping.
    max_time : float or None, default=None
        Seconds allowed.
    warm_start : bool, default=False
        Start from the last weights of the previous fit.
    callback : callable or None, default=None
        Called with a Progress after each epoch; returning True stops.
    verbose : int, default=0
        If positive, print a line per epoch.
    trace : bool, default=False
        Keep ``trace_``: every update, and the weights after each.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the shuffling, the random start and the held-out rows.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        The *last* of the voting vectors; ``predict`` asks all of them.
    classes_, mistakes_, updates_, epochs_, n_iter_, status_, stop_reason_, margin_,
    mistake_bound_, trace_
        As for :class:`Perceptron`; margin and bound are those of the last vector.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(400, variance=0.5, random_state=0)
    >>> model = mm.VotedPerceptron().fit(X, y)
    >>> model.score(X, y) > 0.8
    True
    >>> bool(abs(model.decision_function(X)).max() <= 1)
    True
    """

    _logged = True
    _stable = True
    _auto_visits = 1e6
    _votes: list[Votes]

    def decision_function(self, X: Any) -> Floats:
        """Return votes for the second class less votes for the first, as a share in [−1, 1].

        With more than two classes, the share of votes for each: (n, K), rows summing to 1.
        """
        return super().decision_function(X)

    def _scores(self, X: Any) -> Floats:
        return Votes.join(self._votes).shares(X)

    def _scores_of(self, learner: LinearLearner, rows: Ints) -> Floats:
        return Votes.from_learner(learner).shares(learner.X[rows])

    def _adopt(self, learner: LinearLearner | BlockLearner, rows: Ints, resumed: bool) -> None:
        super()._adopt(learner, rows, resumed)
        votes = Votes.from_learner(learner)
        self._votes = [*self._votes, votes] if resumed else [votes]
