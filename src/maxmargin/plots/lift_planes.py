"""The plane between lifted points of two classes, and the part of it that a box shows."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array

from maxmargin.plots.panels import check_label_per_row

Floats = npt.NDArray[np.float64]


def check_two_classes(X: Any, y: Any) -> tuple[Floats, npt.NDArray[Any]]:
    """Return points of the plane, dense, and labels of two classes."""
    X = X.toarray() if sp.issparse(X) else X
    points = check_array(X, dtype=np.float64, input_name="X")
    if points.shape[1] != 2:
        raise ValueError(
            f"X has {points.shape[1]} columns, and a lift is drawn over two: pass two of them."
        )
    labels, classes = check_label_per_row(y, len(points))
    if len(classes) != 2:
        raise ValueError(
            f"y has {len(classes)} classes, and a plane has two sides: pass two classes, for "
            "instance one against the rest, y == label."
        )
    return points, labels


class Between(NamedTuple):
    """A plane w·(x₁, x₂, z) + b = 0, the circle it means, and whether it separates."""

    coef: Floats
    intercept: float
    circle: Any
    separates: bool


def plane_between(mapped: Any, X: Floats, y: npt.NDArray[Any], C: float) -> Between:
    """Return the plane of largest margin between points lifted by a CircleMap, or a soft one."""
    from maxmargin.errors import NotSeparableError
    from maxmargin.estimators import HardMarginSVC, LinearSVC

    Z, separates = mapped.transform(X), True
    try:
        model = HardMarginSVC().fit(Z, y)
    except NotSeparableError:
        model, separates = LinearSVC(C=C).fit(Z, y), False
    w, b = model.coef_[0].astype(np.float64), float(model.intercept_[0])
    if mapped.lift == "gaussian":
        return Between(w, b, None, separates)
    try:
        circle = mapped.circle(model)
    except ValueError:  # the plane is upright, or meets no point
        circle = None
    # f = w₀‖x − c‖² − 2(w₁, w₂)·(x − c) + w₃ + b
    middle = float(w[1:3] @ mapped.center_)
    return Between(np.append(-2 * w[1:3], w[0]), b + float(w[3]) + 2 * middle, circle, separates)


def box(X: Floats, pad: float) -> tuple[Floats, Floats]:
    """Return the lowest and the highest corner of a box around points, with some room."""
    low, high = X.min(axis=0), X.max(axis=0)
    # Where all are the same, the room must not be lost in a large value's rounding.
    room = np.where(high > low, pad * (high - low), np.maximum(1.0, 1e-9 * np.abs(high)))
    return low - room, high + room


def cut(w: Floats, b: float, low: Floats, high: Floats) -> Floats:
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
    # Around their middle, seen along w, in units of the box: so that no side is lost in another.
    around = (points - points.mean(axis=0)) / (high - low)
    across = np.linalg.svd(around)[2][:2]
    return np.asarray(points[np.argsort(np.arctan2(*(across @ around.T)))])
