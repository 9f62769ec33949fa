"""Certificates of linear machines with penalty ½‖w‖²."""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import losses
from maxmargin.certify.certificate import Certificate
from maxmargin.certify.intercepts import best_intercept
from maxmargin.geometry.inputs import blocks
from maxmargin.loops.records import Terms
from maxmargin.problem import Intercept, Point, Problem

Floats = npt.NDArray[np.float64]

_AT_BOUND = 1e-9  # duals within this part of the largest of their bound are taken to be there


def certify(problem: Problem, point: Point) -> Certificate:
    """Return the certificate of a point (w, b, beta) for a problem with penalty ½‖w‖²."""
    terms = problem.terms
    centre = _centre(problem)
    scores = _scores(problem.X, point.w, centre)
    norm2 = float(point.w @ point.w)
    beta, infeasibility = feasible(terms, point.beta, problem.intercept)
    implied = _combination(problem.X, beta, centre)
    drift = _drift(point.w, implied)
    dual = losses.dual_value(terms, beta) - 0.5 * float(implied @ implied)
    if problem.intercept is Intercept.FREE:
        b = best_intercept(terms, scores, point.b + float(centre @ point.w))
    else:
        b = point.b if problem.intercept is Intercept.PENALIZED else 0.0
    if problem.intercept is Intercept.PENALIZED:
        norm2 += (b / problem.lift) ** 2
        dual -= 0.5 * (problem.lift * float(beta.sum())) ** 2
    scores += b
    primal = 0.5 * norm2 + float(losses.values(terms, scores).sum())
    return Certificate(
        primal,
        dual,
        infeasibility,
        drift,
        kkt_violation(terms, scores, beta),
        float(np.sqrt(2 * max(primal - dual, 0.0))),
        b - float(centre @ point.w),
    )


def feasible(terms: Terms, beta: Floats, intercept: Intercept) -> tuple[Floats, float]:
    """Return β clipped to its box, the heavier side scaled down so that Σβ = 0; and the change."""
    clipped = np.clip(np.nan_to_num(beta, posinf=0.0, neginf=0.0), terms.low, terms.high)
    if intercept is Intercept.FREE:
        gain, loss = float(clipped[clipped > 0].sum()), -float(clipped[clipped < 0].sum())
        if gain > loss:
            clipped[clipped > 0] *= loss / gain
        elif loss > gain:
            clipped[clipped < 0] *= gain / loss
    total = float(np.abs(beta).sum())
    change = float(np.abs(clipped - beta).sum())
    return clipped, change / total if total > 0 else 0.0


def kkt_violation(terms: Terms, scores: Floats, beta: Floats) -> float:
    """Return by how much, at worst, a residual t − f is outside what its β allows."""
    near = _AT_BOUND * float(np.abs(beta).max(initial=0.0))
    lower, upper = losses.allowed_residuals(terms, beta, near)
    residual = terms.target - scores
    outside = np.maximum(lower - residual, residual - upper)
    return float(np.max(outside, initial=0.0))


def _drift(w: Floats, implied: Floats) -> float:
    size = float(np.linalg.norm(w))
    away = float(np.linalg.norm(w - implied))
    return away / size if size > 0 else away


def _centre(problem: Problem) -> Floats:
    """Return a point to measure rows from: far from 0, differences would drown in rounding."""
    X = problem.X
    if sp.issparse(X) or problem.intercept is not Intercept.FREE:
        return np.zeros(X.shape[1])
    return np.asarray(X[: 1 << 12].mean(axis=0, dtype=np.float64))


def _scores(X: npt.ArrayLike, w: Floats, centre: Floats) -> Floats:
    if not centre.any():
        return np.concatenate([np.asarray(block @ w) for block in blocks(X)])
    return np.concatenate([(block - centre) @ w for block in blocks(X)])


def _combination(X: npt.ArrayLike, beta: Floats, centre: Floats) -> Floats:
    """Return Σ βᵢ(xᵢ − centre): the same as Σ βᵢxᵢ where Σβ = 0."""
    total = np.zeros(len(centre))
    start = 0
    for block in blocks(X):
        part = beta[start : start + block.shape[0]]
        rows = block if not centre.any() else block - centre
        total += rows.T @ part
        start += block.shape[0]
    return total
