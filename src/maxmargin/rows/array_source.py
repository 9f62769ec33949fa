"""Rows of arrays and frames in memory, and of ``.npy`` files, cut into parts."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.rows.frames import (
    choose_columns,
    cut_frame,
    frame_dtype,
    frame_names,
    module_root,
    names_if_texts,
    read_frame,
)
from maxmargin.rows.request import ALL_COLUMNS, BY_Y, Request, rows_per_part
from maxmargin.rows.row_source import Part, RowSource, digest
from maxmargin.rows.stored_files import NpyFile, file_of_memmap, is_path, open_npy


def as_store(what: Any, name: str) -> Any:
    """Return numbers of rows so that some of them can be taken: an array, CSR or a file."""
    if is_path(what):
        path = Path(what)
        if path.suffix.lower() != ".npy":
            raise ValueError(f"{name}={str(what)!r} must be an array, or the path of a .npy file")
        return open_npy(path)
    if isinstance(what, np.memmap) and (file := file_of_memmap(what)) is not None:
        return file
    if sp.issparse(what):
        return what.tocsr()
    return what if isinstance(what, np.ndarray) else np.asarray(what)


def take_rows(store: Any, begin: int, end: int) -> Any:
    """Return some rows of an array, CSR or file; None of None."""
    if store is None:
        return None
    return store.take(begin, end) if isinstance(store, NpyFile) else store[begin:end]


def _identity(store: Any) -> Any:
    return store if store is None or isinstance(store, NpyFile) else digest(store)


class _CutSource(RowSource):
    """Rows with numbers, cut into parts at edges."""

    edges: list[int]

    def _cut(self, n: int, width: int, request: Request) -> None:
        step = rows_per_part(width, self.dtype.itemsize, request.rows, self.options)
        if not n:
            raise ValueError(f"the {self.kind} has no rows; add rows")
        self.edges = [*range(0, n, step), n]

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.edges) - 1

    def describe(self, part: int) -> str:
        """Return a part's number and its rows."""
        return f"part {part} ({self.kind}, rows {self.edges[part]} to {self.edges[part + 1] - 1})"

    def row_number(self, part: int, row: int) -> int:
        """Return the number of a row among all."""
        return self.edges[part] + row


class ArraySource(_CutSource):
    """Rows of an array, a CSR matrix or a ``.npy`` file, cut into parts."""

    def __init__(self, X: Any, request: Request) -> None:
        what = "arrays"
        request.refuse(what, label=BY_Y, columns=ALL_COLUMNS)
        self.X = as_store(X, "X")
        if len(self.X.shape) != 2:
            raise ValueError(f"X has the shape {self.X.shape}; rows need two dimensions")
        self.y = None if request.y is None else as_store(request.y, "y")
        self.weight = None if request.weight is None else as_store(request.weight, "weight")
        self.n_rows, self.n_columns = int(self.X.shape[0]), int(self.X.shape[1])
        for name, store in (("y", self.y), ("weight", self.weight)):
            if store is not None and store.shape[0] != self.n_rows:
                raise ValueError(f"X has {self.n_rows} rows, but {name} has {store.shape[0]}")
        self.sparse = bool(sp.issparse(self.X))
        self.dtype = np.dtype(np.float32 if self.X.dtype == np.float32 else np.float64)
        self.labelled, self.weighted = self.y is not None, self.weight is not None
        self.options = request.options
        on_disk = isinstance(self.X, NpyFile)
        self.in_memory = not on_disk
        self.kind = self.X.stamp.name if on_disk else "CSR" if self.sparse else "array"
        width = self.n_columns if not self.sparse else 2 * self.X.nnz // max(1, self.n_rows) + 1
        self._cut(self.n_rows, width, request)

    def read(self, part: int) -> Part:
        """Read a part."""
        begin, end = self.edges[part], self.edges[part + 1]
        return Part(*(take_rows(store, begin, end) for store in (self.X, self.y, self.weight)))

    def rows_between(self, begin: int, end: int) -> Any:
        """Return rows of any parts if they are at hand without a copy, else None."""
        if self.sparse or self.X.dtype != self.dtype:
            return None
        if not isinstance(self.X, NpyFile):
            return self.X[begin:end] if self.X.flags.c_contiguous else None
        if self.X.fortran:
            return None
        file, part = self.X, int(np.searchsorted(self.edges, begin, side="right")) - 1
        return self.named(part, lambda: file.take(begin, end, ahead=True))

    def identity(self) -> Any:
        """Return digests of what is in memory, and the files."""
        return tuple(map(_identity, (self.X, self.y, self.weight)))


# ------------------------------------------------------------------- frames


class FrameSource(_CutSource):
    """Rows of a frame in memory."""

    in_memory = True

    def __init__(self, frame: Any, request: Request) -> None:
        self.kind = f"{module_root(frame)} {type(frame).__name__}"
        if request.y is not None and request.label is not None:
            raise ValueError("y= and label= are both given; give one of them")
        named = request if isinstance(request.weight, str | None) else request._replace(weight=None)
        self.frame, self.options = frame, request.options
        self.y = None if request.y is None else as_store(request.y, "y")
        self.weight = request.weight if named.weight is None else None
        plan = choose_columns(frame_names(frame), named, f"the {self.kind}", None)
        self.plan = plan._replace(dtype=frame_dtype(frame, plan.features))
        self.n_rows, self.n_columns, self.dtype = len(frame), len(plan.features), self.plan.dtype
        for name, store in (("y", self.y), ("weight", self.weight)):
            if store is not None and len(store) != self.n_rows:
                raise ValueError(f"X has {self.n_rows} rows, but {name} has {len(store)}")
        self.feature_names = names_if_texts(plan.features)
        self.labelled = plan.label is not None or self.y is not None
        self.weighted = request.weight is not None
        self._cut(self.n_rows, self.n_columns, request)

    def read(self, part: int) -> Part:
        """Read a part."""
        begin, end = self.edges[part], self.edges[part + 1]
        found = read_frame(cut_frame(self.frame, begin, end), self.plan, begin)
        y = found.y if self.y is None else take_rows(self.y, begin, end)
        weight = found.weight if self.weight is None else self.weight[begin:end]
        return Part(found.X, y, weight)

    def identity(self) -> Any:
        """Return a digest of what is in memory."""
        return [tuple(None if found is None else digest(found) for found in part) for part in self]
