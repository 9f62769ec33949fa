"""Diagnosis: every claim is checked against brute force, a linear program or scipy."""

import json
import pickle
import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binomtest, fisher_exact
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import cross_val_score

import maxmargin as mm
from maxmargin._typing import Floats, Ints
from maxmargin.diagnosis.families import cross_validate, inner_mistakes, make_folds
from maxmargin.diagnosis.inputs import DiagnosedTable, Sample, equal_rows
from maxmargin.diagnosis.learners import Candidate
from maxmargin.diagnosis.planes import find_conflicts, find_planes, give_up
from maxmargin.diagnosis.significance import (
    Metric,
    compare,
    has_levelled,
    names_classes,
    sign_test,
)
from maxmargin.runtime.clock import Clock, OutOfTimeError
from maxmargin.separability import Overlap


def separable(X: Floats, y: Ints) -> bool:
    """Ask HiGHS whether planes separate every two classes."""
    for i, j in combinations(np.unique(y), 2):
        pair = (y == i) | (y == j)
        sign = np.where(y[pair] == j, 1.0, -1.0)[:, np.newaxis]
        rows = np.hstack([X[pair], np.ones((int(pair.sum()), 1))]) * sign
        found = linprog(np.zeros(rows.shape[1]), -rows, -np.ones(len(rows)), bounds=(None, None))
        if found.status != 0:
            return False
    return True


def table(X: Any, y: Ints) -> DiagnosedTable:
    return DiagnosedTable(X, y, np.unique(y), None)


@given(
    n=st.integers(1, 30), d=st.integers(1, 3), seed=st.integers(0, 10**6), sparse=st.booleans(),
    single=st.booleans(),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_equal_rows_are_those_numpy_finds(
    n: int, d: int, seed: int, sparse: bool, single: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (n, d)) * rng.choice([-0.0, 0.5, 1.0])
    X = X.astype(np.float32 if single else np.float64)
    group = equal_rows(sp.csr_array(X) if sparse else X)
    same = (X[:, np.newaxis] == X[np.newaxis]).all(axis=2)
    assert ((group[:, np.newaxis] == group[np.newaxis]) == same).all()


def test_stored_zeros_are_zeros() -> None:
    X = sp.csr_array((np.array([0.0, 1.0, 1.0]), ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert X.nnz == 3
    assert equal_rows(X).tolist() == [0, 0]


@given(n=st.integers(1, 40), k=st.integers(2, 4), seed=st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_conflicts_force_as_many_errors_as_the_best_table_makes(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    group, y = rng.integers(0, 6, n), rng.integers(0, k, n)
    group = np.unique(group, return_inverse=True)[1]
    found = find_conflicts(group, y)
    best = sum(np.bincount(y[group == g]).max() for g in np.unique(group))
    assert found.errors == n - best
    listed = {tuple(rows) for rows in found.groups}
    assert listed == {
        tuple(np.flatnonzero(group == g))
        for g in np.unique(group)
        if len(np.unique(y[group == g])) > 1
    }
    assert found.rows == sum(map(len, found.groups))


@given(wins=st.integers(0, 60), losses=st.integers(0, 60))
@settings(deadline=None)
def test_mid_p_lies_between_two_exact_tests(wins: int, losses: int) -> None:
    found = sign_test(np.array([float(wins)]), np.array([float(losses)]), np.ones(1))
    if wins + losses == 0:
        assert found == 1.0
        return
    exact = binomtest(wins, wins + losses, alternative="greater").pvalue
    next_one = binomtest(min(wins + 1, wins + losses), wins + losses, alternative="greater").pvalue
    beyond = next_one if wins < wins + losses and losses > 0 else 0.0
    assert found == pytest.approx((exact + beyond) / 2, rel=1e-9, abs=1e-300)


def test_two_thresholds_of_one_score_are_not_told_apart_by_luck() -> None:
    """With 30 positive rows of 600, thresholds on both sides of the best are equally good."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [570, 30])
    metric = Metric.of("balanced_accuracy", y)
    found = 0
    for _ in range(1000):
        f = rng.standard_normal(600) + 2.0 * y
        early, late = (f > 0.8) == y, (f > 1.2) == y
        found += compare(("late", late), ("early", early), metric).p_value < 0.05
        found += compare(("early", early), ("late", late), metric).p_value < 0.05
    assert found <= 100  # of 2000
    right = rng.random(600) < np.where(y == 1, 0.9, 0.8)
    worse = rng.random(600) < np.where(y == 1, 0.5, 0.7)
    assert compare(("a", right), ("b", worse), metric).significant


def test_comparisons_count_discordant_rows_only() -> None:
    right = np.array([1, 1, 1, 0, 0], dtype=bool)
    rival = np.array([1, 0, 0, 1, 0], dtype=bool)
    metric = Metric.of("accuracy", np.array([0, 1, 0, 1, 0]))
    found = compare(("a", right), ("b", rival), metric, tests=3)
    assert (found.wins, found.losses) == (2, 1)
    assert found.lead == pytest.approx(0.2)
    assert found.p_value == min(1.0, 3 * sign_test(np.array([2.0]), np.array([1.0]), np.ones(1)))


def test_metrics_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [50, 8, 20])
    predicted = np.where(rng.random(78) < 0.7, y, rng.integers(0, 3, 78))
    right = predicted == y
    assert Metric.of("accuracy", y).score(right) == pytest.approx(accuracy_score(y, predicted))
    balanced = Metric.of("balanced_accuracy", y)
    assert balanced.score(right) == pytest.approx(balanced_accuracy_score(y, predicted))
    for metric in (balanced, Metric.of("accuracy", y)):
        low, high = metric.interval(right)
        assert low < metric.score(right) < high


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy"])
def test_intervals_cover_the_truth(name: str) -> None:
    """Nineteen times of twenty, give or take; each class has its own share of right answers."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [270, 30])
    metric = Metric.of(name, y)
    share = np.array([0.9, 0.7])
    truth = float((metric.weight * np.bincount(y)) @ share)
    covered = 0
    for _ in range(400):
        low, high = metric.interval(rng.random(300) < share[y])
        covered += low <= truth <= high
    assert 0.92 < covered / 400 <= 0.99


@pytest.mark.parametrize("classes", [2, 3])
def test_chance_is_that_of_fishers_exact_test(classes: int) -> None:
    rng = np.random.default_rng(classes)
    y = np.arange(60) % classes
    predicted = np.where(rng.random(60) < 0.3, y, rng.integers(0, classes, 60))
    own, called = y[:, np.newaxis] == np.unique(y), predicted[:, np.newaxis] == np.unique(y)
    tables = [
        [[(a & b).sum(), (~a & b).sum()], [(a & ~b).sum(), (~a & ~b).sum()]]
        for a, b in zip(own.T, called.T, strict=True)
    ]
    least = min(fisher_exact(found, alternative="greater").pvalue for found in tables)
    expected = min(1.0, 4 * least * (1 if classes == 2 else classes))
    assert names_classes("", predicted, y, tests=4).p_value == pytest.approx(expected)


def test_few_hits_are_no_signal() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [552, 48])
    found = 0
    for _ in range(300):
        found += names_classes("", (rng.random(600) < 0.03).astype(int), y).p_value < 0.005
    assert found <= 5


class Memory:
    """Predicts the class that a setting names, and notes what it was given."""

    def __init__(self) -> None:
        self.calls: list[tuple[set[int], set[int]]] = []

    def __call__(self, _: Sample, settings: Any, train: Ints, test: Ints) -> list[Floats]:
        self.calls.append((set(train.tolist()), set(test.tolist())))
        return [np.tile(np.arange(2.0) == setting.get("C"), (len(test), 1)) for setting in settings]


def sampled(metric: Metric, folds: Ints, over: Callable[[], bool] = bool) -> Sample:
    """Return rows without columns."""
    return Sample(np.zeros((len(folds), 0)), metric.y, folds, metric, over=over)


BOTH = [Candidate("linear", (("C", 0),)), Candidate("linear", (("C", 1),))]


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy"])
def test_no_fold_has_a_part_in_what_predicts_it(name: str) -> None:
    """Flip all labels of one fold: what is predicted for its rows stays the same."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    folds = make_folds(y, np.arange(60), rng)
    weight = Metric.of(name, y).weight
    for k in range(5):
        other = np.where(folds == k, 1 - y, y)
        first, second = (
            cross_validate("", BOTH, sampled(Metric(name, labels, weight), folds), Memory())
            for labels in (y, other)
        )
        assert (first.scores[folds == k] == second.scores[folds == k]).all()


def test_training_and_test_rows_are_apart_and_right_answers_are_counted() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    folds = make_folds(y, np.arange(60), rng)
    memory = Memory()
    found = inner_mistakes(memory, BOTH, sampled(Metric.of("accuracy", y), folds))
    assert all(not train & test for train, test in memory.calls)
    shares = np.array([(y == 0).mean(), (y == 1).mean()])
    assert found.sum(axis=(0, 2)).tolist() == (2 * len(y) * (1 - shares)).tolist()


def test_when_the_time_runs_out_there_is_no_answer_rather_than_another_one() -> None:
    y = np.arange(50) % 2
    folds = make_folds(y, np.arange(50), np.random.default_rng(0))
    metric = Metric.of("accuracy", y)
    answers = iter([False] * 3 + [True])
    soon, at_once = (sampled(metric, folds, over) for over in (lambda: next(answers), lambda: True))
    with pytest.raises(OutOfTimeError):
        inner_mistakes(Memory(), BOTH, soon)
    with pytest.raises(OutOfTimeError):
        cross_validate("", BOTH, at_once, Memory())


def test_equal_rows_share_a_fold_and_classes_are_spread() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 150, 200)
    y = group % 2
    folds = make_folds(y, group, rng)
    assert all(len(np.unique(folds[group == g])) == 1 for g in np.unique(group))
    assert set(folds) == set(range(5))
    folds = make_folds(np.arange(100) % 2, np.arange(100), rng)
    assert all((folds[np.arange(100) % 2 == k] == j).sum() == 10 for k in (0, 1) for j in range(5))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sparse", [False, True])
def test_the_bound_on_rows_to_give_up_holds(seed: int, sparse: bool) -> None:
    """Against every subset; and the rest is separable."""
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(8, 13)), int(rng.integers(2, 4))
    X = rng.standard_normal((n, 2))
    y = np.append(np.arange(classes), rng.integers(0, classes, n - classes))
    given_rows = sp.csr_array(X) if sparse else X
    found = give_up(table(given_rows, y), Clock(60), np.ones(classes))
    truth = next(
        m
        for m in range(n)
        for gone in combinations(range(n), m)
        if separable(np.delete(X, gone, axis=0), np.delete(y, gone))
    )
    assert truth <= found.at_most == len(found.rows)
    assert separable(np.delete(X, found.rows, axis=0), np.delete(y, found.rows))


def test_one_flipped_row_is_found_exactly() -> None:
    X, y = mm.datasets.gaussians(200, variance=0.02, random_state=0)
    deep = int(np.argmax(X.sum(axis=1) * (y > 0) - 10 * (np.abs(X - 2).max(axis=1) > 0.1)))
    y[deep] *= -1
    found = mm.diagnose(X, y)
    assert found.verdict == "almost linearly separable"
    assert found.witness.rows.tolist() == [deep]


def test_a_lucky_plane_is_called_one() -> None:
    rng = np.random.default_rng(0)
    found = mm.diagnose(rng.standard_normal((12, 20)), np.arange(12) % 2)
    assert found.verdict == "linearly separable"
    assert any("Cover" in warning for warning in found.warnings)


def test_the_plane_comes_with_margin_and_bound() -> None:
    X, y = mm.datasets.separable(100, margin=0.5, random_state=0)
    found = mm.diagnose(X, y)
    assert found.verdict == "linearly separable"
    evidence = found.evidence["separability"]
    plane = found.witness.witness
    assert evidence["margin"] == pytest.approx(0.5)
    assert evidence["mistake_bound"] == mm.geometry.mistake_bound(plane, X, y)
    assert not found.rungs[-1].ran
    assert "no row has to be given up" in found.rungs[-1].answer


def test_many_rows_are_decided_by_a_witness_for_all() -> None:
    X, y = mm.datasets.separable(5000, 3, margin=0.05, random_state=0)
    found = mm.diagnose(X, y, max_time=6)
    assert found.witness.margin > 0
    assert found.rungs[2].rows_seen == 5000
    assert any("of 5000 rows" in warning for warning in found.warnings)
    y[:100] *= -1
    found = mm.diagnose(X, y, max_time=6)
    rows = found.rungs[2].witness.witness.rows
    assert not separable(X[rows], y[rows])


def test_a_thin_gap_among_many_rows_is_found() -> None:
    """A thin gap among 30,000 rows, and the same with one row in the wrong place."""
    X, y = mm.datasets.separable(30_000, 3, margin=1e-4, random_state=0)
    found = find_planes(table(X, (y > 0).astype(int)), Clock(60))
    assert found.separable
    assert found.decisive is not None
    plane = found.decisive.witness
    assert isinstance(plane, mm.geometry.Hyperplane)
    assert (plane.functional_margin(X, y) > 0).all()
    inner = int(np.argmin(np.abs(X).sum(axis=1) + 10.0 * (y < 0)))
    X[inner] -= 0.5
    found = find_planes(table(X, (y > 0).astype(int)), Clock(60))
    assert found.separable is False
    assert found.decisive is not None
    assert isinstance(found.decisive.witness, Overlap)
    rows = found.decisive.witness.rows
    assert inner in rows
    assert not separable(X[rows], y[rows])


PLANES = ("LinearSVC", "HardMarginSVC", "DummyClassifier")


def last_step(model: Any) -> str:
    return type(getattr(model, "steps", [(None, model)])[-1][1]).__name__


@pytest.mark.parametrize(
    "draw",
    [
        lambda: mm.datasets.gaussians(400, variance=3, random_state=0),
        lambda: mm.datasets.circles(120, random_state=0),
        lambda: mm.datasets.flipped(*mm.datasets.separable(150, random_state=0), 0.03),
        lambda: mm.datasets.noise(80, 4, random_state=0),
        lambda: load_iris(return_X_y=True),
        lambda: load_breast_cancer(return_X_y=True),
    ],
)
def test_advice_and_verdict_tell_the_same_story(draw: Any) -> None:
    X, y = draw()
    found = mm.diagnose(X, y)
    gains = {
        rung.name: rung.witness for rung in found.rungs if rung.name in ("kernels", "networks")
    }
    beaten = any(gain is not None and gain.significant for gain in gains.values())
    beaten |= any("beats" in alternative.note for alternative in found.alternatives)
    assert beaten or last_step(found.recommend()) in PLANES
    if found.verdict in ("non-linearly separable", "multi-layer separable"):
        assert last_step(found.recommend()) not in PLANES
    if last_step(found.recommend()) not in PLANES:
        assert "better than" in found.advice


def test_alternatives_have_the_scores_of_what_was_tried() -> None:
    X, y = mm.datasets.overlapping(300, bayes_error=0.2, random_state=0)
    found = mm.diagnose(X, y)
    names = [alternative.rung for alternative in found.alternatives]
    assert names == [*("perceptron", "planes", "kernels", "k-NN", "networks", "gradient boosting")]
    for alternative in found.alternatives[1:]:
        assert alternative.score is not None
        assert alternative.low is not None
        assert alternative.high is not None
        assert alternative.low < alternative.score < alternative.high
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # networks need not converge
            clone(alternative.estimator).fit(X, y)
    evidence = found.evidence["planes"]
    assert found.alternatives[1].score == pytest.approx(evidence["accuracy"])
    separable_rows = mm.diagnose(*mm.datasets.separable(60, margin=0.5, random_state=0))
    assert "at most" in separable_rows.alternatives[0].note
    assert separable_rows.alternatives[2].score is None


def test_a_curve_that_falls_to_nothing_never_levels_off() -> None:
    """Of a thousand curves that fall as n^(−1/4), about 5 % seem level; of flat ones nearly all."""
    rng, n = np.random.default_rng(0), 400
    metric = Metric.of("accuracy", np.arange(n) % 2)
    level = {"falls": 0, "flat": 0}
    for _ in range(300):
        u = rng.uniform(size=n)  # rows that a weaker fit gets wrong are wrong in part of all fits
        for name, errors in (("falls", (0.2 * 2**0.5, 0.2 * 2**0.25, 0.2)), ("flat", (0.2,) * 3)):
            moved = u if name == "flat" else rng.permuted(u)
            quarter, half, every = (
                np.where(rng.random(n) < 0.1, moved, u) < error for error in errors
            )
            level[name] += has_levelled(quarter, half, every, metric)
    assert level["falls"] <= 0.08 * 300
    assert level["flat"] >= 0.9 * 300


def test_a_rare_class_is_the_most_that_must_be_given_up() -> None:
    """And uneven columns are scaled, unless something is better without that beyond noise."""
    rng = np.random.default_rng(0)
    y = (np.arange(1500) < 30).astype(int)
    X = (rng.standard_normal((1500, 6)) + 0.9 * y[:, None]) * [1, 1, 1, 50, 1, 0.02]
    found = mm.diagnose(X, y)
    assert give_up(table(X, y), Clock(60), np.ones(2)).at_most <= 30
    assert found.verdict not in ("linearly separable", "almost linearly separable")
    assert "StandardScaler()" in found.advice
    assert any("uneven" in text and "model scales" in text for text in found.warnings)
    assert "too few errors" not in found.advice


def test_errors_that_are_too_many_are_not_too_few() -> None:
    """Where a rare class leaves the verdict open, the advice does not call the errors few."""
    rng = np.random.default_rng(0)
    y = (np.arange(1500) < 20).astype(int)
    found = mm.diagnose(rng.standard_normal((1500, 4)) + 1.6 * y[:, None], y)
    assert found.verdict == "undecided"
    assert "too many errors" in found.reason
    assert "too few errors" not in found.advice


def test_a_boundary_that_leaves_many_errors_says_so() -> None:
    """Twenty classes in steps along a line: neighbours overlap."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (400, 2))
    y = np.round(3 + 12 * X[:, 0] + 6 * X[:, 1] + rng.standard_normal(400)).astype(int)
    found = mm.diagnose(X, y)
    assert found.verdict == "non-linearly separable"
    assert "whether the errors that are left are overlap is open" in found.reason


def test_rare_positives_are_ranked_and_weighed() -> None:
    """At 8 % of the rows, accuracy cannot tell a plane from naming the larger class."""
    X, y = mm.datasets.overlapping(600, 5, bayes_error=0.05, balance=0.08, random_state=0)
    found = mm.diagnose(X, y)
    assert found.scoring == "balanced_accuracy"
    assert found.verdict not in ("no signal", "non-linearly separable", "undecided")
    model = found.recommend()
    assert last_step(model) == "LinearSVC"
    scores = cross_val_score(model, X, y, scoring="balanced_accuracy", cv=5)
    assert scores.mean() > 0.65
    accuracy = mm.diagnose(X, y, scoring="accuracy")
    assert accuracy.scoring == "accuracy"
    assert accuracy.verdict != "no signal"


def test_the_rival_nearest_to_a_plane_is_the_one_with_the_best_score() -> None:
    """Not the one with the least p-value, which depends on how many tests are allowed for."""
    X, y = mm.datasets.overlapping(120, bayes_error=0.2, random_state=1)
    found = mm.diagnose(X, y)
    _, plane, *others, _ = found.alternatives
    nearest = max(others, key=lambda offer: offer.score or 0.0)
    assert last_step(found.recommend()) == "LinearSVC"
    assert f"the nearest, {nearest.note.split(' is not')[0]}, is" in found.advice
    assert plane.note == ""


def test_structure_that_only_trees_find_is_named_and_trees_are_recommended() -> None:
    """A wave along one of ten columns: planes and kernels of distances see next to nothing."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 10))
    found = mm.diagnose(X, np.sin(9 * X[:, 0]) > 0)
    assert found.verdict == "not linear"
    assert "gradient boosting finds structure that planes and RBF kernels do not" in found.reason
    assert last_step(found.recommend()) == "HistGradientBoostingClassifier"
    assert last_step(found.recommend("ladder")) != "HistGradientBoostingClassifier"
    with pytest.raises(ValueError, match="family"):
        found.recommend(family="trees")


def without_time(found: mm.Diagnosis) -> str:
    return json.dumps({**found.to_dict(), "seconds": 0}, allow_nan=False, sort_keys=True)


def test_the_same_seed_gives_the_same_diagnosis() -> None:
    X, y = mm.datasets.moons(60, 0.4, random_state=0)
    first, second = (mm.diagnose(X, y, random_state=3) for _ in range(2))
    assert without_time(first) == without_time(second)


@pytest.mark.parametrize("kind", ["frame", "csr", "float32"])
def test_every_kind_of_rows_gets_the_same_verdict(kind: str) -> None:
    X, y = mm.datasets.circles(60, random_state=0)
    convert: dict[str, Any] = {
        "frame": pd.DataFrame, "csr": sp.csr_array, "float32": lambda X: X.astype(np.float32),
    }  # fmt: skip
    given_rows = convert[kind](X)
    found = mm.diagnose(given_rows, np.where(y > 0, "in", "out"))
    assert found.verdict == "non-linearly separable"
    assert found.classes == ("in", "out")
    model = found.recommend()
    assert not hasattr(model, "classes_")
    assert clone(model).fit(given_rows, y).score(given_rows, y) == 1.0


def test_several_classes() -> None:
    X, y = load_iris(return_X_y=True)
    found = mm.diagnose(X, y)
    assert found.verdict == "almost linearly separable"
    rest = np.delete(np.arange(150), found.witness.rows)
    assert separable(X[rest], y[rest])
    assert found.recommend().fit(X, y).score(X, y) > 0.93


def test_wide_sparse_rows() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 3
    X = sp.random_array((200, 3000), density=0.01, rng=rng, format="csr")
    X = sp.csr_array(X + sp.csr_array((np.ones(200), (np.arange(200), y)), shape=X.shape))
    found = mm.diagnose(X, y)
    assert found.verdict == "linearly separable"
    assert "planes" in found.evidence
    assert found.recommend().fit(X, y).score(X, y) == 1.0


def test_scaling_is_explicit_and_only_where_it_helps() -> None:
    X, y = mm.datasets.moons(120, random_state=0)
    even = mm.diagnose(X, y).recommend()
    assert not hasattr(even, "steps")
    found = mm.diagnose(X * [1, 1e5], y)
    assert found.verdict == "non-linearly separable"
    assert any("uneven" in warning for warning in found.warnings)
    assert "StandardScaler()" in found.advice
    assert found.recommend().fit(X * [1, 1e5], y).score(X * [1, 1e5], y) > 0.98


def test_rungs_that_cannot_matter_are_skipped_and_say_why() -> None:
    X, y = mm.datasets.conflicts(60, 0.2, random_state=0)
    found = mm.diagnose(X, y)
    skipped = {rung.name: rung.answer for rung in found.rungs if not rung.ran}
    assert "separability" in skipped
    assert "giving up" in skipped
    assert all(answer.startswith("not asked: ") for answer in skipped.values())
    assert found.verdict == "inseparable"
    assert found.witness.errors == 6


def test_remarks_have_numbers() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    X[:, 1] = 7.0
    X[:, 2] = 3 * X[:, 0]
    X[:, 3] *= 1000
    y = (np.arange(200) < 10).astype(int)
    evidence = mm.diagnose(X, y).evidence["columns"]
    assert evidence["constant"] == [1]
    assert evidence["ratio"] > 300
    assert evidence["class_counts"].tolist() == [190, 10]


HOSTILE = ["<script>alert('x')</script>", '"onload="', "א" * 10_000, "\u202eevil", "a&b"]


def test_hostile_names_are_harmless() -> None:
    X, y = mm.datasets.moons(100, random_state=0)
    rows = np.column_stack([np.zeros(100), np.ones(100), X[:, 0], 1e6 * X[:, 1], np.full(100, 2)])
    found = mm.diagnose(pd.DataFrame(rows, columns=HOSTILE), np.where(y > 0, "<b>", "&amp;"))
    page = found._repr_html_()
    assert "<script" not in page
    assert "<b>&" not in page
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page + str(found)
    assert len(page) < 20_000
    assert len(str(found)) < 2000


def test_it_prints_pickles_and_becomes_json() -> None:
    found = mm.diagnose(*mm.datasets.circles(60, random_state=0))
    lines = str(found).splitlines()
    assert lines[0] == "Verdict: non-linearly separable"
    assert lines[1].startswith("Why: ")
    assert lines[2].startswith("Use: SVC(")
    assert len(lines) <= 6
    assert "non-linearly separable" in repr(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["verdict"] == found.verdict
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


@pytest.mark.parametrize("copies", [1, 20])
def test_the_truth_table_of_xor_is_not_linear(copies: int) -> None:
    """Nothing is left to predict, so that cross-validation has nothing to say."""
    X, y = (
        np.repeat([[0, 0], [1, 1], [0, 1], [1, 0]], copies, axis=0),
        np.repeat([0, 1], 2 * copies),
    )
    found = mm.diagnose(X, y)
    assert found.verdict == "non-linearly separable"
    assert found.recommend().fit(X, y).score(X, y) == 1.0
    conjunction = mm.diagnose(X, X.all(axis=1))
    assert conjunction.verdict == "linearly separable"
    assert not any("Cover" in text for text in conjunction.warnings)


def test_too_few_rows_are_called_too_few() -> None:
    found = mm.diagnose([[0, 0], [1, 1.1], [0, 1], [1, 0]], [0, 0, 1, 1])
    assert found.verdict == "undecided"
    assert "too few" in found.reason
    assert not any("Dummy" in type(step).__name__ for step in [found.recommend()])
    assert mm.diagnose([[0, 0], [1, 1], [0, 1], [1, 0]], [0, 1, 0, 0]).verdict == (
        "linearly separable"
    )
    assert mm.diagnose([[1], [1]], [0, 1]).verdict == "inseparable"


def test_time_that_runs_out_is_said_and_is_no_finding() -> None:
    X, y = mm.datasets.moons(200, 0.5, random_state=0)
    found = mm.diagnose(X, y, max_time=1e-3)
    assert found.verdict == "undecided"
    assert "the time ran out: raise max_time" in found.reason
    assert "Missing: " in found.reason
    assert "No equal rows have different labels" in found.reason
    assert not any("Models were" in warning for warning in found.warnings)  # none was fitted
    assert "no signal" not in str(found)
    model = found.recommend()
    assert "Dummy" not in str(model)
    model.fit(X, y)


class Ends:
    """A clock that runs out at its n-th reading, as on a slow machine, but without its seconds."""

    max_time = 30.0

    def __init__(self, readings: int) -> None:
        self.readings = readings

    @property
    def over(self) -> bool:
        self.readings -= 1
        return self.readings < 0

    @property
    def left(self) -> float:
        return 60.0

    @property
    def seconds(self) -> float:
        return 0.0


@pytest.mark.parametrize("readings", [0, 1, 2, 5, 12, 30, 60])
def test_wherever_the_time_runs_out_the_verdict_is_the_same_or_undecided(
    readings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = mm.datasets.circles(80, random_state=0)
    monkeypatch.setattr("maxmargin.diagnosis.ladder.Clock", lambda _: Ends(readings))
    found = mm.diagnose(X, y)
    assert found.verdict in ("undecided", "non-linearly separable")
    assert (found.verdict == "undecided") == ("time ran out" in found.reason)


@pytest.mark.parametrize("readings", [20, 35])
def test_time_that_runs_out_is_no_reason_for_the_dummy(
    readings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contradictions settle the verdict, but not what to use: planes were compared, no more."""
    X, y = mm.datasets.conflicts(120, 0.2, random_state=0)
    monkeypatch.setattr("maxmargin.diagnosis.ladder.Clock", lambda _: Ends(readings))
    found = mm.diagnose(X, y)
    assert found.verdict == "inseparable"
    assert last_step(found.recommend()) in ("LinearSVC", "HardMarginSVC")
    assert any("Missing: kernels" in warning for warning in found.warnings)
    signal = next(rung for rung in found.rungs if rung.name == "signal")
    assert "a plane names classes better than by chance" in signal.answer


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.linspace(0, 1, 60), "scoring": "accuracy"}, "is for classes"),
        ({"y": np.arange(60).astype(str)}, "60 different values"),
        ({"y": np.zeros(60)}, "only one class"),
        ({"y": np.ones(60), "task": "regression"}, "y is 1 in all rows"),
        ({"task": "ranking"}, "task must be one of"),
        ({"groups": np.ones(5)}, "groups has 5 entries"),
        ({"y": np.zeros(59)}, "inconsistent numbers"),
        ({"y": None}, "y to be passed"),
        ({"X": np.full((60, 2), np.nan)}, "NaN"),
        ({"X": np.full((60, 2), 1e300)}, "MaxAbsScaler"),
        ({"X": np.zeros((0, 2)), "y": []}, "0 sample"),
        ({"scoring": "f1"}, "scoring='f1'"),
        ({"max_time": 0}, "max_time=0"),
        ({"max_time": "1"}, "max_time='1'"),
        ({"random_state": -1}, "random_state=-1"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], message: str) -> None:
    arguments = {"X": np.eye(60)[:, :2], "y": np.arange(60) % 2, **change}
    with pytest.raises((TypeError, ValueError), match=message):
        mm.diagnose(arguments.pop("X"), arguments.pop("y"), **arguments)
