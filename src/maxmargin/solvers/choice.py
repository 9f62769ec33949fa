"""Which solver for which data."""

from typing import Any

from maxmargin.problems.problem import MulticlassProblem, Problem
from maxmargin.solvers.block_smo import BlockSMO
from maxmargin.solvers.crammer_singer import SequentialDual
from maxmargin.solvers.factor_newton import FactorNewton
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.subgradient import Subgradient
from maxmargin.solvers.wide import DualCDThenNewton
from maxmargin.solvers.working_sets import WorkingSets

_MANY_COLUMNS = 2000
_FEW_ROWS = 2000

AnySolver = (
    Newton | DualCDThenNewton | Subgradient | WorkingSets | SequentialDual | BlockSMO | FactorNewton
)


SOLVERS: dict[str, type[AnySolver]] = {
    "newton": Newton,
    "dual_cd": DualCDThenNewton,
    "subgradient": Subgradient,
    "working_sets": WorkingSets,
    "sequential_dual": SequentialDual,
    "block_smo": BlockSMO,
    "factor_newton": FactorNewton,
}


def choose(
    problem: Problem | MulticlassProblem, *, threads: int | None = None, seed: int = 0
) -> Any:
    """Return the solver for a problem, by its penalty and the shape of its data.

    Newton's method wins unless both rows and columns are many: then coordinate descent comes first.
    """
    n, d = problem.X.shape
    wide = d > _MANY_COLUMNS and n > _FEW_ROWS
    return named("dual_cd" if wide else "newton", problem, threads=threads, seed=seed)


def named(
    name: str,
    problem: Problem | MulticlassProblem,
    *,
    threads: int | None = None,
    seed: int = 0,
) -> Any:
    """Return a solver by its name; ℓ1 penalties and joint classes have only one each."""
    if isinstance(problem, MulticlassProblem):
        return SequentialDual(seed)
    if problem.l1_ratio > 0:
        return WorkingSets()
    if name == "newton":
        return Newton(threads)
    if name == "dual_cd":
        return DualCDThenNewton(seed, threads)
    return Subgradient(seed)
