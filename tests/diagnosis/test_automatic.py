"""Fits that choose and tune their model by themselves, within a time."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

import maxmargin as mm
from maxmargin.diagnosis import Diagnosis, automatic
from maxmargin.diagnosis.automatic import Replacement, Tuning, Untuned
from maxmargin.runtime import clock

X, Y = mm.datasets.circles(600, random_state=0)


@pytest.fixture
def seconds_of_a_look() -> float:
    """How far the clock goes on whenever somebody looks at it."""
    return 0.0


@pytest.fixture(autouse=True)
def patient_clock(monkeypatch: pytest.MonkeyPatch, seconds_of_a_look: float) -> None:
    """Let no answer depend on how busy the machine is: the clock stands still, or counts looks."""
    looks = itertools.count()
    monkeypatch.setattr(clock, "now", lambda: next(looks) * seconds_of_a_look)


def test_steps_are_told_in_order_and_kept() -> None:
    told: list[Any] = []
    found = mm.fit_automatically(X[:300], Y[:300], callback=told.append)
    assert told == [found.diagnosis, found.tuning]
    assert isinstance(found.model, mm.SVC)
    assert found.model.score(X[300:], Y[300:]) == 1.0
    assert found.model.certificate_.holds(found.model.tol)
    assert found.model.max_time is None  # it made no difference
    assert found.rows.tolist() == list(range(300))
    assert not found.out_of_time
    assert found.tuning.search.best_params_["C"] == found.model.C
    assert "Verdict: non-linearly separable" in str(found)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, np.ndarray.tolist], ids=str)
def test_the_kind_of_rows_does_not_matter(make: Any) -> None:
    found = mm.fit_automatically(make(X[:200]), Y[:200].tolist())
    assert found.model.score(X[200:], Y[200:]) > 0.98


def test_frames_keep_their_names() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:200], columns=["width", "height"])
    model = mm.fit_automatically(frame, Y[:200]).model
    assert model.feature_names_in_.tolist() == ["width", "height"]
    assert model.score(pd.DataFrame(X[200:], columns=["width", "height"]), Y[200:]) > 0.98


def test_regression() -> None:
    y = 3 * X[:, 0] + np.random.default_rng(0).normal(0, 0.1, 600)
    found = mm.fit_automatically(X[:200], y[:200])
    assert found.diagnosis.verdict == "linear"
    assert found.diagnosis.scoring == "neg_mean_absolute_error"
    assert found.model.score(X[200:], y[200:]) > 0.95


def test_prepare_becomes_the_first_step() -> None:
    rng = np.random.default_rng(0)
    city = rng.choice(["Rome", "Oslo"], 200)
    rows = np.array([[np.nan if k % 17 == 3 else rng.normal(), c] for k, c in enumerate(city)],
                    dtype=object)  # fmt: skip
    prepare = make_column_transformer((SimpleImputer(), [0]), (OneHotEncoder(), [1]))
    found = mm.fit_automatically(rows, city == "Oslo", prepare=prepare, task="classification")
    assert not hasattr(prepare, "transformers_")
    assert found.diagnosis.n_features == 3
    assert found.model.predict(np.array([[0.5, "Oslo"]], dtype=object)).tolist() == [True]


def test_many_rows_are_sampled_for_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "SEARCHED_ROWS", 100)
    tuning = mm.fit_automatically(X, Y).tuning
    assert (tuning.n_fitted, tuning.n_scored) == (100, 200)


def test_models_without_a_cost_are_not_searched() -> None:
    rows = np.arange(120) % 3
    found = mm.fit_automatically(rows[:, np.newaxis].astype(float), np.arange(120) % 2)
    assert found.tuning == Tuning(untuned=Untuned.NO_COST)
    assert found.tuning.search is None


def test_a_map_replaces_a_kernel_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "KERNEL_WORK", 1.0)
    told: list[Any] = []
    found = mm.fit_automatically(X[:400], Y[:400], callback=told.append)
    assert [type(step) for step in told] == [Diagnosis, Tuning, Replacement]
    assert found.replacement is not None
    assert (found.replacement.slow, found.replacement.by_map) == ("SVC", True)
    assert found.replacement.n_rows == len(found.rows) == 400
    assert isinstance(found.model[-2], mm.Nystroem)
    assert found.model.score(X[400:], Y[400:]) > 0.98


def test_where_a_map_is_worse_the_kernel_is_fitted_to_some_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(automatic, "KERNEL_WORK", 1.0)
    monkeypatch.setattr(automatic, "MAP_FEATURES", (2, 2))
    monkeypatch.setattr(automatic, "SEARCHED_ROWS", 200)
    order = np.argsort(Y)  # the sample must not be the first rows
    found = mm.fit_automatically(X[order], Y[order])
    assert found.replacement is not None
    assert not found.replacement.by_map
    assert found.replacement.map_score < found.replacement.kernel_score
    assert len(found.rows) == 200
    assert isinstance(found.model, mm.SVC)
    assert found.model.score(X, Y) > 0.95


@pytest.mark.parametrize("seconds_of_a_look", [0.3])
def test_without_time_for_kernels_they_are_searched_beside_planes() -> None:
    found = mm.fit_automatically(X, Y)
    assert found.diagnosis.verdict == "undecided"
    assert any(rung.late for rung in found.diagnosis.rungs)
    names = [type(search.estimator[-1]).__name__ for search in found.tuning.searches]
    assert names == ["LinearSVC", "SVC"]
    assert found.tuning.best == 1
    assert found.model.score(X, Y) > 0.95


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_time": 0}, "max_time=0 is not valid for fit_automatically"),
        ({"random_state": -1}, "random_state=-1 is not valid for fit_automatically"),
        ({"task": "ranking"}, "task must be one of"),
    ],
)
def test_wrong_arguments_are_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mm.fit_automatically(X, Y, **given)
