"""The loss of one row: its value, the dual variable that attains it, and sums of such losses.

    ℓ(f) = max over low ≤ β ≤ high of  βr − ε|β| − ½ quadratic β²,      r = target − f

The maximiser β is minus the derivative of ℓ in f. ``Loss`` holds these numbers for all rows.
"""

from typing import Any

from maxmargin.loops.compiled import compiled

# Numbers are passed one by one: with the record of all rows these two would not be inlined, which
# makes passes over losses four times slower.


@compiled
def best_dual(low: float, high: float, quadratic: float, epsilon: float, residual: float) -> float:
    """Return the β that attains a loss."""
    z = residual - min(max(residual, -epsilon), epsilon)
    if z == 0.0:
        return 0.0
    if quadratic > 0.0:
        return min(max(z / quadratic, low), high)
    return high if z > 0.0 else low


@compiled
def row_loss(low: float, high: float, quadratic: float, epsilon: float, residual: float) -> float:
    """Return a loss."""
    if quadratic > 0.0:
        beta = best_dual(low, high, quadratic, epsilon, residual)
        return beta * residual - epsilon * abs(beta) - 0.5 * quadratic * beta * beta
    above = max(residual - epsilon, 0.0)
    below = max(-residual - epsilon, 0.0)
    return (high * above if above > 0.0 else 0.0) - (low * below if below > 0.0 else 0.0)


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


@compiled
def slopes(
    up: Any, down: Any, low: Any, high: Any, shift: Any, b: float, begin: int, end: int
) -> Any:
    """Return the left and the right derivative in b of Σ ℓ, and the sum of all pulls.

    A row pulls b up while b < upᵢ and down while b > downᵢ. Kinks are compared with b as they are:
    computed again they would be off by rounding.
    """
    smooth = left = right = pulls = 0.0
    for i in range(begin, end):
        below = up[i] - b
        above = b - down[i]
        if shift[i] > 0.0:
            raised = min(max(below, 0.0) / shift[i], high[i])
            lowered = min(max(above, 0.0) / shift[i], -low[i])
            smooth += lowered - raised
            pulls += lowered + raised
            continue
        if below >= 0.0 and high[i] > 0.0:
            left -= high[i]
            if below > 0.0:
                right -= high[i]
                pulls += high[i]
        if above >= 0.0 and low[i] < 0.0:
            right -= low[i]
            if above > 0.0:
                left -= low[i]
                pulls -= low[i]
    return smooth + left, smooth + right, pulls
