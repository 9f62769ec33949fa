"""Perceptrons that visit rows in blocks make the updates of the same rows in memory."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.problems.problem import Status

N, D = 3000, 60


def rows(classes: int = 2, *, sparse: bool = False) -> tuple[Any, Any]:
    """Return rows of overlapping classes, enough for two leaves."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, D))
    if sparse:
        X = sp.csr_array(X * (rng.random((N, D)) < 0.8))
    scores = X @ rng.standard_normal((D, classes)) + rng.standard_normal((N, classes))
    return X, np.array(list("abcdef"))[scores.argmax(axis=1)]


MAKE: dict[str, Callable[[], Any]] = {
    "plain": lambda: mm.Perceptron(max_epochs=4, shuffle=False),
    "margin and a random start": lambda: mm.Perceptron(
        max_epochs=3, shuffle=False, margin=0.5, eta=0.3, init="random", random_state=4
    ),
    "best": lambda: mm.Perceptron(max_epochs=4, shuffle=False, keep="best"),
    "small change": lambda: mm.Perceptron(
        max_epochs=20, shuffle=False, stop="small_change", change_tol=0.1
    ),
    "averaged": lambda: mm.AveragedPerceptron(max_epochs=3, shuffle=False, fit_intercept=False),
    "voted": lambda: mm.VotedPerceptron(max_epochs=2, shuffle=False),
}


def both(model: Any, X: Any, y: Any, source: Any, weight: Any = None) -> tuple[Any, Any]:
    """Return fits in memory and to the source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the classes overlap
        return clone(model).fit(X, y, sample_weight=weight), model.fit(source)


def assert_same(one: Any, other: Any, X: Any, source: Any) -> None:
    """Compare what was learnt, bit by bit."""
    assert_array_equal(one.coef_, other.coef_)
    assert_array_equal(one.intercept_, other.intercept_)
    assert_array_equal(one.classes_, other.classes_)
    for name in ("mistakes_", "updates_", "epochs_", "status_", "stop_reason_", "margin_"):
        assert getattr(one, name) == getattr(other, name)
    assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert_array_equal(one.predict(X), other.predict(source))


@pytest.mark.parametrize("name", MAKE)
def test_weights_are_those_of_rows_in_memory(client: Any, name: str) -> None:
    X, y = rows(2 if client is None else 3)
    source = mm.data.open(X, y, rows=700, memory=1_700_000, client=client)
    assert_same(*both(MAKE[name](), X, y, source), X, source)


@pytest.mark.wide
@pytest.mark.parametrize("name", ["plain", "averaged", "voted"])
def test_several_classes_and_sparse_rows(name: str) -> None:
    X, y = rows(4, sparse=True)
    source = mm.data.open(X, y, rows=500)
    assert_same(*both(MAKE[name](), X, y, source), X, source)


def test_rows_without_weight_are_absent_and_classes_have_factors() -> None:
    X, y = rows(3)
    weight = np.random.default_rng(0).integers(0, 3, N).astype(float)
    source = mm.data.open(X, y, weight=weight, rows=900)
    model = mm.VotedPerceptron(max_epochs=2, shuffle=False, class_weight={"a": 2.0, "c": 0.5})
    assert_same(*both(model, X, y, source, weight), X, source)


def test_separable_rows_end_the_epochs_and_the_bound_holds() -> None:
    X, y = mm.datasets.separable(2000, margin=0.3, random_state=0)
    model = mm.Perceptron().fit(mm.data.open(X, y, rows=300))
    assert model.status_ is Status.ALL_CORRECT
    assert model.margin_ > 0
    assert model.updates_ <= model.mistake_bound_ < np.inf


def test_a_fit_goes_on_from_the_last_one() -> None:
    X, y = rows()
    source = mm.data.open(X, y, rows=700)
    model = mm.Perceptron(max_epochs=2, stop="epochs", shuffle=False, warm_start=True)
    twice = model.fit(source).fit(source)
    once = mm.Perceptron(max_epochs=4, stop="epochs", shuffle=False).fit(X, y)
    assert_array_equal(twice.coef_, once.coef_)


def test_time_limits_keep_what_was_learnt() -> None:
    X, y = rows()
    model = mm.Perceptron(max_time=1e-9).fit(mm.data.open(X, y, rows=700))
    assert model.status_ is Status.MAX_TIME
    assert np.isnan(model.margin_)
    assert model.mistake_bound_ == np.inf


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (mm.KernelPerceptron(), "KernelPerceptron needs all rows in memory"),
        (mm.Perceptron(stop="held_out"), "stop='held_out'"),
        (mm.AveragedPerceptron(trace=True), "trace=True"),
    ],
)
def test_what_needs_all_rows_is_refused(model: Any, named: str) -> None:
    X, y = rows()
    with pytest.raises(ValueError, match=named):
        model.fit(mm.data.open(X, y))
