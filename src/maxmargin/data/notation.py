"""The cells of one column, as people write them, made into numbers or left as words.

Everything is decided over the different texts of a complete column, never cell by cell: a column
whose cells all read as numbers in one notation is a column of numbers, likewise for dates, and
anything else is a column of words. Cells of later files are read in the notation that was found.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats

NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
MISSING = frozenset(
    ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "+nan", "null", "none", "?", "-", ".")
)
# As a label, "none" is a class, and so is "-" beside "+".
NO_LABEL = MISSING - {"none", "-", "."}

# A column of numbers or dates with a few other texts in it has mistakes; one with fewer different
# numbers, or more different other texts, holds codes.
_STRAYS = 5
_NUMBERS_AMONG_STRAYS = 20

_CURRENCY = (*"$€£¥₹", "USD", "EUR", "GBP", "CHF", "JPY", "INR", "CNY")
_MONEY = "(?:" + "|".join(map(re.escape, _CURRENCY)) + ")"
_LIKE_NUMBER = rf"{_MONEY}?\s?[+-]?\s?{_MONEY}?\s?\.?\d[\d.,' ]*(?:[eE][+-]?\d+)?\s?(?:%|{_MONEY})?"
_DOTTED = r"[+-]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)"
_SPACED = r"[+-]?(?:\d+|[1-9]\d{0,2}(?: \d{3})+|[1-9]\d{0,2}(?:'\d{3})+)"
# How numbers look in a notation, what separates their thousands, and their decimal sign.
_POINTS = {
    (): (NUMBER, "", "."),
    ("comma groups",): (rf"[+-]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?|{NUMBER}", ",", "."),
    ("decimal comma",): (r"[+-]?(?:\d+(?:,\d+)?|,\d+)(?:[eE][+-]?\d+)?", "", ","),
    ("dot groups",): (_DOTTED, r"\.", ","),
    ("dot groups", "decimal comma"): (rf"{_DOTTED}(?:,\d+)?|[+-]?,\d+", r"\.", ","),
    ("space groups",): (rf"{_SPACED}(?:\.\d*)?|{NUMBER}", "[ ']", "."),
    ("space groups", "decimal comma"): (rf"{_SPACED}(?:,\d*)?", "[ ']", ","),
}
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?"
_EITHER_ORDER = r"\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
_DAY = rf"(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{4}}[-/]\d{{1,2}}|{_EITHER_ORDER})"
_LIKE_DATE = rf"(?:{_DAY}(?:[T ]{_TIME}Z?)?|{_TIME})"
_ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?"
_ORDERS = {"day first": r"\3-\2-\1", "month first": r"\3-\1-\2"}
_MOMENTS = (("times",), ("dates",), *(("dates", order) for order in _ORDERS))
_HOUR = 3600 * 10**6  # microseconds, in which times are counted, so that one division is all
_is_number = re.compile(NUMBER, re.ASCII).fullmatch
_is_value = re.compile(f"{_LIKE_NUMBER}|{_LIKE_DATE}", re.ASCII).fullmatch
_TYPED = {"\u2212": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'"}

# What is noted of columns whose notation has one of these words.
SENTENCES: dict[tuple[str, ...], str] = {
    ("dates",): "Dates in {} become days since 1970.",
    ("times",): "Times of day in {} become hours.",
    ("percent",): "Percent signs in {} are dropped: 12 % is read as 12.",
    _CURRENCY: "Currency signs in {} are dropped.",
    ("space groups", "dot groups"): "Separators between thousands in {} are dropped.",
    ("comma groups",): "Commas in {} separate thousands: 1,234 is read as 1234.",
    ("decimal comma",): "Commas in {} are decimal commas: 1,234 is read as 1.234.",
}
_WITH = {
    "percent": "a percent sign",
    "space groups": "spaces between thousands",
    "comma groups": "commas between thousands",
    "dot groups": "dots between thousands",
    "decimal comma": "decimal commas",
    **{sign: f"the sign {sign}" for sign in _CURRENCY},
}


class CellError(ValueError):
    """A column cannot be read; ``cell`` is the text at fault, where a single one is."""

    def __init__(self, message: str, cell: str | None = None) -> None:
        super().__init__(message)
        self.cell = cell


class Column(NamedTuple):
    """A column that has been read."""

    values: Any
    """float64 with NaN for missing cells; of words, their places among all, -1 for missing ones."""
    notation: tuple[str, ...] = ()
    """How the cells are written, where that is not as plain numbers: words of ``SENTENCES``."""
    words: list[str] | None = None
    """The different words, if the cells are words."""

    @property
    def missing(self) -> Any:
        """A mask of the cells that are missing."""
        return np.isnan(self.values) if self.words is None else self.values < 0

    @property
    def distinct(self) -> int:
        """The number of different values that are not missing."""
        if self.words is None:
            return len(np.unique(self.values[~self.missing]))
        return int(np.count_nonzero(np.bincount(self.values + 1, minlength=1)[1:]))

    def cells(self) -> Any:
        """Return floats with NaN, or an array of str with None, for missing cells."""
        return self.values if self.words is None else np.array([*self.words, None])[self.values]


def check_notation(notation: tuple[str, ...]) -> None:
    """Raise ValueError if no column can be written so."""
    if _split(notation)[1] not in _POINTS and notation not in _MOMENTS:
        raise ValueError(f"the notation {list(notation)} is unknown, or contradicts itself")


def _split(notation: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """Return the sign of a notation, if it has one, and the rest."""
    signed = bool(notation) and notation[0] in ("percent", *_CURRENCY)
    return (notation[0], notation[1:]) if signed else (None, notation)


# ----------------------------------------------------------------------------- single texts


def finite_number(text: str) -> bool:
    """Tell whether text is a plain decimal number within float64's range.

    Stricter than ``float``: no nan, no infinity, no underscores, no digits of other scripts.
    """
    return _is_number(text) is not None and math.isfinite(float(text))


def is_infinite(text: str) -> bool:
    """Tell whether text says infinity, or a number too large for float64."""
    try:
        return math.isinf(float(text))
    except ValueError:
        return False


def is_missing(cell: str) -> bool:
    """Tell whether a cell says that there is no value."""
    return cell.strip().lower() in MISSING


def resembles_value(text: str) -> bool:
    """Tell whether a text looks like a number or a date, so that it is no name of a column."""
    return _is_value("".join(_TYPED.get(sign, sign) for sign in text)) is not None


def label_array(texts: Sequence[str]) -> Any:
    """Return integers if all labels are whole numbers, else floats, else the strings themselves."""
    if not all(map(_is_number, texts)):
        return np.array(texts)
    try:
        # int() first: floats would merge long identifiers.
        return np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return whole_numbers(np.array([float(text) for text in texts]))


def whole_numbers(values: Any) -> Any:
    """Return integers if all values are whole and exact as floats, else the values."""
    whole = bool(np.all((values == np.trunc(values)) & (np.abs(values) < 2.0**53)))
    return values.astype(np.int64) if whole else values


# ----------------------------------------------------------------------------- columns


def encode(cells: Any, missing: frozenset[str] = MISSING) -> tuple[Any, Any]:
    """Return the place of each cell among the different texts, -1 for missing ones, and these.

    Blanks around a text do not count.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(cells, pa.ChunkedArray):
        cells = cells.unify_dictionaries().combine_chunks()
    coded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
    stripped = pc.utf8_trim_whitespace(coded.dictionary).dictionary_encode()
    texts = stripped.dictionary
    absent = pc.is_in(pc.utf8_lower(texts), pa.array(sorted(missing), texts.type))
    present = ~_numpy(absent)
    places = np.where(present, np.cumsum(present) - 1, -1)[_numpy(stripped.indices)]
    codes = _numpy(coded.indices.fill_null(len(places)))
    return np.append(places, -1)[codes], texts.filter(pc.invert(absent))


def read_column(cells: Any, delimiter: str | None = None) -> Column:
    """Return the values of a column; the file's delimiter tells whose commas its cells have."""
    codes, texts = encode(cells)
    notation = _judge_numbers(texts, delimiter)
    notation = _judge_dates(texts) if notation is None else notation
    if notation is None:
        _refuse_strays(texts)
        return Column(codes, (), texts.to_pylist())
    return Column(np.append(_read_texts(texts, notation), np.nan)[codes], notation)


def reread_column(cells: Any, words: bool, notation: tuple[str, ...]) -> Any:
    """Return floats or words for more cells of a column whose first ones have been read."""
    codes, texts = encode(cells)
    if words:
        return Column(codes, (), texts.to_pylist()).cells()
    return np.append(_read_texts(texts, notation), np.nan)[codes]


def reread_labels(texts: Any, kind: str, notation: tuple[str, ...] = ()) -> Any:
    """Return the labels that different texts are: "integers", "numbers" or "words", as before."""
    if notation:
        return reread_column(texts, False, notation)
    found = texts.to_pylist()
    if kind == "words":
        return np.array(found, dtype=np.str_)
    integers = kind == "integers"
    stray = next((t for t in found if not finite_number(t) or (integers and float(t) % 1)), None)
    if stray is None:
        return label_array(found) if integers else np.array(list(map(float, found)))
    wanted = "a whole number" if integers else "a finite number"
    raise CellError(
        f"the label {stray!r} is not {wanted}, as the labels were in training; correct it", stray
    )


def _read_texts(texts: Any, notation: tuple[str, ...]) -> Floats:
    if notation in _MOMENTS:
        return _read_moments(texts, notation)
    values, fits = _respell(texts, notation)
    if not fits.all():
        text = texts[int(np.argmin(fits))].as_py()
        written = " and ".join(_WITH[word] for word in notation) or "a decimal point"
        raise CellError(
            f"{text!r} is not a number with {written}, as the column had them when the model was "
            "trained; write it so, or leave the cell empty",
            text,
        )
    if np.isinf(values).any():
        text = texts[int(np.argmax(np.isinf(values)))].as_py()
        raise CellError(f"{text!r} is not a finite number; correct it", text)
    return values


def _refuse_strays(texts: Any) -> None:
    found = texts.to_pylist()
    like_dates = _matches(texts, _LIKE_DATE)
    dates = texts.filter(like_dates)
    like_dates[like_dates] = np.any([~np.isnan(_count(dates, order)) for order in _ORDERS], axis=0)
    like_numbers = _matches(_retyped(texts), _LIKE_NUMBER)
    for kind, fits in (("numbers", like_numbers), ("dates", like_dates)):
        strays = [found[k] for k in np.flatnonzero(~fits)]
        if 0 < len(strays) < len(found) and all(map(is_infinite, strays)):
            raise CellError(f"{strays[0]!r} is not a finite number; correct it", strays[0])
        if len(found) - len(strays) <= _NUMBERS_AMONG_STRAYS:
            continue
        if 0 < len(strays) <= max(_STRAYS, 0.05 * len(found)):
            raise CellError(
                f"{strays[0]!r} appears among {kind}; correct it, or leave the cell empty",
                strays[0],
            )
        if kind == "numbers" and not strays and any(text.count(",") == 1 for text in found):
            raise CellError(
                "its numbers are not all written in the same way; write them with a decimal point "
                "and nothing between thousands"
            )


def _numpy(array: Any) -> Any:
    return array.to_numpy(zero_copy_only=False)


def _matches(texts: Any, pattern: str) -> Any:
    import pyarrow.compute as pc

    return _numpy(pc.match_substring_regex(texts, f"^(?:{pattern})$")).copy()


def _replaced(texts: Any, pattern: str, new: str = "") -> Any:
    import pyarrow.compute as pc

    return pc.replace_substring_regex(texts, pattern, new)


# ----------------------------------------------------------------------------- numbers


def _retyped(texts: Any) -> Any:
    import pyarrow.compute as pc

    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    for typed, plain in _TYPED.items():
        texts = pc.replace_substring(texts, typed, plain)
    return texts


def _judge_numbers(texts: Any, delimiter: str | None) -> tuple[str, ...] | None:
    """Return the notation that all numbers share; None if there is none, or not all are numbers."""
    bare = _retyped(texts)
    if not _matches(bare, _LIKE_NUMBER).all():
        return None
    signs = [sign for sign in _CURRENCY if _matches(bare, f".*{re.escape(sign)}.*").any()]
    if len(texts) and _matches(bare, ".*%").all():
        signs = ["percent"]
    if len(signs) == 1:
        bare = _without_sign(bare, signs[0])
    fitting = (point for point in _POINTS if _matches(bare, _POINTS[point][0]).all())
    point = next(fitting, None)
    if point == ("comma groups",):
        other = next(fitting, None)
        point = other if other and not _commas_group(bare, delimiter) else point
    return None if point is None or len(signs) > 1 else (*signs, *point)


def _without_sign(texts: Any, sign: str) -> Any:
    return _replaced(texts, r"\s*%$" if sign == "percent" else rf"\s?{re.escape(sign)}\s?")


def _commas_group(texts: Any, delimiter: str | None) -> bool:
    if delimiter in (",", None):
        return True
    if delimiter == ";":  # what spreadsheets write where the comma is the decimal sign
        return False
    text = next(text for text in texts.to_pylist() if "," in text)
    raise CellError(
        f"{text!r} may mean {text.replace(',', '')} or {text.replace(',', '.')}; "
        "write the column's numbers with a decimal point and nothing between thousands"
    )


def _respell(texts: Any, notation: tuple[str, ...]) -> tuple[Floats, Any]:
    """Return the numbers that texts are in a notation, and a mask of those that are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _retyped(texts)
    sign, point = _split(notation)
    pattern, between, decimal = _POINTS[point]
    fits = np.ones(len(texts), dtype=bool)
    if sign is not None:
        fits = _matches(texts, _LIKE_NUMBER) & (_matches(texts, ".*%") == (sign == "percent"))
        texts = _without_sign(texts, sign)
    fits &= _matches(texts, pattern)
    if between:
        texts = _replaced(texts, between)
    if decimal == ",":
        texts = pc.replace_substring(texts, ",", ".")
    plain = pc.if_else(pa.array(fits, pa.bool_()), texts, pa.scalar(None, texts.type))
    return _numpy(pc.cast(plain, pa.float64())), fits


# ----------------------------------------------------------------------------- dates


def _count(texts: Any, order: str) -> Floats:
    """Return dates as microseconds since 1970, and times since midnight; NaN if there is no such.

    Texts look like dates or times; ``order`` tells what 3/4/2020 is.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    moment = pa.timestamp("us")
    if not _matches(texts, _ISO_DATE).all():
        for pattern, new in (
            (rf"^({_TIME})$", r"1970-01-01 \1"),
            (r"^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})", _ORDERS[order]),
            (r"^(\d{4})[-/.](\d{1,2})[-/.]", r"\1-\2-"),
            (r"^(\d{4})[-/](\d{1,2})($|[T ])", r"\1-\2-01\3"),
            (r"-(\d)\b", r"-0\1"),
            (r"[T ](\d):", r" 0\1:"),
            ("Z$", ""),
        ):
            texts = _replaced(texts, pattern, new)
    try:
        return np.asarray(_numpy(pc.cast(texts, moment).cast(pa.int64())), dtype=np.float64)
    except pa.ArrowInvalid:
        found: list[float] = []
    for text in texts:
        try:
            found.append(text.cast(moment).value)
        except pa.ArrowInvalid:
            found.append(np.nan)
    return np.array(found)


def _judge_dates(texts: Any) -> tuple[str, ...] | None:
    times = _matches(texts, _TIME)
    if not _matches(texts, _LIKE_DATE).all() or (times.any() and not times.all()):
        return None
    day, month = (_count(texts, order) for order in _ORDERS)
    no_day, no_month = np.isnan(day), np.isnan(month)
    if np.any(no_day & no_month):
        return None  # the 30th of February
    if np.array_equal(day, month):
        return ("times",) if times.all() else ("dates",)
    if no_day.any() and no_month.any():
        first, second = texts[int(np.argmax(no_month))], texts[int(np.argmax(no_day))]
        raise CellError(
            f"{first.as_py()!r} has the day first and {second.as_py()!r} the month; write all "
            "dates as 2020-12-31"
        )
    # Dots separate dates only where the day comes first.
    dots = _matches(texts.filter(day != month), r".*\..*\..*").all()
    if no_month.any() or (dots and not no_day.any()):
        return ("dates", "day first")
    if no_day.any():
        return ("dates", "month first")
    raise CellError(
        f"no date tells whether {texts[int(np.argmax(day != month))].as_py()!r} has the day or the "
        "month first; write the dates as 2020-12-31"
    )


def _read_moments(texts: Any, notation: tuple[str, ...]) -> Floats:
    """Return days since 1970, or hours."""
    kind, *orders = notation
    fits = _matches(texts, _LIKE_DATE) & (_matches(texts, _TIME) == (kind == "times"))
    known = texts.filter(fits)
    counts = dict(zip(_ORDERS, (_count(known, order) for order in _ORDERS), strict=True))
    values = counts[orders[0] if orders else "day first"]
    lost = np.isnan(values)
    unclear = np.zeros(len(known), bool) if orders else ~lost & (values != counts["month first"])
    if fits.all() and not lost.any() and not unclear.any():
        return values / (_HOUR if kind == "times" else 24 * _HOUR)
    if not fits.all():
        text = texts[int(np.argmin(fits))].as_py()
    else:
        text = known[int(np.argmax(lost | unclear))].as_py()
    why = f"{text!r} is not a {'date' if kind == 'dates' else 'time of day'}; correct it, or leave"
    why += " the cell empty"
    if fits.all() and re.match(_EITHER_ORDER, text):
        why = f"whether {text!r} has the day or the month first is not known from training"
        if orders:
            why = f"there is no date {text!r} with the {orders[0]}, as dates were in training"
        why += "; write the dates as 2020-12-31"
    raise CellError(why, text)
