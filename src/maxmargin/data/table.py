"""A complete table: its columns are judged as wholes, and its rows know where they are."""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.data.notation import (
    NO_LABEL,
    CellError,
    Column,
    encode,
    is_infinite,
    label_array,
    read_column,
    whole_numbers,
)
from maxmargin.data.tables import (
    LABEL_NAMES,
    Cells,
    OpenTable,
    find_start,
    kind_of,
    open_text,
    open_text_table,
    open_typed,
    require_pyarrow,
)
from maxmargin.data.text import TABLE_ENDINGS, Where, open_source
from maxmargin.errors import DataFileError

_SURE_NAMES = LABEL_NAMES[:2]
_EXACT = 2.0**53


class Table:
    """A table as :func:`read_table` returns it.

    Attributes
    ----------
    file : str
        Its name, for messages.
    names : list of str, or None
        The names of the columns, if the table has a header.
    width : int
        The number of columns.
    numbers : array of int64
        Where the rows are in the file.
    numbered : str
        What ``numbers`` counts: each "line" of a text from 1, or each "row" from 0.
    format : str
        What the file turned out to be, in words.
    remarks : tuple of str
        What is worth knowing about the file, in sentences.
    """

    def __init__(self, opened: OpenTable, texts: Callable[[list[int]], list[Any]]) -> None:
        self.file, self.names, self.width = opened.file, opened.names, opened.width
        self.format, self.numbered, self.delimiter = (
            opened.format,
            opened.numbered,
            opened.delimiter,
        )
        wanted = {j: j in opened.plain for j in range(self.width)}
        pieces = list(opened.pieces(wanted))
        self.remarks = tuple(opened.remarks)
        if not pieces:
            raise DataFileError(f"{self.file}: a header but no rows; add labelled rows")
        self.numbers = np.concatenate([piece.numbers for piece in pieces])
        self._texts = texts
        joined = [_join([piece.columns.pop(j) for piece in pieces]) for j in range(self.width)]
        mixed = [j for j, cells in enumerate(joined) if cells is None]
        again = dict(zip(mixed, self._texts(mixed), strict=True)) if mixed else {}
        self._cells = [cells or Cells("texts", again[j]) for j, cells in enumerate(joined)]
        self._read: dict[int, Column] = {}

    def place(self, row: int) -> str:
        """Return the file and the place of a row, for messages."""
        between = ":" if self.numbered == "line" else f": {self.numbered} "
        return f"{self.file}{between}{self.numbers[row]}"

    def describe(self, index: int) -> str:
        """Return a column's number and name, for messages."""
        return f"column {index + 1}" + (f" ({self.names[index]})" if self.names else "")

    def column(self, index: int) -> Column:
        """Return the numbers or the words of a column.

        Raises
        ------
        DataFileError
            It is neither: all but a few cells are numbers, or dates that can be read in two ways.
        """
        if index not in self._read:
            kind, values, _ = self._cells[index]
            try:
                found = read_column(values, self.delimiter) if kind == "texts" else Column(values)
            except CellError as wrong:
                place = (
                    self.file if wrong.cell is None else self.place(self.find(index, wrong.cell))
                )
                raise DataFileError(f"{place}: {self.describe(index)}: {wrong}") from wrong
            moments = (kind,) if kind in ("dates", "times") else found.notation
            self._read[index] = found._replace(notation=moments)
        return self._read[index]

    def has_texts(self, index: int) -> bool:
        """Tell whether a column is not all plain numbers, in any notation."""
        return self._cells[index].kind == "texts"

    def find(self, index: int, text: str) -> int:
        """Return the first row with this text in a column of texts."""
        codes, texts = encode(self._cells[index].values, frozenset())
        return int(np.argmax(codes == texts.to_pylist().index(text)))

    def distinct_labels(self, index: int) -> int:
        """Return how many different classes a column of texts has."""
        return len(encode(self._cells[index].values, NO_LABEL)[1])

    def labels(self, index: int) -> tuple[Any, Any]:
        """Return a column as classes: the label of each row that has one, and a mask of these."""
        kind, values, _ = self._cells[index]
        if kind == "numbers" and self.delimiter and np.abs(values).max(initial=0) >= _EXACT:
            kind, values = "texts", self._texts([index])[0]  # floats would merge identifiers
        if kind != "texts":
            rows = ~np.isnan(values)
            return whole_numbers(values[rows]), rows
        codes, found = encode(values, NO_LABEL)
        texts = found.to_pylist()
        infinite = next((text for text in texts if is_infinite(text)), None)
        if infinite is not None:
            raise DataFileError(
                f"{self.place(self.find(index, infinite))}: {self.describe(index)}: the label "
                f"{infinite!r} is not finite; correct it or remove the row"
            )
        rows = codes >= 0
        return label_array(texts)[codes[rows]] if texts else np.empty(0), rows


def _join(parts: list[Cells]) -> Cells | None:
    import pyarrow as pa

    kinds = {part.kind for part in parts} - {"nothing"}
    typed = bool(parts[0].type)
    if kinds == {"texts"} or (typed and "texts" in kinds):
        arrays = [part.values if part.kind == "texts" else _spell(part.values) for part in parts]
        chunks = [chunk for array in arrays for chunk in getattr(array, "chunks", [array])]
        return Cells("texts", pa.chunked_array(chunks, pa.string()), parts[0].type)
    if len(kinds) > 1:
        return None
    values = np.concatenate([part.values for part in parts])
    return Cells(next(iter(kinds), "nothing"), values, parts[0].type)


def _spell(values: Any) -> Any:
    """Return whole numbers as texts, beside others of their column that floats do not hold."""
    import pyarrow as pa

    return pa.array([None if value != value else str(int(value)) for value in values.tolist()])


@contextmanager
def open_table(source: Where, label: str | int | None = None) -> Iterator[OpenTable]:
    """Open a table of any kind; ``label`` may be a name that tells its header from a row."""
    with open_source(source) as opened:
        kind = kind_of(opened)
        if kind == "svmlight":
            raise DataFileError(
                f"{opened.name}: svmlight text, which is not a table of rows and columns; read it "
                "with read_svmlight, or convert it"
            )
        require_pyarrow(opened.name)
        if kind != "text":
            yield open_typed(opened, kind)
            return
        text = open_text(opened)
        start = find_start(text, TABLE_ENDINGS.get(opened.extension), label)
        yield open_text_table(text, start)


def read_table(source: Where, label: str | int | None = None) -> Table:
    r"""Read a table, without deciding what is to be learnt from it.

    Parameters
    ----------
    source : path, "-" or binary stream
        The table: text with any separator, JSON lines, Parquet, an Arrow file or ARFF; see
        :func:`read_labelled`.
    label : str or int, optional
        A column's name, by which a header is told from a row.

    Returns
    -------
    Table
        ``names``, ``width``, ``numbers``, ``remarks``; ``column(j)`` reads a column.

    Examples
    --------
    >>> import io
    >>> from maxmargin.data import read_table
    >>> table = read_table(io.BytesIO(b"size;city\n1,5;Rome\n2,25;Oslo\n;Rome\n"))
    >>> table.names, table.numbers.tolist()
    (['size', 'city'], [2, 3, 4])
    >>> table.column(0).cells().tolist(), table.column(1).cells().tolist()
    ([1.5, 2.25, nan], ['Rome', 'Oslo', 'Rome'])
    """
    if hasattr(source, "read") or source == "-":
        with open_source(source) as opened:
            content = b"".join(opened.chunks)
        name = opened.name
        return _read_table(lambda: _Named(content, name), label)
    path = Path(os.fspath(source))
    return _read_table(lambda: path, label)


class _Named(io.BytesIO):
    """Text that has been read, under the name it came by."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


def _read_table(again: Callable[[], Where], label: str | int | None) -> Table:
    def texts(columns: list[int]) -> list[Any]:
        with open_table(again(), label) as opened:
            pieces = list(opened.pieces(dict.fromkeys(columns, False)))
        found = [_join([piece.columns[j] for piece in pieces]) for j in columns]
        return [cells.values for cells in found if cells is not None]

    with open_table(again(), label) as opened:
        return Table(opened, texts)


# ------------------------------------------------------------------- the label by its name


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
