"""Duality: duals made feasible, and the best intercept for given scores."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.duality import best_intercept, within_groups
from maxmargin.problems.problem import Intercept


@st.composite
def random_losses(draw: st.DrawFn, whole: bool = False) -> Loss:
    """Return losses of either kind, in both of which b has an optimum."""
    n = draw(st.integers(2, 12))
    value = st.integers(-5, 5) if whole else st.floats(-5, 5).map(lambda v: round(v, 3))
    target = np.array(draw(st.lists(value, min_size=n, max_size=n)), dtype=float)
    signs = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    signs[:2] = -1.0, 1.0
    cost = np.array(draw(st.lists(st.sampled_from([0.5, 1.0, 4.0]), min_size=n, max_size=n)))
    epsilon = draw(st.sampled_from([0.0, 0.5, 2.0]))
    match draw(st.integers(0, 3)):
        case 0:
            return losses.hinge(signs, cost)
        case 1:
            return losses.squared_hinge(signs, cost)
        case 2:
            return losses.epsilon_insensitive(target, cost, epsilon)
    return losses.squared_epsilon_insensitive(target, cost, epsilon)


@given(data=st.data())
@settings(max_examples=200)
def test_no_intercept_is_better_than_the_best(data: st.DataObject) -> None:
    terms = data.draw(random_losses(whole=data.draw(st.booleans())))
    n = len(terms.target)
    scores = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n)), dtype=float)

    def total(b: float) -> float:
        return float(losses.values(terms, scores + b).sum())

    best = best_intercept(terms, scores, 0.0)
    residual = terms.target - scores
    kinks = np.unique([residual - terms.epsilon, residual + terms.epsilon])
    tried = np.concatenate([kinks, np.linspace(kinks.min() - 1, kinks.max() + 1, 101)])
    least = min(map(total, tried))
    assert total(best) <= least + 1e-9 * max(1.0, least)
    if not terms.quadratic.any():  # piecewise linear: the best ones are all between two kinks
        flat = [k for k in kinks if total(k) <= least + 1e-9]
        assert_allclose(best, 0.5 * (flat[0] + flat[-1]), atol=1e-12)


def test_rounding_of_kinks_does_not_mislead() -> None:
    """A kink (t − s) − ε that is computed anew from b and ε need not meet itself."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        scale = 10.0 ** rng.integers(0, 7)
        target, scores = scale * rng.normal(size=(2, 8))
        terms = losses.epsilon_insensitive(target, rng.random(8), 0.1)
        best = best_intercept(terms, scores, 0.0)
        kinks = np.concatenate([target - scores - 0.1, target - scores + 0.1])
        least = min(losses.values(terms, scores + b).sum() for b in kinks)
        assert losses.values(terms, scores + best).sum() <= least * (1 + 1e-9)


def test_the_middle_of_a_flat_stretch_is_taken() -> None:
    terms = losses.hinge(np.array([1.0, -1.0]), np.ones(2))
    assert best_intercept(terms, np.array([3.0, -2.0]), 0.0) == -0.5
    squared = losses.squared_hinge(np.array([1.0, -1.0]), np.ones(2))
    assert best_intercept(squared, np.array([3.0, -2.0]), 0.0) == -0.5


def feasible(terms: Any, beta: Any, intercept: Intercept) -> Any:
    free = intercept is Intercept.FREE
    return within_groups(terms, beta, np.full(len(beta), int(free) - 1), np.zeros(int(free)))


@given(data=st.data(), intercept=st.sampled_from(Intercept))
@settings(max_examples=200)
def test_duals_are_made_feasible(data: st.DataObject, intercept: Intercept) -> None:
    terms = data.draw(random_losses())
    n = len(terms.target)
    beta = np.array(data.draw(st.lists(st.floats(-9, 9), min_size=n, max_size=n)))
    beta[np.abs(beta) < 1e-200] = 0.0  # subnormal numbers have no 13 digits to agree in
    repaired, change = feasible(terms, beta, intercept)
    assert (repaired >= terms.low).all()
    assert (repaired <= terms.high).all()
    if intercept is Intercept.FREE:
        assert abs(repaired.sum()) <= 1e-13 * np.abs(repaired).sum() + 1e-300
    assert 0 <= change <= 1 + 1e-12
    again, rest = feasible(terms, repaired, intercept)
    assert_allclose(again, repaired, rtol=1e-13)
    assert rest <= 1e-13


@given(data=st.data(), intercept=st.sampled_from(Intercept))
@settings(max_examples=100)
def test_feasible_duals_stay_as_they_are(data: st.DataObject, intercept: Intercept) -> None:
    terms = data.draw(random_losses())
    size = float(data.draw(st.sampled_from([0.0, 0.25, 0.5])))
    beta = np.zeros(len(terms.target))
    beta[:2] = -size, size  # within every box, and in balance
    repaired, change = feasible(terms, beta, intercept)
    assert_array_equal(repaired, beta)
    assert change == 0


@pytest.mark.wide
def test_the_best_intercept_where_curves_meet_bounds() -> None:
    """A hinge with a rounded kink: quadratic, then linear where its dual is at its bound."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        y = rng.choice([-1.0, 1.0], 9)
        y[:2] = -1.0, 1.0
        loss = Loss(y, np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0), np.ones(9), 0.0)
        scores = 3 * rng.standard_normal(9)
        b = best_intercept(loss, scores, 0.0)
        grid = b + np.linspace(-1, 1, 2001)
        least = min(float(losses.values(loss, scores + other).sum()) for other in grid)
        assert float(losses.values(loss, scores + b).sum()) <= least + 1e-12
