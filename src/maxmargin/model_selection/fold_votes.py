"""Scores of classes by kernel machines of many costs, fitted to parts of one set of rows."""

import numpy as np
import numpy.typing as npt

from maxmargin import losses
from maxmargin.estimators.reductions import binary_tasks, combined_scores
from maxmargin.kernels import Kernel
from maxmargin.kernels.blas import one_blas_thread
from maxmargin.kernels.rows import FloatArray
from maxmargin.model_selection.cost_paths import OnMatrix, Room
from maxmargin.model_selection.search_matrix import SMALL

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class FoldVotes:
    """A kernel matrix of rows with classes 0 … K − 1, any folds of which are learnt from.

    Parameters
    ----------
    kernel : Kernel
        With numbers for all its parameters; positive semidefinite.
    X : matrix
        The rows.
    y, folds : ndarray of int
        Their classes and folds; rows of a fold are kept together.
    """

    def __init__(self, kernel: Kernel, X: FloatArray, y: Ints, folds: Ints) -> None:
        self._y = y
        self._n_classes = int(y.max()) + 1
        order = np.lexsort((folds, y))
        self._position = np.empty(len(y), np.int64)
        self._position[order] = np.arange(len(y))
        rows = X[order]
        # The type that a search takes, too, so that only one is compiled.
        prepared = kernel.prepare_float32(rows) if len(y) > SMALL else None
        prepared = prepared or kernel.prepare(rows)
        self._K = kernel.block(prepared, prepared)
        self._room = Room.of(len(y), self._K.dtype)

    def scores(
        self, costs: Floats, train: Ints, test: Ints, tol: float, balanced: bool = False
    ) -> list[Floats]:
        """Return a score of each class for the test rows, by the machine of each cost.

        With ``balanced``, rows count by the inverse share of their class among the training rows.
        The best score is the class that SVC predicts.
        """
        classes, labels = np.unique(self._y[train], return_inverse=True)
        if len(classes) == 1:
            return [_only(classes[0], len(test), self._n_classes) for _ in costs]
        weight = np.ones(len(train))
        if balanced:
            weight = len(train) / (len(classes) * np.bincount(labels)[labels])
        rising = np.argsort(costs, kind="stable")
        judged = np.sort(self._position[test])
        tasks = binary_tasks(labels, len(classes), "ovo")
        found = np.empty((len(costs), len(test), len(tasks)))
        with one_blas_thread():
            for k, task in enumerate(tasks):
                taking_part = slice(None) if task.rows is None else task.rows
                terms = losses.hinge(task.signs, weight[taking_part])
                problem = OnMatrix.stated(terms, True, self._position[train[taking_part]])
                path = problem.solve(self._K, costs[rising], tol, self._room, judged)
                found[rising, :, k] = path.scores
        found = found[:, np.searchsorted(judged, self._position[test])]
        pairs = [(task.positive, task.negative) for task in tasks]
        return [self._of_classes(one, pairs, classes) for one in found]

    def _of_classes(self, one: Floats, pairs: list[tuple[int, int]], classes: Ints) -> Floats:
        if len(classes) == 2:
            combined = np.column_stack([-one[:, 0], one[:, 0]])
        else:
            combined = combined_scores(one, pairs, len(classes))
        spread = np.full((len(one), self._n_classes), -np.inf)
        spread[:, classes] = combined
        return spread


def _only(label: int, n: int, n_classes: int) -> Floats:
    scores = np.full((n, n_classes), -np.inf)
    scores[:, label] = 0.0
    return scores
