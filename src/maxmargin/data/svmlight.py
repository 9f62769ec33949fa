"""Svmlight (LIBSVM) text: ``label [qid:n] index:value … [# comment]``, a row per line.

Blocks of lines are cut into pieces, which threads parse with a compiled loop; their rows are added
to arrays that grow, in the order of the text. The loop only finds that a line is wrong; what is
wrong with it is then found by Python.
"""

import math
import operator
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import loops
from maxmargin.data.notation import NUMBER, finite_number, whole_numbers
from maxmargin.data.text import CHUNK, PACKINGS, Where, open_source
from maxmargin.errors import DataFileError
from maxmargin.runtime.atomic_write import write_atomically
from maxmargin.runtime.threads import share_work, usual_threads
from maxmargin.validation.data import as_labels, as_rows

_PADDING = bytes(16)  # after a text, of which a loop may take eight bytes at a time
_PIECE = 1 << 18  # bytes, so that the numbers of a piece stay in a core's cache
_PIECES_PER_THREAD = 4
_MOST_COLUMNS = 2**63 - 1
_MOST_INT32 = 2**31 - 1
_BLOCK = 1 << 23
_SHOWN = 60  # characters of a wrong token that a message shows
_PAIRS_WRITTEN = 1 << 16  # at a time


class Svmlight(NamedTuple):
    """Rows read from svmlight text, as ``read_svmlight`` describes them."""

    X: Any
    y: Any
    query_id: Any
    numbers: Any


def read_svmlight(
    path: Where,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: npt.DTypeLike = np.float64,
    query_id: bool = False,
    threads: int | None = None,
) -> Svmlight:
    r"""Read svmlight (LIBSVM) text: ``label [qid:n] index:value … [# comment]``, a row per line.

    The text is read strictly: finite decimal numbers, each rounded to the nearest double, and whole
    indices that ascend within a line, with spaces and tabs between them. Blank lines and lines that
    have only a comment are skipped. Files named ``.gz``, ``.xz``, ``.bz2`` or ``.zst`` are unpacked
    on the way. Memory holds the rows, an eighth of them in reserve at most, and a few megabytes.

    Parameters
    ----------
    path : path, "-" or binary stream
        The file; ``"-"`` is standard input.
    n_features : int, optional
        The number of columns of X; an index beyond it is refused. By default, the largest index
        that occurs says how many there are.
    zero_based : bool, default False
        Whether indices count from 0. By default they count from 1, and an index 0 is refused.
    dtype : float64 or float32, default float64
        The type of X. In float32, each value is the nearest one to the double.
    query_id : bool, default False
        Whether each row has ``qid:n`` after its label, as files for ranking have. If not, a row
        that has one is refused.
    threads : int, optional
        The number of threads; by default, as many as BLAS has. What is read does not depend on it.

    Returns
    -------
    Svmlight
        A tuple with names: ``X``, a CSR array (zeros that the text has are stored); ``y``, int64 if
        all labels are whole numbers, else float64; ``query_id``, or None; ``numbers``, the line of
        each row, from 1.

    Raises
    ------
    DataFileError
        The text is not what the format allows; the message has line and column, and the way out.

    Examples
    --------
    >>> import io
    >>> from maxmargin.data import read_svmlight
    >>> rows = read_svmlight(io.BytesIO(b"+1 1:0.5 3:2 # the first\n-1 2:1e-3\n"))
    >>> rows.X.toarray().tolist(), rows.y.tolist(), rows.numbers.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 0.001, 0.0]], [1, -1], [1, 2])
    """
    table = _Table(_Reader(n_features, zero_based, dtype, query_id, threads))
    with open_source(path) as opened:
        for number, block in enumerate(_cut_lines(opened.chunks, CHUNK)):
            table.append(block, _Text(opened.name))
            if number == 0 and opened.path is not None:  # a little more than if all were like that
                table.reserve(1.02 * os.path.getsize(opened.path) / len(block))
    if not table.numbers.size:
        raise DataFileError(f"{opened.name}: no rows; a row is 'label index:value …'")
    return table.finish()


def read_range(
    path: Path, begin: int, end: int, *, name: str, n_features: int | None, zero_based: bool
) -> Svmlight:
    """Read the rows of a range of bytes that begins and ends where lines do."""
    table = _Table(_Reader(n_features, zero_based))
    with path.open("rb") as file:

        def count_lines() -> int:
            return sum(chunk.count(b"\n") for chunk in _read_between(file, 0, begin))

        text = _Text(name, count_lines if begin else None)
        for block in _cut_lines(_read_between(file, begin, end), CHUNK):
            table.append(block, text)
    return table.finish()


def iterate_svmlight(
    source: Where,
    *,
    block_bytes: int = _BLOCK,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: npt.DTypeLike = np.float64,
    query_id: bool = False,
    threads: int | None = None,
) -> Iterator[Svmlight]:
    r"""Iterate over the rows of svmlight text in blocks, in bounded memory.

    Without ``n_features``, the X of a block has as many columns as the indices up to there require.
    Labels are integers in a block where all of them are whole numbers.

    Parameters
    ----------
    source : path, "-" or binary stream
        The text; ``"-"`` is standard input.
    block_bytes : int, default 8 MiB
        About how many bytes of text a block has; it has one line at least.
    n_features, zero_based, dtype, query_id, threads
        As for :func:`read_svmlight`, and so is what is raised.

    Yields
    ------
    Svmlight
        The rows of a block; ``numbers`` counts the lines of all text.

    Examples
    --------
    >>> import io
    >>> from maxmargin.data import iterate_svmlight
    >>> text = io.BytesIO(b"1 1:2\n-1 2:3\n")
    >>> for block in iterate_svmlight(text, block_bytes=6, n_features=2):
    ...     print(block.X.toarray().tolist(), block.numbers.tolist())
    [[2.0, 0.0]] [1]
    [[0.0, 3.0]] [2]
    """
    reader = _Reader(n_features, zero_based, dtype, query_id, threads)
    if operator.index(block_bytes) < 1:
        raise ValueError(f"block_bytes={block_bytes} is not valid: it must be at least 1")
    columns = lines = 0
    with open_source(source) as opened:
        for block in _cut_lines(opened.chunks, operator.index(block_bytes)):
            table = _Table(reader, lines)
            table.append(block, _Text(opened.name))
            columns, lines = max(columns, table.columns), table.lines
            if table.numbers.size:
                yield table.finish(columns)


def write_svmlight(
    path: str | os.PathLike[str],
    X: Any,
    y: Any,
    *,
    zero_based: bool = False,
    query_id: Any = None,
    comment: str = "",
) -> None:
    r"""Write rows as svmlight (LIBSVM) text, so that reading gives back the same bits.

    Of a sparse matrix all stored values are written, zeros too; of an array, all but 0. The file is
    complete or as it was before. How many columns X has is not written: if the last ones are empty,
    ``n_features`` has to be passed for reading.

    Parameters
    ----------
    path : path
        The file.
    X : array or sparse matrix of shape (n_rows, n_columns)
        The rows, which must be finite.
    y : array of shape (n_rows,)
        The labels: numbers. Integers are written as such.
    zero_based : bool, default False
        Whether the first column has the index 0; by default it has 1.
    query_id : array of shape (n_rows,), optional
        Whole numbers, written as ``qid:n``.
    comment : str, default ""
        Written at the top, each line after a ``#``.

    Raises
    ------
    ValueError
        Something cannot be written so that it would be read again: a value that is not finite, or
        a label that is no number.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from maxmargin.data import write_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.svm")
    ...     write_svmlight(path, [[0.1, 0.0, 3.0], [0.0, 1e-5, 0.0]], [1, -1])
    ...     print(path.read_text(), end="")
    1 1:0.1 3:3
    -1 2:1e-05
    """
    if Path(path).suffix.lower() in PACKINGS:
        raise ValueError(f"{path}: files are written unpacked; leave out {Path(path).suffix}")
    if "\0" in comment:
        raise ValueError("comment has a character 0, and svmlight text cannot have one")
    X, y = _stored(X), as_labels(y)
    if y.dtype.kind == "U":
        raise ValueError("y has texts, and svmlight text only has numbers; number the classes")
    if len(y) != X.shape[0]:
        raise ValueError(f"y has {len(y)} labels for the {X.shape[0]} rows of X")
    _refuse_infinite(X, y)
    if query_id is not None:
        query_id = np.asarray(query_id)
        if query_id.shape != y.shape or query_id.dtype.kind not in "iu" or np.any(query_id < 0):
            raise ValueError("query_id must have a whole number from 0 on for each row")
    lines = _format_rows(X, y, query_id, 0 if zero_based else 1)

    def write(draft: Path) -> None:
        with draft.open("wb") as file:
            for line in comment.splitlines():
                file.write(f"# {line}\n".encode())
            for block in lines:
                file.write(block)

    write_atomically(path, write)


# ------------------------------------------------------------------- bytes


class _Text(NamedTuple):
    """Text that is read."""

    name: str
    lines_before: Callable[[], int] | None = None
    """Counts the lines before a range, which is only done for a message."""


def _read_between(file: Any, begin: int, end: int) -> Iterator[bytes]:
    file.seek(begin)
    while begin < end and (chunk := file.read(min(CHUNK, end - begin))):
        begin += len(chunk)
        yield chunk


def _cut_lines(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield blocks of lines of about so many bytes, each with a line end and padding after it."""
    held: list[bytes] = []
    filled = 0
    for chunk in chunks:
        for start in range(0, len(chunk), size):
            piece = chunk[start : start + size]
            held.append(piece)
            filled += len(piece)
            if filled < size:
                continue
            end = piece.rfind(b"\n") + 1
            if end:
                yield b"".join([*held[:-1], piece[:end], _PADDING])
                held, filled = [piece[end:]], len(piece) - end
            elif b"\0" in piece:
                yield b"".join([*held, b"\n", _PADDING])  # which is refused
                return
    if filled:
        last = b"" if held[-1].endswith(b"\n") else b"\n"
        yield b"".join([*held, last, _PADDING])


# ------------------------------------------------------------------- rows


class _Reader:
    """What is asked of all rows, and what parses them."""

    def __init__(
        self,
        n_features: int | None,
        zero_based: bool,
        dtype: npt.DTypeLike = np.float64,
        query_id: bool = False,
        threads: int | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float64, np.float32):
            raise ValueError(f"dtype={dtype!r} is not valid: it must be float64 or float32")
        if n_features is not None and not 1 <= operator.index(n_features) <= _MOST_COLUMNS:
            raise ValueError(
                f"n_features={n_features} is not valid: it must be at least 1 and below 2**63"
            )
        if threads is not None and operator.index(threads) < 1:
            raise ValueError(f"threads={threads} is not valid: it must be at least 1")
        self.n_features, self.query_id = n_features, query_id
        self.first = 0 if zero_based else 1
        self.last = (n_features or _MOST_COLUMNS) - 1 + self.first
        self._threads = usual_threads() if threads is None else threads
        self._spaces: list[tuple[int, Any]] = []

    def parse(self, block: bytes, begin: int, lines: int, text: _Text) -> Iterator[Any]:
        """Iterate over the rows of the pieces of a block, before which there are some lines.

        The arrays of a piece are used again for later ones.
        """
        content = np.frombuffer(block, np.uint8)
        pieces = _cut(block, begin, len(block) - len(_PADDING))
        group = 1 if self._threads == 1 else _PIECES_PER_THREAD * self._threads
        for start in range(0, len(pieces), group):
            parsed = self._parse_all(content, pieces[start : start + group])
            for (rows, found), piece in zip(parsed, pieces[start:], strict=False):
                wrong = self._finish(rows, found, block)
                if wrong >= 0:
                    line = block[slice(*piece)].split(b"\n")[wrong]
                    before = text.lines_before() if text.lines_before else 0
                    _refuse_line(line, f"{text.name}:{before + lines + wrong + 1}", self)
                lines += found.lines
                yield rows, found

    def _parse_all(self, content: Any, pieces: list[tuple[int, int]]) -> list[Any]:
        parsed: list[Any] = [None] * len(pieces)
        for k, (begin, end) in enumerate(pieces):
            if k == len(self._spaces):
                self._spaces.append((0, None))
            if self._spaces[k][0] < end - begin:
                self._spaces[k] = end - begin, loops.svmlight.Rows.empty(end - begin)
        rule = loops.svmlight.Grammar(self.first, self.last, bool(self.query_id))

        def parse(k: int) -> None:
            rows, loop = self._spaces[k][1], loops.svmlight
            found = loop.parse(content, *pieces[k], rule, rows, loops.decimals.tables())
            parsed[k] = rows, loop.Parsed(*found)

        share_work(parse, deque(range(len(pieces))), min(self._threads, len(pieces)))
        return parsed

    def _finish(self, rows: Any, found: Any, block: bytes) -> int:
        """Read the numbers that were left to Python; return the first line that is wrong, or -1."""
        wrong = [found.wrong] if found.wrong >= 0 else []
        values, ends = rows.values[: found.pairs], rows.ends[: found.rows]
        places: list[int] = []
        if rows.pending[0]:
            places = _read_pending(values, block)
            for row in _read_pending(rows.labels[: found.rows], block):
                wrong.append(rows.lines[row])
        if self.dtype == np.float32:
            places += np.flatnonzero(np.abs(values) >= _FLOAT32_OVERFLOW)[:1].tolist()
        wrong += [rows.lines[np.searchsorted(ends, place, side="right")] for place in places]
        return int(min(wrong, default=-1))


# From here on, float32 rounds to infinity.
_FLOAT32_OVERFLOW = float(np.finfo(np.float32).max) + 2.0**103
_NUMBER = re.compile(NUMBER.encode(), re.ASCII)


def _cut(block: bytes, begin: int, end: int) -> list[tuple[int, int]]:
    pieces = []
    while begin < end:
        cut = block.find(b"\n", min(begin + _PIECE, end - 1), end) + 1
        pieces.append((begin, cut))
        begin = cut
    return pieces


def _read_pending(values: Any, block: bytes) -> list[int]:
    """Read the numbers whose places the values hold; return the places of infinite ones."""
    places = np.flatnonzero(np.isnan(values))
    for place in places:
        begin = int(values[place : place + 1].view(np.int64)[0]) - loops.decimals.PENDING
        token = _NUMBER.match(block, begin)
        assert token is not None
        values[place] = float(token[0])
    return [int(place) for place in places if math.isinf(values[place])]


class _Growing:
    """An array that grows at its end. What is reserved and never used takes no memory."""

    def __init__(self, dtype: Any) -> None:
        self._array, self.size = np.empty(0, dtype), 0

    def extend(self, items: Any) -> None:
        end = self.size + len(items)
        if end > len(self._array):  # in place where the system can do that
            self._array.resize(end + end // 8, refcheck=False)
        self._array[self.size : end] = items
        self.size = end

    def reserve(self, times: float) -> None:
        larger = np.empty(max(self.size, int(times * self.size)), self._array.dtype)
        larger[: self.size] = self._array[: self.size]
        self._array = larger

    def change_type(self, dtype: Any) -> None:
        self._array = self._array[: self.size].astype(dtype)

    def finish(self) -> Any:
        self._array.resize(self.size, refcheck=False)
        return self._array


class _Table:
    """Rows that come block by block."""

    def __init__(self, reader: _Reader, lines: int = 0) -> None:
        self.lines, self.columns = lines, 0
        self._reader = reader
        self._integers, self._wide = True, False
        self._values, self._labels = _Growing(reader.dtype), _Growing(np.int64)
        self._indices, self._pointers = _Growing(np.int32), _Growing(np.int32)
        self._pointers.extend([0])
        self._queries, self.numbers = _Growing(np.int64), _Growing(np.int64)

    def reserve(self, times: float) -> None:
        """Be prepared for so many times the rows that are here."""
        for array in (self._values, self._indices, self._pointers, self._labels, self.numbers):
            array.reserve(times)

    def append(self, block: bytes, text: _Text) -> None:
        """Add the rows of a block; a mark is skipped at the beginning of a file."""
        begin = 0
        if not self.lines and text.lines_before is None:
            if block.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise DataFileError(
                    f"{text.name}: marked as UTF-16 or UTF-32 text; save it as UTF-8"
                )
            begin = 3 if block.startswith(b"\xef\xbb\xbf") else 0
        for rows, found in self._reader.parse(block, begin, self.lines, text):
            self._append(rows, found)

    def _append(self, rows: Any, found: Any) -> None:
        n_rows, n_pairs, lines, columns, integers, _ = found
        before = self._values.size
        self.columns = max(self.columns, columns)
        self._widen(max(self.columns, before + n_pairs, self.numbers.size + n_rows))
        if self._integers and not integers:
            self._integers = False
            self._labels.change_type(np.float64)
        self._values.extend(rows.values[:n_pairs])
        self._indices.extend(rows.indices[:n_pairs])
        self._pointers.extend(rows.ends[:n_rows] + before)
        self._labels.extend((rows.whole if self._integers else rows.labels)[:n_rows])
        self.numbers.extend(rows.lines[:n_rows] + (self.lines + 1))
        if self._reader.query_id:
            self._queries.extend(rows.queries[:n_rows])
        self.lines += lines

    def _widen(self, largest: int) -> None:
        if largest > _MOST_INT32 and not self._wide:
            self._wide = True
            self._indices.change_type(np.int64)
            self._pointers.change_type(np.int64)

    def finish(self, columns: int = 0) -> Svmlight:
        """Return the rows, with so many columns at least."""
        columns = self._reader.n_features or max(columns, self.columns)
        self._widen(columns)
        pointers, labels = self._pointers.finish(), self._labels.finish()
        X = sp.csr_array(
            (self._values.finish(), self._indices.finish(), pointers),
            shape=(len(labels), columns),
        )
        X.has_canonical_format = True
        y = labels if self._integers else whole_numbers(labels)
        queries = self._queries.finish() if self._reader.query_id else None
        return Svmlight(X, y, queries, self.numbers.finish())


# ------------------------------------------------------------------- writing


def _stored(X: Any) -> Any:
    """Return rows as CSR with all that is not 0, but also with -0, and what else is stored."""
    X = as_rows(X)
    if sp.issparse(X):
        return X
    rows, columns = np.nonzero((X != 0) | np.signbit(X))
    pointers = np.searchsorted(rows, np.arange(len(X) + 1))
    return sp.csr_array((X[rows, columns], columns, pointers), shape=X.shape)


def _format_rows(X: Any, y: Any, queries: Any, first: int) -> Iterator[bytes]:
    step = max(1, _PAIRS_WRITTEN // max(1, X.nnz // max(1, X.shape[0])))
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        part, heads = X[rows], _spell(y[rows])
        if queries is not None:
            numbers = queries[rows].tolist()
            heads = [f"{label} qid:{n}" for label, n in zip(heads, numbers, strict=True)]
        places = (part.indices + first).tolist()
        pairs = map(":".join, zip(map(str, places), _spell(part.data), strict=True))
        sizes = np.diff(part.indptr).tolist()
        lines = (" ".join([h, *islice(pairs, n)]) for h, n in zip(heads, sizes, strict=True))
        yield "".join(f"{line}\n" for line in lines).encode()


def _spell(values: Any) -> list[str]:
    numbers = values.astype(np.int64) if values.dtype == bool else values
    return [repr(number).removesuffix(".0") for number in numbers.tolist()]


def _refuse_infinite(X: Any, y: Any) -> None:
    way_out = "and svmlight text only has finite numbers; impute it, or leave out the row"
    for k in np.flatnonzero(~np.isfinite(X.data))[:1]:
        row = int(np.searchsorted(X.indptr, k, side="right")) - 1
        place = f"row {row}, column {X.indices[k]} (both from 0)"
        raise ValueError(f"X has {X.data[k]} in {place}, {way_out}")
    for k in np.flatnonzero(~np.isfinite(y))[:1]:
        raise ValueError(f"y has {y[k]} in row {k} (from 0), {way_out}")


# ------------------------------------------------------------------- what is wrong with a line

_TOKEN = re.compile(rb"[^ \t]+")
_QUERY = re.compile(r"qid:(\d{1,19})", re.ASCII)


def _refuse_line(line: bytes, place: str, reader: _Reader) -> NoReturn:
    """Raise the error that fits a line known to be wrong; ``place`` is its file and number."""
    if column := line.find(b"\0") + 1:
        raise DataFileError(f"{place}:{column}: not text, since it has a byte 0; name a text file")
    body = line.partition(b"#")[0]
    if body == line:
        body = body.removesuffix(b"\r")
    tokens = [
        (found.start() + 1, found[0].decode("utf-8", "backslashreplace"))
        for found in _TOKEN.finditer(body)
    ]
    (column, label), *pairs = tokens or [(1, "")]
    if not finite_number(label):
        raise DataFileError(f"{place}:{column}: {_wrong_label(label)}")
    if reader.query_id:
        column, query = pairs.pop(0) if pairs else (len(body) + 1, "")
        found = _QUERY.fullmatch(query)
        if found is None or int(found[1]) >= 2**63:
            raise DataFileError(
                f"{place}:{column}: {_quoted(query)} where the row's 'qid:number' should be; "
                "write one after each label, or leave out query_id=True"
            )
    previous = -1
    for column, pair in pairs:
        wrong = _wrong_index(pair, previous, reader) or _wrong_value(pair, reader)
        if wrong is not None:
            raise DataFileError(f"{place}:{column}: {wrong}")
        previous = int(pair.partition(":")[0])
    raise DataFileError(f"{place}:1: not 'label index:value …' in plain ASCII text")


def _wrong_label(label: str) -> str:
    if "," in label and all(map(finite_number, label.split(","))):
        way_out = "svmlight labels are single numbers here, so write a file for each of the labels"
        return f"{_quoted(label)} are several labels; {way_out}"
    if ":" in label:
        return f"{_quoted(label)} where the label should be; a row is 'label index:value …'"
    return (
        f"the label {_quoted(label)} is not a finite number; svmlight labels are single numbers, "
        "so number the classes, or use CSV"
    )


def _wrong_index(pair: str, previous: int, reader: _Reader) -> str | None:
    index, colon, _ = pair.partition(":")
    if index == "qid":
        return (
            f"{_quoted(pair)} marks a ranking query; pass query_id=True to read one directly after "
            "each label, or remove the qid tokens to classify the rows"
        )
    if not colon or not (index.isascii() and index.isdigit()):
        return f"{_quoted(pair)} is not index:value with a whole, positive index"
    if len(index) > 19 or (int(index) > reader.last and reader.n_features is None):
        return f"index {index[:_SHOWN]} is too large; number the features from 1"
    if int(index) < reader.first:
        return (
            "index 0 in a file whose indices count from 1; pass zero_based=True (--zero-based) if "
            "they count from 0"
        )
    if int(index) > reader.last:
        return (
            f"index {index} is beyond n_features={reader.n_features}, the columns of the model if "
            "there is one; leave it out, or pass a larger n_features, or None to take as many "
            "columns as there are"
        )
    if int(index) <= previous:
        trouble = "occurs twice" if int(index) == previous else f"comes after {previous}"
        return f"index {index} {trouble}; write each index once, in ascending order"
    return None


def _wrong_value(pair: str, reader: _Reader) -> str | None:
    value = pair.partition(":")[2]
    if not finite_number(value):
        return (
            f"the value of {_quoted(pair)} is not a finite number; correct it, or leave out the "
            "pair if it stands for zero"
        )
    if reader.dtype == np.float32 and abs(float(value)) >= _FLOAT32_OVERFLOW:
        return f"the value of {_quoted(pair)} is too large for float32; read it as float64"
    return None


def _quoted(token: str) -> str:
    return repr(token if len(token) <= _SHOWN else token[:_SHOWN] + "…")
