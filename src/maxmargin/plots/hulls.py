"""Convex hulls in the plane."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def hull(points: Floats) -> Floats:
    """Return the corners of the convex hull of points in the plane, counter-clockwise.

    One point has one corner, points on a line have two. By Andrew's monotone chain: the lower
    side from left to right, then the upper side back.
    """
    ordered = np.unique(points, axis=0)
    if len(ordered) < 3:
        return ordered
    # Cast to lists: single numbers of arrays are slow to get at.
    lower = _side(ordered.tolist())
    upper = _side(ordered[::-1].tolist())
    return np.array(lower[:-1] + upper[:-1])


def _side(ordered: list[list[float]]) -> list[list[float]]:
    """Return the points of one side: turning left all the way."""
    side: list[list[float]] = []
    for x, y in ordered:
        while len(side) > 1:
            (x0, y0), (x1, y1) = side[-2:]
            if (x1 - x0) * (y - y0) > (y1 - y0) * (x - x0):
                break
            side.pop()
        side.append([x, y])
    return side
