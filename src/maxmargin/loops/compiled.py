"""The one way a loop is compiled: without the GIL, kept on disk, announced, and off the clock.

Sums may be reassociated (``reassoc``): without that no reduction is vectorised, and a row dot
product runs at a quarter of the memory bandwidth. NaN and infinity keep their meaning. Divisions
are checked (no ``error_model="numpy"``): loops with unchecked ones are vectorised where addresses
allow it, and the same fit twice is no longer the same to the bit.

Machine code is kept where numba keeps it, but shared between processes and hard to break:

- It goes stale when any file of this folder changes: loops call loops of other files, and numba
  looks only at the file of the compiled function.
- If several processes need a function, one of them compiles it and the others wait for its code.
- Files that cannot be read are made again; if none can be written, a warning says so.
"""

import contextvars
import hashlib
import logging
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, ClassVar, TypeVar, cast

from numba.core import caching, config
from numba.core.registry import CPUDispatcher
from numba.core.runtime import nrt
from numba.extending import overload

from maxmargin.loops import loading
from maxmargin.runtime import clock

try:
    import fcntl
except ImportError:  # no such locks on this platform: two processes may do the same work
    fcntl = None  # type: ignore[assignment]

Loop = TypeVar("Loop", bound=Callable[..., Any])

FAST_SUMS = {"reassoc", "contract", "nsz"}
# Overloads, which are compiled into the loops that call them, need to be told as well.
INNER: Any = {
    "fastmath": FAST_SUMS,
    "no_cfunc_wrapper": True,  # which only functions passed to functions need
}

# Half of what they hold has no types.
_config: Any = config
_Dispatcher: Any = CPUDispatcher
_FunctionCache: Any = caching.FunctionCache
_IndexDataCacheFile: Any = caching.IndexDataCacheFile
_NullCache: Any = caching.NullCache
_runtime: Any = nrt.rtsys

_PATIENCE = 60.0  # seconds after which another process is taken to be stopped, not compiling
_PAUSE = 0.01  # seconds between two attempts to get a lock


def compiled(loop: Loop) -> Loop:
    """Compile a loop on first call, and keep the machine code for the next process."""
    return _compiled(loop, INNER)


def compiled_as_written(loop: Loop) -> Loop:
    """Do the same for a loop with bounds on its rounding: no sum is reassociated."""
    return _compiled(loop, {**INNER, "fastmath": False})


def _compiled(loop: Loop, how: Any) -> Loop:
    if _config.DISABLE_JIT:
        return loop
    inner = loop.__name__.startswith("_")  # Python does not call it
    options = {
        **how, "nopython": True, "boundscheck": None, "nogil": True, "no_cpython_wrapper": inner,
    }  # fmt: skip
    dispatcher = _LoopDispatcher(loop, {}, options)
    dispatcher.enable_caching()
    return cast(Loop, dispatcher)


def chosen_by_type(choose: Loop) -> Loop:
    """Let compiled loops call a function that returns its body for the types of its arguments."""
    overload(choose, jit_options=INNER, strict=False)(choose)
    return choose


class _LoopDispatcher(_Dispatcher):
    """Numba's dispatcher, with our cache and off the clock."""

    def enable_caching(self) -> None:
        """Keep machine code on disk, if there is a folder that can be written."""
        try:
            self._cache: _Code | _NoCode = _Code(self.py_func)
        except RuntimeError as nowhere:
            if "no locator available" not in str(nowhere):
                raise
            self._cache = _NoCode()

    def compile(self, sig: Any) -> Any:
        """Load the machine code for a signature, or compile it.

        Ctrl-C reaches the main thread only, and an interrupted compilation would leave functions
        behind that can neither be called nor compiled again. So another thread compiles, and the
        main thread waits: Ctrl-C ends the wait at once, and the code is there the next time.
        """
        with clock.stopped():
            if threading.current_thread() is not threading.main_thread():
                return self._compile(sig)
            context = contextvars.copy_context()  # of warnings, in newer versions of Python
            pool = ThreadPoolExecutor(1, "maxmargin-compiling")
            compiling = pool.submit(context.run, self._compile, sig)
            pool.shutdown(wait=False)
            return compiling.result()

    def _compile(self, sig: Any) -> Any:
        with clock.stopped():  # also after Ctrl-C
            try:
                return super().compile(sig)
            finally:
                self._cache.release()


# ------------------------------------------------------------------- machine code on disk


class _NoCode(_NullCache):
    """Keeps nothing: neither the package nor the user's cache folder can be written."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Say what is about to happen."""
        _say_once(_COMPILING)
        _say_once(_NOT_KEPT, f"neither {Path(__file__).parent} nor the user's cache is writable")

    def release(self) -> None:
        """Nothing is locked."""


class _Code(_FunctionCache):
    """The machine code of a function, by signature, which one process at a time compiles.

    The lock is one byte of a file that the functions of a folder share. It is only used within
    numba's own lock, which keeps threads apart. A process that holds the lock of a function waits
    only for those of the functions it calls, so no two processes wait for each other.
    """

    _lock_files: ClassVar[dict[Path, IO[bytes]]] = {}  # closing one would give up all its locks

    def __init__(self, loop: Callable[..., Any]) -> None:
        super().__init__(loop)
        name = self._impl.filename_base
        self._cache_file = _Files(self._cache_path, name, _SOURCES)
        self._lock_path = Path(self._cache_path) / "maxmargin.lock"
        self._byte, self._locked = zlib.crc32(name.encode()), False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature, or None for the caller to compile it, locked."""
        found = self._load(sig, target_context)
        if found is None:
            _say_once(_COMPILING)
            self._lock()
            found = self._load(sig, target_context)  # another process may have been faster
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature from its file, or None.

        It needs the runtime that it calls; what numba knows of types and functions (a third of a
        second to import) is for compiling.
        """
        _runtime.initialize(target_context)
        try:
            with loading(), self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # a file broken in whatever way: pickles can raise anything
            self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for a signature."""
        try:
            super().save_overload(sig, data)
        except OSError as full:
            _say_once(_NOT_KEPT, full)

    def _lock(self) -> None:
        """Wait until no other process compiles this function, if that can be known."""
        end = time.monotonic() + _PATIENCE
        while not self._locked and fcntl is not None and time.monotonic() < end:
            try:
                if self._lock_path not in self._lock_files:
                    self._lock_files[self._lock_path] = self._lock_path.open("ab")
                file = self._lock_files[self._lock_path]
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._byte)
                self._locked = True
            except BlockingIOError:
                time.sleep(_PAUSE)
            except OSError:  # a file system without locks
                return

    def release(self) -> None:
        """Let others compile this function."""
        if self._locked:
            self._locked = False
            fcntl.lockf(self._lock_files[self._lock_path], fcntl.LOCK_UN, 1, self._byte)


class _Files(_IndexDataCacheFile):
    """The files of a function: an index of signatures, and the machine code of each."""

    def save(self, key: Any, data: Any) -> None:
        """Save the code, and only then the index: an interruption leaves nothing half done."""
        names = self._load_index()
        name = names.get(key) or self._data_name(1 + len(names))
        self._save_data(name, data)
        self._save_index({**names, key: name})


def _digest_sources() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


_SOURCES = _digest_sources()


# ------------------------------------------------------------------- messages

_COMPILING = (
    "compiling numerical loops that are used for the first time on this machine: some seconds, "
    "which no time limit counts"
)
_NOT_KEPT = (
    "compiled loops cannot be kept for the next time (%s): "
    "set the environment variable NUMBA_CACHE_DIR to a folder that can be written"
)
_logger = logging.getLogger("maxmargin")
_said: set[str] = set()


def _say_once(sentence: str, *values: Any) -> None:
    if sentence not in _said:
        _said.add(sentence)
        _logger.warning(sentence, *values)
