"""One BLAS thread inside our own tiles, even if other threads compute at the same time."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _ThreadLimit:
    """Counts the threads inside: the first one lowers the limit, the last one restores it.

    The limit belongs to the process, so two threads that each saved and restored it for
    themselves could leave it at 1 for good.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.before: list[int] = []

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.before = [library.get_num_threads() for library in _libraries()]
                for library in _libraries():
                    library.set_num_threads(1)
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self._restore()

    def usual_threads(self) -> int:
        with self.lock:
            counts = self.before if self.inside else [x.get_num_threads() for x in _libraries()]
        return max(counts, default=os.cpu_count() or 1)

    def forget_parent(self) -> None:
        """Reset the count in a forked child, where the threads that were inside do not exist."""
        self.lock = threading.Lock()
        if self.inside:
            self.inside = 0
            self._restore()

    def _restore(self) -> None:
        for library, threads in zip(_libraries(), self.before, strict=True):
            library.set_num_threads(threads)


_limit = _ThreadLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.forget_parent)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread while the body runs."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


def usual_threads() -> int:
    """Return the threads BLAS would use: what the user, joblib or threadpoolctl has set."""
    return _limit.usual_threads()
