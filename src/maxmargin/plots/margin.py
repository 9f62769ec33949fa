"""A machine's margin: its boundary f = 0, the lines f = ±1, and the support vectors.

The margin of a linear machine is the distance 1/‖w‖ from f(x) = w·x + b = 0 to f = ±1. Points with
slack ξ = max(0, 1 − y f) > 0 lie beyond the line of their class by ξ/‖w‖. Support vectors, without
which the boundary would be another, are on their line ("margin", ξ = 0), between it and the
boundary ("inside", ξ ≤ 1) or beyond that ("wrong side", ξ > 1).
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.plots.display import Display
from maxmargin.plots.margin_data import margin_data
from maxmargin.plots.margin_drawing import (
    Box,
    Grid,
    draw_contours,
    draw_lines,
    draw_regions,
    draw_slack,
    draw_support,
    even_scales,
)
from maxmargin.plots.margin_views import padded
from maxmargin.plots.style import legend_below, new_axes, note, scatter, settle, text

Floats = npt.NDArray[np.float64]

_SKEWED = "axes of different scale: right angles look skewed"


class MarginDisplay(Display):
    """Boundary, margins and support vectors of a classifier, in two dimensions.

    Make it with ``from_estimator``. Everything it is made of is on paper: points, and f as
    weights w₁x₁ + w₂x₂ + b or as values on a grid.

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
        are no support vectors. None: nothing is known of them.
    slack : ndarray of shape (m,), optional
        ξ ≥ 0 of the points.
    slack_ends : ndarray of shape (m, 2), optional
        Where the segment of length ξ/‖w‖ from each point ends. None: marks grow with ξ instead.
    weights : ndarray of shape (2,), optional
        w on paper, where f is linear.
    intercept : float, default=0
        b on paper.
    grid : tuple of x₁ (p,), x₂ (q,) and f (q, p), optional
        f where it is not linear; with more than two classes the number of the class predicted.
    levels : sequence of float, default=(-1, 0, 1)
        Values of f where there are lines.
    box : tuple of four floats, optional
        Limits of x₁ and x₂; around the points by default.
    axis_labels : tuple of two str, default=("", "")
        What the axes are.
    title, remark : str
        What is seen; what is left out or held fixed.

    Attributes
    ----------
    points_ : list of PathCollection
        The points of each class.
    lines_ : dict of float to Line2D
        The straight lines by their f, if f is linear; those outside of the picture are missing.
    contours_ : QuadContourSet or None
        The lines otherwise.
    slack_ : LineCollection or None
        The segments.
    support_ : dict of str to PathCollection
        The marks of the support vectors by their kind.
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

    def __init__(
        self,
        points: Floats,
        labels: npt.NDArray[Any],
        classes: Sequence[Any],
        *,
        rows: npt.NDArray[np.intp] | None = None,
        kinds: npt.NDArray[np.str_] | None = None,
        slack: Floats | None = None,
        slack_ends: Floats | None = None,
        weights: Floats | None = None,
        intercept: float = 0.0,
        grid: Grid | None = None,
        levels: Sequence[float] = (-1.0, 0.0, 1.0),
        box: Box | None = None,
        axis_labels: tuple[str, str] = ("", ""),
        title: str = "",
        remark: str = "",
    ) -> None:
        self.points = points
        self.labels = labels
        self.classes = classes
        self.rows = rows
        self.kinds = kinds
        self.slack = slack
        self.slack_ends = slack_ends
        self.weights = weights
        self.intercept = intercept
        self.grid = grid
        self.levels = levels
        self.box = box
        self.axis_labels = axis_labels
        self.title = title
        self.remark = remark

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

        Returns
        -------
        MarginDisplay
            Drawn.

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
        data = margin_data(estimator, X, y, features, at, view, pair, grid_resolution)
        return cls(**data).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw, on the axes given or on new ones, and keep ``ax_`` and ``figure_``.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default on new ones.

        Returns
        -------
        self
        """
        ax = new_axes(ax, (4.6, 4.8))
        box = padded(self.points) if self.box is None else self.box
        self.points_ = scatter(ax, self.points, self.labels, self.classes)
        missing = self._draw_boundary(ax, box)
        self._draw_support(ax)
        even = even_scales(ax, box)
        across, upwards = map(text, self.axis_labels)
        ax.set(title=text(self.title, 52), xlabel=across, ylabel=upwards)
        skewed = "" if even or self.weights is None or not all(self.weights) else _SKEWED
        lines = [*str(self.remark).splitlines(), missing, skewed]
        if words := "\n".join(text(line, 72) for line in lines if line):
            note(ax, words)
        legend_below(ax, 2)
        settle(ax.figure)
        return self._drawn(ax)

    def _draw_boundary(self, ax: Any, box: Box) -> str:
        """Draw the lines, and return words for those that are not in the picture."""
        self.lines_, self.contours_ = {}, None
        seen: set[float] = set()
        if self.weights is not None:
            self.lines_ = draw_lines(ax, self.weights, self.intercept, self.levels, box)
            seen = set(self.lines_)
        elif self.grid is not None and len(self.classes) > 2:
            self.contours_ = draw_regions(ax, self.grid, len(self.classes))
            return ""
        elif self.grid is not None:
            self.contours_ = draw_contours(ax, self.grid, self.levels)
            seen = set() if self.contours_ is None else set(self.contours_.levels.tolist())
        gone = [f"{level:+g}".replace("+0", "0") for level in self.levels if level not in seen]
        return f"f = {' and '.join(gone)} not in the picture" if gone else ""

    def _draw_support(self, ax: Any) -> None:
        self.slack_, self.support_ = None, {}
        if self.kinds is None:
            return
        with_slack = (self.kinds == "inside") | (self.kinds == "wrong side")
        if self.slack_ends is not None and with_slack.any():
            self.slack_ = draw_slack(ax, self.points[with_slack], self.slack_ends[with_slack])
        grow = self.slack if self.slack_ends is None else None
        self.support_ = draw_support(ax, self.points, self.kinds, grow)
        if grow is not None and with_slack.any():
            ax.plot([], [], " ", label="marks grow with ξ")
