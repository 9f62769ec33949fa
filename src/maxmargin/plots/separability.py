"""Why two classes are separable, or why they are not.

Either a plane has every row on its side, at a distance of at least the margin γ; or a point lies in
the convex hulls of both classes, Σ λᵢxᵢ = Σ μⱼxⱼ with λ, μ ≥ 0 and Σλ = Σμ = 1, and then no plane
can: f would have to be positive and negative there.

In more than two dimensions the plane is drawn edge-on: rows are drawn by their signed distance
f/‖w‖ and their position along a direction within the plane, so that distances from the plane are
true. Hulls that meet cannot be drawn this way: their projections may meet where they do not.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
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

_EDGE_ON = ("distance from the plane", "direction within the plane")
_NEAR = 1e-6  # share of the margin within which a row touches it


@dataclass(eq=False, repr=False)
class SeparabilityDisplay(style.Display):
    """Two classes with the plane that separates them, or with the point that their hulls share.

    Parameters
    ----------
    points, y : array-like of shape (n, 2) and (n,)
        The point drawn for each row, and its label.
    classes : sequence of two labels
        The second one is positive.
    separable : bool or None
        The answer; None if it is undecided.
    plane : Hyperplane, default=None
        Separates the points, if they are separable.
    margin : float, default=nan
        Distance of the nearest points from the plane.
    rows, weights : array-like of int, array-like of float, default=()
        Points whose convex combination is the common point of the hulls, and their weights, which
        sum to 1 in each class.
    common : array-like of shape (2,), default=None
        The common point.
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
    >>> display.separable
    False
    >>> display.ax_.get_title()
    'Not separable: the convex hulls meet'
    """

    points: Any
    y: Any
    _: KW_ONLY
    classes: Sequence[Any]
    separable: bool | None
    plane: Hyperplane | None = None
    margin: float = np.nan
    rows: Any = ()
    weights: Any = ()
    common: Any = None
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
            Rows; more than two columns can be drawn only if a plane separates the classes.
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
        names = style.column_names(X, rows.shape[1])
        labels = check_labels(y, rows.shape[0])
        if pair is not None:
            rows, labels = _choose_pair(rows, labels, pair)
        found = separate(rows, labels, max_time=max_time)
        if found.pairs:
            pair = next(p for p, one in found.pairs.items() if one.witness is found.witness)
            rows, labels = _choose_pair(rows, labels, pair)
            found = separate(rows, labels, max_time=max_time)
        return cls(**_project(rows, labels, names, found)).plot(ax)

    def _draw(self, ax: Any) -> None:
        points, labels = np.asarray(self.points, dtype=np.float64), np.asarray(self.y)
        seen = window(points, equal=True)
        self.line_ = self.band_ = self.common_ = self.carriers_ = None
        self.hulls_: list[Any] = []
        if self.plane is not None:
            line = {"color": foreground(ax), "linewidth": 1.4, "label": "separating plane"}
            self.line_ = planar.draw_line(ax, self.plane, seen, **line)
            band = {"color": foreground(ax), "alpha": 0.12, "label": "margin"}
            self.band_ = planar.draw_band(ax, self.plane, self.margin, seen, **band)
            near = self.plane.absolute_distance(points) <= (1 + _NEAR) * self.margin
            carriers = np.flatnonzero(near)
        else:
            carriers = np.asarray(self.rows, dtype=np.intp)
            self._draw_hulls(ax, points, labels, carriers)
        shown = style.thin(len(points), keep=carriers)
        self.points_ = style.scatter(ax, points[shown], labels[shown], self.classes)
        if len(carriers):
            name = "nearest rows" if self.separable else "rows that make it"
            self.carriers_ = planar.draw_rings(ax, points[carriers], zorder=4, label=name)
        flat = not points[:, 1].any()  # one column, drawn along a line
        planar.show_window(ax, seen._replace(equal=seen.equal and not flat))
        style.label_axes(ax, self.names)
        if flat:
            ax.set_yticks([])
        titles = {
            True: f"Separable, with margin {self.margin:.3g}",
            False: "Not separable: the convex hulls meet",
            None: "Whether the hulls meet is undecided",
        }
        ax.set_title(titles[self.separable])
        style.legend_below(ax, columns=2)
        planar.write_messages(ax, len(points))
        style.settle(ax.figure)

    def _draw_hulls(self, ax: Any, points: Floats, labels: Any, carriers: Any) -> None:
        for k, label in enumerate(self.classes):
            own = points[labels == label]
            filled = {"facecolor": colour(k) + "22", "edgecolor": colour(k), "linewidth": 1.2}
            filled["label"] = f"hull of {style.text(label, 16)}"
            self.hulls_ += ax.fill(*own[hull_corners(own)].T, **filled)
            own = points[carriers[labels[carriers] == label]]
            if len(own) > 1:
                around = own[hull_corners(own)]
                dashed = {"color": colour(k), "linewidth": 1.2, "linestyle": "--", "zorder": 3}
                ax.plot(*np.vstack([around, around[:1]]).T, **dashed)
        if self.common is not None:
            star = {"s": 110, "marker": "*", "color": foreground(ax), "zorder": 5}
            self.common_ = ax.scatter(*self.common, label="common point", **star)


def _choose_pair(X: Any, y: Any, pair: Any) -> tuple[Any, Any]:
    """Return the rows and labels of two classes."""
    chosen = [label for label in np.unique(y).tolist() if label in tuple(pair)]
    if len(chosen) != 2 or len(tuple(pair)) != 2:
        raise ValueError(f"pair={pair!r} is not valid: name two of {np.unique(y).tolist()}.")
    kept = np.isin(y, chosen)
    return X[kept], y[kept]


def _project(X: Any, y: Any, names: list[str], found: Any) -> dict[str, Any]:
    """Return the data of the display: the answer of ``separate``, in the plane that is drawn."""
    d, witness = X.shape[1], found.witness
    answer = {"y": y, "classes": found.classes, "separable": found.separable}
    if found.separable:
        answer["margin"] = found.margin
    if d > 2:
        if not found.separable:
            raise ValueError(
                f"X has {d} columns, and no plane separates the classes: a picture of their hulls "
                "needs 1 or 2 columns, as projections of hulls may meet where the hulls do not."
            )
        plane = Hyperplane([1.0, 0.0], 0.0)
        return answer | {"points": _edge_on(X, witness), "plane": plane, "names": _EDGE_ON}
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    flat = np.zeros((len(dense), 2 - d))  # one column is drawn along a line
    answer |= {"points": np.hstack([dense, flat]), "names": (*names, " ")[:2]}
    if found.separable:
        answer["plane"] = Hyperplane(np.append(witness.w, flat[0]), witness.b)
    elif found.separable is not None:
        common = np.append(witness.point, flat[0])
        answer |= {"rows": witness.rows, "weights": witness.weights, "common": common}
    return answer


def _edge_on(X: Any, plane: Hyperplane) -> Floats:
    """Return signed distances of rows from a plane, and their widest direction within it.

    The two directions are orthogonal unit vectors, so distances from the plane are true, and no
    other distance is exaggerated.
    """
    u = plane.normal
    rng = np.random.default_rng(0)
    v = rng.standard_normal(len(u))
    middle = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    # Power iteration on the rows' covariance within the plane; any v is correct, but the
    # widest shows most.
    for _ in range(30):
        v -= (v @ u) * u
        v /= np.linalg.norm(v)
        along = X @ v - middle @ v
        v = np.asarray(X.T @ along, dtype=np.float64) - middle * along.sum()
        if not v.any():
            break
    return np.column_stack([plane.signed_distance(X), along])
