"""Why two classes are separable, or why they are not.

Either a plane has every row on its side, at a distance of at least the margin γ; or a point lies in
the convex hulls of both classes, Σ λᵢxᵢ = Σ μⱼxⱼ with λ, μ ≥ 0 and Σλ = Σμ = 1, and then no plane
can: f would have to be positive and negative there.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.geometry import Hyperplane, window
from maxmargin.geometry.inputs import check_rows
from maxmargin.plots import planar, style
from maxmargin.plots.planar import hull_corners
from maxmargin.plots.style import colour, foreground
from maxmargin.separability import separate
from maxmargin.validation.data import check_labels

_NEAR = 1e-6  # share of the margin within which a row touches it


@dataclass(eq=False, repr=False)
class SeparabilityDisplay(style.Display):
    """Two classes with the plane that separates them, or with the point that their hulls share.

    Parameters
    ----------
    points, y : array-like of shape (n, 2) and (n,)
        The point drawn for each row, and its label.
    found : Separability
        What ``mm.separate`` answers: a plane, or rows whose convex combinations are equal.
    names : (str, str), default=("x₁", "x₂")
        Labels of the axes.

    Attributes
    ----------
    points_ : list of PathCollection
        The points of each class.
    line_, band_ : Line2D, Polygon
        The plane and the band within the margin, or None if there is no plane.
    hulls_ : list of Polygon
        The convex hull of each class, or an empty list if a plane separates them.
    common_ : PathCollection
        The common point of the hulls, or None if there is none.
    carriers_ : PathCollection
        Rings around the rows that make the common point, or around those nearest to the plane;
        None if separability is undecided.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.xor(40, random_state=0)
    >>> display = mm.plots.SeparabilityDisplay.from_data(X, y)
    >>> display.found.separable
    False
    >>> display.ax_.get_title()
    'Not separable: the convex hulls meet'
    """

    points: Floats
    y: Any
    found: Any
    names: tuple[str, str] = ("x₁", "x₂")
    _size = (4.6, 4.4)

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
            Rows with one or two columns. For more, see ``MarginDisplay`` with view="margin".
        y : array-like of shape (n,)
            Labels.
        pair : tuple of two labels, default=None
            Which classes, if there are more than two; None: the pair that decides the answer.
        max_time : float or None, default=60.0
            Seconds allowed; None: no limit.
        ax : matplotlib Axes, default=None
            Where; None: in a new figure.
        """
        rows = check_rows(X)
        if rows.shape[1] > 2:
            raise ValueError(
                f"X has {rows.shape[1]} columns, and projections of hulls may meet where the hulls "
                "do not: choose 2 columns, or draw HardMarginSVC by MarginDisplay, view='margin'."
            )
        names = style.column_names(X, rows.shape[1])
        labels = check_labels(y, rows.shape[0])
        if pair is not None:
            rows, labels = _choose_pair(rows, labels, pair)
        found = separate(rows, labels, max_time=max_time)
        if found.pairs:
            pair = next(p for p, one in found.pairs.items() if one.witness is found.witness)
            rows, labels = _choose_pair(rows, labels, pair)
            found = separate(rows, labels, max_time=max_time)
        points = _flattened(rows.toarray() if sp.issparse(rows) else rows)
        first, second = [*names, " "][:2]
        return cls(points, labels, found, (first, second)).plot(ax)

    def _draw(self, ax: Any) -> None:
        points, labels, found = self.points, np.asarray(self.y), self.found
        seen = window(points, equal=True)
        self.line_ = self.band_ = self.common_ = self.carriers_ = None
        self.hulls_: list[Any] = []
        carriers = np.empty(0, dtype=np.intp)
        if found.separable:
            plane = Hyperplane(_flattened(found.witness.w), found.witness.b)
            line = {"color": foreground(ax), "linewidth": 1.4, "label": "separating plane"}
            self.line_ = planar.draw_line(ax, plane, seen, **line)
            band = {"color": foreground(ax), "alpha": 0.12, "label": "margin"}
            self.band_ = planar.draw_band(ax, plane, found.margin, seen, **band)
            near = plane.absolute_distance(points) <= (1 + _NEAR) * found.margin
            carriers = np.flatnonzero(near)
        else:
            if found.separable is not None:
                carriers = np.asarray(found.witness.rows, dtype=np.intp)
            self._draw_hulls(ax, points, labels, carriers)
        shown = style.thin(len(points), keep=carriers)
        self.points_ = style.scatter(ax, points[shown], labels[shown], found.classes)
        if len(carriers):
            name = "nearest rows" if found.separable else "rows that make it"
            self.carriers_ = planar.draw_rings(ax, points[carriers], zorder=4, label=name)
        flat = not points[:, 1].any()  # one column, drawn along a line
        planar.show_window(ax, seen._replace(equal=seen.equal and not flat))
        style.label_axes(ax, self.names)
        if flat:
            ax.set_yticks([])
        ax.set_title("Whether the hulls meet is undecided")
        if found.separable is not None:
            yes = f"Separable, with margin {found.margin:.3g}" if found.separable else ""
            ax.set_title(yes or "Not separable: the convex hulls meet")
        style.legend_below(ax, columns=2)
        planar.write_messages(ax, len(points))
        style.settle(ax.figure)

    def _draw_hulls(self, ax: Any, points: Floats, labels: Any, carriers: Any) -> None:
        for k, label in enumerate(self.found.classes):
            own = points[labels == label]
            filled = {"facecolor": colour(k) + "22", "edgecolor": colour(k), "linewidth": 1.2}
            filled["label"] = f"hull of {style.text(label, 16)}"
            self.hulls_ += ax.fill(*own[hull_corners(own)].T, **filled)
            own = points[carriers[labels[carriers] == label]]
            if len(own) > 1:
                around = own[hull_corners(own)]
                dashed = {"color": colour(k), "linewidth": 1.2, "linestyle": "--", "zorder": 3}
                ax.plot(*np.vstack([around, around[:1]]).T, **dashed)
        if len(carriers):
            star = {"s": 110, "marker": "*", "color": foreground(ax), "zorder": 5}
            common = _flattened(self.found.witness.point)
            self.common_ = ax.scatter(*common, label="common point", **star)


def _choose_pair(X: Any, y: Any, pair: Any) -> tuple[Any, Any]:
    """Return the rows and labels of two classes."""
    chosen = [label for label in np.unique(y).tolist() if label in tuple(pair)]
    if len(chosen) != 2 or len(tuple(pair)) != 2:
        raise ValueError(f"pair={pair!r} is not valid: name two of {np.unique(y).tolist()}.")
    kept = np.isin(y, chosen)
    return X[kept], y[kept]


def _flattened(values: Any) -> Floats:
    """Return one or two columns as two: a single one is drawn along a line."""
    values = np.asarray(values, dtype=np.float64)
    missing = np.zeros((*values.shape[:-1], 2 - values.shape[-1]))
    return np.concatenate([values, missing], axis=-1)
