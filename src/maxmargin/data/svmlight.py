"""Svmlight (LIBSVM) text: ``label [qid:n] index:value … [# comment]``, a row per line.

Text is taken in blocks of whole lines. A block is cut into pieces at line ends, and threads parse
these with a compiled loop; their rows are then added to arrays that grow, in the order of the text,
so that nothing depends on the number of threads. The loop only finds that a line is wrong; what is
wrong with it, and where, is found by a second look at that line.
"""

import contextlib
import importlib
import math
import operator
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import loops
from maxmargin.data.cells import NUMBER, finite_number, whole_numbers
from maxmargin.data.source import CHUNK, PACKINGS, Where, open_source, refuse_no_file
from maxmargin.errors import DataFileError
from maxmargin.loops.records import read_only
from maxmargin.runtime.atomic_write import write_atomically
from maxmargin.runtime.threads import share_work, usual_threads

_PADDING = 16  # bytes after a text, of which a loop may take eight at a time
_PIECE = 1 << 18  # bytes, so that the numbers of a piece stay in a core's cache
_PIECES_PER_THREAD = 4
_MOST_COLUMNS = 2**63 - 1
_MOST_INT32 = 2**31 - 1
_BLOCK = 1 << 23
_FIRST_BUFFER = 1 << 16
_LINE_FEED = ord("\n")
_SHOWN = 60  # characters of a wrong token that a message shows
_PAIRS_WRITTEN = 1 << 16  # at a time


class Svmlight(NamedTuple):
    """Rows read from svmlight text.

    Attributes
    ----------
    X : CSR array of shape (n_samples, n_features)
        The rows; zeros that the text has are stored.
    y : array of shape (n_samples,)
        A label per row: int64 if all labels are whole numbers, else float64.
    query_id : array of int64 of shape (n_samples,), or None
        The number after ``qid:`` of each row; None if these were not asked for.
    numbers : array of int64 of shape (n_samples,)
        The line of each row, counted from 1, blank lines and comments included; of a range of
        bytes, counted from the first line that begins in it.
    """

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
    offset: int = 0,
    length: int = -1,
    threads: int | None = None,
) -> Svmlight:
    r"""Read svmlight (LIBSVM) text: ``label [qid:n] index:value … [# comment]``, a row per line.

    The text is read strictly. Labels and values are finite decimal numbers, each rounded to the
    nearest double. Indices are whole numbers that ascend within a line. Blanks are spaces and tabs;
    lines end with a line feed, or a carriage return and a line feed; blank lines and lines that
    have only a comment are skipped. Files named ``.gz``, ``.xz`` or ``.bz2`` (from Python 3.14 on
    also ``.zst``) are unpacked on the way. Memory holds the rows, an eighth of them in reserve at
    most, and a few megabytes.

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
    offset, length : int, default 0 and -1
        The range of bytes of which the rows are read; -1 means up to the end. A row belongs to the
        range in which its line begins, so ranges that cover a file yield each row once. Packed
        files and streams have no ranges.
    threads : int, optional
        The number of threads; by default, as many as BLAS has. What is read does not depend on it.

    Returns
    -------
    Svmlight
        ``X``, ``y``, ``query_id`` and ``numbers``.

    Raises
    ------
    DataFileError
        The text is not what the format allows; the message has line and column, and the way out.

    See Also
    --------
    iterate_svmlight : The same in blocks of rows, for files that memory does not hold.
    write_svmlight : Writes such files.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from maxmargin.data import read_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.svm")
    ...     _ = path.write_text("+1 1:0.5 3:2 # the first\n-1 2:1e-3\n")
    ...     rows = read_svmlight(path)
    >>> rows.X.toarray().tolist(), rows.y.tolist(), rows.numbers.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 0.001, 0.0]], [1, -1], [1, 2])
    """
    reader = _Reader(n_features, zero_based, dtype, query_id, threads)
    offset, length = operator.index(offset), operator.index(length)
    with _open_range(path, offset, length) as text:
        table = _Table(reader)
        for buffer, size in _whole_lines(text.chunks, CHUNK):
            first = _skip_mark(buffer, text) if table.lines == 0 and not offset else 0
            for part in reader.parse(buffer, first, size, table.lines, text):
                table.append(part, text.total)
    if not table.lines_of_rows.size and offset == 0 and length < 0:
        raise DataFileError(f"{text.name}: no rows; a row is 'label index:value …'")
    return table.finish(table.columns)


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

    A block has the rows of about ``block_bytes`` bytes of text, and of one line at least. Without
    ``n_features``, its X has as many columns as the indices up to there require. Labels are
    integers in a block where all of them are whole numbers. Other parameters, what is raised and
    what the text must be are as for ``read_svmlight``.

    Parameters
    ----------
    source : path, "-" or binary stream
        The text; ``"-"`` is standard input.
    block_bytes : int, default 8 MiB
        The bytes of text per block.
    n_features, zero_based, dtype, query_id, threads
        As for ``read_svmlight``.

    Yields
    ------
    Svmlight
        The rows of a block; ``numbers`` counts the lines of the whole text.

    Examples
    --------
    >>> import io
    >>> from maxmargin.data import iterate_svmlight
    >>> text = io.BytesIO(b"1 1:2\n-1 2:3\n1 3:4\n")
    >>> for block in iterate_svmlight(text, block_bytes=12, n_features=3):
    ...     print(block.X.toarray().tolist(), block.numbers.tolist())
    [[2.0, 0.0, 0.0]] [1]
    [[0.0, 3.0, 0.0]] [2]
    [[0.0, 0.0, 4.0]] [3]
    """
    reader = _Reader(n_features, zero_based, dtype, query_id, threads)
    if operator.index(block_bytes) < 1:
        raise ValueError(f"block_bytes={block_bytes} is not valid: it must be at least 1")
    columns = lines = 0
    with _open_range(source, 0, -1) as text:
        for buffer, size in _whole_lines(text.chunks, operator.index(block_bytes)):
            first = 0 if lines else _skip_mark(buffer, text)
            table = _Table(reader, lines)
            for part in reader.parse(buffer, first, size, lines, text):
                table.append(part, None)
            columns, lines = max(columns, table.columns), table.lines
            if table.lines_of_rows.size:
                yield table.finish(columns)


class SvmlightLines:
    r"""Svmlight text that comes in runs of whole lines, as from a file that grows.

    >>> text = SvmlightLines("log.svm", n_features=2)
    >>> for lines in (b"1 1:0.5\n-1 2:3\n", b"# a comment\n1 2:4\n"):
    ...     rows = text.parse(lines)
    ...     print(rows.X.toarray().tolist(), rows.y.tolist(), rows.numbers.tolist())
    [[0.5, 0.0], [0.0, 3.0]] [1, -1] [1, 2]
    [[0.0, 4.0]] [1] [4]
    """

    def __init__(self, name: str, *, n_features: int | None, zero_based: bool = False) -> None:
        self._reader = _Reader(n_features, zero_based, np.float64, False, None)
        self._text = _Text(name, iter(()), None, lambda: 0)
        self._lines = self._columns = 0

    def parse(self, lines: bytes) -> Svmlight:
        """Return the rows of the next lines, of which the last one may lack its end."""
        buffer = bytearray(lines)
        if not lines.endswith(b"\n"):
            buffer += b"\n"
        size = len(buffer)
        buffer += bytes(_PADDING)
        table = _Table(self._reader, self._lines)
        for part in self._reader.parse(buffer, 0, size, self._lines, self._text):
            table.append(part, None)
        self._columns, self._lines = max(self._columns, table.columns), table.lines
        return table.finish(self._columns)


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

    Each number has the fewest digits that are nearer to it than to any other number of its type; so
    values of float32 come back as they were if they are read with ``dtype=np.float32``. Of a sparse
    matrix all stored values are written, zeros too; of an array, all but 0. The file is complete or
    as it was before; if its name ends with ``.gz``, ``.xz`` or ``.bz2``, it is packed.

    How many columns X has is not written: if the last ones are empty, ``n_features`` has to be
    passed for reading.

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
    ...     write_svmlight(path, [[0.1, 0.0, 3.0], [0.0, 1e-5, 0.0]], [1, -1], comment="two rows")
    ...     print(path.read_text(), end="")
    # two rows
    1 1:0.1 3:3
    -1 2:1e-5
    """
    if "\0" in comment:
        raise ValueError("comment has a character 0, and svmlight text cannot have one")
    lines = format_svmlight(X, y, zero_based=zero_based, query_id=query_id)

    def write(draft: Path) -> None:
        with open_packed(draft, Path(path).suffix.lower()) as file:
            for line in comment.splitlines():
                file.write(f"# {line}\n".encode())
            for block in lines:
                file.write(block)

    write_atomically(path, write)


def format_svmlight(
    X: Any, y: Any, *, zero_based: bool = False, query_id: Any = None
) -> Iterator[bytes]:
    """Return rows as svmlight text, some lines at a time; see ``write_svmlight``.

    >>> b"".join(format_svmlight([[0.5, 0.25]], [2.0])).split()
    [b'2', b'1:0.5', b'2:0.25']
    """
    X, y = _checked_rows(X), _checked_labels(y)
    if len(y) != X.shape[0]:
        raise ValueError(f"y has {len(y)} labels for the {X.shape[0]} rows of X")
    queries = np.empty(0, np.int64) if query_id is None else np.asarray(query_id)
    if query_id is not None:
        if queries.shape != y.shape or queries.dtype.kind not in "iu" or np.any(queries < 0):
            raise ValueError("query_id must have a whole number from 0 on for each row")
        queries = queries.astype(np.int64)
    return _format_blocks(X, y, queries, 0 if zero_based else 1)


# ------------------------------------------------------------------- bytes


class _Text(NamedTuple):
    """Text that is read."""

    name: str
    chunks: Iterator[bytes]
    total: int | None
    """The number of bytes, if it is known."""
    lines_before: Callable[[], int]
    """Counts the lines before a range, which is only done for a message."""


@contextlib.contextmanager
def _open_range(source: Where, offset: int, length: int) -> Iterator[_Text]:
    if offset < 0:
        raise ValueError(f"offset={offset} is not valid: it must be at least 0")
    named = not hasattr(source, "read") and source != "-"
    packed = named and Path(source).suffix.lower() in PACKINGS
    if offset == 0 and length < 0:
        total = os.path.getsize(source) if named and not packed and Path(source).exists() else 0
        with open_source(source) as opened:
            yield _Text(opened.name, opened.chunks, total or None, lambda: 0)
        return
    if packed or not named:
        raise ValueError(
            f"offset={offset}, length={length}: only a file that is not packed has ranges of "
            f"bytes, and {source} is not one; unpack it, or read it whole"
        )
    refuse_no_file(Path(source))
    with open(source, "rb", buffering=0) as file:
        begin = _next_line(file, offset)
        end = _next_line(file, offset + length) if length >= 0 else os.path.getsize(source)
        total = max(0, end - begin)
        chunks = _read_range(file, begin, begin + total)
        yield _Text(str(source), chunks, total or None, lambda: _count_lines(file, begin))


def _next_line(file: Any, position: int) -> int:
    """Return where the first line begins that does so at a position or after it."""
    if position == 0:
        return 0
    file.seek(position - 1)
    position -= 1
    while chunk := file.read(1 << 16):
        found = chunk.find(b"\n")
        if found >= 0:
            return position + int(found) + 1
        position += len(chunk)
    return position


def _read_range(file: Any, begin: int, end: int) -> Iterator[bytes]:
    file.seek(begin)
    while begin < end and (chunk := file.read(min(CHUNK, end - begin))):
        begin += len(chunk)
        yield chunk


def _count_lines(file: Any, end: int) -> int:
    return sum(chunk.count(b"\n") for chunk in _read_range(file, 0, end))


def _whole_lines(chunks: Iterable[bytes], size: int) -> Iterator[tuple[bytearray, int]]:
    """Yield blocks of whole lines: a buffer, which is used again, and how much of it is filled."""
    capacity = min(size, _FIRST_BUFFER)
    buffer, filled = bytearray(capacity + _PADDING), 0
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            taken = rest[: capacity - filled]
            buffer[filled : filled + len(taken)] = taken
            filled, rest = filled + len(taken), rest[len(taken) :]
            if filled < capacity:
                continue
            end = buffer.rfind(b"\n", 0, filled) + 1 if capacity >= size else 0
            if end:
                yield buffer, end
                buffer[: filled - end] = buffer[end:filled]
                filled -= end
            elif buffer.find(b"\0", 0, filled) >= 0:
                buffer[filled] = _LINE_FEED
                yield buffer, filled + 1  # which is refused, and need not be read to its end
                return
            else:
                capacity = min(8 * capacity, size) if capacity < size else 2 * capacity
                buffer = buffer[:filled] + bytearray(capacity + _PADDING - filled)
    if filled:
        buffer[filled] = _LINE_FEED
        yield buffer, filled + (buffer[filled - 1] != _LINE_FEED)


def _skip_mark(buffer: bytearray, text: _Text) -> int:
    """Return where text begins that may be marked as UTF-8; refuse other marks."""
    if buffer.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataFileError(f"{text.name}: marked as UTF-16 or UTF-32 text; save it as UTF-8")
    return 3 if buffer.startswith(b"\xef\xbb\xbf") else 0


# ------------------------------------------------------------------- rows


class _Part(NamedTuple):
    """The rows of a piece."""

    rows: Any
    found: Any
    share: int  # of the bytes


class _Reader:
    """What is asked of all rows, and what parses them."""

    def __init__(
        self,
        n_features: int | None,
        zero_based: bool,
        dtype: npt.DTypeLike,
        query_id: bool,
        threads: int | None,
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
        self.n_features = n_features
        self.query_id = query_id
        self._zero_based = zero_based
        first = 0 if zero_based else 1
        self._rule = loops.svmlight.Grammar(
            first, (n_features or _MOST_COLUMNS) - 1 + first, bool(query_id)
        )
        self._threads = usual_threads() if threads is None else threads
        self._spaces: list[tuple[int, Any]] = []

    def parse(
        self, buffer: bytearray, begin: int, end: int, lines: int, text: _Text
    ) -> Iterator[_Part]:
        """Iterate over the rows of the pieces of a buffer, before which there are some lines.

        The arrays of a part are used again for the next one.
        """
        content = np.frombuffer(buffer, np.uint8)
        pieces = _cut(buffer, begin, end)
        group = 1 if self._threads == 1 else _PIECES_PER_THREAD * self._threads
        for start in range(0, len(pieces), group):
            parts = self._parse_all(content, pieces[start : start + group])
            for part, piece in zip(parts, pieces[start:], strict=False):
                wrong = self._finish(part, buffer)
                if wrong >= 0:
                    line = bytes(buffer[slice(*piece)]).split(b"\n")[wrong]
                    number = text.lines_before() + lines + wrong + 1
                    _refuse_line(line, f"{text.name}:{number}", self)
                lines += part.found.lines
                yield part

    def _parse_all(self, content: Any, pieces: list[tuple[int, int]]) -> list[_Part]:
        parts: list[Any] = [None] * len(pieces)
        for k, (begin, end) in enumerate(pieces):
            if k == len(self._spaces):
                self._spaces.append((0, None))
            if self._spaces[k][0] < end - begin:
                self._spaces[k] = end - begin, loops.svmlight.Rows.empty(end - begin)

        def parse(k: int) -> None:
            begin, end = pieces[k]
            rows, loop = self._spaces[k][1], loops.svmlight
            found = loop.parse(content, begin, end, self._rule, rows, loops.decimals.tables())
            parts[k] = _Part(rows, loop.Parsed(*found), end - begin)

        share_work(parse, deque(range(len(pieces))), min(self._threads, len(pieces)))
        return parts

    def _finish(self, part: _Part, buffer: bytearray) -> int:
        """Read the numbers that were left to Python; return the first line that is wrong, or -1."""
        rows, found = part.rows, part.found
        wrong = [found.wrong] if found.wrong >= 0 else []
        if rows.pending[0]:
            values, ends = rows.values[: found.pairs], rows.ends[: found.rows]
            for place in _read_pending(values, buffer):
                wrong.append(rows.lines[np.searchsorted(ends, place, side="right")])
            for row in _read_pending(rows.labels[: found.rows], buffer):
                wrong.append(rows.lines[row])
        if self.dtype == np.float32:
            too_large = np.abs(rows.values[: found.pairs]) >= _FLOAT32_OVERFLOW
            for place in np.flatnonzero(too_large)[:1]:
                row = np.searchsorted(rows.ends[: found.rows], place, side="right")
                wrong.append(rows.lines[row])
        return int(min(wrong, default=-1))

    def refuses(self, index: int) -> str | None:
        """Return what is wrong with an index, if anything."""
        if index < self._rule.first:
            return (
                "index 0 in a file whose indices count from 1; pass zero_based=True "
                "(--zero-based) if they count from 0"
            )
        if index > self._rule.last:
            if self.n_features is None:
                return f"index {index} is too large; number the features from 1"
            return (
                f"index {index} is beyond n_features={self.n_features}, the columns of the model "
                "if there is one; leave it out, or pass a larger n_features, or None to take as "
                "many columns as there are"
            )
        return None


# From here on, float32 rounds to infinity.
_FLOAT32_OVERFLOW = float(np.finfo(np.float32).max) + 2.0**103


def _cut(buffer: bytearray, begin: int, end: int) -> list[tuple[int, int]]:
    pieces = []
    while begin < end:
        cut = buffer.find(b"\n", min(begin + _PIECE, end - 1), end) + 1
        pieces.append((begin, cut))
        begin = cut
    return pieces


def _read_pending(values: Any, buffer: bytearray) -> list[int]:
    """Read the numbers whose places the values hold; return the places of infinite ones."""
    places = np.flatnonzero(np.isnan(values))
    for place in places:
        begin = int(values[place : place + 1].view(np.int64)[0]) - loops.decimals.PENDING
        token = _NUMBER.match(buffer, begin)
        assert token is not None
        values[place] = float(token[0])
    return [int(place) for place in places if math.isinf(values[place])]


_NUMBER = re.compile(NUMBER.encode(), re.ASCII)


class _Growing:
    """An array that grows at its end. What is reserved and never used takes no memory."""

    def __init__(self, dtype: Any) -> None:
        self._array, self.size = np.empty(0, dtype), 0

    def extend(self, items: Any, expected: float) -> None:
        """Add items, and be prepared for so many in all."""
        end = self.size + len(items)
        if end > len(self._array):
            capacity = max(end + end // 8, int(expected))
            if capacity > 2 * self.size:
                larger = np.empty(capacity, self._array.dtype)
                larger[: self.size] = self._array[: self.size]
                self._array = larger
            else:  # in place where the system can do that; but all that is new is touched
                self._array.resize(end + end // 8, refcheck=False)
        self._array[self.size : end] = items
        self.size = end

    def change_type(self, dtype: Any) -> None:
        self._array = self._array[: self.size].astype(dtype)

    def finish(self) -> Any:
        self._array.resize(self.size, refcheck=False)
        return self._array


class _Table:
    """Rows that come part by part."""

    def __init__(self, reader: _Reader, lines: int = 0) -> None:
        self.lines, self.columns = lines, 0
        self._reader, self._bytes = reader, 0
        self._whole, self._wide = True, False
        self._values, self._labels = _Growing(reader.dtype), _Growing(np.int64)
        self._indices, self._pointers = _Growing(np.int32), _Growing(np.int32)
        self._pointers.extend([0], 0)
        self._queries, self.lines_of_rows = _Growing(np.int64), _Growing(np.int64)
        self._widen(reader.n_features or 0)

    def append(self, part: _Part, total: int | None) -> None:
        """Add rows; ``total`` is the number of bytes of all that are to come, if it is known."""
        rows, (n_rows, n_pairs, lines, columns, whole, _) = part.rows, part.found
        self._bytes += part.share
        # A little more than if all text were as it is so far.
        scale = 1.02 * total / self._bytes if total else 0.0
        before = self._values.size
        self.columns = max(self.columns, columns)
        self._widen(max(self.columns, before + n_pairs, self.lines_of_rows.size + n_rows))
        if self._whole and not whole:
            self._whole = False
            self._labels.change_type(np.float64)
        labels = rows.whole if self._whole else rows.labels
        pairs, count = scale * (before + n_pairs), scale * (self.lines_of_rows.size + n_rows)
        self._values.extend(rows.values[:n_pairs], pairs)
        self._indices.extend(rows.indices[:n_pairs], pairs)
        self._pointers.extend(rows.ends[:n_rows] + before, count + 1)
        self._labels.extend(labels[:n_rows], count)
        self.lines_of_rows.extend(rows.lines[:n_rows] + (self.lines + 1), count)
        if self._reader.query_id:
            self._queries.extend(rows.queries[:n_rows], count)
        self.lines += lines

    def _widen(self, largest: int) -> None:
        if largest > _MOST_INT32 and not self._wide:
            self._wide = True
            self._indices.change_type(np.int64)
            self._pointers.change_type(np.int64)

    def finish(self, columns: int) -> Svmlight:
        columns = self._reader.n_features or columns
        self._widen(columns)
        pointers, labels = self._pointers.finish(), self._labels.finish()
        X = sp.csr_array(
            (self._values.finish(), self._indices.finish(), pointers),
            shape=(len(labels), columns),
        )
        X.has_canonical_format = True
        y = labels if self._whole else whole_numbers(labels)
        queries = self._queries.finish() if self._reader.query_id else None
        return Svmlight(X, y, queries, self.lines_of_rows.finish())


# ------------------------------------------------------------------- writing


@contextlib.contextmanager
def open_packed(path: Path, ending: str) -> Iterator[Any]:
    """Open a file for writing that is packed as files with this ending are."""
    try:
        packer: Any = importlib.import_module(PACKINGS[ending]) if ending in PACKINGS else None
    except ImportError as missing:
        raise ValueError(
            f"this Python cannot write {ending} files ({missing}); choose another ending"
        ) from missing
    with open(path, "wb") as file:
        if packer is None:
            yield file
        elif ending == ".gz":  # without the name of a draft, and the same at any time
            with packer.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                yield packed
        else:
            with packer.open(file, "wb") as packed:
                yield packed


def _checked_rows(X: Any) -> Any:
    """Return an array or a CSR array of float64 or float32."""
    if sp.issparse(X):
        X = sp.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        values = _checked_numbers(X.data, "X")
        return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns; it has {X.ndim} dimensions")
    return _checked_numbers(X, "X")


def _checked_labels(y: Any) -> Any:
    """Return an array of int64, float64 or float32."""
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must have one label per row; it has {y.ndim} dimensions")
    if y.dtype.kind in "biu" and (y.dtype != np.uint64 or not np.any(y > _MOST_COLUMNS)):
        return y.astype(np.int64)
    return _checked_numbers(y, "y")


def _checked_numbers(values: Any, name: str) -> Any:
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} has values of type {values.dtype}, and svmlight text only has numbers; "
            "number the classes, encode the words"
        )
    if values.dtype in (np.float64, np.float32):
        return values
    plain = values.astype(np.float32 if values.dtype == np.float16 else np.float64)
    with np.errstate(invalid="ignore"):  # what is too large
        same = np.array_equal(plain.astype(values.dtype), values)
    if values.dtype.itemsize >= 8 and not same:
        raise ValueError(
            f"{name} has values of type {values.dtype} that float64 does not hold exactly, so they "
            "would not be read as they are; convert them first"
        )
    return plain


def _format_blocks(X: Any, y: Any, queries: Any, first: int) -> Iterator[bytes]:
    sparse = sp.issparse(X)
    start, n_rows = 0, X.shape[0]
    while start < n_rows:
        if sparse:
            end = int(np.searchsorted(X.indptr, X.indptr[start] + _PAIRS_WRITTEN, side="right"))
            end = min(max(end - 1, start + 1), start + _PAIRS_WRITTEN, n_rows)
            pointers = X.indptr[start : end + 1].astype(np.int64)
            pairs = slice(pointers[0], pointers[-1])
            columns, values = X.indices[pairs].astype(np.int64), X.data[pairs]
        else:
            end = min(start + max(1, _PAIRS_WRITTEN // max(1, X.shape[1])), n_rows)
            pointers, columns, values = _stored(X[start:end])
        block = slice(start, end)
        rows = _Rows(pointers - pointers[0], columns, values, y[block], queries[block])
        _refuse_infinite(rows, start)
        yield _format_rows(rows, first)
        start = end


class _Rows(NamedTuple):
    """Rows to be written."""

    pointers: Any
    columns: Any
    values: Any
    labels: Any
    queries: Any


def _stored(X: Any) -> tuple[Any, Any, Any]:
    """Return pointers, columns and values of all that is not 0, but also of -0."""
    rows, columns = np.nonzero((X != 0) | np.signbit(X))
    return np.searchsorted(rows, np.arange(len(X) + 1)), columns, X[rows, columns]


def _refuse_infinite(rows: _Rows, start: int) -> None:
    for k in np.flatnonzero(~np.isfinite(rows.values))[:1]:
        row = start + int(np.searchsorted(rows.pointers, k, side="right")) - 1
        raise ValueError(
            f"X has {rows.values[k]} in row {row}, column {rows.columns[k]} (both from 0), and "
            "svmlight text only has finite numbers; impute it, or leave out the row"
        )
    for k in np.flatnonzero(~np.isfinite(rows.labels))[:1]:
        raise ValueError(
            f"y has {rows.labels[k]} in row {start + k} (from 0), and svmlight text only has "
            "finite numbers; leave out the row"
        )


def _format_rows(rows: _Rows, first: int) -> bytes:
    loop, decimals, nothing = loops.svmlight, loops.decimals, np.empty(0, np.uint64)
    whole = rows.labels.dtype == np.int64
    labels = rows.labels if whole else np.empty(0, np.int64)
    arrays = (
        rows.pointers, rows.columns, _bits(rows.values), labels,
        nothing if whole else _bits(rows.labels), rows.queries,
    )  # fmt: skip
    lines = loop.Lines(*map(read_only, arrays))
    style = loop.Style(
        first, whole, rows.values.dtype == np.float32, rows.labels.dtype == np.float32
    )
    numbers = 2 * len(rows.values) + (1 + bool(len(rows.queries))) * len(rows.labels)
    out = np.empty((numbers + 1) * loop.NUMBER_BYTES, np.uint8)
    size = loop.write(lines, style, out, decimals.shortest_tables(), decimals.tables().fives)
    return _format_slowly(rows, first) if size < 0 else out[:size].tobytes()


def _bits(values: Any) -> Any:
    values = np.ascontiguousarray(values)
    if values.dtype == np.float32:
        return values.view(np.uint32).astype(np.uint64)
    return values.view(np.uint64)


def _format_slowly(rows: _Rows, first: int) -> bytes:
    """Format rows with a number that the loop leaves to Python, as it does with tiny ones."""
    lines = []
    for row, label in enumerate(rows.labels):
        line = [str(label) if rows.labels.dtype == np.int64 else _shortest(label)]
        line += [f"qid:{number}" for number in rows.queries[row : row + 1]]
        for pair in range(rows.pointers[row], rows.pointers[row + 1]):
            line.append(f"{rows.columns[pair] + first}:{_shortest(rows.values[pair])}")
        lines.append(" ".join(line) + "\n")
    return "".join(lines).encode()


def _shortest(value: Any) -> str:
    if type(value) is np.float64:
        return repr(float(value)).removesuffix(".0")
    text = np.format_float_scientific(value, trim="-", exp_digits=1)
    # By way of a double it may be rounded twice.
    return text if np.float32(float(text)) == value else repr(float(value))


# ------------------------------------------------------------------- what is wrong with a line

_TOKEN = re.compile(rb"[^ \t]+")


def _refuse_line(line: bytes, place: str, reader: _Reader) -> NoReturn:
    """Raise the error that fits a line known to be wrong; ``place`` is its file and number."""
    _refuse_zero_bytes(line, place)
    body = line.partition(b"#")[0]
    if body == line:
        body = body.removesuffix(b"\r")
    tokens = [(found.start() + 1, _shown(found[0])) for found in _TOKEN.finditer(body)]
    (column, label), *pairs = tokens or [(1, "")]
    _check_label(label, f"{place}:{column}")
    if reader.query_id:
        after = pairs.pop(0) if pairs else (len(body) + 1, "")
        if re.fullmatch(r"qid:\d{1,19}", after[1], re.ASCII) is None or int(after[1][4:]) >= 2**63:
            raise DataFileError(
                f"{place}:{after[0]}: {_quoted(after[1])} where the row's 'qid:number' should be; "
                "write one after each label, or leave out query_id=True"
            )
    previous = -1
    for column, pair in pairs:
        previous = _check_pair(pair, previous, f"{place}:{column}", reader)
    raise DataFileError(f"{place}:1: not 'label index:value …' in plain ASCII text")


def _refuse_zero_bytes(line: bytes, place: str) -> None:
    column = line.find(b"\0") + 1
    if column:
        raise DataFileError(f"{place}:{column}: not text, since it has a byte 0; name a text file")


def _shown(token: bytes) -> str:
    return token.decode("utf-8", "backslashreplace")


def _check_label(label: str, place: str) -> None:
    if finite_number(label):
        return
    if "," in label and all(map(finite_number, label.split(","))):
        way_out = "svmlight labels are single numbers here, so write a file for each of the labels"
        raise DataFileError(f"{place}: {_quoted(label)} are several labels; {way_out}")
    if ":" in label:
        raise DataFileError(
            f"{place}: {_quoted(label)} where the label should be; a row is 'label index:value …'"
        )
    raise DataFileError(
        f"{place}: the label {_quoted(label)} is not a finite number; "
        "svmlight labels are single numbers, so number the classes, or use CSV"
    )


def _check_pair(pair: str, previous: int, place: str, reader: _Reader) -> int:
    index, colon, value = pair.partition(":")
    if index == "qid":
        raise DataFileError(
            f"{place}: {_quoted(pair)} marks a ranking query; pass query_id=True to read one "
            "directly after each label, or remove the qid tokens to classify the rows"
        )
    if not colon or not (index.isascii() and index.isdigit()):
        raise DataFileError(
            f"{place}: {_quoted(pair)} is not index:value with a whole, positive index"
        )
    if len(index) > 19:
        raise DataFileError(
            f"{place}: index {_cropped(index)} is too large; number the features from 1"
        )
    wrong = reader.refuses(int(index))
    if wrong is not None:
        raise DataFileError(f"{place}: {wrong}")
    if int(index) <= previous:
        trouble = "occurs twice" if int(index) == previous else f"comes after {previous}"
        raise DataFileError(
            f"{place}: index {index} {trouble}; write each index once, in ascending order"
        )
    if not finite_number(value):
        raise DataFileError(
            f"{place}: the value of {_quoted(pair)} is not a finite number; correct it, or leave "
            "out the pair if it stands for zero"
        )
    if reader.dtype == np.float32 and abs(float(value)) >= _FLOAT32_OVERFLOW:
        raise DataFileError(
            f"{place}: the value of {_quoted(pair)} is too large for float32; read it as float64"
        )
    return int(index)


def _quoted(token: str) -> str:
    return repr(_cropped(token))


def _cropped(token: str) -> str:
    return token if len(token) <= _SHOWN else token[:_SHOWN] + "…"
