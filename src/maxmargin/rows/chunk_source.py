"""Rows that others give in chunks: sequences, callables, iterables, and iterators."""

import errno
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import scipy.sparse as sp

from maxmargin.errors import DataFileError
from maxmargin.rows.frames import (
    FrameColumns,
    choose_columns,
    frame_dtype,
    frame_names,
    is_frame,
    names_if_texts,
    read_frame,
)
from maxmargin.rows.request import Request
from maxmargin.rows.row_source import Part, RowSource, digest
from maxmargin.rows.stored_files import Cursor
from maxmargin.validation.data import as_labels, as_rows, as_weights


def as_part(item: Any, plan: FrameColumns | None) -> Part:
    """Return what an item of an iterable, a callable or a partition gives as a part."""
    if plan is not None:
        return read_frame(item, plan)
    if isinstance(item, tuple | list) and len(item) in (2, 3) and not np.isscalar(item[0]):
        X, y, *weight = item
        return Part(X, y, weight[0] if weight else None)
    if isinstance(item, np.ndarray) or sp.issparse(item) or is_frame(item):
        return Part(item, None, None)
    raise DataFileError(
        f"a chunk is a {type(item).__name__}; it must be a tuple (X, y), or (X, y, weight)"
    )


def choose_in_chunk(item: Any, request: Request) -> FrameColumns | None:
    """Return which columns are which, if chunks are frames whose columns have been named."""
    if request.label is None and request.columns is None and request.weight is None:
        return None
    if not is_frame(item):
        raise ValueError(
            "label=, weight= and columns= name columns of frames, but chunks are not frames; give "
            "tuples (X, y) or (X, y, weight)"
        )
    plan = choose_columns(frame_names(item), request, "the first chunk", None)
    return plan._replace(dtype=frame_dtype(item, plan.features))


def count_rows(item: Any) -> int:
    """Return the number of rows of a chunk."""
    X = item[0] if isinstance(item, tuple | list) and len(item) in (2, 3) else item
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


class ChunkForm(NamedTuple):
    """What chunks are, as the first one shows: attributes of their source."""

    n_columns: int
    dtype: Any
    sparse: bool
    plan: FrameColumns | None  # of frames whose columns have been named
    feature_names: tuple[str, ...] | None
    labelled: bool
    weighted: bool

    @classmethod
    def of(cls, item: Any, request: Request | None) -> "ChunkForm":
        """Return what a chunk is; None: nothing has been asked of its columns."""
        plan = None if request is None else choose_in_chunk(item, request)
        found = as_part(item, plan)
        X, names = as_rows(found.X), None
        if plan is not None:
            names = names_if_texts(plan.features)
        elif is_frame(found.X):
            names = names_if_texts(frame_names(found.X))
        has = found.y is not None, found.weight is not None
        return cls(X.shape[1], X.dtype, bool(sp.issparse(X)), plan, names, *has)


class ChunkSource(RowSource):
    """Rows that others give in chunks; the first one shows what they are."""

    plan: FrameColumns | None = None

    def _adopt(self, item: Any, request: Request) -> None:
        """Learn from the first chunk what chunks are."""
        self.options = request.options
        vars(self).update(ChunkForm.of(item, request)._asdict())

    def identity(self) -> Any:
        """Return digests of the first chunk."""
        return len(self), digests(self.load(0))


def digests(found: Part) -> list[str | None]:
    """Return a digest of each array of a part."""
    return [None if values is None else digest(values) for values in found]


class SequenceSource(ChunkSource):
    """Chunks at hand, or callables that load them: any can be read by its number."""

    scratch: Any = None  # the folder of those that were written, as long as it is needed

    def __init__(self, items: Sequence[Any], request: Request, kind: str = "chunks") -> None:
        request.refuse(kind, y="each chunk is a tuple (X, y)")
        kept = [k for k in range(len(items)) if callable(items[k]) or count_rows(items[k])]
        if not kept:
            raise ValueError("there are no chunks with rows in what was passed; add rows")
        self.items, self.kept = items, kept
        self.kind = kind
        self._adopt(self._item(0), request)
        if not any(callable(items[k]) for k in kept):
            self.n_rows, self.in_memory = sum(count_rows(items[k]) for k in kept), True

    def _item(self, part: int) -> Any:
        item = self.items[self.kept[part]]
        return item() if callable(item) else item

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.kept)

    def read(self, part: int) -> Part:
        """Read a part."""
        return as_part(self._item(part), self.plan)

    def describe(self, part: int) -> str:
        """Return a part's number, and that of the chunk if some are empty."""
        return f"part {part} ({self.kind}, number {self.kept[part]})"


class IterableSource(ChunkSource):
    """Chunks of an object that can be iterated over again and again, always with the same rows."""

    def __init__(self, iterable: Any, request: Request) -> None:
        name = getattr(iterable, "__name__", type(iterable).__name__)
        self.kind = f"iterable {name}"
        request.refuse(self.kind, y="each chunk is a tuple (X, y)")
        self.iterable = iterable
        self.cursor = Cursor()
        self.sizes: list[int] | None = None
        first = next(self._begin(), None)
        if first is None:
            raise ValueError(f"the {self.kind} gives no chunks with rows; add rows")
        self._adopt(first, request)

    def _begin(self) -> Iterator[Any]:
        chunks = self.iterable() if callable(self.iterable) else self.iterable
        return (item for item in chunks if count_rows(item))

    def known_length(self) -> int | None:
        """Return the number of parts, or None if nobody has counted them."""
        return None if self.sizes is None else len(self.sizes)

    def __len__(self) -> int:
        """Return the number of parts; at first it takes a pass to count them."""
        if self.sizes is None:
            self.sizes = [count_rows(item) for item in self._begin()]
            self.n_rows = sum(self.sizes)
        return len(self.sizes)

    def read(self, part: int) -> Part:
        """Read a part: the next one quickly, an earlier one from the beginning."""
        try:
            item = self.cursor.take(None, part, self._begin)
        except StopIteration:
            raise DataFileError(
                f"the {self.kind} ended before it; it must give the same chunks each time"
            ) from None
        found = as_part(item, self.plan)
        if self.sizes is not None and count_rows(item) != self.sizes[part]:
            raise DataFileError(
                f"it has {count_rows(item)} rows and had {self.sizes[part]} before; an iterable "
                "must give the same chunks each time"
            )
        return found

    def describe(self, part: int) -> str:
        """Return a part's number."""
        return f"part {part} ({self.kind})"


class ScratchFolder:
    """A folder that is removed when nothing in this process refers to it any more."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder or tempfile.mkdtemp(prefix="maxmargin-rows-")
        if folder is None:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def __reduce__(self) -> Any:
        return (ScratchFolder, (self.folder,))  # A copy elsewhere does not remove it.


@dataclass(frozen=True)
class _SpooledChunk:
    """A chunk that was written to a scratch folder."""

    scratch: ScratchFolder
    number: int

    @property
    def path(self) -> Path:
        return Path(self.scratch.folder, f"{self.number:08d}.joblib")

    def write(self, found: Part) -> None:
        y = None if found.y is None else as_labels(found.y)
        weight = None if found.weight is None else as_weights(found.weight)
        try:
            joblib.dump((as_rows(found.X), y, weight), self.path)
        except OSError as full:
            why = f"{full}: rows go to a scratch folder; set TMPDIR to one with enough space"
            raise OSError(full.errno or errno.ENOSPC, why, self.scratch.folder) from full

    def __call__(self) -> tuple[Any, Any, Any]:
        found: tuple[Any, Any, Any] = joblib.load(self.path, mmap_mode="r")
        return found


def spool(chunks: Iterator[Any], request: Request, kind: str = "iterator") -> SequenceSource:
    """Write the chunks of an iterator, which comes only once, to a scratch folder."""
    scratch, written, rows = ScratchFolder(), list[_SpooledChunk](), 0
    plan: FrameColumns | None = None
    for number, item in enumerate(chunks):
        if not count_rows(item):
            continue
        try:
            plan = plan if written else choose_in_chunk(item, request)
            written.append(_SpooledChunk(scratch, number))
            written[-1].write(as_part(item, plan))
        except DataFileError as wrong:
            raise DataFileError(f"part {number} ({kind}): {wrong}") from wrong
        rows += count_rows(item)
    if not written:
        raise ValueError(f"the {kind} gives no chunks with rows; add rows")
    plain = request._replace(label=None, weight=None, columns=None)
    source = SequenceSource(written, plain, f"{kind}, spooled to disk")
    source.n_rows = rows
    source.feature_names = None if plan is None else names_if_texts(plan.features)
    return source
