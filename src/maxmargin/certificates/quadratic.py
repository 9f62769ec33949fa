"""What all certificates with penalty ½‖w‖² share, whatever space the weights live in."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from maxmargin import clock
from maxmargin._typing import Floats, Ints
from maxmargin.certificates.certificate import Certificate
from maxmargin.kernels import Kernel, PreparedRows
from maxmargin.kernels.precomputed import asymmetry
from maxmargin.kernels.tiles import TILE_COLUMNS
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.duality import (
    best_intercept,
    by_variable,
    feasible,
    imbalances,
    kkt_violation,
    within_groups,
)
from maxmargin.problems.problem import Intercept, KernelProblem, Point, Problem
from maxmargin.problems.rounding import (
    EPS,
    Bounded,
    Combination,
    exact_sum,
    half,
    passed,
    squared_norm,
    total,
)


@dataclass(frozen=True)
class Primal:
    """What is to be known of weights: w·φ(x) for each dual variable, ‖w‖², and intercepts."""

    scores: Bounded
    norm2: Bounded
    b: Floats  # of each group of dual variables
    unknown: Floats | float = 0.0  # by which scores may differ that there was no time for


@dataclass(frozen=True)
class Dual:
    """What is to be known of duals that are feasible but for rounding.

    ``imbalance`` is what D may lose while rounding is taken out of the sums of the groups.
    """

    beta: Floats
    infeasibility: float
    norm2: Bounded
    drift: float
    imbalance: float


def _as_it_is(b: Floats) -> Floats:
    return b


def assembled(
    loss: Loss,
    groups: Ints,
    totals: Floats,
    primal: Primal,
    dual: Dual,
    *,
    keep_intercept: bool,
    stored: Callable[[Floats], Floats] = _as_it_is,
) -> Certificate:
    """Return the certificate.

    Parameters
    ----------
    loss, groups, totals
        As in ``KernelProblem``.
    primal, dual : Primal, Dual
        The point.
    keep_intercept : bool
        Take the primal at the point's own intercepts, rather than at the best ones.
    stored : callable
        Returns what intercepts will be once a model has stored them.
    """
    best = primal.b if not len(totals) else stored(best_intercepts(loss, groups, totals, primal))
    own = primal.b if keep_intercept else best
    value = _objective(loss, groups, totals, primal, own)
    least = value if np.array_equal(own, best) else _objective(loss, groups, totals, primal, best)
    bound = dual_objective(loss, dual)
    proved = min(value.value + value.error, least.value + least.error) - (bound.value - bound.error)
    return Certificate(
        value.value,
        bound.value,
        dual.infeasibility,
        dual.drift,
        _violation(loss, primal, by_variable(groups, own), dual.beta),
        float(np.sqrt(2 * max(proved, 0.0))),
        float(best[0]) if len(best) else 0.0,
        intercept_cost=max(value.value - least.value, 0.0) if np.isfinite(least.value) else 0.0,
        intercepts=tuple(best.tolist()),
        rounding=relative_rounding(value, bound),
    ).resolved()


def _violation(loss: Loss, primal: Primal, offset: Floats, beta: Floats) -> float:
    if np.any(primal.unknown):
        return np.inf
    return kkt_violation(loss, primal.scores.value + offset, beta)


def relative_rounding(value: Bounded, bound: Bounded) -> float:
    """Return the errors of both bounds as a part of the larger."""
    error = value.error + bound.error
    size = max(abs(value.value), abs(bound.value))
    if not error > 0:
        return 0.0
    return float(error / size) if size > 0 and np.isfinite(error) else np.inf


def _objective(loss: Loss, groups: Ints, totals: Floats, primal: Primal, b: Floats) -> Bounded:
    """Return ½‖w‖² + Σ ℓ(w·φ + b) + Σ totals·b."""
    offset = by_variable(groups, b)
    scores = primal.scores.value + offset
    off = primal.scores.error + EPS * np.abs(loss.target - scores)
    off += EPS * np.where((primal.scores.value != 0) & (offset != 0), np.abs(scores), 0.0)
    if totals.any():  # a model of a ν-form is divided by its margin before it is stored
        off += 2 * EPS * (np.abs(scores) + np.abs(offset))
    each = _within(loss, scores, primal.unknown)
    steep = losses.steepest(loss, scores, primal.unknown + off)
    fitted = total(each, steep * off + 4 * EPS * each)
    pulled = total(totals * b, EPS * np.abs(totals * b))
    value = 0.5 * primal.norm2.value + fitted.value + pulled.value
    size = 0.5 * abs(primal.norm2.value) + abs(fitted.value) + abs(pulled.value)
    error = 0.5 * primal.norm2.error + fitted.error + pulled.error + 2 * EPS * size
    return Bounded(value, error) if np.isfinite(value) else Bounded(np.inf, np.inf)


def _within(loss: Loss, scores: Floats, off: Floats | float) -> Floats:
    """Return the largest loss on the interval of so much to either side of each score."""
    if not np.any(off):
        return losses.values(loss, scores)
    return np.maximum(losses.values(loss, scores - off), losses.values(loss, scores + off))


def dual_objective(loss: Loss, dual: Dual) -> Bounded:
    """Return Σ tβ − ε|β| − ½ quadratic β² − ½‖Σβφ‖²."""
    beta = dual.beta
    gained, paid = (
        loss.target * beta,
        loss.epsilon * np.abs(beta) + 0.5 * loss.quadratic * beta * beta,
    )
    summed = total(gained - paid, 4 * EPS * (np.abs(gained) + paid))
    value = summed.value - 0.5 * dual.norm2.value
    error = summed.error + 0.5 * dual.norm2.error + dual.imbalance
    error += EPS * (abs(summed.value) + 0.5 * abs(dual.norm2.value))
    return Bounded(value, error) if np.isfinite(value) else Bounded(-np.inf, np.inf)


def best_intercepts(loss: Loss, groups: Ints, totals: Floats, primal: Primal) -> Floats:
    """Return the intercept of each group that makes the objective smallest."""
    best = primal.b.copy()
    for g, pull in enumerate(totals):
        members = groups == g
        known = members & np.equal(primal.unknown, 0.0)
        if not known.any():
            continue
        share = known.sum() / members.sum()
        best[g] = best_intercept(
            loss.take(np.flatnonzero(known)),
            primal.scores.value[known],
            float(primal.b[g]),
            share * float(pull),
        )
    return best


# ------------------------------------------------------------------- linear
#
# Certificates of linear machines with penalty ½‖w‖².
#
# A penalized intercept is the weight of one more column, of value ``lift`` in every row.


_FAR = 30.0  # from 0, in standard deviations of a column


def certify_linear(problem: Problem, point: Point, *, keep_intercept: bool = False) -> Certificate:
    """Return the certificate of a point (w, b, beta) for a problem with penalty ½‖w‖².

    A free intercept is replaced by the best one for the weights, unless it is to be kept.
    """
    if problem.l1_ratio:
        raise ValueError(f"this certificate is for penalty ½‖w‖², got l1_ratio={problem.l1_ratio}")
    beta, infeasibility = feasible(problem.loss, point.beta, problem.intercept)
    seen = Seen.of(problem, point, beta)
    implied = seen.implied
    groups, totals = seen.groups, np.zeros(int(seen.free))
    primal = Primal(seen.scores, squared_norm(seen.weights, seen.weights_error), seen.b)
    off = imbalances(beta, groups, totals)
    dual = Dual(
        beta,
        infeasibility,
        squared_norm(implied.value, implied.error),
        _linear_drift(seen.weights, implied.value),
        imbalance_cost(problem, beta, implied, float(off.sum())),
    )
    certificate = assembled(
        problem.loss, groups, totals, primal, dual,
        keep_intercept=keep_intercept, stored=seen.stored,
    )  # fmt: skip
    return dataclasses.replace(certificate, intercept=seen.intercept(certificate), intercepts=())


class Seen(NamedTuple):
    """A point of a linear problem with rows measured from a centre.

    w·x + b = w·(x − centre) + (b + w·centre), and Σβx = Σβ(x − centre) where Σβ = 0.
    """

    problem: Problem
    point: Point
    centre: Floats
    scores: Bounded
    weights: Floats  # all that are penalized
    weights_error: Floats
    b: Floats  # the free intercept, seen from the centre; empty if there is none
    implied: Combination  # the weights that duals imply

    @classmethod
    def of(cls, problem: Problem, point: Point, beta: Floats) -> "Seen":
        """Compute the scores of a point, and the weights that feasible duals imply."""
        centre, w = _centre(problem), point.w
        scores, implied = passed(problem.X, w, beta, centre)
        weights, error = w, np.zeros(len(w))
        b = np.zeros(0)
        if problem.intercept is Intercept.FREE:
            b = np.array([exact_sum(float(point.b), w, centre)])
        if problem.intercept is Intercept.PENALIZED:
            own = float(point.b)
            shifted = scores.value + own
            scores = Bounded(shifted, scores.error + EPS * (np.abs(shifted) + abs(own)))
            weights = np.append(w, own / problem.lift)
            error = np.append(error, EPS * abs(own / problem.lift))
            implied = _lifted(implied, problem.lift, beta)
        return cls(problem, point, centre, scores, weights, error, b, implied)

    @property
    def free(self) -> bool:
        """Whether the intercept costs nothing."""
        return self.problem.intercept is Intercept.FREE

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """The groups of dual variables: all in one, or none."""
        return np.full(len(self.scores.value), 0 if self.free else -1)

    def stored(self, best: Floats) -> Floats:
        """Return what an intercept will be, once a model has stored it."""
        kept = exact_sum(float(best[0]), -self.point.w, self.centre)
        return np.array([exact_sum(kept, self.point.w, self.centre)])

    def intercept(self, certificate: Certificate) -> float:
        """Return the best intercept as a model is to store it."""
        if not self.free:
            return float(self.point.b) if self.problem.intercept is Intercept.PENALIZED else 0.0
        return exact_sum(certificate.intercept, -self.point.w, self.centre)


def _lifted(implied: Combination, lift: float, beta: Floats) -> Combination:
    """Return the weights that duals imply, with that of a column of value ``lift``."""
    size, summed = float(np.abs(beta).sum()), total(beta)
    return Combination(
        np.append(implied.value, lift * summed.value),
        np.append(implied.error, lift * (summed.error + EPS * size)),
        np.append(implied.size, lift * size),
    )


def imbalance_cost(problem: Problem, beta: Floats, implied: Combination, off: float) -> float:
    """Return what D loses at most while one side is scaled down until Σβ = 0 exactly."""
    if not off > 0:
        return 0.0
    lighter = min(float(beta[beta > 0].sum()), -float(beta[beta < 0].sum()))
    if not lighter > off:
        return np.inf if lighter > 0 else 0.0
    part = 1.01 * off / lighter
    gained = float(np.abs(problem.loss.target * beta).sum())
    bent = float(np.abs(implied.value) @ implied.size)
    return part * (gained + bent + part * float(implied.size @ implied.size))


def _linear_drift(w: Floats, implied: Floats) -> float:
    size = float(np.linalg.norm(w))
    away = float(np.linalg.norm(w - implied))
    return away / size if size > 0 else away


def _centre(problem: Problem) -> Floats:
    """Return a point to measure rows from: 0, unless differences would drown in rounding there."""
    X = problem.X
    if sp.issparse(X) or problem.intercept is not Intercept.FREE:
        return np.zeros(X.shape[1])
    some = np.asarray(X[:: max(1, X.shape[0] >> 12)], dtype=np.float64)
    middle, spread = some.mean(axis=0), some.std(axis=0)
    return middle if (np.abs(middle) > _FAR * spread).any() else np.zeros(X.shape[1])


# ------------------------------------------------------------------- kernel
#
# Certificates of kernel machines, f = Σ βᵥ K(xᵥ, ·) + b: weights w = Σ βᵥ φ(xᵥ) in feature space.
#
#     scores Kβ,   ‖w‖² = βᵀKβ
#
# Weak duality needs ‖w − v‖² ≥ 0, so a kernel that is not positive semidefinite is never certified:
# its dual is reported as −∞. If positive semidefiniteness is unknown, it is tested on the training
# Gram matrix.


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
        _kernel_drift(weights, implied),
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


def _kernel_drift(weights: Expansion, implied: Expansion) -> float:
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
