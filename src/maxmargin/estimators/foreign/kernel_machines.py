"""SVC and SVR: ½‖w‖² + C Σ cᵢℓᵢ in feature space, with a free intercept; the duals are kept."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from maxmargin.certificates import Certificate, certify, together
from maxmargin.estimators.foreign.training import (
    Fitted,
    Floats,
    Ints,
    Training,
    dense,
    positions,
)
from maxmargin.estimators.inputs import check_targets
from maxmargin.kernels import Kernel, as_kernel
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import KernelProblem, Problem

_SAME = 1e-6  # difference of rows and support vectors, relative to the largest, that is rounding


class Machine(NamedTuple):
    """One f = Σ βK(x, ·) + b and the losses it was fitted to, on certain rows."""

    rows: Ints
    loss: Loss
    beta: Floats
    b: Any  # one for each group of duals
    groups: Ints | None = None  # None: all are in one
    totals: Any = (0.0,)


def svc(model: Any, data: Training) -> Certificate:
    """Certify an SVC, every pair of classes by itself."""
    return _together(model, data, _hinges(model, data))


def svr(model: Any, data: Training) -> Certificate:
    """Certify an SVR."""
    refuse_altered(model, sides=1, planes=1)
    target = check_targets(data.y, data.X.shape[0])
    beta = np.zeros(len(target))
    beta[support(model, data)] = dense(model.dual_coef_)[0]
    terms = losses.epsilon_insensitive(target, model.C * data.weight, model.epsilon)
    machine = Machine(np.arange(len(target)), terms, beta, float(model.intercept_[0]))
    return _together(model, data, iter([machine]))


class Pair(NamedTuple):
    """Two classes: the rows that have a part, labels ±1, weights (0: of another class), β and b."""

    rows: Ints
    signs: Floats
    weight: Floats
    beta: Floats
    b: float


def pairs(model: Any, data: Training, weight: Floats, codes: Ints) -> Iterator[Pair]:
    """Yield what a classifier says of each pair of its classes."""
    K = len(model.classes_)
    refuse_altered(model, sides=K - 1, planes=K * (K - 1) // 2)
    rows_of_support = support(model, data)
    coefficients = dense(model.dual_coef_)
    owner = np.repeat(np.arange(K), model.n_support_)
    for (i, j), b in zip(combinations(range(K), 2), model.intercept_, strict=True):
        # The coefficients of class i against class j are in row j − 1, those of j against i in i.
        beta = np.zeros(len(codes))
        beta[rows_of_support[owner == i]] = coefficients[j - 1, owner == i]
        beta[rows_of_support[owner == j]] = coefficients[i, owner == j]
        # LIBSVM calls the first class positive; for two classes scikit-learn turns that round.
        sign = np.where(codes == (j if K == 2 else i), 1.0, -1.0)
        concerned = (codes == i) | (codes == j)
        # A row of another class has no loss here; with a coefficient it is part of w all the same.
        rows = np.flatnonzero(concerned | (beta != 0))
        yield Pair(rows, sign[rows], np.where(concerned, weight, 0.0)[rows], beta[rows], float(b))


def _hinges(model: Any, data: Training) -> Iterator[Machine]:
    codes = positions(model, data)
    cost = model.C * model.class_weight_[codes] * data.weight
    for pair in pairs(model, data, cost, codes):
        yield Machine(pair.rows, losses.hinge(pair.signs, pair.weight), pair.beta, pair.b)


def _together(model: Any, data: Training, machines: Iterator[Machine]) -> Certificate:
    if isinstance(model.kernel, str) and model.kernel == "linear":
        return together([_linear(data.X, machine) for machine in machines])
    return by_gram(model, data, machines)


def by_gram(model: Any, data: Training, machines: Iterator[Machine]) -> Certificate:
    """Certify machines that share a Gram matrix."""
    kernel = _kernel(model, data.X)
    # Rows are widened as scikit-learn does; a given matrix stays, to show its own rounding.
    X = data.X if kernel.takes_gram else data.X.astype(np.float64, copy=False)
    gram = Gram(kernel, X)
    return together([_certified(gram, machine) for machine in machines])


def _certified(gram: Gram, machine: Machine) -> Certificate:
    groups = machine.groups
    if groups is None:
        groups = np.zeros(len(machine.rows), dtype=np.int64)
    problem = KernelProblem(
        gram, machine.loss, machine.rows, groups, np.asarray(machine.totals, dtype=np.float64)
    )
    point = Fitted(machine.beta, machine.b, machine.beta)
    return certify(problem, point, keep_intercept=True)


def _linear(X: Any, machine: Machine) -> Certificate:
    X = X[machine.rows]
    w = np.asarray(X.T @ machine.beta)
    return certify(
        Problem(X, machine.loss), Fitted(w, machine.b, machine.beta), keep_intercept=True
    )


def _kernel(model: Any, X: Any) -> Kernel:
    if not isinstance(model.kernel, str):
        return as_kernel(model.kernel)
    # _gamma is the number that scikit-learn computed for gamma="scale" or "auto".
    gamma = getattr(model, "_gamma", model.gamma)
    kernel = as_kernel(model.kernel, gamma=gamma, degree=model.degree, coef0=model.coef0)
    return kernel.resolved(X)


def refuse_altered(model: Any, *, sides: int, planes: int) -> None:
    """Raise unless the attributes fit together."""
    coefficients, support = dense(model.dual_coef_), np.asarray(model.support_)
    consistent = (
        coefficients.shape == (sides, len(support))
        and len(model.intercept_) == planes
        and (not hasattr(model, "classes_") or np.sum(model.n_support_) == len(support))
        and np.isfinite(coefficients).all()
        and np.isfinite(model.intercept_).all()
    )
    if not consistent:
        raise ValueError(
            f"dual_coef_, support_, n_support_ and intercept_ of this {type(model).__name__} do "
            "not belong together: fit it again."
        )


def support(model: Any, data: Training) -> Ints:
    """Return which rows the coefficients belong to."""
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
        if _same(data.X[rows], model.support_vectors_):
            return rows
    raise ValueError(
        f"The support vectors of this {name} are not the rows of X that support_ names: certify "
        "needs the training rows, in the order in which they were fitted, and their weights."
    )


def _same(rows: Any, vectors: Any) -> bool:
    if rows.shape != vectors.shape:
        return False
    return rows.shape[0] == 0 or bool(abs(rows - vectors).max() <= _SAME * abs(vectors).max())
