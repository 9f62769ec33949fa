"""Passes over rows for the semismooth Newton method.

Losses are smoothed around prox centres (see ``loops.loss.smooth_dual``).
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.loss import row_loss, smooth_dual
from maxmargin.loops.rows import (
    row_copy,
    row_outer,
    row_shifted_axpy,
    row_shifted_axpy_square,
    row_shifted_dot,
)


@compiled
def scores(X: Any, begin: Any, end: Any, centre: Any, w: Any, offset: Any, out: Any) -> Any:
    """Do out[i] = (xᵢ − centre)·w + offset; sparse rows are not centred."""
    for i in range(begin, end):
        out[i] = row_shifted_dot(X, i, centre, w) + offset


@compiled
def add_rows(X: Any, begin: Any, end: Any, centre: Any, out: Any) -> None:
    """Do out += Σ(x − centre); sparse rows are not centred."""
    for i in range(begin, end):
        row_shifted_axpy(X, i, centre, 1.0, out)


@compiled
def add_products(
    X: Any, begin: int, end: int, centre: Any, p: Any, offset: float, h: Any, out: Any
) -> float:
    """Do out += Σh((x − centre)·p + offset)(x − centre); return the sum without the last factor."""
    total = 0.0
    for i in range(begin, end):
        if h[i] > 0.0:
            along = h[i] * (row_shifted_dot(X, i, centre, p) + offset)
            row_shifted_axpy(X, i, centre, along, out)
            total += along
    return total


@compiled
def add_squares(
    X: Any, begin: int, end: int, centre: Any, h: Any, plain: Any, square: Any
) -> float:
    """Do plain += Σh(x − centre) and square += Σh(x − centre)²; return Σh."""
    total = 0.0
    for i in range(begin, end):
        if h[i] > 0.0:
            row_shifted_axpy(X, i, centre, h[i], plain)
            row_shifted_axpy_square(X, i, centre, h[i], square)
            total += h[i]
    return total


@compiled
def line(
    loss: Any, begin: int, end: int, f: Any, q: Any, prox_centre: Any, width: float, step: float
) -> Any:
    """Return the first and second derivative along q of the smoothed losses at f + step·q."""
    slope = 0.0
    curve = 0.0
    for i in range(begin, end):
        r = loss.target[i] - f[i] - step * q[i]
        beta, h = smooth_dual(loss, i, r, prox_centre[i], width)
        slope -= beta * q[i]
        curve += h * q[i] * q[i]
    return slope, curve


@compiled
def losses(loss: Any, begin: int, end: int, f: Any) -> float:
    """Return Σ ℓ of the rows."""
    total = 0.0
    for i in range(begin, end):
        r = loss.target[i] - f[i]
        total += row_loss(loss.low[i], loss.high[i], loss.quadratic[i], loss.epsilon, r)
    return total


@compiled
def duals(
    loss: Any, begin: int, end: int, f: Any, prox_centre: Any, width: float, beta: Any, h: Any
) -> Any:
    """Set β and h of each row; return the sums that ``Sums`` names."""
    fitted = 0.0
    gain = gain_value = gain_square = 0.0
    lost = lost_value = lost_square = 0.0
    for i in range(begin, end):
        t, quadratic = loss.target[i], loss.quadratic[i]
        b, curve = smooth_dual(loss, i, t - f[i], prox_centre[i], width)
        beta[i] = b
        h[i] = curve
        fitted += row_loss(loss.low[i], loss.high[i], quadratic, loss.epsilon, t - f[i])
        up, down = max(b, 0.0), min(b, 0.0)
        gain += up
        gain_value += (t - loss.epsilon) * up
        gain_square += 0.5 * quadratic * up * up
        lost -= down
        lost_value += (t + loss.epsilon) * down
        lost_square += 0.5 * quadratic * down * down
    return fitted, gain, gain_value, gain_square, lost, lost_value, lost_square


@compiled
def combine(X: Any, begin: int, end: int, centre: Any, beta: Any, gains: Any, losses: Any) -> None:
    """Add βx of each row to the sum of its side."""
    for i in range(begin, end):
        if beta[i] > 0.0:
            row_shifted_axpy(X, i, centre, beta[i], gains)
        elif beta[i] < 0.0:
            row_shifted_axpy(X, i, centre, beta[i], losses)


@compiled
def gather(
    X: Any, i: Any, end: Any, centre: Any, beta: Any, h: Any, gains: Any, losses: Any, buffer: Any
) -> Any:
    """Add βx of rows i… to their side's sum, copy rows with h > 0 times √h into the buffer.

    Return the row to go on from and the rows in the buffer: it stops when that is full.
    """
    filled = 0
    d = centre.shape[0]
    while i < end and filled < buffer.shape[0]:
        b = beta[i]
        if b > 0.0:
            row_shifted_axpy(X, i, centre, b, gains)
        elif b < 0.0:
            row_shifted_axpy(X, i, centre, b, losses)
        if h[i] > 0.0:
            root = np.sqrt(h[i])
            row_copy(X, i, centre, root, buffer[filled])
            buffer[filled, d] = root
            filled += 1
        i += 1
    return i, filled


@compiled
def outer(
    X: Any, begin: Any, end: Any, beta: Any, h: Any, gains: Any, losses: Any, hessian: Any
) -> Any:
    """As ``gather`` for sparse rows, adding h·(x,1)(x,1)ᵀ to the upper triangle directly."""
    d = gains.shape[0]
    for i in range(begin, end):
        b = beta[i]
        if b > 0.0:
            row_shifted_axpy(X, i, gains, b, gains)
        elif b < 0.0:
            row_shifted_axpy(X, i, gains, b, losses)
        if h[i] > 0.0:
            row_outer(X, i, h[i], hessian)
            hessian[d, d] += h[i]
