"""The one way a loop is compiled: no GIL, kept on disk, announced, and off the clock.

Sums may be reassociated (``reassoc``): without that no reduction is vectorised and a row dot
product runs at a quarter of the memory bandwidth. NaN and infinity keep their meaning. Divisions
are checked (no ``error_model="numpy"``): loops with unchecked ones are vectorised where addresses
allow it, and the same fit twice is no longer the same to the bit.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.dispatcher import Dispatcher

from maxmargin import clock
from maxmargin.loops.compiled_code import kept

Loop = TypeVar("Loop", bound=Callable[..., Any])

FAST_SUMS = {"reassoc", "contract", "nsz"}
# Overloads, which are compiled into the loops that call them, need to be told as well.
INNER: Any = {
    "fastmath": FAST_SUMS,
    "no_cfunc_wrapper": True,  # which only functions given to functions need
}


def compiled(loop: Loop) -> Loop:
    """Compile a loop on first call, and keep the machine code for the next process."""
    inner = loop.__name__.startswith("_")  # Python does not call it
    options: Any = {**INNER, "nogil": True, "no_cpython_wrapper": inner}
    dispatcher: Any = numba.njit(**options)(loop)
    if dispatcher is not loop:  # as it is with NUMBA_DISABLE_JIT
        dispatcher._cache = kept(loop)
        dispatcher.compile = functools.partial(_compile, dispatcher)
    return cast(Loop, dispatcher)


def _compile(dispatcher: Any, signature: Any) -> Any:
    """Load the machine code for a signature, or compile it."""
    with clock.stopped():
        try:
            return Dispatcher.compile(dispatcher, signature)
        finally:
            dispatcher._cache.release()
