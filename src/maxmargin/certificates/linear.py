"""Certificates of linear machines with penalty ½‖w‖².

A penalized intercept is the weight of one more column, of value ``lift`` in every row.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.certificates.arithmetic import Dual, Primal, assembled, feasible, imbalances
from maxmargin.certificates.certificate import Certificate
from maxmargin.problems.problem import Intercept, Point, Problem
from maxmargin.problems.rounding import (
    EPS,
    Bounded,
    Combination,
    exact_sum,
    passed,
    squared_norm,
    total,
)

_FAR = 30.0  # from 0, in standard deviations of a column


def certify(problem: Problem, point: Point, *, keep_intercept: bool = False) -> Certificate:
    """Return the certificate of a point (w, b, beta) for a problem with penalty ½‖w‖².

    A free intercept is replaced by the best one for the weights, unless it is to be kept.
    """
    if problem.l1_ratio:
        raise ValueError(f"this certificate is for penalty ½‖w‖², got l1_ratio={problem.l1_ratio}")
    beta, infeasibility = feasible(problem.loss, point.beta, problem.intercept)
    seen = Seen.of(problem, point, beta)
    implied = seen.implied
    groups, totals = seen.groups, np.zeros(int(seen.free))
    primal = Primal(seen.scores, squared_norm(seen.weights, seen.weights_error), seen.b)
    off = imbalances(beta, groups, totals)
    dual = Dual(
        beta,
        infeasibility,
        squared_norm(implied.value, implied.error),
        _drift(seen.weights, implied.value),
        imbalance_cost(problem, beta, implied, float(off.sum())),
    )
    certificate = assembled(
        problem.loss, groups, totals, primal, dual,
        keep_intercept=keep_intercept, stored=seen.stored,
    )  # fmt: skip
    return dataclasses.replace(certificate, intercept=seen.intercept(certificate), intercepts=())


class Seen(NamedTuple):
    """A point of a linear problem with rows measured from a centre.

    w·x + b = w·(x − centre) + (b + w·centre), and Σβx = Σβ(x − centre) where Σβ = 0.
    """

    problem: Problem
    point: Point
    centre: Floats
    scores: Bounded
    weights: Floats  # all that are penalized
    weights_error: Floats
    b: Floats  # the free intercept, seen from the centre; empty if there is none
    implied: Combination  # the weights that duals imply

    @classmethod
    def of(cls, problem: Problem, point: Point, beta: Floats) -> "Seen":
        """Compute the scores of a point, and the weights that feasible duals imply."""
        centre, w = _centre(problem), point.w
        scores, implied = passed(problem.X, w, beta, centre)
        weights, error = w, np.zeros(len(w))
        b = np.zeros(0)
        if problem.intercept is Intercept.FREE:
            b = np.array([exact_sum(float(point.b), w, centre)])
        if problem.intercept is Intercept.PENALIZED:
            own = float(point.b)
            shifted = scores.value + own
            scores = Bounded(shifted, scores.error + EPS * (np.abs(shifted) + abs(own)))
            weights = np.append(w, own / problem.lift)
            error = np.append(error, EPS * abs(own / problem.lift))
            implied = _lifted(implied, problem.lift, beta)
        return cls(problem, point, centre, scores, weights, error, b, implied)

    @property
    def free(self) -> bool:
        """Whether the intercept costs nothing."""
        return self.problem.intercept is Intercept.FREE

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """The groups of dual variables: all in one, or none."""
        return np.full(len(self.scores.value), 0 if self.free else -1)

    def stored(self, best: Floats) -> Floats:
        """Return what an intercept will be, once a model has stored it."""
        kept = exact_sum(float(best[0]), -self.point.w, self.centre)
        return np.array([exact_sum(kept, self.point.w, self.centre)])

    def intercept(self, certificate: Certificate) -> float:
        """Return the best intercept as a model is to store it."""
        if not self.free:
            return float(self.point.b) if self.problem.intercept is Intercept.PENALIZED else 0.0
        return exact_sum(certificate.intercept, -self.point.w, self.centre)


def _lifted(implied: Combination, lift: float, beta: Floats) -> Combination:
    """Return the weights that duals imply, with that of a column of value ``lift``."""
    size, summed = float(np.abs(beta).sum()), total(beta)
    return Combination(
        np.append(implied.value, lift * summed.value),
        np.append(implied.error, lift * (summed.error + EPS * size)),
        np.append(implied.size, lift * size),
    )


def imbalance_cost(problem: Problem, beta: Floats, implied: Combination, off: float) -> float:
    """Return what D loses at most while one side is scaled down until Σβ = 0 exactly."""
    if not off > 0:
        return 0.0
    lighter = min(float(beta[beta > 0].sum()), -float(beta[beta < 0].sum()))
    if not lighter > off:
        return np.inf if lighter > 0 else 0.0
    part = 1.01 * off / lighter
    gained = float(np.abs(problem.loss.target * beta).sum())
    bent = float(np.abs(implied.value) @ implied.size)
    return part * (gained + bent + part * float(implied.size @ implied.size))


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
