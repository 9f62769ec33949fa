"""Can a hyperplane separate the classes? An answer with a witness either way.

Two finite sets are separable exactly if their convex hulls do not meet. The nearest points of the
hulls decide: if they differ, the plane midway between them separates; if they are one point, the
convex weights that make it from either class show that no plane can.

Both answers are checked on the original rows before they are given. A plane must leave every row on
its side by more than rounding could account for. A common point must either hold in exact rational
arithmetic, or survive when both classes are shrunk towards their means, which hulls that merely
touch do not. Otherwise the answer is None: undecided at this precision.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from maxmargin.geometry import Hyperplane, best_offset, mistake_bound, radius
from maxmargin.geometry.inputs import check_rows, row_products
from maxmargin.problem import Status
from maxmargin.solve import drive
from maxmargin.solvers.nearest_points import Nearest, Vertices, nearest_points

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_OPTIMAL = 1e-10  # relative gap at which the nearest points are near enough
_MANY = 256  # vertices beyond which any separator will do, not the best
_MET = 1e-12  # distance of hulls, relative to their size, that counts as none
_SHRINK = 1e-6  # how much smaller hulls must still meet
_EXACT_WORK = 4e6  # multiplications of fractions that are worth waiting for: some seconds
_MAX_STEPS = 20_000
_PATIENCE = 5  # steps that come no nearer before giving up
_UNEVEN = 1e3  # columns that differ more in size are scaled one by one


@dataclass(frozen=True)
class Overlap:
    """Convex weights of rows of both classes that meet in one point: no plane separates them.

    Attributes
    ----------
    rows, weights : ndarray
        The rows with a weight, and the weights: within each class they sum to 1 (without an
        intercept: signed by class, rows that balance out at 0, all weights summing to 1).
    point : ndarray
        Where the classes meet (0 without an intercept).
    residual : float
        How far apart the two combinations are, divided by the largest of the rows: rounding, or 0.
    exact : bool
        Whether the weights were confirmed in rational arithmetic.
    """

    rows: Ints
    weights: Floats
    point: Floats
    residual: float
    exact: bool


@dataclass(frozen=True)
class Separation:
    """Whether two classes, or every two of several, can be separated; ``print`` it for a sentence.

    Attributes
    ----------
    separable : bool or None
        True or False, with a witness; None if it cannot be decided at this precision or in time.
    witness : Hyperplane, Overlap or None
        The plane (positive for the larger class), or the weights that show there is none. For
        several classes it belongs to the pair that decided.
    classes : tuple
        The two labels, the second one positive; or all labels.
    margin : float
        Distance of the nearest row to the plane; NaN without one. It is the largest possible unless
        columns differ in size by more than a thousand or hundreds of rows support the plane. For
        several classes the smallest.
    radius : float
        Largest norm of a row.
    mistake_bound : float
        Updates that a perceptron makes at most, by this plane; ``inf`` without one.
    pairs : dict
        With several classes: the Separation of each pair of labels.
    """

    separable: bool | None
    witness: Hyperplane | Overlap | None
    classes: tuple[Any, ...]
    margin: float = np.nan
    radius: float = np.nan
    mistake_bound: float = np.inf
    pairs: dict[tuple[Any, Any], "Separation"] = field(default_factory=dict)

    def __str__(self) -> str:
        who = " and ".join(map(str, self.classes)) if len(self.classes) == 2 else "All classes"
        if self.separable:
            return f"{who} are separable, with margin {self.margin:.4g}."
        if self.separable is None:
            return f"Whether {who} are separable is undecided at this precision."
        n = len(self.witness.rows) if isinstance(self.witness, Overlap) else 0
        return f"{who} are not separable: {n} rows show that their convex hulls meet."


def separate(
    X: Any, y: Any, *, intercept: bool = True, max_time: float | None = 60.0
) -> Separation:
    """Say whether a hyperplane separates the classes, with a witness that was checked.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels; more than two classes are taken two by two.
    intercept : bool, default=True
        Whether the plane may miss the origin.
    max_time : float or None, default=60.0
        Seconds of search allowed for each pair; if they run out before either a separator or a
        common point is found, it is left undecided. None is no limit.

    Returns
    -------
    Separation

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.separable(100, margin=0.25, random_state=0)
    >>> print(mm.separate(X, y))
    -1 and 1 are separable, with margin 0.25.
    >>> print(mm.separate([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 0, 1, 1]))
    0 and 1 are not separable: 4 rows show that their convex hulls meet.
    """
    X = check_rows(X)
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise ValueError(
            f"y must have one label for each of the {X.shape[0]} rows of X, got shape "
            f"{labels.shape}."
        )
    classes = np.unique(labels).tolist()
    if len(classes) < 2:
        raise ValueError(f"y contains only one class: {classes[0]!r}; separating needs two.")
    if len(classes) == 2:
        return _pair(
            X, labels == classes[1], tuple(classes), np.arange(len(labels)), intercept, max_time
        )
    pairs = {}
    for first, second in combinations(classes, 2):
        rows = np.flatnonzero((labels == first) | (labels == second))
        positive = labels[rows] == second
        pairs[first, second] = _pair(X[rows], positive, (first, second), rows, intercept, max_time)
    return _together(pairs, tuple(classes), X)


def _together(pairs: dict[tuple[Any, Any], Separation], classes: Any, X: Any) -> Separation:
    verdicts = [pair.separable for pair in pairs.values()]
    verdict = False if False in verdicts else None if None in verdicts else True
    decisive = min(
        (pair for pair in pairs.values() if pair.separable is verdict),
        key=lambda pair: np.inf if np.isnan(pair.margin) else pair.margin,
    )
    return Separation(verdict, decisive.witness, classes, decisive.margin, radius(X), np.inf, pairs)


def _pair(
    X: Any,
    positive: npt.NDArray[np.bool_],
    classes: tuple[Any, ...],
    rows: Ints,
    intercept: bool,
    max_time: float | None,
) -> Separation:
    scale = _scales(X)
    scaled = X @ sp.diags_array(1 / scale) if sp.issparse(X) else X / scale
    found = _nearest(Vertices(scaled, positive, intercept), max_time)
    y = np.where(positive, 1, -1)
    if found.lowest > 0:
        plane = _verified_plane(found.point / scale, X, y, intercept)
        if plane is not None:
            return Separation(
                True,
                plane,
                classes,
                float(plane.geometric_margin(X, y).min()),
                radius(X),
                mistake_bound(plane, X, y, fit_intercept=intercept),
            )
    overlap = _verified_overlap(found, X, scaled, positive, intercept, max_time)
    if overlap is None:
        return Separation(None, None, classes, radius=radius(X))
    witness = Overlap(
        rows[overlap.rows], overlap.weights, overlap.point, overlap.residual, overlap.exact
    )
    return Separation(False, witness, classes, radius=radius(X))


def _scales(X: Any) -> Floats:
    """Return what to divide the columns by: powers of two, so that it is exact.

    One for all unless they differ much, so that the plane found is the one of largest margin.
    """
    largest = abs(X).max(axis=0)
    largest = largest.toarray().ravel() if sp.issparse(largest) else np.asarray(largest)
    sizes = np.exp2(np.floor(np.log2(largest[largest > 0].astype(np.float64))))
    if not sizes.size or sizes.max() <= _UNEVEN * sizes.min():
        return np.full(len(largest), sizes.max(initial=0.0) or 1.0)
    scales = np.ones(len(largest))
    scales[largest > 0] = sizes
    return scales


def _nearest(vertices: Vertices, max_time: float | None) -> Nearest:
    best: list[Nearest] = []
    idle = 0

    def watch(step: Nearest) -> Status | None:
        nonlocal idle
        # Every step comes nearer, but for rounding: when that rules, more steps are in vain.
        nearer = not best or step.squared_norm < (1 - 1e-12) * best[0].squared_norm
        idle = 0 if nearer else idle + 1
        if not best or step.squared_norm <= best[0].squared_norm:
            best[:] = [step]
        if step.squared_norm <= (_MET * step.size) ** 2 / 100:
            return Status.MEETING
        return Status.NEAREST if _optimal(step) or idle == _PATIENCE else None

    ended = drive(
        nearest_points(vertices),
        rules=[watch],
        max_iter=_MAX_STEPS,
        at_max_iter=Status.MAX_ITER,
        max_time=max_time,
    )
    if ended.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return best[0]


def _optimal(step: Nearest) -> bool:
    tolerance = _OPTIMAL if len(step.weights) <= _MANY else 0.9
    return step.squared_norm - step.lowest <= tolerance * step.squared_norm


def _verified_plane(w: Floats, X: Any, y: Ints, intercept: bool) -> Hyperplane | None:
    """Return the plane if every row is on its side by more than rounding could account for."""
    w = w / np.abs(w).max()
    b = best_offset(w, X, y) if intercept else 0.0
    scores = row_products(X, w[:, np.newaxis])[:, 0] + b
    sizes = row_products(abs(X), np.abs(w)[:, np.newaxis])[:, 0] + abs(b)
    rounding = 4 * (X.shape[1] + 2) * np.finfo(np.float64).eps * sizes
    return Hyperplane(w, b) if (y * scores > rounding).all() else None


def _verified_overlap(
    found: Nearest,
    X: Any,
    scaled: Any,
    positive: npt.NDArray[np.bool_],
    intercept: bool,
    max_time: float | None,
) -> Overlap | None:
    """Return the common point if it is exact, or robust against shrinking the classes."""
    if found.squared_norm > (_MET * max(found.size, 1e-300)) ** 2:
        return None
    rows, weights = _row_weights(found, positive, intercept)
    rows, weights = _fewest(rows, weights, scaled, positive, intercept)
    sign = np.where(positive[rows], 1.0, -1.0)
    picked = _dense(X[rows])
    exact = _exact_weights(picked, sign, intercept)
    if exact is not None:
        weights = exact
    elif not _meets_when_shrunk(scaled, positive, intercept, max_time):
        return None
    point = (weights * (sign > 0)) @ picked if intercept else np.zeros(X.shape[1])
    apart = np.linalg.norm((weights * sign) @ picked)
    largest = max(float(np.linalg.norm(picked, axis=1).max()), 1e-300)
    return Overlap(rows, weights, point, float(apart / largest), exact is not None)


def _row_weights(
    found: Nearest, positive: npt.NDArray[np.bool_], intercept: bool
) -> tuple[Ints, Floats]:
    """Return the weights of vertices as weights of rows; each class sums to 1 (or all do)."""
    rows, where = np.unique(found.rows, return_inverse=True)
    each = np.repeat(found.weights, found.rows.shape[1])
    weights: Floats = np.bincount(where.ravel(), each).astype(np.float64)
    if not intercept:
        return rows, weights / weights.sum()
    for side in (positive[rows], ~positive[rows]):
        weights[side] /= weights[side].sum()
    return rows, weights


def _fewest(
    rows: Ints, weights: Floats, X: Any, positive: npt.NDArray[np.bool_], intercept: bool
) -> tuple[Ints, Floats]:
    """Return the same point from at most d + 2 rows: Carathéodory's theorem at work.

    Along any direction that changes neither the point nor the sums, weights move until one is 0.
    """
    sign = np.where(positive[rows], 1.0, -1.0)
    equations = np.vstack([(_dense(X[rows]) * sign[:, np.newaxis]).T, *_sums(sign, intercept)])
    null = scipy.linalg.null_space(equations, rcond=1e-11)
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


def _sums(sign: Floats, intercept: bool) -> list[Floats]:
    """Return the coefficients of the sums that must be 1: of each class, or of all."""
    sides = [sign > 0, sign < 0] if intercept else [sign != 0]
    return [side.astype(np.float64) for side in sides]


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)


def _exact_weights(picked: Floats, sign: Floats, intercept: bool) -> Floats | None:
    """Return nonnegative weights that solve the equations in rationals, or None."""
    m, d = picked.shape
    digits = 1 if (picked == np.round(picked)).all() and abs(picked).max() < 2**31 else 8
    if digits * m * m * (d + 2) > _EXACT_WORK:
        return None
    columns = [column for column in (picked * sign[:, np.newaxis]).T if column.any()]
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


def _meets_when_shrunk(
    X: Any, positive: npt.NDArray[np.bool_], intercept: bool, max_time: float | None
) -> bool:
    """Return whether the hulls still meet after each class is drawn towards its mean.

    If a plane separated the classes at all, it would separate the smaller ones by a millionth of
    the distance of their means: then they could not meet to within a millionth of that.
    """
    shrunk = Shrunk(X, positive, intercept)
    found = _nearest(shrunk, max_time)
    return found.squared_norm <= (_MET * found.size) ** 2


class Shrunk(Vertices):
    """Vertices of classes drawn towards their means (signed rows: towards their common mean)."""

    def __init__(self, X: Any, positive: npt.NDArray[np.bool_], intercept: bool) -> None:
        super().__init__(X, positive, intercept)
        groups = self._groups or [np.arange(X.shape[0])]
        signed = [np.asarray(self._sign[g] @ X[g]) / len(g) for g in groups]
        self._middle = np.sum(signed, axis=0)

    def lowest(self, direction: Floats) -> tuple[Ints, float]:
        """Return the vertex with the smallest product with a direction, and that product."""
        rows, value = super().lowest(direction)
        return rows, (1 - _SHRINK) * value + _SHRINK * float(self._middle @ direction)

    def vector(self, rows: Ints) -> Floats:
        """Return a vertex as a vector."""
        return np.asarray((1 - _SHRINK) * super().vector(rows) + _SHRINK * self._middle)
