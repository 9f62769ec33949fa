"""The cost up to which an ℓ1 penalty leaves no weight.

At w = 0 the loss pulls w along Xᵀβ, where β are the duals of the best constant; a weight leaves 0
where one entry of C·Xᵀβ exceeds 1.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from maxmargin._typing import Floats
from maxmargin.estimators.linear.linear_svc import LinearSVC
from maxmargin.problems.problem import Intercept, LinearProblem

_MET = 1e-9  # of the largest number for each row: a pull that is rounding


def l1_min_c(
    X: Any,
    y: Any,
    *,
    loss: str = "hinge",
    intercept: str = "free",
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
) -> float:
    """Return the C up to which ``LinearSVC(penalty="l1")`` has no weight but 0.

    For any larger C some weight is not 0 (a penalised intercept counts as a weight): a grid of C
    begins here. With penalty="elasticnet" it is l1_ratio times this C.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Labels; more than two classes are taken one against the rest.
    loss, intercept, fit_intercept, intercept_scaling :
        As in LinearSVC, with the same defaults.

    Returns
    -------
    float

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.separable(100, margin=0.25, random_state=0)
    >>> C = mm.l1_min_c(X, y)
    >>> for factor in (0.99, 1.01):
    ...     w = mm.LinearSVC(penalty="l1", C=factor * C).fit(X, y).coef_
    ...     print(bool(abs(w).max() > 1e-9))
    False
    True
    """
    model = LinearSVC(
        loss=loss, penalty="l1", intercept=intercept, fit_intercept=fit_intercept,
        intercept_scaling=intercept_scaling,
    )  # fmt: skip
    pull = max(_pull(problem, loss) for problem in model.formulate(X, y).problems)
    if pull == 0.0:
        raise ValueError(
            "No C gives a weight other than 0: with this loss no column tells the classes apart "
            "better than a constant."
        )
    return 1.0 / pull


def _pull(problem: LinearProblem, loss: str) -> float:
    """Return the largest entry of |Xᵀβ| for C = 1."""
    X, signs = problem.features.X, problem.loss.target
    free, slope = problem.intercept is Intercept.FREE, 2.0 if loss == "squared_hinge" else 1.0
    if free and loss == "hinge":
        return _least_pull(X, signs)
    beta = slope * (signs - signs.mean() if free else signs)
    pull = float(np.abs(X.T @ beta).max())
    return max(pull, abs(float(beta.sum())) * problem.features.constant)


def _least_pull(X: Any, signs: Floats) -> float:
    """Return the least max |Xᵀβ| of all duals of the best constant, which is ±1.

    Rows of the smaller class have β = y. Those of the larger one are at the kink of the hinge, so
    that any 0 ≤ yβ ≤ 1 with Σβ = 0 will do.
    """
    larger = signs == (1.0 if signs.sum() > 0 else -1.0)
    unit = float(abs(X).max()) or 1.0
    rows, pulled = sp.csr_array(X[larger] / unit).T, X[~larger].sum(axis=0) / unit
    edge, n = sp.csr_array(np.ones((X.shape[1], 1))), int(larger.sum())
    found = linprog(
        np.append(np.zeros(n), 1.0),
        sp.vstack([sp.hstack([rows, -edge]), sp.hstack([-rows, -edge])]),
        np.concatenate([pulled, -pulled]),
        np.append(np.ones(n), 0.0)[np.newaxis],
        [len(signs) - n],
        bounds=[(0.0, 1.0)] * n + [(0.0, None)],
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return unit * float(found.fun) if found.fun > _MET * len(signs) else 0.0
