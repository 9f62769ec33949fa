"""Planes with few rows on their wrong side, by soft margins."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.estimators import LinearSVC
from maxmargin.geometry import Hyperplane

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_COSTS = (1.0, 100.0, 10_000.0)
_ROUNDS = 4


def fewest_wrong(X: Any, sign: Ints) -> tuple[Hyperplane, Bools]:
    """Return the plane with the fewest rows on its wrong side that was found, and those rows.

    To count errors instead of summing slacks, rows with much slack are given less weight, round
    after round, each starting from the machine with the fewest errors.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
    >>> plane, wrong = fewest_wrong(X, np.array([-1, -1, 1, 1, -1]))
    >>> wrong.tolist()
    [False, False, False, False, True]
    """
    scale = _sizes(X)
    scaled = X @ sp.diags_array(1 / scale) if sp.issparse(X) else X / scale
    scaled = scaled.tocsr() if sp.issparse(scaled) else scaled
    best: tuple[Hyperplane, Bools, Floats] | None = None
    for cost in _COSTS:
        best = _better(best, _machine(scaled, sign, cost, None), X, sign, scale)
    assert best is not None
    for _ in range(_ROUNDS):
        before = int(best[1].sum())
        weight = 1 / (0.1 + np.maximum(0.0, 1 - best[2]))
        best = _better(best, _machine(scaled, sign, 10.0, weight), X, sign, scale)
        if int(best[1].sum()) == before:
            break
    return best[0], best[1]


def _sizes(X: Any) -> Floats:
    if sp.issparse(X):
        size = abs(X).max(axis=0).toarray().ravel().astype(np.float64)
    else:
        size = X.std(axis=0, dtype=np.float64)
    return np.where(size > 0, size, 1.0)


def _machine(X: Any, sign: Ints, cost: float, weight: Floats | None) -> LinearSVC:
    with warnings.catch_warnings():
        # Any plane is a bound, optimal or not.
        warnings.simplefilter("ignore")
        machine = LinearSVC(C=cost, tol=1e-3, max_iter=200, max_time=5.0)
        return machine.fit(X, sign, sample_weight=weight)


def _better(best: Any, machine: LinearSVC, X: Any, sign: Ints, scale: Floats) -> Any:
    w, b = machine.coef_[0] / scale, float(machine.intercept_[0])
    score = sign * (np.asarray(X @ w) + b)
    rounding = 4 * (X.shape[1] + 2) * np.finfo(np.float64).eps * (abs(X) @ np.abs(w) + abs(b))
    wrong = ~(score > rounding)
    if not w.any() or (best is not None and wrong.sum() >= best[1].sum()):
        if best is not None:
            return best
        w = np.eye(1, X.shape[1])[0]  # any direction, as none was found: all rows may be wrong
        wrong = ~(sign * np.asarray(X @ w) > 0)
    return Hyperplane(w, b), wrong, score
