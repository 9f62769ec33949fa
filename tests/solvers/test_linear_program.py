"""Linear programs of HiGHS on the rows in doubt: the optimum, its bounds, and how it is ended."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.certificates import certify
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, LinearProblem, Point, Problem, Status
from maxmargin.solve import Settings, plan, run_solver
from maxmargin.solvers.linear_program import LinearProgram
from maxmargin.solvers.proximal_newton import ProximalNewton
from tests.support.sparse_hinge import primal_optimum

INTERCEPTS = list(Intercept)


def drawn(seed: int, n: int = 150, d: int = 8) -> tuple[Floats, Floats, Floats]:
    """Return rows that overlap, their signs, and uneven costs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.3
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y, rng.uniform(0.1, 2.0, n)


def stated(X: Any, y: Floats, cost: Floats, intercept: Intercept) -> LinearProblem:
    return Problem.linear(X, losses.hinge(y, cost), intercept, 2.0, l1_ratio=1.0)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("settings", [LinearProgram(), LinearProgram(few_rows=10, first=1)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_optimum_is_that_of_the_whole_program(
    intercept: Intercept, settings: LinearProgram, make: Any
) -> None:
    """Also if all but a few rows are settled at first, and most of these are to be doubted."""
    for seed, C in enumerate([0.01, 0.3, 10.0]):
        X, y, weight = drawn(seed)
        X = X * (np.abs(X) > 0.5)
        problem = stated(make(X), y, C * weight, intercept)
        best = primal_optimum(X, y, C * weight, intercept.value, 2.0)
        last = None
        for iterate in settings.iterates(problem, Point()):
            slack = 1e-9 * best
            assert iterate.dual - slack <= best <= iterate.primal + slack
            last = iterate
        assert last is not None
        assert last.converged
        found = certify(problem, Point(last.w, last.b, last.beta))
        assert found.holds(1e-8)
        assert found.primal == pytest.approx(best, rel=1e-8)


def test_rows_that_were_settled_well_need_one_program() -> None:
    X, y, weight = drawn(5, 600, 5)
    problem = stated(X, y, weight, Intercept.FREE)
    start = run_solver(problem, ProximalNewton(), tol=1e-6).point
    rounds = [each for each in LinearProgram(few_rows=10).iterates(problem, start) if each.finished]
    assert len(rounds) <= 3
    assert rounds[-1].relative_gap <= 1e-9


def test_it_comes_second_and_only_for_linear_programs() -> None:
    X, y, weight = drawn(6)
    hinge, square = losses.hinge(y, weight), losses.squared_hinge(y, weight)
    for loss, ratio, expected in ((hinge, 1.0, True), (hinge, 0.5, False), (square, 1.0, False)):
        problem = Problem.linear(X, loss, l1_ratio=ratio)
        solvers = plan(problem, Settings()).solvers
        assert isinstance(solvers[0], ProximalNewton)
        assert any(isinstance(solver, LinearProgram) for solver in solvers) == expected


# ------------------------------------------------------------------- how it is ended


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Let HiGHS work until the end of the test, and note what it was asked for."""
    asked: dict[str, Any] = {"begun": threading.Event()}
    over = threading.Event()

    def linprog(**program: Any) -> Any:
        asked.update(program)
        asked["begun"].set()
        over.wait()
        raise AssertionError("nobody waits for this")

    monkeypatch.setattr(scipy.optimize, "linprog", linprog)
    yield asked
    over.set()


def test_ctrl_c_ends_it_while_highs_is_at_work(endless: dict[str, Any]) -> None:
    problem = stated(*drawn(7), Intercept.FREE)

    def press() -> None:
        endless["begun"].wait()
        os.kill(os.getpid(), signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    found = run_solver(problem, LinearProgram(), tol=1e-9)
    pressing.join()
    assert found.run.status is Status.INTERRUPTED
    assert np.isfinite(found.point.beta).all()


def test_the_time_limit_is_also_that_of_highs(endless: dict[str, Any]) -> None:
    problem = stated(*drawn(8), Intercept.FREE)
    found = run_solver(problem, LinearProgram(), tol=1e-9, max_time=0.3)
    assert found.run.status is Status.MAX_TIME
    assert 0 < endless["options"]["time_limit"] <= 0.3


def test_without_a_limit_a_program_has_one_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, limits, linprog = stated(*drawn(9), Intercept.FREE), [], scipy.optimize.linprog

    def late(options: Any, **program: Any) -> Any:
        limits.append(options["time_limit"])
        found = linprog(**program, options=options)
        if len(limits) < 3:
            found.status = 1
        return found

    monkeypatch.setattr(scipy.optimize, "linprog", late)
    assert run_solver(problem, LinearProgram(), tol=1e-9).run.status is Status.OPTIMAL
    first = LinearProgram().seconds
    assert limits == [first, 4 * first, 16 * first]


def test_what_goes_wrong_in_the_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: Any) -> Any:
        raise MemoryError("too large")

    monkeypatch.setattr(scipy.optimize, "linprog", broken)
    with pytest.raises(MemoryError, match="too large"):
        run_solver(stated(*drawn(10), Intercept.FREE), LinearProgram(), tol=1e-9)


def test_a_program_without_an_answer_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def hopeless(**_: Any) -> Any:
        return scipy.optimize.OptimizeResult(status=4, x=None)

    monkeypatch.setattr(scipy.optimize, "linprog", hopeless)
    X, y, weight = drawn(11)
    found = run_solver(stated(X, y, weight, Intercept.FREE), LinearProgram(few_rows=10), tol=1e-9)
    assert found.run.status is Status.STALLED
