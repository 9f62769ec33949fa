"""Decimal numbers in text to doubles, without a bit of difference.

Numbers are rounded correctly. A mantissa below 2⁵³ with a power of ten up to 22 takes one
multiplication or division of two exact numbers. Others are multiplied by 128 bits of a power of
five, which decides how nearly all of them are rounded: Lemire (2021), "Number parsing at a gigabyte
per second"; Mushtak and Lemire (2023) prove that 19 digits never need more. Of longer mantissas the
first 19 digits are taken, once as they are and once plus 1; if that makes a difference, the value
is left to Python.

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
_0, _1, _9, _10, _32, _63 = map(_U, (0, 1, 9, 10, 32, 63))
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
