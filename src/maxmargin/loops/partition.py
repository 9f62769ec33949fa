"""Which cell of a partition a row falls into, and which other cells are near.

A tree of planes: split s sends x to its first child if directionₛ·x ≤ thresholdₛ, else to its
second. A child c ≥ 0 is another split, c < 0 is the cell −1 − c. The cell that x would be in on the
other side of one plane of its path is a neighbour, as far away as that plane (directions have
length 1).

Centres: x belongs to the centre with the smallest offset − 2 x·centre, which is ‖x − centre‖² but
for a term that all have in common. A centre c is as far away as the plane half-way between c and
the centre o that x belongs to: (‖x − c‖² − ‖x − o‖²) / (2‖c − o‖).

A row is looked at by itself, so equal rows have equal bits wherever they are. Of its neighbours
those with the nearest planes, or centres, are kept; −1: there are no more.
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.rows import row_dot, row_dots

_TINY = 1e-300


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
    for k in range(cells.shape[0]):
        cells[k, :] = -1
        gaps[k, :] = np.inf
        node = root
        while node >= 0:
            side = _side(X, first + k, tree, node)
            beyond = 1 if side > 0.0 else 0
            if abs(side) < gaps[k, -1]:
                other = _descend(X, first + k, tree, tree.children[node, 1 - beyond])
                _insert(cells[k], gaps[k], other, abs(side))
            node = tree.children[node, beyond]
        cells[k, 0], gaps[k, 0] = -1 - node, 0.0


@compiled
def nearest_centres(
    X: Any, centres: Any, columns: Any, offsets: Any, first: int, cells: Any, gaps: Any
) -> None:
    """Find the own centre of each row, and the neighbours that are nearest.

    ``columns`` are the centres once more, one in each column.
    """
    count, width = centres.shape
    distances = np.empty(count)
    for k in range(cells.shape[0]):
        cells[k, :] = -1
        gaps[k, :] = np.inf
        distances[:] = 0.0
        row_dots(X, first + k, columns, distances)
        own = 0
        for c in range(count):
            distances[c] = offsets[c] - 2.0 * distances[c]
            if distances[c] < distances[own]:
                own = c
        cells[k, 0], gaps[k, 0] = own, 0.0
        for c in range(count):
            if c != own:
                _insert(cells[k], gaps[k], c, distances[c] - distances[own])
        for at in range(1, cells.shape[1]):
            if cells[k, at] >= 0:
                apart = 0.0
                for j in range(width):
                    apart += (centres[cells[k, at], j] - centres[own, j]) ** 2
                gaps[k, at] /= 2.0 * max(np.sqrt(apart), _TINY)
