"""Labelled files: which format a file has, its text, and svmlight text as rows."""

import codecs
import importlib
import os
import re
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from maxmargin.data.cells import NUMBER, finite_number, label_array
from maxmargin.data.columns import Labelled, prepare_table
from maxmargin.data.table import Table, read_arff, read_json, read_table
from maxmargin.errors import DataFileError

_COMPRESSIONS = {".xz": "lzma", ".gz": "gzip", ".bz2": "bz2"}
_SVMLIGHT = {".svm", ".libsvm", ".svmlight"}
_JSON_LINES = {".jsonl", ".ndjson"}
_TABLES = {".csv": None, ".tsv": "\t"}
_SVMLIGHT_LINE = re.compile(r"\s*[^\s:,;]+(?:[ \t]+(?:\d+|qid):\S*)+\s*(?:#.*)?")
_FIRST_LINE = re.compile(r"^[^\S\n]*[^\s#].*", re.MULTILINE)
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it starts with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_WINDOWS = "cp1252"
_not_text = re.compile(r"[\x00-\x08\x0e-\x19\x1b-\x1f\x7f\ufffe\uffff]").search
_LOOKED_AT = 10**6  # characters

_AS_CSV = "save the table as CSV"
_ARRAYS = "load it with numpy and write X and y to a CSV file"
_MARKUP = (b"<!doctype", b"<html", b"<?xml")
# What a file starts with, or how its name ends; what it is; and the way out.
_FOREIGN = (
    ((b"\xd0\xcf\x11\xe0",), (".xlsx", ".xls", ".xlsm", ".ods"), "a spreadsheet", _AS_CSV),
    ((b"\x93NUMPY",), (".npy", ".npz"), "a file of numpy arrays", _ARRAYS),
    ((), (".mat",), "a MATLAB file", _AS_CSV),
    ((b"PAR1",), (".parquet",), "a Parquet file", "with pandas: read_parquet(…).to_csv(…)"),
    ((b"ARROW1", b"FEA1"), (".feather", ".arrow"), "an Arrow file", _AS_CSV),
    ((b"PK\x03\x04",), (".zip",), "a zip archive", "unpack it and name the file in it"),
    ((b"\x89HDF",), (".h5", ".hdf5"), "an HDF5 file", _AS_CSV),
    ((b"SQLite format 3",), (".sqlite", ".db"), "a database", _AS_CSV),
    ((b"\x80\x03", b"\x80\x04", b"\x80\x05"), (".pkl", ".pickle"), "a pickle", _AS_CSV),
    ((b"%PDF", b"\x89PNG", b"\xff\xd8\xff"), (".pdf", ".docx"), "a document or picture", _AS_CSV),
    (_MARKUP, (".html", ".htm", ".xml"), "a page of markup", _AS_CSV),
    ((b"7z\xbc\xaf", b"Rar!"), (".7z", ".rar", ".tar", ".tgz"), "an archive", "unpack it first"),
)


def read_labelled(path: str | os.PathLike[str], label: str | int | None = None) -> Labelled:
    r"""Read a labelled file: a table as text (CSV, TSV, ARFF, …), JSON, or svmlight (LIBSVM) text.

    The name's ending decides (``.svm .libsvm .svmlight``, ``.csv``, ``.tsv``, ``.arff``, ``.json``,
    ``.jsonl .ndjson``), the content where it does not; ``.xz``, ``.gz`` and ``.bz2`` are unpacked
    on the way. Text is UTF-8, UTF-16 or UTF-32 with a mark at its start, or else Windows-1252.

    **Tables** have commas, semicolons, tabs, bars or spaces between their cells, and may have a
    header. JSON may be a list of records, an object of columns, ``{"columns": …, "data": …}``, or
    one record per line. What is in a column is decided over the whole column:

    - *Numbers* stay numbers, also integer codes. Thousands may be separated (``1,234``, ``1 234``,
      ``1'234``), decimal commas, percent signs and one sign of a currency are understood.
    - *Dates and times* (``2020-12-31``, ``31/12/2020 18:00``, ``31 Dec 2020``) become days since
      1970, times of day become hours. If no date of a column tells whether day or month comes
      first, the column is refused.
    - *Words*, also yes and no, stay words; then X is an array of objects with the columns of
      numbers first, and ``prepare`` makes a column of 0 and 1 for each of the 29 most frequent
      words and one for all others.
    - *Missing cells* are empty or say NA, N/A, NaN, null, None, ``?``, ``-`` or ``.``; ``prepare``
      puts the median in their place, or counts them as one more word. Rows without a label are
      left out.
    - *Left out* are columns that are empty or, from ten rows on, have one value only, are words
      that differ in most rows, or number or name the rows (whole numbers that count up or fill a
      range; or a name such as ``id``, and hardly a value twice).

    ``prepare`` is not fitted: put it first in a pipeline, so that medians and words come from the
    training rows only. ``remarks`` says what was done.

    **Svmlight text** is read strictly: finite numbers, with indices that ascend and count from 1,
    or from 0 in a file where an index 0 occurs.

    Parameters
    ----------
    path : path
        The file.
    label : str or int, optional
        The label column of a table: its name, or its number from 1 (-1 is the last). By default the
        column named label or target, else class, y, outcome, diagnosis, species or survived (in any
        case), else the last one. If the last one cannot be it, since it differs in nearly every
        row, as measurements and names do, or has one value only, and others look like classes, the
        label must be named; except that the only one of these with words, or in a table without a
        header the only or first one, is taken with a warning. In svmlight text the label always
        comes first.

    Returns
    -------
    Labelled
        ``X``, ``y``, ``feature_names``, ``label_name``, ``format``; ``numbers`` and ``numbered``,
        where each row is in the file; ``prepare``, a transformer to put before the model, or None;
        and ``remarks``.

    Raises
    ------
    DataFileError
        The content is not what the format allows; the message has the line or the column, and the
        way out.
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

    With words and a missing cell, ``prepare`` goes before the model:

    >>> from sklearn.pipeline import make_pipeline
    >>> from maxmargin import LinearSVC
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_text("age,city,label\n31,Rome,a\n,Paris,b\n47,Rome,a\n52,Oslo,b\n")
    ...     people = read_labelled(path)
    >>> people.remarks[0]
    "The words of column 'city' become 3 columns of 0 and 1."
    >>> model = make_pipeline(people.prepare, LinearSVC()).fit(people.X, people.y)
    >>> model[0].get_feature_names_out(people.feature_names).tolist()
    ['age', 'missingindicator_age', 'city_Oslo', 'city_Paris', 'city_Rome']
    """
    path = Path(path)
    text, remarks = _read_text(path)
    extension = _extension(path)
    first = _FIRST_LINE.search(text)
    like_svmlight = first is not None and _SVMLIGHT_LINE.fullmatch(first[0]) is not None
    if extension in _SVMLIGHT or (extension not in _TABLES and like_svmlight):
        if label is not None:
            raise DataFileError(
                f"{path}: svmlight text has its label first on each line; "
                f"leave out label={label!r}, or convert the file to CSV"
            )
        X, y, kind, numbers = _read_svmlight(text, str(path))
        return Labelled(X, y, None, None, kind, numbers, "line", remarks=remarks)
    table = _read_any_table(text, str(path), extension, label)
    return prepare_table(table._replace(remarks=remarks + table.remarks))


def _read_any_table(text: str, name: str, extension: str, label: str | int | None) -> Table:
    if extension in _JSON_LINES:
        return read_json(text, name, label, lines=True)
    if extension == ".arff" or text[:1000].lstrip().lower().startswith("@relation"):
        return read_arff(text, name, label)
    start = text.lstrip()[:1]
    if extension == ".json" or (extension not in _TABLES and start in ("{", "[")):
        lines = start == "{" and re.search(r"\}[ \t]*\r?\n[ \t]*\{", text) is not None
        return read_json(text, name, label, lines)
    return read_table(text, name, _TABLES.get(extension), label)


def _extension(path: Path) -> str:
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in _COMPRESSIONS:
        endings.pop()
    return endings[-1] if endings else ""


# ------------------------------------------------------------------- bytes to text


def _read_text(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the text of a file, and a remark if its encoding had to be guessed."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    content = _unpack(path)
    _refuse_foreign(content, path)
    text, remarks = _decode(content, path)
    if "\0" in text or _not_text(text[:_LOOKED_AT]):
        raise DataFileError(
            f"{path}: not text; supported are tables as text (CSV, TSV), JSON and svmlight, also "
            "packed as .xz, .gz or .bz2"
        )
    if not text.strip():
        raise DataFileError(f"{path}: the file is empty; it needs at least one labelled row")
    return text, remarks


def _refuse_foreign(content: bytes, path: Path) -> None:
    start, extension = content[:4096].lstrip(), _extension(path)
    text = not _not_text(start.decode("latin-1"))  # PAR1 may also be the name of a column
    for starts, endings, kind, way_out in _FOREIGN:
        markup = starts is _MARKUP and start.lower().startswith(_MARKUP)
        if extension in endings or markup or (not text and start.startswith(starts)):
            raise DataFileError(f"{path}: this is {kind}, which is not supported; {way_out}")


def _decode(content: bytes, path: Path) -> tuple[str, tuple[str, ...]]:
    marked = next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)
    try:
        return content.decode(marked or "utf-8"), ()
    except UnicodeDecodeError as wrong:
        line = content.count(b"\n", 0, wrong.start) + 1
        if marked:
            raise DataFileError(
                f"{path}: marked as {wrong.encoding.upper()} text, but it is not; save it as UTF-8"
            ) from wrong
    try:
        text = content.decode(_WINDOWS)
    except UnicodeDecodeError as wrong:
        raise DataFileError(
            f"{path}:{line}: neither UTF-8 nor Windows-1252 text; save the file as UTF-8"
        ) from wrong
    return text, (
        f"The text is not UTF-8 (line {line}) and is read as Windows-1252: if letters with accents "
        "are wrong, save the file as UTF-8.",
    )


def _unpack(path: Path) -> bytes:
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


# ------------------------------------------------------------------- svmlight text
#
# ``label index:value index:value … # comment``, one row per line. The numbers of lines that match
# the grammar are converted together; a second, slower check says what is wrong with other lines.

# Nine quadrillion: beyond it a float64 no longer holds every integer.
_INDEX_DIGITS = 15
_ROW = re.compile(
    # No possessive group: Python before 3.11.4 takes "1 1:" for a match of one.
    rf"\s*({NUMBER})((?:\s++\d{{1,{_INDEX_DIGITS}}}:{NUMBER})*)\s*(?:#.*)?",
    re.ASCII,
)
_ROWS_PER_BLOCK = 10_000


def _read_svmlight(text: str, name: str) -> tuple[Any, Any, str, Any]:
    """Return X (CSR), y, the format in words and the rows' lines; ``name`` is for messages."""
    # Not splitlines(): a comment can have characters that it takes for line ends.
    lines = text.split("\n")
    labels, features, numbers = _match_rows(lines, name)
    if not labels:
        raise DataFileError(f"{name}: no rows, only comments; a row is 'label index:value …'")
    indices, values = _parse_pairs(features)
    if not indices.size:
        raise DataFileError(f"{name}: no features, only labels; a row is 'label index:value …'")
    pointers = np.cumsum([0, *(text.count(":") for text in features)])
    ascends = np.diff(indices, prepend=-1) > 0
    ascends[pointers[:-1][np.diff(pointers) > 0]] = True
    wrong = np.flatnonzero(~(ascends & np.isfinite(values)))[:1]
    rows = (np.searchsorted(pointers, wrong, side="right") - 1).tolist()
    rows += np.flatnonzero(~np.isfinite(np.array(labels, dtype=np.float64)))[:1].tolist()
    if rows:
        number = numbers[min(rows)]
        _refuse_row(lines[number - 1], f"{name}:{number}")
    base = 0 if indices.min() == 0 else 1
    columns = int(indices.max()) + 1 - base
    integer = np.int32 if max(columns, indices.size) <= np.iinfo(np.int32).max else np.int64
    X = sp.csr_array(
        (values, (indices - base).astype(integer), pointers.astype(integer)),
        shape=(len(labels), columns),
    )
    return X, label_array(labels), f"svmlight text, indices from {base}", np.array(numbers)


def _match_rows(lines: list[str], name: str) -> tuple[list[str], list[str], list[int]]:
    """Return the labels, the features as text and the line numbers of rows."""
    labels, features, numbers = [], [], []
    for number, line in enumerate(lines, 1):
        match = _ROW.fullmatch(line)
        if match is not None:
            labels.append(match[1])
            features.append(match[2])
            numbers.append(number)
        elif line.strip() and not line.lstrip().startswith("#"):
            _refuse_row(line, f"{name}:{number}")
    return labels, features, numbers


def _parse_pairs(features: list[str]) -> tuple[Any, Any]:
    """Return the indices and the values of all rows end to end."""
    found = []
    for start in range(0, len(features), _ROWS_PER_BLOCK):
        # Stripped, since fromstring finds a number in mere blanks.
        pairs = " ".join(features[start : start + _ROWS_PER_BLOCK]).replace(":", " ").strip()
        found.append(np.fromstring(pairs, dtype=np.float64, sep=" "))
    numbers = np.concatenate(found)
    return numbers[::2].astype(np.int64), np.ascontiguousarray(numbers[1::2])


def _refuse_row(line: str, place: str) -> NoReturn:
    """Raise the error that fits a line known to be wrong."""
    label, *pairs = line.partition("#")[0].split()
    if not finite_number(label):
        raise DataFileError(
            f"{place}: the label {label!r} is not a finite number; "
            "svmlight labels are single numbers, so number the classes, or use CSV"
        )
    previous = -1
    for pair in pairs:
        previous = _check_pair(pair, previous, place)
    raise DataFileError(f"{place}: not 'label index:value …' in plain ASCII text")


def _check_pair(pair: str, previous: int, place: str) -> int:
    index, colon, value = pair.partition(":")
    if index == "qid":
        raise DataFileError(
            f"{place}: {pair!r} marks a ranking query, and ranking is not supported; "
            "remove the qid tokens to classify the rows"
        )
    if not colon or not (index.isascii() and index.isdigit()):
        raise DataFileError(f"{place}: {pair!r} is not index:value with a whole, positive index")
    if len(index) > _INDEX_DIGITS:
        raise DataFileError(f"{place}: index {index} is too large; number the features from 1")
    if not finite_number(value):
        raise DataFileError(
            f"{place}: the value of {pair!r} is not a finite number; correct it, or leave out "
            "the pair if it stands for zero"
        )
    if int(index) <= previous:
        trouble = "occurs twice" if int(index) == previous else f"comes after {previous}"
        raise DataFileError(
            f"{place}: index {index} {trouble}; write each index once, in ascending order"
        )
    return int(index)
