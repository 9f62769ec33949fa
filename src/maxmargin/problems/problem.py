"""What is solved, what a solver yields on the way, and what comes of it."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Loss
from maxmargin.problems.gram import Gram


class Status(Enum):
    """Why a run stopped, as a sentence."""

    OPTIMAL = "the duality gap is below tol"
    MAX_ITER = "stopped at max_iter before the gap closed; raise max_iter or loosen tol"
    STALLED = "the gap stopped shrinking before it reached tol; scale the columns or loosen tol"
    ROUNDING = (
        "rounding in float64 keeps a gap of tol from being proved; scale the columns, lower C or "
        "loosen tol"
    )
    STATIONARY = "stationary, not certified: an indefinite kernel has no dual bound"
    ALL_CORRECT = "every training row was passed without an update"
    EPOCHS = "all the epochs allowed were made"
    ONE_PASS = "one pass over the rows was made, as asked"
    SMALL_CHANGE = "the weights changed by less than change_tol over an epoch"
    HELD_OUT = "the held-out score stopped improving"
    MAX_EPOCHS = (
        "stopped at max_epochs while still making mistakes; the classes may overlap, in which case "
        "no number of epochs is enough"
    )
    NEAREST = "the nearest points were found"
    MEETING = "the convex hulls meet"
    MAX_TIME = "stopped at max_time; raise it, or continue with warm_start=True"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "interrupted from the keyboard; the weights reached so far are kept"
    STREAM = "the rows of each chunk were visited once, in order"

    def __reduce__(self) -> Any:  # by its value, for skops, which does not know enums
        return type(self), (self.value,)


class Intercept(Enum):
    """How the offset b of f(x) = w·x + b enters the objective."""

    FREE = "free"  # it costs nothing: the textbook's
    PENALIZED = "penalized"  # it is the weight of a constant feature
    NONE = "none"  # it is 0

    def __reduce__(self) -> Any:
        return type(self), (self.value,)


@dataclass(frozen=True)
class Problem:
    """A linear machine: minimise penalty(w) + Σ ℓᵢ(w·xᵢ + b) over w and b.

    The penalty is ½‖w‖², plus ½(b/lift)² if the intercept is penalized (b = lift·v, where v weighs
    a constant feature of value lift); or l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖². Its dual is

        max  Σ tβ − ε|β| − ½ quadratic β²  −  ½‖Σβx‖²    (− ½(lift·Σβ)² if penalized)
        s.t. low ≤ β ≤ high,  and Σβ = 0 if the intercept is free.
    """

    X: Any  # C-ordered float32/float64 array, or CSR
    loss: Loss
    intercept: Intercept = Intercept.FREE
    lift: float = 1.0
    l1_ratio: float = 0.0


@dataclass(frozen=True)
class Point:
    """Weights, intercepts and signed duals; where a solver is to start, any of them may be missing.

    In a KernelProblem the weights are w = Σ wᵥ φ(xᵥ), by their coefficients wᵥ.
    """

    w: Any = None
    b: Any = 0.0  # a number; one per class in a MulticlassProblem, one per group in a KernelProblem
    beta: Any = None  # with the sign of the label: w = Σβx at the optimum


class Finishable(Protocol):
    """One step of a solver, short enough that a clock can be read and Ctrl-C felt in between."""

    @property
    def finished(self) -> bool:
        """Whether a whole iteration (an epoch, a round) is complete: only then are rules asked."""
        ...


@dataclass(frozen=True)
class Iterate:
    """Where a solver stands: the best lower and upper bound of the optimum so far.

    ``w, b`` attain ``primal`` and ``beta`` (made feasible) attains ``dual``.
    """

    primal: float
    dual: float
    w: Floats
    b: Any
    beta: Floats
    finished: bool = True
    converged: bool = False  # nothing more to gain: the optimality conditions hold to rounding

    @property
    def relative_gap(self) -> float:
        """(P − D) / max(|P|, |D|), and 0 where both are 0."""
        return relative_gap(self.primal, self.dual)

    def unfinished(self) -> "Iterate":
        """Return the same in the middle of an iteration."""
        return replace(self, finished=False)

    def improved(self, other: "Iterate") -> "Iterate":
        """Return the better of both bounds, and what attains it."""
        point = self if self.primal <= other.primal else other
        duals = self if self.dual >= other.dual else other
        return Iterate(point.primal, duals.dual, point.w, point.b, duals.beta)

    def __str__(self) -> str:
        return f"objective {self.primal:.6g}, relative gap {self.relative_gap:.2g}"


def relative_gap(primal: float, dual: float) -> float:
    """Return (P − D) / max(|P|, |D|), and 0 where both are 0."""
    if primal == dual:
        return 0.0
    gap = (primal - dual) / max(abs(primal), abs(dual))
    return float(gap) if np.isfinite(gap) else np.inf  # what is not a number proves nothing


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each iteration."""

    iteration: int
    seconds: float
    iterate: Any


@dataclass(frozen=True)
class Run:
    """How a run ended."""

    status: Status
    iterations: int
    seconds: float


@dataclass(frozen=True)
class MulticlassProblem:
    """The machine of Crammer and Singer: one weight vector a class, one loss a row.

        min  ½Σₖ‖wₖ‖² + Σᵢ Cᵢ · (maxₖ (1 − δ(k, yᵢ) + fₖ(xᵢ)) − f_yᵢ(xᵢ)),    fₖ(x) = wₖ·x + bₖ

    plus ½‖b/lift‖² if the intercept is penalized. Its dual is, in β of shape (n, K),

        max  Σᵢ βᵢ[yᵢ] − ½Σₖ‖wₖ‖²    (− ½(lift‖Σβᵢ‖)² if penalized),     wₖ = Σᵢ βᵢ[k] xᵢ
        s.t. βᵢ[k] ≤ Cᵢδ(k, yᵢ),  Σₖ βᵢ[k] = 0,  and Σᵢ βᵢ = 0 if the intercept is free.
    """

    X: Any  # C-ordered float32/float64 array, or CSR
    labels: npt.NDArray[np.int64]  # 0 … n_classes − 1
    n_classes: int
    cost: Floats
    intercept: Intercept = Intercept.FREE
    lift: float = 1.0


@dataclass(frozen=True)
class KernelProblem:
    """A kernel machine by its dual variables, of which a row may have one or two.

        min  ½‖w‖² + Σᵥ ℓᵥ(w·φ(xᵥ) + b[g(v)]) + Σ totals·b

    with the losses of ``Loss``, where g(v) is the group of variable v (−1: it has no intercept)
    and xᵥ its row. The dual is

        max  Σ tβ − ε|β| − ½ quadratic β²  −  ½‖w‖²,    w = Σ βᵥ φ(xᵥ)
        s.t. low ≤ β ≤ high,  and Σβ = totals[g] within each group g.

    One group with total 0 is a free intercept, none is no intercept; the ν-forms have two.
    """

    gram: Gram
    loss: Loss
    rows: Ints  # of the Gram matrix: one for each variable
    groups: Ints
    totals: Floats
