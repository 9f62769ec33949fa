"""The one clock of all time limits: it stands still while this process gets loops compiled.

Compiling happens once for a machine and says nothing about the data, so that no ``max_time`` may
pay for it: the same call must give the same answer whether or not compiled code is there already.

Who has a time limit sets it with ``limited``; long passes over rows call ``check`` between their
blocks, in every thread that works for them, and are left by ``OutOfTimeError`` once the time is up.
"""

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class _Stops:
    """The time in which at least one thread kept the clock stopped."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start afresh, as in a forked child, where the other threads do not exist."""
        self._lock = threading.RLock()  # a signal handler may ask for the time as well
        self._threads: set[int] = set()
        self._since = self._seconds = 0.0

    def begin(self) -> bool:
        """Stop the clock; return False if this thread has done so already."""
        me = threading.get_ident()
        with self._lock:
            if me in self._threads:
                return False
            if not self._threads:
                self._since = time.perf_counter()
            self._threads.add(me)
            return True

    def end(self) -> None:
        """Let the clock go on, unless another thread keeps it stopped."""
        with self._lock:
            self._threads.discard(threading.get_ident())
            if not self._threads:
                self._seconds += time.perf_counter() - self._since

    def now(self) -> float:
        """Return the seconds in which the clock was not stopped, from an arbitrary beginning."""
        with self._lock:
            reached = self._since if self._threads else time.perf_counter()
            return reached - self._seconds


_stops = _Stops()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stops.reset)


def now() -> float:
    """Return seconds from an arbitrary beginning, without those in which loops were compiled."""
    return _stops.now()


@contextmanager
def stopped() -> Iterator[None]:
    """Stop the clock for the whole process; nested and concurrent stops count once."""
    outermost = _stops.begin()
    try:
        yield
    finally:
        if outermost:
            _stops.end()


class OutOfTimeError(Exception):
    """The time limit of a call passed in the middle of a step, which was given up."""


class Limit:
    """When the work of a call must end, in whatever threads it is done: at a time, or right away.

    Parameters
    ----------
    end : float
        As ``now`` will say it; infinity: never.
    outer : Limit, optional
        The limit of the call that this one is made by.
    """

    def __init__(self, end: float = math.inf, outer: "Limit | None" = None) -> None:
        self.end: float = end if outer is None else min(end, outer.end)
        self._outer = outer
        self._cancelled = False

    def cancel(self) -> None:
        """End the work right away, as after an error or Ctrl-C in one of its threads."""
        self._cancelled = True

    @property
    def cancelled(self) -> bool:
        """Whether the work must end right away."""
        return self._cancelled or (self._outer is not None and self._outer.cancelled)

    def check(self) -> None:
        """Raise OutOfTimeError if the work must end."""
        if self.cancelled or (self.end < math.inf and now() >= self.end):
            raise OutOfTimeError


class _Current(threading.local):
    limit = Limit()


_current = _Current()


@contextmanager
def under(limit: Limit) -> Iterator[None]:
    """Let this thread work under a limit."""
    before, _current.limit = _current.limit, limit
    try:
        yield
    finally:
        _current.limit = before


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Let this thread work for so many seconds at most, and no longer than it may already."""
    end = math.inf if seconds is None else now() + seconds
    with under(Limit(end, limit())):
        yield


def limit() -> Limit:
    """Return the limit that this thread works under."""
    return _current.limit


def check() -> None:
    """Raise OutOfTimeError if this thread has worked for as long as it may."""
    _current.limit.check()


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
