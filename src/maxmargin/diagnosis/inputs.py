"""What is diagnosed: checked rows and labels, and the rows drawn from them when they are many."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import type_of_target

from maxmargin.estimators.inputs import check_classes, check_labels, check_rows, generator
from maxmargin.estimators.parameters import check_flag, check_number

Ints = npt.NDArray[np.int64]

_LARGEST = 1e140  # products of two such numbers, and sums of them, are still finite
_WIDE = 0.1  # share of nonzeros below which sparse rows stay sparse
_DENSE_SIZE = 40_000_000  # numbers that may be written out


class Arguments(BaseEstimator):
    """The options of ``diagnose``, checked like an estimator's."""

    def __init__(self, max_time: Any, thorough: Any, random_state: Any) -> None:
        self.max_time = max_time
        self.thorough = thorough
        self.random_state = random_state

    def check(self) -> "Arguments":
        """Raise TypeError or ValueError for what is not allowed."""
        check_number(self, "max_time", above=0)
        check_flag(self, "thorough")
        generator(self.random_state)
        return self


Arguments.__name__ = "diagnose"  # what error messages call it


@dataclass(frozen=True)
class Table:
    """Checked data: rows, class numbers, the labels they stand for, and column names if any."""

    X: Any
    y: Ints
    classes: npt.NDArray[Any]
    names: list[str] | None

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    def column(self, j: int) -> str:
        """Return the name of a column, or its number."""
        return f"column {j}" if self.names is None else f"column {shown(self.names[j])}"

    def label(self, k: int) -> Any:
        """Return the label of class k as a plain value."""
        label = self.classes[k]
        return label.item() if isinstance(label, np.generic) else label


def shown(name: Any) -> str:
    """Return a name as it can stand in a sentence: quoted, and no longer than 40 characters.

    Examples
    --------
    >>> shown("width"), len(shown("a" * 10_000)), shown(chr(0x202E)).isascii()
    ("'width'", 42, True)
    """
    if not isinstance(name, str):
        return repr(name)
    return repr(name if len(name) <= 40 else name[:39] + "…")


def check_table(arguments: Arguments, X: Any, y: Any) -> Table:
    """Check X and y as every classifier does, and refuse targets that are no classes."""
    X = check_rows(arguments, X, reset=True)
    _refuse_numbers(y)
    labels = check_labels(y, X.shape[0])
    classes = check_classes(arguments, labels)
    largest = float(abs(X).max())
    if largest > _LARGEST:
        raise ValueError(
            f"X has entries up to {largest:.3g}, whose products overflow: scale its columns, "
            "for instance with sklearn.preprocessing.MaxAbsScaler."
        )
    names = getattr(arguments, "feature_names_in_", None)
    named = None if names is None else [str(name) for name in names]
    return Table(X, np.searchsorted(classes, labels).astype(np.int64), classes, named)


def _refuse_numbers(y: Any) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = type_of_target(y)
            different = len(np.unique(y))
    except (TypeError, ValueError):
        return  # check_labels says what is wrong
    n = len(np.asarray(y)) if np.ndim(y) else 0
    if kind.startswith("continuous"):
        found = "y is continuous, and diagnose is about classes"
    elif different > 20 and different > n / 2:
        found = f"y has {different} different values in {n} rows, which are hardly classes"
    else:
        return
    raise ValueError(
        f"{found}: cut it into some (numpy.digitize), or use SVR or LinearSVR, which learn numbers."
    )


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
    """Return whether rows are sparse in earnest, so that they are not to be written out."""
    if not sp.issparse(X):
        return False
    size = max(1, X.shape[0] * X.shape[1])
    return bool(X.nnz < _WIDE * size or X.shape[1] > 2000 or size > _DENSE_SIZE)
