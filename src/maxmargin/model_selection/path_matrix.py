"""Kernel machines along a path on one matrix of kernel values, for all C and pairs of classes."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import clock
from maxmargin.kernels.rows import FloatArray
from maxmargin.model_selection.cost_paths import COPIED, ROUNDS, OnMatrix, Room
from maxmargin.problem import KernelProblem, Run, Solution, Status

Floats = npt.NDArray[np.float64]

_MOST_ROWS = 20_000


@dataclass(frozen=True)
class KernelValues:
    """The Gram matrix of a machine's problems."""

    values: FloatArray
    room: Room

    @classmethod
    def of(cls, problems: list[Any]) -> Self | None:
        """Return the matrix if the problems are convex and it is small enough to be kept."""
        if not all(map(_takes, problems)):
            return None
        gram = problems[0].gram
        n = len(gram)
        size = (1 + COPIED**2) * n * n * gram.tiles.dtype.itemsize
        if n > _MOST_ROWS or size > gram.memory:
            return None
        values = gram.square(np.arange(n))
        most = max(len(np.unique(problem.rows)) for problem in problems)
        return cls(values, Room.of(most, values.dtype))

    def solutions(
        self, problem: KernelProblem, costs: Floats, tol: float, rounds: int
    ) -> list[Solution]:
        """Return the solutions of a problem at rising multiples of its costs."""
        begun = clock.now()
        free = len(problem.totals) > 0
        stated = OnMatrix.stated(problem.terms, free, problem.rows)
        path = stated.solve(self.values, costs, tol, self.room, rounds=min(rounds, ROUNDS))
        seconds = (clock.now() - begun) / len(costs)
        low, high = problem.terms.low, problem.terms.high
        found = []
        for k, cost in enumerate(costs.tolist()):
            # Of two variables of a row one is ≥ 0, the other ≤ 0, and one of them is 0.
            beta = np.clip(path.coefficients[k][stated.at], cost * low, cost * high)
            b = path.intercepts[k : k + 1] if free else np.zeros(0)
            run = Run(Status.STALLED, int(path.rounds[k]), seconds)
            found.append(Solution(beta, b, beta, run))
        return found


def _takes(problem: Any) -> bool:
    if not isinstance(problem, KernelProblem) or len(problem.totals) > 1:
        return False
    return problem.gram.kernel.psd is True and not problem.terms.shift.any()
