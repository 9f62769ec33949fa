"""Sequences, whose every position has a state, and classes: sequences of one position."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.geometry.inputs import largest_squared_norm
from maxmargin.runtime import clock
from maxmargin.structured.model import Cuts, Examples, Model, as_list, check_examples, joined_cuts
from maxmargin.validation.data import (
    LARGEST_PRODUCT,
    check_classes,
    check_labels,
    check_rows,
    classes_of,
    refuse_overflow,
)
from maxmargin.validation.parameters import check_number

EPS = float(np.finfo(np.float64).eps)
_WORK_A_CALL = 2.0**25  # operations of one compiled call: some hundredths of a second
_ROWS_AT_ONCE = 1 << 14  # of which absolute values are copied
_FIRST = np.zeros(1, np.int64)


class Parts(NamedTuple):
    """The weights of a chain: one for each column and state, then those of the order of states."""

    emissions: Floats  # of shape (n_features, n_states)
    transitions: Floats  # [from, to]
    start: Floats
    stop: Floats


class ReadyModel(Model):
    """Base of the models whose examples are decoded by compiled loops, one like many."""

    exact = True
    classes_: Any
    n_features_in_: int
    size_: int

    def decode(self, x: Any, w: Floats, truth: Any = None) -> Any:
        """Return the output with the highest score, plus its loss if a truth is given."""
        one = self._one(x, truth)
        return one.joined([one.best(_FIRST, w, truth is not None)])[0]

    def difference(self, x: Any, y: Any, other: Any) -> Any:
        """Return ψ(x, y) − ψ(x, other) as a sparse row."""
        return self._one(x, y).cuts(_FIRST, [other]).matrix(self.size_)

    def _one(self, x: Any, y: Any) -> "ChainExamples":
        raise NotImplementedError


class Chain(ReadyModel):
    """Sequences of any length with a state at each position.

    The score of states y₁ … y_L of a sequence with rows x₁ … x_L is

        Σₜ emissions[yₜ]·xₜ + Σₜ transitions[yₜ₋₁, yₜ] + start[y₁] + end[y_L]

    and the best states are found by the Viterbi algorithm, exactly. The loss is the number of
    wrong positions. An input is an array or a sparse matrix of shape (length, n_features), an
    output an array of length states.

    Parameters
    ----------
    n_states : int or None, default=None
        States are the numbers 0 … n_states − 1. None: they are the labels found in training.
    weight : array-like of shape (n_states,) or None, default=None
        What a wrong position costs, by its true state (in the order of ``classes_``), > 0. None: 1.

    Attributes
    ----------
    classes_ : ndarray
        The states (of the model that ``prepare`` returns; a fitted estimator has it as ``model_``).
    n_features_in_, size_ : int
        Columns of the rows, and the number of weights: n_states·(n_features + n_states + 2).

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = [np.eye(2)[[0, 1, 0]], np.eye(2)[[1, 0]]]
    >>> Y = [["a", "b", "a"], ["b", "a"]]
    >>> model = mm.structured.Chain().prepare(X, Y)
    >>> w = np.zeros(model.size_)
    >>> w[0] = w[3] = 1  # column 0 speaks for a, column 1 for b
    >>> model.decode(X[0], w).tolist()
    ['a', 'b', 'a']
    """

    def __init__(self, n_states: int | None = None, weight: Any = None) -> None:
        self.n_states = n_states
        self.weight = weight

    def prepare(self, X: Any, Y: Any) -> Self:
        """Return the model with the states and the number of columns of training data."""
        check_number(self, "n_states", at_least=1, integer=True, optional=True)
        ready: Self = clone(self)
        if self.n_states is not None:
            ready.classes_ = np.arange(self.n_states)
        Y = _learn_columns(ready, X, Y)
        if self.n_states is None:
            ready.classes_ = classes_of(np.concatenate([np.asarray(y) for y in Y]))
        states = len(ready.classes_)
        ready.size_ = states * (ready.n_features_in_ + states + 2)
        ready.weights()
        return ready

    def weights(self) -> Floats:
        """Return what a wrong position costs, by its true state."""
        states = len(self.classes_)
        if self.weight is None:
            return np.ones(states)
        weight = as_numbers(self.weight)
        if weight.shape != (states,) or not (np.isfinite(weight) & (weight > 0)).all():
            raise ValueError(
                f"weight={self.weight!r} is not valid for Chain: it must hold a finite number > 0 "
                f"for each of the {states} states."
            )
        return weight

    def check(self, x: Any, y: Any = None) -> None:
        """Raise an error unless x has shape (length, n_features) and y a known state per row."""
        rows = _check_block(x, getattr(self, "n_features_in_", None))
        if _has_names(x) or hasattr(self, "feature_names_in_"):
            validate_data(self, x, reset=False, skip_check_array=True)
        if y is not None:
            y = np.asarray(y)
            if y.shape != (rows.shape[0],):
                raise ValueError(
                    f"y must hold one state for each of the {rows.shape[0]} rows of x, got shape "
                    f"{y.shape}."
                )
            if hasattr(self, "classes_"):
                self.coded(y)
            else:
                classes_of(y)

    def coded(self, y: Any) -> Ints:
        """Return the numbers of states."""
        if self.n_states is None:
            return label_codes(self.classes_, y, "states")
        refusal = (
            f"y must hold whole numbers from 0 to {self.n_states - 1}, the states of "
            f"Chain(n_states={self.n_states}): leave n_states=None for states of any kind."
        )
        return label_codes(self.classes_, y, "states", refusal)

    def examples(self, X: Any, Y: Any = None) -> "ChainExamples":
        """Check sequences and return them ready for compiled passes."""
        X, Y = check_examples(self, X, Y)
        return self._packed([_check_block(x, None) for x in X], Y)

    def _one(self, x: Any, y: Any) -> "ChainExamples":
        self.check(x, y)
        return self._packed([_check_block(x, None)], None if y is None else [y])

    def _packed(self, blocks: list[Any], Y: Sequence[Any] | None) -> "ChainExamples":
        """Return checked sequences below each other; float32 stays float32."""
        offsets = np.concatenate([[0], np.cumsum([x.shape[0] for x in blocks])]).astype(np.int64)
        dtype = np.float32 if all(x.dtype == np.float32 for x in blocks) else np.float64
        rows: Any
        if any(sp.issparse(x) for x in blocks):
            rows = sp.vstack([sp.csr_matrix(x, dtype=dtype) for x in blocks], format="csr")
            rows.sum_duplicates()
        else:
            rows = np.ascontiguousarray(np.concatenate(blocks), dtype=dtype)
        truth = None if Y is None else self.coded(np.concatenate([np.asarray(y) for y in Y]))
        cost = self.weights()[:, np.newaxis] * (1.0 - np.eye(len(self.classes_)))
        return ChainExamples(self, rows, offsets, truth, cost)

    def features(self, x: Any, y: Any) -> Floats:
        """Return ψ(x, y): sums of rows by state, then counts of transitions, starts and ends."""
        self.check(x, y)
        states, x, y = len(self.classes_), _check_block(x, None), self.coded(y)
        held = np.zeros((len(y), states))
        held[np.arange(len(y)), y] = 1.0
        table = np.zeros((states, states))
        np.add.at(table, (y[:-1], y[1:]), 1.0)
        return np.concatenate([np.asarray(x.T @ held).ravel(), table.ravel(), held[0], held[-1]])

    def loss(self, y: Any, other: Any) -> float:
        """Return the weighted number of wrong positions."""
        true, found = self.coded(y), self.coded(other)
        if true.shape != found.shape:
            raise ValueError(f"other must hold {len(true)} states as y does, got {len(found)}.")
        return float(self.weights()[true[true != found]].sum())

    def worst_loss(self, y: Any) -> float:
        """Return the loss if every position were wrong."""
        return float(self.weights()[self.coded(y)].sum())

    def named_weights(self, w: Floats) -> dict[str, Floats]:
        """Return emissions (n_states, n_features), transitions [from, to], start and end."""
        emissions, transitions, start, stop = self.parts(w)
        return {"emissions": emissions.T, "transitions": transitions, "start": start, "end": stop}

    def parts(self, w: Floats) -> Parts:
        """Return emissions of shape (n_features, n_states), transitions, start and end."""
        states, d = len(self.classes_), self.n_features_in_
        at = np.cumsum([d * states, states * states, states])
        emissions, transitions, start, stop = np.split(as_weights(w, self.size_), at)
        return Parts(emissions.reshape(d, states), transitions.reshape(states, states), start, stop)


class ChainExamples(Examples):
    """Sequences below each other in arrays, so that one compiled call decodes many of them.

    Sequence i has the rows of X from offsets[i] to offsets[i + 1]; ``truth`` has the number of the
    true state of each row, and cost[k, l] is the loss of state l where k is true.
    """

    def __init__(self, model: Any, X: Any, offsets: Ints, truth: Any, cost: Floats) -> None:
        self.model, self.X, self.offsets = model, X, offsets
        self.rows = loops.rows.rows(X)
        self.truth = np.zeros(X.shape[0], np.int64) if truth is None else truth
        self.cost = cost
        self.lengths = np.diff(offsets)
        entries = np.diff(X.indptr[offsets]) if sp.issparse(X) else X.shape[1] * self.lengths
        # Of the differences of each example, and multiplications to decode one, about.
        self._most_entries = 2 * (entries.astype(np.int64) + self.lengths + 1)
        self._work = len(cost) * (entries + len(cost) * self.lengths).mean() + 1

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def size(self) -> int:
        """How many weights there are."""
        return int(self.model.size_)

    @cached_property
    def _zeros(self) -> tuple[Floats, Floats]:
        """Zeros that loops sum differences in, of columns and of the order, and leave as zeros."""
        shape = self.X.shape[1], len(self.cost)
        return np.zeros(shape), np.zeros(self.size - shape[0] * shape[1])

    def take(self, rows: Ints) -> "ChainExamples":
        """Return some of the sequences."""
        kept = np.concatenate([np.arange(*self.offsets[i : i + 2]) for i in rows])
        offsets = np.concatenate([[0], np.cumsum(self.lengths[rows])]).astype(np.int64)
        return type(self)(self.model, self.X[kept], offsets, self.truth[kept], self.cost)

    def predict(self, w: Floats) -> Any:
        """Return the output with the highest score of each example."""
        everything = np.arange(len(self))
        return self.joined([self.best(rows, w, False) for rows in self._chunks(everything)])

    def decode(self, rows: Ints, w: Floats, augmented: bool = True) -> Cuts:
        """Return the best output of some examples, by score plus loss or by score alone."""
        chunks = self._chunks(np.asarray(rows))
        return joined_cuts([self._cut(few, self.best(few, w, augmented)) for few in chunks])

    def cuts(self, rows: Ints, outputs: Sequence[Any]) -> Cuts:
        """Return given outputs of some examples with their losses and ψ-differences."""
        parts, begin = [], 0
        for few in self._chunks(np.asarray(rows)):
            parts.append(self._cut(few, self._coded(few, outputs[begin : begin + len(few)])))
            begin += len(few)
        return joined_cuts(parts)

    def _chunks(self, rows: Ints) -> Iterator[Ints]:
        """Yield rows in groups that take a moment each, reading the clock in between."""
        step = max(1, int(_WORK_A_CALL / self._work))
        for begin in range(0, len(rows), step):
            clock.check()
            yield rows[begin : begin + step]

    def best(self, rows: Ints, w: Floats, augmented: bool) -> Ints:
        """Return the numbers of the best states of some sequences, one after the other."""
        lengths = self.lengths[rows]
        paths = np.empty(int(lengths.sum()), np.int64)
        loops.structured.decode_chains(
            self.rows, self.offsets, rows, *self.model.parts(w), self.truth, self.cost, augmented,
            int(lengths.max()), paths,
        )  # fmt: skip
        return paths

    def joined(self, found: list[Ints]) -> Any:
        """Return the best outputs of all examples as users have them."""
        return self.outputs(np.concatenate(found), np.arange(len(self)))

    def outputs(self, found: Ints, rows: Ints) -> Any:
        """Return the states of some sequences as users have them."""
        return np.split(self.model.classes_[found], np.cumsum(self.lengths[rows])[:-1])

    def errors(self, rows: Ints, w: Floats) -> Floats:
        """Return by how much rounding may change the score of any path."""
        if len(self.cost) == 1:  # there is one path, and nothing to choose
            return np.zeros(len(rows))
        emissions, transitions, start, stop = self.model.parts(w)
        each = _largest_products(self.X, emissions)
        each += np.abs(transitions).max() + self.cost.max()
        sizes = np.add.reduceat(each, self.offsets[:-1])[rows]
        sizes += np.abs(start).max() + np.abs(stop).max()
        return np.asarray((self.X.shape[1] + 3 * self.lengths[rows] + 6) * EPS * sizes)

    def difference_errors(self, rows: Ints) -> Floats:
        """Return how long the rounding error of a ψ-difference may be."""
        if len(self.cost) == 1:
            return np.zeros(len(rows))
        squares = np.empty(self.X.shape[0])
        loops.dual_cd.squared_norms(self.rows, 0, squares)
        sums = np.add.reduceat(np.sqrt(squares), self.offsets[:-1])
        return np.asarray(2 * (self.lengths[rows] + 2) * EPS * sums[rows])

    def _cut(self, rows: Ints, found: Ints) -> Cuts:
        """Return best states with their losses and differences."""
        most = int(self._most_entries[rows].sum())
        indptr, indices = np.zeros(len(rows) + 1, np.int64), np.empty(most, np.int32)
        loss, values = np.empty(len(rows)), np.empty(most)
        loops.structured.chain_differences(
            self.rows, self.offsets, rows, self.truth, found, self.cost, *self._zeros, loss,
            indptr, indices, values,
        )  # fmt: skip
        end, outputs = int(indptr[-1]), list(self.outputs(found, rows))
        return Cuts(outputs, loss, indptr, indices[:end].copy(), values[:end].copy())

    def _coded(self, rows: Ints, outputs: Sequence[Any]) -> Ints:
        """Return outputs of users as the numbers of their states."""
        for i, output in zip(rows, outputs, strict=True):
            if np.shape(output) != (self.lengths[i],):
                raise ValueError(
                    f"Example {i}: an output must hold one state for each of the "
                    f"{self.lengths[i]} rows, got shape {np.shape(output)}."
                )
        return np.asarray(self.model.coded(np.concatenate([np.asarray(y) for y in outputs])))


# ------------------------------------------------------------------- classes


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

    def outputs(self, found: Ints, rows: Ints) -> Any:
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


# ------------------------------------------------------------------- what is given


def _learn_columns(model: Chain, X: Any, Y: Any) -> list[Any]:
    """Check training sequences; tell the model the number and names of columns; return outputs."""
    X, Y = as_list(X, "X"), as_list(Y, "Y")
    shape: Any = (getattr(X[0], "shape", None) or np.shape(X[0])) if X else ()
    if len(shape) == 2:  # what the others are compared to
        model.n_features_in_ = int(shape[1])
        if _has_names(X[0]):
            validate_data(model, X[0], skip_check_array=True)
    check_examples(model, X, Y)
    for x in X:
        refuse_large(model, _check_block(x, None))
    return list(Y)


def _has_names(x: Any) -> bool:
    """Return whether an input is a table whose columns have names."""
    return hasattr(x, "columns") or hasattr(x, "column_names")


def _check_block(x: Any, columns: int | None) -> Any:
    """Return an input as a float array of shape (length, d), or as CSR."""
    if sp.issparse(x):
        x = x.tocsr()
    else:
        x = np.asarray(x)
        if x.dtype.kind not in "buif":
            raise TypeError(f"x must hold numbers, got dtype {x.dtype}.")
    if x.ndim != 2 or not x.shape[0] or not x.shape[1]:
        raise ValueError(
            "x must be an array of shape (length, n_features), both at least 1, got shape "
            f"{x.shape}."
        )
    if columns is not None and x.shape[1] != columns:
        raise ValueError(
            f"x has {x.shape[1]} features, {columns} are expected as in all training examples."
        )
    if not np.isfinite(x.data if sp.issparse(x) else x).all():
        raise ValueError("x contains NaN or infinity: drop or impute such values.")
    return x


def label_codes(classes: Any, labels: Any, what: str, refusal: str = "") -> Ints:
    """Return the numbers of labels among the classes of the training data."""
    labels = np.asarray(labels)
    try:
        found = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        known = np.asarray(classes[found] == labels)
    except TypeError:  # kinds that have no order
        found, known = np.zeros(labels.shape, np.int64), np.zeros(labels.shape, bool)
    if not known.all():
        strange = labels[~known].tolist()[0]
        raise ValueError(
            refusal
            or f"{strange!r} is not among the {what} of the training data, {classes.tolist()}."
        )
    return np.asarray(found, dtype=np.int64)


def as_weights(w: Any, size: int) -> Floats:
    """Return weights as compiled loops take them."""
    weights: Floats = np.ascontiguousarray(w, dtype=np.float64)
    if weights.shape != (size,):
        raise ValueError(f"w must hold {size} weights, got shape {weights.shape}.")
    return weights


def as_numbers(values: Any) -> Floats:
    """Return a parameter as an array of floats; NaN without shape if it is none, to be refused."""
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array(np.nan)


# ------------------------------------------------------------------- sizes of sums


def _largest_products(X: Any, W: Floats) -> Floats:
    """Return max over columns k of Σⱼ |x[j]||W[j, k]| of each row: what its sums are bounded by."""
    W, out = np.abs(W), np.empty(X.shape[0])
    for begin in range(0, len(out), _ROWS_AT_ONCE):
        clock.check()
        part = abs(X[begin : begin + _ROWS_AT_ONCE])
        out[begin : begin + _ROWS_AT_ONCE] = np.asarray(part @ W).max(axis=1)
    return out


def refuse_large(model: Any, X: Any) -> None:
    """Raise a ValueError if products of rows would overflow in float64."""
    with np.errstate(over="ignore"):
        refuse_overflow(model, X, largest_squared_norm(X), LARGEST_PRODUCT)
