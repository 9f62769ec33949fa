"""Compilation: no time limit pays for it, processes share it, and nothing on disk can break it."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin.problems.problem import Iterate, Status
from maxmargin.runtime import clock
from maxmargin.solve import drive

pytestmark = pytest.mark.wide


def run(code: str, cache: Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment, **options)


# ------------------------------------------------------------------- the clock


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let a test say what time it is."""
    seconds = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: seconds[0])
    return seconds


def test_the_clock_stands_still_while_stopped_however_deep(wall: list[float]) -> None:
    begun = clock.now()
    wall[0] += 1.0
    with clock.stopped():
        wall[0] += 10.0
        with clock.stopped():
            wall[0] += 10.0
        wall[0] += 10.0
        assert clock.now() - begun == pytest.approx(1.0)
    wall[0] += 2.0
    assert clock.now() - begun == pytest.approx(3.0)


def test_stops_of_several_threads_count_once(wall: list[float]) -> None:
    begun = clock.now()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with clock.stopped():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with clock.stopped():
        wall[0] += 1.0
        thread.start()
        inside.wait()
        wall[0] += 1.0
    wall[0] += 1.0  # this thread goes on, the other one still compiles
    leave.set()
    thread.join()
    wall[0] += 5.0
    assert clock.now() - begun == pytest.approx(5.0)


def test_the_clock_goes_on_after_an_exception(wall: list[float]) -> None:
    begun = clock.now()

    def interrupted() -> None:
        with clock.stopped():
            wall[0] += 1.0
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    wall[0] += 1.0
    assert clock.now() - begun == pytest.approx(1.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_of_a_process_that_compiles_has_a_clock_that_goes() -> None:
    code = """
import os, threading, time
from maxmargin.runtime import clock
from maxmargin.problems.problem import Iterate, Status
from maxmargin.solve import drive
held, done = threading.Event(), threading.Event()
def compile():
    with clock.stopped():
        held.set(); done.wait()
threading.Thread(target=compile).start()
held.wait()
child = os.fork()
begun = clock.now(); time.sleep(0.05); gone = clock.now() - begun
if not child:
    os._exit(0 if gone > 0.04 else 1)
_, status = os.waitpid(child, 0); done.set()
print(gone, os.waitstatus_to_exitcode(status))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout == "0.0 0\n", found.stderr


@pytest.fixture
def slow_compiler(wall: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each compilation take a thousand seconds."""
    from numba.core.dispatcher import Dispatcher

    original = Dispatcher.compile

    def slow(self: Any, signature: Any) -> Any:
        wall[0] += 1000.0
        return original(self, signature)

    monkeypatch.setattr(Dispatcher, "compile", slow)


@pytest.mark.usefixtures("slow_compiler")
def test_a_time_limit_does_not_pay_for_compilation(wall: list[float]) -> None:
    from maxmargin.loops.compiled import compiled

    @compiled
    def twice(x: Any) -> Any:
        return x + x

    def iterates() -> Iterator[Iterate]:
        for number in (1, 1.0, 1j):  # each a signature of its own
            twice(number)
            wall[0] += 0.25
            yield Iterate(1.0, 0.0, np.zeros(1), 0.0, np.zeros(1))

    begun = wall[0]
    ended = drive(iterates(), max_iter=10, at_max_iter=Status.MAX_ITER, max_time=1.0)
    assert wall[0] - begun > 3000.0
    assert ended.iterations == 3
    assert ended.seconds == pytest.approx(0.75)
    assert ended.status is not Status.MAX_TIME


ANSWERS = """
import maxmargin as mm
X, y = mm.datasets.circles(200, random_state=0)
print(mm.SVC(max_time=1.0).fit(X, y).stop_reason_)
print(mm.LinearSVC(max_time=1.0).fit(X, y).stop_reason_)
"""
DIAGNOSIS = """
import maxmargin as mm
print(mm.diagnose(*mm.datasets.circles(200, random_state=0)))
"""


@pytest.mark.parametrize("code", [ANSWERS, pytest.param(DIAGNOSIS, marks=pytest.mark.full)])
def test_answers_do_not_depend_on_what_is_compiled_already(code: str, tmp_path: Path) -> None:
    cold, warm = run(code, tmp_path), run(code, tmp_path)
    assert "compiling" in cold.stderr, cold.stderr
    assert warm.stderr == ""
    assert cold.stdout == warm.stdout != ""


# ------------------------------------------------------------------- what is kept on disk

FIT = "import maxmargin as mm; print(mm.Perceptron().fit([[0.0], [1.0]], [0, 1]).coef_)"
COMPILED = """
import numba.core.event
class Listener(numba.core.event.Listener):
    def on_start(self, event):
        loop = event.data["dispatcher"].py_func
        if loop.__module__.startswith("maxmargin") and "<locals>" not in loop.__qualname__:
            print("compiled", loop.__module__, loop.__qualname__, event.data["args"])
    def on_end(self, event):
        pass
numba.core.event.register("numba:compile", Listener())
"""


def test_two_processes_compile_each_loop_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", COMPILED + FIT]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    lines = [line for process in both for line in process.communicate()[0].splitlines()]
    compiled = [line for line in lines if line.startswith("compiled")]
    assert len(compiled) == len(set(compiled)) > 2
    assert len(lines) == len(compiled) + 2  # both have a model


JOBS = """
import maxmargin as mm
from sklearn.model_selection import cross_val_score
X, y = mm.datasets.circles(60, random_state=0)
print(*cross_val_score(mm.SVC(), X, y, cv=4, n_jobs=2))
"""


@pytest.mark.full
def test_jobs_of_scikit_learn_compile_each_loop_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_DEBUG_CACHE", "1")  # tells what is written
    lines = run(JOBS, tmp_path).stdout.splitlines()
    written = [line for line in lines if "data saved to" in line]
    assert len(written) == len(set(written)) > 2


CALL = """
import numpy as np
from maxmargin import loops
one = np.ones(1)
print(*loops.loss.slopes(one, one, -one, one, one, 0.0))
"""


@pytest.mark.parametrize("pattern", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("broken", ["garbage", "truncated"])
def test_broken_files_are_made_again(pattern: str, broken: str, tmp_path: Path) -> None:
    assert run(CALL, tmp_path).stdout == "-1.0 -1.0 1.0\n"
    for file in tmp_path.rglob(pattern):
        whole = file.read_bytes()
        contents = {"garbage": b"garbage", "truncated": whole[: len(whole) // 2]}
        file.write_bytes(contents[broken])
    again, after = run(CALL, tmp_path), run(CALL, tmp_path)
    assert again.stdout == after.stdout == "-1.0 -1.0 1.0\n", again.stderr
    assert "compiling" in again.stderr
    assert after.stderr == ""


def test_a_full_disk_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from maxmargin.loops import compiled as compiling
    from maxmargin.loops.compiled import compiled

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(compiling._Files, "_save_data", full)
    monkeypatch.setattr(compiling, "_said", set())

    @compiled
    def thrice(x: Any) -> Any:
        return x + x + x

    assert thrice(2) == 6
    assert thrice(2.0) == 6.0
    said = [record.getMessage() for record in caplog.records]
    assert sum("no space left" in one and "NUMBA_CACHE_DIR" in one for one in said) == 1


INTERRUPTED = """
import logging, os, signal, threading, time
import maxmargin as mm
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
X, y = mm.datasets.circles(200, random_state=0)
sent = []
def interrupt():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
class Announced(logging.Handler):
    def emit(self, record):
        threading.Timer(DELAY, interrupt).start()
logging.getLogger("maxmargin").addHandler(Announced())
try:
    mm.SVC().fit(X, y)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - sent[0] < 10)
print(mm.SVC().fit(X, y).certificate_.holds(1e-3))
"""


@pytest.mark.parametrize("delay", [0.01, pytest.param(0.7, marks=pytest.mark.full)])
def test_an_interrupted_compilation_leaves_everything_in_order(
    delay: float, tmp_path: Path
) -> None:
    found = run(INTERRUPTED.replace("DELAY", str(delay)), tmp_path)
    assert found.stdout == "interrupted True\nTrue\n", found.stderr
    assert not list(tmp_path.rglob("*.tmp.*"))
    after = run(INTERRUPTED, tmp_path)
    assert (after.stdout, after.stderr) == ("True\n", "")


@pytest.mark.full
def test_after_warming_up_nothing_is_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "maxmargin", "warm-up"], env=environment, check=True)
    assert "compiling" not in run(ANSWERS + DIAGNOSIS, tmp_path).stderr
