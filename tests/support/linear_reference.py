"""Linear machines written out plainly, and as quadratic programs solved by Clarabel.

    min  ½‖w‖² (+ ½(b/lift)²) + Σ cᵢ ξᵢ  or  Σ cᵢ ξᵢ²

over w, b and slacks ξ ≥ 0; see ``reference`` for the constraints of each loss.
"""

from typing import Any, NamedTuple

import clarabel  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

import maxmargin as mm

Floats = npt.NDArray[np.float64]

CLASSIFIERS = ("hinge", "squared_hinge")
REGRESSORS = ("epsilon_insensitive", "squared_epsilon_insensitive")
LOSSES = CLASSIFIERS + REGRESSORS
INTERCEPTS = ("free", "penalized", "none")


class Machine(NamedTuple):
    """What is minimised: ``y`` holds ±1 for hinge losses, targets for the others."""

    X: Floats
    y: Floats
    cost: Floats
    loss: str = "hinge"  # or "hard_margin": then cost is ignored
    epsilon: float = 0.0
    intercept: str = "free"
    lift: float = 1.0

    def slack(self, w: Floats, b: float) -> Floats:
        """Return ξ of each row: by how much it misses the margin, or the tube."""
        f = self.X @ w + b
        if self.loss in REGRESSORS:
            return np.maximum(0.0, np.abs(self.y - f) - self.epsilon)
        return np.maximum(0.0, 1 - self.y * f)

    def objective(self, w: Floats, b: float) -> float:
        """Return the objective at a point, term by term as the textbook has it."""
        xi = self.slack(w, b)
        penalty = 0.5 * float(w @ w)
        if self.intercept == "penalized":
            penalty += 0.5 * (b / self.lift) ** 2
        if self.loss == "hard_margin":
            return penalty
        return penalty + float(self.cost @ (xi**2 if "squared" in self.loss else xi))

    def lower_bound(self, beta: Floats) -> float:
        """Return the dual objective at β (with the sign of the label), made feasible first."""
        high = self.cost
        if "squared" in self.loss:
            high = np.where(self.cost > 0, np.inf, 0.0)
        low = -high
        if self.loss in CLASSIFIERS:
            low, high = np.where(self.y > 0, 0.0, -high), np.where(self.y > 0, high, 0.0)
        beta = np.clip(beta, low, high)
        if self.intercept == "free":
            more, less = beta[beta > 0].sum(), -beta[beta < 0].sum()
            beta[beta > 0] *= min(1.0, less / more) if more else 1.0
            beta[beta < 0] *= min(1.0, more / less) if less else 1.0
        w = beta @ self.X
        value = self.y @ beta - self.epsilon * np.abs(beta).sum() - 0.5 * w @ w
        if "squared" in self.loss:
            value -= (beta**2 / np.where(self.cost > 0, 4 * self.cost, 1.0)).sum()
        if self.intercept == "penalized":
            value -= 0.5 * (self.lift * beta.sum()) ** 2
        return float(value)

    def relative_gap(self, w: Floats, b: float, beta: Floats) -> float:
        """Return (P − D) / max(|P|, |D|)."""
        primal, dual = self.objective(w, b), self.lower_bound(beta)
        size = max(abs(primal), abs(dual))
        return (primal - dual) / size if size else 0.0


class Optimum(NamedTuple):
    """What Clarabel found, and its own bounds on the optimum."""

    w: Floats
    b: float
    primal: float
    dual: float


def reference(machine: Machine, tol: float = 1e-11) -> Optimum:
    """Solve a machine as a quadratic program in (w, b, ξ)."""
    X, y, cost, loss, epsilon, intercept, lift = machine
    n, d = X.shape
    hard, squared = loss == "hard_margin", "squared" in loss
    slacks = 0 if hard else n
    f = sp.hstack([X, np.ones((n, 1)), sp.csc_array((n, slacks))])
    # Squared slacks are counted in units in which they all cost ½ξ², hinge slacks in such that
    # they cost ξ: else the program is badly scaled.
    unit = 1 / np.sqrt(2 * cost) if squared else 1 / cost
    xi = sp.hstack([sp.csc_array((slacks, d + 1)), sp.diags_array(unit[:slacks])])
    # Rows of A x + s = rhs, s ≥ 0.
    if loss in REGRESSORS:
        blocks, sides = [f - xi, -f - xi], [y + epsilon, epsilon - y]
    else:
        margins = sp.diags_array(y) @ f
        blocks, sides = [-margins if hard else -margins - xi], [-np.ones(n)]
    blocks, sides = [*blocks, -xi], [*sides, np.zeros(slacks)]
    cones = [clarabel.NonnegativeConeT(sum(len(side) for side in sides))]
    if intercept == "none":
        blocks.append(sp.csc_array(([1.0], ([0], [d])), shape=(1, d + 1 + slacks)))
        sides.append(np.zeros(1))
        cones.append(clarabel.ZeroConeT(1))
    curve = np.concatenate(
        [
            np.ones(d),
            [1 / lift**2 if intercept == "penalized" else 0.0],
            np.full(slacks, float(squared)),
        ]
    )
    slope = np.concatenate([np.zeros(d + 1), np.full(slacks, float(not squared))])
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = tol
    found = clarabel.DefaultSolver(
        sp.csc_matrix(sp.diags_array(curve)),
        slope,
        sp.csc_matrix(sp.vstack(blocks)),
        np.concatenate(sides),
        cones,
        options,
    ).solve()
    x, primal, dual = np.array(found.x), float(found.obj_val), float(found.obj_val_dual)
    # Clarabel may miss the last digits; what counts is that its own two bounds agree.
    worst = machine.objective(np.zeros(d), 0.0) if not hard else 1.0
    assert abs(primal - dual) <= 1e-9 * max(abs(primal), 1e-6 * worst), found.status
    return Optimum(x[:d], float(x[d]), primal, dual)


def estimator(loss: str, **parameters: Any) -> Any:
    """Return our estimator for a loss."""
    kind = mm.LinearSVC if loss in CLASSIFIERS else mm.LinearSVR
    return kind(loss=loss, **parameters)


def asked(model: Any, X: Any, y: Any, weight: Any = None) -> Machine:
    """Return what a binary model or a regressor was asked to minimise."""
    rows = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    if model.loss in CLASSIFIERS:
        y = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    cost = model.C * (np.ones(len(rows)) if weight is None else np.asarray(weight))
    epsilon = getattr(model, "epsilon", 0.0)
    return Machine(
        rows,
        np.asarray(y, float),
        cost,
        model.loss,
        epsilon,
        model.intercept,
        model.intercept_scaling,
    )


def plane(model: Any) -> tuple[Floats, float]:
    """Return (w, b) of a binary model or a regressor."""
    return np.ravel(model.coef_), float(model.intercept_[0])


def duals(model: Any, n: int) -> Floats:
    """Return β of all rows, from the public attributes."""
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    return beta
