"""A survey of labelled rows in parts: one pass finds all that must be known before fitting.

It finds how many rows there are, which classes, how large the numbers get, and whether all of them
are finite. What it returns is small, whatever the number of rows.
"""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.errors import DataFileError
from maxmargin.rows.blocks import Tree
from maxmargin.rows.read_ahead import read_ahead
from maxmargin.rows.row_source import Part, RowSource
from maxmargin.runtime.threads import share_work, usual_threads
from maxmargin.validation.data import class_indices, classes_of

_PIECE = 1 << 18  # numbers looked at in one go: they stay in a processor's cache
_PIECE_ROWS = 4  # at least: sums over columns are kept for each piece


class ColumnSums(NamedTuple):
    """What some rows add up to by column; the largest of the rows is known by its squared norm."""

    rows: int
    means: Floats
    deviations: Floats  # sums of squared differences from the means
    largest_square: float
    largest_value: float  # the absolute value of the largest number in the largest row …
    largest_column: int  # … and where it stands

    @property
    def variances(self) -> Floats:
        """The variance of each column, as ``numpy.var`` has it."""
        return self.deviations / max(self.rows, 1)


class TargetRange(NamedTuple):
    """Between which numbers targets lie, and how they scatter."""

    rows: int
    low: float
    high: float
    mean: float
    deviations: float  # the sum of squared differences from the mean

    @property
    def std(self) -> float:
        """The standard deviation, as ``numpy.std`` has it."""
        return math.sqrt(self.deviations / max(self.rows, 1))

    def joined(self, other: "TargetRange") -> "TargetRange":
        """Return the range of the targets of both."""
        rows, apart = self.rows + other.rows, other.mean - self.mean
        return TargetRange(
            rows,
            min(self.low, other.low),
            max(self.high, other.high),
            self.mean + apart * (other.rows / rows),
            self.deviations + other.deviations + apart**2 * (self.rows * (other.rows / rows)),
        )


class ClassCounts(NamedTuple):
    """The classes in their order, with the number and the weight of the rows of each."""

    classes: npt.NDArray[Any]
    counts: Ints
    weights: Floats


@dataclass(frozen=True)
class Survey:
    """What is known of rows in parts after one pass over them."""

    rows: Ints  # of each part
    numbers: Ints  # that the rows of each part are made of (stored ones, if sparse)
    d: int
    dtype: np.dtype[Any]
    sparse: bool
    columns: ColumnSums
    first_row: Floats  # of all, of shape (d,)
    total_weight: float  # without weights every row weighs 1
    labels: ClassCounts | None = None  # if these were asked for …
    targets: TargetRange | None = None  # … or these

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.rows.sum())

    @property
    def size(self) -> int:
        """The numbers that all rows are made of."""
        return int(self.numbers.sum())

    def parts_between(self, begin: int, end: int) -> list[tuple[int, int, int]]:
        """Return the parts that have some of these rows: number, first and end of these in it."""
        ends = np.cumsum(self.rows)
        starts = ends - self.rows
        return [
            (int(part), max(begin - int(starts[part]), 0), int(min(ends[part], end) - starts[part]))
            for part in np.flatnonzero((starts < end) & (ends > begin) & (self.rows > 0))
        ]

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The classes in the order of ``numpy.unique``."""
        return self._counts.classes

    @property
    def counts(self) -> Ints:
        """The number of rows of each class."""
        return self._counts.counts

    @property
    def weights(self) -> Floats:
        """The weight of each class."""
        return self._counts.weights

    @property
    def largest_square(self) -> float:
        """The largest squared norm of a row; inf if it overflows."""
        return self.columns.largest_square

    @property
    def _counts(self) -> ClassCounts:
        if self.labels is None:
            raise ValueError("This estimator requires y to be passed, but the rows have no labels.")
        return self.labels


def survey(source: Any, *, targets: bool = False) -> Survey:
    """Read all parts once and return what must be known of them before fitting.

    With ``targets``, y holds numbers to be predicted, instead of labels of classes. A part that
    cannot be learnt from is a ValueError that begins with its name.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> from maxmargin.rows.survey import survey
    >>> X, y = np.arange(12.0).reshape(6, 2), np.array(["no", "no", "yes", "no", "no", "so"])
    >>> found = survey(mm.data.open(X, y, rows=2))
    >>> found.n, found.rows.tolist(), found.classes.tolist(), found.counts.tolist()
    (6, [2, 2, 2], ['no', 'so', 'yes'], [4, 1, 1])
    """
    with read_ahead(source.reload(part) for part in range(len(source))) as parts:
        surveys = (survey_part(source, *each, targets) for each in enumerate(parts))
        return merge_surveys(source, surveys)


# ------------------------------------------------------------------- one part


def survey_part(source: RowSource, part: int, loaded: Part, targets: bool = False) -> Survey:
    """Return the survey of a part that was reloaded; ``merge_surveys`` takes those of all parts."""
    X, y, weight = loaded
    columns = column_sums(X)
    if not np.isfinite(columns.largest_square):  # or it overflows, which users of it refuse
        source.named(part, lambda: source.refuse_not_finite(part, X))
    try:
        labels = None if y is None or targets else _class_counts(y, weight)
        scatter = None if y is None or not targets else _target_range(y)
    except ValueError as wrong:
        raise ValueError(f"{source.describe(part)}: {wrong}") from wrong
    rows = int(X.shape[0])
    first = (X[:1].toarray() if source.sparse else X[:1]).astype(np.float64).ravel()
    return Survey(
        rows=np.array([rows], dtype=np.int64),
        numbers=np.array([X.nnz if source.sparse else X.size], dtype=np.int64),
        d=int(X.shape[1]),
        dtype=np.dtype(source.dtype),
        sparse=source.sparse,
        columns=columns,
        first_row=first,
        total_weight=float(rows if weight is None else math.fsum(weight)),
        labels=labels,
        targets=scatter,
    )


def _class_counts(y: npt.NDArray[Any], weight: Floats | None) -> ClassCounts:
    classes = classes_of(y)
    if y.dtype.kind == "f" and (classes % 1 != 0).any():
        fraction = classes[classes % 1 != 0][0]
        row = int(np.argmax(y == fraction))
        raise ValueError(
            f"y (row {row}: {fraction:g}) holds fractions: Unknown label type: continuous. A "
            "classifier needs labels; for numbers take a regressor"
        )
    if not len(y):
        return ClassCounts(classes, np.zeros(0, dtype=np.int64), np.zeros(0))
    numbers = class_indices(classes, y)
    counts = np.bincount(numbers, minlength=len(classes)).astype(np.int64)
    if weight is None:
        return ClassCounts(classes, counts, counts.astype(np.float64))
    return ClassCounts(classes, counts, _added(numbers, weight, len(classes)))


def _target_range(y: npt.NDArray[Any]) -> TargetRange:
    if y.dtype.kind not in "biuf":
        raise ValueError(f"y must hold numbers for regression, got dtype {y.dtype}")
    target = y.astype(np.float64)
    if not len(target):
        return TargetRange(0, math.inf, -math.inf, 0.0, 0.0)
    mean = float(target.mean())
    scatter = float(np.square(target - mean).sum())
    return TargetRange(len(target), float(target.min()), float(target.max()), mean, scatter)


def label_numbers(classes: npt.NDArray[Any], y: npt.NDArray[Any], name: str) -> Ints:
    """Return the numbers of classes for the labels of a part that was surveyed before."""
    try:
        return class_indices(classes, y)
    except ValueError as unknown:
        raise DataFileError(
            f"{name}: {unknown} It was changed while it was being learnt from; fit again"
        ) from unknown


# ------------------------------------------------------------------- sums over columns


def column_sums(X: Any) -> ColumnSums:
    """Return the sums of the columns of some rows; a number that is not finite shows in them."""
    n, d = X.shape
    numbers = X.nnz if sp.issparse(X) else X.size
    pieces = max(1, min(numbers // max(_PIECE, _PIECE_ROWS * d), n))
    edges = np.linspace(0, n, pieces + 1).astype(np.int64).tolist()
    tree = Tree(merge_columns)

    def one(piece: int) -> None:
        tree.put(piece, _sums_of_piece(X, edges[piece], edges[piece + 1]))

    share_work(one, deque(range(pieces)), min(usual_threads(), pieces))
    found: ColumnSums = tree.result()
    return found


def _sums_of_piece(X: Any, begin: int, end: int) -> ColumnSums:
    d, count = int(X.shape[1]), end - begin
    if not count or not d:
        return ColumnSums(count, np.zeros(d), np.zeros(d), 0.0, 0.0, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        if sp.issparse(X):
            squares, means, deviations = _sparse_sums(X, begin, end)
        else:
            values = X[begin:end].astype(np.float64, copy=False)
            squares = np.einsum("ij,ij->i", values, values)
            means = values.sum(axis=0) / count
            values = values - means
            rest = values.sum(axis=0)  # what rounding left of 0
            means = means + rest / count
            deviations = np.einsum("ij,ij->j", values, values) - rest * rest / count
    at = begin + int(np.argmax(squares))  # the first NaN, if there is one
    row = np.abs(X[at : at + 1].toarray().ravel() if sp.issparse(X) else X[at])
    column = int(np.argmax(row))
    largest = float(squares[at - begin])
    return ColumnSums(count, means, deviations, largest, float(row[column]), column)


def _sparse_sums(X: Any, begin: int, end: int) -> tuple[Floats, Floats, Floats]:
    d, count = int(X.shape[1]), end - begin
    owned = slice(int(X.indptr[begin]), int(X.indptr[end]))
    values, columns = X.data[owned].astype(np.float64), X.indices[owned]
    row = np.repeat(np.arange(count), np.diff(X.indptr[begin : end + 1]))
    squares = _added(row, np.square(values), count)
    means = _added(columns, values, d) / count
    deviations = _added(columns, np.square(values - means[columns]), d)
    deviations += (count - np.bincount(columns, minlength=d)) * np.square(means)
    return squares, means, deviations


def _added(at: Any, values: Floats, count: int) -> Floats:
    """Return the sums of values that go to the same place."""
    return np.asarray(np.bincount(at, values, count), dtype=np.float64)


def merge_columns(one: ColumnSums, other: ColumnSums) -> ColumnSums:
    """Return the sums of the rows of both."""
    rows = one.rows + other.rows
    if not one.rows or not other.rows:
        return one if one.rows else other
    with np.errstate(over="ignore", invalid="ignore"):
        apart = other.means - one.means
        means = one.means + apart * (other.rows / rows)
        between = np.square(apart) * (one.rows * (other.rows / rows))
        deviations = one.deviations + other.deviations + between
    later = other.largest_square > one.largest_square or math.isnan(other.largest_square)
    largest = other if later else one
    return ColumnSums(rows, means, deviations, *largest[3:])


# ------------------------------------------------------------------- all parts


def merge_surveys(source: RowSource, surveys: Iterable[Survey]) -> Survey:
    """Return the survey of all rows from those of the parts, which come in their order."""
    parts = []
    tree = Tree(merge_columns)
    first_row, nothing = None, np.zeros(0)
    for number, each in enumerate(surveys):
        tree.put(number, each.columns)
        if first_row is None and each.n:
            first_row = each.first_row
        short = each.columns._replace(means=nothing, deviations=nothing)
        parts.append(replace(each, columns=short, first_row=nothing))  # nothing as long as a row
    rows = np.array([part.n for part in parts], dtype=np.int64)
    if first_row is None:
        raise ValueError(f"The {len(parts)} parts have no rows: there is nothing to learn from.")
    targets = [part.targets for part in parts if part.targets is not None and part.n]
    return Survey(
        rows=rows,
        numbers=np.array([part.size for part in parts], dtype=np.int64),
        d=parts[0].d,
        dtype=parts[0].dtype,
        sparse=parts[0].sparse,
        columns=tree.result(),
        first_row=first_row,
        total_weight=math.fsum(part.total_weight for part in parts),
        labels=None if parts[0].labels is None else _merge_classes(source, parts),
        targets=reduce(TargetRange.joined, targets) if targets else None,
    )


def _merge_classes(source: RowSource, parts: list[Survey]) -> ClassCounts:
    found = [(i, part.labels) for i, part in enumerate(parts) if part.labels and part.n]
    first, labels = found[0]
    kind = _kind(labels.classes)
    for part, other in found:
        if _kind(other.classes) != kind:
            raise ValueError(
                f"{source.describe(part)}: its labels are {_kind(other.classes)}, but those of "
                f"{source.describe(first)} are {kind}: make them all of one kind"
            )
    classes = np.unique(np.concatenate([each.classes for _, each in found]))
    counts, weights = np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes))
    for _, each in found:
        at = np.searchsorted(classes, each.classes)
        counts[at] += each.counts
        weights[at] += each.weights
    return ClassCounts(classes, counts, weights)


_KINDS = {"b": "booleans", "i": "numbers", "u": "numbers", "f": "numbers", "U": "strings"}


def _kind(classes: npt.NDArray[Any]) -> str:
    if classes.dtype.kind != "O":
        return _KINDS.get(classes.dtype.kind, str(classes.dtype))
    kinds = {_KINDS.get(np.asarray(each).dtype.kind, type(each).__name__) for each in classes}
    return " and ".join(sorted(kinds))
