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
from maxmargin.inspection.foreign.training import (
    TrainingData,
    class_codes,
    to_dense,
)
from maxmargin.kernels import Kernel, as_kernel
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Point, Problem
from maxmargin.validation.data import check_targets

_SAME = 1e-6  # relative difference of rows and support vectors that counts as rounding


class FittedFunction(NamedTuple):
    """One f = Σ βK(x, ·) + b, the rows it was fitted to, and their losses."""

    rows: Ints
    loss: Loss
    beta: Floats
    b: Any  # one for each group of duals
    groups: Ints | None = None  # None: all duals are in one group
    totals: Any = (0.0,)  # the sum of the duals of each group


def certify_svc(model: Any, data: TrainingData) -> Certificate:
    """Certify an SVC, each pair of classes by itself."""
    return _certify_functions(model, data, _hinge_functions(model, data))


def certify_svr(model: Any, data: TrainingData) -> Certificate:
    """Certify an SVR."""
    target, beta = check_targets(data.y, data.X.shape[0]), _duals_by_row(model, data)
    loss = losses.epsilon_insensitive(target, model.C * data.weight, model.epsilon)
    b = float(model.intercept_[0])
    function = FittedFunction(np.arange(len(target)), loss, beta, b)
    return _certify_functions(model, data, iter([function]))


def certify_nu_svc(model: Any, data: TrainingData) -> Certificate:
    """Certify a NuSVC, each pair of classes by itself; it ignores class weights."""
    return _certify_by_gram(model, data, _nu_functions(model, data))


def certify_nu_svr(model: Any, data: TrainingData) -> Certificate:
    """Certify a NuSVR, with the best tube around its function."""
    target, beta = check_targets(data.y, data.X.shape[0]), _duals_by_row(model, data)
    n, cost = len(target), model.C * data.weight
    total, none = 0.5 * model.nu * float(cost.sum()), np.zeros(n)
    loss = Loss(
        np.tile(target, 2),
        np.concatenate([none, -cost]),
        np.concatenate([cost, none]),
        np.zeros(2 * n),
        0.0,
    )
    epsilon = _best_tube(np.abs(target - model.predict(data.X)), data.weight, model.nu)
    sides = np.repeat([0, 1], n)
    duals = np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
    b = float(model.intercept_[0]) + epsilon * np.array([1.0, -1.0])
    function = FittedFunction(np.tile(np.arange(n), 2), loss, duals, b, sides, (total, -total))
    return _certify_by_gram(model, data, iter([function]))


def certify_one_class(model: Any, data: TrainingData) -> Certificate:
    """Certify a OneClassSVM."""
    beta, n = _duals_by_row(model, data), data.X.shape[0]
    none = np.zeros(n)
    total = (model.nu * float(data.weight.sum()),)
    loss = Loss(none, none, data.weight, none, 0.0)
    b = np.array([float(model.intercept_[0])])
    function = FittedFunction(np.arange(n), loss, beta, b, totals=total)
    return _certify_by_gram(model, data, iter([function]))


def _hinge_functions(model: Any, data: TrainingData) -> Iterator[FittedFunction]:
    codes = class_codes(model, data)
    cost = model.C * model.class_weight_[codes] * data.weight
    for pair in _class_pairs(model, data, cost, codes):
        loss = losses.hinge(pair.signs, pair.weight)
        yield FittedFunction(pair.rows, loss, pair.beta, pair.b)


def _nu_functions(model: Any, data: TrainingData) -> Iterator[FittedFunction]:
    for pair in _class_pairs(model, data, data.weight, class_codes(model, data)):
        total = 0.5 * model.nu * float(pair.weight.sum())
        sum_of_duals = float(np.abs(pair.beta).sum())
        rho = 2 * total / sum_of_duals if sum_of_duals > 0 else 0.0
        positive = pair.signs > 0
        none = np.zeros(len(pair.rows))
        low, high = np.where(positive, 0.0, -pair.weight), np.where(positive, pair.weight, 0.0)
        loss = Loss(none, low, high, none, 0.0)
        b = rho * pair.b + rho * np.array([-1.0, 1.0])
        groups = np.where(positive, 0, 1)
        yield FittedFunction(pair.rows, loss, rho * pair.beta, b, groups, (total, -total))


def _best_tube(errors: Floats, weight: Floats, nu: float) -> float:
    """Return the ε beyond which a share ν of the errors lies."""
    order = np.argsort(-errors)
    beyond = np.cumsum(weight[order])
    at = int(np.searchsorted(beyond, nu * beyond[-1]))
    return float(errors[order][min(at, len(order) - 1)])


# ------------------------------------------------------------------------- duals by class and row


class ClassPair(NamedTuple):
    """Two classes: the rows of their subproblem, labels ±1, weights (0: other class), β and b."""

    rows: Ints
    signs: Floats
    weight: Floats
    beta: Floats
    b: float


def _class_pairs(
    model: Any, data: TrainingData, weight: Floats, codes: Ints
) -> Iterator[ClassPair]:
    """Yield the solution of each pair of classes."""
    K = len(model.classes_)
    _refuse_altered(model, n_duals=K - 1, n_planes=K * (K - 1) // 2)
    rows_of_support = _support_rows(model, data)
    coefficients = to_dense(model.dual_coef_)
    owner = np.repeat(np.arange(K), model.n_support_)
    for (i, j), b in zip(combinations(range(K), 2), model.intercept_, strict=True):
        # The coefficients of class i against class j are in row j − 1, those of j against i in i.
        beta = np.zeros(len(codes))
        beta[rows_of_support[owner == i]] = coefficients[j - 1, owner == i]
        beta[rows_of_support[owner == j]] = coefficients[i, owner == j]
        # LIBSVM calls the first class positive; for two classes scikit-learn reverses that.
        sign = np.where(codes == (j if K == 2 else i), 1.0, -1.0)
        concerned = (codes == i) | (codes == j)
        # A row of another class has no loss here, but with a coefficient it contributes to w.
        rows = np.flatnonzero(concerned | (beta != 0))
        share = np.where(concerned, weight, 0.0)[rows]
        yield ClassPair(rows, sign[rows], share, beta[rows], float(b))


def _duals_by_row(model: Any, data: TrainingData) -> Floats:
    """Return the duals of a model with one plane, 0 for rows that are no support vectors."""
    _refuse_altered(model, n_duals=1, n_planes=1)
    beta = np.zeros(data.X.shape[0])
    beta[_support_rows(model, data)] = to_dense(model.dual_coef_)[0]
    return beta


def _refuse_altered(model: Any, *, n_duals: int, n_planes: int) -> None:
    """Raise unless the attributes fit together."""
    coefficients, support = to_dense(model.dual_coef_), np.asarray(model.support_)
    consistent = (
        coefficients.shape == (n_duals, len(support))
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


# ----------------------------------------------------------------------------------- certificates


def _certify_functions(
    model: Any, data: TrainingData, functions: Iterator[FittedFunction]
) -> Certificate:
    if isinstance(model.kernel, str) and model.kernel == "linear":
        return together([_certify_linear(data.X, function) for function in functions])
    return _certify_by_gram(model, data, functions)


def _certify_linear(X: Any, function: FittedFunction) -> Certificate:
    X = X[function.rows]
    point = Point(np.asarray(X.T @ function.beta), function.b, function.beta)
    return certify(Problem.linear(X, function.loss), point, keep_intercept=True)


def _certify_by_gram(
    model: Any, data: TrainingData, functions: Iterator[FittedFunction]
) -> Certificate:
    """Certify functions that share a Gram matrix."""
    kernel = _resolve_kernel(model, data.X)
    # Rows are widened as scikit-learn does; a given matrix stays, to show its own rounding.
    X = data.X if kernel.takes_gram else data.X.astype(np.float64, copy=False)
    gram = Gram(kernel, X)
    parts = []
    for function in functions:
        groups = function.groups
        if groups is None:
            groups = np.zeros(len(function.rows), dtype=np.int64)
        totals = np.asarray(function.totals, dtype=np.float64)
        problem = Problem.kernel(gram, function.loss, function.rows, groups, totals)
        point = Point(problem.by_row(function.beta), function.b, function.beta)
        parts.append(certify(problem, point, keep_intercept=True))
    return together(parts)


def _resolve_kernel(model: Any, X: Any) -> Kernel:
    if not isinstance(model.kernel, str):
        return as_kernel(model.kernel)
    # _gamma is the number that scikit-learn computed for gamma="scale" or "auto".
    gamma = getattr(model, "_gamma", model.gamma)
    kernel = as_kernel(model.kernel, gamma=gamma, degree=model.degree, coef0=model.coef0)
    return kernel.resolved(X)
