"""The margin of a classifier: its boundary f = 0, the lines f = ±1, and the support vectors.

The margin of a linear machine is the distance 1/‖w‖ from f(x) = w·x + b = 0 to f = ±1. Points with
slack ξ = max(0, 1 − y f) > 0 lie beyond the line of their class by ξ/‖w‖. Support vectors, which
determine the boundary, are on their line ("margin", ξ = 0), between it and the
boundary ("inside", ξ ≤ 1) or beyond that ("wrong side", ξ > 1).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats
from maxmargin.geometry import Hyperplane
from maxmargin.inspection.model_view import Boundary, SupportRows, read_boundary
from maxmargin.plots.display import Display
from maxmargin.plots.margin_view import (
    Box,
    Grid,
    MarginView,
    as_table,
    box_around,
    view_along_w,
    view_two_features,
)
from maxmargin.plots.planar import Window, draw_line, signs
from maxmargin.plots.style import (
    GREY,
    MOST_POINTS,
    RASTER_FROM,
    WRONG,
    Rows,
    colour,
    foreground,
    legend_below,
    new_axes,
    note,
    scatter,
    settle,
    text,
    thin,
)

MOST_SUPPORT = 5_000  # support vectors that sampling keeps
_RING = 46.0  # size of a support vector's marker without slack
_MOST_SLACK = 4.0  # slack above which markers do not grow any more
_MANY = 300  # support vectors of a kind above which markers get smaller
_SKEWED = 4.0  # ratio of the axes' lengths above which equal scales leave no space
_SKEWED_MESSAGE = "axes of different scale: right angles look skewed"


@dataclass(eq=False, repr=False)
class MarginDisplay(Display):
    """Boundary, margins and support vectors of a classifier, in two dimensions.

    Make it with ``from_estimator``. It holds what is drawn, in the coordinates of the figure:
    points, and f as w₁x₁ + w₂x₂ + b or as values on a grid.

    Parameters
    ----------
    points : ndarray of shape (m, 2)
        The points drawn.
    labels : ndarray of shape (m,)
        Their labels, among ``classes``.
    classes : sequence
        The classes; of two the second is positive.
    rows : ndarray of shape (m,), optional
        Which rows of the data the points are; 0, 1, … by default.
    kinds : ndarray of str of shape (m,), optional
        "margin", "inside", "wrong side" or, of outlier detectors, "outside"; "" for points that
        are no support vectors. None: the support vectors are unknown.
    slack : ndarray of shape (m,), optional
        ξ ≥ 0 of the points.
    slack_ends : ndarray of shape (m, 2), optional
        Where the segment of length ξ/‖w‖ from each point ends. None: markers grow with ξ instead.
    weights : ndarray of shape (2,), optional
        w in the plane drawn, if f is linear there.
    intercept : float, default=0
        b in the plane drawn.
    grid : tuple of x₁ (p,), x₂ (q,) and f (q, p), optional
        f if it is not linear; with more than two classes the number of the predicted class.
    levels : sequence of float, default=(-1, 0, 1)
        Values of f at which lines are drawn.
    box : tuple of four floats, optional
        Limits of x₁ and x₂; around the points by default.
    axis_labels : tuple of two str, default=("", "")
        Labels of the axes.
    title, remark : str
        What the figure shows; what is left out or held fixed.

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
    ax_, figure_ :
        Where it is drawn.

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
    slack: Floats | None = None
    slack_ends: Floats | None = None
    weights: Floats | None = None
    intercept: float = 0.0
    grid: Grid | None = None
    levels: Sequence[float] = (-1.0, 0.0, 1.0)
    box: Box | None = None
    axis_labels: tuple[str, str] = ("", "")
    title: str = ""
    remark: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Any = None,
        at: Any = "median",
        view: str = "auto",
        pair: tuple[Any, Any] | None = None,
        grid_resolution: int = 200,
        ax: Any = None,
    ) -> Self:
        """Draw the margin of a fitted classifier.

        Kinds of support vectors and slack are drawn if X are the rows it was fitted to. Models
        without a margin at f = ±1 (perceptrons, outlier detectors) have their boundary only.

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
            The two features to draw, by number or name.
        at : "median", "mean" or array of shape (d,), default="median"
            Where the other features are held: the boundary is that of this slice, the points are
            projected onto it.
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
        _check_choices(view, features, grid_resolution)
        table = as_table(X)
        if view == "auto":
            view = "margin" if features is None and table.shape[1] > 2 else "data"
        boundary = read_boundary(estimator, table, pair)
        _check_view(boundary, view)
        labels = _labels(boundary, table, y)
        sides = signs(labels, boundary.classes)
        support = boundary.support(table, sides)
        rows, sampled = _rows_drawn(np.flatnonzero(np.isin(labels, boundary.classes)), support)
        if view == "margin":
            seen = view_along_w(boundary, table, rows)
        else:
            seen = view_two_features(boundary, table, rows, features, at, grid_resolution)
        kinds, slack = _kinds_and_slack(rows, len(labels), support)
        messages = [*_slice_messages(seen, kinds), *sampled, *_unmarked(boundary, support)]
        return cls(
            seen.points,
            labels[rows],
            boundary.classes.tolist(),
            rows=rows,
            kinds=kinds,
            slack=None if boundary.view.detects_outliers else slack,
            slack_ends=_slack_ends(seen, sides[rows], slack),
            weights=seen.weights,
            intercept=seen.intercept,
            grid=seen.grid,
            levels=(-1.0, 0.0, 1.0) if boundary.has_margins else (0.0,),
            box=seen.box,
            axis_labels=seen.labels,
            title=_title(boundary, view),
            remark="\n".join(messages),
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or in a new figure for None."""
        ax = new_axes(ax, (4.6, 4.8))
        box = box_around(self.points) if self.box is None else self.box
        self.points_ = scatter(ax, self.points, self.labels, self.classes)
        missing = self._draw_boundary(ax, box)
        self._draw_support(ax)
        even = _set_scales(ax, box)
        across, upwards = map(text, self.axis_labels)
        ax.set(title=text(self.title, 52), xlabel=across, ylabel=upwards)
        skewed = "" if even or self.weights is None or not all(self.weights) else _SKEWED_MESSAGE
        lines = [*str(self.remark).splitlines(), missing, skewed]
        if message := "\n".join(text(line, 72) for line in lines if line):
            note(ax, message)
        legend_below(ax, 2)
        settle(ax.figure)
        return self._keep_axes(ax)

    def _draw_boundary(self, ax: Any, box: Box) -> str:
        """Draw the lines, and return a message about those outside the picture."""
        self.lines_, self.contours_ = {}, None
        seen: set[float] = set()
        if self.weights is not None:
            self.lines_ = _draw_lines(ax, self.weights, self.intercept, self.levels, box)
            seen = set(self.lines_)
        elif self.grid is not None and len(self.classes) > 2:
            self.contours_ = _draw_regions(ax, self.grid, len(self.classes))
            return ""
        elif self.grid is not None:
            self.contours_ = _draw_contours(ax, self.grid, self.levels)
            seen = set() if self.contours_ is None else set(self.contours_.levels.tolist())
        gone = [f"{level:+g}".replace("+0", "0") for level in self.levels if level not in seen]
        return f"f = {' and '.join(gone)} not in the picture" if gone else ""

    def _draw_support(self, ax: Any) -> None:
        self.slack_, self.support_ = None, {}
        if self.kinds is None:
            return
        with_slack = (self.kinds == "inside") | (self.kinds == "wrong side")
        if self.slack_ends is not None and with_slack.any():
            self.slack_ = _draw_slack(ax, self.points[with_slack], self.slack_ends[with_slack])
        grow = self.slack if self.slack_ends is None else None
        self.support_ = _draw_support(ax, self.points, self.kinds, grow)
        if grow is not None and with_slack.any():
            ax.plot([], [], " ", label="marks grow with ξ")


# ---------------------------------------------------------------------- from a model to the data


def _check_choices(view: Any, features: Any, resolution: Any) -> None:
    if view not in ("auto", "data", "margin"):
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


def _check_view(boundary: Boundary, view: str) -> None:
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
    if y is None:
        raise ValueError("y is None: the labels of the rows of X are needed")
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise ValueError(
            f"y must hold one label for each of the {X.shape[0]} rows of X, got shape "
            f"{labels.shape}"
        )
    unknown = labels[~np.isin(labels, boundary.machine.classes_)]
    if len(unknown):
        raise ValueError(
            f"y contains {unknown.tolist()[0]!r:.60}, which is not a class of the model; draw the "
            "rows of its own classes"
        )
    return labels


def _rows_drawn(members: Rows, support: SupportRows | None) -> tuple[Rows, list[str]]:
    """Return the rows to draw, and a message about what is left out."""
    if not len(members):
        raise ValueError("y has no row of the classes to draw")
    if len(members) <= MOST_POINTS:
        return members, []
    vectors = np.array([], dtype=np.intp) if support is None else support.rows
    kept = vectors[thin(len(vectors), most=MOST_SUPPORT)]
    rows = members[thin(len(members), keep=np.searchsorted(members, kept))]
    message = f"{len(rows):,} of {len(members):,} points drawn"
    if len(vectors):
        shown = len(np.intersect1d(vectors, rows))
        share = "all" if shown == len(vectors) else f"{shown:,} of"
        message += f", {share} {len(vectors):,} support vectors"
    return rows, [message]


def _kinds_and_slack(
    rows: Rows, total: int, support: SupportRows | None
) -> tuple[npt.NDArray[np.str_] | None, Floats | None]:
    if support is None:
        return None, None
    kinds, slack = np.full(total, "", dtype="<U10"), np.zeros(total)
    kinds[support.rows], slack[support.rows] = support.kinds, support.slacks
    return kinds[rows], slack[rows]


def _slack_ends(seen: MarginView, sides: Floats, slack: Floats | None) -> Floats | None:
    """Return the foot of each point on f = y, if f in the plane drawn is f of the points."""
    if slack is None or seen.weights is None or not seen.exact:
        return None
    w = seen.weights
    if not w.any():  # without a line there is nothing to be near to
        return None
    missing = sides * np.maximum(0.0, 1.0 - sides * (seen.points @ w + seen.intercept))
    return np.asarray(seen.points + np.outer(missing / float(w @ w), w))


def _slice_messages(seen: MarginView, kinds: npt.NDArray[np.str_] | None) -> list[str]:
    if seen.off_slice is None:
        return [seen.message] if seen.message else []
    off, what = seen.off_slice, "points"
    if kinds is not None:
        off, what = off[kinds != ""], "support vectors"
    return [seen.message, f"points projected; {off.sum():,} of {len(off):,} {what} lie off it"]


def _unmarked(boundary: Boundary, support: SupportRows | None) -> list[str]:
    if support is None and boundary.has_margins:
        return ["not known to be the rows it was fitted to: no support vectors"]
    return []


def _title(boundary: Boundary, view: str) -> str:
    name = type(boundary.machine).__name__
    if view == "margin":
        return f"{name}: distances along w"
    if not boundary.binary:
        return f"Regions of {name}"
    return f"Boundary and margin of {name}" if boundary.has_margins else f"Boundary of {name}"


# ------------------------------------------------------------------------- the parts of the figure


def _draw_lines(
    ax: Any, w: Floats, b: float, levels: Sequence[float], box: Box
) -> dict[float, Any]:
    """Draw f = w·x + b = level from edge to edge of the box, and return the lines in it."""
    seen = Window(np.array(box[::2]), np.array(box[1::2]), equal=False)
    lines = {}
    for level in levels:
        line = draw_line(ax, Hyperplane(w, b - level), seen, **_line_style(ax, level))
        if line is not None:
            lines[level] = line
            if level == 0.0:
                line.set_label("f = 0")
            elif sum(map(abs, lines)) == 1.0:  # both lines of the margin are one entry
                line.set_label(f"f = ±1, {1.0 / float(np.hypot(*w)):.3g} away")
    return lines


def _draw_contours(ax: Any, grid: Grid, levels: Sequence[float]) -> Any:
    """Draw those lines of f that cross a grid; return None if there are none."""
    x1, x2, f = grid
    inside = [level for level in levels if f.min() < level < f.max()]
    if not inside:
        return None
    styles = [_line_style(ax, level) for level in inside]
    contours = ax.contour(
        x1,
        x2,
        f,
        levels=inside,
        colors=foreground(ax),
        linestyles=[style["linestyle"] for style in styles],
        linewidths=[style["linewidth"] for style in styles],
    )
    # Contours have no legend entries of their own.
    named = {"f = 0" if level == 0.0 else "f = ±1": _line_style(ax, level) for level in inside}
    for label, style in named.items():
        ax.plot([], [], label=label, **style)
    return contours


def _draw_regions(ax: Any, grid: Grid, n_classes: int) -> Any:
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
    for k in np.unique(number)[1:]:  # each line once
        line = {"colors": foreground(ax), "linewidths": 1.2}
        drawn.append(ax.contour(x1, x2, (number >= k) * 1.0, levels=[0.5], **line))
    return drawn


def _draw_slack(ax: Any, points: Floats, ends: Floats) -> Any:
    """Draw a segment from each point to where its slack ends."""
    from matplotlib.collections import LineCollection

    segments = LineCollection(
        np.stack([points, ends], axis=1).tolist(),
        colors=foreground(ax),
        linewidths=0.8,
        linestyles=":",
        alpha=0.8,
        zorder=1.5,
        rasterized=len(points) > RASTER_FROM,
        label="slack, ξ/‖w‖ long",
    )
    return ax.add_collection(segments, autolim=False)


def _draw_support(
    ax: Any, points: Floats, kinds: npt.NDArray[np.str_], slack: Floats | None
) -> dict[str, Any]:
    """Mark support vectors by their kind; the markers grow with the slack, if it is given."""
    drawn = {}
    for kind, (mark, edge, name) in _marks(ax).items():
        chosen = kinds == kind
        if not chosen.any():
            continue
        grow = 1.0 if slack is None else 1.0 + np.minimum(slack[chosen], _MOST_SLACK)
        shrink = min(1.0, max(0.2, _MANY / int(chosen.sum())))
        fill = {"c": edge} if mark == "x" else {"facecolors": "none", "edgecolors": edge}
        drawn[kind] = ax.scatter(
            *points[chosen].T,
            s=_RING * grow * shrink,
            marker=mark,
            linewidths=1.2 * shrink**0.5,
            label=f"{name} ({int(chosen.sum()):,})",
            rasterized=int(chosen.sum()) > RASTER_FROM,
            zorder=0.9 if mark == "x" else 3,  # behind its point, whose class stays visible
            **fill,
        )
    return drawn


def _set_scales(ax: Any, box: Box) -> bool:
    """Give both axes the same scale if that leaves enough space; return whether it does."""
    ax.set(xlim=box[:2], ylim=box[2:])
    ratio = (box[1] - box[0]) / (box[3] - box[2])
    even = 1.0 / _SKEWED <= ratio <= _SKEWED
    ax.set_aspect("equal" if even else "auto")
    return even


def _line_style(ax: Any, level: float) -> dict[str, Any]:
    return {
        "color": foreground(ax),
        "linestyle": "--" if level else "-",
        "linewidth": 1.0 if level else 1.6,
        "zorder": 4,
    }


def _marks(ax: Any) -> dict[str, tuple[str, str, str]]:
    """Return marker, colour and name of each kind of support vector."""
    return {
        "margin": ("o", foreground(ax), "on the margin"),
        "inside": ("D", GREY, "inside"),
        "wrong side": ("x", WRONG, "wrong side"),
        "outside": ("x", foreground(ax), "outside"),
    }
