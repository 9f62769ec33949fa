"""Columns of frames (pandas, polars, pyarrow), and what they are to X, y and weights."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.errors import DataFileError, did_you_mean
from maxmargin.rows.arrow_values import read_values
from maxmargin.rows.row_source import Part, Request, as_labels

_FILL_ROWS = 4096  # of a block that is filled column by column, so that they stay in a core's cache
_SHOWN = 10  # names in a message


class FrameColumns(NamedTuple):
    """Which columns of a frame are which."""

    features: tuple[Any, ...]
    label: Any
    weight: Any
    dtype: Any

    @property
    def wanted(self) -> list[Any]:
        """The columns that are read."""
        extra = [name for name in (self.label, self.weight) if name is not None]
        return [*self.features, *(name for name in extra if name not in self.features)]


def module_root(what: Any) -> str:
    """Return the name of the package in which the class of an object is."""
    return type(what).__module__.partition(".")[0]


def is_frame(what: Any) -> bool:
    """Tell whether something is a frame of pandas, polars or pyarrow, without importing these."""
    known = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
    root = module_root(what)
    return type(what).__name__ == known.get(root) or (
        root == "pyarrow" and type(what).__name__ == "RecordBatch"
    )


def frame_names(frame: Any) -> list[Any]:
    """Return the names of the columns of a frame."""
    return list(frame.schema.names) if module_root(frame) == "pyarrow" else list(frame.columns)


def cut_frame(frame: Any, begin: int, end: int) -> Any:
    """Return some rows of a frame."""
    if module_root(frame) == "pandas":
        return frame.iloc[begin:end]
    return frame.slice(begin, end - begin)


def _column_of(frame: Any, name: Any) -> Any:
    return frame.column(name) if module_root(frame) == "pyarrow" else frame[name]


def _number_kind(column: Any) -> str | None:
    """Return "float32", "number", or None for a column that has no numbers."""
    root = module_root(column)
    if root == "pyarrow":
        return arrow_number_kind(column.type)
    said = str(column.dtype).lower()
    if root == "polars":
        numbers = column.dtype.is_numeric() or said == "boolean"
    else:
        from pandas.api.types import is_numeric_dtype

        numbers = is_numeric_dtype(column.dtype)
    return None if not numbers else "float32" if said == "float32" else "number"


def arrow_number_kind(kind: Any) -> str | None:
    """Return "float32", "number", or None for a type that is none."""
    import pyarrow as pa

    t = pa.types
    if t.is_float32(kind):
        return "float32"
    numbers = (t.is_floating, t.is_integer, t.is_decimal, t.is_boolean)
    return "number" if any(test(kind) for test in numbers) else None


def _numbers_of(column: Any, dtype: Any, name: str) -> Any:
    """Return a column of numbers; NaN where one is missing."""
    root = module_root(column)
    if root == "pandas":
        return column.to_numpy(dtype=dtype, na_value=np.nan)
    if root == "polars":
        import polars as pl

        return column.cast(pl.Float32 if dtype == np.float32 else pl.Float64).to_numpy()
    import pyarrow as pa

    if pa.types.is_float32(column.type) or pa.types.is_float64(column.type):
        return (
            column.to_numpy(zero_copy_only=False)
            if isinstance(column, pa.Array)
            else column.to_numpy()
        )
    values = read_values(column, name)
    if values.kind not in ("numbers", "flags", "nothing"):
        raise DataFileError(f"{name} holds {values.type}, of which not all are numbers of 53 bits")
    return values.cells


def _labels_of(column: Any, before: int) -> Any:
    """Return the labels in a column."""
    root = module_root(column)
    missing = (
        column.isna().to_numpy()
        if root == "pandas"
        else column.is_null().to_numpy(
            **({"zero_copy_only": False} if type(column).__name__ == "Array" else {})
        )
    )
    missing = np.asarray(missing)
    if missing.any():
        row = before + int(np.flatnonzero(missing)[0])
        raise DataFileError(f"there is no label in row {row}; leave out rows without a label")
    if root == "pandas":
        return as_labels(column.to_numpy())
    if root == "polars":
        named = str(column.dtype).startswith(("Categorical", "Enum"))
        return as_labels(np.array(column.to_list(), dtype=str) if named else column.to_numpy())
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if any(test(column.type) for test in texts):
        return np.array(column.to_pylist(), dtype=str)
    return as_labels(
        column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    )


def read_frame(frame: Any, plan: FrameColumns, before: int = 0) -> Part:
    """Return the rows of a frame; messages count rows from those before."""
    there = frame_names(frame)
    missing = [name for name in plan.wanted if name not in there]
    if missing:
        raise DataFileError(
            f"it has no column {missing[0]!r}.{did_you_mean(missing[0], map(str, there))}"
        )
    n = len(frame)
    X = np.empty((n, len(plan.features)), plan.dtype)
    columns = []
    for name in plan.features:
        column = _column_of(frame, name)
        kind = _number_kind(column)
        if kind is None:
            raise DataFileError(
                f"column {name!r} holds what is no number; encode it, or leave it out with columns="
            )
        if kind != "float32" and plan.dtype == np.float32:
            raise DataFileError(
                f"column {name!r} does not hold float32, but others do; make all parts alike"
            )
        columns.append(_numbers_of(column, plan.dtype, f"column {name!r}"))
    for begin in range(0, n, _FILL_ROWS):
        rows = slice(begin, begin + _FILL_ROWS)
        for j, numbers in enumerate(columns):
            X[rows, j] = numbers[rows]
    y = None if plan.label is None else _labels_of(_column_of(frame, plan.label), before)
    weight = None
    if plan.weight is not None:
        weight = _numbers_of(_column_of(frame, plan.weight), np.float64, "the weight")
    return Part(X, y, weight)


def choose_columns(names: Sequence[Any], request: Request, file: str, dtype: Any) -> FrameColumns:
    """Find the label, the weight and the features among the names of columns."""
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise DataFileError(
            f"{file}: two columns are named {twice[0]!r}; give them different names"
        )
    label = None if request.label is None else _find_name(names, request.label, "label", file)
    weight = None if request.weight is None else _find_name(names, request.weight, "weight", file)
    if request.columns is None:
        features = [name for name in names if name not in (label, weight)]
    else:
        features = [_find_name(names, name, "columns", file) for name in request.columns]
        if label is not None and label in features:
            raise ValueError(f"columns= has the label {label!r}, from which it would be predicted")
    if not features:
        raise DataFileError(f"{file}: no columns are left for X")
    return FrameColumns(tuple(features), label, weight, dtype)


def _find_name(names: Sequence[Any], wanted: Any, argument: str, file: str) -> Any:
    if wanted in names:
        return wanted
    number = isinstance(wanted, int) and not isinstance(wanted, bool)
    if number and wanted and -len(names) <= wanted <= len(names):
        return names[wanted - 1 if wanted > 0 else wanted]
    known = ", ".join(repr(name) for name in names[:_SHOWN]) + (
        ", …" if len(names) > _SHOWN else ""
    )
    hint = did_you_mean(wanted, map(str, names))
    raise DataFileError(f"{file}: {argument}={wanted!r} is not one of its columns ({known}).{hint}")


def names_if_texts(names: Iterable[Any]) -> tuple[str, ...] | None:
    """Return names if all of them are texts, as scikit-learn has it."""
    names = tuple(names)
    return names if all(isinstance(name, str) for name in names) else None


def frame_dtype(frame: Any, features: Iterable[Any]) -> Any:
    """Return float32 if all columns are, else float64."""
    kinds = {_number_kind(_column_of(frame, name)) for name in features}
    return np.dtype(np.float32 if kinds == {"float32"} else np.float64)
