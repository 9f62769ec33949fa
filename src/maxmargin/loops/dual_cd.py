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
def sweep(
    X: Any, terms: Any, norms: Any, order: Any, begin: int, count: int, limits: Any,
    tau: float, w: Any, b: Any, beta: Any, worst: Any,
) -> Any:  # fmt: skip
    """Visit order[begin:count], moving rows to leave out to the end; return begin and count then.

    ``limits`` holds how far the gradient may be from rest before a row is left out (above, below);
    ``worst`` collects the largest violations (above, below). It stops after a million entries or
    so, to be called again.
    """
    k = begin
    slope = terms.slope
    stop = min(count, begin + max(64, 2_000_000 // max(1, w.shape[0] // 64)))
    stop = min(count, begin + 20_000)
    while k < stop:
        i = order[k]
        if k + _AHEAD < count:
            row_prefetch(X, order[k + _AHEAD])
        old = beta[i]
        low = terms.low[i]
        high = terms.high[i]
        curve = norms[i] + tau + terms.shift[i]
        G = row_dot(X, i, w) + b[0] - terms.target[i] + terms.shift[i] * old
        violation = 0.0
        if old == 0.0:
            up = G + slope  # derivative to the right, and to the left
            down = G - slope
            if up < 0.0 and high > 0.0:
                violation = up
            elif down > 0.0 and low < 0.0:
                violation = down
            elif (high <= 0.0 or up > limits[0]) and (low >= 0.0 or down < limits[1]):
                count -= 1
                stop = min(stop, count)
                order[k], order[count] = order[count], i
                continue
        else:
            violation = G + slope if old > 0.0 else G - slope
            if old >= high and violation < 0.0:
                if violation < limits[1]:
                    count -= 1
                    stop = min(stop, count)
                    order[k], order[count] = order[count], i
                    continue
                violation = 0.0
            elif old <= low and violation > 0.0:
                if violation > limits[0]:
                    count -= 1
                    stop = min(stop, count)
                    order[k], order[count] = order[count], i
                    continue
                violation = 0.0
        worst[0] = max(worst[0], violation)
        worst[1] = min(worst[1], violation)
        if violation != 0.0:
            if curve > 0.0:
                z = old - G / curve
                z = max(z - slope / curve, 0.0) if z > 0.0 else min(z + slope / curve, 0.0)
            else:
                z = np.inf if violation < 0.0 else -np.inf
            new = min(max(z, low), high)
            if new != old and abs(new) < np.inf:
                beta[i] = new
                row_axpy(X, i, new - old, w)
                b[0] += tau * (new - old)
        k += 1
    return k, count


@compiled
def combination(X: Any, beta: Any, sign: float, out: Any) -> None:
    """Add Σβx over the rows whose β has this sign."""
    for i in range(beta.shape[0]):
        if beta[i] * sign > 0.0:
            row_axpy(X, i, beta[i], out)
