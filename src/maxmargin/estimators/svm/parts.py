"""What a kernel machine is made of: its problems, its sum over support vectors, its pairs."""

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin._typing import Floats, Ints
from maxmargin.kernels import Kernel, PreparedRows
from maxmargin.kernels.precomputed import asymmetry, is_symmetric
from maxmargin.loops.records import Loss

_ROWS_AT_A_TIME = 1 << 14  # prepared for a prediction


@dataclass(frozen=True)
class Training:
    """The rows that take part in a fit, those of one class side by side if there are several."""

    X: Any
    answers: Any  # labels 0 … K − 1, or targets
    weight: Floats
    kept: Ints  # their numbers among the rows given
    n_rows: int  # given
    kernel: Kernel

    def __len__(self) -> int:
        return len(self.kept)


@dataclass(frozen=True)
class Part:
    """One of the problems of a machine: its dual variables, and what they are about.

    A row may have several duals: one for each pair of classes that its own is in, or one for each
    side of a tube. ``sides`` says which of them a variable is.
    """

    loss: Loss
    rows: Ints
    sides: Ints
    groups: Ints
    totals: Floats


class Found(NamedTuple):
    """What solving the parts gave; the duals lie by (side, row)."""

    problems: list[Any]
    results: list[Any]
    duals: Floats


# ------------------------------------------------------------------- f = Σ aᵢK(xᵢ, ·)


class PreparedSupport:
    """Support vectors as their kernel sees them, computed once for each model."""

    def __init__(self) -> None:
        # Not in the models: there it would be pickled, and prediction would change them.
        self._kept: WeakKeyDictionary[Any, tuple[Any, Any, PreparedRows]] = WeakKeyDictionary()

    def of(self, model: Any) -> PreparedRows:
        """Return the support vectors of a model in float64, whatever type rows have.

        So scores are those that were certified: float32 errs by 1e-7 of Σ|a|, which may be large.
        """
        vectors, kernel = model.support_vectors_, model.kernel_
        known = self._kept.get(model)
        if known and known[0] is vectors and known[1] is kernel:
            return known[2]
        if not kernel.takes_objects:
            vectors = vectors.astype(np.float64, copy=False)
        prepared: PreparedRows = kernel.prepare(vectors)
        self._kept[model] = model.support_vectors_, kernel, prepared
        return prepared


def expanded(
    kernel: Kernel, X: Any, right: PreparedRows, coefficients: Floats, threads: int | None
) -> Floats:
    """Return Σⱼ K(xᵢ, zⱼ) aⱼₖ of rows X over support vectors z: a column for each column of a."""
    n = X.shape[0]
    scores = np.empty((n, coefficients.shape[1]))
    for start in range(0, n, _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        rows = X[part] if kernel.takes_objects else X[part].astype(right.dtype, copy=False)
        scores[part] = kernel.dot(kernel.prepare(rows, like=right), right, coefficients, threads)
    return scores


# ------------------------------------------------------------------- pairs of classes


class Pairs:
    """One against one: each class is in K − 1 of the pairs (i, j), i < j, and i is positive.

    Side r of class c is its pair with class r, or r + 1 if r ≥ c; of two classes the second is
    positive. This is how scikit-learn lays out ``dual_coef_``.
    """

    def __init__(self, n_classes: int) -> None:
        self.pairs = list(combinations(range(n_classes), 2))
        self._n_classes = n_classes

    @cached_property
    def number(self) -> Ints:
        """Which pair side r of class c is, by (c, r)."""
        number = np.zeros((self._n_classes, self._n_classes - 1), dtype=np.int64)
        for k, (i, j) in enumerate(self.pairs):
            number[i, j - 1] = number[j, i] = k
        return number

    @cached_property
    def sign(self) -> Floats:
        """Which side of the plane class c is on, by (c, r)."""
        sign = np.where(
            np.arange(self._n_classes - 1) >= np.arange(self._n_classes)[:, None], 1, -1
        )
        return (-sign if self._n_classes == 2 else sign).astype(np.float64)

    def spread(self, values: npt.NDArray[Any], labels: Ints) -> npt.NDArray[Any]:
        """Return values by (side, row) as values by (pair, row); 0 where a row has no part."""
        out = np.zeros((len(self.pairs), len(labels)), dtype=values.dtype)
        for side in range(len(values)):
            out[self.number[labels, side], np.arange(len(labels))] = values[side]
        return out

    def gathered(self, values: npt.NDArray[Any], labels: Ints) -> npt.NDArray[Any]:
        """Return values by (pair, row) as values by (side, row)."""
        each = np.arange(len(labels))
        return np.stack([values[number[labels], each] for number in self.number.T])


# ------------------------------------------------------------------- the same rows again


def matches(old: Any, old_labels: Any, new: Any, new_labels: Any) -> tuple[Ints, Ints]:
    """Return where rows with the same content and label are in the one and in the other."""
    waiting: dict[bytes, list[int]] = defaultdict(list)
    for i, mark in enumerate(_marks(old, old_labels)):
        waiting[mark].append(i)
    pairs = [
        (waiting[mark].pop(0), j)
        for j, mark in enumerate(_marks(new, new_labels))
        if waiting.get(mark)
    ]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _marks(X: Any, labels: Ints) -> list[bytes]:
    """Return a digest of each row and its label."""
    n = X.shape[0]
    tails = [label.tobytes() for label in np.asarray(labels, dtype=np.int64)]
    if sp.issparse(X):
        ends = X.indptr
        contents = [
            X.indices[ends[i] : ends[i + 1]].astype(np.int64).tobytes()
            + X.data[ends[i] : ends[i + 1]].tobytes()
            for i in range(n)
        ]
    else:
        contents = [np.ascontiguousarray(row).tobytes() for row in X]
    return [
        hashlib.blake2b(content + tail, digest_size=16).digest()
        for content, tail in zip(contents, tails, strict=True)
    ]


# ------------------------------------------------------------------- objects


def as_objects(X: Any) -> npt.NDArray[Any]:
    """Return any objects as a 1-D array of them."""
    items = list(X)
    if not items:
        raise ValueError("Found array with 0 sample(s), while a minimum of 1 is required.")
    objects = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        objects[i] = item
    return objects


def checked_gram(K: Any) -> Any:
    """Return kernel values that can be a Gram matrix, or raise."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed matrix must be a square matrix. Input is a {K.shape[0]}x{K.shape[1]} "
            "matrix: give the kernel values of all training rows with all training rows."
        )
    if not is_symmetric(K):
        raise ValueError(
            f"The precomputed Gram matrix is not symmetric, by {asymmetry(K):.2g} of its largest "
            "value: mm.check_kernel(K) tells more and can repair it."
        )
    return K
