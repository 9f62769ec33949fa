"""Labelled files: which format a file has, and its text."""

import importlib
import os
import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin.data.delimited import read_delimited
from maxmargin.data.svmlight import read_svmlight
from maxmargin.errors import DataFileError

_COMPRESSIONS = {".xz": "lzma", ".gz": "gzip", ".bz2": "bz2"}
_SVMLIGHT = {".svm", ".libsvm", ".svmlight"}
_DELIMITERS = {".csv": None, ".tsv": "\t"}
_SVMLIGHT_LINE = re.compile(rb"\s*[^\s:,;]+(?:[ \t]+(?:\d+|qid):\S*)+\s*(?:#.*)?")


class Labelled(NamedTuple):
    """Labelled rows, as read from a file."""

    X: Any
    """float64: an array for tables, a CSR array for svmlight text."""
    y: Any
    """One label a row: integers where all are, else floats, else strings."""
    feature_names: list[str] | None
    """The header's names, where there is a header."""
    label_name: str | None
    """The label column's name, where there is a header."""
    format: str
    """What the file turned out to be, in words."""


def read_labelled(path: str | os.PathLike[str], label: str | int | None = None) -> Labelled:
    r"""Read a labelled file: svmlight (LIBSVM) text, CSV or TSV.

    The name's ending decides (``.svm .libsvm .svmlight``, ``.csv``, ``.tsv``), the first line where
    it does not; ``.xz``, ``.gz`` and ``.bz2`` are unpacked on the way. Values must be finite
    numbers. Svmlight indices ascend and count from 1, or from 0 in a file where an index 0 occurs.

    Parameters
    ----------
    path : path
        The file.
    label : str or int, optional
        The label column of a table: its name, or its number from 1 (-1 is the last). By default the
        column named label, target, class or y (in any case), else the last one. In svmlight text
        the label always comes first.

    Returns
    -------
    Labelled
        ``X``, ``y``, ``feature_names``, ``label_name`` and ``format``.

    Raises
    ------
    DataFileError
        The content is not what the format allows; the message has the line and the way out.
    OSError
        There is no such file, or it may not be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from maxmargin.data import read_labelled
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "irises.csv")
    ...     _ = path.write_text("length,width,class\n5.1,3.5,setosa\n6.2,2.9,versicolor\n")
    ...     irises = read_labelled(path)
    >>> irises.X.tolist(), irises.y.tolist(), irises.feature_names
    ([[5.1, 3.5], [6.2, 2.9]], ['setosa', 'versicolor'], ['length', 'width'])
    """
    path = Path(path)
    text = _text(path)
    extension = _extension(path)
    if extension in _SVMLIGHT or (extension not in _DELIMITERS and _looks_like_svmlight(text)):
        if label is not None:
            raise DataFileError(
                f"{path}: svmlight text has its label first on each line; "
                f"leave out label={label!r}, or convert the file to CSV"
            )
        X, y, kind = read_svmlight(text, str(path))
        return Labelled(X, y, None, None, kind)
    table = read_delimited(text, str(path), _DELIMITERS.get(extension), label)
    return Labelled(*table)


def _extension(path: Path) -> str:
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSIONS:
        endings.pop()
    return endings[-1] if endings else ""


def _looks_like_svmlight(text: bytes) -> bool:
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith(b"#"))
    return _SVMLIGHT_LINE.fullmatch(next(lines, b"")) is not None


def _text(path: Path) -> bytes:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    text = _unpacked(path)
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataFileError(f"{path}: UTF-16 text; save it as UTF-8")
    if b"\0" in text:
        raise DataFileError(
            f"{path}: not text; svmlight, CSV and TSV are read, also with .xz, .gz or .bz2"
        )
    text = text.removeprefix(b"\xef\xbb\xbf")
    if not text.strip():
        raise DataFileError(f"{path}: the file is empty; it needs at least one labelled row")
    return text


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    ending = path.suffix.lower()
    if ending not in _COMPRESSIONS:
        return content
    try:
        # Some Pythons are built without one of these modules.
        unpacker: Any = importlib.import_module(_COMPRESSIONS[ending])
    except ImportError as missing:
        raise DataFileError(
            f"{path}: this Python cannot unpack {ending} files ({missing}); unpack it first"
        ) from missing
    failures = (OSError, EOFError, ValueError, zlib.error, getattr(unpacker, "LZMAError", OSError))
    try:
        unpacked: bytes = unpacker.decompress(content)
    except failures as broken:
        raise DataFileError(
            f"{path}: not a whole {ending} file ({broken}); fetch or pack it again"
        ) from broken
    return unpacked
