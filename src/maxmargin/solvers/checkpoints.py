"""What solvers keep in files, to go on from there after the process was killed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from maxmargin.problems.blocked import BlockedProblem, Checkpoint
from maxmargin.problems.problem import Iterate


class Resumable(Protocol):
    """Where a method stands: numbers, and vectors of rows that stay beside the rows."""

    method: str
    saved: tuple[str, ...]  # the vectors of rows that it cannot do without
    scratch: tuple[str, ...]  # those that it writes before it reads them, after it was saved

    def get(self) -> dict[str, Any]:
        """Return where the method stands, but for vectors of rows."""
        ...

    def set(self, saved: dict[str, Any]) -> None:
        """Stand where another run stood, whose vectors of rows are there already."""
        ...


class KeptState:
    """What a fit to rows in blocks keeps of one of its methods; of rows in memory, nothing."""

    def __init__(self, problem: Any, method: str) -> None:
        self.blocks: Any = None
        self.at: Checkpoint | None = None
        self.method = method
        if isinstance(problem, BlockedProblem):
            self.blocks, self.at = problem.blocks, problem.checkpoint
        self.made = 0
        self.seen: list[tuple[float, float]] = []  # bounds of the iterates that were yielded

    @property
    def is_there(self) -> bool:
        """Whether there is something to go on from."""
        return self._state() is not None

    def _state(self) -> dict[str, Any] | None:
        state = None if self.at is None else self.blocks.saved_state(self.at.folder)
        if state is None or self.at is None or str(state["digest"]) != self.at.digest:
            return None
        return state if str(state["method"]) == self.method else None

    def resume(self, state: Resumable) -> None:
        """Let the method stand where it was when it was saved last."""
        if self.at is not None and (saved := self._state()) is not None:
            self.blocks.restore(self.at.folder)
            state.set(saved)
            self.seen = [(primal, dual) for primal, dual in saved["seen"].tolist()]
            self.made = int(saved["made"])

    def note(self, iterate: Iterate) -> Iterate:
        """Return an iterate, of which the driver decides whether it is the last."""
        self.seen.append((iterate.primal, iterate.dual))
        return iterate

    def repeated(self, iterate: Iterate) -> Iterator[Iterate]:
        """Yield what the driver has seen before, so that it decides and counts as it would have.

        They have the point that was reached since.
        """
        for primal, dual in self.seen.copy():
            yield replace(iterate, primal=primal, dual=dual, converged=False)

    def save(self, state: Resumable) -> None:
        """Save where the method stands, every few iterations."""
        self.made += 1
        if self.at is not None and self.made % self.at.every == 0:
            told = {**state.get(), "digest": self.at.digest, "method": self.method}
            told |= {"seen": np.reshape(self.seen, (-1, 2)), "made": self.made}
            self.blocks.save(self.at.folder, state.saved, told)
            # What a lost worker had is computed from the files, unless a vector from before them
            # is still there to be computed as well.
            self.blocks.renew(*state.scratch)
