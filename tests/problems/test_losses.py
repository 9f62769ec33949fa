"""Losses: values, duals and Fenchel's inequality, of every loss of classifiers."""

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


def drawn(name: str, seed: int) -> tuple[Loss, Any, Any, Any]:
    """Return losses of 40 rows, their scores, y and C."""
    rng = np.random.default_rng(seed)
    signs, cost = rng.choice([-1.0, 1.0], 40), rng.choice([0.1, 1.0, 30.0], 40)
    return losses.CLASSIFYING[name](signs, cost), 2 * rng.standard_normal(40), signs, cost


@pytest.mark.parametrize("name", MARGINS)
@given(seed=st.integers(0, 2**32 - 1))
def test_fenchel(name: str, seed: int) -> None:
    loss, scores, signs, cost = drawn(name, seed)
    values = losses.values(loss, scores)
    assert_allclose(values, cost * MARGINS[name](1 - signs * scores), rtol=1e-12, atol=1e-12)

    def gains(beta: Any) -> Any:
        return beta * (loss.target - scores) - 0.5 * loss.quadratic * beta**2

    best = losses.best_duals(loss, scores)
    assert ((best >= loss.low) & (best <= loss.high)).all()
    assert_allclose(gains(best), values, rtol=1e-12, atol=1e-12)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        beta = np.clip(5 * rng.standard_normal(40) * cost, loss.low, loss.high)
        assert (gains(beta) <= values + 1e-12 * (1 + np.abs(values))).all()
