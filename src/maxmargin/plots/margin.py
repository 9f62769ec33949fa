"""The margin of a classifier: its boundary f = 0, the lines f = ±1, and the support vectors.

The margin of a linear machine is the distance 1/‖w‖ from f(x) = w·x + b = 0 to f = ±1. Points with
slack ξ = max(0, 1 − y f) > 0 lie beyond the line of their class by ξ/‖w‖. Support vectors, which
determine the boundary, are on their line ("margin", ξ = 0), between it and the boundary ("inside",
ξ ≤ 1) or beyond that ("wrong side", ξ > 1).

There are three ways to see this in two dimensions:

- Two features: the points themselves, and f in their plane.
- A slice through d features: x = (x_i, x_j), with the others held fixed. The points are projected;
  the lines f = ±1 of a linear machine are 1/√(w_i² + w_j²) away from f = 0, which is more than
  1/‖w‖.
- Along w: the signed distance f/‖w‖ to the right, and upwards the first principal direction of
  φ(x) without its component along w. In this plane w is (‖w‖, 0) and b is 0, for any number of
  features and any kernel: the boundary is at 0, f = ±1 at ±1/‖w‖, and nothing is distorted. With K
  the kernel and s = (f − b)/‖w‖, the part of φ(x) orthogonal to w has the kernel K(x, x') − s s'.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import gen_batches
from sklearn.utils.sparsefuncs import csc_median_axis_0

from maxmargin._typing import Floats
from maxmargin.geometry import Hyperplane, Window, pad
from maxmargin.inspection.model_view import Boundary, SupportRows, read_boundary, take_rows
from maxmargin.plots import planar, style
from maxmargin.plots.planar import Grid
from maxmargin.plots.style import MOST_POINTS, RASTER_FROM, Rows, foreground, text, thin
from maxmargin.runtime.html import visible
from maxmargin.validation.data import check_labels

Box = tuple[float, float, float, float]

MOST_SUPPORT = 5_000  # support vectors that sampling keeps
_RING = 46.0  # size of a support vector's marker
_MANY = 300  # support vectors of a kind above which markers get smaller
_SKEWED = 4.0  # ratio of the axes' lengths above which equal scales leave no space
_FEW = 2  # features whose fixed values are listed one by one
_BLOCK = 4_000_000  # numbers in a block of rows


@dataclass(eq=False, repr=False)
class MarginDisplay(style.Display):
    """Boundary, margins and support vectors of a classifier, in two dimensions.

    Make it with ``from_estimator``. It holds what is drawn, in the coordinates of the figure:
    points, and f as w₁x₁ + w₂x₂ + b or as values on a grid.

    Parameters
    ----------
    points, labels : ndarray of shape (m, 2) and (m,)
        The points drawn, and their labels.
    classes : sequence
        The classes; of two the second is positive.
    rows : ndarray of shape (m,), optional
        Which rows of the data the points are; 0, 1, … by default.
    kinds : ndarray of str of shape (m,), optional
        "margin", "inside", "wrong side" or, of outlier detectors, "outside"; "" for points that
        are no support vectors. None: the support vectors are unknown.
    slack_ends : ndarray of shape (m, 2), optional
        Where the segment of length ξ/‖w‖ from each point ends, if f is linear.
    weights, intercept : ndarray of shape (2,) and float, optional
        w and b in the plane drawn, if f is linear there.
    grid : tuple of x₁ (p,), x₂ (q,) and f (q, p), optional
        f if it is not linear; with more than two classes, the number of the predicted class.
    levels : sequence of float, default=(-1, 0, 1)
        Values of f at which lines are drawn.
    box : tuple of four floats, optional
        Limits of x₁ and x₂; around the points by default.
    axis_labels : tuple of two str, default=("", "")
        Labels of the axes.
    title, remark : str
        What the figure shows, and what is left out or held fixed.

    Attributes
    ----------
    points_ : list of PathCollection
        The points of each class.
    lines_ : dict of float to Line2D
        The straight lines by their f, if f is linear; lines outside the figure are missing.
    contours_ : QuadContourSet or None
        The lines otherwise.
    slack_ : LineCollection or None
        The segments.
    support_ : dict of str to PathCollection
        The markers of the support vectors by their kind.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.separable(60, margin=0.3, random_state=0)
    >>> model = mm.HardMarginSVC().fit(X, y)
    >>> display = mm.plots.MarginDisplay.from_estimator(model, X, y)
    >>> sorted(display.lines_)
    [-1.0, 0.0, 1.0]
    """

    points: Floats
    labels: npt.NDArray[Any]
    classes: Sequence[Any]
    _: KW_ONLY
    rows: Rows | None = None
    kinds: npt.NDArray[np.str_] | None = None
    slack_ends: Floats | None = None
    weights: Floats | None = None
    intercept: float = 0.0
    grid: Grid | None = None
    levels: Sequence[float] = (-1.0, 0.0, 1.0)
    box: Box | None = None
    axis_labels: tuple[str, str] = ("", "")
    title: str = ""
    remark: str = ""
    _size = (4.6, 4.8)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Any = None,
        view: str = "auto",
        pair: tuple[Any, Any] | None = None,
        grid_resolution: int = 200,
        ax: Any = None,
    ) -> Self:
        """Draw the margin of a fitted classifier.

        Kinds of support vectors and slack are drawn if X are the rows it was fitted to. Of models
        without a margin at f = ±1 (perceptrons, outlier detectors), only the boundary is drawn.

        Parameters
        ----------
        estimator : fitted classifier
            One of ours or of scikit-learn's with ``decision_function``; an outlier detector; a
            pipeline or a search that ends in one.
        X : array-like, sparse matrix or frame of shape (n, d)
            Rows; of more than 20,000 a sample is drawn, with up to 5,000 support vectors.
        y : array-like of shape (n,)
            Labels; not needed by outlier detectors.
        features : pair of int or str, optional
            The two features to draw, by number or name. The others are held at their medians:
            the boundary is that of this slice, the points are projected onto it.
        view : {"auto", "data", "margin"}, default="auto"
            Features; or the signed distance f/‖w‖ (of a kernel in its feature space, of a
            pipeline in the space of its last step) and the largest spread orthogonal to w, which
            shows the true margin of any number of features. "auto": the latter if there are more
            than two features and none are chosen.
        pair : pair of classes, optional
            With more than two classes, whose plane to draw; for models that have one for every
            pair. None: the regions of all classes, without margins.
        grid_resolution : int, default=200
            Points along each side of the grid on which f is computed if it is not linear; ≥ 2.
        ax : matplotlib axes, optional
            Where to draw; by default on new ones.

        Examples
        --------
        >>> import maxmargin as mm
        >>> X, y = mm.datasets.gaussians(100, random_state=0)
        >>> model = mm.SVC(kernel="linear").fit(X, y)
        >>> display = mm.plots.MarginDisplay.from_estimator(model, X, y, view="margin")
        >>> left, right = (float(display.lines_[f].get_xdata()[0]) for f in (-1, 1))
        >>> round((right - left) * 0.5 / model.margin_, 6)
        1.0
        """
        table = X.tocsr() if sp.issparse(X) else X if hasattr(X, "columns") else np.asarray(X)
        if len(table.shape) != 2 or not all(table.shape):
            raise ValueError(f"X must be a table of rows and columns, got shape {table.shape}")
        if view == "auto":
            view = "margin" if features is None and table.shape[1] > 2 else "data"
        boundary = read_boundary(estimator, table, pair)
        _check_choices(boundary, view, features, grid_resolution)
        labels = _labels(boundary, table, y)
        sides = planar.signs(labels, boundary.classes)
        support = boundary.support(table, sides)
        rows, sampled = _rows_drawn(np.flatnonzero(np.isin(labels, boundary.classes)), support)
        kinds = None
        if support is not None:
            every = np.full(len(labels), "", dtype="<U10")
            every[support.rows] = support.kinds
            kinds = every[rows]
        if view == "margin":
            shown = _view_along_w(boundary, table, rows)
        else:
            i, j = _check_features(table, features)
            held = _medians(table)
            shown = _view_two_features(boundary, table, rows, (i, j), held, grid_resolution)
        ends, messages = None, [sampled]
        if view == "margin" or table.shape[1] == 2:  # f in the plane drawn is f of the points
            ends = None if support is None else _slack_ends(shown, sides[rows])
        else:
            messages.insert(0, _describe_slice(table, (i, j), held))
        if support is None and boundary.has_margins:
            messages.append("not known to be the rows it was fitted to: no support vectors")
        return cls(
            labels=labels[rows],
            classes=boundary.classes.tolist(),
            rows=rows,
            kinds=kinds,
            slack_ends=ends,
            levels=(-1.0, 0.0, 1.0) if boundary.has_margins else (0.0,),
            title=_title(boundary, view),
            remark="\n".join(filter(None, messages)),
            **shown,
        ).plot(ax)

    def _draw(self, ax: Any) -> None:
        box = _box_around(self.points) if self.box is None else self.box
        self.points_ = style.scatter(ax, self.points, self.labels, self.classes)
        lines = [*str(self.remark).splitlines(), self._draw_boundary(ax, box)]
        self._draw_support(ax)
        ax.set(xlim=box[:2], ylim=box[2:])
        even = 1.0 / _SKEWED <= (box[1] - box[0]) / (box[3] - box[2]) <= _SKEWED
        ax.set_aspect("equal" if even else "auto")
        if not even and self.weights is not None and all(self.weights):
            lines.append("axes of different scale: right angles look skewed")
        ax.set_title(text(self.title, 52))
        style.label_axes(ax, self.axis_labels)
        if message := "\n".join(text(line, 72) for line in lines if line):
            style.note(ax, message)
        style.legend_below(ax, 2)
        style.settle(ax.figure)

    def _draw_boundary(self, ax: Any, box: Box) -> str:
        """Draw the lines, and return a message about those outside the picture."""
        self.lines_, self.contours_ = {}, None
        seen: Any = ()
        if self.weights is not None:
            self.lines_ = seen = _draw_lines(ax, self.weights, self.intercept, self.levels, box)
        elif self.grid is not None and len(self.classes) > 2:
            self.contours_ = _draw_regions(ax, self.grid, len(self.classes))
            return ""
        elif self.grid is not None:
            self.contours_ = planar.draw_contours(ax, self.grid, self.levels)
            seen = () if self.contours_ is None else self.contours_.levels
        gone = [f"{level:+g}".replace("+0", "0") for level in self.levels if level not in seen]
        return f"f = {' and '.join(gone)} not in the picture" if gone else ""

    def _draw_support(self, ax: Any) -> None:
        """Mark support vectors by their kind, with segments for slack."""
        self.slack_, self.support_ = None, {}
        if self.kinds is None:
            return
        with_slack = (self.kinds == "inside") | (self.kinds == "wrong side")
        if self.slack_ends is not None and with_slack.any():
            self.slack_ = _draw_slack(ax, self.points[with_slack], self.slack_ends[with_slack])
        for kind, (mark, edge, name) in {
            "margin": ("o", foreground(ax), "on the margin"),
            "inside": ("D", style.GREY, "inside"),
            "wrong side": ("x", style.WRONG, "wrong side"),
            "outside": ("x", foreground(ax), "outside"),
        }.items():
            chosen = self.kinds == kind
            count = int(chosen.sum())
            if not count:
                continue
            size = _RING * min(1.0, max(0.2, _MANY / count))
            fill = {"c": edge} if mark == "x" else {"facecolors": "none", "edgecolors": edge}
            self.support_[kind] = ax.scatter(
                *self.points[chosen].T,
                s=size,
                marker=mark,
                linewidths=1.2 * (size / _RING) ** 0.5,
                label=f"{name} ({count:,})",
                rasterized=count > RASTER_FROM,
                zorder=0.9 if mark == "x" else 3,  # behind its point, whose class stays visible
                **fill,
            )


# ---------------------------------------------------------------------- from a model to the data


def _check_choices(boundary: Boundary, view: Any, features: Any, resolution: Any) -> None:
    if view not in ("data", "margin"):
        raise ValueError(f"view must be 'auto', 'data' or 'margin', got {view!r}")
    if view == "margin" and features is not None:
        raise ValueError(
            f"features={features!r:.60} with view='margin': that view is of all features; take "
            "view='data', or features=None"
        )
    if not isinstance(resolution, int | np.integer) or resolution < 2:
        raise ValueError(
            f"grid_resolution must be a whole number of at least 2, got {resolution!r}"
        )
    if view == "margin" and not boundary.binary:
        names = ", ".join(f"{label!r:.20}" for label in boundary.classes.tolist()[:8])
        raise ValueError(
            f"view='margin' is of one plane, and there are {len(boundary.classes)} classes: choose "
            f"pair=(a, b) among {names}"
        )
    if view == "data" and boundary.precomputed:
        raise ValueError(
            "X holds kernel values (kernel='precomputed'), which have no features to draw: take "
            "view='margin'"
        )


def _labels(boundary: Boundary, X: Any, y: Any) -> npt.NDArray[Any]:
    """Return the label of each row; outlier detectors say it themselves."""
    if boundary.view.detects_outliers:
        return np.asarray(boundary.classes[(boundary.scores(X) >= 0).astype(int)])
    labels = check_labels(y, X.shape[0])
    unknown = labels[~np.isin(labels, boundary.machine.classes_)]
    if len(unknown):
        raise ValueError(
            f"y contains {unknown.tolist()[0]!r:.60}, which is not a class of the model; draw the "
            "rows of its own classes"
        )
    return labels


def _rows_drawn(members: Rows, support: SupportRows | None) -> tuple[Rows, str]:
    """Return the rows to draw, and a message about what is left out."""
    if not len(members):
        raise ValueError("y has no row of the classes to draw")
    if len(members) <= MOST_POINTS:
        return members, ""
    vectors = np.array([], dtype=np.intp) if support is None else support.rows
    kept = vectors[thin(len(vectors), most=MOST_SUPPORT)]
    rows = members[thin(len(members), keep=np.searchsorted(members, kept))]
    message = f"{len(rows):,} of {len(members):,} points drawn"
    if len(vectors):
        shown = len(np.intersect1d(vectors, rows))
        share = "all" if shown == len(vectors) else f"{shown:,} of"
        message += f", {share} {len(vectors):,} support vectors"
    return rows, message


def _slack_ends(shown: dict[str, Any], sides: Floats) -> Floats | None:
    """Return the foot of each point on f = y; None without a line f = y."""
    w = shown.get("weights")
    if w is None or not w.any():
        return None
    f = shown["points"] @ w + shown.get("intercept", 0.0)
    missing = sides * np.maximum(0.0, 1.0 - sides * f)
    return np.asarray(shown["points"] + np.outer(missing / float(w @ w), w))


def _title(boundary: Boundary, view: str) -> str:
    name = type(boundary.machine).__name__
    if view == "margin":
        return f"{name}: distances along w"
    if not boundary.binary:
        return f"Regions of {name}"
    return f"Boundary and margin of {name}" if boundary.has_margins else f"Boundary of {name}"


# ------------------------------------------- what is seen of them, as the fields of the display


def _box_around(points: Floats) -> Box:
    """Return the limits of x₁ and x₂ around points, with a margin."""
    (left, bottom), (right, top) = (corner.tolist() for corner in pad(points))
    return left, right, bottom, top


def _view_along_w(boundary: Boundary, X: Any, rows: Any) -> dict[str, Any]:
    """Return signed distances, and the first principal direction of the rest."""
    norm = boundary.norm
    if norm is None:
        raise ValueError(
            f"view='margin' needs w, and {type(boundary.machine).__name__} is not one plane that "
            "can be read; take view='data'"
        )
    if norm == 0.0:
        raise ValueError("w is zero: it has no direction, so view='margin' shows nothing")
    drawn = take_rows(X, rows)
    distances = boundary.scores(drawn) / norm
    inner = boundary.transform(drawn)
    sample = planar.sample_rows(len(rows))
    products = boundary.products(inner, inner[sample], rows[sample])
    points = np.column_stack([distances, planar.spread_beside(products, distances, sample)])
    left, right, bottom, top = _box_around(points)
    if boundary.has_margins:  # the margin is visible even if all points are inside it
        left, right = min(left, -1.15 / norm), max(right, 1.15 / norm)
    return {
        "points": points,
        "axis_labels": ("signed distance f/‖w‖", "largest spread beside w"),
        "box": (left, right, bottom, top),
        "weights": np.array([norm, 0.0]),
    }


def _view_two_features(
    boundary: Boundary, X: Any, rows: Any, drawn: tuple[int, int], held: Floats, resolution: int
) -> dict[str, Any]:
    """Return the plane of two features, with the others held fixed."""
    points = planar.columns(take_rows(X, rows), list(drawn))
    box, names = _box_around(points), _feature_names(X)
    shown = {"points": points, "axis_labels": (names[drawn[0]], names[drawn[1]]), "box": box}
    if not boundary.straight:
        return {**shown, "grid": _grid(boundary, X, held, drawn, box, resolution)}
    assert isinstance(boundary.plane, Hyperplane)
    w, there = boundary.plane.w, list(drawn)
    rest = float(np.delete(w, there) @ np.delete(held, there))
    return {**shown, "weights": w[there], "intercept": rest + boundary.plane.b}


def _check_features(X: Any, features: Any) -> tuple[int, int]:
    """Return the numbers of the two features to draw."""
    width = X.shape[1]
    if features is None:
        if width != 2:
            raise ValueError(
                f"X has {width} features, and two can be drawn: choose features=(i, j), or "
                "view='margin' for all of them"
            )
        return 0, 1
    if isinstance(features, str) or len(features) != 2:
        raise ValueError(f"features must be two of the features of X, got {features!r:.80}")
    i, j = (planar.column_number(X, feature) for feature in features)
    if i == j:
        raise ValueError(f"features must be two different features, got {features!r:.80}")
    return i, j


def _feature_names(X: Any) -> list[str]:
    """Return the names of a frame's columns, x₁ and x₂, or the numbers that ``features`` takes."""
    if hasattr(X, "columns") or X.shape[1] == 2:
        return style.column_names(X, X.shape[1])
    return [f"feature {k}" for k in range(X.shape[1])]


def _medians(X: Any) -> Floats:
    """Return the median of each column."""
    if X.shape[1] == 2:  # both are drawn
        return np.zeros(2)
    if sp.issparse(X):
        return np.asarray(csc_median_axis_0(X.tocsc()), dtype=np.float64)
    return np.asarray(np.median(planar.columns(X, range(X.shape[1])), axis=0))


def _describe_slice(X: Any, drawn: tuple[int, int], held: Floats) -> str:
    """Return where the other features are held."""
    rest = [k for k in range(X.shape[1]) if k not in drawn]
    where = f"{len(rest)} other features at their median"
    if len(rest) <= _FEW:
        names = _feature_names(X)
        where = ", ".join(f"{visible(names[k], 16)} = {held[k]:.3g}" for k in rest)
    return f"slice with {where}\npoints projected onto it"


def _grid(
    boundary: Boundary, X: Any, held: Floats, drawn: tuple[int, int], box: Box, resolution: int
) -> Grid:
    """Return f, or with several classes the predicted one, at the points of a grid."""
    x1, x2 = np.linspace(*box[:2], resolution), np.linspace(*box[2:], resolution)
    points = np.column_stack([axis.ravel() for axis in np.meshgrid(x1, x2)])
    evaluate = boundary.scores if boundary.binary else boundary.predict
    values = []
    for batch in gen_batches(len(points), max(1, _BLOCK // len(held))):
        rows: Any = np.tile(held, (len(points[batch]), 1))
        rows[:, drawn] = points[batch]
        if hasattr(X, "columns"):  # models that were fitted with column names expect them
            names = {"columns" if hasattr(X, "iloc") else "schema": list(X.columns)}
            rows = type(X)(rows, **names)
        values.append(evaluate(rows))
    return x1, x2, np.concatenate(values).reshape(resolution, resolution)


# ------------------------------------------------------------------------- the parts of the figure


def _draw_lines(
    ax: Any, w: Floats, b: float, levels: Sequence[float], box: Box
) -> dict[float, Any]:
    """Draw f = w·x + b = level from edge to edge of the box, and return the lines in it."""
    seen = Window(np.array(box[::2]), np.array(box[1::2]), equal=False)
    lines = {}
    for level in levels:
        line = planar.draw_line(ax, Hyperplane(w, b - level), seen, **planar.level_style(ax, level))
        if line is not None:
            lines[level] = line
            if level == 0.0:
                line.set_label("f = 0")
            elif sum(map(abs, lines)) == 1.0:  # both lines of the margin are one entry
                line.set_label(f"f = ±1, {1.0 / float(np.hypot(*w)):.3g} away")
    return lines


def _draw_regions(ax: Any, grid: Grid, n_classes: int) -> Any:
    """Fill the region of each class, and draw the lines between them."""
    from matplotlib.colors import ListedColormap

    x1, x2, number = grid
    colours = ListedColormap([style.colour(k) for k in range(n_classes)])
    fill = {"alpha": 0.18, "shading": "nearest", "rasterized": True, "linewidth": 0}
    ax.pcolormesh(*grid, cmap=colours, vmin=-0.5, vmax=n_classes - 0.5, **fill)
    line = {"colors": foreground(ax), "linewidths": 1.2}
    return [
        ax.contour(x1, x2, (number >= k) * 1.0, levels=[0.5], **line)
        for k in np.unique(number)[1:]  # each line once
    ]


def _draw_slack(ax: Any, points: Floats, ends: Floats) -> Any:
    """Draw a segment from each point to where its slack ends."""
    from matplotlib.collections import LineCollection

    segments = LineCollection(
        np.stack([points, ends], axis=1).tolist(),
        colors=foreground(ax),
        linewidths=1.1,
        linestyles=":",
        alpha=0.9,
        zorder=1.5,
        rasterized=len(points) > RASTER_FROM,
        label="slack, ξ/‖w‖ long",
    )
    return ax.add_collection(segments, autolim=False)
