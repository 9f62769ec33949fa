"""Rows that are read in every pass, block by block, because memory does not hold all of them.

A block is a run of 2ᵏ leaves, put together from the parts of a source that cover its rows. While
threads work on one block, another thread reads the next. Leaves are those of the same rows in
memory, and are merged in the same tree, so results are the same to the last bit.

Of the memory that may be used, 32 MB are for a subsample that solvers begin with. Of the rest, a
quarter is for each of: the block that is worked on, the one that is read, parts on their way into
it, and numbers that belong to rows (scores, duals). What does not fit of the latter goes to scratch
files, which vanish with the process. If rows fit into half of the memory, they are kept after the
first pass.
"""

import copy
import ctypes
import mmap
import os
import shutil
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.errors import DataFileError
from maxmargin.loops.records import Loss
from maxmargin.rows.blocks import Block, Merge, Step, Tree, add, cut_leaves, view_csr_rows
from maxmargin.rows.checkpoint import SavedVectors
from maxmargin.rows.read_ahead import read_ahead
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.stored_files import map_numbers
from maxmargin.rows.survey import Survey
from maxmargin.runtime import clock
from maxmargin.runtime.threads import share_work, usual_threads
from maxmargin.validation.data import class_indices

LossRule = Callable[[Any, Any], Loss]  # (labels, weight) of some rows -> their losses

_SHARES = 4  # of the memory: two blocks, parts, vectors
_LEAST_BLOCKS = 2  # that memory must hold: then parts go through it and vectors go to files
_TAKEN_OUT = 1 << 25  # bytes of the memory, at most, for a subsample that is solved first
_OF_PHYSICAL = 8  # memory is by default the machine's divided by this
_BESIDE_A_ROW = 80  # bytes of a block: labels, weight, loss and a few vectors
_WORTH_A_THREAD = 1 << 19  # numbers read in a pass
_SPARE_DISK = 2.0  # times the space that a scratch file of rows takes must be free
_PAGE = mmap.ALLOCATIONGRANULARITY
_WRITTEN = 1 << 24  # bytes at once


class RowsOnDisk:
    """Rows of a source as Blocks: read in every pass, or kept if they fit.

    Vectors "labels" (int64 numbers of classes, or float64 targets) and "weight" (float64) exist
    from the start.

    Parameters
    ----------
    source : RowSource
        The rows; its ``options.memory`` is the bound in bytes, by default an eighth of what the
        machine has. A block is a leaf at least, and memory for less than two leaves is refused.
    survey : Survey
        What ``maxmargin.rows.survey.survey(source)`` found.
    regression : bool, default=False
        Whether y holds targets.
    threads : int or None
        That work on a block; None for as many as BLAS would use.
    """

    def __init__(
        self,
        source: Any,
        survey: Survey,
        *,
        regression: bool = False,
        threads: int | None = None,
    ) -> None:
        self._read = _ReadRows(source, survey, regression)
        self.n, self.d, self.numbers = survey.n, survey.d, float(survey.size)
        self.sparse, self.threads = survey.sparse, threads
        self.vectors: dict[str, VectorOnDisk] = {}
        self.rule: LossRule | None = None
        self.losses: dict[int, _CachedLoss] = {}

    # What is known of the rows.

    @property
    def source(self) -> Any:
        """The source of the rows."""
        return self._read.source

    @property
    def survey(self) -> Survey:
        """What is known of the rows."""
        return self._read.survey

    @property
    def bytes_read(self) -> int:
        """The bytes of all parts that were loaded so far."""
        return self._read.bytes_read

    @property
    def passes(self) -> int:
        """How often the rows were gone through, whether read or kept."""
        return self._read.passes

    @property
    def edges(self) -> Ints:
        """The first row of each block, and the number of rows."""
        return self._read.edges

    @property
    def block_bytes(self) -> int:
        """About how many bytes the largest block takes."""
        return self._read.block_bytes

    @property
    def keeps_rows(self) -> bool:
        """Whether rows stay in memory after the first pass."""
        return self._read.keeps

    # Passes.

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
        self._make(writes)
        tree = Tree(merge)

        def one(job: tuple[_OpenBlock, int]) -> None:
            run, leaf = job
            tree.put(leaf, step(run.leaf(leaf), *args))

        few = (self.numbers if numbers is None else numbers) < _WORTH_A_THREAD
        threads = 1 if few else self.threads or usual_threads()
        with closing(self._batches(reads_rows)) as batches:
            for runs in batches:
                todo = deque((run, leaf) for run in runs for leaf in run.leaves)
                share_work(one, todo, min(threads, len(todo)))
        if reads_rows and not self.keeps_rows:
            _give_back_memory()
        return tree.result()

    def fold(self, step: Step, state: Any, *args: Any, writes: tuple[str, ...] = ()) -> Any:
        """Return what becomes of a state as a step changes it, leaf after leaf."""
        self._make(writes)
        with closing(self._batches(reads_rows=True)) as batches:
            for runs in batches:
                for run in runs:
                    for leaf in run.leaves:
                        clock.check()
                        state = step(run.leaf(leaf), state, *args)
        return state

    def _batches(self, reads_rows: bool) -> Generator[list["_OpenBlock"]]:
        """Iterate over blocks that can be worked on at the same time."""
        read = self._read
        if reads_rows:
            read.count_pass()
        elif not read.labelled:
            read.fill_labels()
        if read.complete and (reads_rows or read.keeps):
            yield [self._run(number, X) for number, X in enumerate(read.kept)]
        elif reads_rows:
            runs = (self._run(number, X) for number, X in read.assembled())
            with read_ahead(runs) as ahead:
                for run in ahead:
                    yield [run]
        else:
            for number in range(len(read.edges) - 1):
                yield [self._run(number, None)]

    def _run(self, number: int, X: Any) -> "_OpenBlock":
        return _OpenBlock(self, self._read, number, X)

    # Losses.

    def with_loss(self, rule: LossRule) -> "RowsOnDisk":
        """Return the same rows with a loss and vectors of their own.

        Labels and weights are shared, and so is what is read and kept.
        """
        view = copy.copy(self)
        view.vectors, view.rule, view.losses = {}, rule, {}
        return view

    def loss_of(self, number: int, vectors: Mapping[str, Any]) -> Loss:
        """Return the losses of the rows of a block, which are kept if memory allows."""
        if number in self.losses:
            return self.losses[number].loss
        assert self.rule is not None
        loss = self.rule(vectors["labels"], vectors["weight"])
        taken = sum(np.asarray(each).nbytes for each in loss)
        if self._read.budget.take(taken, of=0.5):  # the other half is for what steps write
            self.losses[number] = _CachedLoss(loss)
            weakref.finalize(self.losses[number], self._read.budget.give_back, taken)
        return loss

    # Vectors.

    def first_row(self) -> Floats:
        """Return the first row, in float64."""
        return self.survey.first_row

    def renew(self, *names: str) -> None:
        """Let the next step that writes these vectors write to new ones: the old ones are kept."""
        for name in names:
            self.vectors.pop(name, None)

    def vector(self, name: str) -> "VectorOnDisk":
        """Return a handle of a vector as it is now."""
        if name in ("labels", "weight") and name not in self.vectors:
            return self._read.vector_of_all(name)
        return self.vectors[name]

    def put(self, name: str, vector: Any) -> None:
        """Set a vector: to an array of all rows, or to what ``vector`` returned."""
        if not isinstance(vector, VectorOnDisk):
            vector = VectorOnDisk.holding(np.asarray(vector), self._read.budget)
        if len(vector) != self.n:
            raise ValueError(f"{name} has {len(vector)} numbers, but there are {self.n} rows")
        self.vectors[name] = vector

    def _make(self, names: tuple[str, ...]) -> None:
        for name in names:
            if name not in self.vectors:
                self.vectors[name] = VectorOnDisk((self.n,), np.float64, self._read.budget)

    # Checkpoints.

    def save(
        self, folder: str | os.PathLike[str], names: tuple[str, ...], state: Any = None
    ) -> None:
        """Write vectors to a folder, a file for each block, with a state that belongs to them.

        The set before is kept until the new one is complete.
        """
        saved = SavedVectors.new(folder, names, self.edges.tolist())
        for begin, end in pairwise(self.edges.tolist()):
            clock.check()
            saved.write(begin, {name: self.vector(name).rows(begin, end) for name in names})
        saved.complete(state)
        saved.remove_others()

    def saved_state(self, folder: str | os.PathLike[str]) -> dict[str, Any] | None:
        """Return the state that ``save`` wrote last with its vectors; None if there is none."""
        found = SavedVectors.find(folder)
        return None if found is None else found.state()

    def restore(self, folder: str | os.PathLike[str]) -> None:
        """Set vectors to what ``save`` wrote last, whatever the blocks were then.

        Raises
        ------
        FileNotFoundError
            If the folder holds no complete set.
        DataFileError
            If a file is damaged, or the vectors are of other rows.
        """
        saved = SavedVectors.find(folder)
        if saved is None:
            raise FileNotFoundError(f"{folder} holds no vectors: nothing was saved there.")
        saved.check(self.n)
        vectors: dict[str, VectorOnDisk] = {}
        for begin, end in pairwise(self.edges.tolist()):
            clock.check()
            for name, values in saved.read(begin, end).items():
                if name not in vectors:
                    shape = (self.n, *values.shape[1:])
                    vectors[name] = VectorOnDisk(shape, values.dtype, self._read.budget)
                vectors[name].rows(begin, end)[...] = values
        self.vectors.update(vectors)

    # The end.

    def close(self) -> None:
        """Let go of rows and vectors; scratch files vanish."""
        self.vectors.clear()
        self.losses.clear()
        self._read.forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _CachedLoss:
    """The losses of a block: they count as long as this lives."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss


class _BlockVectors(dict[str, Any]):
    """The vectors of a block by name; labels and weights are made when a step asks for them."""

    def __init__(self, read: "_ReadRows", number: int) -> None:
        super().__init__()
        self.read, self.number = read, number

    def __missing__(self, name: str) -> Any:
        if name not in ("labels", "weight"):
            raise KeyError(name)
        found = self[name] = self.read.beside_rows(name, self.number)
        return found


class _OpenBlock:
    """A block with its leaves."""

    def __init__(self, rows: "RowsOnDisk", read: "_ReadRows", number: int, X: Any) -> None:
        self.blocks, self.number = rows, number
        self.X: Any
        self.rows: Any  # the same for compiled loops
        self.X, self.rows = X or (None, None)
        self.begin, end = read.edges[number : number + 2].tolist()
        self.vectors = _BlockVectors(read, number)
        for name, vector in rows.vectors.items():
            self.vectors[name] = vector.rows(self.begin, end)
        self.first = number * read.leaves_of_block  # the number of its first leaf
        edges = read.leaves[self.first : self.first + read.leaves_of_block + 1].tolist()
        self.ranges = list(pairwise(edges))

    @cached_property
    def loss(self) -> Loss:
        """The losses of its rows."""
        return self.blocks.loss_of(self.number, self.vectors)

    @property
    def leaves(self) -> range:
        """The numbers of its leaves."""
        return range(self.first, self.first + len(self.ranges))

    def leaf(self, number: int) -> Block:
        """Return the rows of a leaf as a step sees them."""
        begin, end = self.ranges[number - self.first]
        at, to = begin - self.begin, end - self.begin
        loss = None if self.blocks.rule is None else lambda: self.loss
        return Block(self.X, self.rows, at, to, begin, loss, self.vectors)


# ------------------------------------------------------------------- reading


class _ReadRows:
    """Blocks of rows from the parts of a source, with labels and weights. Views share it."""

    def __init__(self, source: RowSource, survey: Survey, regression: bool) -> None:
        if len(source) != len(survey.rows):
            raise ValueError(
                f"The survey knows {len(survey.rows)} parts, but the source has {len(source)}: it "
                "must be a survey of the same source."
            )
        self.source, self.survey, self.regression = source, survey, regression
        self.starts = np.concatenate([[0], np.cumsum(survey.rows)])  # of parts
        self.leaves = cut_leaves(survey.n, survey.d, float(survey.size))
        memory = source.options.memory
        self.memory = _default_memory() if memory is None else int(memory)
        sizes = self._leaf_bytes()
        self.leaves_of_block, self.block_bytes = _largest_run(sizes, self.memory)
        self.edges = np.append(self.leaves[: -1 : self.leaves_of_block], survey.n)
        self.keeps = sum(sizes) <= self.memory // 2
        self.kept: list[Any] = [None] * (len(self.edges) - 1)
        left = self.memory - _LEAST_BLOCKS * self.block_bytes
        self.budget = _Budget(min(self.memory // _SHARES, left), source.options.checkpoint)
        self.filled = survey.rows == 0  # parts whose labels are known
        self.labels: VectorOnDisk | None = None
        self.weight: VectorOnDisk | None = None
        self.expanded: dict[tuple[str, int], Any] = {}
        self.lock = threading.Lock()
        self.bytes_read = self.passes = 0
        slow = source.slow and not self.keeps
        self.spool = _Spool(source.options.checkpoint, survey) if slow else None

    @property
    def complete(self) -> bool:
        """Whether all rows are kept."""
        return all(X is not None for X in self.kept)

    @property
    def labelled(self) -> bool:
        """Whether all labels are known."""
        return bool(self.filled.all())

    def count_pass(self) -> None:
        """Remember that all rows are gone through."""
        with self.lock:
            self.passes += 1

    def forget(self) -> None:
        """Let go of all that is kept."""
        self.kept = [None] * len(self.kept)
        self.spool = None
        self.filled = self.survey.rows == 0
        self.labels = self.weight = None
        self.expanded = {}

    def _leaf_bytes(self) -> list[int]:
        """Return about how many bytes the rows of each leaf take, with what is beside them."""
        numbers = np.concatenate([[0], np.cumsum(self.survey.numbers)])
        edges = np.interp(self.leaves, self.starts, numbers)
        each = self.survey.dtype.itemsize + 4 * self.survey.sparse
        beside = _BESIDE_A_ROW + 12 * self.survey.sparse
        found = np.diff(edges) * each + np.diff(self.leaves) * beside
        return [int(size) for size in found]

    # Blocks.

    def assembled(self) -> Iterator[tuple[int, Any]]:
        """Iterate over the numbers of blocks and their rows, as X and for compiled loops."""
        last = _LastPart(self)
        for number in range(len(self.kept)):
            rows = self.kept[number]
            if rows is None:
                rows = self._assembled(number, last)
            yield number, rows
            del rows

    def _assembled(self, number: int, last: "_LastPart") -> Any:
        begin, end = self.edges[number : number + 2].tolist()
        X = None if self.spool is None else self.spool.read(number)
        if X is None:
            X = self._rows(begin, end, last)
            if self.spool is not None and not self.spool.write(number, X):
                self.spool = None
        found = X, loops.rows.rows(X)
        if self.keeps:
            self.kept[number] = found
        return found

    def _rows(self, begin: int, end: int, last: "_LastPart") -> Any:
        first = int(np.searchsorted(self.starts, begin, side="right")) - 1
        beyond = int(np.searchsorted(self.starts, end, side="left"))
        parts = [part for part in range(first, beyond) if self.survey.rows[part]]
        if (X := self.source.rows_between(begin, end)) is not None:
            for part in parts:  # reading one takes no time, but its labels are needed
                if not self.filled[part]:
                    self._fill(part, self.source.reload(part))
            with self.lock:
                self.bytes_read += X.nbytes
            return X
        cuts = [
            (part, max(begin - int(self.starts[part]), 0), end - int(self.starts[part]))
            for part in parts
        ]
        if len(cuts) == 1:
            part, low, high = cuts[0]
            return _narrow(_view(last.load(part).X, low, high))
        pieces = (_view(last.load(part).X, low, high) for part, low, high in cuts)
        shape, most = (end - begin, self.survey.d), int(self.survey.numbers[parts].sum())
        if self.survey.sparse:
            return _stack_sparse(pieces, shape, self.survey.dtype, most)
        return _stack(pieces, shape, self.survey.dtype)

    def load(self, part: int) -> Any:
        """Load a part, which must be as it was; its labels and weights are kept."""
        clock.check()
        found = self.source.reload(part)
        X, y, weight = found
        expected = int(self.survey.rows[part]), int(self.survey.numbers[part])
        now = X.shape[0], X.nnz if self.survey.sparse else X.size
        if now != expected:
            raise DataFileError(
                f"{self.source.describe(part)}: it has {now[0]} rows of {now[1]} numbers now, but "
                f"had {expected[0]} of {expected[1]} before: it was changed while it was being "
                "learnt from; fit again"
            )
        with self.lock:
            self.bytes_read += _bytes_of(X) + sum(
                each.nbytes for each in (y, weight) if each is not None
            )
        if not self.filled[part]:
            self._fill(part, found)
        return found

    # Labels and weights.

    def fill_labels(self) -> None:
        """Read what has not been read yet, for its labels."""
        if self.keeps:
            for _ in self.assembled():
                pass
        for part in np.flatnonzero(~self.filled).tolist():
            self.load(part)

    def _fill(self, part: int, found: Part) -> None:
        _, y, weight = found
        begin, end = self.starts[part : part + 2].tolist()
        n = self.survey.n
        with self.lock:
            if self.labels is None and y is not None:
                self.labels = VectorOnDisk((n,), self._label_type(), self.budget)
            if self.weight is None and weight is not None:
                self.weight = VectorOnDisk((n,), np.float64, self.budget)
        if self.labels is not None and y is not None:
            try:
                given = y if self.regression else class_indices(self.survey.classes, np.asarray(y))
            except ValueError as unknown:
                raise DataFileError(
                    f"{self.source.describe(part)}: {unknown} It was changed while it was being "
                    "learnt from; fit again"
                ) from unknown
            self.labels.rows(begin, end)[...] = given
        if self.weight is not None and weight is not None:
            self.weight.rows(begin, end)[...] = weight
        self.filled[part] = True

    def _label_type(self) -> Any:
        """Return in what numbers of classes are kept: steps see them as int64."""
        if self.regression:
            return np.float64
        return np.min_scalar_type(-max(len(self.survey.classes), 2))

    def beside_rows(self, name: str, number: int) -> Any:
        """Return the labels or the weights of a block."""
        found = self.expanded.get((name, number))
        if found is not None:
            return found
        begin, end = self.edges[number : number + 2].tolist()
        numbers = name == "labels" and not self.regression
        dtype = np.int64 if numbers else np.float64
        vector = self.labels if name == "labels" else self.weight
        if vector is not None:
            found = vector.rows(begin, end).astype(dtype, copy=False)
            if self.keeps:
                self.expanded[name, number] = found
            return found
        if (name, -1) not in self.expanded:  # one array serves all blocks
            longest = int(np.diff(self.edges).max())
            self.expanded[name, -1] = np.full(longest, name == "weight", dtype=dtype)
        return self.expanded[name, -1][: end - begin]

    def vector_of_all(self, name: str) -> "VectorOnDisk":
        """Return the labels or the weights of all rows."""
        if not self.labelled:
            self.fill_labels()
        dtype = self.beside_rows(name, 0).dtype
        found = VectorOnDisk((self.survey.n,), dtype, self.budget)
        for number, (begin, end) in enumerate(pairwise(self.edges.tolist())):
            found.rows(begin, end)[...] = self.beside_rows(name, number)
        return found


class _LastPart:
    """The part that was loaded last: two blocks may share it."""

    def __init__(self, read: _ReadRows) -> None:
        self.read = read
        self.number, self.part = -1, None

    def load(self, number: int) -> Any:
        """Return a part, which is loaded unless it is the last."""
        if number != self.number:
            self.number, self.part = -1, None  # not two at a time
            self.part = self.read.load(number)
            self.number = number
        return self.part


def _view(X: Any, begin: int, end: int) -> Any:
    """Return some rows without copying them."""
    end = min(end, X.shape[0])
    return view_csr_rows(X, slice(begin, end)) if sp.issparse(X) else X[begin:end]


def _narrow(X: Any) -> Any:
    """Return sparse rows with indices of 32 bits if they are enough, and an array as it is."""
    if sp.issparse(X) and max(X.nnz, X.shape[1]) < np.iinfo(np.int32).max:
        X.indices = X.indices.astype(np.int32, copy=False)
        X.indptr = X.indptr.astype(np.int32, copy=False)
    return X


def _stack(pieces: Iterator[Any], shape: tuple[int, int], dtype: Any) -> Any:
    """Return rows one after the other."""
    X, at = np.empty(shape, dtype=dtype), 0
    for piece in pieces:
        X[at : at + len(piece)] = piece
        at += len(piece)
    return X


def _stack_sparse(pieces: Iterator[Any], shape: tuple[int, int], dtype: Any, most: int) -> Any:
    """Return CSR rows one after the other, which have at most so many numbers."""
    small = max(most, shape[1]) < np.iinfo(np.int32).max
    index = np.int32 if small else np.int64
    data, indices = np.empty(most, dtype=dtype), np.empty(most, dtype=index)
    indptr = np.zeros(shape[0] + 1, dtype=index)
    at = row = 0
    kind: Any = sp.csr_array
    for piece in pieces:
        kind, numbers, rows = type(piece), piece.nnz, piece.shape[0]
        data[at : at + numbers], indices[at : at + numbers] = piece.data, piece.indices
        indptr[row + 1 : row + rows + 1] = piece.indptr[1:] + at
        at, row = at + numbers, row + rows
    X = kind(shape, dtype=dtype)
    X.data, X.indices, X.indptr = data[:at], indices[:at], indptr
    return X


def _bytes_of(X: Any) -> int:
    if sp.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)


def _largest_run(sizes: list[int], memory: int) -> tuple[int, int]:
    """Return how many leaves (a power of two) a block has, and how many bytes it takes then."""
    most = (memory - min(_TAKEN_OUT, memory // _SHARES)) // _SHARES
    if 2 * sum(sizes) <= memory:  # all are kept: but the first are worked on before the last come
        most = min(most, sum(sizes) // _SHARES)
    if _LEAST_BLOCKS * max(sizes) > memory:
        raise ValueError(
            f"memory={memory} bytes is too little: these rows are worked on in pieces of "
            f"{max(sizes)} bytes, and memory must hold {_LEAST_BLOCKS} of them. Set memory to "
            f"{_LEAST_BLOCKS * max(sizes)} or more."
        )
    run, largest = 1, max(sizes)
    while run < len(sizes):
        wider = max(sum(sizes[i : i + 2 * run]) for i in range(0, len(sizes), 2 * run))
        if wider > most:
            break
        run, largest = 2 * run, wider
    return run, largest


def _give_back_memory() -> None:
    """Let the system have what was freed; else the C library keeps about as much again."""
    trim = _find_trim()
    if trim is not None:
        trim(0)


@cache
def _find_trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim  # of glibc
    except (OSError, TypeError, AttributeError):
        return None


def _default_memory() -> int:
    """Return an eighth of the memory that this process can have."""
    limits = [_read_limit(path) for path in _CGROUP_LIMITS]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    known = [limit for limit in limits if limit and limit > 0]
    return min(known, default=8 << 30) // _OF_PHYSICAL


_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def _read_limit(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):  # there is none, or it says "max"
        return None


# ------------------------------------------------------------------- rows that were read


class _Spool:
    """Blocks in a scratch file: what takes long to read, or to transform, is read once."""

    def __init__(self, folder: Path | None, survey: Survey) -> None:
        self.folder, self.survey = folder, survey
        self.file: Any = None
        self.end = 0
        self.places: dict[int, list[tuple[int, Any, tuple[int, ...]]]] = {}

    def write(self, number: int, X: Any) -> bool:
        """Write a block; return False if there is no space for all of them."""
        if self.file is None and not self._open():
            return False
        arrays = [X.data, X.indices, X.indptr] if self.survey.sparse else [X]
        places = []
        try:
            for array in arrays:
                places.append((self.end, array.dtype, array.shape))
                self._append(np.ascontiguousarray(array))
        except OSError:  # the disk is full: parts are read again
            return False
        self.places[number] = places
        return True

    def _open(self) -> bool:
        each = self.survey.dtype.itemsize + 8 * self.survey.sparse
        needed = self.survey.size * each + 8 * self.survey.n * self.survey.sparse
        where = self.folder or Path(tempfile.gettempdir())
        where.mkdir(parents=True, exist_ok=True)  # a checkpoint may be the first one
        if shutil.disk_usage(where).free < _SPARE_DISK * needed:
            return False
        self.file = tempfile.TemporaryFile(buffering=0, dir=self.folder)  # noqa: SIM115
        weakref.finalize(self, self.file.close)
        return True

    def _append(self, array: npt.NDArray[Any]) -> None:
        view, at = memoryview(array.reshape(-1).view(np.uint8).data), self.end
        while len(view):
            written = os.pwrite(self.file.fileno(), view[:_WRITTEN], at)
            view, at = view[written:], at + written
        self.end = -(-at // _PAGE) * _PAGE  # so that arrays are aligned as others are

    def read(self, number: int) -> Any:
        """Return a block, which is mapped into memory; None if it was not written."""
        if number not in self.places:
            return None
        arrays = [self._mapped(*place) for place in self.places[number]]
        if not self.survey.sparse:
            return arrays[0]
        data, indices, indptr = arrays
        X = sp.csr_array((len(indptr) - 1, self.survey.d), dtype=data.dtype)
        X.data, X.indices, X.indptr = data, indices, indptr
        return X

    def _mapped(self, at: int, dtype: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        return map_numbers(self.file, dtype, shape, at, ahead=True)


# ------------------------------------------------------------------- vectors


class _Budget:
    """How many bytes of vectors are in memory, and where the others go."""

    def __init__(self, limit: int, folder: Path | None) -> None:
        self.limit, self.folder = limit, folder
        self.used = 0
        self.lock = threading.RLock()  # what is collected in the middle of it gives back, too

    def take(self, count: int, of: float = 1.0) -> bool:
        """Return whether so many bytes more are within a share of the limit: then they count."""
        with self.lock:
            fits = self.used + count <= self.limit * of
            self.used += count * fits
            return fits

    def give_back(self, count: int) -> None:
        """Count so many bytes less."""
        with self.lock:
            self.used -= count


class VectorOnDisk:
    """Numbers of all rows, in memory or in a scratch file: what ``RowsOnDisk.vector`` returns.

    The file has no name, so that it vanishes with the vector or the process, however that ends.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any, budget: _Budget) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._array: npt.NDArray[Any] | None = None
        self._file: Any = None
        self._lock = threading.Lock()
        size = int(np.prod(shape)) * self.dtype.itemsize
        if budget.take(size):
            self._array = np.empty(shape, dtype=self.dtype)
            weakref.finalize(self, budget.give_back, size)
        else:
            self._file = _scratch_file(budget.folder, size)
            weakref.finalize(self, self._file.close)

    @classmethod
    def holding(cls, array: npt.NDArray[Any], budget: _Budget) -> "VectorOnDisk":
        """Return a vector that is this array, or has its numbers if memory does not hold it."""
        made = cls(array.shape, array.dtype, budget)
        if made._array is not None:
            made._array = array
        else:
            step = max(1, (1 << 24) // max(1, array.nbytes // max(1, len(array))))
            for begin in range(0, len(array), step):
                end = min(begin + step, len(array))
                made.rows(begin, end)[...] = array[begin:end]
        return made

    def __len__(self) -> int:
        return self.shape[0]

    def rows(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Return the numbers of some rows: writing to them changes the vector."""
        if self._array is not None:
            return self._array[begin:end]
        if begin == end:
            return np.empty((0, *self.shape[1:]), dtype=self.dtype)
        each = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        with self._lock:  # the file has one position
            mapped = np.memmap(
                self._file, self.dtype, "r+", begin * each, (end - begin, *self.shape[1:])
            )
        return np.asarray(mapped)

    def whole(self) -> npt.NDArray[Any]:
        """Return the numbers of all rows as one array, which takes as much memory as they do."""
        return self._array if self._array is not None else self.rows(0, len(self)).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.whole(), dtype=dtype, copy=copy)


def _scratch_file(folder: Path | None, size: int) -> Any:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115 - the vector closes it
    try:
        if hasattr(os, "posix_fallocate"):  # a full disk is found out here, not in a compiled loop
            os.posix_fallocate(file.fileno(), 0, max(size, 1))
        else:
            file.truncate(size)
    except OSError as full:
        file.close()
        where = folder or tempfile.gettempdir()
        raise OSError(
            full.errno,
            f"{full.strerror}: a scratch file of {size} bytes is needed, since memory= does not "
            "hold all numbers that belong to rows; set checkpoint= to a folder with enough space",
            str(where),
        ) from full
    return file
