"""SVCSearchCV: scorings, what falls back and why, threads, memory, and the contract."""

import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn import svm
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm
from tests.model_selection.test_search import (
    COSTS,
    GRID,
    SVC,
    SVR,
    TARGET,
    WEIGHT,
    Y3,
    N,
    X,
    Y,
    assert_same,
    both,
)
from tests.model_selection.test_search import is_shared as shared

# ------------------------------------------------------------------- scorings


def _ask(model: Any, X: Any, y: Any) -> dict[str, float]:
    assert model.n_support_.sum() == len(model.support_) == model.support_vectors_.shape[0]
    return {"score": model.score(X, y), "C": -abs(model.C - 1), "few": -float(model.n_support_[0])}


SCORINGS: dict[str, tuple[Any, Any]] = {
    "accuracy": ("accuracy", True),
    "roc_auc": ("roc_auc", True),
    "f1_macro": ("f1_macro", True),
    "list": (["accuracy", "roc_auc"], "roc_auc"),
    "dict": ({"a": "accuracy", "b": make_scorer(accuracy_score)}, "b"),
    "unrefitted": (["accuracy", "roc_auc"], False),
    "function": (lambda model, X, y: float((model.predict(X) == y).mean()), True),
    "asks the model": (_ask, "few"),
    "parameters": (lambda model, X, y: -abs(model.get_params()["C"] - model.gamma), True),
    "type": (lambda model, X, y: float(isinstance(model, mm.SVC)), True),
    "refit function": ("accuracy", lambda results: 1),
    "no refit": ("accuracy", False),
}


@pytest.mark.parametrize("case", SCORINGS)
def test_scorings(case: str) -> None:
    scoring, refit = SCORINGS[case]
    # Whose support vectors are counted is the same model: fitted by itself.
    ours, theirs = both(SVC, COSTS, scoring=scoring, refit=refit, return_train_score=True)
    assert_same(ours, theirs, differing=2)
    assert shared(ours)
    assert type(ours.scorer_) is type(theirs.scorer_)


def test_scorers_see_a_pipeline_as_a_pipeline() -> None:
    def scoring(model: Any, X: Any, y: Any) -> float:
        assert isinstance(model, Pipeline)
        names = [name for name, _ in model.steps]
        assert names == ["standardscaler", "svc"]
        assert model[0].mean_.shape == (4,)
        assert model.named_steps["svc"] is model[-1]
        assert_array_equal(model[:-1].transform(X), model.steps[0][1].transform(X))
        return float(model[-1].n_support_.sum())

    for machine in (SVC, mm.SVC(kernel="linear", tol=1e-6)):
        pipeline = Pipeline([("standardscaler", StandardScaler()), ("svc", machine)])
        ours, theirs = both(pipeline, {"svc__C": [0.1, 1]}, scoring=scoring, error_score="raise")
        assert ours.best_index_ == theirs.best_index_


@pytest.mark.filterwarnings("ignore:Scoring failed")
@pytest.mark.filterwarnings("ignore:One or more of the t")
@pytest.mark.parametrize("scoring", ["roc_auc_ovr", lambda model, X, y: 1 / 0])
def test_scorings_that_fail(scoring: Any) -> None:
    assert_same(*both(SVC, GRID, scoring=scoring))
    for search in (mm.SVCSearchCV, GridSearchCV):
        with pytest.raises((AttributeError, ZeroDivisionError)):
            search(SVC, GRID, scoring=scoring, error_score="raise").fit(X, Y)


def test_several_scorings_need_the_name_of_one() -> None:
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        mm.SVCSearchCV(SVC, GRID, scoring=["accuracy", "roc_auc"]).fit(X, Y)


def test_a_scoring_that_takes_no_weights_warns() -> None:
    with pytest.warns(UserWarning, match="does not support sample_weight"):
        mm.SVCSearchCV(SVC, {"C": [1]}, scoring=lambda m, X, y: 1.0).fit(X, Y, sample_weight=WEIGHT)


# ------------------------------------------------------------------- searched as GridSearchCV does


def _failing(rows: Any) -> Any:
    if len(rows) == 2 * N // 3:  # in the splits, but not with all rows
        raise RuntimeError("too many")
    return rows


FALLBACKS: dict[str, tuple[Any, Any, Any, str]] = {
    "precomputed": (mm.SVC(kernel="precomputed"), {"C": [1, 2]}, X @ X.T, "given as a matrix"),
    "function": (mm.SVC(kernel=lambda A, B: A @ B.T), {"C": [1, 2]}, X, "is a function"),
    "scikit-learn's": (svm.SVC(), GRID, X, r"sklearn\.svm.*SVC is not maxmargin's"),
    "time": (mm.SVC(max_time=60.0), {"C": [1, 2]}, X, "max_time"),
    "callback": (mm.SVC(callback=lambda progress: None), {"C": [1, 2]}, X, "callback"),
    "rounds": (mm.SVC(max_iter=2), {"C": [1, 2]}, X, "max_iter"),
    "bad C": (SVC, {"C": [-1, 1]}, X, "C=-1 is not valid"),
    "bad step": (
        make_pipeline(FunctionTransformer(_failing), SVC),
        {"functiontransformer": [FunctionTransformer(_failing), "passthrough"]},
        X,
        "too many",
    ),
}


@pytest.mark.parametrize("case", FALLBACKS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_what_shares_nothing_says_why(case: str) -> None:
    estimator, grid, rows, why = FALLBACKS[case]
    ours, theirs = both(estimator, grid, rows)
    assert_same(ours, theirs, differing=0)
    assert not shared(ours)
    assert re.search(why, ours.sharing_)


@pytest.mark.parametrize(
    ("rows", "y", "grid", "fit"),
    [
        (np.where(X > 2.0, np.nan, X), Y, GRID, {}),
        (X, np.repeat([0, 1], N // 2), {"C": [1]}, {}),
        (X, Y, GRID, {"sample_weight": WEIGHT[:-3]}),
        (X, Y, GRID, {"sample_weight": -WEIGHT}),
        (X, Y, GRID, {"nothing": 1}),
        (X, None, GRID, {}),
        (X, Y[:-1], GRID, {}),
        (X[:0], Y[:0], GRID, {}),
        (X, Y, {"nothing": [1, 2]}, {}),
    ],
    ids=["NaN", "one class", "short weights", "negative weights", "unknown", "no y", "short y",
         "empty", "no parameter"],
)  # fmt: skip
@pytest.mark.parametrize("error_score", [np.nan, "raise"])
def test_what_fails_fails_alike(rows: Any, y: Any, grid: Any, fit: Any, error_score: Any) -> None:
    errors = []
    for search in (mm.SVCSearchCV, GridSearchCV):
        with pytest.raises((ValueError, TypeError)) as error:
            search(SVC, grid, cv=KFold(2), error_score=error_score).fit(rows, y, **fit)
        errors.append((error.type, str(error.value)[:60]))
    assert errors[0] == errors[1]


def test_metadata_routing() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = clone(SVC).set_fit_request(sample_weight=True)
        estimator.set_score_request(sample_weight=True)
        ours, theirs = both(estimator, GRID, fit={"sample_weight": WEIGHT})
    assert_same(ours, theirs)
    assert "routing" in ours.sharing_


def test_callbacks_are_called_for_each_fit() -> None:
    pytest.importorskip("sklearn.callback")

    class Counts:
        def __init__(self) -> None:
            self.begun = 0

        def setup(self, estimator: Any, context: Any) -> None: ...

        def on_fit_task_begin(self, estimator: Any, context: Any, **named: Any) -> None:
            self.begun += 1

        def on_fit_task_end(self, estimator: Any, context: Any, **named: Any) -> None: ...

        def teardown(self, estimator: Any, context: Any) -> None: ...

    for inner in (False, True):
        counts = []
        for kind in (mm.SVCSearchCV, GridSearchCV):
            search, seen = kind(clone(SVC), {"C": [1, 2]}), Counts()
            (search.estimator if inner else search).set_callbacks(seen)
            search.fit(X, Y)
            counts.append(seen.begun)
        assert counts[0] == counts[1] > 0


# ------------------------------------------------------------------- threads and memory


@pytest.mark.parametrize(
    ("estimator", "grid", "y"),
    [(SVC, GRID, Y3), (SVR, GRID, TARGET), (mm.LinearSVC(), {"C": [0.1, 1, 10]}, Y)],
    ids=["SVC", "SVR", "LinearSVC"],
)
def test_threads_do_not_change_a_bit(estimator: Any, grid: Any, y: Any) -> None:
    before = list(warnings.filters)
    searches = [
        mm.SVCSearchCV(estimator, grid, cv=3, n_jobs=jobs).fit(X, y) for jobs in (None, 2, -1)
    ]
    assert warnings.filters == before
    for key, values in searches[0].cv_results_.items():
        if "test" in key or "gap" in key:
            for other in searches[1:]:
                assert_array_equal(values, other.cv_results_[key])


@pytest.mark.parametrize(("estimator", "y"), [(SVC, Y3), (SVR, TARGET)], ids=["SVC", "SVR"])
def test_little_memory(estimator: Any, y: Any) -> None:
    ours = mm.SVCSearchCV(estimator, GRID, memory=1000).fit(X, y)
    theirs = GridSearchCV(estimator, GRID).fit(X, y)
    assert_same(ours, theirs, atol=1e-9 if y is Y3 else 1e-3)
    assert "memory allows" in ours.sharing_
    assert "chains" in ours.sharing_


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("memory", 0, ValueError), ("memory", "much", TypeError),
     ("memory", True, TypeError), ("memory", 1.5, TypeError), ("n_jobs", 0, ValueError)],
)  # fmt: skip
def test_bad_settings(name: str, value: Any, error: Any) -> None:
    with pytest.raises(error, match=name):
        mm.SVCSearchCV(SVC, GRID, **{name: value}).fit(X, Y)


def test_what_verbose_says(capsys: pytest.CaptureFixture[str]) -> None:
    mm.SVCSearchCV(SVC, GRID, verbose=1, cv=2).fit(X, Y)
    assert capsys.readouterr().out == "4 candidates in 2 splits: 8 fits\n"
    mm.SVCSearchCV(SVC, GRID, verbose=2, cv=2).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    assert all("C=" in line and "gap" in line for line in lines[1:])
    mm.SVCSearchCV(SVC, GRID, cv=2).fit(X, Y)
    assert capsys.readouterr().out == ""


# ------------------------------------------------------------------- contract

SEARCHES = [
    mm.SVCSearchCV(mm.SVR(), {"C": [0.1, 1]}),
    mm.SVCSearchCV(make_pipeline(StandardScaler(), mm.LinearSVC()), {"linearsvc__C": [0.1, 1]}),
]


@pytest.mark.full
@parametrize_with_checks(SEARCHES)
@pytest.mark.filterwarnings("ignore")
def test_common_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_clone_parameters_pickle_and_repr() -> None:
    search = mm.SVCSearchCV(SVC, GRID, refine="all", memory=10**9, cv=3)
    again = clone(search)
    assert repr(again) == repr(search)
    assert "refine='all'" in repr(search)
    assert again.get_params()["estimator__tol"] == 1e-6
    again.set_params(estimator__tol=1e-5).fit(X, Y)
    assert again.best_estimator_.tol == 1e-5
    loaded = pickle.loads(pickle.dumps(again))
    assert_array_equal(loaded.predict(X), again.predict(X))
    assert_array_equal(loaded.decision_function(X), again.decision_function(X))
    assert loaded.score(X, Y) == again.score(X, Y)
    assert loaded.sharing_ == again.sharing_
    assert not [name for name in vars(again) if name.startswith("_")]
