"""Values of Arrow arrays as floats or texts, whatever type Arrow gave them."""

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
    """Texts, "" for those that are missing; else float64 with NaN."""
    type: str
    """In Arrow's words."""

    def texts(self) -> list[str]:
        """Return flags, or nothing, as texts."""
        spelt = {1.0: "true", 0.0: "false"}
        return [spelt.get(value, "") for value in self.cells.tolist()]


def read_values(array: Any, column: str, before: int = 0) -> Values:
    """Return the values of an array; messages name the column, and the row after those before."""
    import pyarrow as pa

    kind, t = array.type, pa.types
    said = str(kind)
    if t.is_dictionary(kind):
        array, kind = array.cast(kind.value_type), kind.value_type
    if t.is_null(kind):
        return Values("nothing", np.full(len(array), np.nan), said)
    if t.is_boolean(kind):
        return Values("flags", _floats(array), said)
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return Values("texts", [text or "" for text in array.to_pylist()], said)
    if t.is_date(kind) or t.is_timestamp(kind):
        return Values("dates", _days(array, kind), said)
    if t.is_time(kind):
        return Values("times", _counts(array) / (_SECONDS[kind.unit] * 3600), said)
    numbers = _numbers(array, kind)
    if numbers is None:
        raise DataFileError(
            f"{column} holds {said}, which is neither numbers nor words nor dates; make columns of "
            "single values of it, or leave it out"
        )
    if isinstance(numbers, list):
        return Values("texts", numbers, said)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise DataFileError(
            f"{column}: {numbers[infinite[0]]} in row {before + infinite[0]} is not a finite "
            "number; correct it, or make it null"
        )
    return Values("numbers", numbers, said)


def _numbers(array: Any, kind: Any) -> Any:
    """Return numbers as floats, or as texts if floats do not hold them; None if they are none."""
    import pyarrow as pa

    if pa.types.is_floating(kind):
        return _floats(array)
    if pa.types.is_decimal(kind):  # of which pyarrow makes floats that are not the nearest
        values = [np.nan if value is None else float(value) for value in array.to_pylist()]
        return np.array(values, dtype=np.float64)
    if not pa.types.is_integer(kind):
        return None
    values = _floats(array)
    if np.abs(values[~np.isnan(values)]).max(initial=0) < _EXACT:
        return values
    return ["" if value is None else str(value) for value in array.to_pylist()]


def _floats(array: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    return array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _counts(array: Any) -> Any:
    """Return dates and times as floats that count units."""
    import pyarrow as pa

    narrow = array.type.bit_width == 32
    return _floats(array.cast(pa.int32() if narrow else pa.int64()))


def _days(array: Any, kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_date32(kind):
        return _counts(array)
    unit = "ms" if pa.types.is_date64(kind) else kind.unit
    return _counts(array) / (_SECONDS[unit] * 86400)
