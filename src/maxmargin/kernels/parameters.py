"""Parameters are checked when they are used; a refusal names the value and the way out."""

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from maxmargin.kernels.base import Kernel
    from maxmargin.kernels.rows import Rows

DATA_DRIVEN = ("scale", "auto")


def real(kernel: "Kernel", name: str) -> float:
    """Return a finite real parameter."""
    value = getattr(kernel, name)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{_owner(kernel)}: {name} must be a number, got {value!r}")
    if not math.isfinite(_as_float(value)):
        raise ValueError(f"{_owner(kernel)}: {name} must be finite, got {value!r:.60}")
    return float(value)


def _as_float(value: Real) -> float:
    """Return a number in float64, infinite if it is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def nonnegative(kernel: "Kernel", name: str) -> float:
    """Return a finite parameter ≥ 0: a negative multiple of a kernel is no kernel."""
    value = real(kernel, name)
    if value < 0:
        raise ValueError(
            f"{_owner(kernel)}: {name} must be at least 0, got {value!r}: "
            "a negative multiple of a kernel is not positive semidefinite"
        )
    return value


def gamma_of(kernel: Any) -> float:
    """Return gamma as a number above 0."""
    value = kernel.gamma
    if isinstance(value, str) and value in DATA_DRIVEN:
        raise ValueError(
            f"{_owner(kernel)}: gamma={value!r} depends on the data; "
            "call kernel.resolved(X) first and use what it returns"
        )
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(
            f"{_owner(kernel)}: gamma must be a number above 0, 'scale' or 'auto', got {value!r}"
        )
    if not 0 < _as_float(value) < math.inf:
        raise ValueError(
            f"{_owner(kernel)}: gamma must be a finite number above 0, got {value!r:.60}; "
            "gamma='scale' with kernel.resolved(X) is a safe start"
        )
    return float(value)


def data_driven_gamma(kernel: Any, rows: "Rows", weight: Any = None) -> float:
    """Return gamma as scikit-learn's SVMs define it: 1/(d·Var X) for "scale", 1/d for "auto"."""
    width = int(rows.values.shape[1])
    if kernel.gamma == "auto":
        return 1.0 / width
    if kernel.gamma != "scale":
        return gamma_of(kernel)
    variance = _variance(rows.values, weight)
    return 1.0 / (width * variance) if variance > 0 else 1.0


def _variance(values: Any, weight: Any) -> float:
    """Return the variance of all entries, row i counting weight[i] times."""
    if isinstance(values, np.ndarray) and weight is None:
        return float(values.var(dtype=np.float64))
    weight = np.ones(values.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
    size = weight.sum() * values.shape[1]
    if isinstance(values, np.ndarray):
        mean = float((weight @ values.astype(np.float64)).sum() / size)
        return float(weight @ ((values - mean) ** 2).sum(axis=1) / size)
    # Centred over the stored values and the zeros apart: no cancellation.
    stored, counts = values.data.astype(np.float64), np.diff(values.indptr)
    each = np.repeat(weight, counts)
    mean = float(each @ stored / size)
    return float((each @ (stored - mean) ** 2 + (size - each.sum()) * mean**2) / size)


def whole(kernel: "Kernel", name: str, *, at_least: int) -> int:
    """Return a whole parameter."""
    value = getattr(kernel, name)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{_owner(kernel)}: {name} must be a whole number, got {value!r}")
    if not isinstance(value, Integral) or value < at_least:
        raise ValueError(
            f"{_owner(kernel)}: {name} must be a whole number of at least {at_least}, got "
            f"{value!r}: other powers of a kernel need not be positive semidefinite"
        )
    return int(value)


def _owner(kernel: "Kernel") -> str:
    return type(kernel).__name__
