"""CSV and TSV tables with one label column and numeric features."""

import csv
import io
from array import array
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.labels import finite_number, label_array
from maxmargin.errors import DataFileError

_LABEL_NAMES = ("label", "target", "class", "y")

Row = tuple[int, list[str]]  # line number, cells


class _Layout(NamedTuple):
    """What is known before the first value is converted."""

    file: str
    names: list[str] | None
    width: int
    label: int

    def column(self, index: int) -> str:
        return f"column {index + 1}" + (f" ({self.names[index]})" if self.names else "")


def read_delimited(
    text: bytes, name: str, delimiter: str | None, label: str | int | None
) -> tuple[Any, Any, list[str] | None, str | None, str]:
    """Return X, y, feature names, the label's name and the format in words."""
    content = _decoded(text, name)
    delimiter = delimiter or _delimiter(content)
    rows = _rows(content, delimiter, name)
    ahead = list(islice(rows, 1))
    layout = _layout(ahead[0][1] if ahead else [], name, label)
    if layout.names is None:
        rows = chain(ahead, rows)
    # float() takes a few spellings that are no plain numbers; all need one of these characters.
    careful = "_" in content or not content.isascii()
    values, labels = _convert(rows, layout, careful)
    X = np.frombuffer(values).reshape(len(labels), layout.width - 1)
    names = layout.names
    words = {",": "commas", ";": "semicolons", "\t": "tabs"}[delimiter]
    kind = f"table with {words}, {'with' if names else 'without'} a header"
    if names is None:
        return X, label_array(labels), None, None, kind
    features = names[: layout.label] + names[layout.label + 1 :]
    return X, label_array(labels), features, names[layout.label], kind


def _decoded(text: bytes, name: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as wrong:
        line = text.count(b"\n", 0, wrong.start) + 1
        raise DataFileError(f"{name}:{line}: not UTF-8 text; save the file as UTF-8") from wrong


def _delimiter(content: str) -> str:
    first_line = next((line for line in content.splitlines() if line.strip()), "")
    # Semicolons and tabs first: where they separate, commas are part of the cells.
    return max(";\t,", key=first_line.count)


def _rows(content: str, delimiter: str, name: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as wrong:
        raise DataFileError(
            f"{name}:{reader.line_num}: {wrong}; check the quotation marks"
        ) from wrong


def _layout(first: list[str], name: str, label: str | int | None) -> _Layout:
    first = [cell.strip() for cell in first]
    if len(first) < 2:
        raise DataFileError(
            f"{name}:1: only one column; a table needs a label and at least one feature, "
            "separated by commas, semicolons or tabs"
        )
    names = first if _is_header(first, label) else None
    if names and "" in names:
        raise DataFileError(
            f"{name}:1: column {names.index('') + 1} has no name; name it, or remove it if it "
            "holds row numbers (pandas: to_csv(index=False))"
        )
    return _Layout(name, names, len(first), _label_column(names, len(first), label, name))


def _is_header(first: list[str], label: str | int | None) -> bool:
    if label in first or any(cell.lower() in _LABEL_NAMES for cell in first):
        return True
    return not any(finite_number(cell) for cell in first)


def _label_column(names: list[str] | None, width: int, label: str | int | None, name: str) -> int:
    if label is None:
        return _default_label(names, width, name)
    if names and isinstance(label, str) and names.count(label) == 1:
        return names.index(label)
    known = ", ".join(names[:20]) if names else "the file has no header"
    if names and isinstance(label, str) and label in names:
        raise DataFileError(f"{name}: two columns are named {label!r}; give the label's number")
    try:
        number = int(label)
    except ValueError:
        raise DataFileError(
            f"{name}: no column is named {label!r} ({known}); "
            "name one of them, or give its number, counted from 1"
        ) from None
    if number == 0 or not -width <= number <= width:
        raise DataFileError(
            f"{name}: there is no column {number}; columns count from 1 to {width}, "
            "and -1 is the last"
        )
    return number - 1 if number > 0 else width + number


def _default_label(names: list[str] | None, width: int, name: str) -> int:
    found = [i for i, column in enumerate(names or []) if column.lower() in _LABEL_NAMES]
    if len(found) > 1:
        raise DataFileError(
            f"{name}: columns {' and '.join(str(i + 1) for i in found)} could both be the label; "
            "say which one it is (label=…, or --label)"
        )
    return found[0] if found else width - 1


def _convert(rows: Iterator[Row], layout: _Layout, careful: bool) -> tuple[Any, list[str]]:
    values = array("d")
    labels: list[str] = []
    for line, cells in rows:
        if len(cells) != layout.width:
            raise DataFileError(
                f"{layout.file}:{line}: {len(cells)} cells where the first row has "
                f"{layout.width}; complete the row, or quote cells that contain the separator"
            )
        label = cells.pop(layout.label).strip()
        try:
            row = array("d", map(float, cells))
        except ValueError:
            row = array("d", [np.nan])
        if careful or not np.isfinite(sum(row)):
            _explain(cells, line, layout)
        if not label or label.lower() in ("nan", "inf", "-inf"):
            raise DataFileError(
                f"{layout.file}:{line}: no label in {layout.column(layout.label)}; "
                "add it or remove the row"
            )
        values.extend(row)
        labels.append(label)
    if not labels:
        raise DataFileError(f"{layout.file}: a header but no rows; add labelled rows")
    return values, labels


def _explain(cells: list[str], line: int, layout: _Layout) -> None:
    """Raise the error that fits the first feature that is no finite number, if there is one."""
    for position, cell in enumerate(cells):
        if finite_number(cell.strip()):
            continue
        where = layout.column(position + (position >= layout.label))
        what = f"{cell.strip()!r} is not a finite number" if cell.strip() else "the cell is empty"
        hint = "; if line 1 is a header, name its label column with --label" if line == 1 else ""
        raise DataFileError(
            f"{layout.file}:{line}: {where}: {what}; features must be numeric, so correct or "
            f"remove the row, encode or drop the column, or make it the label{hint}"
        )
