"""The structured machine: each example pays for the output that violates its margin most."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.problems.problem import Point
from maxmargin.structured.model import Examples


@dataclass(frozen=True)
class OutputDuals:
    """Outputs with their dual variables; what is left of an example's cost is on its true output.

    A structured machine has a dual for each of very many outputs, and nearly all of them are 0.
    """

    rows: Ints  # the example of each
    outputs: list[Any]
    alpha: Floats

    @classmethod
    def none(cls) -> Self:
        """Return no output at all: every cost is on the true one."""
        return cls(np.zeros(0, np.int64), [], np.zeros(0))

    def positive(self) -> "OutputDuals":
        """Return those whose dual is not 0."""
        kept = np.flatnonzero(self.alpha != 0)
        outputs = [self.outputs[k] for k in kept]
        return OutputDuals(self.rows[kept], outputs, self.alpha[kept])

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class StructuredProblem:
    """Margins that grow with the loss, for outputs of any kind.

        min  ½‖w‖² + Σᵢ Cᵢ maxᵧ Hᵢ(y),    Hᵢ(y) = loss(yᵢ, y) − ⟨w, ψ(xᵢ, yᵢ) − ψ(xᵢ, y)⟩

    Its dual is, with αᵢ(y) ≥ 0 and Σᵧ αᵢ(y) = Cᵢ (the true output, where H = 0, included),

        max  Σ αᵢ(y) loss(yᵢ, y) − ½‖w‖²,    w = Σ αᵢ(y) (ψ(xᵢ, yᵢ) − ψ(xᵢ, y))

    and at the w of duals, P − D = Σᵢ [Cᵢ maxᵧ Hᵢ(y) − Σᵧ αᵢ(y) Hᵢ(y)].
    """

    examples: Examples
    cost: Floats

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def size(self) -> int:
        """How many weights there are."""
        return self.examples.size

    def certificate_work(self, duals: OutputDuals | None) -> float:
        """Return how much a certificate has to do: examples to decode, outputs to recompute."""
        return len(self) + (0.0 if duals is None else 0.5 * len(duals))

    def without_duals(self, point: Point) -> Point:
        """Return the point with no dual but those of true outputs."""
        return replace(point, beta=OutputDuals.none())

    def take(self, rows: Ints) -> Self:
        """Return the problem of some of its examples."""
        return replace(self, examples=self.examples.take(rows), cost=self.cost[rows])

    def full_point(self) -> Point:
        """Return a point with one output for each example, to estimate what a certificate costs."""
        w = np.zeros(self.size)
        found = self.examples.decode(np.arange(len(self)), w)
        return Point(w, 0.0, OutputDuals(np.arange(len(self)), found.outputs, self.cost.copy()))

    def guess(self, start: Point) -> Point:
        """Return a point that takes no time to find: the start, or no weights at all."""
        w = np.zeros(self.size) if start.w is None else start.w
        return Point(w, 0.0, OutputDuals.none() if start.beta is None else start.beta)
