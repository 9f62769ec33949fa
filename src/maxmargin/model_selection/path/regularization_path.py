"""The regularization path: one machine for every C, at little more than the cost of one."""

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin._typing import Floats
from maxmargin.budget import Budget
from maxmargin.certificates import Certificate
from maxmargin.errors import warn
from maxmargin.estimators import SVC, SVR, LinearSVC, LinearSVR
from maxmargin.estimators.formulations import Training
from maxmargin.estimators.machine import solver_settings
from maxmargin.model_selection.path.ends import (
    ALWAYS,
    End,
    find_hard_end,
    find_small_end,
    read_hard_end,
    read_small_end,
)
from maxmargin.model_selection.path.exact import ExactPath, ExactSolutions, solve_exactly
from maxmargin.model_selection.path.follow import Step, solve_at, solve_path
from maxmargin.model_selection.path.result import RegularizationPath
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, Problem, Status
from maxmargin.runtime.progress import Bar, progress
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.solve import Settings
from maxmargin.validation.data import refuse_swapped
from maxmargin.validation.parameters import shown

_DECADES = 6  # from the small end upwards, where classes overlap
_MOST_DECADES = 9
_ENDS_PART = 0.2  # of max_time, for the search of either end


def regularization_path(
    X: Any,
    y: Any,
    estimator: Any = None,
    *,
    Cs: Any = 20,
    sample_weight: Any = None,
    tol: float | None = None,
    exact: bool | str = "auto",
    ends: bool | str = "auto",
) -> RegularizationPath:
    """Solve a machine for one C after the other, every solution certified.

    Each solution starts from the one before, kernel values are computed once for all, and so are
    the certificates. For two classes, hinge loss and few rows the path is exact: α is piecewise
    linear in C, and all its breakpoints are found.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Rows, as the estimator takes them.
    y : array-like of shape (n_samples,)
        Labels, or numbers for a regression.
    estimator : LinearSVC, SVC, LinearSVR or SVR, default=None
        Its parameters other than C are used; None: ``LinearSVC()``. Its ``max_time`` limits the
        path as a whole (except an exact one), ``max_iter`` each C.
    Cs : int, "auto" or array-like, default=20
        Costs of slack, in any order; or how many, evenly spaced on a logarithmic scale from one end
        of the path to the other ("auto": 20). If the classes overlap, the path ends at 10⁶ times
        its small end.
    sample_weight : array-like of shape (n_samples,), optional
        How many times each row counts.
    tol : float, optional
        Relative duality gap of every solution; None: the estimator's.
    exact : "auto", True or False, default="auto"
        Whether to compute the exact path. "auto": for up to 300 rows. True: for up to 2000 rows,
        and an error if there is no exact path.
    ends : "auto", True or False, default="auto"
        Whether to search for the ends of the path if neither an exact path nor the Cs themselves
        show them. "auto": if the Cs are to be chosen.

    Returns
    -------
    RegularizationPath

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(80, random_state=0)
    >>> path = mm.regularization_path(X, y, mm.SVC(gamma=1.0), Cs=[0.01, 1.0, 100.0])
    >>> path.certified
    True
    >>> path.model(1.0).score(X, y)
    1.0
    """
    refuse_swapped("regularization_path(X, y, estimator)", estimator, X, y)
    machine = _check_estimator(estimator, tol)
    _check_choice("exact", exact)
    _check_choice("ends", ends)
    costs = _check_costs(Cs)
    quiet, most = bool(machine.verbose), machine.max_time
    own = progress("Following the path", unit="point", max_time=most, quiet=quiet)
    with one_blas_thread(), own as bar:
        return _follow(machine, (X, y, sample_weight), costs, exact, ends, bar)


def _follow(
    machine: Any,
    data: tuple[Any, Any, Any],
    costs: int | Floats,
    exact: bool | str,
    ends: bool | str,
    bar: Bar,
) -> RegularizationPath:
    machine.set_params(C=1.0, warm_start=False)
    formulated = machine.formulate(*data)
    problems, settings = formulated.problems, solver_settings(machine)
    budget = Budget(machine.max_time)
    last = np.inf if isinstance(costs, int) else float(costs[-1])
    found, exact_reason = solve_exactly(problems, exact, last)
    small, hard = (None, None) if found is None else _exact_ends(found.path)
    if isinstance(costs, int) or ends is True:
        part = None if budget.left is None else _ENDS_PART * budget.left
        small = small or find_small_end(problems, settings, budget, part)
        hard = hard or find_hard_end(machine, problems[0], formulated.data, part)
    Cs = _spread(costs, small, hard) if isinstance(costs, int) else costs
    known = [] if found is None else found.steps(Cs, float(machine.tol))
    steps = [known]
    if len(known) < len(Cs):
        steps = solve_path(problems, Cs[len(known) :], settings, budget, bar)
        steps[0][:0] = known
    small = small or read_small_end([of_problem[0] for of_problem in steps])
    hard = hard or read_hard_end(steps, float(machine.tol))
    models = PathModels(machine, data, problems, settings, found, steps)
    facts = [_read_facts(models, formulated.data, list(at_C)) for at_C in zip(*steps, strict=True)]
    path = _join(facts, Cs, models, small, hard, exact_reason)
    uncertain = sum(not certificate.holds(path.tol) for certificate in path.certificates)
    if uncertain:
        warn(
            f"{uncertain} of {len(Cs)} solutions are not certified at tol={path.tol:g}: see "
            "statuses and certificates.",
            ConvergenceWarning,
        )
    return path


def _exact_ends(path: ExactPath) -> tuple[End | None, End | None]:
    """Return the ends that an exact path shows."""
    breakpoints, hard = path.breakpoints, None
    if path.hard and len(breakpoints):
        hard = End(float(breakpoints[-1]), "the last breakpoint of the exact path")
    elif path.end == np.inf:
        hard = End(None, "the classes overlap: rows stay inside the margin for every C")
    if len(breakpoints):
        return End(float(breakpoints[0]), "the first breakpoint of the exact path"), hard
    if path.end == np.inf:
        return End(np.inf, ALWAYS), hard
    return End(None, "α/C is constant up to the largest C"), hard


def _spread(count: int, small: End | None, hard: End | None) -> Floats:
    """Return this many Cs from end to end."""
    first = None if small is None else small.C
    if first is None or not np.isfinite(first) or first <= 1e-300:
        first = 1e-3
    last = first * 10.0**_DECADES
    if hard is not None and hard.C is not None:
        last = min(hard.C, first * 10.0**_MOST_DECADES)
    return np.geomspace(first, max(last, first * 10), count)


@dataclass(frozen=True, eq=False)
class PathModels:
    """The solutions of a path, and a model for any C."""

    machine: Any  # with C = 1
    data: tuple[Any, Any, Any]  # X, y, sample_weight
    problems: list[Any]  # at C = 1
    settings: Settings
    exact: ExactSolutions | None
    steps: list[list[Step]]  # by problem, then C

    def model(self, C: float) -> Any:
        """Return the model at any C."""
        if self.exact is not None:
            found = self.exact.steps(np.array([C]), float(self.machine.tol))
            if found:
                return self.adopt(found)
        near = min(zip(*self.steps, strict=True), key=lambda at_C: abs(np.log(at_C[0].C / C)))
        if near[0].C == C:
            return self.adopt(list(near))
        budget = Budget(self.machine.max_time)
        return self.adopt(
            [
                solve_at(problem, C, self.settings, budget, step)
                for problem, step in zip(self.problems, near, strict=True)
            ]
        )

    def adopt(self, steps: list[Step], **parameters: Any) -> Any:
        """Return a copy of the estimator with the solutions at one C; the path reports them."""
        model = clone(self.machine).set_params(C=steps[0].C, **parameters)
        formulated = model.formulate(*self.data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", message="(?s).*not certified")
            return model.adopt(formulated, [step.result for step in steps])


# ------------------------------------------------------------------- what is noted of each C


_KINDS = ("margin", "inside", "wrong side")


class Facts(NamedTuple):
    """One C: the model's numbers, each with an axis over problems if there are several."""

    coef: Any
    intercept: Any
    alpha: Floats
    certificate: Certificate
    margin: Any
    slack_sum: Any
    counts: dict[str, Any]
    errors: Any
    status: Status
    seconds: float


def _read_facts(models: PathModels, training: Training, steps: list[Step]) -> Facts:
    if training.classes is None or len(training.classes) > 2:
        # Facts need no probabilities, which would cost more than the rest.
        scores_only = {} if training.classes is None else {"probability": False}
        return _model_facts(models.adopt(steps, **scores_only), steps)
    # Two classes need no model, for which there may be no time.
    (step,) = steps
    counts, errors = _count_rows(step)
    alpha = np.zeros(training.n_rows)
    alpha[training.kept] = np.abs(step.result.point.beta)
    return Facts(
        step.problem.features.coef(step.result.point.w),
        step.result.certificate.intercept,
        alpha,
        step.result.certificate,
        _margin(step),
        _slack_sum(step),
        counts,
        errors,
        step.result.status,
        step.result.seconds,
    )


def _model_facts(model: Any, steps: list[Step]) -> Facts:
    """Return the facts of a fitted model and the steps it was made of."""
    joint = getattr(model, "multi_class", "") == "crammer_singer" and len(model.classes_) > 2
    if hasattr(model, "classes_") and not joint:
        seen = [_count_rows(step) for step in steps]
        counts: dict[str, Any] = {kind: np.array([n[kind] for n, _ in seen]) for kind in _KINDS}
        errors: Any = np.array([wrong for _, wrong in seen])
    else:
        names = _KINDS if joint else ("on the tube", "outside")
        counts = {kind: int((model.support_kind_ == kind).sum()) for kind in names}
        errors = int((model.slack_ >= 1.0).sum()) if joint else counts["outside"]
    several = joint or len(steps) > 1 or len(model.intercept_) > 1
    coef = getattr(model, "coef_", None)
    slacks = [_slack_sum(step) for step in steps]
    margins = model.margin_ if joint else [_margin(step) for step in steps]
    return Facts(
        coef if coef is None or several else np.ravel(coef),
        model.intercept_ if several else float(model.intercept_[0]),
        model.alpha_,
        model.certificate_,
        margins if several else margins[0],
        slacks if several and not joint else slacks[0],
        counts,
        errors,
        model.status_,
        sum(step.result.seconds for step in steps),
    )


def _count_rows(step: Step) -> tuple[dict[str, float], float]:
    """Return how many support vectors are of each kind, and how many rows are wrong.

    All of these are NaN if the scores are.
    """
    if np.isnan(step.scores).any():
        return dict.fromkeys(_KINDS, np.nan), np.nan
    functional = step.problem.loss.target * (step.scores + step.result.certificate.intercept)
    kinds = losses.support_kinds((1 - functional)[step.result.point.beta != 0])
    return {kind: int((kinds == kind).sum()) for kind in _KINDS}, int((functional <= 0).sum())


def _margin(step: Step) -> float:
    """Return 1/‖w‖."""
    square = step.problem.features.squared_length(step.result.point.w, step.scores)
    return float(1 / np.sqrt(square)) if not square <= 0 else np.inf


def _slack_sum(step: Step) -> float:
    """Return Σ c·ξ."""
    problem, point, certificate = step.problem, step.result.point, step.result.certificate
    if isinstance(problem, Problem):
        return (
            float(losses.values(problem.loss, step.scores + certificate.intercept).sum()) / step.C
        )
    # Of classes together: what of the objective is not the penalty.
    penalty = 0.5 * float(problem.features.squared_length(point.w, step.scores))
    if problem.intercept is Intercept.PENALIZED:
        penalty += 0.5 * float(np.sum((np.asarray(point.b) / problem.features.constant) ** 2))
    return max(certificate.primal - penalty, 0.0) / step.C


def _join(
    facts: list[Facts], Cs: Floats, models: PathModels, small: End, hard: End, exact_reason: str
) -> RegularizationPath:
    first, exact = facts[0], models.exact
    return RegularizationPath(
        Cs=Cs,
        coefs=None if first.coef is None else np.array([fact.coef for fact in facts]),
        intercepts=np.array([fact.intercept for fact in facts]),
        alphas=np.array([fact.alpha for fact in facts]),
        certificates=tuple(fact.certificate for fact in facts),
        margins=np.array([fact.margin for fact in facts]),
        slack_sums=np.array([fact.slack_sum for fact in facts]),
        support_counts={
            kind: np.array([fact.counts[kind] for fact in facts]) for kind in first.counts
        },
        training_errors=np.array([fact.errors for fact in facts]),
        statuses=tuple(fact.status for fact in facts),
        seconds=np.array([fact.seconds for fact in facts]),
        small_C=small.C,
        small_C_reason=small.reason,
        hard_C=hard.C,
        hard_C_reason=hard.reason,
        breakpoints=None if exact is None else exact.path.breakpoints,
        exact_until=0.0 if exact is None else float(exact.path.end),
        exact_reason=exact_reason,
        tol=float(models.machine.tol),
        estimator=clone(models.machine),
        _models=models,
    )


# ------------------------------------------------------------------- arguments


def _check_estimator(estimator: Any, tol: float | None) -> Any:
    if estimator is None:
        estimator = LinearSVC()
    if not isinstance(estimator, LinearSVC | SVC | LinearSVR | SVR):
        raise TypeError(
            f"estimator={shown(estimator)} has no path along C: choose LinearSVC, SVC, LinearSVR "
            "or SVR."
        )
    machine = clone(estimator)
    return machine if tol is None else machine.set_params(tol=tol)


def _check_choice(name: str, value: Any) -> None:
    if not (isinstance(value, bool) or (isinstance(value, str) and value == "auto")):
        raise ValueError(f"{name}={value!r} is not valid: choose 'auto', True or False.")


def _check_costs(Cs: Any) -> int | Floats:
    """Return the number of Cs, or the Cs themselves, ascending."""
    if Cs is None or (isinstance(Cs, str) and Cs == "auto"):
        return 20
    if isinstance(Cs, Integral) and not isinstance(Cs, bool):
        if Cs < 2:
            raise ValueError(f"Cs={Cs!r} is not valid: a path has at least 2 of them.")
        return int(Cs)
    wrong = "it must be a number of costs, 'auto', or an array of finite numbers > 0."
    try:
        costs = np.unique(np.asarray(Cs, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"Cs={Cs!r} is not valid: {wrong}") from None
    if np.ndim(Cs) != 1 or not len(costs) or not (np.isfinite(costs) & (costs > 0)).all():
        raise ValueError(f"Cs={Cs!r} is not valid: {wrong}")
    return costs
