"""Estimators with any kernel: the kernel their parameters describe, and the input it takes."""

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.geometry.inputs import largest_squared_norm
from maxmargin.kernels import Kernel, Precomputed, as_kernel
from maxmargin.kernels.compose import Constant
from maxmargin.kernels.names import NAMED_DEFAULTS, is_precomputed, refuse_for_objects
from maxmargin.kernels.precomputed import asymmetry, is_symmetric
from maxmargin.kernels.prepared import is_numeric
from maxmargin.validation.data import LARGEST_SQUARE, check_rows, refuse_overflow


class KernelInput:
    """An estimator with the parameters kernel, gamma, degree and coef0.

    Its input are rows of numbers, kernel values (kernel="precomputed"), or a list of objects.
    """

    _kernel_defaults: ClassVar[dict[str, Any]] = NAMED_DEFAULTS
    _bounds_new_rows: ClassVar[bool] = True  # False: the kernel itself refuses infinite values
    _kept_rows: str  # the fitted attribute with rows or objects of the training data
    kernel: Any
    kernel_: Kernel

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        given = is_precomputed(self.kernel)
        tags.input_tags.pairwise, tags.input_tags.sparse = given, not given
        return tags

    def _named_kernel(self, objects: bool = False) -> Kernel:
        """Return the kernel that the parameters describe, for objects or for rows."""
        return describe_kernel(self, objects, self._kernel_defaults)

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        """Return checked rows, kernel values or objects; with ``reset``, those of ``fit``."""
        objects = not is_numeric(X) if reset else getattr(self, self._kept_rows).dtype.kind == "O"
        kernel = self._named_kernel(objects) if reset else self.kernel_
        if objects and kernel.takes_objects:
            return as_objects(X)
        if kernel.takes_gram and sp.issparse(X):
            raise TypeError(
                "Sparse precomputed kernels are not supported, as dense data is required: pass "
                "X.toarray()."
            )
        X = check_rows(self, X, reset=reset)
        if kernel.takes_gram:
            return checked_gram(X) if reset else X
        if reset or self._bounds_new_rows:
            refuse_overflow(self, X, largest_squared_norm(X), self._largest_square(X))
        return X

    def _largest_square(self, _X: Any) -> float:
        """Return the largest ‖x‖² that does not overflow later."""
        return LARGEST_SQUARE


def named_kernel(estimator: Any, objects: bool = False) -> Kernel:
    """Return the kernel of a machine for which γ may be 0, as in scikit-learn.

    Kernels given by name are then constant: rows do not matter.
    """
    kernel, gamma = estimator.kernel, estimator.gamma
    number = isinstance(gamma, Real) and not isinstance(gamma, bool)
    if number and gamma == 0 and isinstance(kernel, str) and kernel in _FLAT:
        return Constant(_FLAT[kernel](estimator.degree, float(estimator.coef0)))
    return describe_kernel(estimator, objects, NAMED_DEFAULTS)


# The values of named kernels where γ is 0, by degree and coef0.
_FLAT: dict[str, Callable[[int, float], float]] = {
    "rbf": lambda degree, coef0: 1.0,
    "poly": lambda degree, coef0: coef0**degree,
    "sigmoid": lambda degree, coef0: math.tanh(coef0),
}


def describe_kernel(estimator: Any, objects: bool, defaults: dict[str, Any]) -> Kernel:
    """Return the kernel that an estimator's parameters describe, for objects or for rows."""
    named = {name: getattr(estimator, name) for name in defaults}
    kernel = estimator.kernel
    if isinstance(kernel, Kernel):
        refuse_for_objects(named, defaults)
    else:
        if named["gamma"] is defaults["gamma"] is None:
            named["gamma"] = "auto"
        kernel = as_kernel(kernel, **named)
    if objects:
        kernel = kernel.for_objects()
    if kernel.takes_gram and not isinstance(kernel, Precomputed):
        raise ValueError(
            f"kernel={kernel!r} composes a precomputed matrix: compute the composed matrix "
            "yourself and pass that with kernel='precomputed'."
        )
    return kernel


def as_objects(X: Any) -> npt.NDArray[Any]:
    """Return any objects as a 1-D array of them."""
    items = list(X)
    if not items:
        raise ValueError("Found array with 0 sample(s), while a minimum of 1 is required.")
    objects = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        objects[i] = item
    return objects


def checked_gram(K: Any) -> Any:
    """Return kernel values that can be a Gram matrix, or raise."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} "
            "matrix: give the kernel values of all training rows with all training rows."
        )
    if not is_symmetric(K):
        raise ValueError(
            f"The precomputed Gram matrix is not symmetric, by {asymmetry(K):.2g} of its largest "
            "value: mm.check_kernel(K) tells more and can repair it."
        )
    return K


def count_threads(n_jobs: int | None) -> int | None:
    """Return the number of threads that ``n_jobs`` asks for; None: as many as BLAS uses."""
    return None if n_jobs in (None, -1) else int(n_jobs)
