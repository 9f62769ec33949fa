"""A circle becomes a plane: points of two classes, and the same points lifted.

    circle:    z = ‖x − c‖²                  gaussian:    z = exp(−‖x − c‖²/2s²)

A plane f = w·(x₁, x₂, z) + b = 0 between the lifted points is a curve in the plane of x. For the
first lift it is a circle, as ‖x‖² − 2x·m + ‖m‖² − r² is linear in (‖x‖², x).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats
from maxmargin.plots import style
from maxmargin.plots.planar import check_planar, draw_contours, pad
from maxmargin.plots.style import foreground, scatter

LIFTS = ("circle", "gaussian")
_GRID = 241  # points along each side of the grid on which f is computed for its contours


class Circle(NamedTuple):
    """A circle, and the class inside it: "positive" where f > 0, or "negative"."""

    center: Floats
    radius: float
    inside: str


class Lift(NamedTuple):
    """A lift of points of the plane: (‖x − c‖², −2(x − c), 1), or (x, exp(−‖x − c‖²/2s²))."""

    name: str
    center: Floats
    width: float

    @classmethod
    def of(cls, X: Floats, name: str, center: Any = None, width: float | None = None) -> Self:
        """Return a lift; by default around the origin, or the mean of the points."""
        if name not in LIFTS:
            raise ValueError(f"lift={name!r} is not valid: choose one of {', '.join(LIFTS)}.")
        if center is None:
            center = np.zeros(2) if name == "circle" else X.mean(axis=0)
        away = X - np.asarray(center, dtype=np.float64)
        spread = float(np.sqrt(np.mean(away**2))) or 1.0
        return cls(name, np.asarray(center, dtype=np.float64), width or spread)

    def transform(self, X: Floats) -> Floats:
        """Return lifted points."""
        away = X - self.center
        squares = (away**2).sum(axis=1)
        if self.name == "gaussian":
            return np.column_stack([X, np.exp(-squares / (2 * self.width**2))])
        return np.column_stack([squares, -2 * away, np.ones(len(X))])

    def circle(self, w: Floats, b: float) -> Circle | None:
        """Return the circle on which w₀‖x − c‖² − 2w·(x − c) + w₁ + b is 0, if it is one."""
        if self.name == "gaussian" or w[0] == 0:
            return None
        middle = w[1:-1] / w[0]
        squared = float(middle @ middle - (w[-1] + b) / w[0])
        if squared < 0:
            return None
        inside = "negative" if w[0] > 0 else "positive"
        return Circle(middle + self.center, float(np.sqrt(squared)), inside)


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
        data = check_planar(X, y)
        lifted = Lift.of(data.X, lift, center, width)
        return cls(
            data.X,
            data.y,
            lift=lift,
            center=lifted.center,
            width=lifted.width,
            names=data.feature_names,
            **fit_plane(lifted, data.X, data.y, C),
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


def fit_plane(lift: Lift, X: Floats, y: npt.NDArray[Any], C: float) -> dict[str, Any]:
    """Return the plane w·(x₁, x₂, z) + b = 0 between lifted points.

    It has the largest margin if one separates the points, and a soft margin otherwise. With it
    come the circle it means in the plane of x, if any, and whether it separates the points.
    """
    from maxmargin.errors import NotSeparableError
    from maxmargin.estimators import HardMarginSVC, LinearSVC

    Z, separates = lift.transform(X), True
    try:
        model = HardMarginSVC().fit(Z, y)
    except NotSeparableError:
        model, separates = LinearSVC(C=C).fit(Z, y), False
    w, b = model.coef_[0].astype(np.float64), float(model.intercept_[0])
    if lift.name == "gaussian":
        return {"coef": w, "intercept": b, "separates": separates}
    return {
        "coef": np.append(-2 * w[1:3], w[0]),
        "intercept": b + float(w[3]) + 2 * float(w[1:3] @ lift.center),
        "circle": lift.circle(w, b),
        "separates": separates,
    }


def cut_box(w: Floats, b: float, low: Floats, high: Floats) -> Floats:
    """Return the corners of the polygon in which the plane w·x + b = 0 cuts a box, in order."""
    corners = np.array(list(product(*zip(low, high, strict=True))))
    edges = [(i, i | bit) for i in range(8) for bit in (1, 2, 4) if not i & bit]
    first, second = corners[[i for i, _ in edges]], corners[[j for _, j in edges]]
    f, g = first @ w + b, second @ w + b
    crossed = (f > 0) != (g > 0)
    share = (f[crossed] / (f[crossed] - g[crossed]))[:, None]
    points = first[crossed] + share * (second - first)[crossed]
    if len(points) < 3:
        return np.empty((0, 3))
    # Sort them by angle around their middle, in units of the box, so that no side vanishes.
    around = (points - points.mean(axis=0)) / (high - low)
    across = np.linalg.svd(around)[2][:2]
    return np.asarray(points[np.argsort(np.arctan2(*(across @ around.T)))])
