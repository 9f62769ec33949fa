"""The suite every kernel passes by being listed in CASES."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from maxmargin.kernels import (
    RBF,
    ChiSquared,
    Columns,
    Constant,
    Cosine,
    FromFunction,
    FromMap,
    FromSklearn,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Power,
    Product,
    Scaled,
    Sigmoid,
    Sum,
)


def dot(x: Any, z: Any) -> float:
    return math.fsum(float(a) * float(b) for a, b in zip(x, z, strict=True))


def chi_squared(x: Any, z: Any) -> float:
    return math.fsum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def manhattan(x: Any, z: Any) -> float:
    return math.fsum(abs(a - b) for a, b in zip(x, z, strict=True))


def euclidean(x: Any, z: Any) -> float:
    return math.fsum((a - b) ** 2 for a, b in zip(x, z, strict=True))


def cosine(x: Any, z: Any) -> float:
    size = math.sqrt(dot(x, x) * dot(z, z))
    return dot(x, z) / size if size else 0.0


def linear_blocks(A: Any, B: Any) -> Any:
    return A @ B.T


def linear_pair(x: Any, z: Any) -> float:
    return float((x * z).sum())


def squares(X: Any) -> Any:
    return X.multiply(X) if hasattr(X, "multiply") else X * X


@dataclass(frozen=True)
class Case:
    """A kernel, what it is by definition, and what it can be fed."""

    name: str
    kernel: Kernel
    pair: Callable[[Any, Any], float]
    histograms: bool = False

    def __str__(self) -> str:
        return self.name

    def rows(self, n: int, d: int = 5, seed: int = 0, dtype: Any = np.float64) -> Any:
        """Random rows with many zeros, one row of zeros and one repeated row."""
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
        X[0] = 0
        X[-1] = X[n // 2]
        return (np.abs(X) if self.histograms else X).astype(dtype)


WEIGHTS = np.array([1.0, 0.5, 2.0, 0.0, 3.0])

CASES = [
    Case("linear", Linear(), dot),
    Case("polynomial", Polynomial(gamma=0.5), lambda x, z: (0.5 * dot(x, z) + 1) ** 3),
    Case("degree 0", Polynomial(degree=0), lambda x, z: 1.0),
    Case("negative coef0", Polynomial(coef0=-1.0), lambda x, z: (dot(x, z) - 1) ** 3),
    Case("rbf", RBF(gamma=0.7), lambda x, z: math.exp(-0.7 * euclidean(x, z))),
    Case("laplacian", Laplacian(gamma=0.3), lambda x, z: math.exp(-0.3 * manhattan(x, z))),
    Case("chi2", ChiSquared(gamma=0.4), lambda x, z: math.exp(-0.4 * chi_squared(x, z)), True),
    Case("intersection", Intersection(), lambda x, z: sum(map(min, x, z)), True),
    Case("cosine", Cosine(), cosine),
    Case("sigmoid", Sigmoid(0.5, -0.2), lambda x, z: math.tanh(0.5 * dot(x, z) - 0.2)),
    Case("constant", Constant(1.5), lambda x, z: 1.5),
    Case("blocks", FromFunction(linear_blocks), dot),
    Case("pairs", FromFunction(linear_pair, on="pairs"), dot),
    Case("map", FromMap(squares), lambda x, z: dot(x**2, z**2)),
    Case(
        "weighted map", FromMap(squares, WEIGHTS), lambda x, z: dot(WEIGHTS * x**2, WEIGHTS * z**2)
    ),
    Case("matern", FromSklearn(Matern(nu=0.5)), lambda x, z: math.exp(-math.sqrt(euclidean(x, z)))),
    Case(
        "sum",
        RBF(gamma=0.5) + Linear() + 2.0,
        lambda x, z: math.exp(-0.5 * euclidean(x, z)) + dot(x, z) + 2,
    ),
    Case("product", RBF() * Linear(), lambda x, z: math.exp(-euclidean(x, z)) * dot(x, z)),
    Case("scaled", 2.5 * Laplacian(), lambda x, z: 2.5 * math.exp(-manhattan(x, z))),
    Case("power", (Linear() + 1.0) ** 5, lambda x, z: (dot(x, z) + 1) ** 5),
    Case(
        "columns",
        Columns(RBF(), [0, -1]),
        lambda x, z: math.exp(-euclidean(x[[0, -1]], z[[0, -1]])),
    ),
    Case(
        "everything",
        3 * (Columns(RBF(), [1, 2]) + Intersection()) ** 2 * Cosine() + ChiSquared(),
        lambda x, z: (
            3 * (math.exp(-euclidean(x[1:3], z[1:3])) + sum(map(min, x, z))) ** 2 * cosine(x, z)
            + math.exp(-chi_squared(x, z))
        ),
        True,
    ),
    Case(
        "nested by hand",
        Sum([Sum([Linear(), RBF()]), Scaled(Scaled(Linear(), 2), 3)]),
        lambda x, z: 7 * dot(x, z) + math.exp(-euclidean(x, z)),
    ),
    Case("powers by hand", Power(Power(Product([Linear()]), 2), 1), lambda x, z: dot(x, z) ** 2),
]
