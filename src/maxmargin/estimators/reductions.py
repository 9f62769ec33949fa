"""Several classes as several problems with two classes."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints


@dataclass(frozen=True)
class Subproblem:
    """One binary problem: which rows take part, on which side, and between which classes."""

    rows: Ints | None  # None: all
    signs: Floats
    positive: int
    negative: int  # −1: all other classes


class ClassPlanes(NamedTuple):
    """Between which classes the planes of a fitted classifier are; what writes models asks it."""

    scheme: str  # of the fit: "ovo", "ovr" or "crammer_singer"
    pairs: list[tuple[int, int]]  # positive and negative class of each plane, −1: all others
    numbers: Ints  # the places of these planes among the intercepts
    ranks: Ints | None = None  # of the classes, which decide ties; None: the first one wins


def binary_subproblems(labels: Ints, n_classes: int, scheme: str) -> list[Subproblem]:
    """Return the binary problems of a scheme; classes without rows take part in none.

    With two classes there is one, and the second class is positive. ``"ovr"`` has one for each
    class, ``"ovo"`` one for each pair (i, j), i < j, in which i is positive; ``"crammer_singer"``
    has none, as the classes are learnt together.
    """
    subproblems = []
    for i, j in class_pairs(np.unique(labels), n_classes, scheme):
        if n_classes == 2 or j < 0:
            subproblems.append(Subproblem(None, np.where(labels == i, 1.0, -1.0), i, j))
            continue
        rows = np.flatnonzero((labels == i) | (labels == j))
        subproblems.append(Subproblem(rows, np.where(labels[rows] == i, 1.0, -1.0), i, j))
    return subproblems


def class_pairs(present: Ints, n_classes: int, scheme: str) -> list[tuple[int, int]]:
    """Return the classes on both sides of each binary problem, −1: all others."""
    if n_classes == 2:
        return [(1, 0)]
    if scheme == "crammer_singer":
        return []
    if scheme == "ovr":
        return [(k, -1) for k in present.tolist()]
    return list(combinations(present.tolist(), 2))


def best_classes(
    scores: Floats, classes: npt.NDArray[Any], ranks: Ints | None = None
) -> npt.NDArray[Any]:
    """Return the class with the best score; with two classes and one score the second iff f > 0.

    Of equal scores the first is taken, or that of the class with the lowest rank.
    """
    if scores.ndim == 1:
        return np.asarray(classes[(scores > 0).astype(int)])
    order = np.arange(len(classes)) if ranks is None else np.argsort(ranks)
    return np.asarray(classes[order[scores[:, order].argmax(axis=1)]])


class ScoresOnly:
    """Lets a classifier without probabilities say how to get them; ``hasattr`` is False."""

    @property
    def predict_proba(self) -> Any:
        """Not there: scores are no probabilities."""
        raise AttributeError(self._how_to_get("predict_proba"))

    @property
    def predict_log_proba(self) -> Any:
        """Not there: scores are no probabilities."""
        raise AttributeError(self._how_to_get("predict_log_proba"))

    def _how_to_get(self, method: str) -> str:
        name = type(self).__name__
        return (
            f"{name} has no {method}: its scores are not probabilities. Fit "
            f"CalibratedClassifierCV({name}(…), ensemble=False) of sklearn.calibration, which has "
            "it; decision_function ranks rows without it."
        )


def combined_scores(
    scores: Floats,
    subproblems: list[tuple[int, int]],
    n_classes: int,
    ranks: Ints | None = None,
) -> Floats:
    """Return one score per class from the scores of the subproblems, a column for each.

    One against the rest: the scores themselves. One against one: the number of pairs won, plus
    less than a half for the sum of all its scores, which breaks ties; with ``ranks``, as LIBSVM has
    it, the class of the lowest rank does. A class that takes part in no subproblem scores lower
    than any other.
    """
    n = len(scores)
    if all(negative < 0 for _, negative in subproblems):
        out = np.full((n, n_classes), np.nan)
        for k, (positive, _) in enumerate(subproblems):
            out[:, positive] = scores[:, k]
    else:
        sides = np.zeros((len(subproblems), n_classes))
        positive, negative = np.transpose(subproblems)
        sides[np.arange(len(sides)), positive] = 1.0
        sides[np.arange(len(sides)), negative] = -1.0
        # A pair that is not won by its first class is won by its second one.
        votes = (scores > 0) @ sides + np.bincount(negative, minlength=n_classes)
        sums = scores @ sides
        less = sums / (3 * (np.abs(sums) + 1))
        if ranks is not None:
            less = (n_classes - 1 - ranks + 0.5 + less) / (3 * n_classes)
        out = votes + less
        out[:, ~sides.any(axis=0)] = np.nan
    absent = np.isnan(out).all(axis=0) if n else np.zeros(n_classes, dtype=bool)
    if absent.any():
        out[:, absent] = out[:, ~absent].min(axis=1, keepdims=True) - 1.0
    return out


class Pairs:
    """One against one: each class is in K − 1 of the pairs (i, j), i < j, and i is positive.

    Side r of class c is its pair with class r, or r + 1 if r ≥ c, its rival; of two the second is
    positive. This is how scikit-learn lays out ``dual_coef_``.
    """

    def __init__(self, n_classes: int) -> None:
        self.pairs = list(combinations(range(n_classes), 2))
        self.number = np.zeros((n_classes, n_classes - 1), dtype=np.int64)  # by (c, r)
        for k, (i, j) in enumerate(self.pairs):
            self.number[i, j - 1] = self.number[j, i] = k
        self.rival = np.array([np.delete(np.arange(n_classes), c) for c in range(n_classes)])
        # Which side of the plane class c is on, by (c, r).
        positive = np.arange(n_classes - 1) >= np.arange(n_classes)[:, None]
        self.sign = np.where(positive == (n_classes > 2), 1.0, -1.0)

    def spread(self, values: npt.NDArray[Any], labels: Ints) -> npt.NDArray[Any]:
        """Return values by (side, row) as values by (pair, row); 0 where a row has no part."""
        out = np.zeros((len(self.pairs), len(labels)), dtype=values.dtype)
        for side in range(len(values)):
            out[self.number[labels, side], np.arange(len(labels))] = values[side]
        return out

    def gather(self, values: npt.NDArray[Any], labels: Ints) -> npt.NDArray[Any]:
        """Return values by (pair, row) as values by (side, row)."""
        each = np.arange(len(labels))
        return np.stack([values[number[labels], each] for number in self.number.T])


class Rest:
    """One against the rest, or all classes together: a plane for each class, in which all rows are.

    Side r of any class is plane r.
    """

    def __init__(self, n_classes: int) -> None:
        self.pairs = [(k, -1) for k in range(n_classes)]
        self.sign = 2.0 * np.eye(n_classes) - 1.0  # by (class, plane)

    def spread(self, values: npt.NDArray[Any], labels: Ints) -> npt.NDArray[Any]:
        """Return values by (side, row): these are values by (plane, row)."""
        del labels
        return values

    def gather(self, values: npt.NDArray[Any], labels: Ints) -> npt.NDArray[Any]:
        """Return values by (plane, row): these are values by (side, row)."""
        del labels
        return values


def refuse_other_scheme(model: Any, fitted: str) -> None:
    """Raise if ``multi_class`` is not what a model of more than two classes was fitted with."""
    if len(model.classes_) > 2 and model.multi_class != fitted:
        raise ValueError(
            f"This {type(model).__name__} was fitted with multi_class={fitted!r}, so it has no "
            f"planes of multi_class={model.multi_class!r}: fit it again."
        )


@lru_cache
def lay_out(n_classes: int, scheme: str) -> Pairs | Rest:
    """Return where the duals of each class are; two classes have one plane in any scheme."""
    return Pairs(n_classes) if n_classes == 2 or scheme == "ovo" else Rest(n_classes)


def joint_slacks(scores: Floats, labels: Ints) -> Floats:
    """Return what the own class of each row lacks of a lead of 1 over the best rival, or 0."""
    claims, own = scores + 1.0, (np.arange(len(labels)), labels)
    claims[own] -= 1.0
    return np.asarray(claims.max(axis=1) - claims[own])


def joint_margin(products: Floats) -> float:
    """Return the least distance from a boundary between two classes to a lead of 1.

    ``products`` are those of the weights of classes with each other.
    """
    squares = products.diagonal()
    largest = float((squares + squares[:, np.newaxis] - 2 * products).max())
    return 1.0 / float(np.sqrt(largest)) if largest > 0 else np.inf


class HingeMultipliers:
    """A classifier with the hinge loss: Lagrange multipliers of the constraints ξ ≥ 0.

    What a unit of slack costs in each row is noted when a model is adopted.
    """

    classes_: npt.NDArray[Any]
    alpha_: Any
    _row_labels: Ints  # −1: the row is absent
    _row_costs: Floats

    def _plane_classes(self) -> list[tuple[int, int]]:
        """Return the classes on both sides of each plane, −1: the rest; none if learnt jointly."""
        raise NotImplementedError

    def _keep_costs(self, labels: Ints, costs: Floats, kept: Ints, n_rows: int) -> None:
        self._row_labels, self._row_costs = np.full(n_rows, -1, dtype=np.int32), np.zeros(n_rows)
        self._row_labels[kept], self._row_costs[kept] = labels, costs

    @property
    def bound_multiplier_(self) -> Floats:
        """C − α of each row, in each problem: the multipliers of ξ ≥ 0, so that (C − α)ξ = 0.

        0 for rows that take no part. Of classes learnt jointly α is the dual of a row's own class.
        """
        check_is_fitted(self)
        if not hasattr(self, "_row_costs"):
            raise AttributeError(
                f"This {type(self).__name__} has no bound_multiplier_: only duals of the hinge "
                "loss, found by fit, have upper bounds."
            )
        alpha, labels, pairs = self.alpha_, self._row_labels, self._plane_classes()
        if not pairs:
            alpha = alpha[labels, np.arange(len(labels))]
        left = np.maximum(self._row_costs - alpha, 0.0)
        for k, (one, other) in enumerate(pairs if left.ndim > 1 else []):
            first, second = labels == one, labels == other if other >= 0 else labels != one
            # A plane to or from a class without weight was not solved for.
            left[k] *= (first | second) & first.any() & second.any()
        return np.asarray(left)
