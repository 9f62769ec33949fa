"""Certificates of machines with penalty ½‖w‖², whatever space the weights live in.

First a point is evaluated: scores, norms and what duals imply, each with a bound on its rounding
error, computed from rows of numbers for linear machines and from kernel values for kernel machines.
What is concluded from an evaluation is then the same for both.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Flags, Floats, Ints
from maxmargin.certificates.certificate import Certificate
from maxmargin.kernels import Kernel, PreparedRows
from maxmargin.kernels.precomputed import asymmetry
from maxmargin.kernels.tiles import RUN, RUN_64, TILE_COLUMNS, dot
from maxmargin.problems.duality import (
    NOTHING,
    best_intercept,
    imbalances,
    size_of_terms,
    within_groups,
)
from maxmargin.problems.features import KernelFeatures, LinearFeatures, drawn_rows
from maxmargin.problems.problem import KernelProblem, LinearProblem, Point, Problem
from maxmargin.problems.rounding import (
    EPS,
    HALF,
    Bounded,
    Combination,
    exact_sum,
    passed,
    squared_norm,
    sum_error,
    total,
)
from maxmargin.runtime import clock

# Scores of all rows by function, as far as they are known: says which rows must be known better.
Undecided = Callable[[list[Bounded]], Flags]


class Claim(NamedTuple):
    """A point of a problem, and its duals as they are feasible."""

    problem: Any
    point: Point
    beta: Floats


class EvaluationInMemory:
    """What follows from an evaluation of which all that belongs to rows is in arrays."""

    problem: Any
    beta: Any
    b: Any
    scores: Any  # w·φ(x) of each row with its error, 0 where there was no time for it
    unknown: Any  # what no |score| exceeds that there was no time for; 0 for all others

    def best_intercepts(self) -> Floats:
        """Return the intercept of each group that makes the objective smallest."""
        return best_intercepts(self.problem, self.scores.value, self.b, self.unknown)

    def bound_losses(self, b: Floats, near: float) -> tuple[Bounded, float]:
        """Return Σ ℓ(w·φ + b) + Σ totals·b, and the worst violation of KKT.

        A β within ``near`` of a bound, or of the kink at 0, counts as being there.
        """
        problem, beta = self.problem, self.beta
        totals, unknown = problem.totals, np.zeros(len(problem)) + self.unknown
        summed, own, count, violation = loops.rounding.bound_losses(
            problem.loss, problem.row, problem.groups, np.append(b, 0.0), *self.scores, unknown,
            _STORED * totals.any(), beta, near,
        )  # fmt: skip
        error = sum_error(summed, summed, own, len(beta), count)
        pulled = total(totals * b, EPS * np.abs(totals * b))
        # Losses are not negative, but what pulls at intercepts may be.
        error += pulled.error + 2 * EPS * (abs(summed) + abs(pulled.value)) * bool(totals.any())
        return Bounded(summed + pulled.value, error), violation

    def bound_gains(self) -> tuple[Bounded, float]:
        """Return Σ tβ − ε|β| − ½ quadratic β², and the largest |β|."""
        beta = self.beta
        summed, size, own, count, largest = loops.rounding.bound_dual(self.problem.loss, beta)
        return Bounded(summed, sum_error(summed, size, own, len(beta), count)), largest


@singledispatch
def evaluate(
    features: Any,
    claims: list[Claim],
    *,
    partial: bool = False,
    undecided: Undecided | None = None,
) -> list[Any]:
    """Return what is to be known of points of problems with the same features.

    With ``partial``, a time limit may leave scores unknown. ``undecided``, given the scores of all
    points with bounds on their errors, says which rows must be known as well as float64 allows; by
    default all.
    """
    raise TypeError(f"no certificate knows {type(features).__name__}")


# ------------------------------------------------------------------- rows of numbers


_FAR = 30.0  # from 0, in standard deviations of a column


@dataclass(frozen=True)
class LinearWeights:
    """The weights of a linear machine and those that its duals imply, rows measured from a centre.

    w·x + b = w·(x − centre) + (b + w·centre), and Σβx = Σβ(x − centre) where Σβ = 0.
    """

    w: Floats
    centre: Floats
    weights: Floats  # with that of a constant feature
    weights_error: Floats
    b: Floats  # the free intercept, seen from the centre; empty if there is none
    implied: Combination  # the weights that duals imply
    penalised: float

    @property
    def norm2(self) -> Bounded:
        """‖w‖²."""
        return squared_norm(self.weights, self.weights_error)

    @property
    def incomplete(self) -> bool:
        """Whether there was no time for some of the scores: a pass over rows takes little."""
        return False

    @property
    def shift(self) -> float:
        """What is to be added to scores to give w·x."""
        return float(self.w @ self.centre) - self.penalised

    def apart(self, p: float, q: float) -> float:
        """Return ‖p·w − q·Σβφ‖."""
        return float(np.linalg.norm(p * self.weights - q * self.implied.value))

    def store(self, b: Floats) -> tuple[Floats, Floats]:
        """Return intercepts as a model stores them, and these again as seen from the centre."""
        stored = np.array([exact_sum(float(each), -self.w, self.centre) for each in b])
        return stored, np.array([exact_sum(float(each), self.w, self.centre) for each in stored])

    def with_caveats(self, certificate: Certificate) -> Certificate:
        """Return the certificate: there is nothing against rows of numbers."""
        return certificate

    def mending_cost(self, moved: float, lighter: float, gained: float) -> float:
        """Return what D loses at most while one side is scaled down until Σβ = 0 exactly.

        ``moved`` bounds |Σβ|, ``lighter`` is the smaller of Σβ over β > 0 and −Σβ over β < 0, and
        ``gained`` is Σ|tβ|.
        """
        implied = self.implied
        if not moved > 0:
            return 0.0
        if not lighter > moved:
            return np.inf if lighter > 0 else 0.0
        part = 1.01 * moved / lighter
        bent = float(np.abs(implied.value) @ implied.size)
        return part * (gained + bent + part * float(implied.size @ implied.size))


@dataclass(frozen=True)
class LinearEvaluation(EvaluationInMemory, LinearWeights):
    """A point of a linear problem whose rows are in memory."""

    problem: LinearProblem
    beta: Floats
    scores: Bounded
    unknown: float = 0.0

    def implied_norm2(self, off: float = 0.0) -> Bounded:
        """Return ‖Σβφ‖²: while sums are mended no dual moves by more than a part of itself."""
        part = 4 * off / (float(np.abs(self.beta).sum()) or 1.0)
        return squared_norm(self.implied.value, self.implied.error + part * self.implied.size)

    def products(self) -> Floats:
        """Return w·φ(x) of each row."""
        return np.asarray(self.scores.value + self.shift)

    def imbalance_cost(self, off: Floats) -> float:
        """Return what D loses at most while one side is scaled down until Σβ = 0 exactly."""
        beta = self.beta
        lighter = min(float(beta[beta > 0].sum()), -float(beta[beta < 0].sum()))
        gained = float(np.abs(self.problem.loss.target * beta).sum())
        return self.mending_cost(float(off.sum()), lighter, gained)


@evaluate.register
def _(
    features: LinearFeatures,
    claims: list[Claim],
    *,
    partial: bool = False,
    undecided: Undecided | None = None,
) -> list[LinearEvaluation]:
    """Compute the scores of points, and the weights that feasible duals imply."""
    del partial, undecided  # a pass over the rows takes little
    return [_evaluate_linear(features, *claim) for claim in claims]


def _evaluate_linear(
    features: LinearFeatures, problem: LinearProblem, point: Point, beta: Floats
) -> LinearEvaluation:
    free = len(problem.totals) > 0
    centre = centre_of(features, free=free)
    scores, implied = passed(features.X, point.w, beta, centre)
    if features.constant:
        scores = shifted(scores, float(point.b))
        implied = with_constant(implied, features.constant, total(beta), np.abs(beta).sum())
    weights = linear_weights(point, centre, implied, free=free, constant=features.constant)
    return LinearEvaluation(**vars(weights), problem=problem, beta=beta, scores=scores)


def linear_weights(
    point: Point, centre: Floats, implied: Combination, *, free: bool, constant: float
) -> LinearWeights:
    """Return the weights of a point, and those that duals imply, with bounds on their errors."""
    w, error = point.w, np.zeros(len(point.w))
    b = np.array([exact_sum(float(point.b), w, centre)] if free else [])
    if not constant:
        return LinearWeights(w, centre, w, error, b, implied, 0.0)
    own = float(point.b)
    weights = np.append(w, own / constant)
    error = np.append(error, EPS * abs(weights[-1]))
    return LinearWeights(w, centre, weights, error, b, implied, own)


def shifted(scores: Bounded, own: float) -> Bounded:
    """Return scores with a penalised intercept."""
    moved = scores.value + own
    return Bounded(moved, scores.error + EPS * (np.abs(moved) + abs(own)))


def with_constant(
    implied: Combination, constant: float, summed: Bounded, size: float
) -> Combination:
    """Return the weights that duals imply, with that of a constant feature, given Σβ and Σ|β|."""
    return Combination(
        np.append(implied.value, constant * summed.value),
        np.append(implied.error, constant * (summed.error + EPS * size)),
        np.append(implied.size, constant * size),
    )


def centre_of(features: LinearFeatures, *, free: bool) -> Floats:
    """Return a point to measure rows from: 0, unless rounding would swamp differences there."""
    X = features.X
    if sp.issparse(X) or not free:
        return np.zeros(X.shape[1])
    return centre_of_some(X[:: stride_of(X.shape[0])])


def stride_of(n: int) -> int:
    """Return how far apart the rows are, of n, that a centre is taken from."""
    return max(1, n >> 9)


def centre_of_some(some: Any) -> Floats:
    """Return a point to measure rows from, given some of them."""
    some = np.asarray(some, dtype=np.float64)
    middle, spread = some.mean(axis=0), some.std(axis=0)
    return middle if (np.abs(middle) > _FAR * spread).any() else np.zeros(some.shape[1])


# ------------------------------------------------------------------- kernel values
#
# With f = Σ aᵢ K(xᵢ, ·) the weights are w = Σ aᵢ φ(xᵢ) in feature space: scores Ka, ‖w‖² = aᵀKa.
#
# Weak duality needs ‖w − v‖² ≥ 0, so a kernel that is not positive semidefinite is never certified:
# its dual is reported as −∞. If positive semidefiniteness is unknown, it is tested on the training
# Gram matrix.


_MOST_TESTED = 3000  # rows whose matrix is factorised to test the kernel: a second
_MOST_TESTED_IN_TIME = 1000  # the same under a time limit: a moment


@dataclass(frozen=True)
class KernelEvaluation(EvaluationInMemory):
    """A point of a kernel problem."""

    problem: KernelProblem
    beta: Floats
    weights: "Expansion"
    implied: "Expansion"
    b: Floats
    scores: Bounded
    norm2: Bounded
    unknown: Floats
    penalised: float = 0.0

    def implied_norm2(self, off: float = 0.0) -> Bounded:
        """Return ‖Σβφ‖², whose length changes by the longest row times ``off`` at most."""
        value, error = self.implied.norm2
        moved, length = off * self.implied.longest, np.sqrt(max(value + error, 0.0))
        return Bounded(value, error + moved * (2 * length + moved))

    def products(self) -> Floats:
        """Return w·φ(x) of each row, to the digits of float32 if it is beyond the margin."""
        return np.where(self.unknown > 0, np.nan, self.scores.value)

    def apart(self, p: float, q: float) -> float:
        """Return ‖p·w − q·Σβφ‖."""
        between = p * self.weights.coefficients - q * self.implied.coefficients
        apart = between @ (p * self.weights.scores.value - q * self.implied.scores.value)
        return float(np.sqrt(max(float(apart), 0.0)))

    def imbalance_cost(self, off: Floats) -> float:
        """Return what D loses at most while duals move by ``off`` in all, in each group."""
        problem, implied = self.problem, self.implied
        value, error = implied.scores
        cost, size = 0.0, (np.abs(value) + error + implied.unknown)[problem.row]
        for g, moved in enumerate(off):
            members = problem.groups == g
            pull = np.abs(problem.loss.target[members]) + size[members]
            cost += moved * (1.01 * float(pull.max(initial=0.0)) + problem.loss.epsilon)
        return cost + (float(off.sum()) * implied.longest) ** 2

    @property
    def incomplete(self) -> bool:
        """Whether there was no time for some of the scores."""
        return bool(np.any(self.unknown))

    def store(self, b: Floats) -> tuple[Floats, Floats]:
        """Return the intercepts, which are stored as they are."""
        return b, b

    def with_caveats(self, certificate: Certificate) -> Certificate:
        """Return the certificate with what is known against the kernel, and what was left out."""
        missing = int(np.count_nonzero(self.unknown))
        return with_kernel_caveats(certificate, self.problem.features, missing)


@evaluate.register
def _(
    features: KernelFeatures,
    claims: list[Claim],
    *,
    partial: bool = False,
    undecided: Undecided | None = None,
) -> list[KernelEvaluation]:
    """Compute the functions that weights and duals are the coefficients of, in one pass."""
    columns: list[Floats] = []
    for each in claims:
        columns += (each.point.w, each.problem.by_row(each.beta))
    asked = None if undecided is None else lambda scores: undecided(scores[::2])
    found = expansions(features, np.column_stack(columns), partial=partial, undecided=asked)
    evaluated = []
    for each, weights, implied in zip(claims, found[::2], found[1::2], strict=True):
        shape = each.problem.totals.shape
        b = np.broadcast_to(np.asarray(each.point.b, dtype=np.float64), shape).copy()
        evaluated.append(
            KernelEvaluation(
                each.problem, each.beta, weights, implied, b, weights.scores, weights.norm2,
                weights.unknown,
            )
        )  # fmt: skip
    return evaluated


class Expansion(NamedTuple):
    """A function Σ aⱼK(xⱼ, ·) on the rows it is made of, with bounds on all errors."""

    coefficients: Floats
    scores: Bounded  # 0 where they are not known
    norm2: Bounded  # a bound from above where not all scores are known
    longest: float  # the largest √K(x, x)
    unknown: Floats  # what no |score| exceeds that is not known, 0 for all others


def expansions(
    features: KernelFeatures,
    coefficients: Floats,
    *,
    partial: bool = False,
    undecided: Undecided | None = None,
) -> list[Expansion]:
    """Return the functions with these coefficients, one per column.

    With ``partial``, a time limit may leave scores unknown. Rows drawn by lot come first, as they
    decide on intercepts, and rows without a coefficient last. As |f(x)| ≤ ‖w‖√K(x, x), there is a
    bound on unknown scores, and on ‖w‖² = Σ aⱼf(xⱼ): with A the sum over known scores, and
    S = Σ |aⱼ|√K(xⱼ, xⱼ) over the others, ‖w‖² ≤ A + S‖w‖.

    With ``undecided``, scores of rows without a coefficient may be those of float32, as long as it
    does not ask for more.
    """
    gram, rows, kernel = features.gram, features.rows, features.gram.kernel
    distinct, place = list[int](), list[int]()  # columns, and which of them each is equal to
    for k, column in enumerate(coefficients.T):
        same = [j for j in distinct if np.array_equal(coefficients[:, j], column)]
        distinct += [] if same else [k]
        place.append(distinct.index(same[0] if same else k))
    some = np.ascontiguousarray(coefficients[:, distinct])
    with_one = _with_coefficient(some)
    used, rest = np.flatnonzero(with_one), np.flatnonzero(~with_one)
    exact = kernel.sharpened(gram.exact if len(rows) == len(gram.exact) else gram.exact[rows])
    lengths = gram.lengths[rows]
    off = np.asarray(kernel.rounding(exact), dtype=np.float64)
    value, error = np.full(some.shape, np.nan if len(used) else 0.0), np.zeros(some.shape)
    scores = _Scores(features, exact, used, some, lengths, off, partial, value, error)
    hurried = bool(np.isfinite(clock.limit().end))
    if hurried:
        scores.compute(drawn_rows(len(value)))
    if not hurried and len(exact) * len(used) < _WORTH and recalled(features, some) is None:
        scores.compute(None)
    else:
        scores.compute(used)
        rest = rest[np.isnan(value[rest, 0])] if hurried else rest
        asked = None if undecided is None else lambda found: undecided([found[k] for k in place])
        if asked is None or not scores.decide(rest, asked):
            scores.compute(rest)
    missing, found = np.isnan(value[:, 0]), list[Expansion]()
    value[missing] = 0.0
    for k in place:
        a, known = some[:, k], Bounded(value[:, k], error[:, k])
        norm2 = total(a * known.value, np.abs(a) * known.error + EPS * np.abs(a * known.value))
        unknown = np.zeros(len(a))
        if missing.any():
            most = max(norm2.value + norm2.error, 0.0)
            left = 1.001 * float((np.abs(a) * lengths)[missing].sum())
            length = 1.001 * 0.5 * (left + np.sqrt(left * left + 4 * most))
            norm2, unknown = Bounded(length * length, 0.0), length * lengths * missing
        found.append(Expansion(a, known, norm2, float(lengths.max(initial=0.0)), unknown))
    return found


class _Scores(NamedTuple):
    """The scores of all rows, a column for each function, and bounds on their errors."""

    features: KernelFeatures
    rows: PreparedRows  # in float64
    used: Ints  # rows that have a coefficient in any column
    coefficients: Floats
    lengths: Floats  # no less than √K(x, x)
    off: Floats  # ``Kernel.rounding``
    partial: bool
    value: Floats  # NaN: not known
    error: Floats

    def compute(self, at: Ints | None) -> None:
        """Compute the scores of some rows in float64, or of all.

        A kernel value is off by ε(r(x) + r(x′))√(K(x, x)K(x′, x′)) at most (``Kernel.rounding``).
        Sums are off by an ε for each term: of a run in any order, of the runs and of the tiles,
        which are half as high as wide if half of the values are enough, and have some shares then.
        """
        kernel, used, off = self.features.gram.kernel, self.used, self.off
        if not len(used) or (at is not None and not len(at)):
            return
        columns, a = self.rows[used], self.coefficients[used]
        # Whether a function of the user is symmetric is not known.
        half_is_enough = at is used and len(used) > TILE_COLUMNS and kernel.psd is True
        half_is_enough &= kernel.max_tile_rows >= TILE_COLUMNS
        left = columns if half_is_enough else self.rows if at is None else self.rows[at]
        at = np.arange(len(self.rows)) if at is None else at
        threads = self.features.gram.threads
        value, size = kernel.dot_with_magnitudes(left, columns, a, threads, partial=self.partial)
        if self.partial:
            known = ~np.isnan(value[:, 0])
            at, value, size = at[known], value[known], size[known]
        long = np.abs(a) * self.lengths[used, np.newaxis]
        count = sum_rounding(len(used), several=half_is_enough)
        own = np.outer(off[at], long.sum(axis=0)) + off[used] @ long
        own *= self.lengths[at, np.newaxis]
        self.value[at], self.error[at] = value, EPS * (count * size + own)

    def decide(self, rest: Ints, undecided: Undecided) -> bool:
        """Compute scores in float32 first, and in float64 where that is not enough.

        Return whether this was of use. Some rows tell: where errors are as large as what tells
        scores apart, nothing is decided. A pass that was made for a solver is not made again.
        """
        if np.isfinite(clock.limit().end):
            return False  # if time ran out in between, errors of float32 would count as rounding
        found = recalled(self.features, self.coefficients)
        if found is None:
            probe = rest[:: max(1, len(rest) // _PROBE)]
            some = rough_scores(self.features, self.coefficients, probe)
            if some is None:
                return False
            if (np.median(some.error, axis=0) > _DECIDES * some.value.std(axis=0)).any():
                return False
            found = rough_scores(self.features, self.coefficients, rest)
        if found is None:
            return False
        self.value[rest], self.error[rest] = found
        rough = np.zeros(len(self.value), bool)
        rough[rest] = True
        while True:
            bounded = [Bounded(*each) for each in zip(self.value.T, self.error.T, strict=True)]
            at = np.flatnonzero(rough & undecided(bounded))
            if not len(at):
                return True
            self.compute(at)
            rough[at] = False


def sum_rounding(terms: int, several: bool = False) -> float:
    """Return how many ε of Σ |aK| a sum of kernel values is off by, made by runs and tiles."""
    added = 3 * terms // TILE_COLUMNS + 13 if several or terms > RUN_64 else 0
    return HALF * (min(terms, RUN_64) + added) + 4


_U = 2.0**-24  # half of float32's ε
_SUM = (RUN + 4) * _U  # the error of sums over a run in float32, of rounded weights
_TINY = 1e-36, 1e-44  # what underflow may cost in a term: for all values, and for large ones
_MOST = 0.1  # relative error of a kernel value in float32 up to which a pass is made
_DECIDES = 0.2  # of the spread of scores: if they are off by more, float32 decides little
_PROBE = 256  # rows on which that is seen
_LEAST_SCALE = 1e-290  # of coefficients
_WORTH = 1 << 22  # kernel values from which on a pass in float32 saves anything


def scores_of_rest(
    features: KernelFeatures, coefficients: Floats, halves: Any = None
) -> tuple[Ints, Floats] | None:
    """Return the rows without a coefficient and their scores, computed in float32; or None.

    Nobody else computes them, so a certificate of these very coefficients takes them from here.
    ``halves`` are the kernel values of all rows, if they are there already.
    """
    rest = np.flatnonzero(coefficients == 0)
    if halves is None and len(rest) * (len(coefficients) - len(rest)) < _WORTH:
        return None
    found = rough_scores(features, coefficients[:, np.newaxis], rest, halves)
    if found is None:
        return None
    features.passes[:] = [(coefficients.copy(), found)]
    return rest, found.value[:, 0]


def recalled(features: KernelFeatures, coefficients: Floats) -> Bounded | None:
    """Return what ``scores_of_rest`` found last, if that was for these coefficients."""
    if not features.passes or coefficients.shape[1] > 1:
        return None
    column, found = features.passes[0]
    return found if np.array_equal(column, coefficients[:, 0]) else None


def rough_scores(
    features: KernelFeatures, coefficients: Floats, at: Ints, halves: Any = None
) -> Bounded | None:
    """Return the scores of some rows, a column for each function, computed in float32.

    None: there are no rows in float32, or there is no bound on their errors.

    A kernel value k is within (eᵗ − 1)|k| + s√(K(x, x)K(x′, x′)) of what it should be, with parts
    t and s from either row (``Kernel.float32_rounding``). If no value is below 0, a second column
    Σ |a|k(t(x′) + ρ) bounds all that is a part of values, where ρ is the mean of what the row and
    the sum add to t; it is increased in proportion for rows that add more. If values may be below
    0 there is no t, and |k| is at most √(K(x, x)K(x′, x′)).

    ``halves`` are the kernel values of all rows, if they are there; sums are then made in float64.
    """
    gram, kernel, count = features.gram, features.gram.kernel, coefficients.shape[1]
    used = np.flatnonzero(_with_coefficient(coefficients))
    if gram.float32_rounding is None or not len(at) or not len(used):
        return None
    rows, columns = features.rows[at], features.rows[used]
    (t, t_used), (s, s_used) = ((each[rows], each[columns]) for each in gram.float32_rounding)
    own, most = t + _SUM, float(t.max() + t_used.max())
    if most > _MOST:
        return None
    weights = coefficients[used]
    scale = np.exp2(np.ceil(np.log2(np.maximum(np.abs(weights).max(axis=0), _LEAST_SCALE))))
    weights /= scale
    lengths, lengths_used, sizes = gram.lengths[rows], gram.lengths[columns], np.abs(weights)
    typical = float(own.mean()) if kernel.nonnegative else 0.0
    if typical:
        weights = np.hstack([weights, sizes * (t_used + typical)[:, np.newaxis]])
    if halves is None:
        tiles = gram.tiles[rows], gram.tiles[columns]
        found = dot(kernel, *tiles, weights, gram.threads, run=RUN).T
    else:
        found = np.zeros((weights.shape[1], len(features)))
        runs = np.array([[0, len(each), 0] for each in (halves.first, halves.second)])
        by_column = np.ascontiguousarray(weights.T)
        loops.rounding.multiply_halves(*halves, used, by_column, runs, found)
        found = found[:, at]
    value, error = np.empty((2, count, len(at)))
    tiny = len(used) * _TINY[0], len(used) * _TINY[1] * float(lengths_used.max())
    for c in range(count):
        long = float(lengths_used @ sizes[:, c]), float((s_used * lengths_used) @ sizes[:, c])
        part = (
            found[count + c] * np.maximum(own / typical, 1.0)
            if typical
            else _SUM * long[0] * lengths
        )
        error[c] = part + tiny[0] + lengths * (s * long[0] + (long[1] + tiny[1]))
        value[c] = found[c]
    factor = scale[:, np.newaxis]
    return Bounded((value * factor).T, ((1.01 + most) * error * factor).T)


def _with_coefficient(coefficients: Floats) -> Flags:
    """Return which rows have a coefficient in any column."""
    one = coefficients.shape[1] == 1
    return np.asarray(coefficients[:, 0] != 0 if one else coefficients.any(axis=1))


def with_kernel_caveats(
    certificate: Certificate, features: KernelFeatures, missing: int
) -> Certificate:
    """Return the certificate with what is known against the kernel, and what was left out.

    ``missing`` rows have scores that there was no time for.
    """
    if missing and not certificate.caveat:
        caveat = (
            f"there was no time for the scores of {missing} of {len(features)} rows, which "
            "are bounded by ‖w‖√K(x, x) instead: the true gap is smaller"
        )
        certificate = dataclasses.replace(certificate, caveat=caveat)
    kernel = features.gram.kernel
    if kernel.psd:
        return certificate
    most = _MOST_TESTED if np.isinf(clock.limit().end) else _MOST_TESTED_IN_TIME
    tested = min(len(features), most)
    sample = features.rows[np.linspace(0, len(features) - 1, tested).astype(np.int64)]
    refuted = f"{kernel!r} is not positive semidefinite, so that the dual bounds nothing"
    try:
        gram = features.gram
        if kernel.psd is None and _is_gram(kernel, gram.exact[sample], gram.prepared.dtype):
            assumed = f"this takes {kernel!r} for positive semidefinite, as tested on {tested} rows"
            caveat = certificate.caveat or (assumed if tested < len(features) else "")
            return dataclasses.replace(certificate, caveat=caveat)
    except clock.OutOfTimeError:
        refuted = f"there was no time to see whether {kernel!r} is positive semidefinite"
    return dataclasses.replace(
        certificate, dual=-np.inf, distance_bound=np.inf, caveat=refuted, terms=0.0
    )


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


# ------------------------------------------------------------------- what is concluded


_STORED = 2 * EPS  # what storing a model of a ν-form rounds: it is divided by its margin first
_AT_BOUND = 1e-9  # duals within this part of the largest of their bound are taken to be there


@dataclass(frozen=True)
class Dual:
    """What is to be known of duals that are feasible but for rounding.

    ``imbalance`` is what D may lose while rounding is taken out of the sums of the groups.
    """

    infeasibility: float
    norm2: Bounded
    drift: float
    imbalance: float


def certify_many(
    problems: list[Problem[Any]], points: list[Point], *, keep_intercept: bool = False
) -> list[tuple[Certificate, Any]]:
    """Return the certificates of points of problems with the same features, in one pass.

    The penalty is ½‖w‖². Free intercepts are replaced by the best ones for the weights, unless they
    are to be kept.
    """
    claims, changes = [], []
    for problem, point in zip(problems, points, strict=True):
        beta, change = within_groups(problem.loss, point.beta, problem.groups, problem.totals)
        claims.append(Claim(problem, point, beta))
        changes.append(change)

    def undecided(scores: list[Bounded]) -> Flags:
        """Return the rows whose loss may depend on the errors of scores."""
        rows = np.zeros(len(problems[0]), bool)
        for each, found in zip(claims, scores, strict=True):
            rows |= _with_loss(each.problem, found, each.point.b, keep_intercept)
        return rows

    found = []
    evaluations = evaluate(problems[0].features, claims, partial=True, undecided=undecided)
    for each, evaluated, infeasibility in zip(claims, evaluations, changes, strict=True):
        problem = each.problem
        off = imbalances(problem.loss, each.beta, problem.groups, problem.totals)
        certificate = certified(
            evaluated, infeasibility, off, keep_intercept=keep_intercept, lengths=problem.lengths()
        )
        found.append((certificate, evaluated))
    return found


def certified(
    evaluated: Any,
    infeasibility: float,
    off: Floats,
    *,
    keep_intercept: bool,
    lengths: Floats | None = None,
) -> Certificate:
    """Return the certificate of weights and duals with penalty ½‖w‖².

    ``infeasibility`` is what was changed of the duals, and by ``off`` the sums of groups may still
    not be what they should be. ``lengths`` of rows are given where the optimum may be 0.
    """
    norm2 = evaluated.norm2
    length = np.sqrt(max(float(norm2.value), 0.0))
    dual = Dual(
        infeasibility,
        evaluated.implied_norm2(),
        evaluated.apart(1.0, 1.0) / (length if length > 0 else 1.0),
        evaluated.imbalance_cost(off),
    )
    terms = 0.0
    if lengths is not None:
        terms = size_of_terms(np.abs(evaluated.implied.coefficients), lengths)
    certificate = conclude(evaluated, norm2, dual, keep_intercept=keep_intercept, terms=terms)
    found: Certificate = evaluated.with_caveats(certificate)
    return found


def _with_loss(problem: Problem[Any], scores: Bounded, b: Any, keep_intercept: bool) -> Flags:
    """Return for which rows a loss may be other than 0, as far as scores are known."""
    own = np.broadcast_to(np.asarray(b, dtype=np.float64), problem.totals.shape)
    best = best_intercepts(problem, scores.value, own, 0.0)
    rows = np.zeros(len(problem), bool)
    for each in [best, own] if keep_intercept else [best]:
        loops.rounding.mark_losses(
            problem.loss, problem.row, problem.groups, np.append(each, 0.0), *scores,
            _STORED * problem.totals.any(), rows,
        )  # fmt: skip
    return rows


def conclude(
    evaluated: Any, norm2: Bounded, dual: Dual, *, keep_intercept: bool, terms: float = 0.0
) -> Certificate:
    """Return the certificate.

    Parameters
    ----------
    evaluated, norm2 : LinearWeights or KernelEvaluation, Bounded
        The point, and twice the penalty of its weights.
    dual : Dual
        What its duals prove.
    keep_intercept : bool
        Take the primal at the point's own intercepts, rather than at the best ones.
    terms : float
        The size of the terms that may cancel in the dual objective.
    """
    stored, best = evaluated.b, evaluated.b
    if len(best):  # what the intercepts will be once a model has stored them
        stored, best = evaluated.store(evaluated.best_intercepts())
    own = evaluated.b if keep_intercept else best
    bound, largest = _dual_objective(evaluated, dual)
    near = _AT_BOUND * largest
    value, violation = _objective(evaluated, norm2, own, near)
    least = value
    if not np.array_equal(own, best):
        least, _ = _objective(evaluated, norm2, best, near)
    proved = min(value.value + value.error, least.value + least.error) - (bound.value - bound.error)
    terms = terms if bound.error - bound.value <= NOTHING * terms else 0.0
    if terms:  # of both bounds nothing but rounding may be left, so that it is part of them
        value = Bounded(float(value.value + value.error), 2 * value.error)
        bound = Bounded(float(bound.value - bound.error), 2 * bound.error)
    return Certificate(
        value.value,
        bound.value,
        dual.infeasibility,
        dual.drift,
        np.inf if evaluated.incomplete else violation,
        float(np.sqrt(2 * max(proved, 0.0))),
        float(stored[0]) if len(stored) else evaluated.penalised,
        intercept_cost=max(value.value - least.value, 0.0) if np.isfinite(least.value) else 0.0,
        intercepts=tuple(stored.tolist()),
        rounding=relative_rounding(value, bound),
        terms=terms,
    ).resolved()


def relative_rounding(value: Bounded, bound: Bounded) -> float:
    """Return the errors of both bounds as a part of the larger."""
    error = value.error + bound.error
    size = max(abs(value.value), abs(bound.value))
    if not error > 0:
        return 0.0
    return float(error / size) if size > 0 and np.isfinite(error) else np.inf


def _objective(evaluated: Any, norm2: Bounded, b: Floats, near: float) -> tuple[Bounded, float]:
    """Return ½‖w‖² + Σ ℓ(w·φ + b) + Σ totals·b, and the worst violation of KKT."""
    paid, violation = evaluated.bound_losses(b, near)
    value = 0.5 * norm2.value + paid.value
    error = paid.error + 0.5 * norm2.error + 2 * EPS * (0.5 * abs(norm2.value) + abs(paid.value))
    return (Bounded(value, error) if np.isfinite(value) else Bounded(np.inf, np.inf)), violation


def _dual_objective(evaluated: Any, dual: Dual) -> tuple[Bounded, float]:
    """Return Σ tβ − ε|β| − ½ quadratic β² − ½‖Σβφ‖², and the largest |β|."""
    gained, largest = evaluated.bound_gains()
    value = gained.value - 0.5 * dual.norm2.value
    error = gained.error + 0.5 * dual.norm2.error + dual.imbalance
    error += EPS * (abs(gained.value) + 0.5 * abs(dual.norm2.value))
    return (Bounded(value, error) if np.isfinite(value) else Bounded(-np.inf, np.inf)), largest


# ------------------------------------------------------------------- sums over arrays


def best_intercepts(
    problem: Problem[Any], scores: Floats, near: Floats, unknown: Floats | float
) -> Floats:
    """Return the intercept of each group that makes the objective smallest.

    If some scores are not known, it does so for those that are known of rows drawn by lot.
    """
    best, row, known = near.copy(), problem.row, None
    if np.any(unknown):
        drawn = drawn_rows(len(problem.features))
        known = np.zeros(len(problem.features), bool)
        known[drawn] = np.equal(unknown, 0.0)[drawn]
        known = known[row]
    for g, pull in enumerate(problem.totals):
        own = problem.groups == g
        used = own if known is None else own & known
        count = int(np.count_nonzero(used))
        if not count:
            continue
        some, loss = scores[row], problem.loss
        if count < len(row):
            some, loss = some[used], loss.take(np.flatnonzero(used))
        share = count / int(np.count_nonzero(own)) * float(pull)
        best[g] = best_intercept(loss, some, float(near[g]), share)
    return best
