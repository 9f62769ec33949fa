"""Linear machines whose rows live in blocks: on disk, or on the workers of a cluster."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.data.blocks import Block, Blocks, join
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, LinearProblem, Problem


class HingeRule(NamedTuple):
    """The hinge loss, or its square, of one class against another, or against all others.

    Rows of other classes and rows without weight cost nothing: their duals are 0.
    """

    C: float
    name: str  # of the loss
    factors: tuple[float, ...]  # of C, by class
    positive: int
    negative: int = -1  # −1: all others

    def __call__(self, labels: Ints, weight: Floats) -> Loss:
        """Return the losses of rows with these classes and weights."""
        labels = np.asarray(labels)
        own = labels == self.positive
        cost = self.C * (weight * np.asarray(self.factors)[labels])
        if self.negative >= 0:
            cost = np.where(own | (labels == self.negative), cost, 0.0)
        return _without_cost(losses.CLASSIFYING[self.name], np.where(own, 1.0, -1.0), cost)


class TubeRule(NamedTuple):
    """The ε-insensitive loss, or its square."""

    C: float
    name: str
    epsilon: float

    def __call__(self, target: Floats, weight: Floats) -> Loss:
        """Return the losses of rows with these targets and weights."""
        loss = losses.REGRESSING[self.name]

        def of(target: Floats, cost: Floats) -> Loss:
            return loss(target, cost, self.epsilon)

        return _without_cost(of, np.asarray(target, dtype=np.float64), self.C * weight)


def _without_cost(loss: Any, target: Floats, cost: Floats) -> Loss:
    """Return the losses of rows, some of which may cost nothing."""
    free = cost == 0
    if not free.any():
        return loss(target, cost)
    found = loss(target, np.where(free, 1.0, cost))
    low, high = np.where(free, 0.0, found.low), np.where(free, 0.0, found.high)
    return found._replace(low=low, high=high)


@dataclass(frozen=True)
class BlockedProblem:
    """A linear machine with penalty ½‖w‖² whose rows live in blocks: see ``Problem``.

    Duals and scores stay beside their rows, as vectors of the blocks; the duals of a ``Point`` or
    an ``Iterate`` are what ``Blocks.vector`` returns.
    """

    blocks: Blocks  # with the loss
    intercept: Intercept = Intercept.FREE
    constant: float = 0.0  # the feature whose weight is a penalised intercept
    l1_ratio: float = 0.0

    def __len__(self) -> int:
        return self.blocks.n

    @property
    def variables(self) -> int:
        """How many dual variables there are."""
        return self.blocks.n

    def take(self, rows: Ints) -> LinearProblem:
        """Return the problem of some of its rows, which are ascending, in memory."""
        X, loss = take_rows(self.blocks, rows)
        return Problem.linear(X, loss, self.intercept, self.constant or 1.0)


def take_rows(blocks: Blocks, rows: Ints) -> tuple[Any, Loss]:
    """Return some rows, which are ascending, with their losses."""
    found = blocks.map(_take, np.asarray(rows), merge=join)
    parts = [each[1] for each in found]
    columns = (np.concatenate([part[k] for part in parts]) for k in range(4))
    return joined([each[0] for each in found]), Loss(*columns, parts[0].epsilon)


def _take(block: Block, rows: Ints) -> list[Any]:
    begin, end = np.searchsorted(rows, [block.first, block.first + block.end - block.begin])
    if begin == end:
        return []
    assert block.loss is not None
    at = rows[begin:end] - block.first + block.begin
    return [(block.X[at], block.loss.take(at))]


def joined(parts: list[Any]) -> Any:
    """Return rows one after the other."""
    if not sp.issparse(parts[0]):
        return np.concatenate(parts)
    return sp.vstack(parts, format="csr")
