"""The separator that bounds a perceptron's updates best: through the origin of the lifted rows.

On x̃ = (x, 1) the updates are at most R̃²/γ̃², where γ̃ is the margin of a plane through 0: the largest
one gives the lowest bound.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.problems.problem import Status
from maxmargin.separability.decide import verified_plane
from maxmargin.separability.overlap import conflict
from maxmargin.separability.search import common_scale, rescaled, search
from maxmargin.solvers.hulls import Hulls

_ENTRIES = 2e5  # numbers in X up to which the search is short beside an estimator's other work
_STEPS = 300  # moves of the search: a limit by work, not by the clock, so that fits repeat
_ACCURACY = 1e-6  # a bound need not have more digits


def lifted_separator(
    X: Any, positive: npt.NDArray[np.bool_], lift: bool
) -> tuple[Floats, float] | None:
    """Return (w, b) whose smallest y f beside ‖(w, b)‖ is the largest, if little work finds it.

    Without ``lift`` the rows stay as they are, and b is 0.
    """
    if (X.nnz if sp.issparse(X) else X.size) > _ENTRIES or conflict(X, positive, lift):
        return None
    rows = _lifted(X) if lift else rescaled(X, 1.0, np.zeros(X.shape[1]))
    scale = common_scale(rows)
    hulls = Hulls.of(rows / scale, positive, intercept=False)
    found, ended = search(hulls, accuracy=_ACCURACY, max_steps=_STEPS)
    if ended.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if not found.lowest > 0:
        return None
    plane = verified_plane(found.point, rows, np.where(positive, 1, -1), intercept=False)
    if plane is None:
        return None
    return (plane.w[:-1], float(plane.w[-1])) if lift else (plane.w, 0.0)


def _lifted(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1))
    if sp.issparse(X):
        return sp.hstack([X.astype(np.float64), sp.csr_array(ones)], format="csr")
    return np.hstack([X, ones])
