"""The search for nearest points: in which coordinates, and when to stop."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.problems.problem import Run, Status
from maxmargin.solve import Callback, drive
from maxmargin.solvers.min_norm_point import Hulls, Nearest, nearest_points

MET = 1e-12  # distance of hulls, relative to their size, that counts as none
_MAX_STEPS = 20_000
_PATIENCE = 5  # steps that come no nearer before giving up


def common_scale(X: Any) -> float:
    """Return the power of two next to the largest entry: dividing by it is exact."""
    largest = max(float(X.max()), -float(X.min()))
    return float(np.exp2(np.floor(np.log2(largest)))) if largest > 0 else 1.0


def origin(X: Any) -> Floats:
    """Return a point that can be subtracted from all rows without rounding.

    In a column whose values are within a factor of two of each other, the differences to one of
    them are exact; measured from there, what the values have in common no longer drowns the rest.
    """
    start = np.zeros(X.shape[1])
    if sp.issparse(X) or X.shape[0] == 0:
        return start
    low, high = X.min(axis=0), X.max(axis=0)
    close = ((low > 0) & (high <= 2 * low)) | ((high < 0) & (low >= 2 * high))
    start[close] = X[0, close]
    return start


def rescaled(X: Any, scale: Any, start: Floats) -> Any:
    """Return (X − start)/scale in float64; ``scale`` is one number, or one for each column."""
    if sp.issparse(X):
        X = X.astype(np.float64)
        return X / scale if np.ndim(scale) == 0 else X @ sp.diags_array(1 / scale)
    X = np.asarray(X, dtype=np.float64)
    X = X - start if start.any() else X
    return X / scale


def search(
    hulls: Hulls,
    *,
    accuracy: float,
    enough: int | None = None,
    max_steps: int | None = None,
    max_iter: int = _MAX_STEPS,
    max_time: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
) -> tuple[Nearest, Run]:
    """Return the nearest points found, and how the search ended.

    It ends where the hulls reach at most an ``accuracy`` part of ‖point‖² lower. With more than
    ``enough`` rows in the corral, any separator ends it, not only the best. ``max_steps`` limits
    moves of the corral, of which there may be many in an iteration. The rest is as in ``drive``.
    """
    best: list[Nearest] = []
    idle = 0

    def noted() -> Iterator[Nearest]:
        """Pass iterates on, and keep the first: Ctrl-C may come before any rule was asked."""
        for step in islice(nearest_points(hulls), max_steps):
            best[:] = best or [step]
            yield step

    def watch(step: Nearest) -> Status | None:
        nonlocal idle
        # Every step comes nearer, but for rounding: where that rules, more steps are useless.
        nearer = step is best[0] or step.squared_norm < (1 - 1e-12) * best[0].squared_norm
        idle = 0 if nearer else idle + 1
        if step.squared_norm <= best[0].squared_norm:
            best[:] = [step]
        if step.squared_norm <= (MET * step.size) ** 2 / 100:
            return Status.MEETING
        wide = enough is not None and len(step.weights) > enough
        near = step.squared_norm - step.lowest <= (0.9 if wide else accuracy) * step.squared_norm
        return Status.NEAREST if near or idle == _PATIENCE else None

    ended = drive(
        noted(),
        rules=[watch],
        max_iter=max_iter,
        at_max_iter=Status.MAX_ITER,
        max_time=max_time,
        callback=callback,
        verbose=verbose,
    )
    if ended.status is Status.MAX_ITER and ended.iterations < max_iter:
        ended = replace(ended, status=Status.NEAREST)  # no row is left to come nearer by
    if not best:  # only Ctrl-C comes before the first
        raise KeyboardInterrupt("interrupted before there was anything to keep")
    return best[0], ended
