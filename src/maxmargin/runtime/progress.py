"""Progress of calls that take long: ``with progress("Solving", total=…) as bar: bar.update(…)``.

A call ends at the first of its limits. After ``done`` of ``total`` steps and t seconds of
``max_time``, with a relative gap that was g₀ at first, is g now and has to fall to tol, the call
has completed the fraction

    p  =  max( done/total,  log(g₀/g) / log(g₀/tol),  t/max_time ),

because solvers gain digits at an even pace. The time left is about (t − t₀)(1 − p)/p, where the
first step, or the first gap, was seen after t₀ seconds.

A bar appears when a call has taken a second and disappears when it ends; of nested calls only the
outermost has one. The call itself only notes numbers; a thread draws them, with rich on terminals
and as a line of text in notebooks. ``MAXMARGIN_PROGRESS=0`` turns bars off, and ``=1`` turns them
on where standard error is not a terminal.
"""

import math
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

_DELAY = 1.0  # seconds before a bar appears
_PERIOD = 0.2  # seconds between two drawings
_PATIENCE = 2.0  # seconds to wait until the bar is erased: the terminal may be stopped
_LEAST = 0.02  # fraction completed from which the time left is estimated

# Opens the place where a bar is drawn, and gives the function that draws it again.
Renderer = Callable[["Bar"], AbstractContextManager[Callable[[], None]]]

_clock = time.perf_counter
_outermost: "Bar | None" = None  # the bar of the call under way, also if it is not shown


@dataclass(eq=False)
class Bar:
    """What a call says about its progress."""

    what: str  # what the call does: "Solving"
    total: int | None = None  # steps, or the most there can be
    unit: str = "step"  # what a step is called
    tol: float | None = None  # the gap that has to be reached
    measure: str = "gap"  # what the gap is called
    max_time: float | None = None  # seconds that the call may take
    even: bool = True  # whether steps take about the same time, so that it can be estimated
    watched: bool = False  # if not, updates are not needed
    done: int = 0
    first: float | None = None  # gap
    gap: float | None = None  # the smallest so far
    note: str = ""

    def __post_init__(self) -> None:
        self._began, self._counted = _clock(), 0.0  # seconds after which the steps began
        self._counting = threading.Lock()

    def update(
        self,
        done: int | None = None,
        gap: float | None = None,
        *,
        total: int | None = None,
        note: str | None = None,
    ) -> None:
        """Note how many steps are done, and of how many, the gap, and what comes next."""
        self.done = self.done if done is None else done
        self.note = self.note if note is None else note
        if total is not None:
            self.total, self._counted = total, self.seconds
        if gap is not None and math.isfinite(gap):
            if self.gap is None:
                self.first, self._counted = gap, self.seconds
            self.gap = gap if self.gap is None else min(gap, self.gap)

    def advance(self) -> None:
        """Count one more step (from any thread)."""
        with self._counting:
            self.done += 1

    def forget(self) -> None:
        """Forget the steps: the call proceeds in another way, and their number is unknown."""
        self.done, self.total = 0, None

    @property
    def seconds(self) -> float:
        """Seconds since the call began."""
        return _clock() - self._began

    @property
    def part(self) -> float | None:
        """The fraction that is completed, or None if it is unknown."""
        parts = []
        if self.total:
            parts.append(self.done / self.total)
        if self.max_time:
            parts.append(self.seconds / self.max_time)
        if self.first is not None and self.gap is not None and self.tol:
            first, gap, tol = self.first, self.gap, self.tol
            parts.append(1.0 if gap <= tol else math.log(first / gap) / math.log(first / tol))
        return min(1.0, max(parts)) if parts else None

    def describe(self) -> str:
        """Return what is known in words, the most important first."""
        part, seconds = self.part, self.seconds
        facts = [] if part is None else [f"{part:.0%}"]
        facts.append(_duration(seconds))
        if self.even and part is not None and _LEAST <= part < 1:
            left = (seconds - self._counted) * (1 - part) / part
            facts[-1] += f", about {_duration(math.ceil(left))} left"
        if self.gap is not None:
            goal = "" if self.tol is None else f" → {self.tol:.0e}"
            facts.append(f"{self.measure} {self.gap:.1e}{goal}")
        if self.total or self.done:
            # If the gap decides, the largest number of steps says little.
            of = f" of {self.total}" if self.total and self.tol is None else ""
            facts.append(f"{self.done}{of} {self.unit}{'' if self.done == 1 and not of else 's'}")
        return " · ".join([*facts, *filter(None, [self.note])])


@contextmanager
def progress(
    what: str, total: int | None = None, *, quiet: bool = False, **fields: Any
) -> Iterator[Bar]:
    """Give the bar of a call, shown if this is the outermost call and the output is seen.

    Further arguments are fields of ``Bar``. ``quiet`` says that the call prints messages: then
    neither it nor the calls within it have a bar.

    Examples
    --------
    >>> from maxmargin.runtime.progress import progress
    >>> with progress("Counting", total=3) as bar:
    ...     for k in range(3):
    ...         bar.update(done=k + 1)
    """
    global _outermost
    renderer = None if _outermost is not None else find_renderer()
    bar = Bar(what, total, watched=renderer is not None and not quiet, **fields)
    if renderer is None:
        yield bar
        return
    over = threading.Event()
    drawing = threading.Thread(target=_draw, args=(bar, renderer, over), daemon=True)
    try:
        _outermost = bar
        if bar.watched:
            with suppress(RuntimeError):  # the system allows no more threads: no bar
                drawing.start()
        yield bar
    finally:
        over.set()
        if drawing.ident is not None:
            drawing.join(_PATIENCE)
        _outermost = None


def _draw(bar: Bar, renderer: Renderer, over: threading.Event) -> None:
    """Draw the bar of a call that takes longer than a second, until it is over."""
    if over.wait(_DELAY):
        return
    with suppress(Exception), renderer(bar) as draw:  # a terminal fails no fit
        while not over.wait(_PERIOD):
            draw()
    bar.watched = False


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


# ------------------------------------------------------------------- where bars are shown


def find_renderer() -> Renderer | None:
    """Return what draws bars here, or None if they are not shown."""
    asked = os.environ.get("MAXMARGIN_PROGRESS")
    if asked == "0" or threading.current_thread() is not threading.main_thread():
        return None
    if multiprocessing.parent_process() is not None:
        return None
    notebook = "IPython" in sys.modules and sys.modules["IPython"].get_ipython()
    if getattr(notebook, "kernel", None) is not None:
        return _draw_in_notebook
    stream = sys.stderr
    if stream is None or not (asked == "1" or _is_interactive(stream)):
        return None
    return partial(_draw_on_terminal, stream)


def _is_interactive(stream: Any) -> bool:
    if os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    try:
        return bool(stream.isatty()) and not _is_proxy(stream)
    except (AttributeError, ValueError):  # not a file, or a closed one
        return False


def _is_proxy(stream: Any) -> bool:
    """Tell whether rich has replaced a stream, so that what is printed goes above a bar."""
    return isinstance(stream, getattr(sys.modules.get("rich.file_proxy"), "FileProxy", ()))


@contextmanager
def _draw_on_terminal(stream: Any, bar: Bar) -> Iterator[Callable[[], None]]:
    """Draw the last line of a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    # If bars are asked for, they are drawn on anything.
    environ = None if _is_interactive(stream) else {**os.environ, "TERM": "xterm"}
    display = Progress(
        TextColumn(bar.what, table_column=Column(no_wrap=True, min_width=len(bar.what))),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(file=stream, force_terminal=True, _environ=environ),
        auto_refresh=False,
        transient=True,
        # Lines printed to the terminal go above the bar; those printed to a file stay there.
        redirect_stdout=_is_interactive(sys.stdout),
        redirect_stderr=sys.stderr is stream,
    )
    task = display.add_task("")

    def draw() -> None:
        part = bar.part
        display.tasks[0].total = None if part is None else 1.0
        display.update(task, completed=part or 0.0, description=bar.describe(), refresh=True)

    draw()  # so that the bar is complete when it appears
    try:
        display.start()
        yield draw
    finally:
        before = {name: getattr(sys, name) for name in ("stdout", "stderr")}
        display.stop()
        for name, given in before.items():
            if not _is_proxy(given):  # it was replaced meanwhile, not by this bar
                setattr(sys, name, given)


@contextmanager
def _draw_in_notebook(bar: Bar) -> Iterator[Callable[[], None]]:
    """Draw a line of text in the output of a cell, and leave it empty."""

    def line() -> dict[str, str]:
        filled = round(20 * (bar.part or 0.0))
        text = f"{bar.what} {'█' * filled}{'░' * (20 - filled)} {bar.describe()}"
        return {"text/plain": text}

    handle = import_module("IPython.display").display(line(), raw=True, display_id=True)
    try:
        yield lambda: handle.update(line(), raw=True)
    finally:
        handle.update({"text/plain": ""}, raw=True)


def _leave_to_parent() -> None:
    """Write past the parent's bar in a forked child, which has no thread that draws it."""
    global _outermost
    if _outermost is not None:
        _outermost = None
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if _is_proxy(stream):
                setattr(sys, name, stream.rich_proxied_file)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
