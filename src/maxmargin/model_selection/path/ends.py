"""The two ends of a path: below the one α/C is constant, from the other on soft is hard.

With u = α/C at the small end, every row of the lighter class is at its bound (without a free
intercept: every row). Then w = C·Σuyφ, and this stays optimal until the first of those rows reaches
the margin: with v the score Σuyφ·φ(x) of rows of the heavier class on the margin,

    C₀ = 2 / max y(s − v) over the lighter class,        s = Σuyφ·φ(x)

and C₀ = 1 / max y s where there is no free intercept. At the other end every dual of the hard
margin is allowed as soon as C c ≥ α.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from maxmargin._typing import Flags, Floats
from maxmargin.budget import Budget
from maxmargin.estimators import SVC, HardMarginSVC, LinearSVC
from maxmargin.estimators.formulations import Training
from maxmargin.kernels import Linear
from maxmargin.model_selection.path.follow import Step, solve_at
from maxmargin.problems.problem import Intercept, Status
from maxmargin.runtime import clock
from maxmargin.solve import Settings

_AT_BOUND = 1e-6  # of its bound
_TRIES = 8
_MOST_ROWS = 2000  # of a kernel machine, for which the hard margin is searched for: it is n³ work
_SECONDS = 3.0  # for that search, unless there is a max_time
_ROUNDING = 1e-13  # of scores
ALWAYS = "α/C is constant for every C"
_UNASKED = "these Cs do not show it: ends=True searches for it"


class End(NamedTuple):
    """Where an end is, or None, and why."""

    C: float | None
    reason: str


class Hinge(NamedTuple):
    """A binary problem with hinge loss: labels, weights, and whether its intercept is free."""

    signs: Floats
    weight: Floats
    free: bool

    @property
    def lighter(self) -> Flags:
        """The rows of the class with the smaller weight; all rows without a free intercept."""
        if not self.free:
            return np.ones(len(self.signs), dtype=bool)
        return np.asarray(self.signs != np.sign(self.signs @ self.weight))

    @property
    def even(self) -> bool:
        """Whether all duals may be at their bounds: both classes have the same weight."""
        excess = abs(float(self.signs @ self.weight))
        return not self.free or excess <= 1e-12 * float(self.weight.sum())


def read_hinge(problem: Any, C: float = 1.0) -> Hinge | None:
    """Return a problem stated at C as one with hinge loss and ½‖w‖²; None if it is another."""
    if not problem.is_hinge:
        return None
    loss = problem.loss
    bound = np.maximum(-loss.low, loss.high)
    return Hinge(loss.target, bound / C, problem.intercept is Intercept.FREE)


def find_small_end(
    problems: list[Any], settings: Settings, budget: Budget, max_time: float | None
) -> End:
    """Find the C below which α/C is constant."""
    hinges = [read_hinge(problem) for problem in problems]
    try:
        with clock.limited(max_time):
            found = [
                hinge and _search_small(problem, hinge, settings, budget)
                for problem, hinge in zip(problems, hinges, strict=True)
            ]
    except clock.OutOfTimeError:
        return End(None, "max_time ran out before it was found")
    return _smallest(hinges, found, "no C was found at which they are")


def read_small_end(steps: list[Step]) -> End:
    """Read the same from steps at a C that is at most that, without any more work."""
    hinges = [read_hinge(step.problem, step.C) for step in steps]
    found = [
        _reach(step, hinge) if hinge is not None and _at_bound(step, hinge.lighter) else None
        for hinge, step in zip(hinges, steps, strict=True)
    ]
    return _smallest(hinges, found, _UNASKED)


def _smallest(hinges: list[Hinge | None], found: list[float | None], otherwise: str) -> End:
    if any(hinge is None for hinge in hinges):
        return End(None, "only searched for in binary problems with the hinge loss and ½‖w‖²")
    known = [value for value in found if value is not None]
    if len(known) < len(hinges):
        return End(None, otherwise)
    if min(known) == np.inf:
        return End(np.inf, ALWAYS)
    free = any(hinge is not None and hinge.free for hinge in hinges)
    whose = "of the lighter class " if free else ""
    return End(min(known), f"below it every dual {whose}is at its bound, and α = C·constant")


def _search_small(problem: Any, hinge: Hinge, settings: Settings, budget: Budget) -> float | None:
    (y, c, _), lighter = hinge, hinge.lighter
    if hinge.even:
        return _full_reach(_products(problem, c * y), hinge)
    u = np.where(lighter, c, c * c[lighter].sum() / c[~lighter].sum())
    s = _products(problem, u * y)
    C = _over(1.0, float((y * (s - s[~lighter].mean()))[lighter].max()), s)
    if np.inf == C:  # on average the lighter class is not apart: any C may do
        C = _over(1.0, float(np.abs(s).max()), s[:0])
        C = C if np.isfinite(C) else 1.0
    for _ in range(_TRIES):
        clock.check()
        step = solve_at(problem, C, settings, budget)
        if not _at_bound(step, lighter):
            C *= 0.2
            continue
        reach = _reach(step, hinge)
        if not np.isfinite(reach) or reach < 5 * C:
            return reach
        C = 0.8 * reach  # nearer to the end α is known more precisely
    return None


def _full_reach(s: Floats, hinge: Hinge) -> float:
    """Return up to what C all duals may be at their bounds; s are the scores at C = 1."""
    y, _, free = hinge
    if free:
        return _over(2.0, float(s[y > 0].max() - s[y < 0].min()), s)
    return _over(1.0, float((y * s).max()), s)


def _over(numerator: float, value: float, scores: Floats) -> float:
    """Return numerator / value; infinite where the value is rounding of these scores, or below."""
    rounding = _ROUNDING * float(np.abs(scores).max(initial=0.0))
    return float(numerator / value) if value > rounding else np.inf


def _at_bound(step: Step, rows: Flags) -> bool:
    terms = step.problem.loss
    bound = np.maximum(-terms.low, terms.high)
    return bool((np.abs(step.result.point.beta) >= (1 - _AT_BOUND) * bound)[rows].all())


def _reach(step: Step, hinge: Hinge) -> float:
    """Return up to what C a solution in which all of the lighter class is at its bound goes."""
    (y, c, free), lighter, C = hinge, hinge.lighter, step.C
    if hinge.even:
        # A free intercept does not matter here; one that is penalised belongs to the weights.
        own = 0.0 if free else step.result.certificate.intercept
        return _full_reach((step.scores + own) / C, hinge)
    s, u = step.scores / C, np.abs(step.result.point.beta) / C
    heavier = -y[lighter][0]
    between = ~lighter & (u > 1e-3 * c) & (u < (1 - 1e-3) * c)
    level = float(np.median(s[between])) if between.any() else None
    if level is None:
        inside = ~lighter & (u >= (1 - 1e-3) * c)
        level = heavier * float((heavier * s[inside]).max())
    return _over(2.0, float((-heavier * (s[lighter] - level)).max()), s)


def _products(problem: Any, beta: Floats) -> Floats:
    """Return Σβφ·φ(x) of each row."""
    features = problem.features
    return np.asarray(features.scores(features.combine(problem.by_row(beta)))[problem.row])


# ------------------------------------------------------------------- the hard end


def read_hard_end(steps: list[list[Step]], tol: float) -> End:
    """Read where the steps (problems, Cs) show that no row is inside any margin, if they do."""
    for at_C in zip(*steps, strict=True):
        largest = [_without_slack(step, tol) for step in at_C]
        if None not in largest:
            return End(
                max(value for value in largest if value is not None),
                "the largest dual of a solution without slack, seen on the path",
            )
    return End(None, _UNASKED)


def _without_slack(step: Step, tol: float) -> float | None:
    """Return the largest α/c of a solution without slack and with no dual at its bound."""
    hinge = read_hinge(step.problem, step.C)
    if hinge is None:
        return None
    largest = float((np.abs(step.result.point.beta) / hinge.weight).max())
    f = step.scores + step.result.certificate.intercept
    slack = float(np.maximum(0.0, 1 - hinge.signs * f).max())
    return None if largest >= (1 - _AT_BOUND) * step.C or slack > np.sqrt(tol) else largest


def find_hard_end(estimator: Any, problem: Any, training: Training, max_time: float | None) -> End:
    """Find the C from which on the soft margin is the hard one, from the hard margin itself."""
    if not isinstance(estimator, LinearSVC | SVC):
        return End(None, "a regression has no hard margin")
    linear = isinstance(estimator, LinearSVC)
    if linear and (estimator.loss, estimator.penalty) != ("hinge", "l2"):
        return End(None, f"loss={estimator.loss!r} with penalty={estimator.penalty!r} is hard in "
                   "the limit only")  # fmt: skip
    if estimator.multi_class == "crammer_singer":
        return End(None, "not searched for with multi_class='crammer_singer'")
    X, n, kernel = training.X, len(training), problem.features.kernel
    if not linear and type(kernel) is not Linear and n > _MOST_ROWS:
        return End(None, f"not searched for with {n} rows: fit HardMarginSVC(kernel=…)")
    intercept = getattr(estimator, "intercept", "free") if estimator.fit_intercept else "none"
    if intercept == "penalized":
        column = np.full((n, 1), float(estimator.intercept_scaling))
        X = sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])
    hard = HardMarginSVC(
        kernel="linear" if linear else kernel,
        intercept="free" if intercept == "free" else "none",
        multi_class=estimator.multi_class,
        max_time=_SECONDS if max_time is None else max(max_time, 0.001),
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the reason says it
            hard.fit(X, training.y, sample_weight=training.weight)
    except ValueError as refused:  # the classes overlap, or the kernel is not one
        return End(None, str(refused))
    if hard.status_ is not Status.OPTIMAL:
        return End(None, hard.stop_reason_)
    return End(
        float((np.atleast_2d(hard.alpha_) / training.weight).max()),
        "from here on every dual of the hard margin is within its bound",
    )
