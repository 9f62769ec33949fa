"""A table that is dropped onto the page: two columns become points, and one their labels."""

import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.data import read_table
from maxmargin.errors import DataFileError
from maxmargin.studio.presets import DECIMALS, view_of
from maxmargin.studio.scene import MOST_CLASSES, MOST_POINTS

NO_LABELS = -1  # stands for a table without a column of labels
_LABEL_NAMES = ("label", "target", "class", "y", "species", "outcome")
_SEED = 0  # of the sample that is taken of a long table
_COMFORTABLE = (0.05, 20.0)  # standard deviations of columns that are shown as they are
_LONGEST_NAME = 60  # characters of a column or a class


class _NamedText(io.BytesIO):
    """A text with the name that messages give it, before the line."""

    name = "The table"


class _Column(NamedTuple):
    """A column of a table: numbers with NaN, or nothing but how many different words it has."""

    name: str
    numbers: Floats | None
    distinct: int

    @property
    def counts_rows(self) -> bool:
        """Whether it only numbers the rows, or is the same in all of them."""
        steps = np.diff(self.numbers) if self.numbers is not None else np.zeros(0)
        return self.distinct < 2 or (len(steps) > 1 and bool(np.all(steps == 1.0)))


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
        header; see ``maxmargin.data.read_table``.
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
    if not text.strip():
        raise ValueError("The file is empty; a table needs rows with at least two numbers.")
    if "\0" in text or text.lstrip()[0] in "{[<":
        raise ValueError("This file is not a table of rows and columns; save it as CSV.")
    try:
        table = read_table(_NamedText(text.encode("utf-8", "replace")))
        found = [_read_column(table, j) for j in range(table.width)]
        label = _choose_label(found, columns, len(table.numbers)) if label is None else label
        chosen = _choose_columns(found, columns, label)
        classes, names = _read_labels(table, label)
    except (DataFileError, ImportError) as wrong:
        raise ValueError(f"{wrong}.") from wrong
    messages = ["No column holds labels, so all points have one class."] * (label == NO_LABELS)
    points = np.array([found[j].numbers for j in chosen], dtype=np.float64).T
    rows, kept = _choose_rows(points, classes, messages)
    points, scaled = _scale(points[rows], messages)
    return {
        "type": "points",
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "label": np.searchsorted(kept, classes[rows]).tolist(),
        "names": [_shorten(names[k]) for k in kept],
        "axes": [found[j].name + " (standardised)" * scaled for j in chosen],
        "view": list(view_of(points)),
        "columns": [{"name": each.name, "numeric": each.numbers is not None} for each in found],
        "chosen": {"columns": list(chosen), "label": label},
        "message": " ".join(messages),
    }


# ------------------------------------------------------------------- which columns


def _read_column(table: Any, index: int) -> _Column:
    name = _shorten(table.names[index] if table.names else "") or f"column {index + 1}"
    try:
        cells = table.column(index).cells()
    except DataFileError:  # neither numbers nor words, which may still be labels
        cells = table.labels(index)[0].astype(object)
    if cells.dtype.kind != "f":
        return _Column(name, None, len({cell for cell in cells.tolist() if cell is not None}))
    known = cells[~np.isnan(cells)]
    return _Column(name, cells if len(known) else None, len(np.unique(known)))


def _shorten(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _choose_label(found: list[_Column], columns: Sequence[int] | None, rows: int) -> int:
    """Return the column that is most like labels and leaves two columns of numbers, if any."""
    numeric = {j for j, each in enumerate(found) if each.numbers is not None}
    likely = [
        j for j, each in enumerate(found)
        if j not in (columns or ()) and len(numeric - {j}) >= 2 and each.distinct > 1
        and (each.distinct <= MOST_CLASSES or (each.numbers is None and each.distinct <= rows / 2))
    ]  # fmt: skip
    named = [j for name in _LABEL_NAMES for j in likely if found[j].name.lower() == name]
    few = [j for j in likely if found[j].distinct <= MOST_CLASSES]
    return [*named, *few[-1:], *likely, NO_LABELS][0]


def _choose_columns(
    found: list[_Column], columns: Sequence[int] | None, label: int
) -> tuple[int, int]:
    known = range(len(found))
    for j in (*(columns or ()), label):
        if j not in known and j != NO_LABELS:
            raise ValueError(f"There is no column {j}; columns count from 0.")
    numeric = [j for j in known if found[j].numbers is not None]
    if columns is None:
        others = [j for j in numeric if j != label]
        columns = sorted(sorted(others, key=lambda j: found[j].counts_rows)[:2])
    if len(set(columns)) != 2 or not set(columns) <= set(numeric):
        names = ", ".join(repr(found[j].name) for j in numeric) or "none"
        raise ValueError(
            f"A picture needs two different columns of numbers, and this table has {names}; choose "
            "among them, or correct the cells that are not numbers."
        )
    return columns[0], columns[1]


# ------------------------------------------------------------------- which rows


def _read_labels(table: Any, label: int) -> tuple[Ints, list[str]]:
    """Return the class of each row, −1 if it has none, and the names of the classes."""
    if label == NO_LABELS:
        return np.zeros(len(table.numbers), dtype=np.int64), ["points"]
    values, present = table.labels(label)
    different, inverse = np.unique(values, return_inverse=True)
    classes = np.full(len(table.numbers), -1)
    classes[present] = inverse
    return classes, [str(each) for each in different.tolist()]


def _choose_rows(points: Floats, classes: Ints, messages: list[str]) -> tuple[Ints, list[int]]:
    """Return the rows that are shown, and the classes that they have."""
    complete = np.isfinite(points).all(axis=1) & (classes >= 0)
    if not complete.any():
        raise ValueError("No row of the table has two numbers and a label; fill in its cells.")
    if lacking := int(np.count_nonzero(~complete)):
        messages.append(f"Left out for lack of a number or a label: {lacking:,} of the rows.")
    counts = np.bincount(classes[complete])
    kept = np.argsort(-counts, kind="stable")[: min(MOST_CLASSES, np.count_nonzero(counts))]
    if len(kept) < np.count_nonzero(counts):
        messages.append(
            f"Of {np.count_nonzero(counts)} classes, the {len(kept)} largest are shown."
        )
    rows = np.flatnonzero(complete & np.isin(classes, kept))
    if len(rows) > MOST_POINTS:
        messages.append(f"A random sample of {MOST_POINTS:,} of {len(rows):,} rows is shown.")
        sample = np.random.default_rng(_SEED).choice(len(rows), MOST_POINTS, replace=False)
        rows = rows[np.sort(sample)]
    return rows, np.unique(classes[rows]).tolist()


def _scale(points: Floats, messages: list[str]) -> tuple[Floats, bool]:
    """Standardise both columns if one of them is spread much more, or less, than sliders expect."""
    largest = np.maximum(np.abs(points).max(axis=0), 1e-300)
    size = largest * (points / largest).std(axis=0)  # no square of a huge number overflows
    low, high = _COMFORTABLE
    if np.all((size == 0.0) | ((size >= low) & (size <= high))) and largest.max() <= 1e3:
        return points, False
    messages.append("Both columns are standardised to mean 0 and standard deviation 1.")
    from sklearn.preprocessing import scale

    return np.round(scale(points / largest), DECIMALS) + 0.0, True
