"""Which solver for which data."""

from maxmargin.problem import Problem
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.wide import DualCDThenNewton

_MANY_COLUMNS = 2000
_FEW_ROWS = 2000

LinearSolver = Newton | DualCDThenNewton


def choose(problem: Problem, *, threads: int | None = None, seed: int = 0) -> LinearSolver:
    """Return the solver for a problem with penalty ½‖w‖², by the shape of its data.

    Newton's method wins unless both rows and columns are many: then coordinate descent comes first.
    """
    n, d = problem.X.shape
    if d > _MANY_COLUMNS and n > _FEW_ROWS:
        return DualCDThenNewton(seed, threads)
    return Newton(threads)
