"""Tables as Arrow reads them: text with any separator, JSON lines, Parquet, Arrow files, and ARFF.

The first lines of a text tell how it is written. Text is then cut where rows end and parsed run by
run, so that complete files, ranges of bytes and streams go the same way. A column that is expected
to hold plain numbers comes as numbers where Arrow can read it so, and as texts where it cannot.
Python's csv module reads what Arrow does not take, and finds the line that is wrong.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.arrow_values import read_values
from maxmargin.data.notation import NO_LABEL, finite_number, is_missing, resembles_value
from maxmargin.data.text import (
    ARROW_ENDINGS,
    CHUNK,
    JSON_ENDINGS,
    SVMLIGHT_ENDINGS,
    TABLE_ENDINGS,
    DataSource,
    decode,
    refuse_foreign,
    split_lines,
)
from maxmargin.errors import DataFileError

# A column of one of these names is the label; the first two are, whatever else there is.
LABEL_NAMES = ("label", "target", "class", "y", "outcome", "diagnosis", "species", "survived")
# The first that divides all rows alike; where semicolons do, commas are part of the cells.
DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas", " ": "spaces"}
HEADER_ROWS = 1000
RUN = 1 << 24  # bytes of text that are parsed at a time, if all of it is wanted
_FIRST_ROWS = 20
_DELIMITER_TEXT = 10**6  # characters
_HEAD_BYTES = 1 << 23  # by which a table is judged, at most
_LONGEST_ROW = 1 << 20  # bytes after which an open quotation mark is a mistake
_ROWS = 1 << 13  # that Python reads at a time
_NO_NUMBER = [*{form(text) for text in NO_LABEL for form in (str, str.upper, str.title)}, "NaN"]
_SPREADSHEET_LINE = re.compile(r"sep=(.)\n", re.IGNORECASE)
_SVMLIGHT_LINE = re.compile(r"\s*[^\s:,;]+(?:[ \t]+(?:\d+|qid):\S*)+\s*(?:#.*)?")
_FIRST_LINE = re.compile(r"^[^\S\n]*[^\s#].*", re.MULTILINE)
_PARQUET, _ARROW = b"PAR1", b"ARROW1"
is_index_of_rows = re.compile(r"__index_level_\d+__").fullmatch  # as pandas names it
_QUOTE, _LINE_FEED = ord('"'), ord("\n")

Row = tuple[int, list[str]]  # line number, cells


class Cells(NamedTuple):
    """Some cells of a column."""

    kind: str
    """"numbers", "dates" (days since 1970), "times" (hours), "flags" (0 and 1), "texts", or
    "nothing", if all are missing."""
    values: Any
    """An Arrow array of texts; else float64 with NaN."""
    type: str = ""
    """In Arrow's words, if the file gives the column a type."""


class Piece(NamedTuple):
    """Some rows of a table: the cells of columns, and where the rows are in the file."""

    columns: dict[int, Cells]
    numbers: Any


class OpenTable(NamedTuple):
    """A table whose columns are known, and whose rows are still to be read."""

    file: str
    format: str
    names: list[str] | None
    width: int
    pieces: Callable[[Mapping[int, bool]], Iterator[Piece]]
    """Reads some columns, of which each may be expected to hold plain numbers."""
    numbered: str = "row"
    delimiter: str | None = None
    remarks: list[str] = []  # noqa: RUF012 - those on the encoding come while rows are read
    plain: frozenset[int] = frozenset()
    """Columns whose first cells are plain numbers."""

    def place(self, number: int) -> str:
        """Return the file and the place of a row, for messages."""
        between = ":" if self.numbered == "line" else f": {self.numbered} "
        return f"{self.file}{between}{number}"


def require_pyarrow(name: str) -> None:
    """Raise with the way out if pyarrow, which a table needs, is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as missing:
        raise ImportError(
            f'{name}: tables need pyarrow ({missing}); pip install "maxmargin[tables]"'
        ) from missing


def kind_of(opened: DataSource) -> str:
    """Return what a source is: "svmlight", "arrow", "arff", "json" or "text"."""
    start = opened.start
    # Text may begin with a column PAR1, but then has no such bytes.
    binary = start.startswith((_PARQUET, _ARROW)) and re.search(rb"[\x00-\x08]", start) is not None
    if opened.extension in ARROW_ENDINGS or binary:
        return "arrow"
    refuse_foreign(opened)
    text = start.decode("utf-8", "replace").lstrip("\ufeff")
    if opened.extension in SVMLIGHT_ENDINGS:
        return "svmlight"
    if opened.extension == ".arff" or text.lstrip().lower().startswith("@relation"):
        return "arff"
    if opened.extension in JSON_ENDINGS:
        return "json"
    if opened.extension in TABLE_ENDINGS:
        return "text"
    if resembles_svmlight(text[: text.rfind("\n") + 1] or text):
        return "svmlight"
    return "json" if text.lstrip()[:1] in ("{", "[") else "text"


def resembles_svmlight(text: str) -> bool:
    """Tell whether the first line of a text that is no comment is one of svmlight text."""
    first = _FIRST_LINE.search(text)
    return first is not None and _SVMLIGHT_LINE.match(first[0]) is not None


# ------------------------------------------------------------------- how a text is written


class Dialect(NamedTuple):
    """How the rows of a text are written."""

    delimiter: str
    trailing: bool = False  # each row ends in a delimiter
    skip: int = 0  # lines before the first row
    comments: bool = False  # before it, which are left out

    def rows(self, lines: Iterable[str], file: str, before: int, strict: bool) -> Iterator[Row]:
        """Iterate over the line and the cells of each row that is not blank, by Python's csv."""
        if self.delimiter == " ":
            lines = (line.replace("\t", " ") for line in lines)
        reader = csv.reader(
            lines, delimiter=self.delimiter, skipinitialspace=True, strict=strict
        )  # fmt: skip
        line, may_end_blank = before, self.trailing or self.delimiter == " "
        try:
            for cells in reader:
                first, line = line + 1, before + reader.line_num
                if may_end_blank and cells and not cells[-1].strip():
                    cells.pop()
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield first, cells
        except csv.Error as wrong:
            long = f"a cell has more than {csv.field_size_limit():,} characters"
            why = long if "field limit" in str(wrong) else wrong
            raise DataFileError(f"{file}:{line + 1}: {why}; check the quotation marks") from wrong


class Text(NamedTuple):
    """A table as text that is opened."""

    file: str
    head: list[str]
    """The first lines, by which it is judged."""
    complete: bool
    """Whether these are all."""
    chunks: Iterator[bytes]
    remarks: list[str]


class Start(NamedTuple):
    """How a table as text begins."""

    dialect: Dialect
    names: list[str] | None
    width: int
    rows: list[Row]


def open_text(opened: DataSource) -> Text:
    """Read the first lines of a text."""
    text = decode(opened.chunks, opened.name)
    first, more = b"", True
    while len(first) < _HEAD_BYTES and first.count(b"\n") <= HEADER_ROWS and more:
        part = next(text.chunks, b"")
        first, more = first + part, bool(part)
    head = first[: first.rfind(b"\n") + 1] or first if more else first
    lines = list(islice(split_lines([head]), HEADER_ROWS + 1))
    complete = not more and len(lines) <= HEADER_ROWS
    return Text(opened.name, lines, complete, chain([first], text.chunks), text.remarks)


def read_head(text: Text, delimiter: str | None) -> tuple[Dialect, list[Row]]:
    """Return how a text is written, and its first rows; its delimiter may be known."""
    lines, before = text.head, 0
    spreadsheet = _SPREADSHEET_LINE.match(lines[0])
    if spreadsheet and spreadsheet[1] in DELIMITERS:
        lines, delimiter, before = lines[1:], spreadsheet[1], 1
    if delimiter is None:
        delimiter = _find_delimiter("".join(lines), text.file)
    dialect = Dialect(delimiter)
    rows = _first_rows(dialect, lines, before, text)
    if rows and _ends_in_delimiters([cells for _, cells in rows]):
        dialect = dialect._replace(trailing=True)
        rows = _first_rows(dialect, lines, before, text)
    start = rows[:_FIRST_ROWS]
    marked = next((k for k, (_, cells) in enumerate(start) if not _is_marked(cells)), len(start))
    if marked and marked < len(start) and len(start[marked - 1][1]) == len(start[marked][1]):
        marked -= 1  # as wide as the table: its header
    return dialect._replace(comments=marked > 0), rows[marked:]


def _first_rows(dialect: Dialect, lines: list[str], before: int, text: Text) -> list[Row]:
    rows = list(islice(dialect.rows(lines, text.file, before, strict=text.complete), HEADER_ROWS))
    cut = not text.complete and len(rows) < HEADER_ROWS
    return rows[:-1] if cut and len(rows) > 1 else rows


def _is_marked(cells: list[str]) -> bool:
    return cells[0].lstrip().startswith("#")


def _find_delimiter(content: str, file: str) -> str:
    start = content[:_DELIMITER_TEXT]
    for delimiter in DELIMITERS:
        lines = io.StringIO(start, newline="\n")
        found = islice(Dialect(delimiter).rows(lines, file, 0, strict=False), _FIRST_ROWS)
        rows = [cells for _, cells in found]
        if len(start) < len(content) and len(rows) < _FIRST_ROWS:
            rows = rows[:-1]  # cut off
        widths = {len(cells) for cells in rows[1:] or rows if not _is_marked(cells)}
        if len(widths) == 1 and widths.pop() > 1:
            return delimiter
    first_line = next((line for line in start.splitlines() if line.strip()), "")
    return max(";\t|, ", key=first_line.count)


def _ends_in_delimiters(rows: list[list[str]]) -> bool:
    first, rest = rows[0], rows[1:] or rows
    ended = all(len(cells) > 2 and not cells[-1].strip() for cells in rest)
    return ended and (not first[-1].strip() or len(first) == len(rest[0]) - 1)


def strip_cells(cells: list[str]) -> list[str]:
    """Return the cells of a header without blanks and without the mark of a comment."""
    first, *others = (cell.strip() for cell in cells)
    return [first.removeprefix("#").lstrip() or first, *others]


def find_start(text: Text, delimiter: str | None, label: str | int | None) -> Start:
    """Return how a text begins: with the names of its columns, or with a row."""
    known = delimiter if delimiter and any(delimiter in line for line in text.head) else None
    dialect, rows = read_head(text, known)
    if not rows:
        raise DataFileError(f"{text.file}: only comments; it needs at least one labelled row")
    first, rest = strip_cells(rows[0][1]), rows[1:]
    names = first if _is_header(first, [cells for _, cells in rest], label) else None
    if names and rest and all(len(cells) == len(names) + 1 for _, cells in rest):
        names = ["", *names]  # R writes the names of rows without a name for their column
    rows = rest if names else rows
    return Start(begin_rows(dialect, rows, text), names, len(names or first), rows)


def begin_rows(dialect: Dialect, rows: list[Row], text: Text) -> Dialect:
    """Return a dialect that skips the lines before the first of some rows, and note comments."""
    if dialect.comments:
        text.remarks.append("Lines at the start that are marked with # are left out.")
    return dialect._replace(skip=rows[0][0] - 1 if rows else len(text.head))


def _is_header(first: list[str], rest: list[list[str]], label: str | int | None) -> bool:
    """Tell whether the first row names the columns, by comparing it with the rows below."""
    if isinstance(label, str) and label in first and not finite_number(label):
        return True

    def below(j: int) -> list[str]:
        return [cells[j].strip() for cells in rest if j < len(cells)]

    words = [j for j, cell in enumerate(first) if not (is_missing(cell) or resembles_value(cell))]
    if 2 * len(words) >= len(first) and any(_is_numeric(below(j)) for j in words):
        return True
    if words and 2 * sum(first[j] in below(j) for j in words) >= len(words):
        return False
    if any(cell.lower() in LABEL_NAMES for cell in first):
        return True
    named = first[1:] if not first[0] else first
    if len(first) > 2 and rest and named == [str(k) for k in range(len(named))]:
        return True  # what pandas writes for columns without names
    # Where values are repeated so often that a new one is a surprise, the first row is no row.
    surprising = [j for j in words if len(rest) >= 10 and 4 * len(set(below(j))) <= len(below(j))]
    if len(surprising) > 1 and not any(first[j] in below(j) for j in words):
        return True
    return not any(resembles_value(cell) for cell in first)


def _is_numeric(cells: list[str]) -> bool:
    present = {cell for cell in cells if not is_missing(cell)}
    return bool(present) and all(map(resembles_value, present))


def open_text_table(text: Text, start: Start) -> OpenTable:
    """Return a text as a table."""
    plain = [
        all(_is_plain(cells[j]) for _, cells in start.rows if j < len(cells))
        for j in range(start.width)
    ]
    kind = f"table with {DELIMITERS[start.dialect.delimiter]}, "
    return open_rows(text, start.dialect, start.width, RUN)._replace(
        format=f"{kind}{'with' if start.names else 'without'} a header",
        names=start.names,
        plain=frozenset(j for j, column in enumerate(plain) if column),
    )


def open_rows(text: Text, dialect: Dialect, width: int, size: int | None = None) -> OpenTable:
    """Return the rows of a text, which are parsed in runs of so many bytes."""
    return OpenTable(
        text.file,
        "",
        None,
        width,
        lambda kinds: read_pieces(text, dialect, width, kinds, size or CHUNK),
        "line",
        dialect.delimiter,
        text.remarks,
    )


def _is_plain(cell: str) -> bool:
    text = cell.strip()
    return finite_number(text) or text.lower() in NO_LABEL


# ------------------------------------------------------------------- text to columns


class _OddTextError(Exception):
    """Arrow would read a text in another way than it is meant, or not at all."""


def read_pieces(
    text: Text, dialect: Dialect, width: int, kinds: Mapping[int, bool], size: int
) -> Iterator[Piece]:
    """Iterate over the rows of a text that is opened, in pieces of so many bytes."""
    skipped = len("".join(text.head[: dialect.skip]).encode())
    first = next(text.chunks)[skipped:]
    runs = _cut_rows(chain([first], text.chunks), size)
    return parse_rows(runs, dialect, width, kinds, text.file)


def _cut_rows(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Iterate over runs of whole lines, which are rows if quotation marks are in order."""
    parts: list[bytes] = []
    for chunk in chunks:
        filled = sum(map(len, parts)) + len(chunk)
        if filled < size:
            parts.append(chunk)
            continue
        end = chunk.rfind(b"\n") + 1
        if _QUOTE in chunk or any(_QUOTE in part for part in parts):
            chunk, parts = b"".join([*parts, chunk]), []
            data = np.frombuffer(chunk, np.uint8)
            ends, quotes = np.flatnonzero(data == _LINE_FEED), np.flatnonzero(data == _QUOTE)
            outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
            if len(outside) or filled <= _LONGEST_ROW:
                end = int(outside[-1]) + 1 if len(outside) else 0
        if end:
            yield b"".join([*parts, chunk[:end]])
            parts = []
        parts.append(chunk[end:])
    if any(parts):
        yield b"".join(parts)


def parse_rows(
    runs: Iterator[bytes], dialect: Dialect, width: int, kinds: Mapping[int, bool], file: str
) -> Iterator[Piece]:
    """Iterate over the rows of runs of text, of which the first begins after ``dialect.skip``."""
    before = dialect.skip
    for text in runs:
        lines = text.count(b"\n")
        try:
            piece = _parse(text, lines, before, dialect, width, kinds)
        except _OddTextError:
            rest = split_lines(chain([text], runs))
            yield from _parse_slowly(rest, before, dialect, width, kinds, file)
            return
        if len(piece.numbers):
            yield piece
        before += lines


def _parse(
    text: bytes, lines: int, before: int, dialect: Dialect, width: int, kinds: Mapping[int, bool]
) -> Piece:
    if dialect.delimiter == " ":
        if _QUOTE in text:
            raise _OddTextError
        text = re.sub(rb"(?m)^ | $", b"", re.sub(rb"[ \t]+", b" ", text))
    if not text.lstrip(b"\n"):
        return Piece({}, np.empty(0, np.int64))
    if width + dialect.trailing < 2:
        raise _OddTextError  # a row without a cell would be a blank line
    import pyarrow as pa

    try:
        table = _read_csv(text, dialect, width, kinds)
    except pa.ArrowInvalid:
        table = None
    columns = {} if table is None else _cells_of(table, kinds)
    if table is None or any(kinds[j] and np.isinf(columns[j].values).any() for j in kinds):
        kinds = dict.fromkeys(kinds, False)  # so that the cell at fault can be told
        try:
            table = _read_csv(text, dialect, width, kinds)
        except pa.ArrowInvalid as wrong:
            raise _OddTextError from wrong
        columns = _cells_of(table, kinds)
    if _QUOTE not in text and table.num_rows == lines + (not text.endswith(b"\n")):
        return Piece(columns, np.arange(before + 1, before + 1 + table.num_rows))
    return Piece(columns, _number_rows(text, before, dialect.delimiter, table.num_rows))


def _cells_of(table: Any, kinds: Mapping[int, bool]) -> dict[int, Cells]:
    return {
        j: Cells("numbers", column.to_numpy()) if kinds[j] else Cells("texts", column)
        for j, column in zip(kinds, table.columns, strict=True)
    }


def _read_csv(text: bytes, dialect: Dialect, width: int, kinds: Mapping[int, bool]) -> Any:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    names = [str(j) for j in range(width + dialect.trailing)]
    types = {str(j): pa.float64() if plain else pa.string() for j, plain in kinds.items()}
    return arrow_csv.read_csv(
        pa.BufferReader(text),
        read_options=arrow_csv.ReadOptions(column_names=names, block_size=1 << 21),
        parse_options=arrow_csv.ParseOptions(
            delimiter=dialect.delimiter, newlines_in_values=_QUOTE in text
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=_NO_NUMBER
        ),
    )


def _number_rows(text: bytes, before: int, delimiter: str, rows: int) -> Any:
    """Return the lines of the rows of a text, if as many rows are found as Arrow found."""
    data = np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)
    ends, quotes = np.flatnonzero(data == _LINE_FEED), np.flatnonzero(data == _QUOTE)
    if not _are_proper(data, quotes, delimiter):
        raise _OddTextError
    last = np.searchsorted(quotes, ends) % 2 == 0  # of the lines of a row
    firsts = np.append(0, np.flatnonzero(last)[:-1] + 1)
    begins = np.append(0, ends + 1)[firsts]
    found = firsts[data[begins] != _LINE_FEED] + (before + 1)
    if len(found) != rows:
        raise _OddTextError
    return found


def _are_proper(data: Any, quotes: Any, delimiter: str) -> bool:
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    doubled = opening[1:] == closing[:-1] + 1
    edges = (ord(delimiter), _LINE_FEED)
    opens = np.isin(data[opening - 1], edges) | (opening == 0)
    closes = np.isin(data[closing + 1], edges)
    opens[1:] |= doubled
    closes[:-1] |= doubled
    return bool(opens.all() and closes.all())


def _parse_slowly(
    lines: Iterator[str],
    before: int,
    dialect: Dialect,
    width: int,
    kinds: Mapping[int, bool],
    file: str,
) -> Iterator[Piece]:
    import pyarrow as pa

    rows = dialect.rows(lines, file, before, strict=True)
    while block := list(islice(rows, _ROWS)):
        for line, cells in block:
            check_width(cells, width, f"{file}:{line}")
        columns = {
            j: Cells("texts", pa.array([cells[j] for _, cells in block], pa.string()))
            for j in kinds
        }
        yield Piece(columns, np.array([line for line, _ in block], dtype=np.int64))


def check_width(cells: Sequence[str], width: int, place: str) -> None:
    """Raise if a row has more or fewer cells than the first one."""
    if len(cells) != width:
        count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        raise DataFileError(
            f"{place}: {count} where the first row has {width}; "
            "complete the row, or quote cells that contain the separator"
        )


# ------------------------------------------------------------------- files whose columns have types


def open_typed(opened: DataSource, kind: str) -> OpenTable:
    """Open a file whose columns have types."""
    if kind == "json":
        return _open_json(opened)
    if kind == "arff":
        return _open_arff(opened)
    parquet = opened.start.startswith(_PARQUET)
    if not parquet and not opened.start.startswith(_ARROW):
        raise DataFileError(
            f"{opened.name}: not a Parquet or Arrow file, whatever its name says; fetch it again, "
            "or name it as what it is"
        )
    with naming_damage(opened.name):
        return _open_parquet(opened) if parquet else _open_ipc(opened)


@contextmanager
def naming_damage(file: str) -> Iterator[None]:
    """Make errors of pyarrow about what is in a file name that file."""
    import pyarrow as pa

    try:
        yield
    except DataFileError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as broken:
        if isinstance(broken, OSError) and broken.errno is not None:
            raise
        raise DataFileError(f"{file}: damaged ({broken}); fetch or write it again") from broken


def _bytes_of(opened: DataSource) -> Any:
    import pyarrow as pa

    if opened.path is not None:
        return pa.memory_map(str(opened.path), "rb")
    return pa.BufferReader(b"".join(opened.chunks))


def _open_parquet(opened: DataSource) -> OpenTable:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(_bytes_of(opened))
    there = file.schema_arrow.names
    # Such names do not tell columns apart, so that all of them have to be read.
    unclear = any("." in name for name in there) or len(set(there)) < len(there)

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        yield from file.iter_batches(_ROWS, columns=None if unclear else wanted)

    return _open_batches(opened.name, "Parquet", there, batches)


def _open_ipc(opened: DataSource) -> OpenTable:
    import pyarrow as pa

    file = pa.ipc.open_file(_bytes_of(opened))

    def batches(wanted: Sequence[str]) -> Iterator[Any]:
        del wanted
        for k in range(file.num_record_batches):
            batch = file.get_batch(k)
            batch.validate(full=True)
            yield batch

    return _open_batches(opened.name, "Arrow", file.schema.names, batches)


def _open_batches(
    file: str, kind: str, there: list[str], batches: Callable[[list[str]], Iterator[Any]]
) -> OpenTable:
    kept = [j for j, name in enumerate(there) if not is_index_of_rows(name)]
    names = [there[j] for j in kept]

    def pieces(kinds: Mapping[int, bool]) -> Iterator[Piece]:
        before = 0
        with naming_damage(file):
            for batch in batches([names[j] for j in kinds]):
                found = batch.schema.names
                places = kept if found == there else [-1] * len(names)
                columns = {}
                for j in kinds:
                    column = batch.column(places[j] if places[j] >= 0 else found.index(names[j]))
                    place = f"{file}: column {j + 1} ({names[j]})"
                    columns[j] = typed_cells(column, place, before)
                if batch.num_rows:
                    yield Piece(columns, np.arange(before, before + batch.num_rows))
                before += batch.num_rows

    return OpenTable(file, kind, names, len(names), pieces)


def typed_cells(array: Any, column: str, before: int) -> Cells:
    """Return the cells of an array of any type."""
    import pyarrow as pa

    kind, written = array.type, str(array.type)
    if pa.types.is_dictionary(kind):
        array, kind = array.cast(kind.value_type), kind.value_type
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if any(test(kind) for test in texts):
        return Cells("texts", array.cast(pa.string()), written)
    found = read_values(array, column, before)
    values = pa.array(found.cells, pa.string()) if found.kind == "texts" else found.cells
    return Cells(found.kind, values, written)


def _open_json(opened: DataSource) -> OpenTable:
    import pyarrow as pa
    import pyarrow.json as arrow_json

    content = b"".join(decode(opened.chunks, opened.name).chunks)
    way_out = (
        "write one record per line, and the values of a column alike (in pandas, "
        'frame.to_json(path, orient="records", lines=True)), or save the table as CSV'
    )
    if not content.lstrip().startswith(b"{"):
        raise DataFileError(f"{opened.name}: JSON, but not JSON lines; {way_out}")
    options = arrow_json.ReadOptions(block_size=min(len(content) + 1, 2**31 - 1))
    try:
        table = arrow_json.read_json(pa.BufferReader(content), options)
    except (pa.ArrowException, ValueError) as wrong:
        raise DataFileError(f"{opened.name}: not JSON lines ({wrong}); {way_out}") from wrong
    flags = [pa.string() if column.type == pa.bool_() else column.type for column in table.columns]
    named = zip(table.column_names, flags, strict=True)
    return _open_in_memory(opened.name, "JSON lines", table.cast(pa.schema(list(named))))


def _open_arff(opened: DataSource) -> OpenTable:
    import pyarrow as pa
    from scipy.io import arff

    content = b"".join(decode(opened.chunks, opened.name).chunks).decode()
    limit = csv.field_size_limit()
    try:
        rows, meta = arff.loadarff(io.StringIO(content))
    except (OSError, ValueError, LookupError, TypeError, NotImplementedError, StopIteration) as e:
        raise DataFileError(f"{opened.name}: not read as ARFF ({e}); save it as CSV") from e
    finally:
        csv.field_size_limit(limit)  # which scipy changes for all
    columns = [np.atleast_1d(rows)[name] for name in meta.names()]
    texts = [np.char.decode(c, "utf-8", "replace") if c.dtype.kind == "S" else c for c in columns]
    table = pa.table([pa.array(values, from_pandas=True) for values in texts], meta.names())
    return _open_in_memory(opened.name, "ARFF", table)


def _open_in_memory(file: str, kind: str, table: Any) -> OpenTable:
    return _open_batches(file, kind, table.column_names, lambda _: iter(table.to_batches()))
