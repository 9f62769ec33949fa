"""Can a hyperplane separate the classes? An answer with a witness either way.

Two finite sets are separable exactly if their convex hulls do not meet. The nearest points of the
hulls decide: if they differ, the plane midway between them separates; if they are one point, the
convex weights that make it from either class show that no plane can.

Both answers are checked on the original rows before they are given. A plane must leave every row on
its side by more than rounding could account for. That the hulls meet must be proved, in exact
arithmetic or by an enclosure of the weights in which all rounding is accounted for. Otherwise the
answer is None: undecided at this precision.
"""

from maxmargin.separability.decide import separate
from maxmargin.separability.result import Overlap, Separation

__all__ = ["Overlap", "Separation", "separate"]
