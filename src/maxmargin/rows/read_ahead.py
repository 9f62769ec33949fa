"""Reading ahead: a thread makes the next item while this one works on the last."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from maxmargin.runtime import clock

Item = TypeVar("Item")
_PATIENCE = 0.05  # seconds after which the clock is read again while the next item is not there
_END = object()


@contextmanager
def read_ahead(items: Iterator[Item]) -> Iterator[Iterator[Item]]:
    """Let a thread make the items of an iterator, each while the one before is worked on.

    The next item is begun when the last was taken: there are never more than two. The thread works
    under the time limit of this one. At the end, also after an error, it has ended: it is waited
    for until what it is reading right now has been read.
    """
    limit = clock.Limit()

    def make() -> Any:
        with clock.under(limit):
            clock.check()
            return next(items, _END)

    def taken() -> Iterator[Item]:
        making = thread.submit(make)
        while (item := _wait_for(making)) is not _END:
            making = thread.submit(make)
            yield item
            del item  # it may be large, and the next one is being made

    with ThreadPoolExecutor(1, thread_name_prefix="maxmargin-read-ahead") as thread:
        try:
            yield taken()
        finally:
            limit.cancelled = True


def _wait_for(making: Future[Any]) -> Any:
    while True:
        try:
            return making.result(_PATIENCE)
        except TimeoutError:
            if making.done():  # then it is the item's own error, or the item came just now
                return making.result()
            clock.check()
