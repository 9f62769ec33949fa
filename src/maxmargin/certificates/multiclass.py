"""Certificates of the multiclass machine of Crammer and Singer."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.certificates.certificate import Certificate
from maxmargin.certificates.quadratic import relative_rounding
from maxmargin.geometry.inputs import largest_squared_norm
from maxmargin.problems.problem import Intercept, MulticlassProblem
from maxmargin.problems.rounding import (
    EPS,
    Bounded,
    exact_sum,
    passed,
    squared_norm,
    total,
)

_AT_BOUND = 1e-9  # a class with less than this part of a row's cost holds none of it
_PASSES = 20  # over the coordinates of a free intercept
_BALANCED = 64 * EPS  # of the duals: sums that are off by no more are left as they are
_EQUAL = 1e-12  # sums of costs or duals that differ by less than this part are equal


@dataclass(frozen=True)
class MulticlassCertificate(Certificate):
    """A certificate that speaks for all classes at once; ``intercepts`` has one for each.

    The objective is minimised over a free intercept by exact steps in one coordinate at a time:
    what results is an upper bound, as all bounds here, but not always the least for the weights.
    """

    intercepts: tuple[float, ...] = ()


def certify_multiclass(
    problem: MulticlassProblem, W: Floats, b: Floats, beta: Floats, *, keep_intercept: bool = False
) -> tuple[Certificate, Floats]:
    """Return the certificate of weights (d, K), intercepts (K,) and duals (n, K).

    The duals made feasible, which it is about, are returned with it. Free intercepts are replaced
    by better ones for the weights, unless they are to be kept.
    """
    W, b = np.asarray(W, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if problem.intercept is Intercept.NONE:
        b = np.zeros(W.shape[1])
    duals, infeasibility = feasible_duals(problem, beta)
    seen = _see(problem, W, duals)
    scores = seen.scores.value + seen.from_centre(b)
    best = b
    if problem.intercept is Intercept.FREE:
        claims = _claims(problem, scores)
        loss = _total_loss(claims, problem.labels, problem.cost)
        best = b + best_intercept_step(claims, problem.labels, problem.cost, loss, _PASSES)[0]
        best = best - best.mean()  # the same for all classes, it changes nothing
    own = b if keep_intercept else best
    claims = _claims(problem, seen.scores.value + seen.from_centre(own))
    primal = least = _objective(problem, seen, own, claims)
    if own is not best:
        better = _claims(problem, seen.scores.value + seen.from_centre(best))
        least = min(primal, _objective(problem, seen, best, better))
    dual = _dual_objective(problem, duals, seen.implied)
    proved = max(least.value + least.error - (dual.value - dual.error), 0.0)
    return MulticlassCertificate(
        primal.value,
        dual.value,
        infeasibility,
        seen.drift,
        kkt_violation(problem, claims, _costs(problem) - duals),
        float(np.sqrt(2 * proved)),
        intercept_cost=max(primal.value - least.value, 0.0) if np.isfinite(least.value) else 0.0,
        intercepts=tuple(best.tolist()),
        rounding=relative_rounding(primal, dual),
    ).resolved(), duals


# ------------------------------------------------------------------- what a point looks like


class Implied(NamedTuple):
    """The weights wₖ = Σ βᵢ[k]xᵢ that duals imply, by what the dual bound needs of them."""

    norm2: Bounded  # Σ‖wₖ‖²
    bent: float  # how much ½Σ‖wₖ‖² changes if no β changes by more than a part p: p·bent
    spread: float  # + p²·spread
    longest: float  # ‖x‖ of the longest row
    length: float  # of the longest wₖ


class Seen(NamedTuple):
    """Weights and duals, evaluated with bounds on their rounding."""

    scores: Bounded  # w·x by row and class, measured from the centre
    norm2: Bounded  # Σ‖wₖ‖²
    implied: Implied
    drift: float
    W: Floats
    centre: Floats  # that rows were measured from

    def from_centre(self, b: Floats) -> Floats:
        """Return intercepts as scores are measured: w·x + b = w·(x − centre) + (b + w·centre)."""
        if not self.centre.any():
            return b
        return np.array(
            [exact_sum(float(one), w, self.centre) for one, w in zip(b, self.W.T, strict=True)]
        )


def _see(problem: MulticlassProblem, W: Floats, duals: Floats) -> Seen:
    """Evaluate weights and feasible duals."""
    X, centre = problem.features.X, _centre(problem)
    scores, implied = passed(X, W, duals, centre)
    longest = np.sqrt(largest_squared_norm(X)) + float(np.linalg.norm(centre))
    away, size = float(np.linalg.norm(W - implied.value)), float(np.linalg.norm(W))
    return Seen(
        scores,
        squared_norm(W.ravel()),
        Implied(
            squared_norm(implied.value.ravel(), implied.error.ravel()),
            float((np.abs(implied.value) * implied.size).sum()),
            float((implied.size**2).sum()),
            float(longest),
            float(np.linalg.norm(implied.value, axis=0).max(initial=0.0)),
        ),
        away / size if size > 0 else away,
        W,
        centre,
    )


# ------------------------------------------------------------------- duals


def feasible_duals(problem: MulticlassProblem, beta: Floats) -> tuple[Floats, float]:
    """Return duals within all constraints, and the change; as they are if only rounding is off."""
    costs, size = _costs(problem), float(np.abs(beta).sum())
    if np.isfinite(size) and (beta <= costs).all():
        duals = duals_of(problem.labels, -beta)
        sums = np.abs(duals.sum(axis=0)) if problem.intercept is Intercept.FREE else np.zeros(1)
        within = (np.abs(duals - beta) <= _BALANCED * np.abs(beta).sum(axis=1, keepdims=True)).all()
        if within and (duals <= costs).all() and (sums <= _BALANCED * size).all():
            return duals, 0.0
    mass, change = feasible_masses(problem, beta)
    duals = duals_of(problem.labels, mass)
    return (_rebalance(problem, duals) if problem.intercept is Intercept.FREE else duals), change


def _rebalance(problem: MulticlassProblem, duals: Floats) -> Floats:
    """Return duals whose sums over a class are 0 beside the duals, not only beside their costs.

    In one row, a small amount goes from a class with too much to one with too little; of the rows
    that can take it, the one with the smallest duals rounds it least; no dual of 0 is made to, as
    long as others can.
    """
    costs = _costs(problem)
    for _ in range(2 * problem.n_classes):
        sums = np.array([math.fsum(column) for column in duals.T.tolist()])
        high, low = int(sums.argmax()), int(sums.argmin())
        amount = min(sums[high], -sums[low])
        takes = costs[:, low] - duals[:, low] >= amount
        if amount <= _BALANCED * float(np.abs(duals).sum()):
            break
        if not takes.any():  # all rows are at their bounds: a little less of everything makes slack
            largest = float(problem.cost[problem.labels == low].max())
            duals *= 1 - min(0.5, 2 * amount / largest)
            continue
        there = takes & (np.abs(duals[:, [low, high]]) > amount).all(axis=1)
        takes = there if there.any() else takes
        row = np.flatnonzero(takes)[np.abs(duals[takes]).sum(axis=1).argmin()]
        duals[row, low] += amount
        duals[row, high] -= amount
    return duals


def _costs(problem: MulticlassProblem) -> Floats:
    """Return Cδ(k, y) for each row and class."""
    costs = np.zeros((len(problem.cost), problem.n_classes))
    own = np.arange(len(costs)), problem.labels
    costs[own] = problem.cost
    return costs


def duals_of(labels: Ints, mass: Floats) -> Floats:
    """Return β = Cδ − m, where β[y] is what the other classes hold: rows then sum to 0."""
    beta = np.empty(mass.shape)
    loops.crammer_singer.duals_of(labels, np.ascontiguousarray(mass), beta)
    return beta


def _claims(problem: MulticlassProblem, scores: Floats) -> Floats:
    """Return 1 − δ(k, y) + f for each row and class."""
    claims = scores + 1.0
    claims[np.arange(len(scores)), problem.labels] -= 1.0
    return claims


def _objective(problem: MulticlassProblem, seen: Seen, b: Floats, claims: Floats) -> Bounded:
    norm2 = seen.norm2
    if problem.intercept is Intercept.PENALIZED:
        lifted = b / problem.features.constant
        more = squared_norm(lifted, EPS * np.abs(lifted))
        norm2 = total(np.array([norm2.value, more.value]), np.array([norm2.error, more.error]))
    own = np.arange(len(claims)), problem.labels
    lead = claims.max(axis=1, initial=-np.inf) - claims[own]
    # A row's own class is behind itself by 0, without any error.
    errors = seen.scores.error + 4 * EPS * (np.abs(claims) + 1)
    most = claims - claims[own][:, np.newaxis]
    most += errors + errors[own][:, np.newaxis] + EPS * np.abs(most)
    most[own] = 0.0
    off = np.maximum(most.max(axis=1, initial=0.0) - lead, 0.0)
    fitted = total(problem.cost * lead, problem.cost * off + EPS * problem.cost * np.abs(lead))
    value = 0.5 * norm2.value + fitted.value
    if not np.isfinite(value):
        return Bounded(np.inf, np.inf)
    size = 0.5 * abs(norm2.value) + fitted.value
    return Bounded(value, 0.5 * norm2.error + fitted.error + EPS * size)


def _dual_objective(problem: MulticlassProblem, duals: Floats, implied: Implied) -> Bounded:
    """Return Σ βᵢ[yᵢ] − ½Σ‖wₖ‖², less what it loses while rounding is taken out of all sums."""
    gained, norm2 = total(duals[np.arange(len(duals)), problem.labels]), implied.norm2
    value, error = gained.value - 0.5 * norm2.value, gained.error + 0.5 * norm2.error
    size = float(np.abs(duals).sum())
    if problem.intercept is Intercept.PENALIZED:
        sums = problem.features.constant * duals.sum(axis=0)
        off = problem.features.constant * len(duals) * EPS * np.abs(duals).sum(axis=0)
        spread = squared_norm(sums, off)
        value, error = value - 0.5 * spread.value, error + 0.5 * spread.error
    # Sums over a row are off by rounding: duals that have the right ones are within this part.
    part = (duals.shape[1] + 4) * EPS
    error += part * (size + implied.bent + part * implied.spread)
    if problem.intercept is Intercept.FREE:
        sums = [total(column) for column in duals.T]
        moved = 2 * sum(abs(one.value) + one.error for one in sums)
        slope = implied.longest * implied.length
        error += moved * (1 + 1.01 * slope) + (moved * implied.longest) ** 2
    error += EPS * (abs(gained.value) + 0.5 * abs(norm2.value))
    return Bounded(value, error) if np.isfinite(value) else Bounded(-np.inf, np.inf)


def feasible_masses(problem: MulticlassProblem, beta: Floats) -> tuple[Floats, float]:
    """Return masses m = Cδ − β made feasible, and by how much that changed β.

    Negative masses are dropped and each row scaled to its cost. With a free intercept class k must
    be given in all what its rows bring, Nₖ. Classes that have more, Mₖ > Nₖ, keep the part Nₖ/Mₖ of
    each mass; what a row is left with goes to the classes that lack, in proportion to their lack.
    Rows keep their sums, no mass is negative and every class has its due: always feasible.
    """
    cost, own = problem.cost, _costs(problem)
    given = np.where(np.isfinite(beta), beta, 0.0)
    mass = np.maximum(own - given, 0.0)
    sums = mass.sum(axis=1)
    usable = (sums > 0) & (cost > 0) & np.isfinite(sums)
    mass[usable] *= (cost[usable] / sums[usable])[:, np.newaxis]
    mass[~usable] = own[~usable]
    if problem.intercept is Intercept.FREE:
        mass = _balanced(mass, own.sum(axis=0))
    total = float(np.abs(beta).sum())
    change = float(np.abs(duals_of(problem.labels, mass) - beta).sum())
    return mass, change / total if total > 0 else 0.0


def _balanced(mass: Floats, due: Floats) -> Floats:
    held = mass.sum(axis=0)
    lack = np.maximum(due - held, 0.0)
    if (lack <= _EQUAL * held).all():  # rounding: not for all rows to share in
        return mass
    kept = mass * np.where(held > due, due / np.where(held > due, held, 1.0), 1.0)
    released = (mass - kept).sum(axis=1, keepdims=True)
    return np.asarray(kept + released * (lack / lack.sum()))


def best_intercept_step(
    claims: Floats, labels: Ints, cost: Floats, loss: float, passes: int
) -> tuple[Floats, float]:
    """Return a step of b that lowers the loss, or none, and the loss there.

    Each coordinate in turn moves to where its loss is lowest: the rows that class k claims then
    cost together what its own rows bring, a weighted quantile. All together need not be best.
    """
    n_classes = claims.shape[1]
    kept = np.zeros(n_classes)
    if n_classes < 2 or not np.isfinite(loss) or not cost.any():
        return kept, loss
    step, claims = kept.copy(), claims.copy()
    due = np.bincount(labels, cost, minlength=n_classes)
    for _ in range(passes):
        for k in range(n_classes):
            move = _coordinate_step(cost, claims, k, float(due[k]))
            claims[:, k] += move
            step[k] += move
        reached = _total_loss(claims, labels, cost)
        if not reached < loss * (1 - _EQUAL):
            break
        loss, kept = reached, step.copy()
    return kept, loss


def _total_loss(claims: Floats, labels: Ints, cost: Floats) -> float:
    """Return Σ C times by how much the highest claim on a row is above that of its own class."""
    own = claims[np.arange(len(claims)), labels]
    return float(cost @ (claims.max(axis=1, initial=-np.inf) - own))


def _coordinate_step(cost: Floats, claims: Floats, k: int, due: float) -> float:
    """Return how far to raise class k: the middle, if the loss is lowest on an interval."""
    kinks = np.empty(len(claims))
    loops.crammer_singer.leads_over(claims, k, kinks)
    used = np.flatnonzero(cost > 0)
    order = used[np.argsort(kinks[used])]
    reached = np.cumsum(cost[order])
    at = min(int(np.searchsorted(reached, due * (1 - _EQUAL))), len(order) - 1)
    step = kinks[order[at]]
    if reached[at] <= due * (1 + _EQUAL) and at + 1 < len(order):
        step = 0.5 * (step + kinks[order[at + 1]])
    return float(step)


def kkt_violation(problem: MulticlassProblem, claims: Floats, mass: Floats) -> float:
    """Return how far, at worst, a class that holds mass is below the highest claim on a row."""
    holds = (mass > _AT_BOUND * problem.cost[:, np.newaxis]) & (problem.cost[:, np.newaxis] > 0)
    below = claims.max(axis=1, keepdims=True, initial=-np.inf) - claims
    return float(np.max(np.where(holds, below, 0.0), initial=0.0))


def _centre(problem: MulticlassProblem) -> Floats:
    """Return a point to measure rows from: far from 0, differences would drown in rounding."""
    X = problem.features.X
    if sp.issparse(X) or problem.intercept is not Intercept.FREE or not X.shape[0]:
        return np.zeros(X.shape[1])
    return np.asarray(X[: 1 << 12].mean(axis=0, dtype=np.float64))
