"""The radius–margin criterion: R²‖w‖² of machines whose margin is hard in some feature space.

The smallest ball around rows solves

    R² = max  Σ βᵢK(xᵢ, xᵢ) − βᵀKβ    s.t.  β ≥ 0,  Σβ = 1,

twice the dual of a kernel machine with targets ½K(xᵢ, xᵢ): its gap brackets R².
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.certificates import certify
from maxmargin.estimators.left_out import SolvedProblem
from maxmargin.loops.records import Loss
from maxmargin.model_selection.criteria.solved_problem import solved_problem
from maxmargin.problems.problem import Problem
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.solve import run_solver
from maxmargin.solvers.decomposition import Decomposition

_MAX_ITER = 10_000


@dataclass(frozen=True)
class RadiusMargin:
    """R²‖w‖², and what is proved of either factor.

    Attributes
    ----------
    squared_radius : tuple of float
        R² lies between these.
    squared_length : tuple of float
        ‖w‖² lies between these.
    n_rows : int
        How many rows take part: those with a weight.
    bounds_errors_by : float
        Leave-one-out errors are at most this many times R²‖w‖²: 4 with a free intercept, else 1.
    """

    squared_radius: tuple[float, float]
    squared_length: tuple[float, float]
    n_rows: int
    bounds_errors_by: float

    @property
    def value(self) -> float:
        """R²‖w‖², by the larger end of either bracket: to be made small."""
        return self.squared_radius[1] * self.squared_length[1]

    @property
    def bracket(self) -> tuple[float, float]:
        """R²‖w‖² lies between these."""
        return self.squared_radius[0] * self.squared_length[0], self.value

    def __repr__(self) -> str:
        return (
            f"<RadiusMargin: R²‖w‖² = {self.value:.6g}, R² = {self.squared_radius[1]:.6g}, "
            f"‖w‖² = {self.squared_length[1]:.6g}, {self.n_rows} rows>"
        )


def radius_margin(model: Any, X: Any, y: Any, sample_weight: Any = None) -> RadiusMargin:
    """Return R²‖w‖² of a fitted classifier: the squared ratio of radius and margin.

    R is the radius of the smallest ball around the rows in feature space; without a free intercept,
    that of the ball around 0, as planes go through it. With the squared hinge the feature space is
    that of K + I/2C, in which the margin is hard and ‖w‖² is twice the objective.

    Parameters
    ----------
    model : HardMarginSVC, or LinearSVC(loss="squared_hinge")
        Fitted, of two classes.
    X, y, sample_weight :
        What it was fitted to.

    Returns
    -------
    RadiusMargin
        ``value``, and certified brackets of ``squared_radius`` and ``squared_length``.

    Raises
    ------
    ValueError
        For the hinge, which has no such bound: use ``xi_alpha_bound`` or ``span_estimate``.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.separable(100, margin=0.2, random_state=0)
    >>> model = mm.HardMarginSVC().fit(X, y)
    >>> found = mm.model_selection.radius_margin(model, X, y)
    >>> low, high = found.squared_radius
    >>> low <= high <= low * (1 + 1e-6)
    True
    """
    machine = solved_problem(model, X, y, sample_weight, "radius_margin")
    if machine.loss_name == "hinge":
        raise ValueError(
            "radius_margin is not defined for the hinge loss, whose margin is soft in every "
            "feature space: use xi_alpha_bound or span_estimate, or fit "
            "LinearSVC(loss='squared_hinge')."
        )
    certificate = machine.certificate
    if not np.isfinite(certificate.dual):
        raise ValueError(
            f"The solution has no certificate ({certificate.caveat or 'its gap is infinite'}): "
            "without a bound from below there is no bracket. Use leave_one_out."
        )
    longest = 2 * float(certificate.primal)
    length = min(2 * max(float(certificate.dual), 0.0), longest), longest
    if machine.free:
        return RadiusMargin(_ball(machine, float(model.tol)), length, len(machine), 4.0)
    radius = float((machine.diagonal + machine.loss.quadratic).max())
    return RadiusMargin((radius, radius), length, len(machine), 1.0)


def _ball(machine: SolvedProblem, tol: float) -> tuple[float, float]:
    """Return bounds of the squared radius of the smallest ball."""
    features = machine.problem.features.as_kernel()
    n, shift = len(machine), machine.loss.quadratic
    terms = Loss(0.5 * (machine.diagonal + shift), np.zeros(n), np.ones(n), shift, 0.0)
    group = np.zeros(n, dtype=np.int64)
    problem = Problem(features, terms, machine.problem.row, group, np.ones(1))
    with one_blas_thread():
        solver = Decomposition(tol, precise=True)
        found = run_solver(problem, solver, tol=tol, max_iter=_MAX_ITER, polish=100)
        # The solver's own intercept: every one bounds the radius from above.
        proof = certify(problem, found.point, keep_intercept=True)
    high = 2 * float(proof.primal)
    return min(2 * float(proof.dual), high), high
