"""Lines of a table as text to numbers: cells between delimiters, and no quotation marks.

Columns of numbers are parsed; of others it is noted where their cells stand. Left to Python are
cells that are no plain numbers, and lines that have more or fewer cells than there are columns.
"""

from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.loops.compiled import compiled_as_written
from maxmargin.loops.svmlight import NOWHERE, read_number

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
def _read_cell(text: Any, at: Any, delimiter: Any, place: Any, cells: Any, tables: Any) -> Any:
    """Store a number; return the end of its cell, and whether the cell is something else."""
    end = read_number(text, at, cells.values, cells.bits, place, tables)
    if end != NOWHERE:
        if delimiter != _BLANK:
            end = _skip_blanks(text, end, delimiter)
        if _ends_cell(_U(text[end]), delimiter):
            return end, False
    cells.values[place] = np.nan
    end = _find_end(text, at, delimiter)
    return end, end > at


@compiled_as_written
def _next_cell(text: Any, at: Any, delimiter: Any) -> Any:
    """Return where the cell after one that ends here begins, or nowhere."""
    if delimiter == _BLANK:
        at = _skip_blanks(text, at, delimiter)
        return NOWHERE if _U(text[at]) in (_LINE_FEED, _RETURN) else at
    return at + _1 if _U(text[at]) == delimiter else NOWHERE


@compiled_as_written
def _read_row(
    text: Any, at: Any, delimiter: Any, numbers: Any, texts: Any, row: int, count: int, strays: int,
    cells: Any, tables: Any,
) -> Any:  # fmt: skip
    """Store a row; return where the next one begins, or nowhere; and how many strays there are."""
    width = len(numbers)
    for j in range(width):
        at = _skip_blanks(text, at, delimiter)
        begin, number = at, numbers[j]
        if number >= 0:
            at, stray = _read_cell(text, at, delimiter, _U(row * count + number), cells, tables)
            if stray:
                cells.strays[strays, 0], cells.strays[strays, 1] = row, number
                cells.strays[strays, 2], cells.strays[strays, 3] = begin, at
                strays += 1
        else:
            at = _find_end(text, at, delimiter)
        if texts[j] >= 0:
            cells.spans[row, texts[j], 0], cells.spans[row, texts[j], 1] = begin, at
        if j + 1 < width:
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
    at, separator = _U(begin), _U(delimiter)
    row = strays = line = 0
    while at < _U(end) and row < len(cells.lines) and strays + len(numbers) <= len(cells.strays):
        first = _skip_blanks(text, at, separator)
        if _U(text[first]) == _RETURN:
            first += _1
        if _U(text[first]) == _LINE_FEED:
            at = first + _1
        else:
            after, found = _read_row(
                text, at, separator, numbers, texts, row, count, strays, cells, tables
            )
            if after == NOWHERE:
                return row, strays, line, np.int64(at), True
            cells.lines[row] = line
            strays, at = found, after
            row += 1
        line += 1
    return row, strays, line, np.int64(at), False
