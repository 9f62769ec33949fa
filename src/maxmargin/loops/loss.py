"""The loss of one row: its value, the dual variable that attains it, and sums of such losses.

    ℓ(f) = max over low ≤ β ≤ high of  βr − ε|β| − ½ quadratic β²,      r = target − f

The maximiser β is minus the derivative of ℓ in f. ``Loss`` holds these numbers for all rows.
"""

from typing import Any

import numpy as np

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
    span = high - low
    tau = width / (span if span > 0.0 else 1.0)  # 0 where there is no limit; any where β is fixed
    z = residual + tau * prox_centre
    z -= min(max(z, -loss.epsilon), loss.epsilon)
    inverse = 1.0 / (loss.quadratic[i] + tau)
    free = z * inverse
    beta = min(max(free, low), high)
    return beta, inverse if beta == free and z != 0.0 and low < free < high else 0.0


@compiled
def slopes(up: Any, down: Any, low: Any, high: Any, shift: Any, b: float) -> Any:
    """Return the left and the right derivative in b of Σ ℓ, and how large all terms are together.

    A row pulls b up while b < upᵢ and down while b > downᵢ. Kinks are compared with b as they are:
    computed again they would be off by rounding.
    """
    smooth = left = right = size = 0.0
    for i in range(up.shape[0]):
        below = up[i] - b
        above = b - down[i]
        if shift[i] > 0.0:
            pull = min(below / shift[i], high[i]) if below > 0.0 else 0.0
            push = min(above / shift[i], -low[i]) if above > 0.0 else 0.0
            smooth += push - pull
            size += push + pull
            continue
        if below >= 0.0 and high[i] > 0.0:
            left -= high[i]
            size += high[i]
            if below > 0.0:
                right -= high[i]
        if above >= 0.0 and low[i] < 0.0:
            right -= low[i]
            size -= low[i]
            if above > 0.0:
                left -= low[i]
    return smooth + left, smooth + right, size


# ------------------------------------------------------------------- the best intercept

_FLAT = 1e-12  # a slope below this part of all slopes is rounding of sums
_FIRST_STEP, _LONGER, _STEPS = 1e-6, 100.0, 5  # from where the best intercept is looked for


@compiled
def best_intercept(up: Any, down: Any, low: Any, high: Any, shift: Any, kinks: Any, near: float,
                   pull: float) -> Any:  # fmt: skip
    """Return the b that minimises Σ ℓ + pull·b: the middle one where there are several.

    The sum is convex and piecewise linear or quadratic, with pieces between ``kinks``. Its slope is
    found around ``near`` first, and then at kinks, drawn at random, between which its sign changes.
    """
    size = slopes(up, down, low, high, shift, near)[2]
    tiny = _FLAT * max(size if size < np.inf else 0.0, 1e-300)
    begin, end, b, step = -np.inf, np.inf, near, _FIRST_STEP * max(1.0, abs(near))
    at, steps = 1, _STEPS
    while True:
        left, right, _ = slopes(up, down, low, high, shift, b)
        if right + pull < -tiny:
            begin = b
        elif left + pull > tiny:
            end = b
        else:
            return _middle_of_flat(up, down, low, high, shift, kinks, b, pull, tiny)
        if steps > 0 and (begin == -np.inf or end == np.inf):
            b += step if end == np.inf else -step
            step, steps = step * _LONGER, steps - 1
            continue
        inside = 0
        for k in range(kinks.shape[0]):
            inside += begin < kinks[k] < end
        if inside == 0:
            return _root_between(up, down, low, high, shift, begin, end, pull)
        at = at * 16807 % 2147483647
        drawn = at % inside
        for k in range(kinks.shape[0]):
            if begin < kinks[k] < end:
                if drawn == 0:
                    b = kinks[k]
                    break
                drawn -= 1


@compiled
def _middle_of_flat(up: Any, down: Any, low: Any, high: Any, shift: Any, kinks: Any, b: float,
                    pull: float, tiny: float) -> float:  # fmt: skip
    """Return the middle of the stretch around b on which the sum does not change."""
    begin, end = -np.inf, np.inf
    for k in range(kinks.shape[0]):
        if kinks[k] > b:
            end = min(end, kinks[k])
        elif kinks[k] < b:
            begin = max(begin, kinks[k])
    # Between kinks the slope is linear: zeros just beside the one and the other make a flat.
    left, right, _ = slopes(up, down, low, high, shift, b)
    after = slopes(up, down, low, high, shift, min(end, b + 1.0))[0]
    before = slopes(up, down, low, high, shift, max(begin, b - 1.0))[1]
    if max(abs(right + pull), abs(after + pull)) > tiny:
        end = b
    if max(abs(left + pull), abs(before + pull)) > tiny:
        begin = b
    return 0.5 * (begin + end) if begin > -np.inf and end < np.inf else b


@compiled
def _root_between(up: Any, down: Any, low: Any, high: Any, shift: Any, left: float, right: float,
                  pull: float) -> Any:  # fmt: skip
    """Return where the slope, linear between neighbouring kinks, is 0; the middle if all of it is.

    Of a stretch without end, that is the end it has.
    """
    begin = left if left > -np.inf else right - 1.0
    end = right if right < np.inf else begin + 1.0
    lower = slopes(up, down, low, high, shift, begin)[1] + pull
    upper = slopes(up, down, low, high, shift, end)[0] + pull
    if upper > lower:
        return min(max(begin - lower * (end - begin) / (upper - lower), begin), end)
    if left > -np.inf and right < np.inf:
        return 0.5 * (left + right)
    return left if left > -np.inf else right


@compiled
def hinges_of_classes(
    labels: Any, weight: Any, C: float, factors: Any, positive: int, negative: int, squared: bool,
    loss: Any,
) -> None:  # fmt: skip
    """Set the hinge losses, or their squares, of rows of one class against another.

    A negative class of −1 is all others. Rows of further classes, or without weight, cost nothing.
    """
    for i in range(labels.shape[0]):
        label = labels[i]
        own = label == positive
        cost = C * (weight[i] * factors[label])
        if negative >= 0 and not own and label != negative:
            cost = 0.0
        bound = np.inf if squared and cost > 0.0 else cost
        loss.target[i] = 1.0 if own else -1.0
        loss.low[i] = 0.0 if own else -bound
        loss.high[i] = bound if own else 0.0
        loss.quadratic[i] = (0.5 / cost if cost > 0.0 else 0.5) if squared else 0.0


@compiled
def count_kinks(kinks: Any, edges: Any, counts: Any, lowest: Any, highest: Any) -> None:
    """Count the kinks between edges, which are ascending, and note the extremes there.

    Cell k has edges[k − 1] < kink ≤ edges[k].
    """
    for kink in kinks:
        cell = np.searchsorted(edges, kink)
        counts[cell] += 1
        lowest[cell] = min(lowest[cell], kink)
        highest[cell] = max(highest[cell], kink)
