"""What a certificate says."""

from dataclasses import dataclass

import numpy as np

from maxmargin.certify.page import as_html
from maxmargin.problem import relative_gap

_BELOW = 1e-9  # a negative gap up to this part is rounding
_WORTH_SAYING = 0.01  # the part of the gap from which on its cause is named


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimal objective, and how well the optimality conditions hold.

    Attributes
    ----------
    primal, dual : float
        The objective at the weights, with the best intercept (``maxmargin.certify``: the model's
        own); and the dual objective at the dual variables, made feasible. The optimum lies between
        them. A dual of −∞ says that nothing is proved.
    gap, relative_gap : float
        primal − dual, and that divided by the larger of |primal| and |dual|.
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
        How much lower the primal would be with that intercept in the place of the model's own.
    caveat : str
        What the bound rests on, or why there is none; empty if there is nothing to say.
    rounding : float
        In a kernel machine: the part of the objective that float64 cannot resolve, about.
    intercepts : tuple of float
        In a kernel machine: the best intercept of each group of dual variables.
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
    parts: tuple["Certificate", ...] = ()

    @property
    def gap(self) -> float:
        """Primal − dual."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """(primal − dual) / max(|primal|, |dual|), 0 where both are 0."""
        return np.inf if self.dual == -np.inf else relative_gap(self.primal, self.dual)

    def holds(self, tol: float) -> bool:
        """Return whether the relative gap, of every part too, is proved to be at most tol."""
        # A gap far below 0 is no better than one above: then rounding has the say.
        proved = -max(tol, _BELOW) <= self.relative_gap <= tol and self.rounding <= tol
        return bool(proved) and all(part.holds(tol) for part in self.parts)

    def __str__(self) -> str:
        if not np.isfinite(self.dual):
            return f"The objective {self.primal:.8g} is not certified: {self.caveat or 'no bound'}."
        sentence = (
            f"The objective {self.primal:.8g} is within {max(self.gap, 0.0):.2g} (relative "
            f"{max(self.relative_gap, 0.0):.2g}) of the best possible"
        )
        least = max(self.gap, 1e-12 * abs(self.primal))
        if self.intercept_cost > _WORTH_SAYING * least:
            sentence += f", {self.intercept_cost:.2g} of it by the choice of intercept"
        return f"{sentence}; {self.caveat}." if self.caveat else f"{sentence}."

    def _repr_html_(self) -> str:
        return as_html(self)


def together(parts: list[Certificate]) -> Certificate:
    """Return the certificate of independent problems solved side by side."""
    if len(parts) == 1:
        return parts[0]
    return Certificate(
        sum(part.primal for part in parts),
        sum(part.dual for part in parts),
        max(part.infeasibility for part in parts),
        max(part.drift for part in parts),
        max(part.max_kkt_violation for part in parts),
        float(np.sqrt(sum(part.distance_bound**2 for part in parts))),
        intercept_cost=sum(part.intercept_cost for part in parts),
        rounding=max(part.rounding for part in parts),
        caveat=next((part.caveat for part in parts if part.caveat), ""),
        parts=tuple(parts),
    )
