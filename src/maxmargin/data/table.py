"""A complete table: its columns are judged as wholes, and its rows know where they are."""

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
    Piece,
    find_start,
    kind_of,
    open_text,
    open_text_table,
    open_typed,
    read_cells,
    require_pyarrow,
)
from maxmargin.data.text import TABLE_ENDINGS, Where, open_source
from maxmargin.errors import DataFileError

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

    def __init__(self, opened: OpenTable) -> None:
        self.file, self.names, self.width = opened.file, opened.names, opened.width
        self.format, self.numbered = opened.format, opened.numbered
        self.delimiter, self._opened = opened.delimiter, opened
        pieces = list(opened.pieces({j: j in opened.plain for j in range(self.width)}))
        self.remarks = tuple(opened.remarks)
        if not pieces:
            raise DataFileError(f"{self.file}: a header but no rows; add labelled rows")
        self.numbers = np.concatenate([piece.numbers for piece in pieces])
        kinds = {j: {piece.columns[j].type for piece in pieces} for j in range(self.width)}
        # Columns of a text that are plain numbers in some pieces only are read once more.
        mixed = [j for j in kinds if len(kinds[j]) > 1]
        self._arrays = {j: _join(pieces, j) for j in kinds if j not in mixed} | self._texts(mixed)
        self._read: dict[int, Column] = {}

    def _texts(self, columns: list[int]) -> dict[int, Any]:
        pieces = list(self._opened.pieces(dict.fromkeys(columns, False))) if columns else []
        return {j: _join(pieces, j) for j in columns}

    def _cells(self, index: int) -> Cells:
        return read_cells(self._arrays[index], f"{self.file}: {self.describe(index)}", 0)

    def place(self, row: int) -> str:
        """Return the file and the place of a row, for messages."""
        return self._opened.place(self.numbers[row])

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
            kind, values, _ = self._cells(index)
            try:
                found = read_column(values, self.delimiter) if kind == "texts" else Column(values)
            except CellError as wrong:
                at = self.file if wrong.cell is None else self.place(self.find(index, wrong.cell))
                raise DataFileError(f"{at}: {self.describe(index)}: {wrong}") from wrong
            moments = (kind,) if kind in ("dates", "times") else found.notation
            self._read[index] = found._replace(notation=moments)
        return self._read[index]

    def has_texts(self, index: int) -> bool:
        """Tell whether a column is not all plain numbers, in any notation."""
        return self._cells(index).kind == "texts"

    def find(self, index: int, text: str) -> int:
        """Return the first row with this text in a column of texts."""
        return find_text(self._cells(index).values, text)

    def labels(self, index: int) -> tuple[Any, Any]:
        """Return a column as classes: the label of each row that has one, and a mask of these."""
        kind, values, _ = self._cells(index)
        if kind == "numbers" and self.delimiter and np.abs(values).max(initial=0) >= _EXACT:
            # Floats would merge identifiers.
            self._arrays |= self._texts([index])
            kind, values, _ = self._cells(index)
        if kind != "texts":
            rows = ~np.isnan(values)
            return whole_numbers(values[rows]), rows
        codes, found = encode(values, NO_LABEL)
        texts, rows = found.to_pylist(), codes >= 0
        infinite = next(filter(is_infinite, texts), None)
        if infinite is not None:
            raise DataFileError(
                f"{self.place(self.find(index, infinite))}: {self.describe(index)}: the label "
                f"{infinite!r} is not finite; correct it or remove the row"
            )
        return label_array(texts)[codes[rows]] if texts else np.empty(0), rows


def find_text(cells: Any, text: str) -> int:
    """Return the place of the first cell with this text."""
    codes, texts = encode(cells, frozenset())
    return int(np.argmax(codes == texts.to_pylist().index(text)))


def _join(pieces: list[Piece], index: int) -> Any:
    import pyarrow as pa

    parts = [piece.columns[index] for piece in pieces]
    return pa.chunked_array([chunk for part in parts for chunk in getattr(part, "chunks", [part])])


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
    with open_source(source) as opened:
        kind = kind_of(opened)
        if kind == "svmlight":
            raise DataFileError(
                f"{opened.name}: svmlight text, which is not a table of rows and columns; read it "
                "with read_svmlight, or convert it"
            )
        require_pyarrow(opened.name)
        if kind != "text":
            return Table(open_typed(opened, kind))
        text = open_text(opened)
        text = text._replace(chunks=list(text.chunks))  # which can be read again
        start = find_start(text, TABLE_ENDINGS.get(opened.extension), label)
        return Table(open_text_table(text, start))


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
    found = [i for i, name in enumerate(names) if name.lower() in LABEL_NAMES[:2]]
    found = found or [i for i, name in enumerate(names) if name.lower() in LABEL_NAMES]
    if len(found) > 1:
        raise DataFileError(
            f"{file}: columns {' and '.join(str(i + 1) for i in found)} could both be the label; "
            "say which one it is (label=…, or --label)"
        )
    return found[0] if found else None
