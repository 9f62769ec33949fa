"""Planes with given weights, in the space of the data or in a kernel's feature space."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from maxmargin.geometry.inputs import (
    KernelLike,
    Vector,
    blocks,
    check_number,
    check_positive,
    check_rows,
    check_vector,
    is_sparse,
    row_products,
    signs,
)
from maxmargin.kernels import Kernel as OurKernel


class ClassMargins(NamedTuple):
    """The smallest absolute distance to a plane in each class."""

    negative: float
    positive: float


class Plane(ABC):
    """What every plane f = 0 can do, whichever space it lies in.

    ``signed_distance`` is f/‖w‖, ``functional_margin`` y f, ``geometric_margin`` y f/‖w‖ and
    ``absolute_distance`` |f|/‖w‖. Distances are undefined for w = 0 and raise a ValueError.
    """

    b: float

    @abstractmethod
    def decision_function(self, X: Any) -> Vector:
        """Return f for each row."""

    @property
    @abstractmethod
    def norm(self) -> float:
        """Return ‖w‖."""

    @abstractmethod
    def scaled(self, c: float) -> Self:
        """Return the same plane written as (c w, c b), for c > 0."""

    @abstractmethod
    def flipped(self) -> Self:
        """Return the plane with its sides exchanged: (−w, −b)."""

    @abstractmethod
    def parallel(self, b: float) -> Self:
        """Return the plane with the same w and another b."""

    @abstractmethod
    def gradient(self, X: Any) -> npt.NDArray[np.float64]:
        """Return ∂f/∂x at each row: how the score answers to a change of each column."""

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return +1 where f > 0, else −1."""
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.int64)

    def step(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the output of the step neuron: 1 where f ≥ 0, else 0."""
        return (self.decision_function(X) >= 0).astype(np.int64)

    def signed_distance(self, X: Any) -> Vector:
        """Return f/‖w‖ for each row: its distance, positive on the positive side."""
        return self.decision_function(X) / self._length

    def functional_margin(self, X: Any, y: Any) -> Vector:
        """Return y f for each row: positive where the label is right."""
        f = self.decision_function(X)
        return signs(y, len(f)) * f

    def geometric_margin(self, X: Any, y: Any) -> Vector:
        """Return y f/‖w‖ for each row: its distance, positive where the label is right."""
        return self.functional_margin(X, y) / self._length

    def absolute_distance(self, X: Any) -> Vector:
        """Return |f|/‖w‖ for each row: its distance."""
        return np.abs(self.signed_distance(X))

    def set_margin(self, X: Any) -> float:
        """Return min |f|/‖w‖: the distance of the nearest row."""
        return float(self.absolute_distance(X).min())

    def class_margins(self, X: Any, y: Any) -> ClassMargins:
        """Return min |f|/‖w‖ for each class."""
        distance = self.absolute_distance(X)
        positive = signs(y, len(distance)) > 0
        if positive.all() or not positive.any():
            raise ValueError("y has one class only; margins of both classes need both")
        return ClassMargins(float(distance[~positive].min()), float(distance[positive].min()))

    def total_margin(self, X: Any, y: Any) -> float:
        """Return the sum of both class margins, the same for all parallel planes that separate."""
        return sum(self.class_margins(X, y))

    @property
    def _length(self) -> float:
        if self.norm == 0:
            raise ValueError("w is zero: it has no direction, so distances are undefined")
        return self.norm


@dataclass(frozen=True, eq=False, init=False)
class Hyperplane(Plane):
    """The plane w·x + b = 0 with given weights.

    Parameters
    ----------
    w : array-like of shape (d,)
        Weights; they point to the positive class. Zeros are allowed, but have no distances.
    b : float, default 0
        Intercept; b > 0 moves the plane against w.

    Examples
    --------
    The neuron that computes AND:

    >>> neuron = Hyperplane([1, 1], -1.5)
    >>> neuron.step([[0, 0], [0, 1], [1, 0], [1, 1]])
    array([0, 0, 0, 1])

    Four margins of one point:

    >>> plane, x, y = Hyperplane([3, 4], -5), [[0, 0]], [+1]
    >>> plane.signed_distance(x), plane.absolute_distance(x)
    (array([-1.]), array([1.]))
    >>> plane.functional_margin(x, y), plane.geometric_margin(x, y)
    (array([-5.]), array([-1.]))
    """

    w: Vector
    b: float

    def __init__(self, w: npt.ArrayLike, b: float = 0.0) -> None:
        object.__setattr__(self, "w", check_vector(w, "w"))
        object.__setattr__(self, "b", check_number("b", b))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hyperplane):
            return NotImplemented
        return self.b == other.b and np.array_equal(self.w, other.w)

    def __hash__(self) -> int:
        return hash((tuple(self.w.tolist()), self.b))

    @cached_property
    def norm(self) -> float:
        """Return ‖w‖."""
        # Scaled, so that neither huge nor tiny weights are lost in their squares.
        largest = float(np.abs(self.w).max())
        return largest * float(np.linalg.norm(self.w / largest)) if largest > 0 else 0.0

    @property
    def normal(self) -> Vector:
        """Return w/‖w‖, the unit vector that points to the positive class."""
        return self.w / self._length

    @property
    def offset(self) -> float:
        """Return −b/‖w‖, where the plane crosses the line through 0 along the normal."""
        return (0.0 - self.b) / self._length

    def decision_function(self, X: Any) -> Vector:
        """Return w·x + b for each row."""
        return row_products(check_rows(X, len(self.w)), self.w) + self.b

    def gradient(self, X: Any) -> npt.NDArray[np.float64]:
        """Return w for each row: everywhere the same."""
        return np.tile(self.w, (check_rows(X, len(self.w)).shape[0], 1))

    def project(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the point of the plane nearest to each row, as a dense float64 array."""
        X = check_rows(X, len(self.w))
        step = np.outer(self.signed_distance(X), self.normal)
        return np.asarray((X.toarray() if is_sparse(X) else X) - step)

    def line(self, x1: npt.ArrayLike) -> Any:
        """Return x₂ = −b/w₂ − (w₁/w₂) x₁, to draw a plane in two dimensions."""
        if len(self.w) != 2:
            raise ValueError(f"w has {len(self.w)} weights; only a plane in 2-D is a line")
        w1, w2 = self.w.tolist()
        if w2 == 0:
            where = f"it is vertical, x₁ = {-self.b / w1:g}" if w1 else "w is zero"
            raise ValueError(f"the line has no x₂ for a given x₁: {where}")
        return -self.b / w2 - (w1 / w2) * np.asarray(x1, dtype=np.float64)

    def scaled(self, c: float) -> Self:
        """Return the same plane written as (c w, c b), for c > 0."""
        c = check_positive("c", c)
        return replace(self, w=c * self.w, b=c * self.b)

    def flipped(self) -> Self:
        """Return the plane with its sides exchanged: (−w, −b)."""
        return replace(self, w=0.0 - self.w, b=0.0 - self.b)

    def parallel(self, b: float) -> Self:
        """Return the plane with the same w and another b."""
        return replace(self, b=b)


@dataclass(frozen=True, eq=False, init=False)
class KernelHyperplane(Plane):
    """The plane f(x) = Σ aₙ K(xₙ, x) + b = 0 in a kernel's feature space, where w = Σ aₙ φ(xₙ).

    Parameters
    ----------
    kernel : object with ``gram(A, B)``
        The kernel K.
    vectors : array-like or sparse matrix of shape (n, d)
        The points xₙ.
    coefficients : array-like of shape (n,)
        The numbers aₙ (for a support vector machine αₙyₙ).
    b : float, default 0
        Intercept.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> square = SimpleNamespace(gram=lambda A, B: (A @ B.T) ** 2)
    >>> circle = KernelHyperplane(square, [[1, 0], [0, 1]], [1, 1], b=-1)
    >>> circle.predict([[2, 0], [0.5, 0]])
    array([ 1, -1])
    >>> round(circle.norm**2, 12)
    2.0
    """

    kernel: KernelLike
    vectors: Any
    coefficients: Vector
    b: float

    def __init__(
        self, kernel: KernelLike, vectors: Any, coefficients: npt.ArrayLike, b: float = 0.0
    ) -> None:
        points = check_rows(vectors, name="vectors").astype(np.float64, copy=False)
        numbers = check_vector(coefficients, "coefficients")
        if points.shape[0] != len(numbers):
            raise ValueError(
                f"coefficients has {len(numbers)} entries for {points.shape[0]} vectors"
            )
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "vectors", points)
        object.__setattr__(self, "coefficients", numbers)
        object.__setattr__(self, "b", check_number("b", b))

    @cached_property
    def norm(self) -> float:
        """Return ‖w‖ = √(ΣΣ aₙaₘK(xₙ, xₘ))."""
        squared = float(self.coefficients @ self._products(self.vectors))
        if squared >= 0:
            return math.sqrt(squared)
        size = np.abs(self.coefficients)
        # Rounding may leave a zero slightly negative; more than that is the kernel's doing.
        scale = float(size @ self._products(self.vectors, absolute=True))
        if squared < -1e-12 * scale:
            raise ValueError(f"kernel is not positive semidefinite: it gives ‖w‖² = {squared:g}")
        return 0.0

    def decision_function(self, X: Any) -> Vector:
        """Return Σ aₙ K(xₙ, x) + b for each row."""
        return self._products(check_rows(X, self.vectors.shape[1])) + self.b

    def gradient(self, X: Any) -> npt.NDArray[np.float64]:
        """Return Σ aₙ ∂K(xₙ, x)/∂x at each row: how the score answers to a change of each column.

        For kernels of ``mm.kernels`` and what they compose; at a kink, the mean of both sides. The
        mean of its size over rows, times the spread of a column, says how much the column matters.
        """
        X = check_rows(X, self.vectors.shape[1])
        Z = self.vectors.toarray() if is_sparse(self.vectors) else self.vectors
        if not isinstance(self.kernel, OurKernel):
            raise TypeError(f"the derivative of {self.kernel!r} is not known")
        self.kernel.gram(X[:1], self.vectors[:1])  # says what is wrong with its parameters
        parts = []
        for x in blocks(X, width=len(Z)):
            rows = np.asarray(x.toarray() if is_sparse(x) else x, dtype=np.float64)
            W = np.broadcast_to(self.coefficients, (len(rows), len(Z)))
            parts.append(self.kernel.weighted_gradient(rows, Z, W))
        return np.concatenate(parts)

    def contributions(self, X: Any) -> npt.NDArray[np.float64]:
        """Return aₙK(xₙ, x) for each row x and each n: with b, their sum is f.

        The largest say which of the training rows speak for, or against, the positive class.
        """
        X = check_rows(X, self.vectors.shape[1])
        grams = [self.kernel.gram(x, self.vectors) for x in blocks(X, width=len(self.coefficients))]
        return np.concatenate(grams) * self.coefficients

    def _products(self, X: Any, absolute: bool = False) -> Vector:
        a = np.abs(self.coefficients) if absolute else self.coefficients
        grams = (self.kernel.gram(x, self.vectors) for x in blocks(X, width=len(a)))
        return np.concatenate([(np.abs(K) if absolute else K) @ a for K in grams])

    def scaled(self, c: float) -> Self:
        """Return the same plane written as (c w, c b), for c > 0."""
        c = check_positive("c", c)
        return replace(self, coefficients=c * self.coefficients, b=c * self.b)

    def flipped(self) -> Self:
        """Return the plane with its sides exchanged: (−w, −b)."""
        return replace(self, coefficients=0.0 - self.coefficients, b=0.0 - self.b)

    def parallel(self, b: float) -> Self:
        """Return the plane with the same w and another b."""
        return replace(self, b=b)
