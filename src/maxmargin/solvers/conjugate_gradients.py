"""Conjugate gradients for systems that are known by their products only."""

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from maxmargin._typing import Floats


def solve_by_products(
    product: Callable[[Floats], Floats],
    right: Floats,
    diagonal: Floats,
    *,
    steps: int,
    enough: float,
) -> Floats:
    """Return about the solution of a positive definite system with this diagonal.

    The system is scaled to a unit diagonal, and ``enough`` is the part of its residual that may be
    left; after ``steps`` steps it is taken as it is.
    """
    unit = 1.0 / np.sqrt(np.maximum(diagonal, 1e-300))
    shape = len(right), len(right)
    system = LinearOperator(
        shape, matvec=lambda p: unit * product(unit * p), dtype=np.dtype(np.float64)
    )
    return np.asarray(unit * cg(system, unit * right, rtol=enough, maxiter=steps)[0])
