"""Sums with bounds on their errors, against exact arithmetic."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.problems.rounding import passed


def dot(exact: list[Fraction], factors: Floats) -> Fraction:
    """Return the sum of products, exactly."""
    pairs = zip(exact, factors, strict=True)
    return sum((x * Fraction(float(factor)) for x, factor in pairs), Fraction(0))


def drawn(kind: str, n: int) -> tuple[Any, Floats]:
    """Return rows whose sums cancel, and a centre."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 5)) * 10.0 ** rng.integers(-6, 7, (n, 5))
    X[1::2] = -X[: n - n % 2 : 2] * (1 + 1e-9 * rng.standard_normal((n // 2, 5)))
    if kind == "sparse":
        X[rng.random(X.shape) < 0.4] = 0.0
        return sp.csr_array(X), np.zeros(5)
    return X.astype(kind), rng.standard_normal(5)


@pytest.mark.parametrize("n", [1, 7, 2500])
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_no_sum_is_off_by_more_than_its_bound(kind: str, n: int) -> None:
    X, centre = drawn(kind, n)
    rng = np.random.default_rng(1)
    W = rng.standard_normal((5, 2))
    beta = np.where(rng.random((n, 2)) < 0.7, rng.standard_normal((n, 2)), 0.0)
    exact = [[Fraction(float(x)) - Fraction(float(c)) for x, c in zip(row, centre, strict=True)]
             for row in (X.toarray() if kind == "sparse" else X)]  # fmt: skip
    scores, implied = passed(X, W, beta, centre)
    alone, other = passed(X, W[:, 1], beta[:, 1], centre)
    np.testing.assert_array_equal(alone.value, scores.value[:, 1])
    np.testing.assert_array_equal(other.error, implied.error[:, 1])
    for k in range(2):
        for i in range(0, n, max(1, n // 50)):
            off = dot(exact[i], W[:, k]) - Fraction(float(scores.value[i, k]))
            assert abs(off) <= scores.error[i, k]
        for j in range(5):
            column = [row[j] for row in exact]
            off = dot(column, beta[:, k]) - Fraction(float(implied.value[j, k]))
            assert abs(off) <= implied.error[j, k]
            assert implied.error[j, k] <= 1e-12 * implied.size[j, k] + 1e-290
