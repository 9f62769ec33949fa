"""Perceptrons: the epochs they make, with explicit weights and in dual form.

    visit rows in order; where  y f(x) ≤ margin:   w += η y x,  b += η y

This is stochastic gradient descent on Σ max(0, −y f). With more than two classes the update adds to
the row's class and subtracts from the best other one. In dual form f(x) = Σ aᵢK(xᵢ, x) + b, for any
kernel. Rosenblatt (1958); Freund & Schapire (1999).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.geometry.inputs import row_products
from maxmargin.kernels import Kernel
from maxmargin.loops.records import Rule, Updates
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Status
from maxmargin.problems.row_cache import RowCache

# Multiplications between two checks of the clock: a few hundredths of a second at most.
_WORK_PER_ITERATE = 2**23


class Counts(NamedTuple):
    """Visits, mistakes (y f ≤ 0) and updates (y f ≤ margin) so far, in units of weight."""

    visits: float = 0.0
    mistakes: float = 0.0
    updates: float = 0.0


def _ratio(change: float, size: float) -> float:
    """Return change/size, with 0/0 = 0."""
    return 0.0 if change == 0.0 else change / size if size > 0.0 else np.inf


# ------------------------------------------------------------------- explicit weights


@dataclass
class LinearState:
    """What a perceptron has learnt so far, which is all that the next chunk of rows needs.

    Weights (d,) and intercept (1,) for two classes; (d, K) and (K,) for more. ``lag`` is Σ t·(the
    update made after t visits), so that the mean of (w, b) after each visit is (w, b) − lag/visits.
    """

    weights: Floats
    intercept: Floats
    averaged: InitVar[bool] = False
    lag: Floats = field(init=False)
    lag_intercept: Floats = field(init=False)
    counters: Floats = field(init=False)  # visits, mistakes, updates, rest of a row's weight

    def __post_init__(self, averaged: bool) -> None:
        self.lag = np.zeros(self.weights.shape if averaged else (0,) * self.weights.ndim)
        self.lag_intercept = np.zeros(self.intercept.shape if averaged else 0)
        self.counters = np.zeros(4)

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
        return Counts(*self.counters[:3].tolist())

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
        state.counters[3] = 0.0
        self._full_logs: list[Updates] = []
        self._log, self._used = Updates.empty(1024 if rule.logged else 0), np.zeros(1, np.int64)
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
        """Visit rows in the given order, yielding now and then."""
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
            self._log, self._used = Updates.empty(2 * len(self._log.row)), np.zeros(1, np.int64)
        visited: int = one_pass(
            self._rows, self._y, self._weight, order, self.rule, state.weights, state.intercept,
            state.lag, state.lag_intercept, state.counters, self._log, self._used,
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
        return _ratio(float(change), float(np.linalg.norm(self.state.weights)))


def compute_scores(X: Any, weights: Floats, intercept: Floats) -> Floats:
    """Return Xw + b in float64 as (n, K), for weights (d,) or (d, K)."""
    return row_products(X, weights.reshape(X.shape[1], -1)) + intercept


# ------------------------------------------------------------------- dual form


@dataclass(frozen=True)
class KernelBlockSettings:
    """How many rows the dual form takes at a time, and what it keeps."""

    values: int = 2**22  # kernel values of a block of rows with all rows: 32 MB
    smallest: int = 16  # rows in a block
    largest: int = 256
    kept_bytes: int = 2**29  # for rows of the Gram matrix


_BLOCKS = KernelBlockSettings()


class DualFunction(NamedTuple):
    """f(x) = Σ aᵢK(xᵢ, x) + b over support vectors, with ‖w‖²."""

    kernel: Kernel
    support: Any
    coefficients: Floats
    intercept: Floats
    squared_norm: float

    def norm(self) -> float:
        """Return ‖(w, b)‖."""
        return float(np.hypot(np.sqrt(self.squared_norm), np.linalg.norm(self.intercept)))

    def scores(self, prepared: Any) -> Floats:
        """Return f on rows prepared by the kernel: (n, K)."""
        return self.kernel.dot(prepared, self.support, self.coefficients) + self.intercept


class KernelState(NamedTuple):
    """Coefficients and scores (n, K) and intercept (K,) on the training rows, with the counts."""

    coefficients: Floats
    scores: Floats
    intercept: Floats
    counts: Counts


class KernelLearner:
    """Dual form: w = w₀ + Σ aᵢφ(xᵢ) on n training rows, with f kept up to date on all of them.

    Rows are visited in blocks. Within a block, its small Gram matrix applies each update to the
    scores of later rows; one BLAS product then applies the block's updates to the scores of all
    rows. The result is that of the row-by-row algorithm.
    """

    def __init__(
        self,
        kernel: Kernel,
        rule: Rule,
        X: Any,
        labels: Ints,
        weight: Floats,
        outputs: int,
        start: DualFunction | None = None,
        counts: Counts | None = None,
    ) -> None:
        self.kernel = kernel
        self.rule = rule
        self.X, self._labels, self._weight = X, labels, weight
        self.start = start
        self.start_norm = 0.0 if start is None else start.norm()
        self.squared_radius = np.inf  # until the kernel is known to be positive semidefinite
        self.gram = Gram(kernel, X, like=None if start is None else start.support)
        self.gram.memory = min(self.gram.memory, _BLOCKS.kept_bytes)
        self._store = RowCache(self.gram, self.gram.prepared, least=_BLOCKS.largest)
        zeros = np.zeros((len(self.gram), outputs))
        self._start_scores = zeros if start is None else start.scores(self.gram.prepared)
        self.now = KernelState(
            zeros,
            self._start_scores,
            np.zeros(outputs) if start is None else start.intercept,
            counts or Counts(),
        )
        rows = _BLOCKS.values // len(self.gram)
        self._block = int(np.clip(rows, _BLOCKS.smallest, _BLOCKS.largest))

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
        return self.now.counts

    def visit(self, order: Ints) -> Iterator[None]:
        """Visit rows in the given order, yielding after each block."""
        for start in range(0, len(order), self._block):
            block = order[start : start + self._block]
            steps = np.zeros((len(block), self.now.scores.shape[1]))
            counts = loops.perceptron.kernel_pass(
                self.gram.block(block, block), self._labels[block], self._weight[block], self.rule,
                self.now.scores[block], steps, tuple(self.now.counts),
            )  # fmt: skip
            # One assignment: an interruption sees the state before or after it, never in between.
            self.now = self._after(block, steps, Counts(*counts))
            yield

    def _after(self, block: Ints, steps: Floats, counts: Counts) -> KernelState:
        changed = steps.any(axis=1)
        if not changed.any():
            return self.now._replace(counts=counts)
        lift = steps.sum(axis=0) * self.rule.fit_intercept
        scores = self.now.scores + self._rows(block[changed]).T @ steps[changed] + lift
        coefficients = self.now.coefficients.copy()
        coefficients[block] += steps
        return KernelState(coefficients, scores, self.now.intercept + lift, counts)

    def _rows(self, i: Ints) -> Floats:
        return np.asarray(self._store.values[self._store.fetch(i)], np.float64)

    def training_scores(self) -> Floats:
        """Return f on the training rows: (n, 1) for two classes, else (n, K)."""
        return self.now.scores

    def snapshot(self) -> KernelState:
        """Return the state, which is never changed in place."""
        return self.now

    def restore(self, snapshot: KernelState) -> None:
        """Go back to a snapshot, keeping the counts."""
        self.now = snapshot._replace(counts=self.now.counts)

    def squared_norm(self) -> float:
        """Return ‖w‖² = ‖w₀‖² + Σ aᵢ(w·φ(xᵢ) + w₀·φ(xᵢ))."""
        began = 0.0 if self.start is None else self.start.squared_norm
        first = 0.0 if self.start is None else self.start.intercept
        both_ends = (self.now.scores - self.now.intercept) + (self._start_scores - first)
        return max(0.0, began + float(np.sum(self.now.coefficients * both_ends)))

    def relative_change(self, snapshot: KernelState) -> float:
        """Return ‖w − w'‖/‖w‖ for an earlier w', by ‖w − w'‖² = Σ (aᵢ − aᵢ')(w − w')·φ(xᵢ)."""
        step = (self.now.scores - self.now.intercept) - (snapshot.scores - snapshot.intercept)
        change = float(np.sum((self.now.coefficients - snapshot.coefficients) * step))
        return _ratio(np.sqrt(max(change, 0.0)), np.sqrt(self.squared_norm()))


# ------------------------------------------------------------------- epochs, and when they end

Learner = LinearLearner | KernelLearner


@dataclass(frozen=True)
class Epoch:
    """An iterate: some visits of an epoch, ``finished`` when they complete it."""

    learner: Learner
    mistakes: float
    updates: float
    finished: bool

    def __str__(self) -> str:
        return f"{self.mistakes:g} mistakes, {self.updates:g} updates"


def run_epochs(learner: Learner, orders: Iterable[Ints]) -> Iterator[Epoch]:
    """Yield the state of a learner after some visits at a time; each order of rows is an epoch."""
    for order in orders:
        before = learner.counts
        for _ in learner.visit(order):
            yield _epoch(learner, before, finished=False)
        yield _epoch(learner, before, finished=True)


def _epoch(learner: Learner, before: Counts, finished: bool) -> Epoch:
    now = learner.counts
    return Epoch(learner, now.mistakes - before.mistakes, now.updates - before.updates, finished)


def draw_orders(rows: Ints, shuffle: bool, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield the same rows forever, with ``shuffle`` in a new random order each time."""
    while True:
        yield rng.permutation(rows) if shuffle else rows


def stop_if_correct(epoch: Epoch) -> Status | None:
    """Stop after an epoch without an update: no further epoch would change anything."""
    return Status.ALL_CORRECT if epoch.updates == 0.0 else None


class SmallChange:
    """Stop when the weights moved by less than ``tol`` of their length over an epoch."""

    def __init__(self, learner: Learner, tol: float) -> None:
        self.tol = tol
        self.previous: Any = learner.snapshot()

    def __call__(self, epoch: Epoch) -> Status | None:
        """Return SMALL_CHANGE or None."""
        change = epoch.learner.relative_change(self.previous)
        self.previous = epoch.learner.snapshot()
        return Status.SMALL_CHANGE if change < self.tol else None


class NoImprovement:
    """Stop when a score has not improved for ``patience`` epochs."""

    def __init__(self, score: Callable[[], float], patience: int) -> None:
        self.score, self.patience = score, patience
        self.best, self.since = -np.inf, 0

    def __call__(self, _epoch: Epoch) -> Status | None:
        """Return HELD_OUT or None."""
        score = self.score()
        self.since = 0 if score > self.best else self.since + 1
        self.best = max(score, self.best)
        return Status.HELD_OUT if self.since >= self.patience else None


class Pocket:
    """A rule that never stops a run, but remembers the weights with the best score."""

    def __init__(self, learner: Learner, score: Callable[[], float]) -> None:
        self.learner, self.score = learner, score
        self.best, self.snapshot = score(), learner.snapshot()

    def __call__(self, _epoch: Epoch | None = None) -> None:
        """Keep the weights if they are better than those kept."""
        score = self.score()
        if score > self.best:
            self.best, self.snapshot = score, self.learner.snapshot()
