"""Certificates of hard margins: min ½‖w‖² such that y(w·x + b) ≥ 1 for every row.

A plane that separates is scaled to min y f = 1, which makes it feasible: P = ½‖w‖²/(min y f)² for
any (w, b). Duals α ≥ 0 with Σαy = 0 (if the intercept is free) may be scaled too, and the best
scale s maximises D(sα) = sΣα − ½s²‖Σαyx‖², so D = ½(Σα)²/‖Σαyx‖².
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.certify.certificate import Certificate
from maxmargin.geometry.inputs import blocks
from maxmargin.problem import Intercept

Floats = npt.NDArray[np.float64]

_ACTIVE = 1e-9  # duals above this part of the largest must have y f = 1


class Placed(NamedTuple):
    """Weights with their best intercept, and the smallest y f they then have."""

    intercept: float
    smallest: float
    scores: Floats  # y f


def placed(X: Any, signs: Floats, w: Floats, intercept: Intercept) -> Placed:
    """Return where weights put the plane best: midway between the classes, or through 0."""
    centre = _centre(X, intercept)
    scores = np.concatenate([np.asarray(block @ w) for block in _centred(X, centre)])
    placing = placed_scores(scores, signs, intercept)
    return placing._replace(intercept=placing.intercept - float(centre @ w))


def placed_scores(scores: Floats, signs: Floats, intercept: Intercept) -> Placed:
    """Return where scores w·x put the plane best."""
    b = 0.0
    if intercept is Intercept.FREE:
        b = 0.0 - 0.5 * (scores[signs > 0].min() + scores[signs < 0].max())
    margins = signs * (scores + b)
    return Placed(b, float(margins.min()), margins)


def certify_hard(
    X: Any, signs: Floats, w: Floats, b: float, alpha: Floats, intercept: Intercept
) -> Certificate:
    """Return the certificate of a plane and duals for the hard margin of rows X.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Rows.
    signs : ndarray of shape (n,)
        Labels −1 and +1.
    w, b : ndarray of shape (d,), float
        The plane, in any scale. A free intercept is replaced by the best one; what the given one
        would cost is ``intercept_cost``.
    alpha : ndarray of shape (n,)
        Duals, in any scale; what is negative or unbalanced is mended, and said.
    intercept : Intercept
        Free, or none.

    Returns
    -------
    Certificate
        A plane that does not separate has an infinite objective and an infinite gap.
    """
    placing = placed(X, signs, w, intercept)
    repaired, infeasibility = feasible(alpha, signs, intercept)
    implied = _combination(X, repaired * signs, _centre(X, intercept))
    lengths = float(np.linalg.norm(w)), float(np.linalg.norm(implied))
    own = b if intercept is Intercept.FREE else placing.intercept
    duals = Duals(repaired, infeasibility, lengths[1])
    return assembled(
        placing, own, lengths[0], duals, lambda p, q: float(np.linalg.norm(p * w - q * implied))
    )


class Duals(NamedTuple):
    """Feasible α, how much they had to be changed for that, and ‖Σαyx‖."""

    alpha: Floats
    infeasibility: float
    length: float


def assembled(
    placing: Placed,
    b: float,
    length: float,
    duals: Duals,
    apart: Callable[[float, float], float],
) -> Certificate:
    """Return the certificate, whatever space the weights live in.

    Parameters
    ----------
    placing : Placed
        Where the weights w put the plane best.
    b : float
        The plane's own intercept, in the scale of w.
    length : float
        ‖w‖.
    duals : Duals
        The duals.
    apart : callable
        Returns ‖p·w − q·Σαyx‖ for p and q.
    """
    total = float(duals.alpha.sum())
    # Divided twice, never by a square, which may underflow.
    dual = 0.5 * (total / duals.length) ** 2 if duals.length > 0 else 0.0
    if not placing.smallest > 0:
        return refused(placing, duals.infeasibility, "the plane does not separate the classes")
    primal = 0.5 * (length / placing.smallest) ** 2
    scale = total / duals.length / duals.length if duals.length > 0 else 0.0
    active = duals.alpha > _ACTIVE * duals.alpha.max(initial=0.0)
    uneven = np.abs(placing.scores[active] / placing.smallest - 1.0)
    drift = apart(1.0 / placing.smallest, scale) / (length / placing.smallest)
    return Certificate(
        primal,
        dual,
        duals.infeasibility,
        drift,
        float(uneven.max(initial=0.0)),
        float(np.sqrt(2 * max(primal - dual, 0.0))),
        placing.intercept / placing.smallest,
        intercept_cost=_cost(primal, placing.smallest, abs(b - placing.intercept)),
    )


def refused(placing: Placed, infeasibility: float, caveat: str) -> Certificate:
    """Return the certificate of what is no solution at all."""
    lost = np.inf
    return Certificate(
        lost, -lost, infeasibility, lost, lost, lost, placing.intercept, caveat=caveat
    )


def _cost(primal: float, smallest: float, off: float) -> float:
    """Return what it costs that the intercept is off by so much."""
    own = smallest - off
    return primal * ((smallest / own) ** 2 - 1.0) if own > 0 else np.inf


def feasible(alpha: Floats, signs: Floats, intercept: Intercept) -> tuple[Floats, float]:
    """Return α ≥ 0 with the heavier class scaled down until Σαy = 0, and the relative change."""
    mended = np.maximum(np.nan_to_num(alpha, posinf=0.0, neginf=0.0), 0.0)
    if intercept is Intercept.FREE:
        sides = {sign: float(mended[signs == sign].sum()) for sign in (-1.0, 1.0)}
        lighter = min(sides.values())
        for sign, weight in sides.items():
            if weight > lighter:
                mended[signs == sign] *= lighter / weight
    total = float(np.abs(alpha).sum())
    return mended, float(np.abs(mended - alpha).sum()) / total if total > 0 else 0.0


def _centre(X: Any, intercept: Intercept) -> Floats:
    """Return a point to measure rows from: far from 0, differences would drown in rounding."""
    if sp.issparse(X) or intercept is not Intercept.FREE:
        return np.zeros(X.shape[1])
    return np.asarray(X[: 1 << 12].mean(axis=0, dtype=np.float64))


def _centred(X: Any, centre: Floats) -> Any:
    return (block - centre if centre.any() else block for block in blocks(X))


def _combination(X: Any, beta: Floats, centre: Floats) -> Floats:
    """Return Σ βᵢ(xᵢ − centre): the same as Σ βᵢxᵢ where Σβ = 0."""
    total, start = np.zeros(X.shape[1]), 0
    for block in _centred(X, centre):
        total += block.T @ beta[start : start + block.shape[0]]
        start += block.shape[0]
    return total
