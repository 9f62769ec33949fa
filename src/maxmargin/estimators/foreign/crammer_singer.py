"""LinearSVC(multi_class="crammer_singer"): one weight vector a class, one loss a row, no duals."""

from typing import Any

import numpy as np

from maxmargin.certificates import Certificate
from maxmargin.certificates.multiclass import certify_multiclass
from maxmargin.estimators.foreign.training import ENOUGH, Floats, Training, planes, positions
from maxmargin.problems.problem import Intercept, MulticlassProblem, Status
from maxmargin.solve import solve


def crammer_singer(model: Any, data: Training, factors: Floats) -> Certificate:
    """Certify a joint machine of all classes; factors are the weights of classes."""
    codes = positions(model, data)
    cost = model.C * factors[codes] * data.weight
    kept = cost > 0
    problem = MulticlassProblem(
        data.X[kept],
        codes[kept],
        len(model.classes_),
        cost[kept],
        Intercept.PENALIZED if model.fit_intercept else Intercept.NONE,
        model.intercept_scaling,
    )
    W, b = _weights(model)
    # Imported here: no other model needs this solver.
    from maxmargin.solvers.crammer_singer import SequentialDual

    joint: Any = problem  # solve is written for one plane, but never looks inside a problem
    solver: Any = SequentialDual()
    found = solve(joint, solver, tol=ENOUGH, max_time=data.max_time)
    if found.run.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return certify_multiclass(problem, W.T, b, found.beta)


def _weights(model: Any) -> tuple[Floats, Floats]:
    """Return the planes of all classes; of two, scikit-learn keeps only their difference."""
    K = len(model.classes_)
    if K > 2:
        return planes(model, K)
    w, b = planes(model, 1)
    half = np.array([[-0.5], [0.5]])  # at the optimum, and all along, the weights sum to 0
    return half * w, half[:, 0] * b
