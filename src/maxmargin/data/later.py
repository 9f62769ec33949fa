"""Rows of later files, read as the training file was: by its layout, and in bounded memory."""

import os
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.columns import fill_rows, listed
from maxmargin.data.layout import Layout
from maxmargin.data.notation import (
    MISSING,
    NO_LABEL,
    CellError,
    encode,
    reread_column,
    reread_labels,
    resembles_value,
    whole_numbers,
)
from maxmargin.data.svmlight import iterate_svmlight
from maxmargin.data.table import find_text
from maxmargin.data.tables import (
    Cells,
    OpenTable,
    Piece,
    Row,
    kind_of,
    open_rows,
    open_text,
    open_typed,
    read_cells,
    read_head,
    require_pyarrow,
    strip_cells,
)
from maxmargin.data.text import (
    ARROW_ENDINGS,
    JSON_ENDINGS,
    TABLE_ENDINGS,
    DataSource,
    Where,
    extension_of,
    open_source,
)
from maxmargin.errors import DataFileError, did_you_mean

_NOT_SVMLIGHT = {*TABLE_ENDINGS, *JSON_ENDINGS, *ARROW_ENDINGS, ".arff"}
_KINDS = {"percent": "numbers with a percent sign", "dates": "dates", "times": "times of day"}


class RowBlock(NamedTuple):
    """Some rows of a file, as ``read_rows`` describes them."""

    X: Any
    y: Any
    numbers: Any
    remarks: tuple[str, ...] = ()


def read_rows(
    source: Where,
    layout: Layout,
    *,
    rows: int = 8192,
    label: bool = True,
    need_label: bool = False,
) -> Iterator[RowBlock]:
    r"""Iterate over the rows of a later file, read as the training file was, in bounded memory.

    Nothing is guessed from the later file. Columns are found by their names, in any order and
    among others, or by their places if there is no header. Cells are read in the notation of the
    training file; what is written in another way is refused.

    Parameters
    ----------
    source : path, "-" or binary stream
        The file; "-" is standard input. Text (CSV, TSV, svmlight), also packed as ``.gz``, ``.xz``
        or ``.bz2``, and Parquet are read piece by piece, JSON and ARFF at once.
    layout : Layout
        The ``layout`` of what :func:`read_labelled` returned for the training file.
    rows : int, default 8192
        The most rows that a block has.
    label : bool, default True
        Whether labels are read, if there are any; then rows without one are left out, as in
        training. If False, no row is left out.
    need_label : bool, default False
        Whether a row of a table without a label is an error, if labels are read.

    Yields
    ------
    RowBlock
        A tuple with names: ``X`` and ``y`` as of :func:`read_labelled` (``y`` is None if there are
        no labels, or if they are not asked for); ``numbers``, where the rows are in the file;
        ``remarks``, sentences on the file, each once. All blocks of the training file, put
        together, are what :func:`read_labelled` returned.

    Raises
    ------
    DataFileError
        A column is missing or a cell cannot be read; the message has the line, the column, the
        cell and the way out.

    Examples
    --------
    >>> import io
    >>> from maxmargin.data import Layout, read_rows
    >>> layout = Layout("svmlight", n_features=3)
    >>> for block in read_rows(io.BytesIO(b"1 1:0.5\n-1 2:2 3:1\n"), layout, rows=1):
    ...     print(block.X.toarray(), block.y, block.numbers)
    [[0.5 0.  0. ]] [1] [1]
    [[0. 2. 1.]] [-1] [2]
    """
    if not isinstance(layout, Layout):
        raise TypeError(f"layout must be a Layout, not {type(layout).__name__}")
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise ValueError(f"rows must be a whole number from 1 on, not {rows!r}")
    if layout.kind == "svmlight":
        return _read_svmlight(source, layout, rows, label)
    return _read_table(source, layout, rows, label, need_label)


class Found(NamedTuple):
    """Where the columns of a layout are in a file."""

    width: int
    places: list[int]
    label: int | None
    remarks: list[str]
    header: bool = False


def _read_table(
    source: Where, layout: Layout, rows: int, label: bool, need_label: bool
) -> Iterator[RowBlock]:
    with open_source(source) as opened:
        kind = kind_of(opened)
        if kind == "svmlight" and opened.extension not in TABLE_ENDINGS:
            raise DataFileError(
                f"{opened.name}: svmlight text, but the model was trained on a table; convert the "
                "file to the table's columns"
            )
        require_pyarrow(opened.name)
        table, found = find_columns(opened, kind, layout)
        reader = LaterRows(table, found, layout, label, need_label)
        yield from reader.blocks(table.pieces(reader.kinds), rows)


def find_columns(opened: DataSource, kind: str, layout: Layout) -> tuple[OpenTable, Found]:
    """Open a later file, and find the columns of the layout in it."""
    if kind != "text":
        table = open_typed(opened, kind)
        if layout.names is None or table.names is None:
            return table, _find_by_place(table.width, layout, table.file)
        return table, _find_by_name(table.names, layout, table.file)
    text, failures = open_text(opened), []
    # None, with which it is guessed, comes last: words may have blanks in them.
    by_name = TABLE_ENDINGS.get(opened.extension)
    known = (by_name if text.has(by_name) else None, layout.delimiter)
    for delimiter in (*filter(None, dict.fromkeys(known)), None):
        dialect, rows = read_head(text, delimiter)
        try:
            found = _find_in_text(rows, layout, text.file)
        except DataFileError as wrong:
            failures.append((len(rows[0][1]), wrong))
            continue
        text.remarks.extend(found.remarks)
        return open_rows(text, dialect.begin(rows[found.header :], text), found.width), found
    raise max(failures, key=lambda failure: failure[0])[1]


# ------------------------------------------------------------------- columns found again


def _find_in_text(rows: list[Row], layout: Layout, file: str) -> Found:
    line, first = rows[0][0], strip_cells(rows[0][1])
    if layout.names is None:
        return _find_by_place(len(first), layout, file)
    wanted = [layout.names[column.position] for column in layout.columns]
    if _is_header(first, wanted, layout):
        if rows[1:] and all(len(cells) == len(first) + 1 for _, cells in rows[1:]):
            first = ["", *first]  # R writes the names of rows without a name for their column
        return _find_by_name(first, layout, file)._replace(header=True)
    why = "none of the columns' names is in this line"
    if len(first) in (layout.width, layout.width - 1):
        if not all(column.words for column in layout.columns):
            return _find_by_place(len(first), layout, file)
        why = "this may be a header or a row"
    raise DataFileError(
        f"{file}:{line}: {why}; write the names of the columns in the first line "
        f"({listed(list(map(repr, wanted)))}), as in training"
    )


def _is_header(first: list[str], wanted: list[str], layout: Layout) -> bool:
    there = set(first)
    if any(wanted) and there.issuperset(wanted):
        return True
    names = [*wanted, layout.label_name or ""]
    return any(name and name in there and not resembles_value(name) for name in names)


def _find_by_name(names: Sequence[str], layout: Layout, file: str) -> Found:
    assert layout.names is not None
    trained, there = _number_names(layout.names), _number_names(names)
    known, at = set(trained), {key: j for j, key in enumerate(there)}
    wanted = [trained[column.position] for column in layout.columns]
    missing = [name for name, k in wanted if (name, k) not in at]
    if missing:
        hint = did_you_mean(missing[0], [name for name in names if name])
        noun = "column" if len(missing) == 1 else "columns"
        raise DataFileError(
            f"{file}: no {noun} {listed(list(map(repr, missing)))}, which the model was trained "
            f"on; add what is missing, or name it as in training.{hint}"
        )
    extra = [(j, key) for j, key in enumerate(there, 1) if key not in known]
    again = next((name for _, (name, k) in extra if k and (name, k - 1) in wanted), None)
    if again is not None:
        raise DataFileError(
            f"{file}: more columns are named {again!r} than in training; give them names of "
            "their own"
        )
    label, remarks, present = layout.label, [], set(there)
    if extra:
        shown = listed([repr(name or f"number {j}") for j, (name, _) in extra])
        noun, was = ("Column", "was") if len(extra) == 1 else ("Columns", "were")
        remarks.append(f"{noun} {shown} {was} not there in training and is left out.")
    if [key for key in there if key in known] != [key for key in trained if key in present]:
        remarks.append("The columns stand in another order than in training; names decide.")
    at_label = at.get(trained[label.position]) if label else None
    return Found(len(names), [at[key] for key in wanted], at_label, remarks)


def _number_names(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return names with how often they came before."""
    seen: dict[str, Iterator[int]] = {}
    return [(name, next(seen.setdefault(name, count()))) for name in names]


def _find_by_place(width: int, layout: Layout, file: str) -> Found:
    label = layout.label.position if layout.label else None
    places = [column.position for column in layout.columns]
    if width == layout.width:
        return Found(width, places, label, [])
    if label is not None and width == layout.width - 1:
        return Found(width, [place - (place > label) for place in places], None, [])
    without = f" ({layout.width - 1} without the label)" if label is not None else ""
    raise DataFileError(
        f"{file}: {width} columns where the training file had {layout.width}{without}; write the "
        "columns as they stood there"
    )


# ------------------------------------------------------------------- cells to values


class LaterRows:
    """Makes rows of the pieces of a file whose columns have been found."""

    def __init__(
        self, table: OpenTable, found: Found, layout: Layout, label: bool, need_label: bool
    ) -> None:
        self._table, self._found, self._layout = table, found, layout
        self._need_label = need_label
        self._label = layout.label if label and found.label is not None else None
        self.kinds = {
            place: not (column.words or column.notation)
            for place, column in zip(found.places, layout.columns, strict=True)
        }
        """The columns that are read, and whether they hold plain numbers."""
        if self._label is not None and found.label is not None:
            self.kinds[found.label] = self._label.kind == "numbers" and not self._label.notation

    def blocks(self, pieces: Iterator[Piece], rows: int) -> Iterator[RowBlock]:
        """Iterate over blocks of at most so many rows."""
        empty, noted = True, 0
        remarks = self._found.remarks if self._table.delimiter is None else self._table.remarks
        for piece in pieces:
            empty = False
            X, y, numbers = self.read(piece)
            for start in range(0, len(numbers), rows):
                part = slice(start, start + rows)
                labels = None if y is None else y[part]
                yield RowBlock(X[part], labels, numbers[part], tuple(remarks[noted:]))
                noted = len(remarks)
        if empty:
            raise DataFileError(f"{self._table.file}: a header but no rows; add rows")

    def read(self, piece: Piece) -> tuple[Any, Any, Any]:
        """Return X, y and the numbers of the rows of a piece that have a label, if it is read."""
        layout, numbers = self._layout, piece.numbers
        columns = [
            self._read(piece, j, column.words, column.notation)
            for j, column in enumerate(layout.columns)
        ]
        X = fill_rows(columns, layout.has_words)
        if self._label is None:
            return X, None, numbers
        y, kept = self._labels(piece)
        if kept.all():
            return X, y, numbers
        if self._need_label:
            place = self._table.place(numbers[int(np.argmin(kept))])
            raise DataFileError(f"{place}: there is no label; write one, or leave the row out")
        return X[kept], y, numbers[kept]

    def _place(self, j: int) -> int:
        return self._found.places[j] if j >= 0 else self._found.label or 0

    def _cells(self, piece: Piece, j: int) -> Cells:
        place = self._place(j)
        where = f"{self._table.file}: {self._layout.describe(j, place)}"
        return read_cells(piece.columns[place], where, piece.numbers[0])

    def _read(self, piece: Piece, j: int, words: bool, notation: tuple[str, ...]) -> Any:
        kind, values, written = self._cells(piece, j)
        if kind == "texts":
            try:
                return reread_column(values, words, notation)
            except CellError as wrong:
                raise self._misfit(wrong, values, j, piece.numbers) from wrong
        trained = "words" if words else next((w for w in notation if w in _KINDS), "numbers")
        if kind == trained:
            return values
        raise DataFileError(
            f"{self._table.file}: {self._layout.describe(j, self._place(j))} holds {written}, but "
            f"in training it had {_KINDS.get(trained, trained)}; write the column as it was there"
        )

    def _labels(self, piece: Piece) -> tuple[Any, Any]:
        assert self._label is not None
        kind, notation = self._label.kind, self._label.notation
        cells = self._cells(piece, -1)
        if cells.kind == "texts":
            missing = MISSING if self._layout.task == "regression" else NO_LABEL
            codes, texts = encode(cells.values, missing)
            try:
                return reread_labels(texts, kind, notation)[codes[codes >= 0]], codes >= 0
            except CellError as wrong:
                raise self._misfit(wrong, cells.values, -1, piece.numbers) from wrong
        labels = self._read(piece, -1, kind == "words", notation)
        kept = ~np.isnan(labels)
        if kind == "numbers":
            return labels[kept], kept
        fractions = np.flatnonzero(kept & (labels != np.trunc(labels)))
        if len(fractions):
            why = CellError("the label is not a whole number, as the labels were in training")
            raise self._misfit(why, fractions[0], -1, piece.numbers)
        return whole_numbers(labels[kept]), kept

    def _misfit(self, wrong: CellError, cells: Any, j: int, numbers: Any) -> DataFileError:
        row = cells if wrong.cell is None else find_text(cells, wrong.cell)
        where = self._layout.describe(j, self._place(j))
        return DataFileError(f"{self._table.place(numbers[row])}: {where}: {wrong}")


# ------------------------------------------------------------------- svmlight text


def _read_svmlight(source: Where, layout: Layout, rows: int, label: bool) -> Iterator[RowBlock]:
    named = isinstance(source, str | os.PathLike) and source != "-"
    if named and extension_of(Path(source)) in _NOT_SVMLIGHT:
        raise DataFileError(
            f"{source}: the model takes rows of svmlight text, and this is a table; convert it "
            "(maxmargin.data.convert, or maxmargin convert)"
        )
    for block in iterate_svmlight(
        source, n_features=layout.n_features, zero_based=layout.zero_based
    ):
        y = block.y.astype(np.float64) if layout.task == "regression" else block.y
        for start in range(0, len(y), rows):
            part = slice(start, start + rows)
            yield RowBlock(block.X[part], y[part] if label else None, block.numbers[part])
