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

from maxmargin.runtime import clock


@cache
def _libraries() -> list[Any]:
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _BlasThreads:
    """Counts the threads that keep BLAS to one: the first lowers the limit, the last restores it.

    The limit belongs to the process, so two threads that each saved and restored it for
    themselves could leave it at 1 for good.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.before: list[tuple[Any, int]] = []  # while inside: libraries, and their threads

    def leave_all(self) -> None:
        """Restore the limit in a forked child, where the threads inside do not exist."""
        self.lock, self.inside = threading.Lock(), 0
        self.restore()

    def restore(self) -> None:
        while self.before:
            library, threads = self.before.pop()
            library.set_num_threads(threads)


_blas = _BlasThreads()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread while the body runs."""
    with _blas.lock:
        if not _blas.inside:
            for library in _libraries():
                _blas.before.append((library, library.get_num_threads()))
                library.set_num_threads(1)
        _blas.inside += 1
    try:
        yield
    finally:
        with _blas.lock:
            _blas.inside = max(0, _blas.inside - 1)
            if not _blas.inside:
                _blas.restore()


def usual_threads() -> int:
    """Return the threads BLAS would use: what the user, joblib or threadpoolctl has set."""
    with _blas.lock:
        counts = [n for _, n in _blas.before] or [x.get_num_threads() for x in _libraries()]
    return max(counts) if counts else os.cpu_count() or 1


class _Worker(threading.local):
    busy = False  # whether this thread has a share of the work of several threads already


_worker = _Worker()


def share_work(each: Callable[[Any], None], todo: deque[Any], threads: int) -> None:
    """Call ``each`` for every item of ``todo``, in several threads, this one among them.

    All of them work under the time limit of this thread. After an error in one of them, or Ctrl-C
    in this one, the others stop at their next ``clock.check``.
    """
    helping = 0 if _worker.busy else threads - 1  # workers that wait for workers might wait forever
    limit = clock.Limit()
    errors: list[BaseException] = []  # the first is the cause of all others

    def work() -> None:
        before, _worker.busy = _worker.busy, _worker.busy or helping > 0
        try:
            with clock.under(limit):
                while todo:
                    clock.check()
                    try:
                        item = todo.popleft()
                    except IndexError:  # another thread took the last one
                        return
                    each(item)
        except BaseException as error:
            errors.append(error)
            limit.cancelled = True
        finally:
            _worker.busy = before

    helpers = [worker_pool(helping).submit(work) for _ in range(helping)]
    try:
        work()
        wait(helpers)
    except BaseException:
        limit.cancelled = True
        wait(helpers)
        raise
    if errors:
        raise errors[0]


@cache
def worker_pool(workers: int) -> ThreadPoolExecutor:
    """Return the pool of threads for tiles and for passes over rows."""
    return ThreadPoolExecutor(workers, thread_name_prefix="maxmargin")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.leave_all)
    # Threads do not survive a fork: a child makes its own pool.
    os.register_at_fork(after_in_child=worker_pool.cache_clear)
