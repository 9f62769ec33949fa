"""Points of two classes in the plane, and the part of a line that a window shows.

The line w·x + b = 0 passes through the foot c − (w·c + b) w/‖w‖² of the window's centre c, in the
direction (−w₂, w₁)/‖w‖. Walking from there needs no slope, so vertical lines are like any other. A
zero vector w has no line.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array

from maxmargin.geometry import Hyperplane
from maxmargin.plots.panels import check_label_per_row
from maxmargin.plots.style import grid_of_axes, ink, note, scatter, text, thinned

Floats = npt.NDArray[np.float64]
_WIDEST = 54  # characters of a remark over a narrow picture
_UNEVEN = 20.0  # sides of data so different in length that equal scales would leave a thread


class Planar(NamedTuple):
    """Points with two columns, their labels, the two classes and the names of the columns."""

    X: Floats
    y: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    feature_names: tuple[str, str]


class Window(NamedTuple):
    """What the axes show: x₁ and x₂ from ``low`` to ``high``, in one scale if ``equal``."""

    low: Floats
    high: Floats
    equal: bool


def planar(X: Any, y: Any, model: Any = None) -> Planar:
    """Check points in the plane with labels of two classes, and return them as arrays.

    A fitted model knows both classes, of which y may show one, and maybe the names of its columns.
    """
    names = getattr(model, "feature_names_in_", getattr(X, "columns", ("x₁", "x₂")))
    rows = X.toarray() if sp.issparse(X) else X
    points = np.asarray(check_array(rows, dtype=np.float64, input_name="X"))
    if points.shape[1] != 2:
        raise ValueError(
            f"X has {points.shape[1]} columns, but a line is drawn in a plane: choose 2 of them"
        )
    labels, _ = check_label_per_row(y, len(points))
    known = np.unique(labels) if model is None else np.asarray(model.classes_)
    if len(known) != 2:
        raise ValueError(f"y has {len(known)} classes, but a line has two sides: choose 2 of them")
    if len(strange := np.setdiff1d(labels, known)):
        raise ValueError(f"y contains {strange[0]!r}, which is not among {known.tolist()}")
    return Planar(points, labels, known, (str(names[0]), str(names[1])))


def signs(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Floats:
    """Return +1 for the second class and −1 for the first."""
    return np.where(np.asarray(y) == classes[1], 1.0, -1.0)


def window(points: Floats, equal: bool = False, room: float = 0.08) -> Window:
    """Return the smallest window around points, with some room.

    For equal scales the shorter side is widened to at least two thirds of the longer one. If the
    sides differ too much for that, the scales stay unequal, and the window says so.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    side = high - low
    # Where all are the same, the room must not be lost in a large value's rounding.
    side = np.where(side > 0, side, np.maximum(side.max() or 1.0, 1e-9 * np.abs(high)))
    equal = bool(equal and side.max() <= _UNEVEN * side.min())
    half = (0.5 + room) * (np.maximum(side, side.max() / 1.5) if equal else side)
    centre = 0.5 * low + 0.5 * high
    return Window(centre - half, centre + half, equal)


def segment(plane: Hyperplane, seen: Window) -> Floats | None:
    """Return both ends of the part of a line inside a window, or None if there is none."""
    if plane.norm == 0:
        return None
    foot = plane.project([0.5 * (seen.low + seen.high)])[0]
    along = np.array([-plane.normal[1], plane.normal[0]])
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = np.stack([(seen.low - foot) / along, (seen.high - foot) / along])
    for axis in np.flatnonzero(along == 0):
        inside = seen.low[axis] <= foot[axis] <= seen.high[axis]
        ways[:, axis] = (-np.inf, np.inf) if inside else np.nan
    start, end = ways.min(axis=0).max(), ways.max(axis=0).min()
    return foot + np.outer([start, end], along) if start < end else None


def draw_points(
    ax: Any, data: Planar, seen: Window, size: float = 14.0, longest: int = 28
) -> list[Any]:
    """Draw the points by class, or an open sample of them, and set limits and axis labels.

    Labels are cut to the longest that fits beside small axes.
    """
    shown = thinned(len(data.X))
    artists = scatter(ax, data.X[shown], data.y[shown], data.classes.tolist(), size=size)
    ax.set(xlim=(seen.low[0], seen.high[0]), ylim=(seen.low[1], seen.high[1]))
    first, second = (text(name, longest) for name in data.feature_names)
    ax.set(xlabel=first, ylabel=second)
    if seen.equal:
        ax.set_aspect("equal")
    return artists


def draw_line(ax: Any, plane: Hyperplane, seen: Window, **how: Any) -> Any:
    """Draw the part of a line inside a window and return it, or None if there is none."""
    part = segment(plane, seen)
    return None if part is None else ax.plot(*part.T, **how)[0]


def draw_faded(ax: Any, planes: list[Hyperplane], seen: Window) -> Any:
    """Draw lines thin, the first ones faint, and return their collection."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    parts = [
        (k, part) for k, plane in enumerate(planes) if (part := segment(plane, seen)) is not None
    ]
    colours = [to_rgba(ink(ax), 0.12 + 0.5 * k / len(planes)) for k, _ in parts]
    lines = LineCollection([part for _, part in parts], colors=colours, linewidths=0.8)
    if parts:
        ax.plot([], [], color=ink(ax), alpha=0.4, linewidth=0.8, label="earlier lines")
    ax.add_collection(lines, autolim=False)
    return lines


def small_multiples(count: int, title: str) -> Any:
    """Return axes for so many small pictures in one figure, at most three beside each other."""
    columns = min(count, 3)
    rows = -(-count // columns)
    axes = grid_of_axes(rows, columns, (2.0 * columns + 0.3, 2.0 * rows + 0.7))
    for ax in axes.flat[count:]:
        ax.remove()
    axes.flat[0].figure.suptitle(title, fontsize=10)
    return axes


def remarks(n_points: int, *more: str) -> list[str]:
    """Return what the reader must know: how many points were left out, and more if not empty."""
    shown = len(thinned(n_points))
    sampled = f"{shown:,} of {n_points:,} points" if shown < n_points else ""
    return [remark for remark in (sampled, *more) if remark]


def write_remarks(ax: Any, words: list[str]) -> None:
    """Write remarks beside the axes, if there are any."""
    if words:
        together = "; ".join(words)
        note(ax, together if len(together) <= _WIDEST else "\n".join(words))


def ring(ax: Any, point: Any) -> Any:
    """Draw a circle around one point."""
    return ax.scatter(*np.reshape(point, (2, 1)), s=90, facecolors="none", edgecolors=ink(ax))
