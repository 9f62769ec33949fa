"""Scratch files: numbers that memory does not hold, and rows that are slow to read.

The files have no name, so that they vanish with what uses them or with the process, however that
ends.
"""

import mmap
import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.rows.stored_files import map_numbers
from maxmargin.rows.survey import Survey

_SPARE_DISK = 2.0  # times the space that a scratch file of rows takes must be free
_PAGE = mmap.ALLOCATIONGRANULARITY
_WRITTEN = 1 << 24  # bytes at once


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
                if self._free() < _SPARE_DISK * self._needed():
                    return False
            for array in [X.data, X.indices, X.indptr] if self.survey.sparse else [X]:
                places.append((array.dtype, array.shape, self.end))
                end = self.file.write(array, self.end)
                self.end = -(-end // _PAGE) * _PAGE  # so that arrays are aligned as others are
        except OSError:  # the disk is full: parts are read again
            return False
        self.places[number] = places
        return True

    def _free(self) -> int:
        return shutil.disk_usage(self.folder or tempfile.gettempdir()).free

    def _needed(self) -> int:
        each = self.survey.dtype.itemsize + 8 * self.survey.sparse
        return self.survey.size * each + 8 * self.survey.n * self.survey.sparse

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


class Budget:
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

    def __init__(self, shape: tuple[int, ...], dtype: Any, budget: Budget) -> None:
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
    def holding(cls, array: npt.NDArray[Any], budget: Budget) -> "VectorOnDisk":
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
