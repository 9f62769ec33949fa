"""How far a long call has come: one line on the terminal, and only where somebody looks at it.

A call ends at the first of its limits. With ``done`` of ``total`` steps made, a relative gap g that
began at g₀ and is to reach tol, and t seconds of ``max_time`` gone, this part of its way is made:

    p  =  max( done/total,  log(g₀/g) / log(g₀/tol),  t/max_time )

as solvers gain digits at an even pace; the time left is about (t − t₀)(1 − p)/p, where steps, or
digits, have been counted since t₀. A bar appears when a call has taken a second, and goes when it
ends. Of calls within calls only the outermost has one. It is drawn by a thread of its own: so it
moves during a long step, Ctrl-C cannot leave half of it behind, and the call itself only notes
numbers. ``MAXMARGIN_PROGRESS=0`` turns bars off; ``=1`` turns them on where none would be shown.
"""

import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, Self

from maxmargin.progress.words import digits, duration

_AFTER = 1.0  # seconds a call takes before it has a bar
_PERIOD = 0.2  # seconds from one look to the next
_LINGER = 25  # looks at nothing, after which the thread ends
_PATIENCE = 2.0  # seconds to wait for a bar to go: a terminal may be stopped
_LEAST = 0.02  # part of the way from which on the time left is estimated


class Picture(Protocol):
    """Where a bar is drawn."""

    def draw(self, bar: "Bar") -> None:
        """Show how far a call has come."""
        ...

    def close(self) -> None:
        """Leave nothing behind."""
        ...

    def disown(self) -> None:
        """Write no more, as in a forked child, where the terminal is its parent's."""
        ...


class Ticker:
    """The thread that looks at the one bar there is, now and then; it ends when there is none."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self._picture: Picture | None = None
        self.reset()

    def reset(self) -> None:
        """Start afresh, as in a forked child, where the thread does not exist."""
        if self._picture is not None:
            self._picture.disown()
        self.lock = threading.Lock()
        self._bar: Bar | None = None
        self._picture = None
        self._wake = threading.Event()
        self._alive, self._idle = False, 0

    @property
    def busy(self) -> bool:
        """Whether a call is under way that has a bar, or wants none."""
        bar = self._bar
        return bar is not None and not bar.over

    def begin(self, bar: "Bar") -> None:
        """Look at a bar from now on."""
        with self.lock:
            self._idle = 0
            starts = bar.watched and not self._alive
            self._alive |= starts
        if starts:
            try:
                threading.Thread(target=self._run, name="maxmargin-progress", daemon=True).start()
            except RuntimeError:  # no more threads, no bar
                self._alive = False
        self._bar = bar  # last: after a Ctrl-C before this nobody would end it

    def end(self, bar: "Bar") -> None:
        """Wait until the bar is gone, if it was drawn."""
        with self.lock:
            bar.over = True
            drawn = bar.shown
        if drawn:
            self._wake.set()
            bar.gone.wait(_PATIENCE)
        elif self._bar is bar:
            self._bar = None

    def _run(self) -> None:
        while True:
            self._wake.wait(_PERIOD)
            self._wake.clear()
            self.look()
            with self.lock:
                self._idle = 0 if self._bar is not None else self._idle + 1
                if self._idle > _LINGER:
                    self._alive = False
                    return

    def look(self) -> None:
        """Draw the bar if it is due, or take it away if its call is over."""
        bar = self._bar
        if bar is None:
            return
        with self.lock:
            over = bar.over
            bar.shown |= not over and bar.watched and bar.seconds >= _AFTER
        if over:
            self._close()
            if self._bar is bar:
                self._bar = None
            bar.gone.set()
        elif bar.shown:
            self._draw(bar)

    def _draw(self, bar: "Bar") -> None:
        try:
            if self._picture is None:
                assert bar.draws is not None
                self._picture = bar.draws()
            self._picture.draw(bar)
        except Exception:  # whatever a terminal does, it is no reason for a fit to fail
            bar.watched = bar.shown = False
            self._close()

    def _close(self) -> None:
        picture, self._picture = self._picture, None
        if picture is not None:
            with suppress(Exception):
                picture.close()


ticker = Ticker()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ticker.reset)


@dataclass(eq=False)
class Bar:
    """What a call tells about itself, in a ``with`` block. The fields are those of ``progress``."""

    what: str
    draws: Callable[[], Picture] | None  # None: nothing is drawn, for the calls within it either
    ticker: Ticker
    total: int | None = None
    unit: str = "step"
    tol: float | None = None
    measure: str = "gap"
    max_time: float | None = None
    even: bool = True
    done: int = 0
    first: float | None = None  # gap
    gap: float | None = None  # the smallest so far
    note: str = ""
    over: bool = False
    shown: bool = False
    gone: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.watched = self.draws is not None  # if not, there is no need to tell anything
        self.began = self.ticker.clock()
        self._counted = 0.0  # seconds after which the steps began

    def __enter__(self) -> Self:
        self.ticker.begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.ticker.end(self)

    def update(
        self,
        done: int | None = None,
        gap: float | None = None,
        *,
        total: int | None = None,
        note: str | None = None,
    ) -> None:
        """Say how many steps are made (of how many), how large the gap is, and what comes now."""
        self.done = self.done if done is None else done
        if total is not None:
            self.total, self._counted = total, self.seconds
        self.note = self.note if note is None else note
        if gap is not None and math.isfinite(gap):
            if self.gap is None:
                self.first, self._counted = gap, self.seconds
            self.gap = gap if self.gap is None else min(gap, self.gap)

    def advance(self) -> None:
        """Say that one more step is made, in any thread."""
        with self.ticker.lock:
            self.done += 1

    def forget(self) -> None:
        """Say that all goes another way, of which nothing is known."""
        self.done, self.total = 0, None

    @property
    def seconds(self) -> float:
        """Seconds since the call began."""
        return self.ticker.clock() - self.began

    @property
    def part(self) -> float | None:
        """The part of the way that is behind, if anything is known about it."""
        parts = [digits(self.first, self.gap, self.tol)]
        parts.append(self.done / self.total if self.total else None)
        parts.append(self.seconds / self.max_time if self.max_time else None)
        known = [part for part in parts if part is not None]
        return min(1.0, max(known)) if known else None

    def facts(self) -> str:
        """Return what is known in words, the most telling first."""
        part, seconds = self.part, self.seconds
        said = [] if part is None else [f"{part:.0%}"]
        said.append(duration(seconds))
        if self.even and part is not None and _LEAST <= part < 1:
            left = (seconds - self._counted) * (1 - part) / part
            said[-1] += f", about {duration(math.ceil(left))} left"
        if self.gap is not None:
            aim = "" if self.tol is None else f" → {self.tol:.0e}"
            said.append(f"{self.measure} {self.gap:.1e}{aim}")
        if self.total or self.done:
            # Where a gap decides, the most steps there may be say little.
            of = f" of {self.total}" if self.total and self.tol is None else ""
            said.append(f"{self.done}{of} {self.unit}{'' if self.done == 1 and not of else 's'}")
        return " · ".join([*said, self.note] if self.note else said)


class _Silent(Bar):
    """The bar of all calls that have none: what it is told nobody sees."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


silent = _Silent("", None, ticker)
