"""Compiled loops: arrays and NamedTuples in, numbers out; no classes, no checks.

Nothing here is imported until it is used: ``loops.perceptron`` loads numba on first access,
so that ``import maxmargin`` stays light.
"""

import gc
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from maxmargin.runtime import clock

_MODULES = (
    "active_set",
    "crammer_singer",
    "decimals",
    "decomposition",
    "dual_cd",
    "frank_wolfe",
    "intrinsics",
    "kernel_tiles",
    "loss",
    "newton",
    "partition",
    "perceptron",
    "proximal_newton",
    "rounding",
    "rows",
    "shrinking",
    "smo",
    "structured",
    "subgradient",
    "svmlight",
    "truncated_gaussian",
)


@contextmanager
def loading() -> Iterator[None]:
    """Stop the clock, and collect no garbage: code makes many objects that live on.

    Collections would visit them, and all others of the process, again and again: a quarter of the
    time that the first fit takes.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with clock.stopped():
            yield
    finally:
        if collects:
            gc.enable()


def __getattr__(name: str) -> ModuleType:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with loading():  # the first of them loads numba
        return importlib.import_module(f"{__name__}.{name}")
