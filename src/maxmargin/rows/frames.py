"""Columns of frames (pandas, polars, pyarrow), and what they are to X, y and weights."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from maxmargin.errors import DataFileError, did_you_mean
from maxmargin.rows.request import Request
from maxmargin.rows.row_source import Part
from maxmargin.validation.data import as_labels

_FILL_ROWS = 4096  # of a block that is filled column by column, so that they stay in a core's cache
_SHOWN = 10  # names in a message
_EXACT = 2**53
_TEXTS = (nw.String, nw.Categorical, nw.Enum)


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
    return bool(nw.dependencies.is_into_dataframe(what)) or _is_batch(what)


def _is_batch(what: Any) -> bool:
    return module_root(what) == "pyarrow" and type(what).__name__ == "RecordBatch"


def _as_frame(frame: Any) -> nw.DataFrame[Any]:
    if _is_batch(frame):
        import pyarrow as pa

        frame = pa.Table.from_batches([frame])
    return nw.from_native(frame, eager_only=True)


def frame_names(frame: Any) -> list[Any]:
    """Return the names of the columns of a frame, of which some may be equal."""
    return list(frame.schema.names if module_root(frame) == "pyarrow" else frame.columns)


def cut_frame(frame: Any, begin: int, end: int) -> Any:
    """Return some rows of a frame."""
    return _as_frame(frame)[begin:end].to_native()


def _has_numbers(column: nw.Series[Any]) -> bool:
    return bool(column.dtype.is_numeric()) or column.dtype == nw.Boolean


def arrow_number_kind(kind: Any) -> str | None:
    """Return "float32", "number", or None for a type of Arrow that has no numbers."""
    import pyarrow as pa

    t = pa.types
    if t.is_float32(kind):
        return "float32"
    numbers = (t.is_floating, t.is_integer, t.is_decimal, t.is_boolean)
    return "number" if any(test(kind) for test in numbers) else None


def _numbers_of(column: nw.Series[Any], dtype: Any, name: str) -> Any:
    """Return a column of numbers; NaN where one is missing."""
    if column.dtype == nw.Decimal:  # whose casts need not give the nearest number
        values = [np.nan if value is None else float(value) for value in column.to_list()]
        return np.array(values, dtype=dtype)
    there = column.drop_nulls()
    integers = column.dtype.is_integer() and len(there) > 0
    if integers and max(abs(there.max()), abs(there.min())) >= _EXACT:
        raise DataFileError(f"{name} holds {column.dtype}, of which not all are numbers of 53 bits")
    narrow = dtype == np.float32
    return column.cast(nw.Float32 if narrow else nw.Float64).to_numpy()


def _labels_of(column: nw.Series[Any], before: int) -> Any:
    """Return the labels in a column."""
    missing = column.is_null().to_numpy()
    if missing.any():
        row = before + int(np.argmax(missing))
        raise DataFileError(f"there is no label in row {row}; leave out rows without a label")
    if column.dtype not in _TEXTS:
        return as_labels(column.to_numpy())
    return as_labels(np.array(column.to_list()))  # categories may be numbers


def read_frame(frame: Any, plan: FrameColumns, before: int = 0) -> Part:
    """Return the rows of a frame; messages count rows from those before."""
    there = frame_names(frame)
    missing = [name for name in plan.wanted if name not in there]
    if missing:
        raise DataFileError(
            f"it has no column {missing[0]!r}.{did_you_mean(missing[0], map(str, there))}"
        )
    found = _as_frame(frame)
    columns = []
    for name in plan.features:
        column = found.get_column(name)
        if not _has_numbers(column):
            raise DataFileError(
                f"column {name!r} holds what is no number; encode it, or leave it out with columns="
            )
        if column.dtype != nw.Float32 and plan.dtype == np.float32:
            raise DataFileError(
                f"column {name!r} does not hold float32, but others do; make all parts alike"
            )
        columns.append(_numbers_of(column, plan.dtype, f"column {name!r}"))
    X = np.empty((len(found), len(plan.features)), plan.dtype)
    for begin in range(0, len(found), _FILL_ROWS):
        rows = slice(begin, begin + _FILL_ROWS)
        for j, numbers in enumerate(columns):
            X[rows, j] = numbers[rows]
    y = None if plan.label is None else _labels_of(found.get_column(plan.label), before)
    weight = None
    if plan.weight is not None:
        weight = _numbers_of(found.get_column(plan.weight), np.float64, "the weight")
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
    known = ", ".join([*map(repr, names[:_SHOWN]), *(["…"] if len(names) > _SHOWN else [])])
    hint = did_you_mean(wanted, map(str, names))
    raise DataFileError(f"{file}: {argument}={wanted!r} is not one of its columns ({known}).{hint}")


def names_if_texts(names: Iterable[Any]) -> tuple[str, ...] | None:
    """Return names if all of them are texts, as scikit-learn has it."""
    names = tuple(names)
    return names if all(isinstance(name, str) for name in names) else None


def frame_dtype(frame: Any, features: Iterable[Any]) -> Any:
    """Return float32 if all columns are, else float64."""
    found = _as_frame(frame)
    narrow = all(found.get_column(name).dtype == nw.Float32 for name in features)
    return np.dtype(np.float32 if narrow else np.float64)
