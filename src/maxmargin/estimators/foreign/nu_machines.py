"""NuSVC, NuSVR and OneClassSVM: machines with a share ν, whose duals have given sums.

scikit-learn divides the duals of a NuSVC by ρ and forgets ρ, and the ε of a NuSVR; their sums, and
the residuals, give both back.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from maxmargin.certificates import Certificate
from maxmargin.estimators.foreign.kernel_machines import (
    Machine,
    by_gram,
    pairs,
    refuse_altered,
    support,
)
from maxmargin.estimators.foreign.training import Floats, Training, dense, positions
from maxmargin.estimators.inputs import check_targets
from maxmargin.loops.records import Loss


def nu_svc(model: Any, data: Training) -> Certificate:
    """Certify a NuSVC, every pair of classes by itself; it knows no class weights."""
    return by_gram(model, data, _pairs(model, data))


def _pairs(model: Any, data: Training) -> Iterator[Machine]:
    codes = positions(model, data)
    for pair in pairs(model, data, data.weight, codes):
        total = 0.5 * model.nu * float(pair.weight.sum())
        sum_of_duals = float(np.abs(pair.beta).sum())
        rho = 2 * total / sum_of_duals if sum_of_duals > 0 else 0.0
        positive = pair.signs > 0
        none = np.zeros(len(pair.rows))
        loss = Loss(
            none,
            np.where(positive, 0.0, -pair.weight),
            np.where(positive, pair.weight, 0.0),
            none,
            0.0,
        )
        b = rho * pair.b + rho * np.array([-1.0, 1.0])
        groups = np.where(positive, 0, 1)
        yield Machine(pair.rows, loss, rho * pair.beta, b, groups, (total, -total))


def nu_svr(model: Any, data: Training) -> Certificate:
    """Certify a NuSVR, with the best tube around its function."""
    refuse_altered(model, sides=1, planes=1)
    target = check_targets(data.y, data.X.shape[0])
    n, cost = len(target), model.C * data.weight
    beta = np.zeros(n)
    beta[support(model, data)] = dense(model.dual_coef_)[0]
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
    machine = Machine(np.tile(np.arange(n), 2), loss, duals, b, sides, (total, -total))
    return by_gram(model, data, iter([machine]))


def _best_tube(errors: Floats, weight: Floats, nu: float) -> float:
    """Return the ε beyond which a share ν of the errors lies."""
    order = np.argsort(-errors)
    beyond = np.cumsum(weight[order])
    at = int(np.searchsorted(beyond, nu * beyond[-1]))
    return float(errors[order][min(at, len(order) - 1)])


def one_class(model: Any, data: Training) -> Certificate:
    """Certify a OneClassSVM."""
    refuse_altered(model, sides=1, planes=1)
    n = data.X.shape[0]
    beta, none = np.zeros(n), np.zeros(n)
    beta[support(model, data)] = dense(model.dual_coef_)[0]
    total = (model.nu * float(data.weight.sum()),)
    loss = Loss(none, none, data.weight, none, 0.0)
    b = np.array([float(model.intercept_[0])])
    return by_gram(model, data, iter([Machine(np.arange(n), loss, beta, b, totals=total)]))
