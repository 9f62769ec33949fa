"""Leave-one-out by refitting, where a refit can change anything."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.left_out import SolvedProblem, refit_without
from maxmargin.estimators.machine import solver_settings
from maxmargin.estimators.reductions import best_classes, combined_scores, lay_out
from maxmargin.model_selection.criteria.solved_problem import (
    ErrorCount,
    refuse_others,
    solved_problems,
)
from maxmargin.runtime.progress import progress
from maxmargin.validation.data import class_indices


@dataclass(frozen=True, eq=False)
class LeaveOneOut(ErrorCount):
    """What the models fitted without each row say about that row.

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
        The class of each by the model without it; for the only row of a class, another class.
    scores : ndarray of shape (n_rows, n_planes)
        The score of each by each plane of the model without it; NaN for the only row of a class.
    refits : int
        How many binary problems were solved for it.
    uncertified : int
        How many of these did not reach ``tol`` (or have no certificate: an indefinite kernel).
    """

    kept: Ints
    predictions: npt.NDArray[Any]
    scores: Floats
    refits: int
    uncertified: int

    def __repr__(self) -> str:
        doubt = f", {self.uncertified} of them not certified" if self.uncertified else ""
        return (
            f"<LeaveOneOut: {self.errors} of {self.n_rows} rows ({self.rate:.1%}) are errors when "
            f"left out; {self.refits} refits{doubt}>"
        )


def leave_one_out(model: Any, X: Any, y: Any, sample_weight: Any = None) -> LeaveOneOut:
    """Leave out each row in turn, fit the rest, and see whether the row is classified correctly.

    A row without a dual variable needs no refit: without it, solution and bound stay the same. For
    the others the rest is fitted to ``tol``, starting from the solution with the row, on the same
    kernel values. What depends on all rows stays as it is: the kernel is the fitted ``kernel_``,
    also for gamma="scale", and the factors of class_weight="balanced" are those of all rows. The
    cost is a warm fit for each support vector (of each pair of classes): for small data.

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
    certified = []
    with progress("Leaving out", unit="refit") as bar:
        if not model.__sklearn_is_fitted__():
            model = clone(model).fit(X, y, sample_weight)
        found, y = solved_problems(model, X, y, sample_weight), np.asarray(y)
        kept = np.unique(np.concatenate([machine.rows for machine in found]))
        pairs = [_read_pair(model, machine, y) for machine in found]
        scores = _score_planes(model, X, pairs)[kept]
        changed = [np.flatnonzero((machine.alpha > 0) & ~machine.alone) for machine in found]
        bar.update(total=sum(map(len, changed)))
        settings = solver_settings(model, silent=True)
        for k, machine in enumerate(found):
            for t in changed[k].tolist():
                row = np.searchsorted(kept, machine.rows[t])
                scores[[row], k], held = refit_without(machine, np.array([t]), settings)
                certified.append(held)
                bar.advance()
    predictions = _predict(model, y[kept], scores, pairs)
    wrong = predictions != y[kept]
    return LeaveOneOut(
        int(wrong.sum()),
        kept[wrong],
        len(kept),
        kept,
        predictions,
        scores,
        len(certified),
        certified.count(False),
    )


def _read_pair(model: Any, machine: SolvedProblem, y: Any) -> tuple[int, int]:
    """Return the classes that a plane lies between; −1 stands for all others."""
    own, positive = class_indices(model.classes_, y[machine.rows]), machine.signs > 0
    rest = getattr(model, "multi_class", "") == "ovr"
    return int(own[positive][0]), -1 if rest else int(own[~positive][0])


def _score_planes(model: Any, X: Any, pairs: list[tuple[int, int]]) -> Floats:
    """Return the scores of all rows by each of the planes that were solved for."""
    scores = np.array(model.pairwise_scores(X))
    if scores.shape[1] == len(pairs):
        return scores
    every = lay_out(len(model.classes_), model.multi_class).pairs  # also of classes without weight
    return scores[:, [every.index(pair) for pair in pairs]]


def _predict(model: Any, y: Any, scores: Floats, pairs: list[tuple[int, int]]) -> npt.NDArray[Any]:
    """Return the predictions by scores; those of a row alone in its class become NaN."""
    classes = model.classes_
    two = len(classes) == 2
    votes = scores[:, 0] if two else combined_scores(scores, pairs, len(classes))
    predictions = best_classes(votes, classes)
    present, inverse, count = np.unique(y, return_inverse=True, return_counts=True)
    alone = count[inverse] == 1
    for i in np.flatnonzero(alone & (predictions == y)):
        predictions[i] = present[present != y[i]][0]
    scores[alone] = np.nan
    return predictions
