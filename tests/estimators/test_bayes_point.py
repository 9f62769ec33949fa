"""The vote of all separators, against what geometry says about it."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import maxmargin as mm
from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.errors import NotSeparableError
from maxmargin.estimators.bayes.sampler import (
    Walls,
    along_ellipse,
    along_line,
    mixing,
    standard_errors,
)
from maxmargin.loops.records import ChainState
from maxmargin.problems.problem import Status
from maxmargin.runtime import clock
from maxmargin.separability import Overlap
from tests.support.estimators import FED_INSEPARABLE_WITH_PROBABILITIES
from tests.support.version_space import arc, polygon, polygon_centre, two_rows

Bayes = mm.BayesPointClassifier
NONE = np.zeros((0, 0))


def separable(n: int, d: int, seed: int) -> tuple[Floats, Any]:
    """Return rows of both classes on either side of a random plane through the origin."""
    rng = np.random.default_rng(seed)
    w, X = rng.standard_normal(d), rng.standard_normal((max(n, 2), d))
    X[0] *= np.sign(X[0] @ w)
    X[1] *= -np.sign(X[1] @ w)
    return X, np.where(X @ w > 0, 1, 0)


def walls_of(X: Floats, y: Any) -> Floats:
    return X * np.where(y == 1, 1.0, -1.0)[:, np.newaxis]


# ------------------------------------------------------------------- paths


def follow(walls: Walls, z: Floats, v: Floats, duration: float, budget: int = 10**6) -> ChainState:
    """Follow one path from z with velocity v."""
    chain, out = ChainState.at(z, len(walls)), np.empty((1, len(z)))
    products = walls.products(10**6)
    while chain.counts[0] == 0:
        loops.truncated_gaussian.follow(
            walls.normals, products, walls.cost, duration, 10**6, v[np.newaxis], np.zeros(1),
            chain, out, 1, budget,
        )  # fmt: skip
    return chain


def room(seed: int, soft: bool) -> tuple[Walls, Floats, Floats]:
    """Return walls, a point and a velocity; hard walls have the point on their right side."""
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 8))
    normals, z, v = (rng.standard_normal(size) for size in ((int(rng.integers(0, 30)), dim),
                                                            dim, dim))  # fmt: skip
    if not soft:
        normals *= np.where(normals @ z > 0, 1.0, -1.0)[:, np.newaxis]
    cost = rng.exponential(1.0, len(normals)) if soft else np.full(len(normals), np.inf)
    return Walls.of(normals, cost), z, v


def energy(walls: Walls, z: Floats, v: Floats) -> float:
    wrong = walls.normals @ z < 0
    return float(0.5 * (z @ z + v @ v) + walls.cost[wrong].sum())


@pytest.mark.parametrize("soft", [False, True])
def test_a_path_keeps_its_energy_and_can_be_run_backwards(soft: bool) -> None:
    met = crossed = 0
    for seed in range(100):
        walls, z, v = room(seed, soft)
        there = follow(walls, z, v, 1.2)
        assert energy(walls, there.z, there.v) == pytest.approx(energy(walls, z, v), rel=1e-11)
        back = follow(walls, there.z, -there.v, 1.2)
        assert back.counts[2] == there.counts[2]
        # Each meeting with a wall may double an error.
        atol = 1e-13 * 4.0 ** min(there.counts[2], 16)
        assert_allclose(back.z, z, rtol=0, atol=atol)
        assert_allclose(back.v, -v, rtol=0, atol=atol)
        met += there.counts[2]
        crossed += there.counts[2] - there.counts[3]
    assert met > 200
    assert (crossed > 50) if soft else (crossed == 0)


def test_a_path_that_meets_too_many_walls_is_not_taken() -> None:
    """A wedge of 10⁻³ radians: its paths are reflected thousands of times in a quarter turn."""
    walls = Walls.of(np.array([[0.0, 1.0], [1e-3, -1.0]]), np.full(2, np.inf))
    z = np.array([1.0, 5e-4])
    chain, out = ChainState.at(z, 2), np.empty((1, 2))
    loops.truncated_gaussian.follow(
        walls.normals, NONE, walls.cost, np.pi / 2, 100, np.ones((1, 2)), np.zeros(1), chain, out,
        1, 10**6,
    )  # fmt: skip
    assert chain.counts.tolist() == [1, 0, 101, 101, 1, 101]
    assert_array_equal(out[0], z)


def test_corners_and_coincident_walls_keep_the_particle_in() -> None:
    """Paths straight into a corner, and walls that differ by rounding only."""
    exact = np.array([[1.0, 0.0], [0.0, 1.0]])
    for normals in (exact, np.vstack([exact, exact * (1 + 1e-16), exact + 1e-16])):
        walls = Walls.of(normals, np.full(len(normals), np.inf))
        there = follow(walls, np.array([1.0, 1.0]), np.array([-1.0, -1.0]), np.pi / 2)
        assert walls.clear(there.z)
        assert there.counts[2] <= 2 * len(walls)


def exact_draws(walls: Walls, count: int, rng: np.random.Generator) -> Floats:
    """Return draws of the prior, each kept with the probability that its walls leave it."""
    z = rng.standard_normal((40 * count, walls.normals.shape[1]))
    wrong = z @ walls.normals.T < 0
    kept = -np.log(rng.random(len(z))) > np.where(wrong, walls.cost, 0.0).sum(axis=1)
    assert kept.sum() >= count
    return np.asarray(z[kept][:count])


@pytest.mark.parametrize(
    ("move", "soft"),
    [("path", False), ("path", True), ("line", False), ("line", True), ("ellipse", True)],
)
def test_every_move_leaves_the_density_as_it_is(move: str, soft: bool) -> None:
    """Exact draws, each moved once, are exact draws."""
    rng = np.random.default_rng(5)
    normals = np.array([[1.0, 0.2, 0.0], [-0.5, 1.0, 0.3], [0.2, -0.3, 1.0]])
    cost = np.array([0.5, 1.0, 2.0]) if soft else np.full(3, np.inf)
    walls, shape = Walls.of(normals, cost), np.diag([1.0, 0.1, 3.0])
    before = exact_draws(walls, 3000, rng)
    after = np.empty_like(before)
    for i, z in enumerate(before):
        if move == "path":
            after[i] = follow(walls, z, rng.standard_normal(3), 0.9).z
        elif move == "ellipse":
            after[i] = along_ellipse(walls, z, rng)
        else:
            u = shape @ rng.standard_normal(3)
            after[i] = along_line(walls, z, u / np.linalg.norm(u), rng)
    others = exact_draws(walls, 3000, rng)  # not those before, which resemble those after
    assert not np.array_equal(after, before)
    for u in (*np.eye(3), *normals, np.array([1.0, 1.0, 1.0])):
        assert ks_2samp(after @ u, others @ u).pvalue > 1e-3


# ------------------------------------------------------------------- how far to trust draws


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_effective_draws_of_a_series_of_known_correlation(phi: float) -> None:
    """Of x ← φx + noise they are n(1 − φ)/(1 + φ)."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((4, 6000, 20))
    series = noise.copy()
    for t in range(1, series.shape[1]):
        series[:, t] = phi * series[:, t - 1] + noise[:, t]
    effective, r_hat = mixing(series[:, 1000:])
    assert effective.mean() == pytest.approx(20_000 * (1 - phi) / (1 + phi), rel=0.1)
    assert r_hat.max() < 1.02


def test_chains_that_disagree_are_seen() -> None:
    rng = np.random.default_rng(0)
    apart = rng.standard_normal((4, 1000, 1)) + np.array([0, 0, 0, 3.0])[:, None, None]
    effective, r_hat = mixing(apart)
    assert r_hat[0] > 1.3
    assert effective[0] < 20
    still = np.tile(np.array([0.0, 0.0, 1.0, 1.0])[:, None, None], (1, 100, 1))
    effective, r_hat = mixing(still)
    assert effective[0] == 1
    assert np.isinf(r_hat[0])


def test_a_unanimous_vote_has_a_standard_error() -> None:
    """p̃ = (k + 1)/(n + 2) with the effective number of draws n."""
    n = 400.0
    p = 1 / (n + 2)
    error = standard_errors(np.zeros((4, 250, 1)), n)
    assert error[0] == pytest.approx(np.sqrt(p * (1 - p) / n))
    half = standard_errors(
        np.random.default_rng(0).integers(0, 2, (4, 5000, 1)).astype(np.float64), n
    )
    assert half[0] == pytest.approx(0.5 / np.sqrt(20_000), rel=0.1)


# ------------------------------------------------------------------- closed forms


def test_two_features_arc() -> None:
    """The angle of w is uniform on the version space's arc, and the Bayes point is its middle."""
    X, y = np.array([[1.0, 0.2], [0.3, 1.0], [-1.0, 0.5]]), np.array([1, 1, 0])
    model = Bayes(intercept_scaling=0, n_samples=14_000).fit(X, y)
    assert model.effective_sample_size_ >= 1e4
    angles = np.arctan2(*model.samples_[0].T[::-1])
    normal = np.arctan2(*walls_of(X, y).T[::-1])
    low, high = normal.max() - np.pi / 2, normal.min() + np.pi / 2
    assert ((angles > low) & (angles < high)).all()
    within = np.sort((angles - low) / (high - low))
    assert np.abs(within - np.linspace(0, 1, len(within))).max() < 2e-2
    middle = np.array([np.cos((low + high) / 2), np.sin((low + high) / 2)])
    assert_allclose(model.coef_[0] / np.linalg.norm(model.coef_), middle, atol=2e-2)
    assert_allclose(arc(walls_of(X, y), np.inf, X[0])[1] / np.linalg.norm(
        arc(walls_of(X, y), np.inf, X[0])[1]), middle)  # fmt: skip


@pytest.mark.parametrize("n", [3, 6, 12])
def test_three_features_spherical_polygons(n: int) -> None:
    X, y = separable(n, 3, seed=n)
    walls = walls_of(X, y)
    model = Bayes(intercept_scaling=0, n_samples=16_000).fit(X, y)
    assert model.effective_sample_size_ >= 1e4
    rows = np.random.default_rng(0).standard_normal((30, 3))
    exact = [polygon(np.vstack([walls, x])) / polygon(walls) for x in rows]
    assert_allclose(model.predict_proba(rows)[:, 1], exact, atol=2e-2)
    centre = model.coef_[0] / np.linalg.norm(model.coef_)
    assert_allclose(centre, polygon_centre(walls), atol=2e-2)


KERNELS: list[Any] = [
    "linear", mm.kernels.RBF(0.3), mm.kernels.Polynomial(2, coef0=0.5), mm.kernels.Laplacian(0.2),
    2 * mm.kernels.RBF(1.0) + mm.kernels.Linear(), mm.kernels.FromFunction(lambda A, B: A @ B.T),
]  # fmt: skip


@pytest.mark.parametrize("constant", [0.0, 1.5])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: str(kernel)[:20])
def test_two_rows_with_any_kernel(kernel: Any, constant: float) -> None:
    rng = np.random.default_rng(3)
    X, rows = rng.standard_normal((2, 4)), rng.standard_normal((15, 4))
    model = Bayes(kernel=kernel, intercept_scaling=constant, n_samples=10_000).fit(X, [0, 1])
    found = model.predict_proba(rows)[:, 1]
    sign = np.array([-1.0, 1.0, 1.0])
    for x, p in zip(rows, found, strict=True):
        K = model.kernel_.gram(np.vstack([X, x])) + constant**2
        assert p == pytest.approx(two_rows(K * sign * sign[:, np.newaxis]), abs=2e-2)
    assert model.residual_ < 1e-12


def noisy(seed: int, epsilon: float) -> tuple[Floats, Any, Floats, Floats]:
    """Return rows with some labels wrong, and walls with their costs."""
    rng = np.random.default_rng(seed)
    X, y = separable(int(rng.integers(2, 12)), 2, seed)
    y[2:] ^= rng.random(len(y) - 2) < 0.3
    weight = rng.integers(1, 4, len(y)).astype(float)
    return X, y, weight, weight * np.log((1 - epsilon) / epsilon)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.4])
def test_label_noise_on_arcs(epsilon: float) -> None:
    """The density of the angle is a step function: εᵐ(1 − ε)ⁿ⁻ᵐ with m labels contradicted."""
    rows = np.random.default_rng(0).standard_normal((10, 2))
    for seed in range(3):
        X, y, weight, cost = noisy(seed, epsilon)
        model = Bayes(intercept_scaling=0, label_noise=epsilon, n_samples=10_000)
        model.fit(X, y, sample_weight=weight)
        assert model.effective_sample_size_ > 2000
        exact = np.array([arc(walls_of(X, y), cost, x)[0] for x in rows])
        found = model.predict_proba(rows)[:, 1]
        assert_allclose(found, epsilon + (1 - 2 * epsilon) * exact, atol=2e-2)


def test_label_noise_with_a_kernel_against_draws_from_the_prior() -> None:
    """Draws of f from the prior, weighed by the likelihood of the labels."""
    rng = np.random.default_rng(0)
    X, rows = rng.standard_normal((6, 2)), rng.standard_normal((8, 2))
    y, epsilon, kernel = np.array([0, 1, 0, 1, 1, 0]), 0.1, mm.kernels.RBF(0.5)
    K = kernel.gram(np.vstack([X, rows])) + 1e-9 * np.eye(14) + 0.7**2
    f = rng.standard_normal((400_000, 14)) @ np.linalg.cholesky(K).T
    right = ((f[:, :6] > 0) == (y == 1)).sum(axis=1)
    mass = (1 - epsilon) ** right * epsilon ** (6 - right)
    exact = mass @ (f[:, 6:] > 0) / mass.sum()
    model = Bayes(kernel=kernel, intercept_scaling=0.7, label_noise=epsilon, n_samples=20_000)
    found = model.fit(X, y).predict_proba(rows)[:, 1]
    assert_allclose(found, epsilon + (1 - 2 * epsilon) * exact, atol=1e-2)


def checks(seed: int) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield probabilities found, exact ones and standard errors of a random problem."""
    rng = np.random.default_rng(1000 + seed)
    kind = seed % 4
    n = int(rng.integers(2, 15))
    if kind == 0:  # one feature and an intercept, or two features
        constant = 0.0 if seed % 8 else float(rng.uniform(0.3, 3))
        X, y = separable(n, 2, seed)
        X[:, 1] = constant or X[:, 1]
        y = (X @ rng.standard_normal(2) > 0).astype(int)
        if len(set(y)) < 2:
            return
        rows = rng.standard_normal((10, 2))
        rows[:, 1] = constant or rows[:, 1]
        model = Bayes(intercept_scaling=constant, tol=0.02, random_state=seed)
        seen = 1 if constant else 2
        model.fit(X[:, :seen], y)
        exact = [arc(walls_of(X, y), np.inf, x)[0] for x in rows]
        rows = rows[:, :seen]
    elif kind == 1:
        X, y = separable(n, 3, seed)
        rows = rng.standard_normal((10, 3))
        model = Bayes(intercept_scaling=0, tol=0.02, random_state=seed).fit(X, y)
        walls = walls_of(X, y)
        exact = [polygon(np.vstack([walls, x])) / polygon(walls) for x in rows]
    elif kind == 2:
        X, y = rng.standard_normal((2, 5)), np.array([0, 1])
        rows = rng.standard_normal((10, 5))
        model = Bayes(kernel="rbf", gamma=0.1, tol=0.02, random_state=seed).fit(X, y)
        sign = np.array([-1.0, 1.0, 1.0])
        grams = [model.kernel_.gram(np.vstack([X, x])) + 1 for x in rows]
        exact = [two_rows(K * sign * sign[:, np.newaxis]) for K in grams]
    else:
        epsilon = float(rng.uniform(0.01, 0.4))
        X, y, weight, cost = noisy(seed, epsilon)
        rows = rng.standard_normal((10, 2))
        model = Bayes(intercept_scaling=0, label_noise=epsilon, tol=0.02, random_state=seed)
        model.fit(X, y, sample_weight=weight)
        exact = [epsilon + (1 - 2 * epsilon) * arc(walls_of(X, y), cost, x)[0] for x in rows]
    yield model.predict_proba(rows)[:, 1], np.array(exact), model.standard_error(rows)


@pytest.mark.wide
def test_standard_errors_are_honest_on_200_random_problems() -> None:
    every = [each for seed in range(216) for each in checks(seed)]
    assert len(every) >= 200
    found, exact, errors = (np.concatenate(part) for part in zip(*every, strict=True))
    off = np.abs(found - exact) / errors
    assert (off <= 4).mean() >= 0.99
    # Nor are they so large that they say nothing: where votes are open, they are about right.
    open_votes = (exact > 0.05) & (exact < 0.95)
    assert 0.8 < np.sqrt(np.mean(off[open_votes] ** 2)) < 1.2


# ------------------------------------------------------------------- what does not change the draws


SEPARABLE = [separable(25, 4, 0), separable(8, 20, 1)]  # in weight space, and by a factor


@pytest.mark.parametrize("data", SEPARABLE, ids=["many", "wide"])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_neither_order_nor_repetition_of_rows_changes_a_draw(data: Any, noise: float) -> None:
    X, y = data
    model = Bayes(label_noise=noise, n_samples=400)
    draws = clone(model).fit(X, y).samples_[0]
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    assert_array_equal(clone(model).fit(X[order], y[order]).samples_[0], draws)
    counts = rng.integers(0, 4, len(y))
    counts[[np.argmax(y), np.argmin(y)]] = 2
    repeated = rng.permutation(np.repeat(np.arange(len(y)), counts))
    weighted = clone(model).fit(X, y, sample_weight=counts).samples_[0]
    assert_array_equal(clone(model).fit(X[repeated], y[repeated]).samples_[0], weighted)
    if not noise:  # a function is right about a row or is not
        assert_array_equal(clone(model).fit(X, y, sample_weight=7.5 * counts).samples_[0], weighted)


@pytest.mark.parametrize("data", SEPARABLE, ids=["many", "wide"])
def test_sparse_rows_and_other_labels_are_the_same_problem(data: Any) -> None:
    X, y = data
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    y = np.where(y == 1, "yes", "no")
    model = Bayes(n_samples=400).fit(X, y)
    sparse = clone(model).fit(sp.csr_array(X), y)
    assert_array_equal(sparse.predict_proba(sp.csr_array(X)), model.predict_proba(X))
    assert_array_equal(sparse.predict(X), y)
    assert_array_equal(model.predict(X.astype(np.float32)), y)
    assert model.predict_proba(X).dtype == np.float64


# ------------------------------------------------------------------- the version space


@pytest.mark.parametrize(
    ("X", "y", "parameters"),
    [
        (*separable(40, 5, 2), {}),
        (*separable(200, 2, 3), {"intercept_scaling": 0}),
        (*separable(6, 30, 4), {}),
        (*separable(30, 3, 5), {"kernel": "rbf"}),
        (*separable(30, 3, 6), {"kernel": "poly", "coef0": 1.0}),
        (*separable(40, 1, 7), {"intercept_scaling": 0}),
        (np.repeat(separable(10, 3, 8)[0], 3, axis=0), np.repeat(separable(10, 3, 8)[1], 3), {}),
    ],
    ids=["linear", "narrow", "wide", "rbf", "poly", "half-line", "repeated"],
)  # fmt: skip
def test_every_draw_is_right_about_every_row(X: Floats, y: Any, parameters: Any) -> None:
    model = Bayes(n_samples=800, **parameters).fit(X, y)
    assert model.n_samples_ == 800
    expected = np.eye(2)[y]
    assert_array_equal(model.predict_proba(X), expected)
    assert_array_equal(model.predict(X), y)
    assert (model.standard_error(X) > 0).all()
    assert model.r_hat_ < 1.05
    assert model.rejected_ < 0.01


def test_a_long_and_thin_version_space_is_passed_through_lengthwise() -> None:
    """A wedge of 10⁻⁵ radians, in which paths alone take 10¹⁰ steps from end to end."""
    walls = np.array([[0.0, 1.0, 0.0], [1e-5, -1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, -1.0]])
    X, y = walls * [[1], [-1], [1], [-1]], np.array([1, 0, 1, 0])
    model = Bayes(intercept_scaling=0, n_samples=20_000).fit(X, y)
    rows = np.array([[-t, 0.0, 1.0] for t in (0.1, 0.2, 0.3, 0.4)])
    exact = [polygon(np.vstack([walls, x])) / polygon(walls) for x in rows]
    assert (np.abs(model.predict_proba(rows)[:, 1] - exact) < 4 * model.standard_error(rows)).all()
    assert model.standard_error(rows).max() < 0.03


def test_the_bayes_point_of_wide_rows_is_that_of_their_span() -> None:
    """Weight space and the factor of the Gram matrix are two ways to the same means."""
    X, y = separable(10, 4, 0)
    wide = X @ np.linalg.qr(np.random.default_rng(0).standard_normal((12, 4)))[0].T
    narrow = Bayes(n_samples=20_000).fit(X, y)
    other = Bayes(n_samples=20_000).fit(wide, y)
    assert narrow.landmarks_.shape[0] == 0
    assert other.landmarks_.shape == (5, 12)  # four columns and the constant
    rows = X + 0.3
    scores = rows @ narrow.coef_[0] + narrow.intercept_
    mapped = rows @ np.linalg.lstsq(X, wide, rcond=None)[0]
    assert_allclose(mapped @ other.coef_[0] + other.intercept_, scores, atol=0.1)
    assert_allclose(other.predict_proba(mapped), narrow.predict_proba(rows), atol=2e-2)


def test_functions_far_from_all_rows_are_open() -> None:
    X, y = separable(10, 2, 0)
    model = Bayes(kernel="rbf", gamma=1.0, intercept_scaling=0, n_samples=2000).fit(X, y)
    assert_allclose(model.predict_proba([[100.0, 100.0]]), 0.5, atol=1e-12)
    assert model.standard_error([[100.0, 100.0]])[0] < 1e-3


# ------------------------------------------------------------------- what is refused


def test_classes_that_meet_are_refused_with_a_witness_and_the_way_out() -> None:
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])
    with pytest.raises(NotSeparableError, match="Set label_noise") as caught:
        Bayes().fit(X, y)
    meet = caught.value.witness
    assert isinstance(meet, Overlap)
    lifted = np.hstack([X, np.ones((4, 1))]) * np.where(y == 1, 1, -1)[:, np.newaxis]
    assert_allclose(meet.weights @ lifted[meet.rows], 0, atol=1e-12)
    model = Bayes(label_noise=0.1, n_samples=4000).fit(X, y)
    assert_allclose(model.predict_proba([[0.5, 0.5]]), 0.5, atol=0.05)
    assert Bayes(kernel="rbf", n_samples=400).fit(X, y).score(X, y) == 1.0


def test_a_row_without_sides_cannot_be_separated_but_may_be_noise() -> None:
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 1.0]]), np.array([1, 1, 0])
    with pytest.raises(NotSeparableError, match="row 0 is zero, and a plane through the origin"):
        Bayes(intercept_scaling=0).fit(X, y)
    model = Bayes(intercept_scaling=0, label_noise=0.1, n_samples=2000).fit(X, y)
    assert_array_equal(model.predict_proba(X[:1]), [[0.5, 0.5]])  # f(0) = 0 whatever w is
    nothing = Bayes(intercept_scaling=0, label_noise=0.1, n_samples=400)
    for kernel in ("linear", "poly"):
        nothing.set_params(kernel=kernel).fit(np.zeros((3, 2)), y)
        assert_array_equal(nothing.predict_proba(np.zeros((1, 2))), [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": mm.kernels.Sigmoid(1.0)}, "not positive semidefinite"),
        ({"kernel": lambda A, B: -(A @ B.T)}, "not positive semidefinite"),
        ({"label_noise": 0.5}, "label_noise=0.5"),
        ({"label_noise": -0.1}, "label_noise=-0.1"),
        ({"intercept_scaling": -1}, "intercept_scaling=-1"),
        ({"n_samples": 0}, "n_samples=0"),
        ({"n_samples": "many"}, "n_samples='many'"),
        ({"n_chains": 1}, "n_chains=1"),
        ({"tol": 0}, "tol=0"),
        ({"memory": 10}, "GB are allowed"),
        ({"kernel": "rbf", "memory": 10}, "GB are allowed"),
    ],
)
def test_what_cannot_be_sampled_is_refused(parameters: Any, message: str) -> None:
    X, y = separable(12, 3, 0)
    with pytest.raises((ValueError, TypeError), match=message):
        Bayes(**parameters).fit(X, y)


def test_it_says_what_it_has_instead_and_what_it_has_not() -> None:
    with pytest.raises(TypeError, match="whatever the class weighs"):
        Bayes(class_weight="balanced")  # type: ignore[call-arg]
    X, y = separable(12, 3, 0)
    model = Bayes(kernel="rbf", n_samples=400).fit(X, y)
    assert not hasattr(model, "coef_")
    with pytest.raises(TypeError, match="minimises no objective"):
        mm.certify(model, X, y)


def test_common_checks_fail_only_because_classes_meet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(Bayes(tol=0.05), on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results
              if result["status"] == "failed"}  # fmt: skip
    assert sorted(failed) == FED_INSEPARABLE_WITH_PROBABILITIES
    for error in failed.values():
        chain = [error]
        while (before := chain[-1].__cause__ or chain[-1].__context__) is not None:
            chain.append(before)
        assert any(isinstance(each, NotSeparableError) and each.witness for each in chain)


@pytest.mark.full
def test_no_common_check_fails_if_labels_may_be_wrong() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(Bayes(label_noise=0.05, tol=0.05), on_fail=None, on_skip=None)
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []


# ------------------------------------------------------------------- several classes


def three_classes() -> tuple[Floats, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    centres = np.array([[4.0, 0.0], [-2.0, 3.5], [-2.0, -3.5]])
    return centres[y] + rng.uniform(-1, 1, (30, 2)), np.array(["a", "b", "c"])[y]


def test_pairs_of_classes_are_coupled() -> None:
    X, y = three_classes()
    model = Bayes(n_samples=2000).fit(X, y)
    assert_array_equal(model.predict(X), y)
    rows = np.random.default_rng(1).uniform(-4, 4, (50, 2))
    p = model.predict_proba(rows)
    assert_allclose(p.sum(axis=1), 1)
    assert_array_equal(model.predict(rows), model.classes_[p.argmax(axis=1)])
    assert_array_equal(model.decision_function(rows), p)
    error = model.standard_error(rows)
    assert error.shape == (50, 3)
    others = np.array([
        Bayes(n_samples=2000, random_state=seed).fit(X, y).predict_proba(rows) for seed in (1, 2, 3)
    ])  # fmt: skip
    assert (np.abs(others - p) < 4 * np.sqrt(2) * error + 1e-9).mean() > 0.99
    assert model.coef_.shape == (3, 2)
    assert len(model.samples_) == 3


def test_a_class_without_weight_is_never_predicted() -> None:
    X, y = three_classes()
    model = Bayes(n_samples=400).fit(X, y, sample_weight=(y != "b") * 1.0)
    p = model.predict_proba(X)
    assert_array_equal(p[:, 1], 0.0)
    assert set(model.predict(X)) == {"a", "c"}


def test_the_vote_agrees_with_its_probabilities() -> None:
    X, y = separable(10, 2, 0)
    for noise in (0.0, 0.2):
        model = Bayes(n_samples=404, label_noise=noise).fit(X, y)
        rows = np.random.default_rng(1).standard_normal((500, 2))
        p = model.predict_proba(rows)
        assert_array_equal(model.predict(rows), p.argmax(axis=1))
        assert_array_equal(model.decision_function(rows), p[:, 1] - p[:, 0])
        assert (p >= noise * (1 - 1e-15)).all()
        with np.errstate(divide="ignore"):
            assert_array_equal(model.predict_log_proba(rows), np.log(p))


# ------------------------------------------------------------------- other inputs


def test_kernel_values_and_objects_are_taken() -> None:
    X, y = separable(12, 3, 0)
    kernel = mm.kernels.RBF(0.2)
    rows = X[:4] + 0.1
    given = Bayes(kernel="precomputed", n_samples=400).fit(kernel.gram(X), y)
    assert_array_equal(given.predict(kernel.gram(X)), y)
    # Without K(x, x) of new rows the vote is that of functions in the span of the old ones.
    p = given.predict_proba(kernel.gram(rows, X))
    assert ((p >= 0) & (p <= 1)).all()
    words = ["a", "bb", "aab", "bbb", "aaa", "ab b"]
    letters = mm.kernels.FromFunction(
        lambda A, B: np.array([[sum(a.count(c) * b.count(c) for c in "ab") for b in B] for a in A]),
        on="objects",
    )
    tastes = [1, 0, 1, 0, 1, 0]
    assert_array_equal(
        Bayes(kernel=letters, n_samples=400).fit(words, tastes).predict(words), tastes
    )


# ------------------------------------------------------------------- how it ends


def test_auto_stops_at_the_standard_error_asked_for() -> None:
    X, y = separable(20, 3, 0)
    coarse, fine = (Bayes(tol=tol).fit(X, y) for tol in (0.03, 0.01))
    assert coarse.status_ is fine.status_ is Status.PRECISE
    assert coarse.standard_error_ <= 0.03
    assert fine.standard_error_ <= 0.01
    assert coarse.n_samples_ < fine.n_samples_
    with pytest.warns(ConvergenceWarning, match="max_samples"):
        early = Bayes(tol=1e-4, max_samples=400).fit(X, y)
    assert early.n_samples_ == 400
    assert early.status_ is Status.MAX_SAMPLES


@pytest.mark.parametrize("classes", [2, 3])
def test_a_callback_ends_the_fit(classes: int) -> None:
    X, y = three_classes() if classes == 3 else separable(20, 3, 0)
    seen = []

    def stop(progress: Any) -> bool:
        seen.append(progress.iterate)
        return len(seen) == 2

    model = Bayes(n_samples=10**6, callback=stop).fit(X, y)
    assert model.status_ is Status.CALLBACK
    assert [draws.count for draws in seen] == [400, 800]
    assert len(model.samples_[0]) == 800
    assert_array_equal(model.predict(X), y)


def test_ctrl_c_keeps_the_draws_made_so_far() -> None:
    X, y = separable(20, 3, 0)

    def interrupt(progress: Any) -> None:
        if progress.iterate.count >= 800:
            raise KeyboardInterrupt

    model = Bayes(n_samples=10**6, callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="800 draws"):
        model.fit(X, y)
    assert model.n_samples_ == 800
    assert model.status_ is Status.INTERRUPTED
    assert model.effective_sample_size_ > 100
    assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize("seconds", [10, 40])
def test_a_time_limit_leaves_what_there_is(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """A clock on which every compiled call takes a second, and nothing else takes any time."""
    X, y = separable(20, 3, 0)
    calls, compiled = [], loops.truncated_gaussian.follow

    def slow(*arguments: Any) -> Any:
        calls.append(1.0)
        return compiled(*arguments)

    monkeypatch.setattr(loops.truncated_gaussian, "follow", slow)
    monkeypatch.setattr(clock, "now", lambda: float(len(calls)))
    model = Bayes(n_samples=10**6, max_time=seconds)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)
    assert len(calls) <= seconds + 2
    assert model.status_ is Status.MAX_TIME
    assert_array_equal(model.predict(X), y)
    if seconds == 10:  # nothing but where the chains stand while they warm up
        assert model.n_samples_ == model.n_chains
        assert "too few to tell" in model.stop_reason_
        assert model.effective_sample_size_ == 1
        assert model.standard_error(X).min() > 0.1
    else:
        assert model.n_samples_ > model.n_chains
        assert model.standard_error(X).min() < 0.1
