"""Where the bytes of a data file come from: a file, packed or not, standard input or a stream.

Bytes come in chunks, so that files of any length are read in bounded memory, and text comes as
UTF-8 with line feeds, whatever it was.
"""

import codecs
import contextlib
import importlib
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin.errors import DataFileError

Where = str | os.PathLike[str] | Any  # a path, "-", or a binary stream

CHUNK = 1 << 22  # bytes
# Endings of packed files, how these start, and the modules that unpack them.
PACKINGS = {
    ".xz": (b"\xfd7zXZ\x00", "lzma"),
    ".gz": (b"\x1f\x8b", "gzip"),
    ".bz2": (b"BZh", "bz2"),
    ".zst": (b"\x28\xb5\x2f\xfd", "pyarrow"),
}
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it starts with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_WINDOWS = "cp1252"
_not_text = re.compile(rb"[\x00-\x08\x0e-\x19\x1b-\x1f\x7f]").search
_LOOKED_AT = 10**6  # bytes
_START = 4096

SVMLIGHT_ENDINGS = {".svm", ".libsvm", ".svmlight"}
JSON_ENDINGS = {".json", ".jsonl", ".ndjson"}
ARROW_ENDINGS = {".parquet", ".pq", ".arrow", ".feather"}
TABLE_ENDINGS = {".csv": None, ".tsv": "\t"}

_AS_CSV = "save the table as CSV"
_ARRAYS = "load it with numpy and write X and y to a CSV file"
_MARKUP = (b"<!doctype", b"<html", b"<?xml")
# What a file starts with, or how its name ends; what it is; and the way out.
_FOREIGN = (
    ((b"FEA1",), (), "an old Feather file", "save it as Parquet or CSV"),
    ((b"\xd0\xcf\x11\xe0",), (".xlsx", ".xls", ".xlsm", ".ods"), "a spreadsheet", _AS_CSV),
    ((b"\x93NUMPY",), (".npy", ".npz"), "a file of numpy arrays", _ARRAYS),
    ((), (".mat",), "a MATLAB file", _AS_CSV),
    ((b"PK\x03\x04",), (".zip",), "a zip archive", "unpack it and name the file in it"),
    ((b"\x89HDF",), (".h5", ".hdf5"), "an HDF5 file", _AS_CSV),
    ((b"SQLite format 3",), (".sqlite", ".db"), "a database", _AS_CSV),
    ((b"\x80\x03", b"\x80\x04", b"\x80\x05"), (".pkl", ".pickle"), "a pickle", _AS_CSV),
    ((b"%PDF", b"\x89PNG", b"\xff\xd8\xff"), (".pdf", ".docx"), "a document or picture", _AS_CSV),
    (_MARKUP, (".html", ".htm", ".xml"), "a page of markup", _AS_CSV),
    ((b"7z\xbc\xaf", b"Rar!"), (".7z", ".rar", ".tar", ".tgz"), "an archive", "unpack it first"),
)


class DataSource(NamedTuple):
    """An opened source of bytes."""

    name: str
    """For messages."""
    extension: str
    """How the name ends, in small letters, without that of a packing; "" if there is no name."""
    chunks: Iterator[bytes]
    """The bytes, unpacked."""
    start: bytes = b""
    """The first of them."""
    path: Path | None = None
    """The file, if it is one that is not packed."""


@contextlib.contextmanager
def open_source(source: Where) -> Iterator[DataSource]:
    """Open a path, "-" for standard input, or a binary stream, which stays open."""
    path, packing = None, None
    with contextlib.ExitStack() as stack:
        if hasattr(source, "read") or source == "-":
            stream: Any = sys.stdin.buffer if source == "-" else source
            name = str(getattr(stream, "name", "the stream"))
            name = "standard input" if source == "-" or name == "<stdin>" else name
            extension = extension_of(Path(name)) if source != "-" else ""
        else:
            path = Path(source)
            refuse_no_file(path)
            stream, name = stack.enter_context(path.open("rb")), str(path)
            extension, packing = _endings(path)
        chunks = _read_chunks(stream, packing, name)
        if path is None:  # its bytes say whether it is packed
            first = next(chunks, b"")
            chunks = chain([first], chunks)
            packing = next((end for end, how in PACKINGS.items() if first.startswith(how[0])), None)
            stream = io.BytesIO(b"".join(chunks)) if packing else stream
        if packing is not None:
            chunks = _read_chunks(
                stack.enter_context(_unpack(stream, packing, name)), packing, name
            )
        first = next(chunks, b"")
        content = chain([first] if first else [], chunks)
        plain = path if packing is None else None
        yield DataSource(name, extension, content, first[:_START], plain)


def refuse_no_file(path: Path) -> None:
    """Raise if there is no such file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")


def extension_of(path: Path) -> str:
    """Return how a file's name ends, in small letters, without the ending of a packing."""
    return _endings(path)[0]


def _endings(path: Path) -> tuple[str, str | None]:
    endings = [ending.lower() for ending in path.suffixes]
    packing = endings.pop() if endings and endings[-1] in PACKINGS else None
    return endings[-1] if endings else "", packing


def refuse_foreign(opened: DataSource) -> None:
    """Raise if a file is of a kind that is not read here."""
    start = opened.start.lstrip()
    text = not _not_text(start)  # SQLite may also be the name of a column
    for starts, endings, kind, way_out in _FOREIGN:
        markup = starts is _MARKUP and start.lower().startswith(_MARKUP)
        if opened.extension in endings or markup or (not text and start.startswith(starts)):
            raise DataFileError(f"{opened.name}: this is {kind}, which is not supported; {way_out}")


def _unpack(stream: Any, packing: str, name: str) -> Any:
    try:  # some Pythons are built without one of these modules
        module: Any = importlib.import_module(PACKINGS[packing][1])
    except ImportError as missing:
        raise DataFileError(
            f"{name}: this Python cannot unpack {packing} files ({missing}); unpack it first"
        ) from missing
    if packing == ".zst":
        return module.CompressedInputStream(module.PythonFile(stream, "r"), "zstd")
    return module.open(stream, "rb")


def _read_chunks(stream: Any, packing: str | None, name: str) -> Iterator[bytes]:
    while True:
        try:
            chunk = stream.read(CHUNK)
        except Exception as broken:
            at_fault = getattr(broken, "errno", None) is not None  # the disk
            if packing is None or at_fault or isinstance(broken, MemoryError):
                raise
            raise DataFileError(
                f"{name}: not a whole {packing} file ({broken}); fetch or pack it again"
            ) from broken
        if not isinstance(chunk, bytes):
            raise TypeError(f"{name} must give bytes; open it in binary mode")
        if not chunk:
            return
        yield chunk


# ------------------------------------------------------------------- text


class Decoded(NamedTuple):
    """Text as UTF-8 in chunks."""

    chunks: Iterator[bytes]
    remarks: list[str]  # filled while the chunks are read


def decode(chunks: Iterable[bytes], name: str) -> Decoded:
    """Return text as UTF-8: it was that, or is marked as UTF-16 or UTF-32, or is Windows-1252.

    Text that is not UTF-8 is taken for Windows-1252 if there were only ASCII characters before:
    with others, it cannot be known what they were meant to be.
    """
    remarks: list[str] = []
    text = _refuse_binary(_decode(iter(chunks), name, remarks), name)
    return Decoded(_unify_line_ends(text), remarks)


def _decode(chunks: Iterator[bytes], name: str, remarks: list[str]) -> Iterator[bytes]:
    chunk = next(chunks, b"")
    while len(chunk) < 4 and (more := next(chunks, b"")):
        chunk += more
    encoding = next((code for mark, code in _MARKS.items() if chunk.startswith(mark)), "utf-8")
    decoder = codecs.getincrementaldecoder(encoding)()
    only_ascii, lines, final = encoding == "utf-8", 0, False
    while not final:
        final = not chunk
        pending = decoder.getstate()[0]
        if chunk and chunk.isascii() and encoding in ("utf-8", _WINDOWS) and not pending:
            text = chunk
        else:
            try:
                text = decoder.decode(chunk, final).encode()
            except UnicodeError as wrong:
                line = lines + 1 + chunk.count(b"\n", 0, getattr(wrong, "start", 0))
                if not only_ascii:
                    raise DataFileError(
                        f"{name}:{line}: neither UTF-8 (or what it is marked as) nor Windows-1252 "
                        "text; save the file as UTF-8"
                    ) from wrong
                remarks.append(
                    f"The text is not UTF-8 (line {line}) and is read as Windows-1252: if letters "
                    "with accents are wrong, save the file as UTF-8."
                )
                encoding, chunk, final, only_ascii = _WINDOWS, pending + chunk, False, False
                decoder = codecs.getincrementaldecoder(_WINDOWS)()
                continue
            only_ascii = only_ascii and text.isascii()
        lines += text.count(b"\n")
        yield text
        chunk = next(chunks, b"")


def _refuse_binary(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    looked_at, blank = 0, True
    for text in chunks:
        if b"\0" in text or _not_text(text[: max(0, _LOOKED_AT - looked_at)]):
            raise DataFileError(
                f"{name}: not text; supported are tables as text (CSV, TSV), JSON lines and "
                "svmlight, also packed as .xz, .gz, .bz2 or .zst, and Parquet"
            )
        looked_at += len(text)
        blank = blank and (not text or text.isspace())
        if text:
            yield text
    if blank:
        raise DataFileError(f"{name}: the file is empty; it needs at least one row")


def _unify_line_ends(chunks: Iterator[bytes]) -> Iterator[bytes]:
    held = b""
    for chunk in chunks:
        text = held + chunk
        held = text[-1:] if text.endswith(b"\r") else b""  # a line feed may follow
        if text := text[: len(text) - len(held)]:
            yield text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text
    if held:
        yield b"\n"


def split_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Iterate over lines with their ends, if no chunk ends within a line."""
    for text in chunks:
        yield from io.StringIO(text.decode(), newline="\n")
