"""Rows of Parquet files; parts are row groups."""

from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.layout import FeatureColumn, LabelColumn, Layout
from maxmargin.data.sources import FileSource, Place
from maxmargin.data.tables import is_index_of_rows, require_pyarrow
from maxmargin.errors import DataFileError
from maxmargin.rows.frames import FrameColumns, arrow_number_kind, choose_columns, read_frame
from maxmargin.rows.request import BY_LABEL, Request
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.stored_files import FileStamp, name_files


class _RowGroup(NamedTuple):
    """A row group of a file."""

    stamp: FileStamp
    number: int
    rows: range  # their numbers in the file
    plan: FrameColumns

    @property
    def place(self) -> Place:
        size = len(self.rows) * (len(self.plan.features) * self.plan.dtype.itemsize + 8)
        # Twice, while its columns are put together.
        return Place(f"{self.stamp.name}, row group {self.number}", 2 * size, self.rows)

    def __call__(self) -> Part:
        import pyarrow.parquet as pq

        self.stamp.check()
        # Names with dots would be taken for paths into nested columns.
        dotted = any("." in name for name in self.plan.wanted)
        with pq.ParquetFile(self.stamp.path) as file:
            table = file.read_row_group(self.number, None if dotted else self.plan.wanted)
        return read_frame(table, self.plan, self.rows[0])


def open_parquet(paths: list[Path], request: Request) -> RowSource:
    """Open Parquet files."""
    require_pyarrow(str(paths[0]))
    request.refuse("Parquet files", y=BY_LABEL)
    stamps = [FileStamp.of(path) for path in paths]
    opened = [_read_footer(stamp) for stamp in stamps]
    plan = choose_columns(_names_of(opened[0].schema), request, stamps[0].path, None)
    kinds = [_kind_in(one.schema, name) for one in opened for name in plan.features]
    plan = plan._replace(dtype=np.dtype(np.float64 if "number" in kinds else np.float32))
    groups = [
        _RowGroup(stamp, k, range(end - size, end), plan)
        for stamp, one in zip(stamps, opened, strict=True)
        for k, (size, end) in enumerate(zip(one.sizes, accumulate(one.sizes), strict=True))
        if size
    ]
    places, layout = [one.place for one in groups], _find_layout(opened[0].schema, plan)
    source = FileSource(stamps, name_files("Parquet", stamps), groups, places, request, layout)
    source.n_rows = sum(len(one.rows) for one in groups)
    source.feature_names, source.slow = tuple(plan.features), True
    return source


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
    return arrow_number_kind(schema.field(name).type) if name in schema.names else None
