"""Parts of the way, and times, as a bar says them."""

import math


def digits(first: float | None, gap: float | None, tol: float | None) -> float | None:
    """Return the part of the way from the first gap to tol, in digits."""
    if first is None or gap is None or not tol:
        return None
    if gap <= tol:
        return 1.0
    return math.log(first / gap) / math.log(first / tol)


def duration(seconds: float) -> str:
    """Return seconds as a person would say them."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60} min"
