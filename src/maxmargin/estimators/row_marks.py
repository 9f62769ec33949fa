"""A number for the content of each row: equal rows have equal ones, whatever their place."""

import pickle
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin._typing import Ints

Marks = npt.NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BLOCK = 1 << 20  # numbers mixed at a time


def mark_rows(X: Any) -> Marks:
    """Return a hash of 64 bits for each row of numbers, dense or sparse, or for each object.

    It is of the values in float64: zeros do not count, so that it does not matter how they are
    stored.
    """
    if sp.issparse(X):
        return _mark_sparse(X)
    X = np.asarray(X)
    if X.dtype.kind == "O":
        return np.array([_mark_object(each, i) for i, each in enumerate(X)], dtype=np.uint64)
    columns = _mix(np.arange(1, X.shape[1] + 1, dtype=np.uint64))
    step = max(1, _BLOCK // max(X.shape[1], 1))
    parts = [_mark_entries(X[i : i + step], columns).sum(axis=1, dtype=np.uint64)
             for i in range(0, len(X), step)]  # fmt: skip
    return _mix(np.concatenate([np.zeros(0, np.uint64), *parts]))


def mark_labelled(X: Any, labels: Ints) -> Marks:
    """Return a hash for each row with its label."""
    return _mix(mark_rows(X) ^ _mix(np.asarray(labels).astype(np.uint64)))


def pair_up(old: Marks, new: Marks) -> tuple[Ints, Ints]:
    """Return where equal marks are in the one and in the other.

    Of several, the first is paired with the first, the second with the second.
    """
    by_old, by_new = np.argsort(old, kind="stable"), np.argsort(new, kind="stable")
    old, new = old[by_old], new[by_new]
    nth = np.arange(len(new)) - np.searchsorted(new, new)  # of its equals
    at = np.searchsorted(old, new) + nth
    there = at < len(old)
    there[there] = old[at[there]] == new[there]
    return by_old[at[there]], by_new[there]


def _mark_sparse(X: Any) -> Marks:
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    entries = _mark_entries(X.data, _mix(X.indices.astype(np.uint64) + np.uint64(1)))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
    return _mix(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _mark_entries(values: Any, columns: Marks) -> Marks:
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    return np.where(np.asarray(values) == 0, np.uint64(0), _mix(bits ^ columns))


def _mix(bits: Marks) -> Marks:
    """Return bits that look random (the finalizer of SplitMix64)."""
    bits = bits + _GOLDEN
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return np.asarray(bits ^ (bits >> np.uint64(31)))


def _mark_object(item: Any, place: int) -> int:
    try:
        content = pickle.dumps(item)
    except Exception:  # what cannot be written down equals nothing else
        content = repr(place).encode()
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
