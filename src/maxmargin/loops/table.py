"""Lines of a table as text to numbers: cells between delimiters, and no quotation marks.

Columns of numbers are parsed; of others it is noted where their cells stand. Left to Python are
cells that are no plain numbers, and lines that have more or fewer cells than there are columns.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.loops.compiled import compiled_as_written
from maxmargin.loops.decimals import NOWHERE, read_number

_U = np.uint64
_1 = _U(1)
_LINE_FEED, _RETURN, _TAB, _BLANK = map(_U, b"\n\r\t ")


class Cells(NamedTuple):
    """Where what is found in rows is stored."""

    values: Floats  # of row after row
    bits: Any  # the values as uint64
    spans: Ints  # (row, text, 2): where the cells of columns of texts begin and end
    lines: Ints  # the line of each row, from 0
    strays: Ints  # (stray, 4): row, column of numbers, begin and end of cells that are no numbers


@compiled_as_written
def _skip_blanks(text: Any, at: Any, delimiter: Any) -> Any:
    byte = _U(text[at])
    while byte == _BLANK or (byte == _TAB and delimiter != _TAB):
        at += _1
        byte = _U(text[at])
    return at


@compiled_as_written
def _ends_cell(byte: Any, delimiter: Any) -> Any:
    if byte in (delimiter, _LINE_FEED, _RETURN):
        return True
    return byte == _TAB and delimiter == _BLANK


@compiled_as_written
def _find_end(text: Any, at: Any, delimiter: Any) -> Any:
    while not _ends_cell(_U(text[at]), delimiter):
        at += _1
    return at


@compiled_as_written
def _end_number(text: Any, at: Any, delimiter: Any) -> Any:
    """Return where the cell ends after a number that ends here, or nowhere."""
    if at == NOWHERE or _ends_cell(_U(text[at]), delimiter):
        return at
    if delimiter != _BLANK:
        at = _skip_blanks(text, at, delimiter)
    return at if _ends_cell(_U(text[at]), delimiter) else NOWHERE


@compiled_as_written
def _next_cell(text: Any, at: Any, delimiter: Any) -> Any:
    """Return where the cell after one that ends here begins, or nowhere."""
    if delimiter == _BLANK:
        at = _skip_blanks(text, at, delimiter)
        return NOWHERE if _U(text[at]) in (_LINE_FEED, _RETURN) else at
    return at + _1 if _U(text[at]) == delimiter else NOWHERE


@compiled_as_written
def _read_row(
    text: Any, at: Any, delimiter: Any, numbers: Any, texts: Any, row: int, place: Any, strays: int,
    cells: Any, tables: Any,
) -> Any:  # fmt: skip
    """Store a row; return where the next one begins, or nowhere; and how many strays there are."""
    width, values, bits = _U(len(numbers)), cells.values, cells.bits
    j = _U(0)
    while True:
        at = _skip_blanks(text, at, delimiter)
        begin, number = at, numbers[j]
        if number >= 0:
            at = read_number(text, at, values, bits, place + _U(number), tables)
            at = _end_number(text, at, delimiter)
        if number < 0 or at == NOWHERE:
            at = _find_end(text, begin, delimiter)
            if number >= 0:
                values[place + _U(number)] = np.nan
                if at > begin:
                    found = cells.strays[strays]
                    found[0], found[1], found[2], found[3] = row, number, begin, at
                    strays += 1
        if texts[j] >= 0:
            span = cells.spans[row, texts[j]]
            span[0], span[1] = begin, at
        j += _1
        if j == width:
            break
        at = _next_cell(text, at, delimiter)
        if at == NOWHERE:
            return at, strays
    at = _skip_blanks(text, at, delimiter)
    if _U(text[at]) == _RETURN:
        at += _1
    return (at + _1 if _U(text[at]) == _LINE_FEED else NOWHERE), strays


@compiled_as_written
def split(
    text: Any, begin: int, end: int, delimiter: int, numbers: Any, texts: Any, count: int,
    cells: Any, tables: Any,
) -> Any:  # fmt: skip
    """Store rows of whole lines until the space for them is full.

    For each column, ``numbers`` says the place of its numbers among the ``count`` of a row, and
    ``texts`` that of its texts; -1 for none. Returns the numbers of rows, strays and lines, where
    the next line begins, and whether that one is not a row of as many cells. The text ends with a
    line feed, and then has eight more bytes.
    """
    at, separator, place = _U(begin), _U(delimiter), _U(0)
    row = strays = line = 0
    while at < _U(end) and row < len(cells.lines) and strays + len(numbers) <= len(cells.strays):
        first = _skip_blanks(text, at, separator)
        if _U(text[first]) == _RETURN:
            first += _1
        if _U(text[first]) == _LINE_FEED:
            at = first + _1
        else:
            after, found = _read_row(
                text, at, separator, numbers, texts, row, place, strays, cells, tables
            )
            if after == NOWHERE:
                return row, strays, line, np.int64(at), True
            cells.lines[row] = line
            strays, at = found, after
            row, place = row + 1, place + _U(count)
        line += 1
    return row, strays, line, np.int64(at), False
