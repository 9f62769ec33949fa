"""Bars appear where somebody looks, say what is true, and leave nothing behind."""

import io
import math
import os
import re
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stderr
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.problems.problem import Iterate, Progress, Status
from maxmargin.runtime import progress as module
from maxmargin.runtime.progress import Bar, find_renderer, progress
from maxmargin.solve import run_solver

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
ERASE = "\x1b[1A\x1b[2K"


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return not super().isatty()  # which fails on a closed file

    @property
    def lines(self) -> list[str]:
        """What was written, without colours and movements."""
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())
        return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


OpenTerminal = Callable[[], FakeTerminal]
Wait = Callable[[float], None]


@pytest.fixture(autouse=True)
def _by_default(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("MAXMARGIN_PROGRESS", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    yield
    assert module._outermost is None


@pytest.fixture
def open_terminal(monkeypatch: pytest.MonkeyPatch) -> OpenTerminal:
    """To be called in the test itself: pytest sets standard error between fixtures and test."""

    def opened() -> FakeTerminal:
        stream = FakeTerminal()
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return opened


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars appear at once, and are drawn often."""
    monkeypatch.setattr(module, "_DELAY", 0.0)
    monkeypatch.setattr(module, "_PERIOD", 0.002)


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Wait:
    """A clock that stands still until the test waits."""
    now = [100.0]
    monkeypatch.setattr(module, "_clock", lambda: now[0])
    return lambda seconds: now.append(now.pop() + seconds)


class Halving:
    """A solver whose gap is half of the last one; ``at(k)`` is called before iteration k."""

    def __init__(self, at: Callable[[int], Any] = lambda k: None) -> None:
        self.at = at

    def iterates(self, problem: Any, start: Any) -> Iterator[Iterate]:
        nothing = np.zeros(1)
        for k in range(1, 60):
            self.at(k)
            yield Iterate(1.0, 1.0 - 0.5**k, nothing, 0.0, nothing)


def run(solver: Halving, **settings: Any) -> Any:
    return run_solver(None, solver, **{"tol": 1e-3, **settings})


def until(said: str, terminal: FakeTerminal) -> None:
    """Wait for the thread that draws to say something."""
    end = time.perf_counter() + 10
    while not any(said in line for line in terminal.lines):
        assert time.perf_counter() < end, terminal.lines
        time.sleep(0.002)


# ------------------------------------------------------------------- what it says


def test_the_facts_are_the_fraction_the_time_left_the_gap_and_the_steps(wait: Wait) -> None:
    bar = Bar("Solving", unit="iteration", tol=1e-4)
    bar.update(1, 1.0)
    wait(4)
    bar.update(7, 1e-2)
    # Two of four digits in four seconds.
    assert bar.describe() == "50% · 4 s, about 4 s left · gap 1.0e-02 → 1e-04 · 7 iterations"


@pytest.mark.parametrize("gap", [0.5, 1e-2, 3e-4])
def test_the_way_is_measured_in_digits(gap: float) -> None:
    bar = Bar("Solving", tol=1e-6)
    bar.update(1, 0.8)
    bar.update(2, gap)
    assert bar.part == pytest.approx(math.log(0.8 / gap) / math.log(0.8 / 1e-6))
    bar.update(3, 1.0)  # it never goes back
    assert bar.gap == gap


def test_the_first_limit_to_be_reached_counts(wait: Wait) -> None:
    bar = Bar("Solving", total=100, tol=1e-4, max_time=20.0)
    bar.update(30, 1.0)
    assert bar.part == pytest.approx(0.3)
    wait(12)
    assert bar.part == pytest.approx(0.6)
    bar.update(31, 1e-3)
    assert bar.part == pytest.approx(0.75)
    bar.update(400, 1e-9)
    assert bar.part == 1.0


@pytest.mark.parametrize("gap", [np.inf, np.nan, None])
def test_a_gap_that_is_none_says_nothing(gap: float | None, wait: Wait) -> None:
    bar = Bar("Solving", tol=1e-4)
    bar.update(1, gap)
    assert bar.part is None
    assert bar.describe() == "0 s · 1 step"
    bar.update(2, 0.0)
    assert bar.part == 1.0


def test_time_left_counts_from_the_first_step_and_not_at_all_if_steps_are_uneven(
    wait: Wait,
) -> None:
    bar = Bar("Solving", unit="refit")
    wait(100)
    bar.update(total=10)
    wait(4)
    bar.update(2)
    assert bar.describe() == "20% · 1 min 44 s, about 16 s left · 2 of 10 refits"
    bar.even = False
    assert bar.describe() == "20% · 1 min 44 s · 2 of 10 refits"
    wait(7200)
    bar.forget()
    bar.update(note="another way")
    assert bar.describe() == "2 h 1 min · another way"


# ------------------------------------------------------------------- where it is shown


def test_where_bars_are_shown(monkeypatch: pytest.MonkeyPatch, open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    assert find_renderer() is not None
    monkeypatch.setenv("MAXMARGIN_PROGRESS", "0")
    assert find_renderer() is None
    monkeypatch.delenv("MAXMARGIN_PROGRESS")
    monkeypatch.setenv("TERM", "dumb")
    assert find_renderer() is None
    monkeypatch.setenv("MAXMARGIN_PROGRESS", "1")
    assert find_renderer() is not None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert find_renderer() is not None
    monkeypatch.delenv("MAXMARGIN_PROGRESS")
    monkeypatch.setenv("TERM", "xterm")
    assert find_renderer() is None
    terminal.close()
    for stream in (None, terminal):
        monkeypatch.setattr(sys, "stderr", stream)
        assert find_renderer() is None


def test_not_below_a_bar_of_somebody_else(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    from rich.console import Console
    from rich.progress import Progress as Others

    with Others(console=Console(file=terminal, force_terminal=True), transient=True):
        assert find_renderer() is None
    assert find_renderer() is not None


def test_not_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAXMARGIN_PROGRESS", "1")
    assert find_renderer() is not None
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(find_renderer()))
    thread.start()
    thread.join()
    assert found == [None]


def test_pipes_are_left_alone_unless_asked() -> None:
    """In a process of its own: no rich, and nothing on standard output in any case."""
    code = """
import os, sys, time
from maxmargin.runtime import progress as module
from maxmargin.runtime.progress import progress
module._DELAY, module._PERIOD = 0.0, 0.01
for asked in ("", "0", "1"):
    os.environ["MAXMARGIN_PROGRESS"] = asked
    with progress(f"Asked-{asked}", 2) as bar:
        bar.update(1)
        time.sleep(0.2 if asked != "1" else 1.0)
    print("rich" in sys.modules)
"""
    known = {k: v for k, v in os.environ.items() if k != "MAXMARGIN_PROGRESS"}
    done = subprocess.run([sys.executable, "-c", code], env=known, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False\nFalse\nTrue\n"
    assert set(re.findall(r"Asked-\d?", done.stderr)) == {"Asked-1"}


# ------------------------------------------------------------------- on a terminal


@pytest.mark.usefixtures("soon")
def test_a_solve_shows_its_gap_and_leaves_nothing(
    open_terminal: OpenTerminal, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = open_terminal()
    found = run(Halving(lambda k: until("gap 1.2e-01", terminal) if k == 4 else None))
    assert found.run.status is Status.OPTIMAL
    assert any(
        re.match(r"Solving [━╸╺ ]+ \d+% · 0 s.* · gap 1.2e-01 → 1e-03 · 3 iterations", line)
        for line in terminal.lines
    ), terminal.lines
    written = terminal.getvalue()
    assert written.count(HIDE) == written.count(SHOW) == 1
    assert written.endswith(ERASE)
    assert capsys.readouterr().out == ""
    assert sys.stderr is terminal


@pytest.mark.usefixtures("soon")
def test_nothing_is_shown_of_a_short_call(
    open_terminal: OpenTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal()
    monkeypatch.setattr(module, "_DELAY", 60.0)
    run(Halving(lambda k: time.sleep(0.002)))
    assert terminal.getvalue() == ""


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("how", [KeyboardInterrupt, ValueError])
def test_ctrl_c_and_errors_restore_the_cursor(
    open_terminal: OpenTerminal, how: type[BaseException]
) -> None:
    terminal = open_terminal()

    def at(k: int) -> None:
        if k == 4:
            until("3 iterations", terminal)
            raise how

    if how is KeyboardInterrupt:
        assert run(Halving(at)).run.status is Status.INTERRUPTED
    else:
        with pytest.raises(how):
            run(Halving(at))
    assert terminal.getvalue().endswith(ERASE)
    assert terminal.getvalue().count(HIDE) == terminal.getvalue().count(SHOW) == 1


@pytest.mark.usefixtures("soon")
def test_streams_that_others_replace_stay_theirs(
    open_terminal: OpenTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, theirs = open_terminal(), io.StringIO()
    monkeypatch.setattr(module, "_DELAY", 0.2)
    with progress("Before"), redirect_stderr(theirs):  # it appears while standard error is theirs
        until("Before", terminal)
        sys.stderr.write("words\n")
    assert theirs.getvalue() == "words\n"
    assert sys.stderr is terminal
    with progress("Meanwhile"):  # it is there when they replace it
        until("Meanwhile", terminal)
        sys.stderr = theirs
    assert sys.stderr is theirs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_writes_where_its_parent_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not through the bar, whose lock its parent's thread may hold for ever."""
    script = """if True:
        import io, os, sys, time
        from maxmargin.runtime import progress as module
        from maxmargin.runtime.progress import progress
        module._DELAY = 0.0
        before = sys.stderr
        with progress("Forking"):
            while sys.stderr is before:
                time.sleep(0.01)
            child = os.fork()
            if child == 0:
                os._exit(0 if sys.stderr is before and module._outermost is None else 1)
            assert os.waitpid(child, 0)[1] == 0
        assert sys.stderr is before
    """
    monkeypatch.setenv("MAXMARGIN_PROGRESS", "1")
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert made.returncode == 0, made.stderr.decode()
    assert not made.stdout


@pytest.mark.usefixtures("soon")
def test_one_bar_for_calls_within_calls(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    with progress("Searching", 3, unit="fit") as bar:
        for k in range(3):
            bar.update(k)
            until(f"{k} of 3 fits", terminal)
            with progress("Inner") as inner:
                assert not inner.watched
            run(Halving(lambda k: time.sleep(0.002)))
    assert {line.split()[0] for line in terminal.lines} == {"Searching"}
    assert terminal.getvalue().count(HIDE) == 1


@pytest.mark.usefixtures("soon")
def test_verbose_calls_have_none_nor_those_within(
    open_terminal: OpenTerminal, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = open_terminal()

    def callback(_: Progress) -> None:
        with progress("Inner") as inner:
            assert not inner.watched
        time.sleep(0.005)

    run(Halving(), verbose=True, callback=callback)
    assert terminal.getvalue() == ""
    assert "relative gap" in capsys.readouterr().out


@pytest.mark.usefixtures("soon")
def test_callbacks_work_and_may_print(
    open_terminal: OpenTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines printed to the same terminal stand above the bar; those of a file stay in the file."""
    terminal = open_terminal()
    seen: list[int] = []

    def callback(told: Progress) -> bool:
        until(f"{told.iteration} iteration", terminal)
        seen.append(told.iteration)
        sys.stdout.write(f"line {told.iteration}\n")
        return told.iteration == 3

    for stream in (io.StringIO(), FakeTerminal()):
        monkeypatch.setattr(sys, "stdout", stream)
        terminal.truncate(0)
        terminal.seek(0)
        seen.clear()
        assert run(Halving(), callback=callback).run.status is Status.CALLBACK
        assert seen == [1, 2, 3]
        if stream.isatty():
            assert [line for line in terminal.lines if line.startswith("line")] == [
                "line 1", "line 2", "line 3",
            ]  # fmt: skip
        else:
            assert stream.getvalue() == "line 1\nline 2\nline 3\n"
        assert sys.stdout is stream


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("width", ["20", "40", "60", "200"])
def test_a_line_is_never_wider_than_the_terminal(
    open_terminal: OpenTerminal, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    terminal = open_terminal()
    monkeypatch.setenv("COLUMNS", width)
    run(Halving(lambda k: until("Solving", terminal) if k == 4 else None))
    assert terminal.lines
    assert max(map(len, terminal.lines)) <= int(width)
    assert terminal.getvalue().endswith(ERASE)  # one line


@pytest.mark.usefixtures("soon")
def test_a_bar_that_cannot_be_drawn_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(FakeTerminal):
        def write(self, _: str) -> int:
            tried.set()
            raise OSError("the terminal is gone")

    tried = threading.Event()
    monkeypatch.setattr(sys, "stderr", Broken())
    found = run(Halving(lambda k: tried.wait(10) if k == 4 else None))
    assert tried.is_set()
    assert found.run.status is Status.OPTIMAL


@pytest.mark.usefixtures("soon")
def test_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    class Handle:
        def update(self, said: dict[str, str], raw: bool) -> None:
            lines.append(said["text/plain"])

    def display(said: dict[str, str], raw: bool, display_id: bool) -> Handle:
        lines.append(said["text/plain"])
        return Handle()

    package = types.ModuleType("IPython")
    shell = types.SimpleNamespace(kernel=object())
    package.get_ipython = lambda: shell  # type: ignore[attr-defined]
    shown = types.ModuleType("IPython.display")
    shown.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)

    def at(k: int) -> None:
        while k == 4 and not any("3 iterations" in line for line in lines):
            time.sleep(0.002)

    run(Halving(at))
    assert lines[0].startswith("Solving ")
    assert lines[-1] == ""
    shell.kernel = None  # IPython in a terminal
    assert find_renderer() is None


# ------------------------------------------------------------------- the calls themselves


def test_fits_are_the_same_with_and_without(
    open_terminal: OpenTerminal, soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = open_terminal()
    X, y = mm.datasets.gaussians(150, random_state=0)
    with_bar = mm.SVC(callback=lambda _: until("Solving", terminal)).fit(X, y)
    monkeypatch.setenv("MAXMARGIN_PROGRESS", "0")
    without = mm.SVC().fit(X, y)
    assert with_bar.dual_coef_.tobytes() == without.dual_coef_.tobytes()
    assert with_bar.intercept_.tobytes() == without.intercept_.tobytes()
    assert with_bar.n_iter_ == without.n_iter_


def _linear_search(X: Any, y: Any) -> Any:
    return mm.SVCSearchCV(mm.LinearSVC(), {"C": [0.1, 1.0]}, cv=3, n_jobs=2).fit(X, y)


CALLS: dict[str, tuple[Callable[[Any, Any], Any], str, int, int]] = {
    "search": (
        lambda X, y: mm.SVCSearchCV(mm.SVC(), {"C": [0.1, 1.0], "gamma": [0.1, 1]}, cv=3).fit(X, y),
        "fit", 12, 13,
    ),
    "search by chains": (_linear_search, "fit", 6, 7),
    "path": (
        lambda X, y: mm.regularization_path(X, y, Cs=[0.1, 1.0, 10.0], exact=False),
        "point", 3, 3,
    ),
    "path on a matrix": (
        lambda X, y: mm.regularization_path(X, y, mm.SVC(), Cs=[0.1, 1.0, 10.0], exact=False),
        "point", 3, 3,
    ),
    "diagnose": (lambda X, y: mm.diagnose(X, y, max_time=1.0), "question", 10, 11),
}  # fmt: skip


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    """The bars that were begun; nothing is drawn."""
    begun: list[Any] = []
    monkeypatch.setattr(module, "find_renderer", lambda: nullcontext)
    monkeypatch.setattr(module, "_draw", lambda bar, *_: begun.append(bar))
    return begun


@pytest.mark.parametrize("name", CALLS)
def test_calls_tell_all_their_steps(name: str, told: list[Bar]) -> None:
    call, unit, done, total = CALLS[name]
    call(*mm.datasets.gaussians(60, random_state=0))
    assert [(bar.unit, bar.done, bar.total) for bar in told] == [(unit, done, total)]


def test_leave_one_out_tells_its_refits(told: list[Bar]) -> None:
    X, y = mm.datasets.gaussians(40, random_state=0)
    found = mm.model_selection.leave_one_out(mm.SVC(), X, y)
    (bar,) = told
    assert (bar.unit, bar.done, bar.total) == ("refit", found.refits, found.refits)


def test_kernel_pca_tells_its_products(told: list[Bar]) -> None:
    X, _ = mm.datasets.gaussians(200, random_state=0)
    model = mm.KernelPCA(2, kernel="rbf", eigen_solver="iterative").fit(X)
    (bar,) = told
    assert bar.done == model.n_iter_


def test_a_search_that_shares_nothing_has_one_bar_too(told: list[Bar]) -> None:
    from sklearn.tree import DecisionTreeClassifier

    X, y = mm.datasets.gaussians(60, random_state=0)
    mm.SVCSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}, cv=3).fit(X, y)
    assert [(bar.done, bar.total) for bar in told] == [(0, None)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_has_one_bar_for_all_its_attempts(told: list[Bar]) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(60, 5)).astype(float)
    model = mm.SVC(kernel="poly", degree=2, C=1e8).fit(X, rng.integers(0, 2, size=60))
    assert "and" in model.solver_
    assert len(told) == 1
