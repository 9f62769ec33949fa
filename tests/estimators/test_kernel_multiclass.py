"""Kernels with one against the rest; and the multipliers of ξ ≥ 0."""

import os
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import maxmargin as mm

FOLDER = os.environ.get("MAXMARGIN_DATA", "")
NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def iris() -> tuple[Any, Any]:
    """Every second row of the iris data, with names as labels."""
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0))[::2], NAMES[y[::2]]


def rest(**parameters: Any) -> Any:
    model: Any = mm.SVC(multi_class="ovr", gamma=0.5, C=2.0, tol=1e-8)
    return model.set_params(**parameters)


def certify(*given: Any, **more: Any) -> Any:
    return mm.certify(*given, **more)


# ------------------------------------------------------------------- one against the rest


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "precomputed"])
def test_each_plane_is_the_machine_of_its_class(
    kernel: str, fit_intercept: bool, iris: Any
) -> None:
    X, y = iris
    rows = X @ X.T if kernel == "precomputed" else X
    weight = np.tile([1.0, 2.0, 0.5], len(y) // 3)
    model = rest(kernel=kernel, fit_intercept=fit_intercept).fit(rows, y, sample_weight=weight)
    n_support = len(model.support_)
    assert model.dual_coef_.shape == model.support_kind_.shape == (3, n_support)
    assert model.alpha_.shape == model.slack_.shape == model.bound_multiplier_.shape == (3, len(y))
    scores = model.pairwise_scores(rows)
    assert_array_equal(model.decision_function(rows), scores)
    assert_array_equal(model.predict(rows), NAMES[scores.argmax(axis=1)])
    assert len(model.certificate_.parts) == len(model.n_iter_) == 3
    for k, name in enumerate(NAMES):
        binary = clone(model).set_params(multi_class="ovo").fit(rows, y == name, weight)
        assert_allclose(binary.decision_function(rows), scores[:, k], atol=1e-6)
        assert_allclose(binary.certificate_.primal, model.certificate_.parts[k].primal, rtol=1e-8)
        assert_allclose(binary.margin_, model.margin_[k], rtol=1e-6)
        assert_allclose(binary.distance(rows), model.distance(rows)[:, k], atol=1e-6)
        for which in ("alpha_", "slack_", "bound_multiplier_"):
            assert_allclose(getattr(binary, which), getattr(model, which)[k], atol=1e-5)
    assert certify(model, rows, y, sample_weight=weight).holds(1e-8)


def test_two_classes_have_one_plane_in_any_scheme(iris: Any) -> None:
    X, y = iris[0][25:], iris[1][25:]
    one, other = (rest(multi_class=scheme).fit(X, y) for scheme in ("ovo", "ovr"))
    assert one.dual_coef_.shape == (1, len(one.support_))
    assert_array_equal(one.dual_coef_, other.dual_coef_)
    assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_a_class_without_weight_is_absent(iris: Any) -> None:
    X, y = iris
    weight = (y != "bee").astype(float)
    model = rest().fit(X, y, sample_weight=weight)
    assert set(model.predict(X)) == {"ant", "cat"}
    assert (model.decision_function(X).argmin(axis=1) == 1).all()
    assert not model.alpha_[1].any()
    assert not model.bound_multiplier_[1].any()
    assert not model.bound_multiplier_[:, weight == 0].any()
    two = rest().fit(X[weight > 0], y[weight > 0])
    assert_allclose(model.pairwise_scores(X)[:, 2], two.decision_function(X), atol=1e-6)
    assert certify(model, X, y, sample_weight=weight).holds(1e-8)
    left_out = mm.model_selection.leave_one_out(model, X, y, sample_weight=weight)
    expected = mm.model_selection.leave_one_out(two, X[weight > 0], y[weight > 0])
    assert left_out.errors == expected.errors


@pytest.mark.parametrize("model", [mm.SVC(kernel="linear"), mm.LinearSVC()], ids=str)
def test_a_scheme_that_was_not_fitted_is_refused_and_starts_anew(model: Any, iris: Any) -> None:
    X, y = iris
    schemes = ("ovo", "ovr") if isinstance(model, mm.SVC) else ("ovo", "ovr", "crammer_singer")
    cold = {scheme: clone(model).set_params(multi_class=scheme).fit(X, y) for scheme in schemes}
    for before in schemes:
        for after in set(schemes) - {before}:
            warm = clone(model).set_params(multi_class=before, warm_start=True).fit(X, y)
            warm.set_params(multi_class=after)
            with pytest.raises(ValueError, match=f"fitted with multi_class='{before}'"):
                mm.certify(warm, X, y)
            reached = warm.fit(X, y).certificate_.primal
            assert_allclose(reached, cold[after].certificate_.primal, rtol=1e-3)
    for scheme in schemes:  # other classes
        warm = clone(model).set_params(multi_class=scheme, warm_start=True).fit(X, y == y[0])
        reached = warm.fit(X, y).certificate_.primal
        assert_allclose(reached, cold[scheme].certificate_.primal, rtol=1e-3)


def test_pairs_of_classes_are_refused_where_there_are_none(iris: Any) -> None:
    with pytest.raises(ValueError, match="decision_function_shape='ovo' with multi_class='ovr'"):
        rest(decision_function_shape="ovo").fit(*iris)
    with pytest.raises(ValueError, match="multi_class='all'"):
        rest(multi_class="all").fit(*iris)
    X, y = iris[0][:, :2], iris[1]
    flat = rest().fit(X, y)
    with pytest.raises(ValueError, match="multi_class='ovo'"):
        mm.plots.MarginDisplay.from_estimator(flat, X, y, pair=("ant", "bee"))


def test_a_path_and_a_report_take_it(iris: Any, tmp_path: Any) -> None:
    path = mm.regularization_path(*iris, rest(tol=1e-6), Cs=[0.1, 2.0])
    model = rest().fit(*iris)
    assert path.certified
    assert_allclose(path.margins[1], model.margin_, rtol=1e-3)
    assert_allclose(path.certificates[1].primal, model.certificate_.primal, rtol=1e-6)
    ends = mm.regularization_path(*iris, rest(tol=1e-4), Cs=2)
    assert ends.certified
    assert ends.hard_C is not None
    assert mm.report(model, iris[0], iris[1], tmp_path / "page.html").exists()


def test_classes_together_are_for_the_linear_machine(iris: Any) -> None:
    with pytest.raises(ValueError, match=r"multi_class='crammer_singer'.*'ovo'.*'ovr'"):
        rest(multi_class="crammer_singer").fit(*iris)


def test_a_class_without_weight_is_absent_from_a_joint_problem(iris: Any) -> None:
    X, y = iris
    model = mm.LinearSVC(multi_class="crammer_singer", tol=1e-8)
    four, with_fourth = np.append(y, ["bat"] * 3), np.vstack([X, X[:3] + 0.1])
    weight = np.append(np.ones(len(y)), np.zeros(3))
    three = clone(model).fit(X, y)
    model.fit(with_fourth, four, sample_weight=weight)
    assert list(model.classes_) == ["ant", "bat", "bee", "cat"]
    scores = model.decision_function(X)
    assert_allclose(np.delete(scores, 1, axis=1), three.decision_function(X), atol=1e-6)
    assert (scores.argmin(axis=1) == 1).all()
    assert_array_equal(model.predict(X), three.predict(X))
    assert_allclose(model.margin_, three.margin_, rtol=1e-6)
    assert not model.bound_multiplier_[-3:].any()
    assert certify(model, with_fourth, four, sample_weight=weight).holds(1e-8)


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_hold() -> None:
    found = check_estimator(mm.SVC(multi_class="ovr"), on_fail=None)
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert len(found) > 40


# ------------------------------------------------------------------- multipliers of ξ ≥ 0


HINGES = {
    "pairs": mm.SVC(C=2.0),
    "rest": mm.SVC(C=2.0, multi_class="ovr"),
    "linear kernel": mm.SVC(C=2.0, kernel="linear", class_weight="balanced"),
    "LinearSVC": mm.LinearSVC(C=2.0, class_weight={"bee": 3.0}),
    "LinearSVC, pairs": mm.LinearSVC(C=2.0, multi_class="ovo"),
    "LinearSVC, penalized": mm.LinearSVC(C=2.0, intercept="penalized"),
    "LinearSVC, joint": mm.LinearSVC(C=2.0, multi_class="crammer_singer"),
}


@pytest.mark.parametrize("tol", [1e-2, 1e-9])
@pytest.mark.parametrize("name", HINGES)
def test_multipliers_and_slacks_are_complementary(name: str, tol: float, iris: Any) -> None:
    """Σ(C − α)ξ ≤ P − D, as both are sums of terms ≥ 0 of which these are some."""
    X, y = iris
    weight = np.tile([1.0, 0.0, 2.5], len(y) // 3)
    model = clone(HINGES[name]).set_params(tol=tol).fit(X, y, sample_weight=weight)
    left, slack = model.bound_multiplier_, model.slack_
    assert left.shape == slack.shape
    assert (left >= 0).all()
    assert not left[..., weight == 0].any()
    proof = model.certificate_
    assert (left * slack).sum() <= proof.gap + 1e-12 * proof.primal
    # The bounds are the costs.
    factors = getattr(model, "class_weight_", np.array([1.0, 3.0 if name == "LinearSVC" else 1, 1]))
    cost = 2.0 * weight * factors[np.searchsorted(NAMES, y)]
    if slack.ndim == 2:
        takes_part = (model.alpha_ > 0) | (left > 0)
        assert_allclose((model.alpha_ + left)[takes_part], np.tile(cost, (3, 1))[takes_part])
        inside = slack > 1e-3
        assert_allclose(model.alpha_[inside], np.tile(cost, (3, 1))[inside], atol=proof.gap / 1e-3)


def test_only_the_hinge_has_multipliers(iris: Any) -> None:
    X, y = iris
    squared = mm.LinearSVC(loss="squared_hinge").fit(X, y)
    assert not hasattr(squared, "bound_multiplier_")
    with pytest.raises(AttributeError, match="hinge loss"):
        squared.bound_multiplier_  # noqa: B018
    hinge = mm.LinearSVC().fit(X, y)
    assert hasattr(hinge, "bound_multiplier_")
    assert not hasattr(hinge.set_params(loss="squared_hinge").fit(X, y), "bound_multiplier_")
    assert not hasattr(mm.LinearSVC().partial_fit(X, y, classes=NAMES), "bound_multiplier_")
    assert not hasattr(mm.NuSVC(nu=0.1).fit(X, y), "bound_multiplier_")
    assert not hasattr(mm.SVR().fit(X, X[:, 0]), "bound_multiplier_")
    with pytest.raises(NotFittedError):
        mm.SVC().bound_multiplier_  # noqa: B018
