"""Rows of text files: svmlight and tables (CSV, TSV).

Parts are ranges of bytes that begin and end with lines. Where lines cannot be told from bytes alone
(packed files, quoted cells, other encodings than UTF-8), a file is read from its beginning, and
parts are blocks of rows, of which the next one is always at hand.
"""

import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.data.cells import CellError, label_array, no_label, read_column
from maxmargin.data.labelled import resembles_svmlight
from maxmargin.data.layout import FeatureColumn, LabelColumn, Layout
from maxmargin.data.rows import RowBlock, read_rows
from maxmargin.data.source import PACKINGS, TABLE_ENDINGS, extension_of, open_source, refuse_foreign
from maxmargin.data.svmlight import iterate_svmlight, read_svmlight
from maxmargin.data.table import (
    HEADER_ROWS,
    Row,
    Start,
    TableLines,
    check_width,
    find_header,
    open_table,
)
from maxmargin.errors import DataFileError
from maxmargin.rows.frames import FrameColumns, choose_columns
from maxmargin.rows.row_source import (
    BY_LABEL,
    Cursor,
    FileStamp,
    Part,
    Request,
    RowSource,
    name_files,
    rows_per_part,
)

_RANGE_BYTES = 1 << 25
_RANGES_IN_MEMORY = 32
_SAMPLE = 1 << 20  # bytes by which the length of lines is estimated
_ROWS_READ = 1 << 16  # at a time


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
        """Read a file once to count the blocks of its rows."""
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
    """Return the bytes of a range."""
    if request.rows is not None:
        with Path(stamp.path).open("rb") as file:
            sample = file.read(_SAMPLE)
        return max(1, request.rows * len(sample) // max(1, sample.count(b"\n")))
    memory = request.options.memory
    return _RANGE_BYTES if memory is None else min(_RANGE_BYTES, memory // _RANGES_IN_MEMORY)


def is_svmlight(path: Path) -> bool:
    """Tell whether the first line of a file that is no comment is one of svmlight text."""
    with open_source(path) as opened:
        refuse_foreign(opened)
        start = opened.start.decode("utf-8", "replace")
    return resembles_svmlight(start[: start.rfind("\n") + 1] or start)


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
        """Count the rows of a part, and find out how many columns there are up to there."""
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


class TableSource(_TextSource):
    """Rows of tables as text: CSV, TSV."""

    def __init__(self, paths: list[Path], request: Request) -> None:
        request.refuse("tables", y=BY_LABEL)
        self.options, self.cursor = request.options, Cursor()
        self.stamps = [FileStamp.of(path) for path in paths if path.stat().st_size]
        if not self.stamps:
            raise DataFileError(f"{paths[0]}: the file is empty; add rows")
        self.kind = name_files("table", self.stamps)
        start, rows = look_at_table(self.stamps[0], request.label)
        self.layout, chosen = _find_layout(start, rows, request, self.stamps[0].path)
        self.n_columns = len(chosen.features)
        self.feature_names = tuple(chosen.features) if start.names else None
        self.labelled, self.weighted = chosen.label is not None, chosen.weight is not None
        self.rows = rows_per_part(self.n_columns, 8, request.rows, self.options)
        self.headers: list[bytes] = []
        self.parts = []
        for file, stamp in enumerate(self.stamps):
            self._add_file(file, stamp, _range_bytes(stamp, request), request.label)
        self._count_rows()

    def _add_file(self, file: int, stamp: FileStamp, size: int, label: Any) -> None:
        start = look_at_table(stamp, label)[0]
        ranges = None if _is_packed(stamp) else _cut_lines(stamp, start, size)
        if ranges is None:
            self.headers.append(b"")
            self._add_blocks(file)
        else:
            self.headers.append(ranges.header)
            self.parts += [_TextPart(file, *edges) for edges in ranges.edges]

    def _read_range(self, one: _TextPart) -> RowBlock:
        path, header = self.stamps[one.file].path, self.headers[one.file]
        with Path(path).open("rb") as file:
            file.seek(one.begin)
            text = file.read(one.end - one.begin)
        before = one.line - 1 - bool(header)  # lines before those that are read now
        stream = _NamedText(header + text, path)
        try:
            options = {"label": self.labelled, "need_label": True}
            blocks = list(read_rows(stream, self.layout, rows=_ROWS_READ, **options))
        except DataFileError as wrong:
            raise DataFileError(_count_on(str(wrong), path, before)) from wrong
        return _join(blocks, self.layout.n_features, before)

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


class _NamedText(io.BytesIO):
    """Text of a file, for messages."""

    def __init__(self, text: bytes, name: str) -> None:
        super().__init__(text)
        self.name = name


def _count_on(message: str, path: str, before: int) -> str:
    """Return a message in which the line is counted in the whole file."""
    place = re.compile(rf"({re.escape(path)}:)(\d+)")
    return place.sub(lambda found: f"{found[1]}{int(found[2]) + before}", message, count=1)


def _join(blocks: list[RowBlock], width: int, before: int) -> RowBlock:
    if not blocks:  # no row has a label
        return RowBlock(np.empty((0, width)), np.empty(0), np.empty(0, np.int64))
    X = blocks[0].X if len(blocks) == 1 else np.concatenate([block.X for block in blocks])
    y = None if blocks[0].y is None else np.concatenate([block.y for block in blocks])
    return RowBlock(X, y, np.concatenate([block.numbers for block in blocks]) + before)


def look_at_table(stamp: FileStamp, label: Any) -> tuple[Start, list[Row]]:
    """Return how a table begins, and its first rows."""
    with open_source(stamp.path) as opened:
        refuse_foreign(opened)
        table = open_table(opened)
    if not isinstance(table, TableLines):
        raise DataFileError(
            f"{stamp.path}: {table.format} is not read in parts; convert it "
            "(maxmargin.data.convert, or maxmargin convert)"
        )
    by_name = TABLE_ENDINGS.get(extension_of(Path(stamp.path)))
    start = find_header("".join(table.head), stamp.path, by_name, label)
    rows = list(islice(start.body.rows(), HEADER_ROWS))
    for line, cells in rows:
        check_width(cells, start.width, f"{stamp.path}:{line}")
    return start, rows


def _find_layout(
    start: Start, rows: list[Row], request: Request, file: str
) -> tuple[Layout, FrameColumns]:
    """Return how the columns of a table become X, by its first rows."""
    names: list[Any] = list(start.names or range(1, start.width + 1))
    if not rows:
        raise DataFileError(f"{file}: a header but no rows; add rows")
    # Numbers of rows, as pandas and R write them, have no name.
    named = names[1:] if names[0] == "" else names
    chosen = choose_columns(named, request, file, np.dtype(np.float64))
    extra = [] if chosen.weight is None else [chosen.weight]
    columns = [
        _find_notation(names.index(name), name, start, rows, file)
        for name in (*chosen.features, *extra)
    ]
    label = None
    if chosen.label is not None:
        place = names.index(chosen.label)
        texts = [cells[place].strip() for _, cells in rows if not no_label(cells[place])]
        found = label_array(texts)
        label = LabelColumn(place, {"i": "integers", "f": "numbers"}.get(found.dtype.kind, "words"))
    kept = None if start.names is None else tuple(start.names)
    layout = Layout(
        "table",
        len(columns),
        width=start.width,
        names=kept,
        label=label,
        columns=tuple(columns),
        delimiter=start.body.delimiter,
    )
    return layout, chosen


def _find_notation(
    place: int, name: Any, start: Start, rows: list[Row], file: str
) -> FeatureColumn:
    """Return how the numbers of a column are written."""
    try:
        found = read_column([cells[place] for _, cells in rows], start.body.delimiter)
    except CellError as wrong:
        raise DataFileError(f"{file}: column {name!r}: {wrong}") from wrong
    if found.words:
        word = next(value for value in found.values if value is not None)
        raise DataFileError(
            f"{file}: column {name!r} holds words ({word!r}), and rows in parts have numbers; "
            "encode it, or leave it out with columns="
        )
    return FeatureColumn(place, False, found.notation)


class _Ranges(NamedTuple):
    header: bytes  # the line with the names of columns
    edges: list[tuple[int, int, int]]  # begin, end, the number of the first line


def _cut_lines(stamp: FileStamp, start: Start, size: int) -> _Ranges | None:
    """Cut a file into ranges of whole lines; None if its bytes do not tell where rows end."""
    header, edges = b"", []
    with Path(stamp.path).open("rb") as file:
        line = 1
        while line < start.line + bool(start.names):
            header, line = file.readline(), line + 1
        header = header if start.names else b""
        if not _is_simple(header):
            return None
        begin = file.tell()
        while text := file.read(size):
            text += file.readline()
            if not _is_simple(text):
                return None
            edges.append((begin, begin + len(text), line))
            begin, line = begin + len(text), line + text.count(b"\n")
    return _Ranges(header, edges)


def _is_simple(text: bytes) -> bool:
    """Tell whether each row is a line of UTF-8."""
    if b'"' in text or b"\0" in text:
        return False
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
