"""Decimal numbers in text to doubles and back, without a bit of difference.

Numbers are rounded correctly. A mantissa below 2⁵³ with a power of ten up to 22 takes one
multiplication or division of two exact numbers. Others are multiplied by 128 bits of a power of
five, which decides how nearly all of them are rounded: Lemire (2021), "Number parsing at a gigabyte
per second"; Mushtak and Lemire (2023) prove that 19 digits never need more. Of longer mantissas the
first 19 digits are taken, once as they are and once plus 1; if that makes a difference, the value
is left to Python.

Back, a double has the fewest digits that no other double is nearest to, and among these the
nearest: Giulietti (2020), "The Schubfach way to render doubles".

Texts are arrays of bytes, and have eight more bytes after a line end or another byte that ends a
number; places in them are unsigned.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.loops.compiled import compiled_as_written
from maxmargin.loops.intrinsics import leading_zeros, load_word, wide_product

# Numba makes a float of an unsigned and a signed integer, so all numbers here are unsigned. An
# index that is unsigned is not asked whether it is negative, either.
_U = np.uint64
_0, _1, _2, _9, _10, _32, _63 = map(_U, (0, 1, 2, 9, 10, 32, 63))
_PLUS, _MINUS, _DOT, _ZERO, _E = map(_U, b"+-.0e")
NOWHERE = _U(2**64 - 1)  # the end of what is not there, or wrong
LARGEST = _U(2**63 - 1)
_MOST_DIGITS = _U(19)  # that 64 bits always hold

# What else there is to know of a number besides its mantissa and its power of ten: it is negative;
# it has more digits; it has a point or a power, so that it is not written as a whole number.
NEGATIVE, CUT, FRACTION = 1, 2, 4

_EXACT = _U(2**53)
_EXACT_POWER = 22
_LEAST_POWER, _MOST_POWER = -342, 308  # of ten: beyond them 19 digits are 0 or infinite
_INFINITE = _U(0x7FF << 52)
_SIGN = _U(1 << 63)
PENDING = 0x7FF8 << 48  # the bits of a NaN, to which the place of a number in the text is added
_PENDING = _U(PENDING)


class Tables(NamedTuple):
    """Powers, as loops need them."""

    fives: Any  # uint64: the first 128 bits of each, the upper half first
    tens: Floats  # which are exact


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


# ------------------------------------------------------------------- text to numbers


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
def scan_number(text: Any, at: Any) -> Any:
    """Return the end of a number, or nowhere; its mantissa, power of ten, and flags."""
    flags: Any = 0
    power: Any = 0
    byte = _U(text[at])
    if byte in (_MINUS, _PLUS):
        flags = NEGATIVE if byte == _MINUS else 0
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
        flags |= FRACTION
        digits += at - begin
        power = -np.int64(at - begin)
    if digits == _0:
        return NOWHERE, _0, 0, 0
    if digits > _MOST_DIGITS:
        mantissa, power, cut = _first_digits(text, first, at)
        flags |= cut
    if _U(text[at]) | _32 == _E:
        at, written = _scan_power(text, at + _1)
        power += written
        flags |= FRACTION
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
                cut = CUT
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
        return NOWHERE, 0
    return at, -power if negative else power


@compiled_as_written
def scan_whole(text: Any, at: Any) -> Any:
    """Return the end of a number of digits only, or 0, and its value, −1 if it is too large."""
    first, number = at, _0
    digit = _U(text[at]) - _ZERO
    while digit <= _9:
        number = number * _10 + digit
        at += _1
        digit = _U(text[at]) - _ZERO
    if at == first:
        return NOWHERE, -1
    if number > LARGEST or at - first > _MOST_DIGITS:
        return at, -1
    return at, np.int64(number)


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


@compiled_as_written
def is_exact(mantissa: Any, power: int, flags: int) -> Any:
    """Tell whether mantissa and power of ten are doubles, so that one operation is enough."""
    return mantissa <= _EXACT and -_EXACT_POWER <= power <= _EXACT_POWER and not flags & CUT


@compiled_as_written
def scaled(mantissa: Any, power: int, flags: int, tens: Any) -> Any:
    """Return such a number."""
    value = np.float64(np.int64(mantissa))
    if power < 0:
        value /= tens[_U(-power)]
    elif power > 0:
        value *= tens[_U(power)]
    return -value if flags & NEGATIVE else value


@compiled_as_written
def nearest(mantissa: Any, power: int, flags: int, fives: Any, at: Any) -> Any:
    """Return the bits of any number that begins here; how many are left to Python; if it is finite.

    One that is left to Python becomes a NaN that holds where it begins.
    """
    found = _rounded(mantissa, power, fives)
    if flags & CUT and _rounded(mantissa + _1, power, fives) != found:
        return _PENDING + at, 1, True
    return (found | _SIGN if flags & NEGATIVE else found), 0, found != _INFINITE


@compiled_as_written
def read_number(text: Any, at: Any, values: Any, bits: Any, place: Any, tables: Any) -> Any:
    """Store the number that begins at a place of the text, and return its end.

    That is nowhere if there is none that is finite, or if only Python can round it.
    """
    end, mantissa, power, flags = scan_number(text, at)
    if end == NOWHERE:
        return end
    if is_exact(mantissa, power, flags):
        values[place] = scaled(mantissa, power, flags, tables.tens)
        return end
    found, pending, finite = nearest(mantissa, power, flags, tables.fives, at)
    if pending or not finite:
        return NOWHERE
    bits[place] = found
    return end


# ------------------------------------------------------------------- numbers to text

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
def put_whole(out: Any, at: Any, number: Any) -> Any:
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
    end = put_whole(out, at, digits)
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
        return put_whole(out, end, _U(abs(leading - 1)))
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
def put_number(out: Any, at: Any, bits: Any, single: bool, tens: Any, fives: Any) -> Any:
    """Write a finite number; return its end, or nowhere if that is left to Python."""
    width = _U(23 if single else 52)
    biased = (bits >> width) & _U(0xFF if single else 0x7FF)
    mantissa = bits & ((_1 << width) - _1)
    if bits >> _U(31 if single else 63):
        out[at] = np.uint8(_MINUS)
        at += _1
    if biased == _0:
        if mantissa != _0:
            return NOWHERE
        out[at] = np.uint8(_ZERO)
        return at + _1
    narrow = mantissa == _0 and biased > _1
    mantissa |= _1 << width
    exponent = np.int64(biased) - np.int64(width) - (127 if single else 1023)
    if -np.int64(width) <= exponent <= 0 and mantissa & ((_1 << _U(-exponent)) - _1) == _0:
        return put_whole(out, at, mantissa >> _U(-exponent))
    digits, power = _shortest(mantissa, exponent, narrow, tens)
    # As a double it may be half-way between two float32, and be rounded to the other, even one.
    if single and mantissa & _1 and _rounded(digits, power, fives) & _U(2**29 - 1) == _U(2**28):
        return NOWHERE
    return _put_decimal(out, at, digits, power)
