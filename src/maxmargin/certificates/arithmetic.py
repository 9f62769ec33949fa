"""What all certificates with penalty ½‖w‖² share, whatever space the weights live in."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.certificates.certificate import Certificate
from maxmargin.certificates.intercepts import best_intercept
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept
from maxmargin.problems.rounding import EPS, Bounded, total

_BALANCED = 64 * EPS  # of the duals: sums that are off by no more are left as they are
_AT_BOUND = 1e-9  # duals within this part of the largest of their bound are taken to be there


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


def by_variable(groups: Ints, b: Floats) -> Floats:
    """Return the intercept of each variable: 0 for those in no group."""
    return np.asarray(np.append(b, 0.0)[groups])


# ------------------------------------------------------------------- feasible duals


def feasible(loss: Loss, beta: Floats, intercept: Intercept) -> tuple[Floats, float]:
    """Return β clipped to its box, the heavier side scaled down so that Σβ = 0; and the change."""
    free = intercept is Intercept.FREE
    groups = np.full(len(beta), 0 if free else -1)
    return within_groups(loss, beta, groups, np.zeros(int(free)))


def within_groups(loss: Loss, beta: Floats, groups: Ints, totals: Floats) -> tuple[Floats, float]:
    """Return β clipped to its box with the right sum in every group; and the change.

    Where the sum is too large in one direction, by more than rounding, the variables of that
    direction are scaled down; where there is nothing to scale down they share in the room that is
    left.
    """
    clipped = np.clip(np.nan_to_num(beta, posinf=0.0, neginf=0.0), loss.low, loss.high)
    for g, wanted in enumerate(totals):
        members = np.flatnonzero(groups == g)
        low, high = loss.low[members], loss.high[members]
        clipped[members] = _summing_to(float(wanted), clipped[members], low, high)
    size = float(np.abs(beta).sum())
    change = float(np.abs(clipped - beta).sum())
    return clipped, change / size if size > 0 else float(change > 0)


def _summing_to(wanted: float, beta: Floats, low: Floats, high: Floats) -> Floats:
    excess = total(beta).value - wanted
    sign = 1.0 if excess > 0 else -1.0
    heavier = sign * beta > 0
    weight, others = float(np.abs(beta[heavier]).sum()), float(np.abs(beta[~heavier]).sum())
    if abs(excess) <= _BALANCED * (weight + others):
        return beta  # scaling would move duals off their bounds for the sake of rounding
    if weight >= abs(excess):
        beta[heavier] *= max(sign * wanted + others, 0.0) / weight
        return beta
    room = beta - low if excess > 0 else high - beta
    finite = float(room.sum())
    if np.isfinite(finite) and finite > 0:
        beta -= sign * room * min(1.0, abs(excess) / finite)
    return beta


def imbalances(beta: Floats, groups: Ints, totals: Floats) -> Floats:
    """Return by how much, at most, the sum of each group is not what it should be."""
    off = np.zeros(len(totals))
    for g, wanted in enumerate(totals):
        summed = total(np.append(beta[groups == g], -wanted))
        off[g] = abs(summed.value) + summed.error
    return off


def kkt_violation(loss: Loss, scores: Floats, beta: Floats) -> float:
    """Return by how much, at worst, a residual t − f is outside what its β allows."""
    near = _AT_BOUND * float(np.abs(beta).max(initial=0.0))
    lower, upper = losses.allowed_residuals(loss, beta, near)
    residual = loss.target - scores
    outside = np.maximum(lower - residual, residual - upper)
    return float(np.max(outside, initial=0.0))
