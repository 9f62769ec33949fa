"""Tables as Arrow reads them: text with any separator, JSON lines, Parquet, Arrow files, and ARFF.

The first lines of a text tell how it is written. Text is then cut where rows end and parsed run by
run. A column that is expected to hold plain numbers comes as numbers where Arrow can read it so,
and as texts where it cannot. Python's csv module reads what Arrow does not take, and finds the line
that is wrong.
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
_FIRST_ROWS = 20
_HEAD_BYTES = 1 << 23  # by which a table is judged, at most
_LONGEST_ROW = 1 << 20  # bytes after which an open quotation mark is a mistake
_ROWS = 1 << 13  # that Python reads at a time
_NO_NUMBER = [*{form(text) for text in NO_LABEL for form in (str, str.upper, str.title)}, "NaN"]
_SPREADSHEET_LINE = re.compile(r"sep=(.)\n", re.IGNORECASE)
_SVMLIGHT_LINE = re.compile(r"\s*[^\s:,;]+(?:[ \t]+(?:\d+|qid):\S*)+\s*(?:#.*)?")
_FIRST_LINE = re.compile(r"^[^\S\n]*[^\s#].*", re.MULTILINE)
_PARQUET, _ARROW = b"PAR1", b"ARROW1"
is_index_of_rows = re.compile(r"__index_level_\d+__").fullmatch  # as pandas names it

Row = tuple[int, list[str]]  # line number, cells


class Cells(NamedTuple):
    """Some cells of a column."""

    kind: str
    """"numbers", "dates" (days since 1970), "times" (hours) or "texts"."""
    values: Any
    """An Arrow array of texts; else float64 with NaN."""
    type: str
    """In Arrow's words."""


class Piece(NamedTuple):
    """Some rows of a table: columns as Arrow arrays, and where the rows are in the file."""

    columns: dict[int, Any]
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
            f"{name}: tables need pyarrow ({missing}); pip install pyarrow"
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
    first = _FIRST_LINE.search(text[: text.rfind("\n") + 1] or text)
    if first is not None and _SVMLIGHT_LINE.match(first[0]):
        return "svmlight"
    return "json" if text.lstrip()[:1] in ("{", "[") else "text"


# ------------------------------------------------------------------- how a text is written


class Dialect(NamedTuple):
    """How the rows of a text are written."""

    delimiter: str
    trailing: bool = False  # each row ends in a delimiter
    skip: int = 0  # lines before the first row

    def begin(self, rows: list[Row], text: "Text") -> "Dialect":
        """Return the dialect with the lines skipped that stand before the first of some rows."""
        return self._replace(skip=rows[0][0] - 1 if rows else len(text.head))

    def rows(self, lines: Iterable[str], file: str, before: int, strict: bool) -> Iterator[Row]:
        """Iterate over the line and the cells of each row that is not blank, by Python's csv."""
        if self.delimiter == " ":
            lines = (line.replace("\t", " ") for line in lines)
        written = {"delimiter": self.delimiter, "skipinitialspace": True, "strict": strict}
        reader = csv.reader(lines, **written)  # type: ignore[arg-type]
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
    chunks: Iterable[bytes]
    remarks: list[str]

    def has(self, delimiter: str | None) -> bool:
        """Tell whether a delimiter is in the first lines."""
        return delimiter is not None and any(delimiter in line for line in self.head)


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
        delimiter = _find_delimiter(lines, text.file)
    dialect = Dialect(delimiter)
    rows = list(islice(dialect.rows(lines, text.file, before, strict=False), HEADER_ROWS))
    if not text.complete and 1 < len(rows) < HEADER_ROWS:
        rows.pop()  # cut off
    if rows and _ends_in_delimiters([cells for _, cells in rows]):
        width = len(rows[-1][1])
        dialect = dialect._replace(trailing=True)
        rows = [(line, cells[: width - 1]) for line, cells in rows]
    start = rows[:_FIRST_ROWS]
    marked = next((k for k, (_, cells) in enumerate(start) if not _is_marked(cells)), len(start))
    if marked and marked < len(start) and len(start[marked - 1][1]) == len(start[marked][1]):
        marked -= 1  # as wide as the table: its header
    if marked == len(rows):
        raise DataFileError(f"{text.file}: only comments; it needs at least one row")
    note = "Lines at the start that are marked with # are left out."
    if marked and note not in text.remarks:
        text.remarks.append(note)
    return dialect, rows[marked:]


def _is_marked(cells: list[str]) -> bool:
    return cells[0].lstrip().startswith("#")


def _find_delimiter(lines: list[str], file: str) -> str:
    for delimiter in DELIMITERS:
        found = islice(Dialect(delimiter).rows(lines, file, 0, strict=False), _FIRST_ROWS)
        rows = [cells for _, cells in found]
        widths = {len(cells) for cells in rows[1:] or rows if not _is_marked(cells)}
        if len(widths) == 1 and widths.pop() > 1:
            return delimiter
    first_line = next((line for line in lines if line.strip()), "")
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
    dialect, rows = read_head(text, delimiter if text.has(delimiter) else None)
    first, rest = strip_cells(rows[0][1]), rows[1:]
    names = first if _is_header(first, [cells for _, cells in rest], label) else None
    if names and rest and all(len(cells) == len(names) + 1 for _, cells in rest):
        names = ["", *names]  # R writes the names of rows without a name for their column
    rows = rest if names else rows
    return Start(dialect.begin(rows, text), names, len(names or first), rows)


def _is_header(first: list[str], rest: list[list[str]], label: str | int | None) -> bool:
    """Tell whether the first row names the columns, by comparing it with the rows below."""
    if isinstance(label, str) and label in first and not finite_number(label):
        return True
    below = [[cells[j].strip() for cells in rest if j < len(cells)] for j in range(len(first))]
    words = [j for j, cell in enumerate(first) if not (is_missing(cell) or resembles_value(cell))]
    if 2 * len(words) >= len(first) and any(_is_numeric(below[j]) for j in words):
        return True
    repeated = sum(first[j] in below[j] for j in words)
    if words and 2 * repeated >= len(words):
        return False
    if any(cell.lower() in LABEL_NAMES for cell in first):
        return True
    named = first[1:] if not first[0] else first
    if len(first) > 2 and rest and named == [str(k) for k in range(len(named))]:
        return True  # what pandas writes for columns without names
    # Where values are repeated so often that a new one is a surprise, the first row is no row.
    surprising = [j for j in words if len(rest) >= 10 and 4 * len(set(below[j])) <= len(below[j])]
    if len(surprising) > 1 and not repeated:
        return True
    return not any(resembles_value(cell) for cell in first)


def _is_numeric(cells: list[str]) -> bool:
    present = {cell for cell in cells if not is_missing(cell)}
    return bool(present) and all(map(resembles_value, present))


def open_text_table(text: Text, start: Start) -> OpenTable:
    """Return a text as a table."""
    plain = [
        all(_is_plain(cells[j].strip()) for _, cells in start.rows if j < len(cells))
        for j in range(start.width)
    ]
    kind = f"table with {DELIMITERS[start.dialect.delimiter]}, "
    return open_rows(text, start.dialect, start.width)._replace(
        format=f"{kind}{'with' if start.names else 'without'} a header",
        names=start.names,
        plain=frozenset(j for j, column in enumerate(plain) if column),
    )


def _is_plain(text: str) -> bool:
    return finite_number(text) or text.lower() in NO_LABEL


def open_rows(text: Text, dialect: Dialect, width: int) -> OpenTable:
    """Return the rows of a text."""

    def pieces(kinds: Mapping[int, bool]) -> Iterator[Piece]:
        skipped = len("".join(text.head[: dialect.skip]).encode())
        chunks = iter(text.chunks)
        runs = _cut_rows(chain([next(chunks)[skipped:]], chunks))
        return parse_rows(runs, dialect, width, kinds, text.file)

    return OpenTable(
        text.file, "", None, width, pieces, "line", dialect.delimiter, text.remarks
    )  # fmt: skip


# ------------------------------------------------------------------- text to columns


def _cut_rows(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Iterate over runs of complete lines, which are rows if quotation marks are in order."""
    parts: list[bytes] = []
    for chunk in chunks:
        parts.append(chunk)
        length = sum(map(len, parts))
        if length < CHUNK:
            continue
        text = b"".join(parts)
        end = _end_of_rows(text) or (text.rfind(b"\n") + 1 if length > _LONGEST_ROW else 0)
        if end:
            yield text[:end]
        parts = [text[end:]]
    if rest := b"".join(parts).rstrip(b"\n"):
        yield rest


def _end_of_rows(text: bytes) -> int:
    """Return where the last line ends that has as many opening quotation marks as closing ones."""
    end, quotes = len(text), text.count(b'"')
    while end > 0:
        cut = text.rfind(b"\n", 0, end) + 1
        quotes -= text.count(b'"', cut, end)
        if quotes % 2 == 0:
            return cut
        end = cut - 1
    return 0


def parse_rows(
    runs: Iterator[bytes], dialect: Dialect, width: int, kinds: Mapping[int, bool], file: str
) -> Iterator[Piece]:
    """Iterate over the rows of runs of text, of which the first begins after ``dialect.skip``."""
    before = dialect.skip
    for text in runs:
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        columns = _parse(text, lines, dialect, width, kinds)
        if columns is None:
            rows = dialect.rows(split_lines(chain([text], runs)), file, before, strict=True)
            yield from _parse_slowly(rows, width, kinds, file)
            return
        yield Piece(columns, np.arange(before + 1, before + 1 + lines))
        before += lines


def _parse(
    text: bytes, lines: int, dialect: Dialect, width: int, kinds: Mapping[int, bool]
) -> dict[int, Any] | None:
    """Return columns as Arrow reads them; None if that is not how they are meant.

    It is not, if a line is not a row, or if there are quotation marks within a cell.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    quoted = b'"' in text
    # A row of one column that is empty would be a blank line.
    if width + dialect.trailing < 2 or (quoted and not _are_cells_quoted(text, dialect.delimiter)):
        return None
    if dialect.delimiter == " ":
        if quoted:
            return None
        text = re.sub(rb"(?m)^ | $", b"", re.sub(rb"[ \t]+", b" ", text))
    # If a number is none, or infinite, the cells are needed as texts.
    for wanted in (kinds, dict.fromkeys(kinds, False)):
        try:
            table = _read_csv(text, dialect, width, wanted)
        except pa.ArrowInvalid:
            continue
        found = dict(zip(wanted, table.columns, strict=True))
        if not any(wanted[j] and pc.any(pc.is_inf(found[j])).as_py() for j in wanted):
            return found if table.num_rows == lines else None
    return None


def _are_cells_quoted(text: bytes, delimiter: str) -> bool:
    """Tell whether all quotation marks stand at the edges of cells, or are doubled."""
    data = np.frombuffer(b"\n" + text + b"\n", np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    opening, closing = quotes[::2], quotes[1::2]
    if len(opening) > len(closing):
        return False
    edges, doubled = (ord(delimiter), ord("\n")), opening[1:] == closing[:-1] + 1
    opens, closes = np.isin(data[opening - 1], edges), np.isin(data[closing + 1], edges)
    return bool((opens[1:] | doubled).all() and (closes[:-1] | doubled).all()
                and opens[0] and closes[-1])  # fmt: skip


def _read_csv(text: bytes, dialect: Dialect, width: int, kinds: Mapping[int, bool]) -> Any:
    import pyarrow as pa
    import pyarrow.csv as arrow_csv

    names = [str(j) for j in range(width + dialect.trailing)]
    words = pa.dictionary(pa.int32(), pa.string())
    types = {str(j): pa.float64() if plain else words for j, plain in kinds.items()}
    return arrow_csv.read_csv(
        pa.BufferReader(text),
        read_options=arrow_csv.ReadOptions(column_names=names, block_size=1 << 21),
        parse_options=arrow_csv.ParseOptions(
            delimiter=dialect.delimiter, newlines_in_values=b'"' in text
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=_NO_NUMBER
        ),
    )


def _parse_slowly(
    rows: Iterator[Row], width: int, kinds: Mapping[int, bool], file: str
) -> Iterator[Piece]:
    import pyarrow as pa

    while block := list(islice(rows, _ROWS)):
        for line, cells in block:
            check_width(cells, width, f"{file}:{line}")
        columns = {
            j: pa.array([cells[j] for _, cells in block], pa.string()).dictionary_encode()
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
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind == "json":
        return _open_batches(opened.name, "JSON lines", *_read_json(opened))
    if kind == "arff":
        return _open_batches(opened.name, "ARFF", *_read_arff(opened))
    parquet = opened.start.startswith(_PARQUET)
    if not parquet and not opened.start.startswith(_ARROW):
        raise DataFileError(
            f"{opened.name}: not a Parquet or Arrow file, whatever its name says; fetch it again, "
            "or name it as what it is"
        )
    with _naming_damage(opened.name):
        path = opened.path
        content = pa.memory_map(str(path)) if path else pa.BufferReader(b"".join(opened.chunks))
        if parquet:
            file = pq.ParquetFile(content)
            batches = file.iter_batches(_ROWS)
            return _open_batches(opened.name, "Parquet", file.schema_arrow.names, batches)
        file = pa.ipc.open_file(content)
        batches = (file.get_batch(k) for k in range(file.num_record_batches))
        return _open_batches(opened.name, "Arrow", file.schema.names, batches)


@contextmanager
def _naming_damage(file: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except DataFileError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as broken:
        if isinstance(broken, OSError) and broken.errno is not None:
            raise
        raise DataFileError(f"{file}: damaged ({broken}); fetch or write it again") from broken


def _open_batches(file: str, kind: str, there: list[str], batches: Iterator[Any]) -> OpenTable:
    kept = [j for j, name in enumerate(there) if not is_index_of_rows(name)]
    names = [there[j] for j in kept]

    def pieces(kinds: Mapping[int, bool]) -> Iterator[Piece]:
        before = 0
        with _naming_damage(file):
            for batch in batches:
                batch.validate(full=True)
                columns = {j: batch.column(kept[j]) for j in kinds}
                if batch.num_rows:
                    yield Piece(columns, np.arange(before, before + batch.num_rows))
                before += batch.num_rows

    return OpenTable(file, kind, names, len(names), pieces)


def read_cells(array: Any, column: str, before: int) -> Cells:
    """Return the cells of an array of any type; messages name the column, and rows after others."""
    import pyarrow as pa

    kind, written = array.type, str(array.type)
    if pa.types.is_dictionary(kind) and kind.value_type != pa.string():
        array, kind = array.cast(kind.value_type), kind.value_type
    if pa.types.is_dictionary(kind):
        return Cells("texts", array, written)
    if kind in (pa.string(), pa.large_string(), pa.string_view(), pa.null()):
        return Cells("texts", array.cast(pa.string()), written)
    found = read_values(array, column, before)
    values = pa.array(found.cells, pa.string()) if found.kind == "texts" else found.cells
    return Cells("numbers" if found.kind == "flags" else found.kind, values, written)


def _read_json(opened: DataSource) -> tuple[list[str], Iterator[Any]]:
    import pyarrow as pa
    import pyarrow.json as arrow_json

    content = b"".join(decode(opened.chunks, opened.name).chunks)
    options = arrow_json.ReadOptions(block_size=min(len(content) + 1, 2**31 - 1))
    try:
        table = arrow_json.read_json(pa.BufferReader(content), options)
    except (pa.ArrowException, ValueError) as wrong:
        raise DataFileError(
            f"{opened.name}: not JSON lines ({wrong}); write one record per line, and the values "
            'of a column alike (in pandas, frame.to_json(path, orient="records", lines=True)), or '
            "save the table as CSV"
        ) from wrong
    kinds = [pa.string() if column.type == pa.bool_() else column.type for column in table.columns]
    named = zip(table.column_names, kinds, strict=True)
    return table.column_names, iter(table.cast(pa.schema(list(named))).to_batches())


def _read_arff(opened: DataSource) -> tuple[list[str], Iterator[Any]]:
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
    return meta.names(), iter(table.to_batches())
