"""Files that are written completely or not at all."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a draft beside the file, which then replaces the file with its mode."""
    draft = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        draft.touch()
        if path.exists():
            shutil.copymode(path, draft)  # those who could not read it cannot read it now
        write(draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
