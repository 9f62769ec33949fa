"""Rows of text files: svmlight and tables (CSV, TSV).

Parts of svmlight text are ranges of bytes that begin and end with lines; a packed file is unpacked
to a scratch folder first. Tables are read once, and their numbers are written to a scratch folder,
from which parts are mapped into memory.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.later import read_rows
from maxmargin.data.layout import FeatureColumn, LabelColumn, Layout
from maxmargin.data.notation import NO_LABEL, CellError, encode, label_array, read_column
from maxmargin.data.svmlight import Svmlight, TextRange, read_range
from maxmargin.data.tables import (
    Start,
    check_width,
    find_start,
    kind_of,
    open_text,
    require_pyarrow,
)
from maxmargin.data.text import PACKINGS, TABLE_ENDINGS, extension_of, open_source
from maxmargin.errors import DataFileError
from maxmargin.rows.chunk_source import ScratchFolder, SequenceSource, spool
from maxmargin.rows.frames import FrameColumns, choose_columns
from maxmargin.rows.row_source import (
    BY_LABEL,
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
_EXPANSION = 3  # bytes of rows for a byte of svmlight text
_EXACT = 2**53


def _refuse_cluster(client: Any, file: str, what: str) -> None:
    if client is not None:
        raise DataFileError(
            f"{file}: {what} goes through a scratch folder of this machine, which the workers of a "
            "cluster (client=) do not see; save it as Parquet, or as plain svmlight text "
            "(maxmargin.data.convert)"
        )


# ------------------------------------------------------------------- svmlight


class _Range(NamedTuple):
    """A range of bytes of a file, and how many rows it has, if they have been counted."""

    file: int
    begin: int
    end: int
    rows: int | None = None


class SvmlightSource(RowSource):
    """Rows of svmlight files."""

    slow = True
    sparse = True
    labelled = True

    def __init__(
        self, paths: list[Path], request: Request, n_features: int | None, zero_based: bool
    ) -> None:
        first = "svmlight text has its label first on each line, and no names of columns"
        request.refuse("svmlight text", y=first, label=first, weight=first, columns=first)
        self.options = request.options
        self.stamps = [FileStamp.of(path) for path in paths]
        self.kind = name_files("svmlight", self.stamps)
        self.zero_based, self.width = zero_based, n_features
        self.scratch: ScratchFolder | None = None
        self.texts = [self._unpacked(path, k) for k, path in enumerate(paths)]
        self.parts = [part for k in range(len(paths)) for part in self._cut(k, request)]
        if n_features is None:
            self._survey()
        self.n_columns = self.width or 0
        if not self.parts:
            raise DataFileError(f"{self.stamps[0].path}: no rows; add rows")
        if not self.n_columns:
            raise DataFileError(f"{self.stamps[0].path}: no features, only labels; add features")
        self.layout = Layout("svmlight", self.n_columns, zero_based=zero_based)

    def _unpacked(self, path: Path, number: int) -> Path:
        if path.suffix.lower() not in PACKINGS:
            return path.absolute()
        _refuse_cluster(self.options.client, str(path), "a packed file")
        self.scratch = self.scratch or ScratchFolder()
        text = Path(self.scratch.folder, f"{number}.svm")
        with open_source(path) as opened, text.open("wb") as file:
            file.writelines(opened.chunks)
        return text

    def _cut(self, number: int, request: Request) -> Iterator[_Range]:
        with self.texts[number].open("rb") as file:
            step = _range_bytes(file.read(_SAMPLE), request)
            size, begin = self.texts[number].stat().st_size, 0
            while begin < size:
                file.seek(min(begin + step, size) - 1)
                file.readline()
                yield _Range(number, begin, file.tell())
                begin = file.tell()

    def _survey(self) -> None:
        """Find out how many rows and columns there are."""
        counted, width = [], 0
        for part, one in enumerate(self.parts):
            X = self.named(part, lambda part=part: self._rows(part)).X
            width = max(width, X.shape[1])
            counted.append(one._replace(rows=X.shape[0]))
        self.width, self.parts = width, [one for one in counted if one.rows]
        self.n_rows = sum(one.rows or 0 for one in counted)

    def _rows(self, part: int) -> Svmlight:
        file, begin, end, _ = self.parts[part]
        self.stamps[file].check()
        text = TextRange(self.stamps[file].path, self.texts[file], begin, end)
        return read_range(text, n_features=self.width, zero_based=self.zero_based)

    def with_options(self, **changes: Any) -> RowSource:
        """Return the same rows with other options."""
        if self.scratch is not None:
            _refuse_cluster(changes.get("client"), self.stamps[0].path, "a packed file")
        return super().with_options(**changes)

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self.parts)

    def read(self, part: int) -> Part:
        """Read a part."""
        found = self._rows(part)
        return Part(found.X, found.y, None)

    def describe(self, part: int) -> str:
        """Return a part's number, its file and where it is in the text there."""
        one = self.parts[part]
        return f"part {part} ({self.stamps[one.file].name}, bytes {one.begin} to {one.end})"

    def bytes_of(self, part: int) -> int:
        """Return about how many bytes a part takes."""
        return (self.parts[part].end - self.parts[part].begin) * _EXPANSION

    def identity(self) -> Any:
        """Return the files, and how their indices count."""
        return (self.stamps, self.zero_based)


def _range_bytes(sample: bytes, request: Request) -> int:
    if request.rows is not None:
        return max(1, request.rows * len(sample) // max(1, sample.count(b"\n")))
    memory = request.options.memory
    return _RANGE_BYTES if memory is None else min(_RANGE_BYTES, memory // _RANGES_IN_MEMORY)


# ------------------------------------------------------------------- tables


class TableSource(SequenceSource):
    """Rows of tables as text (CSV, TSV), of which the numbers are in a scratch folder."""

    numbered = "line"

    def __init__(self, paths: list[Path], request: Request) -> None:
        request.refuse("tables", y=BY_LABEL)
        require_pyarrow(str(paths[0]))
        _refuse_cluster(request.options.client, str(paths[0]), "a table as text")
        self.stamps = [FileStamp.of(path) for path in paths if path.stat().st_size]
        if not self.stamps:
            raise DataFileError(f"{paths[0]}: the file is empty; add rows")
        start = read_start(self.stamps[0], request.label)
        self.layout, chosen = _find_layout(start, request, self.stamps[0].path)
        self.lines: list[tuple[str, Any]] = []  # the file and the lines of each part
        step = rows_per_part(len(chosen.features), 8, request.rows, request.options)
        plain = request._replace(label=None, weight=None, columns=None)
        kind = name_files("table", self.stamps)
        spooled = spool(self._parse(step, chosen), plain, kind)
        super().__init__(spooled.items, plain, kind)
        self.n_rows = spooled.n_rows
        self.feature_names = tuple(chosen.features) if start.names else None

    def _parse(self, step: int, chosen: FrameColumns) -> Iterator[tuple[Any, Any, Any]]:
        label, reading = self.layout.label, self.layout
        if label is not None and label.kind == "integers":  # later ones may have fractions
            reading = replace(self.layout, label=label._replace(kind="numbers"))
        for stamp in self.stamps:
            for X, y, numbers, _ in read_rows(
                stamp.path, reading, rows=step, label=label is not None, need_label=True
            ):
                if reading is not self.layout:
                    self._find_fractions(y, numbers, stamp.path)
                consecutive = numbers[-1] - numbers[0] == len(numbers) - 1
                lines = range(numbers[0], numbers[-1] + 1) if consecutive else numbers
                self.lines.append((stamp.name, lines))
                weighted = chosen.weight is not None
                yield (X[:, :-1], y, X[:, -1]) if weighted else (X, y, None)

    def _find_fractions(self, y: Any, numbers: Any, file: str) -> None:
        if (y != np.trunc(y)).any() and self.layout.label is not None:
            self.layout = replace(self.layout, label=self.layout.label._replace(kind="numbers"))
        large = np.abs(y) >= _EXACT
        if large.any():
            raise DataFileError(
                f"{file}:{numbers[np.argmax(large)]}: the label has more than 53 bits; write "
                "such labels as words, with a letter in front"
            )

    def read(self, part: int) -> Part:
        """Read a part."""
        found, label = super().read(part), self.layout.label
        whole = label is not None and label.kind == "integers"
        return found._replace(y=found.y.astype(np.int64)) if whole else found

    def describe(self, part: int) -> str:
        """Return a part's number, its file and its lines there."""
        file, lines = self.lines[part]
        return f"part {part} ({file}, lines {lines[0]} to {lines[-1]})"

    def row_number(self, part: int, row: int) -> int:
        """Return the line of a row in its file."""
        return int(self.lines[part][1][row])

    def with_options(self, **changes: Any) -> RowSource:
        """Return the same rows with other options."""
        _refuse_cluster(changes.get("client"), self.stamps[0].path, "a table as text")
        return super().with_options(**changes)

    def identity(self) -> Any:
        """Return the files, and how they are read."""
        return (self.stamps, self.layout)


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
    names_kept = None if start.names is None else tuple(start.names)
    layout = Layout("table", len(columns), width=start.width, names=names_kept, label=label)
    return replace(layout, columns=columns, delimiter=start.dialect.delimiter), chosen


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
