"""The perceptron for structured outputs: decode, and move towards what should have come out.

    visit examples in order;   ŷ = decode(x, w);   if ŷ ≠ y:   w += ψ(x, y) − ψ(x, ŷ)

With a margin θ > 0 it is ŷ = decode(x, w/θ, truth=y): of all outputs the one that exceeds
⟨w, ψ(x, y)⟩ − θ·loss(y, ŷ) most, so an update also follows where a wrong output is beaten, but by
less than θ times its loss. For θ → 0 the loss does no more than break ties, against the truth.
With w = 0 all outputs are level, and ŷ is the one with the largest loss, with a margin or without:
a decoder that breaks ties in favour of the truth would otherwise never begin to learn.

Let d be the difference that an update adds. Since ŷ came out, ⟨w, d⟩ ≤ θ·loss(y, ŷ), so ‖w‖² grows
by at most ‖d‖² + 2θ·loss. Let a unit vector u separate the examples: ⟨u, d⟩ ≥ δ > 0 for all d
there are. After k updates from w = 0

    kδ  ≤  ⟨w, u⟩  ≤  ‖w‖  ≤  √(k(R² + 2θ·max loss)),      R = max ‖d‖,

hence k ≤ (R² + 2θ·max loss)/δ². The decoder need not be exact for that, but what it returns must
score as much as the truth, or more. Collins (2002); Crammer & Singer (2003) for several classes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import read_only
from maxmargin.solvers.perceptron import Counts
from maxmargin.validation.data import LARGEST_SQUARE

_ROUNDING = 1e-6  # of the terms of a score: what is less may be rounding in a model's own sums


@dataclass
class StructuredState:
    """What a structured perceptron has learnt so far.

    ``lag`` is Σ t·(the update made after t visits), so that the mean of w after each visit is
    w − lag/visits; it is empty if no mean is wanted.
    """

    weights: Floats
    lag: Floats
    counters: Floats  # visits, mistakes, updates, in units of weight

    @classmethod
    def begin(cls, weights: Floats, *, averaged: bool) -> "StructuredState":
        """Return the state before the first visit."""
        return cls(weights.copy(), np.zeros(len(weights) if averaged else 0), np.zeros(3))

    def mean(self) -> Floats:
        """Return the mean of w after each visit, or w itself if no mean is kept."""
        if len(self.lag) == 0 or self.counters[0] == 0.0:
            return self.weights.copy()
        return np.asarray(self.weights - self.lag / self.counters[0])


@dataclass(frozen=True)
class Update:
    """One update: of which example, how much of the difference, against which output."""

    example: int
    share: float
    output: Any
    loss: float
    indices: Ints
    values: Floats


class StructuredLearner:
    """A structured perceptron at work on given examples.

    Parameters
    ----------
    state : StructuredState
        Where to begin; it is changed.
    examples : Examples
        Of a model, with their true outputs.
    weight : ndarray of shape (n,)
        How often each example is visited at its turn; the rest of a fraction is a shorter step.
    margin : float
        θ.
    logged : bool
        Whether to keep all updates in ``log``.
    """

    def __init__(
        self, state: StructuredState, examples: Any, weight: Floats, margin: float, logged: bool
    ) -> None:
        self.state = state
        self.examples = examples
        self.squared_radius = 0.0  # the largest ‖d‖² of the updates made
        self.largest_loss = 0.0
        self.search_errors = 0  # times the decoder returned an output worse than the truth
        self.log: list[Update] = []
        self._weight, self._margin, self._logged = weight, margin, logged
        self._scaled = state.weights / margin if margin > 0 else np.zeros(0)
        self._blank = not state.weights.any()

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
        return Counts(*self.state.counters.tolist())

    def visit(self, order: Ints) -> Iterator[bool]:
        """Visit examples in the given order; yield after each visit whether all are done."""
        for k, i in enumerate(order):
            left = float(self._weight[i])
            while left > 0.0:
                left -= self._visit(i, left)
                yield left <= 0.0 and k == len(order) - 1

    def _visit(self, i: int, left: float) -> float:
        """Visit an example once, or as often as nothing changes; return how many visits it was."""
        w = self._scaled if self._margin > 0 else self.state.weights
        augmented = self._margin > 0 or self._blank
        cuts = self.examples.decode(np.array([i]), w, augmented)
        indices, values = cuts.at(0)
        if not values.any():  # also where another output has the same features
            self.state.counters[0] += left
            return left
        share, loss = min(left, 1.0), float(cuts.loss[0])
        terms = w[indices] * values
        lead, size = float(terms.sum()), float(np.abs(terms).sum())
        if not np.isfinite(size) or not values @ values < LARGEST_SQUARE:
            instead = f", or choose a margin above {self._margin:g}" if self._margin > 0 else ""
            raise ValueError(
                f"Example {i}: sums of products of its features overflow: scale them{instead}."
            )
        excess = lead - (loss if self._margin > 0 else 0.0)
        if excess > _ROUNDING * (size + loss):
            self.search_errors += excess > float(self.examples.errors(np.array([i]), w)[0])
        self.squared_radius = max(self.squared_radius, float(values @ values))
        self.largest_loss = max(self.largest_loss, loss)
        if self._logged:
            self.log.append(Update(int(i), share, cuts.outputs[0], loss, indices, values))
        loops.perceptron.move_by(
            _as_row(indices, values), share, lead <= 0.0, self._margin, self.state.weights,
            self._scaled, self.state.lag, self.state.counters,
        )  # fmt: skip
        self._blank = False
        return share


def _as_row(indices: Any, values: Floats) -> Any:
    """Return a difference as the loops take a sparse row."""
    ends = np.array([0, len(values)])
    return loops.rows.Csr(read_only(values), read_only(indices), read_only(ends))
