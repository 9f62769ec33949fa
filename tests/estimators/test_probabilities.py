"""Probabilities of classes."""

import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.estimators import left_out, probabilities
from maxmargin.estimators.probabilities import (
    couple_pairs,
    fit_sigmoid,
    fit_softmax,
    most_probable,
)
from maxmargin.runtime import clock
from tests.estimators.test_left_out import clearly_best, overlapping, ring
from tests.support.estimators import INSEPARABLE, expected_failures


def _disagreement(p: Floats, r: Floats, pairs: list[tuple[int, int]]) -> float:
    terms = [((1 - q) * p[i] - q * p[j]) ** 2 for q, (i, j) in zip(r, pairs, strict=True)]
    return float(sum(terms))


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_coupled_pairs_minimise_the_disagreement(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    pairs = list(combinations(range(n_classes), 2))
    r = rng.uniform(0.02, 0.98, (5, len(pairs)))
    p = couple_pairs(r, pairs, n_classes)
    assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    for own, found in zip(r, p, strict=True):
        best = minimize(
            _disagreement, np.full(n_classes, 1 / n_classes), (own, pairs), method="SLSQP",
            bounds=[(0, 1)] * n_classes, options={"ftol": 1e-14},
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        )  # fmt: skip
        assert _disagreement(found, own, pairs) <= best.fun + 1e-12
        assert_allclose(found, best.x, atol=1e-4)


# ------------------------------------------------------------------- the least log-loss


def _sigmoid_loss(x: Any, f: Floats, y: Any, weight: Floats) -> float:
    sums = weight[y].sum(), weight[~y].sum()
    target = np.where(y, (sums[0] + 1) / (sums[0] + 2), 1 / (sums[1] + 2))
    z = x[0] * f + x[1]
    return float(weight @ (np.logaddexp(0, z) - target * z))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
def test_the_sigmoid_has_the_least_log_loss(scale: float) -> None:
    rng = np.random.default_rng(0)
    flat = 0
    for _ in range(8):
        n = int(rng.integers(3, 150))
        y = rng.random(n) < rng.uniform(0.1, 0.9)
        y[:2] = False, True
        f = rng.normal(size=n) + rng.uniform(-1, 2) * y
        weight = rng.uniform(0.1, 3.0, n)
        a, b = fit_sigmoid(scale * f, y, weight)
        best = minimize(
            _sigmoid_loss, [1.0, 0.0], (f, y, weight), method="L-BFGS-B",
            bounds=[(0, None), (None, None)], options={"ftol": 1e-15, "gtol": 1e-10},
        )  # fmt: skip
        assert a >= 0
        assert _sigmoid_loss((scale * a, b), f, y, weight) <= best.fun + 1e-10
        flat += a == 0
    assert 0 < flat < 8


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_softmax_has_the_least_log_loss(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    for _ in range(2):
        n = 40 * n_classes
        labels = np.append(np.arange(n_classes), rng.integers(n_classes, size=n - n_classes))
        scores = rng.normal(size=(n, n_classes)) + rng.uniform(0, 2) * np.eye(n_classes)[labels]
        weight = rng.uniform(0.1, 3.0, n)
        sums = np.bincount(labels, weight)[labels][:, None]
        own = np.eye(n_classes)[labels]
        target = np.where(own > 0, (sums + 1) / (sums + 2), 1 / (sums + 2) / (n_classes - 1))

        def loss(x: Floats, s: Any = scores, t: Any = target, w: Any = weight) -> float:
            return -float(w @ (t * log_softmax(x[0] * s + x[1:], axis=1)).sum(axis=1))

        a, b = fit_softmax(scores, labels, weight)
        best = minimize(loss, np.append(1.0, np.zeros(n_classes)), method="BFGS",
                        options={"gtol": 1e-7})  # fmt: skip
        assert a >= 0
        assert_allclose(b.sum(), 0.0, atol=1e-12)
        assert loss(np.append(a, b)) <= best.fun + 1e-10


# ------------------------------------------------------------------- the predicted class


def test_the_best_class_becomes_the_most_probable() -> None:
    rng = np.random.default_rng(0)
    p = rng.choice([0.0, 0.1, 0.2, 0.3], size=(500, 5)) + 1e-3
    p /= p.sum(axis=1, keepdims=True)
    best = rng.integers(5, size=500)
    found = most_probable(p, best)
    assert (found.argmax(axis=1) == best).all()
    assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    same = p.argmax(axis=1) == best
    assert (found[same] == p[same]).all()
    for i in np.flatnonzero(~same)[:50]:
        above = p[i] > p[i, best[i]]
        assert_allclose(found[i, above], found[i, best[i]], rtol=1e-14)
        assert (found[i, ~above & (np.arange(5) != best[i])] <= p[i, best[i]]).all()


MODELS: dict[str, Any] = {
    "SVC": mm.SVC(gamma=0.5),
    "SVC, few rows": mm.SVC(gamma=0.5),
    "SVC, linear": mm.SVC(kernel="linear"),
    "SVC, indefinite": mm.SVC(kernel="sigmoid", gamma=0.5),
    "NuSVC": mm.NuSVC(nu=0.3, gamma=0.5),
    "LinearSVC": mm.LinearSVC(),
    "LinearSVC, ovo": mm.LinearSVC(multi_class="ovo", loss="squared_hinge"),
    "LinearSVC, jointly": mm.LinearSVC(multi_class="crammer_singer"),
    "LinearSVC, l1": mm.LinearSVC(penalty="l1", loss="squared_hinge"),
    "HardMarginSVC": mm.HardMarginSVC(kernel=mm.kernels.RBF(3.0)),
    "HardMarginSVC, ovr": mm.HardMarginSVC(kernel=mm.kernels.RBF(3.0), multi_class="ovr"),
}


@pytest.mark.filterwarnings("ignore:.*not certified")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_say_what_predict_says(name: str, classes: int) -> None:
    X, y = overlapping(20 if "few" in name else 120, classes=classes)
    if classes == 2:
        X = X[np.abs(X).max(axis=1) < 3]
        y = (X[:, 0] > 0.7).astype(int) if "Hard" in name else y[: len(X)]
    names = np.array(["ant", "bee", "cat", "dog"])[y]
    model = clone(MODELS[name]).set_params(probability=True).fit(X, names)
    # Far away, on the boundary of symmetric rows, and in between.
    grid = np.array(np.meshgrid(np.linspace(-4, 4, 33), np.linspace(-4, 4, 33))).reshape(2, -1).T
    rows = np.concatenate([X, grid, 1e6 * grid, 0 * grid[:1]])
    p = model.predict_proba(rows)
    assert p.shape == (len(rows), classes)
    assert ((p >= 0) & (p <= 1)).all()
    assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(rows)).all()
    with np.errstate(divide="ignore"):
        assert_allclose(model.predict_log_proba(rows), np.log(p))
    again = clone(model).fit(X, names)
    assert (again.predict_proba(rows) == p).all()  # nothing is random
    assert (pickle.loads(pickle.dumps(model)).predict_proba(rows) == p).all()


def test_ties_go_the_way_of_predict() -> None:
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    y = np.array([0, 0, 1, 1])
    for model in (mm.SVC(kernel="linear"), mm.LinearSVC(), mm.HardMarginSVC()):
        model.set_params(probability=True).fit(np.tile(X, (20, 1)), np.tile(y, 20))
        at = np.array([[0.0], [1e-300], [-1e-300], [0.5]])
        p = model.predict_proba(at)
        assert (p.argmax(axis=1) == model.predict(at)).all()
        assert p[0, 0] >= 0.5
    # Rare positives: the sigmoid alone would call rows with f > 0 negative, or the other way.
    X, y = overlapping(400, seed=5)
    y[np.arange(400) % 7 != 0] = 0
    model = mm.SVC(gamma=2.0, C=20.0, probability=True).fit(X, y)
    f, p = model.decision_function(X), model.predict_proba(X)
    z = model.calibration_.slope[0] * f + model.calibration_.offset[0]
    clipped = (z > 0) != (f > 0)
    assert clipped.any()
    assert np.abs(p[clipped] - 0.5).max() <= 2**-52
    assert ((p[:, 1] > 0.5) == (f > 0)).all()


def test_a_class_without_weight_has_no_probability() -> None:
    X, y = overlapping(160, classes=4)
    weight = (y != 2).astype(float)
    for name in ("SVC", "LinearSVC", "LinearSVC, ovo", "LinearSVC, jointly"):
        model = clone(MODELS[name]).set_params(probability=True).fit(X, y, weight)
        p = model.predict_proba(X)
        assert (p[:, 2] == 0).all()
        assert (p.argmax(axis=1) == model.predict(X)).all()
        assert (model.predict_log_proba(X)[:, 2] == -np.inf).all()
        without = clone(model).fit(X[y != 2], y[y != 2])
        assert_allclose(p[:, [0, 1, 3]], without.predict_proba(X), atol=1e-4)


# ------------------------------------------------------------------- invariance

EXACT: dict[str, Any] = {
    "SVC": mm.SVC(gamma=0.5, tol=1e-10),
    "SVC, no intercept": mm.SVC(gamma=0.5, C=3.0, fit_intercept=False, tol=1e-10),
    "LinearSVC": mm.LinearSVC(C=0.3, tol=1e-10),
    "LinearSVC, squared hinge": mm.LinearSVC(loss="squared_hinge", tol=1e-10),
    "HardMarginSVC": mm.HardMarginSVC(kernel=mm.kernels.RBF(2.0)),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_order_of_rows_does_not_matter(name: str, classes: int) -> None:
    hard = name == "HardMarginSVC"
    X, y = ring(90) if hard else overlapping(150, classes=classes)
    if hard and classes == 3:
        y[X[:, 0] > 0.4] += 2
    model = clone(EXACT[name]).set_params(probability=True).fit(X, y)
    order = np.random.default_rng(7).permutation(len(y))
    moved = clone(model).fit(X[order], y[order])
    assert moved.calibration_.source == model.calibration_.source
    assert_allclose(moved.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-8)


def test_a_gram_matrix_gives_the_same_probabilities() -> None:
    X, y = overlapping(120, classes=3)
    kernel = mm.kernels.RBF(0.5)
    K = kernel.gram(X)
    rows = mm.SVC(kernel=kernel, tol=1e-9, probability=True).fit(X, y)
    given = mm.SVC(kernel="precomputed", tol=1e-9, probability=True).fit(K, y)
    assert_allclose(given.predict_proba(K), rows.predict_proba(X), atol=1e-7)


# ------------------------------------------------------------------- there or not


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "LinearSVC", "HardMarginSVC"])
def test_without_being_asked_for_they_are_absent(name: str) -> None:
    X, y = ring(60)
    model = clone(MODELS[name])
    if name == "LinearSVC":
        X, y = overlapping(60)
    for unasked in (model, clone(model).fit(X, y)):
        assert not hasattr(unasked, "predict_proba")
        assert not hasattr(unasked, "predict_log_proba")
        with pytest.raises(AttributeError, match=rf"{name}\(probability=True\) has it"):
            _ = unasked.predict_proba
    fitted = clone(model).fit(X, y)
    assert not hasattr(fitted, "calibration_")
    fitted.set_params(probability=True)
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        fitted.predict_proba(X)
    with pytest.raises(NotFittedError):
        clone(model).set_params(probability=True).predict_proba(X)
    fitted.fit(X, y).predict_proba(X)
    fitted.set_params(probability=False).fit(X, y)
    assert not hasattr(fitted, "calibration_")
    for wrong in (None, 1, "yes"):
        with pytest.raises(ValueError, match=r"probability=.* choose one of True, False"):
            clone(model).set_params(probability=wrong).fit(X, y)
    assert not hasattr(clone(model).set_params(probability="deprecated").fit(X, y), "predict_proba")


def test_chunks_have_no_probabilities() -> None:
    X, y = overlapping(60)
    model = mm.LinearSVC(probability=True)
    assert not hasattr(model, "partial_fit")
    model.fit(X, y).set_params(probability=False).partial_fit(X, y)
    assert not hasattr(model, "calibration_")


def test_skops_files_keep_them(tmp_path: Any) -> None:
    X, y = overlapping(60, classes=3)
    for name in ("SVC", "LinearSVC"):
        model = clone(MODELS[name]).set_params(probability=True).fit(X, y)
        path = tmp_path / "model.skops"
        skops.io.dump(model, path)
        known = skops.io.load(path, trusted=mm.files.SKOPS_TRUSTED_TYPES)
        assert (known.predict_proba(X) == model.predict_proba(X)).all()


def test_no_time_leaves_a_model_without_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = overlapping(100)
    timed = mm.SVC(max_time=60.0, probability=True).fit(X, y)
    assert_allclose(timed.predict_proba(X), mm.SVC(probability=True).fit(X, y).predict_proba(X))

    def late(*_: Any) -> Any:
        raise clock.OutOfTimeError

    monkeypatch.setattr(probabilities, "leave_out", late)
    with pytest.warns(ConvergenceWarning, match="max_time=60.0 ran out before probabilities"):
        model = mm.SVC(max_time=60.0, probability=True).fit(X, y)
    assert model.score(X, y) == timed.score(X, y)
    with pytest.raises(NotFittedError, match="max_time"):
        model.predict_proba(X)


def test_a_fit_that_ended_before_any_dual_moved_has_probabilities_too() -> None:
    X, y = overlapping(100, classes=3)
    model = mm.SVC(multi_class="ovr", max_iter=1, probability=True)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, y)
    assert model.calibration_.source == "span"
    assert not model.alpha_.any(axis=1).all()
    assert (model.classes_[model.predict_proba(X).argmax(axis=1)] == model.predict(X)).all()


def test_time_is_kept_for_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = overlapping(100)
    seen = []

    def watched(*rest: Any) -> Any:
        seen.append(clock.limit().end - clock.now())
        return left_out.leave_out(*rest)

    monkeypatch.setattr(probabilities, "leave_out", watched)
    mm.SVC(max_time=50.0, probability=True).fit(X, y)
    assert 10.0 - 1.0 <= seen[0] <= 50.0


def test_ctrl_c_keeps_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = overlapping(100)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(probabilities, "leave_out", interrupted)
    model = mm.SVC(probability=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.score(X, y) == mm.SVC().fit(X, y).score(X, y)
    with pytest.raises(NotFittedError, match="Ctrl-C"):
        model.predict_proba(X)


# ------------------------------------------------------------------- searches and paths


@pytest.mark.parametrize("model", [mm.SVC(), mm.LinearSVC(loss="squared_hinge")], ids=str)
def test_searches_by_log_loss(model: Any) -> None:
    X, y = overlapping(90)
    model = clone(model).set_params(probability=True, tol=1e-8)
    grid = {"C": [0.01, 1.0]}
    found = mm.SVCSearchCV(model, grid, scoring="neg_log_loss", cv=3).fit(X, y)
    plain = GridSearchCV(model, grid, scoring="neg_log_loss", cv=3).fit(X, y)
    assert_allclose(
        found.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], rtol=1e-5
    )
    assert found.best_params_ == plain.best_params_
    assert_allclose(found.predict_proba(X), plain.predict_proba(X), atol=1e-6)
    by_accuracy = mm.SVCSearchCV(model, grid, cv=3).fit(X, y)
    assert by_accuracy.predict_proba(X).shape == (90, 2)


@pytest.mark.parametrize("classes", [2, 3])
def test_models_of_a_path_have_probabilities(classes: int) -> None:
    X, y = overlapping(90, classes=classes)
    for model in (mm.SVC(gamma=0.5), mm.LinearSVC()):
        model.set_params(probability=True, tol=1e-8)
        path = mm.regularization_path(X, y, model, Cs=[0.1, 1.0, 10.0])
        assert path.estimator.probability
        for C in (1.0, 2.0):
            fitted = clone(model).set_params(C=C).fit(X, y)
            found = path.model(C)
            clear = clearly_best(fitted.decision_function(X))
            assert clear.sum() > 80
            expected = fitted.predict_proba(X[clear])
            assert_allclose(found.predict_proba(X[clear]), expected, atol=1e-4)


def test_a_path_is_not_calibrated_at_every_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(probabilities, "leave_out", never)
    X, y = overlapping(60, classes=3)
    mm.regularization_path(X, y, mm.SVC(probability=True), Cs=[0.1, 1.0])


# ------------------------------------------------------------------- scikit-learn's checks


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["SVC", "NuSVC", "LinearSVC", "LinearSVC, jointly", "HardMarginSVC"]
)
def test_scikit_learns_checks_hold_with_probabilities(name: str) -> None:
    kinds = {"SVC": mm.SVC(), "NuSVC": mm.NuSVC(nu=0.35), "HardMarginSVC": mm.HardMarginSVC()}
    model = clone(kinds.get(name) or MODELS[name]).set_params(probability=True)
    expected = expected_failures(model)
    if name == "HardMarginSVC":
        expected["check_decision_proba_consistency"] = INSEPARABLE
    check_estimator(model, expected_failed_checks=expected)


@pytest.mark.parametrize(
    "model",
    [
        mm.LinearSVC(loss="squared_hinge"),
        mm.LinearSVC(multi_class="crammer_singer"),
        mm.SVC(multi_class="ovr"),
    ],
    ids=repr,
)
def test_many_classes_with_a_score_each_are_no_worse_than_calibrated_folds(model: Any) -> None:
    X, y = load_digits(return_X_y=True)
    X, train, test = X / 16, slice(0, 600), slice(600, None)
    ours = clone(model).set_params(probability=True).fit(X[train], y[train])
    theirs = CalibratedClassifierCV(model, ensemble=False, cv=5).fit(X[train], y[train])
    losses = [log_loss(y[test], each.predict_proba(X[test])) for each in (ours, theirs)]
    assert losses[0] <= 1.05 * losses[1]


@pytest.mark.parametrize(
    ("model", "n", "source"),
    [
        (mm.SVC(C=100.0, gamma=5.0), 400, "5 folds"),
        (mm.SVC(C=1e4, gamma=2.0), 200, "5 folds"),
        (mm.SVC(C=1.0, gamma=1.0), 400, "span"),
    ],
    ids=repr,
)
def test_machines_that_learnt_the_noise_are_calibrated_by_folds(
    model: Any, n: int, source: str
) -> None:
    """Rows whose least possible error is 0.15: as good as scikit-learn's refits, but for noise."""
    X, y = mm.datasets.overlapping(n + 3000, bayes_error=0.15, random_state=0)
    fitted = clone(model).set_params(probability=True).fit(X[:n], y[:n])
    assert fitted.calibration_.source == source
    theirs = CalibratedClassifierCV(model, ensemble=False, cv=5).fit(X[:n], y[:n])
    losses = [log_loss(y[n:], each.predict_proba(X[n:])) for each in (fitted, theirs)]
    assert losses[0] <= losses[1] + 0.02
    P = fitted.predict_proba(X[n:])
    assert (fitted.classes_[P.argmax(axis=1)] == fitted.predict(X[n:])).all()


def test_without_time_for_folds_the_span_has_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: Any) -> Any:
        raise clock.OutOfTimeError

    monkeypatch.setattr(left_out, "refit_without", late)
    X, y = mm.datasets.overlapping(200, bayes_error=0.15, random_state=0)
    model = mm.SVC(C=100.0, gamma=5.0, max_time=60.0, probability=True).fit(X, y)
    assert model.calibration_.source == "span"
