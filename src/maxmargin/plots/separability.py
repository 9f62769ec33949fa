"""Why two classes are separable, or why they are not.

Either a plane has every row on its side, at a distance of at least the margin γ; or a point lies in
the convex hulls of both classes, Σ λᵢxᵢ = Σ μⱼxⱼ with λ, μ ≥ 0 and Σλ = Σμ = 1, and then no plane
can: f would have to be positive and negative there.

In more than two dimensions a plane is seen edge-on: rows are drawn by their signed distance f/‖w‖
and their place along a direction within the plane. Distances from the plane stay true. Hulls that
meet have no such view: the projections of hulls may meet where the hulls do not.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.geometry import Hyperplane
from maxmargin.geometry.inputs import check_rows
from maxmargin.plots.display import Display
from maxmargin.plots.hulls import hull
from maxmargin.plots.panels import check_label_per_row, column_names
from maxmargin.plots.planar import remarks, segment, window, write_remarks
from maxmargin.plots.separability_views import answer_in_the_plane, rows_of
from maxmargin.plots.style import (
    colour,
    ink,
    legend_below,
    new_axes,
    scatter,
    settle,
    text,
    thinned,
)

Floats = npt.NDArray[np.float64]

_NEAR = 1e-6  # of the margin: rows that far beyond it still touch it


class SeparabilityDisplay(Display):
    """Two classes with the plane that separates them, or with the point that their hulls share.

    Parameters
    ----------
    points : array-like of shape (n, 2)
        What is drawn for each row.
    y : array-like of shape (n,)
        Labels.
    classes : sequence of two labels
        The second one is positive.
    separable : bool or None
        The answer; None: undecided.
    plane : Hyperplane, default=None
        Separates the points, if they are separable.
    margin : float, default=nan
        Distance of the nearest points from the plane.
    rows : array-like of int, default=()
        Points that carry the common point of the hulls.
    weights : array-like of float, default=()
        Their convex weights, summing to 1 in each class.
    common : array-like of shape (2,), default=None
        The common point.
    names : (str, str), default=("x₁", "x₂")
        What the axes are.

    Attributes
    ----------
    points_ : list of PathCollection
        The points of each class.
    line_, band_ : Line2D, Polygon
        The plane and what is nearer to it than the margin, if there is one; else None.
    hulls_ : list of Polygon
        The convex hull of each class, if no plane separates them; else empty.
    common_ : PathCollection
        The common point of the hulls; else None.
    carriers_ : PathCollection
        Rings around the rows that make the common point, or around those nearest to the plane;
        None if undecided.
    ax_, figure_ :
        Where they were drawn.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.xor(40, random_state=0)
    >>> display = mm.plots.SeparabilityDisplay.from_data(X, y)
    >>> display.separable
    False
    >>> display.ax_.get_title()
    'Not separable: the convex hulls meet'
    """

    def __init__(
        self,
        points: Any,
        y: Any,
        *,
        classes: Sequence[Any],
        separable: bool | None,
        plane: Hyperplane | None = None,
        margin: float = np.nan,
        rows: Any = (),
        weights: Any = (),
        common: Any = None,
        names: tuple[str, str] = ("x₁", "x₂"),
    ) -> None:
        self.points = points
        self.y = y
        self.classes = classes
        self.separable = separable
        self.plane = plane
        self.margin = margin
        self.rows = rows
        self.weights = weights
        self.common = common
        self.names = names

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        *,
        pair: tuple[Any, Any] | None = None,
        max_time: float | None = 60.0,
        ax: Any = None,
    ) -> Self:
        """Ask ``mm.separate`` about the rows, and draw its answer.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            Rows; more than two columns only if a plane separates them.
        y : array-like of shape (n,)
            Labels.
        pair : tuple of two labels, default=None
            Which classes, if there are more than two; None: the pair that decides.
        max_time : float or None, default=60.0
            Seconds of search allowed.
        ax : matplotlib Axes, default=None
            Where; None: in a new figure.

        Returns
        -------
        SeparabilityDisplay
        """
        from maxmargin.separability import separate

        rows = check_rows(X)
        names = column_names(X, rows.shape[1])
        labels, _ = check_label_per_row(y, rows.shape[0])
        if pair is not None:
            rows, labels = rows_of(rows, labels, pair)
        found = separate(rows, labels, max_time=max_time)
        if found.pairs:
            pair = next(p for p, one in found.pairs.items() if one.witness is found.witness)
            rows, labels = rows_of(rows, labels, pair)
            found = separate(rows, labels, max_time=max_time)
        return cls(**answer_in_the_plane(rows, labels, names, found)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the rows and what proves the answer.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where; None: in a new figure.

        Returns
        -------
        self
        """
        points, labels = np.asarray(self.points, dtype=np.float64), np.asarray(self.y)
        ax = new_axes(ax, (4.6, 4.4))
        seen = window(points, equal=True)
        self.line_ = self.band_ = self.common_ = self.carriers_ = None
        self.hulls_: list[Any] = []
        if self.plane is not None:
            carriers = self._draw_plane(ax, points, seen)
        else:
            carriers = np.asarray(self.rows, dtype=np.intp)
            self._draw_hulls(ax, points, labels, carriers)
        shown = thinned(len(points), keep=carriers)
        self.points_ = scatter(ax, points[shown], labels[shown], self.classes)
        if len(carriers):
            named = "nearest rows" if self.separable else "rows that make it"
            rings = {"s": 90, "facecolors": "none", "edgecolors": ink(ax), "zorder": 4}
            self.carriers_ = ax.scatter(*points[carriers].T, label=named, **rings)
        write_remarks(ax, remarks(len(points)))
        self._dress(ax, seen)
        settle(ax.figure)
        return self._drawn(ax)

    def _draw_plane(self, ax: Any, points: Floats, seen: Any) -> Any:
        """Draw the plane and its margins; return which points touch them."""
        plane = self.plane
        assert plane is not None
        ends = segment(plane, seen)
        if ends is not None:
            self.line_ = ax.plot(*ends.T, color=ink(ax), linewidth=1.4, label="separating plane")[0]
        # Long enough to leave the window on both sides.
        along = np.array([-plane.normal[1], plane.normal[0]])
        along *= 2 * float(np.linalg.norm(seen.high - seen.low))
        foot = plane.project([0.5 * (seen.low + seen.high)])[0]
        out = self.margin * plane.normal
        corners = np.array([foot - along - out, foot + along - out, foot + along + out,
                            foot - along + out])  # fmt: skip
        self.band_ = ax.fill(*corners.T, color=ink(ax), alpha=0.12, linewidth=0, label="margin")[0]
        distance = plane.absolute_distance(points)
        return np.flatnonzero(distance <= (1 + _NEAR) * self.margin)

    def _draw_hulls(self, ax: Any, points: Floats, labels: Any, carriers: Any) -> None:
        for k, label in enumerate(self.classes):
            corners = hull(points[labels == label])
            how = {"color": colour(k), "linewidth": 1.2, "zorder": 3}
            self.hulls_ += ax.fill(*corners.T, facecolor=colour(k) + "22", edgecolor=colour(k),
                                   label=f"hull of {text(label, 16)}", linewidth=1.2)  # fmt: skip
            own = carriers[labels[carriers] == label]
            if len(own) > 1:
                around = hull(points[own])
                ax.plot(*np.vstack([around, around[:1]]).T, linestyle="--", **how)
        if self.common is not None:
            self.common_ = ax.scatter(*np.reshape(self.common, (2, 1)), s=110, marker="*",
                                      color=ink(ax), zorder=5, label="common point")  # fmt: skip

    def _dress(self, ax: Any, seen: Any) -> None:
        ax.set(xlim=(seen.low[0], seen.high[0]), ylim=(seen.low[1], seen.high[1]))
        ax.set(xlabel=text(self.names[0]), ylabel=text(self.names[1]))
        if not np.any(np.asarray(self.points)[:, 1]):
            ax.set_yticks([])
        elif seen.equal:
            ax.set_aspect("equal")
        if self.separable:
            title = f"Separable, with margin {self.margin:.3g}"
        elif self.separable is None:
            title = "Whether the hulls meet is undecided"
        else:
            title = "Not separable: the convex hulls meet"
        ax.set_title(title, pad=16 if ax.texts else None)
        legend_below(ax, columns=2)
