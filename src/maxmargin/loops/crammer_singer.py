"""The multiclass machine of Crammer and Singer, one row at a time.

The dual gives each row a *mass* mᵢ ≥ 0 of sum Cᵢ, spread over the classes: β = Cδ − m, so that

    W = Σ xᵢβᵢᵀ,      min over the masses of  ½‖W‖² + ½ scale ‖Σβᵢ‖² + offset·Σβᵢ − Σ βᵢ[yᵢ]

With g = Wᵀxᵢ + scale Σβ + offset + (1 − δ), the *claims* of the classes on row i, all of its mass
must lie where g is largest. The masses of one row, all others fixed, are best where they are the
point of their simplex nearest to m + g/A, A = ‖xᵢ‖² + scale. That projection is exact.
Crammer & Singer (2001); Keerthi et al. (KDD 2008).
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.rows import (
    row_axpy_column,
    row_dots,
    row_prefetch,
)

_AHEAD = 4  # rows asked for before they are visited: each visit touches K columns


@compiled
def _two_highest(point: Any) -> Any:
    """Return which entry is highest, and by how much it is above the next."""
    winner, second = 0, -np.inf
    for k in range(1, point.shape[0]):
        if point[k] > point[winner]:
            winner, second = k, point[winner]
        elif point[k] > second:
            second = point[k]
    return winner, point[winner] - second


@compiled
def _project(point: Any, total: float, mass: Any) -> None:
    """Put into ``mass`` what is nearest to a point among the masses of a given total.

    Classes below the waterline leave until none does (Michelot 1986): it takes few rounds, and
    what is left is summed again in each, so that a far-off class costs no digits.
    """
    winner, lead = _two_highest(point)
    if lead >= total:  # most rows: one class takes all
        mass[:] = 0.0
        mass[winner] = total
        return
    top = point[winner]
    left = point.shape[0] + 1
    line = -total  # relative to the top: no class below this keeps any
    while True:
        level, staying = 0.0, 0
        for k in range(point.shape[0]):
            if point[k] - top > line:
                level += point[k] - top
                staying += 1
        if staying >= left:  # more than before can only be rounding
            break
        left = staying
        line = (level - total) / staying
    level = 0.0
    for k in range(point.shape[0]):
        mass[k] = max(0.0, point[k] - top - line)
        level += mass[k]
    for k in range(point.shape[0]):
        mass[k] *= total / level


@compiled
def _violation(claims: Any, mass: Any) -> Any:
    """Return how far a claim is above that of a class with mass; and the lead of a sole holder.

    The lead is 0 where several classes hold mass: such a row may change by the smallest step.
    """
    top, lowest, second, holders = -np.inf, np.inf, -np.inf, 0
    for k in range(claims.shape[0]):
        if mass[k] > 0.0:
            holders += 1
            lowest = min(lowest, claims[k])
        else:
            second = max(second, claims[k])
        top = max(top, claims[k])
    return top - lowest, lowest - second if holders == 1 else 0.0


@compiled
def sweep(
    X: Any, labels: Any, cost: Any, norms: Any, order: Any, scale: float, offset: Any,
    W: Any, total: Any, mass: Any, threshold: float, shrunk: Any,
) -> float:  # fmt: skip
    """Solve for the masses of each row in order; return the largest violation found on the way.

    W and total = Σβ follow. A row whose mass is all in a class that leads by more than
    ``threshold`` is shrunk: left out until the next optimality check of all rows.
    """
    worst = 0.0
    claims = np.empty(W.shape[1])
    before = np.empty(W.shape[1])
    for t in range(order.shape[0]):
        i = order[t]
        if t + _AHEAD < order.shape[0]:
            row_prefetch(X, order[t + _AHEAD])
        for k in range(W.shape[1]):
            claims[k] = offset[k] + scale * total[k] + 1.0
        claims[labels[i]] -= 1.0
        row_dots(X, i, W, claims)
        violation, lead = _violation(claims, mass[i])
        worst = max(worst, violation)
        if violation == 0.0:
            shrunk[i] = lead > threshold
            continue
        for k in range(W.shape[1]):
            before[k] = mass[i, k]
        _move(claims, norms[i] + scale, cost[i], mass[i])
        for k in range(W.shape[1]):
            if before[k] != mass[i, k]:
                total[k] += before[k] - mass[i, k]
                row_axpy_column(X, i, before[k] - mass[i, k], W, k)
    return worst


@compiled
def _move(claims: Any, curvature: float, cost: float, mass: Any) -> None:
    """Let one row's mass be where its claims, which fall by curvature·mass, say."""
    top = claims.max()
    if curvature <= 0.0:  # a row of zeros: no claim changes, the largest takes all
        winner = np.argmax(claims)
        mass[:] = 0.0
        mass[winner] = cost
        return
    for k in range(claims.shape[0]):
        claims[k] = mass[k] + (claims[k] - top) / curvature
    _project(claims, cost, mass)


@compiled
def claims_of(X: Any, labels: Any, W: Any, b: Any, out: Any) -> None:
    """Do out[i] = Wᵀxᵢ + b + (1 − δ) in float64, whatever the type of X."""
    for i in range(out.shape[0]):
        for k in range(W.shape[1]):
            out[i, k] = b[k] + 1.0
        out[i, labels[i]] -= 1.0
        row_dots(X, i, W, out[i])


@compiled
def check_optimality(
    labels: Any, cost: Any, claims: Any, mass: Any, threshold: float, shrunk: Any
) -> Any:
    """Return Σ loss, Σ β[y] and the largest violation; wake every row that may still change."""
    loss, gain, worst = 0.0, 0.0, 0.0
    for i in range(claims.shape[0]):
        loss += cost[i] * (claims[i].max() - claims[i, labels[i]])
        for k in range(claims.shape[1]):  # not C − m[y]: what the others hold is known better
            if k != labels[i]:
                gain += mass[i, k]
        violation, lead = _violation(claims[i], mass[i])
        shrunk[i] = lead > threshold
        worst = max(worst, violation)
    return loss, gain, worst


@compiled
def price_list(claims: Any, mass: Any, giver: int, prices: Any) -> None:
    """Put into prices[k] the least that a unit of mass loses by going to k, in any row."""
    prices[:] = np.inf
    for i in range(claims.shape[0]):
        if mass[i, giver] > 0.0:
            for k in range(claims.shape[1]):
                prices[k] = min(prices[k], claims[i, giver] - claims[i, k])


@compiled
def leads_over(claims: Any, k: int, leads: Any) -> None:
    """Put into leads[i] by how much the best other claim on row i is above that of class k."""
    for i in range(claims.shape[0]):
        best = -np.inf
        for other in range(claims.shape[1]):
            if other != k:
                best = max(best, claims[i, other])
        leads[i] = best - claims[i, k]


@compiled
def add_rows(X: Any, change: Any, W: Any) -> None:
    """Do W += Σ xᵢ changeᵢᵀ, skipping zeros."""
    for i in range(change.shape[0]):
        for k in range(W.shape[1]):
            if change[i, k] != 0.0:
                row_axpy_column(X, i, change[i, k], W, k)


@compiled
def duals_of(labels: Any, mass: Any, beta: Any) -> None:
    """Do β = Cδ − m, with rows that sum to 0 to rounding: what the others hold is known best."""
    for i in range(mass.shape[0]):
        given = 0.0
        for k in range(mass.shape[1]):
            if k != labels[i]:
                beta[i, k] = 0.0 - mass[i, k]
                given += mass[i, k]
        beta[i, labels[i]] = given


@compiled
def project_rows(
    centre: Any, claims: Any, slopes: Any, step: float, strength: Any, cost: Any, mass: Any
) -> float:
    """Put each row's mass nearest to centre + strength·(claims + step·slopes).

    Return Σ mᵢ·slopesᵢ: that is the slope, along the step, of what the rows cost.
    """
    slope = 0.0
    point = np.empty(claims.shape[1])
    for i in range(claims.shape[0]):
        top = -np.inf
        for k in range(claims.shape[1]):
            point[k] = claims[i, k] + step * slopes[i, k]
            top = max(top, point[k])
        for k in range(claims.shape[1]):
            point[k] = centre[i, k] + strength[i] * (point[k] - top)
        _project(point, cost[i], mass[i])
        for k in range(claims.shape[1]):
            slope += mass[i, k] * slopes[i, k]
    return slope
