"""Classes predicted by kernel machines of many costs, fitted to parts of one set of rows."""

import numpy as np
import numpy.typing as npt

from maxmargin import losses
from maxmargin.estimators.reductions import best_classes, binary_tasks, combined_scores
from maxmargin.kernels import Kernel
from maxmargin.kernels.blas import one_blas_thread
from maxmargin.kernels.rows import FloatArray
from maxmargin.model_selection.cost_paths import OnMatrix, Room

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
        order = np.lexsort((folds, y))
        self._position = np.empty(len(y), np.int64)
        self._position[order] = np.arange(len(y))
        rows = X[order]
        bound = kernel.bind_single(rows) or kernel.bind(rows)
        self._K = kernel.between(bound, bound)
        self._room = Room.of(len(y), self._K.dtype)

    def predictions(self, costs: Floats, train: Ints, test: Ints, tol: float) -> list[Ints]:
        """Return the classes of the test rows by the machine of each cost."""
        classes, labels = np.unique(self._y[train], return_inverse=True)
        if len(classes) == 1:
            return [np.full(len(test), classes[0]) for _ in costs]
        rising = np.argsort(costs, kind="stable")
        judged = np.sort(self._position[test])
        tasks = binary_tasks(labels, len(classes), "ovo")
        scores = np.empty((len(costs), len(test), len(tasks)))
        with one_blas_thread():
            for k, task in enumerate(tasks):
                rows = train if task.rows is None else train[task.rows]
                terms = losses.hinge(task.signs, np.ones(len(rows)))
                problem = OnMatrix.stated(terms, True, self._position[rows])
                path = problem.solve(self._K, costs[rising], tol, self._room, judged)
                scores[rising, :, k] = path.scores
        scores = scores[:, np.searchsorted(judged, self._position[test])]
        pairs = [(task.positive, task.negative) for task in tasks]
        if len(classes) == 2:
            return [best_classes(one[:, 0], classes) for one in scores]
        return [best_classes(combined_scores(one, pairs, len(classes)), classes) for one in scores]
