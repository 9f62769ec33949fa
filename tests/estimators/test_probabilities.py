"""Probabilities of classes."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from maxmargin._typing import Floats
from maxmargin.estimators.probabilities import couple_pairs


def _disagreement(p: Floats, r: Floats, pairs: list[tuple[int, int]]) -> float:
    terms = [((1 - q) * p[i] - q * p[j]) ** 2 for q, (i, j) in zip(r, pairs, strict=True)]
    return float(sum(terms))


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_coupled_pairs_minimise_the_disagreement(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    pairs = list(combinations(range(n_classes), 2))
    r = rng.uniform(0.02, 0.98, (5, len(pairs)))
    p = couple_pairs(r, pairs, n_classes)
    assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    for own, found in zip(r, p, strict=True):
        best = minimize(
            _disagreement, np.full(n_classes, 1 / n_classes), (own, pairs), method="SLSQP",
            bounds=[(0, 1)] * n_classes, options={"ftol": 1e-14},
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        )  # fmt: skip
        assert _disagreement(found, own, pairs) <= best.fun + 1e-12
        assert_allclose(found, best.x, atol=1e-4)


def test_consistent_pairs_give_their_probabilities_back() -> None:
    p = np.array([[0.5, 0.3, 0.15, 0.05]])
    pairs = list(combinations(range(4), 2))
    r = np.array([[p[0, i] / (p[0, i] + p[0, j]) for i, j in pairs]])
    assert_allclose(couple_pairs(r, pairs, 4), p, rtol=1e-9)


def test_a_class_in_no_pair_has_no_probability() -> None:
    p = couple_pairs(np.array([[0.25], [1.0]]), [(0, 2)], 3)
    assert_allclose(p, np.array([[0.25, 0.0, 0.75], [1.0, 0.0, 0.0]]), atol=1e-6)
