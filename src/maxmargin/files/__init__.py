"""Model files: our own, and those of LIBSVM, LIBLINEAR and ONNX.

Everything is loaded when it is asked for: a native file needs no ONNX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxmargin.files.liblinear import load_liblinear, save_liblinear
    from maxmargin.files.libsvm import load_libsvm, save_libsvm
    from maxmargin.files.native import Described, load, load_described, save
    from maxmargin.files.onnx import register_converters, to_onnx
    from maxmargin.files.trusted_types import SKOPS_TRUSTED_TYPES

_FOUND_IN = {
    "SKOPS_TRUSTED_TYPES": "trusted_types",
    "Described": "native",
    "load": "native",
    "load_described": "native",
    "load_liblinear": "liblinear",
    "load_libsvm": "libsvm",
    "register_converters": "onnx",
    "save": "native",
    "save_liblinear": "liblinear",
    "save_libsvm": "libsvm",
    "to_onnx": "onnx",
}


def __getattr__(name: str) -> Any:
    if name not in _FOUND_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"maxmargin.files.{_FOUND_IN[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "SKOPS_TRUSTED_TYPES",
    "Described",
    "load",
    "load_described",
    "load_liblinear",
    "load_libsvm",
    "register_converters",
    "save",
    "save_liblinear",
    "save_libsvm",
    "to_onnx",
]
