"""Fitted classifiers as the binary problems they solved, which all criteria are computed from.

A penalised intercept is the weight of a constant feature, so that one set of formulas serves linear
and kernel machines.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.certificates import Certificate, certify
from maxmargin.estimators import SVC, HardMarginSVC, LinearSVC
from maxmargin.loops.records import Loss
from maxmargin.problems.problem import Intercept, Point, Problem

_KINDS = (SVC, LinearSVC, HardMarginSVC)
_AT_BOUND = 1e-9  # of the bound: a dual this near to it is there


@dataclass(frozen=True, eq=False)
class ErrorCount:
    """Rows that count as errors when they are left out, and how many rows take part."""

    errors: int
    rows: Ints
    n_rows: int

    @property
    def rate(self) -> float:
        """Errors divided by rows."""
        return self.errors / self.n_rows


@dataclass(frozen=True, eq=False)
class SolvedProblem:
    """A binary problem with its solution, by the rows that take part in it."""

    problem: Problem[Any]
    point: Point
    rows: Ints  # among those given

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def loss(self) -> Loss:
        """The losses."""
        return self.problem.loss

    @property
    def signs(self) -> Floats:
        """Labels ±1."""
        return self.loss.target

    @cached_property
    def alpha(self) -> Floats:
        """Dual variables ≥ 0."""
        return np.abs(np.asarray(self.point.beta, dtype=np.float64))

    @property
    def bound(self) -> Floats:
        """The largest values the duals may have: C of each row, or infinity."""
        return np.maximum(self.loss.high, -self.loss.low)

    @property
    def free(self) -> bool:
        """Whether there is an intercept that costs nothing."""
        return self.problem.intercept is Intercept.FREE

    @property
    def loss_name(self) -> str:
        """Which it is: "hinge", "squared_hinge" or "hard_margin"."""
        if np.isinf(self.bound).all():
            return "squared_hinge" if self.loss.quadratic.any() else "hard_margin"
        return "hinge"

    @cached_property
    def certificate(self) -> Certificate:
        """Bounds on the optimum, recomputed."""
        return certify(self.problem, self.point, keep_intercept=True)

    @cached_property
    def diagonal(self) -> Floats:
        """‖φ(x)‖² of each row."""
        return np.asarray(self.problem.features.squared_norms()[self.problem.row])

    def block(self, left: Ints, right: Ints) -> Floats:
        """Return the products of some rows with some others in feature space."""
        row = self.problem.row
        return np.asarray(self.problem.features.block(row[left], row[right]))

    @cached_property
    def scores(self) -> Floats:
        """The score f of each row, as the model predicts."""
        b = np.ravel(self.point.b)
        return np.asarray(self.problem.products(self.point.w) + (float(b[0]) if len(b) else 0.0))

    @property
    def slack(self) -> Floats:
        """ξ of each row."""
        return np.asarray(np.maximum(0.0, 1.0 - self.signs * self.scores))

    @property
    def between_bounds(self) -> Flags:
        """Which duals are strictly between their bounds."""
        bound = self.bound
        full = np.isfinite(bound) & (self.alpha >= (1 - _AT_BOUND) * bound)
        smallest = _AT_BOUND * self.alpha.max(initial=0.0)
        return np.asarray((self.alpha > smallest) & ~full)

    @property
    def alone(self) -> Flags:
        """Which rows are the only ones of their class."""
        positive = self.signs > 0
        count = np.where(positive, positive.sum(), (~positive).sum())
        return np.asarray(count == 1)


def solved_problems(model: Any, X: Any, y: Any, sample_weight: Any = None) -> list[SolvedProblem]:
    """Return the binary problems of a fitted classifier."""
    refuse_others(model)
    found = [SolvedProblem(*solved) for solved in model.solution(X, y, sample_weight)]
    for each in found:
        beta: Any = each.point.beta
        if beta is None or len(beta) != len(each):
            raise ValueError(
                f"{type(model).__name__} has no dual variables for these {len(each)} rows: pass "
                "the rows it was fitted to, all of them, and their weights."
            )
    return found


def solved_problem(model: Any, X: Any, y: Any, sample_weight: Any, what: str) -> SolvedProblem:
    """Return the one problem of a classifier with two classes; refuse more."""
    refuse_others(model)
    check_is_fitted(model)
    if len(model.classes_) > 2:
        raise ValueError(
            f"{what} is for two classes, and this {type(model).__name__} has "
            f"{len(model.classes_)}: fit each pair of classes separately, or use leave_one_out."
        )
    return solved_problems(model, X, y, sample_weight)[0]


def refuse_others(model: Any) -> None:
    """Raise unless the criteria are defined for the model."""
    if not hasattr(model, "fit"):
        raise TypeError(f"{type(model).__name__} is not a model: that comes first, then X and y.")
    if not isinstance(model, _KINDS):
        names = ", ".join(kind.__name__ for kind in _KINDS)
        raise TypeError(
            f"model={type(model).__name__} is not supported: the criteria are for {names} of "
            "maxmargin. For others use sklearn.model_selection.cross_val_score."
        )
    if isinstance(model, LinearSVC) and model.penalty != "l2":
        raise ValueError(
            f"penalty={model.penalty!r} is not supported: the criteria rest on the dual of "
            "penalty='l2'. Use sklearn.model_selection.cross_val_score."
        )
    if getattr(model, "multi_class", "ovo") == "crammer_singer":
        raise ValueError(
            "multi_class='crammer_singer' is not supported: its problem is not binary. Use "
            "multi_class 'ovr' or 'ovo', or sklearn.model_selection.cross_val_score."
        )
