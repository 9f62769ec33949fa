"""Losses: values, duals and Fenchel's inequality, of every loss."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from maxmargin.loops.records import Loss
from maxmargin.problems import losses

MARGINS: dict[str, Callable[[Any], Any]] = {
    "hinge": lambda z: np.maximum(0, z),
    "squared_hinge": lambda z: np.maximum(0, z) ** 2,
}


def drawn(seed: int) -> tuple[Any, Any, Any]:
    """Return 40 scores, signs and costs."""
    rng = np.random.default_rng(seed)
    signs, cost = rng.choice([-1.0, 1.0], 40), rng.choice([0.1, 1.0, 30.0], 40)
    return 2 * rng.standard_normal(40), signs, cost


@pytest.mark.parametrize("name", MARGINS)
@given(seed=st.integers(0, 2**32 - 1))
def test_fenchel(name: str, seed: int) -> None:
    scores, signs, cost = drawn(seed)
    loss = losses.CLASSIFYING[name](signs, cost)
    check_fenchel(loss, scores, cost * MARGINS[name](1 - signs * scores), seed)


@given(seed=st.integers(0, 2**32 - 1), quantile=st.floats(0.01, 0.99))
def test_fenchel_of_the_pinball_loss(seed: int, quantile: float) -> None:
    scores, target, cost = drawn(seed)
    loss, error = losses.pinball(target, cost, quantile), target - scores
    expected = cost * np.where(error > 0, quantile * error, (quantile - 1) * error)
    check_fenchel(loss, scores, expected, seed)


def check_fenchel(loss: Loss, scores: Any, expected: Any, seed: int) -> None:
    """Values are as expected; no β gives more, and the best ones give as much."""
    values = losses.values(loss, scores)
    assert_allclose(values, expected, rtol=1e-12, atol=1e-12)

    def gains(beta: Any) -> Any:
        return beta * (loss.target - scores) - 0.5 * loss.quadratic * beta**2

    best = losses.best_duals(loss, scores)
    assert ((best >= loss.low) & (best <= loss.high)).all()
    assert_allclose(gains(best), values, rtol=1e-12, atol=1e-12)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        beta = rng.choice([0.1, 1.0, 30.0], 40) * rng.standard_normal(40)
        beta = np.clip(beta, loss.low, loss.high)
        assert (gains(beta) <= values + 1e-12 * (1 + np.abs(values))).all()
