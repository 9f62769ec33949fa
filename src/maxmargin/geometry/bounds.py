"""What a margin is worth: how many updates a perceptron can make before it is right.

Lift the points to x̃ = (x, 1), so that the intercept is one more weight, and let u = (w, b)/‖(w, b)‖
separate them with y u·x̃ ≥ γ̃ > 0. Every update w̃ += η y x̃, made where y f ≤ θ, adds at least ηγ̃ to
w̃·u and at most η²R̃² + 2ηθ to ‖w̃‖². After k updates from w̃₀

    kηγ̃ − ‖w̃₀‖  ≤  w̃·u  ≤  ‖w̃‖  ≤  √(‖w̃₀‖² + k(η²R̃² + 2ηθ)),

and squaring gives k ≤ (R̃² + 2θ/η)/γ̃² + 2‖w̃₀‖/(ηγ̃).

With several classes an update moves two weight vectors, W̃_y += ηx̃ and W̃_r −= ηx̃ where
s_y − s_r ≤ θ for the best rival r. It adds at most 2η²R̃² + 2ηθ to ‖W̃‖², so R̃² becomes 2R̃².
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.geometry.inputs import (
    BLOCK_SIZE,
    KernelLike,
    blocks,
    check_number,
    check_rows,
    check_vector,
    largest_squared_norm,
    row_products,
)
from maxmargin.geometry.planes import Hyperplane, KernelHyperplane

# A bound may be attained exactly, and must not fall below that by rounding.
_ROUNDED_UP = 1.0 + 1e-12


def radius(X: Any) -> float:
    """Return max ‖x‖, the radius of the smallest ball around 0 that holds the rows.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows.

    Returns
    -------
    float
        The radius.

    Examples
    --------
    >>> radius([[3, 4], [1, 0]])
    5.0
    """
    return math.sqrt(largest_squared_norm(check_rows(X)))


def kernel_radius(kernel: KernelLike, X: Any) -> float:
    """Return max ‖φ(x)‖ = √(max K(x, x)), the radius in a kernel's feature space.

    Parameters
    ----------
    kernel : Kernel, or object with a method ``gram``
        The kernel.
    X : array-like of shape (n_samples, n_features)
        The rows.

    Returns
    -------
    float
        The radius.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> square = SimpleNamespace(gram=lambda A, B: (A @ B.T) ** 2)
    >>> kernel_radius(square, [[3, 4], [1, 0]])
    25.0
    """
    if not hasattr(kernel, "gram"):
        raise TypeError(
            f"kernel must be a kernel, such as mm.kernels.RBF(0.5), got {type(kernel).__name__}; "
            "for a fitted model, pass model.kernel_"
        )
    return math.sqrt(_self_product(kernel, check_rows(X)))


def mistake_bound(
    plane: Hyperplane | KernelHyperplane,
    X: Any,
    y: Any,
    *,
    margin: float = 0.0,
    eta: float = 1.0,
    start_norm: float = 0.0,
    fit_intercept: bool = True,
) -> float:
    """Return the most updates a perceptron can make, in any order and any number of passes.

    (R̃² + 2θ/η)/γ̃² + 2‖w̃₀‖/(ηγ̃) with γ̃ = min y f/√(‖w‖² + b²) and R̃² = max ‖x‖² + 1 (for a kernel
    max K(x, x) + 1). The better the plane, the lower the bound; it is infinite for a plane that
    does not separate the classes.

    Parameters
    ----------
    plane : Hyperplane or KernelHyperplane
        Any plane that separates; for a kernel perceptron, one in that kernel's feature space.
    X : array-like or sparse matrix of shape (n, d)
        Points.
    y : array-like of shape (n,)
        Labels.
    margin : float, default 0
        θ: the perceptron updates where y f ≤ θ.
    eta : float, default 1
        η: the step of an update.
    start_norm : float, default 0
        ‖(w₀, b₀)‖ of the weights it starts from.
    fit_intercept : bool, default True
        False for a perceptron without intercept: then nothing is lifted, and the plane's b must
        be 0.

    Examples
    --------
    >>> round(mistake_bound(Hyperplane([1, 0]), [[-2, 0], [2, 0]], [-1, 1]), 9)
    1.25
    """
    if not isinstance(plane, Hyperplane | KernelHyperplane):
        raise TypeError(
            f"plane must be a Hyperplane or a KernelHyperplane, got {type(plane).__name__}; for a "
            "fitted linear model, pass Hyperplane(model.coef_[0], model.intercept_[0])"
        )
    if not fit_intercept and plane.b != 0:
        raise ValueError(
            f"plane has b = {plane.b:g}, but fit_intercept=False; give a plane with b = 0"
        )
    X = check_rows(X)
    smallest = float(plane.functional_margin(X, y).min())
    size = math.hypot(plane.norm, plane.b)
    if isinstance(plane, KernelHyperplane):
        squared_radius = _self_product(plane.kernel, X)
    else:
        squared_radius = largest_squared_norm(X)
    return update_bound(smallest, size, squared_radius + fit_intercept, margin, eta, start_norm)


def multiclass_mistake_bound(
    W: npt.ArrayLike,
    b: npt.ArrayLike,
    X: Any,
    y_index: npt.ArrayLike,
    *,
    margin: float = 0.0,
    eta: float = 1.0,
    start_norm: float = 0.0,
    fit_intercept: bool = True,
) -> float:
    """Return the largest number of updates a multiclass perceptron can make.

    (2R̃² + 2θ/η)/γ̃² + 2‖W̃₀‖/(ηγ̃) with γ̃ the smallest s_y − max s_r over r ≠ y, of the scores
    s = Wx + b, divided by the Frobenius norm of (W, b). An update moves the right class and its
    best rival if the lead of the former over the latter is θ or less.

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
    margin, eta, start_norm, fit_intercept
        As for ``mistake_bound``; the norm at the start is that of all classes together.

    Examples
    --------
    >>> X, W = [[2, 0], [-2, 0], [0, 2]], [[2, 0], [-2, 0], [0, 2]]
    >>> round(multiclass_mistake_bound(W, [0, 0, 0], X, [0, 1, 2]), 9)
    7.5
    """
    lead = float(multiclass_leads(W, b, X, y_index).min())
    if not fit_intercept and np.any(b):
        raise ValueError("b is not zero, but fit_intercept=False; give weights with b = 0")
    size = math.hypot(np.linalg.norm(W), np.linalg.norm(b))
    squared_radius = 2.0 * (largest_squared_norm(check_rows(X)) + fit_intercept)
    return update_bound(lead, size, squared_radius, margin, eta, start_norm)


def multiclass_leads(
    W: npt.ArrayLike, b: npt.ArrayLike, X: Any, y_index: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Return s_y − max s_r over r ≠ y for each row, of the scores s = Wx + b, all of it checked.

    Examples
    --------
    >>> multiclass_leads([[1, 0], [0, 1], [0, 0]], [0, 0, 0], [[3, 1], [2, 5]], [0, 2])
    array([ 2., -5.])
    """
    weights = np.asarray(check_rows(W, name="W"), dtype=np.float64)
    intercepts = check_vector(b, "b")
    X = check_rows(X, weights.shape[1])
    if len(weights) < 2 or len(intercepts) != len(weights):
        raise ValueError(
            f"W has {len(weights)} rows and b {len(intercepts)} entries; both need "
            "one for each of two or more classes"
        )
    y, n_classes = np.asarray(y_index), len(weights)
    if y.shape != (X.shape[0],) or y.dtype.kind not in "iu":
        raise ValueError(
            f"y_index must be {X.shape[0]} whole numbers, got {y.dtype} of shape {y.shape}"
        )
    if y.min() < 0 or y.max() >= n_classes:
        raise ValueError(f"y_index must lie from 0 to {n_classes - 1}, got {y.min()} to {y.max()}")
    return leads(row_products(X, weights.T) + intercepts, y)


def leads(scores: npt.NDArray[np.float64], y: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return by how much the score of the right class exceeds the best of the others, row by row.

    Examples
    --------
    >>> leads(np.array([[3.0, 1.0, 2.0], [0.0, 1.0, 4.0]]), np.array([0, 1]))
    array([ 1., -3.])
    """
    rows = np.arange(len(y))
    others = scores.copy()
    others[rows, y] = -np.inf
    return np.asarray(scores[rows, y] - others.max(axis=1))


def update_bound(
    smallest: float, size: float, squared_radius: float, margin: float, eta: float, start: float
) -> float:
    """Return the bound from min y f, ‖(w, b)‖, R̃² (several classes: 2R̃²), θ, η and ‖w̃₀‖.

    Examples
    --------
    >>> round(update_bound(2.0, 1.0, 5.0, margin=0.0, eta=1.0, start=0.0), 9)
    1.25
    """
    theta = check_number("margin", margin, least=0.0)
    eta = check_number("eta", eta, above=0.0)
    start = check_number("start_norm", start, least=0.0)
    if smallest <= 0:
        return math.inf
    # Divided by γ̃ twice, never by its square: that underflows for tiny margins.
    gamma = smallest / size
    if gamma == 0:  # the margin underflows beside the length of w
        return math.inf
    bound = (squared_radius + 2.0 * theta / eta) / gamma / gamma + 2.0 * start / eta / gamma
    return bound * _ROUNDED_UP


def _self_product(kernel: KernelLike, X: Any) -> float:
    """Return max K(x, x) over the rows."""
    if hasattr(kernel, "diag"):
        largest = max(float(np.max(kernel.diag(block))) for block in blocks(X))
    else:  # from small square Gram matrices
        largest = max(
            float(np.diagonal(kernel.gram(block, block)).max())
            for block in blocks(X, width=BLOCK_SIZE // 64)
        )
    if largest < 0:
        raise ValueError(f"kernel is not positive semidefinite: K(x, x) = {largest:g} for some x")
    return largest
