"""Files of rows: how a source knows them again, reads on in them, and maps their numbers."""

import mmap
import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin.errors import DataFileError

_ITERATORS = 3  # iterators that a cursor keeps
_CURSORS = 4  # cursors kept of unpickled sources


class FileStamp(NamedTuple):
    """A file as it was when a source was opened."""

    path: str
    size: int
    changed: int  # nanoseconds

    @classmethod
    def of(cls, path: Path) -> "FileStamp":
        """Return the stamp of a file as it is now."""
        found = path.stat()
        return cls(os.path.abspath(path), found.st_size, found.st_mtime_ns)

    @property
    def name(self) -> str:
        """The name without its folders, for messages."""
        return os.path.basename(self.path)

    def check(self) -> None:
        """Raise if the file is not there any more, or is not as it was."""
        try:
            now = FileStamp.of(Path(self.path))
        except FileNotFoundError:
            raise DataFileError(
                f"the file {self.path} is not there any more; put it back, or open the data again"
            ) from None
        if now != self:
            raise DataFileError(
                f"the file {self.path} has changed since it was opened (it had {self.size} bytes "
                f"and has {now.size}); open the data again"
            )


def is_path(what: Any) -> bool:
    """Tell whether something is a path."""
    return isinstance(what, str | os.PathLike)


def refuse_missing(path: Path) -> None:
    """Raise if there is no such file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")


def name_files(format: str, stamps: list[FileStamp]) -> str:
    """Return what files are called, for messages."""
    if len(stamps) == 1:
        return f"{format} {stamps[0].name}"
    return f"{format} {stamps[0].name} … {stamps[-1].name} ({len(stamps)} files)"


class Cursor:
    """Iterators that are kept, so that reading on does not begin anew.

    A copy that comes to a process by pickle again and again, as with each task of a worker, is the
    same cursor each time.
    """

    def __init__(self, token: str | None = None) -> None:
        self.token = token or uuid.uuid4().hex
        self.lock = threading.Lock()
        self.begun: list[tuple[Hashable, int, Iterator[Any]]] = []  # key, next position, items

    def take(self, key: Hashable, position: int, begin: Callable[[], Iterator[Any]]) -> Any:
        """Return the item at a position of what ``begin`` begins; StopIteration after the last."""
        at, items = self._nearest(key, position) or (0, begin())
        for _ in range(at, position):
            next(items)
        item = next(items)
        with self.lock:
            self.begun = [*self.begun, (key, position + 1, items)][-_ITERATORS:]
        return item

    def _nearest(self, key: Hashable, position: int) -> tuple[int, Iterator[Any]] | None:
        """Return the iterator that is nearest before a position, which is then no longer kept."""
        with self.lock:
            there = [k for k, one in enumerate(self.begun) if one[0] == key and one[1] <= position]
            if not there:
                return None
            return self.begun.pop(max(there, key=lambda k: self.begun[k][1]))[1:]

    def __reduce__(self) -> Any:
        return (_find_cursor, (self.token,))


_cursors: OrderedDict[str, Cursor] = OrderedDict()  # that came by pickle
_cursors_lock = threading.Lock()


def _find_cursor(token: str) -> Cursor:
    with _cursors_lock:
        cursor = _cursors.setdefault(token, Cursor(token))
        _cursors.move_to_end(token)
        while len(_cursors) > _CURSORS:
            _cursors.popitem(last=False)
        return cursor


def map_numbers(
    file: Any,
    dtype: Any,
    shape: tuple[int, ...],
    offset: int,
    *,
    ahead: bool = False,
    writable: bool = False,
) -> npt.NDArray[Any]:
    """Return numbers of an open file as an array; writing to it changes the file, if that may be.

    ``ahead``: let the file be read now, by this thread, rather than when the numbers are used.
    """
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.empty(shape, dtype)
    begin = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    length = offset - begin + count * np.dtype(dtype).itemsize
    options: dict[str, Any] = {"access": mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ}
    if ahead and hasattr(mmap, "MAP_POPULATE"):
        options = {"flags": mmap.MAP_SHARED | mmap.MAP_POPULATE, "prot": mmap.PROT_READ}
    held = mmap.mmap(file.fileno(), length, offset=begin, **options)
    return np.frombuffer(held, dtype, count, offset - begin).reshape(shape)


@dataclass(frozen=True)
class NpyFile:
    """An array in a file, whose rows are read when they are needed."""

    stamp: FileStamp
    dtype: Any
    shape: tuple[int, ...]
    offset: int
    fortran: bool = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    def take(self, begin: int, end: int, *, ahead: bool = False) -> Any:
        """Return some rows; ``ahead``: they are read now, not when they are used."""
        self.stamp.check()
        return self.map(begin, end, ahead=ahead)

    def map(self, begin: int, end: int, *, ahead: bool = False) -> Any:
        """Return some rows of a file that may be another one with the same rows."""
        width = int(np.prod(self.shape[1:], dtype=np.int64))
        if self.fortran:
            rows = np.memmap(self.stamp.path, self.dtype, "r", self.offset, self.shape, order="F")
            return np.array(rows[begin:end], order="C")
        place = self.offset + begin * width * self.dtype.itemsize
        shape = end - begin, *self.shape[1:]
        with Path(self.stamp.path).open("rb") as file:
            return map_numbers(file, self.dtype, shape, place, ahead=ahead)


def open_npy(path: Path) -> NpyFile:
    """Return the array of a ``.npy`` file."""
    refuse_missing(path)
    try:
        array: Any = np.lib.format.open_memmap(path, mode="r")
    except ValueError as wrong:
        raise DataFileError(
            f"{path}: not an array of numpy, or it is cut off, or it holds Python objects "
            f"({wrong}); write numbers or texts with numpy.save"
        ) from wrong
    fortran = array.ndim > 1 and not array.flags.c_contiguous
    return NpyFile(FileStamp.of(path), array.dtype, array.shape, array.offset, fortran)


def file_of_memmap(array: Any) -> NpyFile | None:
    """Return the rows of a memory map as a file; None if it is none, or may differ from one."""
    root = array
    while isinstance(root.base, np.memmap):
        root = root.base
    known = isinstance(root.base, mmap.mmap) and root.filename is not None
    if not known or array.mode == "c" or array.dtype.hasobject or not Path(root.filename).exists():
        return None
    fortran = array is root and array.flags.f_contiguous and not array.flags.c_contiguous
    if not fortran and not array.flags.c_contiguous:
        return None
    offset = root.offset + array.ctypes.data - root.ctypes.data
    return NpyFile(FileStamp.of(Path(root.filename)), array.dtype, array.shape, offset, fortran)
