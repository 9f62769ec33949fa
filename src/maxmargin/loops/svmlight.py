"""Svmlight text to numbers and back: ``label [qid:n] index:value … [# comment]``, a row per line.

Numbers are rounded correctly. A mantissa below 2⁵³ with a power of ten up to 22 takes one
multiplication or division of two exact numbers. Others are multiplied by 128 bits of a power of
five, which decides how nearly all of them are rounded: Lemire (2021), "Number parsing at a gigabyte
per second"; Mushtak and Lemire (2023) prove that 19 digits never need more. Of longer mantissas the
first 19 digits are taken, once as they are and once plus 1; if that makes a difference, the value
is left to Python: a NaN stands in its place that holds where in the text it begins.

Back, a double has the fewest digits that no other double is nearest to, and among these the
nearest: Giulietti (2020), "The Schubfach way to render doubles".
"""

from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.loops.compiled import compiled_as_written
from maxmargin.loops.intrinsics import leading_zeros, load_word, wide_product

# Numba makes a float of an unsigned and a signed integer, so all numbers here are unsigned. An
# index that is unsigned is not asked whether it is negative, either.
_U = np.uint64
_0, _1, _2, _3, _9, _10, _32, _63 = map(_U, (0, 1, 2, 3, 9, 10, 32, 63))
_LINE_FEED, _RETURN, _TAB, _BLANK, _HASH = map(_U, b"\n\r\t #")
_PLUS, _MINUS, _DOT, _COLON, _ZERO, _E, _Q, _I, _D = map(_U, b"+-.:0eqid")
_LARGEST = _U(2**63 - 1)
NOWHERE = _NOWHERE = _U(2**64 - 1)  # the end of what is not there, or wrong
_MOST_DIGITS = _U(19)  # that 64 bits always hold

# What else there is to know of a number besides its mantissa and its power of ten.
_NEGATIVE, _CUT, _FRACTION = 1, 2, 4

_EXACT = _U(2**53)
_EXACT_POWER = 22
_LEAST_POWER, _MOST_POWER = -342, 308  # of ten: beyond them 19 digits are 0 or infinite
_INFINITE = _U(0x7FF << 52)
_SIGN = _U(1 << 63)
PENDING = 0x7FF8 << 48  # the bits of a NaN, to which the place of a number in the text is added
_PENDING = _U(PENDING)


class Rule(NamedTuple):
    """What is asked of the rows."""

    first: int  # index that there can be, which is that of column 0
    last: int
    query: bool  # whether each row has the number of a query; else none may have one


class Rows(NamedTuple):
    """The rows of some lines; ``label_bits`` and ``bits`` are the labels and values as bits."""

    labels: Floats
    label_bits: Any
    whole: Ints  # the labels again, if they are whole numbers
    queries: Ints
    ends: Ints  # of the pairs of each row
    lines: Ints
    indices: Ints
    values: Floats
    bits: Any
    pending: Ints  # one number: how many numbers are left to Python

    @classmethod
    def empty(cls, size: int) -> Self:
        """Return uninitialised space for the rows of a text of so many bytes."""
        rows, pairs = size // 2 + 1, size // 4 + 1  # "1\n", " 1:1"
        labels, values = np.empty(rows), np.empty(pairs)
        whole, queries, ends, lines = (np.empty(rows, np.int64) for _ in range(4))
        indices, bits = np.empty(pairs, np.int64), values.view(np.uint64)
        return cls(
            labels, labels.view(np.uint64), whole, queries, ends, lines, indices, values, bits,
            np.zeros(1, np.int64),
        )  # fmt: skip


class Tables(NamedTuple):
    """Powers, as loops need them."""

    fives: Any  # uint64: the first 128 bits of each, the upper half first
    tens: Floats  # which are exact


class Lines(NamedTuple):
    """Rows that become text."""

    pointers: Ints
    indices: Ints
    bits: Any  # uint64: the values as bits
    labels: Ints
    label_bits: Any
    queries: Ints  # none, or one per row


class Style(NamedTuple):
    """How rows become text."""

    first: int  # the index of column 0
    whole: bool  # whether labels are integers
    single: bool  # whether values are bits of float32
    single_labels: bool


@cache
def tables() -> Tables:
    """Return the powers of five from 5⁻³⁴² to 5³⁰⁸, and of ten up to 10²²."""
    fives = []
    for power in range(_LEAST_POWER, _MOST_POWER + 1):
        five = 5 ** abs(power)
        if power < 0:  # rounded up, and more precise for those that may be exact multiples
            length = (five - 1).bit_length()
            five = 2 ** (length + 127 if power >= -27 else 2 * length + 128) // five + 1
        shift = five.bit_length() - 128
        five = five >> shift if shift > 0 else five << -shift
        fives += [five >> 64, five & (2**64 - 1)]
    return Tables(
        np.array(fives, dtype=np.uint64), np.array([10.0**k for k in range(_EXACT_POWER + 1)])
    )


# ------------------------------------------------------------------- numbers


@compiled_as_written
def _eight_digits(word: Any) -> Any:
    """Tell whether all eight bytes of a word are digits."""
    high = _U(0xF0F0F0F0F0F0F0F0)
    carried = (word + _U(0x0606060606060606)) & high
    return ((word & high) | (carried >> _U(4))) == _U(0x3333333333333333)


@compiled_as_written
def _value_of_eight(word: Any) -> Any:
    """Return the number that eight digits make: of two neighbours each, of four, of eight."""
    word -= _U(0x3030303030303030)
    word = word * _10 + (word >> _U(8))
    mask = _U(0x000000FF000000FF)
    upper = (word & mask) * _U(0x000F424000000064)
    return (upper + ((word >> _U(16)) & mask) * _U(0x0000271000000001)) >> _32


@compiled_as_written
def _scan(text: Any, at: Any) -> Any:
    """Return the end of a number, or nowhere; its mantissa, power of ten, and flags."""
    flags: Any = 0
    power: Any = 0
    byte = _U(text[at])
    if byte in (_MINUS, _PLUS):
        flags = _NEGATIVE if byte == _MINUS else 0
        at += _1
    first, mantissa = at, _0
    digit = _U(text[at]) - _ZERO
    while digit <= _9:
        mantissa = mantissa * _10 + digit
        at += _1
        digit = _U(text[at]) - _ZERO
    digits = at - first
    if _U(text[at]) == _DOT:
        at += _1
        begin = at
        word = load_word(text, at)
        while _eight_digits(word):
            mantissa = mantissa * _U(100_000_000) + _value_of_eight(word)
            at += _U(8)
            word = load_word(text, at)
        digit = _U(text[at]) - _ZERO
        while digit <= _9:
            mantissa = mantissa * _10 + digit
            at += _1
            digit = _U(text[at]) - _ZERO
        flags |= _FRACTION
        digits += at - begin
        power = -np.int64(at - begin)
    if digits == _0:
        return _NOWHERE, _0, 0, 0
    if digits > _MOST_DIGITS:
        mantissa, power, cut = _first_digits(text, first, at)
        flags |= cut
    if _U(text[at]) | _32 == _E:
        at, written = _scan_power(text, at + _1)
        power += written
        flags |= _FRACTION
    return at, mantissa, power, flags


@compiled_as_written
def _first_digits(text: Any, first: Any, end: Any) -> Any:
    """Return the first 19 digits that matter, their power of ten, and whether others are cut."""
    mantissa, kept, power, fraction, cut = _0, _0, 0, 0, 0
    for k in range(first, end):
        byte = _U(text[k])
        if byte == _DOT:
            fraction = 1
        elif kept < _MOST_DIGITS:
            mantissa = mantissa * _10 + (byte - _ZERO)
            kept += _U(mantissa != _0)
            power -= fraction
        else:
            if byte != _ZERO:
                cut = _CUT
            power += 1 - fraction
    return mantissa, power, cut


@compiled_as_written
def _scan_power(text: Any, at: Any) -> Any:
    """Return the end of a power of ten, or nowhere if there is none, and its value."""
    negative = _U(text[at]) == _MINUS
    if negative or _U(text[at]) == _PLUS:
        at += _1
    first = at
    power: Any = 0
    digit = _U(text[at]) - _ZERO
    while digit <= _9:
        if power < 10**17:  # beyond it, no mantissa is long enough to matter
            power = power * 10 + np.int64(digit)
        at += _1
        digit = _U(text[at]) - _ZERO
    if at == first:
        return _NOWHERE, 0
    return at, -power if negative else power


@compiled_as_written
def _rounded(mantissa: Any, power: int, fives: Any) -> Any:
    """Return the bits of the double nearest to mantissa·10^power."""
    if mantissa == _0 or power < _LEAST_POWER:
        return _0
    if power > _MOST_POWER:
        return _INFINITE
    zeros = leading_zeros(mantissa)
    place = _U(2 * (power - _LEAST_POWER))
    upper, lower = wide_product(mantissa << zeros, fives[place])
    if upper & _U(0x1FF) == _U(0x1FF):
        more, _ = wide_product(mantissa << zeros, fives[place + _1])
        lower += more
        upper += _U(lower < more)
    top = upper >> _63
    shift = top + _U(9)
    bits = upper >> shift  # 54 of them: the last decides how the others are rounded
    # 217706/2¹⁶ is log₂ 10 as precisely as these powers need.
    exponent = ((217706 * power) >> 16) + 1086 + np.int64(top) - np.int64(zeros)
    if exponent <= 0:
        if exponent <= -63:
            return _0
        bits >>= _U(1 - exponent)
        return (bits + (bits & _1)) >> _1  # if that carries, the exponent is 1, as it should be
    if lower <= _1 and -4 <= power <= 23 and bits & _U(3) == _1 and bits << shift == upper:
        bits -= _1  # half-way between two doubles: to the even one
    bits = (bits + (bits & _1)) >> _1
    if bits == _EXACT:
        bits, exponent = bits >> _1, exponent + 1
    if exponent >= 0x7FF:
        return _INFINITE
    return (_U(exponent) << _U(52)) | (bits & _U((1 << 52) - 1))


# ------------------------------------------------------------------- lines


@compiled_as_written
def _skip_blanks(text: Any, at: Any) -> Any:
    byte = _U(text[at])
    while byte in (_BLANK, _TAB):
        at += _1
        byte = _U(text[at])
    return at


@compiled_as_written
def _end_line(text: Any, at: Any) -> Any:
    """Return where the next line begins, or 0 if there is something else than a comment."""
    byte = _U(text[at])
    if byte == _HASH:
        while byte != _LINE_FEED and byte != _0:
            at += _1
            byte = _U(text[at])
    elif byte == _RETURN:
        at += _1
    return at + _1 if _U(text[at]) == _LINE_FEED else _NOWHERE


@compiled_as_written
def _scan_whole(text: Any, at: Any) -> Any:
    """Return the end of a number of digits only, or 0, and its value, −1 if it is too large."""
    first, number = at, _0
    digit = _U(text[at]) - _ZERO
    while digit <= _9:
        number = number * _10 + digit
        at += _1
        digit = _U(text[at]) - _ZERO
    if at == first:
        return _NOWHERE, -1
    if number > _LARGEST or at - first > _MOST_DIGITS:
        return at, -1
    return at, np.int64(number)


@compiled_as_written
def _exact(mantissa: Any, power: int, flags: int) -> Any:
    """Tell whether mantissa and power of ten are doubles, so that one operation is enough."""
    return mantissa <= _EXACT and -_EXACT_POWER <= power <= _EXACT_POWER and not flags & _CUT


@compiled_as_written
def _scaled(mantissa: Any, power: int, flags: int, tens: Any) -> Any:
    """Return such a number."""
    value = np.float64(np.int64(mantissa))
    if power < 0:
        value /= tens[_U(-power)]
    elif power > 0:
        value *= tens[_U(power)]
    return -value if flags & _NEGATIVE else value


@compiled_as_written
def _nearest(mantissa: Any, power: int, flags: int, fives: Any, at: Any) -> Any:
    """Return the bits of any number; if these are not known, of a NaN with its place."""
    found = _rounded(mantissa, power, fives)
    if flags & _CUT and _rounded(mantissa + _1, power, fives) != found:
        return _PENDING + at
    return found | _SIGN if flags & _NEGATIVE else found


@compiled_as_written
def read_number(text: Any, at: Any, values: Any, bits: Any, place: Any, tables: Any) -> Any:
    """Store the number that begins at a place of the text, and return its end.

    That is nowhere if there is none that is finite, or if only Python can round it.
    """
    end, mantissa, power, flags = _scan(text, at)
    if end == _NOWHERE:
        return end
    if _exact(mantissa, power, flags):
        values[place] = _scaled(mantissa, power, flags, tables.tens)
        return end
    found = _nearest(mantissa, power, flags, tables.fives, at)
    if found & _INFINITE == _INFINITE:
        return _NOWHERE
    bits[place] = found
    return end


@compiled_as_written
def _scan_label(text: Any, at: Any, row: Any, rows: Any, tables: Any) -> Any:
    """Store a label; return its end, and whether it is a whole number."""
    end, mantissa, power, flags = _scan(text, at)
    if end == _NOWHERE:
        return end, False
    if _exact(mantissa, power, flags):
        rows.labels[row] = _scaled(mantissa, power, flags, tables.tens)
    else:
        bits = _nearest(mantissa, power, flags, tables.fives, at)
        if bits & _INFINITE == _INFINITE:
            if bits < _PENDING or bits & _SIGN:
                return _NOWHERE, False
            rows.pending[0] += 1
        rows.label_bits[row] = bits
    whole = mantissa <= _LARGEST and power == 0 and not flags & (_CUT | _FRACTION)
    if whole:
        number = np.int64(mantissa)
        rows.whole[row] = -number if flags & _NEGATIVE else number
    return end, whole


@compiled_as_written
def _scan_query(text: Any, at: Any, row: Any, queries: Any) -> Any:
    """Store the number of a query; return its end."""
    begin = _skip_blanks(text, at)
    if begin == at or _U(text[begin]) != _Q:
        return _NOWHERE
    # There is a line end at which these comparisons stop.
    if _U(text[begin + _1]) != _I or _U(text[begin + _2]) != _D or _U(text[begin + _3]) != _COLON:
        return _NOWHERE
    end, number = _scan_whole(text, begin + _U(4))
    queries[row] = number
    return _NOWHERE if number < 0 else end


@compiled_as_written
def _scan_pairs(text: Any, at: Any, pair: Any, rule: Any, rows: Any, tables: Any) -> Any:
    """Store the pairs of a line; return where they end, how many there are, and the last index.

    The count goes on from that of the lines before.
    """
    # Arrays that are taken out of records in the loop are counted at each turn.
    indices, values, bits, tens, fives = (
        rows.indices, rows.values, rows.bits, tables.tens, tables.fives,
    )  # fmt: skip
    first, last, previous = rule.first, rule.last, rule.first - 1
    while True:
        begin = _skip_blanks(text, at)
        if begin == at or _U(text[begin]) - _ZERO > _9:
            return begin, pair, previous
        at, index = _scan_whole(text, begin)
        if index <= previous or index > last or _U(text[at]) != _COLON:
            return _NOWHERE, pair, previous
        begin = at + _1
        at, mantissa, power, flags = _scan(text, begin)
        if at == _NOWHERE:
            return at, pair, previous
        if _exact(mantissa, power, flags):
            values[pair] = _scaled(mantissa, power, flags, tens)
        else:
            found = _nearest(mantissa, power, flags, fives, begin)
            if found & _INFINITE == _INFINITE:
                if found < _PENDING or found & _SIGN:
                    return _NOWHERE, pair, previous
                rows.pending[0] += 1
            bits[pair] = found
        indices[pair] = index - first
        pair += _1
        previous = index


class Parsed(NamedTuple):
    """What ``parse`` found."""

    rows: int
    pairs: int
    lines: int
    columns: int
    whole: bool  # whether all labels are whole numbers
    wrong: int  # the line that is wrong, after which nothing was read; or −1


@compiled_as_written
def parse(text: Any, begin: int, end: int, rule: Any, rows: Any, tables: Any) -> Any:
    """Store the rows of whole lines, and return the fields of ``Parsed``.

    The text has a line end before ``end``, and then eight more bytes.
    """
    at, row, pair, line, columns, whole = _U(begin), _0, _0, 0, 0, True
    rows.pending[0] = 0
    while at < _U(end):
        at = _skip_blanks(text, at)
        byte = _U(text[at])
        if byte != _LINE_FEED and byte != _HASH and byte != _RETURN:
            at, exact = _scan_label(text, at, row, rows, tables)
            whole &= exact
            if at != _NOWHERE and rule.query:
                at = _scan_query(text, at, row, rows.queries)
            if at != _NOWHERE:
                at, pair, last = _scan_pairs(text, at, pair, rule, rows, tables)
                columns = max(columns, last - rule.first + 1)
            rows.ends[row], rows.lines[row] = pair, line
            row += _1
        if at != _NOWHERE:
            at = _end_line(text, at)
        if at == _NOWHERE:
            return np.int64(row), np.int64(pair), line, columns, whole, line
        line += 1
    return np.int64(row), np.int64(pair), line, columns, whole, -1


# ------------------------------------------------------------------- numbers as text

# Enough bytes for a number, with what stands before it.
NUMBER_BYTES = 26
_SHORTEST_LEAST, _SHORTEST_MOST = -292, 324
_BELOW_63 = _U(2**63 - 1)
_EXPONENT_FROM = 16  # digits before the point, as in Python


@cache
def shortest_tables() -> Any:
    """Return the powers of ten from 10⁻²⁹² to 10³²⁴, rounded up to 126 bits, as halves of 63."""
    tens = []
    for power in range(_SHORTEST_LEAST, _SHORTEST_MOST + 1):
        ten = 10 ** abs(power)
        if power < 0:
            ten = 2 ** (126 + 2 * ten.bit_length()) // ten
        shift = ten.bit_length() - 126
        ten = (ten >> shift if shift > 0 else ten << -shift) + 1
        tens += [ten >> 63, ten & (2**63 - 1)]
    return np.array(tens, dtype=np.uint64)


@compiled_as_written
def _round_to_odd(upper: Any, lower: Any, factor: Any) -> Any:
    """Return the upper bits of a product with 126 bits, the last one set if there are others."""
    carried, _ = wide_product(lower, factor)
    high, low = wide_product(upper, factor)
    rest = (low >> _1) + carried
    return (high + (rest >> _63)) | (((rest & _BELOW_63) + _BELOW_63) >> _63)


@compiled_as_written
def _shortest(mantissa: Any, exponent: Any, narrow: bool, tens: Any) -> Any:
    """Return the digits and the power of ten of the shortest decimal for mantissa·2^exponent.

    It is nearer to this number than to its neighbours, of which the lower one is nearer if the
    interval is narrow (the number is a power of 2). The number has at least three digits.
    """
    odd, four = mantissa & _1, mantissa << _2
    # log₁₀ 2, and log₁₀ of ¾, in units of 2⁻⁴¹; log₂ 10 in units of 2⁻³⁸.
    power = (661971961083 * exponent - (274743187321 if narrow else 0)) >> 41
    shift = _U(exponent + ((913124641741 * -power) >> 38) + 2)
    place = _U(2 * (-power - _SHORTEST_LEAST))
    upper, lower = tens[place], tens[place + _1]
    here = _round_to_odd(upper, lower, four << shift)
    left = _round_to_odd(upper, lower, (four - (_1 if narrow else _2)) << shift) + odd
    right = _round_to_odd(upper, lower, (four + _2) << shift)
    digits = here >> _2
    tenth = digits // _10 * _10
    below, above = left <= tenth << _2, ((tenth + _10) << _2) + odd <= right
    if below != above:
        return (tenth if below else tenth + _10), power
    below, above = left <= digits << _2, ((digits + _1) << _2) + odd <= right
    if below != above:
        return (digits if below else digits + _1), power
    middle = (digits << _2) + _2
    nearer = here < middle or (here == middle and digits & _1 == _0)
    return (digits if nearer else digits + _1), power


@compiled_as_written
def _put_whole(out: Any, at: Any, number: Any) -> Any:
    """Write a number without sign; return its end."""
    end, bound = at + _1, _10
    while number >= bound and end - at < _MOST_DIGITS:
        end, bound = end + _1, bound * _10
    place = end
    while place != at:
        place -= _1
        out[place] = np.uint8(_ZERO + number % _10)
        number //= _10
    return end


@compiled_as_written
def _put_decimal(out: Any, at: Any, digits: Any, power: int) -> Any:
    """Write digits·10^power; return its end."""
    while digits % _10 == _0:
        digits, power = digits // _10, power + 1
    end = _put_whole(out, at, digits)
    count = np.int64(end - at)
    leading: Any = count + power  # digits before the point
    if leading > _EXPONENT_FROM or leading < -3:
        if count > 1:
            end = _put_point(out, at + _1, end)
        out[end] = np.uint8(_E)
        end += _1
        if leading < 1:
            out[end] = np.uint8(_MINUS)
            end += _1
        return _put_whole(out, end, _U(abs(leading - 1)))
    if power >= 0:
        for _ in range(power):
            out[end] = np.uint8(_ZERO)
            end += _1
        return end
    zeros = _U(max(1 - leading, 0))
    return _put_point(out, at + _U(max(leading, 1)), _put_zeros(out, at, end, zeros))


@compiled_as_written
def _put_point(out: Any, at: Any, end: Any) -> Any:
    """Write a point before digits up to an end, which move; return their new end."""
    place = end
    while place != at:
        out[place] = out[place - _1]
        place -= _1
    out[at] = np.uint8(_DOT)
    return end + _1


@compiled_as_written
def _put_zeros(out: Any, at: Any, end: Any, zeros: Any) -> Any:
    """Write zeros before digits up to an end, which move; return their new end."""
    place = end
    while place != at:
        place -= _1
        out[place + zeros] = out[place]
    for place in range(at, at + zeros):
        out[place] = np.uint8(_ZERO)
    return end + zeros


@compiled_as_written
def _put_number(out: Any, at: Any, bits: Any, single: bool, tens: Any, fives: Any) -> Any:
    """Write a finite number; return its end, or nowhere if that is left to Python."""
    width = _U(23 if single else 52)
    biased = (bits >> width) & _U(0xFF if single else 0x7FF)
    mantissa = bits & ((_1 << width) - _1)
    if bits >> _U(31 if single else 63):
        out[at] = np.uint8(_MINUS)
        at += _1
    if biased == _0:
        if mantissa != _0:
            return _NOWHERE
        out[at] = np.uint8(_ZERO)
        return at + _1
    narrow = mantissa == _0 and biased > _1
    mantissa |= _1 << width
    exponent = np.int64(biased) - np.int64(width) - (127 if single else 1023)
    if -np.int64(width) <= exponent <= 0 and mantissa & ((_1 << _U(-exponent)) - _1) == _0:
        return _put_whole(out, at, mantissa >> _U(-exponent))
    digits, power = _shortest(mantissa, exponent, narrow, tens)
    # As a double it may be half-way between two float32, and be rounded to the other, even one.
    if single and mantissa & _1 and _rounded(digits, power, fives) & _U(2**29 - 1) == _U(2**28):
        return _NOWHERE
    return _put_decimal(out, at, digits, power)


@compiled_as_written
def write(lines: Any, style: Any, out: Any, tens: Any, fives: Any) -> Any:
    """Write rows as lines; return the number of bytes, or −1 if that is left to Python."""
    pointers, indices, bits, at = lines.pointers, lines.indices, lines.bits, _0
    first, single = style.first, style.single
    for row in range(pointers.shape[0] - 1):
        if style.whole:
            if lines.labels[row] < 0:
                out[at] = np.uint8(_MINUS)
                at += _1
            at = _put_whole(out, at, _U(abs(lines.labels[row])))
        else:
            at = _put_number(out, at, lines.label_bits[row], style.single_labels, tens, fives)
            if at == _NOWHERE:
                return -1
        if lines.queries.shape[0]:
            for byte in b" qid:":
                out[at] = np.uint8(byte)
                at += _1
            at = _put_whole(out, at, _U(lines.queries[row]))
        for pair in range(pointers[row], pointers[row + 1]):
            out[at] = np.uint8(_BLANK)
            at = _put_whole(out, at + _1, _U(indices[pair] + first))
            out[at] = np.uint8(_COLON)
            at = _put_number(out, at + _1, bits[pair], single, tens, fives)
            if at == _NOWHERE:
                return -1
        out[at] = np.uint8(_LINE_FEED)
        at += _1
    return np.int64(at)
