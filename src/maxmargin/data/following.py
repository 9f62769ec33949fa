"""Rows of a text that is still being written: a file that grows, standard input, a pipe.

Bytes are taken as they come and cut where lines end, so half a line is never read. Rows are put
together to blocks of a fixed number, so that what is learnt from them does not depend on when they
came.
"""

import os
import select
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from maxmargin.data.columns import Labelled, prepare_table
from maxmargin.data.labelled import resembles_svmlight
from maxmargin.data.layout import TASKS, Layout
from maxmargin.data.rows import RowBlock, TableRows
from maxmargin.data.source import (
    JSON_ENDINGS,
    PACKINGS,
    SVMLIGHT_ENDINGS,
    TABLE_ENDINGS,
    DataSource,
    Where,
    decode,
    extension_of,
    refuse_foreign,
    refuse_no_file,
)
from maxmargin.data.svmlight import Svmlight, SvmlightLines
from maxmargin.data.table import read_table
from maxmargin.errors import DataFileError
from maxmargin.validation.data import stacked

FORMATS = {"svmlight": ".svm", "csv": ".csv", "tsv": ".tsv"}
_CHUNK = 1 << 20  # bytes
_POLL = 0.1  # seconds between two looks at a file that does not grow
_LONGEST = 1 << 28  # bytes of a line, or of a cell in quotation marks
_OPEN_QUOTE = 1 << 23  # bytes after which a quotation mark is not waited for any longer
_MANY_PARTS = 64
_ROWS_AT_ONCE = 1 << 13
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd")


def follow(
    source: Where,
    layout: Layout | None = None,
    *,
    label: str | int | None = None,
    task: str | None = None,
    zero_based: bool = False,
    n_features: int | None = None,
    format: str | None = None,
    rows: int = 1000,
    head: int = 1000,
    idle: float | None = None,
    stop: threading.Event | None = None,
) -> "FollowedRows":
    r"""Iterate over the labelled rows of a file that grows, of a pipe or of standard input.

    Lines are read once they are complete. Every block has exactly ``rows`` rows, except the last
    one: what is learnt from the blocks is then the same whenever the lines came. While there is
    nothing to read, the process sleeps. Memory holds a block and a few megabytes.

    Parameters
    ----------
    source : path, "-" or binary stream
        A table (CSV, TSV) or svmlight text, which is not packed; "-" is standard input. A file is
        followed as it grows. It may not become shorter or be replaced by another one.
    layout : Layout, optional
        How the columns are read, from :func:`read_labelled`, a model file or an earlier stream. By
        default, it is found from the first lines.
    label, task, zero_based
        As for :func:`read_labelled`, if there is no layout.
    n_features : int, optional
        Of svmlight text without a layout: the number of columns. By default the largest index in
        the first lines; a larger one later on is an error.
    format : {None, "csv", "tsv", "svmlight"}
        What the text is. By default the name's ending decides, or else the first line.
    rows : int, default 1000
        The rows of a block; with 1, each is given as soon as its line is complete.
    head : int, default 1000
        The number of lines that are awaited and looked at if there is no layout.
    idle : float, optional
        Seconds without anything new after which the stream ends. 0: at the end of the file as it
        is. By default a file is followed for ever; a pipe ends when its writer closes it.
    stop : threading.Event, optional
        The stream ends when it is set. With this or ``idle`` above 0, a last line without its end
        is left out, since it may not be complete.

    Returns
    -------
    FollowedRows
        An iterator over :class:`RowBlock`. Its ``layout`` says how the columns are read.

    Raises
    ------
    DataFileError
        A line cannot be read (the message has its number), the file was replaced or became
        shorter, or the text is of another kind.

    See Also
    --------
    maxmargin.model_selection.prequential : Learns from such a stream, and measures how well.

    Examples
    --------
    >>> import tempfile, pathlib, maxmargin as mm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "log.csv")
    ...     _ = path.write_text("a,b,label\n1,2,x\n3,5,y\n2,2,x\n")
    ...     for block in mm.data.follow(path, rows=2, idle=0):
    ...         print(block.X.tolist(), block.y.tolist(), block.numbers.tolist())
    [[1.0, 2.0], [3.0, 5.0]] ['x', 'y'] [2, 3]
    [[2.0, 2.0]] ['x'] [4]
    """
    for name, value in (("rows", rows), ("head", head)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number from 1 on, not {value!r}")
    if idle is not None and not idle >= 0:
        raise ValueError(f"idle must be a number of seconds from 0 on, or None, not {idle!r}")
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {(None, *FORMATS)}, not {format!r}")
    if task not in TASKS:
        raise ValueError(f"task must be one of {TASKS}, not {task!r}")
    incoming = _Incoming(source, idle, stop or threading.Event())
    extension = incoming.extension if format is None else FORMATS[format]
    refuse_other_text(incoming.name, extension)
    found = None
    text = _LinesOfText(incoming, quotes=extension not in SVMLIGHT_ENDINGS)
    if layout is None:
        found = _judge_head(text, extension, head, (label, task, zero_based, n_features))
        layout = found.layout
    elif not isinstance(layout, Layout):
        raise TypeError(f"layout must be a Layout, not {type(layout).__name__}")
    assert layout is not None
    return FollowedRows(text, extension, layout, rows, found)


class FollowedRows(Iterator[RowBlock]):
    """Blocks of rows of a text that may grow; see :func:`follow`.

    Attributes
    ----------
    name : str
        The file, for messages.
    layout : Layout
        How its columns are read.
    head : Labelled or None
        What the first lines were found to be, if no layout was given: ``read_labelled`` of them.
    """

    def __init__(
        self,
        text: "_LinesOfText",
        extension: str,
        layout: Layout,
        rows: int,
        head: Labelled | None,
    ) -> None:
        self.name, self.layout, self.head = text.name, layout, head
        if layout.kind == "svmlight":
            if extension in TABLE_ENDINGS:
                raise DataFileError(
                    f"{text.name}: the model takes rows of svmlight text, and this is a table"
                )
            text.quotes = False
            read = _read_svmlight(text, layout)
        else:
            read = _read_table(text, DataSource(text.name, extension, iter(())), layout, rows)
        self._blocks = _cut(read, rows)

    def __next__(self) -> RowBlock:
        """Return the next block; wait until there is one."""
        return next(self._blocks)


def refuse_other_text(name: str, extension: str) -> None:
    """Raise if a file, by its name, is none that can be read line by line as it grows."""
    if extension in JSON_ENDINGS or extension in (".arff", ".parquet", ".arrow", ".feather"):
        raise DataFileError(
            f"{name}: {extension} files are not read as streams; CSV, TSV and svmlight text are"
        )


# ------------------------------------------------------------------- bytes as they come


class _Incoming:
    """Bytes of a file that may grow, or of a stream."""

    def __init__(self, source: Where, idle: float | None, stop: threading.Event) -> None:
        self._source, self._idle, self._stop = source, idle, stop
        self.ended = False  # whether the last line is complete without an end
        self.extension = ""
        if hasattr(source, "read"):
            self.name = str(getattr(source, "name", "the stream"))
            self.name = "standard input" if self.name == "<stdin>" else self.name
        elif source == "-":
            self.name, self._source = "standard input", sys.stdin.buffer
        else:
            path = Path(source)
            refuse_no_file(path)
            self.name, self.extension = str(path), extension_of(path)
            if path.suffix.lower() in PACKINGS:
                raise _packed(self.name)

    def chunks(self) -> Iterator[bytes]:
        """Iterate over the bytes; at its end a file is waited for."""
        if hasattr(self._source, "read"):
            yield from self._arriving(self._source)
            return
        with open(self._source, "rb", buffering=0) as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            yield from self._growing(file) if regular else self._arriving(file)

    def _growing(self, file: Any) -> Iterator[bytes]:
        since = time.monotonic()
        while not self._stop.is_set():
            if chunk := file.read(_CHUNK):
                yield chunk
                since = time.monotonic()
                continue
            self._refuse_other_file(file)
            if self._is_over(since):
                self.ended = self._idle == 0
                return
            self._stop.wait(_POLL)

    def _arriving(self, stream: Any) -> Iterator[bytes]:
        read, since = getattr(stream, "read1", stream.read), time.monotonic()
        while not self._stop.is_set():
            if not _is_ready(stream):
                if self._idle and self._is_over(since):
                    return
                continue
            chunk = read(_CHUNK)
            if not isinstance(chunk, bytes):
                raise TypeError(f"{self.name} must give bytes; open it in binary mode")
            if not chunk:
                self.ended = True
                return
            yield chunk
            since = time.monotonic()

    def _is_over(self, since: float) -> bool:
        return self._idle is not None and time.monotonic() - since >= self._idle

    def _refuse_other_file(self, file: Any) -> None:
        """Raise if the path leads to another file by now, or if the file lost lines."""
        read, here = file.tell(), os.fstat(file.fileno())
        if here.st_size < read:
            raise DataFileError(
                f"{self.name}: the file has {here.st_size} bytes by now, and {read} have been read "
                "of it: it was written anew; start a new stream"
            )
        try:
            there = os.stat(self._source)
        except FileNotFoundError:
            raise DataFileError(
                f"{self.name}: the file was removed or renamed; start a new stream when it exists"
            ) from None
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            raise DataFileError(
                f"{self.name}: another file has taken the place of the one that was read; start a "
                "new stream"
            )


def _is_ready(stream: Any) -> bool:
    """Wait a moment for something to read; tell whether there is, or whether nobody can know."""
    try:
        return bool(select.select([stream.fileno()], [], [], _POLL)[0])
    except (AttributeError, OSError, ValueError):  # nothing that the system can wait for
        return True


def _packed(name: str) -> DataFileError:
    return DataFileError(
        f"{name}: packed files are not read as streams; unpack it into standard input (zcat, xzcat)"
    )


# ------------------------------------------------------------------- whole lines


class _LinesOfText:
    """Runs of whole lines, as UTF-8."""

    def __init__(self, incoming: _Incoming, *, quotes: bool) -> None:
        self.name, self._incoming, self.quotes = incoming.name, incoming, quotes
        self._runs = self._read()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._runs)

    def put_back(self, lines: bytes) -> None:
        """Give lines once more."""
        self._runs = chain([lines], self._runs) if lines else self._runs

    def _read(self) -> Iterator[bytes]:
        chunks = self._incoming.chunks()
        first = next(chunks, b"")
        if not first and not self._incoming.ended:
            return  # it was stopped, or waited in vain
        if first.startswith(_PACKED):
            raise _packed(self.name)
        refuse_foreign(DataSource(self.name, self._incoming.extension, iter(()), first))
        whole = chain([first] if first else [], chunks)
        yield from self._cut(decode(whole, self.name).chunks)

    def _cut(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        rest = b""
        for chunk in chunks:
            searched, rest = len(rest), rest + chunk
            end = rest.rfind(b"\n", searched) + 1
            if self.quotes and len(rest) < _OPEN_QUOTE:
                end = _before_open_quote(rest, end)
            if end:
                yield rest[:end]
                rest = rest[end:]
            elif len(rest) > _LONGEST:
                raise DataFileError(
                    f"{self.name}: a line of more than {_LONGEST >> 20} MB; end lines with a line "
                    "feed"
                )
        if rest.strip() and self._incoming.ended:
            yield rest


def _before_open_quote(text: bytes, end: int) -> int:
    """Return where the last line ends that does not end within quotation marks."""
    while end and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, text.rfind(b'"', 0, end)) + 1
    return end


# ------------------------------------------------------------------- what the lines are


def _judge_head(text: _LinesOfText, extension: str, head: int, asked: tuple[Any, ...]) -> Labelled:
    """Return what the first lines are; they stay to be read."""
    label, task, zero_based, n_features = asked
    lines = b""
    for run in text:
        lines += run
        if lines.count(b"\n") >= head:
            break
    if not lines:
        raise DataFileError(f"{text.name}: the stream ended before its first line was complete")
    text.put_back(lines)
    seen = _first_lines(lines, head)
    content = seen.decode()
    if extension not in SVMLIGHT_ENDINGS and (
        extension in TABLE_ENDINGS or not resembles_svmlight(content)
    ):
        if n_features is not None:
            raise DataFileError(f"{text.name}: n_features is for svmlight text; this is a table")
        table = read_table(content, text.name, TABLE_ENDINGS.get(extension), label)
        return prepare_table(table, task)
    if label is not None:
        raise DataFileError(
            f"{text.name}: svmlight text has its label first on each line; leave out "
            f"label={label!r}"
        )
    found = SvmlightLines(text.name, n_features=n_features, zero_based=zero_based).parse(seen)
    if not found.X.shape[1]:
        raise DataFileError(
            f"{text.name}: no features, only labels; a row is 'label index:value …'"
        )
    layout = Layout("svmlight", found.X.shape[1], task, zero_based=zero_based)
    kind = f"svmlight text, indices from {0 if zero_based else 1}"
    y = _labels(found, layout)
    return Labelled(found.X, y, None, None, kind, found.numbers, "line", layout=layout)


def _first_lines(text: bytes, count: int) -> bytes:
    """Return so many lines, or some more if the last one ends within quotation marks."""
    end = -1
    for k, place in enumerate(_line_ends(text), 1):
        end = place
        if k >= count and text.count(b'"', 0, end) % 2 == 0:
            break
    return text if end < 0 else text[: end + 1]


def _line_ends(text: bytes) -> Iterator[int]:
    end = text.find(b"\n")
    while end >= 0:
        yield end
        end = text.find(b"\n", end + 1)


def _labels(found: Svmlight, layout: Layout) -> Any:
    return found.y.astype(float) if layout.task == "regression" else found.y


# ------------------------------------------------------------------- rows


def _read_svmlight(text: _LinesOfText, layout: Layout) -> Iterator[RowBlock]:
    parser = SvmlightLines(text.name, n_features=layout.n_features, zero_based=layout.zero_based)

    def parse(lines: bytes) -> list[RowBlock]:
        found = parser.parse(lines)
        return [RowBlock(found.X, _labels(found, layout), found.numbers)] if len(found.y) else []

    for run in text:
        yield from _up_to_wrong(parse, run)


def _read_table(
    text: _LinesOfText, source: DataSource, layout: Layout, rows: int
) -> Iterator[RowBlock]:
    first, end = b"", 0
    for run in text:
        first += run
        if end := _end_of_first_row(first):
            break
    if not first:
        return
    text.put_back(first[end:] if end else b"")
    table = TableRows(first[: end or None], source, layout, max(rows, _ROWS_AT_ONCE))
    yield from table.first()
    for run in text:
        yield from _up_to_wrong(table.read, run)


def _end_of_first_row(text: bytes) -> int:
    """Return where the second line ends that is not blank, nor a comment; 0 if it is not there.

    The first may be a header. What comes later is not looked at, so that columns are found in the
    same way however many lines there are already.
    """
    begin = written = 0
    for end in _line_ends(text):
        line = text[begin:end].strip()
        begin = end + 1
        written += bool(line)
        closed = text.count(b'"', 0, end) % 2 == 0
        if written > 1 and line and not line.startswith(b"#") and closed:
            return begin
    return 0


def _up_to_wrong(parse: Callable[[bytes], list[RowBlock]], lines: bytes) -> Iterator[RowBlock]:
    """Iterate over the rows of lines; those before a wrong one are given before it is refused."""
    try:
        found = parse(lines)
    except DataFileError:
        middle = lines.find(b"\n", len(lines) // 2, -1) + 1 or lines.rfind(b"\n", 0, -1) + 1
        middle = _before_open_quote(lines, middle)
        if not middle:
            raise
    else:
        yield from found
        return
    yield from _up_to_wrong(parse, lines[:middle])
    yield from _up_to_wrong(parse, lines[middle:])


def _cut(parts: Iterator[RowBlock], rows: int) -> Iterator[RowBlock]:
    """Iterate over the same rows in blocks of a number that is given; the last may have fewer."""
    kept: list[RowBlock] = []
    count = 0
    for part in parts:
        begin, size = 0, len(part.numbers)
        while size - begin >= rows - count:
            end = begin + rows - count
            yield _join([*kept, _slice(part, begin, end)])
            kept, count, begin = [], 0, end
        if begin < size:
            kept.append(_slice(part, begin, size))
            count += size - begin
        if len(kept) >= _MANY_PARTS:  # of a few rows each
            kept = [_join(kept)]
    if kept:
        yield _join(kept)


def _slice(part: RowBlock, begin: int, end: int) -> RowBlock:
    if begin == 0 and end == len(part.numbers):
        return part
    some = slice(begin, end)
    y = None if part.y is None else part.y[some]
    return RowBlock(part.X[some], y, part.numbers[some], part.remarks if begin == 0 else ())


def _join(parts: list[RowBlock]) -> RowBlock:
    if len(parts) == 1:
        return parts[0]
    y = None if parts[0].y is None else stacked([part.y for part in parts])
    remarks = tuple(remark for part in parts for remark in part.remarks)
    X, numbers = (stacked([part[k] for part in parts]) for k in (0, 2))
    return RowBlock(X, y, numbers, remarks)
