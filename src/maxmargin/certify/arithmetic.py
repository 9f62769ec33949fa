"""What all certificates with penalty ½‖w‖² share, whatever space the weights live in."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin import losses
from maxmargin.certify.certificate import Certificate
from maxmargin.certify.intercepts import best_intercept
from maxmargin.loops.records import Terms
from maxmargin.problem import Intercept

Floats = npt.NDArray[np.float64]

_AT_BOUND = 1e-9  # duals within this part of the largest of their bound are taken to be there


@dataclass(frozen=True)
class Primal:
    """What is to be known of weights: w·φ(xᵢ) for each row, ‖w‖², and the intercept."""

    scores: Floats
    norm2: float
    b: float
    shift: float = 0.0  # what b has on top of the intercept that a model will store


@dataclass(frozen=True)
class Dual:
    """What is to be known of feasible duals: β, what it took, ‖Σβφ‖², ‖w − Σβφ‖ / ‖w‖."""

    beta: Floats
    infeasibility: float
    norm2: float
    drift: float


def assembled(
    terms: Terms,
    intercept: Intercept,
    lift: float,
    primal: Primal,
    dual: Dual,
    *,
    keep_intercept: bool,
) -> Certificate:
    """Return the certificate.

    Parameters
    ----------
    terms, intercept, lift
        As in ``Problem``.
    primal, dual : Primal, Dual
        The point.
    keep_intercept : bool
        Take the primal at the point's own intercept, rather than at the best one if it is free.
    """
    penalized = intercept is Intercept.PENALIZED

    def objective(b: float) -> float:
        norm2 = primal.norm2 + ((b / lift) ** 2 if penalized else 0.0)
        return 0.5 * norm2 + float(losses.values(terms, primal.scores + b).sum())

    best = primal.b
    if intercept is Intercept.FREE:
        best = best_intercept(terms, primal.scores, primal.b)
        best = (best - primal.shift) + primal.shift  # as it will be, once it was stored
    own = primal.b if keep_intercept else best
    value = objective(own)
    least = value if own == best else objective(best)
    spread = (lift * float(dual.beta.sum())) ** 2 if penalized else 0.0
    bound = losses.dual_value(terms, dual.beta) - 0.5 * (dual.norm2 + spread)
    return Certificate(
        value,
        bound,
        dual.infeasibility,
        dual.drift,
        kkt_violation(terms, primal.scores + own, dual.beta),
        float(np.sqrt(2 * max(min(value, least) - bound, 0.0))),
        best,
        intercept_cost=max(value - least, 0.0) if np.isfinite(least) else 0.0,
    )


def feasible(terms: Terms, beta: Floats, intercept: Intercept) -> tuple[Floats, float]:
    """Return β clipped to its box, the heavier side scaled down so that Σβ = 0; and the change."""
    clipped = np.clip(np.nan_to_num(beta, posinf=0.0, neginf=0.0), terms.low, terms.high)
    if intercept is Intercept.FREE:
        gain, loss = float(clipped[clipped > 0].sum()), -float(clipped[clipped < 0].sum())
        if gain > loss:
            clipped[clipped > 0] *= loss / gain
        elif loss > gain:
            clipped[clipped < 0] *= gain / loss
    total = float(np.abs(beta).sum())
    change = float(np.abs(clipped - beta).sum())
    return clipped, change / total if total > 0 else 0.0


def within_groups(
    terms: Terms, beta: Floats, groups: npt.NDArray[np.int64], totals: Floats
) -> tuple[Floats, float]:
    """Return β clipped to its box with the right sum in every group; and the change.

    Where the sum is too large in one direction the variables of that direction are scaled down;
    where there is nothing to scale down they share in the room that is left.
    """
    clipped = np.clip(np.nan_to_num(beta, posinf=0.0, neginf=0.0), terms.low, terms.high)
    for g, total in enumerate(totals):
        members = np.flatnonzero(groups == g)
        low, high = terms.low[members], terms.high[members]
        clipped[members] = _summing_to(float(total), clipped[members], low, high)
    size = float(np.abs(beta).sum())
    change = float(np.abs(clipped - beta).sum())
    return clipped, change / size if size > 0 else float(change > 0)


def _summing_to(total: float, beta: Floats, low: Floats, high: Floats) -> Floats:
    excess = float(beta.sum()) - total
    sign = 1.0 if excess > 0 else -1.0
    heavier = sign * beta > 0
    weight = float(np.abs(beta[heavier]).sum())
    if weight >= abs(excess) > 0:
        beta[heavier] *= 1.0 - abs(excess) / weight
        return beta
    room = beta - low if excess > 0 else high - beta
    finite = float(room.sum())
    if abs(excess) > 0 and np.isfinite(finite) and finite > 0:
        beta -= sign * room * min(1.0, abs(excess) / finite)
    return beta


def kkt_violation(terms: Terms, scores: Floats, beta: Floats) -> float:
    """Return by how much, at worst, a residual t − f is outside what its β allows."""
    near = _AT_BOUND * float(np.abs(beta).max(initial=0.0))
    lower, upper = losses.allowed_residuals(terms, beta, near)
    residual = terms.target - scores
    outside = np.maximum(lower - residual, residual - upper)
    return float(np.max(outside, initial=0.0))
