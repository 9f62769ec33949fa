"""Cells: a partition of the input space, found on rows, into cells of about as many rows each.

Planes halve the rows across their direction of largest spread, again and again, which takes
O(n d log(n/size)) and makes cells of nearly equal size. Which rows a direction is found on is
decided by what they hold, not by where they stand: the order of the rows does not matter, but for
rows that are exactly half-way.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.estimators.row_marks import Marks, mark_rows
from maxmargin.runtime.threads import share_work, usual_threads

_SAMPLE = 4096  # rows that a direction is found on
_STEPS = 12  # of the power method: the direction need not be exact
_LEAST_PART = 0.1  # of the size: no split may leave less, unless the cell is far too large
_MOST_PARTS = 4.0  # times the size: far too large
_WORK = 1 << 26  # multiplications of one call of a compiled loop


class Neighbours(NamedTuple):
    """By row: the own cell and others that are near, −1 for none; and how far their borders are."""

    cells: Ints
    gaps: Floats


def _in_blocks(
    X: Any, count: int, per_row: float, threads: int | None, find: Callable[..., None]
) -> Neighbours:
    """Call ``find(first row, cells, gaps)`` for blocks of rows, in several threads."""
    n = X.shape[0]
    found = Neighbours(np.empty((n, 1 + count), np.int64), np.zeros((n, 1 + count)))
    step = int(max(64, _WORK / max(per_row, 1.0)))
    blocks = deque(slice(first, first + step) for first in range(0, n, step))
    share_work(
        lambda block: find(block.start, found.cells[block], found.gaps[block]),
        blocks,
        min(threads or usual_threads(), len(blocks)),
    )
    return found


def _width(X: Any) -> float:
    """Return how many numbers a row has, on the average."""
    return X.nnz / max(X.shape[0], 1) if sp.issparse(X) else float(X.shape[1])


# ------------------------------------------------------------------- a tree of planes


class CellTree(NamedTuple):
    """The planes as the compiled loops take them."""

    directions: Floats
    thresholds: Floats
    children: Ints


@dataclass(frozen=True)
class TreeCells:
    """Cells between the planes of a tree.

    Attributes
    ----------
    directions : ndarray of shape (n_cells − 1, n_features)
        The normal of each plane, of length 1.
    thresholds : ndarray of shape (n_cells − 1,)
        x goes to the first child of a split if direction·x is at most this, else to the second.
    children : ndarray of shape (n_cells − 1, 2)
        The number of another split, which is larger, or −1 − the number of a cell.
    """

    directions: Floats
    thresholds: Floats
    children: Ints

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self.thresholds) + 1

    @classmethod
    def find(cls, X: Any, size: int) -> "TreeCells":
        """Split the rows until no cell has more than ``size``, if rows differ enough."""
        growing = _GrowingCell(
            X, size, mark_rows(X) if X.shape[0] > size else np.zeros(0, np.uint64)
        )
        growing.grow()
        children = np.array(growing.children, np.int64).reshape(-1, 2)
        directions = np.array(growing.directions).reshape(-1, X.shape[1])
        return cls(directions, np.array(growing.thresholds, np.float64), children)

    def neighbours(self, X: Any, count: int, threads: int | None = None) -> Neighbours:
        """Return the own cell of each row, and up to ``count`` others that are near."""
        rows, tree = loops.rows.rows(X), CellTree(self.directions, self.thresholds, self.children)
        root = 0 if len(self.thresholds) else -1
        depth = math.log2(self.n_cells) + 1
        if not count:
            return _in_blocks(
                X, 0, _width(X) * depth, threads,
                lambda first, cells, gaps: loops.partition.tree_cells(
                    rows, tree, root, first, cells[:, 0]
                ),
            )  # fmt: skip
        return _in_blocks(
            X, count, _width(X) * depth * depth, threads,
            lambda first, cells, gaps: loops.partition.tree_neighbours(
                rows, tree, root, first, cells, gaps
            ),
        )  # fmt: skip


class _GrowingCell:
    """A tree that is under way."""

    def __init__(self, X: Any, size: int, marks: Marks) -> None:
        self.X, self.size, self.marks = X, size, marks
        self.directions: list[Floats] = []
        self.thresholds: list[float] = []
        self.children: list[list[int]] = []

    def grow(self) -> None:
        """Split until cells are small; children have larger numbers than their parents."""
        waiting: list[tuple[Ints, int, int]] = [(np.arange(self.X.shape[0]), -1, 0)]
        n_cells = 0
        while waiting:
            rows, parent, place = waiting.pop()
            split = self._split(rows)
            node = len(self.thresholds) if split is not None else -1 - n_cells
            if parent >= 0:
                self.children[parent][place] = node
            if split is None:
                n_cells += 1
                continue
            direction, threshold, first = split
            self.directions.append(direction)
            self.thresholds.append(threshold)
            self.children.append([0, 0])
            waiting.append((rows[~first], node, 1))
            waiting.append((rows[first], node, 0))

    def _split(self, rows: Ints) -> tuple[Floats, float, Any] | None:
        """Return a plane and the rows on its first side; None: the rows stay together."""
        n, parts = len(rows), math.ceil(len(rows) / self.size)
        if parts < 2:
            return None
        direction = spread_direction(self.X[self._sample(rows)])
        values = np.empty(n)
        loops.partition.project(loops.rows.rows(self.X), rows, direction, values)
        ordered = np.sort(values)
        borders = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1  # equal rows stay together
        if not len(borders):
            return None
        # So that in the end all cells have about as many rows.
        border = int(borders[np.argmin(np.abs(borders - n * (parts // 2) / parts))])
        smaller = min(border, n - border)
        if smaller < _LEAST_PART * self.size and n <= _MOST_PARTS * self.size:
            return None
        low, high = float(ordered[border - 1]), float(ordered[border])
        threshold = low + (high - low) / 2
        threshold = threshold if low <= threshold < high else low
        return direction, threshold, values <= threshold

    def _sample(self, rows: Ints) -> Ints:
        return _spaced(rows[np.argsort(self.marks[rows], kind="stable")], _SAMPLE)


def spread_direction(X: Any) -> Floats:
    """Return about the direction in which rows are spread most, of length 1."""
    X = X.astype(np.float64, copy=False)
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    squares = np.asarray((X.multiply(X) if sp.issparse(X) else X * X).sum(axis=1)).ravel()
    furthest = int(np.argmax(squares - 2 * (X @ mean)))
    row = X[[furthest]]
    direction = (row.toarray() if sp.issparse(row) else row).ravel() - mean
    for _ in range(_STEPS):
        length = float(np.linalg.norm(direction))
        if not length > 0 or not np.isfinite(length):
            break
        direction = direction / length
        scores = X @ direction - mean @ direction
        direction = np.asarray(X.T @ scores).ravel() - mean * scores.sum()
    length = float(np.linalg.norm(direction))
    if not length > 0 or not np.isfinite(length):
        direction = np.eye(1, X.shape[1]).ravel()
        length = 1.0
    return np.asarray(direction / length)


def _spaced(rows: Ints, count: int) -> Ints:
    """Return some of the rows at even distances: of equal rows, which stand together, not all."""
    if len(rows) <= count:
        return rows
    return np.asarray(rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)])


# ------------------------------------------------------------------- rows of each cell


@dataclass(frozen=True)
class CellRows:
    """Which rows are in each cell, and which are near enough to take part in its training."""

    rows: list[Ints]  # ascending
    counts: Ints  # of the rows in each cell itself
    reach: Floats  # how far outside each cell the furthest row is that takes part


def gather_rows(near: Neighbours, n_cells: int, overlap: float) -> CellRows:
    """Return the rows of each cell, and ``overlap`` times as many of the nearest outside of it."""
    own = near.cells[:, 0]
    counts = np.bincount(own, minlength=n_cells)
    inner = list(_by_cell(own, np.arange(len(own)), counts))
    reach = np.zeros(n_cells)
    if not overlap:
        return CellRows(inner, counts, reach)
    row, place = np.nonzero(near.cells[:, 1:] >= 0)
    cells, gaps = near.cells[row, place + 1], near.gaps[row, place + 1]
    order = np.lexsort((row, gaps, cells))
    row, cells, gaps = row[order], cells[order], gaps[order]
    available = np.bincount(cells, minlength=n_cells)
    begin = np.cumsum(available) - available
    taken = np.arange(len(cells)) - begin[cells] < np.ceil(overlap * counts)[cells]
    row, cells, gaps = row[taken], cells[taken], gaps[taken]
    np.maximum.at(reach, cells, gaps)
    outer = _by_cell(cells, row, np.bincount(cells, minlength=n_cells))
    both = [np.sort(np.concatenate(pair)) for pair in zip(inner, outer, strict=True)]
    return CellRows(both, counts, reach)


def _by_cell(cells: Ints, rows: Ints, counts: Ints) -> Iterator[Ints]:
    yield from np.split(rows[np.argsort(cells, kind="stable")], np.cumsum(counts)[:-1])
