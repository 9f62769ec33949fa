"""Newton's method on a factor of the Gram matrix: a kernel machine as the linear one that it is.

With K = ZZᵀ the rows of Z are points whose linear machine has the same losses, duals and optimum.
Where K has a low rank, or spans many orders of magnitude, pairs of duals hardly get ahead, and
the linear machine's Newton method takes a few steps. It costs n² kernel values and n·rank² work.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from maxmargin.problems.problem import Bracket, Intercept, KernelProblem, Problem, Start
from maxmargin.solvers.kernel_variables import Variables, dual_value, duality_gap
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.pivoted_factor import pivoted_factor

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
        """Yield a bracket after each Newton step, at the weights that its duals imply."""
        rows, at = np.unique(problem.rows, return_inverse=True)
        exact = problem.gram.exact[rows]
        K = np.asarray(problem.gram.kernel.between(exact, exact), np.float64)
        Z = pivoted_factor(K, max(len(K), 100) * float(np.finfo(np.float64).eps))
        intercept = Intercept.FREE if len(problem.totals) else Intercept.NONE
        linear = Problem(np.ascontiguousarray(Z[at]), problem.loss, intercept)
        nothing = np.zeros(len(at))
        best = Bracket(np.inf, -np.inf, nothing, problem.totals, nothing)
        least = np.inf  # the smallest gap: of loss that are not negative, so no rounding hides it
        for step in Newton(self.threads).iterates(linear, Start(beta=start.beta)):
            if not np.array_equal(step.beta, best.beta) or not np.isfinite(least):
                scores = K @ np.bincount(at, step.beta, minlength=len(rows))
                variables = Variables.of(problem, at, step.beta, scores)
                gap, b, _ = duality_gap(variables, np.full(len(problem.totals), step.b))
                dual = dual_value(variables)
                if gap < least:
                    least, best = gap, Bracket(dual + gap, dual, step.beta, b, step.beta)
            yield replace(best, settled=step.settled)
