"""Model files: our own, and those of LIBSVM, LIBLINEAR and ONNX.

ONNX itself is loaded when something is exported: other files do not need it.
"""

from maxmargin.files.liblinear import load_liblinear, save_liblinear
from maxmargin.files.libsvm import load_libsvm, save_libsvm
from maxmargin.files.native import Described, load, load_described, save
from maxmargin.files.onnx import register_converters, to_onnx
from maxmargin.files.trusted_types import SKOPS_TRUSTED_TYPES

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
