"""Rows of text files: svmlight and tables (CSV, TSV).

Parts of svmlight text are ranges of bytes that begin and end with lines; a packed file is unpacked
to a scratch folder first. Tables are read once, and their numbers are written to a scratch folder,
from which parts are mapped into memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.later import read_rows
from maxmargin.data.layout import FeatureColumn, LabelColumn, Layout
from maxmargin.data.notation import NO_LABEL, CellError, encode, label_array, read_column
from maxmargin.data.svmlight import read_range
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
from maxmargin.rows.request import BY_LABEL, Request, rows_per_part
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.rows.stored_files import FileStamp, name_files

_RANGE_BYTES = 1 << 25
_RANGES_IN_MEMORY = 32
_SAMPLE = 1 << 20  # bytes by which the length of lines is estimated
_EXPANSION = 3  # bytes of rows for a byte of svmlight text


class Place(NamedTuple):
    """Where a part is in a file."""

    name: str
    size: int  # about how many bytes its rows take
    numbers: Sequence[int] | None = None  # by which messages call its rows


class FileSource(SequenceSource):
    """Rows of files; each part is read by a function."""

    layout: Layout
    scratch: bool = False  # whether parts are read from a scratch folder

    def __init__(
        self,
        stamps: list[FileStamp],
        kind: str,
        items: list[Any],
        places: list[Place],
        request: Request,
        layout: Layout,
    ) -> None:
        if not items:
            raise DataFileError(f"{stamps[0].path}: no rows; add rows")
        self.stamps, self.places, self.layout = stamps, places, layout
        plain = request._replace(y=None, label=None, weight=None, columns=None)
        self.named(0, lambda: super(FileSource, self).__init__(items, plain, kind))

    def describe(self, part: int) -> str:
        """Return a part's number, its file and where it is there."""
        return f"part {part} ({self.places[part].name})"

    def row_number(self, part: int, row: int) -> int:
        """Return the number of a row in its file."""
        numbers = self.places[part].numbers
        return row if numbers is None else int(numbers[row])

    def with_options(self, **changes: Any) -> RowSource:
        """Return the same rows with other options."""
        if self.scratch:
            refuse_cluster(changes.get("client"), self.stamps[0].path)
        return super().with_options(**changes)

    def identity(self) -> Any:
        """Return the files, and how they are read."""
        return (self.stamps, self.layout, getattr(self.items[0], "plan", None))


def refuse_cluster(client: Any, file: str) -> None:
    """Raise if a cluster is to read what is in a scratch folder."""
    if client is not None:
        raise DataFileError(
            f"{file}: tables as text and packed files go through a scratch folder of this machine, "
            "which the workers of a cluster (client=) do not see; save it as Parquet, or as plain "
            "svmlight text (maxmargin.data.convert)"
        )


# ------------------------------------------------------------------- svmlight


class _Range(NamedTuple):
    """A range of bytes of a text."""

    stamp: FileStamp
    text: Path  # the file, or what was unpacked
    begin: int
    end: int
    n_features: int | None
    zero_based: bool
    scratch: ScratchFolder | None

    @property
    def place(self) -> Place:
        size = _EXPANSION * (self.end - self.begin)
        return Place(f"{self.stamp.name}, bytes {self.begin} to {self.end}", size)

    def __call__(self) -> Part:
        self.stamp.check()
        found = read_range(
            self.text,
            self.begin,
            self.end,
            name=self.stamp.path,
            n_features=self.n_features,
            zero_based=self.zero_based,
        )
        return Part(found.X, found.y, None)


def open_svmlight(
    paths: list[Path], request: Request, n_features: int | None, zero_based: bool
) -> RowSource:
    """Open svmlight files."""
    first = "svmlight text has its label first on each line, and no names of columns"
    request.refuse("svmlight text", y=first, label=first, weight=first, columns=first)
    stamps, n_rows, scratch = [FileStamp.of(path) for path in paths], None, None
    if any(path.suffix.lower() in PACKINGS for path in paths):
        refuse_cluster(request.options.client, str(paths[0]))
        scratch = ScratchFolder()
    ranges = [
        _Range(stamp, text, *edges, n_features, zero_based, scratch)
        for k, stamp in enumerate(stamps)
        for text in [_unpack(Path(stamp.path), scratch, k)]
        for edges in _cut(text, request)
    ]
    if n_features is None:
        shapes = [_shape_of(one, k) for k, one in enumerate(ranges)]
        n_rows, n_features = sum(n for n, _ in shapes), max((d for _, d in shapes), default=0)
        kept = [one for one, (n, _) in zip(ranges, shapes, strict=True) if n]
        ranges = [one._replace(n_features=n_features) for one in kept]
        if ranges and not n_features:
            raise DataFileError(f"{stamps[0].path}: no features, only labels; add features")
    layout = Layout("svmlight", n_features, zero_based=zero_based)
    places, kind = [one.place for one in ranges], name_files("svmlight", stamps)
    source = FileSource(stamps, kind, ranges, places, request, layout)
    source.slow, source.scratch, source.n_rows = True, scratch is not None, n_rows
    return source


def _unpack(path: Path, scratch: ScratchFolder | None, number: int) -> Path:
    if scratch is None or path.suffix.lower() not in PACKINGS:
        return path
    text = Path(scratch.folder, f"{number}.svm")
    with open_source(path) as opened, text.open("wb") as file:
        file.writelines(opened.chunks)
    return text


def _cut(text: Path, request: Request) -> Iterator[tuple[int, int]]:
    memory, size, begin = request.options.memory, text.stat().st_size, 0
    step = _RANGE_BYTES if memory is None else min(_RANGE_BYTES, memory // _RANGES_IN_MEMORY)
    with text.open("rb") as file:
        if request.rows is not None:
            sample = file.read(_SAMPLE)
            step = max(1, request.rows * len(sample) // max(1, sample.count(b"\n")))
        while begin < size:
            file.seek(min(begin + step, size) - 1)
            file.readline()
            yield begin, file.tell()
            begin = file.tell()


def _shape_of(one: _Range, number: int) -> tuple[int, int]:
    try:
        X = one().X
    except ValueError as wrong:
        raise DataFileError(f"part {number} ({one.place.name}): {wrong}") from wrong
    return int(X.shape[0]), int(X.shape[1])


# ------------------------------------------------------------------- tables


def open_tables(paths: list[Path], request: Request) -> RowSource:
    """Open tables as text (CSV, TSV)."""
    request.refuse("tables", y=BY_LABEL)
    require_pyarrow(str(paths[0]))
    refuse_cluster(request.options.client, str(paths[0]))
    stamps = [FileStamp.of(path) for path in paths if path.stat().st_size]
    if not stamps:
        raise DataFileError(f"{paths[0]}: the file is empty; add rows")
    start = read_start(stamps[0], request.label)
    layout, chosen = _find_layout(start, request, stamps[0].path)
    step = rows_per_part(len(chosen.features), 8, request.rows, request.options)
    plain = request._replace(label=None, weight=None, columns=None)
    kind = name_files("table", stamps)
    places: list[Place] = []
    try:
        spooled = spool(_parse(stamps, layout, step, chosen, places), plain, kind)
    except DataFileError:
        if layout.label is None or layout.label.kind != "integers":
            raise
        # Labels after the first ones may have fractions.
        label, places = LabelColumn(layout.label.position, "numbers"), []
        layout = replace(layout, label=label)
        spooled = spool(_parse(stamps, layout, step, chosen, places), plain, kind)
    source = FileSource(stamps, kind, list(spooled.items), places, request, layout)
    source.numbered, source.scratch, source.n_rows = "line", True, spooled.n_rows
    source.feature_names = tuple(chosen.features) if start.names else None
    return source


def _parse(
    stamps: list[FileStamp], layout: Layout, step: int, chosen: FrameColumns, places: list[Place]
) -> Iterator[tuple[Any, Any, Any]]:
    """Iterate over X, y and weights, and note where they are."""
    for stamp in stamps:
        blocks = read_rows(
            stamp.path, layout, rows=step, label=layout.label is not None, need_label=True
        )
        for X, y, numbers, _ in blocks:
            name = f"{stamp.name}, lines {numbers[0]} to {numbers[-1]}"
            consecutive = numbers[-1] - numbers[0] == len(numbers) - 1
            lines = range(numbers[0], numbers[-1] + 1) if consecutive else numbers
            places.append(Place(name, X.nbytes, lines))
            yield (X, y, None) if chosen.weight is None else (X[:, :-1], y, X[:, -1])


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
