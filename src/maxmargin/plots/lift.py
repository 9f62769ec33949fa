"""A circle becomes a plane: points of two classes, and the same points lifted.

    circle:    z = ‖x − c‖²                  gaussian:    z = exp(−‖x − c‖²/2s²)

A plane f = w·(x₁, x₂, z) + b = 0 between the lifted points is a curve in the plane of x. For the
first lift it is a circle, as ‖x‖² − 2x·m + ‖m‖² − r² is linear in (‖x‖², x).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats
from maxmargin.geometry import LIFTS, Lift, cut_box, fit_plane, lift_points, pad
from maxmargin.plots import style
from maxmargin.plots.planar import check_planar, draw_contours
from maxmargin.plots.style import foreground, scatter

_GRID = 241  # points along each side of the grid on which f is computed for its contours


@dataclass(eq=False, repr=False)
class KernelLiftDisplay(style.Display):
    """Points of two classes, and their lift with the plane that separates them.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
        Points.
    y : ndarray of shape (n,)
        Labels of two classes; the plane is positive for the larger.
    lift : {"circle", "gaussian"}, default="circle"
        The third coordinate z that is added to the points.
    coef, intercept : ndarray of shape (3,), float
        w and b of the plane in (x₁, x₂, z), scaled so that f = ±1 are the margins.
    center : ndarray of shape (2,)
        c, the origin of the lift.
    width : float, default=1.0
        s of the gaussian lift.
    circle : Circle or None, default=None
        For the circle lift: ``center``, ``radius`` and the class ``inside``.
    separates : bool, default=True
        Whether all points are on their side of the plane.
    names : pair of str, default=("x₁", "x₂")
        Names of the columns.

    Attributes
    ----------
    points_, lifted_ : list
        The artists of the points in the left and in the right panel, one per class.
    contour_ : QuadContourSet or None
        Those of f = −1, 0 and 1 that the left panel shows.
    plane_ : Poly3DCollection or None
        The plane in the right panel.
    surface_ : list of lines
        The net of rings and rays around the center; empty if that is not among the points.
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

    X: Floats
    y: npt.NDArray[Any]
    _: KW_ONLY
    lift: str = "circle"
    coef: Floats
    intercept: float
    center: Floats
    width: float = 1.0
    circle: Any = None
    separates: bool = True
    names: Sequence[str] = ("x₁", "x₂")

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
            Cost of slack, above 0; used only if no plane separates the lifted points.
        ax : array of two axes or None, default=None
            The first flat, the second of projection="3d"; None: a new figure.
        """
        from maxmargin.estimators import CircleMap, HardMarginSVC, LinearSVC

        if lift not in LIFTS:
            raise ValueError(f"lift={lift!r} is not valid: choose one of {', '.join(LIFTS)}.")
        data = check_planar(X, y)
        mapped = CircleMap("square" if lift == "circle" else lift, center=center, width=width).fit(
            data.X
        )
        chosen = Lift(lift, mapped.center_, mapped.width_)
        return cls(
            data.X,
            data.y,
            lift=lift,
            center=mapped.center_,
            width=mapped.width_,
            names=data.feature_names,
            **fit_plane(chosen, data.X, data.y, HardMarginSVC(), LinearSVC(C=C))._asdict(),
        ).plot(ax)

    def height(self, X: Any) -> Floats:
        """Return z of points."""
        return self.lifted(X)[..., 2]

    def lifted(self, X: Any) -> Floats:
        """Return points with z as their last coordinate."""
        return lift_points(X, self.lift, self.center, self.width)

    def _axes(self, ax: Any) -> Any:
        if ax is None:
            figure = style.pyplot().figure(figsize=(8.0, 4.0), layout="constrained")
            ax = [figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2, projection="3d")]
        axes = style.panels(ax, 1, 2, (8.0, 4.0)).ravel()
        if axes[1].name != "3d":
            raise ValueError("ax[1] must have three dimensions: add_subplot(projection='3d').")
        return axes

    def _draw(self, axes: Any) -> None:
        shown = style.thin(len(self.X))
        X, y = self.X[shown], self.y[shown]
        classes, size = np.unique(self.y).tolist(), style.dot_size(len(shown))
        self.points_ = scatter(axes[0], X, y, classes, size)
        (left, below), (right, above) = pad(self.X)
        x1, x2 = np.linspace(left, right, _GRID), np.linspace(below, above, _GRID)
        grid = self.lifted(np.stack(np.meshgrid(x1, x2), axis=-1))
        self.contour_ = draw_contours(axes[0], (x1, x2, grid @ self.coef + self.intercept))
        axes[0].set(xlim=(left, right), ylim=(below, above), aspect="equal")
        self.lifted_ = scatter(axes[1], self.lifted(X), y, classes, size, depthshade=False)
        self._draw_surface(axes[1])
        self._draw_plane(axes[1])
        self._label(axes, style.sampled(len(shown), len(self.X)))
        style.legend_under(axes, axes[0].get_legend_handles_labels()[0])

    @property
    def _around_center(self) -> bool:
        """Whether the center is among the points, so that the surface around it can be seen."""
        low, high = pad(self.X)
        return bool(np.all((low < self.center) & (self.center < high)))

    def _draw_surface(self, ax: Any) -> None:
        """Draw the bowl or the hill on which the lifted points lie, as rings and rays."""
        self.surface_ = []
        if not self._around_center:
            return
        away = np.linalg.norm(self.X - self.center, axis=1).max()
        radii, angles = np.linspace(0, away, 41), np.linspace(0, 2 * np.pi, 97)
        x1, x2 = radii[:, None] * np.cos(angles), radii[:, None] * np.sin(angles)
        net = self.lifted(self.center + np.stack([x1, x2], axis=-1))
        lines = [*net[8::8], *net.swapaxes(0, 1)[:-1:8]]
        self.surface_ = [
            ax.plot(*line.T, color=style.GREY, linewidth=0.6, alpha=0.5)[0] for line in lines
        ]
        ax.view_init(elev=20)

    def _draw_plane(self, ax: Any) -> None:
        from matplotlib.ticker import MaxNLocator
        from mpl_toolkits.mplot3d import art3d  # type: ignore[import-untyped]

        tip = self.center[None] if self._around_center else self.X[:1]
        low, high = pad(self.lifted(np.vstack([self.X, tip])))
        corners = cut_box(self.coef, self.intercept, low, high)
        self.plane_ = None
        if len(corners):
            self.plane_ = art3d.Poly3DCollection([corners], facecolors=foreground(ax), alpha=0.18)
            ax.add_collection3d(self.plane_)
        self.trace_ = []
        if self.contour_ is not None and 0.0 in self.contour_.levels:
            path = self.contour_.get_paths()[list(self.contour_.levels).index(0.0)]
            for curve in path.to_polygons(closed_only=False):
                self.trace_ += ax.plot(*self.lifted(curve).T, color=foreground(ax), linewidth=1.6)
        for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
            axis.set_pane_color((0.5, 0.5, 0.5, 0.06))
            axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))

    def _label(self, axes: Any, sampled: str) -> None:
        curve = "curve" if self.lift == "gaussian" else "circle" if self.circle else "line"
        square = "‖x − c‖²" if self.center.any() else "‖x‖²"
        height = square if self.lift == "circle" else f"exp(−{square}/2s²)"
        left, right = f"A {curve} in the plane …", "… is a plane"
        if not self.separates:
            left, right = "None separates all: soft margin", "A plane"
        style.label_axes(axes[0], self.names)
        axes[0].set_title("\n".join(filter(None, [left, sampled])))
        style.label_axes(axes[1], self.names, 12)
        axes[1].set_zlabel("z", labelpad=-2.0)
        axes[1].set_box_aspect(None, zoom=1.05)  # so that its labels stay inside the figure
        axes[1].set_title(f"{right} in z = {height}")
