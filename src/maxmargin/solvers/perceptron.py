"""Perceptrons: the epochs they make, with explicit weights and in dual form.

    visit rows in order; where  y f(x) ≤ margin:   w += η y x,  b += η y

This is stochastic gradient descent on Σ max(0, −y f). With more than two classes the update adds to
the row's class and subtracts from the best other one. In dual form f(x) = Σ aᵢK(xᵢ, x) + b, for any
kernel. Rosenblatt (1958); Freund & Schapire (1999).
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.geometry.inputs import largest_squared_norm
from maxmargin.kernels import Kernel, PreparedRows
from maxmargin.loops.records import Rule, Updates
from maxmargin.problems.gram import Gram
from maxmargin.problems.row_cache import RowCache
from maxmargin.rows.blocks import Block, Blocks, join
from maxmargin.runtime import clock
from maxmargin.runtime.threads import share_work, usual_threads
from maxmargin.validation.data import stacked


class Counts(NamedTuple):
    """Visits, mistakes (y f ≤ 0) and updates (y f ≤ margin) so far, in units of weight."""

    visits: float = 0.0
    mistakes: float = 0.0
    updates: float = 0.0


@dataclass(frozen=True)
class WorkSettings:
    """How much is done at a time, and what the dual form keeps."""

    multiplications: int = 2**23  # between two checks of the clock: a few hundredths of a second
    shares: int = 16  # of that much work, for several threads
    kernel_values: int = 2**22  # of a block of rows with all rows: 32 MB
    smallest_block: int = 16  # rows
    largest_block: int = 256
    kept_bytes: int = 2**29  # for rows of the Gram matrix


_WORK = WorkSettings()


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

    def vector(self) -> tuple[Floats, Floats]:
        """Return a copy of (w, b)."""
        return self.weights.copy(), self.intercept.copy()

    def mean(self) -> tuple[Floats, Floats]:
        """Return the mean of (w, b) after each visit."""
        visits = max(self.counters[0], 1e-300)  # no visits: no lag either
        return self.weights - self.lag / visits, self.intercept - self.lag_intercept / visits


def length(vector: Floats) -> float:
    """Return ‖v‖, the same to the last bit whatever the number of threads of BLAS."""
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.square(vector).sum()))


class LinearVisitor:
    """A perceptron at work: what does not depend on where the rows are."""

    def __init__(self, state: LinearState, rule: Rule) -> None:
        self.state, self.rule = state, rule
        self.began = state.vector()
        self.start_norm = math.hypot(*map(length, self.began))
        state.counters[3] = 0.0

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
        return Counts(*self.state.counters[:3].tolist())

    def snapshot(self) -> tuple[Floats, Floats]:
        """Return a copy of (w, b)."""
        return self.state.vector()

    def restore(self, snapshot: tuple[Floats, Floats]) -> None:
        """Go back to a snapshot."""
        self.state.weights, self.state.intercept = snapshot

    def change(self, snapshot: tuple[Floats, Floats]) -> tuple[float, float]:
        """Return ‖w − w'‖ for an earlier w', and ‖w‖."""
        w = self.state.weights
        return length(w - snapshot[0]), length(w)


class LinearLearner(LinearVisitor):
    """A perceptron at work on given rows."""

    def __init__(
        self,
        state: LinearState,
        rule: Rule,
        X: Any,
        labels: Ints,
        weight: Floats,
        check_radius: Callable[[float], None],
    ) -> None:
        # ``check_radius`` raises an error if max ‖x‖² is too large or not finite. Rows are measured
        # as they are visited for the first time: a pass of its own takes as long as an epoch.
        super().__init__(state, rule)
        self.X = X
        self._rows, self._labels, self._weight = loops.rows.rows(X), labels, weight
        self._check_radius = check_radius
        self._radius = np.zeros(1)  # squared; empty once it is known
        self._full_logs: list[Updates] = []
        self._log, self._used = Updates.empty(1024 if rule.logged else 0), np.zeros(1, np.int64)

    def visit(self, order: Ints) -> Iterator[bool]:
        """Visit rows in the given order; yield now and then whether all were visited."""
        segment, done = self._segment, 0
        if len(order) < self.X.shape[0]:
            self.measure()
        while done < len(order):
            done += self._visit(order[done : done + segment])
            if done == len(order):
                self._measured()
            yield done == len(order)

    def _visit(self, order: Ints) -> int:
        """Return how many rows were visited: fewer than given if the log is full."""
        state = self.state
        if self.rule.logged and self._used[0] == len(self._log.row):
            self._full_logs.append(self._log)
            self._log, self._used = Updates.empty(2 * len(self._log.row)), np.zeros(1, np.int64)
        visited = loops.perceptron.visit(
            self._rows, self._labels, self._weight, order, self.rule, state.weights,
            state.intercept, state.lag, state.lag_intercept, state.counters, self._log, self._used,
            self._radius,
        )  # fmt: skip
        if len(self._radius):
            self._check_radius(float(self._radius[0]))
        return int(visited)

    @property
    def _segment(self) -> int:
        """How many rows to work on between two checks of the clock."""
        entries = self.X.nnz if sp.issparse(self.X) else self.X.size
        work_per_row = 1 + entries // max(1, self.X.shape[0]) * len(self.state.intercept)
        return max(1, int(_WORK.multiplications // work_per_row))

    def measure(self) -> None:
        """Find max ‖x‖² unless it is known, and check it."""
        if len(self._radius):
            self._radius[0] = largest_squared_norm(self.X)
            self._check_radius(float(self._radius[0]))
            self._measured()

    def _measured(self) -> None:
        if len(self._radius):
            self.squared_radius, self._radius = float(self._radius[0]), np.zeros(0)

    def updates(self) -> Updates:
        """Return the updates logged on these rows."""
        return Updates.joined([*self._full_logs, self._log.first(int(self._used[0]))])

    def smallest_lead(self, weights: Floats, intercept: Floats, rows: Ints) -> float:
        """Return the least y f of some rows, or lead over the best other of several classes."""
        found: list[float] = []

        def search(begin: int) -> None:
            some = rows[begin : begin + segment]
            found.append(
                loops.perceptron.smallest_lead(self._rows, self._labels, some, weights, intercept)
            )

        segment = max(1, self._segment // _WORK.shares)
        search(max(0, len(rows) - segment))  # the last alone: it compiles the loop
        parts = deque(range(0, len(rows) - segment, segment))
        share_work(search, parts, min(len(parts), usual_threads()))
        return float(np.min(found))

    def scores(self, weights: Floats, intercept: Floats) -> Floats:
        """Return the scores that weights give to these rows: (n, 1) or, for K classes, (n, K)."""
        scores = np.empty((self.X.shape[0], len(intercept)))
        loops.perceptron.compute_scores(self._rows, weights, intercept, scores)
        return scores

    def training_scores(self) -> Floats:
        """Return f on these rows."""
        return self.scores(self.state.weights, self.state.intercept)

    def rows_at(self, rows: Ints) -> Any:
        """Return some of the rows."""
        return self.X[rows]


# ------------------------------------------------------------------- rows in blocks


class Travelling(NamedTuple):
    """What a perceptron takes along from leaf to leaf."""

    weights: Floats
    intercept: Floats
    lag: Floats
    lag_intercept: Floats
    counters: Floats
    updates: list[Updates]  # of this epoch; rows are numbered among all rows


class BlockLearner(LinearVisitor):
    """A perceptron at work on rows in blocks, in their order: one leaf after the other.

    The updates are those of the same rows in memory, to the last bit. Rows whose weight, times the
    factor of their class, is 0 are absent.
    """

    def __init__(self, state: LinearState, rule: Rule, blocks: Blocks, factors: Floats) -> None:
        super().__init__(state, rule)
        self.blocks, self.factors = blocks, factors
        [self.n] = blocks.map(_count_present, factors, reads_rows=False)
        self._logs: list[Updates] = []

    def visit(self, order: Any = None) -> Iterator[bool]:
        """Visit all rows in their order; yield whether time was enough for that."""
        del order
        while True:
            state, new = self.state, list[Updates]()
            told = Travelling(
                state.weights, state.intercept, state.lag, state.lag_intercept, state.counters, new
            )
            try:
                told = self.blocks.fold(_visit_leaf, told, self.rule, self.factors)
            except (clock.OutOfTimeError, KeyboardInterrupt) as ended:
                self._logs += new  # rows on disk change the state in place: what is done is kept
                if isinstance(ended, KeyboardInterrupt):
                    raise
                yield False
                continue
            state.weights, state.intercept, state.lag, state.lag_intercept, state.counters = told[
                :5
            ]
            self._logs += told.updates
            yield True
            return

    def updates(self) -> Updates:
        """Return the updates logged on these rows."""
        return Updates.joined(self._logs)

    def rows_at(self, rows: Ints) -> Any:
        """Return some of the rows, which are ascending."""
        found = self.blocks.map(_take_rows, np.asarray(rows), merge=join)
        return stacked(found) if found else np.zeros((0, self.blocks.d))

    def smallest_leads(self, vectors: list[tuple[Floats, Floats]]) -> list[float]:
        """Return the least y f, or lead of a row's class, for each of some weight vectors.

        The largest ‖x‖² is then known too.
        """
        found = self.blocks.map(_find_leads, vectors, self.factors, merge=_extremes)
        self.squared_radius = float(found[0])
        return [float(each) for each in found[1:]]

    def accuracy(self) -> float:
        """Return the share of the rows, by weight, that the weights have right."""
        vector = self.state.weights, self.state.intercept
        right, total = self.blocks.map(_weigh_right, vector, self.factors)
        return float(right / total)


_ROWS_A_CALL = 1 << 14
_LOGGED_AT_ONCE = 1 << 12


def _present(block: Block, factors: Floats) -> tuple[Ints, Floats, Ints]:
    """Return the labels and weights of a block, which are of use in a leaf, and its rows there."""
    begin, end = block.begin, block.end
    labels, weight = np.asarray(block["labels"]), np.asarray(block["weight"])
    if (factors != 1.0).any():
        weighed = np.zeros(end)
        weighed[begin:] = weight[begin:end] * factors[labels[begin:end]]
        weight = weighed
    return labels, weight, begin + np.flatnonzero(weight[begin:end] > 0)


def _count_present(block: Block, factors: Floats) -> tuple[int]:
    return (len(_present(block, factors)[2]),)


def _visit_leaf(block: Block, told: Travelling, rule: Rule, factors: Floats) -> Travelling:
    labels, weight, order = _present(block, factors)
    done, known = 0, np.zeros(0)  # the largest ‖x‖² was looked at before
    log = Updates.empty(_LOGGED_AT_ONCE if rule.logged else 0)
    while done < len(order):
        used = np.zeros(1, np.int64)
        done += loops.perceptron.visit(
            block.rows, labels, weight, order[done : done + _ROWS_A_CALL], rule, *told[:5],
            log, used, known,
        )  # fmt: skip
        if used[0]:
            made = log.first(int(used[0]))
            told.updates.append(made._replace(row=made.row - block.begin + block.first))
    return told


def _take_rows(block: Block, rows: Ints) -> list[Any]:
    begin, end = np.searchsorted(rows, [block.first, block.first + block.end - block.begin])
    return [block.X[rows[begin:end] - block.first + block.begin]] if begin < end else []


def _find_leads(block: Block, vectors: list[tuple[Floats, Floats]], factors: Floats) -> list[float]:
    labels, _, rows = _present(block, factors)
    squares = np.empty(block.end - block.begin)
    loops.dual_cd.squared_norms(block.rows, block.begin, squares)
    leads = [loops.perceptron.smallest_lead(block.rows, labels, rows, *each) for each in vectors]
    return [float(squares[rows - block.begin].max(initial=0.0)), *leads]


def _extremes(one: list[float], other: list[float]) -> list[float]:
    return [max(one[0], other[0]), *map(min, one[1:], other[1:])]


def _weigh_right(
    block: Block, vector: tuple[Floats, Floats], factors: Floats
) -> tuple[float, float]:
    labels, weight, rows = _present(block, factors)
    right = loops.perceptron.weigh_right(block.rows, labels, weight, rows, *vector)
    return right, float(weight[rows].sum())


# ------------------------------------------------------------------- dual form


class DualFunction(NamedTuple):
    """f(x) = Σ aᵢK(xᵢ, x) + b over support vectors, with ‖w‖²."""

    kernel: Kernel
    support: PreparedRows | None  # None: there are no support vectors
    coefficients: Floats
    intercept: Floats
    squared_norm: float

    @classmethod
    def zero(cls, kernel: Kernel, outputs: int) -> Self:
        """Return f = 0, with a column of scores for each output."""
        return cls(kernel, None, np.zeros((0, outputs)), np.zeros(outputs), 0.0)

    def scores(self, prepared: PreparedRows) -> Floats:
        """Return f on rows prepared by the kernel: (n, K)."""
        if self.support is None:
            return np.tile(self.intercept, (len(prepared), 1))
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
        start: DualFunction,
        rule: Rule,
        X: Any,
        labels: Ints,
        weight: Floats,
        counts: Counts,
    ) -> None:
        self.start = start
        self.start_norm = math.hypot(math.sqrt(start.squared_norm), *start.intercept)
        self.rule = rule
        self.X, self._labels, self._weight = X, labels, weight
        self.squared_radius = np.inf  # until the kernel is known to be positive semidefinite
        self.gram = Gram(start.kernel, X, like=start.support)
        self.gram.memory = min(self.gram.memory, _WORK.kept_bytes)
        self._cache = RowCache(self.gram, self.gram.prepared, least=_WORK.largest_block)
        self._start_scores = start.scores(self.gram.prepared)
        zeros = np.zeros(self._start_scores.shape)
        self.now = KernelState(zeros, self._start_scores, start.intercept, counts)
        rows = _WORK.kernel_values // len(self.gram)
        self._block = int(np.clip(rows, _WORK.smallest_block, _WORK.largest_block))

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
        return self.now.counts

    def visit(self, order: Ints) -> Iterator[bool]:
        """Visit rows in the given order; yield after each block whether all were visited."""
        for start in range(0, len(order), self._block):
            block = order[start : start + self._block]
            steps = np.zeros((len(block), self.now.scores.shape[1]))
            counts = loops.perceptron.visit_block(
                self.gram.block(block, block), self._labels[block], self._weight[block], self.rule,
                self.now.scores[block], steps, tuple(self.now.counts),
            )  # fmt: skip
            # One assignment: an interruption sees the state before or after it, never in between.
            self.now = self._after(block, steps, Counts(*counts))
            yield start + self._block >= len(order)

    def _after(self, block: Ints, steps: Floats, counts: Counts) -> KernelState:
        changed = steps.any(axis=1)
        if not changed.any():
            return self.now._replace(counts=counts)
        lift = steps.sum(axis=0) * self.rule.fit_intercept
        rows = np.asarray(self._cache.values[self._cache.fetch(block[changed])], np.float64)
        scores = self.now.scores + rows.T @ steps[changed] + lift
        coefficients = self.now.coefficients.copy()
        coefficients[block] += steps
        return KernelState(coefficients, scores, self.now.intercept + lift, counts)

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
        both_ends = (self.now.scores - self.now.intercept) + (
            self._start_scores - self.start.intercept
        )
        gained = float(np.sum(self.now.coefficients * both_ends))
        return max(0.0, self.start.squared_norm + gained)

    def change(self, snapshot: KernelState) -> tuple[float, float]:
        """Return ‖w − w'‖ for an earlier w', and ‖w‖; ‖w − w'‖² = Σ (aᵢ − aᵢ')(w − w')·φ(xᵢ)."""
        step = (self.now.scores - self.now.intercept) - (snapshot.scores - snapshot.intercept)
        squared = float(np.sum((self.now.coefficients - snapshot.coefficients) * step))
        return float(np.sqrt(max(squared, 0.0))), float(np.sqrt(self.squared_norm()))


# ------------------------------------------------------------------- epochs

Learner = LinearLearner | BlockLearner | KernelLearner


@dataclass(frozen=True)
class Epoch:
    """An iterate: some visits of an epoch, ``finished`` when they complete it."""

    mistakes: float
    updates: float
    finished: bool

    def __str__(self) -> str:
        return f"{self.mistakes:g} mistakes, {self.updates:g} updates"


class Visitor(Protocol):
    """Whoever learns from one row, or one example, after the other."""

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
        ...

    def visit(self, order: Ints) -> Iterator[bool]:
        """Visit rows in the given order; yield now and then whether all were visited."""
        ...


def run_epochs(learner: Visitor, rows: Any, rng: np.random.Generator | None) -> Iterator[Epoch]:
    """Visit the rows over and over, with ``rng`` in a new random order each time."""
    while True:
        before = learner.counts
        for finished in learner.visit(rows if rng is None else rng.permutation(rows)):
            now = learner.counts
            yield Epoch(now.mistakes - before.mistakes, now.updates - before.updates, finished)
