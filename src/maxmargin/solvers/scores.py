"""f = Σ βK(x, ·) on rows of a Gram matrix."""

from typing import Any

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.problems.gram import Gram


def expansion_scores(
    gram: Gram, rows: Ints, beta: Floats, columns: Ints | None = None, *, fast: bool = False
) -> Floats:
    """Return Σ βⱼ K(xᵢ, xⱼ) for i of ``rows`` over j of ``columns`` (by default the same).

    ``fast``: by the tiles, which may be float32; otherwise in float64.
    """
    columns = rows if columns is None else columns
    used = np.flatnonzero(beta)
    if not len(used):
        return np.zeros(len(rows))
    prepared: Any = gram.tiles if fast else gram.exact
    left = prepared if len(rows) == len(gram) else prepared[rows]
    right = prepared[columns[used]]
    return gram.kernel.dot(left, right, beta[used][:, np.newaxis], gram.threads)[:, 0]
