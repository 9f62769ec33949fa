"""Sums in float64, each with a bound on its error: what is proved then holds in exact arithmetic.

Every operation may be off by half of ε, relatively. The bounds here count a whole ε for each of
them, or for long sums a little more than half: the rest covers products of errors and the rounding
of the bounds themselves.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.loops.records import read_only
from maxmargin.rows.blocks import Block, Blocks, RowsInMemory

EPS = float(np.finfo(np.float64).eps)
HALF = 0.51  # of an ε for each product: what sums of them are off by, in any order of summation
_TINY = 1e-300  # covers what underflow may lose
_SPLIT = 2.0**27 + 1.0  # cuts a float64 into two halves
_ROWS = 1024  # with a dual: sums over more lose more digits, over fewer take longer
_NUMBERS = 1 << 24  # in a compiled call


class Bounded(NamedTuple):
    """A number, or an array, and what its error does not exceed."""

    value: Any
    error: Any


def total(values: Floats, errors: Any = ()) -> Bounded:
    """Return the sum of numbers, whose own errors may be given."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    found, size, own, count = loops.rounding.add_up(values, np.asarray(errors, np.float64))
    if not np.isfinite(size):
        return Bounded(float(values.sum()), np.inf)
    return Bounded(found, sum_error(found, size, own, len(values), count))


def sum_error(found: Any, size: Any, own: Any, terms: int, count: Any) -> Any:
    """Return what a sum of ``loops.rounding`` is off by at most, given Σ| | and own errors."""
    n = terms * EPS
    return EPS * abs(found) + n * n * size + own * (1 + n) + _TINY * count


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

    Weights are (d,) or (d, K), duals (n,) or (n, K), in K passes. If Σβ = 0 the sum is Σ βᵢxᵢ, too.
    """
    if W.ndim == 2:
        columns = [passed(X, *each, centre) for each in zip(W.T.copy(), beta.T.copy(), strict=True)]
        scores, implied = zip(*columns, strict=True)
        return Bounded(*map(np.column_stack, zip(*scores, strict=True))), Combination(
            *map(np.column_stack, zip(*implied, strict=True))
        )
    blocks = RowsInMemory(X)
    blocks.put("certified", beta)
    implied = passed_over(blocks, W, centre)
    return Bounded(*map(blocks.vector, SCORES)), implied


SCORES = "score", "score_error"  # the vectors that a pass over rows sets


def passed_over(blocks: Blocks, w: Floats, centre: Floats) -> Combination:
    """Return Σ βᵢ(xᵢ − centre) for the vector "certified" of duals, in one pass over the rows.

    The vectors "score" and "score_error" are set to (x − centre)·w and what that is off by.
    """
    weighed: Weighed = blocks.map(weigh, w, centre, writes=SCORES, merge=Weighed.plus)
    return weighed.combination


class Weighed(NamedTuple):
    """Sums over some rows: Σ βx with what its additions rounded off, and Σ |β||x|."""

    found: tuple[Any, Any]
    size: Floats
    longest: int  # sum of products that was not compensated for

    def plus(self, others: "Weighed") -> "Weighed":
        """Return the sums over the rows of both."""
        longest = max(self.longest, others.longest)
        return Weighed(added(self.found, others.found), self.size + others.size, longest)

    @property
    def combination(self) -> Combination:
        """Σ βx with its error."""
        count = HALF * self.longest + 5
        return Combination(sum(self.found), _errors(count, self.size), self.size)


def weigh(block: Block, w: Floats, centre: Floats) -> Weighed:
    """Set the scores of rows with their errors, and return the sums: a step of ``passed_over``."""
    begin, end, vectors = block.begin, block.end, block.vectors
    scores, errors = vectors["score"], vectors["score_error"]
    given = [read_only(each) for each in (centre, w, vectors["certified"])]
    products, per_row = _row_lengths(block.X, begin, end)
    step = max(1, int(_NUMBERS // max(per_row, 1.0)))
    found, longest, size = _NOTHING, 0, np.zeros(len(w))
    while begin < end or found is _NOTHING:
        more = np.zeros(len(w))
        begin, used = loops.rounding.weigh(
            block.rows, begin, min(end, begin + step), _ROWS, *given, scores, errors, more, size
        )
        found, longest = added(found, (more, 0.0)), max(longest, used)
    own = slice(block.begin, end)
    errors[own] = _errors(HALF * products + 3, errors[own])
    return Weighed(found, size, longest)


_NOTHING: tuple[Any, Any] = (0.0, 0.0)


def added(some: tuple[Any, Any], more: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the sum of two sums, and what was rounded off in all."""
    if some is _NOTHING:
        return more
    (value, lost), (other, gone) = some, more
    total = value + other
    shown = total - value
    return total, lost + gone + ((value - (total - shown)) + (other - shown))


def _errors(count: float, sizes: Floats) -> Floats:
    """Return the errors that sums of ``count`` products of these sizes may have."""
    return np.where(sizes > 0, count * EPS * sizes + _TINY, 0.0)


def _row_lengths(X: Any, begin: int, end: int) -> tuple[int, float]:
    """Return of how many products a score of these rows is the sum: at most, and on average."""
    if not sp.issparse(X):
        return int(X.shape[1]), float(X.shape[1])
    lengths = np.diff(X.indptr[begin : end + 1])
    return int(lengths.max(initial=0)), float(lengths.sum()) / max(end - begin, 1)
