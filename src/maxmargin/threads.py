"""Threads: ours share out tiles and blocks of rows, while BLAS keeps to one in each of them."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from maxmargin import clock


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


def share_work(each: Callable[[Any], None], todo: deque[Any], threads: int) -> None:
    """Call ``each`` for every item of ``todo``, in several threads, this one among them.

    All of them work under the time limit of this thread. After an error in one of them, or Ctrl-C
    in this one, the others stop at their next ``clock.check``.
    """
    limit = clock.Limit(outer=clock.limit())
    errors: list[BaseException] = []  # the first is the cause of all others

    def work() -> None:
        try:
            with clock.under(limit):
                while todo:
                    limit.check()
                    try:
                        item = todo.popleft()
                    except IndexError:  # another thread took the last one
                        return
                    each(item)
        except BaseException as error:
            errors.append(error)
            limit.cancel()

    helpers = [worker_pool(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
        wait(helpers)
    except BaseException:
        limit.cancel()
        wait(helpers)
        raise
    if errors:
        raise errors[0]


@cache
def worker_pool(workers: int) -> ThreadPoolExecutor:
    """Return the pool of threads for tiles and for passes over rows."""
    return ThreadPoolExecutor(workers, thread_name_prefix="maxmargin")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork: a child makes its own pool.
    os.register_at_fork(after_in_child=worker_pool.cache_clear)
