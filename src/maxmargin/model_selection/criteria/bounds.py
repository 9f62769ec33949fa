"""Criteria from one fit: what leaving out each row in turn would give, without doing it.

``estimators/left_out.py`` says how: by a distance to other rows. The ξα-bound takes the largest
distance there can be, the span estimate the distance at the solution. Joachims (ICML 2000); Vapnik
and Chapelle (Neural Computation 12, 2000).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.estimators.left_out import SolvedProblem, span_scores, squared_spans
from maxmargin.model_selection.criteria.solved_problem import ErrorCount, solved_problem
from maxmargin.problems import losses
from maxmargin.problems.duality import within_groups

MOST_ROWS = 3000  # whose matrix of kernel values is computed as a whole
_BLOCK = 512  # rows of kernel values that are computed together
_ROUNDING = 1e-9  # of all costs: sums that differ by less may be equal
_STABLE = (
    "every leave-one-out solution has a row with 0 < α < C, which determines its intercept; with "
    "unequal weights, so has every solution on the way to it"
)


@dataclass(frozen=True, eq=False)
class XiAlphaBound(ErrorCount):
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

    unsettled: Ints
    squared_radius: float
    allowance: float
    assumes: str = ""

    def __repr__(self) -> str:
        rest = f", if {self.assumes}" if self.assumes else ""
        return (
            f"<XiAlphaBound: at most {self.errors} of {self.n_rows} rows ({self.rate:.1%}) are "
            f"errors when left out{rest}>"
        )


@dataclass(frozen=True, eq=False)
class SpanEstimate(ErrorCount):
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

    margins: Floats
    squared_spans: Floats

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
    some 0 < α < C, which determines its intercept. Where this is not proved, the row counts too.
    (For more than 3000 rows this is not checked: ``assumes`` then says what the bound rests on.)
    Nothing else is assumed. The only row of a class counts as an error. The kernel is the fitted
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
        worst += machine.alpha * machine.loss.quadratic.max()
    risky = (worst >= 1) | machine.alone
    rows, unsettled, assumes = machine.rows[risky], machine.rows[:0], ""
    if machine.free and machine.loss_name == "hinge":
        if len(machine) <= MOST_ROWS:
            cleared = np.flatnonzero(~risky)
            doubtful = cleared[~_surely_right(machine, cleared)]
            unsettled = machine.rows[doubtful]
            rows = np.sort(np.concatenate([rows, unsettled]))
        else:
            assumes = _STABLE
    return XiAlphaBound(len(rows), rows, len(machine), unsettled, radius2, allowance, assumes)


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
    spans = squared_spans(machine)
    if spans is None:
        raise ValueError(
            f"{machine.problem.features.kernel!r} is not positive semidefinite on these rows, so "
            "there are no distances to compute a span from. Use leave_one_out, or another kernel."
        )
    margins = machine.signs * span_scores(machine, spans)
    wrong = (margins <= 0) | machine.alone
    return SpanEstimate(int(wrong.sum()), machine.rows[wrong], len(machine), margins, spans)


def _distance(machine: SolvedProblem) -> tuple[float, float]:
    """Return ρ and R²: no squared distance that counts is larger than ρR²."""
    largest = float(machine.diagonal.max())
    if not machine.free:
        return 1.0, max(largest, 0.0)
    every = np.arange(len(machine))
    starts = range(0, len(machine), _BLOCK)
    smallest = min(float(machine.block(every[k : k + _BLOCK], every).min()) for k in starts)
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
    if not machine.free or machine.loss_name != "hinge" or machine.between_bounds.any():
        return slack
    offsets = machine.signs - machine.scores  # to be added to b for y f = 1
    full, positive = machine.alpha > 0, machine.signs > 0
    low, high = offsets[positive != full].max(), offsets[positive == full].min()
    shift = np.where(positive, np.minimum(low, 0.0), np.maximum(high, 0.0))
    return np.asarray(np.maximum(slack, 1.0 - machine.signs * (machine.scores + shift)))


# ------------------------------------------------------------------- intercepts that are not unique
#
# With the hinge and a free intercept, the solution without a row may have no dual strictly between
# its bounds; then a whole interval of intercepts is optimal. What is certain all the same: the
# weights without row t are within r of those with it, r² = 2(P − D), by any primal point P and any
# feasible dual point D of the problem without it. So every difference w·(φ(xⱼ) − φ(x)) is known
# up to r‖φ(xⱼ) − φ(x)‖, and the score c of the left-out row minimises
#
#     Σ Cⱼ max(0, 1 − yⱼ(c + w·(φ(xⱼ) − φ(x)))),
#
# whose slope at 0 is a sum over the rows that are on the wrong side of their kink.


def _surely_right(machine: SolvedProblem, rows: Ints) -> Flags:
    """Return which of these rows every solution without them is proved to classify rightly.

    The machine has the hinge loss and a free intercept. Its solution may have any gap.
    """
    every = np.arange(len(machine))
    K = machine.block(every, every)
    beta = np.asarray(machine.point.beta, dtype=np.float64)
    beta, _ = within_groups(machine.loss, beta, np.zeros(len(every), np.int64), np.zeros(1))
    slopes = machine.signs - K @ beta
    dual = losses.dual_value(machine.loss, beta) - 0.5 * float(beta @ (machine.signs - slopes))
    primal = machine.certificate.primal - machine.bound * machine.slack
    diagonal = machine.diagonal
    found = np.zeros(len(rows), dtype=bool)
    for at, t in enumerate(rows):
        away = np.sqrt(np.maximum(diagonal - 2 * K[t] + diagonal[t], 0.0))
        lost = _bound_loss(machine, beta, slopes, K, away, int(t))
        radius = np.sqrt(2 * max(float(primal[t]) - dual + lost, 0.0))
        found[at] = _is_right(machine, int(t), radius * away)
    return found


def _is_right(machine: SolvedProblem, t: int, errors: Floats) -> bool:
    """Return whether the score of row t has its sign, given the errors of score differences."""
    sign, cost = machine.signs[t], machine.bound
    kinks = machine.signs - (machine.scores - machine.scores[t])
    others = np.ones(len(machine), dtype=bool)
    others[t] = False
    # Of the classes exchanged, the same question is asked about −f.
    beyond = others & (sign * kinks - errors <= 0)
    own = float(cost[others & (machine.signs == sign)].sum())
    return bool(cost[beyond].sum() < own - _ROUNDING * float(cost.sum()))


def _bound_loss(
    machine: SolvedProblem, beta: Floats, slopes: Floats, K: Floats, away: Floats, t: int
) -> float:
    """Return how much of the dual objective is lost at most when the dual of row t has to be 0.

    Other duals take it over: one row that can take it all, or the most willing ones in turn.
    """
    alpha, sign = abs(float(beta[t])), float(machine.signs[t])
    if alpha == 0:
        return 0.0
    capacity = np.where(sign > 0, machine.loss.high - beta, beta - machine.loss.low)
    capacity[t] = 0.0
    gains = sign * (slopes - slopes[t])
    single = np.where(capacity >= alpha, alpha * gains - 0.5 * (alpha * away) ** 2, -np.inf)
    best = float(single.max())
    order = np.argsort(-gains, kind="stable")
    order = order[capacity[order] > 0]
    taken = np.diff(np.minimum(np.cumsum(capacity[order]), alpha), prepend=0.0)
    used = taken > 0
    if taken.sum() < alpha * (1 - 1e-12):
        return -best
    who, amount = np.append(order[used], t), np.append(taken[used], -alpha)
    curve = 0.5 * float(amount @ K[np.ix_(who, who)] @ amount)
    return -max(best, float(taken[used] @ gains[order[used]]) - curve)
