"""Classes: the smallest structure, where all outputs can be listed."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.structured.model import (
    EPS,
    Cuts,
    EmptyRows,
    Model,
    PackedExamples,
    as_numbers,
    as_weights,
    label_codes,
    largest_products,
    one_row,
    refuse_large,
    row_entries,
)
from maxmargin.validation.data import check_classes, check_labels, check_rows


class Multiclass(Model):
    """One of several classes: the score of class k is wₖ·x.

    With the 0/1 loss this is the machine of Crammer and Singer without intercepts; add a constant
    column for penalised ones. Inputs are the rows of an array, a data frame or a sparse matrix,
    outputs are labels of any kind.

    Parameters
    ----------
    cost : array-like of shape (n_classes, n_classes) or None, default=None
        cost[k, l] is the loss of answering class l where k is true (in the order of ``classes_``),
        ≥ 0, and 0 on the diagonal. None: 1 for every wrong class.

    Attributes
    ----------
    classes_ : ndarray
        The labels (of the model that ``prepare`` returns; a fitted estimator has it as ``model_``).
    n_features_in_, size_ : int
        Columns of the rows, and the number of weights: n_features·n_classes.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X, y = np.eye(3), ["red", "green", "blue"]
    >>> model = mm.structured.Multiclass().prepare(X, y)
    >>> str(model.decode(X[0], np.eye(3)[[2, 1, 0]].ravel()))
    'red'
    """

    exact = True
    has_scores = True
    classes_: Any
    n_features_in_: int
    size_: int

    def __init__(self, cost: Any = None) -> None:
        self.cost = cost

    def prepare(self, X: Any, Y: Any) -> Self:
        """Return the model with the labels and the number of columns of training data."""
        ready: Self = clone(self)
        X = check_rows(ready, X, reset=True)
        refuse_large(ready, X)
        ready.classes_ = check_classes(self, check_labels(Y, X.shape[0]))
        ready.size_ = X.shape[1] * len(ready.classes_)
        ready.costs()
        return ready

    def costs(self) -> Floats:
        """Return the loss of each class where each class is true."""
        classes = len(self.classes_)
        if self.cost is None:
            return 1.0 - np.eye(classes)
        cost = as_numbers(self.cost)
        if cost.shape != (classes, classes):
            raise ValueError(
                f"cost has shape {cost.shape}, but there are {classes} classes: it must be of "
                f"shape ({classes}, {classes})."
            )
        if not (np.isfinite(cost) & (cost >= 0)).all() or cost.diagonal().any():
            raise ValueError(
                "cost must hold finite numbers >= 0, with 0 on the diagonal: a right answer costs "
                "nothing."
            )
        return cost

    def check(self, x: Any, y: Any = None) -> None:
        """Raise an error unless x is a row of the right length, and y a known label."""
        check_rows(self, one_row(x, self.n_features_in_), reset=False)
        if y is not None:
            self._codes([y])

    def examples(self, X: Any, Y: Any = None) -> "ClassExamples":
        """Check rows and labels and return them ready for compiled passes."""
        X = check_rows(self, X, reset=False)
        if Y is not None:
            Y = self._codes(check_labels(Y, X.shape[0]))
        return ClassExamples(self, X, Y)

    def decode(self, x: Any, w: Floats, truth: Any = None) -> Any:
        """Return the label with the highest score, plus its cost if a truth is given."""
        best = self._one(x, truth).best(np.zeros(1, np.int64), w, truth is not None)
        return self.classes_[best[0]]

    def _one(self, x: Any, y: Any) -> "ClassExamples":
        codes = None if y is None else self._codes([y])
        return ClassExamples(self, one_row(x, self.n_features_in_), codes)

    def _codes(self, labels: Any) -> Ints:
        return label_codes(self.classes_, labels, "labels")

    def features(self, x: Any, y: Any) -> Floats:
        """Return ψ(x, y): x as the column of class y of a matrix of zeros, flat."""
        x = one_row(x, self.n_features_in_)
        held = np.zeros((x.shape[1], len(self.classes_)))
        held[:, self._codes([y])] = np.asarray(x.toarray() if hasattr(x, "toarray") else x).T
        return held.ravel()

    def difference(self, x: Any, y: Any, other: Any) -> Any:
        """Return ψ(x, y) − ψ(x, other) as a sparse row."""
        return self._one(x, y).cuts(np.zeros(1, np.int64), [other]).matrix(self.size_)

    def loss(self, y: Any, other: Any) -> float:
        """Return the cost of answering ``other`` where y is true."""
        true, found = self._codes([y, other])
        return float(self.costs()[true, found])

    def worst_loss(self, y: Any) -> float:
        """Return the highest cost where y is true."""
        return float(self.costs()[self._codes([y])[0]].max())

    def named_weights(self, w: Floats) -> dict[str, Floats]:
        """Return the weights of each class, of shape (n_classes, n_features)."""
        return {"classes": np.asarray(w).reshape(self.n_features_in_, -1).T}


class ClassExamples(PackedExamples):
    """Rows and the numbers of their classes."""

    model: Multiclass

    def __init__(self, model: Multiclass, X: Any, labels: Ints | None) -> None:
        self.model, self.count, self.X = model, X.shape[0], X
        self.rows = loops.rows.rows(X)
        self.truth = np.zeros(self.count, np.int64) if labels is None else labels
        self.cost = model.costs()
        entries = row_entries(X, None, np.arange(self.count)) / self.count
        self._work = (entries + 1) * len(model.classes_)

    def take(self, rows: Ints) -> "ClassExamples":
        """Return some of the examples."""
        return ClassExamples(self.model, self.X[rows], self.truth[rows])

    @cached_property
    def _columns(self) -> Floats:
        """Zeros that loops sum differences in, and leave as zeros."""
        return np.zeros((self.X.shape[1], len(self.model.classes_)))

    def best(self, rows: Ints, w: Floats, augmented: bool) -> Ints:
        """Return the number of the best class of some rows."""
        found = np.empty(len(rows), np.int64)
        W = as_weights(w, self.size).reshape(-1, len(self.model.classes_))
        cost = self.cost if augmented else np.zeros(self.cost.shape)
        loops.structured.decode_classes(self.rows, rows, W, self.truth, cost, found)
        return found

    _best = best

    def scores(self, w: Floats) -> Floats:
        """Return the score of each class, or for two classes the second's less the first's."""
        W = np.asarray(w, dtype=np.float64).reshape(-1, len(self.model.classes_))
        scores = np.asarray(self.X @ W)
        return scores if W.shape[1] > 2 else scores[:, 1] - scores[:, 0]

    def errors(self, rows: Ints, w: Floats) -> Floats:
        """Return by how much rounding may change the score of any class."""
        W = np.asarray(w, dtype=np.float64).reshape(-1, len(self.model.classes_))
        sizes = largest_products(self.X, W) + self.cost.max()
        return np.asarray((self.X.shape[1] + 4) * EPS * sizes[rows])

    def _cut(self, rows: Ints, found: Ints) -> Cuts:
        space = EmptyRows.of(len(rows), 2 * row_entries(self.X, None, rows))
        loops.structured.class_differences(
            self.rows, rows, self.truth, found, self._columns, *space
        )
        outputs = list(self.model.classes_[found])
        return space.filled(outputs, self.cost[self.truth[rows], found])

    def _coded(self, rows: Ints, outputs: Sequence[Any]) -> Ints:
        return label_codes(self.model.classes_, outputs, "labels")

    def _joined(self, found: list[Ints]) -> Any:
        return self.model.classes_[np.concatenate(found)]
