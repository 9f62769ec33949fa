"""Fitted classifiers as the binary problems they solved, which all criteria are computed from.

Linear machines are treated as kernel machines with the linear kernel, and a penalized intercept as
a constant added to it, so that one set of formulas serves them all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.certificates import Certificate, certify
from maxmargin.estimators import SVC, HardMarginSVC, LinearSVC
from maxmargin.estimators.inputs import check_labels, check_weights, class_indices
from maxmargin.estimators.reductions import binary_tasks
from maxmargin.inspection.model_view import read_problems
from maxmargin.kernels import Kernel, Linear
from maxmargin.loops.records import Loss
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Intercept, KernelProblem, Point, Problem

KINDS = (SVC, LinearSVC, HardMarginSVC)
_BLOCK = 512  # rows of kernel values looked at together
_AT_BOUND = 1e-9  # of the bound: a dual this near to it is there


@dataclass(frozen=True, eq=False)
class SolvedProblem:
    """A binary problem with its solution, by the rows that take part in it."""

    problem: Problem | KernelProblem
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
        if isinstance(self.problem, KernelProblem):
            return len(self.problem.totals) > 0
        return self.problem.intercept is Intercept.FREE

    @property
    def loss_name(self) -> str:
        """Which it is: "hinge", "squared_hinge" or "hard_margin"."""
        if self.loss.quadratic.any():
            return "squared_hinge"
        return "hard_margin" if np.isinf(self.bound).all() else "hinge"

    @cached_property
    def certificate(self) -> Certificate:
        """Bounds on the optimum, recomputed."""
        return certify(self.problem, self.point, keep_intercept=True)

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel, with a constant for a penalized intercept."""
        if isinstance(self.problem, KernelProblem):
            return self.problem.gram.kernel
        if self.problem.intercept is Intercept.PENALIZED:
            return Linear() + self.problem.lift**2
        return Linear()

    @cached_property
    def prepared_rows(self) -> Any:
        """The rows as the kernel sees them."""
        if isinstance(self.problem, KernelProblem):
            return self.problem.gram.exact[self.problem.rows]
        return self.kernel.prepare(self.problem.X.astype(np.float64, copy=False))

    @cached_property
    def diagonal(self) -> Floats:
        """K(x, x) of each row."""
        return np.asarray(self.kernel.diag(self.prepared_rows), dtype=np.float64)

    def values(self, left: Ints, right: Ints) -> Floats:
        """Return kernel values between some rows and some others."""
        block = self.kernel.block(self.prepared_rows[left], self.prepared_rows[right])
        return np.asarray(block, dtype=np.float64)

    def blocks(self) -> Iterator[Floats]:
        """Yield all kernel values, some rows at a time."""
        every = np.arange(len(self))
        for start in range(0, len(self), _BLOCK):
            yield self.values(every[start : start + _BLOCK], every)

    @cached_property
    def scores(self) -> Floats:
        """The score f of each row, as the model predicts."""
        w, b = np.asarray(self.point.w), np.ravel(self.point.b)
        intercept = float(b[0]) if len(b) else 0.0
        if isinstance(self.problem, Problem):
            return np.asarray(self.problem.X @ w + intercept, dtype=np.float64)
        used = np.flatnonzero(w)
        if not len(used):
            return np.full(len(self), intercept)
        right = self.prepared_rows[used]
        total = self.kernel.dot(self.prepared_rows, right, w[used][:, np.newaxis])
        return np.asarray(total[:, 0] + intercept)

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

    def as_kernel_problem(self) -> KernelProblem:
        """Return the problem in terms of kernel values."""
        if isinstance(self.problem, KernelProblem):
            return self.problem
        free = int(self.free)
        gram = Gram(self.kernel, self.problem.X.astype(np.float64, copy=False))
        every, groups = np.arange(len(self)), np.full(len(self), free - 1)
        return KernelProblem(gram, self.loss, every, groups, np.zeros(free))


def solved_problems(model: Any, X: Any, y: Any, sample_weight: Any = None) -> list[SolvedProblem]:
    """Return the binary problems of a fitted classifier."""
    refuse_others(model)
    solved = read_problems(model, X, y, sample_weight) or []
    rows = _rows(model, X, y, sample_weight)
    found = [SolvedProblem(*pair, own) for pair, own in zip(solved, rows, strict=True)]
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
            f"{what} is about two classes, and this {type(model).__name__} has "
            f"{len(model.classes_)}: fit each pair of classes by itself, or use leave_one_out."
        )
    return solved_problems(model, X, y, sample_weight)[0]


def refuse_others(model: Any) -> None:
    """Raise unless the criteria are defined for the model."""
    if not hasattr(model, "fit"):
        raise TypeError(f"{type(model).__name__} is not a model: that comes first, then X and y.")
    if not isinstance(model, KINDS):
        names = ", ".join(kind.__name__ for kind in KINDS)
        raise TypeError(
            f"model={type(model).__name__} is not supported: the criteria are for {names} of "
            "maxmargin. For others use sklearn.model_selection.cross_val_score."
        )
    if isinstance(model, LinearSVC):
        if model.penalty != "l2":
            raise ValueError(
                f"penalty={model.penalty!r} is not supported: the criteria rest on the dual of "
                "penalty='l2'. Use sklearn.model_selection.cross_val_score."
            )
        if model.multi_class == "crammer_singer":
            raise ValueError(
                "multi_class='crammer_singer' is not supported: its problem is not binary. Use "
                "multi_class 'ovr' or 'ovo', or sklearn.model_selection.cross_val_score."
            )


def _rows(model: Any, X: Any, y: Any, sample_weight: Any) -> list[Ints]:
    """Return which of the rows given take part in each problem."""
    if isinstance(model, SVC):
        data = model._training(X, y, sample_weight, reset=False)
        return [data.kept[part.rows] for part in model._parts(data)]
    y = check_labels(y, np.shape(y)[0])
    factors = getattr(model, "class_weight", None)
    kept = np.flatnonzero(check_weights(sample_weight, factors, model.classes_, y) > 0)
    labels = class_indices(model.classes_, y[kept])
    tasks = binary_tasks(labels, len(model.classes_), model.multi_class)
    return [kept if task.rows is None else kept[task.rows] for task in tasks]
