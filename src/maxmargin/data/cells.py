"""The cells of one column, as people write them, made into numbers or left as words.

Everything is decided over the different texts of a whole column, never cell by cell: a column whose
cells all read as numbers in one notation is a column of numbers, likewise for dates, and anything
else is a column of words.
"""

import datetime
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

NUMBER = r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?"
MISSING = frozenset(
    ("", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "+nan", "null", "none", "?", "-", ".")
)
_SPELLINGS = MISSING | {text.upper() for text in MISSING} | {"NaN", "Null", "None", " "}
# As a label, "none" is a class, and so is "-" beside "+".
NO_LABEL = MISSING - {"none", "-", "."}

# A column of numbers or dates with a few other texts in it has mistakes; one with fewer different
# numbers, or more different other texts, holds codes.
_STRAYS = 5
_NUMBERS_AMONG_STRAYS = 20

_is_number = re.compile(NUMBER, re.ASCII).fullmatch
_CURRENCY = (*"$€£¥₹", "USD", "EUR", "GBP", "CHF", "JPY", "INR", "CNY")
_MONEY = "(?:" + "|".join(map(re.escape, _CURRENCY)) + ")"
_resembles_number = re.compile(
    rf"{_MONEY}?\s?[+-]?\s?{_MONEY}?\s?\.?\d[\d.,' ]*(?:[eE][+-]?\d+)?\s?(?:%|{_MONEY})?",
    re.ASCII,
).fullmatch
_TYPED = str.maketrans({"\u2212": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'"})


class CellError(ValueError):
    """A column cannot be read; ``cell`` is the text at fault, where a single one is."""

    def __init__(self, message: str, cell: str | None = None) -> None:
        super().__init__(message)
        self.cell = cell


class Column(NamedTuple):
    """A column that has been read."""

    values: Any
    """float64 with NaN for missing cells, or an object array of str with None for missing ones."""
    notation: tuple[str, ...] = ()
    """How the cells are written, where that is not as plain numbers: words of ``NOTATION``."""

    @property
    def words(self) -> bool:
        """Whether the values are words."""
        return bool(self.values.dtype == object)

    @property
    def missing(self) -> Any:
        """A mask of the cells that are missing."""
        if not self.words:
            return np.isnan(self.values)
        return np.fromiter((value is None for value in self.values), bool, len(self.values))

    @property
    def distinct(self) -> int:
        """The number of different values that are not missing."""
        present = self.values[~self.missing]
        return len(set(present.tolist())) if self.words else len(np.unique(present))


# What is said of columns whose notation has one of these words.
SENTENCES: dict[tuple[str, ...], str] = {
    ("dates",): "Dates in {} become days since 1970.",
    ("times",): "Times of day in {} become hours.",
    ("percent",): "Percent signs in {} are dropped: 12 % is read as 12.",
    _CURRENCY: "Currency signs in {} are dropped.",
    ("space groups", "dot groups"): "Separators between thousands in {} are dropped.",
    ("comma groups",): "Commas in {} separate thousands: 1,234 is read as 1234.",
    ("decimal comma",): "Commas in {} are decimal commas: 1,234 is read as 1.234.",
}
NOTATION = frozenset(
    ("day first", "month first", *(word for words in SENTENCES for word in words)),
)


def check_notation(notation: tuple[str, ...]) -> None:
    """Raise ValueError if no column can be written so."""
    words = set(notation)
    moments = words & {"dates", "times"}
    if not words <= NOTATION or len(words) < len(notation):
        raise ValueError(f"unknown or repeated words in the notation {list(notation)}")
    if (
        (moments and not words <= {*moments, "day first", "month first"})
        or len(moments) > 1
        or (words & {"day first", "month first"} and "dates" not in words)
        or words >= {"day first", "month first"}
        or len(words & {"percent", *_CURRENCY}) > 1
        or ("comma groups" in words and words & {"dot groups", "decimal comma"})
    ):
        raise ValueError(f"the notation {list(notation)} contradicts itself")


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


def label_array(texts: Sequence[str]) -> Any:
    """Return integers if all labels are whole numbers, else floats, else the strings themselves."""
    if not all(map(_is_number, texts)):
        return np.array(texts)
    try:
        # int() first: floats would merge long identifiers.
        return np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return whole_numbers(np.array([float(text) for text in texts]))


def no_label(cell: str) -> bool:
    """Tell whether a label's cell says that there is none."""
    return len(cell) < 16 and cell.strip().lower() in NO_LABEL


def reread_labels(texts: Sequence[str], kind: str, notation: tuple[str, ...] = ()) -> Any:
    """Return more labels of a column whose first ones were "integers", "numbers" or "words"."""
    if kind == "words":
        return np.array(texts, dtype=np.str_)
    if notation:
        return reread_column(texts, False, notation)
    wanted = "a finite number" if kind == "numbers" else "a whole number"
    stray = next((text for text in set(texts) if not finite_number(text)), None)
    if stray is None:
        labels = label_array(texts) if kind == "integers" else np.array(list(map(float, texts)))
        if kind == "numbers" or labels.dtype.kind == "i":
            return labels
        stray = next((text for text in texts if float(text) % 1), texts[0])
    raise CellError(
        f"the label {stray!r} is not {wanted}, as the labels were in training; correct it", stray
    )


def whole_numbers(values: Any) -> Any:
    """Return integers if all values are whole and exact as floats, else the values."""
    whole = bool(np.all((values == np.trunc(values)) & (np.abs(values) < 2.0**53)))
    return values.astype(np.int64) if whole else values


def is_missing(cell: str) -> bool:
    """Tell whether a cell says that there is no value."""
    return len(cell) < 16 and cell.strip().lower() in MISSING


def resembles_value(text: str) -> bool:
    """Tell whether a text looks like a number or a date, so that it is no name of a column."""
    return _resembles_number(text.translate(_TYPED)) is not None or _moment(text) is not None


def read_column(cells: Sequence[str], delimiter: str | None = None) -> Column:
    """Return the values of a column; the file's delimiter tells whose commas its cells have."""
    numbers = plain_numbers(cells)
    if numbers is not None:
        return Column(numbers)
    texts = {cell: cell.strip() for cell in dict.fromkeys(cells) if not is_missing(cell)}
    present = list(dict.fromkeys(texts.values()))
    read = _read_numbers(present, delimiter) or _read_dates(present)
    if read is None:
        _refuse_strays(present)
        return Column(_read_words(cells))
    meant = dict(zip(present, read[0], strict=True))
    found = (meant[texts[cell]] if cell in texts else math.nan for cell in cells)
    return Column(np.fromiter(found, np.float64, len(cells)), read[1])


def _read_words(cells: Sequence[str]) -> Any:
    values = np.empty(len(cells), dtype=object)
    values[:] = [None if is_missing(cell) else cell.strip() for cell in cells]
    return values


def reread_column(cells: Sequence[str], words: bool, notation: tuple[str, ...]) -> Any:
    """Return the values of more cells of a column whose first ones have been read."""
    if words:
        return _read_words(cells)
    numbers = None if notation else plain_numbers(cells)
    if numbers is not None:
        return numbers
    meant = {
        cell: math.nan if is_missing(cell) else _reread_cell(cell.strip(), notation)
        for cell in dict.fromkeys(cells)
    }
    return np.fromiter((meant[cell] for cell in cells), np.float64, len(cells))


def _reread_cell(text: str, notation: tuple[str, ...]) -> float:
    if "dates" in notation or "times" in notation:
        return _reread_moment(text, notation)
    plain = _respell(text, notation)
    if plain is None:
        raise CellError(f"{text!r} is not {_describe(notation)}", text)
    value = float(plain)
    if math.isinf(value):
        raise CellError(f"{text!r} is not a finite number; correct it", text)
    return value


def _describe(notation: tuple[str, ...]) -> str:
    """Return what a number of this notation is, as in "'x' is not …"."""
    said = {
        "percent": "a percent sign",
        "space groups": "spaces between thousands",
        "comma groups": "commas between thousands",
        "dot groups": "dots between thousands",
        "decimal comma": "decimal commas",
        **{sign: f"the sign {sign}" for sign in _CURRENCY},
    }
    written = " and ".join(said[word] for word in notation) or "a decimal point"
    return (
        f"a number with {written}, as the column had them when the model was trained; "
        "write it so, or leave the cell empty"
    )


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


def plain_numbers(cells: Sequence[str]) -> Any:
    """Return the values of plain numbers and missing cells at once; None if there is more."""
    text = "".join(cells)
    if "_" in text or not text.isascii():  # float() reads some such texts
        return None
    try:
        numbers = (math.nan if cell in _SPELLINGS else float(cell) for cell in cells)
        values = np.fromiter(numbers, np.float64, len(cells))
    except ValueError:
        return None
    return None if np.isinf(values).any() else values


_Read = tuple[list[float], tuple[str, ...]]  # values, and their notation


def _refuse_strays(texts: list[str]) -> None:
    """Raise if all but a few texts are numbers or dates: the few must be mistakes."""
    like_dates = [_moment(text) is not None for text in texts]
    like_numbers = [_resembles_number(text.translate(_TYPED)) is not None for text in texts]
    for kind, fits in (("numbers", like_numbers), ("dates", like_dates)):
        strays = [text for text, fit in zip(texts, fits, strict=True) if not fit]
        infinite = [text for text in strays if is_infinite(text)]
        if infinite and len(infinite) == len(strays) < len(texts):
            raise CellError(f"{infinite[0]!r} is not a finite number; correct it", infinite[0])
        if len(texts) - len(strays) <= _NUMBERS_AMONG_STRAYS:
            continue
        if 0 < len(strays) <= max(_STRAYS, 0.05 * len(texts)):
            raise CellError(
                f"{strays[0]!r} appears among {kind}; correct it, or leave the cell empty",
                strays[0],
            )
        if kind == "numbers" and not strays and any(text.count(",") == 1 for text in texts):
            raise CellError(
                "its numbers are not all written in the same way; write them with a decimal point "
                "and nothing between thousands"
            )


# ----------------------------------------------------------------------------- numbers


def _read_numbers(texts: list[str], delimiter: str | None) -> _Read | None:
    """Read numbers, also with percent or currency signs, separated thousands or decimal commas."""
    if not texts:
        return [], ()
    bare = [text.translate(_TYPED) for text in texts]
    if not all(map(_resembles_number, bare)):
        return None
    bare, signs = _without_signs(bare)
    notation = signs + _point_notation(bare, delimiter)
    plain = [respelt for text in texts if (respelt := _respell(text, notation)) is not None]
    if len(plain) < len(texts):
        return None
    values = list(map(float, plain))
    for value, text in zip(values, texts, strict=True):
        if math.isinf(value):
            raise CellError(f"{text!r} is not a finite number; correct it", text)
    return values, notation


def _without_signs(texts: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return texts without the sign that all of them share, of percent or of one currency."""
    if all(text.endswith("%") for text in texts):
        return [_without_sign(text, "percent") for text in texts], ("percent",)
    found = [sign for sign in _CURRENCY if any(sign in text for text in texts)]
    if len(found) != 1:
        return texts, ()
    return [_without_sign(text, found[0]) for text in texts], (found[0],)


def _without_sign(text: str, sign: str) -> str:
    if sign == "percent":
        return text.removesuffix("%").rstrip()
    return re.sub(rf"\s?{re.escape(sign)}\s?", "", text)


_english = re.compile(rf"[+-]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?|{NUMBER}", re.ASCII).fullmatch
_european = re.compile(
    r"[+-]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)?(?:,\d+)?(?:[eE][+-]?\d+)?", re.ASCII
).fullmatch
_spaced = re.compile(
    r"[+-]?(?:\d+|[1-9]\d{0,2}(?: \d{3})+|[1-9]\d{0,2}(?:'\d{3})+)(?:[.,]\d*)?", re.ASCII
).fullmatch


def _point_notation(texts: list[str], delimiter: str | None) -> tuple[str, ...]:
    """Return what the decimal sign and the separators between thousands are called."""
    joined = "\n".join(texts)
    notation: tuple[str, ...] = ()
    if " " in joined or "'" in joined:
        if not all(_spaced(text) or _is_number(text) for text in texts):
            return ()
        notation = ("space groups",)
        texts = [text.replace(" ", "").replace("'", "") for text in texts]
    dots = any(text.count(".") > 1 for text in texts)
    if not dots and "," not in joined:
        return notation
    english = not dots and all(map(_english, texts))
    european = all(map(_european, texts))
    if english and (not european or _commas_group(texts, delimiter)):
        return (*notation, "comma groups")
    if not european:
        return ()
    if "." in joined:
        notation = (*notation, "dot groups")
    if "," in joined:
        notation = (*notation, "decimal comma")
    return notation


def _respell(text: str, notation: tuple[str, ...]) -> str | None:
    """Return a number as ``float`` reads it; None if it is not written in this notation."""
    text = text.translate(_TYPED)
    if not _resembles_number(text) or ("percent" in notation) != text.endswith("%"):
        return None
    for sign in notation:
        if sign == "percent" or sign in _CURRENCY:
            text = _without_sign(text, sign)
    if "space groups" in notation:
        if not (_spaced(text) or _is_number(text)):
            return None
        text = text.replace(" ", "").replace("'", "")
    if "comma groups" in notation:
        text = text.replace(",", "") if _english(text) else ""
    elif "dot groups" in notation or "decimal comma" in notation:
        strange = {".": "dot groups", ",": "decimal comma"}.items()
        if not _european(text) or any(s in text and word not in notation for s, word in strange):
            return None
        text = text.replace(".", "").replace(",", ".")
    return text if _is_number(text) else None


def _commas_group(texts: list[str], delimiter: str | None) -> bool:
    """Tell what 1,234 means where no other cell of the column decides it."""
    if delimiter in (",", None):
        return True
    if delimiter == ";":  # what spreadsheets write where the comma is the decimal sign
        return False
    example = next(text for text in texts if "," in text)
    raise CellError(
        f"{example!r} may mean {example.replace(',', '')} or {example.replace(',', '.')}; "
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
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_CENTURY_TURNS = 69  # of years with two digits: 68 is 2068, 69 is 1969


class _Moment(NamedTuple):
    """A date whose day and month may stand in either order, or a time of day."""

    text: str
    year: int | None  # None for a time of day
    parts: tuple[int, int]
    ordered: bool  # the parts are month and day; else they are what stands first and second
    time: float  # in days

    def value(self, day_first: bool | None) -> float:
        if self.year is None:
            return self.time * 24
        month, day = self.parts if self.ordered or not day_first else self.parts[::-1]
        return datetime.date(self.year, month, day).toordinal() - _EPOCH + self.time


def _read_dates(texts: list[str]) -> _Read | None:
    moments = [moment for text in texts if (moment := _moment(text))]
    if len(moments) < len(texts) or len({moment.year is None for moment in moments}) != 1:
        return None
    day_first = _day_comes_first([moment for moment in moments if not moment.ordered])
    try:
        values = [moment.value(day_first) for moment in moments]
    except ValueError:  # the 30th of February
        return None
    if moments[0].year is None:
        return values, ("times",)
    order = {None: (), True: ("day first",), False: ("month first",)}[day_first]
    return values, ("dates", *order)


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
    """Return what a text says about day and time, if it is a possible date or time."""
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


def _time(found: dict[str, str]) -> float:
    """Return a part of a day, in UTC if a zone is given."""
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
    return (hour * 60 + minute - ahead + second / 60) / (24 * 60)
