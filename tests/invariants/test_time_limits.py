"""Time limits and Ctrl-C: long passes look at the clock, and what was reached is kept.

The clock is a fake one that kernel tiles and passes over rows move on, so that what is counted is
work, not seconds.
"""

import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import loops
from maxmargin.certificates import certify
from maxmargin.kernels import RBF
from maxmargin.problems.duality import feasible_start
from maxmargin.problems.problem import Point, Status
from maxmargin.problems.rounding import passed
from maxmargin.runtime import clock, threads
from maxmargin.solve import run_solver
from maxmargin.solvers.crammer_singer import ColumnWeights
from maxmargin.solvers.decomposition import Decomposition
from maxmargin.solvers.newton import Newton

TILE = 0.01  # seconds of the fake clock


class FakeClock:
    """Stands still, but for what is added to it."""

    def __init__(self) -> None:
        self.seconds, self.lock = 0.0, threading.Lock()

    def __call__(self) -> float:
        return self.seconds

    def pass_by(self, seconds: float) -> None:
        with self.lock:
            self.seconds += seconds


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(clock, "now", fake)
    return fake


@pytest.fixture
def slow_tiles(fake: FakeClock, monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """Kernel tiles, and sums without tiles, of which each takes a hundredth of a second."""
    plain, sums = RBF.fill_tile, loops.kernel_tiles.gaussian_sums

    def tile(self: RBF, a: Any, b: Any, out: Any) -> None:
        fake.pass_by(TILE)
        plain(self, a, b, out)

    def added(*args: Any) -> None:
        fake.pass_by(TILE)
        sums(*args)

    monkeypatch.setattr(RBF, "fill_tile", tile)
    monkeypatch.setattr(loops.kernel_tiles, "gaussian_sums", added)
    return fake


def rows_and_labels(n: int, classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    if classes > 2:
        return X, np.arange(n) % classes
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def problem_of(model: Any, X: Any, y: Any) -> Any:
    return model.formulate(X, y).problems[0]


MACHINES = [
    mm.SVC(), mm.SVC(C=100.0), mm.NuSVC(nu=0.3), mm.SVR(), mm.NuSVR(), mm.OneClassSVM(nu=0.4),
    mm.QuantileSVR(quantile=0.3), mm.SVC(probability=True),
]  # fmt: skip


@pytest.mark.parametrize("model", MACHINES, ids=repr)
@pytest.mark.parametrize("max_time", [0.1, 1.0])
def test_a_kernel_solver_stops_within_a_tile_of_its_time(
    slow_tiles: FakeClock, model: Any, max_time: float
) -> None:
    X, y = rows_and_labels(6000)
    problem = problem_of(model, X, y)
    solution = run_solver(problem, Decomposition(), tol=1e-14, max_iter=10_000, max_time=max_time)
    # One thread has fewer and larger tiles, which may be enough for all.
    assert solution.run.status in (Status.MAX_TIME, Status.OPTIMAL, Status.STALLED)
    assert slow_tiles.seconds <= max_time + 8 * TILE  # some threads, a tile each
    loss, groups = problem.loss, problem.groups
    assert ((loss.low <= solution.point.beta) & (solution.point.beta <= loss.high)).all()
    for g, total in enumerate(problem.totals):
        assert solution.point.beta[groups == g].sum() == pytest.approx(total, abs=1e-8 * len(X))


def test_a_warm_start_is_kept_when_there_is_no_time_at_all(slow_tiles: FakeClock) -> None:
    X, y = rows_and_labels(3000)
    problem = problem_of(mm.SVC(), X, y)
    beta = np.where(y == 1, 0.5, -0.5 * (y == 1).sum() / (y == 0).sum())
    start = Point(beta=beta)
    solution = run_solver(problem, Decomposition(), tol=1e-9, max_time=0.0, start=start)
    np.testing.assert_array_equal(solution.point.beta, beta)
    assert slow_tiles.seconds == 0.0


@pytest.mark.parametrize("scheme", ["ovo", "ovr", "crammer_singer"])
def test_no_solver_starts_after_the_time_is_over(
    fake: FakeClock, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    started: list[Any] = []
    iterates = Newton.iterates

    def counted(self: Newton, problem: Any, start: Any) -> Iterator[Any]:
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


@pytest.mark.parametrize(
    ("model", "classes", "tol"),
    [
        *((model, 2, 1e-9) for model in MACHINES),
        (mm.SVC(multi_class="ovr"), 5, 1e-3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("max_time", [0.1, 1.0, 2.0])
def test_a_fit_with_its_certificate_keeps_to_its_time(
    slow_tiles: FakeClock, model: Any, classes: int, tol: float, max_time: float
) -> None:
    X, y = rows_and_labels(4000) if classes == 2 else apart(4000, classes)
    model = clone(model).set_params(max_time=max_time, tol=tol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert slow_tiles.seconds <= 1.2 * max_time + 1.0
    assert model.status_ in (Status.MAX_TIME, Status.OPTIMAL)
    certificate = model.certificate_
    assert np.isfinite([certificate.primal, certificate.dual]).all()
    exact: Any = mm.certify(model, X, y)
    # What was bounded rather than computed is on the safe side.
    assert certificate.primal >= exact.primal - exact.intercept_cost - 1e-9 * abs(exact.primal)
    assert certificate.dual <= exact.dual + 1e-9 * abs(exact.dual)


def test_a_certificate_cut_short_says_so(slow_tiles: FakeClock) -> None:
    X, y = rows_and_labels(4000)
    problem = problem_of(mm.NuSVC(nu=0.5), X, y)
    beta = feasible_start(problem.loss, problem.groups, problem.totals)
    point: Any = Point(beta, np.zeros(2), beta)
    full = certify(problem, point)
    whole = slow_tiles.seconds
    for part in (0.0, 0.15, 0.3):
        with clock.limited(part * whole):
            cut = certify(problem, point)
        assert "no time for the scores of" in cut.caveat
        assert cut.dual <= full.dual
        assert cut.primal >= full.primal
        assert not cut.holds(0.5)
    assert full.caveat == ""


@pytest.mark.parametrize("model", [mm.SVC(), mm.NuSVR()], ids=repr)
def test_ctrl_c_during_the_certificate_keeps_what_was_reached(
    fake: FakeClock, monkeypatch: pytest.MonkeyPatch, model: Any
) -> None:
    X, y = rows_and_labels(300)
    combine, calls = RBF.dot_with_magnitudes, list[float]()

    def interrupted(self: RBF, *args: Any, **options: Any) -> Any:
        calls.append(clock.limit().end)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return combine(self, *args, **options)

    monkeypatch.setattr(RBF, "dot_with_magnitudes", interrupted)
    model = clone(model)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert len(calls) > 1
    assert all(0 < end - fake.seconds <= 0.5 for end in calls[1:])
    assert np.isfinite(model.certificate_.gap)
    assert model.predict(X).shape == y.shape


def fitted(model: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


SECONDS_PER_ROW = 1e-4  # of the fake clock


@pytest.fixture
def slow_passes(fake: FakeClock, monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """Certificates of linear machines that take time for every row."""

    def slowly_passed(X: Any, *arguments: Any) -> Any:
        fake.pass_by(SECONDS_PER_ROW * X.shape[0])
        return passed(X, *arguments)

    for name in ("quadratic", "multiclass"):
        module = sys.modules[f"maxmargin.certificates.{name}"]
        monkeypatch.setattr(module, "passed", slowly_passed)
    return fake


class TestSeveralProblems:
    def test_each_has_its_share_and_what_others_left(
        self, fake: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        iterates, used = Newton.iterates, dict[int, float]()

        def slowly(self: Newton, problem: Any, start: Any) -> Iterator[Any]:
            for iterate in iterates(self, problem, start):
                fake.pass_by(0.01)
                used[id(problem)] = used.get(id(problem), 0.0) + 0.01
                yield iterate

        monkeypatch.setattr(Newton, "iterates", slowly)
        X, y = rows_and_labels(300, classes=10)
        fitted(mm.LinearSVC(solver="newton", tol=1e-14, max_time=1.0, max_iter=10**6), X, y)
        shares = list(used.values())
        assert len(shares) == 10
        assert min(shares) >= 0.1 - 0.011
        assert shares[0] <= 0.1 + 0.011

    @pytest.mark.wide
    @pytest.mark.parametrize("scheme", ["ovo", "ovr", "crammer_singer"])
    @pytest.mark.parametrize("max_time", [0.2, 2.0])
    def test_certificates_are_foreseen(
        self, slow_passes: FakeClock, scheme: str, max_time: float
    ) -> None:
        X, y = rows_and_labels(3000, classes=20)
        model = fitted(mm.LinearSVC(multi_class=scheme, max_time=max_time, tol=1e-9), X, y)
        assert slow_passes.seconds <= 1.2 * max_time + 1.0
        certificate = model.certificate_
        for part in certificate.parts or (certificate,):
            assert np.isfinite(part.primal) or "no time for a certificate" in part.caveat
        if not np.isfinite(certificate.primal):
            assert model.status_ is Status.MAX_TIME
            assert "not certified" in str(certificate)
            assert "there was no time for a certificate" in str(certificate)
            assert not certificate.holds(1.0)


def test_a_linear_certificate_that_fits_in_is_made(slow_passes: FakeClock) -> None:
    X, y = rows_and_labels(3000)
    model = fitted(mm.LinearSVC(max_time=0.5), X, y)
    assert model.certificate_.holds(1e-4)


def apart(n: int, classes: int) -> tuple[Any, Any]:
    y = np.arange(n) % classes
    turn = 2 * np.pi * y / classes
    around = np.column_stack([np.cos(turn), np.sin(turn)])
    return 5 * around + np.random.default_rng(0).normal(size=(n, 2)), y


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize(
    "model",
    [
        mm.SVC(), mm.SVC(C=1e-3), mm.NuSVC(nu=0.2), mm.LinearSVC(), mm.LinearSVC(multi_class="ovo"),
        mm.LinearSVC(multi_class="crammer_singer"), mm.SVC(multi_class="ovr"),
        mm.LinearSVC(penalty="l1", loss="squared_hinge"), mm.LinearSVC(penalty="l1"),
    ],
    ids=repr,
)  # fmt: skip
def test_no_time_at_all_still_gives_a_model_that_is_better_than_chance(
    fake: FakeClock, monkeypatch: pytest.MonkeyPatch, model: Any, classes: int
) -> None:
    monkeypatch.setattr("maxmargin.solve.Budget.left", 0.0)
    X, y = apart(600, classes)
    model = fitted(clone(model).set_params(max_time=1e-3), X, y)
    assert model.status_ is Status.MAX_TIME
    assert model.score(X, y) > 0.8


def test_newton_steps_for_all_classes_end_within_their_time(
    fake: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lifted = ColumnWeights.lifted

    def slowly_lifted(self: ColumnWeights, rows: Any, root: float) -> Any:
        fake.pass_by(0.01)  # a step needs 190: a pair of classes each
        return lifted(self, rows, root)

    monkeypatch.setattr(ColumnWeights, "lifted", slowly_lifted)
    X, y = rows_and_labels(400, classes=20)
    model = mm.LinearSVC(multi_class="crammer_singer", max_time=0.5, tol=1e-9)
    assert fitted(model, X, y).status_ is Status.MAX_TIME
    assert 0.4 <= fake.seconds <= 0.52


def test_more_time_never_gives_a_much_worse_model(slow_tiles: FakeClock) -> None:
    """The dual objective rises from round to round, the loss falls and rises: the best is kept."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 2))
    y = (np.linalg.norm(X, axis=1) > 1.2).astype(int)
    X += 0.1 * rng.normal(size=X.shape)
    least = np.inf
    for max_time in (0.05, 0.3, 1.0, 1.5, 2.5):
        scores = fitted(mm.SVC(max_time=max_time), X, y).decision_function(X)
        loss = np.maximum(0.0, 1 - np.where(y, 1, -1) * scores).mean()
        assert loss <= 1.2 * least
        least = min(least, float(loss))
    assert least < 0.2


@pytest.mark.parametrize("model", [mm.SVC(), mm.NuSVC(nu=0.2), mm.OneClassSVM()], ids=repr)
def test_no_time_to_see_whether_a_function_is_a_kernel_is_no_error(
    fake: FakeClock, model: Any
) -> None:
    def slow(a: Any, b: Any) -> Any:
        fake.pass_by(1e-6 * len(a) * len(b))
        return np.tanh(0.1 * (a @ b.T) + 1)

    X, y = rows_and_labels(2000)
    model = fitted(clone(model).set_params(kernel=slow, max_time=0.5), X, y)
    assert model.status_ is Status.MAX_TIME
    assert not model.certificate_.holds(1.0)
    assert fake.seconds <= 1.65


class TestSharedWork:
    def test_ctrl_c_ends_the_work_of_all_threads(self) -> None:
        done: list[int] = []

        def each(k: int) -> None:
            done.append(k)
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            threads.share_work(slowly(each), deque(range(100_000)), 4)
        assert len(done) < 50_000

    def test_an_error_of_another_thread_is_the_one_that_is_raised(self) -> None:
        failed = threading.Event()

        def each(k: int) -> None:
            if threading.current_thread() is not threading.main_thread():
                failed.set()
                raise ZeroDivisionError
            failed.wait(10)

        with pytest.raises(ZeroDivisionError):
            threads.share_work(each, deque(range(1000)), 2)

    def test_all_threads_work_under_the_limit_of_their_call(self, fake: FakeClock) -> None:
        done: list[int] = []

        def each(k: int) -> None:
            done.append(k)
            fake.pass_by(1.0)

        with clock.limited(10.0), pytest.raises(clock.OutOfTimeError):
            threads.share_work(each, deque(range(1000)), 4)
        assert 10 <= len(done) <= 14
        clock.check()  # the limit ended with the call

    def test_an_inner_limit_is_not_later_than_the_outer_one(self, fake: FakeClock) -> None:
        with clock.limited(1.0), clock.limited(5.0):
            fake.pass_by(2.0)
            with pytest.raises(clock.OutOfTimeError):
                clock.check()


def slowly(each: Callable[[int], None]) -> Callable[[int], None]:
    def one(k: int) -> None:
        each(k)
        threading.Event().wait(1e-3)

    return one
