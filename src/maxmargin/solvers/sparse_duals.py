"""Penalties column by column, and the best dual bound that some duals can give.

A penalized intercept is the weight of a column of ones, and has its own strengths. The dual is

    max_β  Σ tβ − ε|β| − ½ quadratic β² − Σⱼ max(|vⱼ| − l1ⱼ, 0)²/2l2ⱼ,    v = Xᵀβ

(where l2ⱼ = 0: subject to |vⱼ| ≤ l1ⱼ), and Σβ = 0 if the intercept is free.
"""

import numpy as np

from maxmargin._typing import Floats
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, Problem


def penalties(problem: Problem, width: int) -> tuple[Floats, Floats]:
    """Return the ℓ1 and ℓ2 strength of each column; b is lift times the weight penalized."""
    scale = np.ones(width)
    if problem.intercept is Intercept.PENALIZED:
        scale[-1] = 1 / problem.lift
    return problem.l1_ratio * scale, (1 - problem.l1_ratio) * scale**2


def balanced(beta: Floats, intercept: Intercept) -> Floats:
    """Return β with the heavier side scaled down so that Σβ = 0, if the intercept is free."""
    if intercept is not Intercept.FREE:
        return beta
    gain, loss = float(beta[beta > 0].sum()), -float(beta[beta < 0].sum())
    if gain > loss:
        return np.where(beta > 0, beta * (loss / gain), beta)
    return np.where(beta < 0, beta * (gain / loss), beta) if loss > gain else beta


def best_scale(terms: Loss, beta: Floats, v: Floats, l1: Floats, l2: Floats) -> tuple[float, float]:
    """Return the t ≥ 0 for which tβ has the highest dual objective, and that.

    The objective is t·gain − ½t²·curve − Σ max(t|v| − l1, 0)²/2l2: Newton's method comes down to
    the maximiser from above in finitely many steps. For l2 = 0 the sum is the limit t|v| ≤ l1.
    """
    gain = losses.dual_value(terms._replace(quadratic=np.zeros(len(beta))), beta)
    curve = float(terms.quadratic @ beta**2)
    if gain <= 0 or curve <= 0:
        return 0.0, 0.0
    t = gain / curve
    if np.isfinite(terms.high - terms.low).any():
        t = min(t, 1.0)
    size = np.abs(v)
    hard = l2 == 0
    t = min(t, float(np.min(l1[hard] / np.maximum(size[hard], 1e-300), initial=np.inf)))
    size, l1, l2 = size[~hard], l1[~hard], l2[~hard]
    for _ in range(60):
        over = t * size > l1
        down = float(size[over] @ ((t * size - l1) / l2)[over])
        slope = gain - t * curve - down
        if slope >= 0:
            break
        t += slope / (curve + float((size[over] ** 2 / l2[over]).sum()))
    lost = np.maximum(t * size - l1, 0.0)
    return t, t * gain - 0.5 * t * t * curve - 0.5 * float((lost**2 / l2).sum())
