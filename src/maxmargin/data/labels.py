"""Labels as written in a file, made into an array."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

NUMBER = r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?"
_is_number = re.compile(NUMBER, re.ASCII).fullmatch


def finite_number(text: str) -> bool:
    """Tell whether text is a plain decimal number within float64's range.

    Stricter than ``float``: no nan, no infinity, no underscores, no digits of other scripts.
    """
    return _is_number(text) is not None and math.isfinite(float(text))


def label_array(texts: Sequence[str]) -> Any:
    """Return integers if all labels are whole numbers, else floats, else the strings themselves."""
    if not all(map(_is_number, texts)):
        return np.array(texts)
    try:
        # int() first: floats would merge long identifiers.
        return np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        values = np.array([float(text) for text in texts])
    whole = bool(np.all((values == np.trunc(values)) & (np.abs(values) < 2.0**53)))
    return values.astype(np.int64) if whole else values
