"""Where and with what a figure was measured."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

PACKAGES = ("maxmargin", "numpy", "scipy", "scikit-learn", "numba", "threadpoolctl")


def facts() -> dict[str, Any]:
    """Return the machine, the versions, the commit and the time."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "load": load(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: package_version(name) for name in PACKAGES},
        "blas": blas_libraries(),
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def load() -> list[float] | None:
    """Return how many processes were waiting for a core, on average over 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None


def cpu_model() -> str:
    """Return the processor's name for itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def blas_libraries() -> list[str]:
    """Return the BLAS libraries loaded in this process."""
    found = {
        f"{library['internal_api']} {library['version']} ({library.get('architecture')})"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return sorted(found)


def package_version(name: str) -> str | None:
    """Return the installed version, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit(folder: Path = Path(__file__).parent) -> str | None:
    """Return the commit of a checkout (by default of this one), with a + if files differ."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
