"""Dual coordinate descent: in random and in cyclic order."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import maxmargin as mm
from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.problems.problem import Point, Status
from maxmargin.solve import run_solver
from maxmargin.solvers.dual_cd import DualCD
from tests.support.linear_reference import (
    CLASSIFIERS,
    INTERCEPTS,
    LOSSES,
    asked,
    estimator,
    plane,
    reference,
)

ORDERS = ("random", "cyclic")


def rows(seed: int = 0, n: int = 80, d: int = 6) -> tuple[Floats, Floats, Floats]:
    """Return X, overlapping classes and targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    scores = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    return X, np.where(scores > 0.3, 1.0, -1.0), scores


def problem(loss: str, intercept: str = "none", C: float = 0.7) -> Any:
    X, y, target = rows()
    model = estimator(loss, C=C, intercept=intercept)
    return model.formulate(X, y if loss in CLASSIFIERS else target).problems[0]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_both_orders_reach_the_optimum(loss: str, intercept: str, order: str) -> None:
    X, y, target = rows()
    told = y if loss in CLASSIFIERS else target
    model = estimator(loss, C=0.7, intercept=intercept, solver="dual_cd", order=order, tol=1e-8)
    model.fit(X, told)
    machine = asked(model, X, told)
    optimum = reference(machine)
    assert model.solver_ == "dual_cd"
    assert model.status_ is Status.OPTIMAL
    assert model.certificate_.holds(1e-8)
    assert_allclose(machine.objective(*plane(model)), optimum.primal, rtol=1e-7)


@pytest.mark.parametrize("cyclic", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_sweeps_alone_close_the_gap(loss: str, cyclic: bool) -> None:
    """Without Newton's method, which the estimators go on with where sweeps are slow."""
    found = run_solver(problem(loss, C=0.05), DualCD(cyclic=cyclic, sweeps=2000), tol=1e-7)
    assert found.run.status is Status.OPTIMAL


@pytest.mark.parametrize("sparse", [False, True])
def test_a_cyclic_sweep_is_the_plain_loop(sparse: bool) -> None:
    X, y, _ = rows()
    w, beta, C = np.zeros(X.shape[1]), np.zeros(len(X)), 0.7
    for i, x in enumerate(X):  # the duals of a hinge without intercept, one after the other
        new = np.clip(beta[i] * y[i] + (1 - y[i] * (w @ x)) / (x @ x), 0, C) * y[i]
        w += (new - beta[i]) * x
        beta[i] = new
    given = sp.csr_array(X) if sparse else X
    stated = mm.LinearSVC(C=C, intercept="none").formulate(given, y).problems[0]
    *_, last = DualCD(cyclic=True, sweeps=1).iterates(stated, Point())
    assert_allclose(last.beta, beta, atol=1e-12)
    *_, other = DualCD(cyclic=False, sweeps=1).iterates(stated, Point())
    assert np.abs(other.beta - beta).max() > 1e-3


@pytest.mark.parametrize("cyclic", [False, True])
def test_every_sweep_visits_each_row_that_is_left_once(
    cyclic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits: list[Any] = []
    compiled = loops.dual_cd.sweep

    def sweep(*given: Any) -> Any:
        order, begin, count = given[3:6]
        assert begin == 0
        visits.append(order[:count].copy())
        assert_array_equal(np.sort(order), np.arange(80))  # none is lost
        return compiled(*given)

    monkeypatch.setattr(loops.dual_cd, "sweep", sweep)
    run_solver(problem("hinge"), DualCD(cyclic=cyclic), tol=1e-6)
    ascending = [bool((np.diff(visit) > 0).all()) for visit in visits]
    assert all(ascending) if cyclic else not any(ascending)
    assert min(map(len, visits)) < 80  # rows at rest are left out …
    both = pairwise(visits)
    assert any(len(np.setdiff1d(after, before)) for before, after in both)  # … and come back


def test_cyclic_order_does_not_depend_on_the_seed() -> None:
    X, y, target = rows()
    for make, told in ((mm.LinearSVC, y), (mm.LinearSVR, target)):
        fits = [
            make(solver="dual_cd", order="cyclic", random_state=seed).fit(X, told)
            for seed in (0, 1, None, np.random.RandomState(7))
        ]
        for fit in fits[1:]:
            assert_array_equal(fit.coef_, fits[0].coef_)
            assert_array_equal(fit.alpha_, fits[0].alpha_)
    stated = problem("hinge")
    points = [run_solver(stated, DualCD(seed), tol=1e-2).point.beta for seed in (1, 2)]
    assert np.abs(points[0] - points[1]).max() > 0  # which random order does
    points = [run_solver(stated, DualCD(seed, cyclic=True), tol=1e-2).point.beta for seed in (1, 2)]
    assert_array_equal(*points)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": "backwards"}, "'random', 'cyclic'"),
        ({"order": "cyclic", "solver": "newton"}, "solver='newton': choose solver='dual_cd'"),
        ({"order": "cyclic", "solver": "subgradient"}, "choose solver='dual_cd'"),
        (
            {"order": "cyclic", "penalty": "l1", "loss": "squared_hinge"},
            "penalty='l1' .* another solver: leave order='random'",
        ),
        ({"order": "cyclic", "multi_class": "crammer_singer"}, "leave order='random'"),
    ],
)
def test_orders_that_would_be_ignored_are_refused(parameters: dict[str, Any], message: str) -> None:
    X, y, _ = rows()
    with pytest.raises(ValueError, match=message):
        mm.LinearSVC(**parameters).fit(X, y)
