"""Solutions from an exact path: as problems have them, and with their certificates."""

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.certify import certify
from maxmargin.estimators.solving import Outcome
from maxmargin.model_selection.exact_path import ExactPath, exact_path
from maxmargin.model_selection.path_ends import Hinge, hinge_of
from maxmargin.model_selection.path_walk import Step, at_cost, scores_of
from maxmargin.problem import Intercept, KernelProblem, Run, Solution, Status

Floats = npt.NDArray[np.float64]

FEW_ROWS = 300  # up to which exact="auto" takes the exact path: about a second
MOST_ROWS = 2000


def refused(problems: list[Any], C: float, most: int) -> str:
    """Return why there is no exact path for the problems, or nothing."""
    if len(problems) > 1:
        return f"it is for two classes, and these make {len(problems)} problems"
    hinge = hinge_of(problems[0], C)
    if hinge is None:
        return "it is for the hinge loss with the penalty ½‖w‖² only"
    if len(hinge.signs) > most:
        return f"it is for at most {most} rows, and these are {len(hinge.signs)}"
    if isinstance(problems[0], KernelProblem) and problems[0].gram.kernel.psd is False:
        return f"{problems[0].gram.kernel!r} is not positive semidefinite"
    return ""


class ExactSolutions:
    """The exact path of a problem, and its solution at any C on it."""

    def __init__(self, problem: Any, C: float, last: float) -> None:
        self.problem, self.C = problem, C
        hinge = hinge_of(problem, C)
        if hinge is None:
            raise ValueError("an exact path needs the hinge loss")
        self.hinge: Hinge = hinge
        self.path: ExactPath = exact_path(_values(problem), *hinge, last)

    def step(self, C: float, tol: float) -> Step:
        """Return the solution at C with its certificate."""
        problem = at_cost(self.problem, C / self.C)
        alpha, b = self.path.at(C)
        beta = self.hinge.signs * np.minimum(alpha, C * self.hinge.weight)
        run = Run(Status.OPTIMAL, 0, 0.0)
        if isinstance(problem, KernelProblem):
            solution = Solution(beta, np.full(len(problem.totals), b), beta, run)
        else:
            w = np.asarray(problem.X.T.astype(np.float64) @ beta).ravel()
            if problem.intercept is Intercept.PENALIZED:
                b = problem.lift**2 * float(beta.sum())
            solution = Solution(w, b, beta, run)
        certificate = certify(problem, solution)
        if not certificate.holds(tol):
            run = Run(Status.STALLED, 0, 0.0)
            solution = Solution(solution.w, solution.b, beta, run)
        outcome = Outcome(solution, certificate, "exact path")
        return Step(problem, outcome, scores_of(problem, solution))


def _values(problem: Any) -> Floats:
    """Return all kernel values in float64."""
    if isinstance(problem, KernelProblem):
        prepared = problem.gram.exact[problem.rows]
        K = np.asarray(problem.gram.kernel.block(prepared, prepared), np.float64)
        return 0.5 * (K + K.T)
    X = problem.X.astype(np.float64)
    products = X @ X.T
    K = products.toarray() if hasattr(products, "toarray") else np.asarray(products)
    return K + problem.lift**2 if problem.intercept is Intercept.PENALIZED else K
