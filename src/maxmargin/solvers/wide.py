"""Sparse and wide data: coordinate descent while it is fast, Newton steps to finish."""

from collections.abc import Iterator
from dataclasses import dataclass

from maxmargin.problem import Bracket, Problem, Start
from maxmargin.solvers.dual_cd import DualCD
from maxmargin.solvers.newton import Newton

_ROUGH = 1e-3  # relative gap from which few enough rows are active for Newton steps
_ROUNDS = 12


@dataclass(frozen=True)
class DualCDThenNewton:
    """Settings of both."""

    seed: int = 0
    threads: int | None = None

    def iterates(self, problem: Problem, start: Start) -> Iterator[Bracket]:
        """Yield brackets of the one, then of the other."""
        rounds = 0
        for bracket in DualCD(self.seed, self.threads).iterates(problem, start):
            yield bracket
            rounds += bracket.finished
            start = Start(bracket.w, bracket.b, bracket.beta)
            if bracket.finished and (bracket.relative_gap <= _ROUGH or rounds >= _ROUNDS):
                break
        yield from Newton(self.threads).iterates(problem, start)
