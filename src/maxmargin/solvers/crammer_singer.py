"""The multiclass machine of Crammer and Singer: dual blocks row by row, then Newton's digits.

    min  ½Σₖ‖wₖ‖² + Σᵢ Cᵢ · (maxₖ (1 − δ(k, yᵢ) + fₖ(xᵢ)) − f_yᵢ(xᵢ))

*Sweeps* solve for the duals of one row after the other, exactly and in random order; rows that seem
settled sleep until the next look at all of them. A free intercept is a multiplier of Σβ = 0: it
moves after each round of sweeps (proximal steps on b alone), and the lower bound is taken at duals
repaired to meet that equation exactly. Sweeps are cheap and soon near; where the weights, or the
duals still free, are few enough for a factorization, semismooth Newton steps take over and close
the gap to rounding, whatever the units of the columns.
Keerthi et al. (KDD 2008) for the sweeps; see ``crammer_singer_newton`` for the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems.problem import MulticlassProblem, relative_gap
from maxmargin.solvers.crammer_singer_newton import LARGEST, Newton
from maxmargin.solvers.crammer_singer_state import Machine, MulticlassStart

_SWEEPS = 4  # a round: so many visits of each row, before all rows are looked at
_NEAR = 1e-3  # the gap at which Newton takes over, where weights or free duals are few
_ROUNDS = 3  # rounds in which the gap must fall,
_SLOW = 0.3  # to this part: otherwise Newton takes over, where the weights are few
_CHUNK = 2e7  # products between two yields
_PATIENCE = 40  # Newton steps that may pass without a smaller gap
_SETTLED = 1e-14  # no relative gap below this means anything


@dataclass(frozen=True)
class MulticlassBracket:
    """A ``Bracket`` of several classes: w is (d, K), b is (K,), beta is (n, K)."""

    primal: float
    dual: float
    w: Floats
    b: Floats
    beta: Floats
    finished: bool = True
    settled: bool = False

    @property
    def relative_gap(self) -> float:
        """(P − D) / max(|P|, |D|), and 0 where both are 0."""
        return relative_gap(self.primal, self.dual)

    def __str__(self) -> str:
        return f"objective {self.primal:.6g}, relative gap {self.relative_gap:.2g}"


@dataclass(frozen=True)
class SequentialDual:
    """Solve the multiclass machine by dual blocks of one row each, and Newton steps at the end.

    Parameters
    ----------
    seed : int, default=0
        Decides the order of visits, and with it only the last digits of the answer.
    """

    seed: int = 0

    def iterates(
        self, problem: MulticlassProblem, start: MulticlassStart | None = None
    ) -> Iterator[MulticlassBracket]:
        """Yield brackets of the optimum until the gap is down to rounding.

        Parts of an iteration that take long yield in between, not ``finished``.
        """
        machine = Machine(problem, start or MulticlassStart())
        if not len(machine.kept) or problem.n_classes < 2:
            machine.primal = machine.dual = 0.0  # nothing can be lost
            yield _bracket(machine, settled=True)
            return
        rng = np.random.default_rng(self.seed)
        rounds = _ROUNDS
        while True:
            yield from _sweeps(machine, rng, rounds)
            newton = Newton(machine)
            yield from _newton_steps(machine, newton)
            if newton.size <= LARGEST:
                newton.finish()
                yield _bracket(machine, settled=True)
                return
            # Too many duals became free: sweep on, and longer than before.
            machine.restart(newton.mass, newton.b)
            rounds *= 2


def _bracket(machine: Machine, finished: bool = True, settled: bool = False) -> MulticlassBracket:
    return MulticlassBracket(machine.primal, machine.dual, *machine.point(), finished, settled)


def _sweeps(
    machine: Machine, rng: np.random.Generator, at_least: int
) -> Iterator[MulticlassBracket]:
    """Make rounds of sweeps until Newton steps are possible and worth it."""
    few_weights = (machine.W.shape[0] + 1) * machine.W.shape[1] <= LARGEST
    machine.look()
    rounds = 0
    gaps: list[float] = []
    while True:
        yield _bracket(machine)
        gap = relative_gap(machine.primal, machine.dual)
        gaps.append(gap)
        slow = rounds >= _ROUNDS and gap > _SLOW * gaps[-1 - _ROUNDS]
        if few_weights and (gap <= _NEAR or slow):
            return
        if gap <= _NEAR and rounds >= at_least - _ROUNDS and _few_free(machine):
            return
        for _ in _round(machine, rng):
            yield _bracket(machine, finished=False)
        machine.look()
        rounds += 1


def _few_free(machine: Machine) -> bool:
    return machine.free_count(machine.mass) <= LARGEST


def _round(machine: Machine, rng: np.random.Generator) -> Iterator[None]:
    """Visit rows that are awake until the visits make a few sweeps; pause now and then."""
    visits = _SWEEPS * len(machine.labels)
    width = machine.entries_per_row() * machine.W.shape[1]
    rows_per_chunk = max(1, int(_CHUNK / max(width, 1.0)))
    unpaused = 0
    threshold = machine.violation
    while visits > 0:
        awake = np.flatnonzero(~machine.asleep)
        order = awake[rng.permutation(len(awake))]
        worst = 0.0
        for first in range(0, len(order), rows_per_chunk):
            part = order[first : first + rows_per_chunk]
            worst = max(worst, machine.sweep(part, threshold))
            unpaused += len(part)
            if unpaused >= rows_per_chunk:
                unpaused = 0
                yield
        visits -= len(awake)
        threshold = worst
        if worst <= 0.0:
            break
    machine.move_offset()


def _newton_steps(machine: Machine, newton: Newton) -> Iterator[MulticlassBracket]:
    """Make Newton steps while they are affordable and the gap shrinks."""
    best, idle = (np.inf, -np.inf), 0
    while newton.size <= LARGEST:
        for _ in newton.step():
            yield _bracket(machine, finished=False)
        gap = relative_gap(machine.primal, machine.dual)
        gain = max(best[0] - machine.primal, machine.dual - best[1])
        idle = 0 if gain > 0.05 * (machine.primal - machine.dual) else idle + 1
        best = (best[0], best[1]) if idle else (machine.primal, machine.dual)
        if gap <= _SETTLED or idle >= (_PATIENCE if gap > 1e-9 else _PATIENCE // 4):
            return
        yield _bracket(machine)
