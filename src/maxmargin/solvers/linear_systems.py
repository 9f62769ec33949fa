"""Positive definite systems, whatever the units of their unknowns: all are scaled to unit diagonal.

``solve_positive`` has the matrix, ``solve_by_products`` only its products with vectors;
``solve_preconditioned`` has a nearby matrix too, whose systems are solved exactly.
"""

from collections.abc import Callable

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, cg

from maxmargin._typing import Floats
from maxmargin.runtime import clock

_RIDGES = 10.0 ** np.arange(-13, 1)  # added to a unit diagonal, until it has a factor
_LEAST = 1e-300  # of a diagonal entry
_CONVERGED = 1e-20  # of the first squared residual: what is left is rounding


def solve_positive(matrix: Floats, right: Floats) -> Floats:
    """Return the solution by Cholesky's factor of a matrix, which is lost (upper triangle given).

    ``right`` is one right-hand side, or one in each column.
    """
    diagonal = np.arange(len(matrix))
    unit = 1.0 / np.sqrt(np.maximum(matrix[diagonal, diagonal], _LEAST))
    matrix *= unit[:, np.newaxis]
    matrix *= unit
    scaled = (unit * right.T).T
    for ridge in _RIDGES:
        matrix[diagonal, diagonal] = 1.0 + ridge
        try:
            factor = scipy.linalg.cho_factor(matrix, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        scaled = scipy.linalg.cho_solve(factor, scaled, check_finite=False)
        break
    return np.asarray((unit * scaled.T).T)


def solve_by_products(
    product: Callable[[Floats], Floats],
    right: Floats,
    diagonal: Floats,
    *,
    steps: int,
    enough: float,
) -> Floats:
    """Return about the solution of a system with this diagonal, by conjugate gradients.

    ``enough`` is the part of the residual that may be left; after ``steps`` steps it is taken as it
    is.
    """
    unit = 1.0 / np.sqrt(np.maximum(diagonal, _LEAST))
    shape = len(right), len(right)
    system = LinearOperator(
        shape, matvec=lambda p: unit * product(unit * p), dtype=np.dtype(np.float64)
    )
    return np.asarray(unit * cg(system, unit * right, rtol=enough, maxiter=steps)[0])


def solve_preconditioned(
    product: Callable[[Floats], Floats],
    right: Floats,
    precondition: Callable[[Floats], tuple[Floats, float]],
    start: Floats,
    steps: int,
    done: Callable[[Floats, Floats], bool],
) -> tuple[Floats, Floats]:
    """Return about the solution of a system by conjugate gradients, and the residual it leaves.

    ``precondition`` returns z = Mr for a residual r, and r·z; steps stay in the space that M maps
    to, which may be smaller than all. ``done`` says whether solution and residual are good enough.
    """
    x, residual = start, right - product(start)
    direction, last, first = np.zeros(len(start)), np.inf, 0.0
    for _ in range(steps):
        clock.check()
        if done(x, residual):
            break
        z, size = precondition(residual)
        first = max(first, size)
        if not size > _CONVERGED * first:
            break
        direction = z + (size / last) * direction
        image = product(direction)
        along = size / float(direction @ image)
        x = x + along * direction
        residual = residual - along * image
        last = size
    return x, residual
