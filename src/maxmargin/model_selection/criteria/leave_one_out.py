"""Leave-one-out by refitting, where a refit can change anything."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from maxmargin._typing import Floats, Ints
from maxmargin.estimators import HardMarginSVC
from maxmargin.estimators.machine import solver_settings
from maxmargin.estimators.reductions import best_classes, combined_scores
from maxmargin.kernels import Linear
from maxmargin.model_selection.criteria.machines import (
    SolvedProblem,
    refuse_others,
    solved_problems,
)
from maxmargin.problems.duality import within_groups
from maxmargin.problems.problem import Point, Status
from maxmargin.progress import Bar, progress
from maxmargin.solve import Budget, Settings, solve
from maxmargin.validation.data import class_indices


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What the models fitted without each row say of that row.

    Attributes
    ----------
    errors : int
        How many rows the model fitted without them misclassifies.
    rows : ndarray
        Which they are.
    n_rows : int
        How many rows take part: those with a weight.
    kept : ndarray of shape (n_rows,)
        Which they are.
    predictions : ndarray of shape (n_rows,)
        The class of each by the model without it; of the only row of its class, any other.
    scores : ndarray of shape (n_rows, n_planes)
        The score of each by each plane of the model without it; NaN for the only row of a class.
    refits : int
        How many binary problems were solved for it.
    uncertified : int
        How many of these did not reach ``tol`` (or have no certificate: an indefinite kernel).
    """

    errors: int
    rows: Ints
    n_rows: int
    kept: Ints
    predictions: npt.NDArray[Any]
    scores: Floats
    refits: int
    uncertified: int

    @property
    def rate(self) -> float:
        """Errors divided by rows."""
        return self.errors / self.n_rows

    def __repr__(self) -> str:
        doubt = f", {self.uncertified} of them not certified" if self.uncertified else ""
        return (
            f"<LeaveOneOut: {self.errors} of {self.n_rows} rows ({self.rate:.1%}) are errors when "
            f"left out; {self.refits} refits{doubt}>"
        )


def leave_one_out(model: Any, X: Any, y: Any, sample_weight: Any = None) -> LeaveOneOut:
    """Leave out each row in turn, fit the rest, and see whether the row is classified.

    A row without a dual variable needs no refit: its removal leaves solution and bound what they
    are. The others are refitted to ``tol`` from the solution with them, on the same kernel values.
    What the rows settle stays as all of them settled it: the kernel is the fitted ``kernel_``, also
    for gamma="scale", and factors of class_weight="balanced" are those of all rows. The cost is a
    warm fit for each support vector (of each pair of classes): for small data.

    Parameters
    ----------
    model : SVC, LinearSVC (penalty="l2", not Crammer–Singer) or HardMarginSVC
        Fitted to X and y, or not: then a copy is. Two classes or more.
    X, y, sample_weight :
        The training data. A row is left out with all its weight; those of weight 0 are absent. The
        only row of its class counts as an error.

    Returns
    -------
    LeaveOneOut
        ``errors``, ``rate``, ``rows``, and the ``predictions`` and ``scores`` they come from.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(60, random_state=0)
    >>> found = mm.model_selection.leave_one_out(mm.SVC(), X, y)
    >>> found.refits < 60 and 0 <= found.errors < 60
    True
    """
    refuse_others(model)
    with progress("Leaving out", unit="refit") as bar:
        return _left_out(model, X, y, sample_weight, bar)


def _left_out(model: Any, X: Any, y: Any, sample_weight: Any, bar: Bar) -> LeaveOneOut:
    if not model.__sklearn_is_fitted__():
        model = clone(model).fit(X, y, sample_weight)
    found = solved_problems(model, X, y, sample_weight)
    everyone = [np.flatnonzero((machine.alpha > 0) & ~machine.alone) for machine in found]
    bar.update(total=sum(map(len, everyone)))
    kept = np.unique(np.concatenate([machine.rows for machine in found]))
    pairs = _pairs(model, found, np.asarray(y))
    scores = _plane_scores(model, X, pairs)[kept]
    refits = uncertified = 0
    for k, (machine, changed) in enumerate(zip(found, everyone, strict=True)):
        place = np.searchsorted(kept, machine.rows[changed])
        refitted = []
        for t in changed.tolist():
            refitted.append(_refitted(model, machine, t))
            bar.advance()
        scores[place, k] = [score for score, _ in refitted]
        refits += len(changed)
        uncertified += sum(not certified for _, certified in refitted)
    predictions = _predictions(model, np.asarray(y)[kept], scores, pairs)
    wrong = predictions != np.asarray(y)[kept]
    return LeaveOneOut(
        int(wrong.sum()), kept[wrong], len(kept), kept, predictions, scores, refits, uncertified
    )


def _plane_scores(model: Any, X: Any, pairs: list[tuple[int, int]]) -> Floats:
    """Return the scores of all rows by each of the planes that were solved for."""
    scores = np.array(model.pairwise_scores(X))
    if scores.shape[1] == len(pairs):
        return scores
    every = list(combinations(range(len(model.classes_)), 2))  # also of classes without weight
    return scores[:, [every.index(pair) for pair in pairs]]


def _pairs(model: Any, found: list[SolvedProblem], y: Any) -> list[tuple[int, int]]:
    """Return between which classes each plane lies; −1 stands for all others."""
    labels, rest = class_indices(model.classes_, y), getattr(model, "multi_class", "") == "ovr"
    pairs = []
    for machine in found:
        own, positive = labels[machine.rows], machine.signs > 0
        pairs.append((int(own[positive][0]), -1 if rest else int(own[~positive][0])))
    return pairs


def _refitted(model: Any, machine: SolvedProblem, t: int) -> tuple[float, bool]:
    """Return the score of a row by the machine without it, and whether that is certified."""
    if isinstance(model, HardMarginSVC):
        return _hard_score(model, machine, t)
    settings = replace(solver_settings(model), callback=None, verbose=False, trace=False)
    return _soft_score(machine, t, settings)


def _hard_score(fitted: HardMarginSVC, machine: SolvedProblem, t: int) -> tuple[float, bool]:
    rest = np.delete(np.arange(len(machine)), t)
    model = clone(fitted).set_params(callback=None, verbose=False)
    if type(fitted.kernel_) is Linear:
        X = machine.problem.features.X
        model.set_params(kernel="linear").fit(X[rest], machine.signs[rest])
        score = model.decision_function(X[[t]])[0]
    else:
        K = machine.values(rest, rest)
        model.set_params(kernel="precomputed").fit(K, machine.signs[rest])
        score = model.decision_function(machine.values(np.array([t]), rest))[0]
    return float(score), model.status_ is Status.OPTIMAL


def _soft_score(machine: SolvedProblem, t: int, settings: Settings) -> tuple[float, bool]:
    rest, problem, point = np.delete(np.arange(len(machine)), t), machine.problem, machine.point
    rows = problem.row[rest]
    fewer = problem.take(rows)
    beta, _ = within_groups(fewer.loss, point.beta[rest], fewer.groups, fewer.totals)
    start = Point(problem.features.restrict(point.w, rows), point.b, beta)
    found = solve(fewer, settings, Budget(None), start)
    score = problem.features.scores_by(
        problem.features.join(found.point.w, 0.0), rows, problem.row[[t]]
    )
    return float(score[0]) + found.certificate.intercept, found.status is Status.OPTIMAL


def _predictions(
    model: Any, answers: Any, scores: Floats, pairs: list[tuple[int, int]]
) -> npt.NDArray[Any]:
    """Return what scores say of the rows; forget those of rows that are alone in their class."""
    classes = model.classes_
    if len(classes) == 2:
        predictions = best_classes(scores[:, 0], classes)
    else:
        predictions = best_classes(combined_scores(scores, pairs, len(classes)), classes)
    present, inverse, count = np.unique(answers, return_inverse=True, return_counts=True)
    alone = count[inverse] == 1
    for i in np.flatnonzero(alone & (predictions == answers)):
        predictions[i] = present[present != answers[i]][0]
    scores[alone] = np.nan
    return predictions
