"""Epochs of a mistake-driven learner, and the rules that end them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.problems.problem import Status


class Counts(NamedTuple):
    """Visits, mistakes (y f ≤ 0) and updates (y f ≤ margin) so far, in units of weight."""

    visits: float = 0.0
    mistakes: float = 0.0
    updates: float = 0.0


class Learner(Protocol):
    """A perceptron at work on given rows."""

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
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


class BestKept:
    """The pocket: a rule that never stops, but remembers the weights that did best."""

    def __init__(self, learner: Any, merit: Callable[[], float]) -> None:
        self._learner, self._merit = learner, merit
        self.merit = merit()
        self.snapshot = learner.snapshot()

    def __call__(self, _epoch: Any) -> Status | None:
        """Look at the weights; never stop."""
        self.look()
        return None

    def look(self) -> None:
        """Keep the learner's weights if they are better than those kept."""
        merit = self._merit()
        if merit > self.merit:
            self.merit, self.snapshot = merit, self._learner.snapshot()


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


def relative(change: float, size: float) -> float:
    """Return change/size, with 0/0 = 0."""
    return 0.0 if change == 0.0 else change / size if size > 0.0 else np.inf
