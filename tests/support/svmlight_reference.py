"""Svmlight text, read slowly: regular expressions, Python's integers and ``float``."""

import itertools
import math
import re
from typing import NamedTuple

NUMBER = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LINE = re.compile(
    rb"[ \t]*(?P<label>" + NUMBER + rb")"
    rb"(?:[ \t]+qid:(?P<query>[0-9]{1,19}))?"
    rb"(?P<pairs>(?:[ \t]+[0-9]{1,19}:" + NUMBER + rb")*)"
    rb"[ \t]*(?:\r|#[^\x00]*)?"
)
NO_ROW = re.compile(rb"[ \t]*(?:\r|#[^\x00]*)?")


class Row(NamedTuple):
    """A row of the text."""

    number: int
    label: bytes
    query: int | None
    columns: list[int]
    values: list[float]


class WrongLineError(Exception):
    """A line is wrong; the argument is its number."""


def read_slowly(
    text: bytes,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    query_id: bool = False,
) -> list[Row]:
    """Return the rows of a text, or raise."""
    rows = []
    for number, line in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if NO_ROW.fullmatch(line):
            continue
        row = _read_row(line, number, zero_based)
        most = (n_features or 2**63 - 1) - 1
        fine = row is not None and (row.query is not None) == query_id
        if row is None or not fine or not _is_possible(row, most):
            raise WrongLineError(number)
        rows.append(row)
    return rows


def _read_row(line: bytes, number: int, zero_based: bool) -> Row | None:
    match = LINE.fullmatch(line)
    if match is None:
        return None
    pairs = [pair.split(b":") for pair in match["pairs"].split()]
    columns = [int(index) - (not zero_based) for index, _ in pairs]
    query = None if match["query"] is None else int(match["query"])
    return Row(number, match["label"], query, columns, [float(value) for _, value in pairs])


def _is_possible(row: Row, most: int) -> bool:
    columns = row.columns
    return (
        all(math.isfinite(number) for number in [float(row.label), *row.values])
        and all(0 <= column <= most for column in columns)
        and all(left < right for left, right in itertools.pairwise(columns))
        and (row.query or 0) < 2**63
    )
