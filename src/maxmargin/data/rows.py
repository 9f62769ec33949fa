"""Rows of later files, read as the training file was: by its layout, and in bounded memory."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.arrow import ARROW_ENDINGS, Frame, is_arrow, open_frame
from maxmargin.data.cells import (
    CellError,
    is_missing,
    no_label,
    reread_column,
    reread_labels,
    resembles_value,
    whole_numbers,
)
from maxmargin.data.layout import Layout
from maxmargin.data.source import (
    JSON_ENDINGS,
    SVMLIGHT_ENDINGS,
    TABLE_ENDINGS,
    DataSource,
    Where,
    extension_of,
    open_source,
    refuse_foreign,
    split_lines,
)
from maxmargin.data.svmlight import iterate_svmlight
from maxmargin.data.table import (
    HEADER_ROWS,
    LEAST_COMPILED,
    Piece,
    Row,
    Splitter,
    TableLines,
    Text,
    check_width,
    find_body,
    has_trailing_delimiters,
    open_table,
    strip_cells,
)
from maxmargin.errors import DataFileError, did_you_mean
from maxmargin.rows.arrow_values import Values, read_values

_SHOWN = 5
_NOT_SVMLIGHT = {*TABLE_ENDINGS, *JSON_ENDINGS, *ARROW_ENDINGS, ".arff"}


class RowBlock(NamedTuple):
    """Some rows of a file.

    Attributes
    ----------
    X : array or sparse array of shape (n_rows, n_features)
        As ``Labelled.X``: float64, CSR for svmlight text, objects if a column has words.
    y : array of shape (n_rows,), or None
        The labels; None if the file has none, or if they are not asked for.
    numbers : array of int64 of shape (n_rows,)
        Where the rows are in the file, counted as in ``Labelled.numbers``.
    remarks : tuple of str
        What is worth knowing about the file, in sentences; each is said once.
    """

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
        or ``.bz2``, and Parquet are read piece by piece, JSON and ARFF as a whole.
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
        ``X``, ``y``, ``numbers`` and ``remarks``. All blocks of the training file, put together,
        are what :func:`read_labelled` returned.

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


class _Opened(NamedTuple):
    """A table whose columns have been found."""

    file: str
    numbered: str
    width: int
    places: list[int]
    """Where the columns of X are in this file."""
    label: int | None
    rows: Iterator[Row]
    remarks: list[str]
    """May grow while rows are read."""
    text: Text | None = None
    """The rows again, if they are text."""

    def place(self, number: int) -> str:
        return f"{self.file}{':' if self.numbered == 'line' else f': {self.numbered} '}{number}"


def _read_table(
    source: Where, layout: Layout, rows: int, label: bool, need_label: bool
) -> Iterator[RowBlock]:
    with open_source(source) as opened:
        refuse_foreign(opened)
        if is_arrow(opened):
            yield from _read_frame(open_frame(opened), layout, rows, label)
            return
        table = _open_table(opened, layout)
        yield from _make_blocks(table, layout, rows, label, need_label)


def _open_table(opened: DataSource, layout: Layout) -> _Opened:
    """Find out what a file is, as when it is read for training, and find its columns."""
    if opened.extension in SVMLIGHT_ENDINGS:
        raise _not_a_table(opened)
    table = open_table(opened)
    if isinstance(table, TableLines):
        return _open_text(table, opened, layout)
    return _open_named(table.names, table.rows, layout, opened.name, table.numbered)


def _not_a_table(opened: DataSource) -> DataFileError:
    return DataFileError(
        f"{opened.name}: svmlight text, but the model was trained on a table; convert the file "
        "to the table's columns"
    )


def _open_named(
    names: list[str] | None, rows: Iterator[Row], layout: Layout, file: str, numbered: str
) -> _Opened:
    """Open a table whose names, if it has any, stand apart from its rows."""
    if names is not None and layout.names is not None:
        found = _find_by_name(names, layout, file)
    else:
        first = next(rows, None)
        width = len(names) if names else len(first[1]) if first else 0
        found = _find_by_place(width, layout, file)
        rows = chain([first] if first else [], rows)
    return _Opened(file, numbered, found.width, found.places, found.label, rows, found.remarks)


def _open_text(table: TableLines, opened: DataSource, layout: Layout) -> _Opened:
    """Find the columns of a table as text: by the delimiter that gives those of the layout."""
    content, by_name = "".join(table.head), TABLE_ENDINGS.get(opened.extension)
    wanted = by_name if by_name and by_name in content else None
    failures: list[tuple[int, DataFileError]] = []
    # None, with which it is guessed, comes last: words may have blanks in them.
    for delimiter in (*filter(None, dict.fromkeys((wanted, layout.delimiter))), None):
        body = find_body(content, opened.name, delimiter)
        ahead = list(islice(body.rows(), HEADER_ROWS))
        if not ahead:
            raise DataFileError(f"{opened.name}: only comments; it needs at least one row")
        if has_trailing_delimiters([cells for _, cells in ahead]):
            body = replace(body, trailing=True)
            ahead = list(islice(body.rows(), HEADER_ROWS))
        try:
            found = _find_columns(ahead, layout, opened.name)
        except DataFileError as wrong:
            failures.append((len(ahead[0][1]), wrong))
            continue
        table.remarks.extend((*body.remarks, *found.remarks))
        body = replace(body, skip=body.skip + found.header)
        places, text = (found.width, found.places, found.label), Text(table, body)
        return _Opened(opened.name, "line", *places, text.rows(), table.remarks, text)
    raise max(failures, key=lambda failure: failure[0])[1]


# ------------------------------------------------------------------- columns found again


class _Found(NamedTuple):
    width: int
    places: list[int]
    label: int | None
    remarks: list[str]
    header: bool = False


def _find_columns(ahead: list[Row], layout: Layout, file: str) -> _Found:
    line, cells = ahead[0]
    first, rest = strip_cells(cells), [cells for _, cells in ahead[1:]]
    if layout.names is None:
        found = _find_by_place(len(first), layout, file)
        _refuse_header(first, found, layout, f"{file}:{line}")
        return found
    if _is_header(first, layout):
        if rest and all(len(cells) == len(first) + 1 for cells in rest):
            first = ["", *first]  # R writes the names of rows without a name for their column
        return _find_by_name(first, layout, file)._replace(header=True)
    named = ", ".join(repr(name) for name in _wanted_names(layout)[:_SHOWN])
    way_out = f"write the names of the columns in the first line ({named}, …), as in training"
    if len(first) not in (layout.width, layout.width - 1):
        raise DataFileError(f"{file}:{line}: none of the columns' names is in this line; {way_out}")
    found = _find_by_place(len(first), layout, file)
    if all(column.words for column in layout.columns):
        raise DataFileError(f"{file}:{line}: this may be a header or a row; {way_out}")
    _refuse_header(first, found, layout, f"{file}:{line}")
    return found


def _wanted_names(layout: Layout) -> list[str]:
    assert layout.names is not None
    return [layout.names[column.position] for column in layout.columns]


def _is_header(first: list[str], layout: Layout) -> bool:
    """Tell whether a row has the names of columns and not their cells."""
    wanted, there = _wanted_names(layout), set(first)
    if any(wanted) and all(name in there for name in wanted):
        return True
    names = [*wanted, layout.label_name or ""]
    return any(name and name in there and not resembles_value(name) for name in names)


def _refuse_header(first: list[str], found: _Found, layout: Layout, place: str) -> None:
    """Raise if the first row has cells where numbers belong, but no numbers."""
    cells = [
        (first[place], column)
        for place, column in zip(found.places, layout.columns, strict=True)
        if not column.words and not is_missing(first[place])
    ]
    for cell, column in cells:
        try:
            reread_column([cell], False, column.notation)
        except CellError:
            continue
        return
    if cells:
        way_out = "remove the header" if layout.names is None else "name the columns as in training"
        raise DataFileError(
            f"{place}: {cells[0][0]!r} stands where the training file had numbers; {way_out}, or "
            "correct the row"
        )


def _find_by_name(names: Sequence[str], layout: Layout, file: str) -> _Found:
    assert layout.names is not None
    trained, there = _number_names(layout.names), _number_names(names)
    known, at = set(trained), {key: j for j, key in enumerate(there)}
    wanted = [trained[column.position] for column in layout.columns]
    missing = [name for name, k in wanted if (name, k) not in at]
    if missing:
        shown = ", ".join(map(repr, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        hint = did_you_mean(missing[0], [name for name in names if name])
        noun = "column" if len(missing) == 1 else f"{len(missing)} columns"
        raise DataFileError(
            f"{file}: no {noun} {shown}, which the model was trained on; add what is missing, or "
            f"name it as in training.{hint}"
        )
    for name, k in wanted:
        if (name, k + 1) in at and (name, k + 1) not in known:
            raise DataFileError(
                f"{file}: more columns are named {name!r} than in training; give them names of "
                "their own"
            )
    label = at.get(trained[layout.label.position]) if layout.label else None
    return _Found(
        len(names),
        [at[key] for key in wanted],
        label,
        _compare_headers(there, trained, known),
    )


def _number_names(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return each name with the number of columns of that name before it."""
    counts: dict[str, int] = {}
    found = []
    for name in names:
        found.append((name, counts.get(name, 0)))
        counts[name] = counts.get(name, 0) + 1
    return found


def _compare_headers(
    there: list[tuple[str, int]], trained: list[tuple[str, int]], known: set[tuple[str, int]]
) -> list[str]:
    remarks = []
    extra = [
        name or f"number {j}" for j, (name, k) in enumerate(there, 1) if (name, k) not in known
    ]
    if extra:
        shown = ", ".join(map(repr, extra[:_SHOWN])) + (", …" if len(extra) > _SHOWN else "")
        verb = "was" if len(extra) == 1 else "were"
        noun, left = ("Column", "is") if len(extra) == 1 else (f"{len(extra)} columns,", "are")
        remarks.append(f"{noun} {shown} {verb} not there in training and {left} left out.")
    present = set(there)
    if [key for key in there if key in known] != [key for key in trained if key in present]:
        remarks.append("The columns stand in another order than in training; names decide.")
    return remarks


def _find_by_place(width: int, layout: Layout, file: str) -> _Found:
    label = layout.label.position if layout.label else None
    places = [column.position for column in layout.columns]
    if width == layout.width:
        return _Found(width, places, label, [])
    if label is not None and width == layout.width - 1:
        return _Found(width, [place - (place > label) for place in places], None, [])
    without = f" ({layout.width - 1} without the label)" if label is not None else ""
    raise DataFileError(
        f"{file}: {width} columns where the training file had {layout.width}{without}; write the "
        "columns as they stood there"
    )


# ------------------------------------------------------------------- cells to values


class _Part(NamedTuple):
    """Some rows."""

    numbers: Any
    X: Any
    y: Any
    kept: Any
    """A mask of the rows that have a label; None if labels are not read."""

    def labelled(self) -> tuple[Any, Any]:
        """Return the rows that have a label, if labels are read, and their numbers."""
        if self.kept is None or self.kept.all():
            return self.X, self.numbers
        return self.X[self.kept], self.numbers[self.kept]


def _make_blocks(
    opened: _Opened, layout: Layout, rows: int, label: bool, need_label: bool = False
) -> Iterator[RowBlock]:
    empty, said = True, 0
    wanted = _Wanted(opened, layout, rows, label and opened.label is not None)
    text = opened.text
    parts = _split(opened.rows, wanted) if text is None else _split_text(text, wanted)
    for part in parts:
        empty = False
        if need_label and part.kept is not None and not part.kept.all():
            place = opened.place(int(part.numbers[np.argmin(part.kept)]))
            raise DataFileError(f"{place}: there is no label; write one, or leave the row out")
        X, numbers = part.labelled()
        if len(numbers):
            yield RowBlock(X, part.y, numbers, tuple(opened.remarks[said:]))
            said = len(opened.remarks)
    if empty:
        raise DataFileError(f"{opened.file}: a header but no rows; add rows")


class _Wanted(NamedTuple):
    """What is asked of the rows of a table."""

    opened: _Opened
    layout: Layout
    rows: int
    label: bool


def _split(source: Iterator[Row], wanted: _Wanted) -> Iterator[_Part]:
    opened, layout, rows, label = wanted
    while block := list(islice(source, rows)):
        for number, cells in block:
            if len(cells) != opened.width:
                check_width(cells, opened.width, opened.place(number))
        numbers = np.array([number for number, _ in block], dtype=np.int64)
        columns = list(zip(*(cells for _, cells in block), strict=True))
        y = kept = None
        if label and opened.label is not None:
            y, kept = _reread_labels(columns[opened.label], opened, layout, numbers)
        yield _Part(numbers, _reread_features(columns, opened, layout, numbers), y, kept)


def _split_text(text: Text, wanted: _Wanted) -> Iterator[_Part]:
    opened, rows = wanted.opened, wanted.rows
    plain, other, numbers, texts = _choose_cells(wanted)
    for part in text.pieces(opened.width, numbers, texts, rows):
        if isinstance(part, Piece):
            yield _read_piece(part, plain, other, wanted)
        else:
            yield from _split(part, wanted)


def _choose_cells(wanted: _Wanted) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return which columns of X are plain numbers and which others, and where their cells are."""
    opened, layout, _, label = wanted
    plain = [j for j, column in enumerate(layout.columns) if not (column.words or column.notation)]
    other = [j for j, column in enumerate(layout.columns) if column.words or column.notation]
    numbers, texts = ([opened.places[j] for j in columns] for columns in (plain, other))
    if label and opened.label is not None and layout.label is not None:
        texts.append(opened.label)
        if layout.label.kind != "words" and not layout.label.notation:
            numbers.append(opened.label)
    return plain, other, numbers, texts


def _read_piece(piece: Piece, plain: list[int], other: list[int], wanted: _Wanted) -> _Part:
    opened, layout, _, label = wanted
    values, numbers, unread = piece.values, piece.lines, set()
    for row, k, cell in piece.strays:
        if k == len(plain):
            unread.add(row)
        elif not is_missing(cell):
            try:
                values[row, k] = reread_column([cell], False, ())[0]
            except CellError as wrong:
                raise _misfit(wrong, [cell], opened, layout, plain[k], numbers[row:]) from wrong
    if other:
        X = np.empty((len(numbers), layout.n_features), object if layout.has_words else np.float64)
        X[:, plain] = values[:, : len(plain)]
        for k, j in enumerate(other):
            X[:, j] = _reread_feature(piece.cells(k), j, opened, layout, numbers)
    else:
        X = np.ascontiguousarray(values[:, : len(plain)])
    y = kept = None
    if label:
        y = None if unread or values.shape[1] == len(plain) else _as_labels(values[:, -1], layout)
        if y is None:
            y, kept = _reread_labels(piece.cells(len(other)), opened, layout, numbers)
    return _Part(numbers, X, y, kept)


def _as_labels(values: Any, layout: Layout) -> Any:
    """Return labels that are numbers without gaps; None if these have to be looked at again."""
    assert layout.label is not None
    if np.isnan(values).any():
        return None
    if layout.label.kind == "numbers":
        return values.copy()
    labels = whole_numbers(values)
    return labels if labels.dtype.kind == "i" else None


def _reread_features(columns: list[Any], opened: _Opened, layout: Layout, numbers: Any) -> Any:
    X = np.empty((len(numbers), layout.n_features), object if layout.has_words else np.float64)
    for j, place in enumerate(opened.places):
        X[:, j] = _reread_feature(columns[place], j, opened, layout, numbers)
    return X


def _reread_feature(
    cells: Sequence[str], j: int, opened: _Opened, layout: Layout, numbers: Any
) -> Any:
    column = layout.columns[j]
    try:
        return reread_column(cells, column.words, column.notation)
    except CellError as wrong:
        raise _misfit(wrong, cells, opened, layout, j, numbers) from wrong


def _reread_labels(
    cells: Sequence[str], opened: _Opened, layout: Layout, numbers: Any
) -> tuple[Any, Any]:
    """Return the labels of the rows that have one, and a mask of those rows."""
    assert layout.label is not None
    none = no_label if layout.task != "regression" else is_missing
    kept = np.fromiter((not none(cell) for cell in cells), bool, len(cells))
    texts = [cell.strip() for cell, keep in zip(cells, kept, strict=True) if keep]
    try:
        return reread_labels(texts, layout.label.kind, layout.label.notation), kept
    except CellError as wrong:
        raise _misfit(wrong, cells, opened, layout, -1, numbers) from wrong


def _misfit(
    wrong: CellError, cells: Sequence[str], opened: _Opened, layout: Layout, j: int, numbers: Any
) -> DataFileError:
    row = next(i for i, cell in enumerate(cells) if cell.strip() == wrong.cell)
    place = opened.places[j] if j >= 0 else opened.label
    assert place is not None
    return DataFileError(f"{opened.place(numbers[row])}: {layout.describe(j, place)}: {wrong}")


class TableRows:
    """A table as text that comes in runs of whole lines, as from a file that grows."""

    def __init__(self, first: bytes, source: DataSource, layout: Layout, rows: int) -> None:
        """Find the columns in the first lines, which are a header and a row at least."""
        if source.extension in SVMLIGHT_ENDINGS:
            raise _not_a_table(source)
        head = list(islice(split_lines([first]), HEADER_ROWS + 1))
        opened = _open_text(TableLines(head, first, iter(()), []), source, layout)
        assert opened.text is not None
        self._wanted = _Wanted(opened, layout, rows, opened.label is not None)
        self._first, self._body = opened.text, replace(opened.text.body, content="", skip=0)
        self._plain, self._other, *places = _choose_cells(self._wanted)
        self._splitter = Splitter(self._body.delimiter, opened.width, *places)
        self._line = count_lines(first)
        self._said = 0

    def first(self) -> Iterator[RowBlock]:
        """Iterate over the rows of the first lines."""
        return self._blocks(_split_text(self._first, self._wanted))

    def read(self, lines: bytes) -> list[RowBlock]:
        """Return the rows of the next lines; if one is wrong, they are the next ones still."""
        found = list(self._blocks(self._split(lines, self._line)))
        self._line += count_lines(lines)
        return found

    def _split(self, lines: bytes, before: int) -> Iterator[_Part]:
        body = self._body
        simple = not body.trailing and body.quote.encode() not in lines
        if simple and len(lines) >= LEAST_COMPILED and self._wanted.opened.width > 1:
            for piece in self._splitter.split(lines, before, self._wanted.rows):
                if isinstance(piece, Piece):
                    yield _read_piece(piece, self._plain, self._other, self._wanted)
                else:
                    before, lines = piece
        yield from _split(replace(body, before=before).split(split_lines([lines])), self._wanted)

    def _blocks(self, parts: Iterator[_Part]) -> Iterator[RowBlock]:
        remarks = self._wanted.opened.remarks
        for part in parts:
            X, numbers = part.labelled()
            if len(numbers):
                said, self._said = self._said, len(remarks)
                yield RowBlock(X, part.y, numbers, tuple(remarks[said:]))


def count_lines(text: bytes) -> int:
    """Return the number of lines, of which the last one may lack its end."""
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


# ------------------------------------------------------------------- Parquet and Arrow


def _read_frame(frame: Frame, layout: Layout, rows: int, label: bool) -> Iterator[RowBlock]:
    if layout.names is None:
        found = _find_by_place(len(frame.names), layout, frame.file)
    else:
        found = _find_by_name(frame.names, layout, frame.file)
    opened = _Opened(
        frame.file, "row", found.width, found.places, found.label, iter(()), found.remarks
    )
    wanted = [*found.places, *([found.label] if label and found.label is not None else [])]
    remarks, before = tuple(opened.remarks), 0
    for arrays in frame.batches(wanted, rows):
        columns = {j: read_values(arrays[j], frame.column(j), before) for j in wanted}
        numbers = np.arange(before, before + len(arrays[wanted[0]]), dtype=np.int64)
        before += len(numbers)
        y = None
        X = np.empty((len(numbers), layout.n_features), object if layout.has_words else np.float64)
        for j, (place, column) in enumerate(zip(found.places, layout.columns, strict=True)):
            values, words, notation = columns[place], column.words, column.notation
            X[:, j] = _reread_values(values, words, notation, opened, layout, j, numbers)
        if label and found.label is not None:
            y, kept = _reread_typed_labels(columns[found.label], opened, layout, numbers)
            X, numbers = X[kept], numbers[kept]
        if len(numbers):
            yield RowBlock(X, y, numbers, remarks)
            remarks = ()
    if not before:
        raise DataFileError(f"{frame.file}: no rows; add rows")


def _reread_values(
    values: Values,
    words: bool,
    notation: tuple[str, ...],
    opened: _Opened,
    layout: Layout,
    j: int,
    numbers: Any,
) -> Any:
    """Return values of a typed column as those of the training file were."""
    try:
        if values.kind == "texts":
            return reread_column(values.cells, words, notation)
        if values.kind == "nothing" or (words and values.kind == "flags"):
            return reread_column(values.texts(), words, notation)
    except CellError as wrong:
        raise _misfit(wrong, values.cells, opened, layout, j, numbers) from wrong
    trained = "words" if words else next((w for w in notation if w in _OTHER_KINDS), "numbers")
    if (values.kind if values.kind != "flags" else "numbers") != trained:
        place = opened.places[j] if j >= 0 else opened.label
        assert place is not None
        raise DataFileError(
            f"{opened.file}: {layout.describe(j, place)} holds {values.type}, but in training it "
            f"had {_OTHER_KINDS.get(trained, trained)}; write the column as it was there"
        )
    return values.cells


_OTHER_KINDS = {"percent": "numbers with a percent sign", "dates": "dates", "times": "times of day"}


def _reread_typed_labels(
    values: Values, opened: _Opened, layout: Layout, numbers: Any
) -> tuple[Any, Any]:
    assert layout.label is not None
    if values.kind == "texts" or layout.label.kind == "words":
        cells = values.texts() if values.kind == "flags" else values.cells
        if values.kind in ("texts", "flags", "nothing"):
            return _reread_labels(cells, opened, layout, numbers)
    _, kind, notation = layout.label
    labels = _reread_values(values, kind == "words", notation, opened, layout, -1, numbers)
    kept = ~np.isnan(labels)
    labels = labels[kept]
    if kind == "numbers":
        return labels, kept
    whole = whole_numbers(labels)
    if whole.dtype.kind != "i":
        wrong = np.flatnonzero(labels != np.trunc(labels))[:1]
        place = opened.place(numbers[kept][wrong[0]]) if len(wrong) else opened.file
        raise DataFileError(
            f"{place}: {layout.describe(-1, opened.label or 0)}: the label is not a whole number, "
            "as the labels were in training; correct it"
        )
    return whole, kept


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
