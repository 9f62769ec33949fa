"""Sets of labels: any of several labels may be on, and pairs of them may depend on each other."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.structured.model import (
    EPS,
    Cuts,
    EmptyRows,
    Model,
    PackedExamples,
    as_weights,
    largest_products,
    one_row,
    refuse_large,
    row_entries,
)
from maxmargin.validation.data import check_rows


class Multilabel(Model):
    """Any number of labels per example, with a score for the values of given pairs of labels.

    The score of labels y ∈ {0, 1}^L is Σₗ yₗ wₗ·x + Σ over pairs (a, b) of table[y_a, y_b]. Pairs
    form a forest, so that the best labels are found exactly by dynamic programming. The loss is the
    number of wrong labels. Without pairs this is one LinearSVC without intercept for each label.
    Inputs are the rows of an array, a data frame or a sparse matrix, outputs the rows of an array
    of zeros and ones.

    Parameters
    ----------
    pairs : sequence of (int, int), default=()
        Labels, by their columns in Y, whose values are scored together; no cycles.

    Attributes
    ----------
    n_labels_ : int
        Columns of Y (of the model that ``prepare`` returns; a fitted estimator has it as
        ``model_``).
    n_features_in_, size_ : int
        Columns of X, and the number of weights: n_features·n_labels + 4·len(pairs).

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X, Y = np.eye(2), np.array([[1, 0], [0, 1]])
    >>> model = mm.structured.Multilabel(pairs=[(0, 1)]).prepare(X, Y)
    >>> w = np.array([1, 0, 0, 1, 0, 0, 0, 9])  # the last: both labels at once
    >>> model.decode(X[0], w).tolist()
    [1, 1]
    """

    exact = True
    n_labels_: int
    n_features_in_: int
    size_: int

    def __init__(self, pairs: Any = ()) -> None:
        self.pairs = pairs

    def prepare(self, X: Any, Y: Any) -> Self:
        """Return the model with the numbers of columns of training data."""
        ready: Self = clone(self)
        X = check_rows(ready, X, reset=True)
        refuse_large(ready, X)
        ready.n_labels_ = check_indicators(Y, X.shape[0], None).shape[1]
        pairs = len(ready.forest().pairs)
        ready.size_ = ready.n_features_in_ * ready.n_labels_ + 4 * pairs
        return ready

    def forest(self) -> "Forest":
        """Return the pairs with an order in which parents come before children."""
        return _rooted(_checked_pairs(self.pairs, self.n_labels_), self.n_labels_)

    def check(self, x: Any, y: Any = None) -> None:
        """Raise an error unless x is a row of the right length, and y a row of zeros and ones."""
        check_rows(self, one_row(x, self.n_features_in_), reset=False)
        if y is not None:
            check_indicators([y], 1, self.n_labels_)

    def examples(self, X: Any, Y: Any = None) -> "LabelExamples":
        """Check rows and labels and return them ready for compiled passes."""
        X = check_rows(self, X, reset=False)
        if Y is not None:
            Y = check_indicators(Y, X.shape[0], self.n_labels_)
        return LabelExamples(self, X, Y, self.forest())

    def _one(self, x: Any, truth: Any) -> "LabelExamples":
        if truth is not None:
            truth = check_indicators([truth], 1, self.n_labels_)
        return LabelExamples(self, one_row(x, self.n_features_in_), truth, self.forest())

    def decode(self, x: Any, w: Floats, truth: Any = None) -> Any:
        """Return the labels with the highest score, plus the loss if a truth is given."""
        return self._one(x, truth).best(np.zeros(1, np.int64), w, truth is not None)[0]

    def features(self, x: Any, y: Any) -> Floats:
        """Return ψ(x, y): x in the columns of labels that are on, then 1 for the pairs' values."""
        x = one_row(x, self.n_features_in_)
        y = check_indicators([y], 1, self.n_labels_)
        tables = np.zeros((len(self.pairs), 2, 2))
        for table, (a, b) in zip(tables, self.pairs, strict=True):
            table[y[0, a], y[0, b]] = 1.0
        return np.concatenate([np.asarray(x.T @ y.astype(np.float64)).ravel(), tables.ravel()])

    def difference(self, x: Any, y: Any, other: Any) -> Any:
        """Return ψ(x, y) − ψ(x, other) as a sparse row."""
        return self._one(x, y).cuts(np.zeros(1, np.int64), [other]).matrix(self.size_)

    def loss(self, y: Any, other: Any) -> float:
        """Return the number of wrong labels."""
        true, found = check_indicators([y, other], 2, self.n_labels_)
        return float(np.count_nonzero(true != found))

    def worst_loss(self, y: Any) -> float:
        """Return the number of labels."""
        return float(self.n_labels_)

    def named_weights(self, w: Floats) -> dict[str, Floats]:
        """Return the weights of labels (n_labels, n_features), and tables (n_pairs, 2, 2)."""
        at = self.n_features_in_ * self.n_labels_
        labels = np.asarray(w)[:at].reshape(self.n_features_in_, -1).T
        return {"labels": labels, "pairs": np.asarray(w)[at:].reshape(-1, 2, 2)}


def check_indicators(Y: Any, n_rows: int, n_labels: int | None) -> Ints:
    """Return rows of zeros and ones as an array of shape (n_rows, n_labels)."""
    try:
        Y = Y.toarray() if sp.issparse(Y) else np.asarray(Y)
    except ValueError:  # lists of different lengths
        Y = np.array([None] * len(Y))
    if Y.ndim != 2 or not Y.shape[1] or Y.dtype.kind not in "buif":
        raise ValueError(
            "Y must be an array of zeros and ones of shape (n_samples, n_labels), got shape "
            f"{Y.shape} and dtype {Y.dtype}: sklearn.preprocessing.MultiLabelBinarizer makes it "
            "from sets of labels."
        )
    if Y.shape[0] != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"Y has {Y.shape[0]}."
        )
    if n_labels is not None and Y.shape[1] != n_labels:
        raise ValueError(f"Y has {Y.shape[1]} labels, {n_labels} are expected as in training.")
    wrong = ~np.isin(Y, (0, 1)).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"Example {row}: Y holds {Y[row].tolist()}, but labels are 0 or 1.")
    return np.ascontiguousarray(Y, dtype=np.int64)


# ------------------------------------------------------------------- pairs


class Forest(NamedTuple):
    """Pairs of labels, and how dynamic programming goes through them."""

    pairs: Ints  # (n_pairs, 2), as given
    order: Ints  # of labels: parents before children
    parent: Ints  # of each label, −1 for a root
    pair: Ints  # of each label with its parent, −1 for a root
    turned: Any  # whether that pair has the child first


def _checked_pairs(pairs: Any, n_labels: int) -> list[tuple[int, int]]:
    if not hasattr(pairs, "__len__") or isinstance(pairs, str):
        raise TypeError(
            f"pairs={pairs!r} is not valid for Multilabel: it must be a list of pairs of label "
            "numbers, for instance [(0, 1)]; without pairs, an empty one."
        )
    checked: list[tuple[int, int]] = []
    for pair in pairs:
        whole = np.asarray(pair)
        if whole.shape != (2,) or whole.dtype.kind not in "iu":
            raise ValueError(f"pairs holds {pair!r}, which is not a pair of two label numbers.")
        a, b = int(whole[0]), int(whole[1])
        if not (0 <= a < n_labels and 0 <= b < n_labels) or a == b:
            raise ValueError(
                f"pairs holds ({a}, {b}), but a pair is of two different labels between 0 and "
                f"{n_labels - 1}, the columns of Y."
            )
        checked.append((a, b))
    return checked


def _rooted(pairs: list[tuple[int, int]], n_labels: int) -> Forest:
    """Return the forest with the first label of each tree as its root; refuse cycles."""
    near: list[dict[int, int]] = [{} for _ in range(n_labels)]
    for p, (a, b) in enumerate(pairs):
        if way := _way(near, a, b):
            circle = ", ".join(f"({u}, {v})" for u, v in pairwise(way))
            raise ValueError(
                f"pairs holds a cycle: with ({a}, {b}) there are two ways between labels {a} and "
                f"{b}, the other is {circle}. The best labels can only be found exactly if the "
                "pairs form a forest: leave out one pair of each cycle, for instance the one "
                "whose labels depend least on each other."
            )
        near[a][b] = near[b][a] = p
    order, parent = [], np.full(n_labels, -1)
    pair, turned, seen = np.full(n_labels, -1), np.zeros(n_labels, bool), np.zeros(n_labels, bool)
    for root in range(n_labels):
        stack = [] if seen[root] else [root]
        seen[root] = True
        while stack:
            label = stack.pop()
            order.append(label)
            for child, p in near[label].items():
                if not seen[child]:
                    seen[child] = True
                    parent[child], pair[child], turned[child] = label, p, pairs[p][0] == child
                    stack.append(child)
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Forest(array, np.array(order, dtype=np.int64), parent, pair, turned)


def _way(near: list[dict[int, int]], a: int, b: int) -> list[int]:
    """Return the labels on the way from a to b along the pairs so far; empty if there is none."""
    ways, seen = [[a]], {a}
    while ways:
        way = ways.pop()
        if way[-1] == b:
            return way
        for label in near[way[-1]]:
            if label not in seen:
                seen.add(label)
                ways.append([*way, label])
    return []


# ------------------------------------------------------------------- passes


class LabelExamples(PackedExamples):
    """Rows and their labels."""

    model: Multilabel

    def __init__(self, model: Multilabel, X: Any, Y: Ints | None, forest: Forest) -> None:
        self.model, self.count, self.X, self.forest = model, X.shape[0], X, forest
        self.rows = loops.rows.rows(X)
        self.truth = np.zeros((self.count, model.n_labels_), np.int64) if Y is None else Y
        entries = row_entries(X, None, np.arange(self.count)) / self.count
        self._work = (entries + 8) * model.n_labels_

    def take(self, rows: Ints) -> "LabelExamples":
        """Return some of the examples."""
        return LabelExamples(self.model, self.X[rows], self.truth[rows], self.forest)

    @cached_property
    def _columns(self) -> Floats:
        """Zeros that loops sum differences in, and leave as zeros."""
        return np.zeros((self.X.shape[1], self.model.n_labels_))

    def best(self, rows: Ints, w: Floats, augmented: bool) -> Ints:
        """Return the best labels of some rows."""
        found = np.empty((len(rows), self.model.n_labels_), np.int64)
        w = as_weights(w, self.size)
        at, forest = self.X.shape[1] * self.model.n_labels_, self.forest
        tables = w[at:].reshape(-1, 2, 2).copy()
        back = forest.pair[forest.turned]
        tables[back] = tables[back].transpose(0, 2, 1)  # the parent's value first
        loops.structured.decode_labels(
            self.rows, rows, w[:at].reshape(-1, self.model.n_labels_), tables, forest.order,
            forest.parent, forest.pair, self.truth, augmented, found,
        )  # fmt: skip
        return found

    _best = best

    def errors(self, rows: Ints, w: Floats) -> Floats:
        """Return by how much rounding may change the score of any set of labels."""
        w, labels = np.asarray(w, dtype=np.float64), self.model.n_labels_
        at = self.X.shape[1] * labels
        sizes = labels * (largest_products(self.X, w[:at].reshape(-1, labels)) + 1.0)
        sizes += np.abs(w[at:]).reshape(-1, 4).max(axis=1, initial=0.0).sum()
        return np.asarray((self.X.shape[1] + 4 * labels + 6) * EPS * sizes[rows])

    def _cut(self, rows: Ints, found: Ints) -> Cuts:
        entries = self.model.n_labels_ * row_entries(self.X, None, rows)
        space = EmptyRows.of(len(rows), entries + 2 * len(self.forest.pairs) * len(rows))
        loss = np.empty(len(rows))
        loops.structured.label_differences(
            self.rows, rows, self.truth, found, self.forest.pairs, self._columns, loss, *space
        )
        return space.filled(list(found), loss)

    def _coded(self, rows: Ints, outputs: Sequence[Any]) -> Ints:
        return check_indicators(list(outputs), len(rows), self.model.n_labels_)

    def _joined(self, found: list[Ints]) -> Any:
        return np.concatenate(found)
