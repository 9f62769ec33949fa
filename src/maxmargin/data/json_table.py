"""JSON that holds a table: records, columns, rows with their names, or a record a line."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.data.table import Table, find_label
from maxmargin.errors import DataFileError

_SHAPES = 'a list of records, an object of columns, {"columns": …, "data": …}, or a record a line'


class _Found(NamedTuple):
    """Rows or columns in the values of a file."""

    names: list[str] | None
    columns: list[list[Any]]
    shape: str


def read_json(content: str, file: str, label: str | int | None, lines: bool) -> Table:
    """Return the table that JSON is; ``lines`` says that each line is a record."""
    if lines:
        numbers, values = _line_values(content, file)
        found: _Found | None = _from_rows(values, "a record a line")
    else:
        found = _from_value(_loaded(content, file, 0))
        numbers = list(range(1, 1 + (len(found.columns[0]) if found and found.columns else 0)))
    if found is None:
        raise DataFileError(f"{file}: this JSON holds no table; what is read is {_SHAPES}")
    if not numbers:
        raise DataFileError(f"{file}: no rows; it needs at least one labelled row")
    if len(found.columns) < 2:
        raise DataFileError(f"{file}: only one column; a table needs a label and a feature")
    position = find_label(found.names, len(found.columns), label, file)
    table = Table(
        file,
        found.names,
        found.columns,
        position,
        np.array(numbers, dtype=np.int64),
        f"JSON, {found.shape}",
        "line" if lines else "record",
    )
    return table._replace(columns=[_cells(table, j) for j in range(len(found.columns))])


def _loaded(content: str, file: str, before: int) -> Any:
    """Return values whose numbers are the texts they are written as, like cells of a CSV file."""
    try:
        return json.loads(content, parse_float=str, parse_int=str, parse_constant=str)
    except json.JSONDecodeError as wrong:
        raise DataFileError(
            f"{file}:{before + wrong.lineno}: not JSON ({wrong.msg}, character {wrong.colno} of "
            "the line); correct it"
        ) from wrong
    except RecursionError as deep:
        raise DataFileError(f"{file}: this JSON is nested too deeply for a table") from deep


def _line_values(content: str, file: str) -> tuple[list[int], list[Any]]:
    numbered = [(k, line) for k, line in enumerate(content.split("\n"), 1) if line.strip()]
    return [k for k, _ in numbered], [_loaded(line, file, k - 1) for k, line in numbered]


def _from_value(value: Any) -> _Found | None:
    if isinstance(value, list):
        return _from_rows(value, "a list of records")
    if not isinstance(value, dict) or not value:
        return None
    names, data = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(data, list):
        return _with_names(names, data)
    for shape in (_from_columns, _from_column_objects, _from_one_list):
        found = shape(value)
        if found:
            return found
    return None


def _from_rows(rows: list[Any], shape: str) -> _Found | None:
    if rows and all(isinstance(row, dict) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        return _Found(names, [[row.get(name) for row in rows] for name in names], shape)
    if rows and all(isinstance(row, list) for row in rows) and len({len(row) for row in rows}) == 1:
        return _Found(None, [list(column) for column in zip(*rows, strict=True)], "a list of rows")
    return None


def _with_names(names: list[Any], data: list[Any]) -> _Found | None:
    found = _from_rows(data, "columns and data")
    if found is None or found.names or len(found.columns) != len(names):
        return None
    return _Found([str(name) for name in names], found.columns, "columns and data")


def _from_columns(value: dict[str, Any]) -> _Found | None:
    columns = list(value.values())
    if not all(isinstance(column, list) for column in columns):
        return None
    if len({len(column) for column in columns}) != 1 or len(columns) < 2:
        return None
    return _Found(list(value), columns, "an object of columns")


def _from_column_objects(value: dict[str, Any]) -> _Found | None:
    """Read columns, or rows, that are objects themselves, as pandas writes them."""
    parts = list(value.values())
    if not all(isinstance(part, dict) for part in parts):
        return None
    if all(name.isdigit() for name in value) and not all(name.isdigit() for name in parts[0]):
        return _from_rows(parts, "an object of records")
    rows = list(dict.fromkeys(row for part in parts for row in part))
    columns = [[part.get(row) for row in rows] for part in parts]
    return _Found(list(value), columns, "an object of columns")


def _from_one_list(value: dict[str, Any]) -> _Found | None:
    lists = [part for part in value.values() if isinstance(part, list)]
    return _from_rows(lists[0], "a list of records") if len(lists) == 1 else None


def _cells(table: Table, index: int) -> Sequence[str]:
    """Return a column's values as texts."""
    column = table.columns[index]
    for row, value in enumerate(column):
        if isinstance(value, dict | list):
            raise DataFileError(
                f"{table.place(row)}: {table.column(index)} holds another list or object; "
                "make columns of single values of it, or leave it out"
            )
    return [_text(value) for value in column]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else value
