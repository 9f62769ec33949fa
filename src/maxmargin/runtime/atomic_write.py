"""Files that are written completely or not at all.

A draft is written beside the file, flushed to the disk and renamed over it; then the folder is
flushed, too. Whenever the process is killed, the file is the old one or the new one. The draft of a
process that was killed is removed by the next one that writes the same file.
"""

import contextlib
import hashlib
import os
import platform
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

_ENDING = ".part"
_NAME_LENGTH = 100  # bytes of the file's name in that of the draft, which has to be short enough


def write_atomically(path: str | os.PathLike[str], write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a draft beside the file, which then replaces the file with its mode.

    A link stays a link: what it leads to is replaced. A device or a pipe cannot be replaced and is
    written to directly. An ``OSError`` names the file, which is then as it was.
    """
    path = Path(path)
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            write(path)
        else:
            _replace(target, write)
    except OSError as impossible:
        unnamed = impossible.filename is None or str(impossible.filename).endswith(_ENDING)
        if unnamed and impossible.errno is not None:
            impossible.filename, impossible.filename2 = str(path), None
        raise


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    _remove_drafts(path)
    thread = threading.get_native_id()
    draft = path.with_name(f"{_draft_start(path)}{os.getpid()}-{thread}{_ENDING}")
    try:
        draft.touch()
        if path.exists():
            shutil.copymode(path, draft)  # those who could not read it cannot read it now
        write(draft)
        _flush(draft)
        os.replace(draft, path)
    finally:
        with contextlib.suppress(OSError):  # the folder may be gone or read-only by now
            draft.unlink(missing_ok=True)
    if os.name == "posix":  # elsewhere a folder cannot be opened
        _flush(path.parent)


def _flush(path: Path) -> None:
    number = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _draft_start(path: Path) -> str:
    """Return how the names of drafts start: processes are numbered by each machine for itself."""
    host = re.sub(r"\W", "_", platform.node())[:40]
    name = path.name
    if len(os.fsencode(name)) > _NAME_LENGTH:
        # Names that begin alike have different drafts: one may be written while the other is.
        digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        name = f"{os.fsencode(name)[: _NAME_LENGTH - 20].decode(errors='ignore')}~{digest}"
    return f".{name}.{host}-"


def _remove_drafts(path: Path) -> None:
    """Remove the drafts of this file that processes of this machine left when they were killed."""
    start = _draft_start(path)
    is_draft = re.compile(rf"{re.escape(start)}(\d+)-\d+{re.escape(_ENDING)}").fullmatch
    with contextlib.suppress(OSError):
        for name in os.listdir(path.parent):
            found = is_draft(name)
            if found and not _is_alive(int(found[1])):
                path.with_name(name).unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # where this signal would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # another user's
    return True
