"""‖w‖₁ + Σ cᵢ·hinge as a linear program in (p, q, b, ξ), w = p − q, solved by HiGHS.

It shares nothing with the library's own programs, which are dual ones.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog


def primal_optimum(X: Any, y: Any, cost: Any, intercept: str = "free", lift: float = 1.0) -> float:
    """Return the least ‖w‖₁ (+ |b|/lift if penalised) + Σ cost·max(0, 1 − y(w·x + b))."""
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    n, d = X.shape
    if intercept == "penalized":
        X, d = np.column_stack([X, np.full(n, lift)]), d + 1
    free = [y] if intercept == "free" else []
    signed = np.asarray(y)[:, np.newaxis] * X
    margins = np.column_stack([signed, -signed, *free, np.eye(n)])
    price = np.concatenate([np.ones(2 * d), np.zeros(len(free)), cost])
    bounds = [(0, None)] * (2 * d) + [(None, None)] * len(free) + [(0, None)] * n
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        price, A_ub=-margins, b_ub=-np.ones(n), bounds=bounds, method="highs", options=options
    )
    assert found.status == 0, found.message
    return float(found.fun)
