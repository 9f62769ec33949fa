"""From one format of data files to another: svmlight text, CSV, TSV and Parquet.

Cells are carried over as they are, and numbers to the bit. Nothing is decided about what can be
learnt from: no column is left out, and no word becomes a number. Rows go through in blocks; what
has to be known before the first one is written (the width of svmlight text, the types of columns)
takes a pass of its own.
"""

import contextlib
import csv
import io
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin.data.arrow import Frame, is_arrow, open_frame, require_pyarrow
from maxmargin.data.cells import (
    CellError,
    finite_number,
    is_missing,
    label_array,
    plain_numbers,
    reread_column,
)
from maxmargin.data.labelled import resembles_svmlight
from maxmargin.data.layout import TASKS
from maxmargin.data.source import (
    PACKINGS,
    SVMLIGHT_ENDINGS,
    TABLE_ENDINGS,
    DataSource,
    Where,
    extension_of,
    open_source,
    refuse_foreign,
)
from maxmargin.data.svmlight import format_svmlight, iterate_svmlight, open_packed
from maxmargin.data.table import (
    Piece,
    Records,
    TableLines,
    Text,
    check_width,
    find_header,
    find_label,
    open_table,
)
from maxmargin.errors import DataFileError
from maxmargin.rows.arrow_values import read_values
from maxmargin.runtime.atomic_write import write_atomically

_ROWS = 8192  # in a block, at most …
_CELLS = 1 << 20  # … and cells, so that wide tables take no more memory
_MOST_COLUMNS = 100_000  # of svmlight text that becomes a table
_MOST_GROWTH = 50  # a table that takes so many times the bytes of the svmlight text is refused …
_LEAST_REFUSED = 10**8  # … if it has at least so many cells
_ENDINGS = {
    **dict.fromkeys(SVMLIGHT_ENDINGS, "svmlight"),
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
}
_DELIMITERS = {"CSV": ",", "TSV": "\t"}
_canonical_integer = re.compile(r"-?[1-9][0-9]{0,17}|0").fullmatch
_code_with_zeros = re.compile(r"\s*[+-]?0[0-9]").match


class Converted(NamedTuple):
    """What was converted.

    Attributes
    ----------
    rows : int
        The number of rows.
    columns : int
        The number of columns, with that of the label.
    source_format, target_format : str
        What the two files are, in words.
    """

    rows: int
    columns: int
    source_format: str
    target_format: str


def convert(
    source: Where,
    target: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    zero_based: bool = False,
    task: str | None = None,
) -> Converted:
    r"""Convert a data file to another format: svmlight text, CSV, TSV or Parquet.

    The name of the target decides (``.svm .libsvm .svmlight``, ``.csv``, ``.tsv``, ``.parquet``),
    for text also with ``.gz``, ``.xz`` or ``.bz2`` after it. The source may also be any other file
    that :func:`read_labelled` reads. Numbers are the same to the bit, and cells of tables are
    carried over as they are; the target is complete or as it was before.

    - *From svmlight text to a table*, the columns are called ``label, f1, f2, …``, and all zeros
      are written; more than 100,000 columns are refused, and so is a large table that would take
      50 times the bytes.
    - *To svmlight text*, all cells must be plain numbers. The label is found as for
      :func:`read_labelled`, by its name, or else is the last column.
    - *To Parquet*, a column becomes integers or floats if all of its cells are plain numbers or
      missing (codes such as ``007`` are none), and else texts.

    Parameters
    ----------
    source : path, "-" or binary stream
        The file; ``"-"`` is standard input.
    target : path
        The file to write.
    label : str or int, optional
        The label column of a table that becomes svmlight text: its name, or its number from 1.
    zero_based : bool, default False
        Whether the indices of svmlight text, of source or target, count from 0.
    task : {None, "classification", "regression"}, default None
        What the labels are for; for both they must be numbers in svmlight text.

    Returns
    -------
    Converted
        ``rows``, ``columns`` (with the label), ``source_format`` and ``target_format``.

    Raises
    ------
    DataFileError
        The source cannot be read, or not be written in the target's format; the message has the
        line, the column and the way out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from maxmargin.data import convert
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table, text = pathlib.Path(folder, "a.csv"), pathlib.Path(folder, "a.svm")
    ...     _ = table.write_text("x1,x2,label\n0.5,0,1\n0,-2,-1\n")
    ...     print(convert(table, text))
    ...     print(text.read_text(), end="")
    Converted(rows=2, columns=3, source_format='CSV', target_format='svmlight')
    1 1:0.5
    -1 2:-2
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {TASKS}, not {task!r}")
    target = Path(target)
    wanted = _target_format(target)
    with _rereadable(source) as again:
        reader = _find_reader(again, label, zero_based)
        counts = [0]

        def write(draft: Path) -> None:
            if wanted == "Parquet":
                counts[0] = _write_parquet(reader, draft)
            else:
                pieces = (
                    _svmlight_pieces(reader, label, zero_based)
                    if wanted == "svmlight"
                    else _text_pieces(reader, _DELIMITERS[wanted])
                )
                with open_packed(draft, target.suffix.lower()) as file:
                    for rows, piece in pieces:
                        counts[0] += rows
                        file.write(piece)

        write_atomically(target, write)
    return Converted(counts[0], reader.width, reader.format, wanted)


def _target_format(target: Path) -> str:
    found = _ENDINGS.get(extension_of(target))
    packed = target.suffix.lower() in PACKINGS
    if found is None or (packed and found == "Parquet"):
        raise DataFileError(
            f"{target}: the name must end with .svm, .csv or .tsv, for packed text followed by "
            ".gz, .xz or .bz2; or with .parquet, which packs by itself"
        )
    return found


# ------------------------------------------------------------------- sources


_Again = Callable[[], AbstractContextManager[DataSource]]


class _Spooled(io.BufferedIOBase):
    """A copy of a stream, which can be read from its start again."""

    def __init__(self, file: Any, name: str) -> None:
        file.seek(0)
        self.name, self._file = name, file

    def read(self, size: int | None = -1, /) -> bytes:
        content: bytes = self._file.read(size)
        return content


@contextlib.contextmanager
def _rereadable(source: Where) -> Iterator[_Again]:
    """Return what opens a source as often as needed; streams are copied to a file for that."""
    if not (hasattr(source, "read") or source == "-"):
        yield lambda: open_source(source)
        return
    with tempfile.TemporaryFile() as file, open_source(source) as opened:
        for chunk in opened.chunks:
            file.write(chunk)
        name = opened.name + opened.extension * (not opened.name.endswith(opened.extension))
        yield lambda: open_source(_Spooled(file, name))


class _Reader(Protocol):
    """A source, as any of the targets needs it."""

    format: str

    @property
    def width(self) -> int:
        """Return the number of columns, with the label."""
        ...

    def numbers(self, label: str | int | None) -> Iterator[tuple[Any, Any]]:
        """Iterate over X and y."""
        ...

    def names(self) -> list[str] | None:
        """Return the names of the columns, if there are any."""
        ...

    def rows(self) -> Iterator[Sequence[Sequence[str]]]:
        """Iterate over rows of texts, some at a time."""
        ...

    def batches(self) -> Iterator[Any]:
        """Iterate over Arrow's record batches, all of one schema."""
        ...


def _find_reader(again: _Again, label: str | int | None, zero_based: bool) -> _Reader:
    with again() as opened:
        refuse_foreign(opened)
        if is_arrow(opened):
            return _TypedReader(again)
        sure = opened.extension in SVMLIGHT_ENDINGS
        if sure or opened.extension not in TABLE_ENDINGS:
            text = opened.start.decode("utf-8", "replace")
            cut = text.rfind("\n") + 1  # the last line may not be whole
            if sure or resembles_svmlight(text[: cut or None]):
                _refuse_label(opened.name, label)
                return _SvmlightReader(again, zero_based)
    return _TextReader(again, label)


def _refuse_label(name: str, label: str | int | None) -> None:
    if label is not None:
        raise DataFileError(
            f"{name}: svmlight text has its label first on each line; leave out label={label!r}"
        )


def _rows_per_block(width: int) -> int:
    return max(1, min(_ROWS, _CELLS // width))


def _number_text(value: float) -> str:
    """Return the shortest text that is read as this number; none for a missing one."""
    return "" if math.isnan(value) else repr(value).removesuffix(".0")


class _SvmlightReader:
    """Svmlight text, as a table of a label and numbered features."""

    format = "svmlight"

    def __init__(self, again: _Again, zero_based: bool) -> None:
        self._again, self._zero_based = again, zero_based
        self._sizes: tuple[int, int, int] | None = None

    def _measure(self) -> tuple[int, int, int]:
        """Return the numbers of rows, of features and of pairs."""
        if self._sizes is None:
            for _ in self.numbers(None):
                pass
        assert self._sizes is not None
        return self._sizes

    def _blocks(self, n_features: int | None) -> Iterator[Any]:
        with self._again() as opened:
            source = opened.path or _Chunks(opened)
            yield from iterate_svmlight(source, n_features=n_features, zero_based=self._zero_based)

    @property
    def width(self) -> int:
        return self._measure()[1] + 1

    def numbers(self, label: str | int | None) -> Iterator[tuple[Any, Any]]:
        rows = features = pairs = 0
        for block in self._blocks(None):
            rows, pairs = rows + block.X.shape[0], pairs + block.X.nnz
            features = max(features, block.X.shape[1])
            yield block.X, block.y
        self._sizes = rows, features, pairs

    def names(self) -> list[str]:
        return ["label", *(f"f{j}" for j in range(1, self.width))]

    def _dense_blocks(self) -> Iterator[tuple[Any, Any]]:
        rows, features, pairs = self._measure()
        with self._again() as opened:
            name = opened.name
        if features == 0:
            raise DataFileError(f"{name}: no features, only labels; a row is 'label index:value …'")
        cells, growth = rows * features, 2 * rows * features / (8 * pairs + 4 * rows)
        if features > _MOST_COLUMNS or (growth > _MOST_GROWTH and cells > _LEAST_REFUSED):
            raise DataFileError(
                f"{name}: a table of these rows would have {features:,} columns and {cells:,} "
                f"cells, nearly all of them 0; keep it as svmlight text, which every reader here "
                "takes"
            )
        step = _rows_per_block(features)
        for block in self._blocks(features):
            for start in range(0, len(block.y), step):
                part = slice(start, start + step)
                yield _dense(block.X[part]), block.y[part]

    def rows(self) -> Iterator[Sequence[Sequence[str]]]:
        for X, y in self._dense_blocks():
            labels = map(str, y.tolist()) if y.dtype.kind == "i" else map(_number_text, y.tolist())
            cells = (map(_number_text, row) for row in X.tolist())
            yield [[label, *row] for label, row in zip(labels, cells, strict=True)]

    def batches(self) -> Iterator[Any]:
        import pyarrow as pa

        whole = all(block.y.dtype.kind == "i" for block in self._blocks(None))
        kind, names = np.int64 if whole else np.float64, self.names()
        for X, y in self._dense_blocks():
            arrays = [pa.array(y.astype(kind)), *(pa.array(column) for column in X.T.copy())]
            yield pa.record_batch(arrays, names)


def _dense(X: Any) -> Any:
    """Return a CSR array as an array; ``toarray`` adds values to 0, which makes 0 of -0."""
    dense = np.zeros(X.shape)
    dense[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data
    return dense


class _Chunks(io.RawIOBase):
    """An opened source as a stream."""

    def __init__(self, opened: DataSource) -> None:
        self.name, self._chunks, self._rest = opened.name, opened.chunks, b""

    def read(self, size: int = -1, /) -> bytes:
        parts, filled = [self._rest], len(self._rest)
        while (size < 0 or filled < size) and (chunk := next(self._chunks, b"")):
            parts.append(chunk)
            filled += len(chunk)
        content = b"".join(parts)
        end = len(content) if size < 0 else size
        self._rest = content[end:]
        return content[:end]


class _Opened(NamedTuple):
    file: str
    names: list[str] | None
    width: int
    rows: Iterator[tuple[int, list[str]]]
    numbered: str
    format: str
    text: Text | None = None
    """The rows again, if they are text."""

    def place(self, number: int) -> str:
        return f"{self.file}{':' if self.numbered == 'line' else f': {self.numbered} '}{number}"

    def column(self, index: int) -> str:
        name = self.names[index] if self.names else ""
        return f"column {index + 1}" + (f" ({name})" if name else "")


class _TextReader:
    """A table as text, as JSON or as ARFF: cells."""

    def __init__(self, again: _Again, label: str | int | None) -> None:
        self._again, self._label = again, label
        with self._open() as table:
            self._names, self.width, self.format = table.names, table.width, table.format

    @contextlib.contextmanager
    def _open(self) -> Iterator[_Opened]:
        with self._again() as opened:
            table, file = open_table(opened), opened.name
            if isinstance(table, Records):
                first = next(table.rows, None)
                width = len(table.names or (first[1] if first else ()))
                rows = chain([first] if first else [], table.rows)
                kind = table.format.split(",")[0]
                yield _Opened(file, table.names, width, rows, table.numbered, kind)
                return
            yield _open_lines(table, opened, self._label)

    def names(self) -> list[str] | None:
        return self._names

    def rows(self) -> Iterator[Sequence[Sequence[str]]]:
        with self._open() as table:
            for _, cells in self._blocks(table, table.rows):
                yield cells

    def _blocks(
        self, table: _Opened, rows: Iterator[tuple[int, list[str]]]
    ) -> Iterator[tuple[list[int], list[list[str]]]]:
        step = _rows_per_block(self.width)
        while block := list(islice(rows, step)):
            for number, cells in block:
                check_width(cells, table.width, table.place(number))
            yield [number for number, _ in block], [cells for _, cells in block]

    def numbers(self, label: str | int | None) -> Iterator[tuple[Any, Any]]:
        with self._open() as table:
            at = _label_place(table.names, self.width, label, table.file)
            others = [j for j in range(self.width) if j != at]
            if table.text is None:
                parts: Iterator[Any] = iter([table.rows])
            else:
                parts = table.text.pieces(self.width, others, [at], _rows_per_block(self.width))
            for part in parts:
                if isinstance(part, Piece):
                    labels = _number_labels(part.cells(0), part.lines.tolist(), table, at)
                    yield _fill_strays(part, others, table), labels
                    continue
                for lines, rows in self._blocks(table, part):
                    columns = list(zip(*rows, strict=True))
                    X = [_plain(columns[j], lines, table, j) for j in others]
                    yield np.column_stack(X), _number_labels(columns[at], lines, table, at)

    def batches(self) -> Iterator[Any]:
        import pyarrow as pa

        kinds = self._kinds()
        types = [
            {"integers": pa.int64(), "numbers": pa.float64()}.get(k, pa.string()) for k in kinds
        ]
        schema = pa.schema(list(zip(_parquet_names(self._names, self.width), types, strict=True)))
        for rows in self.rows():
            columns = zip(*rows, strict=True)
            made = (_typed(cells, kind) for cells, kind in zip(columns, kinds, strict=True))
            arrays = [pa.array(cells, kind) for cells, kind in zip(made, types, strict=True)]
            yield pa.record_batch(arrays, schema=schema)

    def _kinds(self) -> list[str]:
        """Return for each column whether its cells are integers, numbers or texts."""
        kinds, present = ["integers"] * self.width, [False] * self.width
        for rows in self.rows():
            for j, cells in enumerate(zip(*rows, strict=True)):
                kinds[j] = _kind(cells, kinds[j])
                present[j] = present[j] or not all(map(is_missing, cells))
        return [kind if there else "texts" for kind, there in zip(kinds, present, strict=True)]


def _open_lines(table: TableLines, opened: DataSource, label: str | int | None) -> _Opened:
    delimiter = TABLE_ENDINGS.get(opened.extension)
    _, body, names, width = find_header("".join(table.head), opened.name, delimiter, label)
    kind, text = "TSV" if body.delimiter == "\t" else "CSV", Text(table, body)
    return _Opened(opened.name, names, width, text.rows(), "line", kind, text)


def _label_place(names: list[str] | None, width: int, label: str | int | None, file: str) -> int:
    if width < 2:
        raise DataFileError(f"{file}: only one column; svmlight text needs a label and a feature")
    found = find_label(names, width, label, file)
    return width - 1 if found is None else found


def _no_number(place: str, text: str, is_label: bool) -> DataFileError:
    if is_missing(text):
        trouble = "of the label is empty" if is_label else "is empty"
        way_out = "fill it, or remove the row"
        return DataFileError(
            f"{place}: the cell {trouble}, and svmlight text has no gaps; {way_out}"
        )
    if is_label:
        return DataFileError(
            f"{place}: the label {text!r} is not a number, and svmlight text has only numbers; "
            "number the classes, name another column (label=…, or --label), or convert to CSV, TSV "
            "or Parquet"
        )
    return DataFileError(
        f"{place}: {text!r} is not a plain number, and svmlight text has only these; make numbers "
        "of the column or remove it, or convert to CSV, TSV or Parquet"
    )


def _number_labels(cells: Sequence[str], lines: list[int], table: _Opened, at: int) -> Any:
    texts = [cell.strip() for cell in cells]
    for number, text in zip(lines, texts, strict=True):
        if not finite_number(text):
            raise _no_number(f"{table.place(number)}: {table.column(at)}", text, True)
    return label_array(texts)


def _fill_strays(piece: Piece, columns: list[int], table: _Opened) -> Any:
    """Return the numbers of a piece, if all of its cells are numbers."""
    strays = {(row, k): cell.strip() for row, k, cell in piece.strays}
    for (row, k), cell in strays.items():
        if finite_number(cell):
            piece.values[row, k] = float(cell)
    for row, k in np.argwhere(np.isnan(piece.values))[:1].tolist():
        place = f"{table.place(piece.lines[row])}: {table.column(columns[k])}"
        raise _no_number(place, strays.get((row, k), ""), False)
    return piece.values


def _plain(cells: Sequence[str], lines: list[int], table: _Opened, j: int) -> Any:
    try:
        values = reread_column(cells, False, ())
        stray = "" if np.isnan(values).any() else None
    except CellError as wrong:
        values, stray = None, wrong.cell
    if stray is not None:
        wrong_one = is_missing if not stray else (lambda cell: cell.strip() == stray)
        row = next(i for i, cell in enumerate(cells) if wrong_one(cell))
        raise _no_number(f"{table.place(lines[row])}: {table.column(j)}", stray, False)
    return values


def _kind(cells: Sequence[str], kind: str) -> str:
    """Return what cells are, if those before were of a kind."""
    if kind == "integers":
        if all(_canonical_integer(cell) or is_missing(cell) for cell in cells):
            return kind
        kind = "numbers"
    if kind == "numbers" and (
        plain_numbers(cells) is None or any(_code_with_zeros(cell) for cell in cells)
    ):
        return "texts"
    return kind


def _typed(cells: Sequence[str], kind: str) -> list[Any]:
    if kind == "texts":
        return [cell or None for cell in cells]
    read: Any = int if kind == "integers" else float
    return [None if is_missing(cell) else read(cell) for cell in cells]


def _parquet_names(names: list[str] | None, width: int) -> list[str]:
    return [name or f"column {j}" for j, name in enumerate(names or [""] * width, 1)]


class _TypedReader:
    """A Parquet or Arrow file."""

    def __init__(self, again: _Again) -> None:
        self._again = again
        with self._open() as frame:
            self.width, self.format, self._names = len(frame.names), frame.format, frame.names

    @contextlib.contextmanager
    def _open(self) -> Iterator[Frame]:
        with self._again() as opened:
            yield open_frame(opened)

    def _blocks(self) -> Iterator[tuple[Frame, list[Any]]]:
        with self._open() as frame:
            for arrays in frame.batches(range(self.width), _rows_per_block(self.width)):
                yield frame, [arrays[j] for j in range(self.width)]

    def names(self) -> list[str]:
        return self._names

    def rows(self) -> Iterator[Sequence[Sequence[str]]]:
        for frame, arrays in self._blocks():
            columns = [_spelt(array, frame.column(j)) for j, array in enumerate(arrays)]
            yield list(zip(*columns, strict=True))

    def numbers(self, label: str | int | None) -> Iterator[tuple[Any, Any]]:
        at, before = None, 0
        for frame, arrays in self._blocks():
            if at is None:
                at = _label_place(self._names, self.width, label, frame.file)
            read = [_read_plain(a, frame, j, before, j == at) for j, a in enumerate(arrays)]
            X = np.column_stack([values for j, values in enumerate(read) if j != at])
            before += len(X)
            yield X, read[at]

    def batches(self) -> Iterator[Any]:
        import pyarrow as pa

        for _, arrays in self._blocks():
            yield pa.record_batch(arrays, self._names)


def _spelt(array: Any, column: str) -> list[str]:
    """Return the values of an array as texts, which are read as the same values."""
    import pyarrow as pa

    values = read_values(array, column)  # refuses what a table cannot have
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if values.kind == "texts" and not pa.types.is_integer(array.type):
        return [text or "" for text in array.to_pylist()]
    if pa.types.is_floating(array.type):
        return [_number_text(value) for value in values.cells.tolist()]
    return [text or "" for text in array.cast(pa.string()).to_pylist()]


def _read_plain(array: Any, frame: Frame, j: int, before: int, is_label: bool) -> Any:
    """Return numbers without gaps; labels as integers, if their type says so."""
    import pyarrow as pa

    values = read_values(array, frame.column(j), before)
    if is_label and pa.types.is_integer(array.type) and array.null_count == 0:
        return array.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if values.kind not in ("numbers", "flags"):
        holds = "" if values.kind == "nothing" else values.type
        raise _no_number(frame.column(j), holds, is_label)
    gaps = np.flatnonzero(np.isnan(values.cells))
    if len(gaps):
        raise _no_number(f"{frame.column(j)}: row {before + gaps[0]}", "", is_label)
    return values.cells


# ------------------------------------------------------------------- targets


def _svmlight_pieces(
    reader: _Reader, label: str | int | None, zero_based: bool
) -> Iterator[tuple[int, bytes]]:
    for X, y in reader.numbers(label):
        yield len(y), b"".join(format_svmlight(X, y, zero_based=zero_based))


def _text_pieces(reader: _Reader, delimiter: str) -> Iterator[tuple[int, bytes]]:
    names = reader.names()
    if names is not None:
        yield 0, _join_cells([names], delimiter)
    for rows in reader.rows():
        yield len(rows), _join_cells(rows, delimiter)


def _join_cells(rows: Iterable[Sequence[str]], delimiter: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _write_parquet(reader: _Reader, draft: Path) -> int:
    require_pyarrow(str(draft))
    import pyarrow.parquet as pq

    count, writer = 0, None
    try:
        for batch in reader.batches():
            if writer is None:
                writer = pq.ParquetWriter(draft, batch.schema)
            writer.write_batch(batch)
            count += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise DataFileError("there are no rows to write")
    return count
