"""Sparse and wide data: coordinate descent while it is fast, Newton steps where it is not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from maxmargin.problems.problem import Bracket, Problem, Start
from maxmargin.solvers.dual_cd import DualCD
from maxmargin.solvers.newton import Newton


@dataclass(frozen=True)
class DualCDThenNewton:
    """Settings of both."""

    seed: int = 0
    threads: int | None = None

    def iterates(self, problem: Problem, start: Start) -> Iterator[Bracket]:
        """Yield brackets of the one, then of the other, never worse than before."""
        best = None
        for best in DualCD(self.seed, self.threads).iterates(problem, start):
            yield best
        if best is None:
            return
        start = Start(best.w, best.b, best.beta)
        for bracket in Newton(self.threads).iterates(problem, start):
            best = bracket if bracket.settled else best.improved(bracket)
            yield replace(best, finished=bracket.finished)
