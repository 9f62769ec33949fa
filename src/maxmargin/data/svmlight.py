"""Svmlight (LIBSVM) text: ``label index:value index:value … # comment``, a row a line.

A line either matches the grammar as a whole, and then its numbers are converted together with its
neighbours', or a second, slower look says what is wrong with it.
"""

import re
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from maxmargin.data.cells import NUMBER, finite_number, label_array
from maxmargin.errors import DataFileError

# Nine quadrillion: beyond it a float64 no longer holds every integer.
_INDEX_DIGITS = 15
_LINE = re.compile(
    rf"\s*({NUMBER})((?:\s++\d{{1,{_INDEX_DIGITS}}}:{NUMBER})*+)\s*(?:#.*)?", re.ASCII
)
_LINES_PER_BLOCK = 10_000


def read_svmlight(text: str, name: str) -> tuple[Any, Any, str, Any]:
    """Return X (CSR), y, the format in words and the rows' lines; ``name`` is for messages."""
    # Not splitlines(): a comment can have characters that it takes for line ends.
    lines = text.split("\n")
    parts = [
        _Block(lines[start : start + _LINES_PER_BLOCK], start + 1, name)
        for start in range(0, len(lines), _LINES_PER_BLOCK)
    ]
    labels = [label for part in parts for label in part.labels]
    if not labels:
        raise DataFileError(f"{name}: no rows, only comments; a row is 'label index:value …'")
    indices = np.concatenate([part.indices for part in parts])
    if not indices.size:
        raise DataFileError(f"{name}: no features, only labels; a row is 'label index:value …'")
    base = 0 if indices.min() == 0 else 1
    columns = int(indices.max()) + 1 - base
    pointers = np.concatenate([[0], np.cumsum(np.concatenate([part.lengths for part in parts]))])
    values = np.concatenate([part.values for part in parts])
    small = max(columns, indices.size) <= np.iinfo(np.int32).max
    integer = np.int32 if small else np.int64
    X = sp.csr_array(
        (values, (indices - base).astype(integer), pointers.astype(integer)),
        shape=(len(labels), columns),
    )
    numbers = np.concatenate([part.line_numbers for part in parts]).astype(np.int64)
    return X, label_array(labels), f"svmlight text, indices from {base}", numbers


class _Block:
    """Some consecutive lines: their labels, and all their index:value pairs end to end."""

    def __init__(self, lines: list[str], first_line: int, name: str) -> None:
        self.labels: list[str] = []
        self.line_numbers: list[int] = []
        self.name = name
        self.lines = lines
        self.first_line = first_line
        features: list[str] = []
        for number, line in enumerate(lines, first_line):
            match = _LINE.fullmatch(line)
            if match is None:
                if line.strip() and not line.lstrip().startswith("#"):
                    _explain(line, f"{name}:{number}")
                continue
            self.labels.append(match[1])
            self.line_numbers.append(number)
            features.append(match[2])
        self.lengths = np.array([text.count(":") for text in features], dtype=np.int64)
        # Stripped, since fromstring finds a number in mere blanks.
        pairs = " ".join(features).replace(":", " ").strip()
        numbers = np.fromstring(pairs, dtype=np.float64, sep=" ")
        self.indices = numbers[::2].astype(np.int64)
        self.values = np.ascontiguousarray(numbers[1::2])
        self._check()

    def _check(self) -> None:
        ascends = np.diff(self.indices, prepend=-1) > 0
        starts = np.cumsum(self.lengths) - self.lengths
        ascends[starts[self.lengths > 0]] = True
        bad_pairs = np.flatnonzero(~(ascends & np.isfinite(self.values)))
        bad_rows = np.searchsorted(np.cumsum(self.lengths), bad_pairs[:1], side="right").tolist()
        labels = np.fromiter(map(float, self.labels), dtype=np.float64)
        bad_rows += np.flatnonzero(~np.isfinite(labels))[:1].tolist()
        if bad_rows:
            number = self.line_numbers[min(bad_rows)]
            _explain(self.lines[number - self.first_line], f"{self.name}:{number}")


def _explain(line: str, place: str) -> NoReturn:
    """Raise the error that fits a line known to be wrong."""
    label, *pairs = line.partition("#")[0].split()
    if not finite_number(label):
        raise DataFileError(
            f"{place}: the label {label!r} is not a finite number; "
            "svmlight labels are single numbers, so number the classes, or use CSV"
        )
    previous = -1
    for pair in pairs:
        previous = _explain_pair(pair, previous, place)
    raise DataFileError(f"{place}: not 'label index:value …' in plain ASCII text")


def _explain_pair(pair: str, previous: int, place: str) -> int:
    index, colon, value = pair.partition(":")
    if index == "qid":
        raise DataFileError(
            f"{place}: {pair!r} marks a ranking query, and ranking is not supported; "
            "remove the qid tokens to classify the rows"
        )
    if not colon or not (index.isascii() and index.isdigit()):
        raise DataFileError(f"{place}: {pair!r} is not index:value with a whole, positive index")
    if len(index) > _INDEX_DIGITS:
        raise DataFileError(f"{place}: index {index} is too large; number the features from 1")
    if not finite_number(value):
        raise DataFileError(
            f"{place}: the value of {pair!r} is not a finite number; correct it, or leave out "
            "the pair if it stands for zero"
        )
    if int(index) <= previous:
        trouble = "occurs twice" if int(index) == previous else f"comes after {previous}"
        raise DataFileError(
            f"{place}: index {index} {trouble}; write each index once, in ascending order"
        )
    return int(index)
