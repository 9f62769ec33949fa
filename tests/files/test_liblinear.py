"""Model files of LIBLINEAR: equal predictions in both directions, and nothing inconsistent read."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.files import load_liblinear, save_liblinear
from tests.support.official import (
    liblinear_values,
    needs_data,
    needs_liblinear_tools,
    predicted,
    real,
    run,
    write_rows,
)

certify: Any = mm.certify


def blobs(n_classes: int, n: int = 60, d: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[y], y


def targets(X: Any) -> Any:
    return np.sin(X[:, 0]) + 0.3 * X[:, 1]


INTERCEPTS: list[dict[str, Any]] = [
    {"intercept": "free"},
    {"intercept": "none"},
    {"fit_intercept": False},
    {"intercept": "penalized"},
    {"intercept": "penalized", "intercept_scaling": 2.5},
]
CLASSIFIERS: list[dict[str, Any]] = [
    {"loss": "hinge"},
    {"loss": "squared_hinge"},
    {"penalty": "l1", "loss": "squared_hinge"},
    {"multi_class": "crammer_singer"},
]


# ------------------------------------------------------------------- ours, read by LIBLINEAR


@pytest.mark.parametrize("intercept", INTERCEPTS, ids=str)
@pytest.mark.parametrize("parameters", CLASSIFIERS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_liblinear_computes_our_scores(
    n_classes: int, parameters: dict[str, Any], intercept: dict[str, Any], tmp_path: Path
) -> None:
    X, y = blobs(n_classes)
    model = mm.LinearSVC(**parameters, **intercept).fit(X, y)
    new, path = np.vstack([X, np.zeros((1, 4))]), tmp_path / "model"
    save_liblinear(model, path)
    per_class = n_classes > 2 or "multi_class" in parameters
    labels, scores = liblinear_values(path, new, n_classes if per_class else 1)
    if n_classes == 2 and per_class:
        scores = scores[:, :1] - scores[:, 1:]
    bound = 1e-12 * (np.abs(new) @ np.abs(model.coef_.T) + np.abs(model.intercept_))
    assert (np.abs(scores - model.pairwise_scores(new)) <= bound).all()
    assert_array_equal(labels, model.predict(new))
    again = load_liblinear(path, C=1.0, intercept=intercept.get("intercept", "free")
                           .replace("none", "free"))  # fmt: skip
    assert_array_equal(again.predict(new), labels)
    assert_array_equal(again.coef_, model.coef_)
    assert_allclose(again.intercept_, model.intercept_, rtol=1e-15)
    assert {name: getattr(again, name) for name in parameters} == parameters
    if n_classes == 2 and intercept.get("intercept") != "free":
        assert certify(again, X, y).relative_gap < 1e-3


@pytest.mark.parametrize("intercept", INTERCEPTS, ids=str)
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regressions(loss: str, intercept: dict[str, Any], tmp_path: Path) -> None:
    X, _ = blobs(2)
    y, path = targets(X), tmp_path / "model"
    model = mm.LinearSVR(loss=loss, epsilon=0.1, **intercept).fit(X, y)
    save_liblinear(model, path)
    found, _ = liblinear_values(path, X, 1)
    assert_allclose(model.predict(X), found, rtol=1e-12, atol=1e-14)
    kind = "free" if intercept.get("intercept") == "free" else "penalized"
    again = load_liblinear(path, C=1.0, epsilon=0.1, intercept=kind)
    assert again.loss == loss
    assert_array_equal(again.coef_, model.coef_)
    assert certify(again, X, y).relative_gap < 1e-3


# ------------------------------------------------------------------- LIBLINEAR's, read by us


@needs_liblinear_tools
@pytest.mark.parametrize("bias", [-1, 0, 1, 2.5])
@pytest.mark.parametrize(
    ("solver", "labels"),
    [*product([1, 2, 3, 4, 5], [[2, 1], [-5, 7], [7, 3, 5]]), *product([11, 12, 13], [[0, 1]])],
)
def test_models_of_train_predict_equally_and_can_be_certified(
    solver: int, bias: float, labels: list[int], tmp_path: Path
) -> None:
    X, codes = blobs(len(labels))
    y = np.array(labels)[codes] if solver < 10 else targets(X)
    rows, path = write_rows(tmp_path / "rows", X, y), tmp_path / "model"
    flags = ["-s", solver, "-c", 0.1, "-p", 0.1, "-B", bias, "-e", 1e-7, "-q"]
    run("liblinear-train", *flags, rows, path)
    model = load_liblinear(path, C=0.1, epsilon=0.1 if solver > 10 else None)
    new = np.vstack([X, np.zeros((1, 4))])
    rows = write_rows(tmp_path / "new", new, np.append(y, y[0]))
    found = predicted("liblinear-predict", rows, path)
    if solver > 10:
        assert_allclose(model.predict(new), found, rtol=1e-5, atol=1e-5)  # six digits are printed
    else:
        assert_array_equal(model.predict(new), found)
    assert certify(model, X, y).relative_gap < 1e-2
    wide = np.hstack([X, np.zeros((len(X), 1))])
    assert certify(model, wide, y).relative_gap < 1e-2
    save_liblinear(model, path)
    assert_array_equal(predicted("liblinear-predict", rows, path), found)


@needs_liblinear_tools
def test_class_weights_are_those_of_liblinear(tmp_path: Path) -> None:
    X, y = blobs(3)
    rows, path = write_rows(tmp_path / "rows", X, y), tmp_path / "model"
    run("liblinear-train", "-s", 2, "-w1", 5, "-B", 1, "-e", 1e-8, "-q", rows, path)
    model = load_liblinear(path, C=1.0, class_weight={1: 5.0})
    assert certify(model, X, y).relative_gap < 1e-6


@needs_liblinear_tools
@needs_data
@pytest.mark.parametrize("name", ["a1a", "news20", "satimage", "heart_scale"])
def test_real_sets_both_ways(name: str, tmp_path: Path) -> None:
    X, y = real(name, 500)
    y = np.asarray(y).astype(int)
    rows, path = write_rows(tmp_path / "rows", X, y), tmp_path / "model"
    run("liblinear-train", "-s", 3, "-B", 1, "-c", 0.1, "-q", rows, path)
    model = load_liblinear(path, C=0.1)
    width = model.n_features_in_
    assert_array_equal(model.predict(X[:, :width]), predicted("liblinear-predict", rows, path))
    ours = mm.LinearSVC(C=0.1).fit(X, y)
    save_liblinear(ours, path)
    assert_array_equal(ours.predict(X), predicted("liblinear-predict", rows, path))


def test_sparse_rows_and_equal_scores(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text(
        "solver_type L1R_L2LOSS_SVC\nnr_class 3\nlabel 3 1 2\nnr_feature 2\nbias -1\nw\n"
        "0 0 1\n0 0 0\n"
    )
    X = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    model = load_liblinear(path)
    assert model.predict(X).tolist() == [3, 2, 3]
    assert_array_equal(model.predict(sp.csr_matrix(X)), liblinear_values(path, X, 3)[0])


# ------------------------------------------------------------------- labels and refusals


def test_a_model_from_a_file_can_be_fitted_again(tmp_path: Path) -> None:
    X, y = blobs(3)
    save_liblinear(mm.LinearSVC().fit(X, y), tmp_path / "model")
    again = load_liblinear(tmp_path / "model")
    with pytest.raises(ValueError, match=r"does not hold C.*load_liblinear\(path, C=…\)"):
        certify(again, X, y)
    with pytest.raises(ValueError, match="read from a LIBLINEAR file"):
        again.solution(X, y)
    again.set_params(C=1.0, warm_start=True).fit(X, y)
    assert not hasattr(again, "origin_")
    assert again.certificate_.holds(1e-4)


def test_what_such_a_file_cannot_hold_is_refused_by_name(tmp_path: Path) -> None:
    X, y = blobs(3)
    path = tmp_path / "model"

    def refuses(model: Any, kind: type[Exception], match: str) -> None:
        with pytest.raises(kind, match=match):
            save_liblinear(model, path)
        assert not path.exists()

    refuses(make_pipeline(StandardScaler(), mm.LinearSVC()).fit(X, y), TypeError, "other steps")
    refuses(mm.SVC(kernel="linear").fit(X, y), TypeError, "save_libsvm kernel machines")
    refuses(mm.NuSVC().fit(X, y), TypeError, r"not maxmargin\..*NuSVC")
    refuses(mm.LinearSVC(multi_class="ovo").fit(X, y), ValueError, "multi_class='ovo'")
    refuses(mm.LinearSVC("l1", "hinge").fit(X, y), ValueError, "penalty='l1' with loss='hinge'")
    refuses(
        mm.LinearSVC("elasticnet", "squared_hinge").fit(X, y), ValueError, "penalty='elasticnet'"
    )
    refuses(mm.LinearSVC().fit(X, y, (y < 2) * 1.0), ValueError, "had no weight")
    likely = mm.LinearSVC(probability=True).fit(X, y)
    with pytest.warns(UserWarning, match="no place for probabilities"):
        save_liblinear(likely, path)
    with pytest.raises(ValueError, match=r"epsilon=1\.0 is no parameter"):
        load_liblinear(path, epsilon=1.0)
    with pytest.raises(ValueError, match="intercept"):
        load_liblinear(path, intercept="none")
