"""Level sets of a function of the plane, and the borders between regions, as polylines.

Lines are found by contourpy from values on a grid, between whose places a function is taken as
linear. ``refine`` moves their vertices to where the function itself has its level.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.interpolate import RegularGridInterpolator

try:
    from contourpy import contour_generator
except ImportError:
    raise ImportError("the studio needs the package contourpy: pip install contourpy") from None

from maxmargin._typing import Floats
from maxmargin.studio.scene import View

Function = Callable[[Floats], Floats]

_ON_PLACE = 1e-9  # of an edge of the grid: nearer is on a place of it
_HALVINGS = 8  # of an edge of the grid


class Grid(NamedTuple):
    """Places in the plane, in columns x and rows y, both ascending."""

    x: Floats
    y: Floats

    @classmethod
    def of(cls, view: View, cols: int, rows: int) -> "Grid":
        """Return a grid whose outermost places are on the edges of what is seen."""
        return cls(
            np.linspace(view.left, view.right, cols), np.linspace(view.bottom, view.top, rows)
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.y), len(self.x)

    def points(self) -> Floats:
        """Return all places, row by row, as an array (rows · columns, 2)."""
        return np.column_stack([np.tile(self.x, len(self.y)), np.repeat(self.y, len(self.x))])


def trace_levels(grid: Grid, values: Floats, levels: Sequence[float]) -> list[list[Floats]]:
    """Return for each level the lines on which a function has that value, as arrays (m, 2).

    Parameters
    ----------
    grid : Grid
        Where the function was evaluated; what is smaller than a cell may be missed.
    values : ndarray of shape (rows, columns), or flat
        Its values there.
    levels : sequence of float
        The levels. A closed line ends with its first vertex.
    """
    generator = contour_generator(*grid, np.reshape(values, grid.shape))
    return [[np.asarray(line) for line in generator.lines(level)] for level in levels]


def refine(line: Floats, grid: Grid, function: Function) -> Floats:
    """Return a line f = 0 whose vertices, which are on edges of the grid, are where f changes sign.

    The function takes points (m, 2); it may be steep, or a step.
    """
    low, high = line.copy(), line.copy()
    for axis, places in enumerate(grid):
        steps = (line[:, axis] - places[0]) / (places[1] - places[0])
        moving = np.abs(steps - steps.round()) > _ON_PLACE
        k = np.clip(steps[moving].astype(int), 0, len(places) - 2)
        low[moving, axis], high[moving, axis] = places[k], places[k + 1]
    positive = function(low) > 0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        same = ((function(middle) > 0) == positive)[:, np.newaxis]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return 0.5 * (low + high)


def trace_borders(grid: Grid, function: Function) -> list[Floats]:
    """Return the lines between the regions in which one of three or more scores is the largest.

    Parameters
    ----------
    grid : Grid
        Where the scores are computed.
    function : callable
        Takes points (m, 2) and returns scores (m, n_classes), which may be counts of votes.
    """
    found: list[Floats] = []
    scores = function(grid.points()).reshape(*grid.shape, -1)
    for i, j in combinations(range(scores.shape[2]), 2):
        first, second = scores[..., i], scores[..., j]
        lead = 0.5 * (first + second) - np.delete(scores, [i, j], axis=2).max(axis=2)
        ahead = RegularGridInterpolator((grid.y, grid.x), lead, bounds_error=False, fill_value=None)
        for coarse in trace_levels(grid, first - second, [0.0])[0]:
            line = refine(coarse, grid, partial(_compare, function, i, j))
            found += _keep_positive(line, ahead(line[:, ::-1]))
    return found


def _compare(function: Function, i: int, j: int, points: Floats) -> Floats:
    scores = function(points)
    return np.asarray(scores[:, i] - scores[:, j])


def _keep_positive(line: Floats, values: Floats) -> Iterator[Floats]:
    """Yield the parts of a line on which values at its vertices, linear between them, are > 0."""
    part: list[Floats] = []
    for k in range(len(line)):
        if k and (values[k - 1] > 0) != (values[k] > 0):
            share = values[k - 1] / (values[k - 1] - values[k])
            part.append(line[k - 1] + share * (line[k] - line[k - 1]))
        if values[k] > 0:
            part.append(line[k])
        elif part:
            yield np.array(part)
            part = []
    if part:
        yield np.array(part)
