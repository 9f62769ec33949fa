"""Which cell of a partition a row falls into, and which other cells are near.

A tree of planes: split s sends x to its first child if directionₛ·x ≤ thresholdₛ, else to its
second. A child c ≥ 0 is another split, c < 0 is the cell −1 − c. Directions have length 1, so a
cell is as far from x as the furthest of the planes that x would have to cross.

These gaps change continuously with x, across borders too. A row is looked at by itself, so equal
rows have equal bits wherever they are. Of its neighbours those with the smallest gaps are kept; −1:
there are no more.
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.rows import row_dot


@compiled
def project(X: Any, chosen: Any, direction: Any, out: Any) -> None:
    """Do out[k] = x·direction for the chosen rows x."""
    for k in range(chosen.shape[0]):
        out[k] = row_dot(X, chosen[k], direction)


@compiled
def _side(X: Any, i: int, tree: Any, split: int) -> Any:
    """Return how far beyond the plane of a split a row is: up to 0 it goes to the first child."""
    return row_dot(X, i, tree.directions[split]) - tree.thresholds[split]


@compiled
def _descend(X: Any, i: int, tree: Any, node: int) -> int:
    while node >= 0:
        node = tree.children[node, 1 if _side(X, i, tree, node) > 0.0 else 0]
    return -1 - node


@compiled
def tree_cells(X: Any, tree: Any, root: int, first: int, out: Any) -> None:
    """Find the cells of the rows from ``first`` on; ``root`` is a split, or −1: there is none."""
    for k in range(out.shape[0]):
        out[k] = _descend(X, first + k, tree, root)


@compiled
def _insert(cells: Any, gaps: Any, cell: int, gap: float) -> None:
    """Keep a neighbour, if it is nearer than the last; the first place is that of the own cell."""
    at = cells.shape[0] - 1
    if at < 1 or not gap < gaps[at]:
        return
    while at > 1 and gap < gaps[at - 1]:
        cells[at], gaps[at] = cells[at - 1], gaps[at - 1]
        at -= 1
    cells[at], gaps[at] = cell, gap


@compiled
def tree_neighbours(X: Any, tree: Any, root: int, first: int, cells: Any, gaps: Any) -> None:
    """Find the own cell of each row, and the neighbours that are nearest."""
    nodes = np.empty(tree.thresholds.shape[0] + 1, np.int64)  # sides that are not visited yet,
    beyond = np.empty(tree.thresholds.shape[0] + 1)  # and how far away they are
    for k in range(cells.shape[0]):
        cells[k, :] = -1
        gaps[k, :] = np.inf
        nodes[0], beyond[0], waiting = root, 0.0, 1
        while waiting > 0:
            waiting -= 1
            node, gap = nodes[waiting], beyond[waiting]
            if not gap < gaps[k, -1]:
                continue
            while node >= 0:
                side = _side(X, first + k, tree, node)
                own = 1 if side > 0.0 else 0
                if max(gap, abs(side)) < gaps[k, -1]:
                    nodes[waiting] = tree.children[node, 1 - own]
                    beyond[waiting] = max(gap, abs(side))
                    waiting += 1
                node = tree.children[node, own]
            if cells[k, 0] < 0:  # the first that is reached crosses nothing
                cells[k, 0], gaps[k, 0] = -1 - node, 0.0
            else:
                _insert(cells[k], gaps[k], -1 - node, gap)
