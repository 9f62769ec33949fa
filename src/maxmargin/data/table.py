"""Tables as text, ARFF or JSON: their delimiter, header, label column and columns of cells.

A table of plain numbers is read in one pass that keeps no cells. If that fails, the cells are kept,
and each column is examined as a whole.
"""

import csv
import io
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from maxmargin import loops
from maxmargin.data.cells import finite_number, is_missing, no_label, resembles_value
from maxmargin.data.source import (
    CHUNK,
    JSON_ENDINGS,
    TABLE_ENDINGS,
    DataSource,
    decode,
    split_lines,
    whole_lines,
)
from maxmargin.errors import DataFileError

# The first two are the label whatever else there is.
LABEL_NAMES = ("label", "target", "class", "y", "outcome", "diagnosis", "species", "survived")
_SURE_NAMES = LABEL_NAMES[:2]
# A last column of numbers with one of these names is the label, although another has classes; and
# many whole numbers are then a quantity to be predicted, although they could count classes.
QUANTITY_NAMES = (
    "price", "cost", "value", "amount", "sales", "revenue", "salary", "income", "charges", "rent",
    "count", "cnt", "medv", "mpg", "yield", "score", "points", "quantity", "demand", "rings",
)  # fmt: skip
# The first that divides all rows alike; where semicolons do, commas are part of the cells.
DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas", " ": "spaces"}
_FIRST_ROWS = 20
_DELIMITER_TEXT = 10**6  # characters
HEADER_ROWS = 1000
_ROWS_PER_BLOCK = 1000
_SLICE = 1 << 16  # characters
_HEAD_BYTES = 1 << 23  # looked at to find out about a table that is not in memory
_SPREADSHEET_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)

_PADDING = 16  # bytes after a text, of which a loop may take eight at a time
_STRAYS = 1 << 14  # cells left to Python at a time
_next_record = re.compile(r"\}[ \t]*\r?\n[ \t]*\{").search

Row = tuple[int, list[str]]  # line number, cells


class Table(NamedTuple):
    """Columns of a file as they stand there."""

    file: str
    names: list[str] | None
    columns: Sequence[Any]
    """Each a float64 array, with NaN for missing cells; or a column that has been read; or a
    sequence of cells."""
    label: int | None
    """The label column, if the caller or the header names it."""
    numbers: Any
    """Where the rows are in the file."""
    format: str
    numbered: str = "line"
    delimiter: str | None = None
    remarks: tuple[str, ...] = ()

    def place(self, row: int) -> str:
        """Return the file and the place of a row, for messages."""
        between = ":" if self.numbered == "line" else f": {self.numbered} "
        return f"{self.file}{between}{self.numbers[row]}"

    def column(self, index: int) -> str:
        """Return a column's number and name, for messages."""
        return f"column {index + 1}" + (f" ({self.names[index]})" if self.names else "")


def read_table(content: str, file: str, delimiter: str | None, label: str | int | None) -> Table:
    """Return the table that a text is."""
    line, body, names, width = find_header(content, file, delimiter, label)
    if width < 2:
        raise DataFileError(
            f"{file}:{line}: only one column; a table needs a label and at least one feature, "
            "separated by commas, semicolons, tabs or spaces"
        )
    found = find_label(names, width, label, file)
    lines, columns = _read_columns(body, width, found)
    kind = f"table with {DELIMITERS[body.delimiter]}, {'with' if names else 'without'} a header"
    return Table(file, names, columns, found, lines, kind, "line", body.delimiter, body.remarks)


# ------------------------------------------------------------------- files opened


class TableLines(NamedTuple):
    """A table as text that is opened: UTF-8 that is cut where lines end."""

    head: list[str]
    """The first lines, which are looked at."""
    first: bytes
    """The first chunk, with these lines."""
    rest: Iterator[bytes]
    remarks: list[str]
    """On the encoding; filled while chunks are read."""

    def lines(self) -> Iterator[str]:
        """Iterate over all lines."""
        return split_lines(chain([self.first], self.rest))


class Records(NamedTuple):
    """A table that is in memory: ARFF or JSON, whose names stand apart from the rows."""

    names: list[str] | None
    rows: Iterator[Row]
    numbered: str
    format: str


def open_table(opened: DataSource) -> TableLines | Records:
    """Find out what the text of a source is, and read as much of it as that takes."""
    text = decode(opened.chunks, opened.name)
    chunks = whole_lines(text.chunks)
    parts: list[bytes] = []
    while (
        sum(map(len, parts)) < _HEAD_BYTES
        and sum(part.count(b"\n") for part in parts) <= HEADER_ROWS
        and (part := next(chunks, b""))
    ):
        parts.append(part)
    first = b"".join(parts)
    head = list(islice(split_lines([first]), HEADER_ROWS + 1))
    table = TableLines(head, first, chunks, text.remarks)
    start = "".join(head)[:1000].lstrip().lower()
    if opened.extension == ".arff" or start.startswith("@relation"):
        names, body = split_arff("".join(table.lines()), opened.name)
        return Records(names, body.rows(), "line", "ARFF")
    if opened.extension in JSON_ENDINGS or (
        opened.extension not in TABLE_ENDINGS and start[:1] in ("{", "[")
    ):
        content = "".join(table.lines())
        found = read_records(content, opened.name, are_json_lines(content, opened.extension))
        cells = map(list, zip(*found.columns, strict=True))
        rows = zip(found.numbers.tolist(), cells, strict=True)
        return Records(found.names, rows, found.numbered, found.format)
    return table


# ------------------------------------------------------------------- rows of cells


@dataclass(frozen=True)
class Body:
    """The rows of a text, which can be gone through more than once."""

    content: str
    file: str
    delimiter: str
    before: int = 0  # lines that were cut off
    skip: int = 0  # rows that are no data: comments and the header
    trailing: bool = False  # each row ends in a delimiter
    quote: str = '"'
    strict: bool = True  # about quotation marks
    remarks: tuple[str, ...] = ()

    def rows(self) -> Iterator[Row]:
        """Iterate over the line and the cells of each row that is not blank."""
        return self.split(_lines(self.content))

    def split(self, lines: Iterable[str]) -> Iterator[Row]:
        """Iterate over the rows of lines that are not all in memory, as over those that are."""
        return islice(self._split(lines), self.skip, None)

    def _split(self, lines: Iterable[str]) -> Iterator[Row]:
        if self.delimiter == " ":
            lines = (line.replace("\t", " ") for line in lines)
        reader = csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            skipinitialspace=True,
            strict=self.strict,
        )
        line = self.before
        may_end_blank = self.trailing or self.delimiter == " "
        try:
            for cells in reader:
                first, line = line + 1, self.before + reader.line_num
                if may_end_blank and cells and not cells[-1].strip():
                    cells.pop()
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield first, cells
        except csv.Error as wrong:
            long = f"a cell has more than {csv.field_size_limit():,} characters"
            why = long if "field limit" in str(wrong) else wrong
            raise DataFileError(
                f"{self.file}:{line + 1}: {why}; check the quotation marks"
            ) from wrong


def _lines(content: str) -> Iterator[str]:
    """Iterate over lines with their ends; all of them at once would take four times the memory."""
    start = 0
    while start < len(content):
        end = content.find("\n", start + _SLICE) + 1 or len(content)
        yield from io.StringIO(content[start:end], newline="")
        start = end


def find_body(content: str, file: str, delimiter: str | None = None) -> Body:
    """Return the rows of a text, without comments at its start; the delimiter may be known."""
    spreadsheet = _SPREADSHEET_LINE.match(content)
    before = 0
    if spreadsheet and spreadsheet[1] in DELIMITERS:
        content, delimiter, before = content[spreadsheet.end() :], spreadsheet[1], 1
    if delimiter is None:
        delimiter = _find_delimiter(content, file)
    body = Body(content, file, delimiter, before)
    if not content.lstrip().startswith("#"):
        return body
    start = list(islice(body.rows(), _FIRST_ROWS))
    marked = next((k for k, (_, cells) in enumerate(start) if not _is_marked(cells)), len(start))
    if marked and marked < len(start) and len(start[marked - 1][1]) == len(start[marked][1]):
        marked -= 1  # as wide as the table: its header
    said = ("Lines at the start that are marked with # are left out.",) if marked else ()
    return replace(body, skip=marked, remarks=said)


def _is_marked(cells: list[str]) -> bool:
    return cells[0].lstrip().startswith("#")


def _find_delimiter(content: str, file: str) -> str:
    """Return the first delimiter that divides all of the first rows alike."""
    start = content[:_DELIMITER_TEXT]
    for delimiter in DELIMITERS:
        body = Body(start, file, delimiter, strict=False)
        rows = [cells for _, cells in islice(body.rows(), _FIRST_ROWS)]
        if len(start) < len(content) and len(rows) < _FIRST_ROWS:
            rows = rows[:-1]  # cut off
        widths = {len(cells) for cells in rows[1:] or rows if not _is_marked(cells)}
        if len(widths) == 1 and widths.pop() > 1:
            return delimiter
    first_line = next((line for line in start.splitlines() if line.strip()), "")
    return max(";\t|, ", key=first_line.count)


def has_trailing_delimiters(rows: list[list[str]]) -> bool:
    """Tell whether every row ends in a delimiter, except perhaps the header."""
    first, rest = rows[0], rows[1:] or rows
    ended = all(len(cells) > 2 and not cells[-1].strip() for cells in rest)
    return ended and (not first[-1].strip() or len(first) == len(rest[0]) - 1)


def strip_cells(cells: list[str]) -> list[str]:
    """Return the cells of a header without blanks and without the mark of a comment."""
    first, *others = (cell.strip() for cell in cells)
    return [first.removeprefix("#").lstrip() or first, *others]


# ------------------------------------------------------------------- header and label


class Start(NamedTuple):
    """How a table as text begins."""

    line: int
    body: Body
    """The rows after the header."""
    names: list[str] | None
    width: int


def find_header(content: str, file: str, delimiter: str | None, label: str | int | None) -> Start:
    """Return how a text begins: with the names of its columns, or with a row."""
    body = find_body(content, file, delimiter if delimiter and delimiter in content else None)
    ahead = list(islice(body.rows(), HEADER_ROWS))
    if not ahead:
        raise DataFileError(f"{file}: only comments; it needs at least one labelled row")
    if has_trailing_delimiters([cells for _, cells in ahead]):
        body = replace(body, trailing=True)
        ahead = list(islice(body.rows(), HEADER_ROWS))
    first, rest = strip_cells(ahead[0][1]), [cells for _, cells in ahead[1:]]
    names = first if _is_header(first, rest, label) else None
    if names:
        body = replace(body, skip=body.skip + 1)
        if rest and all(len(cells) == len(names) + 1 for cells in rest):
            names = ["", *names]  # R writes the names of rows without a name for their column
    return Start(ahead[0][0], body, names, len(names or first))


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
    """Tell whether cells are numbers or missing."""
    present = {cell for cell in cells if not is_missing(cell)}
    return bool(present) and all(map(resembles_value, present))


def find_label(
    names: list[str] | None, width: int, label: str | int | None, file: str
) -> int | None:
    """Return the column that is named as the label; None if none is, and its place decides."""
    if label is None:
        return _find_named_label(names or [], file)
    if names and isinstance(label, str) and label in names:
        if names.count(label) == 1:
            return names.index(label)
        raise DataFileError(f"{file}: two columns are named {label!r}; give the label's number")
    try:
        number = int(label)
    except ValueError:
        known = ", ".join(names[:20]) if names else "the file has no header"
        raise DataFileError(
            f"{file}: no column is named {label!r} ({known}); "
            "name one of them, or give its number, counted from 1"
        ) from None
    if number == 0 or not -width <= number <= width:
        raise DataFileError(
            f"{file}: there is no column {number}; columns count from 1 to {width}, "
            "and -1 is the last"
        )
    return number - 1 if number > 0 else width + number


def _find_named_label(names: list[str], file: str) -> int | None:
    found = [i for i, name in enumerate(names) if name.lower() in _SURE_NAMES]
    found = found or [i for i, name in enumerate(names) if name.lower() in LABEL_NAMES]
    if len(found) > 1:
        raise DataFileError(
            f"{file}: columns {' and '.join(str(i + 1) for i in found)} could both be the label; "
            "say which one it is (label=…, or --label)"
        )
    return found[0] if found else None


# ------------------------------------------------------------------- compiled


LEAST_COMPILED = 1 << 18  # bytes of a text: for fewer, loading the loop takes longer than Python


def is_worth_compiling(body: Body, width: int, size: int) -> bool:
    """Tell whether rows are many enough, and written simply enough, for the compiled loop."""
    if size < LEAST_COMPILED or body.trailing or width < 2:
        return False
    return next(body.rows(), None) is not None


class Piece(NamedTuple):
    """Rows that the compiled loop has split."""

    values: Any
    """float64: the numbers of each row, NaN where there is none."""
    text: bytes
    spans: Any
    """(row, column of texts, 2): where cells begin and end in the text."""
    lines: Any
    """int64: the line of each row, from 1."""
    strays: list[tuple[int, int, str]]
    """Row, place among the numbers, and cell, where that is no plain number."""

    def cells(self, column: int) -> list[str]:
        """Return the cells of a column of texts."""
        return [self.text[a:b].decode() for a, b in self.spans[:, column].tolist()]


class Splitter:
    """Splits lines without quotation marks into the numbers and the texts that are asked for."""

    def __init__(
        self, delimiter: str, width: int, numbers: Sequence[int], texts: Sequence[int]
    ) -> None:
        self._delimiter, self._counts = ord(delimiter), (len(numbers), len(texts))
        self._numbers, self._texts = (_places(width, wanted) for wanted in (numbers, texts))

    def split(self, chunk: bytes, line: int, rows: int) -> Iterator[Piece | tuple[int, bytes]]:
        """Iterate over pieces of at most so many rows, after so many lines.

        If a line does not have as many cells as there are columns, the last item is the number of
        lines before it, and it and all lines after it. Otherwise that is all lines, and nothing.
        """
        loop, (count, texts) = loops.table, self._counts
        ended = chunk if chunk.endswith(b"\n") else chunk + b"\n"
        padded = ended + bytes(_PADDING)
        text, at = np.frombuffer(padded, np.uint8), 0
        strays = np.empty((max(_STRAYS, len(self._numbers)), 4), np.int64)
        while at < len(ended):
            most = min(rows, (len(ended) - at) // len(self._numbers) + 1)
            values = np.empty(most * count)
            cells = loop.Cells(
                values, values.view(np.uint64), np.empty((most, texts, 2), np.int64),
                np.empty(most, np.int64), strays,
            )  # fmt: skip
            n, found, lines, at, strange = loop.split(
                text, at, len(ended), self._delimiter, self._numbers, self._texts, count, cells,
                loops.decimals.tables(),
            )  # fmt: skip
            if n:
                yield Piece(
                    values[: n * count].reshape(n, count),
                    padded,
                    cells.spans[:n],
                    cells.lines[:n] + (line + 1),
                    [(i, k, padded[a:b].decode()) for i, k, a, b in strays[:found].tolist()],
                )
            line += lines
            if strange:
                break
        yield line, chunk[at:]


class Text(NamedTuple):
    """The rows of a table as text that is opened."""

    table: TableLines
    body: Body

    def rows(self) -> Iterator[Row]:
        """Iterate over the rows."""
        return self.body.split(islice(self.table.lines(), self.body.before, None))

    def pieces(
        self, width: int, numbers: Sequence[int], texts: Sequence[int], rows: int
    ) -> Iterator[Piece | Iterator[Row]]:
        """Iterate over all rows: pieces from the compiled loop, and rows that are left to Python.

        Pieces have the numbers and the texts of the columns that are asked for, rows all cells.
        """
        table, body = self
        if not is_worth_compiling(body, width, len(table.first)):
            yield self.rows()
            return
        line, left = next(body.rows())[0] - 1, b""
        start = len("".join(table.head[:line]).encode())
        splitter = Splitter(body.delimiter, width, numbers, texts)
        chunks = chain([table.first[start:]], table.rest)
        for chunk in chunks:
            if body.quote.encode() in chunk:  # its cells may go on in the next chunk
                lines = split_lines(chain([chunk], chunks))
                yield replace(body, before=line, skip=0).split(lines)
                return
            for piece in splitter.split(chunk, line, rows):
                if isinstance(piece, Piece):
                    yield piece
                else:
                    line, left = piece
            if left:
                strange = list(split_lines([left]))
                yield replace(body, before=line, skip=0).split(strange)
                line += len(strange)


def _places(width: int, wanted: Sequence[int]) -> Any:
    places = np.full(width, -1)
    places[list(wanted)] = np.arange(len(wanted))
    return places


# ------------------------------------------------------------------- cells to columns

_Columns = tuple[Any, list[Any]]  # line numbers, columns


def _read_columns(body: Body, width: int, label: int | None) -> _Columns:
    """Return line numbers and columns: all as floats but for the label's cells, or all as cells."""
    lines, columns = _read_numbers(body, width, label) or _read_cells(body, width)
    if not len(lines):
        raise DataFileError(f"{body.file}: a header but no rows; add labelled rows")
    return lines, columns


def _read_numbers(body: Body, width: int, label: int | None) -> _Columns | None:
    """Return columns of floats and the label's cells; None if a cell is no plain number."""
    if is_worth_compiling(body, width, len(body.content)):
        return _read_numbers_compiled(body, width, width - 1 if label is None else label)
    # float() takes a few spellings that are no plain numbers; all need one of these characters.
    data = body.content[body.content.find("\n") + 1 :]
    if "_" in data or not data.isascii():
        return None
    label = width - 1 if label is None else label
    values, labels, lines = array("d"), [], array("q")
    for line, cells in body.rows():
        if len(cells) != width:
            return None
        labels.append(cells.pop(label))
        try:
            values.extend(map(float, cells))
        except ValueError:
            return None
        lines.append(line)
    X = np.frombuffer(values).reshape(len(labels), width - 1)
    if not np.isfinite(X).all():
        return None
    columns: list[Any] = list(X.T)
    columns.insert(label, labels)
    return np.array(lines, dtype=np.int64), columns


def _read_numbers_compiled(body: Body, width: int, label: int) -> _Columns | None:
    """Return columns of floats, NaN for missing ones, and the label's cells; else None."""
    line = next(iter(body.rows()))[0] - 1
    head = islice(_lines(body.content), line - body.before)
    start = sum(map(len, head))
    if body.content.find(body.quote, start) >= 0:
        return None
    splitter = Splitter(body.delimiter, width, [j for j in range(width) if j != label], [label])
    pieces: list[Piece] = []
    labels: list[str] = []
    while start < len(body.content):
        end = body.content.rfind("\n", start, start + CHUNK) + 1 or len(body.content)
        for piece in splitter.split(body.content[start:end].encode(), line, 1 << 16):
            if not isinstance(piece, Piece):
                line, left = piece
            elif _fill_strays(piece):
                labels += piece.cells(0)
                pieces.append(piece._replace(text=b"", spans=None))
            else:
                return None
        if left:
            return None
        start = end
    X = np.concatenate([piece.values for piece in pieces])
    columns: list[Any] = list(X.T)
    columns.insert(label, labels)
    return np.concatenate([piece.lines for piece in pieces]), columns


def _fill_strays(piece: Piece) -> bool:
    """Fill in numbers that only Python can round; tell whether other strays are missing cells."""
    for row, k, cell in piece.strays:
        text = cell.strip()
        if finite_number(text):
            piece.values[row, k] = float(text)
        elif not no_label(text):  # what can be a label has to be kept
            return False
    return True


def _read_cells(body: Body, width: int) -> _Columns:
    """Return columns of cells."""
    lines = array("q")
    columns: list[Any] = [[] for _ in range(width)]
    rows = body.rows()
    while block := list(islice(rows, _ROWS_PER_BLOCK)):
        for line, cells in block:
            check_width(cells, width, f"{body.file}:{line}")
            lines.append(line)
        parts = zip(*(cells for _, cells in block), strict=True)
        for column, part in zip(columns, parts, strict=True):
            column.extend(part)
    return np.array(lines, dtype=np.int64), columns


def check_width(cells: list[str], width: int, place: str) -> None:
    """Raise if a row has more or fewer cells than the first one."""
    if len(cells) != width:
        count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        raise DataFileError(
            f"{place}: {count} where the first row has {width}; "
            "complete the row, or quote cells that contain the separator"
        )


# ------------------------------------------------------------------- ARFF

_ATTRIBUTE = re.compile(r"^\s*@attribute\s+('[^'\n]*'|\"[^\"\n]*\"|\S+)\s", re.I | re.M)
_ARFF_DATA = re.compile(r"^\s*@data[^\n]*(?:\n|\Z)", re.I | re.M)


def read_arff(content: str, file: str, label: str | int | None) -> Table:
    """Return the table of an ARFF file: attributes, then rows with commas."""
    names, body = split_arff(content, file)
    if len(names) < 2:
        raise DataFileError(f"{file}: not a whole ARFF file; it needs two attributes and @data")
    found = find_label(names, len(names), label, file)
    lines, columns = _read_columns(body, len(names), found)
    return Table(file, names, columns, found, lines, "ARFF", "line", ",")


def split_arff(content: str, file: str) -> tuple[list[str], Body]:
    """Return the names of an ARFF file's attributes, and its rows."""
    start = _ARFF_DATA.search(content)
    if start is None:
        raise DataFileError(f"{file}: not a whole ARFF file; it needs two attributes and @data")
    names = [name.strip("'\"") for name in _ATTRIBUTE.findall(content[: start.start()])]
    rows = re.sub(r"(?m)^[ \t]*%.*$", "", content[start.end() :])
    if rows.lstrip().startswith("{"):
        raise DataFileError(
            f"{file}: sparse ARFF is not supported; save it as svmlight text or CSV"
        )
    before = content.count("\n", 0, start.end())
    return names, Body(rows, file, ",", before, quote="'" if "'" in rows else '"')


# ------------------------------------------------------------------- JSON


def read_json(content: str, file: str, label: str | int | None, lines: bool) -> Table:
    """Return the table that JSON is; ``lines`` says that each line is a record."""
    table = read_records(content, file, lines)
    if len(table.columns) == 1:
        raise DataFileError(f"{file}: only one column; a table needs a label and a feature")
    return table._replace(label=find_label(table.names, len(table.columns), label, file))


def read_records(content: str, file: str, lines: bool) -> Table:
    """Return the table that JSON is, without a label."""
    if lines:
        written = [(k, line) for k, line in enumerate(content.split("\n"), 1) if line.strip()]
        numbers = [k for k, _ in written]
        rows = [_load_json(line, file, k - 1) for k, line in written]
        names, shape = None, "one record per line"
    else:
        names, rows, shape = _find_rows(_load_json(content, file, 0))
        numbers = list(range(1, len(rows) + 1))
    if rows and names is None and all(isinstance(row, dict) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        rows = [[row.get(name) for name in names] for row in rows]
    elif names is None:
        shape = "a list of rows"
    widths = {len(row) if isinstance(row, list) else 0 for row in rows}
    if len(widths) != 1 or widths == {0} or (names and widths != {len(names)}):
        raise DataFileError(
            f"{file}: this JSON holds no table; supported are a list of records, an object of "
            'columns, {"columns": …, "data": …}, or one record per line'
        )
    columns, where = list(zip(*rows, strict=True)), "line" if lines else "record"
    table = Table(file, names, columns, None, np.array(numbers), f"JSON, {shape}", where)
    return table._replace(columns=[_cells(table, j) for j in range(len(columns))])


def are_json_lines(content: str, extension: str) -> bool:
    """Tell whether each line of JSON is a record."""
    if extension in (".jsonl", ".ndjson"):
        return True
    return content.lstrip()[:1] == "{" and _next_record(content) is not None


def _load_json(content: str, file: str, before: int) -> Any:
    """Return values whose numbers are the texts they are written as, like cells of a CSV file."""
    try:
        return json.loads(content, parse_float=str, parse_int=str, parse_constant=str)
    except json.JSONDecodeError as wrong:
        raise DataFileError(
            f"{file}:{before + wrong.lineno}: not JSON ({wrong.msg}, character {wrong.colno} of "
            "the line); correct it"
        ) from wrong
    except RecursionError as deep:
        raise DataFileError(f"{file}: this JSON is nested too deeply for a table") from deep


def _find_rows(value: Any) -> tuple[list[str] | None, list[Any], str]:
    """Return the names of columns, if they stand apart, the rows, and their shape in words."""
    if isinstance(value, dict) and value:
        names, parts = list(value), list(value.values())
        if isinstance(value.get("columns"), list) and isinstance(value.get("data"), list):
            return [str(name) for name in value["columns"]], value["data"], "columns and data"
        if all(isinstance(part, dict) for part in parts):  # as pandas writes frames
            if all(map(str.isdigit, names)) and not all(map(str.isdigit, parts[0])):
                return None, parts, "an object of records"
            keys = dict.fromkeys(key for part in parts for key in part)
            rows = [[part.get(key) for part in parts] for key in keys]
            return names, rows, "an object of columns"
        lists = [part for part in parts if isinstance(part, list)]
        if len(lists) == len(parts) > 1 and len(set(map(len, lists))) == 1:
            return names, list(map(list, zip(*lists, strict=True))), "an object of columns"
        value = lists[0] if len(lists) == 1 else None
    return None, value if isinstance(value, list) else [], "a list of records"


def _cells(table: Table, index: int) -> list[str]:
    """Return a column's values as texts."""
    spelt = {None: "", True: "true", False: "false"}
    cells = []
    for row, value in enumerate(table.columns[index]):
        if isinstance(value, dict | list):
            raise DataFileError(
                f"{table.place(row)}: {table.column(index)} holds another list or object; "
                "make columns of single values of it, or leave it out"
            )
        cells.append(spelt.get(value, value))
    return cells
