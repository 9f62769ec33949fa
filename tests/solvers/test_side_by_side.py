"""Pairs of classes solved side by side: the same answers as one after the other, in any threads."""

import threading
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.kernels import RBF
from maxmargin.problems.problem import Status
from maxmargin.solvers import side_by_side
from maxmargin.solvers.side_by_side import SideBySide

GAMMA = 0.1


@pytest.fixture(scope="module")
def rows() -> tuple[Floats, Any]:
    """Four classes that overlap, unequal in size, not sorted; enough rows for float32 tiles."""
    rng = np.random.default_rng(3)
    y = rng.choice(4, size=2100, p=[0.1, 0.2, 0.3, 0.4])
    X = rng.normal(size=(4, 5))[y] + rng.normal(size=(len(y), 5))
    return X, np.array(["d", "b", "c", "a"])[y]


@pytest.fixture
def solved(monkeypatch: Any) -> list[int]:
    """The numbers of the problems that are solved side by side, noted while a test runs."""
    numbers: list[int] = []
    solve = SideBySide.solve

    def noted(self: Any, k: int, *given: Any) -> Any:
        numbers.append(k)
        return solve(self, k, *given)

    monkeypatch.setattr(SideBySide, "solve", noted)
    return numbers


def one_by_one(model: Any, X: Any, y: Any, **more: Any) -> Any:
    """Fit with a callback: then the problems are solved one after the other."""
    return model.set_params(callback=lambda _: None).fit(X, y, **more)


# ------------------------------------------------------------------- steps that shrink


def stated(groups: int) -> tuple[Floats, Any]:
    """Return rows, and the problem of two classes: low, high, start, where groups end."""
    rng = np.random.default_rng(groups)
    sign = np.where(np.arange(120) < 50, 1.0, -1.0)
    X = rng.normal(size=(120, 5)) + 0.7 * sign[:, np.newaxis]
    low, high, x = np.where(sign > 0, 0.0, -2.0), np.where(sign > 0, 2.0, 0.0), np.zeros(120)
    ends = np.array([120])
    if groups == 2:
        ends, x[:3], x[50:53], sign = np.array([50, 120]), 2.0, -2.0, np.zeros(120)
    if groups == 0:  # a variable that takes any value
        low, high, ends = np.append(low, -np.inf), np.append(high, np.inf), np.array([121])
        sign, x = np.append(sign, 0.0), np.append(x, 0.0)
    return X, (sign, low, high, x, ends)


@pytest.mark.wide
@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("kind", ["halves", "gaussian"])
@pytest.mark.parametrize(("every", "part", "kept"), [(8, 1.0, 121), (8, 0.7, 3), (10**6, 0.0, 121)])
def test_steps_end_where_those_on_the_whole_matrix_do(
    groups: int, kind: str, every: int, part: float, kept: int
) -> None:
    """However variables are shrunk, and rows forgotten because memory is full."""
    X, (target, low, high, x, ends) = stated(groups)
    size, cut = len(x), 50
    K = np.zeros((size, size))
    K[:120, :120] = RBF(0.3).gram(X)
    own, r = K.diagonal().copy(), target - K @ x
    if kind == "halves":
        parts = K[:cut, :cut], K[:cut, cut:120], K[cut:120, cut:120]
        values = loops.shrinking.Halves(*map(np.ascontiguousarray, parts))
    else:
        factor = 0.3 * np.log2(np.exp(1.0))
        norms = np.append(factor * (X * X).sum(axis=1), np.full(size - 120, 1e30))
        columns = np.zeros((5, size))
        columns[:, :120] = X.T
        values = loops.shrinking.Gaussian(columns, norms, 2 * factor)

    def new(rows: int) -> Any:
        return loops.shrinking.Whole(
            *np.zeros((7, size)), np.zeros(size, np.float32), ends.copy(),
            np.full((rows, size), np.nan), np.full(size, -1), np.zeros(2, np.int64),
        )  # fmt: skip

    v, some = new(kept), new(kept)
    v.r[:], v.x[:], v.low[:], v.high[:], v.own[:], v.curvatures[:] = r, x, low, high, own, own
    far = loops.smo.FAR
    v.up[:], v.down[:] = np.where(x >= high, -far, 0.0), np.where(x <= low, far, 0.0)
    rule = loops.shrinking.ShrinkRule(1.0, every, part)
    made = loops.shrinking.make_steps(values, v, some, np.empty(size, np.int64), rule, 1e-8, 10**6)
    loops.smo.pairs(K, own, r, x, low, high, ends, 1e-8, 10**6)
    assert 10 < made < 10**6
    assert_allclose(v.x, x, atol=1e-6)
    assert_allclose(v.r, target - K @ v.x, atol=1e-10)  # what was shrunk is up to date
    assert (v.made[1] > 0) == (kept == 3)


# ------------------------------------------------------------------- the same answers


@pytest.mark.wide
@pytest.mark.parametrize(
    ("model", "problems"),
    [
        (mm.SVC(C=3, gamma=GAMMA), 6),
        (mm.SVC(C=3, gamma=GAMMA, fit_intercept=False), 6),
        (mm.SVC(C=3, gamma=GAMMA, multi_class="ovr"), 4),
        (mm.SVC(C=3, kernel="laplacian", class_weight="balanced"), 6),
        (mm.NuSVC(nu=0.2, gamma=GAMMA), 6),
    ],
)
def test_answers_are_those_of_one_after_the_other(
    model: Any, problems: int, rows: Any, solved: list[int]
) -> None:
    X, y = rows
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], size=len(y), p=[0.02, 0.48, 0.5])
    side = model.fit(X, y, sample_weight=weight)
    assert sorted(solved) == list(range(problems))
    certificate, support = side.certificate_, side.dual_coef_
    assert side.status_ is Status.OPTIMAL
    assert certificate.holds(model.tol)
    checked: Any = mm.certify(side, X, y, weight)
    assert checked.dual == pytest.approx(certificate.dual, rel=1e-9)
    other = one_by_one(model, X, y, sample_weight=weight)
    assert len(solved) == problems
    for one, two in zip(certificate.parts, other.certificate_.parts, strict=True):
        assert one.dual <= two.primal * (1 + 1e-12)
        assert two.dual <= one.primal * (1 + 1e-12)
    assert support.shape[0] == other.dual_coef_.shape[0]


def test_no_dual_is_worse_than_libsvms_by_more_than_tol(rows: Any, solved: list[int]) -> None:
    X, y = rows
    model = mm.SVC(C=3, gamma=GAMMA, tol=1e-3).fit(X, y)
    assert len(solved) == 6
    other: Any = mm.certify(svm.SVC(C=3, gamma=GAMMA).fit(X, y), X, y)
    for ours, theirs in zip(model.certificate_.parts, other.parts, strict=True):
        assert ours.dual >= theirs.dual - 1e-3 * ours.primal
        assert ours.dual <= theirs.primal


def test_bits_do_not_depend_on_threads_or_on_what_is_kept(
    rows: Any, solved: list[int], monkeypatch: Any
) -> None:
    X, y = rows
    fits = [mm.SVC(gamma=GAMMA, n_jobs=threads).fit(X, y) for threads in (1, 2, 3)]
    fits.append(mm.SVC(gamma=GAMMA, n_jobs=2, memory=1).fit(X, y))
    monkeypatch.setattr(SideBySide, "kept", 0.0)  # each pair computes its own blocks
    fits.append(mm.SVC(gamma=GAMMA, n_jobs=2).fit(X, y))
    assert len(solved) == 30
    for one, other in pairwise(fits):
        assert_array_equal(one.dual_coef_, other.dual_coef_)
        assert_array_equal(one.intercept_, other.intercept_)
        assert one.certificate_ == other.certificate_


def test_what_float32_cannot_close_goes_on_in_float64(rows: Any, solved: list[int]) -> None:
    X, y = rows
    model = mm.SVC(gamma=GAMMA, tol=1e-9).fit(X, y)
    assert len(solved) == 6
    assert model.status_ is Status.OPTIMAL
    assert max(part.relative_gap for part in model.certificate_.parts) <= 1e-9


def test_a_warm_start_needs_one_check(rows: Any, solved: list[int]) -> None:
    X, y = rows
    model = mm.SVC(gamma=GAMMA, warm_start=True).fit(X, y)
    first = model.n_iter_
    assert (model.fit(X, y).n_iter_ == 1).all()
    assert (first > 1).all()
    assert len(solved) == 12


# ------------------------------------------------------------------- limits


def test_large_problems_are_left_to_rounds(rows: Any, solved: list[int], monkeypatch: Any) -> None:
    X, y = rows
    monkeypatch.setattr(SideBySide, "most_rows", 700)  # those of "b" and "d", and of no other two
    model = mm.SVC(kernel="laplacian", gamma=GAMMA).fit(X, y)
    assert solved == [4]
    assert model.status_ is Status.OPTIMAL


def test_problems_of_many_rows_go_on_in_rounds_once_memory_is_full(
    rows: Any, solved: list[int], monkeypatch: Any
) -> None:
    X, y = rows
    plain = mm.SVC(gamma=GAMMA).fit(X, y).certificate_
    monkeypatch.setattr(side_by_side, "_VALUES", 1 << 14)
    model = mm.SVC(gamma=GAMMA).fit(X, y)
    assert len(solved) == 12
    assert model.status_ is Status.OPTIMAL
    assert_allclose(model.certificate_.dual, plain.dual, rtol=1e-4)


def test_without_time_the_model_is_a_rough_one(rows: Any) -> None:
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = mm.SVC(gamma=GAMMA, max_time=1e-4).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert len(model.certificate_.parts) == 6
    assert set(model.predict(X)) <= set(y)
    assert mm.SVC(gamma=GAMMA, max_time=100).fit(X, y).status_ is Status.OPTIMAL


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_keeps_what_was_reached(threads: int, rows: Any, monkeypatch: Any) -> None:
    X, y = rows
    solve, seen = SideBySide.solve, []

    def interrupted(self: Any, k: int, *given: Any) -> Any:
        found = solve(self, k, *given)
        seen.append(k)
        if len(seen) > 2 and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(SideBySide, "solve", interrupted)
    model = mm.SVC(gamma=GAMMA, n_jobs=threads)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert len(model.certificate_.parts) == 6
    assert model.score(X, y) > 0.5
