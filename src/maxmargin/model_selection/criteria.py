"""Criteria from one fit: what leaving out each row in turn would give, without doing it.

Let φ(δ) be the best dual objective while the dual of row t is held at δ. It is concave, and

    φ′(0) = 1 − y f⁻ᵗ(x),    φ′(α) = 1 − y f(x)  (minus α/2C with the squared hinge),

where f⁻ᵗ is the solution without the row. Between the two its slope falls by α times the squared
distance from φ(x) to the affine span of other rows that are free to move (to 0 without an
intercept). The ξα-bound takes the largest distance there can be, the span estimate the distance at
the solution. Joachims (ICML 2000); Vapnik and Chapelle (Neural Computation 12, 2000).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.model_selection.criteria_intercepts import MOST_ROWS, surely_right
from maxmargin.model_selection.criteria_machines import SolvedProblem, solved_problem

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_RIDGE = 1e-12  # of the largest K(x, x): keeps the matrix of dependent rows invertible
STABLE = (
    "every leave-one-out solution has a row with 0 < α < C, which settles its intercept; with "
    "unequal weights, so has every solution on the way to it"
)


@dataclass(frozen=True, eq=False)
class XiAlphaBound:
    """An upper bound on the errors that leaving out each row in turn would show.

    Attributes
    ----------
    errors : int
        No more rows than these are misclassified by the model fitted without them.
    rows : ndarray
        Which they may be.
    unsettled : ndarray
        Those of them with ρ α R² + ξ < 1: they count because the intercept without them may not be
        unique, so that the formula alone would prove nothing.
    n_rows : int
        How many rows take part: those with a weight.
    squared_radius : float
        R² in the bound: max K(x, x) − min K(x, x′) with a free intercept, else max K(x, x).
    allowance : float
        What was added to every row for the solution being approximate.
    assumes : str
        What the bound rests on; empty if it rests on nothing.
    """

    errors: int
    rows: Ints
    unsettled: Ints
    n_rows: int
    squared_radius: float
    allowance: float
    assumes: str = ""

    @property
    def rate(self) -> float:
        """Errors divided by rows."""
        return self.errors / self.n_rows

    def __repr__(self) -> str:
        rest = f", if {self.assumes}" if self.assumes else ""
        return (
            f"<XiAlphaBound: at most {self.errors} of {self.n_rows} rows ({self.rate:.1%}) are "
            f"errors when left out{rest}>"
        )


@dataclass(frozen=True, eq=False)
class SpanEstimate:
    """An estimate of the errors that leaving out each row in turn would show; not a bound.

    Attributes
    ----------
    errors : int
        How many rows the model fitted without them would misclassify, by the estimate.
    rows : ndarray
        Which they are.
    n_rows : int
        How many rows take part: those with a weight.
    margins : ndarray of shape (n_rows,)
        The estimated y f of each such row when it is left out.
    squared_spans : ndarray of shape (n_rows,)
        S² of the support vectors, 0 for other rows.
    """

    errors: int
    rows: Ints
    n_rows: int
    margins: Floats
    squared_spans: Floats

    @property
    def rate(self) -> float:
        """Errors divided by rows."""
        return self.errors / self.n_rows

    def __repr__(self) -> str:
        return (
            f"<SpanEstimate: about {self.errors} of {self.n_rows} rows ({self.rate:.1%}) are "
            "errors when left out>"
        )


def xi_alpha_bound(model: Any, X: Any, y: Any, sample_weight: Any = None) -> XiAlphaBound:
    """Bound the leave-one-out errors of a fitted classifier by its duals and slacks.

    Counts the rows with ρ α R² + ξ ≥ 1. With a free intercept ρ = 2 and R² is the largest K(x, x)
    minus the smallest K(x, x′), which may be negative; without one, or with a penalized one
    (a constant feature), ρ = 1 and R² is the largest K(x, x). The squared hinge with a free
    intercept adds α/2C. As α and ξ are those of a solution with a gap, √(2·gap·ρR²) and the largest
    violation of an optimality condition are added too: fit with a small ``tol`` to make this small.

    With the hinge and a free intercept the formula holds only if the solution without the row has
    some 0 < α < C, which settles its intercept. Where this is not proved the row counts too. (Of
    more than 3000 rows it is not looked at: ``assumes`` then says what the bound rests on.) All
    else has no assumptions. The only row of a class counts as an error. The kernel is the fitted
    ``kernel_``, also for gamma="scale".

    Parameters
    ----------
    model : SVC, LinearSVC or HardMarginSVC
        Fitted, of two classes.
    X, y, sample_weight :
        What it was fitted to. A row is left out with all its weight.

    Returns
    -------
    XiAlphaBound
        ``errors``, ``rate`` and ``rows``.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(200, random_state=0)
    >>> model = mm.SVC(gamma=0.1).fit(X, y)
    >>> bound = mm.model_selection.xi_alpha_bound(model, X, y)
    >>> mm.model_selection.leave_one_out(model, X, y).errors <= bound.errors
    True
    """
    machine = solved_problem(model, X, y, sample_weight, "xi_alpha_bound")
    rho, radius2 = _distance(machine)
    allowance = _allowance(machine, rho * radius2)
    worst = _largest_slack(machine) + machine.alpha * (rho * radius2) + allowance
    if machine.free:
        worst += machine.alpha * machine.terms.shift.max()
    risky = (worst >= 1) | machine.alone
    rows, unsettled, assumes = machine.rows[risky], machine.rows[:0], ""
    if machine.free and machine.loss == "hinge":
        if len(machine) <= MOST_ROWS:
            cleared = np.flatnonzero(~risky)
            doubtful = cleared[~surely_right(machine, cleared)]
            unsettled = machine.rows[doubtful]
            rows = np.sort(np.concatenate([rows, unsettled]))
        else:
            assumes = STABLE
    return XiAlphaBound(len(rows), rows, unsettled, len(machine), radius2, allowance, assumes)


def span_estimate(model: Any, X: Any, y: Any, sample_weight: Any = None) -> SpanEstimate:
    """Estimate the leave-one-out errors of a fitted classifier by the span of its support vectors.

    Left out, a support vector has about y f − α S², where S is the distance from φ(x) to the
    affine span of the other support vectors with 0 < α < C. This is exact if these stay what they
    are when a row goes; as some may not, it is an estimate and not a bound. With the squared hinge
    the kernel is K + I/2C, in which y f = 1. Without a free intercept the span is linear. With one
    and no other such vector left, S is the largest distance to a support vector. It costs the
    inverse of the matrix of the support vectors with 0 < α < C.

    Parameters
    ----------
    model : SVC, LinearSVC or HardMarginSVC
        Fitted, of two classes.
    X, y, sample_weight :
        What it was fitted to. A row is left out with all its weight.

    Returns
    -------
    SpanEstimate
        ``errors``, ``rate``, ``rows`` and the ``margins`` y f they come from.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(200, random_state=0)
    >>> model = mm.SVC(gamma=0.1).fit(X, y)
    >>> mm.model_selection.span_estimate(model, X, y).rate < 0.5
    True
    """
    machine = solved_problem(model, X, y, sample_weight, "span_estimate")
    spans = _squared_spans(machine)
    shifts = machine.terms.shift * machine.alpha
    margins = machine.signs * machine.scores + shifts - machine.alpha * spans
    wrong = (margins <= 0) | machine.alone
    return SpanEstimate(int(wrong.sum()), machine.rows[wrong], len(machine), margins, spans)


def _distance(machine: SolvedProblem) -> tuple[float, float]:
    """Return ρ and R²: no squared distance that counts is larger than ρR²."""
    largest = float(machine.diagonal.max())
    if not machine.free:
        return 1.0, max(largest, 0.0)
    smallest = min(float(block.min()) for block in machine.blocks())
    return 2.0, max(largest - smallest, 0.0)


def _allowance(machine: SolvedProblem, squared_distance: float) -> float:
    """Return by how much 1 − y f may be larger at the exact solution."""
    certificate = machine.certificate
    if not np.isfinite(certificate.distance_bound):
        raise ValueError(
            f"The solution has no certificate ({certificate.caveat or 'its gap is infinite'}): "
            "without one nothing is bounded. Use leave_one_out, or another kernel."
        )
    away = certificate.distance_bound * float(np.sqrt(squared_distance))
    return away + (certificate.max_kkt_violation if machine.free else 0.0)


def _largest_slack(machine: SolvedProblem) -> Floats:
    """Return ξ, by the intercept that is worst for each row where several are optimal."""
    slack = machine.slack
    if not machine.free or machine.loss != "hinge" or machine.between_bounds.any():
        return slack
    offsets = machine.signs - machine.scores  # to be added to b for y f = 1
    full, positive = machine.alpha > 0, machine.signs > 0
    low, high = offsets[positive != full].max(), offsets[positive == full].min()
    shift = np.where(positive, np.minimum(low, 0.0), np.maximum(high, 0.0))
    return np.asarray(np.maximum(slack, 1.0 - machine.signs * (machine.scores + shift)))


def _squared_spans(machine: SolvedProblem) -> Floats:
    """Return S² of each support vector, 0 for other rows."""
    spans = np.zeros(len(machine))
    moving = np.flatnonzero(machine.between_bounds)
    fixed = np.flatnonzero((machine.alpha > 0) & ~machine.between_bounds)
    border = int(machine.free)
    inverse = _inverse(machine, moving, border)
    if len(moving) > border:
        spans[moving] = 1.0 / np.diag(inverse)[: len(moving)]
    elif len(moving):
        spans[moving] = _farthest(machine, moving)
    if len(fixed) and len(moving) < border:
        spans[fixed] = _farthest(machine, fixed)
    elif len(fixed):
        sides = np.hstack([machine.values(fixed, moving), np.ones((len(fixed), border))])
        inner = np.einsum("ij,jk,ik->i", sides, inverse, sides)
        spans[fixed] = machine.diagonal[fixed] + machine.terms.shift[fixed] - inner
    return np.maximum(spans, 0.0)


def _inverse(machine: SolvedProblem, moving: Ints, border: int) -> Floats:
    """Return the inverse of the kernel matrix, bordered by ones if there is an intercept."""
    size = len(moving)
    if size < border:
        return np.zeros((0, 0))
    matrix = np.zeros((size + border, size + border))
    matrix[:size, :size] = machine.values(moving, moving)
    ridge = _RIDGE * max(float(np.abs(machine.diagonal).max()), np.finfo(float).tiny)
    matrix[np.arange(size), np.arange(size)] += machine.terms.shift[moving] + ridge
    matrix[size:, :size] = matrix[:size, size:] = 1.0
    return np.asarray(np.linalg.inv(matrix))


def _farthest(machine: SolvedProblem, rows: Ints) -> Floats:
    support = np.flatnonzero(machine.alpha > 0)
    products = machine.values(rows, support)
    squares = machine.diagonal[rows][:, np.newaxis] - 2 * products + machine.diagonal[support]
    return np.asarray(squares.max(axis=1) + machine.terms.shift[rows])
