"""What turns a tile of sums into a tile of kernel values, while it is still in cache.

A tile is a C-contiguous block of the Gram matrix. The loops here either fill one,

    out[i, j] = Σₖ term(aᵢₖ, bⱼₖ)            dense: over all columns; sparse: over matches only

or map one in place, for example to 2^(factor·tile − aᵢ − bⱼ), which is the Gaussian kernel once
``factor`` and the norms carry γ·log₂e. LLVM vectorises both over j.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from maxmargin.loops.compiled import INNER, chosen_by_type, compiled
from maxmargin.loops.intrinsics import ROWS, prefetch, strip_products

# ---------------------------------------------------------------- 2^x for x ≤ 0
#
# x = n + r with n an integer and |r| ≤ ½; 2^r by its minimax polynomial (Remez, relative error
# 2e-9 in degree 6, 3e-18 in degree 11), 2^n by writing n into the exponent bits. Adding
# 1.5·2^mantissa + bias rounds x to n and leaves n + bias in the lowest bits, ready to be shifted
# into place; at the lower clamp these bits are 0 and so is the result.

_ROUND_32, _ZERO_32 = np.float32(1.5 * 2**23 + 127), np.float32(-127)
_ROUND_64, _ZERO_64 = np.float64(1.5 * 2**52 + 1023), np.float64(-1023)

_P1, _P2, _P3 = np.float32(0.6931472057), np.float32(0.2402264689), np.float32(0.0555032878)
_P4, _P5, _P6 = np.float32(0.0096184889), np.float32(0.0013399931), np.float32(0.0001534582)

_Q1, _Q2, _Q3 = 6.93147180559945286227e-01, 2.40226506959101554495e-01, 5.55041086648199247233e-02
_Q4, _Q5, _Q6 = 9.61812910758833537750e-03, 1.33335581467899553197e-03, 1.54035304625139063189e-04
_Q7, _Q8, _Q9 = 1.52527334899555602353e-05, 1.32154330899061259825e-06, 1.01781980353714776122e-07
_Q10, _Q11 = 7.07410557983053410632e-09, 4.43528070319254599509e-10


# No reassociation here: (x + round) − round is how x gets rounded.
_ROUNDS: Any = {**INNER, "fastmath": {"contract"}}


def exp2_nonpositive(x: Any) -> Any:
    """Return 2^x for x ≤ 0 (0 where it would be subnormal, 1 for x > 0, NaN for NaN)."""

    def single(x: Any) -> Any:
        x = _ZERO_32 if x < _ZERO_32 else x
        x = np.float32(0) if x > np.float32(0) else x
        shifted = x + _ROUND_32
        r = x - (shifted - _ROUND_32)
        power = (((((_P6 * r + _P5) * r + _P4) * r + _P3) * r + _P2) * r + _P1) * r + np.float32(1)
        bits = np.int32(np.float32(shifted).view(np.int32) << np.int32(23))
        return power * bits.view(np.float32)

    def double(x: Any) -> Any:
        x = _ZERO_64 if x < _ZERO_64 else x
        x = 0.0 if x > 0.0 else x
        shifted = x + _ROUND_64
        r = x - (shifted - _ROUND_64)
        power = (((((_Q11 * r + _Q10) * r + _Q9) * r + _Q8) * r + _Q7) * r + _Q6) * r + _Q5
        power = ((((power * r + _Q4) * r + _Q3) * r + _Q2) * r + _Q1) * r + 1.0
        bits = np.int64(np.float64(shifted).view(np.int64) << np.int64(52))
        return power * bits.view(np.float64)

    return single if x == types.float32 else double


overload(exp2_nonpositive, jit_options=_ROUNDS)(exp2_nonpositive)


# ---------------------------------------------------------------- maps of a whole tile, in place


@compiled
def exponential(tile: Any, factor: Any) -> None:
    """Do tile ← 2^min(0, factor·tile)."""
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            tile[i, j] = exp2_nonpositive(factor * tile[i, j])


@compiled
def exponential_of_sums(tile: Any, factor: Any, a: Any, b: Any) -> None:
    """Do tile[i, j] ← 2^min(0, factor·tile[i, j] − a[i] − b[j])."""
    for i in range(tile.shape[0]):
        row_term = a[i]
        for j in range(tile.shape[1]):
            tile[i, j] = exp2_nonpositive(factor * tile[i, j] - row_term - b[j])


@compiled
def affine_power(tile: Any, scale: Any, shift: Any, exponent: int) -> None:
    """Do tile ← (scale·tile + shift)^exponent, by repeated squaring one row at a time."""
    base = np.empty(tile.shape[1], tile.dtype)
    one = scale / scale
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            base[j] = scale * tile[i, j] + shift
            tile[i, j] = base[j] if exponent & 1 else one
        remaining = exponent >> 1
        while remaining > 0:
            for j in range(tile.shape[1]):
                base[j] *= base[j]
            if remaining & 1:
                for j in range(tile.shape[1]):
                    tile[i, j] *= base[j]
            remaining >>= 1


STRIP_BYTES = 512  # of a row of a stored tile: as many cache lines as can be on their way at once
_APART = 128  # numbers from one vector to the next in the copies of a strip


@compiled
def add_products(panel: Any, top: int, height: int, V: Any, out: Any) -> None:
    """Do out_I += Σ_J V_J K_IJᵀ, and out_J += V_I K_IJ for the tiles J beyond the square of I.

    The panel holds the tiles K_IJ one after the other: I are the rows from ``top`` on, an even
    number of them; J are columns from ``top`` on, a strip at a time. V and out have a row for each
    vector, a multiple of four. Each value is fetched once for four vectors and both products. The
    two rows of a pair are far apart, since processors fetch ahead one stream of a page. Vectors are
    copied to places whose distances the compiler knows, or it would not vectorise.
    """
    half, zero, strip = height // 2, panel.dtype.type(0), STRIP_BYTES // panel.itemsize
    line = 64 // panel.itemsize
    work = np.empty(8 * _APART, panel.dtype)
    at = 0
    for left in range(top, V.shape[1], strip):
        width = min(strip, V.shape[1] - left)
        mirrored = panel.dtype.type(left >= top + height)
        for first in range(0, V.shape[0], 4):
            for c in range(4):
                for j in range(width):
                    work[c * _APART + j] = V[first + c, left + j]
                    work[(c + 4) * _APART + j] = zero
            for i in range(half):
                y, z = top + i, top + half + i
                first_a, first_b = at + i * width, at + (half + i) * width
                a, b = panel[first_a : first_a + width], panel[first_b : first_b + width]
                for ahead in range(2 * width, 3 * width, line):
                    prefetch(panel, first_a + ahead)
                    prefetch(panel, first_b + ahead)
                a_0, a_1 = mirrored * V[first, y], mirrored * V[first + 1, y]
                a_2, a_3 = mirrored * V[first + 2, y], mirrored * V[first + 3, y]
                b_0, b_1 = mirrored * V[first, z], mirrored * V[first + 1, z]
                b_2, b_3 = mirrored * V[first + 2, z], mirrored * V[first + 3, z]
                s_0, s_1, s_2, s_3 = zero, zero, zero, zero
                t_0, t_1, t_2, t_3 = zero, zero, zero, zero
                for j in range(width):
                    p, q = a[j], b[j]
                    s_0 += p * work[j]
                    t_0 += q * work[j]
                    s_1 += p * work[_APART + j]
                    t_1 += q * work[_APART + j]
                    s_2 += p * work[2 * _APART + j]
                    t_2 += q * work[2 * _APART + j]
                    s_3 += p * work[3 * _APART + j]
                    t_3 += q * work[3 * _APART + j]
                    work[4 * _APART + j] += p * a_0 + q * b_0
                    work[5 * _APART + j] += p * a_1 + q * b_1
                    work[6 * _APART + j] += p * a_2 + q * b_2
                    work[7 * _APART + j] += p * a_3 + q * b_3
                _add_column(out, first, y, s_0, s_1, s_2, s_3)
                _add_column(out, first, z, t_0, t_1, t_2, t_3)
            for c in range(4):
                for j in range(width):
                    out[first + c, left + j] += work[(c + 4) * _APART + j]
        at += height * width


@compiled
def _add_column(out: Any, first: int, j: int, s_0: Any, s_1: Any, s_2: Any, s_3: Any) -> None:
    out[first, j] += s_0
    out[first + 1, j] += s_1
    out[first + 2, j] += s_2
    out[first + 3, j] += s_3


_SIDE = 16  # of squares that are transposed at once: lines a power of 2 apart share a place


@compiled
def mirror_upper(tile: Any, diagonal: Any) -> None:
    """Make the leading square of the tile symmetric, with the diagonal given."""
    for top in range(0, tile.shape[0], _SIDE):
        bottom = min(top + _SIDE, tile.shape[0])
        for j in range(bottom):
            for i in range(max(top, j + 1), bottom):
                tile[i, j] = tile[j, i]
    for i in range(tile.shape[0]):
        tile[i, i] = diagonal[i]


@compiled
def transpose(tile: Any, out: Any) -> None:
    """Do out ← tileᵀ."""
    for top in range(0, tile.shape[0], _SIDE):
        bottom = min(top + _SIDE, tile.shape[0])
        for j in range(tile.shape[1]):
            for i in range(top, bottom):
                out[j, i] = tile[i, j]


@compiled
def all_finite(tile: Any) -> bool:
    """Say whether no entry is NaN or infinite (either times zero is NaN, which a sum keeps)."""
    total = tile.dtype.type(0)
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            total += tile[i, j] * tile.dtype.type(0)
    return bool(total == 0)


# ---------------------------------------------------------------- sums over columns
#
# What is summed is a type, so that each loop is compiled once for each without a branch inside.


class Products(NamedTuple):
    """Σ a·b."""


class Differences(NamedTuple):
    """Σ |a − b|; over matches, what the common columns add to ‖a‖₁ + ‖b‖₁."""


class Squares(NamedTuple):
    """Σ (a − b)²."""


class Minima(NamedTuple):
    """Σ min(a, b), for values ≥ 0."""


class ChiSquares(NamedTuple):
    """Σ (a − b)²/(a + b), for values ≥ 0 and with 0/0 = 0; over matches, Σ a·b/(a + b)."""


@chosen_by_type
def _term(measure: Any, a: Any, b: Any) -> Any:
    """Return what a column adds to the sum of two dense rows."""
    one = a(1)
    bodies = {
        Differences: lambda measure, a, b: abs(a - b),
        Squares: lambda measure, a, b: (a - b) * (a - b),
        Minima: lambda measure, a, b: min(a, b),
        # Where the sum is 0 so is the numerator, and any divisor will do. np.divide, unlike /,
        # has no check for zero that would keep the loop from being vectorised.
        ChiSquares: lambda measure, a, b: np.divide((a - b) * (a - b), a + b if a + b > 0 else one),
    }
    return bodies[measure.instance_class]


@chosen_by_type
def _match(measure: Any, a: Any, b: Any) -> Any:
    """Return what a column that two sparse rows both store adds to the sum."""
    one = a(1)
    bodies = {
        Products: lambda measure, a, b: a * b,
        Differences: lambda measure, a, b: abs(a - b) - abs(a) - abs(b),
        Minima: lambda measure, a, b: min(a, b),
        ChiSquares: lambda measure, a, b: np.divide(a * b, a + b if a + b > 0 else one),
    }
    return bodies[measure.instance_class]


@compiled
def dense_sums(measure: Any, a: Any, b_columns: Any, out: Any) -> None:
    """Do out[i, j] = Σₖ term(a[i, k], b_columns[k, j])."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
        for k in range(a.shape[1]):
            value = a[i, k]
            for j in range(out.shape[1]):
                out[i, j] += _term(measure, value, b_columns[k, j])


@compiled
def sparse_sums(measure: Any, a: Any, b: Any, first: int, out: Any) -> None:
    """Do out[i, j] = Σ over the columns that row i of a and row first + j of b both store.

    ``a`` is a Csr; ``b`` holds the same triple by columns, with row numbers in ascending order,
    so the rows of this tile are found by bisection and end at the first one beyond it.
    """
    last = first + out.shape[1]
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
        for p in range(a.indptr[i], a.indptr[i + 1]):
            value = a.data[p]
            column = a.indices[p]
            start, stop = b.indptr[column], b.indptr[column + 1]
            if first > 0:
                start = _first_at_least(b.indices, start, stop, first)
            for q in range(start, stop):
                if b.indices[q] >= last:
                    break
                out[i, b.indices[q] - first] += _match(measure, value, b.data[q])


@compiled
def _first_at_least(numbers: Any, start: int, stop: int, bound: int) -> int:
    while start < stop:
        middle = (start + stop) // 2
        if numbers[middle] < bound:
            start = middle + 1
        else:
            stop = middle
    return start


# ---------------------------------------------------------------- products of dense rows
#
# z, and what is subtracted from its products, come in strips: see ``intrinsics.strip_products``.
# Some rows of a, times some strips, are finished while they are in the nearest cache.


class Strips(NamedTuple):
    """Rows by strips, columns within a strip, and rows within a column; and a number of each row.

    What is missing in the last strip is 0.
    """

    values: Any
    numbers: Any


@compiled
def products(a: Any, own: Any, z: Any, factor: Any, exponential: bool, buffer: Any, out: Any
             ) -> None:  # fmt: skip
    """Do out[i, j] = factor·a[i]·z[j] − own[i] − numbers[j], or 2 to the power of that.

    The buffer has a row for each of those that are computed at once.
    """
    lanes, width = z.values.shape[2], buffer.shape[1]
    for begin in range(0, z.values.shape[0], width // lanes):
        end, left = min(begin + width // lanes, z.values.shape[0]), begin * lanes
        for i in range(0, out.shape[0], ROWS):
            _fill(a, i, own, z, begin, end, factor, exponential, buffer)
            for r in range(min(ROWS, out.shape[0] - i)):
                values, to = buffer[r], out[i + r][left : left + width]
                for j in range(to.shape[0]):
                    to[j] = values[j]


@compiled
def gaussian_sums(a: Any, own: Any, z: Any, factor: Any, weights: Any, run: int, first: int,
                  last: int, buffer: Any, out: Any, beyond: int, row_weights: Any, turned: Any
                  ) -> None:  # fmt: skip
    """Do out[i, c] += Σ K(a[i], z[j])·weights[c, j], for the Gaussian kernel, over some strips.

    Sums over a run of columns are in the type of the rows, and those of runs in float64. From the
    strip ``beyond`` on, do turned[c, j] += Σ K(a[i], z[j])·row_weights[c, i] with the same values.
    """
    lanes, width = z.values.shape[2], buffer.shape[1]
    for begin in range(first, last, width // lanes):
        end, left = min(begin + width // lanes, last), begin * lanes
        skipped = (max(begin, beyond) - begin) * lanes
        for i in range(0, a.shape[0], ROWS):
            _fill(a, i, own, z, begin, end, factor, True, buffer)
            for c in range(weights.shape[0]):
                for r in range(min(ROWS, a.shape[0] - i)):
                    total = 0.0
                    for start in range(0, (end - begin) * lanes, run):
                        stop = min(start + run, (end - begin) * lanes)
                        total += _dot(buffer[r][start:stop], weights[c][left + start : left + stop])
                    out[i + r, c] += total
                if end > beyond:
                    to = turned[c][left + skipped : end * lanes]
                    _add_rows(buffer, skipped, row_weights[c], i, to)


@compiled
def _fill(a: Any, i: int, own: Any, z: Any, begin: int, end: int, factor: Any, exponential: bool,
          buffer: Any) -> None:  # fmt: skip
    strip_products(a, i, z.values, begin, end, factor, own, z.numbers, buffer)
    if exponential:
        used = (end - begin) * z.values.shape[2]
        for r in range(ROWS):
            values = buffer[r][:used]
            for j in range(values.shape[0]):
                values[j] = exp2_nonpositive(values[j])


@compiled
def _dot(values: Any, weights: Any) -> Any:
    total = values.dtype.type(0)
    for j in range(values.shape[0]):
        total += values[j] * weights[j]
    return total


@compiled
def _add_rows(values: Any, skipped: int, weights: Any, i: int, to: Any) -> None:
    """Do to += Σ weights[i + r]·values[r], as far as there are weights."""
    n, none = weights.shape[0], values.dtype.type(0)
    a, b = weights[i], weights[i + 1] if i + 1 < n else none
    c, d = weights[i + 2] if i + 2 < n else none, weights[i + 3] if i + 3 < n else none
    e, f = weights[i + 4] if i + 4 < n else none, weights[i + 5] if i + 5 < n else none
    row_a, row_b, row_c = values[0][skipped:], values[1][skipped:], values[2][skipped:]
    row_d, row_e, row_f = values[3][skipped:], values[4][skipped:], values[5][skipped:]
    for j in range(to.shape[0]):
        to[j] += ((a * row_a[j] + b * row_b[j]) + (c * row_c[j] + d * row_d[j])) + (
            e * row_e[j] + f * row_f[j]
        )
