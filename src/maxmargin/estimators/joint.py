"""Several classes learnt as one problem: the machine of Crammer and Singer."""

from typing import Any

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.geometry.inputs import row_products
from maxmargin.problems.problem import Intercept, MulticlassProblem


def joint_problem(
    X: Any, labels: Ints, cost: Floats, intercept: Intercept, lift: float
) -> tuple[MulticlassProblem, list[int]]:
    """Return the problem of the classes that have rows, and which these are."""
    present, index = np.unique(labels, return_inverse=True)
    problem = MulticlassProblem(X, index.astype(np.int64), len(present), cost, intercept, lift)
    return problem, present.tolist()


def joint_slacks(problem: MulticlassProblem, W: Floats, b: Floats) -> Floats:
    """Return the loss of each row but for its cost: 1 − the lead over the best rival, or 0."""
    claims = row_products(problem.X, W) + b + 1.0
    own = np.arange(len(claims)), problem.labels
    claims[own] -= 1.0
    return np.asarray(claims.max(axis=1) - claims[own])


def joint_margin(W: Floats) -> float:
    """Return the least distance from a boundary between two classes to a lead of 1."""
    between = W.T[:, np.newaxis] - W.T[np.newaxis]
    largest = float(np.linalg.norm(between, axis=2).max())
    return 1.0 / largest if largest > 0 else np.inf
