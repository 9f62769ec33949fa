"""The perceptron family: THEORY as tests."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.problems.problem import Status
from maxmargin.problems.row_cache import RowCache
from maxmargin.runtime.clock import Limit, OutOfTimeError, under
from maxmargin.solvers import perceptron as solvers_perceptron
from maxmargin.solvers.perceptron import WorkSettings
from tests.estimators.test_linear_machine import forms
from tests.support import reference

LINEAR: list[Any] = [mm.Perceptron, mm.AveragedPerceptron, mm.VotedPerceptron]
FAMILY: list[Any] = [*LINEAR, mm.KernelPerceptron]


def integers(n: int = 60, d: int = 4, n_classes: int = 2, seed: int = 0) -> tuple[Floats, Any]:
    """Overlapping integer data: every sum of products is exact, so all algorithms must agree."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return (rng.integers(-5, 6, (n, d)) + 2 * y[:, None]).astype(float), y


def separable(n_classes: int, seed: int) -> tuple[Floats, Any]:
    """Classes told apart by a linear rule with a margin."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([0.1, 1.0, 10.0])
    W, b = rng.standard_normal((n_classes, 3)), scale * rng.standard_normal(n_classes) / 3
    X = rng.standard_normal((400, 3)) * scale
    scores = np.sort(X @ W.T + b, axis=1)
    X = X[scores[:, -1] - scores[:, -2] > 0.3 * scale]
    y = (X @ W.T + b).argmax(axis=1)
    return X, y


# -- the mistake bound ---------------------------------------------------------------------------


RUNS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "n_classes": st.sampled_from([2, 2, 3, 5]),
        "eta": st.sampled_from([0.01, 1.0, 7.0]),
        "margin": st.sampled_from([0.0, 0.0, 0.5, 3.0]),
        "fit_intercept": st.booleans(),
        "shuffle": st.booleans(),
        "weighted": st.booleans(),
        "init": st.sampled_from(["zeros", "zeros", "random"]),
    }
)


def check_the_bound(
    learner: Any, seed: int, n_classes: int, weighted: bool, init: str, **parameters: Any
) -> None:
    X, y = separable(n_classes, seed)
    if len(np.unique(y)) < 2:
        return
    weight = np.random.default_rng(seed).choice([0.1, 0.5, 1.0, 2.5, 7.0], len(y))
    own = {"kernel": "linear"} if learner is mm.KernelPerceptron else {"init": init}
    model = learner(max_epochs=50, random_state=seed, **parameters, **own)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=weight if weighted else None)
    assert model.updates_ <= model.mistake_bound_
    assert model.mistakes_ <= model.updates_
    if model.status_ is Status.ALL_CORRECT:
        assert np.isfinite(model.mistake_bound_)


@pytest.mark.parametrize("learner", FAMILY)
@given(run=RUNS)
@settings(max_examples=25)
def test_updates_never_exceed_the_bound(learner: Any, run: dict[str, Any]) -> None:
    check_the_bound(learner, **run)


@pytest.mark.full
@pytest.mark.parametrize("learner", FAMILY)
@given(run=RUNS)
@settings(max_examples=2000)
def test_updates_never_exceed_the_bound_on_thousands_of_sets(
    learner: Any, run: dict[str, Any]
) -> None:
    check_the_bound(learner, **run)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_bound_is_that_of_the_best_separator_even_after_one_epoch(fit_intercept: bool) -> None:
    """γ̃ is the hard margin through the origin of the lifted rows: HardMarginSVC knows it."""
    for seed in range(5):
        X, y = mm.datasets.separable(300, n_features=4, margin=0.1, random_state=seed)
        lifted = np.hstack([X, np.ones((300, 1))]) if fit_intercept else X
        best = mm.HardMarginSVC(intercept="none").fit(lifted, y)
        bound = (lifted**2).sum(axis=1).max() / best.margin_**2
        for learner in LINEAR:
            model = learner(max_epochs=1, fit_intercept=fit_intercept).fit(X, y)
            assert_allclose(model.mistake_bound_, bound, rtol=1e-5)
            assert model.updates_ <= model.mistake_bound_


def test_the_unlifted_bound_is_false_and_ours_is_not() -> None:
    X, y = np.array([[0.01], [-0.01]]), [1, -1]
    model = mm.Perceptron(shuffle=False).fit(X, y)
    assert model.updates_ == 2
    assert model.mistake_bound_ >= 2
    plane = mm.geometry.hyperplane(model)
    assert (mm.geometry.radius(X) / plane.geometric_margin(X, y).min()) ** 2 < 2


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_both_inequalities_of_the_proof_hold_along_the_trace(fit_intercept: bool) -> None:
    X, y = mm.datasets.separable(200, n_features=3, margin=0.1, random_state=3)
    eta = 0.25
    if not fit_intercept:
        y = np.where(X @ [1.0, 2.0, -1.0] > 0, 1, -1)
        keep = abs(X @ [1.0, 2.0, -1.0]) > 0.3
        X, y = X[keep], y[keep]
    model = mm.Perceptron(eta=eta, trace=True, fit_intercept=fit_intercept, shuffle=False).fit(X, y)
    lifted = np.hstack([X, np.full((len(X), 1), float(fit_intercept))])
    path = np.hstack([model.trace_.coef[:, 0], model.trace_.intercept])
    star = path[-1] / np.linalg.norm(path[-1])
    gamma = (y * (lifted @ star)).min()
    R = np.linalg.norm(lifted, axis=1).max()
    k = np.arange(len(path))
    assert gamma > 0
    assert model.updates_ == k[-1] == sum(model.trace_.updates)
    slack = 1 + 1e-12
    assert (k * eta * gamma <= path @ star * slack + 1e-12).all()
    assert (path @ star <= np.linalg.norm(path, axis=1) * slack + 1e-12).all()
    assert (np.linalg.norm(path, axis=1) <= eta * R * np.sqrt(k) * slack + 1e-12).all()


def test_one_update_raises_the_functional_margin_by_eta_times_the_lifted_norm() -> None:
    X, y = integers()
    model = mm.Perceptron(eta=0.5, trace=True, shuffle=False, max_epochs=3, stop="epochs")
    trace = model.fit(X, y).trace_
    sign = 2.0 * y[trace.row] - 1
    f = np.einsum("kd,kd->k", trace.coef[:-1, 0], X[trace.row]) + trace.intercept[:-1, 0]
    g = np.einsum("kd,kd->k", trace.coef[1:, 0], X[trace.row]) + trace.intercept[1:, 0]
    assert_allclose(sign * g - sign * f, 0.5 * ((X[trace.row] ** 2).sum(axis=1) + 1))


# -- invariances ---------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", FAMILY)
def test_zero_columns_and_repeated_data_change_no_update(learner: Any) -> None:
    X, y = mm.datasets.separable(100, margin=0.2, random_state=5)
    extra = {"kernel": "linear"} if learner is mm.KernelPerceptron else {}
    plain = learner(shuffle=False, **extra).fit(X, y)
    wide = learner(shuffle=False, **extra).fit(np.hstack([X, np.zeros((100, 3))]), y)
    twice = learner(shuffle=False, **extra).fit(np.vstack([X, X]), np.concatenate([y, y]))
    assert plain.updates_ == wide.updates_ == twice.updates_


@pytest.mark.parametrize("learner", LINEAR)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_eta_only_rescales_bit_for_bit(learner: Any, n_classes: int) -> None:
    X, y = integers(n_classes=n_classes, seed=1)
    X = X / 3
    one = learner(eta=1.0, max_epochs=5, stop="epochs").fit(X, y)
    quarter = learner(eta=0.25, max_epochs=5, stop="epochs").fit(X, y)
    assert_array_equal(one.coef_, 4 * quarter.coef_)
    assert_array_equal(one.intercept_, 4 * quarter.intercept_)
    assert_array_equal(one.predict(X), quarter.predict(X))


@pytest.mark.parametrize("learner", LINEAR)
def test_bias_is_a_constant_feature_for_perceptrons(learner: Any) -> None:
    X, y = integers(seed=2)
    with_b = learner(max_epochs=4, stop="epochs").fit(X, y)
    lifted = np.hstack([X, np.ones((len(X), 1))])
    feature = learner(max_epochs=4, stop="epochs", fit_intercept=False).fit(lifted, y)
    assert_allclose(feature.coef_[0, :-1], with_b.coef_[0], atol=1e-12)
    assert_allclose(feature.coef_[0, -1], with_b.intercept_[0], atol=1e-12)
    assert feature.intercept_ == 0


def test_the_step_neurons_rule_is_the_same_rule() -> None:
    """Targets {0, 1}: w += η(t − step(f))x, with f = 0 counted as a mistake, is the ±1 rule."""
    X, y = integers(seed=3)
    w, b = np.zeros(4), 0.0
    for _ in range(3):
        for x, t in zip(X, y, strict=True):
            f = w @ x + b
            output = float(f > 0) if f != 0 else 1.0 - t
            w, b = w + 0.5 * (t - output) * x, b + 0.5 * (t - output)
    model = mm.Perceptron(eta=0.5, shuffle=False, max_epochs=3, stop="epochs").fit(X, y)
    assert_array_equal(model.coef_[0], w)
    assert model.intercept_[0] == b


# -- against the textbook loop -------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("margin", [0.0, 4.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_equals_the_textbook_loop(
    n_classes: int, margin: float, fit_intercept: bool, sparse: bool
) -> None:
    X, y = integers(n_classes=n_classes, seed=4)
    common: dict[str, Any] = {
        "margin": margin, "fit_intercept": fit_intercept, "max_epochs": 3, "stop": "epochs",
        "shuffle": False,
    }  # fmt: skip
    course = reference.perceptron(
        X, y, n_classes, epochs=3, margin=margin, fit_intercept=fit_intercept
    )
    data = sp.csr_array(X) if sparse else X
    last = mm.Perceptron(**common).fit(data, y)
    assert (last.updates_, last.mistakes_) == (course.updates, course.mistakes)
    assert_array_equal(last.coef_, course.weights[-1])
    assert_array_equal(last.intercept_, course.intercepts[-1])
    mean = mm.AveragedPerceptron(**common).fit(data, y)
    assert_allclose(mean.coef_, np.mean(course.weights, axis=0), rtol=1e-12, atol=1e-12)
    assert_allclose(mean.intercept_, np.mean(course.intercepts, axis=0), rtol=1e-12, atol=1e-12)
    vote = mm.VotedPerceptron(**common).fit(data, y)
    assert_allclose(vote.decision_function(data), reference.vote(course, X), atol=1e-12)
    dual = mm.KernelPerceptron(kernel="linear", **common).fit(data, y)
    assert (dual.updates_, dual.mistakes_) == (course.updates, course.mistakes)
    assert_allclose(dual.coef_, course.weights[-1], atol=1e-9)
    assert_allclose(dual.margin_, last.margin_, rtol=1e-9)
    assert_allclose(
        dual.decision_function(data), last.decision_function(data), rtol=1e-9, atol=1e-9
    )


def test_kernel_perceptron_over_many_blocks_equals_the_textbook_loop() -> None:
    X, y = integers(n=900, n_classes=3, seed=5)
    course = reference.perceptron(X, y, 3, epochs=2)
    dual = mm.KernelPerceptron(kernel="linear", max_epochs=2, stop="epochs", shuffle=False)
    dual.fit(X, y)
    assert dual.updates_ == course.updates
    assert_allclose(dual.coef_, course.weights[-1], atol=1e-7)


def test_kernel_perceptron_equals_the_perceptron_on_explicit_features() -> None:
    X, y = integers(d=3, seed=6)
    phi = np.stack([np.outer(x, x).ravel() for x in X])
    explicit = mm.Perceptron(shuffle=False, max_epochs=20, stop="epochs").fit(phi, y)
    kernel = mm.kernels.Linear() ** 2
    dual = mm.KernelPerceptron(kernel=kernel, shuffle=False, max_epochs=20, stop="epochs").fit(X, y)
    assert dual.updates_ == explicit.updates_
    assert_allclose(dual.decision_function(X), explicit.decision_function(phi), rtol=1e-9)


# -- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", FAMILY)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sparse", [True, False])
def test_integer_weights_are_repetitions_in_place(
    learner: Any, n_classes: int, sparse: bool
) -> None:
    X, y = integers(n_classes=n_classes, seed=7)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    convert = sp.csr_matrix if sparse else np.asarray
    common = {"shuffle": False, "max_epochs": 3, "stop": "epochs"}
    if learner is mm.KernelPerceptron:
        common |= {"kernel": "linear"}
    weighted = learner(**common).fit(convert(X), y, sample_weight=weight)
    repeated = learner(**common).fit(convert(np.repeat(X, weight, axis=0)), np.repeat(y, weight))
    assert weighted.updates_ == repeated.updates_
    assert weighted.mistakes_ == repeated.mistakes_
    assert_allclose(
        weighted.decision_function(convert(X)), repeated.decision_function(convert(X)), atol=1e-9
    )


@pytest.mark.parametrize("learner", FAMILY)
def test_a_class_without_weight_stays_in_classes_and_is_never_predicted(learner: Any) -> None:
    X, y = integers(n_classes=3, seed=9)
    model = learner(stop="epochs", max_epochs=3)
    model.fit(X, y, sample_weight=(y != 1).astype(float))
    assert_array_equal(model.classes_, [0, 1, 2])
    anywhere = np.random.default_rng(0).normal(size=(2000, 4)) * 20
    scores = model.decision_function(anywhere)
    assert scores.shape == (2000, 3)
    assert_array_equal(model.predict(anywhere), scores.argmax(axis=1))
    assert 1 not in model.predict(anywhere)


@pytest.mark.parametrize("learner", FAMILY)
def test_class_weight_composes_with_sample_weight(learner: Any) -> None:
    X, y = integers(seed=10)
    common = {"max_epochs": 3, "stop": "epochs", "shuffle": False}
    rng = np.random.default_rng(2)
    weight = rng.random(len(y))
    by_class = learner(class_weight={0: 2.0, 1: 0.5}, **common).fit(X, y, sample_weight=weight)
    by_hand = learner(**common).fit(X, y, sample_weight=weight * np.where(y == 0, 2.0, 0.5))
    assert_array_equal(by_class.decision_function(X), by_hand.decision_function(X))
    balanced = learner(class_weight="balanced", **common).fit(X, y, sample_weight=weight)
    totals = np.bincount(y, weights=weight)
    by_hand = learner(**common).fit(X, y, sample_weight=weight * (totals.sum() / 2 / totals)[y])
    assert_array_equal(balanced.decision_function(X), by_hand.decision_function(X))


@pytest.mark.parametrize("learner", FAMILY)
def test_a_row_without_weight_leaves_no_trace_at_all(learner: Any) -> None:
    X, y = mm.datasets.circles(80, random_state=0)
    far, weight = np.vstack([X, [[1e6, 1e6]]]), np.append(np.ones(len(y)), 0.0)
    common: dict[str, Any] = {"stop": "epochs", "max_epochs": 5}
    with_it = learner(**common).fit(far, np.append(y, 1), sample_weight=weight)
    without = learner(**common).fit(X, y)
    assert_array_equal(with_it.decision_function(X), without.decision_function(X))
    assert with_it.mistake_bound_ == without.mistake_bound_


def test_row_numbers_survive_zero_weights() -> None:
    X, y = integers(seed=22)
    weight = np.ones(len(y))
    weight[::3] = 0.0
    dual = mm.KernelPerceptron(stop="epochs", max_epochs=3).fit(X, y, sample_weight=weight)
    assert_array_equal(dual.support_vectors_, X[dual.support_])
    assert (weight[dual.support_] > 0).all()
    gram = mm.kernels.RBF(0.1).gram(X)
    given = mm.KernelPerceptron(kernel="precomputed", stop="epochs", max_epochs=3)
    direct = mm.KernelPerceptron(kernel=mm.kernels.RBF(0.1), stop="epochs", max_epochs=3)
    given.fit(gram, y, sample_weight=weight)
    direct.fit(X, y, sample_weight=weight)
    assert_allclose(given.decision_function(gram), direct.decision_function(X), atol=1e-9)
    trace = mm.Perceptron(stop="epochs", max_epochs=3, trace=True)
    assert (weight[trace.fit(X, y, sample_weight=weight).trace_.row] > 0).all()


# -- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", FAMILY)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sparse", [True, False])
def test_chunks_are_one_unshuffled_pass(learner: Any, n_classes: int, sparse: bool) -> None:
    X, y = integers(n=103, n_classes=n_classes, seed=11)
    data = sp.csr_array(X) if sparse else X
    extra = {"kernel": "linear"} if learner is mm.KernelPerceptron else {}
    whole = learner(shuffle=False, stop="one_pass", **extra).fit(data, y)
    for rows in (1, 7, 64, 1000):
        model = learner(**extra).fit_chunks(
            mm.data.chunks(data, y, rows=rows), classes=range(n_classes)
        )
        assert model.updates_ == whole.updates_
        assert_allclose(
            model.decision_function(data), whole.decision_function(data), rtol=0, atol=1e-9
        )
    assert whole.status_ is Status.ONE_PASS
    assert model.status_ is Status.STREAM


def test_partial_fit_goes_on_after_fit() -> None:
    X, y = integers(seed=12)
    for learner in FAMILY:
        model = learner(max_epochs=2, stop="epochs", shuffle=False)
        if learner is mm.KernelPerceptron:
            model.set_params(kernel="linear")
        three = reference.perceptron(X, y, 2, epochs=3)
        model.fit(X, y).partial_fit(X, y)
        assert model.updates_ == three.updates


STREAM = """
import resource, sys
import numpy as np, maxmargin as mm
rows, chunk = int(sys.argv[1]), 100_000
def stream():
    rng = np.random.default_rng(0)
    for _ in range(rows // chunk):
        X = rng.random((chunk, 8), dtype=np.float32) - 0.5
        yield X, (X.sum(axis=1) > 0).astype(int)
learner = getattr(mm, sys.argv[2])()
learner.fit_chunks(stream(), classes=[0, 1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, learner.updates_)
"""


@pytest.mark.wide
@pytest.mark.parametrize("learner", ["Perceptron", "AveragedPerceptron"])
def test_ten_million_rows_stream_in_bounded_memory(learner: str) -> None:
    def megabytes(rows: int) -> int:
        command = [sys.executable, "-c", STREAM, str(rows), learner]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(run.stdout.split()[0])

    # 10 million rows of 8 float32 are 320 MB; what is kept does not grow with them.
    assert megabytes(10_000_000) - megabytes(200_000) < 40


# -- stopping ------------------------------------------------------------------------------------


def test_every_stop_says_why() -> None:
    X, y = integers(n=200, seed=13)
    reasons = {}
    for stop in ("epochs", "one_pass", "small_change", "held_out"):
        model = mm.Perceptron(stop=stop, max_epochs=400, change_tol=0.2).fit(X, y)
        reasons[stop] = model.status_
        assert model.stop_reason_.startswith(f"After {model.epochs_} epoch")
        assert model.status_.value in model.stop_reason_
    assert reasons == {
        "epochs": Status.EPOCHS,
        "one_pass": Status.ONE_PASS,
        "small_change": Status.SMALL_CHANGE,
        "held_out": Status.HELD_OUT,
    }
    X, y = mm.datasets.separable(100, margin=0.2)
    assert mm.Perceptron().fit(X, y).status_ is Status.ALL_CORRECT


@pytest.mark.parametrize("classes", [2, 3])
def test_counting_votes_ends_when_nobody_wants_them_any_more(classes: int) -> None:
    X, _ = mm.datasets.gaussians(60, variance=4.0, random_state=0)
    model = mm.VotedPerceptron(max_epochs=5).fit(X, np.arange(60) % classes)
    unwanted = Limit()
    unwanted.cancelled = True
    with under(unwanted), pytest.raises(OutOfTimeError):
        model.decision_function(X)
    assert model.decision_function(X).shape[0] == 60


@pytest.mark.parametrize("learner", FAMILY)
@pytest.mark.parametrize("stop", ["small_change", "held_out"])
def test_kernel_and_mean_and_vote_stop_too(learner: Any, stop: str) -> None:
    X, y = integers(n=200, n_classes=3, seed=13)
    extra = {"kernel": "linear"} if learner is mm.KernelPerceptron else {}
    model = learner(stop=stop, max_epochs=300, change_tol=0.3, **extra).fit(X, y)
    assert model.status_ in (Status.SMALL_CHANGE, Status.HELD_OUT)


def test_overlapping_classes_are_said_to_be_so() -> None:
    X, y = integers(n=200, seed=14)
    with pytest.warns(ConvergenceWarning, match=r"may overlap.*keep='best' or AveragedPerceptron"):
        model = mm.Perceptron(max_epochs=5).fit(X, y)
    assert model.mistake_bound_ == np.inf
    assert model.margin_ < 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("learner", [mm.Perceptron, mm.KernelPerceptron])
def test_the_pocket_is_never_worse_than_the_last_vector(learner: Any) -> None:
    gains = 0
    for seed in range(10):
        X, y = integers(n=120, n_classes=2 + seed % 2, seed=seed)
        extra = {"kernel": "linear"} if learner is mm.KernelPerceptron else {}
        last = learner(max_epochs=20, random_state=seed, **extra).fit(X, y)
        best = learner(max_epochs=20, random_state=seed, keep="best", **extra).fit(X, y)
        assert best.score(X, y) >= last.score(X, y)
        gains += best.score(X, y) > last.score(X, y)
    assert gains > 0


@pytest.mark.parametrize("learner", FAMILY)
def test_callback_time_and_verbose(learner: Any, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = integers(n=100, seed=15)
    seen = []

    def stop_at_three(progress: Any) -> Any:
        seen.append(progress.iterate.mistakes)
        return np.bool_(progress.iteration == 3)

    model = learner(callback=stop_at_three, verbose=1).fit(X, y)
    assert model.status_ is Status.CALLBACK
    assert model.epochs_ == len(seen) == 3
    assert sum(seen) == model.mistakes_
    assert len(capsys.readouterr().out.splitlines()) == 3
    slow = learner(callback=lambda _: time.sleep(0.02), max_time=0.05, stop="epochs").fit(X, y)
    assert slow.status_ is Status.MAX_TIME


@pytest.mark.parametrize("learner", FAMILY)
def test_warm_start_goes_on_from_the_last_weights(learner: Any) -> None:
    X, y = integers(seed=16)
    extra = {"kernel": "linear"} if learner is mm.KernelPerceptron else {}
    model = learner(warm_start=True, shuffle=False, max_epochs=2, stop="epochs", **extra)
    first = model.fit(X, y).updates_
    second = model.fit(X, y).updates_
    assert first + second == reference.perceptron(X, y, 2, epochs=4).updates
    other = np.hstack([X, X])
    if learner is not mm.KernelPerceptron:
        with pytest.raises(ValueError, match="warm_start=True, but the weights"):
            model.fit(other, y)


def test_interrupt_keeps_what_was_learnt() -> None:
    X, y = integers(n=100, seed=17)

    def interrupt(progress: Any) -> None:
        if progress.iteration == 4:
            raise KeyboardInterrupt

    for learner in FAMILY:
        model = learner(callback=interrupt, stop="epochs", max_epochs=50)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert model.predict(X).shape == y.shape


def test_an_interrupted_kernel_fit_is_consistent(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = integers(n=900, seed=24)
    calls = []
    computed = RowCache.fetch

    def interrupt(self: RowCache, rows: Any) -> Any:
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return computed(self, rows)

    monkeypatch.setattr(RowCache, "fetch", interrupt)
    model = mm.KernelPerceptron(kernel="linear")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    margins = (2 * y - 1) * model.decision_function(X) / np.linalg.norm(model.coef_)
    assert_allclose(model.margin_, margins.min(), rtol=1e-9)


@pytest.mark.parametrize("learner", FAMILY)
def test_a_failed_refit_is_not_a_fit(learner: Any) -> None:
    X, y = integers(seed=25)

    def fail(_: Any) -> None:
        raise RuntimeError("from the callback")

    model = learner(stop="epochs", max_epochs=2).fit(X, y)
    with pytest.raises(RuntimeError, match="from the callback"):
        model.set_params(callback=fail).fit(X, np.where(y == 1, "b", "a"))
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("learner", LINEAR)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_heavy_rows_can_be_stopped_and_change_nothing(learner: Any, n_classes: int) -> None:
    """A pass ends early after as many updates as rows; what it leaves is taken up where it was."""
    X, y = integers(n=20, n_classes=n_classes, seed=28)
    weight = np.full(len(y), 50)
    common: dict[str, Any] = {"shuffle": False, "max_epochs": 2, "stop": "epochs", "margin": 9e3}
    weighted = learner(**common).fit(X, y, sample_weight=weight)
    repeated = learner(**common).fit(np.repeat(X, 50, axis=0), np.repeat(y, 50))
    assert weighted.updates_ == repeated.updates_ > 20 * len(y)
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-12)
    endless = learner(margin=1e12, max_time=0.2)
    assert endless.fit(X, y, sample_weight=weight * 1e12).status_ is Status.MAX_TIME


def test_the_pocket_looks_once_more_when_time_is_up() -> None:
    X, y = mm.datasets.separable(60_000, n_features=200, margin=0.5, random_state=0)
    model = mm.Perceptron(keep="best", max_time=1e-9).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert model.score(X, y) > 0.6


INTERRUPTED = """
import time, threading, os, signal
import numpy as np, maxmargin as mm
rng = np.random.default_rng(0)
X = rng.standard_normal((200_000, 20)); y = rng.integers(0, 2, 200_000)
model = mm.Perceptron(max_epochs=100_000, stop="epochs")
mm.Perceptron(stop="one_pass").fit(X, y)  # compiled before the clock starts
sent = []
def send():
    time.sleep(0.7); sent.append(time.perf_counter()); os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=send).start()
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("interrupted after", time.perf_counter() - sent[0], model.coef_.shape)
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_acts_within_a_second() -> None:
    run = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    words = run.stdout.split()
    assert words[:2] == ["interrupted", "after"], run.stderr
    assert float(words[2]) < 1.0
    assert signal.SIGINT


# -- data of every kind --------------------------------------------------------------------------


@pytest.mark.parametrize("learner", FAMILY)
def test_containers_and_dtypes_agree(learner: Any, tmp_path: Path) -> None:
    X, y = integers(seed=18)
    extra = {"kernel": "linear"} if learner is mm.KernelPerceptron else {}
    expected = learner(max_epochs=3, stop="epochs", **extra).fit(X, y)
    for name, data in forms(X, tmp_path).items():
        model = learner(max_epochs=3, stop="epochs", **extra).fit(data, y)
        assert model.updates_ == expected.updates_, name
        assert_allclose(
            model.decision_function(data), expected.decision_function(X), rtol=1e-6, err_msg=name
        )


def test_repeated_sparse_entries_are_summed_and_said_so() -> None:
    X, y = integers(n=4, d=2, seed=20)
    coo = sp.coo_array((np.r_[X[0, 0], 1.0, X[1:, 0]], ([0, 0, 1, 2, 3], [0, 0, 0, 0, 0])), (4, 2))
    csr = sp.csr_array((coo.data, np.zeros(5, int), [0, 2, 3, 4, 5]), (4, 2))
    with pytest.warns(UserWarning, match="1 entries at repeated positions: they were summed"):
        model = mm.Perceptron(stop="one_pass").fit(csr, y)
    assert csr.nnz == 5  # the caller's matrix is untouched
    assert_array_equal(model.coef_, mm.Perceptron(stop="one_pass").fit(csr.toarray(), y).coef_)


def test_a_row_of_zeros_without_intercept_does_not_hang() -> None:
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), [1, 1, 0]
    for learner in FAMILY:
        extra = {"kernel": "linear"} if learner is mm.KernelPerceptron else {}
        model = learner(fit_intercept=False, max_epochs=3, stop="epochs", **extra)
        model.fit(X, y, sample_weight=[1e15, 1.0, 1.0])
        assert model.mistakes_ >= 3e15


@pytest.mark.parametrize("learner", LINEAR)
def test_overflow_names_the_column(learner: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"fine": [1.0, -1.0, 2.0], "huge": [1e300, -1e308, 1e308]})
    y = [0, 1, 0]
    with pytest.raises(ValueError, match=r"Column 1 \('huge'\) of X reaches 1e\+308"):
        learner().fit(X, y)
    model = learner().partial_fit([[1.0, 1.0]], [0], classes=[0, 1])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="Column 1 of X reaches"):
        model.partial_fit([[0.0, 1e200]], [0])
    assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 59])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_not_finite_are_refused_wherever_they_are(
    bad: float, row: int, dtype: Any
) -> None:
    """They are found while rows are visited, and no row escapes for not being visited."""
    X, y = integers()
    X = X.astype(dtype)
    X[row, 2] = bad
    absent = np.ones(len(y))
    absent[row] = 0
    for learner in LINEAR:
        for rows in (X, sp.csr_matrix(X)):
            for parameters in ({}, {"stop": "held_out"}, {"trace": True}):
                model = learner(**parameters)
                with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
                    model.fit(rows, y)
                assert not hasattr(model, "status_")
            with pytest.raises(ValueError, match="Input X contains"):
                learner().fit(rows, y, sample_weight=absent)
            with pytest.raises(ValueError, match="Input X contains"):
                learner().partial_fit(rows, y, classes=[0, 1])
            model = learner().partial_fit(np.where(np.isfinite(X), X, 0), y, classes=[0, 1])
            before = model.coef_.copy()
            with pytest.raises(ValueError, match="Input X contains"):
                model.partial_fit(rows, y)
            with pytest.raises(ValueError, match="Input X contains"):
                model.partial_fit(rows, y, sample_weight=np.zeros(len(y)))
            assert_array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="Input X contains"):
        mm.Perceptron(keep="best").fit(X, y)


def test_a_run_cut_short_knows_the_lengths_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is that of all rows, whichever of them were visited before time was up."""
    X, y = mm.datasets.separable(200, margin=0.3, random_state=0)
    X = np.vstack([X, 50 * X[:1]])  # the longest row comes last
    y = np.append(y, y[0])
    whole = mm.Perceptron(shuffle=False).fit(X, y)
    monkeypatch.setattr(solvers_perceptron, "_WORK", WorkSettings(multiplications=30))
    cut = mm.Perceptron(shuffle=False, max_time=1e-9).fit(X, y)
    assert cut.status_ is Status.MAX_TIME
    assert_allclose(cut.mistake_bound_, whole.mistake_bound_, rtol=1e-5)


def test_denormals_are_numbers_too() -> None:
    X, y = np.array([[5e-324], [-5e-324]]), [1, 0]
    model = mm.Perceptron(fit_intercept=False, stop="epochs", max_epochs=3).fit(X, y)
    assert np.isfinite(model.coef_).all()


# -- the rest of the contract --------------------------------------------------------------------


@pytest.mark.parametrize("learner", FAMILY)
def test_predict_is_the_argmax_and_labels_permute(learner: Any) -> None:
    X, y = load_iris(return_X_y=True)
    model = learner(max_epochs=5, stop="epochs").fit(X, y)
    assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    names = np.array(["é", "b", "a"])
    renamed = learner(max_epochs=5, stop="epochs").fit(X, names[y])
    assert set(renamed.predict(X)) <= set(names)
    binary = learner(max_epochs=5, stop="epochs").fit(X[:100], y[:100])
    assert_array_equal(binary.predict(X), (binary.decision_function(X) > 0).astype(int))


@pytest.mark.parametrize("learner", FAMILY)
def test_same_seed_same_bits_also_in_threads(learner: Any) -> None:
    X, y = integers(n=300, n_classes=3, seed=21)
    expected = learner(max_epochs=5, stop="epochs").fit(X, y).decision_function(X)
    found: list[Floats] = []

    def fit() -> None:
        found.append(learner(max_epochs=5, stop="epochs").fit(X, y).decision_function(X))

    threads = [threading.Thread(target=fit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for scores in found:
        assert_array_equal(scores, expected)


def test_averaging_survives_a_late_mistake_that_ruins_the_last_vector() -> None:
    X, y = mm.datasets.separable(300, n_features=2, margin=0.3, random_state=1)
    outlier = -30.0 * X[y == 1].mean(axis=0)
    X, y = np.vstack([X, outlier]), np.append(y, 1)
    run = {"shuffle": False, "stop": "one_pass"}
    fits = [learner(**run).fit(X, y) for learner in LINEAR]
    last, mean, vote = (model.score(X[:-1], y[:-1]) for model in fits)
    assert last < 0.9 < min(mean, vote)


def test_an_empty_chunk_of_a_weighted_stream_changes_nothing() -> None:
    X, y = integers(seed=31)
    for learner in FAMILY:
        model = learner().partial_fit(X, y, classes=[0, 1])
        before = model.decision_function(X)
        model.partial_fit(X, y, sample_weight=np.zeros(len(y)))
        assert_array_equal(model.decision_function(X), before)


def test_attributes_are_the_model() -> None:
    X, y = integers(seed=26)
    dual = mm.KernelPerceptron(stop="epochs", max_epochs=2).fit(X, y)
    before = dual.decision_function(X)
    dual.intercept_ += 1.0
    dual.dual_coef_ *= 2.0
    assert_allclose(dual.decision_function(X), 2 * (before - dual.intercept_ + 1) + dual.intercept_)
    model = mm.Perceptron(stop="epochs", max_epochs=2).fit(X, y)
    model.coef_[:] = 0.0
    model.intercept_[:] = 0.0
    model.partial_fit(X, y)
    assert_array_equal(model.coef_, reference.perceptron(X, y, 2, epochs=1).weights[-1])
    traced = mm.Perceptron(stop="epochs", max_epochs=2, trace=True).fit(X, y)
    assert not hasattr(traced.set_params(trace=False).fit(X, y), "trace_")


def test_a_gram_matrix_is_not_kept_in_the_model() -> None:
    X, y = mm.datasets.circles(400, random_state=0)
    model = mm.KernelPerceptron(kernel="precomputed").fit(mm.kernels.RBF().gram(X), y)
    assert len(pickle.dumps(model)) < 50_000


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_trace_of_sparse_rows_stays_sparse(n_classes: int) -> None:
    X, y = integers(n_classes=n_classes, seed=27)
    wide = sp.csr_array((sp.csr_array(X).data, sp.csr_array(X).indices, sp.csr_array(X).indptr),
                        shape=(len(y), 10**6))  # fmt: skip
    model = mm.Perceptron(stop="epochs", max_epochs=3, trace=True).fit(wide, y)
    weights, intercept = model.trace_.after(len(model.trace_.row))
    assert_allclose(weights, model.coef_, atol=1e-12)
    assert_allclose(intercept, model.intercept_)
    dense = mm.Perceptron(stop="epochs", max_epochs=3, trace=True).fit(X, y).trace_
    assert_allclose(dense.coef[7], dense.after(7)[0])
    assert_allclose(dense.intercept[7], dense.after(7)[1])


def test_kernel_perceptron_takes_gram_matrices_and_objects() -> None:
    X, y = mm.datasets.circles(120, random_state=0)
    kernel = mm.kernels.RBF(gamma=2.0)
    direct = mm.KernelPerceptron(kernel=kernel).fit(X, y)
    gram = mm.KernelPerceptron(kernel="precomputed").fit(kernel.gram(X), y)
    assert_allclose(
        gram.decision_function(kernel.gram(X[:7], X)), direct.decision_function(X[:7]), atol=1e-9
    )
    words = ["aaa", "aab", "abb", "bbb", "bba"] * 4
    labels = [word.count("a") > 1 for word in words]
    count = mm.kernels.FromFunction(
        lambda s, t: sum(s.count(c) * t.count(c) for c in "ab"), "pairs"
    )
    model = mm.KernelPerceptron(kernel=2 * count + 1.0).fit(words, labels)
    assert_array_equal(model.predict(words), labels)
    model = mm.KernelPerceptron(kernel=count).fit(words, labels)
    assert_array_equal(model.predict(words), labels)


def test_an_indefinite_kernel_has_no_bound_and_says_so() -> None:
    X, y = mm.datasets.xor(60, random_state=0)
    with pytest.warns(UserWarning, match="indefinite on these rows"):
        model = mm.KernelPerceptron(
            kernel="sigmoid", gamma=1.0, coef0=-1.0, stop="epochs", max_epochs=3
        ).fit(X, y)
    assert model.mistake_bound_ == np.inf
