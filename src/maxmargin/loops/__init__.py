"""Compiled loops: arrays and NamedTuples in, numbers out; no classes, no checks.

Nothing here is imported until it is used: ``loops.perceptron`` loads numba on first access,
so that ``import maxmargin`` stays light.
"""

import importlib
from types import ModuleType

from maxmargin import clock

_MODULES = (
    "crammer_singer",
    "decomposition",
    "dual_cd",
    "frank_wolfe",
    "intrinsics",
    "kernel_tiles",
    "loss",
    "newton",
    "perceptron",
    "proximal_newton",
    "rows",
    "smo",
    "structured",
    "subgradient",
    "truncated_gaussian",
)


def __getattr__(name: str) -> ModuleType:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with clock.stopped():  # the first of them loads numba
        return importlib.import_module(f"{__name__}.{name}")
