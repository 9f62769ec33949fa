"""QuantileSVR: shares of rows below the curve, other libraries' optima, limits and refusals."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.problems.losses import ON_EDGE
from maxmargin.problems.problem import Status
from tests.support import kernel_reference as ref

QUANTILES = [0.05, 0.25, 0.5, 0.9]


def drawn(seed: int, n: int = 80, d: int = 2) -> tuple[Floats, Floats]:
    """Return rows and targets whose spread grows with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    return X, np.sin(2 * X[:, 0]) + (0.2 + 0.2 * np.abs(X[:, -1])) * rng.standard_normal(n)


# ------------------------------------------------------------------- the theorem


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_quantile_lies_between_the_shares(kernel: str, quantile: float, weighted: bool) -> None:
    """Σ_{y<f} v ≤ q·Σv ≤ Σ_{y≤f} v, whatever C is; "on f" is within what KKT leaves open."""
    for seed, C in enumerate([1e-3, 1.0, 100.0]):
        X, y = drawn(seed)
        weight = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], len(y))
        weight = weight if weighted else np.ones(len(y))
        model = mm.QuantileSVR(quantile=quantile, C=C, kernel=kernel, tol=1e-9)
        model.fit(X, y, sample_weight=weight)
        f, near = model.predict(X), 1e-6 * y.std()
        below, at_most = weight[y < f - near].sum(), weight[y <= f + near].sum()
        total = quantile * weight.sum()
        assert below <= total * (1 + 1e-12)
        assert total <= at_most * (1 + 1e-12)
        assert C > 1 or at_most - below <= 0.3 * weight.sum()  # few rows are on f


def test_equal_targets_are_all_on_the_curve() -> None:
    X, _ = drawn(0)
    for quantile in QUANTILES:
        model = mm.QuantileSVR(quantile=quantile).fit(X, np.full(len(X), 3.0))
        assert_allclose(model.predict(X), 3.0, rtol=1e-12)
        assert model.certificate_.primal == 0.0


def test_a_tiny_cost_gives_the_quantile_of_the_targets() -> None:
    X, y = drawn(1, n=81)
    for quantile in QUANTILES:
        model = mm.QuantileSVR(quantile=quantile, C=1e-9, tol=1e-8).fit(X, y)
        expected = np.quantile(y, quantile, method="inverted_cdf")
        assert_allclose(model.predict(X), expected, atol=1e-5)


def test_the_other_tail_is_the_quantile_of_the_negated_targets() -> None:
    X, y = drawn(2)
    for quantile in QUANTILES:
        model = mm.QuantileSVR(quantile=quantile, C=5.0, tol=1e-10).fit(X, y)
        other = mm.QuantileSVR(quantile=1 - quantile, C=5.0, tol=1e-10).fit(X, -y)
        assert_allclose(other.predict(X), -model.predict(X), atol=1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_median_is_a_tube_without_width(kernel: str) -> None:
    X, y = drawn(3)
    median = mm.QuantileSVR(C=4.0, kernel=kernel, tol=1e-10).fit(X, y)
    tube = mm.SVR(C=2.0, epsilon=0.0, kernel=kernel, tol=1e-10).fit(X, y)
    assert_allclose(median.predict(X), tube.predict(X), atol=1e-7)
    assert_allclose(median.certificate_.primal, tube.certificate_.primal, rtol=1e-9)


# ------------------------------------------------------------------- other libraries


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("quantile", QUANTILES)
def test_the_linear_machine_has_clarabels_optimum(quantile: float, fit_intercept: bool) -> None:
    """As a kernel machine it is one of tests/estimators/test_kernel_properties.py."""
    for seed, C in enumerate([0.03, 1.0, 30.0]):
        X, y = drawn(seed, n=50, d=3)
        weight = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], len(y))
        options: dict[str, Any] = {"quantile": quantile, "C": C, "fit_intercept": fit_intercept}
        model = mm.QuantileSVR(kernel="linear", tol=1e-9, **options).fit(X, y, weight)
        machine = ref.stated("QuantileSVR", X @ X.T, y, weight, **options)
        below, above = ref.optimum(machine)
        assert above - below <= 1e-7 * above
        error = y - X @ model.coef_[0] - model.intercept_[0]
        loss = C * weight @ np.maximum(quantile * error, (quantile - 1) * error)
        primal = 0.5 * model.coef_[0] @ model.coef_[0] + loss
        assert_allclose(model.certificate_.primal, primal, rtol=1e-10)
        assert below * (1 - 1e-8) <= primal <= above * (1 + 1e-8)


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
def test_the_mean_loss_is_near_that_of_scikit_learns_quantile_regressor(
    quantile: float, C: float
) -> None:
    """Its w costs us ½‖w‖² more than nothing: so much, over nC, may we be behind, and the gap."""
    X, y = drawn(4, n=150, d=3)
    peer = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)
    model = mm.QuantileSVR(quantile=quantile, C=C, kernel="linear").fit(X, y)
    ours, theirs = (mean_pinball_loss(y, m.predict(X), alpha=quantile) for m in (model, peer))
    allowed = (0.5 * peer.coef_ @ peer.coef_ + model.certificate_.gap) / (len(y) * C)
    assert ours <= theirs + allowed + 1e-12
    assert ours >= theirs - 1e-9  # nothing linear is better than that


# ------------------------------------------------------------------- the model


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_slacks_kinds_and_duals_say_the_same(kernel: str) -> None:
    X, y = drawn(5)
    weight = np.random.default_rng(5).choice([0.5, 1.0, 2.0], len(y))
    model = mm.QuantileSVR(quantile=0.8, C=3.0, kernel=kernel, tol=1e-10).fit(X, y, weight)
    error = y - model.predict(X)
    assert_allclose(model.slack_, np.abs(error), atol=1e-6)
    kinds, near = model.support_kind_, ON_EDGE * y.std()
    rows, beta = model.support_, model.dual_coef_[0]
    assert_array_equal(kinds == "above", error[rows] > near)
    assert_array_equal(kinds == "below", error[rows] < -near)
    assert set(kinds) == {"above", "below", "on the curve"}
    high, low = 0.8 * 3.0 * weight[rows], -(1 - 0.8) * 3.0 * weight[rows]
    assert_allclose(beta[kinds == "above"], high[kinds == "above"])
    assert_allclose(beta[kinds == "below"], low[kinds == "below"])
    assert ((low <= beta) & (beta <= high)).all()
    cost = np.where(error > 0, 0.8, 0.2) * 3.0 * weight
    objective = 0.5 / model.margin_**2 + cost @ model.slack_
    assert_allclose(objective, model.certificate_.primal, rtol=1e-7)


def test_the_linear_kernel_uses_the_linear_machine() -> None:
    X, y = drawn(7)
    model = mm.QuantileSVR(quantile=0.7, kernel="linear", tol=1e-10).fit(X, y)
    by_gram = mm.QuantileSVR(quantile=0.7, kernel=1.0 * mm.kernels.Linear(), tol=1e-10).fit(X, y)
    assert model.solver_ == "newton"
    assert by_gram.solver_ != "newton"
    assert_allclose(model.predict(X), by_gram.predict(X), atol=1e-6)
    assert_allclose(model.predict(X), X @ model.coef_[0] + model.intercept_[0], rtol=1e-12)


@pytest.mark.parametrize("wrong", [0.0, 1.0, -0.1, 2, np.nan, np.inf])
def test_a_quantile_that_is_none_is_refused(wrong: float) -> None:
    X, y = drawn(9, n=20)
    with pytest.raises(ValueError, match=r"quantile=.* must be a number > 0 and < 1"):
        mm.QuantileSVR(quantile=wrong).fit(X, y)


@pytest.mark.parametrize("quantile", [1e-6, 1 - 1e-6])
def test_extreme_quantiles_bound_all_targets(quantile: float) -> None:
    X, y = drawn(10)
    model = mm.QuantileSVR(quantile=quantile, C=1e6, tol=1e-6).fit(X, y)
    assert model.status_ is Status.OPTIMAL
    error = y - model.predict(X)
    assert (error if quantile < 0.5 else -error).min() >= -1e-3


def test_what_is_proved_for_others_only_refuses_it() -> None:
    X, y = drawn(11)
    with pytest.raises(TypeError, match="QuantileSVR"):
        mm.regularization_path(X, y, mm.QuantileSVR())
    search = mm.SVCSearchCV(mm.QuantileSVR(), {"C": [0.1, 1.0]}, scoring="r2").fit(X, y)
    assert search.best_params_["C"] in (0.1, 1.0)
