"""The kernel whose values are given as a matrix."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.prepared import FloatArray, Index, PreparedRows, Source, as_matrix


class _Table:
    """Some rows of a matrix of kernel values, taken only when a tile asks for them."""

    def __init__(self, values: Any, numbers: npt.NDArray[np.intp]) -> None:
        self.values, self.numbers = values, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Index) -> "_Table":
        return _Table(self.values, self.numbers[index])


class Precomputed(Kernel):
    """A kernel whose matrix is given instead of rows.

    For training, X is the square matrix of K between training rows; for prediction it has one row
    for each new row and one column for each training row. A row remembers its own number, so any
    selection of rows is compared with the right columns.

    Examples
    --------
    >>> from maxmargin.kernels import Linear, Precomputed
    >>> K = Linear().gram([[1.0], [2.0], [3.0]])
    >>> kernel = Precomputed()
    >>> train = kernel.prepare(K)
    >>> kernel.block(train[1:], train[[0, 2]])
    array([[2., 6.],
           [3., 9.]])
    >>> kernel.block(kernel.prepare([[10.0, 20.0, 30.0]]), train[[2, 0]])
    array([[30., 10.]])
    """

    takes_gram = True

    def gram(self, A: Any, B: Any = None) -> FloatArray:
        """Return the columns of A that belong to the rows of B (of A itself by default).

        Without B, A must be square and symmetric, up to rounding which is then removed.
        """
        if B is None:
            K = as_matrix(Source(A).rows)
            _check_square(K)
            if not is_symmetric(K):
                raise ValueError(
                    f"Precomputed: the matrix is not symmetric (by {asymmetry(K):.2g} of its "
                    "largest value); check_kernel(K) says more, and its repair() makes it symmetric"
                )
        return super().gram(A, B)

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Keep the matrix and the numbers of its rows."""
        return PreparedRows(source, _Table(as_matrix(source.rows), np.arange(source.shape[0])))

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Copy a block of the matrix."""
        left, right = a.parts[0], b.parts[0]
        _check_square(right.values)
        block = left.values[_span(left.numbers)][:, _span(right.numbers)]
        out[...] = block if isinstance(block, np.ndarray) else block.toarray()

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Return the diagonal of the matrix."""
        table = a.parts[0]
        _check_square(table.values)
        return np.array(table.values.diagonal()[table.numbers])

    def rounding(self, a: PreparedRows) -> Floats:
        """Return the asymmetry of the matrix given."""
        K, numbers = a.parts[0].values, a.parts[0].numbers
        if K.shape[0] != K.shape[1]:
            return np.zeros(len(a))
        worst = abs(K - K.T).max(axis=1)
        worst = np.asarray(worst.todense() if sp.issparse(K) else worst).ravel()
        lengths = np.sqrt(np.maximum(K.diagonal().astype(np.float64), 0.0))
        least = float(np.finfo(np.float64).eps) * lengths * lengths[lengths > 0].min(initial=1.0)
        off = np.divide(worst, least, out=np.where(worst > 0, np.inf, 0.0), where=least > 0)
        return np.asarray(off[numbers], np.float64)


def asymmetry(K: Any) -> float:
    """Return max |K − Kᵀ| / max |K|."""
    size = float(abs(K).max())
    return float(abs(K - K.T).max()) / size if size else 0.0


def is_symmetric(K: Any) -> bool:
    """Return whether the asymmetry is rounding: at most √ε of the number type."""
    return asymmetry(K) <= float(np.sqrt(np.finfo(K.dtype).eps))


def _span(numbers: npt.NDArray[np.intp]) -> Index:
    """Return consecutive numbers as a slice, which needs no copy."""
    if len(numbers) and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers


def _check_square(K: Any) -> None:
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            "Precomputed: the rows that give the columns must be prepared from the square matrix "
            f"of training rows, got shape {K.shape}"
        )
