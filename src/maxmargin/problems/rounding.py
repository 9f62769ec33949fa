"""Sums in float64, each with a bound on its error: what is proved then holds in exact arithmetic.

Every operation may be off by half of ε, relatively. The bounds here count a whole ε for each of
them, or for long sums a little more than half: the rest covers products of errors and the rounding
of the bounds themselves.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.data.blocks import RowsInMemory
from maxmargin.geometry.inputs import BLOCK_SIZE, blocks

EPS = float(np.finfo(np.float64).eps)
HALF = 0.51  # of an ε for each product: what sums of them are off by, in any order of summation
_TINY = 1e-300  # covers what underflow may lose
_RUN = 64  # numbers that are summed in any order before the exact sum of these sums
_SHORT_RUN = 8  # the same of not so many
_SPLIT = 2.0**27 + 1.0  # cuts a float64 into two halves
_ROWS = 1024  # of a block: sums over more lose more digits, over fewer take longer


class Bounded(NamedTuple):
    """A number, or an array, and what its error does not exceed."""

    value: Any
    error: Any


def total(values: Floats, error: Any = 0.0) -> Bounded:
    """Return the sum of numbers whose own errors are known."""
    values = np.asarray(values, dtype=np.float64)
    size = float(np.abs(values).sum()) * (1 + len(values) * EPS)
    if not np.isfinite(size):
        return Bounded(float(values.sum()), np.inf)
    own = float(np.sum(error)) * (1 + len(values) * EPS)
    values = values[values != 0]  # of most sums few are left: those of support vectors
    own += _TINY * len(values)
    if len(values) <= _RUN:
        return Bounded(math.fsum(values.tolist()), EPS * size + own)
    run = _SHORT_RUN if len(values) <= _RUN * _RUN else _RUN
    whole = len(values) // run * run
    runs = values[:whole].reshape(-1, run).sum(axis=1)
    value = math.fsum([*runs.tolist(), *values[whole:].tolist()])
    return Bounded(value, run * EPS * size + own)


def squared_norm(values: Floats, error: Any = 0.0) -> Bounded:
    """Return Σ v² of numbers whose own errors are known."""
    squares = values * values
    return total(squares, EPS * squares + (2 * np.abs(values) + error) * error)


def exact_sum(start: float, a: Floats, b: Floats) -> float:
    """Return start + Σ ab, rounded once."""
    product = a * b
    with np.errstate(over="ignore", invalid="ignore"):
        high_a, high_b = _upper_half(a), _upper_half(b)
        low_a, low_b = a - high_a, b - high_b
        rest = low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)
    if not np.isfinite(rest).all():
        return float(start + product.sum())
    return math.fsum([start, *product.tolist(), *rest.tolist()])


def _upper_half(values: Floats) -> Floats:
    large = _SPLIT * values
    return np.asarray(large - (large - values))


# ------------------------------------------------------------------- passes over rows


class Combination(NamedTuple):
    """Σ βᵢ(xᵢ − centre), its error, and Σ |βᵢ||xᵢ − centre|."""

    value: Floats
    error: Floats
    size: Floats


def passed(X: Any, W: Floats, beta: Floats, centre: Floats) -> tuple[Bounded, Combination]:
    """Return (X − centre)·W and Σ βᵢ(xᵢ − centre), in one pass over the rows.

    Weights are (d,) or (d, K), duals (n,) or (n, K). If Σβ = 0 the sum is Σ βᵢxᵢ, too.
    """
    scores, errors = np.empty((2, X.shape[0], *W.shape[1:]))
    count = HALF * _longest_row(X) + 3

    def sums(begin: int, end: int) -> _Sums:
        part = _sums(X, begin, end, W, beta, centre, scores, errors)
        errors[begin:end] = _errors(count, errors[begin:end])
        return part

    parts = RowsInMemory(X).map(sums)
    value, lost, size = np.zeros((3, X.shape[1], *beta.shape[1:]))
    for part in parts:
        value, rounded = _added(value, part.value)
        lost += part.lost + rounded
        size += part.size
    longest = HALF * max(part.longest for part in parts) + 5
    return Bounded(scores, errors), Combination(value + lost, _errors(longest, size), size)


class _Sums(NamedTuple):
    """Σ βx of a block of rows with what its additions rounded off, and Σ |β||x|."""

    value: Floats
    lost: Floats
    size: Floats
    longest: int  # sum of products that was not compensated for


def _sums(
    X: Any, begin: int, end: int, W: Floats, beta: Floats, centre: Floats, scores: Floats,
    sizes: Floats,
) -> _Sums:  # fmt: skip
    """Return the sums of a block; set its scores, and Σ |w||x| of each row."""
    value, lost, size = np.zeros((3, X.shape[1], *beta.shape[1:]))
    start, longest, shifted = begin, 0, bool(centre.any())
    for block in blocks(X, BLOCK_SIZE // _ROWS, begin, end):
        rows = block - centre if shifted else block
        here = slice(start, start + block.shape[0])
        positive, part = abs(rows), beta[here]
        scores[here] = rows @ W
        sizes[here] = positive @ np.abs(W)
        value, rounded = _added(value, rows.T @ part)
        lost += rounded
        size += positive.T @ np.abs(part)
        start, longest = start + block.shape[0], max(longest, block.shape[0])
    return _Sums(value, lost, size, longest)


def _added(value: Floats, more: Floats) -> tuple[Floats, Floats]:
    """Return the sum of both, and what this addition rounded off."""
    total = value + more
    shown = total - value
    return total, (value - (total - shown)) + (more - shown)


def _errors(count: float, sizes: Floats) -> Floats:
    """Return the errors that sums of ``count`` products of these sizes may have."""
    return np.where(sizes > 0, count * EPS * sizes + _TINY, 0.0)


def _longest_row(X: Any) -> int:
    """Return of how many products a score is the sum, at most."""
    if sp.issparse(X):
        return int(np.diff(X.indptr).max(initial=0))
    return int(X.shape[1])
