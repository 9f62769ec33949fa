"""Rows of text files: svmlight and tables (CSV, TSV).

Parts are ranges of bytes that begin and end with lines. Where lines cannot be told from bytes alone
(packed files, quoted cells, other encodings than UTF-8), a file is read from its beginning, and
parts are blocks of rows, of which the next one is always at hand.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.data.later import Found, LaterRows, RowBlock, find_columns, read_rows
from maxmargin.data.layout import FeatureColumn, LabelColumn, Layout
from maxmargin.data.notation import NO_LABEL, CellError, encode, label_array, read_column
from maxmargin.data.svmlight import iterate_svmlight, read_svmlight
from maxmargin.data.tables import (
    OpenTable,
    Start,
    check_width,
    find_start,
    kind_of,
    open_text,
    parse_rows,
    require_pyarrow,
)
from maxmargin.data.text import (
    PACKINGS,
    TABLE_ENDINGS,
    extension_of,
    open_source,
    with_line_feeds,
)
from maxmargin.errors import DataFileError
from maxmargin.rows.frames import FrameColumns, choose_columns
from maxmargin.rows.request import BY_LABEL, Request, rows_per_part
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.stored_files import Cursor, FileStamp, name_files

_RANGE_BYTES = 1 << 25
_RANGES_IN_MEMORY = 32
_SAMPLE = 1 << 20  # bytes by which the length of lines is estimated


class _TextPart(NamedTuple):
    """A range of bytes of a file, or a block of its rows."""

    file: int
    begin: int
    end: int
    line: int = 1  # the number of the first line
    block: int | None = None  # of those of a file that is read from its beginning
    rows: int | None = None  # if they have been counted


class _TextSource(RowSource):
    """Rows of text files."""

    slow = True
    numbered = "line"
    stamps: list[FileStamp]
    parts: list[_TextPart]
    cursor: Cursor
    expansion = 2  # bytes of rows for a byte of text

    def _read_range(self, one: _TextPart) -> RowBlock:
        raise NotImplementedError

    def _stream(self, stamp: FileStamp) -> Iterator[RowBlock]:
        raise NotImplementedError

    def _block(self, part: int) -> RowBlock:
        one = self.parts[part]
        self.stamps[one.file].check()
        if one.block is None:
            return self._read_range(one)
        begin = self.stamps[one.file]
        found: RowBlock = self.cursor.take(one.file, one.block, lambda: self._stream(begin))
        return found

    def _add_blocks(self, file: int) -> None:
        for block, found in enumerate(self._stream(self.stamps[file])):
            size = int(found.X.nnz * 12 if sp.issparse(found.X) else found.X.nbytes)
            self.parts.append(_TextPart(file, 0, size, block=block, rows=len(found.numbers)))

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.parts)

    def read(self, part: int) -> Part:
        """Read a part."""
        found = self._block(part)
        return Part(found.X, found.y, None)

    def describe(self, part: int) -> str:
        """Return a part's number, its file and where it is there."""
        one = self.parts[part]
        where = f"bytes {one.begin} to {one.end}" if one.block is None else f"block {one.block}"
        return f"part {part} ({self.stamps[one.file].name}, {where})"

    def row_number(self, part: int, row: int) -> int:
        """Return the line of a row in its file."""
        return int(self._block(part).numbers[row])

    def bytes_of(self, part: int) -> int:
        """Return about how many bytes a part takes."""
        one = self.parts[part]
        return (one.end - one.begin) * (self.expansion if one.block is None else 1)

    def _count_rows(self) -> None:
        counts = [one.rows for one in self.parts]
        self.n_rows = None if None in counts else sum(count or 0 for count in counts)
        if not self.parts:
            raise DataFileError(f"{self.stamps[0].path}: no rows; add rows")


def _is_packed(stamp: FileStamp) -> bool:
    return Path(stamp.path).suffix.lower() in PACKINGS


def _range_bytes(stamp: FileStamp, request: Request) -> int:
    if request.rows is not None:
        with Path(stamp.path).open("rb") as file:
            sample = file.read(_SAMPLE)
        return max(1, request.rows * len(sample) // max(1, sample.count(b"\n")))
    memory = request.options.memory
    return _RANGE_BYTES if memory is None else min(_RANGE_BYTES, memory // _RANGES_IN_MEMORY)


# ------------------------------------------------------------------- svmlight


class SvmlightSource(_TextSource):
    """Rows of svmlight files."""

    sparse = True
    labelled = True
    expansion = 3

    def __init__(
        self, paths: list[Path], request: Request, n_features: int | None, zero_based: bool
    ) -> None:
        first = "svmlight text has its label first on each line, and no names of columns"
        request.refuse("svmlight text", y=first, label=first, weight=first, columns=first)
        self.options, self.cursor = request.options, Cursor()
        self.stamps = [FileStamp.of(path) for path in paths]
        self.kind = name_files("svmlight", self.stamps)
        self.zero_based, self.block_bytes = zero_based, _range_bytes(self.stamps[0], request)
        self.n_columns, self.width = n_features or 0, n_features
        self.parts = []
        for file, stamp in enumerate(self.stamps):
            if _is_packed(stamp):
                self._add_blocks(file)
            else:
                self._add_ranges(file)
        if n_features is None:
            self.parts = [self._survey(part) for part in range(len(self.parts))]
            self.width = self.n_columns
        self.parts = [one for one in self.parts if one.rows != 0]
        self._count_rows()
        if not self.n_columns:
            raise DataFileError(f"{self.stamps[0].path}: no features, only labels; add features")
        self.layout = Layout("svmlight", self.n_columns, zero_based=zero_based)

    def _add_ranges(self, file: int) -> None:
        size = self.stamps[file].size
        for begin in range(0, size, self.block_bytes):
            self.parts.append(_TextPart(file, begin, min(size, begin + self.block_bytes)))

    def _survey(self, part: int) -> _TextPart:
        try:
            X = self._block(part).X
        except ValueError as wrong:
            raise DataFileError(f"{self.describe(part)}: {wrong}") from wrong
        self.n_columns = max(self.n_columns, X.shape[1])
        return self.parts[part]._replace(rows=X.shape[0])

    def _read_range(self, one: _TextPart) -> RowBlock:
        found = read_svmlight(
            self.stamps[one.file].path,
            n_features=self.width,
            zero_based=self.zero_based,
            offset=one.begin,
            length=one.end - one.begin,
        )
        return RowBlock(found.X, found.y, found.numbers)

    def _stream(self, stamp: FileStamp) -> Iterator[RowBlock]:
        blocks = iterate_svmlight(
            stamp.path,
            block_bytes=self.block_bytes,
            n_features=self.width,
            zero_based=self.zero_based,
        )
        return (RowBlock(found.X, found.y, found.numbers) for found in blocks)

    def identity(self) -> Any:
        """Return the files, and how their indices count."""
        return (self.stamps, self.zero_based)


# ------------------------------------------------------------------- tables


class _Ranges(NamedTuple):
    """How the lines of a file are read, wherever they begin."""

    start: Start
    found: Found
    edges: list[tuple[int, int, int]]  # begin, end, the number of the first line


class TableSource(_TextSource):
    """Rows of tables as text: CSV, TSV."""

    def __init__(self, paths: list[Path], request: Request) -> None:
        request.refuse("tables", y=BY_LABEL)
        require_pyarrow(str(paths[0]))
        self.options, self.cursor = request.options, Cursor()
        self.stamps = [FileStamp.of(path) for path in paths if path.stat().st_size]
        if not self.stamps:
            raise DataFileError(f"{paths[0]}: the file is empty; add rows")
        self.kind = name_files("table", self.stamps)
        start = read_start(self.stamps[0], request.label)
        self.layout, chosen = _find_layout(start, request, self.stamps[0].path)
        self.n_columns = len(chosen.features)
        self.feature_names = tuple(chosen.features) if start.names else None
        self.labelled, self.weighted = chosen.label is not None, chosen.weight is not None
        self.rows = rows_per_part(self.n_columns, 8, request.rows, self.options)
        self.ranges: dict[int, _Ranges] = {}
        self.parts = []
        for file, stamp in enumerate(self.stamps):
            ranges = None if _is_packed(stamp) else self._cut_lines(stamp, request)
            if ranges is None:
                self._add_blocks(file)
            else:
                self.ranges[file] = ranges._replace(edges=[])
                self.parts += [_TextPart(file, *edges) for edges in ranges.edges]
        self._count_rows()

    def _cut_lines(self, stamp: FileStamp, request: Request) -> _Ranges | None:
        size, edges = _range_bytes(stamp, request), []
        start = read_start(stamp, request.label)
        with open_source(stamp.path) as opened:
            found = find_columns(opened, "text", self.layout)[1]
        with Path(stamp.path).open("rb") as file:
            mark = file.read(3)
            file.seek(3 if mark == b"\xef\xbb\xbf" else 0)
            line = start.dialect.skip + 1
            if not all(_is_simple(file.readline()) for _ in range(start.dialect.skip)):
                return None
            begin = file.tell()
            while text := file.read(size):
                text += file.readline()
                if not _is_simple(text):
                    return None
                edges.append((begin, begin + len(text), line))
                begin, line = begin + len(text), line + text.count(b"\n")
        return _Ranges(start._replace(rows=[]), found, edges)

    def _read_range(self, one: _TextPart) -> RowBlock:
        path, (start, found, _) = self.stamps[one.file].path, self.ranges[one.file]
        with Path(path).open("rb") as file:
            file.seek(one.begin)
            text = with_line_feeds(file.read(one.end - one.begin))
        dialect = start.dialect._replace(skip=one.line - 1)
        table = OpenTable(
            path, "", None, found.width,
            lambda kinds: parse_rows(iter([text]), dialect, found.width, kinds, path),
            "line", dialect.delimiter,
        )  # fmt: skip
        reader = LaterRows(table, found, self.layout, self.labelled, need_label=True)
        return _join([reader.read(piece) for piece in table.pieces(reader.kinds)], self.layout)

    def _stream(self, stamp: FileStamp) -> Iterator[RowBlock]:
        return read_rows(
            stamp.path, self.layout, rows=self.rows, label=self.labelled, need_label=True
        )

    def read(self, part: int) -> Part:
        """Read a part."""
        found = self._block(part)
        X, weight = found.X, None
        if self.weighted:
            X, weight = X[:, :-1], X[:, -1]
        return Part(X, found.y, weight)

    def identity(self) -> Any:
        """Return the files, and how they are read."""
        return (self.stamps, self.layout)


def _join(pieces: list[tuple[Any, Any, Any]], layout: Layout) -> RowBlock:
    if not pieces:  # blank lines only
        return RowBlock(np.empty((0, layout.n_features)), np.empty(0), np.empty(0, np.int64))
    X, y, numbers = zip(*pieces, strict=True)
    labels = None if y[0] is None else np.concatenate(y)
    return RowBlock(X[0] if len(X) == 1 else np.concatenate(X), labels, np.concatenate(numbers))


def read_start(stamp: FileStamp, label: Any) -> Start:
    """Return how a table as text begins, with its first rows."""
    with open_source(stamp.path) as opened:
        kind = kind_of(opened)
        if kind != "text":
            raise DataFileError(
                f"{stamp.path}: {kind} is not read in parts; save it as Parquet or CSV"
            )
        by_name = TABLE_ENDINGS.get(extension_of(Path(stamp.path)))
        start = find_start(open_text(opened), by_name, label)
    for line, cells in start.rows:
        check_width(cells, start.width, f"{stamp.path}:{line}")
    return start


def _find_layout(start: Start, request: Request, file: str) -> tuple[Layout, FrameColumns]:
    import pyarrow as pa

    names: list[Any] = list(start.names or range(1, start.width + 1))
    if not start.rows:
        raise DataFileError(f"{file}: a header but no rows; add rows")
    # Numbers of rows, as pandas and R write them, have no name.
    named = names[1:] if names[0] == "" else names
    chosen = choose_columns(named, request, file, np.dtype(np.float64))

    def cells(name: Any) -> Any:
        return pa.array([row[names.index(name)] for _, row in start.rows], pa.string())

    extra = [] if chosen.weight is None else [chosen.weight]
    columns = tuple(
        FeatureColumn(names.index(name), False, _find_notation(name, cells(name), start, file))
        for name in (*chosen.features, *extra)
    )
    label = None
    if chosen.label is not None:
        found = label_array(encode(cells(chosen.label), NO_LABEL)[1].to_pylist())
        kind = {"i": "integers", "f": "numbers"}.get(found.dtype.kind, "words")
        label = LabelColumn(names.index(chosen.label), kind)
    layout = Layout(
        "table",
        len(columns),
        width=start.width,
        names=None if start.names is None else tuple(start.names),
        label=label,
        columns=columns,
        delimiter=start.dialect.delimiter,
    )
    return layout, chosen


def _find_notation(name: Any, cells: Any, start: Start, file: str) -> tuple[str, ...]:
    try:
        found = read_column(cells, start.dialect.delimiter)
    except CellError as wrong:
        raise DataFileError(f"{file}: column {name!r}: {wrong}") from wrong
    if found.words is not None:
        raise DataFileError(
            f"{file}: column {name!r} holds words ({found.words[0]!r}), and rows in parts have "
            "numbers; encode it, or leave it out with columns="
        )
    return found.notation


def _is_simple(text: bytes) -> bool:
    if b'"' in text or b"\0" in text or b"\r" in text.replace(b"\r\n", b""):
        return False
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
