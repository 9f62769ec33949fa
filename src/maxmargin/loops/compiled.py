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
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any, ClassVar, TypeVar, cast

from numba.core import caching, config
from numba.core.registry import CPUDispatcher

from maxmargin import clock

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

_PATIENCE = 60.0  # seconds after which another process is taken to be stopped, not compiling
_PAUSE = 0.01  # seconds between two attempts to get a lock


def compiled(loop: Loop) -> Loop:
    """Compile a loop on first call, and keep the machine code for the next process."""
    if _config.DISABLE_JIT:
        return loop
    inner = loop.__name__.startswith("_")  # Python does not call it
    options = {
        **INNER, "nopython": True, "boundscheck": None, "nogil": True, "no_cpython_wrapper": inner,
    }  # fmt: skip
    dispatcher = _LoopDispatcher(loop, {}, options)
    dispatcher.enable_caching()
    return cast(Loop, dispatcher)


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
        if threading.current_thread() is not threading.main_thread():
            return self._compile(sig)
        outcome: Future[Any] = Future()

        def work() -> None:
            try:
                outcome.set_result(self._compile(sig))
            except BaseException as error:
                outcome.set_exception(error)

        with clock.stopped():
            context = contextvars.copy_context()  # of warnings, in newer versions of Python
            threading.Thread(target=context.run, args=(work,), name="maxmargin-compiling").start()
            return outcome.result()

    def _compile(self, sig: Any) -> Any:
        with clock.stopped():
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
    """The machine code of a function, by signature."""

    def __init__(self, loop: Callable[..., Any]) -> None:
        super().__init__(loop)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, _SOURCES)
        self._lock = _Lock(Path(self._cache_path) / "maxmargin.lock", self._impl.filename_base)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature, or None for the caller to compile it, locked."""
        found = self._load(sig, target_context)
        if found is None:
            _say_once(_COMPILING)
            self._lock.acquire()
            found = self._load(sig, target_context)  # another process may have been faster
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a file broken in whatever way: pickles can raise anything
            self._cache_file.discard()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for a signature."""
        try:
            super().save_overload(sig, data)
        except OSError as full:
            _say_once(_NOT_KEPT, full)

    def release(self) -> None:
        """Let others compile this function."""
        self._lock.release()


class _Files(_IndexDataCacheFile):
    """The files of a function: an index of signatures, and the machine code of each."""

    def save(self, key: Any, data: Any) -> None:
        """Save the code, and only then the index: an interruption leaves nothing half done."""
        names = self._load_index()
        name = names.get(key) or self._data_name(1 + len(names))
        self._save_data(name, data)
        self._save_index({**names, key: name})

    def discard(self) -> None:
        """Forget what is there."""
        Path(self._index_path).unlink(missing_ok=True)


class _Lock:
    """One byte of a lock file, held by one process at a time; a file for each would be too many.

    It is only used within numba's own lock, which keeps threads apart. A process that holds the
    lock of a function waits only for those of the functions it calls, so no two processes wait for
    each other.
    """

    _files: ClassVar[dict[Path, IO[bytes]]] = {}  # closing one would give up all locks in it

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._place = path, zlib.crc32(name.encode())
        self._held = False

    def acquire(self) -> None:
        """Wait for the lock, or go on without it where there are no locks."""
        end = time.monotonic() + _PATIENCE
        while not self._held and fcntl is not None and time.monotonic() < end:
            try:
                fcntl.lockf(self._file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._place)
                self._held = True
            except BlockingIOError:
                time.sleep(_PAUSE)
            except OSError:  # a file system without locks
                return

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self._held:
            self._held = False
            fcntl.lockf(self._file(), fcntl.LOCK_UN, 1, self._place)

    def _file(self) -> IO[bytes]:
        if self._path not in self._files:
            self._files[self._path] = self._path.open("ab")
        return self._files[self._path]


def _digest_sources() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


_SOURCES = _digest_sources()


# ------------------------------------------------------------------- messages

_COMPILING = (
    "compiling numerical loops for this machine, once: about 5 seconds for a fit, 15 for a search "
    "or a diagnosis (no time limit counts them)"
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
