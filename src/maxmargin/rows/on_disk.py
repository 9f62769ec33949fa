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
from contextlib import closing, suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import loops
from maxmargin.errors import DataFileError
from maxmargin.loops.records import Loss
from maxmargin.rows.blocks import (
    Block,
    Merge,
    Step,
    Tree,
    add,
    bytes_of,
    cut_leaves,
    narrow,
    stack_rows,
    view_rows,
)
from maxmargin.rows.checkpoint import KeepsCheckpoints, SavedVectors
from maxmargin.rows.read_ahead import read_ahead
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.stored_files import map_numbers
from maxmargin.rows.survey import Survey, label_numbers
from maxmargin.runtime import clock
from maxmargin.runtime.threads import share_work, usual_threads

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


class RowsOnDisk(KeepsCheckpoints):
    """Rows of a source as Blocks: read in every pass, or kept if they fit.

    Vectors "labels" (int64 numbers of classes, or float64 targets if it is a regression) and
    "weight" (float64) exist from the start. ``source.options.memory`` is the bound in bytes, by
    default an eighth of what the machine has. A block is a leaf at least, and memory for less than
    two leaves is refused. ``threads`` work on a block; None for as many as BLAS would use.
    """

    def __init__(
        self,
        source: Any,
        survey: Survey,
        *,
        regression: bool = False,
        threads: int | None = None,
    ) -> None:
        self.source, self.survey = source, survey
        self._read = read = _ReadRows(source, survey, regression)
        self.n, self.d, self.numbers = survey.n, survey.d, float(survey.size)
        self.block_bytes = read.block_bytes  # about what the largest one takes
        self.edges = read.edges  # the first row of each block, and the number of rows
        self.keeps_rows = read.keeps  # whether they stay in memory after the first pass
        self.sparse, self.threads = survey.sparse, threads
        self.vectors: dict[str, VectorOnDisk] = {}
        self.rule: LossRule | None = None
        self.losses: dict[int, Loss] = {}

    @property
    def bytes_read(self) -> int:
        """The bytes of all parts that were loaded so far."""
        return self._read.bytes_read

    @property
    def passes(self) -> int:
        """How often the rows were gone through, whether read or kept."""
        return self._read.passes

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
            with read.lock:
                read.passes += 1
        elif not read.labelled:
            read.fill_labels()
        if all(X is not None for X in read.kept):
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
            return self.losses[number]
        assert self.rule is not None
        loss = self.rule(vectors["labels"], vectors["weight"])
        taken = sum(np.asarray(each).nbytes for each in loss)
        if self._read.budget.take(taken, of=0.5):  # the other half is for what steps write
            self.losses[number] = loss
            weakref.finalize(self, self._read.budget.give_back, taken)
        return loss

    # Vectors.

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

    def _take(self, saved: SavedVectors) -> None:
        vectors: dict[str, VectorOnDisk] = {}
        for begin, end in pairwise(self.edges.tolist()):
            clock.check()
            for name, values in saved.read(begin, end).items():
                if name not in vectors:
                    shape = (self.n, *values.shape[1:])
                    vectors[name] = VectorOnDisk(shape, values.dtype, self._read.budget)
                vectors[name].rows(begin, end)[...] = values
        self.vectors.update(vectors)


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
        self.budget = MemoryShares(min(self.memory // _SHARES, left), source.options.checkpoint)
        self.filled = survey.rows == 0  # parts whose labels are known
        self.labels: VectorOnDisk | None = None
        self.weight: VectorOnDisk | None = None
        self.lock = threading.Lock()
        self.bytes_read = self.passes = 0
        slow = source.slow and not self.keeps
        self.spool = Spool(source.options.checkpoint, survey) if slow else None

    @property
    def labelled(self) -> bool:
        """Whether all labels are known."""
        return bool(self.filled.all())

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
        load = _remember_last(self.load)
        for number in range(len(self.kept)):
            rows = self.kept[number]
            if rows is None:
                rows = self._assembled(number, load)
            yield number, rows
            del rows

    def _assembled(self, number: int, load: Callable[[int], Any]) -> Any:
        begin, end = self.edges[number : number + 2].tolist()
        X = None if self.spool is None else self.spool.read(number)
        if X is None:
            X = self._rows(begin, end, load)
            if self.spool is not None and not self.spool.write(number, X):
                self.spool = None
        found = X, loops.rows.rows(X)
        if self.keeps:
            self.kept[number] = found
        return found

    def _rows(self, begin: int, end: int, load: Callable[[int], Any]) -> Any:
        cuts = self.survey.parts_between(begin, end)
        if (X := self.source.rows_between(begin, end)) is not None:
            for part, _, _ in cuts:  # reading one takes no time, but its labels are needed
                if not self.filled[part]:
                    self._fill(part, self.source.reload(part))
            with self.lock:
                self.bytes_read += X.nbytes
            return X
        if len(cuts) == 1:
            part, low, high = cuts[0]
            return narrow(view_rows(load(part).X, low, high))
        pieces = (view_rows(load(part).X, low, high) for part, low, high in cuts)
        most = int(self.survey.numbers[[part for part, _, _ in cuts]].sum())
        return stack_rows(pieces, (end - begin, self.survey.d), self.survey.dtype, most)

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
            self.bytes_read += bytes_of(X) + sum(
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
                dtype: Any = np.float64
                if not self.regression:  # numbers of classes, which steps see as int64
                    dtype = np.min_scalar_type(-max(len(self.survey.classes), 2))
                self.labels = VectorOnDisk((n,), dtype, self.budget)
            if self.weight is None and weight is not None:
                self.weight = VectorOnDisk((n,), np.float64, self.budget)
        if self.labels is not None and y is not None:
            name = self.source.describe(part)
            given = y if self.regression else label_numbers(self.survey.classes, y, name)
            self.labels.rows(begin, end)[...] = given
        if self.weight is not None and weight is not None:
            self.weight.rows(begin, end)[...] = weight
        self.filled[part] = True

    def beside_rows(self, name: str, number: int) -> Any:
        """Return the labels or the weights of a block."""
        begin, end = self.edges[number : number + 2].tolist()
        dtype = np.int64 if name == "labels" and not self.regression else np.float64
        vector = self.labels if name == "labels" else self.weight
        if vector is None:
            return np.full(end - begin, name == "weight", dtype=dtype)
        return vector.rows(begin, end).astype(dtype, copy=False)

    def vector_of_all(self, name: str) -> "VectorOnDisk":
        """Return the labels or the weights of all rows."""
        if not self.labelled:
            self.fill_labels()
        dtype = self.beside_rows(name, 0).dtype
        found = VectorOnDisk((self.survey.n,), dtype, self.budget)
        for number, (begin, end) in enumerate(pairwise(self.edges.tolist())):
            found.rows(begin, end)[...] = self.beside_rows(name, number)
        return found


def _remember_last(load: Callable[[int], Any]) -> Callable[[int], Any]:
    """Return what loads parts, but not again the one that was loaded last: blocks may share it."""
    held: dict[int, Any] = {}

    def load_unless_held(part: int) -> Any:
        if part not in held:
            held.clear()  # not two at a time
            held[part] = load(part)
        return held[part]

    return load_unless_held


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
    with suppress(OSError, TypeError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


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


# ------------------------------------------------------------------- scratch files

# These have no name, so that they vanish with what uses them or with the process, however that
# ends.


class _ScratchFile:
    """A file without a name."""

    def __init__(self, folder: Path | None) -> None:
        if folder is not None:  # a checkpoint may be the first one
            folder.mkdir(parents=True, exist_ok=True)
        self.file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115
        weakref.finalize(self, self.file.close)

    def allocate(self, size: int) -> None:
        """Find out here that a disk is full, not in a compiled loop."""
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self.file.fileno(), 0, max(size, 1))
        else:
            self.file.truncate(size)

    def write(self, array: npt.NDArray[Any], at: int) -> int:
        """Write numbers from a byte on; return the byte after them."""
        view = memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        while len(view):
            written = os.pwrite(self.file.fileno(), view[:_WRITTEN], at)
            view, at = view[written:], at + written
        return at

    def map(self, dtype: Any, shape: tuple[int, ...], at: int, **how: bool) -> npt.NDArray[Any]:
        """Return numbers from a byte on, mapped into memory."""
        return map_numbers(self.file, dtype, shape, at, **how)


class Spool:
    """Blocks in a scratch file: what takes long to read, or to transform, is read once."""

    def __init__(self, folder: Path | None, survey: Survey) -> None:
        self.folder, self.survey = folder, survey
        self.file: _ScratchFile | None = None
        self.end = 0
        self.places: dict[int, list[tuple[Any, tuple[int, ...], int]]] = {}

    def write(self, number: int, X: Any) -> bool:
        """Write a block; return False if there is no space for all of them."""
        places = []
        try:
            if self.file is None:
                self.file = _ScratchFile(self.folder)
                survey, folder = self.survey, self.folder or tempfile.gettempdir()
                each = survey.dtype.itemsize + 8 * survey.sparse
                needed = survey.size * each + 8 * survey.n * survey.sparse
                if shutil.disk_usage(folder).free < _SPARE_DISK * needed:
                    return False
            for array in [X.data, X.indices, X.indptr] if self.survey.sparse else [X]:
                places.append((array.dtype, array.shape, self.end))
                end = self.file.write(array, self.end)
                self.end = -(-end // _PAGE) * _PAGE  # so that arrays are aligned as others are
        except OSError:  # the disk is full: parts are read again
            return False
        self.places[number] = places
        return True

    def read(self, number: int) -> Any:
        """Return a block, which is mapped into memory; None if it was not written."""
        if self.file is None or number not in self.places:
            return None
        arrays = [self.file.map(*place, ahead=True) for place in self.places[number]]
        if not self.survey.sparse:
            return arrays[0]
        data, indices, indptr = arrays
        X = sp.csr_array((len(indptr) - 1, self.survey.d), dtype=data.dtype)
        X.data, X.indices, X.indptr = data, indices, indptr
        return X


class MemoryShares:
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
    """Numbers of all rows, in memory or in a scratch file: what ``RowsOnDisk.vector`` returns."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, budget: MemoryShares) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._array: npt.NDArray[Any] | None = None
        size = int(np.prod(shape)) * self.dtype.itemsize
        if budget.take(size):
            self._array = np.empty(shape, dtype=self.dtype)
            weakref.finalize(self, budget.give_back, size)
            return
        self._file = _ScratchFile(budget.folder)
        try:
            self._file.allocate(size)
        except OSError as full:
            where = budget.folder or tempfile.gettempdir()
            raise OSError(
                full.errno,
                f"{full.strerror}: a scratch file of {size} bytes is needed, since memory= does "
                "not hold all numbers that belong to rows; set checkpoint= to a folder with enough "
                "space",
                str(where),
            ) from full

    @classmethod
    def holding(cls, array: npt.NDArray[Any], budget: MemoryShares) -> "VectorOnDisk":
        """Return a vector that is this array, or has its numbers if memory does not hold it."""
        made = cls(array.shape, array.dtype, budget)
        if made._array is not None:
            made._array = array
        else:
            made._file.write(array, 0)
        return made

    def __len__(self) -> int:
        return self.shape[0]

    def rows(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Return the numbers of some rows: writing to them changes the vector."""
        if self._array is not None:
            return self._array[begin:end]
        each = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        shape = (end - begin, *self.shape[1:])
        return self._file.map(self.dtype, shape, begin * each, writable=True)

    def array(self) -> npt.NDArray[Any]:
        """Return the numbers of all rows as one array, which takes as much memory as they do."""
        return self._array if self._array is not None else self.rows(0, len(self)).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.array(), dtype=dtype, copy=copy)
