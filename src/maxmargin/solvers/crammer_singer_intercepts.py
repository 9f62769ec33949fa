"""Intercepts of the multiclass machine, given the weights: a better one, and the middle one."""

import numpy as np
import numpy.typing as npt

from maxmargin import loops

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_EQUAL = 1e-12  # sums of costs that differ by less than this part are equal


def better_intercept(
    claims: Floats, labels: Ints, cost: Floats, b: Floats, loss: float
) -> tuple[Floats, float]:
    """Return b after one exact step in each coordinate if that helps, and the loss there.

    In its own coordinate the loss is lowest where the rows that class k claims cost together what
    its own rows bring: a weighted quantile. All coordinates together need not be best.
    """
    supply = np.bincount(labels, cost, minlength=len(b))
    moved, claims = b.copy(), claims.copy()
    for k in range(len(b)):
        step = _best_step(claims, k, cost, float(supply[k]))
        claims[:, k] += step
        moved[k] += step
    own = claims[np.arange(len(claims)), labels]
    better = float(cost @ (claims.max(axis=1) - own))
    return (moved, better) if better < loss else (b, loss)


def _best_step(claims: Floats, k: int, cost: Floats, supply: float) -> float:
    leads = np.empty(len(claims))
    loops.crammer_singer.leads_over(claims, k, leads)
    order = np.argsort(leads)
    claimed = np.cumsum(cost[order])
    at = min(int(np.searchsorted(claimed, supply * (1 - _EQUAL))), len(order) - 1)
    step = leads[order[at]]
    if claimed[at] <= supply * (1 + _EQUAL) and at + 1 < len(order):
        step = 0.5 * (step + leads[order[at + 1]])
    return float(step)


def middle_step(claims: Floats, mass: Floats) -> Floats:
    """Return the step of b to the middle of all that are optimal for these weights and masses.

    A step s keeps all mass where claims are largest if s[l] − s[k] ≤ the least lead of k over l in
    the rows where k holds mass. The longest such steps are shortest paths, from and to each class;
    their mean is feasible as they are, treats classes alike, and for two is the midpoint.
    """
    K = claims.shape[1]
    far = np.empty((K, K))  # far[k, l]: how far l may rise above k
    for k in range(K):
        loops.crammer_singer.price_list(claims, mass, k, far[k])
    np.fill_diagonal(far, 0.0)
    for k in range(K):
        far = np.minimum(far, far[:, k : k + 1] + far[k])
    present = np.flatnonzero((mass > 0).any(axis=0))
    inner = far[np.ix_(present, present)]
    step = np.zeros(K)
    step[present] = 0.5 * (inner.mean(axis=0) - inner.mean(axis=1))
    step[present] -= step[present].mean()
    for absent in np.setdiff1d(np.arange(K), present):  # as high as costs nothing
        step[absent] = (step[present] + far[present, absent]).min()
    return step
