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
    """The part of the plane that axes show, from ``low`` to ``high``, in one scale if ``equal``."""

    low: Floats
    high: Floats
    equal: bool

    def foot(self, plane: Hyperplane) -> tuple[Floats, Floats]:
        """Return the point of a line nearest to the centre, and the direction of the line."""
        foot = plane.project([0.5 * (self.low + self.high)])[0]
        return foot, np.array([-plane.normal[1], plane.normal[0]])


def pad(points: Floats, share: float = 0.08) -> tuple[Floats, Floats]:
    """Return the lowest and the highest corner of a box around points, with a margin.

    The margin is a share of each side; a side of length 0 gets the length of the longest one.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    side = high - low
    # If all values are the same, the margin must not be lost in the rounding of a large value.
    side = np.where(side > 0, side, np.maximum(side.max() or 1.0, 1e-9 * np.abs(high)))
    centre, half = 0.5 * low + 0.5 * high, (0.5 + share) * side
    return centre - half, centre + half


def window(points: Floats, equal: bool = False, share: float = 0.08) -> Window:
    """Return the smallest window around points, with a margin.

    For equal scales the shorter side is widened to at least two thirds of the longer one. If the
    sides differ too much for that, the scales stay unequal, and the window says so.
    """
    low, high = pad(points, share)
    centre, half = 0.5 * low + 0.5 * high, 0.5 * (high - low)
    equal = bool(equal and half.max() <= _UNEVEN * half.min())
    if equal:
        half = np.maximum(half, half.max() / 1.5)
    return Window(centre - half, centre + half, equal)


def segment(plane: Hyperplane, seen: Window) -> Floats | None:
    """Return both ends of the part of a line inside a window, or None if there is none."""
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
