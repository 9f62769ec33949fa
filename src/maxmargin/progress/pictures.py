"""Whether bars are shown here, and how they are drawn: on a terminal, or in a notebook."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from maxmargin.progress.bars import Bar, Picture

_WIDEST, _NARROWEST = 40, 5  # characters of the bar itself


def where() -> Callable[[], Picture] | None:
    """Decide whether bars are shown here, and return what draws them."""
    asked = os.environ.get("MAXMARGIN_PROGRESS")
    if asked == "0" or threading.current_thread() is not threading.main_thread():
        return None
    if multiprocessing.parent_process() is not None:
        return None
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return Notebook
    stream = sys.stderr
    if stream is None or not (asked == "1" or _interactive(stream)):
        return None
    return partial(Terminal, stream)


def _interactive(stream: Any) -> bool:
    if os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    proxy = getattr(sys.modules.get("rich.file_proxy"), "FileProxy", ())
    if isinstance(stream, proxy):  # somebody else's bar is there
        return False
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # no file, or a closed one
        return False


class Terminal:
    """A line at the end of the terminal."""

    def __init__(self, stream: Any) -> None:
        from rich.console import Console
        from rich.live import Live

        # Asked for, it is drawn on anything.
        known = {**os.environ, "TERM": "xterm"} if not _interactive(stream) else None
        self._console = Console(file=stream, force_terminal=True, _environ=known)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            # What is printed meanwhile goes above the bar, but never from a file to the terminal.
            redirect_stdout=_interactive(sys.stdout),
            redirect_stderr=sys.stderr is stream,
        )
        self._streams = {"stdout": sys.stdout, "stderr": sys.stderr}
        self._live.start()

    def draw(self, bar: Bar) -> None:
        """Draw the line, as much of it as there is room for."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        facts, part = bar.facts(), bar.part
        room = self._console.width - len(bar.what) - len(facts) - 3
        cells: list[Any] = [Text(bar.what)]
        if room >= _NARROWEST:
            width, known = min(room, _WIDEST), part is not None
            cells.append(ProgressBar(1.0, part or 0.0, width=width, pulse=not known))
        grid = Table.grid(padding=(0, 1))
        grid.add_row(*cells, Text(facts, no_wrap=True, overflow="ellipsis"))
        self._live.update(grid, refresh=True)

    def close(self) -> None:
        """Take the line away, and show the cursor again."""
        self.disown()
        streams = sys.stdout, sys.stderr
        self._live.stop()
        sys.stdout, sys.stderr = streams

    def disown(self) -> None:
        """Give the streams back, unless somebody has put others there meanwhile."""
        from rich.file_proxy import FileProxy

        for name, stream in self._streams.items():
            if isinstance(getattr(sys, name), FileProxy):
                setattr(sys, name, stream)


class Notebook:
    """A line in the output of a cell."""

    def __init__(self) -> None:
        self._display = import_module("IPython.display")
        self._mark: Any = None

    def draw(self, bar: Bar) -> None:
        """Write the line, in the place of the last one."""
        filled = round(20 * (bar.part or 0.0))
        self._say(f"{bar.what} {'█' * filled}{'░' * (20 - filled)} {bar.facts()}")

    def _say(self, line: str) -> None:
        said = {"text/plain": line}
        if self._mark is None:
            self._mark = self._display.display(said, raw=True, display_id=True)
        else:
            self._mark.update(said, raw=True)

    def close(self) -> None:
        """Leave an empty line: an output cannot be taken back."""
        if self._mark is not None:
            self._say("")

    def disown(self) -> None:
        """Write no more."""
        self._mark = None
