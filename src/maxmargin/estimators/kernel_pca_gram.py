"""The centred Gram matrix K̃ = HKH, H = I − 11ᵀ/n, as a map of columns.

It is kept where it fits into the memory allowed; else its tiles are computed for each product and
used while they are in cache. H is never applied to the matrix, only to the columns.
"""

from collections import deque
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg

from maxmargin import clock
from maxmargin._typing import Floats
from maxmargin.kernels import Kernel, Precomputed, PreparedRows
from maxmargin.kernels.blas import one_blas_thread, usual_threads
from maxmargin.kernels.tiles import SymmetricProduct, share_work

_PANEL = 2048  # columns whose products are summed at a time: float32 keeps its digits
_SHARES = 8  # of a given matrix, whatever the number of threads: BLAS rounds by the shape
_PROBE = 256  # rows on which the rounding of float32 is measured


class CentredGram:
    """HKH of a kernel on prepared rows.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all its parameters.
    prepared : PreparedRows
        The rows, in the type to compute in.
    memory : int
        Bytes that the matrix may take; if it needs more it is computed anew for each product.
    threads : int, optional
        As in ``Kernel.block``.
    """

    def __init__(
        self, kernel: Kernel, prepared: PreparedRows, memory: int, threads: int | None
    ) -> None:
        self.kernel, self.prepared, self.threads = kernel, prepared, threads
        self.given = isinstance(kernel, Precomputed)
        self.kept = (
            self.given or SymmetricProduct.stored_bytes(len(prepared), prepared.dtype) <= memory
        )
        self._half = SymmetricProduct(kernel, prepared, threads, keep=self.kept)
        self.eps = float(np.finfo(prepared.dtype).eps)  # of the kernel values
        self._means: Floats | None = None

    def __len__(self) -> int:
        return len(self.prepared)

    @cached_property
    def matrix(self) -> Any:
        """K itself, not centred."""
        if self.given:
            return self.prepared.parts[0].values
        return self.kernel.block(self.prepared, self.prepared, threads=self.threads)

    def times(self, V: Floats) -> Floats:
        """Return HKH @ V."""
        V = V - V.mean(axis=0)
        if self._means is not None:
            W = self._product(V)
        else:  # the means of K are one more column
            W = self._product(np.column_stack([V, np.ones(len(V))]))
            self._means, W = W[:, -1] / len(V), W[:, :-1]
        return np.asarray(W - W.mean(axis=0))

    def _product(self, V: Floats) -> Floats:
        return self._given_product(V) if self.given else self._half.dot(V)

    def _given_product(self, V: Floats) -> Floats:
        K, threads = self.matrix, self.threads or usual_threads()
        typed = np.ascontiguousarray(V.T, K.dtype)
        out = np.zeros((V.shape[1], len(V)))

        def rows(ends: tuple[int, int]) -> None:
            begin, end = ends
            for left in range(0, len(V), _PANEL):
                clock.check()
                # VᵀK, not KV: BLAS is faster with the few columns on the left.
                some = slice(left, left + _PANEL)
                out[:, begin:end] += typed[:, some] @ K[some, begin:end]

        cuts = np.linspace(0, len(V), _SHARES + 1).astype(int).tolist()
        with one_blas_thread():
            share_work(rows, deque(pairwise(cuts)), threads)
        return out.T

    @property
    def means(self) -> Floats:
        """The mean of each column of K."""
        if self._means is None:
            self._means = self._product(np.ones((len(self), 1)))[:, 0] / len(self)
        return self._means

    @cached_property
    def diagonal(self) -> Floats:
        """K(xᵢ, xᵢ)."""
        return self.kernel.diag(self.prepared).astype(np.float64)

    @property
    def trace(self) -> float:
        """The sum of all eigenvalues of HKH."""
        return float(self.diagonal.sum() - self.means.sum())

    @property
    def floor(self) -> float:
        """What rounding alone can make of an eigenvalue 0 of HKH."""
        return float(10 * self.eps * len(self) * max(np.abs(self.diagonal).max(), _TINY))

    def centred(self) -> Floats:
        """Return HKH as a matrix of its own, in float64."""
        K = np.array(self.matrix, dtype=np.float64, order="C")
        if self.given:
            K = (K + K.T) / 2
        self._means = K.mean(axis=0)
        mean = self._means.mean()
        for top in range(0, len(K), 256):  # both means while the rows are in cache
            rows = slice(top, top + 256)
            K[rows] -= self._means
            K[rows] -= (self._means[rows] - mean)[:, np.newaxis]
        return K


_TINY = float(np.finfo(np.float64).tiny)


def size(n: int, dtype: Any) -> int:
    """Return the bytes of a matrix of n×n."""
    return n * n * int(np.dtype(dtype).itemsize)


def rounding(kernel: Kernel, single: PreparedRows, exact: PreparedRows) -> float:
    """Return ‖error‖/‖HKH‖ of tiles in float32, on some of the rows."""
    rows = np.linspace(0, len(exact) - 1, min(len(exact), _PROBE)).astype(int)
    K = kernel.block(exact[rows], exact[rows]).astype(np.float64)
    error = _both_ways(kernel.block(single[rows], single[rows]).astype(np.float64) - K)
    with one_blas_thread():
        largest = _norm(_both_ways(K))
        return _norm(error) / largest if largest > 0 else np.inf


def _both_ways(K: Floats) -> Floats:
    K = K - K.mean(axis=0)
    return np.asarray(K - K.mean(axis=1)[:, np.newaxis])


def _norm(K: Floats) -> float:
    return float(np.abs(scipy.linalg.eigvalsh((K + K.T) / 2)).max())
