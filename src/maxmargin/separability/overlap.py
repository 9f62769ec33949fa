"""Proofs that no plane separates: weights of few rows of both classes that make one point."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.geometry.inputs import blocks
from maxmargin.separability.result import Overlap
from maxmargin.separability.search import MET, search
from maxmargin.solvers.min_norm_point import Hulls, Nearest

_OTHERS = 4  # times as many rows as a proof needs are tried where those found do not meet
_EXACT_WORK = 1e6  # operations on whole numbers that are worth waiting for: about a second
_DEPENDENT = 1e-10  # of a column: what is left of it beside others that may be rounding
_PIVOTS = 20  # for each equation: far more than are ever needed


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
    """Return the common point if exact arithmetic or an enclosure proves that there is one."""
    if found.lowest > 0 and found.squared_norm > (MET * found.size) ** 2:
        return None
    rows, weights = fewest(found.rows, found.weights, scaled, positive, intercept)
    sign, picked = np.where(positive[rows], 1.0, -1.0), _dense(X[rows])
    # Exact arithmetic is quick for whole numbers, and gives their weights.
    proved = _exact_weights(picked, sign, intercept) if _whole(picked) else None
    if proved is None and _enclosed(weights, picked, sign, intercept):
        proved = weights
    if proved is None:  # they nearly meet: others may be proved to
        others = np.setdiff1d(np.arange(len(positive)), rows)
        most = min(_OTHERS * (X.shape[1] + 2), _EXACT_WORK / X.shape[1])
        rows = np.sort(np.append(rows, others[:: math.ceil(max(len(others), 1) / most)]))
        sign, picked = np.where(positive[rows], 1.0, -1.0), _dense(X[rows])
        proved = _revealed_weights(picked, sign, intercept, max_time)
        if proved is None:
            proved = _exact_weights(picked, sign, intercept)
    if proved is None:
        return None
    kept = proved > 0
    rows, weights, sign, picked = rows[kept], proved[kept], sign[kept], picked[kept]
    point = (weights * (sign > 0)) @ picked if intercept else np.zeros(X.shape[1])
    picked = picked / max(float(np.abs(picked).max()), 1e-300)  # squares must not overflow
    apart = np.linalg.norm((weights * sign) @ picked)
    largest = max(float(np.linalg.norm(picked, axis=1).max()), 1e-300)
    return Overlap(rows, weights, point, float(apart / largest), True)


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


def _whole_columns(picked: Floats, intercept: bool) -> list[npt.NDArray[np.object_]]:
    """Return the columns as the smallest whole numbers with the same answer, without those of 0.

    An intercept makes up for what is subtracted from a column: one with two values has 0 and 1.
    """
    columns = []
    for values in picked.T:
        ratios = [value.as_integer_ratio() for value in values.tolist()]
        unit = max(below for _, below in ratios)  # a power of two, as all of them are
        column = np.array([above * (unit // below) for above, below in ratios], dtype=object)
        column -= column.min() if intercept else 0
        if column.any():
            columns.append(column // math.gcd(*column))
    return columns


def _exact_weights(picked: Floats, sign: Floats, intercept: bool) -> Floats | None:
    """Return weights of these rows that meet exactly; None if there are none, or too much work."""
    if picked.size > _EXACT_WORK:
        return None
    columns, m = _whole_columns(picked, intercept), len(picked)
    count = len(columns) + 1 + intercept
    bits = sum(int(abs(column).max()).bit_length() for column in columns)
    if min(m, count) * m * count * (1 + (bits / 1000) ** 1.5) > _EXACT_WORK:
        return None
    signs, totals = sign.astype(int).astype(object), np.array(_sums(sign, intercept)).astype(int)
    equations = np.array([*totals.astype(object), *(column * signs for column in columns)])
    right = np.array([1] * len(totals) + [0] * len(columns), dtype=object)
    return _nonnegative_solution(np.column_stack([equations, right]))


def _nonnegative_solution(table: npt.NDArray[np.object_]) -> Floats | None:
    """Return x ≥ 0 with Ax = b for the table (A, b) of whole numbers, b ≥ 0; None if none is found.

    The first phase of the simplex method, by Bland's rule, which never cycles. The table is kept
    times its last pivot: then all divisions are exact (Edmonds 1967; Bareiss 1968).
    """
    count, n = table.shape[0], table.shape[1] - 1
    table = np.vstack([table, -table.sum(axis=0)])  # what is violated, to be made 0
    basis, last = np.arange(n, n + count), 1
    for _ in range(_PIVOTS * count):
        entering = np.flatnonzero(table[-1, :n] < 0)
        if not len(entering):
            break
        column = table[:, entering[0]].copy()
        rows = np.flatnonzero(column[:-1] > 0)
        ratios = [Fraction(table[k, n], column[k]) for k in rows]
        _, _, row = min(zip(ratios, basis[rows], rows, strict=True))
        head = table[row].copy()
        table = (column[row] * table - np.outer(column, head)) // last
        table[row], basis[row], last = head, entering[0], column[row]
    if table[-1, n]:
        return None
    x = np.zeros(n)
    for k in np.flatnonzero(basis < n):
        x[basis[k]] = table[k, n] / last
    return x


def _enclosed(weights: Floats, picked: Floats, sign: Floats, intercept: bool) -> bool:
    """Return whether nonnegative weights that solve the equations are proved to exist near these.

    With R an approximate inverse of the equations' matrix A and ‖I − RA‖ < 1, the one solution is
    within ‖R(right − A·weights)‖/(1 − ‖I − RA‖) of any weights. All roundings are accounted for.
    """
    m = len(weights)
    Z = _revealed(picked, intercept)
    if Z is None or Z.shape[1] != m - 1:
        return False
    A = np.vstack([(Z * sign[:, np.newaxis]).T, np.ones(m)])
    weights, right = weights / weights.sum(), np.append(np.zeros(m - 1), 1.0)
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


def _revealed_weights(
    picked: Floats, sign: Floats, intercept: bool, max_time: float | None
) -> Floats | None:
    """Return weights of these rows near which there are some that are proved to meet, or None."""
    Z, positive = _revealed(picked, intercept), sign > 0
    if Z is None:
        return None
    found, _ = search(Hulls.of(Z, positive, False), accuracy=1e-10, max_time=max_time)
    if found.squared_norm > (MET * found.size) ** 2:
        return None
    rows, weights = fewest(found.rows, found.weights, Z, positive, False)
    if not _enclosed(weights, picked[rows], sign[rows], intercept):
        return None
    every = np.zeros(len(sign))
    every[rows] = (1 + intercept) * weights
    return every


def _revealed(picked: Floats, intercept: bool) -> Floats | None:
    """Return these rows with a constant for the intercept, in coordinates that are independent.

    Columns that depend on others up to rounding become what is left of them after those are
    subtracted in exact arithmetic, scaled up; where nothing is left they vanish. Any coefficients
    near the right ones will do, but simple ones leave nothing of what depends exactly. None if it
    would be too much work.
    """
    one = np.ones((len(picked), int(intercept)))
    used = picked[:, picked.any(axis=0)]
    Z = np.hstack([used / np.exp2(np.floor(np.log2(np.abs(used).max(axis=0)))), one])
    R, order, rank = _independent(Z)
    if rank == Z.shape[1]:
        return Z
    if len(Z) * rank * (Z.shape[1] - rank) > 4 * _EXACT_WORK:
        return None
    columns = [*_whole_columns(picked, intercept), *one.T.astype(int).astype(object)]
    units = [1 << int(abs(column).max()).bit_length() for column in columns]
    scaled = [column / unit for column, unit in zip(columns, units, strict=True)]
    Z = np.array(scaled, dtype=np.float64).reshape(-1, len(Z)).T
    R, order, rank = _independent(Z)
    shares = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:])
    independent = [Z[:, order[:rank]]]
    for j, parts in zip(order[rank:], shares.T, strict=True):
        factors = [_simple(part) * Fraction(units[j], units[k])
                   for part, k in zip(parts, order[:rank], strict=True)]  # fmt: skip
        common = math.lcm(*(factor.denominator for factor in factors))
        left = common * columns[j]
        for factor, k in zip(factors, order[:rank], strict=True):
            left = left - int(common * factor) * columns[k] if factor else left
        if left.any():
            independent.append((left / abs(left).max()).astype(np.float64)[:, np.newaxis])
    return np.hstack(independent)


def _independent(Z: Floats) -> tuple[Floats, Ints, int]:
    """Return a triangle for the columns in some order, of which so many first are independent."""
    _, R, order = scipy.linalg.qr(Z, mode="economic", pivoting=True)
    sizes = np.abs(R.diagonal())
    return R, order, int((sizes > _DEPENDENT * sizes.max(initial=0.0)).sum())


def _simple(value: float) -> Fraction:
    near = Fraction(value).limit_denominator(1000)
    return near if abs(near - Fraction(value)) < _DEPENDENT else Fraction(value)
