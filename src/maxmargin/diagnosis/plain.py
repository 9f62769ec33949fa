"""Results as JSON can hold them."""

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

_MOST = 1000  # entries of an array that are written out


def plain(value: Any) -> Any:
    """Return numbers, strings, lists and dicts that say the same; NaN and infinity become None.

    Examples
    --------
    >>> plain({(0, 1): np.float64(0.5), "margin": float("nan")})
    {'0, 1': 0.5, 'margin': None}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_key(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(entry) for entry in value[:_MOST]]
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if is_dataclass(value):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if hasattr(value, "w") and hasattr(value, "b"):
        return {"w": plain(np.asarray(value.w)), "b": plain(float(value.b))}
    return str(value)


def _key(key: Any) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
