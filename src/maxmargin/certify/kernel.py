"""Certificates of kernel machines, f = Σ βᵥ K(xᵥ, ·) + b: weights w = Σ βᵥ φ(xᵥ) in feature space.

    scores Kβ,   ‖w‖² = βᵀKβ

Weak duality needs ‖w − v‖² ≥ 0, so a kernel that is not positive semidefinite is never certified:
its dual is reported as −∞. Where nobody can know in general, the matrix of the rows is looked at.
"""

import dataclasses

import numpy as np
import numpy.typing as npt
import scipy.linalg

from maxmargin import losses
from maxmargin.certify.arithmetic import kkt_violation, within_groups
from maxmargin.certify.certificate import Certificate
from maxmargin.certify.intercepts import best_intercept
from maxmargin.kernels import Bound, Kernel
from maxmargin.kernels.precomputed import is_symmetric
from maxmargin.loops.records import Terms
from maxmargin.problem import KernelProblem, Point

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LOOKED_AT = 3000  # rows whose matrix is factorised to see whether it is a kernel's: a second


def certify_kernel(
    problem: KernelProblem, point: Point, *, keep_intercept: bool = False
) -> Certificate:
    """Return the certificate of a point (w, b, beta) of a kernel machine.

    The intercepts are replaced by the best ones for the weights, unless they are to be kept.
    """
    terms, totals = problem.terms, problem.totals
    beta, infeasibility = within_groups(terms, point.beta, problem.groups, totals)
    rows, at = np.unique(problem.rows, return_inverse=True)
    coefficients = np.zeros((len(rows), 2))
    np.add.at(coefficients, at, np.column_stack([point.w, beta]))
    bound = problem.gram.exact[rows]
    scores, implied = _products(problem.gram.kernel, bound, coefficients).T
    norm2 = float(coefficients[:, 0] @ scores)
    apart = float((coefficients[:, 0] - coefficients[:, 1]) @ (scores - implied))
    own = np.broadcast_to(np.asarray(point.b, dtype=np.float64), totals.shape)
    best = _best_intercepts(problem, scores[at], own)

    def objective(b: Floats) -> float:
        lifted = scores[at] + _spread(problem.groups, b)
        return 0.5 * norm2 + float(losses.values(terms, lifted).sum()) + float(totals @ b)

    rounding = _rounding(problem, bound, coefficients)
    value = _cleaned(objective(own if keep_intercept else best), rounding)
    least = _cleaned(objective(best), rounding) if keep_intercept else value
    dual = losses.dual_value(terms, beta) - 0.5 * float(coefficients[:, 1] @ implied)
    dual = _cleaned(dual, rounding)
    taken = scores[at] + _spread(problem.groups, own if keep_intercept else best)
    certificate = Certificate(
        value,
        dual,
        infeasibility,
        _ratio(apart, norm2),
        kkt_violation(terms, taken, beta),
        float(np.sqrt(2 * max(min(value, least) - dual, 0.0))),
        float(best[0]) if len(best) else 0.0,
        intercept_cost=max(value - least, 0.0) if np.isfinite(least) else 0.0,
        intercepts=tuple(best.tolist()),
        rounding=_unresolved(problem, bound, coefficients[:, 1])
        / (max(abs(value), abs(dual)) or 1.0),
    )
    return _doubted(certificate, problem.gram.kernel, bound)


def _rounding(problem: KernelProblem, bound: Bound, coefficients: Floats) -> float:
    """Return how far objectives are from 0 by rounding alone, where the best w may be 0.

    Only without targets, as in the ν-forms, can that be: then objectives are sums of βKβ.
    """
    if problem.terms.target.any():
        return 0.0
    lengths = np.sqrt(np.maximum(problem.gram.kernel.diag(bound), 0.0))
    size = float(lengths.max(initial=0.0)) * float(np.abs(coefficients).max(axis=1) @ lengths)
    return float(4 * np.finfo(np.float64).eps * np.abs(coefficients).sum() * size)


def _unresolved(problem: KernelProblem, bound: Bound, beta: Floats) -> float:
    """Return about how far rounding moves βKβ, as errors of either sign add up."""
    largest = float(np.abs(problem.gram.kernel.diag(bound)).max(initial=0.0))
    return float(np.finfo(np.float64).eps * largest * (beta @ beta))


def _cleaned(value: float, rounding: float) -> float:
    """Return a value, or 0 where rounding is all there is."""
    return value if abs(value) > rounding else 0.0


def _best_intercepts(problem: KernelProblem, scores: Floats, near: Floats) -> Floats:
    best = near.copy()
    for g, total in enumerate(problem.totals):
        members = problem.groups == g
        target, low, high, shift = (part[members] for part in problem.terms[:4])
        terms = Terms(target, low, high, shift, problem.terms.slope)
        best[g] = best_intercept(terms, scores[members], float(near[g]), float(total))
    return best


def _spread(groups: Ints, b: Floats) -> Floats:
    """Return the intercept of each variable: 0 for those in no group."""
    return np.asarray(np.append(b, 0.0)[groups])


def _products(kernel: Kernel, rows: Bound, coefficients: Floats) -> Floats:
    """Return K · coefficients, computing only columns that have some."""
    used = np.flatnonzero(coefficients.any(axis=1))
    if not len(used):
        return np.zeros(coefficients.shape)
    total: Floats = kernel.combine(rows, rows[used], coefficients[used])
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
