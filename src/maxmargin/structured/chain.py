"""Sequences: every position has a state, and states that follow each other have a score."""

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
    check_block,
    check_columns,
    check_examples,
    label_codes,
    largest_products,
    learn_columns,
    row_entries,
    row_lengths,
    stacked,
)
from maxmargin.validation.data import classes_of
from maxmargin.validation.parameters import check_number


class Chain(Model):
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

    exact = True
    classes_: Any
    n_features_in_: int
    size_: int

    def __init__(self, n_states: int | None = None, weight: Any = None) -> None:
        self.n_states = n_states
        self.weight = weight

    def prepare(self, X: Any, Y: Any) -> Self:
        """Return the model with the states and the number of columns of training data."""
        check_number(self, "n_states", at_least=1, integer=True, optional=True)
        ready: Self = clone(self)
        X, Y = learn_columns(ready, X, Y)
        if self.n_states is None:
            ready.classes_ = classes_of(np.concatenate([np.asarray(y) for y in Y]))
        else:
            ready.classes_ = np.arange(self.n_states)
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
        x = check_columns(self, x)
        if y is not None:
            y = np.asarray(y)
            if y.shape != (x.shape[0],):
                raise ValueError(
                    f"y must hold one state for each of the {x.shape[0]} rows of x, got shape "
                    f"{y.shape}."
                )
            if hasattr(self, "classes_"):
                self.coded(y)
            elif self.n_states is not None:
                _whole_states(y, self.n_states)
            else:
                classes_of(y)

    def coded(self, y: Any) -> Ints:
        """Return the numbers of states."""
        y = np.asarray(y)
        if self.n_states is not None:
            return _whole_states(y, self.n_states)
        return label_codes(self.classes_, y, "states")

    def examples(self, X: Any, Y: Any = None) -> "ChainExamples":
        """Check sequences and return them ready for compiled passes."""
        return ChainExamples(self, *check_examples(self, X, Y))

    def decode(self, x: Any, w: Floats, truth: Any = None) -> Any:
        """Return the states with the highest score, plus the loss if a truth is given."""
        path = self._one(x, truth).best(np.zeros(1, np.int64), w, truth is not None)
        return self.classes_[path]

    def _one(self, x: Any, y: Any) -> "ChainExamples":
        self.check(x, y)
        return ChainExamples(self, [x], None if y is None else [y])

    def features(self, x: Any, y: Any) -> Floats:
        """Return ψ(x, y): sums of rows by state, then counts of transitions, starts and ends."""
        self.check(x, y)
        states, x, y = len(self.classes_), check_block(x, None, "x"), self.coded(y)
        held = np.zeros((len(y), states))
        held[np.arange(len(y)), y] = 1.0
        table = np.zeros((states, states))
        np.add.at(table, (y[:-1], y[1:]), 1.0)
        return np.concatenate([np.asarray(x.T @ held).ravel(), table.ravel(), held[0], held[-1]])

    def difference(self, x: Any, y: Any, other: Any) -> Any:
        """Return ψ(x, y) − ψ(x, other) as a sparse row."""
        return self._one(x, y).cuts(np.zeros(1, np.int64), [other]).matrix(self.size_)

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

    def parts(self, w: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return emissions of shape (n_features, n_states), transitions, start and end."""
        states, d = len(self.classes_), self.n_features_in_
        w = as_weights(w, self.size_)
        at = np.cumsum([d * states, states * states, states])
        emissions, transitions, start, stop = np.split(w, at)
        return emissions.reshape(d, states), transitions.reshape(states, states), start, stop


def _whole_states(y: Any, n_states: int) -> Ints:
    if y.dtype.kind not in "buif" or not ((y >= 0) & (y < n_states) & (y == np.floor(y))).all():
        raise ValueError(
            f"y must hold whole numbers from 0 to {n_states - 1}, the states of "
            f"Chain(n_states={n_states}): leave n_states=None for states of any kind."
        )
    return np.asarray(y, dtype=np.int64)


class ChainExamples(PackedExamples):
    """Sequences below each other."""

    model: Chain

    def __init__(self, model: Chain, X: Sequence[Any], Y: Sequence[Any] | None) -> None:
        self.model, self.count = model, len(X)
        checked = [check_block(x, None, "x") for x in X]
        self.stack = stacked(checked)
        self.rows = loops.rows.rows(self.stack.rows)
        self.truth = np.zeros(0, np.int64)
        if Y is not None:
            self.truth = model.coded(np.concatenate([np.asarray(y) for y in Y]))
        self.weight = model.weights()
        self.lengths = np.diff(self.stack.offsets)
        states = len(model.classes_)
        self._work = float(self.lengths.mean()) * states * (model.n_features_in_ + states) + 1

    def take(self, rows: Ints) -> "ChainExamples":
        """Return some of the sequences."""
        few = object.__new__(ChainExamples)
        few.__dict__.update(self.__dict__)
        kept = np.concatenate([np.arange(*self.stack.offsets[i : i + 2]) for i in rows])
        offsets = np.concatenate([[0], np.cumsum(self.lengths[rows])]).astype(np.int64)
        few.stack = self.stack._replace(rows=self.stack.rows[kept], offsets=offsets)
        few.rows, few.truth = loops.rows.rows(few.stack.rows), self.truth[kept]
        few.count, few.lengths = len(rows), self.lengths[rows]
        return few

    @cached_property
    def _zeros(self) -> tuple[Floats, Floats]:
        """Zeros that loops sum differences in, and leave as zeros."""
        states = len(self.model.classes_)
        return np.zeros((self.model.n_features_in_, states)), np.zeros(states * (states + 2))

    def best(self, rows: Ints, w: Floats, augmented: bool) -> Ints:
        """Return the best states of some sequences, one after the other."""
        paths = np.empty(int(self.lengths[rows].sum()), np.int64)
        loops.structured.decode_chains(
            self.rows, self.stack.offsets, rows, *self.model.parts(w), self.truth, self.weight,
            augmented, int(self.lengths[rows].max()), paths,
        )  # fmt: skip
        return paths

    _best = best

    def errors(self, rows: Ints, w: Floats) -> Floats:
        """Return by how much rounding may change the score of any path."""
        if len(self.model.classes_) == 1:  # there is one path, and nothing to choose
            return np.zeros(len(rows))
        emissions, transitions, start, stop = self.model.parts(w)
        each = largest_products(self.stack.rows, emissions)
        each += np.abs(transitions).max() + self.weight.max()
        sizes = np.add.reduceat(each, self.stack.offsets[:-1])[rows]
        sizes += np.abs(start).max() + np.abs(stop).max()
        return (self.model.n_features_in_ + 3 * self.lengths[rows] + 6) * EPS * sizes

    def difference_errors(self, rows: Ints) -> Floats:
        """Return how long the rounding error of a ψ-difference may be."""
        if len(self.model.classes_) == 1:
            return np.zeros(len(rows))
        sums = np.add.reduceat(row_lengths(self.stack.rows), self.stack.offsets[:-1])
        return np.asarray(2 * (self.lengths[rows] + 2) * EPS * sums[rows])

    def _cut(self, rows: Ints, found: Ints) -> Cuts:
        lengths = self.lengths[rows]
        entries = 2 * row_entries(self.stack.rows, self.stack.offsets, rows)
        space = EmptyRows.of(len(rows), entries + 2 * int((lengths + 1).sum()))
        loss = np.empty(len(rows))
        loops.structured.chain_differences(
            self.rows, self.stack.offsets, rows, self.truth, found, self.weight,
            *self._zeros, loss, *space,
        )  # fmt: skip
        outputs = np.split(self.model.classes_[found], np.cumsum(lengths)[:-1])
        return space.filled(outputs, loss)

    def _coded(self, rows: Ints, outputs: Sequence[Any]) -> Ints:
        for i, output in zip(rows, outputs, strict=True):
            if np.shape(output) != (self.lengths[i],):
                raise ValueError(
                    f"Example {i}: an output must hold one state for each of the "
                    f"{self.lengths[i]} rows, got shape {np.shape(output)}."
                )
        return self.model.coded(np.concatenate([np.asarray(y) for y in outputs]))

    def _joined(self, found: list[Ints]) -> Any:
        states = self.model.classes_[np.concatenate(found)]
        return np.split(states, self.stack.offsets[1:-1])
