"""SVCSearchCV(refine="contenders"): the winner of refine="all", and metrics to the last bit."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.model_selection.search import run
from maxmargin.model_selection.search.metrics import METRICS, find_metrics
from maxmargin.model_selection.search.run import Standings

GRID = {"C": np.logspace(-2, 3, 6), "gamma": [0.05, 0.3, 2.0]}
SVC, SVR = mm.SVC(tol=1e-6), mm.SVR(tol=1e-6)


@pytest.fixture
def few_rows_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let problems of any size be refined."""
    monkeypatch.setattr(run, "_ENOUGH_ROWS", 0)


def rows_of(seed: int, kind: str, n: int = 90) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    f = X[:, 0] + X[:, 1] ** 2 - 0.8 + 0.6 * rng.normal(size=n)
    if kind == "targets":
        return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    return X, np.digitize(f, [0.0] if kind == "two" else [-0.5, 0.7])


# ------------------------------------------------------------------- who can win


@pytest.mark.parametrize("rows", [20, 200, 4000])
def test_the_winner_is_the_best_if_no_score_changes_more_than_the_margin(rows: int) -> None:
    rng, premise = np.random.default_rng(rows), 0
    for _ in range(300):
        count = int(rng.integers(1, 60))
        true = np.round(rng.beta(8, 2, count) * rows) / rows  # ties are frequent
        noise = rng.choice([0.3, 3.0]) * rng.normal(size=count) / np.sqrt(rows)
        wide = np.round((true + 0.1 * noise) * rows) / rows
        final = rng.random(count) < 0.1
        wide[final] = true[final]
        if rng.random() < 0.2:
            wide[rng.integers(count)] = np.nan
        standings = Standings(wide, final, 1.0 / rows)
        while len(chosen := standings.contenders()):
            assert not standings.final[chosen].any()
            for candidate in chosen:
                standings.enter(candidate, true[candidate])
        out = ~standings.final
        if (true[out] - wide[out] < standings.margin).all():
            premise += 1
            assert np.nanargmax(standings.scores) == np.argmax(true)
        assert standings.final.any()
        assert standings.final[np.nanargmax(standings.scores)]
    assert premise > 200


def test_a_few_candidates_are_all_solved() -> None:
    standings = Standings(np.array([0.1, 0.9, 0.5]), np.zeros(3, bool), 0.01)
    assert standings.contenders().tolist() == [0, 1, 2]
    for candidate in range(3):
        standings.enter(candidate, 0.2)
    assert not len(standings.contenders())


# ------------------------------------------------------------------- beside all solved to tol

CASES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "two classes": (SVC, "two", {}),
    "three classes": (SVC, "three", {}),
    "one against the rest": (mm.SVC(tol=1e-6, multi_class="ovr"), "three", {}),
    "balanced accuracy": (SVC, "three", {"scoring": "balanced_accuracy"}),
    "f1": (SVC, "three", {"scoring": "f1_macro"}),
    "areas": (SVC, "two", {"scoring": "roc_auc"}),
    "several": (SVC, "two", {"scoring": ["accuracy", "roc_auc"], "refit": "accuracy"}),
    "training scores": (SVC, "two", {"return_train_score": True}),
    "regression": (SVR, "targets", {}),
    "errors": (SVR, "targets", {"scoring": "neg_mean_squared_error"}),
}


@pytest.mark.usefixtures("few_rows_suffice")
@pytest.mark.parametrize("case", CASES)
def test_the_winner_is_that_of_all_solved_to_tol(case: str) -> None:
    machine, kind, settings = CASES[case]
    for seed in range(3):
        X, y = rows_of(seed, kind)
        weight = np.random.default_rng(seed).uniform(0, 2, len(y)) if seed == 2 else None
        search = mm.SVCSearchCV(machine, GRID, cv=3, **{"refit": False, **settings})
        some = clone(search).fit(X, y, sample_weight=weight)
        every = clone(search).set_params(refine="all").fit(X, y, sample_weight=weight)
        assert some.best_index_ == every.best_index_, seed
        precise = 1e-12 if kind != "targets" else 1e-4
        assert some.best_score_ == pytest.approx(every.best_score_, rel=precise)
        gaps = some.cv_results_["max_relative_gap"]
        name = "accuracy" if case == "several" else "score"
        scores = some.cv_results_[f"mean_test_{name}"]
        assert (gaps[scores >= some.best_score_] <= 1e-6).all()
        assert (gaps <= 0.01).all()
        assert (every.cv_results_["max_relative_gap"] <= 1e-6).all()
        assert "candidates were solved to tol" in some.sharing_
        assert "solved to tol" not in every.sharing_


@pytest.mark.usefixtures("few_rows_suffice")
def test_ties_go_to_the_first() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-4, 1, (40, 2)), rng.normal(4, 1, (40, 2))])
    y = np.repeat([0, 1], 40)
    search = mm.SVCSearchCV(mm.SVC(), {"C": [0.1, 1, 10, 100], "gamma": [0.1, 0.2]}, cv=4)
    search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.count_nonzero(scores == scores.max()) > 1
    assert search.best_index_ == np.argmax(scores)
    assert (search.cv_results_["max_relative_gap"][scores == scores.max()] <= 1e-4).all()


@pytest.mark.usefixtures("few_rows_suffice")
@pytest.mark.parametrize("kept", [True, False])
def test_pipelines_and_starts(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kept:
        kind = run.Starts
        monkeypatch.setattr(run, "Starts", lambda memory: kind(0))
    X, y = rows_of(0, "three")
    pipeline = make_pipeline(StandardScaler(), SVC)
    grid = {f"svc__{name}": values for name, values in GRID.items()}
    some = mm.SVCSearchCV(pipeline, grid, cv=3, refit=False).fit(X, y)
    every = clone(some).set_params(refine="all").fit(X, y)
    assert some.best_index_ == every.best_index_
    assert some.best_score_ == every.best_score_


def test_what_is_out_keeps_a_wide_gap() -> None:
    X, y = rows_of(0, "two", n=900)
    grid = {"C": np.logspace(-2, 3, 6), "gamma": [0.01, 0.1, 0.5, 3.0]}
    some = mm.SVCSearchCV(mm.SVC(), grid, cv=3, n_jobs=2, refit=False).fit(X, y)
    every = clone(some).set_params(refine="all").fit(X, y)
    assert some.best_index_ == every.best_index_
    assert some.best_score_ == pytest.approx(every.best_score_, abs=1e-12)
    gaps, scores = some.cv_results_["max_relative_gap"], some.cv_results_["mean_test_score"]
    assert (gaps > 1e-4).any()
    assert (gaps <= 0.01).all()
    assert scores[gaps > 1e-4].max() < some.best_score_
    close = np.abs(scores - every.cv_results_["mean_test_score"])
    assert (close <= 0.02).all()
    refined = int(some.sharing_.split("; ")[-1].split(" of ")[0])
    assert refined <= np.count_nonzero(gaps <= 1e-4) < len(gaps)


@pytest.mark.usefixtures("few_rows_suffice")
@pytest.mark.parametrize(
    "settings",
    [
        {"refine": "all"},
        {"refit": lambda results: 0},
        {"scoring": ["accuracy", "roc_auc"], "refit": False},
    ],
    ids=["all", "chosen", "no winner"],
)
def test_where_all_are_solved_to_tol(settings: dict[str, Any]) -> None:
    X, y = rows_of(0, "two")
    search = mm.SVCSearchCV(SVC, GRID, cv=3, **{"refit": False, **settings}).fit(X, y)
    gaps = search.cv_results_["max_relative_gap"]
    assert (gaps[np.isfinite(gaps)] <= 1e-6).all()


@pytest.mark.usefixtures("few_rows_suffice")
@pytest.mark.filterwarnings("ignore:Scoring failed")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_candidates_without_a_score_lose() -> None:
    def some_fail(model: Any, X: Any, y: Any) -> float:
        if model.C > 1:
            raise ValueError("too large")
        return float(model.score(X, y))

    X, y = rows_of(0, "two")
    search = mm.SVCSearchCV(SVC, {"C": [0.1, 1, 10]}, cv=3, scoring=some_fail).fit(X, y)
    assert search.best_params_["C"] <= 1
    assert np.isnan(search.cv_results_["mean_test_score"][2])


def test_refine_has_two_values() -> None:
    with pytest.raises(ValueError, match=r"refine.*'some'"):
        mm.SVCSearchCV(SVC, GRID, refine="some").fit(*rows_of(0, "two"))


# ------------------------------------------------------------------- metrics


class Fixed:
    """A model that predicts what it is told."""

    def __init__(self, predicted: Any, kind: str) -> None:
        self._predicted, self._estimator_type = predicted, kind
        if kind == "classifier":
            self.classes_ = np.unique(predicted)

    def __sklearn_tags__(self) -> Any:
        return (mm.SVC() if self._estimator_type == "classifier" else mm.SVR()).__sklearn_tags__()

    def fit(self, X: Any, y: Any) -> None:
        """Nothing to learn."""

    def predict(self, X: Any) -> Any:
        """Return what was given."""
        return self._predicted


def by_scorer(name: str, y: Any, predicted: Any, kind: str) -> float:
    return float(get_scorer(name)(Fixed(predicted, kind), np.zeros((len(y), 1)), y))


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_those_of_scikit_learn_to_the_last_bit(name: str) -> None:
    rng = np.random.default_rng(0)
    kind = "classifier" if "accuracy" in name else "regressor"
    for n in [2, 3, 7, 40, 100, 129, 800, 1601]:
        if kind == "classifier" and n < 40:
            continue  # scikit-learn warns where all are of one class
        for scale in (1.0, 1e-9, 1e9):
            y, predicted = scale * rng.normal(size=(2, n))
            if kind == "classifier":
                y = rng.choice([2, 5, 9], n) if scale == 1.0 else rng.choice(["a", "bb"], n)
                predicted = np.where(rng.random(n) < 0.6, y, y[0])
            assert METRICS[name](y, predicted) == by_scorer(name, y, predicted, kind)


def test_what_metrics_leave_to_scikit_learn() -> None:
    one, numbers = np.array([1]), np.array([1.0, 2.0])
    assert METRICS["balanced_accuracy"](one, np.array([2])) is None
    assert METRICS["r2"](numbers[:1], numbers[:1]) is None
    assert METRICS["r2"](np.ones(2), numbers) is None
    assert METRICS["r2"](numbers.astype(np.float32), numbers) is None
    assert METRICS["neg_mean_squared_error"](numbers, np.array([1.0, np.nan])) is None
    for metric in METRICS.values():
        assert metric(np.empty(0), np.empty(0)) is None
    assert find_metrics(lambda model, X, y: 1.0, True) is None
    assert find_metrics("roc_auc", True) is None
    assert find_metrics(["accuracy", "roc_auc"], True) is None
    assert find_metrics({}, True) is None
    assert find_metrics(None, False) is METRICS["r2"]
    assert find_metrics({"mine": "accuracy"}, True) == {"mine": METRICS["accuracy"]}
