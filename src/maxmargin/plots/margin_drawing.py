"""The parts of a picture of a margin: lines, contours, regions, slack and support vectors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.plots.style import GREY, RASTER_FROM, WRONG, colour, ink

Floats = npt.NDArray[np.float64]
Box = tuple[float, float, float, float]
Grid = tuple[Floats, Floats, npt.NDArray[Any]]

_RING = 46.0  # size of a support vector's mark without slack
_MOST_SLACK = 4.0  # from here on marks do not grow any more
_MANY = 300  # support vectors of a kind from which marks get smaller
# of laying out, at most
_SKEWED = 4.0  # ratio of spans from which axes of equal scale leave no room


def draw_lines(ax: Any, w: Floats, b: float, levels: Sequence[float], box: Box) -> dict[float, Any]:
    """Draw f = w·x + b = level from edge to edge of the box, and return the lines in it."""
    lines = {}
    for level in levels:
        ends = clipped(w, b - level, box)
        if ends is not None:
            (lines[level],) = ax.plot(*ends.T, **_pen(ax, level))
            if level == 0.0:
                lines[level].set_label("f = 0")
            elif sum(map(abs, lines)) == 1.0:  # both lines of the margin are one entry
                lines[level].set_label(f"f = ±1, {1.0 / float(np.hypot(*w)):.3g} away")
    return lines


def clipped(w: Floats, b: float, box: Box) -> Floats | None:
    """Return the two points where w·x + b = 0 enters and leaves a box, or None if it is outside.

    Examples
    --------
    >>> clipped(np.array([1.0, 1.0]), -1.0, (0.0, 2.0, 0.0, 2.0))
    array([[0., 1.],
           [1., 0.]])
    """
    length = float(np.hypot(*w))
    if length == 0.0:
        return None
    low, high = np.array(box[::2]), np.array(box[1::2])
    normal = w / length
    middle = 0.5 * (low + high)
    foot = middle - (float(normal @ middle) + b / length) * normal
    along = np.array([normal[1], -normal[0]])
    moving = along != 0
    if ((foot < low) | (foot > high))[~moving].any():
        return None
    steps = np.sort(
        [(low - foot)[moving] / along[moving], (high - foot)[moving] / along[moving]], axis=0
    )
    start, end = steps[0].max(), steps[1].min()
    if start >= end:
        return None
    return np.asarray(foot + np.outer(np.sort([start, end]), along))


def draw_contours(ax: Any, grid: Grid, levels: Sequence[float]) -> Any:
    """Draw the lines of f on a grid, as many as there are in it; None if there is none."""
    x1, x2, f = grid
    inside = [level for level in levels if f.min() < level < f.max()]
    if not inside:
        return None
    pens = [_pen(ax, level) for level in inside]
    contours = ax.contour(
        x1,
        x2,
        f,
        levels=inside,
        colors=ink(ax),
        linestyles=[pen["linestyle"] for pen in pens],
        linewidths=[pen["linewidth"] for pen in pens],
    )
    # Contours do not enter legends by themselves.
    named = {"f = 0" if level == 0.0 else "f = ±1": _pen(ax, level) for level in inside}
    for label, pen in named.items():
        ax.plot([], [], label=label, **pen)
    return contours


def draw_regions(ax: Any, grid: Grid, n_classes: int) -> Any:
    """Fill the region of each class, and draw the lines between them."""
    from matplotlib.colors import ListedColormap

    x1, x2, number = grid
    ax.pcolormesh(
        x1,
        x2,
        number,
        cmap=ListedColormap([colour(k) for k in range(n_classes)]),
        vmin=-0.5,
        vmax=n_classes - 0.5,
        alpha=0.18,
        shading="nearest",
        rasterized=True,
        linewidth=0,
    )
    drawn = []
    for k in np.unique(number)[1:]:  # each line once is enough
        line = {"colors": ink(ax), "linewidths": 1.2}
        drawn.append(ax.contour(x1, x2, (number >= k) * 1.0, levels=[0.5], **line))
    return drawn


def draw_slack(ax: Any, points: Floats, ends: Floats) -> Any:
    """Draw a segment from each point to where its slack ends."""
    from matplotlib.collections import LineCollection

    segments = LineCollection(
        np.stack([points, ends], axis=1).tolist(),
        colors=ink(ax),
        linewidths=0.8,
        linestyles=":",
        alpha=0.8,
        zorder=1.5,
        rasterized=len(points) > RASTER_FROM,
        label="slack, ξ/‖w‖ long",
    )
    return ax.add_collection(segments, autolim=False)


def draw_support(
    ax: Any, points: Floats, kinds: npt.NDArray[np.str_], slack: Floats | None
) -> dict[str, Any]:
    """Mark support vectors by their kind; the marks grow with the slack, if that is given."""
    drawn = {}
    for kind, (mark, paint, words) in _marks(ax).items():
        chosen = kinds == kind
        if not chosen.any():
            continue
        grow = 1.0 if slack is None else 1.0 + np.minimum(slack[chosen], _MOST_SLACK)
        shrink = min(1.0, max(0.2, _MANY / int(chosen.sum())))
        fill = {"c": paint} if mark == "x" else {"facecolors": "none", "edgecolors": paint}
        drawn[kind] = ax.scatter(
            *points[chosen].T,
            s=_RING * grow * shrink,
            marker=mark,
            linewidths=1.2 * shrink**0.5,
            label=f"{words} ({int(chosen.sum()):,})",
            rasterized=int(chosen.sum()) > RASTER_FROM,
            zorder=0.9 if mark == "x" else 3,  # behind its point, whose class is to be seen
            **fill,
        )
    return drawn


def even_scales(ax: Any, box: Box) -> bool:
    """Give both axes the same scale where that leaves room for the picture; return whether."""
    ax.set(xlim=box[:2], ylim=box[2:])
    ratio = (box[1] - box[0]) / (box[3] - box[2])
    even = 1.0 / _SKEWED <= ratio <= _SKEWED
    ax.set_aspect("equal" if even else "auto")
    return even


def _pen(ax: Any, level: float) -> dict[str, Any]:
    return {
        "color": ink(ax),
        "linestyle": "--" if level else "-",
        "linewidth": 1.0 if level else 1.6,
        "zorder": 4,
    }


def _marks(ax: Any) -> dict[str, tuple[str, str, str]]:
    """Return mark, colour and words of each kind of support vector."""
    return {
        "margin": ("o", ink(ax), "on the margin"),
        "inside": ("D", GREY, "inside"),
        "wrong side": ("x", WRONG, "wrong side"),
        "outside": ("x", ink(ax), "outside"),
    }
