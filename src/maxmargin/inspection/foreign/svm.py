"""Kernel machines of LIBSVM: SVC, SVR, NuSVC, NuSVR and OneClassSVM, which keep their duals.

SVC and SVR minimise ½‖w‖² + C Σ cᵢℓᵢ in feature space, with a free intercept. The duals of the
others have given sums, determined by ν. scikit-learn divides the duals of a NuSVC by ρ and forgets
ρ, and it forgets the ε of a NuSVR: the sums of the duals and the residuals give both back.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate, certify, together
from maxmargin.estimators.formulations import (
    EpsilonSVRForm,
    Formulation,
    NuSVRForm,
    OneClassForm,
    SolvedPlane,
    Training,
)
from maxmargin.geometry.planes import read_kernel
from maxmargin.inspection.foreign.training import TrainingData, class_codes
from maxmargin.inspection.model_view import read_pair_duals, to_dense
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.features import Features, KernelFeatures, LinearFeatures
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Point, Problem
from maxmargin.validation.data import check_targets

_SAME = 1e-6  # relative difference of rows and support vectors that counts as rounding


def certify_svc(model: Any, data: TrainingData) -> Certificate:
    """Certify an SVC, each pair of classes by itself."""
    codes, features = class_codes(model, data), _features(model, data)
    cost = model.C * model.class_weight_[codes] * data.weight
    parts = []
    for pair in _class_pairs(model, data, cost, codes):
        group = np.zeros(len(pair.rows), dtype=np.int64)
        loss = losses.hinge(pair.signs, pair.weight)
        parts.append(_certify_pair(features, pair, loss, group, np.zeros(1), pair.b))
    return together(parts)


def certify_nu_svc(model: Any, data: TrainingData) -> Certificate:
    """Certify a NuSVC, each pair of classes by itself; it ignores class weights."""
    codes, features, parts = class_codes(model, data), _features(model, data), []
    for pair in _class_pairs(model, data, data.weight, codes):
        total = 0.5 * model.nu * float(pair.weight.sum())
        sum_of_duals = float(np.abs(pair.beta).sum())
        rho = 2 * total / sum_of_duals if sum_of_duals > 0 else 0.0
        positive, none = pair.signs > 0, np.zeros(len(pair.rows))
        low, high = np.where(positive, 0.0, -pair.weight), np.where(positive, pair.weight, 0.0)
        scaled, b = pair._replace(beta=rho * pair.beta), rho * (pair.b + np.array([-1.0, 1.0]))
        loss, groups = Loss(none, low, high, none, 0.0), np.where(positive, 0, 1)
        totals = np.array([total, -total])
        parts.append(_certify_pair(features, scaled, loss, groups, totals, b))
    return together(parts)


def certify_svr(model: Any, data: TrainingData) -> Certificate:
    """Certify an SVR."""
    target, beta = check_targets(data.y, data.X.shape[0]), _duals_by_row(model, data)
    form = EpsilonSVRForm(model.C, model.epsilon)
    return _certify_plane(
        model, data, form, target, SolvedPlane(beta, float(model.intercept_[0]), beta)
    )


def certify_nu_svr(model: Any, data: TrainingData) -> Certificate:
    """Certify a NuSVR, with the best tube around its function."""
    target, beta = check_targets(data.y, data.X.shape[0]), _duals_by_row(model, data)
    epsilon = _best_tube(np.abs(target - model.predict(data.X)), data.weight, model.nu)
    duals = np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
    plane = SolvedPlane(beta, float(model.intercept_[0]), duals, epsilon=epsilon)
    return _certify_plane(model, data, NuSVRForm(model.nu, model.C), target, plane)


def certify_one_class(model: Any, data: TrainingData) -> Certificate:
    """Certify a OneClassSVM."""
    beta = _duals_by_row(model, data)
    plane = SolvedPlane(beta, float(model.intercept_[0]), beta)
    return _certify_plane(model, data, OneClassForm(model.nu), None, plane)


def _best_tube(errors: Floats, weight: Floats, nu: float) -> float:
    """Return the ε beyond which a share ν of the errors lies."""
    order = np.argsort(-errors)
    beyond = np.cumsum(weight[order])
    at = int(np.searchsorted(beyond, nu * beyond[-1]))
    return float(errors[order][min(at, len(order) - 1)])


def _certify_plane(
    model: Any, data: TrainingData, form: Formulation, target: Floats | None, plane: SolvedPlane
) -> Certificate:
    """Certify a model with one plane as a point of the problem that a formulation states."""
    n, features = data.X.shape[0], _features(model, data)
    training = Training(data.X, target, data.weight, np.arange(n), n)
    (problem,) = form.problems(training, features)
    w = features.combine(plane.w) if (linear := _linear_weights(model)) is None else linear[0]
    point = form.point(plane._replace(w=w))
    return certify(problem, point, keep_intercept=True)


def _certify_pair(
    features: Features, pair: "ClassPair", loss: Loss, groups: Ints, totals: Floats, b: Any
) -> Certificate:
    some = features.take(pair.rows)
    problem = Problem(some, loss, np.arange(len(pair.rows)), groups, totals)
    w = some.combine(pair.beta) if pair.w is None else pair.w
    return certify(problem, Point(w, b, pair.beta), keep_intercept=True)


def _linear_weights(model: Any) -> Floats | None:
    """Return the weights of a machine that is solved as a linear one, by plane."""
    if isinstance(model.kernel, str) and model.kernel == "linear" and not hasattr(model, "nu"):
        return to_dense(model.coef_)
    return None


def _features(model: Any, data: TrainingData) -> LinearFeatures | KernelFeatures:
    if _linear_weights(model) is not None:
        return LinearFeatures(data.X)
    kernel = read_kernel(model).resolved(data.X)
    # Rows are widened as scikit-learn does; a given matrix stays, to show its own rounding.
    X = data.X if kernel.takes_gram else data.X.astype(np.float64, copy=False)
    return KernelFeatures(Gram(kernel, X), np.arange(X.shape[0]))


# ------------------------------------------------------------------------- duals by class and row


class ClassPair(NamedTuple):
    """Two classes: the rows of their subproblem, labels ±1, weights (0: other class), β, b and w.

    Without w, it is Σβφ(x).
    """

    rows: Ints
    signs: Floats
    weight: Floats
    beta: Floats
    b: float
    w: Floats | None


def _class_pairs(
    model: Any, data: TrainingData, weight: Floats, codes: Ints
) -> Iterator[ClassPair]:
    """Yield the solution of each pair of classes."""
    K = len(model.classes_)
    refuse_altered(model, n_duals=K - 1, n_planes=K * (K - 1) // 2)
    support, W = _support_rows(model, data), _linear_weights(model)
    for k, (i, j) in enumerate(combinations(range(K), 2)):
        duals = read_pair_duals(model, i, j)
        beta = np.zeros(len(codes))
        beta[support[duals != 0]] = duals[duals != 0]
        # LIBSVM calls the first class positive; for two classes scikit-learn reverses that.
        sign = np.where(codes == (j if K == 2 else i), 1.0, -1.0)
        concerned = (codes == i) | (codes == j)
        # A row of another class has no loss here, but with a coefficient it contributes to w.
        rows = np.flatnonzero(concerned | (beta != 0))
        share = np.where(concerned, weight, 0.0)[rows]
        w = None if W is None else W[k]
        yield ClassPair(rows, sign[rows], share, beta[rows], float(model.intercept_[k]), w)


def _duals_by_row(model: Any, data: TrainingData) -> Floats:
    """Return the duals of a model with one plane, 0 for rows that are no support vectors."""
    refuse_altered(model, n_duals=1, n_planes=1)
    beta = np.zeros(data.X.shape[0])
    beta[_support_rows(model, data)] = to_dense(model.dual_coef_)[0]
    return beta


def refuse_altered(model: Any, *, n_duals: int, n_planes: int) -> None:
    """Raise unless the attributes of a kernel machine, ours or another's, fit together."""
    coefficients, support = to_dense(model.dual_coef_), np.asarray(model.support_)
    kernel = getattr(model, "kernel_", None)  # ours have it
    kept = kernel is not None and not kernel.takes_gram  # in support_vectors_
    consistent = (
        coefficients.shape == (n_duals, len(support))
        and (not kept or model.support_vectors_.shape[0] == len(support))
        and len(model.intercept_) == n_planes
        and (not hasattr(model, "classes_") or np.sum(model.n_support_) == len(support))
        and np.isfinite(coefficients).all()
        and np.isfinite(model.intercept_).all()
    )
    if not consistent:
        raise ValueError(
            f"dual_coef_, support_, n_support_ and intercept_ of this {type(model).__name__} do "
            "not belong together: fit it again."
        )


def _support_rows(model: Any, data: TrainingData) -> Ints:
    """Return which rows of the data the coefficients belong to."""
    name, n = type(model).__name__, data.X.shape[0]
    support = np.asarray(model.support_)
    fitted = getattr(model, "shape_fit_", (n,))[0]
    if fitted != n or support.max(initial=0) >= n:
        raise ValueError(
            f"{name} was trained on {fitted} rows, but X has {n}: certify needs the training rows, "
            "all of them."
        )
    if not isinstance(model.kernel, str) or model.kernel == "precomputed":
        return support
    # scikit-learn counts rows without weight in support_ as absent (scikit-learn issue 5150).
    present = np.flatnonzero(data.weight > 0)
    for rows in (support, np.take(present, support, mode="clip")):
        if _is_same(data.X[rows], model.support_vectors_):
            return rows
    raise ValueError(
        f"The support vectors of this {name} are not the rows of X that support_ names: certify "
        "needs the training rows, in the order in which they were fitted, and their weights."
    )


def _is_same(rows: Any, vectors: Any) -> bool:
    if rows.shape != vectors.shape:
        return False
    return rows.shape[0] == 0 or bool(abs(rows - vectors).max() <= _SAME * abs(vectors).max())
