"""Scores of rows that were left out: by the span, by refitting, by folds."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone

import maxmargin as mm
from maxmargin.estimators import left_out
from maxmargin.estimators.left_out import Contents, SolvedProblem, leave_out, squared_spans
from maxmargin.estimators.probabilities import fit_sigmoid, fit_softmax
from maxmargin.solve import Settings, solve

TIGHT = 1e-10


def clearly_best(scores: Any) -> Any:
    """Return which rows have one best class: among equal scores, as of a plane w = 0 and a row on
    the margin of another, rounding decides."""
    if scores.ndim == 1:
        return np.abs(scores) > 1e-9
    ordered = np.sort(scores, axis=1)
    return ordered[:, -1] - ordered[:, -2] > 1e-9


def overlapping(n: int, seed: int = 0, d: int = 2, classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, d))
    X[:, 0] += 1.2 * (y == 1)
    X[:, 1] += 1.2 * (y == 2)
    return X, y


def ring(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.where(y, 1.0, 1.6) * rng.uniform(0.6, 1, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def machine_of(model: Any, X: Any, y: Any) -> SolvedProblem:
    return SolvedProblem(*model.solution(X, y)[0])


# ------------------------------------------------------------------- few rows

FEW: dict[str, Any] = {
    "SVC": mm.SVC(gamma=0.5, tol=TIGHT),
    "no intercept": mm.SVC(gamma=0.5, fit_intercept=False, tol=TIGHT),
    "LinearSVC": mm.LinearSVC(C=0.3, tol=TIGHT),
    "squared hinge": mm.LinearSVC(loss="squared_hinge", intercept="penalized", tol=TIGHT),
    "HardMarginSVC": mm.HardMarginSVC(kernel=mm.kernels.RBF(2.0)),
}


@pytest.mark.parametrize("name", FEW)
def test_few_rows_are_left_out_in_turn(name: str) -> None:
    X, y = ring(24) if name == "HardMarginSVC" else overlapping(30)
    model = clone(FEW[name]).set_params(probability=True).fit(X, y)
    scores = [
        clone(FEW[name]).fit(np.delete(X, t, 0), np.delete(y, t)).decision_function(X[[t]])[0]
        for t in range(len(y))
    ]
    expected = fit_sigmoid(np.array(scores), y == 1, np.ones(len(y)))
    found = model.calibration_
    assert found.source == "leave-one-out"
    assert_allclose([found.slope[0], found.offset[0]], expected, rtol=1e-4, atol=1e-5)


def test_the_only_row_of_its_class_is_on_the_other_side() -> None:
    X, y = overlapping(60)
    y = np.where(np.arange(60) == 7, 1, 0)
    machine = machine_of(mm.SVC(gamma=0.5, tol=TIGHT).fit(X, y), X, y)
    left = leave_out(machine, Contents(X, y), Settings())
    assert left.source == "span"
    assert left.scores[7] == -1.0
    few = machine_of(mm.SVC(gamma=0.5).fit(X[:20], y[:20]), X[:20], y[:20])
    assert leave_out(few, Contents(X[:20], y[:20]), Settings()).scores[7] == -1.0
    folds = machine_of(mm.LinearSVC().fit(X, y), X, y)
    assert leave_out(folds, Contents(X, y), Settings()).scores[7] == -1.0


# ------------------------------------------------------------------- the span


def test_the_span_costs_no_fit_and_folds_cost_five(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(problem: Any, *rest: Any) -> Any:
        calls.append(len(problem))
        return solve(problem, *rest)

    monkeypatch.setattr(left_out, "solve", counted)
    X, y = overlapping(200, classes=3)
    spans = [mm.SVC(), mm.NuSVC(nu=0.7), mm.LinearSVC(loss="squared_hinge")]
    for model in spans:
        assert model.set_params(probability=True).fit(X, y).calibration_.source == "span"
    assert calls == []
    joint = mm.LinearSVC(multi_class="crammer_singer", probability=True).fit(X, y)
    assert joint.calibration_.source == "5 folds"
    assert calls == [160] * 5


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_spans_by_columns_are_those_by_rows(intercept: str) -> None:
    X, y = overlapping(80, d=4)
    X += 3.0
    model = mm.LinearSVC(loss="squared_hinge", C=0.3, intercept=intercept, tol=TIGHT).fit(X, y)
    machine = machine_of(model, X, y)
    moving = np.flatnonzero(machine.between_bounds)
    K = machine.block(moving, moving) + np.diag(machine.loss.quadratic[moving])
    if machine.free:
        ones = np.ones((len(moving), 1))
        K = np.block([[K, ones], [ones.T, np.zeros((1, 1))]])
    expected = 1 / np.linalg.inv(K).diagonal()[: len(moving)]
    found = squared_spans(machine)
    assert found is not None
    assert_allclose(found[moving], expected, rtol=1e-8)
    sparse = SolvedProblem(*model.solution(sp.csr_array(X), y)[0])
    again = squared_spans(sparse)
    assert again is not None
    assert_allclose(again, found, rtol=1e-10)


def test_the_span_is_the_least_distance_to_others_that_move() -> None:
    X, y = overlapping(60)
    machine = machine_of(mm.SVC(gamma=0.5, tol=TIGHT).fit(X, y), X, y)
    spans, moving = squared_spans(machine), np.flatnonzero(machine.between_bounds)
    assert spans is not None
    fixed = np.flatnonzero((machine.alpha > 0) & ~machine.between_bounds)
    for t in [*moving[:5], *fixed[:5]]:
        others = moving[moving != t]
        # Differences from one of them span all that the affine hull has.
        at, rest = others[0], others[1:]
        every = np.concatenate([[t], others])
        K = machine.block(every, every)
        of = {int(row): k for k, row in enumerate(every)}
        D = np.zeros((len(every), len(rest)))
        for k, row in enumerate(rest):
            D[of[int(row)], k], D[of[int(at)], k] = 1.0, -1.0
        c = np.zeros(len(every))
        c[of[int(t)]], c[of[int(at)]] = 1.0, -1.0
        best = np.linalg.lstsq(D.T @ K @ D, D.T @ K @ c, rcond=1e-14)[0]
        away = c - D @ best
        assert_allclose(spans[t], away @ K @ away, rtol=1e-4, atol=1e-8)


def test_nu_svc_is_calibrated_as_the_equal_svc() -> None:
    X, y = overlapping(120)
    nu = mm.NuSVC(nu=0.7, gamma=0.5, tol=1e-8, probability=True).fit(X, y)
    C = 1 / nu._scales[0]
    equal = mm.SVC(C=C, gamma=0.5, tol=1e-9, probability=True).fit(X, y)
    assert_allclose(nu.decision_function(X), equal.decision_function(X), atol=1e-5)
    assert nu.calibration_.source == equal.calibration_.source == "span"
    assert_allclose(nu.predict_proba(X), equal.predict_proba(X), atol=1e-5)


def test_a_margin_of_zero_says_nothing_but_how_many_there_are() -> None:
    X = np.repeat([[0.0], [0.0], [1.0]], 30, axis=0)
    y = np.tile([0, 1, 1], 30)
    with pytest.warns(match="the margin is 0"):
        model = mm.NuSVC(nu=0.1, kernel="linear", probability=True).fit(X, y)
    p = model.predict_proba(X)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()


# ------------------------------------------------------------------- folds


def test_folds_follow_from_the_content_of_rows() -> None:
    X, y = overlapping(101, classes=3)
    X[50:60] = X[0]
    y[50:60] = y[0]
    folds = Contents(X, y).folds
    assert (folds[50:60] == folds[0]).all()
    assert (Contents(sp.csr_array(X), y).folds == folds).all()
    order = np.random.default_rng(0).permutation(len(y))
    assert (Contents(X[order], y[order]).folds == folds[order]).all()
    K = mm.kernels.RBF(0.5).gram(X)
    given = Contents(K, y, is_gram=True).folds
    assert (Contents(K[np.ix_(order, order)], y[order], is_gram=True).folds == given[order]).all()
    _, first = np.unique(X, axis=0, return_index=True)
    for k in range(3):
        counts = np.bincount(folds[first][y[first] == k], minlength=5)
        assert counts.max() - counts.min() <= 1


LINEAR = {
    "hinge": mm.LinearSVC(C=0.2, tol=TIGHT),
    "l1": mm.LinearSVC(penalty="l1", loss="squared_hinge", C=0.3, tol=1e-9),
    "elastic net": mm.LinearSVC(penalty="elasticnet", loss="squared_hinge", C=0.3, tol=1e-9),
    "crammer_singer": mm.LinearSVC(C=0.2, multi_class="crammer_singer", tol=1e-9),
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("classes", [2, 3])
def test_folds_are_fits_from_scratch(name: str, classes: int) -> None:
    X, y = overlapping(90, d=3, classes=classes)
    model = clone(LINEAR[name]).set_params(probability=True).fit(X, y)
    folds, scores = Contents(X, y).folds, np.zeros((90, classes if classes > 2 else 1))
    for fold in range(5):
        left = folds == fold
        found = clone(LINEAR[name]).fit(X[~left], y[~left]).decision_function(X[left])
        scores[left] = found.reshape(-1, scores.shape[1])
    calibration, weight = model.calibration_, np.ones(90)
    if name == "crammer_singer" and classes == 2:
        assert calibration.source == "5 folds"  # a linear machine with bounded duals
    if classes == 2:
        slope, offset = fit_sigmoid(scores[:, 0], y == 1, weight)
    else:
        slope, offset = fit_softmax(scores, y, weight)
    assert calibration.source == "5 folds"
    assert_allclose(calibration.slope[0], slope, rtol=2e-3)
    assert_allclose(calibration.offset, offset, atol=5e-3)


def test_a_class_with_one_row_is_last_in_the_fold_without_it() -> None:
    X, y = overlapping(60, classes=3)
    y[y == 2] = 0
    y[5] = 2
    model = mm.LinearSVC(multi_class="crammer_singer", probability=True).fit(X, y)
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()


# ------------------------------------------------------------------- weights

WEIGHTED: dict[str, tuple[Any, int]] = {
    "exact": (mm.SVC(gamma=0.5, tol=TIGHT), 24),
    "span": (mm.SVC(gamma=0.5, C=2.0, tol=TIGHT), 120),
    "span, ν": (mm.NuSVC(nu=0.4, gamma=0.5, tol=1e-8), 120),
    "span, squared hinge": (mm.LinearSVC(loss="squared_hinge", tol=TIGHT), 120),
    "span, hard margin": (mm.HardMarginSVC(kernel=mm.kernels.RBF(2.0)), 80),
    "folds": (mm.LinearSVC(C=0.2, tol=TIGHT), 120),
    "folds, together": (mm.LinearSVC(C=0.2, multi_class="crammer_singer", tol=1e-9), 120),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_are_repetitions_and_equal_rows_leave_together(name: str) -> None:
    model, n = WEIGHTED[name]
    hard = "hard" in name
    X, y = ring(n) if hard else overlapping(n, classes=3 if n > 100 else 2)
    weight = np.random.default_rng(1).integers(0, 4, n)
    repeated = np.repeat(np.arange(n), weight)
    model = clone(model).set_params(probability=True)
    weighted = clone(model).fit(X, y, weight)
    plain = clone(model).fit(X[repeated], y[repeated])
    assert weighted.calibration_.source == plain.calibration_.source
    tolerance = 2e-3 if "together" in name else 1e-5
    clear = clearly_best(plain.decision_function(X))
    assert_allclose(weighted.predict_proba(X[clear]), plain.predict_proba(X[clear]), atol=tolerance)
