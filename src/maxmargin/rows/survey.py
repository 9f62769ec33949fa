"""A survey of labelled rows in parts: one pass finds all that must be known before fitting.

It finds how many rows there are, which classes, how large the numbers get, and whether all of them
are finite. What it returns is small, whatever the number of rows.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.rows.blocks import Tree
from maxmargin.rows.read_ahead import read_ahead
from maxmargin.runtime.threads import share_work, usual_threads
from maxmargin.validation.data import class_indices, classes_of
from maxmargin.validation.parameters import LARGEST_FACTOR, SMALLEST_FACTOR

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
    def sums(self) -> Floats:
        """The sum of each column."""
        return self.means * self.rows

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


class ClassCounts(NamedTuple):
    """The classes in their order, with the number and the weight of the rows of each."""

    classes: npt.NDArray[Any]
    counts: Ints
    weights: Floats


@dataclass(frozen=True)
class Survey:
    """What is known of rows in parts after one pass over them.

    Parameters
    ----------
    rows, numbers : int64 arrays
        How many rows each part has, and how many numbers they are made of (stored ones, if sparse).
    d : int
        Columns.
    dtype : dtype
        float32 or float64.
    sparse : bool
        Whether parts are CSR matrices.
    columns : ColumnSums
        Means and scatter of columns, and the largest squared norm.
    first_row : array of shape (d,)
        The first row of all.
    weighted : bool
        Whether the source has weights; without them every row weighs 1.
    total_weight : float
        The sum of the weights.
    labels : ClassCounts or None
        The classes, if labels were surveyed.
    targets : TargetRange or None
        The range of targets, if these were surveyed instead.
    """

    rows: Ints
    numbers: Ints
    d: int
    dtype: np.dtype[Any]
    sparse: bool
    columns: ColumnSums
    first_row: Floats
    weighted: bool
    total_weight: float
    labels: ClassCounts | None = None
    targets: TargetRange | None = None

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.rows.sum())

    @property
    def size(self) -> int:
        """The numbers that all rows are made of."""
        return int(self.numbers.sum())

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

    Parameters
    ----------
    source : RowSource
        The rows.
    targets : bool, default=False
        Whether y holds numbers to be predicted, instead of labels of classes.

    Raises
    ------
    ValueError
        If a part cannot be learnt from: NaN or infinity, negative weights, another number of
        columns, labels of another kind. The message begins with the part.

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

    def loaded() -> Iterator[tuple[int, Any]]:
        for part in range(len(source)):
            yield part, load_part(source, part, again=True)

    with read_ahead(loaded()) as parts:
        return merge_surveys(source, (_survey_of(source, *each, targets) for each in parts))


def survey_part(source: Any, part: int, *, targets: bool = False) -> Survey:
    """Read one part and return its survey: those of all parts go to ``merge_surveys``."""
    return _survey_of(source, part, load_part(source, part, again=True), targets)


# ------------------------------------------------------------------- one part


def load_part(source: Any, part: int, *, again: bool = False) -> Any:
    """Load a part and raise a ValueError if it is not made as the source says.

    CSR comes with sorted columns, each once. ``again``: it was surveyed before, or is being
    surveyed, so that its numbers need not be looked at.
    """
    loaded = getattr(source, "reload", source.load)(part) if again else source.load(part)
    X, y, weight = loaded
    wrong = _misshapen(source, X, y, weight)
    if wrong:
        raise ValueError(f"{source.describe(part)}: {wrong}")
    if source.sparse and X.shape[0]:
        if X.nnz and not 0 <= int(X.indices.min()) <= int(X.indices.max()) < X.shape[1]:
            raise ValueError(f"{source.describe(part)}: X has indices of columns that do not exist")
        if not X.has_canonical_format:
            X = X.copy()  # the matrix is not ours to change
            X.sum_duplicates()
            return loaded._replace(X=X)
    return loaded


def _misshapen(source: Any, X: Any, y: Any, weight: Any) -> str:
    if sp.issparse(X) != source.sparse or X.ndim != 2:
        kinds = {True: "a sparse matrix", False: "an array"}
        return f"X is {kinds[sp.issparse(X)]} of {X.ndim} dimensions, unlike the first part"
    if X.shape[1] != source.n_columns:
        return (
            f"X has {X.shape[1]} columns, but {source.n_columns} are expected: all parts must "
            "have the same columns"
        )
    if X.dtype != source.dtype:
        return f"X holds {X.dtype}, but {source.dtype} is expected"
    for name, values in (("y", y), ("weight", weight)):
        if values is not None and np.shape(values) != (X.shape[0],):
            return f"X has {X.shape[0]} rows, but {name} has shape {np.shape(values)}"
    return ""


def _survey_of(source: Any, part: int, loaded: Any, targets: bool) -> Survey:
    X, y, weight = loaded
    rows = int(X.shape[0])
    try:
        columns = _column_sums(X, getattr(source, "feature_names", None))
        weight = _checked_weight(weight)
        labels = None if y is None or targets else _class_counts(np.asarray(y), weight)
        scatter = None if y is None or not targets else _target_range(np.asarray(y))
    except ValueError as wrong:
        if hasattr(source, "check"):  # which knows rows by their numbers in the file
            source.named(part, lambda: source.check(part, loaded))
        raise ValueError(f"{source.describe(part)}: {wrong}") from wrong
    first = (X[:1].toarray() if source.sparse else X[:1]).astype(np.float64).ravel()
    return Survey(
        rows=np.array([rows], dtype=np.int64),
        numbers=np.array([X.nnz if source.sparse else X.size], dtype=np.int64),
        d=int(X.shape[1]),
        dtype=np.dtype(source.dtype),
        sparse=bool(source.sparse),
        columns=columns,
        first_row=first,
        weighted=weight is not None,
        total_weight=float(rows if weight is None else math.fsum(weight)),
        labels=labels,
        targets=scatter,
    )


def _checked_weight(weight: Any) -> Floats | None:
    if weight is None:
        return None
    given = np.asarray(weight)
    if given.dtype.kind not in "buif":
        raise ValueError(f"weights must be numbers, got dtype {given.dtype}")
    checked: Floats = given.astype(np.float64)
    for wrong, what in (
        (~np.isfinite(checked), "NaN or infinity"),
        (checked < 0, "negative values: a weight is a number of repetitions"),
        (checked > LARGEST_FACTOR, f"more than {LARGEST_FACTOR:g}"),
        ((checked > 0) & (checked < SMALLEST_FACTOR), f"numbers below {SMALLEST_FACTOR:g}"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"weight (row {row}: {checked[row]:g}) contains {what}")
    return checked


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
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers")
    try:
        target = y.astype(np.float64)
    except (TypeError, ValueError) as wrong:
        raise ValueError(f"y must hold numbers for regression, got dtype {y.dtype}") from wrong
    if not np.isfinite(target).all():
        row = int(np.argmax(~np.isfinite(target)))
        raise ValueError(f"y contains NaN or infinity (row {row}): drop such rows")
    if not len(target):
        return TargetRange(0, math.inf, -math.inf, 0.0, 0.0)
    mean = float(target.mean())
    scatter = float(np.square(target - mean).sum())
    return TargetRange(len(target), float(target.min()), float(target.max()), mean, scatter)


# ------------------------------------------------------------------- sums over columns


def _column_sums(X: Any, names: Any) -> ColumnSums:
    """Return the sums of the columns of some rows; raise if a number is not finite."""
    n, d = X.shape
    numbers = X.nnz if sp.issparse(X) else X.size
    pieces = max(1, min(numbers // max(_PIECE, _PIECE_ROWS * d), n))
    edges = np.linspace(0, n, pieces + 1).astype(np.int64).tolist()
    tree = Tree(merge_columns)

    def one(piece: int) -> None:
        tree.put(piece, _sums_of_piece(X, edges[piece], edges[piece + 1], names))

    share_work(one, deque(range(pieces)), min(usual_threads(), pieces))
    found: ColumnSums = tree.result()
    return found


def _sums_of_piece(X: Any, begin: int, end: int, names: Any) -> ColumnSums:
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
            deviations = np.einsum("ij,ij->j", values, values)
    at = begin + int(np.argmax(squares))  # the first NaN, if there is one
    if not np.isfinite(squares[at - begin]):
        at = _refuse_infinite(X, begin + np.flatnonzero(~np.isfinite(squares)), names)
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


def _refuse_infinite(X: Any, rows: Ints, names: Any) -> int:
    """Raise if a number in these rows is not finite, else return the first: it overflows."""
    for at in rows.tolist():
        row = X[at : at + 1].toarray().ravel() if sp.issparse(X) else X[at]
        finite = np.isfinite(row)
        if not finite.all():
            column = int(np.argmin(finite))
            what = "NaN" if np.isnan(row[column]) else "infinity"
            name = f" ({names[column]!r})" if names is not None else ""
            raise ValueError(
                f"Input X contains {what} (row {at} of this part, column {column}{name}): drop "
                "such rows, or impute the number"
            )
    return int(rows[0])


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
    largest = max(one, other, key=lambda sums: sums.largest_square)
    return ColumnSums(rows, means, deviations, *largest[3:])


# ------------------------------------------------------------------- all parts


def merge_surveys(source: Any, surveys: Iterable[Survey]) -> Survey:
    """Return the survey of all rows from those of the parts, which come in their order."""
    parts = []
    tree = Tree(merge_columns)
    first_row = None
    for number, each in enumerate(surveys):
        tree.put(number, each.columns)
        if first_row is None and each.n:
            first_row = each.first_row
        parts.append(_without_columns(each))
    rows = np.array([part.n for part in parts], dtype=np.int64)
    if first_row is None:
        raise ValueError(f"The {len(parts)} parts have no rows: there is nothing to learn from.")
    weighted = _of_all(source, parts, rows, "weights", [part.weighted for part in parts])
    labelled = _of_all(source, parts, rows, "labels", [part.labels is not None for part in parts])
    _of_all(source, parts, rows, "targets", [part.targets is not None for part in parts])
    return Survey(
        rows=rows,
        numbers=np.array([part.size for part in parts], dtype=np.int64),
        d=parts[0].d,
        dtype=parts[0].dtype,
        sparse=parts[0].sparse,
        columns=tree.result(),
        first_row=first_row,
        weighted=weighted,
        total_weight=math.fsum(part.total_weight for part in parts),
        labels=_merge_classes(source, parts) if labelled else None,
        targets=_merge_targets(parts),
    )


def _without_columns(part: Survey) -> Survey:
    """Return the survey of a part without what is as long as a row."""
    nothing = np.zeros(0)
    columns = part.columns._replace(means=nothing, deviations=nothing)
    return Survey(**{**vars(part), "columns": columns, "first_row": nothing})


def _of_all(source: Any, parts: list[Survey], rows: Ints, what: str, have: list[bool]) -> bool:
    """Return whether parts have it; raise if some have and some have not."""
    filled = [part for part in range(len(parts)) if rows[part]]
    without = [part for part in filled if not have[part]]
    if without and len(without) < len(filled):
        raise ValueError(
            f"{source.describe(without[0])}: it has no {what}, but other parts have them"
        )
    return not without


def _merge_classes(source: Any, parts: list[Survey]) -> ClassCounts:
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


def _merge_targets(parts: list[Survey]) -> TargetRange | None:
    total = TargetRange(0, math.inf, -math.inf, 0.0, 0.0)
    for part in parts:
        if part.targets is None or not part.n:
            continue
        one, other = total, part.targets
        rows = one.rows + other.rows
        apart = other.mean - one.mean
        total = TargetRange(
            rows,
            min(one.low, other.low),
            max(one.high, other.high),
            one.mean + apart * (other.rows / rows),
            one.deviations + other.deviations + apart**2 * (one.rows * (other.rows / rows)),
        )
    return total if total.rows else None
