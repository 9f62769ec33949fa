"""Rows in blocks: every pass over rows is a map over these, and cannot tell where they live.

Rows are cut into leaves by the shape of the data alone. A step works through one leaf at a time,
and what it returns is merged in a fixed binary tree over the leaves. So sums are the same to the
last bit whatever the number of threads, blocks, files, partitions or workers.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Loss
from maxmargin.runtime import clock
from maxmargin.runtime.threads import share_work, usual_threads

_FEW_LEAVES = 8
_FEW_NUMBERS = 1 << 16  # in a leaf if there are few, at least …
_LEAF_NUMBERS = 1 << 21  # … and if there are many
_LEAF_ROWS = 8  # at least: passes that add rows up do so in a vector for each leaf …
_LEAF_SQUARES = 2  # … or in a square matrix, of columns up to
_MOST_SQUARED = 2000
_WORTH_A_THREAD = 1 << 19  # numbers read in a pass


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows as a step sees them: rows begin … end of arrays that may hold more."""

    X: Any  # C-ordered array or CSR; None in passes that read no rows
    rows: Any  # the same for compiled loops
    begin: int
    end: int
    first: int  # the number of row ``begin`` among all rows
    given_loss: Any  # Loss, or what makes it when a step asks for it; None if there is none
    vectors: dict[str, Any]  # numbers of rows (scores, duals) by name, indexed begin … end too

    @property
    def loss(self) -> Any:
        """The losses of rows, indexed begin … end."""
        return self.given_loss() if callable(self.given_loss) else self.given_loss

    def __getitem__(self, name: str) -> Any:
        """Return the numbers of rows that have this name."""
        return self.vectors[name]


Step = Callable[..., Any]  # (block, *args) -> sums; a function of a module, so that it can travel
Merge = Callable[[Any, Any], Any]


def add(one: Any, other: Any) -> Any:
    """Return the sum of what two neighbouring leaves gave: of tuples, item by item."""
    if one is None:
        return None
    if isinstance(one, tuple):
        both = (add(a, b) for a, b in zip(one, other, strict=True))
        return type(one)(*both) if hasattr(one, "_fields") else tuple(both)
    if isinstance(one, np.ndarray):
        one += other
        return one
    return one + other


def join(one: Any, other: Any) -> Any:
    """Return what two neighbouring leaves gave, one after the other."""
    return one + other  # lists


class Blocks(Protocol):
    """Rows, and numbers that belong to rows and stay beside them."""

    n: int
    d: int
    numbers: float  # that the rows are made of
    sparse: bool

    def map(
        self,
        step: Step,
        *args: Any,
        writes: tuple[str, ...] = (),
        reads_rows: bool = True,
        merge: Merge = add,
        numbers: float | None = None,
    ) -> Any:
        """Return what a step gives for all leaves, merged in their order.

        Parameters
        ----------
        step : callable
            Called with a Block and the arguments.
        args :
            What all leaves are given: weights, a step length.
        writes : tuple of str
            Vectors that the step sets or changes; new ones are made for it.
        reads_rows : bool
            Whether it needs the rows, or their numbers alone.
        merge : callable
            How what two neighbouring leaves (or runs of them) gave becomes one.
        numbers : float or None
            How many numbers the pass reads, if not those of the rows.
        """
        ...

    def fold(self, step: Step, state: Any, *args: Any, writes: tuple[str, ...] = ()) -> Any:
        """Return what becomes of a state as a step changes it, leaf after leaf."""
        ...

    def first_row(self) -> Floats:
        """Return the first row, in float64."""
        ...

    def renew(self, *names: str) -> None:
        """Let the next step that writes these vectors write to new ones: the old ones are kept."""
        ...

    def vector(self, name: str) -> Any:
        """Return a vector as it is now: an array if rows are in memory, else a handle."""
        ...

    def put(self, name: str, vector: Any) -> None:
        """Set a vector: to an array of all rows, or to what ``vector`` returned."""
        ...


def cut_leaves(n: int, d: int, numbers: float) -> Ints:
    """Return the edges of leaves: n rows of d columns, made of so many numbers, cut evenly."""
    least = max(_FEW_NUMBERS, _LEAF_ROWS * d)
    usual = max(_LEAF_NUMBERS, _LEAF_ROWS * d, _LEAF_SQUARES * min(d, _MOST_SQUARED) ** 2)
    count = max(int(np.clip(numbers // least, 1, _FEW_LEAVES)), int(numbers // usual))
    return np.linspace(0, n, max(1, min(count, n)) + 1).astype(np.int64)


class Tree:
    """Merges what leaves give, in whatever order it comes, as a fixed tree has it.

    Neighbouring runs of 2ᵏ leaves are merged into one of 2ᵏ⁺¹; at the end what is left is merged
    from the right. Runs of 2ᵏ leaves that were merged elsewhere may be given instead of leaves.
    """

    def __init__(self, merge: Merge) -> None:
        self.merge = merge
        self.lock = threading.Lock()
        self.waiting: dict[int, Any] = {}
        self.next = 0
        self.runs: list[tuple[int, Any]] = []  # level, merged

    def put(self, number: int, found: Any) -> None:
        """Take what the leaf with this number gave."""
        with self.lock:
            self.waiting[number] = found
            while self.next in self.waiting:
                level, found = 0, self.waiting.pop(self.next)
                while self.runs and self.runs[-1][0] == level:
                    found, level = self.merge(self.runs.pop()[1], found), level + 1
                self.runs.append((level, found))
                self.next += 1

    def result(self) -> Any:
        """Return all merged; None if there was nothing."""
        found = self.runs.pop()[1] if self.runs else None
        while self.runs:
            found = self.merge(self.runs.pop()[1], found)
        return found


class RowsInMemory:
    """Rows of an array or a CSR matrix. What belongs to a row is in arrays of all rows."""

    def __init__(self, X: Any, loss: Loss | None = None, threads: int | None = None) -> None:
        self.X, self.loss = X, loss
        self.n, self.d = int(X.shape[0]), int(X.shape[1]) if X.ndim == 2 else 1
        self.sparse = bool(sp.issparse(X))
        self.numbers = float(X.nnz if self.sparse else X.size)
        self.rows = loops.rows.rows(X) if X.ndim == 2 else None
        self.leaves = list(pairwise(cut_leaves(self.n, self.d, self.numbers).tolist()))
        self.vectors: dict[str, Any] = {}
        self.threads = threads

    def map(
        self,
        step: Step,
        *args: Any,
        writes: tuple[str, ...] = (),
        reads_rows: bool = True,
        merge: Merge = add,
        numbers: float | None = None,
    ) -> Any:
        """Return what a step gives for all leaves, merged in their order."""
        del reads_rows
        self._make(writes)
        if len(self.leaves) == 1:  # sharing out the work would take longer than a small pass
            clock.check()
            return step(self._block(0), *args)
        tree = Tree(merge)

        def one(leaf: int) -> None:
            tree.put(leaf, step(self._block(leaf), *args))

        few = (self.numbers if numbers is None else numbers) < _WORTH_A_THREAD
        threads = 1 if few else min(self.threads or usual_threads(), len(self.leaves))
        share_work(one, deque(range(len(self.leaves))), threads)
        return tree.result()

    def fold(self, step: Step, state: Any, *args: Any, writes: tuple[str, ...] = ()) -> Any:
        """Return what becomes of a state as a step changes it, leaf after leaf."""
        self._make(writes)
        for leaf in range(len(self.leaves)):
            state = step(self._block(leaf), state, *args)
        return state

    def _block(self, leaf: int) -> Block:
        begin, end = self.leaves[leaf]
        return Block(self.X, self.rows, begin, end, begin, self.loss, self.vectors)

    def first_row(self) -> Floats:
        """Return the first row, in float64."""
        return np.asarray(self.X[0], dtype=np.float64)

    def renew(self, *names: str) -> None:
        """Let the next step that writes these vectors write to new ones."""
        for name in names:
            self.vectors.pop(name, None)

    def vector(self, name: str) -> Floats:
        """Return a vector as it is now."""
        return np.asarray(self.vectors[name])

    def put(self, name: str, vector: Any) -> None:
        """Set a vector."""
        self.vectors[name] = vector

    def _make(self, names: tuple[str, ...]) -> None:
        for name in names:
            if name not in self.vectors:
                self.vectors[name] = np.empty(self.n)


# ------------------------------------------------------------------- pieces of rows


def view_rows(X: Any, begin: int, end: int) -> Any:
    """Return some rows of an array or a CSR matrix without copying them."""
    end = min(end, X.shape[0])
    if not sp.issparse(X):
        return X[begin:end]
    # X[begin:end] would copy, and so does the constructor when given less than half of an array.
    first, last = X.indptr[begin], X.indptr[end]
    view = type(X)((end - begin, X.shape[1]), dtype=X.dtype)
    view.data, view.indices = X.data[first:last], X.indices[first:last]
    view.indptr = X.indptr[begin : end + 1] - first
    return view


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


# ------------------------------------------------------------------- chunks for users


def chunks(X: Any, y: Any, rows: int = 1024) -> Iterator[tuple[Any, Any]]:
    """Iterate over consecutive rows of X and y as views.

    Parameters
    ----------
    X : array of shape (n, d), or CSR array or matrix
        The rows.
    y : array of shape (n,)
        Their labels.
    rows : int, default=1024
        Rows in a chunk, at least 1; the last chunk may be shorter.

    Returns
    -------
    iterator of (X, y)
        Views: changing a chunk's values changes the original.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.data import chunks
    >>> X, y = np.arange(10.0).reshape(5, 2), np.array([1, -1, 1, 1, -1])
    >>> [(part.shape, labels.tolist()) for part, labels in chunks(X, y, rows=3)]
    [((3, 2), [1, -1, 1]), ((2, 2), [1, -1])]
    """
    if rows < 1:
        raise ValueError(f"rows={rows}: a chunk needs at least one row")
    csr = sp.issparse(X) and X.format == "csr"
    if not csr and not isinstance(X, np.ndarray):
        raise TypeError(
            f"X is a {type(X).__name__}; chunks are views of numpy arrays and CSR matrices: "
            "convert it first (numpy.asarray(X), or X.tocsr())"
        )
    n = X.shape[0]
    if n != len(y):
        raise ValueError(f"X has {n} rows but y has {len(y)} labels")
    starts = range(0, n, rows)
    return ((view_rows(X, at, at + rows), y[at : at + rows]) for at in starts)
