"""Which rows stay right when left out, whichever of several best intercepts a fit may take.

With the hinge and a free intercept, the solution without a row may have no dual strictly between
its bounds; then a whole interval of intercepts is optimal. What is certain all the same: the
weights without row t are within r of those with it, r² = 2(P − D), by any primal point P and any
feasible dual point D of the problem without it. So every difference w·(φ(xⱼ) − φ(x)) is known up to
r‖φ(xⱼ) − φ(x)‖, and the score c of the left-out row minimises

    Σ Cⱼ max(0, 1 − yⱼ(c + w·(φ(xⱼ) − φ(x)))),

whose slope at 0 is a sum over the rows that are on the wrong side of their kink.
"""

import numpy as np
import numpy.typing as npt

from maxmargin import losses
from maxmargin.certify.arithmetic import within_groups
from maxmargin.model_selection.criteria_machines import SolvedProblem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MOST_ROWS = 3000  # whose matrix of kernel values is looked at as a whole
_ROUNDING = 1e-9  # of all costs: sums that differ by less may be equal


def surely_right(machine: SolvedProblem, rows: Ints) -> Flags:
    """Return which of these rows every solution without them is proved to classify rightly.

    The machine has the hinge loss and a free intercept. Its solution may have any gap.
    """
    every = np.arange(len(machine))
    K = machine.values(every, every)
    beta = np.asarray(machine.point.beta, dtype=np.float64)
    beta, _ = within_groups(machine.terms, beta, np.zeros(len(every), np.int64), np.zeros(1))
    slopes = machine.signs - K @ beta
    dual = losses.dual_value(machine.terms, beta) - 0.5 * float(beta @ (machine.signs - slopes))
    primal = machine.certificate.primal - machine.bound * machine.slack
    diagonal = machine.diagonal
    found = np.zeros(len(rows), dtype=bool)
    for at, t in enumerate(rows):
        away = np.sqrt(np.maximum(diagonal - 2 * K[t] + diagonal[t], 0.0))
        lost = _lost(machine, beta, slopes, K, away, int(t))
        radius = np.sqrt(2 * max(float(primal[t]) - dual + lost, 0.0))
        found[at] = _right(machine, int(t), radius * away)
    return found


def _right(machine: SolvedProblem, t: int, errors: Floats) -> bool:
    """Return whether the score of row t has its sign, if differences of scores err by so much."""
    sign, cost = machine.signs[t], machine.bound
    kinks = machine.signs - (machine.scores - machine.scores[t])
    others = np.ones(len(machine), dtype=bool)
    others[t] = False
    # Of the classes exchanged, the same question is asked about −f.
    beyond = others & (sign * kinks - errors <= 0)
    own = float(cost[others & (machine.signs == sign)].sum())
    return bool(cost[beyond].sum() < own - _ROUNDING * float(cost.sum()))


def _lost(
    machine: SolvedProblem, beta: Floats, slopes: Floats, K: Floats, away: Floats, t: int
) -> float:
    """Return how much of the dual objective is lost at most when the dual of row t has to be 0.

    Other duals take it over: one row that can take it all, or the most willing ones in turn.
    """
    alpha, sign = abs(float(beta[t])), float(machine.signs[t])
    if alpha == 0:
        return 0.0
    room = np.where(sign > 0, machine.terms.high - beta, beta - machine.terms.low)
    room[t] = 0.0
    gains = sign * (slopes - slopes[t])
    single = np.where(room >= alpha, alpha * gains - 0.5 * (alpha * away) ** 2, -np.inf)
    best = float(single.max())
    order = np.argsort(-gains, kind="stable")
    order = order[room[order] > 0]
    taken = np.diff(np.minimum(np.cumsum(room[order]), alpha), prepend=0.0)
    used = taken > 0
    if taken.sum() < alpha * (1 - 1e-12):
        return -best
    who, amount = np.append(order[used], t), np.append(taken[used], -alpha)
    curve = 0.5 * float(amount @ K[np.ix_(who, who)] @ amount)
    return -max(best, float(taken[used] @ gains[order[used]]) - curve)
