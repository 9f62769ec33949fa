"""The vote of all separators, against what geometry says about it."""

import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import maxmargin as mm
from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.estimators.bayes.sampler import (
    Sampler,
    Walls,
    mixing,
    scattered,
    standard_errors,
)
from maxmargin.loops.records import Chain
from maxmargin.problems.problem import Status
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


def follow(walls: Walls, z: Floats, v: Floats, duration: float, budget: int = 10**6) -> Chain:
    """Follow one path from z with velocity v."""
    chain, out = Chain.at(z, len(walls)), np.empty((1, len(z)))
    products = walls.products(10**6)
    while chain.counts[0] == 0:
        loops.truncated_gaussian.follow(
            walls.normals, products, walls.cost, duration, 10**6, v[np.newaxis], np.zeros(1),
            chain, out, budget,
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


def test_a_wall_is_crossed_at_the_price_of_its_cost() -> None:
    """From z = 1 with velocity v, the wall is met with speed √(1 + v²)."""
    for cost in (0.1, 0.5, 1.0, 3.0):
        walls = Walls(np.ones((1, 1)), np.array([cost]))
        for v in (-0.2, -1.0, -3.0):
            there = follow(walls, np.ones(1), np.array([v]), np.pi / 2)
            assert (there.z[0] < 0) == (1 + v * v > 2 * cost)


def test_where_a_path_is_interrupted_does_not_matter() -> None:
    for seed in range(10):
        walls, z, v = room(seed, soft=seed % 2 == 0)
        whole, pieces = follow(walls, z, v, 1.5), follow(walls, z, v, 1.5, budget=1)
        for one, other in zip(whole, pieces, strict=True):
            assert_array_equal(one, other)


def test_without_walls_a_quarter_turn_leads_to_the_velocity() -> None:
    z, v = np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.5, 2.0])
    assert_allclose(follow(Walls.of(np.zeros((0, 3)), np.zeros(0)), z, v, np.pi / 2).z, v)


def test_a_path_that_meets_too_many_walls_is_not_taken() -> None:
    """A wedge of 10⁻³ radians: its paths are reflected thousands of times in a quarter turn."""
    walls = Walls.of(np.array([[0.0, 1.0], [1e-3, -1.0]]), np.full(2, np.inf))
    z = np.array([1.0, 5e-4])
    chain, out = Chain.at(z, 2), np.empty((1, 2))
    loops.truncated_gaussian.follow(
        walls.normals, NONE, walls.cost, np.pi / 2, 100, np.ones((1, 2)), np.zeros(1), chain, out,
        10**6,
    )  # fmt: skip
    assert chain.counts.tolist() == [1, 0, 101, 101, 1]
    assert_array_equal(out[0], z)


def test_corners_and_coincident_walls_keep_the_particle_in() -> None:
    """Paths straight into a corner, and walls that differ by rounding only."""
    exact = np.array([[1.0, 0.0], [0.0, 1.0]])
    for normals in (exact, np.vstack([exact, exact * (1 + 1e-16), exact + 1e-16])):
        walls = Walls.of(normals, np.full(len(normals), np.inf))
        there = follow(walls, np.array([1.0, 1.0]), np.array([-1.0, -1.0]), np.pi / 2)
        assert walls.clear(there.z)
        assert there.counts[2] <= 2 * len(walls)


def test_walls_are_merged_if_they_are_one() -> None:
    vectors = np.array([[2.0, 0.0], [1.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 0.0]])
    hard = Walls.of(vectors[[0, 1, 3, 5]], np.full(4, np.inf))
    assert sorted(map(tuple, hard.normals)) == [(0.0, 1.0), (1.0, 0.0)]
    soft = Walls.of(vectors, np.array([1.0, 2.0, 5.0, 1.0, 1.0, 9.0]))
    assert_array_equal(soft.normals, [[-1.0, 0.0]])
    assert_array_equal(soft.cost, [2.0])


def draw(walls: Walls, dim: int, most: int, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    centre = np.full(dim, 1.0)
    starts = [scattered(walls, centre, rng) for _ in range(4)]
    *_, last = Sampler(walls, starts, np.eye(dim), rng).iterates(most)
    return np.asarray(last.z)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_without_rows_the_vote_is_open(dim: int) -> None:
    """The sampler alone: the prior, N(0, I), of which half is on either side of any plane."""
    z = draw(Walls.of(np.zeros((0, dim)), np.zeros(0)), dim, 20_000).reshape(-1, dim)
    assert_allclose(z.mean(axis=0), 0, atol=0.03)
    assert_allclose(np.cov(z.T), np.eye(dim) if dim > 1 else 1.0, atol=0.05)
    x = np.random.default_rng(1).standard_normal((10, dim))
    assert_allclose((z @ x.T > 0).mean(axis=0), 0.5, atol=0.02)


def test_lengths_are_those_of_the_prior() -> None:
    """All walls pass through 0, so that ‖z‖ is χ-distributed whatever they cut off."""
    walls = Walls.of(np.array([[1.0, 0, 0], [-0.9, 1, 0], [0, -0.9, 1]]), np.full(3, np.inf))
    squares = (draw(walls, 3, 20_000) ** 2).sum(axis=2)
    assert squares.mean() == pytest.approx(3, abs=0.1)
    assert squares.var() == pytest.approx(6, abs=0.5)


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
    half = standard_errors(np.random.default_rng(0).integers(0, 2, (4, 5000, 1)) * 1.0, n)
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


def test_one_row() -> None:
    """P(x) = 1 − angle(x, y₁x₁)/π; the row is there twice, as {x₁: +, −x₁: −}."""
    rng = np.random.default_rng(0)
    for d in (1, 2, 3, 10):
        first, rows = rng.standard_normal(d), rng.standard_normal((20, d))
        model = Bayes(intercept_scaling=0, n_samples=10_000).fit([first, -first], [1, 0])
        cosine = rows @ first / np.linalg.norm(rows, axis=1) / np.linalg.norm(first)
        exact = 1 - np.arccos(np.clip(cosine, -1, 1)) / np.pi
        assert_allclose(model.predict_proba(rows)[:, 1], exact, atol=2e-2)


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
    for seed in range(4):
        X, y, weight, cost = noisy(seed, epsilon)
        model = Bayes(intercept_scaling=0, label_noise=epsilon, n_samples=20_000)
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


def test_standard_errors_are_honest_on_200_random_problems() -> None:
    every = [each for seed in range(216) for each in checks(seed)]
    assert len(every) >= 200
    found, exact, errors = (np.concatenate(part) for part in zip(*every, strict=True))
    off = np.abs(found - exact) / errors
    assert (off <= 4).mean() >= 0.99
    # Nor are they so large that they say nothing: where votes are open, they are about right.
    open_votes = (exact > 0.05) & (exact < 0.95)
    assert 0.8 < np.sqrt(np.mean(off[open_votes] ** 2)) < 1.2
