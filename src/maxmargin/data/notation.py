"""The cells of one column, as people write them, made into numbers or left as words.

Everything is decided over the different texts of a complete column, never cell by cell: a column
whose cells all read as numbers in one notation is a column of numbers, likewise for dates, and
anything else is a column of words. Texts are Arrow arrays; what is done to numbers is done to all
of them at once.
"""

import datetime
import math
import re
from collections.abc import Callable, Sequence
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
_ENGLISH = rf"[+-]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?|{NUMBER}"
_EUROPEAN = r"[+-]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)?(?:,\d+)?(?:[eE][+-]?\d+)?"
_SPACED = r"[+-]?(?:\d+|[1-9]\d{0,2}(?: \d{3})+|[1-9]\d{0,2}(?:'\d{3})+)(?:[.,]\d*)?" + f"|{NUMBER}"
_is_number = re.compile(NUMBER, re.ASCII).fullmatch
_resembles_number = re.compile(_LIKE_NUMBER, re.ASCII).fullmatch
_TYPED = {"\u2212": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'"}


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
    def counts(self) -> Any:
        """In how many cells each of the words stands."""
        return np.bincount(self.values[~self.missing], minlength=len(self.words or ()))

    @property
    def distinct(self) -> int:
        """The number of different values that are not missing."""
        if self.words is not None:
            return int(np.count_nonzero(self.counts))
        return len(np.unique(self.values[~self.missing]))

    def cells(self) -> Any:
        """Return floats with NaN, or an array of str with None, for missing cells."""
        return self.values if self.words is None else np.array([*self.words, None])[self.values]


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
_is_notation = re.compile(
    rf"(?:dates (?:(?:day|month) first )?|times |(?:(?:percent|{_MONEY}) )?(?:space groups )?"
    r"(?:comma groups |(?:dot groups )?(?:decimal comma )?))"
).fullmatch


def check_notation(notation: tuple[str, ...]) -> None:
    """Raise ValueError if no column can be written so."""
    if not _is_notation("".join(f"{word} " for word in notation)):
        raise ValueError(f"the notation {list(notation)} is unknown, or contradicts itself")


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
    plain = "".join(_TYPED.get(sign, sign) for sign in text)
    return _resembles_number(plain) is not None or _moment(text) is not None


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
        cells = cells.combine_chunks()
    coded = cells.dictionary_encode()
    stripped = pc.utf8_trim_whitespace(coded.dictionary).dictionary_encode()
    texts = stripped.dictionary
    absent = pc.is_in(pc.utf8_lower(texts), pa.array(sorted(missing), texts.type))
    present = ~_numpy(absent)
    places = np.where(present, np.cumsum(present) - 1, -1)[_numpy(stripped.indices)]
    codes = _numpy(coded.indices.fill_null(len(places)))
    return np.append(places, -1)[codes], texts.filter(pc.invert(absent))


def _numpy(array: Any) -> Any:
    return array.to_numpy(zero_copy_only=False)


def read_column(cells: Any, delimiter: str | None = None) -> Column:
    """Return the values of a column; the file's delimiter tells whose commas its cells have."""
    codes, texts = encode(cells)
    found = _read_numbers(texts, delimiter) or _read_dates(texts)
    if found is None:
        _refuse_strays(texts)
        return Column(codes, (), texts.to_pylist())
    return Column(np.append(found[0], np.nan)[codes], found[1])


def reread_column(cells: Any, words: bool, notation: tuple[str, ...]) -> Any:
    """Return floats or words for more cells of a column whose first ones have been read."""
    codes, texts = encode(cells)
    if words:
        return Column(codes, (), texts.to_pylist()).cells()
    moments = "dates" in notation or "times" in notation
    values = _reread_moments(texts, notation) if moments else _reread_numbers(texts, notation)
    return np.append(values, np.nan)[codes]


def reread_labels(texts: Any, kind: str, notation: tuple[str, ...] = ()) -> Any:
    """Return the labels that different texts are: "integers", "numbers" or "words", as before."""
    if notation:
        return reread_column(texts, False, notation)
    found = texts.to_pylist()
    if kind == "words":
        return np.array(found, dtype=np.str_)
    whole = kind == "integers"
    stray = next((t for t in found if not finite_number(t) or (whole and float(t) % 1)), None)
    if stray is None:
        return label_array(found) if whole else np.array(list(map(float, found)))
    wanted = "a whole number" if whole else "a finite number"
    raise CellError(
        f"the label {stray!r} is not {wanted}, as the labels were in training; correct it", stray
    )


_Read = tuple[Floats, tuple[str, ...]]  # values, and their notation


def _refuse_strays(texts: Any) -> None:
    found = texts.to_pylist()
    like_dates = _matches(texts, _LIKE_DATE)
    for k in np.flatnonzero(like_dates):
        like_dates[k] = _moment(found[k]) is not None
    like_numbers = _matches(_retyped(texts), _LIKE_NUMBER)
    for kind, fits in (("numbers", like_numbers), ("dates", like_dates)):
        strays = [found[k] for k in np.flatnonzero(~fits)]
        few = len(strays) <= max(_STRAYS, 0.05 * len(found))
        infinite = is_infinite(strays[0]) if strays else False
        if infinite and all(map(is_infinite, strays)) and len(strays) < len(found):
            raise CellError(f"{strays[0]!r} is not a finite number; correct it", strays[0])
        if len(found) - len(strays) <= _NUMBERS_AMONG_STRAYS:
            continue
        if strays and few:
            raise CellError(
                f"{strays[0]!r} appears among {kind}; correct it, or leave the cell empty",
                strays[0],
            )
        if kind == "numbers" and not strays and any(text.count(",") == 1 for text in found):
            raise CellError(
                "its numbers are not all written in the same way; write them with a decimal point "
                "and nothing between thousands"
            )


# ----------------------------------------------------------------------------- numbers


def _matches(texts: Any, pattern: str) -> Any:
    import pyarrow.compute as pc

    return _numpy(pc.match_substring_regex(texts, f"^(?:{pattern})$"))


def _has(texts: Any, sign: str) -> Any:
    import pyarrow.compute as pc

    return _numpy(pc.match_substring(texts, sign))


def _without(texts: Any, pattern: str, new: str = "") -> Any:
    import pyarrow.compute as pc

    return pc.replace_substring_regex(texts, pattern, new)


def _retyped(texts: Any) -> Any:
    import pyarrow.compute as pc

    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    for typed, plain in _TYPED.items():
        texts = pc.replace_substring(texts, typed, plain)
    return texts


def _read_numbers(texts: Any, delimiter: str | None) -> _Read | None:
    """Read numbers, also with percent or currency signs, separated thousands or decimal commas."""
    bare = _retyped(texts)
    if not _matches(bare, _LIKE_NUMBER).all():
        return None
    notation: tuple[str, ...] = ()
    if len(texts) and not _matches(bare, NUMBER).all():
        bare, signs = _without_signs(bare)
        notation = (*signs, *_point_notation(bare, delimiter))
    values, fits = _respell(texts, notation)
    if not fits.all():
        return None
    _refuse_infinite(texts, values)
    return values, notation


def _reread_numbers(texts: Any, notation: tuple[str, ...]) -> Floats:
    values, fits = _respell(texts, notation)
    if not fits.all():
        text = texts[int(np.argmin(fits))].as_py()
        raise CellError(f"{text!r} is not {_describe(notation)}", text)
    _refuse_infinite(texts, values)
    return values


def _refuse_infinite(texts: Any, values: Floats) -> None:
    if np.isinf(values).any():
        text = texts[int(np.argmax(np.isinf(values)))].as_py()
        raise CellError(f"{text!r} is not a finite number; correct it", text)


def _describe(notation: tuple[str, ...]) -> str:
    signs = {
        "percent": "a percent sign",
        "space groups": "spaces between thousands",
        "comma groups": "commas between thousands",
        "dot groups": "dots between thousands",
        "decimal comma": "decimal commas",
        **{sign: f"the sign {sign}" for sign in _CURRENCY},
    }
    written = " and ".join(signs[word] for word in notation) or "a decimal point"
    return (
        f"a number with {written}, as the column had them when the model was trained; "
        "write it so, or leave the cell empty"
    )


def _without_signs(texts: Any) -> tuple[Any, tuple[str, ...]]:
    """Return texts without the sign that all of them share, of percent or of one currency."""
    if _matches(texts, ".*%").all():
        return _without_sign(texts, "percent"), ("percent",)
    found = [sign for sign in _CURRENCY if _has(texts, sign).any()]
    if len(found) != 1:
        return texts, ()
    return _without_sign(texts, found[0]), (found[0],)


def _without_sign(texts: Any, sign: str) -> Any:
    return _without(texts, r"\s*%$" if sign == "percent" else rf"\s?{re.escape(sign)}\s?")


def _point_notation(texts: Any, delimiter: str | None) -> tuple[str, ...]:
    notation: tuple[str, ...] = ()
    if _has(texts, " ").any() or _has(texts, "'").any():
        if not _matches(texts, _SPACED).all():
            return ()
        notation = ("space groups",)
        texts = _without(texts, "[ ']")
    several = _matches(texts, r".*\..*\..*").any()
    commas = _has(texts, ",")
    if not several and not commas.any():
        return notation
    english = not several and _matches(texts, _ENGLISH).all()
    european = _matches(texts, _EUROPEAN).all()
    if english and (not european or _commas_group(texts[int(np.argmax(commas))], delimiter)):
        return (*notation, "comma groups")
    if not european:
        return ()
    if _has(texts, ".").any():
        notation = (*notation, "dot groups")
    return (*notation, "decimal comma") if commas.any() else notation


def _respell(texts: Any, notation: tuple[str, ...]) -> tuple[Floats, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _retyped(texts)
    fits = _matches(texts, _LIKE_NUMBER) & (_matches(texts, ".*%") == ("percent" in notation))
    for sign in notation:
        if sign == "percent" or sign in _CURRENCY:
            texts = _without_sign(texts, sign)
    if "space groups" in notation:
        fits &= _matches(texts, _SPACED)
        texts = _without(texts, "[ ']")
    if "comma groups" in notation:
        fits &= _matches(texts, _ENGLISH)
        texts = _without(texts, ",")
    elif "dot groups" in notation or "decimal comma" in notation:
        fits &= _matches(texts, _EUROPEAN)
        for mark, word in {".": "dot groups", ",": "decimal comma"}.items():
            if word not in notation:
                fits &= ~_has(texts, mark)
        texts = _without(_without(texts, r"\."), ",", ".")
    fits &= _matches(texts, NUMBER)
    plain = pc.if_else(pa.array(fits, pa.bool_()), texts, pa.scalar(None, texts.type))
    return _numpy(pc.cast(plain, pa.float64())), fits


def _commas_group(example: Any, delimiter: str | None) -> bool:
    if delimiter in (",", None):
        return True
    if delimiter == ";":  # what spreadsheets write where the comma is the decimal sign
        return False
    text = example.as_py()
    raise CellError(
        f"{text!r} may mean {text.replace(',', '')} or {text.replace(',', '.')}; "
        "write the column's numbers with a decimal point and nothing between thousands"
    )


# ----------------------------------------------------------------------------- dates

_TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
    r"\s*(?P<half>[AaPp][Mm])?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
)
_DAYS = (
    r"(?P<year>\d{4})(?P<sep>[-/.])(?P<month>\d{1,2})(?:(?P=sep)(?P<day>\d{1,2}))?",
    r"(?P<first>\d{1,2})(?P<sep>[-/.])(?P<second_part>\d{1,2})(?P=sep)(?P<year>\d{4})",
    r"(?P<first>\d{1,2})(?P<sep>/)(?P<second_part>\d{1,2})/(?P<year>\d{2})",
    r"(?P<day>\d{1,2})[- ]?(?P<name>[A-Za-z]{3,9})\.?,?[- ](?P<year>\d{4})",
    r"(?P<name>[A-Za-z]{3,9})\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?,? (?P<year>\d{4})",
)
_MATCHERS: list[Callable[[str], re.Match[str] | None]] = [
    *(re.compile(rf"{days}(?:(?:T|,?\s+){_TIME})?", re.ASCII).fullmatch for days in _DAYS),
    re.compile(_TIME, re.ASCII).fullmatch,
]
# What all of these have in common, and those of which Arrow makes numbers at once.
_LIKE_DATE = r"(?:\d{1,4}[-/.:]\d|\d{1,2}[- ]?[A-Za-z]{3}|[A-Za-z]{3,9}\.? \d).{1,36}"
_ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?"
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_CENTURY_TURNS = 69  # of years with two digits: 68 is 2068, 69 is 1969
_HOUR = 3600 * 10**6  # microseconds, in which times are counted, so that one division is all


class _Moment(NamedTuple):
    """A date whose day and month may stand in either order, or a time of day."""

    text: str
    year: int | None  # None for a time of day
    parts: tuple[int, int]
    ordered: bool  # the parts are month and day; else they are what stands first and second
    time: int

    def value(self, day_first: bool | None) -> float:
        if self.year is None:
            return self.time / _HOUR
        month, day = self.parts if self.ordered or not day_first else self.parts[::-1]
        days = datetime.date(self.year, month, day).toordinal() - _EPOCH
        return (days * 24 * _HOUR + self.time) / (24 * _HOUR)


def _read_dates(texts: Any) -> _Read | None:
    if not _matches(texts, _LIKE_DATE).all():
        return None
    iso = _read_iso_dates(texts)
    if iso is not None:
        return iso, ("dates",)
    moments = [_moment(text) for text in texts.to_pylist()]
    found = [moment for moment in moments if moment is not None]
    if len(found) < len(moments) or len({moment.year is None for moment in found}) != 1:
        return None
    day_first = _day_comes_first([moment for moment in found if not moment.ordered])
    try:
        values = np.array([moment.value(day_first) for moment in found])
    except ValueError:  # the 30th of February
        return None
    if found[0].year is None:
        return values, ("times",)
    order = {None: (), True: ("day first",), False: ("month first",)}[day_first]
    return values, ("dates", *order)


def _read_iso_dates(texts: Any) -> Any:
    """Return days since 1970 if all texts are dates such as 2020-12-31 or 2020-12-31 18:00."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _matches(texts, _ISO_DATE).all():
        return None
    try:
        return _numpy(pc.cast(texts, pa.timestamp("us")).cast(pa.int64())) / (24 * _HOUR)
    except pa.ArrowInvalid:  # there is no such day
        return None


def _reread_moments(texts: Any, notation: tuple[str, ...]) -> Floats:
    iso = _read_iso_dates(texts) if "dates" in notation else None
    if iso is not None:
        return np.asarray(iso)
    values = [_reread_moment(text, notation) for text in texts.to_pylist()]
    return np.array(values, dtype=np.float64)


def _reread_moment(text: str, notation: tuple[str, ...]) -> float:
    moment, kind = _moment(text), "date" if "dates" in notation else "time of day"
    if moment is None or (moment.year is None) != (kind != "date"):
        raise CellError(f"{text!r} is not a {kind}; correct it, or leave the cell empty", text)
    order = {"day first": True, "month first": False}
    day_first = next((order[word] for word in notation if word in order), None)
    if not moment.ordered and day_first is None and moment.parts[0] != moment.parts[1]:
        raise CellError(
            f"whether {text!r} has the day or the month first is not known from training; write "
            "the dates as 2020-12-31",
            text,
        )
    try:
        return moment.value(day_first)
    except ValueError:
        first = "day" if day_first else "month"
        raise CellError(
            f"there is no date {text!r} with the {first} first, as dates were written when the "
            "model was trained; write the dates as 2020-12-31",
            text,
        ) from None


def _day_comes_first(moments: list[_Moment]) -> bool | None:
    """Tell what comes first in dates such as 3/4/2020; None if there are none but 4/4/2020."""
    day_first = next((m for m in moments if m.parts[0] > 12), None)
    month_first = next((m for m in moments if m.parts[1] > 12), None)
    if day_first and month_first:
        raise CellError(
            f"{day_first.text!r} has the day first and {month_first.text!r} the month; write all "
            "dates as 2020-12-31"
        )
    unclear = next((m for m in moments if m.parts[0] != m.parts[1]), None)
    if day_first or month_first:
        return day_first is not None
    if unclear is None:
        return None
    if all("." in m.text for m in moments):
        return True  # dots separate dates only where the day comes first
    raise CellError(
        f"no date tells whether {unclear.text!r} has the day or the month first; write the dates "
        "as 2020-12-31"
    )


def _moment(text: str) -> _Moment | None:
    if not text[:1].isalnum() or len(text) > 40:
        return None
    match = next((match for matcher in _MATCHERS if (match := matcher(text))), None)
    if match is None:
        return None
    found = {name: part for name, part in match.groupdict().items() if part}
    try:
        time = _time(found)
        if "year" not in found:
            return _Moment(text, None, (1, 1), True, time)
        year = int(found["year"])
        if year < 100:
            year += 2000 if year < _CENTURY_TURNS else 1900
        if "first" in found:
            parts = int(found["first"]), int(found["second_part"])
            possible = 1 <= min(parts) <= 12 and max(parts) <= 31
            return _Moment(text, year, parts, False, time) if possible else None
        if "name" in found:  # three or more of its letters
            start = found["name"].lower()
            month = next((k for k, name in enumerate(_MONTHS, 1) if name.startswith(start)), 0)
        else:
            month = int(found["month"])
        day = datetime.date(year, month, int(found.get("day", 1))).day
        return _Moment(text, year, (month, day), True, time)
    except ValueError:  # there is no such day or time
        return None


def _time(found: dict[str, str]) -> int:
    hour, minute = int(found.get("hour", 0)), int(found.get("minute", 0))
    second = float(found.get("second", "0").replace(",", "."))
    if "half" in found:
        if not 1 <= hour <= 12:
            raise ValueError(hour)
        hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    if hour > 23 or minute > 59 or second >= 61:
        raise ValueError(found)
    ahead, zone = 0, found.get("zone", "Z").replace(":", "")
    if zone[0] in "+-":
        ahead = int(zone[0] + "1") * (int(zone[1:3]) * 60 + int(zone[3:5]))
    return (hour * 60 + minute - ahead) * (_HOUR // 60) + round(second * 10**6)
