"""Sweeps of dual coordinate descent for linear machines.

    min over β   ½‖Σβx‖² + ½ τ(Σβ)² + b̄ Σβ + Σ ½ shift β² + slope|β| − tβ,    low ≤ β ≤ high

Each visit minimises over one βᵢ exactly, keeping w = Σβx and b = b̄ + τΣβ up to date. Rows that sit
at a bound, or at the kink of slope|β|, by more than a part of the largest violation of the sweep
before are left out of the next ones. Hsieh et al. (ICML 2008), Ho & Lin (JMLR 2012).
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.loss import row_loss
from maxmargin.loops.rows import row_axpy, row_dot, row_prefetch, row_squared_norm

_AHEAD = 8
ROWS_A_CALL = 20_000


@compiled
def squared_norms(X: Any, begin: int, out: Any) -> None:
    """Set out to ‖xᵢ‖² of consecutive rows."""
    for k in range(out.shape[0]):
        out[k] = row_squared_norm(X, begin + k)


@compiled
def shuffle(order: Any, count: int, state: Any) -> None:
    """Permute the first entries of ``order`` (xorshift: the same on every platform)."""
    x = state[0]
    for k in range(count - 1, 0, -1):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        m = np.int64(x % np.uint64(k + 1))
        order[k], order[m] = order[m], order[k]
    state[0] = x


@compiled
def violation(G: float, old: float, low: float, high: float, slope: float, limits: Any) -> Any:
    """Return how far the gradient is from rest at this β, and whether the row may be left out."""
    up = G + slope if old >= 0.0 else G - slope  # derivative to the right, and to the left
    down = G - slope if old <= 0.0 else G + slope
    if up < 0.0 and old < high:
        return up, False
    if down > 0.0 and old > low:
        return down, False
    leave = (old >= high or up > limits[0]) and (old <= low or down < limits[1])
    return 0.0, leave


@compiled
def minimiser(G: float, old: float, low: float, high: float, slope: float, curve: float) -> float:
    """Return the β that is best for its row alone, given the gradient at the old one."""
    if curve <= 0.0:
        return high if G < 0.0 else low
    z = old - G / curve
    z = max(z - slope / curve, 0.0) if z > 0.0 else min(z + slope / curve, 0.0)
    return min(max(z, low), high)


@compiled
def sweep(
    X: Any, loss: Any, diagonal: Any, order: Any, begin: int, count: int, limits: Any,
    tau: float, w: Any, b: Any, beta: Any, worst: Any,
) -> Any:  # fmt: skip
    """Visit order[begin:count]; return how far it came, and how many rows are left.

    Rows to leave out change places with the last ones. ``limits`` holds how far the gradient may be
    from rest before a row is left out (above, below); ``worst`` collects the largest violations
    (above, below), and how many duals came to a bound or left one. It stops after some thousand
    rows, to be called again.
    """
    slope = loss.epsilon
    visited = 0
    k = begin
    while k < count and visited < ROWS_A_CALL:
        visited += 1
        i = order[k]
        if k + _AHEAD < count:
            row_prefetch(X, order[k + _AHEAD])
        old, low, high = beta[i], loss.low[i], loss.high[i]
        G = row_dot(X, i, w) + b[0] - loss.target[i] + loss.quadratic[i] * old
        away, leave = violation(G, old, low, high, slope, limits)
        if leave:
            count -= 1
            order[k], order[count] = order[count], i
            continue
        k += 1
        worst[0] = max(worst[0], away)
        worst[1] = min(worst[1], away)
        if away != 0.0:
            new = minimiser(G, old, low, high, slope, diagonal[i])
            if new != old and abs(new) < np.inf:
                beta[i] = new
                row_axpy(X, i, new - old, w)
                b[0] += tau * (new - old)
                if is_free(new, low, high, slope) != is_free(old, low, high, slope):
                    worst[2] += 1.0
    return k, count


@compiled
def is_free(beta: float, low: float, high: float, slope: float) -> bool:
    """Return whether β is at no bound, nor at the kink of slope|β|."""
    return low < beta < high and (slope == 0.0 or beta != 0.0)


@compiled
def survey(loss: Any, f: Any, beta: Any, part: float, order: Any, limits: Any) -> Any:
    """Put the rows that are not at rest at the scores f first in ``order``.

    Return how many, the largest violation, and sums: of ℓ(f), of β > 0, of −β > 0, of
    tβ − slope|β|, and of shift β². Rows are at rest if their gradient is so by more than a part of
    the largest violation, which ``limits`` is set to (above, below).
    """
    slope = loss.epsilon
    largest = fitted = gain = lost = linear = square = 0.0
    for i in range(beta.shape[0]):
        old, low, high, shift = beta[i], loss.low[i], loss.high[i], loss.quadratic[i]
        r = loss.target[i] - f[i]
        away, _ = violation(shift * old - r, old, low, high, slope, limits)
        largest = max(largest, abs(away))
        fitted += row_loss(low, high, shift, slope, r)
        gain += max(old, 0.0)
        lost -= min(old, 0.0)
        linear += loss.target[i] * old - slope * abs(old)
        square += shift * old * old
    limits[0] = part * largest
    limits[1] = -part * largest
    count, last = 0, beta.shape[0]
    for i in range(beta.shape[0]):
        G = f[i] - loss.target[i] + loss.quadratic[i] * beta[i]
        _, leave = violation(G, beta[i], loss.low[i], loss.high[i], slope, limits)
        if leave:
            last -= 1
            order[last] = i
        else:
            order[count] = i
            count += 1
    return count, largest, fitted, gain, lost, linear, square


# ------------------------------------------------------------------- steps on free duals


@compiled
def residuals(
    X: Any, loss: Any, rows: Any, diagonal: Any, w: Any, b: Any, beta: Any, out: Any
) -> float:
    """Set out to minus the derivatives by the free duals of some rows; return their size."""
    size = 0.0
    for k in range(rows.shape[0]):
        i = rows[k]
        slope = loss.epsilon if beta[i] > 0.0 else -loss.epsilon
        out[k] = loss.target[i] - slope - loss.quadratic[i] * beta[i] - row_dot(X, i, w) - b[0]
        size += out[k] * out[k] / diagonal[i]
    return size


@compiled
def combine(X: Any, rows: Any, scales: Any, w: Any) -> None:
    """Do w += Σ scale · x over some rows."""
    for k in range(rows.shape[0]):
        if scales[k] != 0.0:
            row_axpy(X, rows[k], scales[k], w)


@compiled
def conjugate_step(
    X: Any, loss: Any, rows: Any, diagonal: Any, tau: float, beta: Any, size: float, last: float,
    image: Any, curves: Any, direction: Any, step: Any, residual: Any,
) -> Any:  # fmt: skip
    """Make a step of conjugate gradients; return the next size, and how many β leave their bounds.

    The size of residuals is Σ residual²/diagonal; ``last`` is the one before. ``image`` and
    ``curves`` are buffers.
    """
    count = rows.shape[0]
    total = 0.0
    for j in range(image.shape[0]):
        image[j] = 0.0
    for k in range(count):
        i = rows[k]
        direction[k] = residual[k] / diagonal[i] + size / last * direction[k]
        total += direction[k]
        row_axpy(X, i, direction[k], image)
    along = 0.0
    for k in range(count):
        i = rows[k]
        curves[k] = row_dot(X, i, image) + loss.quadratic[i] * direction[k] + tau * total
        along += curves[k] * direction[k]
    along = size / along if along > 0.0 else 0.0
    size, outside = 0.0, 0
    for k in range(count):
        i = rows[k]
        step[k] += along * direction[k]
        residual[k] -= along * curves[k]
        size += residual[k] * residual[k] / diagonal[i]
        low = 0.0 if loss.epsilon > 0.0 and beta[i] > 0.0 else loss.low[i]
        high = 0.0 if loss.epsilon > 0.0 and beta[i] < 0.0 else loss.high[i]
        moved = beta[i] + step[k]
        outside += moved < low or moved > high
    return size, outside
