"""The proof that comes with a solution: bounds on the optimum from either side.

Everything is recomputed in float64 from the data, the weights and the duals; nothing a solver says
is taken on trust, and no solver is imported.

    P(w)  the objective at w, minimised over b: no optimum is higher
    D(β)  the dual objective at β made feasible: no optimum is lower

so P − D bounds how far w is from optimal, and ‖w − w*‖ ≤ √(2(P − D)) as the penalty is ½‖w‖².
"""

from maxmargin.certify.certificate import Certificate, together
from maxmargin.certify.linear import certify

__all__ = ["Certificate", "certify", "together"]
