"""A certificate: bounds on the optimum, and how they are shown."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from maxmargin.problems.problem import Point, Status, relative_gap
from maxmargin.runtime.html import Html, table, tag

_BELOW = 1e-12  # a negative gap up to this part is rounding, even where none is stated
_RESOLVED = 0.5  # of the objective: where more may be rounding, there is no bound
_ROUNDED = 0.5  # times the gap, or tol: more rounding than that is what counts
_WORTH_SAYING = 0.01  # the part of the gap from which on its cause is named


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimal objective, and how well the optimality conditions hold.

    Attributes
    ----------
    primal, dual : float
        The objective at the weights, with the best intercept (``maxmargin.certify``: the model's
        own); and the dual objective at the dual variables, made feasible. The optimum lies between
        them, but for ``rounding``. A dual of −∞ says that nothing is proved. Where ``caveat`` says
        that there was no time for some scores, both are bounds instead: the objective is no higher
        than primal, and the dual objective no lower than dual.
    gap, relative_gap : float
        primal − dual, and that divided by the larger of |primal| and |dual|. Where the optimum is
        0 this ratio says nothing, and may be of any size: see ``terms``.
    infeasibility : float
        How much the duals had to be changed to be feasible, relative to their sum.
    drift : float
        ‖w − Σβx‖ / ‖w‖: how far the weights are from those the duals imply.
    max_kkt_violation : float
        The largest violation of an optimality condition, in units of the score f.
    distance_bound : float
        No optimal weights are further from these than this (with a kernel: in feature space).
    intercept : float
        The intercept that is best for the weights (the middle one if there are several).
    intercept_cost : float
        How much lower the primal would be with that intercept instead of the model's own.
    caveat : str
        What the bound rests on, or why there is none; empty if there is nothing to say.
    rounding : float
        No more than this part of the larger of |primal| and |dual| is rounding: both together are
        as near to their values in exact arithmetic. It includes the rounding of kernel values,
        scores (times C) and sums, and is a bound, not an estimate.
    intercepts : tuple of float
        The best intercept of each group of dual variables: one if the intercept is free, two in
        the ν-forms of SVC and SVR, none without a free intercept.
    terms : float
        The size of the terms that cancel in the dual objective, ½(Σ|β|‖φ‖)², if it is no more than
        1e-11 of that; else 0. The optimum is then 0 as far as float64 can tell, between ``dual``
        and 0, which w = 0 attains: the classes meet, or there is nothing between rows and origin.
        Both bounds allow for rounding already.
    parts : tuple of Certificate
        With several classes: one for each binary problem; the sums are those of all.
    """

    primal: float
    dual: float
    infeasibility: float
    drift: float
    max_kkt_violation: float
    distance_bound: float
    intercept: float = 0.0
    intercept_cost: float = 0.0
    caveat: str = ""
    intercepts: tuple[float, ...] = ()
    rounding: float = 0.0
    terms: float = 0.0
    parts: tuple["Certificate", ...] = ()

    @property
    def gap(self) -> float:
        """Primal − dual."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """(primal − dual) / max(|primal|, |dual|), 0 where both are 0."""
        return np.inf if self.dual == -np.inf else relative_gap(self.primal, self.dual)

    @property
    def refuted(self) -> bool:
        """Whether there is no bound at all, rather than one that is lost in rounding."""
        return bool(self.dual == -np.inf and np.isfinite(self.rounding))

    @property
    def stationary(self) -> Status:
        """What a solver has reached that found nothing more to gain, without a proof."""
        return Status.STATIONARY

    @property
    def proved_gap(self) -> float:
        """How far the objective is from the best possible at most, in exact arithmetic."""
        return self.gap + self.rounding * self.size if self.rounding else max(self.gap, 0.0)

    @property
    def size(self) -> float:
        """The larger of |primal| and |dual|."""
        return max(abs(self.primal), abs(self.dual))

    def holds(self, tol: float) -> bool:
        """Return whether the relative gap, of every part too, is proved to be at most tol.

        It is proved in exact arithmetic: rounding counts as if all of it were to the bad.
        """
        proved = self.relative_gap + self.rounding <= tol * (1 - self.rounding)
        # A gap below 0 by more than rounding contradicts itself, and proves nothing.
        proved &= self.relative_gap >= -(1.01 * self.rounding + _BELOW)
        if not proved or not self.parts:
            return bool(proved)
        return all(part.holds(tol) for part in self.parts)

    def is_rounding(self, tol: float) -> bool:
        """Return whether rounding, rather than the gap, keeps tol from being proved."""
        lost = not np.isfinite(self.rounding)
        return bool(lost or self.rounding > _ROUNDED * max(self.relative_gap, tol))

    def resolved(self) -> Self:
        """Return this, or the same without a bound if rounding leaves nothing of it."""
        if self.rounding < _RESOLVED or not np.isfinite(self.dual) or self.terms:
            return self
        lost = (
            "rounding in float64 may change it by more than half: scale the columns, or lower C "
            "(or raise nu)"
        )
        return replace(
            self, dual=-np.inf, distance_bound=np.inf, rounding=np.inf, caveat=self.caveat or lost
        )

    def __str__(self) -> str:
        if not np.isfinite(self.dual):
            return f"The objective {self.primal:.8g} is not certified: {self.caveat or 'no bound'}."
        if self.terms:
            return (
                f"The best possible objective is between {self.dual:.2g} and 0, which is nothing "
                f"beside the terms that cancel in it, of size {self.terms:.2g}: w = 0 is as good "
                "as any other weights."
            )
        apart = self.proved_gap
        relative = apart / self.size if self.size > 0 else 0.0
        sentence = (
            f"The objective {self.primal:.8g} is within {apart:.2g} (relative {relative:.2g}) of "
            "the best possible"
        )
        if self.intercept_cost > _WORTH_SAYING * max(apart, 1e-12 * abs(self.primal)):
            sentence += f", {self.intercept_cost:.2g} of it by the choice of intercept"
        return f"{sentence}; {self.caveat}." if self.caveat else f"{sentence}."

    def _repr_html_(self) -> str:
        return as_html(self)


def unproved(point: Point) -> Certificate:
    """Return what is said of a point where there is no time to look at it: no bound at all."""
    b = np.atleast_1d(np.asarray(point.b, dtype=np.float64))
    return Certificate(
        np.inf, -np.inf, 0.0, np.inf, np.inf, np.inf,
        intercept=float(b[0]) if len(b) else 0.0,
        intercepts=tuple(b.tolist()),
        caveat="there was no time for a certificate",
    )  # fmt: skip


def together(parts: list[Certificate]) -> Certificate:
    """Return the certificate of independent problems solved side by side."""
    if len(parts) == 1:
        return parts[0]
    primal, dual = sum(part.primal for part in parts), sum(part.dual for part in parts)
    errors = sum(part.rounding * part.size for part in parts if part.rounding)
    return Certificate(
        primal,
        dual,
        max(part.infeasibility for part in parts),
        max(part.drift for part in parts),
        max(part.max_kkt_violation for part in parts),
        float(np.sqrt(sum(part.distance_bound**2 for part in parts))),
        intercept_cost=sum(part.intercept_cost for part in parts),
        rounding=errors / (max(abs(primal), abs(dual)) or 1.0) if errors else 0.0,
        caveat=_join_caveats(parts),
        terms=sum(part.terms for part in parts) if all(part.terms for part in parts) else 0.0,
        parts=tuple(parts),
    )


def _join_caveats(parts: list[Certificate]) -> str:
    """Return the caveat that all problems share, or the first one and how many have any."""
    found = [part.caveat for part in parts if part.caveat]
    if len(set(found)) <= 1 and len(found) in (0, len(parts)):
        return "".join(found[:1])
    return f"{found[0]} (in {len(found):,} of {len(parts):,} subproblems)"


# ------------------------------------------------------------------- in a notebook


def as_html(found: Certificate) -> Html:
    """Return the sentence, and the numbers with what they mean."""
    return tag("div", tag("p", str(found)), numbers(found))


def numbers(found: Certificate) -> Html:
    """Return a table of all numbers."""
    return table(["Quantity", "Value", "What it is"], _lines(found))


def _lines(found: Certificate) -> Iterator[tuple[str, str, str]]:
    yield "primal", f"{found.primal:.10g}", "the objective that was reached"
    yield "dual", f"{found.dual:.10g}", "no choice of weights can get below this"
    yield "gap", f"{found.gap:.3g}", "primal − dual: the most that can be gained"
    yield "relative gap", f"{found.relative_gap:.3g}", "the gap beside the larger of the two"
    yield "infeasibility", f"{found.infeasibility:.3g}", "change of the duals to make them feasible"
    yield "drift", f"{found.drift:.3g}", "how far the weights are from those of the duals, relative"
    yield (
        "KKT violation",
        f"{found.max_kkt_violation:.3g}",
        "largest violation of an optimality condition, in units of the score",
    )
    yield "distance bound", f"{found.distance_bound:.3g}", "no optimal weights are further away"
    if found.intercept_cost > 0:
        yield (
            "intercept cost",
            f"{found.intercept_cost:.3g}",
            "part of the gap from the intercept",
        )
    if found.rounding > 0:
        yield "rounding", f"{found.rounding:.3g}", "the most that rounding can change, relative"
    if found.terms > 0:
        yield "terms", f"{found.terms:.3g}", "the size of what cancels in the dual: it is 0"
    if found.parts:
        worst = max(part.relative_gap for part in found.parts)
        yield "problems", f"{len(found.parts)}", "solved side by side; the sums are above"
        yield "worst of them", f"{worst:.3g}", "the largest relative gap of a single problem"
