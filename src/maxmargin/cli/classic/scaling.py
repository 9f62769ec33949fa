"""``svm-scale``: each feature to the same range, in two passes over a file that may be large."""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.atomic_write import write_atomically
from maxmargin.data.svmlight import iterate_svmlight
from maxmargin.errors import DataFileError

_ENTRIES = 1_000_000  # written at a time
_MOST_FEATURES = 10**8


class Limits(NamedTuple):
    """Between which values scaled numbers lie."""

    lower: float
    upper: float


@dataclass
class Ranges:
    """Least and largest values of labels and of each feature, the first of which has index 0."""

    least: Floats = field(default_factory=lambda: np.empty(0))
    largest: Floats = field(default_factory=lambda: np.empty(0))
    least_target: float = math.inf
    largest_target: float = -math.inf
    entries: int = 0  # written in the file
    has_index_0: bool = False

    def widen(self, width: int, path: str) -> None:
        """Make room for features up to this number, which a file has."""
        if width > _MOST_FEATURES:
            raise DataFileError(
                f"{path}: feature {width - 1} is too many for a list of ranges, which may have "
                f"{_MOST_FEATURES}. Renumber the features."
            )
        more = width - len(self.least)
        if more > 0:
            self.least = np.concatenate([self.least, np.full(more, np.inf)])
            self.largest = np.concatenate([self.largest, np.full(more, -np.inf)])

    @property
    def varies(self) -> Any:
        """Which features have more than one value."""
        return self.least < self.largest


def scale(
    path: str,
    *,
    lower: float,
    upper: float,
    targets: tuple[float, float] | None,
    save: str | None,
    restore: str | None,
) -> None:
    """Print the rows of a file with each feature scaled to the limits."""
    limits, target_limits = Limits(lower, upper), None if targets is None else Limits(*targets)
    for flags, pair in (("-l and -u", limits), ("-y", target_limits)):
        if pair is not None and not pair.upper > pair.lower:
            raise click.UsageError(
                f"{flags}: the upper limit {pair.upper:g} is not above the lower one, "
                f"{pair.lower:g}."
            )
    if save is not None and restore is not None:
        raise click.UsageError("-s and -r exclude each other: ranges are either found or given.")
    if Path(path).exists() and not Path(path).is_file():
        raise click.UsageError(f"{path} is not a file, and cannot be read twice: save it first.")
    ranges = find_ranges(path)
    if ranges.has_index_0:
        _warn("minimal feature index is 0, but indices should start from 1")
    if restore is not None:
        limits, target_limits = _restore(ranges, path, restore, target_limits)
    if save is not None:
        _save(ranges, save, limits, target_limits)
    written = _print_rows(path, ranges, limits, target_limits)
    if written > ranges.entries:
        _warn(
            f"original #nonzeros {ranges.entries}\n       > new      #nonzeros {written}\n"
            "If feature values are non-negative and sparse, use -l 0 rather than the default -l -1"
        )


def _warn(message: str) -> None:
    click.echo(f"WARNING: {message}", err=True)


# ------------------------------------------------------------------- ranges


def find_ranges(path: str) -> Ranges:
    """Return the ranges of a file, by one pass over it."""
    ranges, rows, present = Ranges(), 0, np.empty(0, np.int64)
    for X, y, *_ in iterate_svmlight(path, zero_based=True):
        ranges.widen(X.shape[1], path)
        count = np.bincount(X.indices, minlength=len(ranges.least))
        count[: len(present)] += present
        rows, present = rows + len(y), count
        np.minimum.at(ranges.least, X.indices, X.data)
        np.maximum.at(ranges.largest, X.indices, X.data)
        ranges.entries += X.nnz
        ranges.least_target = min(ranges.least_target, float(y.min()))
        ranges.largest_target = max(ranges.largest_target, float(y.max()))
    absent = present < rows
    absent[:1] = False  # index 0 is none that LIBSVM counts
    ranges.least[absent] = np.minimum(ranges.least[absent], 0.0)
    ranges.largest[absent] = np.maximum(ranges.largest[absent], 0.0)
    ranges.has_index_0 = bool(len(present)) and bool(present[0] > 0)
    return ranges


def _save(ranges: Ranges, path: str, limits: Limits, target_limits: Limits | None) -> None:
    lines = []
    if target_limits is not None:
        ends = ranges.least_target, ranges.largest_target
        lines += ["y", _pair(*target_limits), _pair(*ends)]
    lines += ["x", _pair(*limits)]
    used = np.flatnonzero(ranges.varies)
    used = used[used > 0]
    ends_of = zip(ranges.least[used].tolist(), ranges.largest[used].tolist(), strict=True)
    lines += [f"{k} {_pair(*ends)}" for k, ends in zip(used.tolist(), ends_of, strict=True)]
    write_atomically(path, lambda draft: draft.write_text("\n".join([*lines, ""])))
    if ranges.has_index_0:
        _warn(f"scaling factors with indices smaller than 1 are not stored to the file {path}.")


def _pair(low: float, high: float) -> str:
    return f"{low:.17g} {high:.17g}"


def _restore(
    ranges: Ranges, path: str, source: str, target_limits: Limits | None
) -> tuple[Limits, Limits | None]:
    """Replace ranges by those of a file; return its limits."""
    lines = RangeLines(source)
    if lines.take_word("y"):
        target_limits = Limits(*lines.take_numbers(2))
        ranges.least_target, ranges.largest_target = lines.take_numbers(2)
    if not lines.take_word("x"):
        raise lines.error("expected a line 'x' before the ranges of features")
    limits = Limits(*lines.take_numbers(2))
    found: dict[int, tuple[float, float]] = {}
    while not lines.at_end:
        index, least, largest = lines.take_numbers(3)
        if index != int(index) or index < 0:
            raise lines.error(f"{index:g} is not the index of a feature", back=1)
        found[int(index)] = least, largest
    ranges.widen(max(found, default=-1) + 1, source)
    # Which of the features of the data are not in the file.
    unseen = ranges.varies
    unseen[:1] = False
    unseen[list(found)] = False
    for number in np.flatnonzero(unseen).tolist():
        _warn(
            f"feature index {number} appeared in file {path} was not seen in the scaling factor "
            f"file {source}. The feature is scaled to 0."
        )
    ranges.least[unseen] = ranges.largest[unseen] = 0.0
    for number, ends in found.items():
        ranges.least[number], ranges.largest[number] = ends
    return limits, target_limits


class RangeLines:
    """The lines of a range file, taken one by one."""

    def __init__(self, path: str) -> None:
        self._path, self._place = path, 0
        try:
            self._lines = Path(path).read_text().splitlines()
        except UnicodeDecodeError as wrong:
            raise DataFileError(
                f"{path}: this is not a range file of svm-scale ({wrong})."
            ) from wrong

    @property
    def at_end(self) -> bool:
        """Whether no line is left."""
        return self._place == len(self._lines)

    def error(self, problem: str, back: int = 0) -> DataFileError:
        """Return an error about the line that is next, or some lines before."""
        return DataFileError(
            f"{self._path}:{self._place + 1 - back}: {problem}. Range files are written by "
            "svm-scale -s."
        )

    def take_word(self, word: str) -> bool:
        """Take the next line if it is this word."""
        taken = not self.at_end and self._lines[self._place].strip() == word
        self._place += taken
        return taken

    def take_numbers(self, count: int) -> list[float]:
        """Take a line with as many numbers."""
        line = "" if self.at_end else self._lines[self._place]
        try:
            numbers = [float(word) for word in line.split()]
        except ValueError:
            numbers = []
        if len(numbers) != count or not all(map(math.isfinite, numbers)):
            raise self.error(f"expected {count} numbers instead of {line[:60]!r}")
        self._place += 1
        return numbers


# ------------------------------------------------------------------- rows


def _between(value: Floats, least: Any, largest: Any, limits: Limits) -> Floats:
    """Return values scaled as svm-scale computes them, so that all digits agree."""
    lower, upper = limits
    with np.errstate(all="ignore"):
        scaled = lower + (upper - lower) * (value - least) / (largest - least)
    return np.where(value == least, lower, np.where(value == largest, upper, scaled))


def _print_rows(path: str, ranges: Ranges, limits: Limits, target_limits: Limits | None) -> int:
    """Print the rows; return how many features of them are other than 0."""
    written, varies = 0, ranges.varies
    zeros = np.zeros(len(varies))
    zeros[varies] = _between(zeros[varies], ranges.least[varies], ranges.largest[varies], limits)
    zeros[:1] = 0.0
    filled = np.flatnonzero(zeros)  # features that are written even where they are 0
    for X, y, *_ in iterate_svmlight(path, zero_based=True):
        if target_limits is not None:
            y = _between(y, ranges.least_target, ranges.largest_target, target_limits)
        step = max(1, _ENTRIES // (len(filled) + X.nnz // X.shape[0] + 1))
        for begin in range(0, X.shape[0], step):
            part = X[begin : begin + step]
            row, index, value = _scaled_entries(part, ranges, limits, zeros, filled)
            written += len(row)
            sys.stdout.writelines(_lines(y[begin : begin + step], row, index, value))
    return written


def _scaled_entries(
    X: Any, ranges: Ranges, limits: Limits, zeros: Floats, filled: Ints
) -> tuple[Ints, Ints, Floats]:
    """Return rows, indices and values of all entries to write, row by row."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    index = X.indices.astype(np.int64)
    given = np.zeros((X.shape[0], len(filled)), dtype=bool)
    place = np.full(len(zeros), -1)
    place[filled] = np.arange(len(filled))
    known = place[index] >= 0
    given[row[known], place[index[known]]] = True
    kept = ranges.varies[index]
    row, index, value = row[kept], index[kept], X.data[kept]
    value = _between(value, ranges.least[index], ranges.largest[index], limits)
    kept = value != 0
    more_rows, more = np.nonzero(~given)
    row = np.concatenate([row[kept], more_rows])
    index = np.concatenate([index[kept], filled[more]])
    value = np.concatenate([value[kept], zeros[filled[more]]])
    order = np.argsort(row * len(zeros) + index, kind="stable")
    return row[order], index[order], value[order]


def _lines(targets: Floats, row: Ints, index: Ints, value: Floats) -> Iterator[str]:
    words = list(map("%d:%g ".__mod__, zip(index.tolist(), value.tolist(), strict=True)))
    ends = np.cumsum(np.bincount(row, minlength=len(targets))).tolist()
    begin = 0
    for target, end in zip(targets.tolist(), ends, strict=True):
        yield f"{target:.17g} {''.join(words[begin:end])}\n"
        begin = end
