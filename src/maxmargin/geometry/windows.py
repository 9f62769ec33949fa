"""The part of the plane that a picture shows, and the part of a line inside it.

The line w·x + b = 0 passes through the foot c − (w·c + b) w/‖w‖² of the window's centre c, in the
direction (−w₂, w₁)/‖w‖. Walking from there needs no slope, so vertical lines are like any other. A
zero vector w has no line.
"""

from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.geometry.planes import Hyperplane

_UNEVEN = 20.0  # ratio of the data's sides above which equal scales would leave a thin strip


class Window(NamedTuple):
    """The part of the plane that axes show.

    Parameters
    ----------
    low, high : ndarray of shape (2,)
        Its lower left and upper right corner.
    equal : bool
        Whether both axes have one scale.
    """

    low: Floats
    high: Floats
    equal: bool

    def foot(self, plane: Hyperplane) -> tuple[Floats, Floats]:
        """Return the point of a line nearest to the centre, and the direction of the line."""
        foot = plane.project([0.5 * (self.low + self.high)])[0]
        return foot, np.array([-plane.normal[1], plane.normal[0]])


def pad(points: Floats, share: float = 0.08) -> tuple[Floats, Floats]:
    """Return the lowest and the highest corner of a box around points, with a margin.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        Points.
    share : float, default=0.08
        The margin, as a share of each side. A side of length 0 gets the length of the longest one.

    Returns
    -------
    low, high : ndarray of shape (d,)
        The corners.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    side = high - low
    # If all values are the same, the margin must not be lost in the rounding of a large value.
    side = np.where(side > 0, side, np.maximum(side.max() or 1.0, 1e-9 * np.abs(high)))
    centre, half = 0.5 * low + 0.5 * high, (0.5 + share) * side
    return centre - half, centre + half


def window(points: Floats, equal: bool = False, share: float = 0.08) -> Window:
    """Return the smallest window around points, with a margin.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
        Points.
    equal : bool, default=False
        Whether to ask for equal scales. The shorter side is then widened to at least two thirds of
        the longer one. If the sides differ too much for that, the scales stay unequal.
    share : float, default=0.08
        The margin, as a share of each side.

    Returns
    -------
    Window
        The window.
    """
    low, high = pad(points, share)
    centre, half = 0.5 * low + 0.5 * high, 0.5 * (high - low)
    equal = bool(equal and half.max() <= _UNEVEN * half.min())
    if equal:
        half = np.maximum(half, half.max() / 1.5)
    return Window(centre - half, centre + half, equal)


def segment(plane: Hyperplane, seen: Window) -> Floats | None:
    """Return both ends of the part of a line inside a window.

    Parameters
    ----------
    plane : Hyperplane
        The line w·x + b = 0 in the plane.
    seen : Window
        The window.

    Returns
    -------
    ndarray of shape (2, 2) or None
        The ends; None if the line does not cross the window.
    """
    if plane.norm == 0:
        return None
    foot, along = seen.foot(plane)
    start, end = -np.inf, np.inf
    for axis in (0, 1):
        sides = np.array([seen.low[axis], seen.high[axis]]) - foot[axis]
        if along[axis] != 0:
            first, last = sorted(sides / along[axis])
            start, end = max(start, first), min(end, last)
        elif sides[0] > 0 or sides[1] < 0:
            return None
    if not start < end:
        return None
    return np.clip(foot + np.outer([start, end], along), seen.low, seen.high)
