"""Time limits and Ctrl-C: long passes look at the clock, and what was reached is kept.

The clock is a fake one that kernel tiles and passes over rows move on, so that what is counted is
work, not seconds.
"""

import threading
import warnings
from collections import deque

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import clock
from maxmargin.kernels import RBF, tiling
from maxmargin.problem import Start, Status
from maxmargin.solve import solve
from maxmargin.solvers.block_smo import BlockSMO
from maxmargin.solvers.newton import Newton

TILE = 0.01  # seconds of the fake clock


class FakeClock:
    """Stands still, but for what is added to it."""

    def __init__(self):
        self.seconds, self.lock = 0.0, threading.Lock()

    def __call__(self):
        return self.seconds

    def pass_by(self, seconds):
        with self.lock:
            self.seconds += seconds


@pytest.fixture
def fake(monkeypatch):
    fake = FakeClock()
    monkeypatch.setattr(clock, "now", fake)
    return fake


@pytest.fixture
def slow_tiles(fake, monkeypatch):
    """Kernel tiles of which each takes a hundredth of a second."""
    plain = RBF._tile

    def tile(self, a, b, out):
        fake.pass_by(TILE)
        plain(self, a, b, out)

    monkeypatch.setattr(RBF, "_tile", tile)
    return fake


def rows_and_labels(n, classes=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    if classes > 2:
        return X, np.arange(n) % classes
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def problem_of(model, X, y):
    data = model._training(X, y, None, reset=True)
    return model._stated(data, model._parts(data))[0]


MACHINES = [
    mm.SVC(), mm.SVC(C=100.0), mm.NuSVC(nu=0.3), mm.SVR(), mm.NuSVR(), mm.OneClassSVM(nu=0.4),
]  # fmt: skip


@pytest.mark.parametrize("model", MACHINES, ids=repr)
@pytest.mark.parametrize("max_time", [0.1, 1.0])
def test_a_kernel_solver_stops_within_a_tile_of_its_time(slow_tiles, model, max_time):
    X, y = rows_and_labels(6000)
    problem = problem_of(model, X, y)
    solution = solve(problem, BlockSMO(), tol=1e-9, max_iter=10_000, max_time=max_time)
    assert solution.run.status is Status.MAX_TIME
    assert slow_tiles.seconds <= max_time + 8 * TILE  # some threads, a tile each
    terms, groups = problem.terms, problem.groups
    assert ((terms.low <= solution.beta) & (solution.beta <= terms.high)).all()
    for g, total in enumerate(problem.totals):
        assert solution.beta[groups == g].sum() == pytest.approx(total, abs=1e-8 * len(X))


def test_what_a_round_moved_is_kept_when_the_time_is_over(slow_tiles):
    X, y = rows_and_labels(6000)
    problem = problem_of(mm.SVC(), X, y)
    solution = solve(problem, BlockSMO(), tol=1e-9, max_iter=10_000, max_time=1.0)
    assert (solution.beta != 0).any()


def test_a_warm_start_is_kept_when_there_is_no_time_at_all(slow_tiles):
    X, y = rows_and_labels(3000)
    problem = problem_of(mm.SVC(), X, y)
    beta = np.where(y == 1, 0.5, -0.5 * (y == 1).sum() / (y == 0).sum())
    start = Start(beta=beta)
    solution = solve(problem, BlockSMO(), tol=1e-9, max_time=0.0, start=start)
    np.testing.assert_array_equal(solution.beta, beta)
    assert slow_tiles.seconds == 0.0


@pytest.mark.parametrize("scheme", ["ovo", "ovr", "crammer_singer"])
def test_no_solver_starts_after_the_time_is_over(fake, monkeypatch, scheme):
    started = []
    iterates = Newton.iterates

    def counted(self, problem, start):
        started.append(problem)
        fake.pass_by(1.0)
        yield from iterates(self, problem, start)

    monkeypatch.setattr(Newton, "iterates", counted)
    X, y = rows_and_labels(260, classes=26)
    model = mm.LinearSVC(multi_class=scheme, max_time=2.5, solver="newton", max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert len(started) <= 3
    planes = {"ovo": 325, "ovr": 26, "crammer_singer": 26}[scheme]
    assert model.coef_.shape == (planes, 2)
    assert model.predict(X).shape == y.shape


class TestSharedWork:
    def test_ctrl_c_ends_the_work_of_all_threads(self):
        done = []

        def each(k):
            done.append(k)
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            tiling.shared(slowly(each), deque(range(100_000)), 4)
        assert len(done) < 50_000

    def test_an_error_of_another_thread_is_the_one_that_is_raised(self):
        failed = threading.Event()

        def each(k):
            if threading.current_thread() is not threading.main_thread():
                failed.set()
                raise ZeroDivisionError
            failed.wait(10)

        with pytest.raises(ZeroDivisionError):
            tiling.shared(each, deque(range(1000)), 2)

    def test_all_threads_work_under_the_limit_of_their_call(self, fake):
        done = []

        def each(k):
            done.append(k)
            fake.pass_by(1.0)

        with clock.limited(10.0), pytest.raises(clock.OutOfTimeError):
            tiling.shared(each, deque(range(1000)), 4)
        assert 10 <= len(done) <= 14
        clock.check()  # the limit ended with the call

    def test_an_inner_limit_is_not_later_than_the_outer_one(self, fake):
        with clock.limited(1.0), clock.limited(5.0):
            fake.pass_by(2.0)
            with pytest.raises(clock.OutOfTimeError):
                clock.check()


def slowly(each):
    def one(k):
        each(k)
        threading.Event().wait(1e-3)

    return one
