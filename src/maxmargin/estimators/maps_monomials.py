"""All monomials of rows, level by level: those of k factors from those of k − 1.

In the order of ``itertools.combinations_with_replacement``, those whose first factor is column j or
a later one are the last of their level. So a level is, for each j, column j times such a tail.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def count(d: int, degree: int, lower: bool) -> int:
    """Return how many monomials of d columns have ``degree`` factors, or with ``lower``, up to."""
    return math.comb(d + degree, degree) if lower else math.comb(d + degree - 1, degree)


class Monomials:
    """The monomials of d columns with exactly, or up to, so many factors."""

    def __init__(self, d: int, degree: int, lower: bool) -> None:
        self.d, self.degree, self.lower = d, degree, lower

    def _tails(self, factors: int) -> Ints:
        """Return where, among monomials of so many factors, those begin that start with j or later.

        Of the d + 1 numbers the last is how many there are.
        """
        total = count(self.d, factors, False)
        later = [math.comb(self.d - j + factors - 1, factors) for j in range(self.d)]
        return np.array([total - rest for rest in later] + [total], dtype=np.int64)

    def powers(self) -> Ints:
        """Return the columns in each product, −1 for none, in the order of the features."""
        level = np.arange(self.d)[:, None]
        levels = [np.zeros((1, 0), dtype=np.int64), level]
        for k in range(2, self.degree + 1):
            tails = self._tails(k - 1)
            parts = [
                np.insert(level[tails[j] :], 0, j, axis=1) for j in range(self.d)
            ]  # column j in front of what starts with j or later
            level = np.vstack(parts)
            levels.append(level)
        chosen = levels if self.lower else levels[-1:]
        padded = [
            np.pad(part, ((0, 0), (0, self.degree - part.shape[1])), constant_values=-1)
            for part in chosen
        ]
        return np.vstack(padded)

    def fill(self, X: Any, out: Any) -> None:
        """Write the monomials of dense rows."""
        levels = self._places(out)
        levels[0][...] = 1.0
        levels[1][...] = X
        for k in range(2, self.degree + 1):
            tails, starts = self._tails(k - 1), self._tails(k)
            for j, (start, stop) in enumerate(pairwise(starts.tolist())):
                np.multiply(X[:, j : j + 1], levels[k - 1][:, tails[j] :],
                            out=levels[k][:, start:stop])  # fmt: skip

    def _places(self, out: Any) -> list[Any]:
        """Return where each level goes: into the answer, or where it is only needed on the way."""
        sizes = [count(self.d, k, False) for k in range(self.degree + 1)]
        if not self.lower:
            own = [np.empty((len(out), size), out.dtype) for size in sizes[:-1]]
            return [*own, out]
        ends = np.cumsum([0, *sizes])
        return [out[:, a:b] for a, b in pairwise(ends.tolist())]

    def sparse(self, X: Any) -> Any:
        """Return the monomials of CSR rows, as a matrix of the same kind."""
        n, columns = X.shape[0], X.tocsc()
        one = type(X)((np.ones(n, X.dtype), np.zeros(n, np.int64), np.arange(n + 1)), shape=(n, 1))
        levels = [one, X]
        for k in range(2, self.degree + 1):
            levels.append(self._next(X, columns, levels[-1], k))
        if not self.lower:
            return levels[-1]
        shifts = np.cumsum([0, *(level.shape[1] for level in levels)])
        return _assembled(
            X,
            [_entries(level, shift) for level, shift in zip(levels, shifts[:-1], strict=True)],
            int(shifts[-1]),
        )

    def _next(self, X: Any, columns: Any, level: Any, k: int) -> Any:
        """Return the monomials of k factors, looking only at rows where column j has an entry."""
        tails, starts = self._tails(k - 1), self._tails(k)
        parts = []
        for j in np.flatnonzero(np.diff(columns.indptr)).tolist():
            entries = slice(columns.indptr[j], columns.indptr[j + 1])
            rows, values = columns.indices[entries], columns.data[entries]
            tail = level[rows]
            at, column, data = _entries(tail, 0)
            used = column >= tails[j]
            at = at[used]
            place = column[used] - tails[j] + starts[j]
            parts.append((rows[at], place, data[used] * values[at]))
        return _assembled(X, parts, int(starts[-1]))


def _entries(matrix: Any, shift: int) -> tuple[Ints, Ints, Any]:
    """Return rows, columns and values of the entries of a CSR matrix."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return rows, matrix.indices.astype(np.int64) + shift, matrix.data


def _assembled(X: Any, parts: list[tuple[Ints, Ints, Any]], width: int) -> Any:
    """Return a CSR matrix of entries, each at a place of its own."""
    shape = (X.shape[0], width)
    if not parts:
        return type(X)(shape, dtype=X.dtype)
    rows, columns, data = (np.concatenate(piece) for piece in zip(*parts, strict=True))
    matrix = type(X)((data.astype(X.dtype, copy=False), (rows, columns)), shape=shape)
    matrix.sort_indices()
    return matrix
