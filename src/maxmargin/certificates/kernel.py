"""Certificates of kernel machines, f = Σ βᵥ K(xᵥ, ·) + b: weights w = Σ βᵥ φ(xᵥ) in feature space.

    scores Kβ,   ‖w‖² = βᵀKβ

Weak duality needs ‖w − v‖² ≥ 0, so a kernel that is not positive semidefinite is never certified:
its dual is reported as −∞. If positive semidefiniteness is unknown, it is tested on the training
Gram matrix.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from maxmargin import clock
from maxmargin._typing import Floats, Ints
from maxmargin.certificates.arithmetic import Dual, Primal, assembled, imbalances, within_groups
from maxmargin.certificates.certificate import Certificate
from maxmargin.kernels import Kernel, PreparedRows
from maxmargin.kernels.precomputed import asymmetry
from maxmargin.kernels.tiles import TILE_COLUMNS
from maxmargin.problems.problem import KernelProblem, Point
from maxmargin.problems.rounding import EPS, Bounded, half, total

_LOOKED_AT = 3000  # rows whose matrix is factorised to see whether it is a kernel's: a second
_GLANCED_AT = 1000  # the same under a time limit: a moment


def certify_kernel(
    problem: KernelProblem, point: Point, *, keep_intercept: bool = False
) -> Certificate:
    """Return the certificate of a point (w, b, beta) of a kernel machine.

    The intercepts are replaced by the best ones for the weights, unless they are to be kept.
    """
    loss, groups, totals = problem.loss, problem.groups, problem.totals
    beta, infeasibility = within_groups(loss, point.beta, groups, totals)
    rows, at = np.unique(problem.rows, return_inverse=True)
    coefficients = np.zeros((len(rows), 2))
    np.add.at(coefficients, at, np.column_stack([point.w, beta]))
    kernel, prepared = problem.gram.kernel, problem.gram.exact[rows]
    weights, implied = expansions(kernel, prepared, coefficients, partial=True)
    own = np.broadcast_to(np.asarray(point.b, dtype=np.float64), totals.shape)
    off = imbalances(beta, groups, totals)
    dual = Dual(
        beta,
        infeasibility,
        implied.norm2,
        _drift(weights, implied),
        _imbalance_cost(problem, implied, at, off),
    )
    scores = Bounded(weights.scores.value[at], weights.scores.error[at])
    if len(rows) < len(at):  # a tube: the targets of its two sides, t − ε and t + ε, are rounded
        scores = Bounded(scores.value, scores.error + EPS * np.abs(loss.target))
    primal = Primal(scores, weights.norm2, own.copy(), weights.unknown[at])
    certificate = assembled(loss, groups, totals, primal, dual, keep_intercept=keep_intercept)
    certificate = _cut_short(certificate, weights.unknown)
    return doubted(certificate, kernel, prepared, problem.gram.prepared.dtype)


def _cut_short(certificate: Certificate, unknown: Floats) -> Certificate:
    """Return the certificate, with a word on the rows that there was no time for."""
    missing = np.count_nonzero(unknown)
    if not missing:
        return certificate
    caveat = (
        f"there was no time for the scores of {missing} of {len(unknown)} rows, which are bounded "
        "by ‖w‖√K(x, x) instead: the true gap is smaller"
    )
    return dataclasses.replace(certificate, caveat=certificate.caveat or caveat)


class Expansion(NamedTuple):
    """A function Σ aⱼK(xⱼ, ·) on the rows it is made of, with bounds on all errors."""

    coefficients: Floats
    scores: Bounded  # 0 where they are not known
    norm2: Bounded  # a bound from above where not all scores are known
    longest: float  # the largest √K(x, x)
    unknown: Floats  # what no |score| exceeds that is not known, 0 for all others


def expansions(
    kernel: Kernel, rows: PreparedRows, coefficients: Floats, *, partial: bool = False
) -> list[Expansion]:
    """Return the functions with these coefficients, one a column.

    With ``partial``, a time limit may leave scores unknown, those of rows without a coefficient
    first. As |f(x)| ≤ ‖w‖√K(x, x), there is a bound on them, and on ‖w‖² = Σ aⱼf(xⱼ): with A the
    sum over known scores, and S = Σ |aⱼ|√K(xⱼ, xⱼ) over the others, ‖w‖² ≤ A + S‖w‖.

    A kernel value is off by ε(r(x) + r(x′))√(K(x, x)K(x′, x′)) at most (``Kernel.rounding``); sums
    over the columns of a tile, and over tiles, are off by an ε for each term.
    """
    rows = kernel.sharpened(rows)
    equal = (coefficients == coefficients[:, :1]).all()
    some = coefficients[:, :1] if equal else coefficients
    used = np.flatnonzero(some.any(axis=1))
    lengths = 1.001 * np.sqrt(np.maximum(kernel.diag(rows).astype(np.float64), 0.0))
    off = np.asarray(kernel.rounding(rows), dtype=np.float64)
    scores, sizes = np.zeros((2, *some.shape))
    if len(used):
        order = np.argsort(~some.any(axis=1), kind="stable")
        scores[order], sizes[order] = kernel.dot_with_magnitudes(
            rows[order], rows[used], some[used], partial=partial
        )
    count = half(min(len(used), TILE_COLUMNS) + len(used) // TILE_COLUMNS) + 4
    found = []
    missing = np.isnan(scores[:, 0])
    scores[missing], sizes[missing] = 0.0, 0.0
    for a, value, size in zip(some.T, scores.T, sizes.T, strict=True):
        long = np.abs(a) * lengths
        error = count * size + lengths * (off * float(long.sum()) + float(long @ off))
        known = Bounded(value, np.where(missing, 0.0, EPS * error))
        norm2 = total(a * value, np.abs(a) * known.error + EPS * np.abs(a * value))
        unknown = np.zeros(len(a))
        if missing.any():
            most = max(norm2.value + norm2.error, 0.0)
            rest = 1.001 * float(long[missing].sum())
            length = 1.001 * 0.5 * (rest + np.sqrt(rest * rest + 4 * most))
            norm2, unknown = Bounded(length * length, 0.0), length * lengths * missing
        found.append(Expansion(a, known, norm2, float(lengths.max(initial=0.0)), unknown))
    return found * coefficients.shape[1] if equal else found


def _imbalance_cost(problem: KernelProblem, implied: Expansion, at: Ints, off: Floats) -> float:
    """Return what D loses at most while duals move by ``off`` in all, in each group."""
    cost, size = 0.0, (np.abs(implied.scores.value) + implied.unknown)[at]
    for g, moved in enumerate(off):
        members = problem.groups == g
        pull = np.abs(problem.loss.target[members]) + size[members]
        cost += moved * (1.01 * float(pull.max(initial=0.0)) + problem.loss.epsilon)
    return cost + (float(off.sum()) * implied.longest) ** 2


def _drift(weights: Expansion, implied: Expansion) -> float:
    between = weights.coefficients - implied.coefficients
    apart = float(between @ (weights.scores.value - implied.scores.value))
    away, size = np.sqrt(max(apart, 0.0)), np.sqrt(max(weights.norm2.value, 0.0))
    return float(away / size) if size > 0 else float(away)


def doubted(
    certificate: Certificate, kernel: Kernel, rows: PreparedRows, given: npt.DTypeLike
) -> Certificate:
    """Return the certificate with what is known against the kernel.

    ``given`` is the type that rows, or a matrix of kernel values, came in.
    """
    if kernel.psd:
        return certificate
    seen = min(len(rows), _LOOKED_AT if np.isinf(clock.limit().end) else _GLANCED_AT)
    sample = np.linspace(0, len(rows) - 1, seen).astype(np.int64)
    refuted = f"{kernel!r} is not positive semidefinite, so that the dual bounds nothing"
    try:
        if kernel.psd is None and _is_gram(kernel, rows[sample], given):
            assumed = f"this takes {kernel!r} for positive semidefinite, as seen on {seen} rows"
            caveat = certificate.caveat or (assumed if seen < len(rows) else "")
            return dataclasses.replace(certificate, caveat=caveat)
    except clock.OutOfTimeError:
        refuted = f"there was no time to see whether {kernel!r} is positive semidefinite"
    return dataclasses.replace(certificate, dual=-np.inf, distance_bound=np.inf, caveat=refuted)


def _is_gram(kernel: Kernel, rows: PreparedRows, given: npt.DTypeLike) -> bool:
    """Return whether the matrix is symmetric and positive semidefinite, but for rounding."""
    clock.check()
    K = kernel.block(rows, rows[:])  # two objects, so that both triangles are computed
    eps = float(np.finfo(np.dtype(given)).eps)
    if asymmetry(K) > np.sqrt(eps):
        return False
    K = 0.5 * (K.astype(np.float64) + K.T)
    # No eigenvalue is larger than the largest sum of a row.
    largest = float(np.abs(K).sum(axis=1).max())
    K[np.diag_indices(len(K))] += 2 * len(K) * eps * largest + np.finfo(np.float64).tiny
    try:
        scipy.linalg.cholesky(K, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return False
    return True
