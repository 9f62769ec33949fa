"""Reading ahead: a thread makes the next item while this one works on the last."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from maxmargin.runtime import clock

Item = TypeVar("Item")
_PATIENCE = 0.05  # seconds between two looks at the clock while the next item is not there


class _Handover:
    """One item on its way from the thread that makes it to the one that asked for it.

    The next item is begun when the last was taken: there are never more than two.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.items: list[Any] = []
        self.ended = self.unwanted = False
        self.error: BaseException | None = None

    def make(self, items: Iterator[Any], limit: clock.Limit) -> None:
        """Make all items, each as soon as the one before was taken."""
        try:
            with clock.under(limit):
                for item in items:
                    clock.check()
                    self._hand_over([item])
                    del item  # it may be large, and belongs to the other thread now
                    if self.unwanted:
                        return
        except BaseException as error:
            self.error = error
        finally:
            with self.changed:
                self.ended = True
                self.changed.notify_all()

    def _hand_over(self, items: list[Any]) -> None:
        with self.changed:
            self.items = items
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.unwanted or not self.items)

    def taken(self) -> Iterator[Any]:
        """Iterate over the items; raise what went wrong when they were made."""
        while True:
            with self.changed:
                while not self.items and not self.ended:
                    clock.check()
                    self.changed.wait(_PATIENCE)
                if not self.items:
                    break
                item = self.items.pop()
                self.changed.notify_all()
            yield item
            del item
        if self.error is not None:
            raise self.error

    def refuse(self) -> None:
        """Let the thread end: nobody takes the next item."""
        with self.changed:
            self.unwanted = True
            self.items = []
            self.changed.notify_all()


@contextmanager
def read_ahead(items: Iterator[Item]) -> Iterator[Iterator[Item]]:
    """Let a thread make the items of an iterator, each while the one before is worked on.

    The thread works under the time limit of this one. At the end, also after an error, it has
    ended: it is waited for until what it is reading right now has been read.
    """
    handover, limit = _Handover(), clock.Limit()
    name = "maxmargin-read-ahead"
    thread = threading.Thread(target=handover.make, args=(items, limit), name=name, daemon=True)
    thread.start()
    try:
        yield handover.taken()
    finally:
        limit.cancelled = True
        handover.refuse()
        thread.join()
