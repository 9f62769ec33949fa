"""The pass over rows of a certificate: sums, and the sizes that bound their rounding errors."""

from typing import Any

from maxmargin.loops.compiled import compiled
from maxmargin.loops.rows import row_shifted_axpy_size, row_shifted_dot_size


@compiled
def weigh(
    X: Any, i: Any, end: Any, most: Any, centre: Any, w: Any, beta: Any, scores: Any, sizes: Any,
    value: Any, size: Any,
) -> Any:  # fmt: skip
    """Set the scores (x − centre)·w of rows i…, add up β(x − centre), and both of absolute values.

    Return the row to go on from, and how many rows had a β that is not 0: it stops after ``most``.
    """
    added = 0
    while i < end and added < most:
        scores[i], sizes[i] = row_shifted_dot_size(X, i, centre, w)
        if beta[i] != 0.0:
            row_shifted_axpy_size(X, i, centre, beta[i], value, size)
            added += 1
        i += 1
    return i, added
