"""What is diagnosed: checked rows and labels, samples of them, equal rows, facts about columns."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
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
from maxmargin.validation.parameters import check_number, shown

DENSE_COLUMNS = 2000  # beyond, networks and trees are not asked
FEWEST_NUMBERS = 8  # rows of a regression
_UNEVEN_CLASSES = 0.6  # share of the largest class beyond which accuracy says too little
_SMALLEST = 1e-90  # spread of rows that costs can be relative to
_LARGEST = 1e140  # products of two such numbers, and sums of them, are still finite
_WIDE = 0.1  # share of nonzeros below which sparse rows stay sparse
_DENSE_SIZE = 40_000_000  # numbers that may be written out


@dataclass
class Arguments(BaseEstimator):
    """The options of ``diagnose``, checked like an estimator's."""

    scoring: Any
    max_time: Any
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
        generator(self.random_state)


Arguments.__name__ = "diagnose"  # what error messages call it


@dataclass(frozen=True)
class DiagnosedTable:
    """Checked data: rows, class numbers, the labels they stand for, and column names if any."""

    X: Any
    y: Ints
    classes: npt.NDArray[Any]
    names: list[str] | None
    sparse: bool = False  # as they were given; ``X`` is sparse only if it is wide

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
    numbers = np.searchsorted(classes, labels).astype(np.int64)
    return DiagnosedTable(_write_out(X), numbers, classes, named, sp.issparse(X))


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
    alike = np.zeros(len(target), dtype=np.int64)
    return DiagnosedTable(_write_out(X), alike, np.zeros(1), named, sp.issparse(X)), target


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


def _write_out(X: Any) -> Any:
    """Return rows as an array, unless they are so sparse, or so many, that they stay sparse."""
    if not sp.issparse(X):
        return X
    size = X.shape[0] * X.shape[1]
    if X.nnz >= _WIDE * size and X.shape[1] <= DENSE_COLUMNS and size <= _DENSE_SIZE:
        return X.toarray()
    # Some of scikit-learn's learners refuse 64-bit indices.
    indices = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_array((X.data, *indices), shape=X.shape)


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


def scaler(sparse: bool, wide: bool) -> Any:
    """Return what evens columns out: zeros of sparse rows stay zeros.

    The mean may stay: kernels of distances and planes with a free intercept do not depend on it.
    """
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    return MaxAbsScaler() if wide else StandardScaler(with_mean=not sparse)


@dataclass
class Sample:
    """Rows drawn to compare learners on: as they are, and with columns scaled.

    Scaling looks at all of them, but at no label.
    """

    X: Any
    y: Ints
    folds: Ints
    metric: Metric
    sparse: bool = False  # as they were given
    uneven: bool = False  # columns differ much in size
    separable: bool = False  # all rows, by planes
    seed: int = 0  # for learners that start at random
    over: Callable[[], bool] = bool  # whether the time has run out
    _shared: tuple[Any, Any] = (None, None)

    @property
    def wide(self) -> bool:
        """Whether the rows stay sparse."""
        return bool(sp.issparse(self.X))

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.metric.weight)

    @cached_property
    def turn(self) -> Floats:
        """When a row's turn comes, from 0 to 1, as rows are added in a random order by class."""
        turn, rng = np.empty(len(self.y)), np.random.default_rng(self.seed)
        for k in np.unique(self.y):
            members = np.flatnonzero(self.y == k)
            turn[members] = (rng.permutation(len(members)) + 0.5) / len(members)
        return turn

    @property
    def majority(self) -> Flags:
        """Where naming the largest class is right."""
        return np.asarray(self.y == np.bincount(self.y).argmax())

    @property
    def forms(self) -> list[bool]:
        """Whether to scale: both are tried if columns are uneven, else they stay as they are."""
        return [True, False] if self.uneven else [False]

    @cached_property
    def _scaled(self) -> Any:
        return scaler(False, self.wide).fit_transform(self.X)

    def form(self, scaled: bool) -> Any:
        """Return the rows, with columns scaled if asked for."""
        return self._scaled if scaled else self.X

    def spread(self, scaled: bool) -> float:
        """Return the mean squared distance of the rows from their mean."""
        X = self.form(scaled)
        variances = mean_variance_axis(X, axis=0)[1] if self.wide else X.var(axis=0)
        found = float(variances.sum(dtype=np.float64))
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

    Rows are compared by hashes of 128 bits. That two different rows agree in them is less likely
    than a broken machine.

    Examples
    --------
    >>> equal_rows(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0]])).tolist()
    [0, 1, 0, 1]
    """
    if sp.issparse(X):
        X = sp.csr_array(X, copy=True)
        X.sum_duplicates()  # which sorts them
        X.eliminate_zeros()
        parts = (
            X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in pairwise(X.indptr.tolist())
        )
    else:
        parts = ((row + 0.0).tobytes() for row in X)  # −0.0 equals 0.0
    known: dict[bytes, int] = {}
    hashes = (blake2b(part, digest_size=16).digest() for part in parts)
    return np.array([known.setdefault(one, len(known)) for one in hashes], dtype=np.int64)


# ------------------------------------------------------------------- facts about columns

_UNEVEN = 10.0  # ratio of the sizes of columns from which scaling is tried
_WIDE_UNEVEN = 1000.0  # the same for rows that stay sparse
_IMBALANCED = 10.0


@dataclass(frozen=True)
class ColumnFacts:
    """Scales and constants of columns."""

    ratio: float  # of the largest column to the smallest: deviations, or entries if sparse
    largest: int
    smallest: int
    constant: list[int]
    uneven: bool


def measure_columns(X: Any) -> ColumnFacts:
    """Measure the columns."""
    if wide := sp.issparse(X):
        low, high = (extreme.toarray().ravel() for extreme in (X.min(axis=0), X.max(axis=0)))
        sizes = np.maximum(high, -low).astype(np.float64)
    else:
        low, high, sizes = X.min(axis=0), X.max(axis=0), X.std(axis=0, dtype=np.float64)
    constant = np.flatnonzero(low == high).tolist()
    varying = np.flatnonzero((low < high) & (sizes > 0))
    if len(varying) == 0:
        return ColumnFacts(1.0, 0, 0, constant, False)
    largest = int(varying[sizes[varying].argmax()])
    smallest = int(varying[sizes[varying].argmin()])
    ratio = float(sizes[largest] / sizes[smallest])
    uneven = ratio > (_WIDE_UNEVEN if wide else _UNEVEN)
    return ColumnFacts(ratio, largest, smallest, constant, uneven)


def describe_columns(table: DiagnosedTable, columns: ColumnFacts) -> list[str]:
    """Return sentences, each with its number; none if there is nothing unusual."""
    found = []
    if columns.uneven:
        found.append(
            f"Columns are uneven: {table.column(columns.largest)} is {columns.ratio:.3g} times as "
            f"large as {table.column(columns.smallest)}."
        )
    if constant := columns.constant:
        names = ", ".join(table.column(j) for j in constant[:5])
        more = " and more" if len(constant) > 5 else ""
        verb = "is" if len(constant) == 1 else "are"
        found.append(
            f"{len(constant)} of {table.X.shape[1]} columns {verb} constant: {names}{more}."
        )
    counts = np.bincount(table.y)
    if counts.max() > _IMBALANCED * counts.min():
        most, least = (shown(table.label(int(k))) for k in (counts.argmax(), counts.argmin()))
        found.append(
            f"Classes are imbalanced: {counts.max()} rows of {most}, {counts.min()} of {least}."
        )
    return found
