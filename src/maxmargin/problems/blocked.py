"""Linear machines whose rows live in blocks: on disk, or on the workers of a cluster."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, LinearProblem, Point, Problem
from maxmargin.rows.blocks import Block, Blocks, join
from maxmargin.validation.data import stacked


@dataclass(frozen=True)
class HingeRule:
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
        target, low, high, quadratic = np.empty((4, len(labels)))
        found = Loss(target, low, high, quadratic, 0.0)
        sides, squared = (self.positive, self.negative), self.name == "squared_hinge"
        costs = self.C, np.array(self.factors)
        loops.loss.hinges_of_classes(np.asarray(labels), weight, *costs, *sides, squared, found)
        return found


@dataclass(frozen=True)
class TubeRule:
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


def _without_cost(loss: Callable[[Floats, Floats], Loss], target: Floats, cost: Floats) -> Loss:
    """Return the losses of rows, some of which may cost nothing."""
    free = cost == 0
    if not free.any():
        return loss(target, cost)
    found = loss(target, np.where(free, 1.0, cost))
    low, high = np.where(free, 0.0, found.low), np.where(free, 0.0, found.high)
    return found._replace(low=low, high=high)


LossRule = Callable[..., Loss]  # (labels or targets, weights) of some rows -> their losses


class Checkpoint(NamedTuple):
    """Where a solver writes how far it came, and goes on from after it was killed."""

    folder: Path
    every: int  # iterations
    digest: str  # of rows and parameters: of another fit nothing is taken


@dataclass(frozen=True)
class BlockedProblem:
    """A linear machine with penalty ½‖w‖² whose rows live in blocks: see ``Problem``.

    Duals and scores stay beside their rows, as vectors of the blocks; the duals of a ``Point`` or
    an ``Iterate`` are what ``Blocks.vector`` returns.
    """

    blocks: Blocks  # with the loss
    intercept: Intercept = Intercept.FREE
    constant: float = 0.0  # the feature whose weight is a penalised intercept
    checkpoint: Checkpoint | None = None
    l1_ratio: ClassVar[float] = 0.0
    is_hinge: ClassVar[bool] = False

    def __len__(self) -> int:
        return self.blocks.n

    @property
    def variables(self) -> int:
        """How many dual variables there are."""
        return self.blocks.n

    def certificate_work(self, beta: Any) -> float:
        """Return 0: how long a pass over the rows takes is not known beforehand."""
        return 0.0

    def without_duals(self, point: Point) -> Point:
        """Return the point with duals that need no proof."""
        return replace(point, beta=self._no_duals())

    def guess(self, start: Point) -> Point:
        """Return a point that takes no time to find: the start, or 0."""
        w = np.zeros(self.blocks.d) if start.w is None else start.w
        return Point(w, start.b, self._no_duals() if start.beta is None else start.beta)

    def _no_duals(self) -> Any:
        self.blocks.renew("none")
        self.blocks.map(_set_zero, "none", writes=("none",), reads_rows=False)
        return self.blocks.vector("none")

    def take(self, rows: Ints) -> LinearProblem:
        """Return the problem of some of its rows, which are ascending, in memory."""
        X, loss = take_rows(self.blocks, rows)
        return Problem.linear(X, loss, self.intercept, self.constant or 1.0)


def take_rows(blocks: Blocks, rows: Ints) -> tuple[Any, Loss]:
    """Return some rows, which are ascending, with their losses."""
    found = blocks.map(_take, np.asarray(rows), merge=join)
    parts = [each[1] for each in found]
    target, low, high, quadratic = (np.concatenate([part[k] for part in parts]) for k in range(4))
    loss = Loss(target, low, high, quadratic, parts[0].epsilon)
    pieces = [each[0] for each in found]
    if blocks.sparse:
        return stacked(pieces), loss
    del found
    X, at = np.empty((len(loss.low), blocks.d), dtype=np.result_type(*pieces)), 0
    for k in range(len(pieces)):  # each goes as soon as it is copied: not all are there twice
        X[at : at + len(pieces[k])] = pieces[k]
        at, pieces[k] = at + len(pieces[k]), None
    return X, loss


def _set_zero(block: Block, name: str) -> None:
    block[name][block.begin : block.end] = 0.0


def _take(block: Block, rows: Ints) -> list[Any]:
    begin, end = np.searchsorted(rows, [block.first, block.first + block.end - block.begin])
    if begin == end:
        return []
    assert block.loss is not None
    at = rows[begin:end] - block.first + block.begin
    return [(block.X[at], block.loss.take(at))]
