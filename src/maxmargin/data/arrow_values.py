"""Values of Arrow arrays as floats, whatever type Arrow gave them."""

from typing import Any, NamedTuple

import numpy as np

from maxmargin.errors import DataFileError

_EXACT = 2**53
_SECONDS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # units per second


class Values(NamedTuple):
    """Values of a typed column."""

    kind: str
    """"numbers", "dates" (days since 1970), "times" (hours), "flags" (0 and 1), "texts", or
    "nothing", if all are missing."""
    cells: Any
    """Float64 with NaN; texts, "" for those that are missing, of integers that floats merge."""


def read_values(array: Any, column: str, before: int = 0) -> Values:
    """Return the values of an array; messages name the column, and the row after those before."""
    import pyarrow as pa

    kind, t = array.type, pa.types
    if t.is_null(kind):
        return Values("nothing", np.full(len(array), np.nan))
    if t.is_boolean(kind):
        return Values("flags", _floats(array.cast(pa.int8())))
    if t.is_date(kind) or t.is_timestamp(kind) or t.is_time(kind):
        counts = _floats(array.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
        if t.is_time(kind):
            return Values("times", counts / (_SECONDS[kind.unit] * 3600))
        unit = "ms" if t.is_date64(kind) else getattr(kind, "unit", None)
        return Values("dates", counts / (_SECONDS[unit] * 86400) if unit else counts)
    if t.is_decimal(kind):  # of which pyarrow makes floats that are not the nearest
        cells = [np.nan if value is None else float(value) for value in array.to_pylist()]
        numbers = np.array(cells, dtype=np.float64)
    elif t.is_floating(kind) or t.is_integer(kind):
        numbers = _floats(array)
    else:
        raise DataFileError(
            f"{column} holds {kind}, which is neither numbers nor words nor dates; make columns of "
            "single values of it, or leave it out"
        )
    if t.is_integer(kind) and np.nanmax(np.abs(numbers), initial=0) >= _EXACT:
        return Values("texts", ["" if value is None else str(value) for value in array.to_pylist()])
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise DataFileError(
            f"{column}: {numbers[infinite[0]]} in row {before + infinite[0]} is not a finite "
            "number; correct it, or make it null"
        )
    return Values("numbers", numbers)


def _floats(array: Any) -> Any:
    import pyarrow as pa

    return array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
