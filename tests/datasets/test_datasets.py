"""Generators: deterministic, and what their docstrings promise holds for every seed."""

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from scipy.special import expit

from maxmargin import datasets

SEEDS = range(5)
OTHERS = {"Grammar", "digit_grammar", "flipped", "numbers"}  # do not draw rows and labels −1, +1
GENERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(datasets, name) for name in datasets.__all__ if name not in OTHERS
}
WITH_BALANCE: dict[str, Callable[..., Any]] = {
    name: GENERATORS[name]
    for name in ("gaussians", "circles", "moons", "spirals", "separable", "noise")
} | {"overlapping": partial(datasets.overlapping, bayes_error=0.1)}
Matrix = npt.NDArray[np.float64]


def linearly_separable(X: Matrix, y: npt.NDArray[np.int64]) -> bool:
    """Ask a linear program for some (w, b) with y (w·x + b) ≥ 1."""
    lifted = np.column_stack([X, np.ones(len(X))])
    found = linprog(
        np.zeros(lifted.shape[1]),
        A_ub=-y[:, None] * lifted,
        b_ub=-np.ones(len(X)),
        bounds=(None, None),
    )
    return bool(found.status == 0)


def gap_between_classes(X: Matrix, y: npt.NDArray[np.int64]) -> float:
    return float(cdist(X[y > 0], X[y < 0]).min())


@pytest.mark.parametrize("name", GENERATORS)
class TestEveryGenerator:
    def test_returns_rows_and_labels_in_random_order(self, name: str) -> None:
        X, y = GENERATORS[name](100)
        assert X.shape == (100, 2)
        assert X.dtype == np.float64
        assert y.dtype == np.int64
        assert set(y) == {-1, 1}
        assert np.count_nonzero(np.diff(y)) > 10

    def test_the_seed_decides_and_a_generator_is_advanced(self, name: str) -> None:
        first, again = (GENERATORS[name](60, random_state=7) for _ in range(2))
        np.testing.assert_array_equal(first[0], again[0])
        np.testing.assert_array_equal(first[1], again[1])
        assert not np.array_equal(first[0], GENERATORS[name](60, random_state=8)[0])
        rng = np.random.default_rng(7)
        np.testing.assert_array_equal(first[0], GENERATORS[name](60, random_state=rng)[0])
        assert not np.array_equal(first[0], GENERATORS[name](60, random_state=rng)[0])

    def test_arguments_are_checked(self, name: str) -> None:
        for too_few in (0, 1, -5):
            with pytest.raises(ValueError, match="n_samples must be at least"):
                GENERATORS[name](too_few)
        with pytest.raises(TypeError, match=r"n_samples must be a whole number, got 2\.5"):
            GENERATORS[name](2.5)
        with pytest.raises(TypeError, match="random_state='zero' is not valid"):
            GENERATORS[name](10, random_state="zero")
        with pytest.raises(ValueError, match="random_state=-1 is not valid"):
            GENERATORS[name](10, random_state=-1)


@pytest.mark.parametrize("name", WITH_BALANCE)
def test_balance_is_exact(name: str) -> None:
    _, y = WITH_BALANCE[name](200, balance=0.15)
    assert np.count_nonzero(y > 0) == 30
    with pytest.raises(ValueError, match="leaves a class empty"):
        WITH_BALANCE[name](10, balance=0.01)
    with pytest.raises(ValueError, match=r"balance must be .* got 1\.5"):
        WITH_BALANCE[name](10, balance=1.5)


@pytest.mark.parametrize("name", ["circles", "xor", "moons", "spirals"])
def test_noise_is_the_greatest_displacement(name: str) -> None:
    with pytest.raises(ValueError, match=r"noise must be .* got -0\.1"):
        GENERATORS[name](10, noise=-0.1)
    # Displacements are the last draws, so the same seed gives the same clean points.
    clean, _ = GENERATORS[name](2000, noise=0.0)
    noisy, _ = GENERATORS[name](2000, noise=0.25)
    moved = np.linalg.norm(noisy - clean, axis=1)
    assert 0.24 < moved.max() <= 0.25 + 1e-12


def test_gaussians_have_the_given_moments() -> None:
    means = np.array([[3.0, 0.0, 1.0], [-1.0, 2.0, 0.0]])
    X, y = datasets.gaussians(20_000, means, variance=0.25)
    for centre, sign in zip(means, [1, -1], strict=True):
        cloud = X[y == sign]
        np.testing.assert_allclose(cloud.mean(axis=0), centre, atol=0.03)
        np.testing.assert_allclose(np.cov(cloud.T), 0.25 * np.eye(3), atol=0.02)
    exact, y = datasets.gaussians(4, means, variance=0)
    np.testing.assert_array_equal(exact[y > 0][0], means[0])
    wrong: list[Any] = [[1, 2], [[1, 2]], [[1, 2], [1, np.nan]], np.zeros((3, 2))]
    for other in wrong:
        with pytest.raises(ValueError, match="means must be two finite points"):
            datasets.gaussians(10, other)


def bayes_rule_errors(X: Matrix, y: npt.NDArray[np.int64]) -> int:
    return int(np.count_nonzero((X.sum(axis=1) > 0) != (y > 0)))


@pytest.mark.parametrize("d", [1, 2, 30])
@pytest.mark.parametrize(
    ("bayes_error", "balance"),
    [(0.03, 0.5), (0.2, 0.5), (0.4, 0.5), (0.1, 0.25), (0.15, 0.8), (0.019, 0.02)],
)
def test_the_best_rule_for_overlapping_classes_errs_as_stated(
    bayes_error: float, balance: float, d: int
) -> None:
    n = 40_000
    X, y = datasets.overlapping(n, d, bayes_error, balance=balance)
    allowed = 4 * np.sqrt(n * bayes_error * (1 - bayes_error))
    assert abs(bayes_rule_errors(X, y) - n * bayes_error) < allowed
    # And the probability that the docstring states for a row is the truth.
    u = np.full(d, 1 / np.sqrt(d))
    means = [X[y == sign].mean(axis=0) for sign in (1, -1)]
    distance = float((means[0] - means[1]) @ u)
    # d + 1 sums that vanish if the stated probabilities are right.
    surprise = (y > 0) - expit(distance * (X @ u))
    assert np.abs(np.column_stack([X, np.ones(n)]).T @ surprise).max() < 5 * np.sqrt(n)


def test_overlap_of_any_size_is_found() -> None:
    X, y = datasets.overlapping(100, bayes_error=1e-300)
    assert bayes_rule_errors(X, y) == 0
    X, y = datasets.overlapping(100, bayes_error=0.5 - 1e-9)
    assert np.isfinite(X).all()
    with pytest.raises(ValueError, match=r"bayes_error must be below 0\.1, the share"):
        datasets.overlapping(100, bayes_error=0.1, balance=0.9)
    with pytest.raises(ValueError, match="bayes_error must be a finite number above 0, got 0"):
        datasets.overlapping(100, bayes_error=0)
    with pytest.raises(ValueError, match="n_features must be at least 1, got 0"):
        datasets.overlapping(100, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_circles_separate_by_distance_to_the_centre_only(seed: int) -> None:
    X, y = datasets.circles(200, (3, 2), noise=0.49, center=(5, -1), random_state=seed)
    squared = ((X - [5, -1]) ** 2).sum(axis=1)
    np.testing.assert_array_equal(squared > 2.5**2, y > 0)
    assert not linearly_separable(X, y)
    # [‖x‖², x] makes a circle linear, wherever its centre is.
    assert linearly_separable(np.column_stack([(X**2).sum(axis=1), X]), y)


def test_circles_check_their_shape() -> None:
    with pytest.raises(ValueError, match="radii must be two numbers"):
        datasets.circles(10, (1, 2, 3))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="radii must be a finite number of at least 0, got -1"):
        datasets.circles(10, (1, -1))
    with pytest.raises(ValueError, match="center must be a finite point"):
        datasets.circles(10, center=(0, 0, 0))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n_samples", [4, 5, 200])
def test_no_line_separates_xor_but_the_product_does(seed: int, n_samples: int) -> None:
    X, y = datasets.xor(n_samples, noise=0.7, random_state=seed)
    assert not linearly_separable(X, y)
    np.testing.assert_array_equal(X[:, 0] * X[:, 1] < 0, y > 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_moons_and_spirals_bend_but_do_not_touch(seed: int) -> None:
    for X, y in (
        datasets.moons(400, noise=0.2, random_state=seed),
        datasets.spirals(400, turns=2.5, noise=0.35, random_state=seed),
    ):
        assert not linearly_separable(X, y)
        assert gap_between_classes(X, y) > 0.1


def test_the_distances_stated_for_moons_and_spirals() -> None:
    assert gap_between_classes(*datasets.moons(4000, noise=0)) >= 0.5
    assert gap_between_classes(*datasets.spirals(4000, turns=2, noise=0)) >= 0.8
    with pytest.raises(ValueError, match="turns must be a finite number above 0, got 0"):
        datasets.spirals(10, turns=0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("d", [1, 2, 30])
def test_separable_attains_its_margin_exactly_and_no_plane_does_better(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    w, b = 10 * rng.standard_normal(d), float(rng.normal())
    X, y = datasets.separable(60, margin=0.3, w=w, b=b, balance=0.3, random_state=seed)
    unit = w / np.linalg.norm(w)
    margins = y * (X @ unit + b / np.linalg.norm(w))
    for sign in (1, -1):
        np.testing.assert_allclose(margins[y == sign].min(), 0.3, rtol=1e-12)
    # Two points of different classes at distance 2 · margin: no plane is further from both.
    np.testing.assert_allclose(gap_between_classes(X, y), 0.6, rtol=1e-12)


def test_separable_takes_its_width_from_either_argument() -> None:
    assert datasets.separable(10)[0].shape == (10, 2)
    assert datasets.separable(10, 5)[0].shape == (10, 5)
    assert datasets.separable(10, w=[1, 2, 3])[0].shape == (10, 3)
    with pytest.raises(ValueError, match="n_features=2 but w has 3 entries"):
        datasets.separable(10, 2, w=[1, 2, 3])
    with pytest.raises(ValueError, match="w must be one finite vector that is not zero"):
        datasets.separable(10, w=[0, 0])
    with pytest.raises(ValueError, match="margin must be a finite number above 0, got 0"):
        datasets.separable(10, margin=0)


@pytest.mark.parametrize("fraction", [0.0, 0.05, 0.1, 1.0])
def test_conflicts_are_counted(fraction: float) -> None:
    X, y = datasets.conflicts(200, fraction, 3)
    labels = defaultdict(list)
    for row, label in zip(X, y, strict=True):
        labels[row.tobytes()].append(label)
    twins = [both for both in labels.values() if len(both) == 2]
    assert len(twins) == round(100 * fraction)
    assert all(sum(both) == 0 for both in twins)
    assert max(map(len, labels.values())) <= 2
    single = np.array([len(labels[row.tobytes()]) == 1 for row in X])
    assert linearly_separable(X[single], y[single])
    assert linearly_separable(X, y) == (fraction == 0)


@pytest.mark.parametrize("labels", [[-1, 1], [0, 1], ["no", "yes"], [False, True]])
def test_flipped_swaps_exactly_the_share_asked_for(labels: list[Any]) -> None:
    X, y = datasets.gaussians(200)
    named = np.array(labels)[(y > 0).astype(int)]
    before = named.copy()
    same, dirty = datasets.flipped(X, named, 0.13)
    assert same is X
    assert np.count_nonzero(dirty != named) == 26
    assert set(dirty) == set(labels)
    np.testing.assert_array_equal(named, before)
    np.testing.assert_array_equal(dirty, datasets.flipped(X, named, 0.13)[1])
    np.testing.assert_array_equal(datasets.flipped(X, y, 1.0)[1], -y)
    with pytest.raises(ValueError, match="with 3 classes"):
        datasets.flipped(np.zeros((3, 1)), [1, 2, 3])
    with pytest.raises(ValueError, match=r"fraction must be .* got 2"):
        datasets.flipped(X, named, 2)


def test_noise_says_nothing_about_the_labels() -> None:
    X, y = datasets.noise(20_000, 4)
    assert np.abs(X.T @ y / len(y)).max() < 5 / np.sqrt(len(y))
    with pytest.raises(ValueError, match="n_features must be at least 1, got 0"):
        datasets.noise(10, 0)


# -- numbers ---------------------------------------------------------------------------------------


def toy_pool(n_states: int = 3) -> tuple[Matrix, npt.NDArray[np.int64]]:
    """Rows that say who they are: (digit, number of the row)."""
    y = np.arange(20 * n_states) % n_states
    return np.column_stack([y, np.arange(len(y))]).astype(float), y


@pytest.mark.parametrize("n_states", [2, 3, 4, 10])
@pytest.mark.parametrize("strength", [0.0, 0.7, 1.0])
def test_a_grammar_shows_only_in_pairs(n_states: int, strength: float) -> None:
    seen = set()
    for seed in SEEDS:
        start, transitions = datasets.digit_grammar(strength, n_states, random_state=seed)
        np.testing.assert_allclose(start.sum(), 1)
        np.testing.assert_allclose(transitions.sum(axis=1), 1)
        np.testing.assert_allclose(transitions.sum(axis=0), 1)  # all digits are equally frequent
        seen.add(transitions.tobytes())
        favourites = np.sort([0.5, 0.3, 0.2][:n_states])[::-1] / sum([0.5, 0.3, 0.2][:n_states])
        for row in (start, *transitions):
            expected = np.full(n_states, (1 - strength) / n_states)
            expected[: len(favourites)] += strength * favourites
            np.testing.assert_allclose(np.sort(row)[::-1], expected, atol=1e-15)
    assert len(seen) == 1 if strength == 0 else n_states == 2 or len(seen) > 1


def test_numbers_follow_their_grammar() -> None:
    """Counts of starts and of transitions are within four standard errors of the truth."""
    grammar = datasets.digit_grammar(0.8, random_state=1)
    _, y = datasets.numbers(3000, grammar, length=(2, 9), random_state=5)
    firsts = np.bincount([digits[0] for digits in y], minlength=10)
    pairs = np.zeros((10, 10))
    for digits in y:
        np.add.at(pairs, (digits[:-1], digits[1:]), 1)
    for counted, truth in [(firsts, grammar.start), *zip(pairs, grammar.transitions, strict=True)]:
        error = np.sqrt(counted.sum() * truth * (1 - truth))
        assert (np.abs(counted - counted.sum() * truth) < 4 * error).all()
    lengths = np.bincount([len(digits) for digits in y], minlength=10)
    assert lengths[:2].sum() == 0
    assert (np.abs(lengths[2:] - 3000 / 8) < 4 * np.sqrt(3000 / 8)).all()


def test_each_digit_of_a_number_is_a_row_of_its_class() -> None:
    X, y = datasets.numbers(50, datasets.digit_grammar(n_states=3), pool=toy_pool())
    start, transitions = [0.0, 1.0, 0.0], [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]]
    strict = datasets.Grammar(np.array(start), np.array(transitions))
    for digits in datasets.numbers(500, strict, length=6, pool=toy_pool())[1]:
        assert len(digits) == 6
        assert digits[0] == 1
        assert all(transitions[a][b] > 0 for a, b in pairwise(digits))
    for rows, digits in zip(X, y, strict=True):
        assert rows.dtype == np.float64
        assert digits.dtype == np.int64
        np.testing.assert_array_equal(rows[:, 0], digits)
    named = np.array(["one", "two", "zero"])[toy_pool()[1]]  # classes count in their order
    for sparse in (toy_pool()[0], sp.csr_array(toy_pool()[0])):
        same = datasets.numbers(50, datasets.digit_grammar(n_states=3), pool=(sparse, named))
        np.testing.assert_array_equal(np.concatenate(same[0]), np.concatenate(X))
        np.testing.assert_array_equal(np.concatenate(same[1]), np.concatenate(y))


@pytest.mark.parametrize("cut", [slice(30), np.arange(30), np.arange(60) < 30], ids=type)
def test_numbers_of_some_rows_share_no_row_with_those_of_others(cut: Any) -> None:
    grammar = datasets.digit_grammar(n_states=3)
    rest = np.setdiff1d(np.arange(60), np.arange(60)[cut])
    train, _ = datasets.numbers(200, grammar, pool=toy_pool(), rows=cut)
    test, _ = datasets.numbers(200, grammar, pool=toy_pool(), rows=rest, random_state=1)
    assert set(np.concatenate(train)[:, 1]) == set(range(30))
    assert set(np.concatenate(test)[:, 1]) == set(range(30, 60))


def test_the_seed_decides_all_but_the_grammar_of_numbers() -> None:
    first: Any
    again: Any
    first, again = datasets.numbers(20, random_state=7), datasets.numbers(20, random_state=7)
    other = datasets.numbers(20, random_state=8)
    for one, other_one in zip(first, again, strict=True):
        assert [len(each) for each in one] == [len(each) for each in other_one]
        np.testing.assert_array_equal(np.concatenate(one), np.concatenate(other_one))
    assert not np.array_equal(np.concatenate(first[1]), np.concatenate(other[1]))
    explicit = datasets.numbers(20, datasets.digit_grammar(), random_state=7)
    np.testing.assert_array_equal(np.concatenate(first[1]), np.concatenate(explicit[1]))


def test_noise_moves_no_digit_further_than_asked() -> None:
    clean, digits = datasets.numbers(500)
    noisy, same = datasets.numbers(500, noise=20)
    np.testing.assert_array_equal(np.concatenate(digits), np.concatenate(same))
    moved = np.linalg.norm(np.concatenate(noisy) - np.concatenate(clean), axis=1)
    assert 19.9 < moved.max() <= 20 + 1e-9
    # Evenly spread in a ball of 64 dimensions: half of them are within 20 · 0.5^(1/64).
    assert abs((moved < 20 * 0.5 ** (1 / 64)).mean() - 0.5) < 4 * 0.5 / np.sqrt(len(moved))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples must be at least 1"),
        ({"length": 0}, "length must be at least 1"),
        ({"length": (5, 4)}, r"length must be a pair \(least, most\), got \(5, 4\)"),
        ({"length": (1, 2, 3)}, "length must be a whole number or a pair"),
        ({"noise": -1}, "noise must be a finite number of at least 0"),
        ({"grammar": datasets.digit_grammar(n_states=4)}, r"digit_grammar\(n_states=10\)"),
        ({"grammar": (np.ones(2) / 2, np.ones((2, 3)) / 3)}, "K × K matrix"),
        ({"grammar": (np.ones(2), np.eye(2))}, "grammar must hold probabilities"),
        ({"rows": slice(1)}, "the pool has no row of digit"),
        ({"pool": (np.ones((3, 2)), [1, 2])}, "one class for each"),
    ],
)
def test_numbers_that_cannot_be_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        datasets.numbers(**arguments)
    with pytest.raises(ValueError, match="strength must be"):
        datasets.digit_grammar(1.5)
    with pytest.raises(TypeError, match="pool must be a pair"):
        datasets.numbers(pool=np.ones(3))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="grammar must be a pair"):
        datasets.numbers(grammar=0.5)  # type: ignore[arg-type]
