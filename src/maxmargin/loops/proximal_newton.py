"""Coordinate descent on a quadratic model with an ℓ1 penalty, and the sums around it.

    min_x  q·(x − w) + ½(x − w)ᵀH(x − w)  +  l1‖x‖₁ + ½ l2‖x‖²

A coordinate is solved exactly: xⱼ = soft(Hⱼⱼxⱼ − gradⱼ, l1) / (Hⱼⱼ + l2). H is given as a matrix,
or as AᵀA − μμᵀ/total + diag(damping), A in compressed columns: the rank-one part is what
eliminating a free intercept leaves. Losses have quadratic > 0, so that they are smooth.
Friedman et al. (2010), "Regularization paths for generalized linear models via coordinate descent".
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.loss import smooth_dual


@compiled
def _soft(value: float, threshold: float) -> float:
    if value > threshold:
        return value - threshold
    if value < -threshold:
        return value + threshold
    return 0.0


@compiled
def gram_sweeps(
    H: Any, l1: float, l2: float, order: Any, sweeps: int, aim: float, x: Any, gradient: Any
) -> float:
    """Sweep over the coordinates in order until none moves by more than aim, in units of √model.

    ``gradient`` is that of the quadratic at x and follows it. Returns the largest move of the last
    sweep, √(δ²H).
    """
    largest = np.inf
    for _ in range(sweeps):
        largest = 0.0
        for p in range(order.shape[0]):
            j = order[p]
            h = H[j, j] + l2
            if h <= 0.0:
                continue
            step = _soft(H[j, j] * x[j] - gradient[j], l1) / h - x[j]
            if step != 0.0:
                x[j] += step
                for k in range(gradient.shape[0]):
                    gradient[k] += step * H[j, k]
                largest = max(largest, np.sqrt(h) * abs(step))
        if largest <= aim:
            break
    return largest


@compiled
def column_sweeps(
    data: Any, indices: Any, indptr: Any, means: Any, total: float, slopes: Any, diagonal: Any,
    damping: Any, l1: float, l2: float, order: Any, sweeps: int, aim: float, w: Any, x: Any,
    z: Any, offset: float,
) -> float:  # fmt: skip
    """Sweep as ``gram_sweeps`` does, with H in columns.

    z = A(x − w) follows x, and so does offset = −μ·(x − w)/total.
    """
    largest = np.inf
    for _ in range(sweeps):
        largest = 0.0
        for p in range(order.shape[0]):
            j = order[p]
            h = diagonal[j] + l2
            if h <= 0.0:
                continue
            slope = slopes[j] + offset * means[j] + damping[j] * (x[j] - w[j])
            first, last = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
            for k in range(first, last):
                slope += data[k] * z[np.uint64(indices[k])]
            step = _soft(diagonal[j] * x[j] - slope, l1) / h - x[j]
            if step != 0.0:
                x[j] += step
                for k in range(first, last):
                    z[np.uint64(indices[k])] += step * data[k]
                offset -= step * means[j] / total
                largest = max(largest, np.sqrt(h) * abs(step))
        if largest <= aim:
            break
    return largest


@compiled
def best_offset(loss: Any, scores: Any, b: float) -> float:
    """Return the b for which Σβ = 0, by Newton's method held between bounds that close in."""
    low, high = -np.inf, np.inf
    reach = 1.0
    for _ in range(200):
        total, size, curve = 0.0, 0.0, 0.0
        for i in range(scores.shape[0]):
            dual, curvature = smooth_dual(loss, i, loss.target[i] - scores[i] - b, 0.0, 0.0)
            total += dual
            size += abs(dual)
            curve += curvature
        if abs(total) <= 1e-16 * size:
            return b
        if total > 0.0:
            low = b
        else:
            high = b
        after = b + total / curve if curve > 0.0 else np.inf * total
        if not low < after < high:
            if high - low < np.inf:
                after = 0.5 * (low + high)
            else:
                after = b + reach if total > 0.0 else b - reach
                reach *= 2.0
        if after == b:
            return b
        b = after
    return b


@compiled
def add_products(X: Any, rows: Any, change: Any, place: Any, gram: Any) -> None:
    """Do gram += Σ changeᵢ xᵢxᵢᵀ over some sparse rows, of the columns that have a place in it."""
    width = 1
    for p in range(rows.shape[0]):
        width = max(width, X.indptr[rows[p] + 1] - X.indptr[rows[p]])
    where = np.empty(width, np.int64)
    values = np.empty(width)
    for p in range(rows.shape[0]):
        i = rows[p]
        found = 0
        for k in range(np.uint64(X.indptr[i]), np.uint64(X.indptr[i + 1])):
            at = place[np.uint64(X.indices[k])]
            if at >= 0:
                where[found] = at
                values[found] = X.data[k]
                found += 1
        for a in range(found):
            step = change[i] * values[a]
            line = gram[where[a]]
            for c in range(found):
                line[np.uint64(where[c])] += step * values[c]
