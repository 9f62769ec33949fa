"""The one loop: it draws iterates from a solver, counts, watches the clock, and decides to stop."""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from maxmargin.problem import Iterate, Progress, Run, Status

Step = TypeVar("Step", bound=Iterate)
StopRule = Callable[[Step], Status | None]
Callback = Callable[[Progress], Any]


def solve(
    iterates: Iterable[Step],
    *,
    rules: Sequence[StopRule[Step]] = (),
    max_iter: int,
    at_max_iter: Status,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> Run:
    """Run a solver until a rule, a budget, the callback or Ctrl-C ends it.

    Parameters
    ----------
    iterates : iterable of Iterate
        The solver. Only iterates that are ``finished`` count as iterations.
    rules : sequence of callables
        Asked in order after each iteration; the first to return a Status ends the run.
    max_iter : int
        Number of iterations allowed; reaching it ends the run with ``at_max_iter``.
    max_time : float or None
        Seconds allowed, looked at after every iterate.
    callback : callable or None
        Called with a Progress after each iteration; returning True ends the run.
    verbose : bool
        Write one line per iteration to standard output.

    Returns
    -------
    Run
        Ctrl-C is reported as ``Status.INTERRUPTED``, so that the caller can keep what was reached
        before it raises KeyboardInterrupt itself.
    """
    start = time.perf_counter()
    iterations = 0
    status = at_max_iter
    try:
        for iterate in iterates:
            seconds = time.perf_counter() - start
            if iterate.finished:
                iterations += 1
                ended = _ended(Progress(iterations, seconds, iterate), rules, callback, verbose)
                if ended or iterations >= max_iter:
                    status = ended or at_max_iter
                    break
            if max_time is not None and seconds > max_time:
                status = Status.MAX_TIME
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return Run(status, iterations, time.perf_counter() - start)


def _ended(
    progress: Progress,
    rules: Sequence[StopRule[Any]],
    callback: Callback | None,
    verbose: bool,
) -> Status | None:
    if verbose:
        sys.stdout.write(f"{progress.iteration:6d} {progress.seconds:8.2f} s  {progress.iterate}\n")
    answer = None if callback is None else callback(progress)
    stop_asked = isinstance(answer, bool | np.bool_) and bool(answer)
    for rule in rules:
        if ended := rule(progress.iterate):
            return ended
    return Status.CALLBACK if stop_asked else None
