"""A fitted hard margin as problems with their solutions, so that they can be certified."""

from typing import Any

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.reductions import Task
from maxmargin.kernels import Linear
from maxmargin.problems import losses
from maxmargin.problems.gram import Gram
from maxmargin.problems.problem import Intercept, KernelProblem, Problem, Start


def hard_problems(
    model: Any, X: Any, kept: Ints, tasks: list[Task]
) -> list[tuple[Problem | KernelProblem, Start]]:
    """Return the problems of a model and its solutions.

    Parameters
    ----------
    model : HardMarginSVC
        Fitted.
    X : matrix or array of objects
        All rows.
    kept : ndarray
        The rows that have a weight.
    tasks : list of Task
        The binary problems of these.
    """
    beta = np.zeros((len(model.intercept_), X.shape[0]))
    linear = type(model.kernel_) is Linear
    if model.shape_fit_[0] == X.shape[0]:
        beta[:, model.support_] = model.dual_coef_
    elif not linear:
        raise ValueError(
            f"HardMarginSVC was trained on {model.shape_fit_[0]} rows, but X has {X.shape[0]}: "
            "certify needs the training rows, all of them."
        )
    rows = [kept if task.rows is None else kept[task.rows] for task in tasks]
    intercept = Intercept(model.intercept)
    if linear:
        return [
            _linear(model, X[part], task, beta[k, part], k)
            for k, (task, part) in enumerate(zip(tasks, rows, strict=True))
        ]
    gram = Gram(model.kernel_, X)
    free = int(intercept is Intercept.FREE)
    pairs: list[tuple[Problem | KernelProblem, Start]] = []
    for k, (task, part) in enumerate(zip(tasks, rows, strict=True)):
        loss, groups = losses.hard_margin(task.signs), np.full(len(part), free - 1)
        problem = KernelProblem(gram, loss, part, groups, np.zeros(free))
        pairs.append((problem, Start(beta[k, part], model.intercept_[[k]], beta[k, part])))
    return pairs


def _linear(model: Any, X: Any, task: Task, beta: Floats, k: int) -> tuple[Problem, Start]:
    problem = Problem(X, losses.hard_margin(task.signs), Intercept(model.intercept))
    return problem, Start(model.coef_[k], float(model.intercept_[k]), beta)
