"""Pieces of rows, dense or CSR: views of some of them, and several one after the other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.rows.blocks import view_csr_rows


def view_rows(X: Any, begin: int, end: int) -> Any:
    """Return some rows without copying them."""
    end = min(end, X.shape[0])
    return view_csr_rows(X, slice(begin, end)) if sp.issparse(X) else X[begin:end]


def narrow(X: Any) -> Any:
    """Return sparse rows with indices of 32 bits if they are enough, and an array as it is."""
    if sp.issparse(X) and max(X.nnz, X.shape[1]) < np.iinfo(np.int32).max:
        X.indices = X.indices.astype(np.int32, copy=False)
        X.indptr = X.indptr.astype(np.int32, copy=False)
    return X


def bytes_of(X: Any) -> int:
    """Return how many bytes rows take."""
    arrays = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return sum(int(each.nbytes) for each in arrays)


def stack_rows(pieces: Iterator[Any], shape: tuple[int, int], dtype: Any, most: int) -> Any:
    """Return rows one after the other, taking one piece at a time.

    ``most``: CSR rows have at most so many numbers.
    """
    first = next(pieces)
    if sp.issparse(first):
        return _stack_sparse(first, pieces, shape, dtype, most)
    X = np.empty(shape, dtype=dtype)
    X[: len(first)], at = first, len(first)
    for piece in pieces:
        X[at : at + len(piece)] = piece
        at += len(piece)
    return X


def _stack_sparse(
    piece: Any, pieces: Iterator[Any], shape: tuple[int, int], dtype: Any, most: int
) -> Any:
    index = np.int32 if max(most, shape[1]) < np.iinfo(np.int32).max else np.int64
    data, indices = np.empty(most, dtype=dtype), np.empty(most, dtype=index)
    indptr, at, row = np.zeros(shape[0] + 1, dtype=index), 0, 0
    X = type(piece)(shape, dtype=dtype)
    while piece is not None:
        numbers, rows = piece.nnz, piece.shape[0]
        data[at : at + numbers], indices[at : at + numbers] = piece.data, piece.indices
        indptr[row + 1 : row + rows + 1] = piece.indptr[1:] + at
        at, row = at + numbers, row + rows
        piece = next(pieces, None)
    X.data, X.indices, X.indptr = data[:at], indices[:at], indptr
    return X
