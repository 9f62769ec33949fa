"""Mistake-driven learning, epoch by epoch.

    visit rows in order; where  y f(x) ≤ margin:   w += η y x,  b += η y

which is stochastic gradient descent on Σ max(0, −y f). With more than two classes the update adds
to the row's class and takes from the best other one. Rosenblatt (1958); Freund & Schapire (1999).
"""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import loops
from maxmargin.geometry.inputs import row_products
from maxmargin.gram import Gram
from maxmargin.kernels import Kernel
from maxmargin.problem import Status

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# So many multiplications between two looks at the clock: some hundredths of a second.
_WORK_PER_ITERATE = 2**25
_ROWS_PER_KERNEL_BLOCK = 256
# Kernel values of a slab of rows with all support vectors: 32 MB.
_VALUES_PER_SLAB = 2**22


class Counts(NamedTuple):
    """Visits, mistakes (y f ≤ 0) and updates (y f ≤ margin) so far, in units of weight."""

    visits: float = 0.0
    mistakes: float = 0.0
    updates: float = 0.0


@dataclass(frozen=True)
class Settings:
    """What decides an update, and what is kept of it."""

    eta: float = 1.0
    margin: float = 0.0
    fit_intercept: bool = True
    averaged: bool = False
    logged: bool = False


class Learner(Protocol):
    """A perceptron in the making."""

    counts: Counts

    def on(self, X: Any, labels: Ints, weight: Floats) -> Self:
        """Take these rows, with class indices and weights, as the ones to visit."""
        ...

    def visit(self, order: Ints) -> Iterator[None]:
        """Visit rows in the given order, pausing now and then."""
        ...

    def training_scores(self) -> Floats:
        """Return f on the training rows: (n, 1) for two classes, else (n, K)."""
        ...

    def snapshot(self) -> Any:
        """Return a copy of the weights."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Go back to a snapshot."""
        ...

    def relative_change(self, snapshot: Any) -> float:
        """Return ‖w − w'‖/‖w‖ for an earlier w'."""
        ...


class Updates(NamedTuple):
    """Updates in the order made; with several classes ``label`` gained what ``rival`` lost."""

    row: Ints
    step: Floats
    clock: Floats
    label: Ints
    rival: Ints

    @classmethod
    def room(cls, size: int) -> Self:
        """Return uninitialised room for so many updates."""
        return cls(
            np.empty(size, np.int64),
            np.empty(size),
            np.empty(size),
            np.empty(size, np.int64),
            np.empty(size, np.int64),
        )

    @classmethod
    def joined(cls, parts: Iterable["Updates"]) -> Self:
        """Return the updates of all parts, one after the other."""
        columns = zip(*[cls.room(0), *parts], strict=True)
        return cls(*(np.concatenate(column) for column in columns))


class LinearLearner:
    """Weights (d,) and intercept (1,) for two classes; (d, K) and (K,) for more."""

    def __init__(self, weights: Floats, intercept: Floats, settings: Settings) -> None:
        self.weights = weights
        self.intercept = intercept
        self.settings = settings
        self.resumed = False
        self.counts = Counts()
        size = weights.shape if settings.averaged else (0,) * weights.ndim
        self._lag = np.zeros(size)
        self._lag_intercept = np.zeros(intercept.shape if settings.averaged else 0)
        self._log_room = 1024

    def on(self, X: Any, labels: Ints, weight: Floats) -> Self:
        """Take these rows, with class indices and weights, as the ones to visit."""
        self.X, self.began = X, self.snapshot()
        self.start_norm = float(
            np.hypot(np.linalg.norm(self.weights), np.linalg.norm(self.intercept))
        )
        self._y = 2.0 * labels - 1.0 if self.weights.ndim == 1 else labels
        self._weight = weight
        self._rows = loops.rows.rows(X)
        self.squared_radius = loops.perceptron.largest_squared_norm(self._rows, X.shape[0])
        self._log: list[Updates] = []
        return self

    def visit(self, order: Ints) -> Iterator[None]:
        """Visit rows in the given order, pausing now and then."""
        entries = self.X.nnz if sp.issparse(self.X) else self.X.size
        work_per_row = 1 + entries // max(1, self.X.shape[0]) * len(self.intercept)
        segment = max(1, _WORK_PER_ITERATE // work_per_row)
        for start in range(0, len(order), segment):
            self._pass(order[start : start + segment])
            yield

    def _pass(self, order: Ints) -> None:
        one_pass = (
            loops.perceptron.binary_pass
            if self.weights.ndim == 1
            else loops.perceptron.multiclass_pass
        )
        s = self.settings
        rule = loops.perceptron.Rule(
            float(s.eta), float(s.margin), s.fit_intercept, s.averaged, s.logged
        )
        while len(order):
            log = loops.perceptron.Log(*Updates.room(self._log_room if s.logged else 0))
            visited, logged, counts = one_pass(
                self._rows, self._y, self._weight, order, rule, self.weights, self.intercept,
                self._lag, self._lag_intercept, tuple(self.counts), log,
            )  # fmt: skip
            self.counts = Counts(*counts)
            if logged:
                self._log.append(Updates(*(column[:logged].copy() for column in log)))
            order = order[visited:]
            if not visited:  # the log is too small even for the next row alone
                self._log_room *= 2

    def without_rows(self) -> "LinearLearner":
        """Return a copy that has let go of the rows, keeping what a next chunk needs."""
        bare = copy(self)
        del bare.X, bare.began, bare._y, bare._weight, bare._rows, bare._log
        return bare

    def updates(self) -> Updates:
        """Return the updates logged on the rows at hand."""
        return Updates.joined(self._log)

    def average(self) -> tuple[Floats, Floats]:
        """Return the mean of (w, b) after each visit."""
        visits = max(self.counts.visits, 1e-300)  # no visits: no lag either
        return self.weights - self._lag / visits, self.intercept - self._lag_intercept / visits

    def training_scores(self) -> Floats:
        """Return f on the training rows: (n, 1) for two classes, else (n, K)."""
        return self.scores_of(self.weights, self.intercept)

    def scores_of(self, weights: Floats, intercept: Floats) -> Floats:
        """Return the scores that other weights give to the training rows."""
        binary = weights.ndim == 1
        loop = loops.perceptron.binary_scores if binary else loops.perceptron.multiclass_scores
        scores = np.empty((self.X.shape[0], len(intercept)))
        loop(self._rows, weights, intercept, scores)
        return scores

    def snapshot(self) -> tuple[Floats, Floats]:
        """Return a copy of (w, b)."""
        return self.weights.copy(), self.intercept.copy()

    def restore(self, snapshot: tuple[Floats, Floats]) -> None:
        """Go back to a snapshot."""
        self.weights, self.intercept = snapshot

    def relative_change(self, snapshot: tuple[Floats, Floats]) -> float:
        """Return ‖w − w'‖/‖w‖ for an earlier w'."""
        change = np.linalg.norm(self.weights - snapshot[0])
        return _ratio(float(change), float(np.linalg.norm(self.weights)))


class Expansion(NamedTuple):
    """A function f(x) = Σ aᵢK(xᵢ, x) + b by its support vectors, with ‖w‖²."""

    kernel: Kernel
    support: Any
    coefficients: Floats
    intercept: Floats
    squared_norm: float

    def norm(self) -> float:
        """Return ‖(w, b)‖."""
        return float(np.hypot(np.sqrt(self.squared_norm), np.linalg.norm(self.intercept)))

    def scores(self, bound: Any) -> Floats:
        """Return f on rows bound by the kernel, a slab at a time: (n, K)."""
        slab = max(1, _VALUES_PER_SLAB // max(1, len(self.support)))
        out = np.empty((len(bound), len(self.intercept)))
        for i in range(0, len(bound), slab):
            values = self.kernel.between(bound[i : i + slab], self.support)
            out[i : i + slab] = values @ self.coefficients
        return out + self.intercept


class KernelLearner:
    """Dual form: w = w₀ + Σ aᵢφ(xᵢ) on n training rows, with f kept up to date on all of them.

    Rows are taken in blocks: within a block its small Gram matrix carries each update to the rows
    after it; then one BLAS product carries the block's updates to all rows. The result is that of
    the row-by-row algorithm.
    """

    def __init__(
        self, kernel: Kernel, outputs: int, settings: Settings, start: Expansion | None = None
    ) -> None:
        self.kernel = kernel
        self.settings = settings
        self.start = start
        self.counts = Counts()
        self.intercept = np.zeros(outputs) if start is None else start.intercept.copy()
        self.start_norm = 0.0 if start is None else start.norm()
        self.squared_radius = np.inf  # until somebody who knows the kernel says otherwise

    def on(self, X: Any, labels: Ints, weight: Floats) -> Self:
        """Take these rows, with class indices and weights, as the ones to visit."""
        self.X, self._labels, self._weight = X, labels, weight
        self.gram = Gram(self.kernel, X)
        self.coefficients = np.zeros((len(self.gram), len(self.intercept)))
        self._start_scores = (
            np.zeros_like(self.coefficients)
            if self.start is None
            else self.start.scores(self.gram.bound)
        )
        self.scores = self._start_scores.copy()
        return self

    def visit(self, order: Ints) -> Iterator[None]:
        """Visit rows in the given order, pausing after each block."""
        s = self.settings
        rule = loops.perceptron.Rule(float(s.eta), float(s.margin), s.fit_intercept, False, False)
        for start in range(0, len(order), _ROWS_PER_KERNEL_BLOCK):
            block = order[start : start + _ROWS_PER_KERNEL_BLOCK]
            steps = np.zeros((len(block), self.scores.shape[1]))
            counts = loops.perceptron.kernel_pass(
                self.gram.block(block, block), self._labels[block], self._weight[block], rule,
                self.scores[block], steps, tuple(self.counts),
            )  # fmt: skip
            self.counts = Counts(*counts)
            self._spread(block, steps)
            yield

    def _spread(self, block: Ints, steps: Floats) -> None:
        changed = steps.any(axis=1)
        if not changed.any():
            return
        self.coefficients[block] += steps
        self.scores += self.gram.rows(block[changed]).T @ steps[changed]
        if self.settings.fit_intercept:
            total = steps.sum(axis=0)
            self.intercept += total
            self.scores += total

    def training_scores(self) -> Floats:
        """Return f on the training rows: (n, 1) for two classes, else (n, K)."""
        return self.scores

    def snapshot(self) -> tuple[Floats, Floats, Floats]:
        """Return a copy of the coefficients, scores and intercept."""
        return self.coefficients.copy(), self.scores.copy(), self.intercept.copy()

    def restore(self, snapshot: tuple[Floats, Floats, Floats]) -> None:
        """Go back to a snapshot."""
        self.coefficients, self.scores, self.intercept = snapshot

    def squared_norm(self) -> float:
        """Return ‖w‖² = ‖w₀‖² + Σ aᵢ(w·φ(xᵢ) + w₀·φ(xᵢ))."""
        began = 0.0 if self.start is None else self.start.squared_norm
        first = 0.0 if self.start is None else self.start.intercept
        both_ends = (self.scores - self.intercept) + (self._start_scores - first)
        return max(0.0, began + float(np.sum(self.coefficients * both_ends)))

    def expansion(self) -> Expansion:
        """Return what was learnt, with the support vectors that have a coefficient."""
        support = np.flatnonzero(self.coefficients.any(axis=1))
        return Expansion(
            self.kernel,
            self.gram.bound[support],
            self.coefficients[support],
            self.intercept.copy(),
            self.squared_norm(),
        )

    def relative_change(self, snapshot: tuple[Floats, Floats, Floats]) -> float:
        """Return ‖w − w'‖/‖w‖ for an earlier w', by ‖w − w'‖² = Σ (aᵢ − aᵢ')(w − w')·φ(xᵢ)."""
        coefficients, scores, intercept = snapshot
        step = (self.scores - self.intercept) - (scores - intercept)
        change = float(np.sum((self.coefficients - coefficients) * step))
        return _ratio(np.sqrt(max(change, 0.0)), np.sqrt(self.squared_norm()))


def _ratio(change: float, size: float) -> float:
    return 0.0 if change == 0.0 else change / size if size > 0.0 else np.inf


def linear_scores(X: Any, weights: Floats, intercept: Floats) -> Floats:
    """Return Xw + b in float64 as (n, K), for weights (d,) or (d, K)."""
    return row_products(X, weights.reshape(X.shape[1], -1)) + intercept


@dataclass(frozen=True)
class Epoch:
    """An iterate: a stretch of visits, ``finished`` when it completes an epoch."""

    learner: Learner
    mistakes: float
    updates: float
    finished: bool

    def __str__(self) -> str:
        return f"{self.mistakes:g} mistakes, {self.updates:g} updates"


def epochs(learner: Learner, orders: Iterable[Ints]) -> Iterator[Epoch]:
    """Yield a learner after each stretch of visits, one order of rows per epoch."""
    for order in orders:
        before = learner.counts
        for _ in learner.visit(order):
            yield _epoch(learner, before, finished=False)
        yield _epoch(learner, before, finished=True)


def _epoch(learner: Learner, before: Counts, finished: bool) -> Epoch:
    now = learner.counts
    return Epoch(learner, now.mistakes - before.mistakes, now.updates - before.updates, finished)


def orders(rows: Ints, shuffle: bool, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield the same rows for ever, each time in a new random order if asked."""
    while True:
        yield rng.permutation(rows) if shuffle else rows


class AllCorrect:
    """Stop after an epoch without an update: nothing would change any more."""

    def __call__(self, epoch: Epoch) -> Status | None:
        """Return ALL_CORRECT or None."""
        return Status.ALL_CORRECT if epoch.updates == 0.0 else None


class SmallChange:
    """Stop when the weights moved by less than ``tol`` of their length over an epoch."""

    def __init__(self, learner: Learner, tol: float) -> None:
        self.tol = tol
        self.previous = learner.snapshot()

    def __call__(self, epoch: Epoch) -> Status | None:
        """Return SMALL_CHANGE or None."""
        change = epoch.learner.relative_change(self.previous)
        self.previous = epoch.learner.snapshot()
        return Status.SMALL_CHANGE if change < self.tol else None
