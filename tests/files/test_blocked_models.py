"""Files, pickles and pages of models that were fitted to rows in blocks, many of them or few."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import maxmargin as mm
from maxmargin.estimators.linear import base
from tests.files.tampering import Opened

certify: Any = mm.certify  # which also knows perceptrons
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)) * [1, 5, 0.2, 1] + [0, 3, 0, 0]
TWO = np.where(X[:, 0] + 0.2 * X[:, 1] + RNG.normal(0, 0.4, 300) > 0.6, "yes", "no")
THREE = np.digitize(X[:, 0] + RNG.normal(0, 0.2, 300), [-0.5, 0.5])
NUMBERS = X @ [1.0, -0.5, 2.0, 0.1] + RNG.normal(0, 0.2, 300)
MODELS = {
    "two": (mm.LinearSVC(), TWO),
    "pairs": (mm.LinearSVC(multi_class="ovo"), THREE),
    "rest": (mm.LinearSVC(loss="squared_hinge", class_weight="balanced"), THREE),
    "penalized": (mm.LinearSVC(intercept="penalized"), TWO),
    "numbers": (mm.LinearSVR(), NUMBERS),
    "squares": (mm.LinearSVR(loss="squared_epsilon_insensitive"), NUMBERS),
}
OF_ROWS = ("alpha_", "slack_", "support_", "dual_coef_")


@pytest.fixture(params=["few", "many"])
def rows_kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether models keep what belongs to their rows."""
    if request.param == "many":
        monkeypatch.setattr(base, "KEPT_NUMBERS", 10)
    return bool(request.param == "few")


def fitted(name: str) -> tuple[Any, Any]:
    """Return a model fitted to a source, and the source."""
    model, y = MODELS[name]
    source = mm.data.open(X, y, rows=70)
    return clone(model).fit(source), source


def same(one: Any, other: Any) -> bool:
    """Tell whether two values of attributes are the same."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return bool(one == other)


@pytest.mark.parametrize("name", MODELS)
def test_files_and_pickles_hold_all_that_the_model_has(
    name: str, rows_kept: bool, tmp_path: Path
) -> None:
    model, source = fitted(name)
    assert all(hasattr(model, attribute) == rows_kept for attribute in OF_ROWS)
    mm.save(model, tmp_path / "m.mmg")
    for again in (mm.load(tmp_path / "m.mmg"), pickle.loads(pickle.dumps(model))):
        assert vars(again).keys() == vars(model).keys()
        assert all(same(value, vars(again)[key]) for key, value in vars(model).items())
        assert np.array_equal(again.predict(source), model.predict(source))
        assert certify(again, source).holds(1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_what_shows_a_model_does_without_rows(name: str, rows_kept: bool) -> None:
    model, _ = fitted(name)
    assert repr(model) == repr(MODELS[name][0])
    assert model._repr_html_()
    fresh = clone(model).fit(X, MODELS[name][1])
    np.testing.assert_allclose(fresh.coef_, model.coef_, rtol=1e-9)


@pytest.mark.parametrize("name", ["two", "numbers"])
def test_a_report_does_without_rows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(base, "KEPT_NUMBERS", 10)
    model, y = MODELS[name]
    few = X[:60], y[:60]
    model = clone(model).fit(mm.data.open(*few))
    mm.report(model, *few, path=tmp_path / "page.html")
    assert type(model).__name__ in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_model_without_rows_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "KEPT_NUMBERS", 10)
    model, _ = fitted("two")
    for name in (*OF_ROWS, "n_support_", "support_vectors_"):
        with pytest.raises(AttributeError, match=r"(more|so many) rows"):
            getattr(model, name)


def test_refitting_to_few_rows_keeps_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "KEPT_NUMBERS", 10)
    model, source = fitted("two")
    monkeypatch.undo()
    whole = clone(model).fit(source)
    assert vars(model.fit(source)).keys() == vars(whole).keys()
    monkeypatch.setattr(base, "KEPT_NUMBERS", 10)
    assert not hasattr(model.fit(source), "alpha_")


@pytest.mark.parametrize("name", MODELS)
def test_a_pipeline_of_the_scaler_and_the_model(name: str, rows_kept: bool, tmp_path: Path) -> None:
    model, y = MODELS[name]
    view = mm.data.standardize(mm.data.open(X, y, rows=70))
    pipeline = make_pipeline(view.scaler, clone(model).fit(view))
    mm.save(pipeline, tmp_path / "m.mmg")
    again = mm.load(tmp_path / "m.mmg")
    whole = clone(make_pipeline(clone(view.scaler), model)).fit(X, y)
    np.testing.assert_allclose(again[-1].coef_, whole[-1].coef_, rtol=1e-7, atol=1e-10)
    assert np.array_equal(again.predict(X), pipeline.predict(X))
    assert certify(again, mm.data.open(X, y, rows=70)).holds(1e-4)
    assert certify(again, X, y).holds(1e-4)


@pytest.mark.parametrize("name", ["certificate_", "coef_"])
def test_what_does_not_belong_to_rows_is_needed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "KEPT_NUMBERS", 10)
    model, _ = fitted("two")
    mm.save(model, tmp_path / "m.mmg")
    opened = Opened(tmp_path / "m.mmg")
    del opened.state[name]
    with pytest.raises(mm.errors.ModelFileError, match=f"lacks '{name}'"):
        mm.load(opened.close())
