"""LinearSVC, LinearSVR and SGDClassifier: weights without duals, so the bound must be found.

LinearSVC, LinearSVR   penalty + C Σ cᵢℓᵢ, the intercept penalized as a constant column's weight
SGDClassifier          α·penalty + (1/n) Σ cᵢℓᵢ: C = 1/(nα), and the intercept is free
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_class_weight

from maxmargin.certificates import Certificate, certify, together
from maxmargin.estimators.foreign.crammer_singer import crammer_singer
from maxmargin.estimators.foreign.training import (
    ENOUGH,
    Fitted,
    Floats,
    Training,
    planes,
    positions,
)
from maxmargin.estimators.inputs import check_targets
from maxmargin.geometry.inputs import row_products
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, Problem, Start, Status
from maxmargin.solve import solve

_CLASSIFYING = {"hinge": losses.hinge, "squared_hinge": losses.squared_hinge}
_REGRESSING = {
    "epsilon_insensitive": losses.epsilon_insensitive,
    "squared_epsilon_insensitive": losses.squared_epsilon_insensitive,
}
_L1_RATIO = {"l2": 0.0, "l1": 1.0}


def linear_svc(model: Any, data: Training) -> Certificate:
    """Certify a LinearSVC: jointly, or every class against the rest by itself."""
    factors = compute_class_weight(
        model.class_weight, classes=model.classes_, y=data.y, sample_weight=data.weight
    )
    if model.multi_class == "crammer_singer":
        return crammer_singer(model, data, factors)
    loss = _known(_CLASSIFYING, model)
    parts = []
    for plane in _against_rest(model, data, factors):
        terms = loss(plane.sign, model.C * plane.weight)
        problem = _liblinear(model, data.X[plane.kept], terms, _L1_RATIO[model.penalty])
        parts.append(bounded(problem, plane.w, plane.b, data.max_time))
    return together(parts)


def linear_svr(model: Any, data: Training) -> Certificate:
    """Certify a LinearSVR."""
    loss = _known(_REGRESSING, model)
    kept = data.weight > 0
    target = check_targets(data.y, data.X.shape[0])
    terms = loss(target[kept], model.C * data.weight[kept], model.epsilon)
    W, b = planes(model, 1)
    return bounded(_liblinear(model, data.X[kept], terms), W[0], float(b[0]), data.max_time)


def sgd_classifier(model: Any, data: Training) -> Certificate:
    """Certify an SGDClassifier with a large-margin loss, every class against the rest by itself."""
    loss = _known(_CLASSIFYING, model)
    l1_ratio = _sgd_l1_ratio(model)
    intercept = Intercept.FREE if model.fit_intercept else Intercept.NONE
    C = 1.0 / (model.alpha * data.X.shape[0])
    parts = []
    for plane in _against_rest(model, data, model._expanded_class_weight):
        problem = Problem(
            data.X[plane.kept],
            loss(plane.sign, C * plane.weight),
            intercept,
            l1_ratio=l1_ratio,
        )
        parts.append(bounded(problem, plane.w, plane.b, data.max_time))
    return together(parts)


def _sgd_l1_ratio(model: Any) -> float:
    ratios = {**_L1_RATIO, "elasticnet": model.l1_ratio}
    if model.penalty not in ratios or not model.alpha > 0 or model.learning_rate in ("pa1", "pa2"):
        raise ValueError(
            f"SGDClassifier with penalty={model.penalty!r}, alpha={model.alpha!r} and "
            f"learning_rate={model.learning_rate!r} has no objective to be certified in; it needs "
            "a penalty, alpha > 0 and a learning rate other than 'pa1' and 'pa2'."
        )
    if ratios[model.penalty] > 0 and model.loss == "hinge":
        raise ValueError(
            f"SGDClassifier(loss='hinge', penalty={model.penalty!r}) cannot be certified: there is "
            "no solver for its bound; with loss='squared_hinge' or penalty='l2' it can."
        )
    return float(ratios[model.penalty])


class _Plane(NamedTuple):
    """One plane, and the rows it was fitted to: those with a weight, their labels ±1."""

    w: Floats
    b: float
    kept: Any
    sign: Floats
    weight: Floats


def _against_rest(model: Any, data: Training, factors: Floats) -> Iterator[_Plane]:
    """Yield the only plane for two classes, or each class against the rest."""
    codes = positions(model, data)
    K = len(model.classes_)
    W, b = planes(model, 1 if K == 2 else K)
    for w, offset, k in zip(W, b, [1] if K == 2 else range(K), strict=True):
        # Of several classes the rest keeps weight 1, with LIBLINEAR as with SGD.
        factor = factors[codes] if K == 2 else np.where(codes == k, factors[k], 1.0)
        weight = factor * data.weight
        kept = weight > 0
        sign = np.where(codes == k, 1.0, -1.0)
        yield _Plane(w, float(offset), kept, sign[kept], weight[kept])


def _liblinear(model: Any, X: Any, terms: Any, l1_ratio: float = 0.0) -> Problem:
    intercept = Intercept.PENALIZED if model.fit_intercept else Intercept.NONE
    return Problem(X, terms, intercept, model.intercept_scaling, l1_ratio)


def _known(table: dict[str, Any], model: Any) -> Any:
    if model.loss not in table:
        raise ValueError(
            f"{type(model).__name__}(loss={model.loss!r}) cannot be certified: it is none of the "
            f"large-margin losses {sorted(table)}."
        )
    return table[model.loss]


# ------------------------------------------------------------------- the bound


def bounded(problem: Problem, w: Floats, b: float, max_time: float | None) -> Certificate:
    """Return the certificate with the best bound among those tried.

    The losses' derivatives at the model's own scores are duals that suffice if it is near the
    optimum and the losses are smooth; otherwise the problem is solved.
    """
    problem, w, b = _spelt_out(problem, w, b)
    scores = row_products(problem.X, w[:, np.newaxis])[:, 0] + b
    guess = Fitted(w, b, losses.best_duals(problem.loss, scores))
    certificate = certify(problem, guess, keep_intercept=True)
    if certificate.holds(ENOUGH):
        return certificate
    # Imported here: only models that are not optimal need a solver.
    from maxmargin.solvers.choice import choose

    found = solve(problem, choose(problem), tol=ENOUGH, max_time=max_time, start=Start())
    if found.run.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    better = certify(problem, guess._replace(beta=found.beta), keep_intercept=True)
    if found.run.status is not Status.OPTIMAL:
        short = certify(problem, found).relative_gap
        doubt = f"a better bound, by a relative {short:.2g} at most, was not found in time"
        better = dataclasses.replace(better, caveat=doubt)
    return max(certificate, better, key=lambda each: each.dual)


def _spelt_out(problem: Problem, w: Floats, b: float) -> tuple[Problem, Floats, float]:
    """Return the same with a constant column, if ℓ1 weighs the intercept: by |b/lift|."""
    if problem.l1_ratio == 0 or problem.intercept is not Intercept.PENALIZED:
        return problem, w, b
    column = np.full((problem.X.shape[0], 1), problem.lift, problem.X.dtype)
    X = problem.X
    X = sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])
    widened = Problem(X, problem.loss, Intercept.NONE, l1_ratio=problem.l1_ratio)
    return widened, np.append(w, b / problem.lift), 0.0
