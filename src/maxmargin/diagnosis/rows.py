"""Equal rows: found by hashing, then compared, so that nothing rests on the hash."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_BLOCK = 1 << 22  # numbers hashed at a time


def equal_rows(X: Any) -> Ints:
    """Return a number for each row, the same for equal rows and for no others.

    Examples
    --------
    >>> equal_rows(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0]])).tolist()
    [0, 1, 0, 1]
    """
    if X.shape[1] == 0:
        return np.zeros(X.shape[0], dtype=np.int64)
    hashes = _sparse_hashes(X) if sp.issparse(X) else _dense_hashes(X)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    firsts = first[group]
    suspects = np.flatnonzero(firsts != np.arange(len(firsts)))
    if not _same(X, suspects, firsts[suspects]).all():
        return _numbered(_exactly(X))
    return _numbered(firsts)


def _numbered(firsts: Ints) -> Ints:
    return np.asarray(np.unique(firsts, return_inverse=True)[1], dtype=np.int64)


def _mixed(words: Words) -> Words:
    """Scramble 64-bit words, so that values which differ in few bits differ in many."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _bits(values: Any) -> Words:
    # Adding 0.0 turns −0.0, which equals 0.0, into it.
    return (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)


def _column_keys(d: int) -> Words:
    return _mixed(np.arange(1, d + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))


def _dense_hashes(X: Any) -> Words:
    keys = _column_keys(X.shape[1])
    step = max(1, _BLOCK // X.shape[1])
    parts = [
        _mixed(_bits(X[i : i + step]) ^ keys).sum(axis=1, dtype=np.uint64)
        for i in range(0, X.shape[0], step)
    ]
    return np.concatenate(parts)


def _sparse_hashes(X: Any) -> Words:
    words = _mixed(_bits(X.data) ^ _column_keys(X.shape[1])[X.indices])
    words[X.data == 0] = 0
    sums = np.zeros(len(words) + 1, dtype=np.uint64)
    np.cumsum(words, out=sums[1:])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _same(X: Any, some: Ints, others: Ints) -> npt.NDArray[np.bool_]:
    step = max(1, _BLOCK // X.shape[1]) if not sp.issparse(X) else 100_000
    parts = [np.zeros(0, dtype=bool)]
    for i in range(0, len(some), step):
        here, there = X[some[i : i + step]], X[others[i : i + step]]
        if sp.issparse(X):
            unequal = abs(here - there).sum(axis=1)
            parts.append(np.asarray(unequal).ravel() == 0)
        else:
            parts.append((here == there).all(axis=1))
    return np.concatenate(parts)


def _exactly(X: Any) -> Ints:
    """Return the first of its equals for each row, without hashing."""
    seen: dict[bytes, int] = {}
    firsts = np.empty(X.shape[0], dtype=np.int64)
    for i in range(X.shape[0]):
        row = X[[i]].toarray() if sp.issparse(X) else X[[i]]
        firsts[i] = seen.setdefault(_bits(row).tobytes(), i)
    return firsts
