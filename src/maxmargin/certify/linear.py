"""Certificates of linear machines with penalty ½‖w‖²."""

import dataclasses

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin.certify.arithmetic import Dual, Primal, assembled, feasible, kkt_violation
from maxmargin.certify.certificate import Certificate
from maxmargin.geometry.inputs import blocks
from maxmargin.problem import Intercept, Point, Problem

__all__ = ["certify", "feasible", "kkt_violation"]

Floats = npt.NDArray[np.float64]

_FAR = 30.0  # from 0, in standard deviations of a column


def certify(problem: Problem, point: Point, *, keep_intercept: bool = False) -> Certificate:
    """Return the certificate of a point (w, b, beta) for a problem with penalty ½‖w‖².

    A free intercept is replaced by the best one for the weights, unless it is to be kept.
    """
    if problem.l1_ratio:
        raise ValueError(f"this certificate is for penalty ½‖w‖², got l1_ratio={problem.l1_ratio}")
    centre = _centre(problem)
    shift = float(centre @ point.w)  # w·x + b = w·(x − centre) + (b + shift)
    b = 0.0 if problem.intercept is Intercept.NONE else point.b + shift
    beta, infeasibility = feasible(problem.terms, point.beta, problem.intercept)
    implied = _combination(problem.X, beta, centre)
    certificate = assembled(
        problem.terms,
        problem.intercept,
        problem.lift,
        Primal(_scores(problem.X, point.w, centre), float(point.w @ point.w), b, shift),
        Dual(beta, infeasibility, float(implied @ implied), _drift(point.w, implied)),
        keep_intercept=keep_intercept,
    )
    return dataclasses.replace(certificate, intercept=certificate.intercept - shift)


def _drift(w: Floats, implied: Floats) -> float:
    size = float(np.linalg.norm(w))
    away = float(np.linalg.norm(w - implied))
    return away / size if size > 0 else away


def _centre(problem: Problem) -> Floats:
    """Return a point to measure rows from: 0, unless differences would drown in rounding there."""
    X = problem.X
    if sp.issparse(X) or problem.intercept is not Intercept.FREE:
        return np.zeros(X.shape[1])
    some = np.asarray(X[:: max(1, X.shape[0] >> 12)], dtype=np.float64)
    middle, spread = some.mean(axis=0), some.std(axis=0)
    return middle if (np.abs(middle) > _FAR * spread).any() else np.zeros(X.shape[1])


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
