"""What the data sets share: checked arguments and labels."""

import math
import operator
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]
Seed = int | np.random.Generator | np.random.RandomState | None

_MOST = 2**40  # rows or columns: more than memory holds


def draw_labels(n_samples: int, balance: float, rng: np.random.Generator) -> Labels:
    """Return labels −1 and +1 in random order, round(balance · n_samples) of them positive."""
    n = check_count("n_samples", n_samples, 2)
    check_range("balance", balance, 0.0, 1.0)
    n_positive = round(balance * n)
    if not 0 < n_positive < n:
        raise ValueError(
            f"balance={balance!r} of n_samples={n} leaves a class empty; "
            "move balance towards 0.5 or ask for more samples"
        )
    return rng.permutation(np.repeat([1, -1], [n_positive, n - n_positive]).astype(np.int64))


def check_count(name: str, value: SupportsIndex, least: int) -> int:
    """Return a whole number, or say what is wrong with it."""
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if count < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r:.60}")
    if count > _MOST:
        raise ValueError(f"{name} must be at most {_MOST}, got about 2**{count.bit_length() - 1}")
    return count


def check_range(
    name: str, value: float, low: float = -math.inf, high: float = math.inf, *, above: bool = False
) -> None:
    """Refuse a number that is not finite or not in [low, high]; ``above`` excludes low."""
    if math.isfinite(value) and low <= value <= high and not (above and value == low):
        return
    limits = f" above {low:g}" if above else f" of at least {low:g}" if low > -math.inf else ""
    limits += f" and at most {high:g}" if high < math.inf else ""
    raise ValueError(f"{name} must be a finite number{limits}, got {value!r}")
