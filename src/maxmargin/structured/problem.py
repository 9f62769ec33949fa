"""The structured machine: each example pays for the output that violates its margin most.

Its certificates decode all examples anew, and make w anew from the duals.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate
from maxmargin.certificates.quadratic import relative_rounding
from maxmargin.problems.problem import Point, Status
from maxmargin.problems.rounding import EPS, Bounded, Combination, passed, squared_norm, total
from maxmargin.structured.model import Cuts, Examples

_AT_BOUND = 1e-9  # an output with less than this part of its example's cost has no dual
_BEATEN = 1e-9  # by more than this part, a stored output cannot beat the decoder by rounding


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


# ------------------------------------------------------------------- certificates


@dataclass(frozen=True)
class StructuredCertificate(Certificate):
    """A certificate that knows whether the decoder finds the highest score.

    Where it need not (``exact`` of the model is False), or where it was seen not to, the objective
    at the weights is unknown: ``primal`` and the gap are infinite, and only ``dual`` and
    ``least_primal`` are proved.

    Attributes
    ----------
    least_primal : float
        The objective with the highest score among the outputs that were seen: it is no less.
    beaten : tuple of int
        Examples with outputs that score higher than what an allegedly exact decoder found.
    """

    least_primal: float = 0.0
    beaten: tuple[int, ...] = ()

    @property
    def refuted(self) -> bool:
        """Whether there is no bound at all, rather than one that is lost in rounding."""
        return super().refuted or self.primal == np.inf

    @property
    def stationary(self) -> Status:
        """What a solver has reached that found nothing more to gain, without a proof."""
        return Status.INEXACT

    def __str__(self) -> str:
        if self.primal < np.inf:
            return super().__str__()
        return (
            f"The objective is at least {self.least_primal:.8g}, and no weights can get below "
            f"{self.dual:.8g}; how far it is from the best possible is unknown: {self.caveat}."
        )


def certify_structured(
    problem: StructuredProblem, point: Point, *, keep_intercept: bool = False
) -> tuple[Certificate, OutputDuals]:
    """Return the certificate of weights and duals, and the duals made feasible.

    There is no intercept to keep or to replace.
    """
    del keep_intercept
    w = np.asarray(point.w, dtype=np.float64)
    lost = "" if np.isfinite(w).all() else "some weights are not finite"
    w = w if not lost else np.zeros(len(w))
    duals, infeasibility = feasible(problem, point.beta)
    known = problem.examples.cuts(duals.rows, duals.outputs)
    held, implied = _sums(known, w, duals.alpha)
    everything = np.arange(len(problem))
    found = problem.examples.decode(everything, w)
    seen, _ = _sums(found, w, np.zeros(len(everything)))
    tops, beaten = _tops(problem, w, duals.rows, held, seen)
    primal = _objective(problem, w, tops)
    dual = _dual_objective(problem, duals, known, implied)
    certificate = StructuredCertificate(
        primal.value,
        dual.value,
        infeasibility,
        _drift(w, implied.value),
        _kkt_violation(problem, duals, held.value, tops.value),
        float(np.sqrt(2 * max(primal.value + primal.error - dual.value + dual.error, 0.0))),
        rounding=relative_rounding(primal, dual),
        least_primal=primal.value,
        beaten=beaten,
    )
    caveat = lost or _caveat(problem, beaten)
    if caveat:
        return (
            replace(certificate, primal=np.inf, rounding=0.0, distance_bound=np.inf, caveat=caveat),
            duals,
        )
    return certificate.resolved(), duals


def feasible(problem: StructuredProblem, duals: OutputDuals) -> tuple[OutputDuals, float]:
    """Return duals ≥ 0 whose sums do not exceed the costs, and the relative change."""
    given = np.asarray(duals.alpha, dtype=np.float64)
    alpha = np.where(np.isfinite(given), np.maximum(given, 0.0), 0.0)
    sums = np.bincount(duals.rows, alpha, minlength=len(problem))
    over = sums > problem.cost
    ratio = np.divide(problem.cost, sums, out=np.ones(len(sums)), where=over)
    # The rounding of sums is accounted for: only what is more than that is scaled.
    ratio = np.where(sums > problem.cost * (1 + _slack(duals, len(problem))), ratio, 1.0)
    alpha = alpha * ratio[duals.rows]
    size = float(np.abs(given).sum())
    change = float(np.abs(alpha - given).sum()) / size if size > 0 else 0.0
    if not np.isfinite(change):
        change = np.inf
    return OutputDuals(duals.rows, duals.outputs, alpha).positive(), change


def _slack(duals: OutputDuals, count: int) -> Floats:
    """Return the relative rounding error that the sum of an example's duals may have."""
    return np.asarray((np.bincount(duals.rows, minlength=count) + 4) * EPS, dtype=np.float64)


def _sums(cuts: Cuts, w: Floats, alpha: Floats) -> tuple[Bounded, Combination]:
    """Return H of outputs, and Σ α·difference."""
    if not len(cuts.loss):
        return Bounded(cuts.loss, cuts.loss), Combination(*np.zeros((3, len(w))))
    scores, implied = passed(cuts.matrix(len(w)), w, alpha, np.zeros(len(w)))
    value = cuts.loss - scores.value
    return Bounded(value, scores.error + EPS * (np.abs(value) + cuts.loss)), implied


def _tops(
    problem: StructuredProblem, w: Floats, rows: Ints, held: Bounded, seen: Bounded
) -> tuple[Bounded, tuple[int, ...]]:
    """Return the highest H of each example, found or stored; and where decoders claim too much.

    The decoder compares sums that are rounded: the output it found may be lower than the highest by
    twice what one of these sums is off.
    """
    everything = np.arange(len(problem))
    bent = problem.examples.difference_errors(everything) * np.linalg.norm(w)
    errors = seen.error + bent + 2 * problem.examples.errors(everything, w)
    stored = np.zeros(len(problem))  # of the true output
    np.maximum.at(stored, rows, held.value)
    value = np.maximum(seen.value, stored)
    noise = errors.copy()
    np.maximum.at(noise, rows, held.error + errors[rows])
    np.maximum.at(errors, rows, held.error + bent[rows])
    noise += _BEATEN * (np.abs(stored) + np.abs(seen.value))
    exact = problem.examples.model.exact
    beaten = np.flatnonzero(stored > seen.value + noise) if exact else everything[:0]
    return Bounded(value, errors), tuple(beaten.tolist())


def _objective(problem: StructuredProblem, w: Floats, tops: Bounded) -> Bounded:
    norm2 = squared_norm(w)
    each = problem.cost * tops.value
    fitted = total(each, problem.cost * tops.error + EPS * np.abs(each))
    value = 0.5 * norm2.value + fitted.value
    if not np.isfinite(value):
        return Bounded(np.inf, np.inf)
    return Bounded(value, 0.5 * norm2.error + fitted.error + EPS * abs(value))


def _dual_objective(
    problem: StructuredProblem, duals: OutputDuals, known: Cuts, implied: Combination
) -> Bounded:
    """Return Σ α·loss − ½‖w‖² at the w of the duals."""
    each = duals.alpha * known.loss
    gained = total(each, EPS * np.abs(each))
    norm2 = squared_norm(implied.value, implied.error)
    off = float(duals.alpha @ problem.examples.difference_errors(duals.rows))
    size = float(np.sqrt(norm2.value + norm2.error))
    value = gained.value - 0.5 * norm2.value
    error = gained.error + 0.5 * norm2.error + off * (size + off)
    # Sums of duals may exceed the cost by rounding; scaled down to it, D changes by this at most.
    part = float(_slack(duals, len(problem)).max(initial=0.0))
    error += 2 * part * (abs(gained.value) + norm2.value) + EPS * (abs(value) + norm2.value)
    return Bounded(value, error) if np.isfinite(value) else Bounded(-np.inf, np.inf)


def _kkt_violation(
    problem: StructuredProblem, duals: OutputDuals, held: Floats, tops: Floats
) -> float:
    """Return how far, at worst, an output with a dual is below the highest H of its example."""
    has = duals.alpha > _AT_BOUND * problem.cost[duals.rows]
    worst = float(np.max((tops[duals.rows] - held)[has], initial=0.0))
    rest = problem.cost - np.bincount(duals.rows, duals.alpha, minlength=len(problem))
    truth = (rest > _AT_BOUND * problem.cost) & (problem.cost > 0)
    return max(worst, float(np.max(tops[truth], initial=0.0)))


def _drift(w: Floats, implied: Floats) -> float:
    size, away = float(np.linalg.norm(w)), float(np.linalg.norm(w - implied))
    return away / size if size > 0 else away


def _caveat(problem: StructuredProblem, beaten: tuple[int, ...]) -> str:
    """Return why the objective is not known, if it is not."""
    name = type(problem.examples.model).__name__
    if beaten:
        return (
            f"{name}.decode does not find the highest score, although exact = True says so: an "
            f"output of example {beaten[0]} is higher ({len(beaten)} examples in all)"
        )
    if problem.examples.model.exact:
        return ""
    return f"{name}.decode may miss the highest score; if it never does, set exact = True"
