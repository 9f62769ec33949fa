"""Python processes of their own: each answers requests in turn, and is killed when it is too slow.

Several can wait while one works, so that tools can take turns, each with its own memory, threads
and copy of the library.
"""

import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from threadpoolctl import threadpool_limits

from benchmarks.measure import Clocks

ROOT = Path(__file__).parents[1]
LOADING = 300.0  # seconds allowed for a request that is not limited otherwise
Answer = dict[str, Any]


class SlowError(Exception):
    """A request took longer than allowed; the process has been killed."""


class FailedError(Exception):
    """A request could not be answered; the message says why."""


class Child:
    """A process with an object of its own, whose methods are the requests.

    Use it in a ``with`` statement.
    """

    def __init__(
        self,
        session: Callable[..., Any],  # makes the object, from what follows
        setup: Mapping[str, Any],
        threads: int | None = None,  # that libraries are allowed
        path: Path | None = None,  # imported from before all others
    ) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (theirs, threads, path, session, dict(setup))
        self._process = context.Process(target=_serve, args=arguments)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the process can be asked for more."""
        return self._process.is_alive()

    def ask(self, what: str, limit: float | None = LOADING, **settings: Any) -> Any:
        """Return the answer to a request, or raise SlowError or FailedError."""
        try:
            self._pipe.send((what, settings))
            if not self._pipe.poll(limit):
                self.close()
                raise SlowError(f"it took more than {limit:g} s")
            answer = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            raise FailedError(f"its process ended with {self._process.exitcode}") from None
        if isinstance(answer, FailedError):
            raise answer
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(
    pipe: Connection,
    threads: int | None,
    path: Path | None,
    session: Callable[..., Any],
    setup: Answer,
) -> None:
    """Be the child: answer until there are no more requests."""
    if path is not None:
        sys.path.insert(0, str(path))
    threadpool_limits(threads)  # for as long as the process lives
    made = session(**setup)
    while True:
        try:
            what, settings = pipe.recv()
        except EOFError:
            return
        try:
            answer = getattr(made, what)(**settings)
        except Exception as error:  # the next request may go better
            answer = FailedError(f"{type(error).__name__}: {error}")  # which can be pickled
        pipe.send(answer)


class _Once:
    """A session around a function."""

    def __init__(self, function: Callable[..., Any], arguments: Answer) -> None:
        self._function, self._arguments = function, arguments

    def call(self) -> Any:
        return self._function(**self._arguments)


def call(function: Callable[..., Any], threads: int | None = None, **arguments: Any) -> Any:
    """Call a function in a new process, and return what it returns."""
    with Child(_Once, {"function": function, "arguments": arguments}, threads) as child:
        return child.ask("call", limit=None)


def run_python(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run the interpreter in a new process and return what it printed."""
    environment = {**os.environ, **(environment or {})}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
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
