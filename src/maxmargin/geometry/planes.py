"""Planes in the space of the data or in a kernel's feature space, where to put and find them."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from maxmargin.geometry.inputs import (
    KernelLike,
    Vector,
    blocks,
    check_number,
    check_rows,
    check_vector,
    row_products,
    signs,
)
from maxmargin.kernels import Kernel, as_kernel


class ClassMargins(NamedTuple):
    """The smallest absolute distance to a plane in each class.

    Attributes
    ----------
    negative : float
        The distance of the nearest row of the first class.
    positive : float
        The distance of the nearest row of the second class.
    """

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
    def gradient(self, X: Any) -> npt.NDArray[np.float64]:
        """Return ∂f/∂x at each row: how the score responds to a change of each column."""

    @abstractmethod
    def _with(self, factor: float, b: float) -> Self:
        """Return the plane with weights factor·w and another b."""

    def scaled(self, c: float) -> Self:
        """Return the same plane written as (c w, c b), for c > 0."""
        c = check_number("c", c, above=0.0)
        return self._with(c, c * self.b)

    def flipped(self) -> Self:
        """Return the plane with its sides exchanged: (−w, −b)."""
        return self._with(-1.0, 0.0 - self.b)

    def parallel(self, b: float) -> Self:
        """Return the plane with the same w and another b."""
        return self._with(1.0, b)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return +1 where f > 0, else −1.

        On the plane itself, at f = 0, it is −1, while ``step`` is 1 there.
        """
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.int64)

    def step(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the output of the step neuron: 1 where f ≥ 0, else 0.

        On the plane itself, at f = 0, it is 1, while ``predict`` is −1 there.
        """
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
        positive = _positive(y, len(distance))
        return ClassMargins(float(distance[~positive].min()), float(distance[positive].min()))

    def total_margin(self, X: Any, y: Any) -> float:
        """Return the sum of both class margins, the same for all parallel planes that separate."""
        return sum(self.class_margins(X, y))

    @property
    def _length(self) -> float:
        if self.norm == 0:
            raise ValueError("w is zero: it has no direction, so distances are undefined")
        return self.norm


def _positive(y: Any, n_rows: int) -> npt.NDArray[np.bool_]:
    positive: npt.NDArray[np.bool_] = signs(y, n_rows) > 0
    if positive.all() or not positive.any():
        raise ValueError("y has one class only; points of both classes are needed")
    return positive


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

    On the plane itself the neuron puts out 1, but a classifier must see f > 0 for the positive
    class:

    >>> neuron.step([[0.5, 1]]), neuron.predict([[0.5, 1]])
    (array([1]), array([-1]))

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
        return np.asarray((X.toarray() if sp.issparse(X) else X) - step)

    def line(self, x1: npt.ArrayLike) -> Any:
        """Return x₂ = −b/w₂ − (w₁/w₂) x₁, to draw a plane in two dimensions."""
        if len(self.w) != 2:
            raise ValueError(f"w has {len(self.w)} weights; only a plane in 2-D is a line")
        w1, w2 = self.w.tolist()
        if w2 == 0:
            where = f"it is vertical, x₁ = {-self.b / w1:g}" if w1 else "w is zero"
            raise ValueError(f"the line has no x₂ for a given x₁: {where}")
        return -self.b / w2 - (w1 / w2) * np.asarray(x1, dtype=np.float64)

    def _with(self, factor: float, b: float) -> Self:
        return replace(self, w=factor * self.w + 0.0, b=b)  # + 0.0: no weight is −0


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
        """Return Σ aₙ ∂K(xₙ, x)/∂x at each row: how the score responds to a change of each column.

        For kernels of ``mm.kernels`` and their compositions; at a kink, the mean of both sides. Its
        mean absolute value over rows, times the spread of a column, is how much the column matters.
        """
        X = check_rows(X, self.vectors.shape[1])
        Z = self.vectors.toarray() if sp.issparse(self.vectors) else self.vectors
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"the derivative of {self.kernel!r} is not known")
        self.kernel.gram(X[:1], self.vectors[:1])  # says what is wrong with its parameters
        parts = []
        for x in blocks(X, width=len(Z)):
            rows = np.asarray(x.toarray() if sp.issparse(x) else x, dtype=np.float64)
            W = np.broadcast_to(self.coefficients, (len(rows), len(Z)))
            parts.append(self.kernel.weighted_gradient(rows, Z, W))
        return np.concatenate(parts)

    def contributions(self, X: Any) -> npt.NDArray[np.float64]:
        """Return aₙK(xₙ, x) for each row x and each n: together with b, they add up to f.

        The largest show which training rows speak for, or against, the positive class.
        """
        X = check_rows(X, self.vectors.shape[1])
        grams = [self.kernel.gram(x, self.vectors) for x in blocks(X, width=len(self.coefficients))]
        return np.concatenate(grams) * self.coefficients

    def _products(self, X: Any, absolute: bool = False) -> Vector:
        a = np.abs(self.coefficients) if absolute else self.coefficients
        grams = (self.kernel.gram(x, self.vectors) for x in blocks(X, width=len(a)))
        return np.concatenate([(np.abs(K) if absolute else K) @ a for K in grams])

    def _with(self, factor: float, b: float) -> Self:
        return replace(self, coefficients=factor * self.coefficients + 0.0, b=b)


# ------------------------------------------------------------------- among labelled points

P = TypeVar("P", bound=Plane)


def best_offset(w: Plane | npt.ArrayLike, X: Any, y: Any) -> float:
    """Return the b that puts the plane midway between the nearest points of the classes.

    b = −½ (min₊ w·x + max₋ w·x). It maximises min y f, and so the margin if w separates.

    Parameters
    ----------
    w : array-like of shape (d,), or a plane
        Weights; of a plane only the weights are used, never its b.
    X : array-like or sparse matrix of shape (n, d)
        Points.
    y : array-like of shape (n,)
        Labels of two classes.

    Examples
    --------
    >>> best_offset([1, 0], [[0, 5], [4, 3], [9, 1]], [-1, 1, 1])
    -2.0
    """
    lowest_positive, highest_negative = _facing(_plane(w), X, y)
    # Halved first, so that the sum cannot overflow; 0 − t, so that b is never −0.
    return 0.0 - (0.5 * lowest_positive + 0.5 * highest_negative)


def canonical(plane: P, X: Any, y: Any) -> P:
    """Return the same plane, scaled so that min y f = 1 and its margin is 1/‖w‖.

    Parameters
    ----------
    plane : Hyperplane or KernelHyperplane
        A plane that separates the classes; otherwise a ValueError counts the points in the way.
    X : array-like or sparse matrix of shape (n, d)
        Points.
    y : array-like of shape (n,)
        Labels.

    Examples
    --------
    >>> canonical(Hyperplane([4, 0], 0), [[-1, 0], [2, 0]], [-1, 1])
    Hyperplane(w=array([1., 0.]), b=0.0)
    """
    if not isinstance(plane, Plane):
        raise TypeError(no_plane(plane))
    margins = plane.functional_margin(X, y)
    if wrong := int(np.count_nonzero(margins <= 0)):
        raise ValueError(
            f"plane does not separate the classes: {wrong} of {len(margins)} points are on the "
            "wrong side or on the plane itself"
        )
    return plane.scaled(1.0 / float(margins.min()))


@overload
def marginal_classifiers(plane: P, X: Any, y: Any) -> tuple[P, P]: ...
@overload
def marginal_classifiers(plane: npt.ArrayLike, X: Any, y: Any) -> tuple[Hyperplane, Hyperplane]: ...
def marginal_classifiers(plane: Plane | npt.ArrayLike, X: Any, y: Any) -> tuple[Plane, Plane]:
    """Return the two parallel planes that touch the nearest point of each class.

    Parameters
    ----------
    plane : Hyperplane, KernelHyperplane, or weights of shape (d,)
        The direction; only its weights are used. A ValueError says if no parallel plane separates.
    X : array-like or sparse matrix of shape (n, d)
        Points.
    y : array-like of shape (n,)
        Labels of two classes.

    Returns
    -------
    (negative, positive)
        Planes with the same w, touching the negative and the positive class.

    Examples
    --------
    >>> negative, positive = marginal_classifiers([1, 0], [[0, 5], [4, 3]], [-1, 1])
    >>> negative.b, positive.b
    (0.0, -4.0)
    """
    direction = _plane(plane)
    lowest_positive, highest_negative = _facing(direction, X, y)
    if lowest_positive <= highest_negative:
        raise ValueError(
            "no plane with this w separates the classes: w·x reaches "
            f"{highest_negative:g} in the negative and {lowest_positive:g} in the positive class"
        )
    return direction.parallel(0.0 - highest_negative), direction.parallel(0.0 - lowest_positive)


def _plane(w: Plane | npt.ArrayLike) -> Plane:
    # parallel(0): w·x itself, not f − b, which would round twice.
    if isinstance(w, Plane):
        return w.parallel(0.0)
    if hasattr(w, "fit"):
        raise TypeError(no_plane(w))
    return Hyperplane(np.asarray(w))


def no_plane(given: Any) -> str:
    """Return the error message for an argument that is not a plane."""
    return (
        f"{type(given).__name__} is not a plane: pass mm.geometry.Hyperplane(w, b), or for a "
        "fitted model mm.geometry.hyperplane(model)"
    )


def _facing(direction: Plane, X: Any, y: Any) -> tuple[float, float]:
    """Return min w·x over the positive and max w·x over the negative class."""
    products = direction.decision_function(X)
    positive = _positive(y, len(products))
    return float(products[positive].min()), float(products[~positive].max())


# ------------------------------------------------------------------- of fitted models


def hyperplane(model: Any) -> Hyperplane | KernelHyperplane:
    """Return the plane of a fitted model with two classes; its f is the model's decision function.

    The vote of many planes of a VotedPerceptron is not a plane: the last one is returned.

    Parameters
    ----------
    model : fitted model
        With ``coef_`` and ``intercept_``; or with ``dual_coef_``, ``support_vectors_``,
        ``intercept_`` and a kernel: ``kernel_`` with ``gram``, or the parameters of
        scikit-learn's SVC.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> model = LinearSVC().fit([[0, 0], [0, 1], [2, 0], [2, 1]], list("aabb"))
    >>> plane = hyperplane(model)
    >>> plane.predict([[0, 0], [2, 0]])
    array([-1,  1])
    """
    name = type(model).__name__
    linear = hasattr(model, "coef_")
    if not linear and not hasattr(model, "dual_coef_"):
        _explain_missing(model, name)
    if len(getattr(model, "classes_", ())) > 2:
        raise ValueError(
            f"{name} has {len(model.classes_)} classes, so several planes; fit two classes, or "
            "build Hyperplane(coef_[k], intercept_[k]) yourself"
        )
    if not hasattr(model, "intercept_"):
        raise ValueError(f"{name} has no intercept_; build the plane from its weights yourself")
    intercept = np.ravel(model.intercept_)
    if len(intercept) != 1:
        raise ValueError(f"{name}.intercept_ has {len(intercept)} entries: not those of one plane")
    b = float(intercept[0])
    if linear:
        return Hyperplane(_only_row(model, "coef_"), b)
    a = _only_row(model, "dual_coef_")
    named = getattr(model, "kernel", None)
    if not hasattr(getattr(model, "kernel_", None), "gram") and named not in _NAMED:
        raise ValueError(
            f"{name} has kernel={named!r}, but not the rows it belongs to; write "
            "KernelHyperplane(kernel, X[model.support_], model.dual_coef_[0], b) yourself"
        )
    return KernelHyperplane(read_kernel(model), model.support_vectors_, a, b)


_NAMED = ("linear", "rbf", "poly", "sigmoid")  # kernels of rows that scikit-learn's machines have


def read_kernel(model: Any) -> Any:
    """Return the kernel of a fitted model, ours or scikit-learn's."""
    if hasattr(getattr(model, "kernel_", None), "gram"):
        return model.kernel_
    # Imported here: most planes are linear.

    if not isinstance(model.kernel, str):
        return as_kernel(model.kernel)
    # scikit-learn keeps the number that it computed for gamma="scale" or "auto" in _gamma.
    gamma = getattr(model, "_gamma", model.gamma)
    return as_kernel(model.kernel, gamma=gamma, degree=model.degree, coef0=model.coef0)


def _explain_missing(model: Any, name: str) -> None:
    fitted = any(
        key.endswith("_") and not key.startswith("_") for key in getattr(model, "__dict__", ())
    )
    # A pipeline keeps its fitted attributes in its steps.
    if hasattr(model, "fit") and not fitted and not hasattr(model, "steps"):
        raise NotFittedError(f"{name} is not fitted yet; call fit first")
    raise ValueError(
        f"{name} has neither coef_ nor dual_coef_, so no plane; for a pipeline, give its last step"
    )


def _only_row(model: Any, attribute: str) -> Any:
    values = getattr(model, attribute)
    rows = np.atleast_2d(values.toarray() if sp.issparse(values) else np.asarray(values))
    if rows.ndim != 2 or len(rows) != 1:
        raise ValueError(
            f"{type(model).__name__}.{attribute} has shape {rows.shape}: not the weights of one "
            "plane"
        )
    return rows[0]
