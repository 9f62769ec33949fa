"""The one way a loop is compiled: no GIL, kept on disk, announced, and off the clock.

Sums may be reassociated (``reassoc``): without that no reduction is vectorised and a row dot
product runs at a quarter of the memory bandwidth. NaN and infinity keep their meaning.
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
# For overloads, which are compiled into the loops that call them.
INNER: dict[str, Any] = {"fastmath": FAST_SUMS, "error_model": "numpy", "no_cfunc_wrapper": True}


def compiled(loop: Loop) -> Loop:
    """Compile a loop on first call, and keep the machine code for the next process."""
    dispatcher: Any = numba.njit(
        nogil=True,
        fastmath=FAST_SUMS,
        error_model="numpy",  # x/0 is infinite or NaN, and no error to be raised
        no_cfunc_wrapper=True,  # which only functions given to functions need
        no_cpython_wrapper=loop.__name__.startswith("_"),  # Python does not call these
    )(loop)
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
