"""Derivatives of kernels by their first row, summed with weights over the second.

    g(xᵢ) = Σⱼ Wᵢⱼ ∂K(xᵢ, zⱼ)/∂xᵢ

With weights for each pair the rules of sums, products and powers are those of calculus: a product
hands the values of the other factors on as weights. Where a kernel has a kink the derivative is
the mean of both sides.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.kernels.around import Columns, Power, Scaled
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.composed import Product, Sum
from maxmargin.kernels.distances import RBF, Laplacian
from maxmargin.kernels.dot_products import Cosine, Linear, Polynomial, Sigmoid
from maxmargin.kernels.given import Constant
from maxmargin.kernels.histograms import ChiSquared, Intersection

Floats = npt.NDArray[np.float64]
Rule = Callable[[Any, Floats, Floats, Floats], Floats]


def weighted_gradient(kernel: Kernel, X: Floats, Z: Floats, W: Floats) -> Floats:
    """Return Σⱼ Wᵢⱼ ∂K(xᵢ, zⱼ)/∂xᵢ for each row xᵢ.

    Parameters
    ----------
    kernel : Kernel
        One of ours but ``FromFunction``, ``FromMap`` and ``FromSklearn``, and what they compose.
    X, Z : arrays of shape (m, d) and (n, d)
        Rows, in float64.
    W : array of shape (m, n)
        A weight for each pair.

    Returns
    -------
    array of shape (m, d)
    """
    rule = _RULES.get(type(kernel))
    if rule is None:
        known = ", ".join(sorted(one.__name__ for one in _RULES))
        raise TypeError(f"the derivative of {kernel!r} is not known; it is for {known}.")
    return rule(kernel, X, Z, W)


def _linear(kernel: Linear, X: Floats, Z: Floats, W: Floats) -> Floats:
    return W @ Z


def _polynomial(kernel: Polynomial, X: Floats, Z: Floats, W: Floats) -> Floats:
    degree, gamma = int(kernel.degree), float(kernel.gamma)
    if degree == 0:
        return np.zeros_like(X)
    inner = gamma * (X @ Z.T) + float(kernel.coef0)
    return (W * (degree * gamma * inner ** (degree - 1))) @ Z


def _sigmoid(kernel: Sigmoid, X: Floats, Z: Floats, W: Floats) -> Floats:
    return (W * (float(kernel.gamma) * (1.0 - kernel.gram(X, Z) ** 2))) @ Z


def _cosine(kernel: Cosine, X: Floats, Z: Floats, W: Floats) -> Floats:
    x_norms, z_norms = np.linalg.norm(X, axis=1), np.linalg.norm(Z, axis=1)
    x_safe, z_safe = np.where(x_norms > 0, x_norms, np.inf), np.where(z_norms > 0, z_norms, np.inf)
    along = W @ (Z / z_safe[:, None])
    K = (W * kernel.gram(X, Z)).sum(axis=1)
    return np.asarray((along - K[:, None] * X / x_safe[:, None]) / x_safe[:, None])


def _rbf(kernel: RBF, X: Floats, Z: Floats, W: Floats) -> Floats:
    G = W * kernel.gram(X, Z)
    # From an origin amid the rows: a large mean would cost digits.
    centre = Z.mean(axis=0)
    away = G.sum(axis=1)[:, None] * (X - centre) - G @ (Z - centre)
    return np.asarray(-2.0 * float(kernel.gamma) * away)


def _by_columns(slope: Callable[[Any, Any], Any], G: Floats, X: Floats, Z: Floats) -> Floats:
    """Return Σⱼ Gᵢⱼ slope(xᵢ, zⱼ), a column of the rows after the other."""
    columns = range(X.shape[1])
    return np.column_stack([(G * slope(X[:, k, None], Z[None, :, k])).sum(axis=1) for k in columns])


def _laplacian(kernel: Laplacian, X: Floats, Z: Floats, W: Floats) -> Floats:
    G = -float(kernel.gamma) * W * kernel.gram(X, Z)
    return _by_columns(lambda x, z: np.sign(x - z), G, X, Z)


def _chi_squared(kernel: ChiSquared, X: Floats, Z: Floats, W: Floats) -> Floats:
    """Of (x − z)²/(x + z): (x − z)(x + 3z)/(x + z)², and 1 where z = 0, x = 0 included."""
    G = -float(kernel.gamma) * W * kernel.gram(X, Z)

    def slope(x: Any, z: Any) -> Any:
        total = np.where(x + z > 0, x + z, 1.0)
        return np.where(x + z > 0, (x - z) * (x + 3 * z) / total**2, 1.0)

    return _by_columns(slope, G, X, Z)


def _intersection(kernel: Intersection, X: Floats, Z: Floats, W: Floats) -> Floats:
    return _by_columns(lambda x, z: 0.5 * (1.0 + np.sign(z - x)), W, X, Z)


def _constant(kernel: Constant, X: Floats, Z: Floats, W: Floats) -> Floats:
    return np.zeros_like(X)


def _sum(kernel: Sum, X: Floats, Z: Floats, W: Floats) -> Floats:
    return np.asarray(sum(weighted_gradient(term, X, Z, W) for term in kernel.loss))


def _product(kernel: Product, X: Floats, Z: Floats, W: Floats) -> Floats:
    values = [factor.gram(X, Z) for factor in kernel.factors]
    total = np.zeros_like(X)
    for k, factor in enumerate(kernel.factors):
        others = np.prod([*values[:k], *values[k + 1 :], np.ones_like(W)], axis=0)
        total += weighted_gradient(factor, X, Z, W * others)
    return total


def _scaled(kernel: Scaled, X: Floats, Z: Floats, W: Floats) -> Floats:
    return weighted_gradient(kernel.kernel, X, Z, float(kernel.factor) * W)


def _power(kernel: Power, X: Floats, Z: Floats, W: Floats) -> Floats:
    p = int(kernel.exponent)
    return weighted_gradient(kernel.kernel, X, Z, W * (p * kernel.kernel.gram(X, Z) ** (p - 1)))


def _columns(kernel: Columns, X: Floats, Z: Floats, W: Floats) -> Floats:
    inner = weighted_gradient(kernel.kernel, X[:, kernel.columns], Z[:, kernel.columns], W)
    total = np.zeros_like(X)
    for k, column in enumerate(kernel.columns):  # one may occur twice
        total[:, column] += inner[:, k]
    return total


_RULES: dict[type[Kernel], Rule] = {
    Linear: _linear,
    Polynomial: _polynomial,
    Sigmoid: _sigmoid,
    Cosine: _cosine,
    RBF: _rbf,
    Laplacian: _laplacian,
    ChiSquared: _chi_squared,
    Intersection: _intersection,
    Constant: _constant,
    Sum: _sum,
    Product: _product,
    Scaled: _scaled,
    Power: _power,
    Columns: _columns,
}
