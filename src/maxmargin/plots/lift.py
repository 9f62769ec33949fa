"""A circle becomes a plane: points of two classes, and the same points lifted.

    circle:    z = ‖x − c‖²                  gaussian:    z = exp(−‖x − c‖²/2s²)

A plane f = w·(x₁, x₂, z) + b = 0 over the lifted points means a curve in the plane of x. In the
first lift this is a circle, as ‖x‖² − 2x·m + ‖m‖² − r² is linear in (‖x‖², x).
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.plots.display import Display
from maxmargin.plots.lift_planes import box, check_two_classes, cut, plane_between
from maxmargin.plots.panels import column_names, dot_size, flat_and_solid, legend_under, panels
from maxmargin.plots.style import ink, scatter, text, thinned

Floats = npt.NDArray[np.float64]

_LIFTS = {"circle": "square", "gaussian": "gaussian"}  # as CircleMap calls them
_GRID = 241  # points a side, where f is computed for its contours
_SIZE = (8.0, 4.0)


class KernelLiftDisplay(Display):
    """Points of two classes in the plane beside their lift, with the plane between and its trace.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
        Points.
    y : ndarray of shape (n,)
        Labels of two classes; the plane is positive for the larger.
    lift : {"circle", "gaussian"}, default="circle"
        Which third coordinate z the points get.
    coef, intercept : ndarray of shape (3,), float
        w and b of the plane in (x₁, x₂, z), scaled such that f = ±1 are the margins.
    center : ndarray of shape (2,)
        c, what x is measured from.
    width : float, default=1.0
        s of the gaussian lift.
    circle : Circle or None, default=None
        Of the circle lift: ``center``, ``radius`` and the class ``inside``.
    separates : bool, default=True
        Whether the plane has all points on their sides.
    names : pair of str, default=("x₁", "x₂")
        Of the columns.

    Attributes
    ----------
    points_, lifted_ : list
        The artists of the points in the left and in the right panel, one for each class.
    contour_ : QuadContourSet or None
        f = −1, 0 and 1 in the left panel, as far as they are there.
    plane_ : Poly3DCollection or None
        The plane in the right panel.
    trace_ : list of lines
        Where the plane meets the lifted plane of x: the contour f = 0, lifted.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(100, radii=(1, 2), random_state=0)
    >>> display = mm.plots.KernelLiftDisplay.from_data(X, y, lift="circle")
    >>> display.separates, display.circle.inside, 1.1 < display.circle.radius < 1.9
    (True, 'positive', True)
    """

    points_: list[Any]
    lifted_: list[Any]
    contour_: Any
    plane_: Any
    trace_: list[Any]

    def __init__(
        self,
        X: Floats,
        y: npt.NDArray[Any],
        *,
        lift: str = "circle",
        coef: Floats,
        intercept: float,
        center: Floats,
        width: float = 1.0,
        circle: Any = None,
        separates: bool = True,
        names: Sequence[str] = ("x₁", "x₂"),
    ) -> None:
        self.X = X
        self.y = y
        self.lift = lift
        self.coef = coef
        self.intercept = intercept
        self.center = center
        self.width = width
        self.circle = circle
        self.separates = separates
        self.names = names

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        *,
        lift: str = "circle",
        center: Any = None,
        width: float | None = None,
        C: float = 1.0,
        ax: Any = None,
    ) -> Self:
        """Lift points, find the plane of largest margin there, and draw both.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, 2)
            Points.
        y : array-like of shape (n,)
            Labels of two classes.
        lift : {"circle", "gaussian"}, default="circle"
            "circle": (‖x‖², −2x, 1), drawn over (x₁, x₂) with ‖x‖² for its height; "gaussian":
            (x, r) with r = exp(−‖x − c‖²/2s²).
        center : array-like of shape (2,) or None, default=None
            c. None: the origin for "circle", the mean of the points for "gaussian".
        width : float or None, default=None
            s > 0 of "gaussian"; None: the spread of the points.
        C : float, default=1.0
            Cost of slack, above 0: only if no plane separates the lifted points.
        ax : array of two axes or None, default=None
            The first flat, the second of projection="3d"; None: a new figure.
        """
        from maxmargin.estimators import CircleMap

        if lift not in _LIFTS:
            raise ValueError(f"lift={lift!r} is not valid: choose one of {', '.join(_LIFTS)}.")
        points, labels = check_two_classes(X, y)
        mapped = CircleMap(_LIFTS[lift], center=center, width=width).fit(points)
        found = plane_between(mapped, points, labels, C)
        return cls(
            points,
            labels,
            lift=lift,
            coef=found.coef,
            intercept=found.intercept,
            center=mapped.center_,
            width=mapped.width_,
            circle=found.circle,
            separates=found.separates,
            names=column_names(X, 2),
        ).plot(ax)

    def height(self, X: Any) -> Floats:
        """Return z of points."""
        away = np.asarray(X, dtype=np.float64) - self.center
        squares = np.einsum("...i,...i->...", away, away)
        if self.lift == "circle":
            return np.asarray(squares)
        return np.asarray(np.exp(-squares / (2 * self.width**2)))

    def lifted(self, X: Any) -> Floats:
        """Return points with z as their last coordinate."""
        return np.concatenate([X, self.height(X)[..., None]], axis=-1)

    def plot(self, ax: Any = None) -> Self:
        """Draw the points and their lift.

        Parameters
        ----------
        ax : array of two axes or None, default=None
            The first flat, the second of projection="3d"; None: a new figure.
        """
        axes = flat_and_solid(_SIZE) if ax is None else panels(ax, 1, 2, _SIZE).ravel()
        if not hasattr(axes[1], "set_zlim"):
            raise ValueError("ax[1] must have three dimensions: add_subplot(projection='3d').")
        shown = thinned(len(self.X))
        X, y = self.X[shown], self.y[shown]
        classes, size = np.unique(self.y).tolist(), dot_size(len(shown))
        self.points_ = scatter(axes[0], X, y, classes, size)
        self._draw_contour(axes[0])
        self.lifted_ = scatter(axes[1], self.lifted(X), y, classes, size, depthshade=False)
        self._draw_plane(axes[1])
        all_of_them = len(shown) == len(self.X)
        self._label(axes, "" if all_of_them else f"\n{len(shown):,} of {len(self.X):,} points")
        legend_under(axes, [*self.points_, *_lines(axes[0])])
        return self._drawn(axes)

    def _draw_contour(self, ax: Any) -> None:
        (left, below), (right, above) = box(self.X, 0.08)
        x1, x2 = np.linspace(left, right, _GRID), np.linspace(below, above, _GRID)
        grid = self.lifted(np.stack(np.meshgrid(x1, x2), axis=-1))
        f = grid @ self.coef + self.intercept
        levels = [level for level in (-1.0, 0.0, 1.0) if f.min() < level < f.max()]
        self.contour_ = None
        if levels:
            looks = {
                "linestyles": ["--" if level else "-" for level in levels],
                "linewidths": [0.9 if level else 1.6 for level in levels],
            }
            self.contour_ = ax.contour(x1, x2, f, levels=levels, colors=ink(ax), **looks)
        ax.set(xlim=(left, right), ylim=(below, above), aspect="equal")

    def _draw_plane(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator
        from mpl_toolkits.mplot3d import art3d  # type: ignore[import-untyped]

        low, high = box(self.lifted(self.X), 0.08)
        corners = cut(self.coef, self.intercept, low, high)
        self.plane_ = None
        if len(corners):
            self.plane_ = art3d.Poly3DCollection([corners], facecolors=ink(ax), alpha=0.18)
            ax.add_collection3d(self.plane_)
        self.trace_ = []
        for curve in self._zero_curves():
            self.trace_ += ax.plot(*self.lifted(curve).T, color=ink(ax), linewidth=1.6)
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.set_pane_color((0.5, 0.5, 0.5, 0.06))
            axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))

    def _zero_curves(self) -> list[Floats]:
        if self.contour_ is None or 0.0 not in self.contour_.levels:
            return []
        path = self.contour_.get_paths()[list(self.contour_.levels).index(0.0)]
        return [np.asarray(line) for line in path.to_polygons(closed_only=False)]

    def _label(self, axes: Any, thin: str) -> None:
        curve = "curve" if self.lift == "gaussian" else "circle" if self.circle else "line"
        square = "‖x − c‖²" if self.center.any() else "‖x‖²"
        height = square if self.lift == "circle" else f"exp(−{square}/2s²)"
        left, right = f"A {curve} in the plane …", "… is a plane"
        if not self.separates:
            left, right = "None separates all: soft margin", "A plane"
        axes[0].set(xlabel=text(self.names[0]), ylabel=text(self.names[1]))
        axes[0].set_title(left + thin)
        axes[1].set(xlabel=text(self.names[0], 12), ylabel=text(self.names[1], 12))
        axes[1].set_zlabel("z", labelpad=-2.0)
        axes[1].set_box_aspect(None, zoom=0.95)  # so that the figure holds its labels
        axes[1].set_title(f"{right} in z = {height}")


def _lines(ax: Any) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=ink(ax), linewidth=1.6, label="f = 0"),
        Line2D([], [], color=ink(ax), linewidth=0.9, linestyle="--", label="f = ±1"),
    ]
