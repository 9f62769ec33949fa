"""Rows of Parquet files; parts are row groups."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.layout import FeatureColumn, LabelColumn, Layout
from maxmargin.data.tables import is_index_of_rows, require_pyarrow
from maxmargin.errors import DataFileError
from maxmargin.rows.frames import FrameColumns, arrow_number_kind, choose_columns, read_frame
from maxmargin.rows.request import BY_LABEL, Request, rows_per_part
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.stored_files import Cursor, FileStamp, name_files


class _RowGroups(NamedTuple):
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

    slow = True

    def __init__(self, paths: list[Path], request: Request) -> None:
        require_pyarrow(str(paths[0]))
        request.refuse("Parquet files", y=BY_LABEL)
        self.options = request.options
        self.stamps = [FileStamp.of(path) for path in paths]
        opened = [_read_footer(stamp) for stamp in self.stamps]
        names = _names_of(opened[0].schema)
        plan = choose_columns(names, request, self.stamps[0].path, None)
        self.kind = name_files("Parquet", self.stamps)
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
        self.layout = _find_layout(opened[0].schema, plan)
        self.cursor = Cursor()
        for k, one in enumerate(opened):
            self._check_columns(k, one.schema, None if request.columns else names)

    def _check_columns(self, file: int, schema: Any, names: list[str] | None) -> None:
        """Raise if a file has other columns than the first one, or columns that are no numbers."""
        part = next((i for i, part in enumerate(self.parts) if part.file == file), None)
        if part is None:  # an empty file
            return
        there = _names_of(schema)
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
                    f"{self.describe(part)}: column {name!r} holds {schema.field(name).type}, "
                    "which is no number; encode it, or leave it out with columns="
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
        return read_frame(table, self.plan, one.first)

    def _chosen(self, file: Any) -> list[str] | None:
        # Names with dots would be taken for paths into nested columns.
        return None if any("." in name for name in self.plan.wanted) else self.plan.wanted

    def _pieces(self, one: _RowGroups) -> Iterator[Any]:
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


def table_names(stamp: FileStamp) -> list[str]:
    """Return the names of the columns of a file."""
    require_pyarrow(stamp.path)
    return _names_of(_read_footer(stamp).schema)


def _names_of(schema: Any) -> list[str]:
    return [name for name in schema.names if not is_index_of_rows(name)]


def _find_layout(schema: Any, plan: FrameColumns) -> Layout:
    import pyarrow as pa

    names, label = _names_of(schema), None
    if plan.label is not None:
        kind = schema.field(plan.label).type
        numbers = "integers" if pa.types.is_integer(kind) else "numbers"
        label = LabelColumn(
            names.index(plan.label), numbers if arrow_number_kind(kind) else "words"
        )
    columns = tuple(FeatureColumn(names.index(name)) for name in plan.features)
    layout = Layout("table", len(columns), width=len(names), names=tuple(names), label=label)
    return replace(layout, columns=columns)


def _kind_in(schema: Any, name: str) -> str | None:
    return arrow_number_kind(schema.field(name).type) if name in schema.names else "float32"


def _cut_groups(file: int, sizes: list[int], step: int) -> Iterator[_RowGroups]:
    """Iterate over parts of a file: small row groups are joined, large ones cut into pieces."""
    waiting: list[int] = []
    first = start = rows = 0
    for k, size in enumerate(sizes):
        if waiting and rows + size > step:
            yield _RowGroups(file, tuple(waiting), start, rows)
            waiting, start, rows = [], first, 0
        if size > step:
            for piece, begin in enumerate(range(0, size, step)):
                yield _RowGroups(file, (k,), first + begin, min(step, size - begin), piece, step)
            start = first + size
        elif size:
            waiting.append(k)
            rows += size
        first += size
    if waiting:
        yield _RowGroups(file, tuple(waiting), start, rows)
