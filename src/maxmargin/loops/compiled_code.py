"""Machine code on disk: where numba keeps it, but shared between processes and hard to break.

- Code goes stale when any file of this folder changes: loops call loops of other files, and numba
  looks at the file of the compiled function alone.
- Of several processes that need a function one compiles it, and the others wait for its code.
- Files that cannot be read are made again; where none can be written, a warning says so.
"""

import hashlib
import logging
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, ClassVar

from numba.core import caching

try:
    import fcntl
except ImportError:  # no such locks on this platform: two processes may do the same work
    fcntl = None  # type: ignore[assignment]

# Half of their methods have no types.
_FunctionCache: Any = caching.FunctionCache
_IndexDataCacheFile: Any = caching.IndexDataCacheFile
_NullCache: Any = caching.NullCache

_PATIENCE = 60.0  # seconds after which another process is taken for stopped, not for compiling
_PAUSE = 0.01  # seconds between two attempts to get a lock

_logger = logging.getLogger("maxmargin")
_said: set[str] = set()


def _say_once(sentence: str, *values: Any) -> None:
    if sentence not in _said:
        _said.add(sentence)
        _logger.warning(sentence, *values)


_COMPILING = (
    "compiling numerical loops for this machine, once: about 5 seconds for a fit, 15 for a search "
    "or a diagnosis (no time limit counts them)"
)
_NOT_KEPT = (
    "compiled loops cannot be kept for the next time (%s): "
    "set the environment variable NUMBA_CACHE_DIR to a folder that can be written"
)


def kept(loop: Callable[..., Any]) -> "_Code | _NoCode":
    """Return where the machine code of a loop is kept."""
    try:
        return _Code(loop)
    except RuntimeError as nowhere:
        if "no locator available" not in str(nowhere):
            raise
        return _NoCode()


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
        found = self._loaded(sig, target_context)
        if found is None:
            _say_once(_COMPILING)
            self._lock.acquire()
            found = self._loaded(sig, target_context)  # somebody else may have been faster
        return found

    def _loaded(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a broken file, in whatever way: pickles can raise anything
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
        name = names.get(key)
        if name is None:
            name = self._data_name(1 + len(names))
        self._save_data(name, data)
        self._save_index({**names, key: name})

    def discard(self) -> None:
        """Forget what is there."""
        Path(self._index_path).unlink(missing_ok=True)


class _Lock:
    """One byte of a lock file, which one process at a time can have. Several files were too many.

    Only for use within numba's own lock, which keeps threads apart. A process that holds the lock
    of a function waits for those of the functions it calls only, so that no two wait for each
    other.
    """

    _files: ClassVar[
        dict[Path, IO[bytes]]
    ] = {}  # closing a file once would give up all locks in it

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._place = path, zlib.crc32(name.encode())
        self._held = False

    def acquire(self) -> None:
        """Wait for the lock, or go on without it where that makes no sense."""
        end = time.monotonic() + _PATIENCE
        while not self._held and fcntl is not None and time.monotonic() < end:
            try:
                file = self._file()
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._place)
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


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


_SOURCES = _digest_of_sources()
