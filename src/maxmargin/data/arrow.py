"""Parquet and Arrow files: columns that have types, read without turning numbers into text."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.cells import Column
from maxmargin.data.source import DataSource
from maxmargin.data.table import Table, find_label
from maxmargin.errors import DataFileError
from maxmargin.rows.arrow_values import read_values

ARROW_ENDINGS = {".parquet", ".arrow", ".feather"}
_PARQUET, _ARROW = b"PAR1", b"ARROW1"
_index_of_rows = re.compile(r"__index_level_\d+__").fullmatch  # as pandas names it
_ROWS = 1 << 16


def is_arrow(opened: DataSource) -> bool:
    """Tell whether a source is a Parquet or an Arrow file."""
    start = opened.start
    # Text may begin with a column PAR1, but then has no such bytes.
    binary = start.startswith((_PARQUET, _ARROW)) and re.search(rb"[\x00-\x08]", start) is not None
    return opened.extension in ARROW_ENDINGS or binary


class Frame(NamedTuple):
    """An opened table whose columns have names and types."""

    file: str
    format: str
    names: list[str]
    batches: Callable[[Sequence[int], int], Iterator[dict[int, Any]]]
    """Iterates over some columns in so many rows at a time."""

    def column(self, index: int) -> str:
        """Return a file's column, for messages."""
        return f"{self.file}: column {index + 1} ({self.names[index]})"


def read_arrow(opened: DataSource, label: str | int | None) -> Table:
    """Return the table that a Parquet or Arrow file is."""
    frame = open_frame(opened)
    width = len(frame.names)
    if width < 2:
        raise DataFileError(f"{frame.file}: only one column; a table needs a label and a feature")
    found = find_label(frame.names, width, label, frame.file)
    import pyarrow as pa

    parts = list(frame.batches(range(width), _ROWS))
    rows = sum(len(part[0]) for part in parts)
    if not rows:
        raise DataFileError(f"{frame.file}: no rows; it needs at least one labelled row")
    columns: list[Any] = []
    for j in range(width):
        values = read_values(pa.chunked_array([part.pop(j) for part in parts]), frame.column(j))
        moments = values.kind in ("dates", "times")
        columns.append(Column(values.cells, (values.kind,)) if moments else values.cells)
    return Table(frame.file, frame.names, columns, found, np.arange(rows), frame.format, "row")


def require_pyarrow(name: str) -> None:
    """Raise with the way out if pyarrow, which a file of this name needs, is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as missing:
        raise ImportError(
            f"{name}: Parquet and Arrow files need pyarrow ({missing}); pip install pyarrow"
        ) from missing


def open_frame(opened: DataSource) -> Frame:
    """Open a Parquet or Arrow file."""
    require_pyarrow(opened.name)
    parquet = opened.start.startswith(_PARQUET)
    if not parquet and not opened.start.startswith(_ARROW):
        raise DataFileError(
            f"{opened.name}: not a Parquet or Arrow file, whatever its name says; fetch it again, "
            "or name it as what it is"
        )
    with _naming(opened.name):
        return _open_parquet(opened) if parquet else _open_ipc(opened)


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """Make errors of pyarrow about what is in a file name that file."""
    import pyarrow as pa

    try:
        yield
    except DataFileError:
        raise
    except OSError as broken:
        if broken.errno is not None:
            raise
        raise DataFileError(f"{file}: damaged ({broken}); fetch or write it again") from broken
    except (pa.ArrowException, UnicodeError, ValueError, KeyError, OverflowError) as broken:
        raise DataFileError(f"{file}: damaged ({broken}); fetch or write it again") from broken


def _bytes_of(opened: DataSource) -> Any:
    import pyarrow as pa

    if opened.path is not None:
        return pa.memory_map(str(opened.path), "rb")
    return pa.BufferReader(b"".join(opened.chunks))


def _open_parquet(opened: DataSource) -> Frame:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(_bytes_of(opened))
    kept, names = _without_index(file.schema_arrow.names)

    # Such names do not tell columns apart, so that all of them have to be read.
    unclear = any("." in name for name in names) or len(set(names)) < len(names)

    def batches(wanted: Sequence[int], rows: int) -> Iterator[dict[int, Any]]:
        chosen = None if unclear else list({names[j] for j in wanted})
        with _naming(opened.name):
            for batch in file.iter_batches(rows, columns=chosen):
                there = batch.schema.names
                yield {
                    j: batch.column(kept[j] if unclear else there.index(names[j])) for j in wanted
                }

    return Frame(opened.name, "Parquet", names, batches)


def _open_ipc(opened: DataSource) -> Frame:
    import pyarrow as pa

    file = pa.ipc.open_file(_bytes_of(opened))
    kept, names = _without_index(file.schema.names)

    def batches(wanted: Sequence[int], rows: int) -> Iterator[dict[int, Any]]:
        with _naming(opened.name):
            for k in range(file.num_record_batches):
                batch = file.get_batch(k)
                batch.validate(full=True)
                for start in range(0, batch.num_rows, rows):
                    part = batch.slice(start, rows)
                    yield {j: part.column(kept[j]) for j in wanted}

    return Frame(opened.name, "Arrow", names, batches)


def _without_index(names: list[str]) -> tuple[list[int], list[str]]:
    """Return the places and the names of columns that are not the numbers of rows pandas wrote."""
    kept = [j for j, name in enumerate(names) if not _index_of_rows(name)]
    return kept, [names[j] for j in kept]
