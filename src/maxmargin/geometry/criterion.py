"""What a perceptron descends: by how much the rows that it has wrong are wrong.

    E(w, b) = −Σ y(w·x + b) over the mistakes, the rows with y(w·x + b) ≤ 0
            = Σ max(0, −y(w·x + b))

E is convex and piecewise linear, and 0 exactly if no row is strictly on the wrong side. Its
gradient is −Σ y(x, 1) over the mistakes, so the perceptron's update w += ηyx, b += ηy is a step of
length η down the gradient of one of them: stochastic gradient descent on E. E is also 0 at w = 0,
b = 0, and shrinks with the scale of (w, b), so a small E alone does not make a plane a good one.

With several classes −y(w·x + b) becomes the lead of the best rival, max s_r − s_y over r ≠ y, and
the gradient step the update of both classes.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.geometry.bounds import multiclass_leads
from maxmargin.geometry.inputs import Vector
from maxmargin.geometry.planes import Plane, no_plane
from maxmargin.validation.data import regression_weights


def perceptron_criterion(plane: Plane, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return E = −Σ y f over the mistakes (y f ≤ 0), which the perceptron descends.

    It is 0 exactly if no row is strictly on the wrong side, also where all rows lie on the plane
    itself, as for w = 0 and b = 0. For several classes see ``multiclass_perceptron_criterion``.

    Parameters
    ----------
    plane : Hyperplane or KernelHyperplane
        The plane; of a fitted model ``mm.geometry.hyperplane(model)``.
    X : array-like or sparse matrix of shape (n, d)
        Points.
    y : array-like of shape (n,)
        Labels.
    sample_weight : array-like of shape (n,), optional
        How many times each row counts.

    Examples
    --------
    The second point is wrong by 3, the third lies on the plane:

    >>> from maxmargin.geometry import Hyperplane
    >>> perceptron_criterion(Hyperplane([1, 0], -2), [[4, 0], [5, 0], [2, 7]], [1, -1, 1])
    3.0
    """
    if not isinstance(plane, Plane):
        raise TypeError(no_plane(plane))
    margins = plane.functional_margin(X, y)
    return criterion_of_margins(margins, regression_weights(sample_weight, len(margins)))


def multiclass_perceptron_criterion(
    W: npt.ArrayLike,
    b: npt.ArrayLike,
    X: Any,
    y_index: npt.ArrayLike,
    sample_weight: Any = None,
) -> float:
    """Return E = Σ (s_r − s_y) over the mistakes, which the multiclass perceptron descends.

    s = Wx + b are the scores, r is the best class other than the right class y, and a mistake is a
    row with s_y ≤ s_r. For two classes with weights w/2 and −w/2 it is ``perceptron_criterion``.

    Parameters
    ----------
    W : array-like of shape (K, d)
        Weights, one row per class.
    b : array-like of shape (K,)
        Intercepts.
    X : array-like or sparse matrix of shape (n, d)
        Points.
    y_index : array-like of int of shape (n,)
        The row of W that is right for each point, from 0 to K − 1.
    sample_weight : array-like of shape (n,), optional
        How many times each row counts.

    Examples
    --------
    >>> W, X = [[1, 0], [0, 1], [0, 0]], [[3, 1], [2, 5]]
    >>> multiclass_perceptron_criterion(W, [0, 0, 0], X, [0, 2])
    5.0
    """
    leads = multiclass_leads(W, b, X, y_index)
    return criterion_of_margins(leads, regression_weights(sample_weight, len(leads)))


def criterion_of_margins(margins: Vector, weight: Vector) -> float:
    """Return Σ weight·max(0, −margin), of margins y f or of leads over the best rival.

    Examples
    --------
    >>> criterion_of_margins(np.array([2.0, -3.0]), np.array([1.0, 2.0]))
    6.0
    """
    return float(weight @ np.maximum(0.0, -margins)) + 0.0  # + 0.0: never −0
