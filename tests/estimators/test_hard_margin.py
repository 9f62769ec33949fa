"""The hard margin: the theorems about it, its certificate, and the proof where there is none."""

import time
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.certificates.hard import certify_hard
from maxmargin.errors import NotSeparableError
from maxmargin.problems import losses
from maxmargin.problems.problem import Point, Problem, Status
from maxmargin.separability import Overlap
from tests.support.estimators import FED_INSEPARABLE

clarabel = pytest.importorskip("clarabel")

SHAPES = [(6, 2), (60, 3), (400, 8), (12, 40), (60, 200), (300, 120)]


def problem(n: int, d: int, seed: int, gap: float = 0.1) -> tuple[Floats, Floats]:
    """Return rows on either side of a random plane with b = 0.3, none nearer than the gap."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    w /= length(w)
    X = rng.standard_normal((n, d))
    f = X @ w - 0.3
    X += np.outer(np.where(f > 0, gap, -gap), w)
    y = np.where(f > 0, 1.0, -1.0)
    y[:2] = [-1.0, 1.0]
    X[:2] = np.outer([0.3 - gap, 0.3 + gap], w) + X[:2] - np.outer(X[:2] @ w, w)
    return X, y


def quadratic_program(X: Floats, y: Floats, intercept: bool) -> tuple[Floats, float]:
    """Ask Clarabel for min ½‖w‖² such that y(w·x + b) ≥ 1."""
    n, d = X.shape
    size = sp.csc_matrix(sp.diags(np.append(np.ones(d), 0.0)))
    rows = sp.csc_matrix(-y[:, np.newaxis] * np.hstack([X, np.full((n, 1), float(intercept))]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.NonnegativeConeT(n)]
    found = clarabel.DefaultSolver(
        size, np.zeros(d + 1), rows, -np.ones(n), cones, settings
    ).solve()
    return np.array(found.x[:d]), float(found.x[d]) * intercept


def plane(model: Any) -> Floats:
    """Return (w, b) of a model for two classes."""
    return np.append(model.coef_[0], model.intercept_)


def length(vector: Any) -> float:
    return float(np.linalg.norm(vector))


def assert_same_plane(one: Any, other: Any, rtol: float = 1e-8) -> None:
    assert_allclose(plane(one), plane(other), rtol=0, atol=rtol * length(plane(other)))


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_agrees_with_a_quadratic_program(shape: tuple[int, int], intercept: str) -> None:
    for seed in range(3):
        X, y = problem(*shape, seed)
        if intercept == "none":
            y = np.where(X @ np.ones(shape[1]) > 0, 1.0, -1.0)
        model = mm.HardMarginSVC(intercept=intercept).fit(X, y)
        assert model.status_ is Status.OPTIMAL
        w, b = quadratic_program(X, y, intercept == "free")
        expected = np.append(w, b)
        error = length(plane(model) - expected) / length(expected)
        # Where they differ, Clarabel's is the one that violates constraints or is longer.
        smallest = float((y * (X @ w + b)).min())
        assert error < 1e-8 or smallest < 1 - 1e-12 or w @ w > model.coef_[0] @ model.coef_[0]
        assert model.coef_[0] @ model.coef_[0] <= (w @ w / smallest**2) * (1 + 1e-12)
        assert_allclose(model.coef_[0] @ model.coef_[0], w @ w, rtol=1e-7)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dropping_all_other_rows_leaves_the_plane(shape: tuple[int, int]) -> None:
    X, y = problem(*shape, 0)
    model = mm.HardMarginSVC().fit(X, y)
    again = mm.HardMarginSVC().fit(X[model.support_], y[model.support_])
    assert_same_plane(again, model)
    assert_array_equal(model.support_vectors_, X[model.support_])
    assert_array_equal(model.support_kind_, "margin")
    assert model.n_support_.sum() == len(model.support_) <= shape[1] + 1


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_optimality_conditions_hold(shape: tuple[int, int], intercept: str) -> None:
    X, y = problem(*shape, 1)
    y = y if intercept == "free" else np.where(X @ np.ones(shape[1]) > 0, 1.0, -1.0)
    model = mm.HardMarginSVC(intercept=intercept).fit(X, y)
    f = model.decision_function(X)
    assert_allclose((y * f).min(), 1.0, rtol=1e-9)
    assert_allclose(model.alpha_ * (1 - y * f), 0.0, atol=1e-9 * model.alpha_.max())
    assert (model.alpha_ >= 0).all()
    size = length(model.coef_)
    assert_allclose((model.alpha_ * y) @ X, model.coef_[0], atol=1e-9 * size)
    assert_allclose(model.dual_coef_ @ X[model.support_], model.coef_, atol=1e-9 * size)
    assert_allclose(model.alpha_.sum(), size**2, rtol=1e-8)  # P = D
    if intercept == "free":
        assert_allclose(model.alpha_ @ y, 0.0, atol=1e-12 * model.alpha_.sum())
        low, high = (X @ model.coef_[0])[y > 0].min(), (X @ model.coef_[0])[y < 0].max()
        assert_allclose(model.intercept_[0], -(low + high) / 2, atol=1e-9 * size)
    else:
        assert model.intercept_[0] == 0
    certificate = model.certificate_
    assert certificate.holds(1e-8)
    assert certificate.gap >= -1e-12 * certificate.primal
    assert certificate.infeasibility < 1e-12
    assert max(certificate.drift, certificate.max_kkt_violation) < 1e-9
    assert_allclose(certificate.primal, size**2 / 2, rtol=1e-9)


def test_the_margin_is_half_the_distance_of_the_hulls() -> None:
    for seed in range(5):
        X, y = mm.datasets.separable(200, n_features=6, margin=0.3, random_state=seed)
        model = mm.HardMarginSVC().fit(X, y)
        assert_allclose(model.margin_, 0.3, rtol=1e-8)
        assert_allclose(mm.separate(X, y).margin, model.margin_, rtol=1e-8)
        weights = model.alpha_ / (model.alpha_.sum() / 2)
        assert_allclose(length((weights * y) @ X), 2 * model.margin_, rtol=1e-8)
        assert_allclose(np.abs(model.distance(X)).min(), model.margin_, rtol=1e-9)
        assert_allclose(model.distance(X) * length(model.coef_), model.decision_function(X))


@pytest.mark.parametrize("shape", [(60, 3), (60, 200), (300, 120)], ids=str)
def test_what_cannot_matter_does_not(shape: tuple[int, int]) -> None:
    X, y = problem(*shape, 2)
    model = mm.HardMarginSVC().fit(X, y)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    assert_same_plane(mm.HardMarginSVC().fit(X[order], y[order]), model)
    repeated = np.append(order, order[: len(y) // 2])
    assert_same_plane(mm.HardMarginSVC().fit(X[repeated], y[repeated]), model)
    turn, _ = np.linalg.qr(rng.standard_normal((shape[1], shape[1])))
    turned = mm.HardMarginSVC().fit(X @ turn, y)
    assert_allclose(turned.coef_ @ turn.T, model.coef_, atol=1e-8 * length(model.coef_))
    for shift in (1.0, 30.0, 1e3):
        offset = shift * rng.choice([-1.0, 1.0], shape[1])
        moved = mm.HardMarginSVC().fit(X + offset, y)
        assert moved.status_ is Status.OPTIMAL
        assert_allclose(moved.coef_, model.coef_, atol=1e-8 * length(model.coef_))
        b = moved.intercept_ + moved.coef_ @ offset
        assert_allclose(b, model.intercept_, atol=1e-8 * length(model.coef_) * shift)
    larger = mm.HardMarginSVC().fit(X * 1024.0, y)
    assert_array_equal(larger.coef_ * 1024.0, model.coef_)
    swapped = mm.HardMarginSVC().fit(X, -y)
    assert_allclose(plane(swapped), -plane(model), atol=1e-8 * length(plane(model)))


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, np.asfortranarray, np.float32])
def test_other_forms_of_the_same_rows(form: Any) -> None:
    rng = np.random.default_rng(3)
    X = np.where(rng.random((120, 200)) < 0.1, rng.integers(1, 5, (120, 200)), 0).astype(float)
    y = np.where(X @ rng.standard_normal(200) > 0, 1.0, -1.0)
    model, other = mm.HardMarginSVC().fit(X, y), mm.HardMarginSVC().fit(form(X), y)
    assert_same_plane(other, model)
    assert other.status_ is Status.OPTIMAL
    assert_array_equal(other.predict(form(X)), y)


def test_three_points_are_told_apart_sk18606() -> None:
    """Three points in general position are separable, whatever their labels and their place."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        X = rng.standard_normal((3, 2)) * 10.0 ** rng.integers(-3, 4) + rng.standard_normal(2)
        for y in ([0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1]):
            assert mm.HardMarginSVC().fit(X, y).score(X, y) == 1.0


def test_integers_are_exact() -> None:
    model = mm.HardMarginSVC().fit([[-1, 5], [1, 5], [-1, -7], [1, -7]], [0, 1, 0, 1])
    assert_array_equal(model.coef_, [[1.0, 0.0]])
    assert_array_equal(model.intercept_, [0.0])
    model = mm.HardMarginSVC().fit([[0], [4], [6]], ["a", "b", "b"])
    assert_array_equal(plane(model), [0.5, -1.0])
    assert_array_equal(model.alpha_, [0.125, 0.125, 0.0])
    assert_array_equal(model.predict([[1], [3]]), ["a", "b"])
    assert model.margin_ == 2.0


def text(n: int, d: int, seed: int) -> tuple[Any, Floats]:
    """Return rows like texts, hundreds of which support the plane."""
    rng = np.random.default_rng(seed)
    columns = (d * rng.random((n, 30)) ** 2).astype(int)
    X = sp.csr_array(
        (np.ones(n * 30), (np.repeat(np.arange(n), 30), columns.ravel())), shape=(n, d)
    )
    X.sum_duplicates()
    X = sp.diags_array(1 / np.sqrt(X.multiply(X).sum(axis=1))) @ X
    return sp.csr_array(X), np.where(rng.random(n) < 0.3, 1.0, -1.0)


def test_hundreds_of_support_vectors() -> None:
    X, y = text(600, 3000, 0)
    model = mm.HardMarginSVC().fit(X, y)
    assert len(model.support_) > 300
    assert model.certificate_.holds(1e-10)
    w, _ = quadratic_program(X.toarray(), y, True)
    assert_allclose(model.coef_[0], w, atol=1e-7 * length(w))


def verify(error: NotSeparableError, X: Any, y: Any) -> None:
    """Check a witness with nothing but its definition: one point of both hulls."""
    meet = error.witness
    assert isinstance(meet, Overlap)
    assert (meet.weights >= 0).all()
    rows, labels = np.asarray(X)[meet.rows], np.asarray(y)[meet.rows]
    assert len(np.unique(labels)) == 2
    points = [meet.weights[labels == k] @ rows[labels == k] for k in np.unique(labels)]
    assert_allclose([meet.weights[labels == k].sum() for k in np.unique(labels)], 1.0)
    assert_allclose(points[0], points[1], atol=1e-9 * abs(rows).max())


def test_classes_that_overlap_are_refused_with_a_witness() -> None:
    for d, seed in ((2, 0), (20, 1), (60, 2)):
        rng = np.random.default_rng(seed)
        y = np.where(np.arange(3000) % 2, 1, -1)
        X = rng.standard_normal((3000, d)) + 0.1 * y[:, np.newaxis]
        began = time.process_time()
        with pytest.raises(NotSeparableError, match="No plane separates -1 from 1") as raised:
            mm.HardMarginSVC().fit(X, y)
        assert time.process_time() - began < 20
        verify(raised.value, X, y)


def test_conflicting_duplicates_are_refused_at_once() -> None:
    X, y = problem(500, 4, 0)
    X[7], y[7], y[9] = X[9], 1.0, -1.0
    with pytest.raises(NotSeparableError, match="2 rows of both") as raised:
        mm.HardMarginSVC().fit(X, y)
    verify(raised.value, X, y)
    weight = np.ones(500)
    weight[7] = 0
    with pytest.raises(NotSeparableError) as raised:  # rows are counted as they were given
        mm.HardMarginSVC().fit(np.vstack([X, X[9]]), np.append(y, 1.0), np.append(weight, 1.0))
    assert isinstance(raised.value.witness, Overlap)
    assert_array_equal(raised.value.witness.rows, [9, 500])


def test_a_failed_fit_leaves_it_unfitted() -> None:
    X, y = problem(40, 2, 0)
    model = mm.HardMarginSVC().fit(X, y)
    with pytest.raises(NotSeparableError):
        model.fit([[0], [1], [2]], [0, 1, 0])
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hulls_that_all_but_touch_are_certified_or_undecided() -> None:
    for gap in 10.0 ** -np.arange(1.0, 18.0):
        X, y = problem(40, 3, 5, gap=gap)
        refused, model = None, mm.HardMarginSVC()
        try:
            model.fit(X, y)
        except NotSeparableError as error:
            refused = error
        if refused is not None:
            assert gap < 1e-9
            assert refused.witness is None or gap < 1e-14  # placing the rows rounds, too
            continue
        assert (y * model.decision_function(X) > 0).all() or gap < 1e-12
        assert (model.status_ is Status.OPTIMAL) == model.certificate_.holds(1e-8)
        assert model.status_ is Status.OPTIMAL or gap < 1e-6


def test_columns_of_very_different_size_are_certified_or_named() -> None:
    certified = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = problem(60, 8, seed)
        X = X * 10.0 ** rng.integers(-5, 6, 8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = mm.HardMarginSVC().fit(X, y)
        assert_array_equal(model.predict(X), y)
        optimal = model.status_ is Status.OPTIMAL
        assert optimal == model.certificate_.holds(1e-8)
        assert optimal or "times the size of column" in model.stop_reason_
        certified += optimal
    assert certified >= 24


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_several_classes(scheme: str) -> None:
    X, y = make_blobs(200, centers=[[0, 9], [9, 0], [-9, 0], [0, -9]], random_state=0)
    names = np.array(["n", "e", "w", "s"])[y]
    model = mm.HardMarginSVC(multi_class=scheme).fit(X, names)
    planes = 6 if scheme == "ovo" else 4
    assert model.coef_.shape == (planes, 2)
    assert model.alpha_.shape == (planes, 200)
    assert np.shape(model.margin_) == model.intercept_.shape == (planes,)
    assert model.dual_coef_.shape == (planes, len(model.support_))
    assert model.distance(X).shape == (200, planes)
    assert len(model.certificate_.parts) == planes
    assert model.certificate_.holds(1e-8)
    scores = model.decision_function(X)
    assert scores.shape == (200, 4)
    assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))
    assert_array_equal(model.predict(X), names)
    first = names == model.classes_[0]
    rows = first | (names == model.classes_[1]) if scheme == "ovo" else np.full(200, True)
    alone = mm.HardMarginSVC().fit(X[rows], first[rows])
    assert_allclose(alone.coef_[0], model.coef_[0], rtol=1e-8)


def test_the_pair_that_overlaps_is_named() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NotSeparableError, match="separates 1 from 2") as raised:
        mm.HardMarginSVC().fit(X, y)
    verify(raised.value, X, y)
    with pytest.raises(NotSeparableError, match="separates 1 from the rest") as raised:
        mm.HardMarginSVC(multi_class="ovr").fit(X, y)
    verify(raised.value, X, y == 1)


def test_weights_are_presence_only() -> None:
    X, y = problem(60, 3, 0)
    model = mm.HardMarginSVC().fit(X, y)
    weight = np.random.default_rng(0).uniform(0.1, 9.0, 60)
    assert_array_equal(plane(mm.HardMarginSVC().fit(X, y, sample_weight=weight)), plane(model))
    weight[model.support_[0]] = 0.0
    without = mm.HardMarginSVC().fit(X, y, sample_weight=weight)
    kept = weight > 0
    assert_same_plane(without, mm.HardMarginSVC().fit(X[kept], y[kept]), 1e-15)
    assert without.alpha_.shape == (60,)
    assert without.alpha_[~kept] == 0.0
    assert_array_equal(without.support_, np.flatnonzero(without.alpha_))
    with pytest.raises(ValueError, match="leaves only the class"):
        mm.HardMarginSVC().fit(X, y, sample_weight=y > 0)


def test_budgets_and_callbacks(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = text(600, 3000, 1)
    with pytest.raises(NotSeparableError, match="undecided: max_time ran out") as raised:
        mm.HardMarginSVC(max_time=1e-9).fit(X, y)
    assert raised.value.witness is None
    with pytest.raises(NotSeparableError, match="undecided: max_iter was reached"):
        mm.HardMarginSVC(max_iter=1).fit(X, y)
    told: list[Any] = []

    def separated(progress: Any) -> bool:
        told.append(progress)
        return bool(progress.iterate.relative_gap < np.inf)

    model = mm.HardMarginSVC(callback=separated, verbose=1).fit(X, y)
    assert model.n_iter_ == len(told) == len(capsys.readouterr().out.splitlines())
    assert model.status_ in (Status.CALLBACK, Status.OPTIMAL)
    assert_array_equal(model.predict(X), y)
    with pytest.raises(NotSeparableError, match="the callback ended the search"):
        mm.HardMarginSVC(callback=lambda progress: True).fit(X, y)


def test_stopping_early_with_a_plane_keeps_it_and_its_gap() -> None:
    X, y = text(600, 3000, 2)
    for allowed in (5, 6, 7, 8, 20):
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                model = mm.HardMarginSVC(max_iter=allowed).fit(X, y)
        except NotSeparableError:
            continue
        assert (model.status_ is Status.OPTIMAL) == (not said)
        if said:
            assert model.status_ is Status.MAX_ITER
            assert f"{model.certificate_.relative_gap:.3g}" in str(said[0].message)
    assert model.status_ is Status.OPTIMAL


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"intercept": "penalized"}, ValueError), ({"multi_class": "crammer_singer"}, ValueError),
        ({"tol": 0}, ValueError), ({"tol": "small"}, TypeError), ({"max_iter": 0}, ValueError),
        ({"max_time": -1.0}, ValueError), ({"callback": 3}, TypeError),
        ({"verbose": "yes"}, TypeError),
    ],
)  # fmt: skip
def test_parameters_are_checked(wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(wrong))):
        mm.HardMarginSVC(**wrong).fit([[0], [1]], [0, 1])


def test_data_are_checked() -> None:
    with pytest.raises(ValueError, match="overflow"):
        mm.HardMarginSVC().fit([[1e200], [2e200]], [0, 1])
    with pytest.raises(ValueError, match="only one class"):
        mm.HardMarginSVC().fit([[1.0], [2.0]], [1, 1])


class TestCertificate:
    def certified(self, **changed: Any) -> Any:
        X, y = problem(60, 4, 0)
        model = mm.HardMarginSVC().fit(X, y)
        given = {"signs": y, "w": model.coef_[0], "b": model.intercept_[0], "alpha": model.alpha_}
        signs, w, b, alpha = (given | changed).values()
        stated = Problem.linear(X, losses.hard_margin(signs))
        return certify_hard(stated, Point(w, b, alpha * signs))

    def test_scale_does_not_matter(self) -> None:
        X, y = problem(60, 4, 0)
        model = mm.HardMarginSVC().fit(X, y)
        one = self.certified()
        other = self.certified(w=7 * model.coef_[0], alpha=0.1 * model.alpha_)
        assert_allclose([other.primal, other.dual], [one.primal, one.dual], rtol=1e-12)
        assert one.holds(1e-10)
        assert_allclose(one.intercept, model.intercept_[0], rtol=1e-10)
        assert abs(one.intercept_cost) < 1e-9 * one.primal

    def test_it_brackets_the_optimum_from_any_separator(self) -> None:
        X, y = problem(60, 4, 0)
        best = self.certified()
        rng = np.random.default_rng(0)
        w = mm.HardMarginSVC().fit(X, y).coef_[0]
        for _ in range(20):
            found = self.certified(w=w + 0.05 * rng.standard_normal(4), alpha=rng.random(60))
            assert found.dual <= best.primal * (1 + 1e-12)
            assert found.primal >= best.dual * (1 - 1e-12)

    def test_a_plane_that_does_not_separate_is_refused(self) -> None:
        _, y = problem(60, 4, 0)
        for changed in ({"w": np.array([1.0, 0, 0, 0])}, {"signs": -y}, {"w": np.zeros(4)}):
            found = self.certified(**changed)
            assert found.primal == found.relative_gap == np.inf
            assert not found.holds(1.0)
            assert "does not separate" in str(found)

    def test_corrupted_duals_prove_less(self) -> None:
        X, y = problem(60, 4, 0)
        alpha = mm.HardMarginSVC().fit(X, y).alpha_
        best = self.certified()
        for corrupted in (np.roll(alpha, 1), -alpha, np.zeros(60), np.where(y > 0, alpha, 0.0)):
            found = self.certified(alpha=corrupted)
            assert found.dual < best.dual * (1 - 1e-6)
            assert not found.holds(1e-6)
        nudged = alpha.copy()
        nudged[np.argmax(alpha)] *= 1.001
        assert self.certified(alpha=nudged).infeasibility > 0

    def test_another_intercept_is_charged(self) -> None:
        X, y = problem(60, 4, 0)
        b = mm.HardMarginSVC().fit(X, y).intercept_[0]
        assert self.certified(b=b + 0.1).intercept_cost > 0
        assert self.certified(b=b + 2.0).intercept_cost == np.inf


def test_common_checks_fail_for_want_of_a_plane_only() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(mm.HardMarginSVC(), on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results
              if result["status"] == "failed"}  # fmt: skip
    assert sorted(failed) == FED_INSEPARABLE
    for error in failed.values():
        chain = [error]
        while (before := chain[-1].__cause__ or chain[-1].__context__) is not None:
            chain.append(before)
        assert any(isinstance(each, NotSeparableError) and each.witness for each in chain)


def test_certify_reads_a_hard_margin_and_refuses_a_forged_one() -> None:
    X, y = mm.datasets.separable(80, n_features=3, margin=0.2, random_state=5)
    model = mm.HardMarginSVC().fit(X, y)
    found = mm.certify(model, X, y)
    assert isinstance(found, mm.Certificate)
    assert found.holds(1e-8)
    model.coef_ = model.coef_ * [1.2, 1.0, 1.0]
    forged = mm.certify(model, X, y)
    assert isinstance(forged, mm.Certificate)
    assert not forged.holds(1e-6)
