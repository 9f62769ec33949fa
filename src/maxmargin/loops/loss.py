"""The loss of one row: its value, and the dual variable that attains it.

    ℓ(f) = max over low ≤ β ≤ high of  βr − ε|β| − ½ quadratic β²,      r = target − f

The maximiser β is minus the derivative of ℓ in f. ``Loss`` holds these numbers for all rows.
"""

from typing import Any

from maxmargin.loops.compiled import compiled


@compiled
def best_dual(loss: Any, i: int, residual: float) -> Any:
    """Return the β that attains the loss of row i."""
    z = residual - min(max(residual, -loss.epsilon), loss.epsilon)
    if z == 0.0:
        return 0.0
    if loss.quadratic[i] > 0.0:
        return min(max(z / loss.quadratic[i], loss.low[i]), loss.high[i])
    return loss.high[i] if z > 0.0 else loss.low[i]


@compiled
def row_loss(loss: Any, i: int, residual: float) -> Any:
    """Return the loss of row i."""
    if loss.quadratic[i] > 0.0:
        beta = best_dual(loss, i, residual)
        return beta * residual - loss.epsilon * abs(beta) - 0.5 * loss.quadratic[i] * beta * beta
    above = max(residual - loss.epsilon, 0.0)
    below = max(-residual - loss.epsilon, 0.0)
    gain = loss.high[i] * above if above > 0.0 else 0.0
    return gain - (loss.low[i] * below if below > 0.0 else 0.0)


@compiled
def smooth_dual(loss: Any, i: int, residual: float, prox_centre: float, width: float) -> Any:
    """Return β, and the second derivative, of the loss of row i smoothed around a prox centre a.

    − ½ τ(β − a)² is added to what is maximised. τ is ``width`` divided by high − low: by ``width``
    the residual must change to carry β from one limit to the other. There are no branches, for
    speed.
    """
    low, high = loss.low[i], loss.high[i]
    tau = width / (high - low)  # 0 where there is no limit
    z = residual + tau * prox_centre
    z -= min(max(z, -loss.epsilon), loss.epsilon)
    inverse = 1.0 / (loss.quadratic[i] + tau)
    free = z * inverse
    beta = min(max(free, low), high)
    return beta, inverse if beta == free and z != 0.0 and low < free < high else 0.0
