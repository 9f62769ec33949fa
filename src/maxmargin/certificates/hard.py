"""Certificates of hard margins: min ½‖w‖² such that y(w·x + b) ≥ 1 for every row.

A plane that separates is scaled to min y f = 1, which makes it feasible: P = ½‖w‖²/(min y f)² for
any (w, b). Duals α ≥ 0 with Σαy = 0 (if the intercept is free) may be scaled too, and the best
scale s maximises D(sα) = sΣα − ½s²‖Σαyx‖², so D = ½(Σα)²/‖Σαyx‖².
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.certificates.certificate import Certificate
from maxmargin.certificates.quadratic import (
    Claim,
    centre_of,
    evaluate,
    relative_rounding,
)
from maxmargin.problems.features import LinearFeatures
from maxmargin.problems.problem import Intercept, Point, Problem
from maxmargin.problems.rounding import EPS, Bounded, exact_sum, passed, total

_ACTIVE = 1e-9  # duals above this part of the largest must have y f = 1


class Placed(NamedTuple):
    """Weights with their best intercept, and the smallest y f they then have."""

    intercept: float
    smallest: float
    scores: Floats  # y f
    labels: Floats


def placed(X: Any, signs: Floats, w: Floats, intercept: Intercept) -> Placed:
    """Return where weights put the plane best: midway between the classes, or through 0."""
    centre = centre_of(LinearFeatures(X), free=intercept is Intercept.FREE)
    scores, _ = passed(X, w, np.zeros(len(signs)), centre)
    placing = placed_scores(scores.value, signs, intercept)
    return placing._replace(intercept=exact_sum(placing.intercept, -w, centre))


def placed_scores(scores: Floats, signs: Floats, intercept: Intercept) -> Placed:
    """Return where scores w·x put the plane best."""
    b = 0.0
    if intercept is Intercept.FREE:
        b = 0.0 - 0.5 * (scores[signs > 0].min() + scores[signs < 0].max())
    margins = signs * (scores + b)
    return Placed(b, float(margins.min()), margins, signs)


def certify_hard(
    problem: Problem[Any], point: Point, *, keep_intercept: bool = False
) -> Certificate:
    """Return the certificate of a point (w, b, beta) for the hard margin.

    Parameters
    ----------
    problem : Problem
        With the loss of ``losses.hard_margin``, one variable per row, and a free intercept or none.
    point : Point
        Weights, intercept and duals, in any scale. Duals that are negative or unbalanced are
        mended, and it is said by how much. A free intercept is replaced by the best one, unless it
        is to be kept; what the given one would cost is ``intercept_cost``.

    Returns
    -------
    Certificate
        A plane that does not separate by more than rounding has an infinite objective and gap; a
        kernel that is not positive semidefinite has no bound.
    """
    signs, intercept = problem.loss.target, problem.intercept
    alpha, infeasibility = feasible(signs * point.beta, signs, intercept)
    claim = Claim(problem, point, alpha * signs)
    evaluated: Any = evaluate(problem.features, [claim])[0]
    placing = placed_scores(evaluated.scores.value, signs, intercept)
    implied = evaluated.implied_norm2(balance(alpha, signs, intercept))
    duals = Duals(alpha, infeasibility, root(implied))
    own = float(evaluated.b[0]) if len(evaluated.b) else placing.intercept
    plane = CertifiedPlane(placing, evaluated.scores.error, own, root(evaluated.norm2))
    certificate = conclude(plane, duals, evaluated.apart, keep_intercept=keep_intercept)
    scale = placing.smallest if placing.smallest > 0 else 1.0
    stored, _ = evaluated.store(np.array([placing.intercept]))
    certificate = replace(certificate, intercept=float(stored[0]) / scale)
    found: Certificate = evaluated.with_caveats(certificate)
    return found


class CertifiedPlane(NamedTuple):
    """A plane: where it is best, the errors of scores, its own intercept, and ‖w‖."""

    placing: Placed
    errors: Floats
    b: float
    length: Bounded


class Duals(NamedTuple):
    """Feasible α, how much they had to be changed for that, and ‖Σαyx‖."""

    alpha: Floats
    infeasibility: float
    length: Bounded


def conclude(
    plane: CertifiedPlane,
    duals: Duals,
    apart: Callable[[float, float], float],
    *,
    keep_intercept: bool,
) -> Certificate:
    """Return the certificate, whatever space the weights live in.

    Parameters
    ----------
    plane, duals : CertifiedPlane, Duals
        The point, in the scale of its weights.
    apart : callable
        Returns ‖p·w − q·Σαyx‖ for p and q.
    keep_intercept : bool
        Take the primal at the plane's own intercept.
    """
    placing = plane.placing
    best = _objective(plane, 0.0)
    own = _objective(plane, plane.b - placing.intercept)
    if not np.isfinite(best.value):
        caveat = "the plane does not separate the classes by more than rounding"
        return refused(placing, duals.infeasibility, caveat)
    summed = total(duals.alpha)
    dual = _ratio(summed, duals.length)
    scale = (
        summed.value / duals.length.value / duals.length.value if duals.length.value > 0 else 0.0
    )
    active = duals.alpha > _ACTIVE * duals.alpha.max(initial=0.0)
    uneven = np.abs(placing.scores[active] / placing.smallest - 1.0)
    drift = apart(1.0 / placing.smallest, scale) / (plane.length.value / placing.smallest)
    primal = own if keep_intercept else best
    proved = max(best.value + best.error - (dual.value - dual.error), 0.0)
    return Certificate(
        primal.value,
        dual.value,
        duals.infeasibility,
        drift,
        float(uneven.max(initial=0.0)),
        float(np.sqrt(2 * proved)),
        placing.intercept / placing.smallest,
        intercept_cost=max(own.value - best.value, 0.0),
        rounding=relative_rounding(primal, dual),
    ).resolved()


def _objective(plane: CertifiedPlane, moved: float) -> Bounded:
    """Return ½(‖w‖/min y f)² for an intercept moved from the best one; ∞ if it may not separate."""
    margins = plane.placing.scores + plane.placing.labels * moved
    off = plane.errors + 4 * EPS * (np.abs(margins) + abs(plane.b) + abs(plane.placing.intercept))
    smallest, surely = float(margins.min()), float((margins - off).min())
    if not (surely > 0 and plane.length.value > 0):
        return Bounded(np.inf, np.inf)
    largest = float((margins + off).min())
    low = max(plane.length.value - plane.length.error, 0.0) / largest
    high = (plane.length.value + plane.length.error) / surely
    return _half_square(plane.length.value / smallest, low, high)


def _ratio(summed: Bounded, length: Bounded) -> Bounded:
    """Return ½(Σα/‖Σαyx‖)². Divided before it is squared, as the square may underflow."""
    if not length.value > 0:
        return Bounded(0.0, 0.0)
    shortest = length.value - length.error
    high = (summed.value + summed.error) / shortest if shortest > 0 else np.inf
    low = max(summed.value - summed.error, 0.0) / (length.value + length.error)
    return _half_square(summed.value / length.value, low, high)


def _half_square(value: float, low: float, high: float) -> Bounded:
    square = 0.5 * value * value
    off = max(0.5 * high * high - square, square - 0.5 * low * low)
    return Bounded(square, off + 8 * EPS * square)


def root(square: Bounded) -> Bounded:
    """Return the square root, whose error is largest where the square is smallest."""
    value = float(np.sqrt(max(float(square.value), 0.0)))
    high = float(np.sqrt(max(float(square.value + square.error), 0.0)))
    low = float(np.sqrt(max(float(square.value - square.error), 0.0)))
    return Bounded(value, max(high - value, value - low) + 8 * EPS * high)


def refused(placing: Placed, infeasibility: float, caveat: str) -> Certificate:
    """Return the certificate of what is no solution at all."""
    lost = np.inf
    return Certificate(
        lost, -lost, infeasibility, lost, lost, lost, placing.intercept, caveat=caveat
    )


def balance(alpha: Floats, signs: Floats, intercept: Intercept) -> float:
    """Return by how much, at most, Σαy is off from 0 where it must be 0."""
    if intercept is not Intercept.FREE:
        return 0.0
    summed = total(alpha * signs)
    return float(abs(summed.value) + summed.error)


def feasible(alpha: Floats, signs: Floats, intercept: Intercept) -> tuple[Floats, float]:
    """Return α ≥ 0 with the heavier class scaled down until Σαy = 0, and the relative change."""
    mended = np.maximum(np.nan_to_num(alpha, posinf=0.0, neginf=0.0), 0.0)
    if intercept is Intercept.FREE:
        sides = {sign: float(mended[signs == sign].sum()) for sign in (-1.0, 1.0)}
        lighter = min(sides.values())
        for sign, weight in sides.items():
            if weight > lighter:
                mended[signs == sign] *= lighter / weight
    total = float(np.abs(alpha).sum())
    return mended, float(np.abs(mended - alpha).sum()) / total if total > 0 else 0.0
