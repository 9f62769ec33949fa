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

LIFTS = {"circle": "square", "gaussian": "gaussian"}  # as CircleMap calls them


class LiftedPlane(NamedTuple):
    """The plane f = w·(x₁, x₂, z) + b = 0 between lifted points, scaled so that f = ±1 are margins.

    ``circle`` is what it means in the plane of x for the circle lift, with ``center``, ``radius``
    and the class ``inside``; None for another lift, or if the plane does not meet the lifted plane.
    """

    coef: Floats
    intercept: float
    circle: Any = None
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


def fit_plane(mapped: Any, X: Floats, y: npt.NDArray[Any], hard: Any, soft: Any) -> LiftedPlane:
    """Return the plane between points that a fitted CircleMap lifts.

    Parameters
    ----------
    mapped : CircleMap
        The lift.
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
    """
    Z, separates = mapped.transform(X), True
    try:
        model = hard.fit(Z, y)
    except NotSeparableError:
        model, separates = soft.fit(Z, y), False
    w, b = model.coef_[0].astype(np.float64), float(model.intercept_[0])
    if mapped.lift == "gaussian":
        return LiftedPlane(w, b, separates=separates)
    try:
        circle = mapped.circle(model)
    except ValueError:  # the plane is vertical, or does not meet the lifted plane of x
        circle = None
    # f = w₀‖x − c‖² − 2(w₁, w₂)·(x − c) + w₃ + b
    middle = float(w[1:3] @ mapped.center_)
    intercept = b + float(w[3]) + 2 * middle
    return LiftedPlane(np.append(-2 * w[1:3], w[0]), intercept, circle, separates)


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
