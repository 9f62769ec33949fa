"""A table that is dropped onto the page: two columns become points, and one their labels."""

import io
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.data import read_table
from maxmargin.data.tables import LABEL_NAMES
from maxmargin.errors import DataFileError
from maxmargin.studio.presets import DECIMALS, view_of
from maxmargin.studio.scene import MOST_CLASSES, MOST_POINTS

NO_LABELS = -1  # says that no column holds labels
_SEED = 0  # of the sample that is taken of a long table
_COMFORTABLE = (0.05, 20.0)  # standard deviations of columns that are shown as they are
_LONGEST_NAME = 60  # characters of a column or a class
_place = re.compile(r"the stream(?::(\d+))?: (.)").match


class _Column(NamedTuple):
    """A column of a table: numbers with NaN, or words."""

    values: Any
    words: bool
    distinct: int
    trouble: str = ""
    """Why it cannot be read, if it cannot."""


class _Labels(NamedTuple):
    classes: Ints  # of each row, −1 if it has none
    names: tuple[str, ...]  # of classes, in ascending order


def read(
    text: str, columns: Sequence[int] | None = None, label: int | None = None
) -> dict[str, Any]:
    """Return the points of a table as the page reads them.

    Rows that lack a number or a label are left out. Of more than five classes the most frequent
    ones are kept, of more than 5,000 rows a sample; columns whose spread is far from 1 are
    standardised. The reply's ``message`` says which of this was done.

    Parameters
    ----------
    text : str
        Rows of cells with commas, semicolons, tabs, bars or spaces between them, perhaps below a
        header; see ``maxmargin.data.read_labelled``.
    columns : pair of int, optional
        The columns of x and y, from 0; by default the first two with numbers that do not just count
        rows.
    label : int, optional
        The column of labels, from 0; -1 for none. By default one that is named so, or has few
        different values, if there is one.

    Raises
    ------
    ValueError
        The text is no such table; the message has the line.
    """
    try:
        table = _read_text(text, label)
        read_columns = [_read_column(table, j) for j in range(table.width)]
        label = _choose_label(table, read_columns, columns) if label is None else label
        chosen = _choose_columns(table, read_columns, columns, label)
    except (DataFileError, ImportError) as wrong:
        raise ValueError(_sentence(str(wrong))) from wrong
    points = np.column_stack([read_columns[j].values for j in chosen])
    return _reply(table, read_columns, points, chosen, label)


def _reply(
    table: Any, read_columns: list[_Column], points: Floats, chosen: tuple[int, int], label: int
) -> dict[str, Any]:
    remarks = list(table.remarks)
    labels = _read_labels(table, label, remarks)
    rows, kept = _choose_rows(points, labels, remarks)
    points, scaled = _scale(points[rows], remarks)
    classes, used = labels.classes[rows], sorted(kept)
    names = _column_names(table)
    return {
        "type": "points",
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "label": np.searchsorted(used, classes).tolist(),
        "names": [_shorten(labels.names[k]) for k in used],
        "axes": [names[j] + (" (standardised)" if scaled else "") for j in chosen],
        "view": list(view_of(points)),
        "columns": [
            {"name": name, "numeric": _is_numeric(column)}
            for name, column in zip(names, read_columns, strict=True)
        ],
        "chosen": {"columns": list(chosen), "label": label},
        "message": " ".join(remarks),
    }


# ------------------------------------------------------------------- text to columns


def _read_text(text: str, label: int | None) -> Any:
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise ValueError("The file is empty; a table needs rows with at least two numbers.")
    if "\0" in text[:10_000] or "\ufffd" in text[:10_000]:
        raise ValueError("This file is not text; save the table as CSV.")
    if text.lstrip()[0] in "{[<":
        raise ValueError(_NO_TABLE)
    table = read_table(io.BytesIO(text.encode("utf-8", "replace")))
    if table.width < 2:
        raise ValueError("The table has only one column; a picture needs two columns of numbers.")
    if label is not None and not NO_LABELS <= label < table.width:
        raise ValueError(f"There is no column {label}; columns count from 0.")
    return table


_NO_TABLE = (
    "This file is not a table of rows and columns; save it as CSV, with commas between the cells."
)


def _read_column(table: Any, index: int) -> _Column:
    try:
        found = table.column(index)
    except DataFileError as wrong:  # told only if somebody wants the column to be numbers
        values, present = table.labels(index)
        return _Column(present, True, len(np.unique(values)), _sentence(str(wrong)))
    return _Column(found.cells(), found.words is not None, found.distinct)


def _is_numeric(column: _Column) -> bool:
    return not column.words and not bool(np.isnan(column.values).all())


def _column_names(table: Any) -> list[str]:
    names = table.names or [""] * table.width
    return [_shorten(name) or f"column {j + 1}" for j, name in enumerate(names)]


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _sentence(message: str) -> str:
    """Return what is wrong with a file as a sentence about the table."""
    found = _place(message)
    if found is None:
        return message
    line, first = found.groups()
    where = f"Line {line} of the table: {first}" if line else f"The table cannot be read: {first}"
    return f"{where}{message[found.end() :]}."


# ------------------------------------------------------------------- which columns


def _choose_label(table: Any, read_columns: list[_Column], columns: Sequence[int] | None) -> int:
    """Return the column that looks like labels and leaves two columns of numbers, if one does."""
    names = [name.lower() for name in table.names or ()]
    last = len(read_columns) - 1
    named = [names.index(name) for name in LABEL_NAMES if name in names]
    few = [j for j, column in enumerate(read_columns) if 2 <= column.distinct <= MOST_CLASSES]
    # Words that repeat may be classes, though there are too many.
    words = [
        j for j, column in enumerate(read_columns)
        if column.words and 1 < column.distinct <= len(column.values) / 2
    ]  # fmt: skip
    numeric = {j for j, column in enumerate(read_columns) if _is_numeric(column)}
    likely = [j for j in named if j in {*few, *words}]
    for j in [*likely, *(j for j in (last,) if j in few), *few, *words]:
        taken = set(columns or ())
        if j not in taken and len(numeric - {j}) >= 2:
            return j
    return NO_LABELS


def _choose_columns(
    table: Any, read_columns: list[_Column], columns: Sequence[int] | None, label: int
) -> tuple[int, int]:
    if columns is not None:
        return _check_columns(table, read_columns, columns)
    numeric = [j for j, column in enumerate(read_columns) if _is_numeric(column) and j != label]
    telling = [
        j for j in numeric
        if read_columns[j].distinct > 1 and not _counts_rows(read_columns[j].values)
    ]  # fmt: skip
    telling += [j for j in numeric if j not in telling]
    if len(telling) < 2:
        found = "none" if not numeric else f"only {_column_names(table)[numeric[0]]!r}"
        raise ValueError(
            f"A picture needs two columns of numbers, and this table has {found}; add a column of "
            "numbers, or correct the cells that are not numbers."
        )
    first, second = sorted(telling[:2])
    return first, second


def _check_columns(
    table: Any, read_columns: list[_Column], columns: Sequence[int]
) -> tuple[int, int]:
    if len(columns) != 2 or columns[0] == columns[1]:
        raise ValueError("Choose two different columns.")
    for j in columns:
        if not 0 <= j < len(read_columns):
            raise ValueError(f"There is no column {j}; columns count from 0.")
        if not _is_numeric(read_columns[j]):
            raise ValueError(_explain_words(table, j, read_columns[j]))
    return columns[0], columns[1]


def _explain_words(table: Any, index: int, column: _Column) -> str:
    name = _column_names(table)[index]
    if not column.words:
        return f"Column {name!r} is empty; choose a column of numbers."
    if column.trouble:
        return column.trouble
    row = next(i for i, value in enumerate(column.values) if value is not None)
    word, line = column.values[row], table.numbers[row]
    return (
        f"Column {name!r} holds words, such as {word!r:.40} (line {line}); choose a column of "
        "numbers."
    )


def _counts_rows(values: Floats) -> bool:
    """Tell whether a column only numbers the rows."""
    return len(values) > 2 and bool(np.all(np.diff(values) == 1.0))


# ------------------------------------------------------------------- which rows


def _read_labels(table: Any, label: int, remarks: list[str]) -> _Labels:
    n = len(table.numbers)
    if label == NO_LABELS:
        remarks.append("No column holds labels, so all points have one class.")
        return _Labels(np.zeros(n, dtype=np.int64), ("points",))
    values, present = table.labels(label)
    different, inverse = np.unique(values, return_inverse=True)
    classes = np.full(n, -1)
    classes[present] = inverse
    return _Labels(classes, tuple(map(str, different.tolist())))


def _choose_rows(points: Floats, labels: _Labels, remarks: list[str]) -> tuple[Ints, list[int]]:
    """Return the rows that are shown, and the classes that they have."""
    whole = np.isfinite(points).all(axis=1) & (labels.classes >= 0)
    if lacking := int(np.count_nonzero(~whole)):
        remarks.append(
            f"{_count(lacking)} that {'lacks' if lacking == 1 else 'lack'} a number or a label "
            f"{'is' if lacking == 1 else 'are'} left out."
        )
    counts = np.bincount(labels.classes[whole], minlength=len(labels.names))
    kept = [k for k in np.argsort(-counts, kind="stable").tolist() if counts[k]]
    if len(kept) > MOST_CLASSES:
        lost = int(counts[kept[MOST_CLASSES:]].sum())
        said = f"There are {len(kept)} classes; the {MOST_CLASSES} most frequent are shown"
        kept = kept[:MOST_CLASSES]
        remarks.append(f"{said} ({_count(lost)} left out).")
    rows = np.flatnonzero(whole & np.isin(labels.classes, kept))
    if not len(rows):
        raise ValueError("No row of the table has two numbers and a label; fill in its cells.")
    if len(rows) > MOST_POINTS:
        remarks.append(f"A random sample of {MOST_POINTS:,} of {len(rows):,} rows is shown.")
        sample = np.random.default_rng(_SEED).choice(len(rows), MOST_POINTS, replace=False)
        rows = rows[np.sort(sample)]
    return rows, sorted(set(labels.classes[rows].tolist()))


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"


def _scale(points: Floats, remarks: list[str]) -> tuple[Floats, bool]:
    """Standardise both columns if one of them is spread much more, or less, than sliders expect."""
    largest = np.maximum(np.abs(points).max(axis=0), 1e-300)
    size = largest * (points / largest).std(axis=0)  # no square of a huge number overflows
    low, high = _COMFORTABLE
    if np.all((size == 0.0) | ((size >= low) & (size <= high))) and largest.max() <= 1e3:
        return points, False
    remarks.append("Both columns are standardised to mean 0 and standard deviation 1.")
    from sklearn.preprocessing import scale

    scaled: Floats = np.round(scale(points / largest), DECIMALS) + 0.0
    return scaled, True
