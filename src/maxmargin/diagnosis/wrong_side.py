"""Planes with few rows on their wrong side, by soft margins."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.diagnosis.clock import Clock
from maxmargin.estimators import LinearSVC
from maxmargin.geometry import Hyperplane

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_COSTS = (1.0, 100.0, 10_000.0)
_ROUNDS = 4
_MANY = 20_000  # rows beyond which one round of each kind has to do


def fewest_wrong(X: Any, sign: Ints, clock: Clock) -> tuple[Hyperplane, Bools]:
    """Return the plane with the fewest rows on its wrong side found in time, and those rows.

    To count errors instead of summing slacks, the rows furthest on the wrong side are left out,
    half of them a round; then rows with much slack are given less weight, round after round.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
    >>> plane, wrong = fewest_wrong(X, np.array([-1, -1, 1, 1, -1]), Clock(9.0))
    >>> wrong.tolist()
    [False, False, False, False, True]
    """
    scale = _sizes(X)
    scaled = X @ sp.diags_array(1 / scale) if sp.issparse(X) else X / scale
    scaled = scaled.tocsr() if sp.issparse(scaled) else scaled
    best: tuple[Hyperplane, Bools, Floats] | None = None
    for cost in _COSTS:
        if best is None or not clock.over:
            best = _better(best, _machine(scaled, sign, cost, None, clock), X, sign, scale)
    assert best is not None
    best = _without_the_worst(best, scaled, X, sign, scale, clock)
    for _ in range(_ROUNDS if len(sign) <= _MANY else 1):
        if clock.over:
            break
        before = int(best[1].sum())
        weight = 1 / (0.1 + np.maximum(0.0, 1 - best[2]))
        best = _better(best, _machine(scaled, sign, 10.0, weight, clock), X, sign, scale)
        if int(best[1].sum()) == before:
            break
    return best[0], best[1]


def _without_the_worst(
    best: Any, scaled: Any, X: Any, sign: Ints, scale: Floats, clock: Clock
) -> Any:
    stays = np.ones(len(sign))
    latest = best
    for _ in range(_ROUNDS if len(sign) <= _MANY else 1):
        wrong = np.flatnonzero(latest[1] & (stays > 0))
        worst = wrong[np.argsort(latest[2][wrong], kind="stable")][: (len(wrong) + 1) // 2]
        stays[worst] = 0.0
        if clock.over or len(worst) == 0 or len(np.unique(sign[stays > 0])) < 2:
            break
        latest = _better(None, _machine(scaled, sign, 100.0, stays, clock), X, sign, scale)
        best = latest if latest[1].sum() < best[1].sum() else best
    return best


def _sizes(X: Any) -> Floats:
    if sp.issparse(X):
        size = abs(X).max(axis=0).toarray().ravel().astype(np.float64)
    else:
        size = X.std(axis=0, dtype=np.float64)
    return np.where(size > 0, size, 1.0)


def _machine(X: Any, sign: Ints, cost: float, weight: Floats | None, clock: Clock) -> LinearSVC:
    with warnings.catch_warnings():
        # Any plane is a bound, optimal or not.
        warnings.simplefilter("ignore")
        machine = LinearSVC(C=cost, tol=1e-3, max_iter=200, max_time=min(5.0, clock.left))
        return machine.fit(X, sign, sample_weight=weight)


def _better(best: Any, machine: LinearSVC, X: Any, sign: Ints, scale: Floats) -> Any:
    w = machine.coef_[0] / scale
    if not w.any():
        w = np.eye(1, X.shape[1])[0]  # any direction, as none was found
    b = float(machine.intercept_[0])
    for normal, offset in ((w, b), _best_offset(w, X, sign), _best_offset(-w, X, sign)):
        found = _judged(normal, offset, X, sign)
        if best is None or found[1].sum() < best[1].sum():
            best = found
    return best


def _judged(w: Floats, b: float, X: Any, sign: Ints) -> tuple[Hyperplane, Bools, Floats]:
    score = sign * (np.asarray(X @ w) + b)
    rounding = 4 * (X.shape[1] + 2) * np.finfo(np.float64).eps * (abs(X) @ np.abs(w) + abs(b))
    return Hyperplane(w, b), ~(score > rounding), score


def _best_offset(w: Floats, X: Any, sign: Ints) -> tuple[Floats, float]:
    """Return the offset, midway between two rows, that leaves the fewest rows on the wrong side."""
    place = np.asarray(X @ w)
    order = np.argsort(place, kind="stable")
    place, sign = place[order], sign[order]
    # With the cut after row k, the positive rows up to k and the negative ones beyond are wrong.
    wrong = np.cumsum(sign > 0)[:-1] + (sign < 0).sum() - np.cumsum(sign < 0)[:-1]
    wrong = np.where(place[:-1] < place[1:], wrong, len(sign))
    cut = int(wrong.argmin())
    return w, -float(place[cut] + place[cut + 1]) / 2
