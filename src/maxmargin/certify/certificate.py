"""What a certificate says."""

from dataclasses import dataclass

import numpy as np

from maxmargin.problem import relative_gap


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimal objective, and how well the optimality conditions hold.

    Attributes
    ----------
    primal, dual : float
        The objective at the weights, with the best intercept; and the dual objective at the dual
        variables, made feasible. The optimum lies between them.
    gap, relative_gap : float
        primal − dual, and that divided by the larger of |primal| and |dual|.
    infeasibility : float
        How much the duals had to be changed to be feasible, relative to their sum.
    drift : float
        ‖w − Σβx‖ / ‖w‖: how far the weights are from those the duals imply.
    max_kkt_violation : float
        The largest violation of an optimality condition, in units of the score f.
    distance_bound : float
        No optimal weights are further from these than this.
    intercept : float
        The intercept that is best for the weights (the middle one if there are several).
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
    parts: tuple["Certificate", ...] = ()

    @property
    def gap(self) -> float:
        """Primal − dual."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """(primal − dual) / max(|primal|, |dual|), 0 where both are 0."""
        return relative_gap(self.primal, self.dual)

    def holds(self, tol: float) -> bool:
        """Return whether the relative gap, of every part too, is proved to be at most tol."""
        return bool(self.relative_gap <= tol) and all(part.holds(tol) for part in self.parts)

    def __str__(self) -> str:
        return (
            f"The objective {self.primal:.8g} is within {max(self.gap, 0.0):.2g} (relative "
            f"{max(self.relative_gap, 0.0):.2g}) of the best possible."
        )


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
        parts=tuple(parts),
    )
