"""The λ-form of a machine: a factor of the penalty instead of one of the losses."""

from typing import Any

import clarabel  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import maxmargin as mm
from maxmargin._typing import Floats


def solve_lambda_form(
    F: Any, P: Any, y: Any, lam: float, share: float, squared: bool
) -> tuple[float, Floats, float]:
    """Minimise (λ/2) vᵀPv + share·Σ loss(y(Fv + b)) by Clarabel; return the minimum, v and b."""
    n, d = F.shape
    curve = np.concatenate([np.zeros(d + 1), np.full(n, 2 * share if squared else 0.0)])
    curvature = np.diag(curve)
    curvature[:d, :d] = lam * P
    slope = np.concatenate([np.zeros(d + 1), np.full(n, 0.0 if squared else share)])
    margins = np.hstack([y[:, None] * F, y[:, None], np.eye(n)])  # y f + ξ ≥ 1
    slacks = np.hstack([np.zeros((n, d + 1)), np.eye(n)])  # ξ ≥ 0
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    found = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(curvature)),
        slope,
        sp.csc_matrix(np.vstack([-margins, -slacks])),
        np.concatenate([-np.ones(n), np.zeros(n)]),
        [clarabel.NonnegativeConeT(2 * n)],
        options,
    ).solve()
    assert abs(found.obj_val - found.obj_val_dual) < 1e-8 * abs(found.obj_val), found.status
    return float(found.obj_val), np.array(found.x[:d]), float(found.x[d])


@pytest.mark.parametrize("lam", [0.02, 0.7, 30.0])
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_linear(loss: str, mean: bool, lam: float) -> None:
    X, y = mm.datasets.gaussians(60, variance=0.6, random_state=3)
    n = len(X)
    share = 1 / n if mean else 1.0
    minimum, w, b = solve_lambda_form(X, np.eye(2), y, lam, share, loss == "squared_hinge")
    model = mm.LinearSVC(loss=loss, C=1 / (n * lam) if mean else 1 / lam, tol=1e-10).fit(X, y)
    slack = model.slack_**2 if loss == "squared_hinge" else model.slack_
    assert_allclose(lam / 2 * (model.coef_**2).sum() + share * slack.sum(), minimum, rtol=1e-7)
    assert_allclose(model.certificate_.primal * lam, minimum, rtol=1e-7)
    assert_allclose(model.coef_[0], w, atol=1e-4 * np.abs(w).max())
    if loss == "squared_hinge":  # of the hinge an interval of b may be optimal
        assert_allclose(model.intercept_[0], b, rtol=1e-4)


@pytest.mark.parametrize("lam", [0.02, 0.7])
@pytest.mark.parametrize("mean", [False, True])
def test_kernel(mean: bool, lam: float) -> None:
    X, y = mm.datasets.circles(50, noise=0.3, random_state=1)
    n = len(X)
    K = mm.kernels.RBF(gamma=0.8).gram(X, X)
    minimum, v, _ = solve_lambda_form(K, K, y, lam, 1 / n if mean else 1.0, squared=False)
    model = mm.SVC(gamma=0.8, C=1 / (n * lam) if mean else 1 / lam, tol=1e-10).fit(X, y)
    assert_allclose(model.certificate_.primal * lam, minimum, rtol=1e-7)
    f = model.decision_function(X)
    assert_allclose(f - f.mean(), K @ v - (K @ v).mean(), atol=1e-3)
    slack = np.maximum(0, 1 - y * f)
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    value = lam / 2 * beta @ K @ beta + slack.sum() * (1 / n if mean else 1.0)
    assert_allclose(value, minimum, rtol=1e-7)
