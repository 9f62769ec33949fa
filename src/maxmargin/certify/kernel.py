"""Certificates of kernel machines, f = Σ βᵢ K(xᵢ, ·) + b: weights w = Σ βᵢ φ(xᵢ) in feature space.

    scores Kβ,   ‖w‖² = βᵀKβ

Weak duality needs ‖w − v‖² ≥ 0, so a kernel that is not positive semidefinite is never certified:
its dual is reported as −∞. Where nobody can know in general, the matrix of the rows is looked at.
"""

import dataclasses

import numpy as np
import numpy.typing as npt
import scipy.linalg

from maxmargin.certify.arithmetic import Dual, Primal, assembled, feasible
from maxmargin.certify.certificate import Certificate
from maxmargin.geometry.inputs import BLOCK_SIZE
from maxmargin.kernels import Bound, Kernel
from maxmargin.kernels.precomputed import is_symmetric
from maxmargin.loops.records import Terms
from maxmargin.problem import Intercept

Floats = npt.NDArray[np.float64]

_LOOKED_AT = 3000  # rows whose matrix is factorised to see whether it is a kernel's: a second


def certify_kernel(
    kernel: Kernel,
    rows: Bound,
    terms: Terms,
    beta: Floats,
    b: float,
    *,
    intercept: Intercept = Intercept.FREE,
    lift: float = 1.0,
    keep_intercept: bool = False,
) -> Certificate:
    """Return the certificate of a kernel machine.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all its parameters.
    rows : Bound
        The n training rows, bound by the kernel in float64.
    terms : Terms
        Their losses.
    beta : ndarray of shape (n,)
        The coefficients, with the sign of the label.
    b : float
        The intercept.
    intercept, lift
        As in ``Problem``.
    keep_intercept : bool
        Take the primal at b, rather than at the best intercept if it is free.
    """
    repaired, infeasibility = feasible(terms, beta, intercept)
    scores, implied = _products(kernel, rows, np.column_stack([beta, repaired])).T
    norm2 = float(beta @ scores)
    apart = float((beta - repaired) @ (scores - implied))
    certificate = assembled(
        terms,
        intercept,
        lift,
        Primal(scores, norm2, 0.0 if intercept is Intercept.NONE else b),
        Dual(repaired, infeasibility, float(repaired @ implied), _ratio(apart, norm2)),
        keep_intercept=keep_intercept,
    )
    return _doubted(certificate, kernel, rows)


def _products(kernel: Kernel, rows: Bound, coefficients: Floats) -> Floats:
    """Return K · coefficients, computing only columns that have some, a block of rows at a time."""
    used = np.flatnonzero(coefficients.any(axis=1))
    total = np.zeros(coefficients.shape)
    if not len(used):
        return total
    columns, weights = rows[used], coefficients[used]
    step = max(1, BLOCK_SIZE // len(used))
    for start in range(0, len(rows), step):
        block = kernel.between(rows[start : start + step], columns)
        total[start : start + step] = block @ weights
    return total


def _ratio(apart: float, norm2: float) -> float:
    away = float(np.sqrt(max(apart, 0.0)))
    return away / float(np.sqrt(norm2)) if norm2 > 0 else away


def _doubted(certificate: Certificate, kernel: Kernel, rows: Bound) -> Certificate:
    """Return the certificate with what is known against the kernel."""
    if kernel.psd:
        return certificate
    seen = min(len(rows), _LOOKED_AT)
    sample = np.linspace(0, len(rows) - 1, seen).astype(np.int64)
    if kernel.psd is None and _is_gram(kernel, rows[sample]):
        assumed = f"this takes {kernel!r} for positive semidefinite, as seen on {seen} rows"
        return dataclasses.replace(certificate, caveat=assumed if seen < len(rows) else "")
    refuted = f"{kernel!r} is not positive semidefinite, so that the dual bounds nothing"
    return dataclasses.replace(certificate, dual=-np.inf, distance_bound=np.inf, caveat=refuted)


def _is_gram(kernel: Kernel, rows: Bound) -> bool:
    """Return whether the matrix is symmetric and positive semidefinite, but for rounding."""
    K = kernel.between(rows, rows[:])  # two objects, so that both triangles are computed
    if not is_symmetric(K):
        return False
    eps = float(np.finfo(K.dtype).eps)  # of the type that a given matrix came in
    K = 0.5 * (K.astype(np.float64) + K.T)
    # No eigenvalue is larger than the largest sum of a row.
    largest = float(np.abs(K).sum(axis=1).max())
    K[np.diag_indices(len(K))] += 2 * len(K) * eps * largest + np.finfo(np.float64).tiny
    try:
        scipy.linalg.cholesky(K, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return False
    return True
