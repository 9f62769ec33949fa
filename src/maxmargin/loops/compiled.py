"""The one way a loop is compiled: no GIL, kept on disk, announced, and off the clock.

Sums may be reassociated (``reassoc``): without that no reduction is vectorised and a row dot
product runs at a quarter of the memory bandwidth. NaN and infinity keep their meaning. Divisions
are checked (no ``error_model="numpy"``): loops with unchecked ones are vectorised where addresses
allow it, and the same fit twice is no longer the same to the bit.
"""

import contextvars
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future
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
    """Load the machine code for a signature, or compile it.

    Ctrl-C reaches the main thread only, and an interrupted compilation would leave functions behind
    that can neither be called nor compiled again. So another thread compiles, and the main thread
    waits: after Ctrl-C it goes at once, and what is being compiled is there the next time.
    """
    if threading.current_thread() is not threading.main_thread():
        return _compiled(dispatcher, signature)
    outcome: Future[Any] = Future()

    def work() -> None:
        try:
            outcome.set_result(_compiled(dispatcher, signature))
        except BaseException as error:
            outcome.set_exception(error)

    with clock.stopped():
        context = contextvars.copy_context()  # of warnings, in newer versions of Python
        threading.Thread(target=context.run, args=(work,), name="maxmargin-compiling").start()
        return outcome.result()


def _compiled(dispatcher: Any, signature: Any) -> Any:
    with clock.stopped():
        try:
            return Dispatcher.compile(dispatcher, signature)
        finally:
            dispatcher._cache.release()
