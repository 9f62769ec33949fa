"""What a model of structured outputs must offer, and the passes over examples made from it."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from maxmargin._typing import Floats, Ints
from maxmargin.runtime import clock
from maxmargin.validation.parameters import NamedParameters

_ROWS_A_BLOCK = 256  # examples that are decoded between two readings of the clock


class Model(NamedParameters, BaseEstimator):
    """How inputs x and outputs y are scored, searched and compared: ⟨w, ψ(x, y)⟩ is the score.

    A class of your own defines ``features``, ``decode`` and ``loss``; the rest has defaults.
    Parameters are stored by ``__init__`` under their own names and nothing else is, as in any
    scikit-learn estimator, so that models can be cloned, printed, searched over and pickled.

    Attributes
    ----------
    exact : bool
        Whether ``decode`` really finds the highest score. Only then can a duality gap be proved;
        False unless a class says otherwise.
    has_scores : bool
        Whether its examples have ``scores(w)``: the numbers that are compared for a prediction.
    """

    exact: bool = False
    has_scores: bool = False

    # ---------------------------------------------------------------- for subclasses

    def features(self, x: Any, y: Any) -> Any:
        """Return ψ(x, y): an array or a sparse row, of the same length for all x and y."""
        raise NotImplementedError(
            f"{type(self).__name__} must define features(x, y), or difference(x, y, other)."
        )

    def difference(self, x: Any, y: Any, other: Any) -> Any:
        """Return ψ(x, y) − ψ(x, other), an array or a sparse row."""
        return self.features(x, y) - self.features(x, other)

    def decode(self, x: Any, w: Floats, truth: Any = None) -> Any:
        """Return the y with the highest ⟨w, ψ(x, y)⟩, plus loss(truth, y) if a truth is given."""
        raise NotImplementedError(
            f"{type(self).__name__} must define decode(x, w, truth=None): the output with the "
            "highest score."
        )

    def loss(self, y: Any, other: Any) -> float:
        """Return what it costs to answer ``other`` where ``y`` is true: ≥ 0, and 0 for y itself."""
        raise NotImplementedError(
            f"{type(self).__name__} must define loss(y, other): what a wrong output costs."
        )

    def worst_loss(self, y: Any) -> float:
        """Return the largest loss where ``y`` is true: what ``score`` divides by. By default 1."""
        return 1.0

    def check(self, x: Any, y: Any = None) -> None:
        """Raise an error if an input, or an output that comes with it, is malformed.

        By default everything is accepted. Whoever calls it adds the number of the example.
        """

    def prepare(self, X: Any, Y: Any) -> Self:
        """Return the model with what it learns from training data: sizes, labels.

        The model itself is not changed. By default there is nothing to learn, and it is returned.
        """
        return self

    def examples(self, X: Any, Y: Any = None) -> "Examples":
        """Check examples and return them with the passes that solvers make over them.

        Without Y, only ``predict`` and ``scores`` can be used. A model overrides this to make the
        passes compiled.
        """
        return Examples(self, X, Y)

    # ---------------------------------------------------------------- for users

    def named_weights(self, w: Floats) -> dict[str, Floats]:
        """Return the weights by what they are about; by default all together."""
        return {"weights": np.asarray(w)}


class Cuts(NamedTuple):
    """Outputs with their losses and ψ-differences to the true ones, as sparse rows.

    Attributes
    ----------
    outputs : list
        The outputs.
    loss : array of shape (n_outputs,)
        The loss of each output.
    indptr, indices, values : array
        The differences ψ(x, y) − ψ(x, output), as the arrays of a CSR matrix.
    """

    outputs: list[Any]
    loss: Floats
    indptr: Ints
    indices: Any
    values: Floats

    def violations(self, w: Floats) -> Floats:
        """Return H = loss − ⟨w, difference⟩ of each output."""
        return np.asarray(self.loss - self.matrix(len(w)) @ w)

    def matrix(self, size: int) -> Any:
        """Return the differences as a CSR matrix."""
        shape = len(self.outputs), size
        return sp.csr_matrix((self.values, self.indices, self.indptr), shape=shape, copy=False)

    def at(self, k: int) -> tuple[Any, Floats]:
        """Return indices and values of the difference of one output."""
        begin, end = self.indptr[k], self.indptr[k + 1]
        return self.indices[begin:end], self.values[begin:end]


class Examples:
    """Checked examples of a prepared model; here with a loop in Python over its methods.

    Parameters
    ----------
    model : Model
        As ``prepare`` returns it.
    X, Y : sequences
        Inputs and true outputs; None: there are no outputs.
    """

    model: Any
    X: Any
    Y: Any

    def __init__(self, model: Model, X: Any, Y: Any = None) -> None:
        self.model = model
        self.X, self.Y = check_examples(model, X, Y)
        for i, y in enumerate(self.Y or ()):
            if self._checked_loss(i, y, y) > 0:
                raise ValueError(
                    f"Example {i}: {type(model).__name__}.loss gives {model.loss(y, y):g} for the "
                    "true output itself, which must cost 0."
                )

    def __len__(self) -> int:
        return len(self.X)

    @cached_property
    def size(self) -> int:
        """How many weights there are."""
        truth = self.Y[0]
        return len(as_vector(self.model.difference(self.X[0], truth, truth)))

    def take(self, rows: Ints) -> "Examples":
        """Return some of the examples."""
        few = object.__new__(type(self))
        few.model = self.model
        few.X, few.Y = [self.X[i] for i in rows], [self.Y[i] for i in rows]
        return few

    def predict(self, w: Floats) -> Any:
        """Return the output with the highest score of each example."""
        return self._decoded(range(len(self)), w, augmented=False)

    def decode(self, rows: Ints, w: Floats, augmented: bool = True) -> Cuts:
        """Return the best output of some examples, by score plus loss or by score alone."""
        return self.cuts(rows, self._decoded(rows, w, augmented))

    def _decoded(self, rows: Any, w: Floats, augmented: bool) -> list[Any]:
        outputs = []
        for k, i in enumerate(rows):
            if k % _ROWS_A_BLOCK == 0:
                clock.check()
            truth = self.Y[i] if augmented else None
            outputs.append(self.model.decode(self.X[i], w, truth))
        return outputs

    def cuts(self, rows: Ints, outputs: Sequence[Any]) -> Cuts:
        """Return given outputs of some examples with their losses and ψ-differences."""
        losses, parts, size = np.empty(len(rows)), [], self.size
        for k, (i, output) in enumerate(zip(rows, outputs, strict=True)):
            truth = self.Y[i]
            losses[k] = self._checked_loss(int(i), truth, output)
            vector = as_vector(self.model.difference(self.X[i], truth, output))
            if len(vector) != size or not np.isfinite(vector).all():
                raise ValueError(
                    f"Example {i}: {type(self.model).__name__} gives a ψ-difference of length "
                    f"{len(vector)} where example 0 has {size}, or one that is not finite: all "
                    "must be finite and of one length."
                )
            parts.append(vector)
        return packed_cuts(list(outputs), losses, parts)

    def losses(self, w: Floats) -> Floats:
        """Return the loss of the prediction of each example."""
        return self.decode(np.arange(len(self)), w, augmented=False).loss

    def difference_errors(self, rows: Ints) -> Floats:
        """Return how long the rounding error of a ψ-difference may be.

        What a user's model computes counts as exact.
        """
        return np.zeros(len(rows))

    def errors(self, rows: Ints, w: Floats) -> Floats:
        """Return by how much rounding may change the score that an output is chosen by.

        What a user's model computes counts as exact.
        """
        return np.zeros(len(rows))

    def _checked_loss(self, i: int, truth: Any, output: Any) -> float:
        loss = float(self.model.loss(truth, output))
        if not 0 <= loss < np.inf:
            raise ValueError(
                f"Example {i}: {type(self.model).__name__}.loss gives {loss:g}: losses must be "
                "finite and >= 0."
            )
        return loss


def joined_cuts(parts: list[Cuts]) -> Cuts:
    """Return all cuts together."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return packed_cuts([], np.zeros(0), [])
    ends = np.cumsum([0, *(part.indptr[-1] for part in parts)])
    pointers = [part.indptr[1:] + end for part, end in zip(parts, ends, strict=False)]
    return Cuts(
        [output for part in parts for output in part.outputs],
        np.concatenate([part.loss for part in parts]),
        np.concatenate([np.zeros(1, np.int64), *pointers]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def as_vector(difference: Any) -> Floats:
    """Return a ψ-difference, dense or sparse, as a 1-D array."""
    if sp.issparse(difference):
        difference = difference.toarray()
    return np.asarray(difference, dtype=np.float64).ravel()


def packed_cuts(outputs: list[Any], losses: Floats, parts: list[Floats]) -> Cuts:
    """Return cuts from dense ψ-differences."""
    places = [np.flatnonzero(part) for part in parts]
    indptr = np.concatenate([[0], np.cumsum([len(place) for place in places])]).astype(np.int64)
    values = [part[place] for part, place in zip(parts, places, strict=True)]
    indices = np.concatenate([np.zeros(0, np.int32), *places]).astype(np.int32)
    return Cuts(outputs, losses, indptr, indices, np.concatenate([np.zeros(0), *values]))


def check_examples(model: Model, X: Any, Y: Any) -> tuple[list[Any], Any]:
    """Return inputs and outputs as lists, each checked by the model, with its number in errors."""
    X = as_list(X, "X")
    if Y is not None:
        Y = as_list(Y, "Y")
        if len(X) != len(Y):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: X has "
                f"{len(X)} examples, Y has {len(Y)} outputs."
            )
    if not X:
        raise ValueError("X holds no example: at least one is needed.")
    for i, x in enumerate(X):
        try:
            model.check(x, None if Y is None else Y[i])
        except (TypeError, ValueError) as wrong:
            raise type(wrong)(f"Example {i}: {wrong}") from wrong
    return X, Y


def as_list(sequence: Any, name: str) -> list[Any]:
    """Return a sequence of examples as a list."""
    if sp.issparse(sequence):
        return list(sequence.tocsr())
    if hasattr(sequence, "__array__") and not hasattr(sequence, "__iter__"):
        sequence = np.asarray(sequence)
    if isinstance(sequence, Iterator):
        raise TypeError(
            f"{name} is an iterator, which can be read only once: give list({name}) instead."
        )
    if isinstance(sequence, str | bytes) or not hasattr(sequence, "__iter__"):
        raise TypeError(
            f"{name} must be a sequence with an element for each example, got "
            f"{type(sequence).__name__}."
        )
    if hasattr(sequence, "to_numpy"):  # a table: its rows, not its names
        sequence = sequence.to_numpy()
    return list(sequence)
