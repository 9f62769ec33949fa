"""Certificates of hard margins: min ½‖w‖² such that y(w·x + b) ≥ 1 for every row.

A plane that separates is scaled to min y f = 1, which makes it feasible: P = ½‖w‖²/(min y f)² for
any (w, b). Duals α ≥ 0 with Σαy = 0 (if the intercept is free) may be scaled too, and the best
scale s maximises D(sα) = sΣα − ½s²‖Σαyx‖², so D = ½(Σα)²/‖Σαyx‖².
"""

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
    b = 0.0
    if intercept is Intercept.FREE:
        b = 0.0 - 0.5 * (scores[signs > 0].min() + scores[signs < 0].max())
    margins = signs * (scores + b)
    return Placed(b - float(centre @ w), float(margins.min()), margins)


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
    repaired, infeasibility = _feasible(alpha, signs, intercept)
    implied = _combination(X, repaired * signs, _centre(X, intercept))
    norm, total = float(np.linalg.norm(implied)), float(repaired.sum())
    # Divided twice, never by a square, which may underflow.
    dual = 0.5 * (total / norm) ** 2 if norm > 0 else 0.0
    if not placing.smallest > 0:
        caveat = "the plane does not separate the classes"
        lost = np.inf
        return Certificate(
            lost, -lost, infeasibility, lost, lost, lost, placing.intercept, caveat=caveat
        )
    best = w / placing.smallest
    primal = 0.5 * float(best @ best)
    scale = total / norm / norm if norm > 0 else 0.0
    active = repaired > _ACTIVE * repaired.max(initial=0.0)
    uneven = np.abs(placing.scores[active] / placing.smallest - 1.0)
    own = placing.smallest - abs(b - placing.intercept) if intercept is Intercept.FREE else None
    return Certificate(
        primal,
        dual,
        infeasibility,
        float(np.linalg.norm(best - scale * implied) / np.linalg.norm(best)),
        float(uneven.max(initial=0.0)),
        float(np.sqrt(2 * max(primal - dual, 0.0))),
        placing.intercept / placing.smallest,
        intercept_cost=0.0 if own is None else _cost(primal, placing.smallest, own),
    )


def _cost(primal: float, smallest: float, own: float) -> float:
    return primal * ((smallest / own) ** 2 - 1.0) if own > 0 else np.inf


def _feasible(alpha: Floats, signs: Floats, intercept: Intercept) -> tuple[Floats, float]:
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
