"""Kernel machines whose rows live in blocks: on disk, or on the workers of a cluster."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.kernels import Kernel
from maxmargin.loops.records import Loss
from maxmargin.problems.blocked import Checkpoint, take_rows
from maxmargin.problems.features import KernelFeatures
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Intercept, KernelProblem, Point, Problem
from maxmargin.rows.blocks import Block, Blocks
from maxmargin.validation.data import stacked


class SupportDuals(NamedTuple):
    """The duals that are not 0: few beside the rows, so they are kept together."""

    rows: Ints  # ascending
    values: Floats


class Terms(NamedTuple):
    """Rows with coefficients, which make the function Σ a K(x, ·)."""

    kernel: Kernel
    X: Any
    coefficients: Floats


@dataclass(frozen=True)
class BlockedKernelProblem:
    """A kernel machine with one dual for each row, whose rows live in blocks: see ``Problem``.

    Scores stay beside the rows. Duals of a ``Point`` or an ``Iterate`` are SupportDuals, and its
    weights are their values: w = Σβφ(x). The rows that have a dual must fit into the memory.
    """

    blocks: Blocks  # with the loss
    kernel: Kernel
    intercept: Intercept = Intercept.FREE
    memory: int | None = None  # bytes for rows with a dual
    for_values: int | None = None  # bytes for kernel values of these
    threads: int | None = None
    checkpoint: Checkpoint | None = None

    def __len__(self) -> int:
        return self.blocks.n

    @property
    def variables(self) -> int:
        """How many dual variables there are."""
        return self.blocks.n

    @property
    def totals(self) -> Floats:
        """What the duals of each group sum to."""
        return np.zeros(int(self.intercept is Intercept.FREE))

    def take(self, rows: Ints) -> KernelProblem:
        """Return the problem of some of its rows, which are ascending, in memory."""
        return self.of_rows(*take_rows(self.blocks, rows))

    def of_rows(self, X: Any, loss: Loss) -> KernelProblem:
        """Return the problem of rows in memory with these losses."""
        gram = Gram(self.kernel, X, memory=self.for_values, threads=self.threads)
        every, groups = np.arange(len(gram)), np.full(len(gram), len(self.totals) - 1)
        return Problem(KernelFeatures(gram, every), loss, every, groups, self.totals)

    def certificate_work(self, beta: SupportDuals | None) -> float:
        """Return the number of kernel values: of all rows with those that have a dual."""
        return 0.0 if beta is None else float(len(self)) * len(beta.rows)

    def without_duals(self, point: Point) -> Point:
        """Return the point itself: its weights are what its duals imply."""
        return point

    def guess(self, start: Point) -> Point:
        """Return a point that takes no time to find: the start, or 0."""
        if start.beta is not None:
            return start
        return Point(np.zeros(0), 0.0, SupportDuals(np.zeros(0, np.int64), np.zeros(0)))


# ------------------------------------------------------------------- kernel values of a leaf


_AT_ONCE = 1 << 14  # rows of a leaf that are compared at the same time


def costly_rows(block: Block) -> tuple[Loss, Ints]:
    """Return the losses of the rows of a leaf, and which of these cost anything."""
    assert block.loss is not None
    loss = block.loss.take(slice(block.begin, block.end))
    return loss, np.flatnonzero(loss.high > loss.low)


def compared(block: Block, at: Ints, terms: Terms) -> Iterator[tuple[Ints, Any]]:
    """Iterate over some rows of a leaf at a time: which they are, and the terms with these rows.

    Both are in one array, in float64: prepared together, a kernel treats them alike.
    """
    for start in range(0, len(at), _AT_ONCE):
        some = at[start : start + _AT_ONCE]
        yield some, stacked([terms.X, block.X[block.begin + some]]).astype(np.float64)
