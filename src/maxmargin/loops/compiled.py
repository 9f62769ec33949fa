"""The one way a loop is compiled: no GIL, cached on disk, announced when it happens.

Sums may be reassociated (``reassoc``): without that no reduction is vectorised and a row dot
product runs at a quarter of the memory bandwidth. NaN and infinity keep their meaning.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

Loop = TypeVar("Loop", bound=Callable[..., Any])

FAST_SUMS = {"reassoc", "contract", "nsz"}
_logger = logging.getLogger("maxmargin")


def compiled(loop: Loop) -> Loop:
    """Compile a loop on first call, and keep the machine code for the next process."""
    try:
        dispatcher = numba.njit(nogil=True, cache=True, fastmath=FAST_SUMS)(loop)
    except RuntimeError as no_writable_directory:
        if "no locator available" not in str(no_writable_directory):
            raise
        # Neither the package nor the user's cache directory can be written to.
        dispatcher = numba.njit(nogil=True, fastmath=FAST_SUMS)(loop)
    else:
        _stamp(dispatcher)
    return cast(Loop, dispatcher)


def _stamp(dispatcher: Any) -> None:
    """Make cached code stale when any file of this folder changes.

    numba looks at the file of the compiled function alone, but loops call loops of other files.
    """
    index: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(index, "_source_stamp"):
        index._source_stamp = _SOURCES


_SOURCES = tuple(
    (file.name, file.stat().st_mtime_ns, file.stat().st_size)
    for file in sorted(Path(__file__).parent.glob("*.py"))
)


class _Announcer(event.Listener):  # type: ignore[misc, unused-ignore]
    """Says once per process that compilation has begun: a slow first fit explains itself."""

    def __init__(self) -> None:
        self.silent = False

    def on_start(self, event: Any) -> None:
        details: Mapping[str, Any] = event.data
        module = details["dispatcher"].py_func.__module__ or ""  # functions made by exec have none
        if self.silent or not module.startswith(__package__):
            return
        self.silent = True
        _logger.warning("compiling numerical loops for this machine: some seconds, once")

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


_register: Callable[..., None] = event.register
_register("numba:compile", _Announcer())
