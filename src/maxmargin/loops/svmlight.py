"""Svmlight text to rows: ``label [qid:n] index:value … [# comment]``, a row per line.

A number that only Python can round (see ``decimals``) becomes a NaN that holds where it begins.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.loops.compiled import compiled_as_written
from maxmargin.loops.decimals import (
    CUT,
    FRACTION,
    LARGEST,
    NEGATIVE,
    NOWHERE,
    is_exact,
    nearest,
    scaled,
    scan_number,
    scan_whole,
)

# Places in a text, and whatever is computed with them, are unsigned (see ``decimals``).
_U = np.uint64
_0, _1, _2, _3, _9 = map(_U, (0, 1, 2, 3, 9))
_LINE_FEED, _RETURN, _TAB, _BLANK, _HASH = map(_U, b"\n\r\t #")
_COLON, _ZERO, _Q, _I, _D = map(_U, b":0qid")


class Grammar(NamedTuple):
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


class Parsed(NamedTuple):
    """What ``parse`` found."""

    rows: int
    pairs: int
    lines: int
    columns: int
    whole: bool  # whether all labels are whole numbers
    wrong: int  # the line that is wrong, after which nothing was read; or −1


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
    return at + _1 if _U(text[at]) == _LINE_FEED else NOWHERE


@compiled_as_written
def _scan_label(text: Any, at: Any, row: Any, rows: Any, tables: Any) -> Any:
    """Store a label; return its end, and whether it is a whole number."""
    end, mantissa, power, flags = scan_number(text, at)
    if end == NOWHERE:
        return end, False
    if is_exact(mantissa, power, flags):
        rows.labels[row] = scaled(mantissa, power, flags, tables.tens)
    else:
        bits, left, finite = nearest(mantissa, power, flags, tables.fives, at)
        if not finite:
            return NOWHERE, False
        rows.pending[0] += left
        rows.label_bits[row] = bits
    whole = mantissa <= LARGEST and power == 0 and not flags & (CUT | FRACTION)
    if whole:
        number = np.int64(mantissa)
        rows.whole[row] = -number if flags & NEGATIVE else number
    return end, whole


@compiled_as_written
def _scan_query(text: Any, at: Any, row: Any, queries: Any) -> Any:
    """Store the number of a query; return its end."""
    begin = _skip_blanks(text, at)
    if begin == at or _U(text[begin]) != _Q:
        return NOWHERE
    # There is a line end at which these comparisons stop.
    if _U(text[begin + _1]) != _I or _U(text[begin + _2]) != _D or _U(text[begin + _3]) != _COLON:
        return NOWHERE
    end, number = scan_whole(text, begin + _U(4))
    queries[row] = number
    return NOWHERE if number < 0 else end


@compiled_as_written
def _scan_pairs(text: Any, at: Any, pair: Any, rule: Any, rows: Any, tables: Any) -> Any:
    """Store the pairs of a line; return where they end, how many there are, and the last index.

    The count goes on from that of the lines before.
    """
    # Arrays that are taken out of records in the loop are counted at each turn.
    indices, values, bits, pending, tens, fives = (
        rows.indices, rows.values, rows.bits, rows.pending, tables.tens, tables.fives,
    )  # fmt: skip
    first, last, previous = rule.first, rule.last, rule.first - 1
    while True:
        begin = _skip_blanks(text, at)
        if begin == at or _U(text[begin]) - _ZERO > _9:
            return begin, pair, previous
        at, index = scan_whole(text, begin)
        if index <= previous or index > last or _U(text[at]) != _COLON:
            return NOWHERE, pair, previous
        begin = at + _1
        at, mantissa, power, flags = scan_number(text, begin)
        if at == NOWHERE:
            return at, pair, previous
        if is_exact(mantissa, power, flags):
            values[pair] = scaled(mantissa, power, flags, tens)
        else:
            bits[pair], left, finite = nearest(mantissa, power, flags, fives, begin)
            if not finite:
                return NOWHERE, pair, previous
            pending[0] += left
        indices[pair] = index - first
        pair += _1
        previous = index


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
            if at != NOWHERE and rule.query:
                at = _scan_query(text, at, row, rows.queries)
            if at != NOWHERE:
                at, pair, last = _scan_pairs(text, at, pair, rule, rows, tables)
                columns = max(columns, last - rule.first + 1)
            rows.ends[row], rows.lines[row] = pair, line
            row += _1
        if at != NOWHERE:
            at = _end_line(text, at)
        if at == NOWHERE:
            return np.int64(row), np.int64(pair), line, columns, whole, line
        line += 1
    return np.int64(row), np.int64(pair), line, columns, whole, -1
