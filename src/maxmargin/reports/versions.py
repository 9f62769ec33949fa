"""What this library runs on: packages, machine, BLAS, threads and the folder of compiled loops."""

import os
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from maxmargin import loops
from maxmargin.runtime.threads import usual_threads

_FOR_DEVELOPERS = {"all", "docs", "test"}  # extras that no function of the library needs


def show_versions() -> None:
    """Print what a report of a problem should say about packages and machine.

    It lists what scikit-learn's function of this name lists (Python, the platform, BLAS and its
    threads), this library with all packages that it can use, the cores, and where compiled loops
    are kept.

    Examples
    --------
    >>> from maxmargin.reports import show_versions
    >>> show_versions()  # doctest: +ELLIPSIS
    <BLANKLINE>
    System:
        python: ...
    """
    import sklearn

    sklearn.show_versions()
    for title, facts in collect_versions().items():
        width = max(map(len, facts), default=0)
        lines = [f"{name:>{width + 4}}: {fact}" for name, fact in facts.items()]
        sys.stdout.write("\n".join(["", f"{title}:", *lines, ""]))


def collect_versions() -> dict[str, dict[str, str]]:
    """Return what ``show_versions`` adds: facts by their names, under a title each."""
    names = ["maxmargin", *required_packages()]
    threads = f"{os.cpu_count()}, of which {usual_threads()} are used by default"
    return {
        "Packages of maxmargin": {n: package_version(n) or "not installed" for n in names},
        "Cores": {"cores": threads},
        "Compiled loops": compiled_loops(),
    }


def package_version(name: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def required_packages() -> list[str]:
    """Return the packages that functions of this library need, some of them only if installed."""
    found = dict[str, None]()
    for requirement in requires("maxmargin") or ():
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"extra == ['\"](.*?)['\"]", requirement)
        if name and not (extra and extra[1] in _FOR_DEVELOPERS):
            found[name[0]] = None
    return list(found)


def compiled_loops() -> dict[str, str]:
    """Return where machine code is kept, and whether it can be."""
    stats = getattr(loops.perceptron.visit, "stats", None)  # the folder is the same for all loops
    path = getattr(stats, "cache_path", None)
    if path is None:
        return {"folder": "none: loops are compiled again in every process, or not at all"}
    folder = Path(path)
    writable = os.access(folder if folder.exists() else folder.parent, os.W_OK)
    return {"folder": str(folder), "writable": "yes" if writable else "no: set NUMBA_CACHE_DIR"}
