"""The decision whether a hyperplane separates two classes, or every two of several."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.geometry import Hyperplane, best_offset, mistake_bound, radius
from maxmargin.geometry.inputs import check_rows, row_products
from maxmargin.problems.problem import Status
from maxmargin.separability.overlap import conflict, verified_overlap
from maxmargin.separability.result import Overlap, Separation
from maxmargin.separability.search import common_scale, origin, rescaled, search
from maxmargin.solvers.min_norm_point import Hulls
from maxmargin.validation.data import classes_of

_OPTIMAL = 1e-10  # relative gap at which the nearest points are near enough
_MANY = 1000  # rows beyond which any separator will do, not the best
_UNEVEN = 1e3  # columns that differ more in size are scaled one by one


@dataclass(frozen=True)
class LiftedSettings:
    """How much is done to find the separator that bounds a perceptron's updates best."""

    entries: float = 2e5  # numbers in X up to which it is short beside an estimator's other work
    steps: int = 300  # of the search: a limit by work, not by the clock, so that fits repeat
    accuracy: float = 1e-6  # a bound need not have more digits


_LIFTED = LiftedSettings()


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
    classes = classes_of(labels).tolist()
    if len(classes) < 2:
        raise ValueError(f"y contains only one class: {classes[0]!r}; separating needs two.")
    if len(classes) == 2:
        every = np.arange(len(labels))
        return decide(X, labels == classes[1], tuple(classes), every, intercept, max_time)
    pairs = {}
    for first, second in combinations(classes, 2):
        rows = np.flatnonzero((labels == first) | (labels == second))
        positive = labels[rows] == second
        pairs[first, second] = decide(X[rows], positive, (first, second), rows, intercept, max_time)
    return _together(pairs, tuple(classes), X)


def _together(pairs: dict[tuple[Any, Any], Separation], classes: Any, X: Any) -> Separation:
    verdicts = [pair.separable for pair in pairs.values()]
    verdict = False if False in verdicts else None if None in verdicts else True
    decisive = min(
        (pair for pair in pairs.values() if pair.separable is verdict),
        key=lambda pair: np.inf if np.isnan(pair.margin) else pair.margin,
    )
    return Separation(verdict, decisive.witness, classes, decisive.margin, radius(X), np.inf, pairs)


def decide(
    X: Any,
    positive: Flags,
    classes: tuple[Any, ...],
    rows: Ints,
    intercept: bool,
    max_time: float | None,
) -> Separation:
    """Say whether two classes are separable; ``rows`` are the numbers to call the rows of X by."""
    overlap = conflict(X, positive, intercept)
    if overlap is None:
        found = _searched(X, positive, intercept, max_time)
        if isinstance(found, Hyperplane):
            y = np.where(positive, 1, -1)
            margin = float(found.geometric_margin(X, y).min())
            bound = mistake_bound(found, X, y, fit_intercept=intercept)
            return Separation(True, found, classes, margin, radius(X), bound)
        overlap = found
    if overlap is None:
        return Separation(None, None, classes, radius=radius(X))
    witness = Overlap(
        rows[overlap.rows], overlap.weights, overlap.point, overlap.residual, overlap.exact
    )
    return Separation(False, witness, classes, radius=radius(X))


def _searched(
    X: Any, positive: Flags, intercept: bool, max_time: float | None
) -> Hyperplane | Overlap | None:
    scale = _scales(X)
    scaled = rescaled(X, scale, origin(X) if intercept else np.zeros(X.shape[1]))
    hulls = Hulls.of(scaled, positive, intercept)
    found, ended = search(hulls, accuracy=_OPTIMAL, enough=_MANY, max_time=max_time)
    if ended.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if found.lowest > 0:
        plane = verified_plane(
            found.point * (np.min(scale) / scale), X, np.where(positive, 1, -1), intercept
        )
        if plane is not None:
            return plane
    if ended.status is Status.MAX_TIME:
        return None
    return verified_overlap(found, X, scaled, positive, intercept, max_time)


def _scales(X: Any) -> Any:
    """Return what to divide the columns by: powers of two, so that it is exact.

    One for all unless they differ much, so that the plane found is the one of largest margin.
    """
    if sp.issparse(X):
        largest = abs(X).max(axis=0).toarray().ravel()
    else:
        largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    sizes = np.exp2(np.floor(np.log2(largest[largest > 0].astype(np.float64))))
    if not sizes.size or sizes.max() <= _UNEVEN * sizes.min():
        return common_scale(X)
    scales = np.ones(len(largest))
    scales[largest > 0] = sizes
    return scales


def verified_plane(w: Floats, X: Any, y: Ints, intercept: bool) -> Hyperplane | None:
    """Return the plane if every row is on its side by more than rounding could account for."""
    w = w / np.abs(w).max()
    b = best_offset(w, X, y) if intercept else 0.0
    scores = row_products(X, w[:, np.newaxis])[:, 0] + b
    sizes = row_products(abs(X), np.abs(w)[:, np.newaxis])[:, 0] + abs(b)
    rounding = 4 * (X.shape[1] + 2) * np.finfo(np.float64).eps * sizes
    return Hyperplane(w, b) if (y * scores > rounding).all() else None


# ------------------------------------------------------------------- the bound of a perceptron
#
# On x̃ = (x, 1) the updates are at most R̃²/γ̃², where γ̃ is the margin of a plane through 0: the
# largest one gives the lowest bound.


def lifted_separator(X: Any, positive: Flags, lift: bool) -> list[tuple[Floats, Floats]]:
    """Return (w, b) whose smallest y f beside ‖(w, b)‖ is the largest, if little work finds it.

    Without ``lift`` the rows stay as they are, and b is 0.
    """
    entries = X.nnz if sp.issparse(X) else X.size
    if entries > _LIFTED.entries or conflict(X, positive, lift):
        return []
    rows = rescaled(X, 1.0, np.zeros(X.shape[1]))
    if lift:
        ones = np.ones((X.shape[0], 1))
        sparse = sp.issparse(X)
        rows = sp.hstack([rows, sp.csr_array(ones)], "csr") if sparse else np.hstack([rows, ones])
    hulls = Hulls.of(rows / common_scale(rows), positive, intercept=False)
    found, ended = search(hulls, accuracy=_LIFTED.accuracy, max_steps=_LIFTED.steps)
    if ended.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if not found.lowest > 0:
        return []
    plane = verified_plane(found.point, rows, np.where(positive, 1, -1), intercept=False)
    if plane is None:
        return []
    return [(plane.w[:-1], plane.w[-1:]) if lift else (plane.w, np.zeros(1))]
