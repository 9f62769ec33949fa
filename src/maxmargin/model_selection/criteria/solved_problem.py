"""Fitted classifiers as the binary problems they solved, which all criteria are computed from."""

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Ints
from maxmargin.estimators import SVC, HardMarginSVC, LinearSVC
from maxmargin.estimators.left_out import SolvedProblem

_KINDS = (SVC, LinearSVC, HardMarginSVC)


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
    joint = getattr(model, "multi_class", "ovo") == "crammer_singer"
    if joint and len(getattr(model, "classes_", ())) > 2:  # of two classes it is a binary problem
        raise ValueError(
            "multi_class='crammer_singer' is not supported: its problem is not binary. Use "
            "multi_class 'ovr' or 'ovo', or sklearn.model_selection.cross_val_score."
        )
