"""Points of the plane with a third coordinate, where a plane may separate what no line does.

    circle:    z = ‖x − c‖²                  gaussian:    z = exp(−‖x − c‖²/2s²)

A plane f = w·(x₁, x₂, z) + b = 0 between the lifted points is a curve in the plane of x. For the
first lift it is a circle, as ‖x‖² − 2x·m + ‖m‖² − r² is linear in (‖x‖², x).
"""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats
from maxmargin.errors import NotSeparableError

LIFTS = ("circle", "gaussian")


class Lift(NamedTuple):
    """How points get their third coordinate.

    Parameters
    ----------
    name : {"circle", "gaussian"}
        z = ‖x − c‖², or z = exp(−‖x − c‖²/2s²).
    center : ndarray of shape (2,)
        c.
    width : float, default=1.0
        s of the gaussian lift.
    """

    name: str
    center: Floats
    width: float = 1.0

    @classmethod
    def of(cls, X: Floats, name: str, center: Any = None, width: float | None = None) -> "Lift":
        """Return the lift for points (n, 2).

        By default its center is the origin for "circle" and the mean of the points for "gaussian",
        whose width is by default the spread of the points around the center.
        """
        if name not in LIFTS:
            raise ValueError(f"lift={name!r} is not valid: choose one of {', '.join(LIFTS)}.")
        if center is None:
            center = np.zeros(2) if name == "circle" else X.mean(axis=0)
        away = X - np.asarray(center, dtype=np.float64)
        if width is None:
            width = float(np.sqrt(np.mean(away**2))) or 1.0
        return cls(name, np.asarray(center, dtype=np.float64), width)

    def points(self, X: Any) -> Floats:
        """Return points with their height as the last coordinate; see ``lift_points``."""
        return lift_points(X, *self)


class Circle(NamedTuple):
    """A circle in the plane that separates two classes.

    Parameters
    ----------
    center : ndarray of shape (2,)
        Its centre.
    radius : float
        Its radius.
    inside : {"positive", "negative"}
        The class inside it.
    """

    center: Floats
    radius: float
    inside: str


class LiftedPlane(NamedTuple):
    """The plane f = w·(x₁, x₂, z) + b = 0 between lifted points, scaled so that f = ±1 are margins.

    Parameters
    ----------
    coef : ndarray of shape (3,)
        w.
    intercept : float
        b.
    circle : Circle or None, default=None
        What the plane is in the plane of x for the circle lift. None for another lift, or if the
        plane does not meet the lifted plane of x in a circle.
    separates : bool, default=True
        Whether all points are on their side.
    """

    coef: Floats
    intercept: float
    circle: Circle | None = None
    separates: bool = True


def lift_points(X: Any, lift: str, center: Any, width: float = 1.0) -> Floats:
    """Return points with their height z as the last coordinate.

    Parameters
    ----------
    X : array-like of shape (..., 2)
        Points.
    lift : {"circle", "gaussian"}
        z = ‖x − c‖², or z = exp(−‖x − c‖²/2s²).
    center : array-like of shape (2,)
        c.
    width : float, default=1.0
        s of the gaussian lift.

    Returns
    -------
    ndarray of shape (..., 3)
        The lifted points.

    Examples
    --------
    >>> lift_points([[3.0, 4.0]], "circle", (0, 0))
    array([[ 3.,  4., 25.]])
    """
    points = np.asarray(X, dtype=np.float64)
    away = points - np.asarray(center, dtype=np.float64)
    height = np.einsum("...i,...i->...", away, away)
    if lift == "gaussian":
        height = np.exp(-height / (2 * width**2))
    return np.concatenate([points, height[..., None]], axis=-1)


def fit_plane(lift: Lift, X: Floats, y: npt.NDArray[Any], hard: Any, soft: Any) -> LiftedPlane:
    """Return the plane between lifted points.

    Parameters
    ----------
    lift : Lift
        How the points are lifted. The margin is that in (‖x − c‖², −2(x − c), 1) for "circle", and
        that in (x, z) for "gaussian".
    X : ndarray of shape (n, 2)
        Points.
    y : ndarray of shape (n,)
        Labels of two classes.
    hard, soft : estimator
        Linear machines, such as ``HardMarginSVC()`` and ``LinearSVC()``. The second is fitted only
        if the first finds the lifted points not separable.

    Returns
    -------
    LiftedPlane
        w and b of the plane, the circle if it means one, and whether it separates the points.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(100, radii=(1, 2), random_state=0)
    >>> plane = fit_plane(Lift.of(X, "circle"), X, y, mm.HardMarginSVC(), mm.LinearSVC())
    >>> plane.separates, plane.circle.inside, 1.1 < plane.circle.radius < 1.9
    (True, 'positive', True)
    """
    Z, separates = lift.points(X), True
    if lift.name == "circle":
        Z = np.column_stack([Z[:, 2], -2 * (Z[:, :2] - lift.center), np.ones(len(Z))])
    try:
        model = hard.fit(Z, y)
    except NotSeparableError:
        model, separates = soft.fit(Z, y), False
    w, b = model.coef_[0].astype(np.float64), float(model.intercept_[0])
    if lift.name == "gaussian":
        return LiftedPlane(w, b, separates=separates)
    # f = w₀‖x − c‖² − 2(w₁, w₂)·(x − c) + w₃ + b
    height = b + float(w[3])
    coef = np.append(-2 * w[1:3], w[0])
    intercept = height + 2 * float(w[1:3] @ lift.center)
    return LiftedPlane(coef, intercept, _find_circle(lift, w, height), separates)


def _find_circle(lift: Lift, w: Floats, height: float) -> Circle | None:
    """Return where w₀‖x − c‖² − 2(w₁, w₂)·(x − c) + height is 0, if that is a circle."""
    if w[0] == 0:  # the plane is vertical
        return None
    middle = w[1:3] / w[0]
    squared = float(middle @ middle - height / w[0])
    side = "negative" if w[0] > 0 else "positive"
    return Circle(middle + lift.center, squared**0.5, side) if squared >= 0 else None


def cut_box(w: Floats, b: float, low: Floats, high: Floats) -> Floats:
    """Return the corners of the polygon in which the plane w·x + b = 0 cuts a box, in order.

    Parameters
    ----------
    w : ndarray of shape (3,)
        Normal of the plane.
    b : float
        Its intercept.
    low, high : ndarray of shape (3,)
        The lowest and the highest corner of the box.

    Returns
    -------
    ndarray of shape (n_corners, 3)
        Three to six corners; none if the plane does not cut the box.
    """
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
