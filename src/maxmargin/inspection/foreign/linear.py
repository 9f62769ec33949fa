"""LinearSVC, LinearSVR and SGDClassifier: weights without duals, so the bound must be found.

Perceptrons minimise nothing, so there are facts about them instead of a gap.

LinearSVC, LinearSVR   penalty + C Σ cᵢℓᵢ, the intercept penalized as a constant column's weight
SGDClassifier          α·penalty + (1/n) Σ cᵢℓᵢ: C = 1/(nα), and the intercept is free
Crammer–Singer         one weight vector for each class and one loss for each row
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_class_weight

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate, certify, together
from maxmargin.geometry.inputs import row_products
from maxmargin.inspection.foreign.training import (
    TrainingData,
    check_class_planes,
    check_planes,
    class_codes,
)
from maxmargin.problems import losses
from maxmargin.problems.problem import (
    Intercept,
    LinearProblem,
    MulticlassProblem,
    Point,
    Problem,
    Status,
)
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.separability import Separation, separate
from maxmargin.solve import Attempt, Settings, plan, run_solver
from maxmargin.validation.data import check_targets

ENOUGH = 1e-6  # relative gap below which a better bound would say nothing more
_L1_RATIO = {"l2": 0.0, "l1": 1.0}


def certify_linear_svc(model: Any, data: TrainingData) -> Certificate:
    """Certify a LinearSVC: jointly, or each class against the rest by itself."""
    factors = _class_factors(model, data, sample_weight=data.weight)
    if model.multi_class == "crammer_singer":
        return _certify_crammer_singer(model, data, factors)
    make_loss = _check_loss(losses.CLASSIFYING, model)
    parts = []
    for plane in _against_rest(model, data, factors):
        loss = make_loss(plane.sign, model.C * plane.weight)
        problem = _liblinear(model, data.X[plane.kept], loss, _L1_RATIO[model.penalty])
        parts.append(certify_by_bound(problem, plane.w, plane.b, data.max_time))
    return together(parts)


def certify_linear_svr(model: Any, data: TrainingData) -> Certificate:
    """Certify a LinearSVR."""
    make_loss = _check_loss(losses.REGRESSING, model)
    kept = data.weight > 0
    target = check_targets(data.y, data.X.shape[0])
    loss = make_loss(target[kept], model.C * data.weight[kept], model.epsilon)
    W, b = check_planes(model, 1)
    problem = _liblinear(model, data.X[kept], loss)
    return certify_by_bound(problem, W[0], float(b[0]), data.max_time)


def certify_sgd_classifier(model: Any, data: TrainingData) -> Certificate:
    """Certify an SGDClassifier with a large-margin loss, each class against the rest by itself."""
    make_loss = _check_loss(losses.CLASSIFYING, model)
    l1_ratio = _sgd_l1_ratio(model)
    intercept = Intercept.FREE if model.fit_intercept else Intercept.NONE
    C = 1.0 / (model.alpha * data.X.shape[0])
    parts = []
    for plane in _against_rest(model, data, _class_factors(model, data)):
        problem = Problem.linear(
            data.X[plane.kept],
            make_loss(plane.sign, C * plane.weight),
            intercept,
            l1_ratio=l1_ratio,
        )
        parts.append(certify_by_bound(problem, plane.w, plane.b, data.max_time))
    return together(parts)


def _sgd_l1_ratio(model: Any) -> float:
    ratios = {**_L1_RATIO, "elasticnet": model.l1_ratio}
    if model.penalty not in ratios or not model.alpha > 0 or model.learning_rate in ("pa1", "pa2"):
        raise ValueError(
            f"SGDClassifier with penalty={model.penalty!r}, alpha={model.alpha!r} and "
            f"learning_rate={model.learning_rate!r} has no objective to certify; it needs "
            "a penalty, alpha > 0 and a learning rate other than 'pa1' and 'pa2'."
        )
    return float(ratios[model.penalty])


def _class_factors(model: Any, data: TrainingData, **weights: Any) -> Floats:
    """Return the weight of each class, as scikit-learn computes it from class_weight."""
    classes = model.classes_
    labels = classes[class_codes(model, data)]
    return np.asarray(
        compute_class_weight(model.class_weight, classes=classes, y=labels, **weights)
    )


class _Plane(NamedTuple):
    """One plane, and the rows it was fitted to: those with a weight, their labels ±1."""

    w: Floats
    b: float
    kept: Any
    sign: Floats
    weight: Floats


def _against_rest(model: Any, data: TrainingData, factors: Floats) -> Iterator[_Plane]:
    """Yield the only plane for two classes, or each class against the rest."""
    codes = class_codes(model, data)
    K = len(model.classes_)
    W, b = check_planes(model, 1 if K == 2 else K)
    for w, offset, k in zip(W, b, [1] if K == 2 else range(K), strict=True):
        # Of several classes the rest keeps weight 1, with LIBLINEAR as with SGD.
        factor = factors[codes] if K == 2 else np.where(codes == k, factors[k], 1.0)
        weight = factor * data.weight
        kept = weight > 0
        sign = np.where(codes == k, 1.0, -1.0)
        yield _Plane(w, float(offset), kept, sign[kept], weight[kept])


def _liblinear(model: Any, X: Any, loss: Any, l1_ratio: float = 0.0) -> LinearProblem:
    return Problem.linear(X, loss, _intercept(model), model.intercept_scaling, l1_ratio)


def _intercept(model: Any) -> Intercept:
    """Return how LIBLINEAR saw the intercept; -R makes it free, which scikit-learn does not use."""
    if not model.fit_intercept:
        return Intercept.NONE
    free = getattr(model, "intercept", "penalized") == "free"
    return Intercept.FREE if free else Intercept.PENALIZED


def _check_loss(table: dict[str, Any], model: Any) -> Any:
    if model.loss not in table:
        raise ValueError(
            f"{type(model).__name__}(loss={model.loss!r}) cannot be certified: its loss is not one "
            f"of the large-margin losses {sorted(table)}."
        )
    return table[model.loss]


def _certify_crammer_singer(model: Any, data: TrainingData, factors: Floats) -> Certificate:
    """Certify a joint machine of all classes; factors are the weights of the classes."""
    codes = class_codes(model, data)
    cost = model.C * factors[codes] * data.weight
    kept = cost > 0
    problem = MulticlassProblem.linear(
        data.X[kept], codes[kept], len(model.classes_), cost[kept], _intercept(model),
        model.intercept_scaling,
    )  # fmt: skip
    W, b = check_class_planes(model)
    found = find_duals(problem, data.max_time)
    return certify(problem, Point(W.T, b, found.point.beta))


# -------------------------------------------------------------------------------------- the bound


def certify_by_bound(
    problem: LinearProblem, w: Floats, b: float, max_time: float | None
) -> Certificate:
    """Return the certificate of weights without duals, with the best bound that was found.

    The derivatives of the losses at the model's own scores are good duals if the model is near
    the optimum and the losses are smooth; otherwise the problem is solved.
    """
    problem, w, b = _add_constant(problem, w, b)
    scores = problem.products(w) + b
    guess = Point(w, b, losses.best_duals(problem.loss, scores))
    certificate = certify(problem, guess, keep_intercept=True)
    if certificate.holds(ENOUGH):
        return certificate
    found = find_duals(problem, max_time)
    better = certify(problem, replace(guess, beta=found.point.beta), keep_intercept=True)
    if found.run.status is not Status.OPTIMAL:
        missing = certify(problem, found.point).relative_gap
        caveat = f"a better bound, by a relative {missing:.2g} at most, was not found in time"
        better = replace(better, caveat=caveat)
    return max(certificate, better, key=lambda each: each.dual)


def _add_constant(
    problem: LinearProblem, w: Floats, b: float
) -> tuple[LinearProblem, Floats, float]:
    """Return the problem with a constant column, if an ℓ1 penalty includes the intercept."""
    if problem.l1_ratio == 0 or problem.intercept is not Intercept.PENALIZED:
        return problem, w, b
    X, constant = problem.features.X, problem.features.constant
    column = np.full((X.shape[0], 1), constant, X.dtype)
    X = sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])
    widened = Problem.linear(X, problem.loss, Intercept.NONE, l1_ratio=problem.l1_ratio)
    return widened, np.append(w, b / constant), 0.0


def find_duals(problem: Any, max_time: float | None, start: Point | None = None) -> Attempt:
    """Return how far a solver came with a problem; Ctrl-C ends it."""
    solver = plan(problem, Settings(tol=ENOUGH)).solvers[0]
    with one_blas_thread():  # as ``solve`` does
        found = run_solver(problem, solver, tol=ENOUGH, max_time=max_time, start=start)
    if found.run.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found


# -------------------------------------------------------------------------- perceptrons


@dataclass(frozen=True)
class PerceptronFacts:
    """What a perceptron achieved on its training rows; ``print`` it for a sentence.

    Attributes
    ----------
    rows, mistakes : int
        Rows with a weight, and how many of them are on the wrong side (or on the plane).
    margin : float
        Distance of the worst row to the plane between its class and the nearest other, below 0 on
        the wrong side.
    separation : Separation
        Whether any plane makes no mistakes, with a witness; its ``margin`` is the largest possible.
    """

    rows: int
    mistakes: int
    margin: float
    separation: Separation

    def __str__(self) -> str:
        if self.mistakes:
            done = f"{self.mistakes} of {self.rows} training rows are on the wrong side."
        else:
            done = f"All {self.rows} training rows are separated with margin {self.margin:.4g}."
        return f"{done} {self.separation}"


def describe_perceptron(model: Any, data: TrainingData) -> PerceptronFacts:
    """Return what a perceptron with explicit weights achieved."""
    kept = data.weight > 0
    codes = class_codes(model, data)[kept]
    X = data.X[kept]
    leads = _leads(model, X, codes)
    labels = model.classes_[codes]
    separation = separate(X, labels, intercept=bool(model.fit_intercept), max_time=data.max_time)
    return PerceptronFacts(len(codes), int((leads <= 0).sum()), float(leads.min()), separation)


def _leads(model: Any, X: Any, codes: Ints) -> Floats:
    """Return the signed distance of each row to the nearest plane between its class and another."""
    W, b = check_class_planes(model)
    scores = row_products(X, W.T) + b
    mine = np.arange(len(codes))
    leads = scores[mine, codes][:, np.newaxis] - scores
    apart = np.array([np.linalg.norm(W - w, axis=1) for w in W])[codes]
    leads = leads / np.where(apart > 0, apart, 1.0)
    leads[mine, codes] = np.inf
    return np.asarray(leads.min(axis=1))
