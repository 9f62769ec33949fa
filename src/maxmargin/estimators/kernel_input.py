"""Estimators with any kernel: the kernel their parameters describe, and the input it takes."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.estimators.inputs import LARGEST_SQUARE, check_rows, refuse_overflow
from maxmargin.estimators.kernel_models import as_objects, checked_gram
from maxmargin.geometry.inputs import largest_squared_norm
from maxmargin.kernels import Kernel, Precomputed
from maxmargin.kernels.names import is_precomputed


def adapt_kernel(kernel: Kernel, objects: bool) -> Kernel:
    """Return the kernel for rows or for objects; raise if it composes a precomputed matrix."""
    if objects:
        kernel = kernel.for_objects()
    if kernel.takes_gram and not isinstance(kernel, Precomputed):
        raise ValueError(
            f"kernel={kernel!r} composes a precomputed matrix: compute the composed matrix "
            "yourself and pass that with kernel='precomputed'."
        )
    return kernel


def check_kernel_input(
    estimator: Any,
    kernel: Kernel,
    X: Any,
    *,
    objects: bool,
    reset: bool,
    largest_square: float = LARGEST_SQUARE,
    largest_single: float | None = None,
) -> Any:
    """Return rows, kernel values or objects; raise if there is something wrong with them.

    Parameters
    ----------
    estimator : estimator
        Whose columns they are: with ``reset`` it takes their number and names from X.
    kernel : Kernel
        What they are for.
    X : matrix or sequence of objects
        The input.
    objects : bool
        Whether X holds objects rather than rows of numbers.
    reset : bool
        Whether this is the input of ``fit``.
    largest_square, largest_single : float
        The largest ‖x‖² allowed; and for float32 rows, if that is different.
    """
    if objects and kernel.takes_objects:
        return as_objects(X)
    if kernel.takes_gram and sp.issparse(X):
        raise TypeError(
            "Sparse precomputed kernels are not supported, as dense data is required: pass "
            "X.toarray()."
        )
    X = check_rows(estimator, X, reset=reset)
    if kernel.takes_gram:
        return checked_gram(X) if reset else X
    if largest_single is not None and X.dtype == np.float32:
        largest_square = largest_single
    refuse_overflow(estimator, X, largest_squared_norm(X), largest_square)
    return X


def count_threads(n_jobs: int | None) -> int | None:
    """Return the number of threads that ``n_jobs`` asks for; None: as many as BLAS uses."""
    return None if n_jobs in (None, -1) else int(n_jobs)


def set_kernel_tags(tags: Any, kernel: Any) -> Any:
    """Return scikit-learn's tags, with what they say of a precomputed kernel."""
    given = is_precomputed(kernel)
    tags.input_tags.pairwise, tags.input_tags.sparse = given, not given
    return tags
