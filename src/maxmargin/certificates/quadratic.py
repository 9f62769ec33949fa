"""Certificates of machines with penalty ½‖w‖², whatever space the weights live in."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.certificates.certificate import Certificate
from maxmargin.certificates.seen import Claim, Seen, see
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.duality import (
    best_intercept,
    by_variable,
    imbalances,
    kkt_violation,
    within_groups,
)
from maxmargin.problems.problem import Point, Problem
from maxmargin.problems.rounding import EPS, Bounded, total


@dataclass(frozen=True)
class Primal:
    """What is to be known of weights: w·φ(x) for each dual variable, ‖w‖², and intercepts."""

    scores: Bounded
    norm2: Bounded
    b: Floats  # of each group of dual variables
    unknown: Floats  # by which scores may differ that there was no time for


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


def certify_many(
    problems: list[Problem[Any]], points: list[Point], *, keep_intercept: bool = False
) -> list[tuple[Certificate, Seen]]:
    """Return the certificates of points of problems with the same features, in one pass.

    The penalty is ½‖w‖². Free intercepts are replaced by the best ones for the weights, unless they
    are to be kept.
    """
    claims, changes = [], []
    for problem, point in zip(problems, points, strict=True):
        beta, change = within_groups(problem.loss, point.beta, problem.groups, problem.totals)
        claims.append(Claim(problem, point, beta))
        changes.append(change)
    found = []
    seen_all = see(problems[0].features, claims, partial=True)
    for each, seen, infeasibility in zip(claims, seen_all, changes, strict=True):
        problem, beta, norm2 = each.problem, each.beta, seen.norm2
        length = np.sqrt(max(float(norm2.value), 0.0))
        dual = Dual(
            beta,
            infeasibility,
            seen.implied_norm2(),
            seen.apart(1.0, 1.0) / (length if length > 0 else 1.0),
            seen.imbalance_cost(imbalances(beta, problem.groups, problem.totals)),
        )
        certificate = assembled(problem, seen, norm2, dual, keep_intercept=keep_intercept)
        found.append((seen.doubted(certificate), seen))
    return found


def assembled(
    problem: Problem[Any], seen: Seen, norm2: Bounded, dual: Dual, *, keep_intercept: bool
) -> Certificate:
    """Return the certificate.

    Parameters
    ----------
    problem : Problem
        What was solved.
    seen, norm2 : Seen, Bounded
        The point, and twice the penalty of its weights.
    dual : Dual
        What its duals prove.
    keep_intercept : bool
        Take the primal at the point's own intercepts, rather than at the best ones.
    """
    row, unknown = problem.row, np.broadcast_to(seen.unknown, len(problem))
    bounded = Bounded(seen.scores.value[row], seen.scores.error[row])
    primal = Primal(bounded, norm2, seen.b, unknown[row])
    stored, best = seen.b, seen.b
    if len(problem.totals):  # what the intercepts will be once a model has stored them
        stored, best = seen.store(best_intercepts(problem, primal))
    own = seen.b if keep_intercept else best
    value = _objective(problem, primal, own)
    least = value if np.array_equal(own, best) else _objective(problem, primal, best)
    bound = dual_objective(problem.loss, dual)
    proved = min(value.value + value.error, least.value + least.error) - (bound.value - bound.error)
    scores = primal.scores.value + by_variable(problem.groups, own)
    known = not np.any(primal.unknown)
    return Certificate(
        value.value,
        bound.value,
        dual.infeasibility,
        dual.drift,
        kkt_violation(problem.loss, scores, dual.beta) if known else np.inf,
        float(np.sqrt(2 * max(proved, 0.0))),
        float(stored[0]) if len(stored) else seen.penalised,
        intercept_cost=max(value.value - least.value, 0.0) if np.isfinite(least.value) else 0.0,
        intercepts=tuple(stored.tolist()),
        rounding=relative_rounding(value, bound),
    ).resolved()


def relative_rounding(value: Bounded, bound: Bounded) -> float:
    """Return the errors of both bounds as a part of the larger."""
    error = value.error + bound.error
    size = max(abs(value.value), abs(bound.value))
    if not error > 0:
        return 0.0
    return float(error / size) if size > 0 and np.isfinite(error) else np.inf


def _objective(problem: Problem[Any], primal: Primal, b: Floats) -> Bounded:
    """Return ½‖w‖² + Σ ℓ(w·φ + b) + Σ totals·b."""
    loss, totals = problem.loss, problem.totals
    offset = by_variable(problem.groups, b)
    scores = primal.scores.value + offset
    off = primal.scores.error + EPS * np.abs(loss.target - scores)
    off += EPS * np.where((primal.scores.value != 0) & (offset != 0), np.abs(scores), 0.0)
    if totals.any():  # a model of a ν-form is divided by its margin before it is stored
        off += 2 * EPS * (np.abs(scores) + np.abs(offset))
    each = losses.values(loss, scores + primal.unknown)
    if np.any(primal.unknown):  # the largest loss on the interval that a score is known to lie in
        each = np.maximum(each, losses.values(loss, scores - primal.unknown))
    steep = losses.steepest(loss, scores, primal.unknown + off)
    fitted = total(each, steep * off + 4 * EPS * each)
    pulled = total(totals * b, EPS * np.abs(totals * b))
    value = 0.5 * primal.norm2.value + fitted.value + pulled.value
    size = 0.5 * abs(primal.norm2.value) + abs(fitted.value) + abs(pulled.value)
    error = 0.5 * primal.norm2.error + fitted.error + pulled.error + 2 * EPS * size
    return Bounded(value, error) if np.isfinite(value) else Bounded(np.inf, np.inf)


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


def best_intercepts(problem: Problem[Any], primal: Primal) -> Floats:
    """Return the intercept of each group that makes the objective smallest."""
    best = primal.b.copy()
    for g, pull in enumerate(problem.totals):
        members = problem.groups == g
        known = members & np.equal(primal.unknown, 0.0)
        if not known.any():
            continue
        share = known.sum() / members.sum()
        best[g] = best_intercept(
            problem.loss.take(np.flatnonzero(known)),
            primal.scores.value[known],
            float(primal.b[g]),
            share * float(pull),
        )
    return best
