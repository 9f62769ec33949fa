"""f = Σ βK(x, ·) on rows of a Gram matrix, block by block, nothing kept."""

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.gram import Gram

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_VALUES = 1 << 22  # of a block


def expansion_scores(
    gram: Gram, rows: Ints, beta: Floats, columns: Ints | None = None, *, fast: bool = False
) -> Floats:
    """Return Σ βⱼ K(xᵢ, xⱼ) for i of ``rows`` over j of ``columns`` (by default the same).

    ``fast``: by the tiles, which may be float32; otherwise in float64.
    """
    columns = rows if columns is None else columns
    used = np.flatnonzero(beta)
    out = np.zeros(len(rows))
    if not len(used):
        return out
    bound: Any = gram.tiles if fast else gram.exact
    right, weights = bound[columns[used]], beta[used]
    step = max(64, _VALUES // len(used))
    for begin in range(0, len(rows), step):
        part = rows[begin : begin + step]
        block = gram.kernel.between(bound[part], right, threads=gram.threads)
        out[begin : begin + step] = block @ weights.astype(block.dtype)
    return out
