"""Gaussian bumps on an ever finer and wider grid tend to the RBF kernel."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import maxmargin as mm
from maxmargin.kernels import RBF, gaussian_bumps

LINE = np.random.default_rng(0).uniform(-1, 2, (20, 1))
PLANE = np.random.default_rng(1).uniform(-1, 1, (12, 2))


def error(X: Any, width: float, **grid: Any) -> float:
    """Return the largest difference from the limit."""
    K = gaussian_bumps(X, width, **grid).gram(X)
    return float(np.abs(K - RBF(gamma=1 / (4 * width**2)).gram(X)).max())


@pytest.mark.parametrize("X", [LINE, PLANE], ids=["line", "plane"])
@pytest.mark.parametrize("width", [0.3, 1.0, 2.0])
def test_the_limit_is_reached_to_rounding(X: Any, width: float) -> None:
    # ‖x − y‖² as ‖x‖² + ‖y‖² − 2x·y is off by some eps of ‖x‖², and the exponent by γ times that.
    rounding = 16 + float((X**2).sum(axis=1).max()) / width**2
    assert error(X, width) < rounding * np.finfo(np.float64).eps
    wrong = RBF(gamma=1 / (2 * width**2)).gram(X)  # that of one bump is another kernel
    assert np.abs(gaussian_bumps(X, width).gram(X) - wrong).max() > 0.01


@pytest.mark.parametrize("X", [LINE, PLANE], ids=["line", "plane"])
def test_a_finer_grid_is_faster_than_any_power(X: Any) -> None:
    """The error is e^(−π²s²/h²) up to a factor: h/√2 squares it."""
    d = X.shape[1]
    spacings = 2.4 / np.sqrt(2) ** np.arange(5)
    errors = np.array([error(X, 1.0, spacing=h) for h in spacings])
    leading = 2 * d * np.exp(-((math.pi / spacings) ** 2))
    assert (errors <= 1.3 * leading + 1e-14).all()
    assert (errors[:4] >= 0.2 * leading[:4]).all()  # the last is rounding
    orders = np.diff(np.log(errors[:4])) / np.diff(np.log(spacings[:4]))
    assert (np.diff(orders) > 1).all()  # there is no order of convergence: it grows
    assert orders[-1] > 8


def test_a_wider_grid_misses_ever_less() -> None:
    """Around a row on the border, half of what lies beyond the reach on either side is missing."""
    reaches = (0, 1, 2, 3, 4)
    errors = [error(LINE, 0.5, spacing=0.01, reach=reach) for reach in reaches]
    assert_allclose(errors, [math.erfc(reach) / 2 for reach in reaches], rtol=0.2)
    assert error(LINE, 0.5, spacing=0.01, reach=6) < 1e-14


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2]),
    st.floats(0.2, 3.0),
    st.floats(0.4, 4.0),
    st.floats(0.0, 6.0),
)
def test_the_bound_holds(seed: int, d: int, width: float, ratio: float, reach: float) -> None:
    X = np.random.default_rng(seed).uniform(-2, 3, (6, d))
    kernel = gaussian_bumps(X, width, spacing=ratio * width, reach=reach)
    error = np.abs(kernel.gram(X) - RBF(gamma=1 / (4 * width**2)).gram(X)).max()
    assert error <= kernel.phi.error_bound * (1 + 1e-9) + 1e-14  # type: ignore[attr-defined]


def test_the_bound_is_not_idle() -> None:
    kernel: Any = gaussian_bumps(LINE, 1.0, spacing=1.5)
    assert 0.3 * kernel.phi.error_bound < error(LINE, 1.0, spacing=1.5)
    assert gaussian_bumps(PLANE).phi.error_bound < 1e-15  # type: ignore[attr-defined]


def test_features_are_the_bumps() -> None:
    phi: Any = gaussian_bumps(PLANE, width=0.7, spacing=0.9, reach=2.0).phi
    centres = phi.centres
    assert_allclose(np.diff(phi.axes[0]), 0.9)
    for axis, x in zip(phi.axes, PLANE.T, strict=True):
        assert axis[0] <= x.min() - 1.4 + 1e-12
        assert axis[-1] >= x.max() + 1.4 - 1e-12
    squares = ((PLANE[:, None, :] - centres) ** 2).sum(axis=2)
    scale = (0.9**2 / (math.pi * 0.7**2)) ** (2 / 4)
    assert_allclose(phi(PLANE), scale * np.exp(-squares / (2 * 0.7**2)), atol=1e-15)
    assert repr(phi) == f"<{len(centres)} Gaussian bumps of width 0.7, 0.9 apart>"


def test_machines_see_no_difference() -> None:
    X, y = mm.datasets.circles(60, noise=0.2, random_state=0)
    bumps = mm.SVC(kernel=gaussian_bumps(X, 0.5), C=2.0, tol=1e-9).fit(X, y)
    limit = mm.SVC(kernel=RBF(gamma=1.0), C=2.0, tol=1e-9).fit(X, y)
    assert_allclose(bumps.certificate_.primal, limit.certificate_.primal, rtol=1e-8)
    new = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    assert_allclose(bumps.decision_function(new), limit.decision_function(new), atol=1e-4)
    # As explicit features they are those of the linear machine.
    features: Any = bumps.kernel_
    phi = features.phi
    linear = mm.LinearSVC(C=2.0, tol=1e-9).fit(phi(X), y)
    assert_allclose(linear.certificate_.primal, limit.certificate_.primal, rtol=1e-7)


def test_copies_and_kinds_of_rows() -> None:
    kernel: Any = gaussian_bumps(PLANE, 0.5)
    K = kernel.gram(PLANE)
    for other in (pickle.loads(pickle.dumps(kernel)), clone(kernel, safe=False)):
        assert_array_equal(other.gram(PLANE), K)
    assert_allclose(kernel.gram(sp.csr_array(PLANE)), K, atol=1e-15)
    assert_allclose(gaussian_bumps(PLANE.tolist(), 0.5).gram(PLANE), K, atol=1e-15)
    assert mm.check_kernel(kernel, PLANE).psd
    one = gaussian_bumps([[3.0]], 0.5)  # a box without length
    assert_allclose(one.gram([[3.0]]), 1.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"width": 0.0}, "width must be finite and above 0"),
        ({"spacing": -1.0}, "spacing must be finite and above 0"),
        ({"spacing": np.inf}, "spacing must be finite"),
        ({"reach": -0.5}, "reach must be finite and at least 0"),
        ({"width": 0.001}, r"bumps, and 1,000,000 are allowed; .* RBF\(gamma=2\.5e\+05\)"),
    ],
)
def test_what_is_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gaussian_bumps(PLANE, **parameters)


def test_rows_that_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        gaussian_bumps([[np.nan]])
    with pytest.raises(ValueError, match="the grid has 2 columns"):
        gaussian_bumps(PLANE).gram(LINE)
