"""Files of rows: how a source knows them again, reads on in them, and maps their numbers."""

import mmap
import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
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
    file: Any, dtype: Any, shape: tuple[int, ...], offset: int, *, ahead: bool = False
) -> npt.NDArray[Any]:
    """Return numbers of an open file as an array that cannot be written to.

    ``ahead``: let the file be read now, by this thread, rather than when the numbers are used.
    """
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.empty(shape, dtype)
    begin = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    length = offset - begin + count * np.dtype(dtype).itemsize
    options: dict[str, Any] = {"access": mmap.ACCESS_READ}
    if ahead and hasattr(mmap, "MAP_POPULATE"):
        options = {"flags": mmap.MAP_SHARED | mmap.MAP_POPULATE, "prot": mmap.PROT_READ}
    held = mmap.mmap(file.fileno(), length, offset=begin, **options)
    return np.frombuffer(held, dtype, count, offset - begin).reshape(shape)
