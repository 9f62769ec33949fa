"""Points of two classes in the plane, the lines and bands that a window shows, and hulls."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array

from maxmargin._typing import Floats
from maxmargin.geometry import Hyperplane, Window, segment
from maxmargin.plots import style
from maxmargin.plots.style import foreground
from maxmargin.validation.data import check_labels

Grid = tuple[Floats, Floats, npt.NDArray[Any]]

_WIDEST = 54  # characters of a note above a narrow figure


class Planar(NamedTuple):
    """Points with two columns, their labels, the two classes and the names of the columns."""

    X: Floats
    y: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    feature_names: tuple[str, str]


def check_planar(X: Any, y: Any, model: Any = None) -> Planar:
    """Return points with two columns and labels of two classes as arrays; refuse anything else.

    A fitted model knows both classes, even if y has only one, and maybe the names of its columns.
    """
    names = getattr(model, "feature_names_in_", getattr(X, "columns", ("x₁", "x₂")))
    rows = X.toarray() if sp.issparse(X) else X
    points = np.asarray(check_array(rows, dtype=np.float64, input_name="X"))
    if points.shape[1] != 2:
        raise ValueError(
            f"X has {points.shape[1]} columns, but the points are drawn in a plane: choose 2 "
            "columns."
        )
    labels = check_labels(y, len(points))
    known = np.unique(labels) if model is None else np.asarray(model.classes_)
    if len(known) != 2:
        raise ValueError(
            f"y has {len(known)} classes, but a boundary has two sides: choose 2 classes, or "
            "compare one with the rest, y == label."
        )
    if len(unknown := np.setdiff1d(labels, known)):
        raise ValueError(f"y contains {unknown[0]!r}, which is not among {known.tolist()}")
    return Planar(points, labels, known, (str(names[0]), str(names[1])))


def signs(y: npt.NDArray[Any], classes: Any) -> Floats:
    """Return −1 for the first of two classes, +1 for the second, and 0 for any other label."""
    y = np.asarray(y)
    return np.where(y == classes[1], 1.0, np.where(y == classes[0], -1.0, 0.0))


def column_number(X: Any, feature: Any) -> int:
    """Return the number of a column of a table, which may be given by its name."""
    known: list[Any] = list(X.columns) if hasattr(X, "columns") else []
    if feature in known:
        return known.index(feature)
    whole = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if whole and -X.shape[1] <= feature < X.shape[1]:
        return int(feature % X.shape[1])
    kind = "the names of its columns or " if known else ""
    raise ValueError(
        f"features: {feature!r:.60} is not in X; take {kind}numbers from 0 to {X.shape[1] - 1}"
    )


def columns(X: Any, chosen: Sequence[int]) -> Floats:
    """Return some columns of an array, a sparse matrix or a frame, as dense numbers."""
    if sp.issparse(X):
        return np.asarray(X.tocsc()[:, chosen].toarray(), dtype=np.float64)
    found = np.empty((X.shape[0], len(chosen)))
    for place, k in enumerate(chosen):
        values = X.iloc[:, k] if hasattr(X, "iloc") else X[:, k]
        try:
            found[:, place] = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as wrong:
            raise ValueError(
                f"column {style.column_names(X, X.shape[1])[k]!r:.60} of X does not hold numbers, "
                "so it cannot be drawn: choose numeric features only, or view='margin' of a "
                "MarginDisplay"
            ) from wrong
    return found


def hull_corners(points: Floats) -> style.Rows:
    """Return which points are the corners of their convex hull, counter-clockwise.

    Equal points have one corner, and points on a line have two.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(ConvexHull(points).vertices, dtype=np.intp)
    except (QhullError, ValueError):  # fewer than three points, or all on a line
        along = points[:, np.argmax(np.ptp(points, axis=0))]
        return np.unique([np.argmin(along), np.argmax(along)])


def draw_points(
    ax: Any, data: Any, seen: Window, size: float = 14.0, longest: int = 28
) -> list[Any]:
    """Draw points by class, or a sample of them, and set limits and axis labels.

    The data have the attributes of ``Planar``; ``longest`` is the number of characters that fit
    beside the axes.
    """
    shown = style.thin(len(data.X))
    artists = style.scatter(ax, data.X[shown], data.y[shown], data.classes.tolist(), size=size)
    show_window(ax, seen)
    style.label_axes(ax, data.feature_names, longest)
    return artists


def show_window(ax: Any, seen: Window) -> None:
    """Set the limits of axes to a window, in equal scales if it has them."""
    ax.set(xlim=(seen.low[0], seen.high[0]), ylim=(seen.low[1], seen.high[1]))
    if seen.equal:
        ax.set_aspect("equal")


def draw_line(ax: Any, plane: Hyperplane, seen: Window, **options: Any) -> Any:
    """Draw the part of a line inside a window and return it, or None if there is none."""
    ends = segment(plane, seen)
    return None if ends is None else ax.plot(*ends.T, **options)[0]


def draw_band(ax: Any, plane: Hyperplane, half_width: float, seen: Window, **options: Any) -> Any:
    """Fill a band around a line, long enough to leave the window, and return its polygon."""
    foot, along = seen.foot(plane)
    along = 2.0 * float(np.linalg.norm(seen.high - seen.low)) * along
    across = half_width * plane.normal
    below, above = foot - across, foot + across
    corners = np.stack([below - along, below + along, above + along, above - along])
    return ax.fill(*corners.T, linewidth=0, **options)[0]


def level_style(ax: Any, level: float) -> dict[str, Any]:
    """Return how the line f = level is drawn: the boundary in full, the margins dashed."""
    line = {"linestyle": "--", "linewidth": 1.0} if level else {"linestyle": "-", "linewidth": 1.6}
    return {"color": foreground(ax), "zorder": 4, **line}


def draw_contours(ax: Any, grid: Grid, levels: Sequence[float] = (-1.0, 0.0, 1.0)) -> Any:
    """Draw those lines of f that cross a grid, with legend entries; return None if there are none.

    A grid is the values of x₁ (p,), those of x₂ (q,) and f (q, p).
    """
    f = grid[2]
    inside = [level for level in levels if f.min() < level < f.max()]
    if not inside:
        return None
    lines = [level_style(ax, level) for level in inside]
    styles = {f"{key}s": [line[key] for line in lines] for key in ("linestyle", "linewidth")}
    contours = ax.contour(*grid, levels=inside, colors=foreground(ax), **styles)
    # Contours have no legend entries of their own; both margins are one entry.
    for level in sorted({abs(level) for level in inside}, reverse=True):
        ax.plot([], [], label="f = ±1" if level else "f = 0", **level_style(ax, level))
    return contours


def draw_rings(ax: Any, points: Any, **options: Any) -> Any:
    """Draw a circle around each of some points."""
    x1, x2 = np.reshape(points, (-1, 2)).T
    return ax.scatter(x1, x2, s=90, facecolors="none", edgecolors=foreground(ax), **options)


def write_messages(ax: Any, n_points: int, *more: str) -> None:
    """Write above the axes that points were sampled, and further messages that are not empty."""
    messages = sampling_messages(n_points, *more)
    if messages:
        line = "; ".join(messages)
        style.note(ax, line if len(line) <= _WIDEST else "\n".join(messages))


def sampling_messages(n_points: int, *more: str) -> list[str]:
    """Return that points were sampled, if so, and the other messages that are not empty."""
    sampled = style.sampled(len(style.thin(n_points)), n_points)
    return [message for message in (sampled, *more) if message]
