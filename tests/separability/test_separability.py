"""Separability: every answer carries a witness that holds, and agrees with a linear program."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.datasets import load_iris

import maxmargin as mm
from maxmargin.separability import Overlap
from maxmargin.separability.search import search
from maxmargin.solvers.min_norm_point import Hulls

Floats = npt.NDArray[np.float64]


def linear_program(X: Floats, positive: Any, intercept: bool = True) -> bool:
    """Ask HiGHS whether some (w, b) has y(w·x + b) ≥ 1."""
    sign = np.where(positive, 1.0, -1.0)[:, np.newaxis]
    rows = np.hstack([X, np.full((len(X), 1), float(intercept))]) * sign
    found = linprog(np.zeros(rows.shape[1]), -rows, -np.ones(len(rows)), bounds=(None, None))
    return bool(found.status == 0)


def verify(found: mm.Separation, X: Floats, positive: Any, intercept: bool = True) -> None:
    """Check the witness with nothing but its definition."""
    if found.separable:
        plane = found.witness
        assert isinstance(plane, mm.geometry.Hyperplane)
        f = X @ plane.w + plane.b
        assert (np.where(positive, f, -f) > 0).all()
        assert_allclose(found.margin, np.abs(f).min() / np.linalg.norm(plane.w), rtol=1e-9)
        assert found.mistake_bound < np.inf
    elif found.separable is False:
        meet = found.witness
        assert isinstance(meet, Overlap)
        assert (meet.weights >= 0).all()
        assert meet.residual <= 1e-9
        sign = np.where(positive[meet.rows], 1.0, -1.0)
        assert_allclose((meet.weights * sign) @ X[meet.rows], 0, atol=1e-9 * abs(X).max())
        if intercept:
            assert_allclose(meet.weights[sign > 0].sum(), 1.0)
            assert_allclose(meet.weights[sign < 0].sum(), 1.0)
            assert_allclose(meet.point, meet.weights[sign > 0] @ X[meet.rows[sign > 0]], atol=1e-9)
        assert len(meet.rows) <= X.shape[1] + 2


INTEGERS = st.tuples(
    st.integers(0, 10**6), st.integers(2, 14), st.integers(1, 4), st.integers(1, 4), st.booleans()
)


def check_integers(seed: int, n: int, d: int, size: int, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-size, size + 1, (n, d)).astype(float)
    positive = rng.integers(0, 2, n).astype(bool)
    if rng.random() < 0.5:
        positive = X @ rng.integers(-2, 3, d) > rng.integers(-1, 2)
    if positive.all() or not positive.any():
        return
    found = mm.separate(X, positive, intercept=intercept)
    assert found.separable is linear_program(X, positive, intercept)
    verify(found, X, positive, intercept)
    if found.separable is False:
        assert isinstance(found.witness, Overlap)
        assert found.witness.exact


@given(case=INTEGERS)
@settings(max_examples=300)
def test_integers_are_decided_exactly_as_a_linear_program_does(case: Any) -> None:
    """Touching hulls, duplicates with opposite labels and collinear points are common here."""
    check_integers(*case)


@pytest.mark.full
@given(case=INTEGERS)
@settings(max_examples=10_000)
def test_integers_in_thousands(case: Any) -> None:
    check_integers(*case)


@pytest.mark.wide
@given(
    seed=st.integers(0, 10**6), n=st.integers(4, 60), d=st.integers(1, 8),
    shift=st.sampled_from([0.0, 0.5, 1.0, 3.0]), wild=st.booleans(), intercept=st.booleans(),
)  # fmt: skip
@settings(max_examples=200)
def test_random_points_agree_with_a_linear_program(
    seed: int, n: int, d: int, shift: float, wild: bool, intercept: bool
) -> None:
    rng = np.random.default_rng(seed)
    positive = np.arange(n) % 2 == 0
    X = rng.standard_normal((n, d)) + shift * np.where(positive, 1, -1)[:, np.newaxis]
    scales = 10.0 ** rng.integers(-8, 9, d) if wild else np.ones(d)
    found = mm.separate(X * scales, positive, intercept=intercept)
    # Scaling columns changes no verdict, and the program does not bear bad scales.
    assert found.separable is linear_program(X, positive, intercept)
    if not wild:
        verify(found, X, positive, intercept)


def nearly_dependent(rng: np.random.Generator) -> tuple[Floats, Any]:
    """Return few points, one of which is a mean of others of the other class but for rounding."""
    d, kind = int(rng.integers(1, 4)), rng.integers(4)
    A = rng.normal(size=(rng.integers(max(d, 2), 6), d)) * 10.0 ** (rng.integers(-8, 9, d))
    if kind == 1:
        A = np.round(rng.normal(size=A.shape), 1)
    if kind == 2:
        A = rng.dirichlet(np.ones(d + 1), len(A))  # rows add up to 1, but for rounding
    positive = (rng.random(len(A)) < 0.4) & (np.arange(len(A)) > 0)
    mean = rng.dirichlet(np.ones((~positive).sum())) @ A[~positive]
    return np.vstack([A, mean]), np.append(positive, True)


def hulls_meet(X: Floats, positive: Any, intercept: bool) -> bool:
    """Say so in rational arithmetic: some d + 2 rows or fewer have weights that meet."""
    rows = [
        [Fraction(1), *(Fraction(x) if side else -Fraction(x) for x in [*row, float(intercept)])]
        for row, side in zip(X.tolist(), positive, strict=True)
    ]
    sizes = range(1, min(len(X), X.shape[1] + 2) + 1)
    return any(balanced(some) for m in sizes for some in combinations(rows, m))


def balanced(rows: Any) -> bool:
    """Say whether nonnegative weights of independent rows give (1, 0, …, 0), by elimination."""
    table = [[*column, Fraction(k == 0)] for k, column in enumerate(zip(*rows, strict=True))]
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(table)) if table[i][k]), None)
        if pivot is None:
            return False
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [value / table[k][k] for value in table[k]]
        for i in range(len(table)):
            if i != k and table[i][k]:
                table[i] = [a - table[i][k] * b for a, b in zip(table[i], table[k], strict=True)]
    weights = [line[-1] for line in table]
    return not any(weights[len(rows) :]) and min(weights) >= 0


def check_nearly_dependent(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        X, positive = nearly_dependent(rng)
        intercept = bool(rng.random() < 0.7)
        found = mm.separate(X, positive, intercept=intercept)
        if hulls_meet(X, positive, intercept):
            assert found.separable is False
            assert isinstance(found.witness, Overlap)
            assert found.witness.exact
            witnesses = found.witness.rows
            assert hulls_meet(X[witnesses], positive[witnesses], intercept)
        else:
            assert found.separable is not False
            with pytest.raises(mm.errors.NotSeparableError, match="undecided at this precision"):
                mm.HardMarginSVC(intercept="free" if intercept else "none").fit(X, positive)


def test_points_that_depend_but_for_rounding_are_judged_exactly() -> None:
    check_nearly_dependent(0, 30)


@pytest.mark.full
def test_many_points_that_depend_but_for_rounding() -> None:
    check_nearly_dependent(1, 5000)


@pytest.mark.parametrize("kind", ["shares", "levels", "mixtures"])
def test_dependent_columns_do_not_keep_overlaps_from_being_proved(kind: str) -> None:
    """Shares add up to 1 but for rounding; the levels of a variable do exactly."""
    rng = np.random.default_rng(0)
    X = rng.dirichlet(np.ones(20), 600)
    if kind == "levels":
        levels = np.eye(8)[rng.integers(0, 8, (600, 5))].reshape(600, 40)
        X = np.hstack([levels / levels.std(axis=0), rng.standard_normal((600, 3))])
    if kind == "mixtures":
        X = rng.standard_normal((600, 10)) @ rng.standard_normal((10, 30))
    positive = rng.random(600) < 0.4
    found = mm.separate(X, positive)
    assert found.separable is False
    assert isinstance(found.witness, Overlap)
    assert found.witness.exact
    verify(found, X, positive)


def test_the_margin_is_the_largest() -> None:
    for seed in range(10):
        X, y = mm.datasets.separable(200, n_features=5, margin=0.3, random_state=seed)
        found = mm.separate(X, y)
        assert found.separable
        assert_allclose(found.margin, 0.3, rtol=1e-6)
        assert mm.Perceptron().fit(X, y).updates_ <= found.mistake_bound


def test_nearly_touching_hulls_are_told_apart_or_left_open() -> None:
    rng = np.random.default_rng(0)
    for gap in 10.0 ** -np.arange(1.0, 18.0):
        X = rng.standard_normal((40, 3))
        X[:, 0] = np.abs(X[:, 0]) + gap
        X[20:, 0] *= -1
        X[0, 0], X[20, 0] = gap, -gap
        X[0, 1:] = X[20, 1:]
        found = mm.separate(X, np.arange(40) < 20)
        assert found.separable is not False
        assert found.separable or gap < 1e-11


def test_conflicting_duplicates_are_a_witness() -> None:
    X, y = mm.datasets.conflicts(200, fraction=0.02, random_state=0)
    found = mm.separate(X, y)
    assert found.separable is False
    verify(found, X, y > 0)


@pytest.mark.wide
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, np.float32])
def test_sparse_and_float32_agree_with_dense(form: Any) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((80, 30)) < 0.2, rng.integers(1, 5, (80, 30)), 0).astype(float)
        positive = X @ rng.standard_normal(30) > 0 if seed % 2 else rng.random(80) > 0.5
        dense, other = mm.separate(X, positive), mm.separate(form(X), positive)
        assert dense.separable is other.separable
        verify(other, X, positive)


def test_several_classes_are_taken_two_by_two() -> None:
    X, y = load_iris(return_X_y=True)
    found = mm.separate(X, y)
    assert found.separable is False
    assert {pair: one.separable for pair, one in found.pairs.items()} == {
        (0, 1): True,
        (0, 2): True,
        (1, 2): False,
    }
    assert isinstance(found.witness, Overlap)
    assert set(y[found.witness.rows]) == {1, 2}
    names = np.array(["a", "b", "c"])[y]
    assert mm.separate(X[:100], names[:100]).classes == ("a", "b")


def test_the_intercept_matters() -> None:
    X, y = np.array([[1.0], [2.0]]), [0, 1]
    assert mm.separate(X, y).separable is True
    without = mm.separate(X, y, intercept=False)
    assert without.separable is False
    verify(without, X, np.array([False, True]), intercept=False)


@pytest.mark.wide
def test_large_data_in_a_moment() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 20))
    w = rng.standard_normal(20)
    f = X @ w
    X, f = X[abs(f) > 0.01], f[abs(f) > 0.01]
    assert mm.separate(X, f > 0).separable is True
    flipped = f > 0
    flipped[:50] = ~flipped[:50]
    assert mm.separate(X, flipped).separable is False


def texts(n: int, d: int, seed: int) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Return sparse rows of unit length, fewer than columns, and labels by chance."""
    rng = np.random.default_rng(seed)
    where = (d * rng.random((n, 20)) ** 2).astype(int)
    X = sp.csr_array((np.ones(n * 20), (np.repeat(np.arange(n), 20), where.ravel())), shape=(n, d))
    X.sum_duplicates()
    return sp.csr_array(sp.diags_array(X.multiply(X).sum(axis=1) ** -0.5) @ X), rng.random(n) < 0.4


def test_wide_texts_are_decided() -> None:
    X, positive = texts(500, 3000, 0)
    found = mm.separate(X, positive)
    assert found.separable is True
    verify(found, X.toarray(), positive)
    again = sp.vstack([X, X[[7]]], format="csr")
    found = mm.separate(again, np.append(positive, not positive[7]))
    assert isinstance(found.witness, Overlap)
    assert_array_equal(found.witness.rows, [7, 500])
    # No row twice, but one that is the mean of others: their hulls meet in it.
    side = np.flatnonzero(positive)[:40]
    mean = sp.csr_array(np.full((1, 40), 1 / 40) @ X[side])
    found = mm.separate(sp.vstack([X, mean], format="csr"), np.append(positive, False))
    assert found.separable is not True
    if found.separable is False:
        verify(found, sp.vstack([X, mean]).toarray(), np.append(positive, False))


def test_hundreds_of_rows_that_meet_are_proved_to() -> None:
    """Too many for exact arithmetic: an enclosure does it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 200))
    positive = rng.random(1500) < 0.5
    found = mm.separate(X, positive)
    assert found.separable is False
    assert isinstance(found.witness, Overlap)
    assert found.witness.exact
    assert len(found.witness.rows) == 202
    verify(found, X, positive)


@pytest.mark.wide
def test_near_duplicates_do_not_mislead_the_products() -> None:
    """Rows that differ by less than products of rows can tell, in a corral too large for QR."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 400))
    X = np.vstack([X, X + 1e-9 * rng.standard_normal(X.shape)])
    positive = np.tile(rng.random(150) < 0.5, 2)
    found = mm.separate(X, positive)
    assert found.separable is True
    nearest, _ = search(Hulls.of(X, positive, True), accuracy=1e-10)
    assert_allclose(np.linalg.norm(nearest.point), 2 * found.margin, rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_hulls_agree_with_their_vectors(form: Any) -> None:
    rng = np.random.default_rng(2)
    X = np.where(rng.random((30, 12)) < 0.4, rng.standard_normal((30, 12)), 0.0)
    for intercept in (True, False):
        hulls = Hulls.of(form(X), rng.random(30) < 0.5, intercept)
        Z, weights = hulls.dense(), rng.random(30)
        assert_allclose(hulls.gram(hulls), Z @ Z.T, atol=1e-13)
        assert_allclose(hulls.squares(), (Z * Z).sum(axis=1), atol=1e-13)
        if Z.shape[1] == 12:
            assert_allclose(hulls.combination(weights), weights @ Z, atol=1e-13)
            assert_allclose(hulls.products(X[0]), Z @ X[0], atol=1e-13)


def test_bad_input() -> None:
    X = np.eye(3)
    with pytest.raises(ValueError, match="only one class: 1"):
        mm.separate(X, [1, 1, 1])
    with pytest.raises(ValueError, match="one label for each of the 3 rows"):
        mm.separate(X, [0, 1])
    with pytest.raises(ValueError, match="NaN"):
        mm.separate(X * np.nan, [0, 1, 1])
    assert_array_equal(mm.separate(np.zeros((2, 2)), [0, 1]).separable, False)
    assert "undecided" in str(mm.Separation(None, None, (0, 1)))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0, 1, np.nan, 1], r"NaN, infinity or None \(row 2\)"),
        ([None, 1, None, 1], r"NaN, infinity or None \(row 0\)"),
        (np.array([1, "a", 1, "a"], dtype=object), r"mixes labels that have no order \(int, str\)"),
    ],
)
@pytest.mark.parametrize(
    "ask", [mm.separate, mm.diagnose, mm.SVC().fit], ids=["separate", "diagnose", "fit"]
)
def test_labels_that_are_none(ask: Any, y: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ask(np.arange(8.0).reshape(4, 2), y)
