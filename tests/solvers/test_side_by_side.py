"""Pairs of classes solved side by side: the same answers as one after the other, in any threads."""

import threading
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.kernels import RBF
from maxmargin.problems.problem import Status
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


# ------------------------------------------------------------------- steps on a matrix by halves


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_made_on_demand_give_the_same_steps(groups: int, dtype: Any) -> None:
    rng = np.random.default_rng(groups)
    X, cut = rng.normal(size=(60, 3)), 25
    K = RBF(0.3).gram(X).astype(dtype)
    n = len(K) + (groups == 0)
    whole, sign = np.zeros((n, n), dtype), np.ones(n)
    whole[:60, :60], sign[cut:] = K, -1.0
    low, high = np.where(sign > 0, 0.0, -2.0), np.where(sign > 0, 2.0, 0.0)
    own, r = np.ones(n), sign.copy()
    if not groups:
        low[-1], high[-1], own[-1], r[-1] = -np.inf, np.inf, 0.0, 0.0
    x = np.zeros(n)
    ends = np.array([n])
    if groups == 2:
        ends = np.array([cut, n])
        x[:3], x[cut : cut + 3] = 2.0, -2.0
        r = -(whole.astype(float) @ x)
    y, s = x.copy(), r.copy()
    halves = loops.smo.Halves(
        *(np.ascontiguousarray(part) for part in (K[:cut, :cut], K[:cut, cut:], K[cut:, cut:]))
    )
    buffer, slot = np.full((n, n), np.nan, dtype), np.append(np.full(n, -1), 0)
    made = loops.smo.pairs(whole, own, r, x, low, high, ends, 1e-6, 10**5)
    again = loops.smo.make_steps(buffer, slot, halves, own, s, y, low, high, ends, 1e-6, 10**5)
    assert made == again > 10
    assert_array_equal(x, y)
    assert_array_equal(r, s)
    there = np.flatnonzero(slot[:-1] >= 0)
    assert len(there) == slot[-1] < n  # rows that no step needed were not made
    assert_array_equal(buffer[slot[there]], whole[there])


# ------------------------------------------------------------------- the same answers


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


def test_sparse_rows_are_the_same_problem(rows: Any, solved: list[int]) -> None:
    X, y = rows
    X = np.where(np.abs(X) < 1, 0.0, X)
    dense, sparse = (mm.SVC(gamma=GAMMA).fit(each, y) for each in (X, sp.csr_matrix(X)))
    assert len(solved) == 12
    assert_allclose(sparse.certificate_.dual, dense.certificate_.dual, rtol=1e-4)


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
    model = mm.SVC(gamma=GAMMA).fit(X, y)
    assert solved == [4]
    assert model.status_ is Status.OPTIMAL


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
