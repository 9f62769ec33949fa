"""Passes over rows for the semismooth Newton method.

The smoothed loss of a row, with residual r = t − f, anchor a and width τ, is

    m(r) = max over low ≤ β ≤ high of  βr − slope|β| − ½ shift β² − ½ τ(β − a)²

whose maximiser β is its derivative in r, and whose second derivative is 1/(shift + τ) where β is
between its limits, else 0. τ is ``width`` divided by high − low, so that ``width`` says how much r
must change to carry β from one limit to the other.
"""

from typing import Any

import numpy as np

from maxmargin.loops.compiled import compiled
from maxmargin.loops.rows import (
    row_copy,
    row_outer,
    row_shifted_axpy,
    row_shifted_dot,
)


@compiled
def scores(X: Any, begin: Any, end: Any, centre: Any, w: Any, offset: Any, out: Any) -> Any:
    """Do out[i] = (xᵢ − centre)·w + offset; sparse rows are not centred."""
    for i in range(begin, end):
        out[i] = row_shifted_dot(X, i, centre, w) + offset


@compiled
def smooth_dual(terms: Any, i: Any, residual: Any, anchor: Any, width: Any) -> Any:
    """Return β, and the second derivative of the smoothed loss."""
    spread = terms.high[i] - terms.low[i]
    tau = width / spread if spread < np.inf else 0.0
    curvature = terms.shift[i] + tau
    z = residual + tau * anchor
    if z > terms.slope:
        z -= terms.slope
    elif z < -terms.slope:
        z += terms.slope
    else:
        return 0.0, 0.0
    if curvature <= 0.0:
        return (terms.high[i], 0.0) if z > 0 else (terms.low[i], 0.0)
    beta = z / curvature
    if beta >= terms.high[i]:
        return terms.high[i], 0.0
    if beta <= terms.low[i]:
        return terms.low[i], 0.0
    return beta, 1.0 / curvature


@compiled
def line(
    terms: Any, begin: Any, end: Any, f: Any, q: Any, anchor: Any, width: Any, step: Any
) -> Any:
    """Return the first and second derivative along q of the smoothed losses at f + step·q."""
    slope = 0.0
    curve = 0.0
    for i in range(begin, end):
        beta, h = smooth_dual(terms, i, terms.target[i] - f[i] - step * q[i], anchor[i], width)
        slope -= beta * q[i]
        curve += h * q[i] * q[i]
    return slope, curve


@compiled
def losses(terms: Any, begin: int, end: int, f: Any) -> float:
    """Return Σ ℓ of the rows."""
    total = 0.0
    for i in range(begin, end):
        r = terms.target[i] - f[i]
        sharp, _ = smooth_dual(terms, i, r, 0.0, 0.0)
        if sharp != 0.0:
            total += sharp * r - terms.slope * abs(sharp) - 0.5 * terms.shift[i] * sharp * sharp
    return total


@compiled
def duals(
    terms: Any, begin: int, end: int, f: Any, anchor: Any, width: float, beta: Any, h: Any
) -> Any:
    """Set β and h of each row; return the sums that ``Sums`` names."""
    loss = 0.0
    gain = gain_value = gain_square = 0.0
    lost = lost_value = lost_square = 0.0
    moved = 0.0
    active = 0
    for i in range(begin, end):
        r = terms.target[i] - f[i]
        shift = terms.shift[i]
        b, curve = smooth_dual(terms, i, r, anchor[i], width)
        beta[i] = b
        h[i] = curve
        sharp, _ = smooth_dual(terms, i, r, 0.0, 0.0)
        if sharp != 0.0:
            loss += sharp * r - terms.slope * abs(sharp) - 0.5 * shift * sharp * sharp
        if b > 0.0:
            gain += b
            gain_value += (terms.target[i] - terms.slope) * b
            gain_square += 0.5 * shift * b * b
        elif b < 0.0:
            lost -= b
            lost_value += (terms.target[i] + terms.slope) * b
            lost_square += 0.5 * shift * b * b
        moved += abs(b - anchor[i])
        if curve > 0.0:
            active += 1
    return loss, gain, gain_value, gain_square, lost, lost_value, lost_square, moved, active


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
