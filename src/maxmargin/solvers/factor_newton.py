"""Newton's method on a factor of the Gram matrix: a kernel machine as the linear one that it is.

With K = ZZᵀ the rows of Z are points whose linear machine has the same losses, duals and optimum.
Where K has a low rank, or spans many orders of magnitude, pairs of duals hardly get ahead, and
the linear machine's Newton method takes a few steps. It costs n² kernel values and n·rank² work.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from maxmargin.problem import Bracket, Intercept, KernelProblem, Problem, Start
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.pivoted_factor import pivoted_factor

Floats = npt.NDArray[np.float64]

MOST_ROWS = 2000


@dataclass(frozen=True)
class FactorNewton:
    """Settings of the method."""

    threads: int | None = None

    @staticmethod
    def takes(problem: KernelProblem) -> bool:
        """Return whether a problem is small enough, and has a free intercept or none."""
        return (
            len(np.unique(problem.rows)) <= MOST_ROWS
            and not problem.totals.any()
            and (len(problem.totals) < 2)
        )

    def iterates(self, problem: KernelProblem, start: Start) -> Iterator[Bracket]:
        """Yield a bracket after each Newton step; weights as coefficients of the rows."""
        rows, at = np.unique(problem.rows, return_inverse=True)
        bound = problem.gram.exact[rows]
        values = problem.gram.kernel.between(bound, bound, threads=problem.gram.threads)
        Z, coefficients = _factor(np.asarray(values, np.float64))
        intercept = Intercept.FREE if len(problem.totals) else Intercept.NONE
        linear = Problem(np.ascontiguousarray(Z[at]), problem.terms, intercept)
        first = np.unique(at, return_index=True)[1]  # a variable of each row
        for bracket in Newton(self.threads).iterates(linear, Start(beta=start.beta)):
            w = np.zeros(len(at))
            w[first] = coefficients @ bracket.w
            b = np.full(len(problem.totals), bracket.b)
            yield replace(bracket, w=w, b=b)


def _factor(K: Floats) -> tuple[Floats, Floats]:
    """Return Z with ZZᵀ = K up to rounding, and C with ZᵀC = 1: w = Zᵀ(Cw)."""
    Z = pivoted_factor(K, max(len(K), 100) * float(np.finfo(np.float64).eps))
    return Z, np.asarray(np.linalg.pinv(Z).T, np.float64)
