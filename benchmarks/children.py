"""Python processes of their own: each answers requests in turn, and is killed when it is too slow.

A child is given a function or a class by name, ``"package.module:Name"``, and what to call it with.
Of a class, it makes one object and calls its methods as it is asked to; several children can wait
while one works, so that tools can take turns. A function is called once, see ``call``.
"""

import contextlib
import importlib
import json
import os
import pickle
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from benchmarks.measure import Clocks

ROOT = Path(__file__).parents[1]
LOADING = 300.0  # seconds allowed for a request that is not limited otherwise
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
Answer = dict[str, Any]


class SlowError(Exception):
    """A request took longer than allowed; the process has been killed."""


class FailedError(Exception):
    """A request could not be answered; the message says why."""


class Child:
    """A process that answers requests; use it in a ``with`` statement.

    Parameters
    ----------
    session : str
        The class whose methods are the requests, as "package.module:Name".
    setup : mapping
        What the class is called with; it is pickled.
    threads : int, optional
        Threads that libraries are allowed, by the usual environment variables.
    environment : mapping, optional
        Further environment variables.
    """

    def __init__(
        self,
        session: str,
        setup: Mapping[str, Any],
        threads: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        limits = dict.fromkeys(THREADS, str(threads)) if threads else {}
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "setup.pickle"
        with file.open("wb") as stored:
            pickle.dump(dict(setup), stored, protocol=5)
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as the process is)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.children", session, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, **limits, **(environment or {})},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, what: str, limit: float = LOADING, **settings: Any) -> Answer:
        """Return the answer to a request, or raise SlowError or FailedError."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # then there is no answer either
            self._process.stdin.write(json.dumps({"do": what, **settings}) + "\n")
            self._process.stdin.flush()
        line, slow = self._line(limit)
        if slow:
            raise SlowError(f"it took more than {limit:g} s")
        if not line:
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines() or ["no message"]
            raise FailedError(f"its process ended with {self._process.returncode}: {said[-1]}")
        answer: Answer = json.loads(line)
        if "error" in answer:
            raise FailedError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._errors.close()
        self._folder.cleanup()

    def _line(self, seconds: float) -> tuple[str, bool]:
        assert self._process.stdout is not None
        slow = threading.Event()

        def too_long() -> None:
            slow.set()
            self._process.kill()

        timer = threading.Timer(seconds, too_long)
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        return line, slow.is_set() and not line


class _Once:
    """A session around a function."""

    def __init__(self, function: str, arguments: Mapping[str, Any]) -> None:
        self._function, self._arguments = _found(function), arguments

    def call(self) -> Answer:
        return {"result": self._function(**self._arguments)}


def call(function: str, threads: int | None = None, **arguments: Any) -> Any:
    """Call a function, named as "package.module:name", in a new process; return what it returns."""
    setup = {"function": function, "arguments": arguments}
    with Child("benchmarks.children:_Once", setup, threads) as child:
        return child.ask("call", limit=float(threading.TIMEOUT_MAX))["result"]


def run_python(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run the interpreter in a new process and return what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode:
        raise RuntimeError(f"a child process failed:\n{done.stderr}")
    return done.stdout


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


CHILDREN = Clocks(time.perf_counter, _cpu_of_children)


def peak_megabytes() -> float:
    """Return the largest memory this process ever had.

    The kernel's own mark: ru_maxrss would start from the parent's memory.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        status = ""
    if found := re.search(r"VmHWM:\s+(\d+) kB", status):
        return int(found[1]) / 1024
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (2**20 if sys.platform == "darwin" else 1024)


# ------------------------------------------------------------ in the child


def _found(name: str) -> Any:
    module, _, member = name.partition(":")
    return getattr(importlib.import_module(module), member)


def main(session: str, file: str) -> None:
    """Be the child: answer until there are no more requests."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    with open(file, "rb") as stored:
        made = _found(session)(**pickle.load(stored))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(made, request.pop("do"))(**request)
        except Exception as error:  # the next request may go better
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=float), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
