"""Coordinate descent on a quadratic model with an ℓ1 penalty, and the sums around it.

    min_x  q·(x − w) + ½(x − w)ᵀH(x − w)  +  Σⱼ l1ⱼ|xⱼ| + ½ l2ⱼ xⱼ²

A coordinate is solved exactly: xⱼ = soft(Hⱼⱼxⱼ − gradⱼ, l1ⱼ) / (Hⱼⱼ + l2ⱼ). H is given as a matrix,
or as AᵀA − μμᵀ/total + diag(damping), A in compressed columns: the rank-one part is what
eliminating a free intercept leaves. Losses are Loss with shift > 0, so that they are smooth.
Friedman et al. (2010), "Regularization paths for generalized linear models via coordinate descent".
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled


@compiled
def _soft(value: float, threshold: float) -> float:
    if value > threshold:
        return value - threshold
    if value < -threshold:
        return value + threshold
    return 0.0


@compiled
def gram_sweeps(
    H: Any, l1: Any, l2: Any, order: Any, sweeps: int, aim: float, x: Any, gradient: Any
) -> Any:
    """Sweep over the coordinates in order until none moves by more than aim, in units of √model.

    ``gradient`` is that of the quadratic at x and follows it. Returns the largest move of the last
    sweep, √(δ²H), and the number of sweeps.
    """
    largest = np.inf
    done = 0
    while done < sweeps and largest > aim:
        largest = 0.0
        for p in range(order.shape[0]):
            j = order[p]
            h = H[j, j] + l2[j]
            if h <= 0.0:
                continue
            step = _soft(H[j, j] * x[j] - gradient[j], l1[j]) / h - x[j]
            if step != 0.0:
                x[j] += step
                for k in range(gradient.shape[0]):
                    gradient[k] += step * H[j, k]
                largest = max(largest, np.sqrt(h) * abs(step))
        done += 1
    return largest, done


@compiled
def column_sweeps(
    A: Any, means: Any, total: float, linear: Any, diagonal: Any, damping: Any, l1: Any, l2: Any,
    order: Any, sweeps: int, aim: float, x: Any, moved: Any, z: Any, offset: Any,
) -> Any:  # fmt: skip
    """Sweep as ``gram_sweeps`` does, with H in columns: z = A·moved and offset = −μ·moved/total."""
    largest = np.inf
    done = 0
    while done < sweeps and largest > aim:
        largest = 0.0
        for p in range(order.shape[0]):
            j = order[p]
            h = diagonal[j] + l2[j]
            if h <= 0.0:
                continue
            slope = linear[j] + offset[0] * means[j] + damping[j] * moved[j]
            first, last = np.uint64(A.indptr[j]), np.uint64(A.indptr[j + 1])
            for k in range(first, last):
                slope += A.data[k] * z[np.uint64(A.indices[k])]
            step = _soft(diagonal[j] * x[j] - slope, l1[j]) / h - x[j]
            if step != 0.0:
                x[j] += step
                moved[j] += step
                for k in range(first, last):
                    z[np.uint64(A.indices[k])] += step * A.data[k]
                offset[0] -= step * means[j] / total
                largest = max(largest, np.sqrt(h) * abs(step))
        done += 1
    return largest, done


@compiled
def column_sums(A: Any, root: Any, means: Any, squares: Any) -> None:
    """Do means = Aᵀroot, and squares[j] = ‖aⱼ‖²."""
    for j in range(means.shape[0]):
        mean = 0.0
        square = 0.0
        for k in range(np.uint64(A.indptr[j]), np.uint64(A.indptr[j + 1])):
            mean += A.data[k] * root[np.uint64(A.indices[k])]
            square += A.data[k] * A.data[k]
        means[j] = mean
        squares[j] = square


@compiled
def _dual(loss: Any, i: int, score: float) -> float:
    """Return the β that attains the loss of row i."""
    residual = loss.target[i] - score
    beta = _soft(residual, loss.epsilon) / loss.quadratic[i]
    inside: float = min(max(beta, loss.low[i]), loss.high[i])
    return inside


@compiled
def losses_at(loss: Any, scores: Any, b: float, beta: Any, curvature: Any) -> float:
    """Fill β and the second derivative of each loss at scores + b; return the sum of losses."""
    total = 0.0
    for i in range(scores.shape[0]):
        dual = _dual(loss, i, scores[i] + b)
        inside = loss.low[i] < dual < loss.high[i] and dual != 0.0
        beta[i] = dual
        curvature[i] = 1.0 / loss.quadratic[i] if inside else 0.0
        residual = loss.target[i] - scores[i] - b
        if dual != 0.0:
            total += (
                dual * residual - loss.epsilon * abs(dual) - 0.5 * loss.quadratic[i] * dual * dual
            )
    return total


@compiled
def slope_along(loss: Any, scores: Any, b: float, change: Any, t: float) -> float:
    """Return the derivative in t of Σ ℓ(scores + b + t·change)."""
    total = 0.0
    for i in range(scores.shape[0]):
        total -= _dual(loss, i, scores[i] + b + t * change[i]) * change[i]
    return total


@compiled
def best_offset(loss: Any, scores: Any, b: float) -> float:
    """Return the b for which Σβ = 0, by Newton's method held between bounds that close in."""
    low, high = -np.inf, np.inf
    reach = 1.0
    for _ in range(200):
        total, size, curve = 0.0, 0.0, 0.0
        for i in range(scores.shape[0]):
            dual = _dual(loss, i, scores[i] + b)
            total += dual
            size += abs(dual)
            if dual != 0.0 and loss.low[i] < dual < loss.high[i]:
                curve += 1.0 / loss.quadratic[i]
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
