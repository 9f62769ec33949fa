"""Opening labelled rows wherever they are: arrays, files, frames, iterables, Dask collections.

Each kind of source knows its parts and reads one at a time; ``RowSource`` checks what was read.
"""

import glob
import mmap
import os
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.data.arrow import read_values, require_pyarrow
from maxmargin.data.row_source import (
    BlockOptions,
    FileStamp,
    Part,
    RowSource,
    as_labels,
    as_rows,
    as_weights,
    digest,
    rows_per_part,
)
from maxmargin.data.source import extension_of
from maxmargin.errors import DataFileError, did_you_mean

_FILL_ROWS = 4096  # of a block that is filled column by column, so that they stay in a core's cache
_index_of_rows = re.compile(r"__index_level_\d+__").fullmatch  # as pandas names it
_GLOB = re.compile(r"[*?\[]")
_SHOWN = 10  # names in a message


class _Request(NamedTuple):
    """What was asked for when rows were opened."""

    y: Any
    label: Any
    weight: Any
    columns: Any
    rows: int | None
    options: BlockOptions

    def refuse(self, what: str, **ways_out: str) -> None:
        """Raise if something is given that this kind of rows does not take."""
        for name, way_out in ways_out.items():
            if getattr(self, name) is not None:
                shown = "…" if name in ("y", "weight") else repr(getattr(self, name))
                raise ValueError(f"{name}={shown} does not go with {what}; {way_out}")


_BY_LABEL = "a table's labels are a column of it: name that with label="
_BY_Y = "rows without named columns have their labels in y="
_ALL_COLUMNS = "choose the columns before they are passed"


# ------------------------------------------------------------------- arrays in memory and .npy files


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

    def take(self, begin: int, end: int) -> Any:
        """Read some rows."""
        self.stamp.check()
        width = int(np.prod(self.shape[1:], dtype=np.int64))
        if self.fortran:
            whole = np.memmap(self.stamp.path, self.dtype, "r", self.offset, self.shape, order="F")
            return np.array(whole[begin:end], order="C")
        place = self.offset + begin * width * self.dtype.itemsize
        count = (end - begin) * width
        found = np.fromfile(self.stamp.path, self.dtype, count, offset=place)
        if len(found) < count:
            raise DataFileError(f"the file {self.stamp.path} is cut off; write it again")
        return found.reshape(end - begin, *self.shape[1:])


def _open_npy(path: Path) -> NpyFile:
    _refuse_no_file(path)
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            first = version == (1, 0)
            read = (
                np.lib.format.read_array_header_1_0
                if first
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read(file)
            offset = file.tell()
    except ValueError as wrong:
        raise DataFileError(
            f"{path}: not an array of numpy ({wrong}); write it with numpy.save"
        ) from wrong
    if dtype.hasobject:
        raise DataFileError(f"{path}: it holds Python objects; save numbers or texts")
    found = NpyFile(FileStamp.of(path), dtype, shape, offset, fortran and len(shape) > 1)
    if found.stamp.size < offset + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize:
        raise DataFileError(f"{path}: the file is cut off; write it again")
    return found


def _file_of_memmap(array: Any) -> NpyFile | None:
    """Return the rows of a memory map as a file; None if they may differ from the file's."""
    root = array
    while isinstance(root.base, np.memmap):
        root = root.base
    known = isinstance(root.base, mmap.mmap) and root.filename is not None
    if not known or array.mode == "c" or not array.flags.c_contiguous or array.dtype.hasobject:
        return None
    offset = root.offset + array.ctypes.data - root.ctypes.data
    return NpyFile(FileStamp.of(Path(root.filename)), array.dtype, array.shape, offset)


def _is_path(what: Any) -> bool:
    return isinstance(what, str | os.PathLike)


def _as_store(what: Any, name: str) -> Any:
    """Return numbers of rows so that some of them can be taken: an array, CSR or a file."""
    if _is_path(what):
        path = Path(what)
        if path.suffix.lower() != ".npy":
            raise ValueError(f"{name}={str(what)!r} must be an array, or the path of a .npy file")
        return _open_npy(path)
    if isinstance(what, np.memmap) and (file := _file_of_memmap(what)) is not None:
        return file
    if sp.issparse(what):
        return what.tocsr()
    return what if isinstance(what, np.ndarray) else np.asarray(what)


def _take(store: Any, begin: int, end: int) -> Any:
    if store is None:
        return None
    return store.take(begin, end) if isinstance(store, NpyFile) else store[begin:end]


def _is_float32(dtype: Any) -> bool:
    return bool(np.dtype(dtype) == np.float32)


def _identity(store: Any) -> Any:
    return store if store is None or isinstance(store, NpyFile) else digest(store)


class ArraySource(RowSource):
    """Rows of an array, a CSR matrix or a ``.npy`` file, cut into parts."""

    def __init__(self, X: Any, request: _Request) -> None:
        what = "arrays"
        request.refuse(what, label=_BY_Y, columns=_ALL_COLUMNS)
        self.X = _as_store(X, "X")
        if len(self.X.shape) != 2:
            raise ValueError(f"X has the shape {self.X.shape}; rows need two dimensions")
        self.y = None if request.y is None else _as_store(request.y, "y")
        self.weight = None if request.weight is None else _as_store(request.weight, "weight")
        self.n_rows, self.n_columns = map(int, self.X.shape)
        for name, store in (("y", self.y), ("weight", self.weight)):
            if store is not None and store.shape[0] != self.n_rows:
                raise ValueError(f"X has {self.n_rows} rows, but {name} has {store.shape[0]}")
        self.sparse = bool(sp.issparse(self.X))
        self.dtype = np.dtype(np.float32 if _is_float32(self.X.dtype) else np.float64)
        self.labelled, self.weighted = self.y is not None, self.weight is not None
        self.options = request.options
        on_disk = isinstance(self.X, NpyFile)
        self.kind = self.X.stamp.name if on_disk else "CSR" if self.sparse else "array"
        width = self.n_columns if not self.sparse else 2 * self.X.nnz // max(1, self.n_rows) + 1
        step = rows_per_part(width, self.dtype.itemsize, request.rows, self.options)
        self.edges = [*range(0, self.n_rows, step), self.n_rows]

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.edges) - 1

    def read(self, part: int) -> Part:
        """Read a part."""
        begin, end = self.edges[part], self.edges[part + 1]
        return Part(*(_take(store, begin, end) for store in (self.X, self.y, self.weight)))

    def describe(self, part: int) -> str:
        """Return a part's number and its rows."""
        return f"part {part} ({self.kind}, rows {self.edges[part]} to {self.edges[part + 1] - 1})"

    def row_number(self, part: int, row: int) -> int:
        """Return the number of a row among all."""
        return self.edges[part] + row

    def bytes_of(self, part: int) -> int:
        """Return how many bytes a part takes."""
        begin, end = self.edges[part], self.edges[part + 1]
        if self.sparse:
            count = int(self.X.indptr[end]) - int(self.X.indptr[begin])
            return count * (self.dtype.itemsize + self.X.indices.itemsize) + 8 * (end - begin)
        return (end - begin) * (self.n_columns * self.dtype.itemsize + 8)

    def identity(self) -> Any:
        """Return digests of what is in memory, and the files."""
        return tuple(map(_identity, (self.X, self.y, self.weight)))


# ------------------------------------------------------------------- columns of frames


class _Plan(NamedTuple):
    """Which columns of a frame are which."""

    features: tuple[Any, ...]
    label: Any
    weight: Any
    dtype: Any

    @property
    def wanted(self) -> list[Any]:
        extra = [name for name in (self.label, self.weight) if name is not None]
        return [*self.features, *(name for name in extra if name not in self.features)]


def _root(what: Any) -> str:
    return type(what).__module__.partition(".")[0]


def is_frame(what: Any) -> bool:
    """Tell whether something is a frame of pandas, polars or pyarrow, without importing these."""
    known = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
    root = _root(what)
    return type(what).__name__ == known.get(root) or (
        root == "pyarrow" and type(what).__name__ == "RecordBatch"
    )


def _frame_names(frame: Any) -> list[Any]:
    return list(frame.schema.names) if _root(frame) == "pyarrow" else list(frame.columns)


def _cut_frame(frame: Any, begin: int, end: int) -> Any:
    if _root(frame) == "pandas":
        return frame.iloc[begin:end]
    return frame.slice(begin, end - begin)


def _column_of(frame: Any, name: Any) -> Any:
    return frame.column(name) if _root(frame) == "pyarrow" else frame[name]


def _number_kind(column: Any) -> str | None:
    """Return "float32", "number", or None for a column that has no numbers."""
    root = _root(column)
    if root == "pyarrow":
        return arrow_number_kind(column.type)
    said = str(column.dtype).lower()
    if root == "polars":
        numbers = column.dtype.is_numeric() or said == "boolean"
    else:
        from pandas.api.types import is_numeric_dtype

        numbers = is_numeric_dtype(column.dtype)
    return None if not numbers else "float32" if said == "float32" else "number"


def arrow_number_kind(kind: Any) -> str | None:
    """Return "float32", "number", or None for a type that is none."""
    import pyarrow as pa

    t = pa.types
    if t.is_float32(kind):
        return "float32"
    numbers = (t.is_floating, t.is_integer, t.is_decimal, t.is_boolean)
    return "number" if any(test(kind) for test in numbers) else None


def _numbers_of(column: Any, dtype: Any, name: str) -> Any:
    """Return a column of numbers; NaN where one is missing."""
    root = _root(column)
    if root == "pandas":
        return column.to_numpy(dtype=dtype, na_value=np.nan)
    if root == "polars":
        import polars as pl

        return column.cast(pl.Float32 if dtype == np.float32 else pl.Float64).to_numpy()
    import pyarrow as pa

    if pa.types.is_float32(column.type) or pa.types.is_float64(column.type):
        return (
            column.to_numpy(zero_copy_only=False)
            if isinstance(column, pa.Array)
            else column.to_numpy()
        )
    values = read_values(column, name)
    if values.kind not in ("numbers", "flags", "nothing"):
        raise DataFileError(f"{name} holds {values.type}, of which not all are numbers of 53 bits")
    return values.cells


def _labels_of(column: Any, before: int) -> Any:
    """Return the labels in a column."""
    root = _root(column)
    missing = (
        column.isna().to_numpy()
        if root == "pandas"
        else column.is_null().to_numpy(
            **({"zero_copy_only": False} if type(column).__name__ == "Array" else {})
        )
    )
    missing = np.asarray(missing)
    if missing.any():
        row = before + int(np.flatnonzero(missing)[0])
        raise DataFileError(f"there is no label in row {row}; leave out rows without a label")
    if root == "pandas":
        return as_labels(column.to_numpy())
    if root == "polars":
        named = str(column.dtype).startswith(("Categorical", "Enum"))
        return as_labels(np.array(column.to_list(), dtype=str) if named else column.to_numpy())
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if any(test(column.type) for test in texts):
        return np.array(column.to_pylist(), dtype=str)
    return as_labels(
        column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    )


def _frame_part(frame: Any, plan: _Plan, before: int = 0) -> Part:
    """Return the rows of a frame; messages count rows from those before."""
    there = _frame_names(frame)
    missing = [name for name in plan.wanted if name not in there]
    if missing:
        raise DataFileError(
            f"it has no column {missing[0]!r}.{did_you_mean(missing[0], map(str, there))}"
        )
    n = len(frame)
    X = np.empty((n, len(plan.features)), plan.dtype)
    columns = []
    for name in plan.features:
        column = _column_of(frame, name)
        kind = _number_kind(column)
        if kind is None:
            raise DataFileError(
                f"column {name!r} holds what is no number; encode it, or leave it out with columns="
            )
        if kind != "float32" and plan.dtype == np.float32:
            raise DataFileError(
                f"column {name!r} does not hold float32, but others do; make all parts alike"
            )
        columns.append(_numbers_of(column, plan.dtype, f"column {name!r}"))
    for begin in range(0, n, _FILL_ROWS):
        rows = slice(begin, begin + _FILL_ROWS)
        for j, numbers in enumerate(columns):
            X[rows, j] = numbers[rows]
    y = None if plan.label is None else _labels_of(_column_of(frame, plan.label), before)
    weight = None
    if plan.weight is not None:
        weight = _numbers_of(_column_of(frame, plan.weight), np.float64, "the weight")
    return Part(X, y, weight)


def _plan_columns(names: Sequence[Any], request: _Request, file: str, dtype: Any) -> _Plan:
    """Find the label, the weight and the features among the names of columns."""
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise DataFileError(
            f"{file}: two columns are named {twice[0]!r}; give them different names"
        )
    label = None if request.label is None else _find_name(names, request.label, "label", file)
    weight = None if request.weight is None else _find_name(names, request.weight, "weight", file)
    if request.columns is None:
        features = [name for name in names if name not in (label, weight)]
    else:
        features = [_find_name(names, name, "columns", file) for name in request.columns]
        if label is not None and label in features:
            raise ValueError(f"columns= has the label {label!r}, from which it would be predicted")
    if not features:
        raise DataFileError(f"{file}: no columns are left for X")
    return _Plan(tuple(features), label, weight, dtype)


def _find_name(names: Sequence[Any], wanted: Any, argument: str, file: str) -> Any:
    if wanted in names:
        return wanted
    number = isinstance(wanted, int) and not isinstance(wanted, bool)
    if number and -len(names) <= wanted < len(names):
        return names[wanted]
    known = ", ".join(repr(name) for name in names[:_SHOWN]) + (
        ", …" if len(names) > _SHOWN else ""
    )
    hint = did_you_mean(wanted, map(str, names))
    raise DataFileError(f"{file}: {argument}={wanted!r} is not one of its columns ({known}).{hint}")


def _names_if_texts(names: Iterable[Any]) -> tuple[str, ...] | None:
    names = tuple(names)
    return names if all(isinstance(name, str) for name in names) else None


class FrameSource(RowSource):
    """Rows of a frame in memory."""

    def __init__(self, frame: Any, request: _Request) -> None:
        self.kind = f"{_root(frame)} {type(frame).__name__}"
        if request.y is not None and request.label is not None:
            raise ValueError("y= and label= are both given; give one of them")
        named = request if isinstance(request.weight, str | None) else request._replace(weight=None)
        self.frame, self.options = frame, request.options
        self.y = None if request.y is None else _as_store(request.y, "y")
        self.weight = request.weight if named.weight is None else None
        plan = _plan_columns(_frame_names(frame), named, f"the {self.kind}", None)
        self.plan = plan._replace(dtype=_frame_dtype(frame, plan.features))
        self.n_rows, self.n_columns, self.dtype = len(frame), len(plan.features), self.plan.dtype
        for name, store in (("y", self.y), ("weight", self.weight)):
            if store is not None and len(store) != self.n_rows:
                raise ValueError(f"X has {self.n_rows} rows, but {name} has {len(store)}")
        self.feature_names = _names_if_texts(plan.features)
        self.labelled = plan.label is not None or self.y is not None
        self.weighted = request.weight is not None
        step = rows_per_part(self.n_columns, self.dtype.itemsize, request.rows, self.options)
        self.edges = [*range(0, self.n_rows, step), self.n_rows]

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.edges) - 1

    def read(self, part: int) -> Part:
        """Read a part."""
        begin, end = self.edges[part], self.edges[part + 1]
        found = _frame_part(_cut_frame(self.frame, begin, end), self.plan, begin)
        y = found.y if self.y is None else _take(self.y, begin, end)
        weight = found.weight if self.weight is None else self.weight[begin:end]
        return Part(found.X, y, weight)

    def describe(self, part: int) -> str:
        """Return a part's number and its rows."""
        return f"part {part} ({self.kind}, rows {self.edges[part]} to {self.edges[part + 1] - 1})"

    def row_number(self, part: int, row: int) -> int:
        """Return the number of a row among all."""
        return self.edges[part] + row

    def bytes_of(self, part: int) -> int:
        """Return how many bytes a part takes."""
        rows = self.edges[part + 1] - self.edges[part]
        return rows * (self.n_columns * self.dtype.itemsize + 8)

    def identity(self) -> Any:
        """Return a digest of what is in memory."""
        return [tuple(None if found is None else digest(found) for found in part) for part in self]


def _frame_dtype(frame: Any, features: Iterable[Any]) -> Any:
    kinds = {_number_kind(_column_of(frame, name)) for name in features}
    return np.dtype(np.float32 if kinds == {"float32"} else np.float64)


# ------------------------------------------------------------------- sequential reading


class _Cursor:
    """An iterator that is kept, so that reading on does not begin anew."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.key: Hashable = None
        self.position = 0
        self.items: Iterator[Any] | None = None

    def take(self, key: Hashable, position: int, begin: Callable[[], Iterator[Any]]) -> Any:
        """Return the item at a position of what ``begin`` begins; StopIteration after the last."""
        with self.lock:
            if self.items is None or self.key != key or self.position > position:
                self.items, self.key, self.position = begin(), key, 0
            try:
                while self.position <= position:
                    item = next(self.items)
                    self.position += 1
            except BaseException:
                self.items = None
                raise
            return item

    def __reduce__(self) -> Any:
        return (_Cursor, ())


# ------------------------------------------------------------------- Parquet


class _Groups(NamedTuple):
    """Rows of a Parquet file: of whole row groups, or a piece of one."""

    file: int
    groups: tuple[int, ...]
    first: int  # the number in the file of the first row
    rows: int
    piece: int | None = None  # which piece of the row group, if it is one
    step: int = 0  # the rows of such pieces

    def describe(self) -> str:
        if len(self.groups) > 1:
            return f"row groups {self.groups[0]} to {self.groups[-1]}"
        rows = "" if self.piece is None else f", rows {self.first} to {self.first + self.rows - 1}"
        return f"row group {self.groups[0]}{rows}"


class ParquetSource(RowSource):
    """Rows of Parquet files; parts are row groups."""

    def __init__(self, paths: list[Path], request: _Request) -> None:
        require_pyarrow(str(paths[0]))
        request.refuse("Parquet files", y=_BY_LABEL)
        self.options = request.options
        self.stamps = [FileStamp.of(path) for path in paths]
        opened = [_read_footer(stamp) for stamp in self.stamps]
        names = [name for name in opened[0].schema.names if not _index_of_rows(name)]
        plan = _plan_columns(names, request, self.stamps[0].path, None)
        self.kind = _name_files("Parquet", self.stamps)
        self.dtype = np.dtype(np.float32)
        for one in opened:
            if any(_kind_in(one.schema, name) == "number" for name in plan.features):
                self.dtype = np.dtype(np.float64)
        self.plan = plan._replace(dtype=self.dtype)
        self.n_columns = len(plan.features)
        step = rows_per_part(self.n_columns, self.dtype.itemsize, request.rows, self.options)
        self.parts = [
            part for k, one in enumerate(opened) for part in _cut_groups(k, one.sizes, step)
        ]
        self.n_rows = sum(part.rows for part in self.parts)
        if not self.n_rows:
            raise DataFileError(f"{self.stamps[0].path}: no rows; add rows")
        self.feature_names = tuple(plan.features)
        self.labelled, self.weighted = plan.label is not None, plan.weight is not None
        self.cursor = _Cursor()
        for k, one in enumerate(opened):
            self._check_columns(k, one.schema, None if request.columns else names)

    def _check_columns(self, file: int, schema: Any, names: list[str] | None) -> None:
        """Raise if a file has other columns than the first one, or columns that are no numbers."""
        part = next((i for i, part in enumerate(self.parts) if part.file == file), None)
        if part is None:  # an empty file
            return
        there = [name for name in schema.names if not _index_of_rows(name)]
        missing = [name for name in names or self.plan.wanted if name not in there]
        extra = [name for name in there if names is not None and name not in names]
        if missing or extra:
            first = self.stamps[0].name
            which = (
                f"has no column {missing[0]!r}, which {first} has"
                if missing
                else (f"has a column {extra[0]!r}, which {first} does not have")
            )
            raise DataFileError(
                f"{self.describe(part)}: it {which}; make all files alike, or choose columns with "
                "columns="
            )
        for name in self.plan.features:
            if _kind_in(schema, name) is None:
                raise DataFileError(
                    f"{self.describe(part)}: column {name!r} holds {schema.field(name).type}, which "
                    "is no number; encode it, or leave it out with columns="
                )

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.parts)

    def read(self, part: int) -> Part:
        """Read a part: only the columns that are needed."""
        import pyarrow.parquet as pq

        one = self.parts[part]
        stamp = self.stamps[one.file]
        stamp.check()
        if one.piece is not None:
            key = (one.file, one.groups[0])
            table = self.cursor.take(key, one.piece, lambda: self._pieces(one))
        else:
            with pq.ParquetFile(stamp.path) as file:
                table = file.read_row_groups(list(one.groups), columns=self._chosen(file))
        if table.num_rows != one.rows:
            raise DataFileError(
                f"it has {table.num_rows} rows, but had {one.rows} when it was opened"
            )
        return _frame_part(table, self.plan, one.first)

    def _chosen(self, file: Any) -> list[str] | None:
        # Names with dots would be taken for paths into nested columns.
        return None if any("." in name for name in self.plan.wanted) else self.plan.wanted

    def _pieces(self, one: _Groups) -> Iterator[Any]:
        """Iterate over a row group in tables of ``step`` rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.stamps[one.file].path, buffer_size=1 << 20) as file:
            waiting: list[Any] = []
            batches = file.iter_batches(one.step, [one.groups[0]], self._chosen(file))
            for batch in batches:
                waiting.append(batch)
                while sum(map(len, waiting)) >= one.step:
                    table = pa.Table.from_batches(waiting)
                    yield table.slice(0, one.step)
                    waiting = table.slice(one.step).to_batches()
            if sum(map(len, waiting)):
                yield pa.Table.from_batches(waiting)

    def describe(self, part: int) -> str:
        """Return a part's number, file and row groups."""
        one = self.parts[part]
        return f"part {part} ({self.stamps[one.file].name}, {one.describe()})"

    def row_number(self, part: int, row: int) -> int:
        """Return the number of a row in its file."""
        return self.parts[part].first + row

    def bytes_of(self, part: int) -> int:
        """Return how many bytes a part takes, while its columns are put together."""
        return 2 * self.parts[part].rows * (self.n_columns * self.dtype.itemsize + 8)

    def identity(self) -> Any:
        """Return the files, and which columns are read."""
        return (self.stamps, self.plan[:3])


class _Footer(NamedTuple):
    schema: Any
    sizes: list[int]  # the rows of each row group


def _read_footer(stamp: FileStamp) -> _Footer:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(stamp.path) as file:
            data = file.metadata
            sizes = [data.row_group(k).num_rows for k in range(data.num_row_groups)]
            return _Footer(file.schema_arrow, sizes)
    except (pa.ArrowException, OSError) as broken:
        raise DataFileError(
            f"{stamp.path}: not a Parquet file, or damaged ({broken}); fetch or write it again"
        ) from broken


def _kind_in(schema: Any, name: str) -> str | None:
    return arrow_number_kind(schema.field(name).type) if name in schema.names else "float32"


def _cut_groups(file: int, sizes: list[int], step: int) -> Iterator[_Groups]:
    """Iterate over parts of a file: small row groups are joined, large ones cut into pieces."""
    waiting: list[int] = []
    first = start = rows = 0
    for k, size in enumerate(sizes):
        if waiting and rows + size > step:
            yield _Groups(file, tuple(waiting), start, rows)
            waiting, start, rows = [], first, 0
        if size > step:
            for piece, begin in enumerate(range(0, size, step)):
                yield _Groups(file, (k,), first + begin, min(step, size - begin), piece, step)
            start = first + size
        elif size:
            waiting.append(k)
            rows += size
        first += size
    if waiting:
        yield _Groups(file, tuple(waiting), start, rows)


def _name_files(format: str, stamps: list[FileStamp]) -> str:
    if len(stamps) == 1:
        return f"{format} {stamps[0].name}"
    return f"{format} {stamps[0].name} … {stamps[-1].name} ({len(stamps)} files)"


# ------------------------------------------------------------------- chunks that users give


def _as_part(item: Any, plan: _Plan | None) -> Part:
    """Return what an item of an iterable, a callable or a partition gives as a part."""
    if plan is not None:
        return _frame_part(item, plan)
    if isinstance(item, tuple | list) and len(item) in (2, 3) and not np.isscalar(item[0]):
        X, y, *weight = item
        return Part(X, y, weight[0] if weight else None)
    if isinstance(item, np.ndarray) or sp.issparse(item) or is_frame(item):
        return Part(item, None, None)
    raise DataFileError(
        f"a chunk is a {type(item).__name__}; it must be a tuple (X, y), or (X, y, weight)"
    )


def _plan_item(item: Any, request: _Request) -> _Plan | None:
    """Return which columns are which, if chunks are frames whose columns have been named."""
    if request.label is None and request.columns is None and request.weight is None:
        return None
    if not is_frame(item):
        raise ValueError(
            "label=, weight= and columns= name columns of frames, but chunks are not frames; give "
            "tuples (X, y) or (X, y, weight)"
        )
    plan = _plan_columns(_frame_names(item), request, "the first chunk", None)
    return plan._replace(dtype=_frame_dtype(item, plan.features))


def _count_rows(item: Any) -> int:
    X = item[0] if isinstance(item, tuple | list) and len(item) in (2, 3) else item
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


class _ChunkSource(RowSource):
    """Rows that others give in chunks; the first one says what they are."""

    plan: _Plan | None = None

    def _adopt(self, item: Any, request: _Request) -> None:
        """Learn from the first chunk what chunks are."""
        self.options = request.options
        self.plan = _plan_item(item, request)
        found = _as_part(item, self.plan)
        X = as_rows(found.X)
        self.n_columns, self.dtype, self.sparse = X.shape[1], X.dtype, bool(sp.issparse(X))
        self.labelled, self.weighted = found.y is not None, found.weight is not None
        if self.plan is not None:
            self.feature_names = _names_if_texts(self.plan.features)
        elif is_frame(found.X):
            self.feature_names = _names_if_texts(_frame_names(found.X))
        self.first_bytes = _bytes_of_rows(X)

    def bytes_of(self, part: int) -> int:
        """Return about how many bytes a part takes: as many as the first."""
        del part
        return self.first_bytes


def _bytes_of_rows(X: Any) -> int:
    numbers = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
    return int(numbers) + 8 * int(X.shape[0])


class SequenceSource(_ChunkSource):
    """Chunks at hand, or callables that load them: any can be read by its number."""

    def __init__(self, items: Sequence[Any], request: _Request, kind: str = "chunks") -> None:
        request.refuse(kind, y="each chunk is a tuple (X, y)")
        kept = [k for k in range(len(items)) if callable(items[k]) or _count_rows(items[k])]
        if not kept:
            raise ValueError("there are no chunks with rows in what was passed; add rows")
        self.items, self.kept = items, kept
        self.kind = kind
        self._adopt(self._item(0), request)
        if not any(callable(items[k]) for k in kept):
            self.n_rows = sum(_count_rows(items[k]) for k in kept)

    def _item(self, part: int) -> Any:
        item = self.items[self.kept[part]]
        return item() if callable(item) else item

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.kept)

    def read(self, part: int) -> Part:
        """Read a part."""
        return _as_part(self._item(part), self.plan)

    def describe(self, part: int) -> str:
        """Return a part's number, and that of the chunk if some are empty."""
        return f"part {part} ({self.kind}, number {self.kept[part]})"

    def identity(self) -> Any:
        """Return digests of the first chunk."""
        return (len(self), [None if found is None else digest(found) for found in self.load(0)])


class IterableSource(_ChunkSource):
    """Chunks of an object that can be iterated over again and again, always with the same rows."""

    def __init__(self, iterable: Any, request: _Request) -> None:
        name = getattr(iterable, "__name__", type(iterable).__name__)
        self.kind = f"iterable {name}"
        request.refuse(self.kind, y="each chunk is a tuple (X, y)")
        self.iterable = iterable
        self.cursor = _Cursor()
        self.sizes: list[int] | None = None
        first = next(self._begin(), None)
        if first is None:
            raise ValueError(f"the {self.kind} gives no chunks with rows; add rows")
        self._adopt(first, request)

    def _begin(self) -> Iterator[Any]:
        chunks = self.iterable() if callable(self.iterable) else self.iterable
        return (item for item in chunks if _count_rows(item))

    def known_length(self) -> int | None:
        """Return the number of parts, or None if nobody has counted them."""
        return None if self.sizes is None else len(self.sizes)

    def __len__(self) -> int:
        """Return the number of parts; at first it takes a pass to count them."""
        if self.sizes is None:
            self.sizes = [_count_rows(item) for item in self._begin()]
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
        found = _as_part(item, self.plan)
        if self.sizes is not None and _count_rows(item) != self.sizes[part]:
            raise DataFileError(
                f"it has {_count_rows(item)} rows and had {self.sizes[part]} before; an iterable "
                "must give the same chunks each time"
            )
        return found

    def describe(self, part: int) -> str:
        """Return a part's number."""
        return f"part {part} ({self.kind})"

    def identity(self) -> Any:
        """Return digests of the first chunk."""
        return (len(self), [None if found is None else digest(found) for found in self.load(0)])


class _Scratch:
    """A folder that is removed when nothing in this process refers to it any more."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder or tempfile.mkdtemp(prefix="maxmargin-rows-")
        if folder is None:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def __reduce__(self) -> Any:
        return (_Scratch, (self.folder,))  # which does not remove it


@dataclass(frozen=True)
class _Spooled:
    """A chunk that was written to a scratch folder."""

    scratch: _Scratch
    number: int
    sparse: bool
    shape: tuple[int, int]
    has: tuple[bool, bool] = field(default=(False, False))

    def path(self, what: str) -> Path:
        return Path(self.scratch.folder, f"{self.number:08d}-{what}.npy")

    def __call__(self) -> tuple[Any, Any, Any]:
        if self.sparse:
            arrays = [np.load(self.path(name)) for name in ("data", "indices", "indptr")]
            X = sp.csr_array(tuple(arrays), shape=self.shape)
        else:
            X = np.load(self.path("X"))
        y, weight = (
            np.load(self.path(name)) if has else None
            for name, has in zip(("y", "weight"), self.has, strict=True)
        )
        return X, y, weight


def _spool(chunks: Iterator[Any], request: _Request) -> SequenceSource:
    """Write the chunks of an iterator, which comes only once, to a scratch folder."""
    scratch = _Scratch()
    written: list[_Spooled] = []
    plan: _Plan | None = None
    for number, item in enumerate(chunks):
        if not _count_rows(item):
            continue
        try:
            plan = plan if written else _plan_item(item, request)
            written.append(_write_chunk(scratch, number, _as_part(item, plan)))
        except DataFileError as wrong:
            raise DataFileError(f"part {number} (iterator): {wrong}") from wrong
    if not written:
        raise ValueError("the iterator gives no chunks with rows; add rows")
    plain = request._replace(label=None, weight=None, columns=None)
    source = SequenceSource(written, plain, "iterator, spooled to disk")
    source.n_rows = sum(one.shape[0] for one in written)
    source.feature_names = None if plan is None else _names_if_texts(plan.features)
    return source


def _write_chunk(scratch: _Scratch, number: int, found: Part) -> _Spooled:
    X = as_rows(found.X)
    has = (found.y is not None, found.weight is not None)
    one = _Spooled(scratch, number, bool(sp.issparse(X)), X.shape, has)
    arrays = {"X": X}
    if one.sparse:
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    if found.y is not None:
        arrays["y"] = as_labels(found.y)
    if found.weight is not None:
        arrays["weight"] = as_weights(found.weight)
    for name, array in arrays.items():
        np.save(one.path(name), array)
    return one


# ------------------------------------------------------------------- files by their names


def _refuse_no_file(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")


def _find_files(what: Any) -> list[Path]:
    """Return the files that a path, a folder, a pattern or a list of these means."""
    if not _is_path(what):
        return [path for one in what for path in _find_files(one)]
    path = Path(what)
    if path.is_dir():
        found = [p for p in path.rglob("*") if p.is_file() and not p.name.startswith((".", "_"))]
        if not found:
            raise FileNotFoundError(f"the folder {path} has no files; name one that has")
        return sorted(found, key=_natural)
    if path.exists() or not _GLOB.search(str(what)):
        _refuse_no_file(path)
        return [path]
    found = [Path(name) for name in glob.glob(str(what), recursive=True) if Path(name).is_file()]
    if not found:
        raise FileNotFoundError(f"no file matches {str(what)!r}; the folder is {Path.cwd()}")
    return sorted(found, key=_natural)


def _natural(path: Path) -> list[Any]:
    """Return a key by which part-2 comes before part-10."""
    return [
        (int(piece), "") if piece.isdigit() else (-1, piece)
        for piece in re.split(r"(\d+)", str(path))
    ]


def _open_files(what: Any, request: _Request) -> RowSource:
    paths = _find_files(what)
    endings = {extension_of(path) for path in paths}
    if len(endings) > 1:
        raise ValueError(
            f"the files are of different kinds ({', '.join(sorted(endings))}); name files of one kind"
        )
    ending = endings.pop()
    if ending == ".npy":
        if len(paths) > 1:
            raise ValueError(f"{len(paths)} .npy files: pass one, or a list of tuples (X, y)")
        return ArraySource(paths[0], request)
    if ending in (".parquet", ".pq"):
        return ParquetSource(paths, request)
    raise ValueError(f"{paths[0]}: files that end with {ending!r} are not known")


# ------------------------------------------------------------------- open


def open(
    what: Any,
    y: Any = None,
    *,
    label: str | int | None = None,
    weight: Any = None,
    columns: Sequence[str | int] | None = None,
    rows: int | None = None,
    memory: int | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    client: Any = None,
) -> RowSource:
    """Open labelled rows in parts."""
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise ValueError(f"rows={rows!r} must be a whole number from 1 on, or None")
    if y is not None and label is not None:
        raise ValueError("y= and label= are both given; labels are in one of them")
    options = BlockOptions(memory, checkpoint, client)  # type: ignore[arg-type]
    request = _Request(y, label, weight, columns, rows, options)
    if isinstance(what, RowSource):
        return _reopen(what, request)
    if _is_path(what) or (_is_list(what) and len(what) and all(map(_is_path, what))):
        return _open_files(what, request)
    if is_frame(what):
        return FrameSource(what, request)
    if isinstance(what, np.ndarray) or sp.issparse(what):
        return ArraySource(what, request)
    return _open_chunks(what, request)


def _is_list(what: Any) -> bool:
    return isinstance(what, list | tuple)


def _reopen(source: RowSource, request: _Request) -> RowSource:
    way_out = "it was said when the rows were opened"
    request.refuse(
        "rows that are open",
        y=way_out,
        label=way_out,
        weight=way_out,
        columns=way_out,
        rows=way_out,
    )
    given = request.options
    changes = {name: getattr(given, name) for name in ("memory", "checkpoint", "client")}
    return source.with_options(**{k: v for k, v in changes.items() if v is not None})


def _open_chunks(what: Any, request: _Request) -> RowSource:
    if _is_list(what):
        chunks = all(callable(item) or is_frame(item) or _is_chunk(item) for item in what)
        return SequenceSource(what, request) if chunks and len(what) else ArraySource(what, request)
    if (
        hasattr(what, "__len__")
        and hasattr(what, "__getitem__")
        and hasattr(what, "__iter__")
        and not hasattr(what, "__array__")
    ):
        return SequenceSource(what, request, type(what).__name__)
    if callable(what):
        return IterableSource(what, request)
    if hasattr(what, "__iter__"):
        chunks = iter(what)
        return _spool(chunks, request) if chunks is what else IterableSource(what, request)
    if hasattr(what, "__array__"):
        return ArraySource(np.asarray(what), request)
    raise TypeError(
        f"rows cannot be opened in a {type(what).__name__}; pass an array, a frame, paths of files, "
        "an iterable of (X, y), or Dask collections"
    )


def _is_chunk(item: Any) -> bool:
    """Tell whether an item is (X, y) or (X, y, weight), and not a row of numbers."""
    if not (isinstance(item, tuple) and len(item) in (2, 3)):
        return False
    X = item[0]
    return sp.issparse(X) or is_frame(X) or np.ndim(X) == 2
