"""Proofs that no plane separates: weights of few rows of both classes that make one point."""

from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.geometry.inputs import blocks
from maxmargin.separability.result import Overlap
from maxmargin.separability.search import MET, search
from maxmargin.solvers.min_norm_point import Hulls, Nearest

_SHRINK = 1e-6  # how much smaller hulls must still meet
_EXACT_WORK = 4e6  # multiplications of fractions that are worth waiting for: some seconds


def conflict(X: Any, positive: Flags, intercept: bool) -> Overlap | None:
    """Return two equal rows of different classes, if there are any: the shortest proof."""
    multipliers = np.random.default_rng(0).uniform(0.5, 1.0, X.shape[1])
    # Summed row by row in one order, so that equal rows have equal sums to the last bit.
    if sp.issparse(X):
        sums = np.concatenate([np.asarray(block @ multipliers) for block in blocks(X)])
    else:
        sums = np.concatenate([(block * multipliers).sum(axis=1) for block in blocks(X)])
    order = np.lexsort((positive, sums))
    first, second = order[:-1], order[1:]
    suspects = (sums[first] == sums[second]) & (positive[first] != positive[second])
    for i, j in zip(first[suspects], second[suspects], strict=True):
        here, there = _dense(X[[i]])[0], _dense(X[[j]])[0]
        if (here == there).all():
            weights = np.ones(2) if intercept else np.full(2, 0.5)
            point = here if intercept else np.zeros(len(here))
            return Overlap(np.sort([i, j]), weights, point, 0.0, True)
    return None


def verified_overlap(
    found: Nearest,
    X: Any,
    scaled: Any,
    positive: Flags,
    intercept: bool,
    max_time: float | None,
) -> Overlap | None:
    """Return the common point if it is exact, or robust against shrinking the classes."""
    if found.squared_norm > (MET * max(found.size, 1e-300)) ** 2:
        return None
    rows, weights = fewest(found.rows, found.weights, scaled, positive, intercept)
    sign = np.where(positive[rows], 1.0, -1.0)
    picked = _dense(X[rows])
    # Rationals are for whole numbers, whose weights they give exactly, and for what floats leave
    # open: those of long fractions take seconds.
    exact = None
    proved = not _whole(picked) and _enclosed(weights, picked, sign, intercept)
    if not proved:
        exact = _exact_weights(picked, sign, intercept)
        proved = exact is not None or _enclosed(weights, picked, sign, intercept)
    if exact is not None:
        weights = exact
    elif not proved and not _meets_when_shrunk(scaled, positive, intercept, max_time):
        return None
    point = (weights * (sign > 0)) @ picked if intercept else np.zeros(X.shape[1])
    apart = np.linalg.norm((weights * sign) @ picked)
    largest = max(float(np.linalg.norm(picked, axis=1).max()), 1e-300)
    return Overlap(rows, weights, point, float(apart / largest), proved)


def fewest(
    rows: Ints, weights: Floats, X: Any, positive: Flags, intercept: bool
) -> tuple[Ints, Floats]:
    """Return the same point from at most d + 2 rows: Carathéodory's theorem at work.

    Along any direction that changes neither the point nor the sums, weights move until one is 0.
    """
    order = np.argsort(rows)
    rows, weights = rows[order], weights[order]
    sign = np.where(positive[rows], 1.0, -1.0)
    picked = _dense(X[rows]) * sign[:, np.newaxis]
    picked = picked[:, picked.any(axis=0)]
    null = _null_space(np.vstack([picked.T, *_sums(sign, intercept)]))
    while null.shape[1]:
        direction = null[:, 0] if null[:, 0].max() > 0 else -null[:, 0]
        falling = direction > 1e-12 * np.abs(direction).max()
        steps = np.where(falling, weights / np.where(falling, direction, 1.0), np.inf)
        gone = int(steps.argmin())
        weights = np.maximum(weights - steps[gone] * direction, 0.0)
        null = null - np.outer(null[:, 0], null[gone] / null[gone, 0])
        stays = np.arange(len(rows)) != gone
        rows, weights, null = rows[stays], weights[stays], null[stays, 1:]
    return rows, weights


def _null_space(equations: Floats) -> Floats:
    """Return an orthonormal basis of what the equations send to 0."""
    tall = len(equations) >= equations.shape[1]
    _, sizes, directions = np.linalg.svd(equations, full_matrices=not tall)
    rank = int((sizes > 1e-11 * sizes.max()).sum())
    return np.asarray(directions[rank:].T)


def _sums(sign: Floats, intercept: bool) -> list[Floats]:
    """Return the coefficients of the sums that must be 1: of each class, or of all."""
    sides = [sign > 0, sign < 0] if intercept else [sign != 0]
    return [side.astype(np.float64) for side in sides]


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)


def _whole(picked: Floats) -> bool:
    return bool((picked == np.round(picked)).all() and abs(picked).max() < 2**31)


def _exact_weights(picked: Floats, sign: Floats, intercept: bool) -> Floats | None:
    """Return nonnegative weights that solve the equations in rationals, or None."""
    columns = [column for column in (picked * sign[:, np.newaxis]).T if column.any()]
    m, d = len(picked), len(columns)
    digits = 1 if _whole(picked) else 8
    if digits * m * m * (d + 2) > _EXACT_WORK:
        return None
    equations = [[*map(Fraction, column), Fraction(0)] for column in columns]
    equations += [[*map(Fraction, side), Fraction(1)] for side in _sums(sign, intercept)]
    solution = _solved(equations, m)
    if solution is None or min(solution) < 0:
        return None
    return np.array([float(weight) for weight in solution])


def _solved(equations: list[list[Fraction]], m: int) -> list[Fraction] | None:
    """Return the solution of linear equations in m unknowns if there is exactly one."""
    for column in range(m):
        pivot = next((k for k in range(column, len(equations)) if equations[k][column]), None)
        if pivot is None:
            return None
        equations[column], equations[pivot] = equations[pivot], equations[column]
        head = equations[column]
        head[:] = [value / head[column] for value in head]
        for k, row in enumerate(equations):
            if k != column and row[column]:
                factor = row[column]
                equations[k] = [a - factor * b for a, b in zip(row, head, strict=True)]
    if any(row[m] for row in equations[m:]):
        return None
    return [row[m] for row in equations[:m]]


def _enclosed(weights: Floats, picked: Floats, sign: Floats, intercept: bool) -> bool:
    """Return whether nonnegative weights that solve the equations are proved to exist near these.

    With R an approximate inverse of the equations' matrix A and ‖I − RA‖ < 1, the one solution is
    within ‖R(right − A·weights)‖/(1 − ‖I − RA‖) of any weights. All roundings are accounted for.
    """
    rows = picked * sign[:, np.newaxis]
    rows = rows[:, rows.any(axis=0)]
    m = len(weights)
    if rows.shape[1] + 1 + intercept != m:
        return False
    A = np.vstack([(rows / np.exp2(np.floor(np.log2(np.abs(rows).max(axis=0))))).T,
                   *_sums(sign, intercept)])  # fmt: skip
    right = np.append(np.zeros(rows.shape[1]), np.ones(1 + intercept))
    try:
        inverse = np.linalg.inv(A)
    except np.linalg.LinAlgError:
        return False
    rounding = 2 * (m + 2) * np.finfo(np.float64).eps
    away = np.abs(np.eye(m) - inverse @ A) + rounding * (np.abs(inverse) @ np.abs(A) + 1)
    contraction = float(away.sum(axis=1).max())
    left = np.abs(right - A @ weights) + rounding * (np.abs(A) @ np.abs(weights) + right)
    error = float((np.abs(inverse) @ left).max()) * (1 + rounding)
    return bool(contraction < 0.5 and error / (1 - contraction) < weights.min())


def _meets_when_shrunk(X: Any, positive: Flags, intercept: bool, max_time: float | None) -> bool:
    """Return whether the hulls still meet after each class is drawn towards its mean.

    If a plane separated the classes at all, it would separate the smaller ones by a millionth of
    the distance of their means: then they could not meet to within a millionth of that.
    """
    shrunk = Hulls.of(X, positive, intercept).shrunk(_SHRINK)
    found, _ = search(shrunk, accuracy=1e-10, max_time=max_time)
    return found.squared_norm <= (MET * found.size) ** 2
