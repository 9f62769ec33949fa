"""What this library runs on: packages, machine, BLAS, threads and the folder of compiled loops."""

import os
import platform
import re
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from maxmargin import loops
from maxmargin.runtime.threads import usual_threads

_FOR_DEVELOPERS = {"all", "docs", "test"}  # extras that no function of the library needs


def show_versions() -> None:
    """Print what a report of a problem should say about packages and machine.

    It lists Python, the platform, this library with its dependencies and extras, the cores, BLAS
    and its threads, and where compiled loops are kept.

    Examples
    --------
    >>> from maxmargin.reports import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
    System
      Python ...
    """
    lines = []
    for title, facts in collect_versions().items():
        width = max(map(len, facts), default=0) + 2
        lines += [title, *(f"  {name:{width}}{fact}" for name, fact in facts.items()), ""]
    sys.stdout.write("\n".join(lines))


def collect_versions() -> dict[str, dict[str, str]]:
    """Return what ``show_versions`` prints: facts by their names, under a title each."""
    import_module("scipy.linalg")  # which loads the libraries to be named
    wanted = required_packages()
    system = {
        "Python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "processor": cpu_model(),
        "cores": f"{os.cpu_count()}, of which {usual_threads()} are used by default",
    }
    extras = {
        extra: ", ".join(f"{name} {number}" for name, number in _versions(names).items())
        for extra, names in wanted.items()
        if extra
    }
    libraries = {
        Path(library["filepath"]).name: f"{describe_library(library)}, threads: "
        f"{library['num_threads']}"
        for library in threadpool_info()
    }
    return {
        "System": system,
        "Packages": _versions(["maxmargin", *wanted[""]]),
        "Extras": extras,
        "Libraries with threads": libraries,
        "Compiled loops": compiled_loops(),
    }


def package_version(name: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def required_packages() -> dict[str, list[str]]:
    """Return the packages this library is installed with, by extra; "" has those always needed."""
    found: dict[str, list[str]] = {"": []}
    for requirement in requires("maxmargin") or ():
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"extra == ['\"](.*?)['\"]", requirement)
        if name and not (extra and extra[1] in _FOR_DEVELOPERS):
            found.setdefault(extra[1] if extra else "", []).append(name[0])
    return found


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
    loaded = threadpool_info()
    return sorted({describe_library(one) for one in loaded if one["user_api"] == "blas"})


def describe_library(library: dict[str, Any]) -> str:
    """Return the name, the version and the architecture of a library with threads."""
    name = f"{library['internal_api']} {library['version'] or ''}".strip()
    kind = library.get("architecture")
    return f"{name} ({kind})" if kind else name


def compiled_loops() -> dict[str, str]:
    """Return where machine code is kept, and what is there."""
    stats = getattr(loops.perceptron.visit, "stats", None)  # the folder is the same for all loops
    path = getattr(stats, "cache_path", None)
    if path is None:
        return {"folder": "none: loops are compiled again in every process, or not at all"}
    folder = Path(path)
    kept = list(folder.glob("*.nbc")) if folder.exists() else []
    size = sum(file.stat().st_size for file in kept) / 1e6
    exists = folder if folder.exists() else folder.parent
    return {
        "folder": str(folder),
        "kept": f"{len(kept)} signatures, {size:.1f} MB",
        "writable": "yes" if os.access(exists, os.W_OK) else "no: set NUMBA_CACHE_DIR",
    }


def _versions(names: list[str]) -> dict[str, str]:
    return {name: package_version(name) or "not installed" for name in names}
