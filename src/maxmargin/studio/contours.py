"""Level sets of a function of the plane, and the borders between regions, as polylines.

Marching squares find the edges of a grid that a line crosses and join them cell by cell; a cell
whose line could run in two ways (a saddle) is decided as a bilinear function would be. The crossing
on each edge is then found by Chandrupatla's method, a bracketed mixture of inverse quadratic
interpolation and bisection: for all edges and all levels at once, so that a picture takes a handful
of calls of the function. Vertices therefore lie on the line itself and not only near it.

T. R. Chandrupatla (1997), Advances in Engineering Software 28, 145–149.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.studio.scene import View

Function = Callable[[Floats], Floats]
Winner = Callable[[Floats], npt.NDArray[np.intp]]

_ROUNDING = 1e-12  # of values at the ends of an edge: less is zero
_SEARCHED = 1e-6  # tolerances up to which it is searched where regions meet
_STEPS = 60  # of the root finder, at most: more than bisection needs


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


# ------------------------------------------------------------------- level sets


def trace_levels(
    function: Function,
    grid: Grid,
    values: Floats,
    levels: Sequence[float],
    tol: float = 1e-8,
) -> list[list[Floats]]:
    """Return for each level the lines on which a function has that value, as arrays (m, 2).

    Parameters
    ----------
    function : callable
        Takes points (m, 2) and returns numbers (m,).
    grid : Grid
        Where it was evaluated; what is smaller than a cell may be missed.
    values : ndarray of shape (rows, columns)
        Its values there.
    levels : sequence of float
        The levels. A closed line ends with its first vertex.
    tol : float
        How near vertices are to the line, as a share of an edge of the grid.
    """
    shifted = values - np.asarray(levels, dtype=np.float64)[:, np.newaxis, np.newaxis]
    crossed = _crossed(shifted >= 0)
    where = np.nonzero(crossed)
    level, cells = where[0], np.column_stack(where[1:])
    wanted = np.asarray(levels, dtype=np.float64)
    start, end, f_start, f_end = _edge_ends(grid, shifted, level, cells)
    span = end - start

    def along(share: Floats, chosen: Ints) -> Floats:
        places = start[chosen] + share[:, np.newaxis] * span[chosen]
        return np.asarray(function(places) - wanted[level[chosen]])

    share = find_roots(along, f_start, f_end, tol)
    vertices = start + share[:, np.newaxis] * span
    number = np.full(crossed.shape, -1, dtype=np.int64)
    number[where] = np.arange(len(level))
    links, owner = _links(number, shifted)
    return [[vertices[chain] for chain in join(links[owner == k])] for k in range(len(levels))]


def _crossed(sides: npt.NDArray[Any]) -> Flags:
    """Return which edges have ends on different sides, of shape (levels, 2, rows, columns).

    Edge (0, i, j) runs from place (i, j) to the right, edge (1, i, j) upwards.
    """
    crossed = np.zeros((len(sides), 2, *sides.shape[1:]), dtype=bool)
    crossed[:, 0, :, :-1] = sides[:, :, :-1] != sides[:, :, 1:]
    crossed[:, 1, :-1, :] = sides[:, :-1, :] != sides[:, 1:, :]
    return crossed


def _edge_ends(
    grid: Grid, values: npt.NDArray[Any], level: Ints, edges: Ints
) -> tuple[Floats, Floats, npt.NDArray[Any], npt.NDArray[Any]]:
    """Return where edges start and end, and the values there."""
    upwards, i, j = edges.T
    to_i, to_j = i + upwards, j + 1 - upwards
    start = np.column_stack([grid.x[j], grid.y[i]])
    end = np.column_stack([grid.x[to_j], grid.y[to_i]])
    return start, end, values[level, i, j], values[level, to_i, to_j]


def _cell_edges(number: Ints) -> Ints:
    """Return the numbers of the edges of each cell: bottom, right, top, left; −1 if not crossed."""
    across, up = number[:, 0], number[:, 1]
    return np.stack(
        [across[:, :-1, :-1], up[:, :-1, 1:], across[:, 1:, :-1], up[:, :-1, :-1]], axis=-1
    )


def _links(number: Ints, values: Floats) -> tuple[Ints, Ints]:
    """Return pairs of edges that a line joins within a cell, and the level of each pair."""
    edges = _cell_edges(number)
    count = (edges >= 0).sum(axis=-1)
    simple = np.nonzero(count == 2)
    ends = edges[simple]
    saddles = np.nonzero(count == 4)
    owner, i, j = saddles
    corner, right_of, above, opposite = (
        values[owner, i + y, j + x] for y, x in ((0, 0), (0, 1), (1, 0), (1, 1))
    )
    # The value at the saddle of the bilinear function with these corners. If it is on the side of
    # the lower left corner, that is connected with the upper right one, and the lines cut off the
    # other two.
    middle = (corner * opposite - right_of * above) / (corner + opposite - right_of - above)
    through = (middle >= 0) == (corner >= 0)
    bottom, right, top, left = edges[saddles].T
    pairs = [
        ends[ends >= 0].reshape(-1, 2),
        np.column_stack([bottom, np.where(through, right, left)]),
        np.column_stack([top, np.where(through, left, right)]),
    ]
    return np.concatenate(pairs), np.concatenate([simple[0], owner, owner])


def find_roots(
    function: Callable[[Floats, Ints], Floats], f_start: Floats, f_end: Floats, tol: float = 1e-8
) -> Floats:
    """Return where functions of [0, 1], with values of different signs at its ends, are zero.

    ``function(t, chosen)`` returns the values at t of the functions with the numbers ``chosen``.
    The result is the better end of a bracket of length 2·tol or less, or a place at which the value
    is a rounding error beside those at the ends.
    """
    n = len(f_start)
    a, b, c = np.zeros(n), np.ones(n), np.ones(n)
    fa, fb = np.array(f_start, dtype=np.float64), np.array(f_end, dtype=np.float64)
    fc, nothing = fb.copy(), _ROUNDING * np.maximum(np.abs(fa), np.abs(fb))
    # A straight line between the ends, to begin with.
    t = np.clip(fa / np.where(fa == fb, 1.0, fa - fb), tol, 1 - tol)
    left = np.flatnonzero((fa != 0) & (fb != 0))
    for _ in range(_STEPS):
        if not len(left):
            break
        x = a[left] + t[left] * (b[left] - a[left])
        fx = function(x, left)
        same = np.sign(fx) == np.sign(fa[left])
        c[left], fc[left] = np.where(same, a[left], b[left]), np.where(same, fa[left], fb[left])
        b[left], fb[left] = np.where(same, b[left], a[left]), np.where(same, fb[left], fa[left])
        a[left], fa[left] = x, fx
        width = np.abs(b[left] - a[left])
        going = (np.abs(fx) > nothing[left]) & (width > 2 * tol)
        left, limit = left[going], tol / width[going]
        t[left] = np.clip(
            _interpolate(a[left], b[left], c[left], fa[left], fb[left], fc[left]), limit, 1 - limit
        )
    return np.where(np.abs(fa) <= np.abs(fb), a, b)


def _interpolate(a: Floats, b: Floats, c: Floats, fa: Floats, fb: Floats, fc: Floats) -> Floats:
    """Return the share of the way from a to b at which to look next."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        t = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        trusted = (phi * phi < xi) & ((1 - phi) ** 2 < 1 - xi) & np.isfinite(t)
    return np.where(trusted, t, 0.5)


# ------------------------------------------------------------------- borders between regions


class Border(NamedTuple):
    """A line between the regions of two classes, by their numbers."""

    pair: tuple[int, int]
    line: Floats


def trace_borders(
    winner: Winner, grid: Grid, labels: npt.NDArray[np.intp], tol: float = 1e-8
) -> list[Border]:
    """Return the lines between regions.

    Parameters
    ----------
    winner : callable
        Takes points (m, 2) and returns the number of the class that each belongs to.
    grid : Grid
        Where it was asked.
    labels : ndarray of shape (rows, columns)
        What it said there.
    tol : float
        As in ``trace_levels``. If it is above 1e-6, as for winners that take long to find, points
        at which three regions meet are not searched for: borders end in the middle of the cell.
    """
    halvings = math.ceil(-math.log2(tol))
    sides = labels[np.newaxis]
    crossed = _crossed(sides)
    where = np.nonzero(crossed)
    level, edges = where[0], np.column_stack(where[1:])
    if not len(level):
        return []
    start, end, first, last = _edge_ends(grid, sides, level, edges)
    vertices, pairs = _halve(winner, start, end, first, last, halvings)
    number = np.full(crossed.shape, -1, dtype=np.int64)
    number[where] = np.arange(len(level))
    links, junctions = _link_regions(
        winner, grid, number, sides, pairs, halvings if tol <= _SEARCHED else 0
    )
    vertices = np.concatenate([vertices, junctions])
    found = []
    for pair in np.unique(pairs, axis=0).tolist():
        own = links[(pairs[links[:, 0]] == pair).all(axis=1)]
        found += [Border((pair[0], pair[1]), vertices[chain]) for chain in join(own)]
    return found


def _halve(
    winner: Winner, start: Floats, end: Floats, first: Ints, last: Ints, halvings: int
) -> tuple[Floats, Ints]:
    """Return where the winner changes on each edge, and the two classes that meet there."""
    low, high = start, end
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        there = winner(middle)
        same = there == first
        low = np.where(same[:, np.newaxis], middle, low)
        high = np.where(same[:, np.newaxis], high, middle)
        last = np.where(same, last, there)
    return 0.5 * (low + high), np.sort(np.column_stack([first, last]), axis=1)


def _link_regions(
    winner: Winner,
    grid: Grid,
    number: Ints,
    sides: npt.NDArray[np.intp],
    pairs: Ints,
    halvings: int,
) -> tuple[Ints, Floats]:
    """Return pairs of vertices that a border joins, and the points at which three regions meet.

    The first of a pair is an edge, whose classes are those of the border.
    """
    edges = _cell_edges(number)[0]
    count = (edges >= 0).sum(axis=-1)
    i, j = np.nonzero(count >= 2)
    edges, count = edges[i, j], count[i, j]
    two = count == 2
    ends = edges[two][edges[two] >= 0].reshape(-1, 2)
    same = (pairs[ends[:, 0]] == pairs[ends[:, 1]]).all(axis=1)
    corners = np.stack([sides[0, i + y, j + x] for y, x in ((0, 0), (0, 1), (1, 1), (1, 0))], -1)
    saddle = (corners[:, 0] == corners[:, 2]) & (corners[:, 1] == corners[:, 3])
    bottom, right, top, left = edges[saddle].T
    centres = np.column_stack(
        [0.5 * (grid.x[j] + grid.x[j + 1]), 0.5 * (grid.y[i] + grid.y[i + 1])]
    )
    through = winner(centres[saddle]) == corners[saddle, 0] if saddle.any() else saddle[saddle]
    # Three classes at the corners, or a third one that reaches between two of them.
    meeting = ~saddle & ~two
    meeting[two] = ~same
    points, found = _meet(winner, grid, centres[meeting], halvings)
    cells = edges[meeting][found]
    junction = np.broadcast_to(np.arange(len(cells))[:, np.newaxis] + len(pairs), cells.shape)
    links = [
        ends[same],
        np.column_stack([bottom, np.where(through, right, left)]),
        np.column_stack([top, np.where(through, left, right)]),
        np.column_stack([cells[cells >= 0], junction[cells >= 0]]),
    ]
    return np.concatenate(links), points[found]


def _meet(winner: Winner, grid: Grid, centres: Floats, halvings: int) -> tuple[Floats, Flags]:
    """Return the point near the centre of each cell at which three regions meet, if there is one.

    Three regions meet inside a square if all three pairs of them are neighbours on its outline. A
    square, first one of three times the size of a cell, is searched at 17 × 17 places. The squares
    of half its size with such an outline all have the point inside: their mean is searched next. A
    region that is a narrow wedge there, below some 40°, may escape the search.
    """
    size = 3 * np.array([grid.x[1] - grid.x[0], grid.y[1] - grid.y[0]])
    low = centres - 0.5 * size
    found = np.ones(len(low), dtype=bool)
    for _ in range(halvings + 2 if halvings and len(low) else 0):
        places = low[:, np.newaxis] + _PLACES * (size / 16)
        meet = _three_meet(winner(places.reshape(-1, 2)).reshape(-1, 289)[:, _OUTLINES])
        count = meet.sum(axis=1)
        found &= count > 0
        start = meet @ _PLACES[_OUTLINES[:, 0]] / np.maximum(count, 1)[:, np.newaxis]
        low, size = low + start * (size / 16), 0.5 * size
    return low + 0.5 * size, found


# Places of the square that is searched, and the outlines of all squares of half its size.
_PLACES = np.array([[x, y] for y in range(17) for x in range(17)])
_OUTLINE = [(k, 0) for k in range(8)] + [(8, k) for k in range(8)]
_OUTLINE += [(8 - k, 8) for k in range(8)] + [(0, 8 - k) for k in range(8)]
_OUTLINES = np.array(
    [[17 * (y + dy) + x + dx for dx, dy in _OUTLINE] for y in range(9) for x in range(9)]
)


def _three_meet(around: npt.NDArray[np.intp]) -> Flags:
    """Return on which outlines every two of three classes are neighbours."""
    following = np.roll(around, -1, axis=-1)
    n = int(around.max(initial=0)) + 1
    beside = np.zeros((*around.shape[:-1], n, n), dtype=bool)
    for a, b in combinations(range(n), 2):
        side = ((around == a) & (following == b)) | ((around == b) & (following == a))
        beside[..., a, b] = side.any(axis=-1)
    threes = [
        beside[..., a, b] & beside[..., b, c] & beside[..., a, c]
        for a, b, c in combinations(range(n), 3)
    ]
    return np.any(threes, axis=0) if threes else np.zeros(around.shape[:-1], dtype=bool)


# ------------------------------------------------------------------- joining


def join(links: Ints) -> list[list[int]]:
    """Return the chains that links between numbers make; a closed one ends where it begins."""
    neighbours: dict[int, list[int]] = {}
    for first, second in links.tolist():
        neighbours.setdefault(first, []).append(second)
        neighbours.setdefault(second, []).append(first)
    ends = [number for number, others in neighbours.items() if len(others) != 2]
    chains = []
    for start in [*ends, *neighbours]:  # open lines first: what is left is closed
        while neighbours[start]:
            chains.append(_walk(neighbours, start))
    return chains


def _walk(neighbours: dict[int, list[int]], start: int) -> list[int]:
    """Return the chain from a number on, and take its links away."""
    chain, here = [start], start
    while neighbours[here]:
        there = neighbours[here].pop()
        neighbours[there].remove(here)
        chain.append(there)
        here = there
    return chain
