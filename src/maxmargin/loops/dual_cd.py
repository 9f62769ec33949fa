"""Sweeps of dual coordinate descent for linear machines.

    min over β   ½‖Σβx‖² + ½ τ(Σβ)² + b̄ Σβ + Σ ½ shift β² + slope|β| − tβ,    low ≤ β ≤ high

Each visit minimises over one βᵢ exactly, keeping w = Σβx and b = b̄ + τΣβ up to date. Rows that sit
at a bound, or at the kink of slope|β|, by more than the largest violation of the sweep before are
left out of the next ones. Hsieh et al. (ICML 2008), Ho & Lin (JMLR 2012).
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.rows import row_axpy, row_dot, row_prefetch, row_squared_norm

_AHEAD = 8
_ROWS_A_CALL = 20_000


@compiled
def squared_norms(X: Any, out: Any) -> None:
    """Set out[i] = ‖xᵢ‖²."""
    for i in range(out.shape[0]):
        out[i] = row_squared_norm(X, i)


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
    X: Any, loss: Any, norms: Any, order: Any, begin: int, count: int, limits: Any,
    tau: float, w: Any, b: Any, beta: Any, worst: Any,
) -> Any:  # fmt: skip
    """Visit order[begin:count], and return how far it came; a row i to leave out is marked as ~i.

    ``limits`` holds how far the gradient may be from rest before a row is left out (above, below);
    ``worst`` collects the largest violations (above, below). It stops after some thousand rows, to
    be called again.
    """
    k = begin
    stop = begin + _ROWS_A_CALL
    while k < min(stop, count):
        i = order[k]
        if k + _AHEAD < count:
            row_prefetch(X, order[k + _AHEAD])
        old = beta[i]
        G = row_dot(X, i, w) + b[0] - loss.target[i] + loss.quadratic[i] * old
        away, leave = violation(G, old, loss.low[i], loss.high[i], loss.epsilon, limits)
        k += 1
        if leave:
            order[k - 1] = ~i
            continue
        worst[0] = max(worst[0], away)
        worst[1] = min(worst[1], away)
        if away != 0.0:
            curve = norms[i] + tau + loss.quadratic[i]
            new = minimiser(G, old, loss.low[i], loss.high[i], loss.epsilon, curve)
            if new != old and abs(new) < np.inf:
                beta[i] = new
                row_axpy(X, i, new - old, w)
                b[0] += tau * (new - old)
    return k
