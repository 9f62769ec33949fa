"""One reader takes every fitted model apart: searches, pipelines and the machine at their end."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import maxmargin as mm
from maxmargin.inspection.model_view import read_boundary, score_rows, view_model

X, Y = mm.datasets.gaussians(80, variance=0.15, random_state=0)
GRID = {"C": [1.0, 10.0]}


def nested(machine: Any) -> dict[str, tuple[Any, bool]]:
    """Return models with the same machine at their end, and whether rows are scaled before it."""
    step = machine.__class__.__name__.lower()
    return {
        "machine": (machine, False),
        "pipeline": (make_pipeline(StandardScaler(), "passthrough", machine), True),
        "pipelines": (make_pipeline(StandardScaler(), make_pipeline(machine)), True),
        "search": (GridSearchCV(machine, GRID, cv=2), False),
        "search of a pipeline": (
            GridSearchCV(make_pipeline(StandardScaler(), machine), {f"{step}__C": [1.0]}, cv=2),
            True,
        ),
        "pipeline with a search": (
            make_pipeline(StandardScaler(), GridSearchCV(machine, GRID, cv=2)),
            True,
        ),
    }


@pytest.mark.parametrize("kind", nested(mm.SVC()))
def test_a_view_finds_the_machine_and_what_it_sees(kind: str) -> None:
    model, scaled = nested(mm.SVC())[kind]
    view = view_model(model.fit(X, Y))
    assert isinstance(view.machine, mm.SVC)
    assert_allclose(view.transform(X), StandardScaler().fit_transform(X) if scaled else X)
    assert_allclose(view.machine.decision_function(view.transform(X)), model.decision_function(X))
    assert_allclose(view.model.decision_function(X), model.decision_function(X))
    assert (view.search is not None) == ("search" in kind)
    assert view.is_training(X)
    assert not view.is_training(X + 1.0)
    assert not view.is_training(X[:-1])
    found = mm.certify(model, X, Y)
    assert isinstance(found, mm.Certificate)
    assert found.holds(1e-3)
    display = mm.plots.MarginDisplay.from_estimator(
        model, X, Y, grid_resolution=20, ax=Figure().add_subplot()
    )
    assert display.kinds is not None
    assert (display.kinds != "").sum() == len(view.machine.support_)


def test_a_search_without_a_model_is_refused() -> None:
    search = GridSearchCV(mm.SVC(), GRID, cv=2, refit=False)
    with pytest.raises(NotFittedError):
        view_model(search)
    with pytest.raises(ValueError, match=r"GridSearchCV\(refit=False\).*best_params_"):
        view_model(search.fit(X, Y))


def test_a_model_with_results_of_cross_validation_is_no_search() -> None:
    model = RidgeClassifierCV(store_cv_results=True).fit(X, Y)
    assert hasattr(model, "cv_results_")
    view = view_model(model)
    assert view.machine is view.model is model
    assert view.search is None


def test_training_rows_are_known_whatever_holds_them() -> None:
    for rows in (X, sp.csr_matrix(X)):
        for model in (mm.SVC(), svm.SVC()):
            view = view_model(model.fit(rows, Y))
            assert view.is_training(rows)
            assert view.is_training(X)
            assert not view.is_training(2 * rows)


def test_boundaries_of_both_libraries_agree() -> None:
    ours, theirs = mm.SVC(C=2.0, tol=1e-8).fit(X, Y), svm.SVC(C=2.0, tol=1e-8).fit(X, Y)
    signs = np.where(ours.classes_[1] == Y, 1.0, -1.0)
    one, other = (read_boundary(model, X, None) for model in (ours, theirs))
    assert_allclose(one.scores(X), other.scores(X), atol=1e-5)
    assert one.norm == pytest.approx(other.norm, rel=1e-5)
    mine, yours = one.support(X, signs), other.support(X, signs)
    assert mine is not None
    assert yours is not None
    kinds = [dict(zip(of.rows.tolist(), of.kinds, strict=True)) for of in (mine, yours)]
    assert kinds[0] == kinds[1]


def test_scores_are_positive_where_the_model_is_right() -> None:
    three = np.where(X[:, 1] > 1.7, 2, Y)
    for machine, y in ((mm.SVC(), Y), (mm.SVC(), three), (mm.LinearSVC(), three)):
        scores = score_rows(machine.fit(X, y), X, y)
        assert_array_equal(scores.right, machine.predict(X) == y)
        assert_array_equal(scores.values > 0, scores.right)


def test_a_step_that_only_passes_rows_on_keeps_the_boundary_straight() -> None:
    model = make_pipeline("passthrough", mm.LinearSVC()).fit(X, Y)
    assert read_boundary(model, X, None).straight
    model = make_pipeline(FunctionTransformer(), mm.LinearSVC()).fit(X, Y)
    assert not read_boundary(model, X, None).straight
