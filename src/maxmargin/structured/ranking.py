"""Rankings: per query, relevant items should stand above irrelevant ones."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.structured.model import (
    EPS,
    Cuts,
    Model,
    PackedExamples,
    as_weights,
    check_block,
    check_columns,
    check_examples,
    largest_products,
    learn_columns,
    row_lengths,
    stacked,
)


class Ranking(Model):
    """An order of the items of a query, best first by w·x; the loss is 1 − AUC.

    An input is a query: an array or a sparse matrix of shape (n_items, n_features). A true output
    says of each item whether it is relevant (1 or True) or not (0, −1 or False). An output is an
    order, as a number for each item: the larger, the higher it stands. With n₊ relevant items i and
    n₋ irrelevant items j, a pair is swapped if j stands above i, half so if they are level:

        loss = (number of swapped pairs) / (n₊n₋)
        ψ-difference = Σ over swapped pairs of (xᵢ − xⱼ) / (n₊n₋)

    Pairs are never listed: counts, from one sort of all items, are enough. A query whose items are
    all relevant, or all irrelevant, has no pairs and plays no part.

    The cost C of a learner is that of a query, whose loss is at most about 1: for one query of n
    items, C = n weighs errors about as ``LinearSVC(C=1)`` does.

    Attributes
    ----------
    n_features_in_, size_ : int
        Columns of the items, and the number of weights, which is the same (of the model that
        ``prepare`` returns; a fitted estimator has it as ``model_``).

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X, Y = [np.array([[3.0], [1.0], [2.0]])], [[1, 0, 0]]
    >>> model = mm.structured.Ranking().prepare(X, Y)
    >>> model.decode(X[0], np.array([1.0])).tolist()  # the first item stands highest
    [2, 0, 1]
    >>> model.loss(Y[0], [0, 2, 1])
    1.0
    """

    exact = True
    has_scores = True
    n_features_in_: int
    size_: int

    def __init__(self) -> None:
        pass

    def prepare(self, X: Any, Y: Any) -> Self:
        """Return the model with the number of columns of training data."""
        ready: Self = clone(self)
        learn_columns(ready, X, Y)
        ready.size_ = ready.n_features_in_
        return ready

    def check(self, x: Any, y: Any = None) -> None:
        """Raise an error unless x has shape (n_items, n_features) and y a relevance per item."""
        x = check_columns(self, x)
        if y is not None:
            relevant(y, x.shape[0])

    def examples(self, X: Any, Y: Any = None) -> "RankingExamples":
        """Check queries and return them ready for passes over all of them at once."""
        return RankingExamples(self, *check_examples(self, X, Y))

    def _one(self, x: Any, truth: Any) -> "RankingExamples":
        self.check(x, truth)
        return RankingExamples(self, [x], None if truth is None else [truth])

    def decode(self, x: Any, w: Floats, truth: Any = None) -> Any:
        """Return the order of the items by score; with a truth, by score ± ½."""
        return self._one(x, truth).best(np.zeros(1, np.int64), w, truth is not None)

    def difference(self, x: Any, y: Any, other: Any) -> Any:
        """Return Σ over swapped pairs of (xᵢ − xⱼ) / (n₊n₋) as a row."""
        return self._one(x, y).cuts(np.zeros(1, np.int64), [other]).matrix(self.size_)

    def features(self, x: Any, y: Any) -> Floats:
        """Refuse: without the truth it is not known which items should stand above which."""
        raise TypeError("Ranking has no features(x, y), only difference(x, truth, other).")

    def loss(self, y: Any, other: Any) -> float:
        """Return the fraction of swapped pairs: 1 − AUC; 0 if there are no pairs."""
        item, height = relevant(y, len(np.asarray(y))), np.asarray(other, dtype=np.float64)
        if height.shape != item.shape:
            raise ValueError(
                f"other must hold a number for each of the {len(item)} items, got shape "
                f"{height.shape}."
            )
        counts, pairs = _swap_counts(height, item, np.array([0, len(item)]))
        return float(counts[item].sum() / max(pairs[0], 1.0))

    def worst_loss(self, y: Any) -> float:
        """Return 1, or 0 for a query without pairs."""
        item = relevant(y, len(np.asarray(y)))
        return float(item.any() and not item.all())

    def named_weights(self, w: Floats) -> dict[str, Floats]:
        """Return the weights of the columns."""
        return {"columns": np.asarray(w)}


def relevant(y: Any, n_items: int) -> Flags:
    """Return which items are relevant."""
    y = np.asarray(y)
    if y.shape != (n_items,) or y.dtype.kind not in "buif":
        raise ValueError(
            f"y must hold a relevance for each of the {n_items} items of x, got shape {y.shape} "
            f"and dtype {y.dtype}."
        )
    if not np.isin(y, (-1, 0, 1)).all():
        raise ValueError(
            f"y must hold 1 for relevant items and 0 or -1 for others, got {np.unique(y).tolist()}:"
            " rank more than two grades by a query for each threshold."
        )
    return np.asarray(y > 0)


def _swap_counts(height: Floats, item: Flags, offsets: Ints) -> tuple[Floats, Floats]:
    """Return in how many swapped pairs each item takes part, and the number of pairs per query.

    Items are sorted by query and height. Those level with each other are counted half: the mean of
    what counts from below and from above say.
    """
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((height, query))
    sorted_query, sorted_height = query[order], height[order]
    changed = (np.diff(sorted_query) != 0) | (np.diff(sorted_height) != 0)
    first = np.concatenate([[True], changed])
    group = np.cumsum(first) - 1  # of items of a query that are level
    begin = np.flatnonzero(first)
    end = np.concatenate([begin[1:], [len(order)]])
    up = np.concatenate([[0], np.cumsum(item[order])]).astype(np.float64)
    down = np.arange(len(order) + 1) - up
    # Relevant items below, irrelevant items above; those that are level are half below.
    base, top = up[offsets[sorted_query]], down[offsets[sorted_query + 1]]
    below = 0.5 * (up[begin[group]] + up[end[group]]) - base
    above = top - 0.5 * (down[begin[group]] + down[end[group]])
    counts = np.empty(len(order))
    counts[order] = np.where(item[order], above, below)
    up_all = np.concatenate([[0], np.cumsum(item)]).astype(np.float64)
    positive = np.diff(up_all[offsets])
    return counts, positive * (np.diff(offsets) - positive)


class RankingExamples(PackedExamples):
    """Queries below each other."""

    model: Ranking

    def __init__(self, model: Ranking, X: Sequence[Any], Y: Sequence[Any] | None) -> None:
        self.model, self.count = model, len(X)
        self.stack = stacked([check_block(x, None, "x") for x in X])
        self.lengths = np.diff(self.stack.offsets)
        self.truth = np.zeros(int(self.stack.offsets[-1]), bool)
        if Y is not None:
            flags = [relevant(y, n) for y, n in zip(Y, self.lengths, strict=True)]
            self.truth = np.concatenate(flags)
        self._work = float(self.lengths.mean()) * (model.n_features_in_ + 64)

    def take(self, rows: Ints) -> "RankingExamples":
        """Return some of the queries."""
        few = object.__new__(RankingExamples)
        few.model, few.count, few._work = self.model, len(rows), self._work
        kept, offsets = self._items(rows)
        few.stack = self.stack._replace(rows=self.stack.rows[kept], offsets=offsets)
        few.truth, few.lengths = self.truth[kept], self.lengths[rows]
        return few

    def _items(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the items of some queries, and where each query begins among them."""
        offsets = np.concatenate([[0], np.cumsum(self.lengths[rows])]).astype(np.int64)
        shift = np.repeat(self.stack.offsets[rows] - offsets[:-1], self.lengths[rows])
        return np.arange(offsets[-1]) + shift, offsets

    def best(self, rows: Ints, w: Floats, augmented: bool) -> Ints:
        """Return the place of each item of some queries, one query after the other.

        A swap pays if xᵢ·w − ½ < xⱼ·w + ½; where both are equal there is none.
        """
        items, offsets = self._items(rows)
        scores = np.asarray(self.stack.rows[items] @ as_weights(w, self.size))
        item = self.truth[items]
        if augmented:
            scores = np.where(item, scores - 0.5, scores + 0.5)
        query = np.repeat(np.arange(len(rows)), self.lengths[rows])
        order = np.lexsort((item if augmented else -items, scores, query))
        places = np.empty(len(items), np.int64)
        places[order] = np.arange(len(items)) - offsets[query]
        return places

    _best = best

    def scores(self, w: Floats) -> list[Floats]:
        """Return the scores of the items of each query."""
        scores = np.asarray(self.stack.rows @ np.asarray(w, dtype=np.float64))
        return np.split(scores, self.stack.offsets[1:-1])

    def losses(self, w: Floats) -> Floats:
        """Return 1 − AUC of each query: items of equal score count half, whatever their order."""
        return self.cuts(np.arange(len(self)), self.scores(w)).loss

    @cached_property
    def _paired(self) -> Flags:
        """Which queries have pairs; all orders of the others have the same score, exactly."""
        positive = np.add.reduceat(self.truth.astype(np.int64), self.stack.offsets[:-1])
        return np.asarray((positive > 0) & (positive < self.lengths))

    def errors(self, rows: Ints, w: Floats) -> Floats:
        """Return by how much rounding may change the score of any order: of the worst pair."""
        each = largest_products(self.stack.rows, np.asarray(w, dtype=np.float64)[:, np.newaxis])
        sizes = np.maximum.reduceat(each, self.stack.offsets[:-1])[rows] + 1.0
        return 2 * (self.model.n_features_in_ + 4) * EPS * sizes * self._paired[rows]

    def difference_errors(self, rows: Ints) -> Floats:
        """Return how long the rounding error of a ψ-difference may be."""
        longest = np.maximum.reduceat(row_lengths(self.stack.rows), self.stack.offsets[:-1])
        return np.asarray(2 * (self.lengths[rows] + 4) * EPS * longest[rows] * self._paired[rows])

    def _cut(self, rows: Ints, found: Ints) -> Cuts:
        items, offsets = self._items(rows)
        item = self.truth[items]
        counts, pairs = _swap_counts(np.asarray(found, dtype=np.float64), item, offsets)
        scale = np.repeat(1.0 / np.maximum(pairs, 1.0), np.diff(offsets))
        query = np.repeat(np.arange(len(rows)), np.diff(offsets))
        signed = np.where(item, counts, -counts) * scale
        spread = sp.csr_matrix((signed, items, offsets), shape=(len(rows), len(self.truth)))
        differences = sp.csr_matrix(spread @ self.stack.rows.astype(np.float64, copy=False))
        wrong = np.where(item, counts * scale, 0.0)
        loss = np.bincount(query, wrong, minlength=len(rows)).astype(np.float64)
        outputs = np.split(np.asarray(found), offsets[1:-1])
        return Cuts(
            outputs,
            loss,
            differences.indptr.astype(np.int64),
            differences.indices.astype(np.int32),
            np.asarray(differences.data, dtype=np.float64),
        )

    def _coded(self, rows: Ints, outputs: Sequence[Any]) -> Floats:
        for i, output in zip(rows, outputs, strict=True):
            if np.shape(output) != (self.lengths[i],):
                raise ValueError(
                    f"Example {i}: an output must hold a number for each of the "
                    f"{self.lengths[i]} items, got shape {np.shape(output)}."
                )
        return np.concatenate([np.asarray(y, dtype=np.float64) for y in outputs])

    def _joined(self, found: list[Ints]) -> Any:
        return np.split(np.concatenate(found), self.stack.offsets[1:-1])
