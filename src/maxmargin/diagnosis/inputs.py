"""What is diagnosed: checked rows and labels, samples of them, equal rows, facts about columns."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.sparsefuncs import mean_variance_axis

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.data.columns import resembles_measurement
from maxmargin.data.layout import TASKS
from maxmargin.diagnosis.significance import Metric
from maxmargin.validation.data import (
    check_classes,
    check_labels,
    check_rows,
    check_targets,
    generator,
)
from maxmargin.validation.parameters import check_flag, check_number, shown

FEWEST_NUMBERS = 8  # rows of a regression
_UNEVEN_CLASSES = 0.6  # share of the largest class beyond which accuracy says too little
_SMALLEST = 1e-90  # spread of rows that costs can be relative to
_LARGEST = 1e140  # products of two such numbers, and sums of them, are still finite
_BLOCK = 1 << 22  # numbers hashed at a time
_WIDE = 0.1  # share of nonzeros below which sparse rows stay sparse
_DENSE_SIZE = 40_000_000  # numbers that may be written out
_MOST_COMBINATIONS = 1024


@dataclass
class Arguments(BaseEstimator):
    """The options of ``diagnose``, checked like an estimator's."""

    scoring: Any
    max_time: Any
    thorough: Any
    random_state: Any
    task: Any = None

    def check(self) -> None:
        """Raise TypeError or ValueError for what is not allowed."""
        if self.scoring not in ("auto", "accuracy", "balanced_accuracy"):
            raise ValueError(
                f"scoring={self.scoring!r}: diagnose compares models by 'accuracy' or "
                "'balanced_accuracy' ('auto' chooses); for any other score, search with "
                "SVCSearchCV(scoring=...)"
            )
        if self.task not in TASKS:
            raise ValueError(f"task must be one of {TASKS}, got {self.task!r}")
        check_number(self, "max_time", above=0)
        check_flag(self, "thorough")
        generator(self.random_state)


Arguments.__name__ = "diagnose"  # what error messages call it


@dataclass(frozen=True)
class DiagnosedTable:
    """Checked data: rows, class numbers, the labels they stand for, and column names if any."""

    X: Any
    y: Ints
    classes: npt.NDArray[Any]
    names: list[str] | None

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    def column(self, j: int) -> str:
        """Return the name of a column, or its number."""
        return f"column {j if self.names is None else shown(self.names[j])}"

    def label(self, k: int) -> Any:
        """Return the label of class k as a plain value."""
        return self.classes[k : k + 1].tolist()[0]


def choose_scoring(scoring: str, y: Ints) -> str:
    """Return the metric: "auto" is accuracy, unless one class has over 60 % of the rows.

    Examples
    --------
    >>> choose_scoring("auto", np.array([0, 0, 1])), choose_scoring("auto", np.array([0, 1]))
    ('balanced_accuracy', 'accuracy')
    """
    if scoring != "auto":
        return scoring
    uneven = np.bincount(y).max() > _UNEVEN_CLASSES * len(y)
    return "balanced_accuracy" if uneven else "accuracy"


def check_table(arguments: Arguments, X: Any, y: Any, feature_names: Any = None) -> DiagnosedTable:
    """Check X and y as every classifier does, and refuse targets that are no classes."""
    X, named = _check_rows(arguments, X, feature_names)
    _refuse_names(y)
    labels = check_labels(y, X.shape[0])
    classes = check_classes(arguments, labels)
    return DiagnosedTable(X, np.searchsorted(classes, labels).astype(np.int64), classes, named)


def check_numbers(
    arguments: Arguments, X: Any, y: Any, feature_names: Any
) -> tuple[DiagnosedTable, Floats]:
    """Check X and y as every regressor does; the table has one class for all rows."""
    if arguments.scoring != "auto":
        raise ValueError(f"scoring={arguments.scoring!r} is for classes, and y has numbers")
    X, named = _check_rows(arguments, X, feature_names)
    target = check_targets(y, X.shape[0])
    if len(target) < FEWEST_NUMBERS or not np.ptp(target) > 0:
        why = f"y is {target[0]:.6g} in all rows"
        if len(target) < FEWEST_NUMBERS:
            why = f"{len(target)} rows are too few, {FEWEST_NUMBERS} are needed"
        raise ValueError(f"a regression cannot be diagnosed here: {why}")
    return DiagnosedTable(X, np.zeros(len(target), dtype=np.int64), np.zeros(1), named), target


def is_regression(task: str | None, y: Any) -> bool:
    """Return whether y has numbers to be predicted: by the task, or by the rule for labels."""
    if task is not None:
        return task == "regression"
    values = np.asarray(y) if np.ndim(y) else np.zeros(1)
    return resembles_measurement(values.ravel()) and bool(np.isfinite(values).all())


def _check_rows(arguments: Arguments, X: Any, feature_names: Any) -> tuple[Any, list[str] | None]:
    X = check_rows(arguments, X, reset=True)
    largest = float(abs(X).max())
    if largest > _LARGEST:
        raise ValueError(
            f"X has entries up to {largest:.3g}, whose products overflow: scale its columns, "
            "for instance with sklearn.preprocessing.MaxAbsScaler."
        )
    names = feature_names
    if names is None:
        names = getattr(arguments, "feature_names_in_", None)
    named = None if names is None else [str(name) for name in names]
    if named is not None and len(named) != X.shape[1]:
        raise ValueError(f"feature_names has {len(named)} names for {X.shape[1]} columns")
    return X, named


def _refuse_names(y: Any) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            n, different = np.size(y), len(np.unique(y))
    except (TypeError, ValueError):
        return  # check_labels says what is wrong
    if different > max(20, n / 2):
        raise ValueError(
            f"y has {different} different values in {n} rows, which are hardly classes: cut them "
            "into some (numpy.digitize), or, if they are numbers, say task='regression'."
        )


# ------------------------------------------------------------------- samples of rows


def draw_rows(y: Ints, size: int, rng: np.random.Generator) -> Ints:
    """Draw ``size`` rows at random, each class by its share and with two rows at least."""
    if len(y) <= size:
        return np.arange(len(y))
    drawn = []
    for k in range(int(y.max()) + 1):
        members = np.flatnonzero(y == k)
        count = min(len(members), max(2, round(size * len(members) / len(y))))
        drawn.append(rng.choice(members, count, replace=False))
    return np.sort(np.concatenate(drawn))


def is_wide(X: Any) -> bool:
    """Return whether rows are so sparse, or so many, that they should not be made dense."""
    if not sp.issparse(X):
        return False
    size = X.shape[0] * X.shape[1]
    return bool(X.nnz < _WIDE * size or X.shape[1] > 2000 or size > _DENSE_SIZE)


def as_learnt(X: Any, wide: bool) -> Any:
    """Return rows as learners get them: sparse only if they are wide."""
    if not sp.issparse(X):
        return X
    if not wide:
        return X.toarray()
    # Some of scikit-learn's learners refuse 64-bit indices.
    indices = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_array((X.data, *indices), shape=X.shape)


def scaler(sparse: bool, wide: bool) -> Any:
    """Return what evens columns out: zeros of sparse rows stay zeros.

    The mean may stay: kernels of distances and planes with a free intercept do not depend on it.
    """
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    return MaxAbsScaler() if wide else StandardScaler(with_mean=not sparse)


@dataclass
class Sample:
    """Rows drawn to compare learners on: as they are, and with columns scaled.

    ``X``, ``y`` and ``folds`` are cross-validated. Where there are many more rows, some of them
    (``X_fresh``, ``y_fresh``) only score what cross-validation chose; else None.
    Scaling looks at all rows that are cross-validated, but at no label.
    """

    X: Any
    y: Ints
    folds: Ints
    metric: Metric
    X_fresh: Any = None
    y_fresh: Ints | None = None
    sparse: bool = False  # as they were given; ``X`` is sparse only if it is wide
    wide: bool = False
    uneven: bool = False  # columns differ much in size
    separable: bool = False  # all rows, by planes
    seed: int = 0  # for learners that start at random
    over: Callable[[], bool] = bool  # whether the time has run out
    _scaled: dict[bool, tuple[Any, Any]] = field(default_factory=dict)
    _shared: tuple[Any, Any] = (None, None)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.metric.weight)

    @cached_property
    def compared(self) -> Metric:
        """The metric of the rows by which families are compared."""
        if self.y_fresh is None:
            return self.metric
        return type(self.metric).of(self.metric.name, self.y_fresh, self.n_classes)

    @cached_property
    def turn(self) -> Floats:
        """When a row's turn comes, from 0 to 1, as rows are added in a random order by class."""
        turn, rng = np.empty(len(self.y)), np.random.default_rng(self.seed)
        for k in np.unique(self.y):
            members = np.flatnonzero(self.y == k)
            turn[members] = (rng.permutation(len(members)) + 0.5) / len(members)
        return turn

    @property
    def strata(self) -> Ints:
        """Which of the rows that families are compared by were scored by the same fit."""
        fresh = self.y_fresh
        return self.folds if fresh is None else np.zeros(len(fresh), dtype=np.int64)

    @property
    def majority(self) -> Flags:
        """Where naming the largest class is right, of the rows that families are compared by."""
        return np.asarray(self.compared.y == np.bincount(self.y).argmax())

    @property
    def forms(self) -> list[bool]:
        """Whether to scale: both are tried if columns are uneven, else they stay as they are."""
        return [True, False] if self.uneven else [False]

    def form(self, scaled: bool, centred: bool = False) -> tuple[Any, Any]:
        """Return the rows and the fresh rows, with columns scaled if asked for."""
        if not scaled:
            return self.X, self.X_fresh
        mean = centred or not self.sparse
        if mean not in self._scaled:
            fitted = scaler(not mean, self.wide).fit(self.X)
            fresh = None if self.X_fresh is None else fitted.transform(self.X_fresh)
            self._scaled[mean] = fitted.transform(self.X), fresh
        return self._scaled[mean]

    def spread(self, scaled: bool) -> float:
        """Return the mean squared distance of the rows from their mean."""
        X, _ = self.form(scaled)
        squares: float = X.multiply(X).sum() if sp.issparse(X) else np.einsum("ij,ij->", X, X)
        mean = np.asarray(X.mean(axis=0)).ravel()
        found = float(squares) / int(X.shape[0]) - float(mean @ mean)
        return found if found > _SMALLEST else 1.0  # all rows are equal, or as good as

    def share(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Return what all folds share, such as a kernel matrix; only the latest is kept."""
        if self._shared[0] != key:
            self._shared = key, compute()
        return self._shared[1]


# ------------------------------------------------------------------- equal rows


def find_groups(X: Any, given: Any = None) -> Ints:
    """Return a number for each row, the same for rows that count as equal."""
    if given is None:
        return equal_rows(X)
    groups = np.unique(np.ravel(given), return_inverse=True)[1]
    if len(groups) != X.shape[0]:
        raise ValueError(f"groups has {len(groups)} entries for {X.shape[0]} rows")
    return np.asarray(groups, dtype=np.int64)


def equal_rows(X: Any) -> Ints:
    """Return a number for each row, the same for equal rows and for no others.

    Rows are told apart by 128 bits: sums over columns of scrambled entries times random keys. That
    two different rows agree in them is less likely than a broken machine.

    Examples
    --------
    >>> equal_rows(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0]])).tolist()
    [0, 1, 0, 1]
    """
    n, d = X.shape
    keys = np.random.default_rng(0).integers(2**64, size=(d, 2), dtype=np.uint64)
    if sp.issparse(X):
        hashes = sp.csr_array((_scrambled(X.data), X.indices, X.indptr), shape=(n, d)) @ keys
    else:
        step = max(1, _BLOCK // d)
        hashes = np.vstack([_scrambled(X[i : i + step]) @ keys for i in range(0, n, step)])
    bits = np.ascontiguousarray(hashes).view("V16").ravel()
    _, first, group = np.unique(bits, return_index=True, return_inverse=True)
    return np.asarray(np.unique(first[group], return_inverse=True)[1], dtype=np.int64)


def is_truth_table(X: Any, group: Ints) -> bool:
    """Return whether the rows are all combinations of the values of their columns.

    ``group`` numbers equal rows alike. Of such rows none is left to predict.

    Examples
    --------
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> is_truth_table(X, np.arange(4)), is_truth_table(X[:3], np.arange(3))
    (True, False)
    """
    first = np.unique(group, return_index=True)[1]
    if max(len(first), X.shape[1]) > _MOST_COMBINATIONS:
        return False
    dense = X[first].toarray() if sp.issparse(X) else X[first]
    levels = [len(np.unique(column)) for column in dense.T]
    return math.prod(levels) == len(first) and sum(count > 1 for count in levels) > 1


def _scrambled(values: Any) -> Any:
    """Return the bits of numbers, with high bits also in low places; zeros stay zeros."""
    # Adding 0.0 turns −0.0, which equals 0.0, into it.
    words = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    return words ^ (words >> np.uint64(32))


# ------------------------------------------------------------------- facts about columns

_UNEVEN = 10.0  # ratio of the sizes of columns from which scaling is tried
_WIDE_UNEVEN = 1000.0
_IMBALANCED = 10.0
_COLLINEAR = 0.999
_RANK_COLUMNS = 1000


@dataclass(frozen=True)
class ColumnFacts:
    """Scales, constants and collinearities of columns; all exact, but for what is said."""

    ratio: float  # of the largest column to the smallest: deviations, or entries if sparse
    largest: int
    smallest: int
    constant: list[int]
    rank: int | None  # dimension of the flat that holds the rows examined, if it was computed
    nearly: list[tuple[int, int]]  # columns that are multiples of each other, or almost
    rows_seen: int  # for rank and nearly
    wide: bool = False

    @property
    def uneven(self) -> bool:
        """Whether sizes differ by more than ten; in wide sparse rows, by more than a thousand."""
        return self.ratio > (_WIDE_UNEVEN if self.wide else _UNEVEN)


def measure_columns(X: Any, rows: Ints) -> ColumnFacts:
    """Measure the columns; rank and correlations on the given rows."""
    sizes, constant = _column_sizes(X)
    gone = np.flatnonzero(constant).tolist()
    varying = np.flatnonzero(~constant & (sizes > 0))
    if len(varying) == 0:
        return ColumnFacts(1.0, 0, 0, gone, 0, [], len(rows))
    largest = int(varying[sizes[varying].argmax()])
    smallest = int(varying[sizes[varying].argmin()])
    ratio = float(sizes[largest] / sizes[smallest])
    rank, nearly = _dependence(X[rows], varying) if X.shape[1] <= _RANK_COLUMNS else (None, [])
    return ColumnFacts(ratio, largest, smallest, gone, rank, nearly, len(rows), is_wide(X))


def _column_sizes(X: Any) -> tuple[Floats, Flags]:
    if not sp.issparse(X):
        return X.std(axis=0, dtype=np.float64), np.asarray(X.min(axis=0) == X.max(axis=0))
    low, high = (extreme.toarray().ravel() for extreme in (X.min(axis=0), X.max(axis=0)))
    if X.nnz > 0.3 * X.shape[0] * X.shape[1]:
        return np.sqrt(mean_variance_axis(sp.csr_array(X), axis=0)[1]), low == high
    return np.maximum(high, -low).astype(np.float64), low == high


def _dependence(X: Any, varying: Ints) -> tuple[int, list[tuple[int, int]]]:
    dense = (X[:, varying].toarray() if sp.issparse(X) else X[:, varying]).astype(np.float64)
    dense -= dense.mean(axis=0)
    length = np.linalg.norm(dense, axis=0)
    columns = varying[length > 0]
    if len(columns) == 0:
        return 0, []
    dense = dense[:, length > 0] / length[length > 0]
    products = dense.T @ dense
    values = np.linalg.eigvalsh(products)
    rank = int((values > 1e-12 * len(values) * values[-1]).sum())
    pairs = np.argwhere(np.triu(np.abs(products) > _COLLINEAR, 1))
    return rank, [(int(i), int(j)) for i, j in columns[pairs]]


def describe_columns(table: DiagnosedTable, columns: ColumnFacts) -> list[str]:
    """Return sentences, each with its number; none if there is nothing unusual."""
    d = table.X.shape[1]
    found = []
    if columns.uneven:
        found.append(
            f"Columns are uneven: {table.column(columns.largest)} is {columns.ratio:.3g} times as "
            f"large as {table.column(columns.smallest)}."
        )
    if columns.constant:
        names = ", ".join(table.column(j) for j in columns.constant[:5])
        more = " and more" if len(columns.constant) > 5 else ""
        verb = "is" if len(columns.constant) == 1 else "are"
        found.append(f"{len(columns.constant)} of {d} columns {verb} constant: {names}{more}.")
    if columns.nearly:
        i, j = columns.nearly[0]
        pairs = "pair" if len(columns.nearly) == 1 else "pairs"
        found.append(
            f"Some columns are nearly collinear ({len(columns.nearly)} {pairs}), such as "
            f"{table.column(i)} and {table.column(j)}."
        )
    free = d - len(columns.constant)
    if columns.rank is not None and columns.rank < min(free, columns.rows_seen - 1):
        found.append(
            f"The rows span {columns.rank} dimensions of {free} varying columns: some columns are "
            "combinations of others."
        )
    counts = np.bincount(table.y)
    if counts.max() > _IMBALANCED * counts.min():
        most, least = (shown(table.label(int(k))) for k in (counts.argmax(), counts.argmin()))
        found.append(
            f"Classes are imbalanced: {counts.max()} rows of {most}, {counts.min()} of {least}."
        )
    return found
