"""Classes: the smallest structure, a sequence of one position."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin._typing import Floats, Ints
from maxmargin.structured.chain import (
    ChainExamples,
    Parts,
    ReadyModel,
    as_numbers,
    as_weights,
    label_codes,
    refuse_large,
)
from maxmargin.validation.data import check_classes, check_labels, check_rows


class Multiclass(ReadyModel):
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

    has_scores = True

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
        check_rows(self, self._row(x), reset=False)
        if y is not None:
            self.coded([y])

    def _row(self, x: Any) -> Any:
        """Return a row as a matrix with one row."""
        row = sp.csr_matrix(x) if sp.issparse(x) else np.atleast_2d(np.asarray(x))
        if row.shape != (1, self.n_features_in_):
            raise ValueError(
                f"x must be a row of {self.n_features_in_} features, got shape {np.shape(x)}."
            )
        return row if sp.issparse(row) else np.ascontiguousarray(row, dtype=np.float64)

    def coded(self, labels: Any) -> Ints:
        """Return the numbers of labels."""
        return label_codes(self.classes_, labels, "labels")

    def examples(self, X: Any, Y: Any = None) -> "ClassExamples":
        """Check rows and labels and return them ready for compiled passes."""
        X = check_rows(self, X, reset=False)
        return self._packed(X, None if Y is None else check_labels(Y, X.shape[0]))

    def _one(self, x: Any, y: Any) -> "ClassExamples":
        return self._packed(self._row(x), None if y is None else [y])

    def _packed(self, X: Any, labels: Any) -> "ClassExamples":
        truth = None if labels is None else self.coded(labels)
        return ClassExamples(self, X, np.arange(X.shape[0] + 1), truth, self.costs())

    def features(self, x: Any, y: Any) -> Floats:
        """Return ψ(x, y): x as the column of class y of a matrix of zeros, flat."""
        x = self._row(x)
        held = np.zeros((x.shape[1], len(self.classes_)))
        held[:, self.coded([y])] = np.asarray(x.toarray() if sp.issparse(x) else x).T
        return held.ravel()

    def loss(self, y: Any, other: Any) -> float:
        """Return the cost of answering ``other`` where y is true."""
        true, found = self.coded([y, other])
        return float(self.costs()[true, found])

    def worst_loss(self, y: Any) -> float:
        """Return the highest cost where y is true."""
        return float(self.costs()[self.coded([y])[0]].max())

    def named_weights(self, w: Floats) -> dict[str, Floats]:
        """Return the weights of each class, of shape (n_classes, n_features)."""
        return {"classes": self.parts(w).emissions.T}

    def parts(self, w: Floats) -> Parts:
        """Return the weights as those of a chain whose order of states has none."""
        states = len(self.classes_)
        nothing = np.zeros((states, states))
        W = as_weights(w, self.size_).reshape(-1, states)
        return Parts(W, nothing, nothing[0], nothing[0])


class ClassExamples(ChainExamples):
    """Rows with a class each: sequences of one position."""

    def outputs(self, found: Ints, ends: Ints) -> Any:
        """Return numbers of classes as labels."""
        return self.model.classes_[found]

    def scores(self, w: Floats) -> Floats:
        """Return the score of each class, or for two classes the second's less the first's."""
        scores = np.asarray(self.X @ self.model.parts(w).emissions)
        return scores if len(self.cost) > 2 else scores[:, 1] - scores[:, 0]

    def difference_errors(self, rows: Ints) -> Floats:
        """Return that differences, ±x, have no rounding error."""
        return np.zeros(len(rows))

    def _coded(self, rows: Ints, outputs: Sequence[Any]) -> Ints:
        return np.asarray(self.model.coded(outputs))
