"""The one clock of all time limits: it stands still while this process gets loops compiled.

Loops are compiled once for a machine, whatever the data are, so no ``max_time`` may pay for it: the
same call must give the same answer whether or not the compiled code exists already.

A call with a time limit sets it with ``limited``; long passes over rows call ``check`` between
blocks, in every thread that works for them, and end with ``OutOfTimeError`` once the time is up.
"""

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class _Stops:
    """The time in which the clock was stopped."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget stops by other threads: in a forked child there are none."""
        self.lock = threading.RLock()  # a signal handler may ask for the time as well
        self.count, self.since, self.seconds = 0, time.perf_counter(), 0.0


_stops = _Stops()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stops.reset)


def now() -> float:
    """Return seconds from an arbitrary beginning, without those in which loops were compiled."""
    with _stops.lock:
        return (_stops.since if _stops.count else time.perf_counter()) - _stops.seconds


@contextmanager
def stopped() -> Iterator[None]:
    """Stop the clock for the whole process; nested and concurrent stops count once."""
    with _stops.lock:
        if not _stops.count:
            _stops.since = time.perf_counter()
        _stops.count += 1
    try:
        yield
    finally:
        with _stops.lock:
            _stops.count = max(0, _stops.count - 1)
            if not _stops.count:
                _stops.seconds += time.perf_counter() - _stops.since


class OutOfTimeError(Exception):
    """The time limit of a call passed in the middle of a step, which was given up."""


class Limit:
    """When the work of a call must end, in whatever threads it is done.

    It ends when ``now`` is ``end``, and no later than the thread that makes the limit may work.
    """

    def __init__(self, end: float = math.inf) -> None:
        self.outer: Limit | None = _thread.limit
        self.end: float = end if self.outer is None else min(end, self.outer.end)
        self.cancelled = False  # True after an error or Ctrl-C: the work must end right away


class _Thread(threading.local):
    limit: Limit | None = None


_thread = _Thread()


@contextmanager
def under(limit: Limit) -> Iterator[None]:
    """Let this thread work under a limit."""
    before, _thread.limit = _thread.limit, limit
    try:
        yield
    finally:
        _thread.limit = before


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Let this thread work for this many seconds at most, and no longer than it may already."""
    with under(Limit(math.inf if seconds is None else now() + seconds)):
        yield


def limit() -> Limit:
    """Return the limit that this thread works under."""
    return _thread.limit or Limit()


def check() -> None:
    """Raise OutOfTimeError if this thread has worked for as long as it may."""
    limit = _thread.limit
    if limit is not None and limit.end < math.inf and now() >= limit.end:
        raise OutOfTimeError
    while limit is not None:
        if limit.cancelled:
            raise OutOfTimeError
        limit = limit.outer


class Clock:
    """Counts down from ``max_time`` seconds."""

    def __init__(self, max_time: float) -> None:
        self.max_time = max_time
        self._start = now()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return now() - self._start

    @property
    def left(self) -> float:
        """Seconds left, never less than a hundredth: some calls refuse 0."""
        return max(self.max_time - self.seconds, 0.01)

    @property
    def over(self) -> bool:
        """Whether the time is used up."""
        return self.seconds >= self.max_time
