"""The regularization path: one machine for every C, at little more than the cost of one."""

import warnings
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import clock
from maxmargin._typing import Floats
from maxmargin.certificates import Certificate
from maxmargin.estimators import SVC, SVR, LinearSVC, LinearSVR
from maxmargin.estimators.machine import Formulated, solver_settings
from maxmargin.model_selection.path.ends import (
    ALWAYS,
    End,
    PathData,
    hard_end,
    seen_hard,
    seen_small,
    small_end,
)
from maxmargin.model_selection.path.exact import (
    FEW_ROWS,
    MOST_ROWS,
    ExactSolutions,
    refused,
)
from maxmargin.model_selection.path.follow import PathPoint, Step, Walker
from maxmargin.model_selection.path.result import RegularizationPath
from maxmargin.problems import losses
from maxmargin.problems.problem import Intercept, Status
from maxmargin.progress import Bar, progress
from maxmargin.solve import Budget
from maxmargin.threads import one_blas_thread
from maxmargin.validation.data import refuse_swapped
from maxmargin.validation.parameters import shown

# ------------------------------------------------------------------- path facts
#
# What is noted of each C along a path.


_ON_MARGIN = 1e-5  # slack up to which a support vector counts as lying on the margin
_KINDS = ("margin", "inside", "wrong side")
_TUBE = ("on the tube", "outside")


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


def facts_of(model: Any, steps: list[Step], C: float) -> Facts:
    """Return the facts of a fitted model and the steps it was made of."""
    joint = getattr(model, "multi_class", "") == "crammer_singer" and len(model.classes_) > 2
    if hasattr(model, "classes_") and not joint:
        seen = [_rows(step) for step in steps]
        counts: dict[str, Any] = {kind: np.array([n[kind] for n, _ in seen]) for kind in _KINDS}
        errors: Any = np.array([wrong for _, wrong in seen])
    else:
        counts, errors = _by_model(model)
    coef = getattr(model, "coef_", None)
    margin = model.margin_ if joint else np.array([_margin(step) for step in steps])
    slack = _joint_slack(steps[0], C) if joint else np.array([_slack_sum(s, C) for s in steps])
    facts = Facts(
        None if coef is None else np.array(coef),
        np.array(model.intercept_),
        np.array(model.alpha_),
        model.certificate_,
        margin,
        slack,
        counts,
        errors,
        model.status_,
        sum(step.result.seconds for step in steps),
    )
    several = joint or len(steps) > 1 or len(facts.intercept) > 1
    return facts if several else _of_one(facts)


def _of_one(facts: Facts) -> Facts:
    """Return the facts of a single problem without the axis over problems."""
    return facts._replace(
        coef=None if facts.coef is None else np.ravel(facts.coef),
        intercept=float(facts.intercept[0]),
        margin=float(facts.margin[0]),
        slack_sum=float(facts.slack_sum[0]),
        counts={kind: int(np.ravel(n)[0]) for kind, n in facts.counts.items()},
        errors=int(np.ravel(facts.errors)[0]),
    )


def binary_facts(step: Step, kept: npt.NDArray[np.int64], n_rows: int, C: float) -> Facts:
    """Return the facts of a classifier of two classes, for which no model is needed."""
    point, certificate = step.result.point, step.result.certificate
    counts, errors = _rows(step)
    alpha = np.zeros(n_rows)
    alpha[kept] = np.abs(point.beta)
    return Facts(
        step.problem.features.coef(point.w),
        certificate.intercept,
        alpha,
        certificate,
        _margin(step),
        _slack_sum(step, C),
        counts,
        errors,
        step.result.status,
        step.result.seconds,
    )


def _scores(step: Step) -> Floats:
    return step.scores + step.result.certificate.intercept


def _rows(step: Step) -> tuple[dict[str, float], float]:
    """Return how many support vectors are of each kind, and how many rows are wrong.

    All of them are NaN where scores are.
    """
    if np.isnan(step.scores).any():
        return dict.fromkeys(_KINDS, np.nan), np.nan
    functional = step.problem.loss.target * _scores(step)
    slack = np.maximum(0.0, 1 - functional)[step.result.point.beta != 0]
    on, inside = slack <= _ON_MARGIN, slack <= 1.0
    counts = (on.sum(), (inside & ~on).sum(), (~inside).sum())
    return dict(zip(_KINDS, map(int, counts), strict=True)), int((functional <= 0).sum())


def _by_model(model: Any) -> tuple[dict[str, Any], Any]:
    """Return the same for regressions and joint classes, as the model tells it."""
    kinds = model.support_kind_
    names = _KINDS if hasattr(model, "classes_") else _TUBE
    counts = {kind: int((kinds == kind).sum()) for kind in names}
    errors = int((model.slack_ >= 1.0).sum()) if names is _KINDS else counts["outside"]
    return counts, errors


def _margin(step: Step) -> float:
    """Return 1/‖w‖."""
    square = step.problem.features.squared_length(step.result.point.w, step.scores)
    return float(1 / np.sqrt(square)) if not square <= 0 else np.inf


def _slack_sum(step: Step, C: float) -> float:
    return float(losses.values(step.problem.loss, _scores(step)).sum()) / C


def _joint_slack(step: Step, C: float) -> float:
    """Return Σ c·ξ of classes together: what of the objective is not the penalty."""
    point, problem = step.result.point, step.problem
    penalty = 0.5 * float((point.w**2).sum())
    if problem.intercept is Intercept.PENALIZED:
        penalty += 0.5 * float(np.sum((np.asarray(point.b) / problem.features.constant) ** 2))
    return max(step.result.certificate.primal - penalty, 0.0) / C


# ------------------------------------------------------------------- the path


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
        Its parameters other than C are used; None: ``LinearSVC()``. Its ``max_time`` is for the
        path as a whole (but for an exact one), ``max_iter`` for each C.
    Cs : int, "auto" or array-like, default=20
        Costs of slack, in any order; or how many, evenly spaced on a logarithmic scale from one end
        of the path to the other ("auto": 20). Where the classes overlap the other end is taken to
        be 10⁶ times the small one.
    sample_weight : array-like of shape (n_samples,), optional
        How many times each row counts.
    tol : float, optional
        Relative duality gap of every solution; None: the estimator's.
    exact : "auto", True or False, default="auto"
        Whether to compute the exact path. "auto": up to 300 rows. True: up to 2000 rows, and an
        error where there is no exact path.
    ends : "auto", True or False, default="auto"
        Whether to look for the ends of the path where an exact path, or the Cs themselves, do not
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
    machine = _checked(estimator, tol)
    _check_choice("exact", exact)
    _check_choice("ends", ends)
    costs = _checked_costs(Cs)
    data = PathData(X, y, sample_weight)
    quiet, most = bool(machine.verbose), machine.max_time
    own = progress("Following the path", unit="point", max_time=most, quiet=quiet)
    with one_blas_thread(), own as bar:
        return _followed(machine, data, costs, exact, ends, bar)


def _followed(
    machine: Any, data: PathData, costs: int | Floats, exact: bool | str, ends: bool | str, bar: Bar
) -> RegularizationPath:
    budget = Budget(machine.max_time)
    machine.set_params(C=1.0, warm_start=False)
    formulated = machine.formulate(*data)
    walker = Walker(formulated.problems, 1.0, solver_settings(machine), budget)
    trip = _Trip(machine, data, walker, formulated)
    last = np.inf if isinstance(costs, int) else float(costs[-1])
    trip.go_exactly(exact, last)
    wanted = isinstance(costs, int) if ends == "auto" else bool(ends)
    if isinstance(costs, int) or wanted:
        trip.find_ends()
    if isinstance(costs, int):
        costs = trip.spread(costs)
    return trip.along(costs, bar)


class _Trip:
    """One path: what was found of it so far. It also makes models, once it is complete."""

    def __init__(
        self, machine: Any, data: PathData, walker: Walker, formulated: Formulated
    ) -> None:
        self.machine, self.data, self.walker = machine, data, walker
        self.formulated, self.classes = formulated, formulated.data.classes
        self.exact: ExactSolutions | None = None
        self.exact_reason = "not asked for"
        self.small: End | None = None
        self.hard: End | None = None
        self.Cs: Floats = np.empty(0)
        self.steps: list[list[Step]] = []  # by problem, then C

    def go_exactly(self, exact: bool | str, last: float) -> None:
        """Compute the exact path if it is wanted."""
        if exact is False:
            return
        most = MOST_ROWS if exact is True else FEW_ROWS
        reason = refused(self.walker.problems, self.walker.C, most)
        self.exact_reason = reason
        if reason and exact is True:
            raise ValueError(f"exact=True is not possible: {reason}. Use exact='auto'.")
        if reason:
            return
        found = ExactSolutions(self.walker.problems[0], self.walker.C, last)
        self.exact_reason = found.path.reason
        if not len(found.path.segments):
            return
        self.exact = found
        breakpoints = found.path.breakpoints
        if len(breakpoints):
            self.small = End(float(breakpoints[0]), "the first breakpoint of the exact path")
        elif found.path.end == np.inf:
            self.small = End(np.inf, ALWAYS)
        else:
            self.small = End(None, "α/C is constant up to the largest C")
        if found.path.hard and len(breakpoints):
            self.hard = End(float(breakpoints[-1]), "the last breakpoint of the exact path")
        elif found.path.end == np.inf:
            self.hard = End(None, "the classes overlap: rows stay inside the margin for every C")

    def find_ends(self) -> None:
        """Look for the ends that are not known yet, each in a part of the time there is."""
        problem, left = self.walker.problems[0], self.walker.budget.left
        part = None if left is None else _ENDS_PART * left
        try:
            with clock.limited(part):
                self.small = self.small or small_end(self.walker)
        except clock.OutOfTimeError:
            self.small = End(None, "max_time ran out before it was found")
        self.hard = self.hard or hard_end(self.machine, self.classes, problem, self.data, part)

    def spread(self, count: int) -> Floats:
        """Return so many Cs from end to end."""
        small = None if self.small is None else self.small.C
        first = small if small is not None and np.isfinite(small) and small > 1e-300 else 1e-3
        hard = None if self.hard is None else self.hard.C
        last = first * 10.0**_DECADES if hard is None else min(hard, first * 10.0**_MOST_DECADES)
        return np.geomspace(first, max(last, first * 10), count)

    def along(self, Cs: Floats, bar: Bar) -> RegularizationPath:
        """Solve for every C, and return what the path is."""
        self.Cs, self.steps = Cs, self._steps(Cs, bar)
        tol = float(self.machine.tol)
        if self.small is None:
            self.small = seen_small([steps[0] for steps in self.steps], float(Cs[0]))
        if self.hard is None:
            self.hard = seen_hard(self.steps, Cs, tol)
        columns = list(zip(*self.steps, strict=True))
        facts = [self._facts(list(steps), C) for C, steps in zip(Cs.tolist(), columns, strict=True)]
        path = self._path(facts, tol)
        uncertain = sum(not certificate.holds(tol) for certificate in path.certificates)
        if uncertain:
            warnings.warn(
                f"{uncertain} of {len(Cs)} solutions are not certified at tol={tol:g}: see "
                "statuses and certificates.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return path

    def _facts(self, steps: list[Step], C: float) -> Facts:
        if self.classes is None or len(self.classes) > 2:
            return facts_of(self._model(C, steps), steps, C)
        training = self.formulated.data
        return binary_facts(steps[0], training.kept, training.n_rows, C)

    def _steps(self, Cs: Floats, bar: Bar) -> list[list[Step]]:
        until = 0.0 if self.exact is None else self.exact.path.end
        tol = float(self.machine.tol)
        known = [] if self.exact is None else [self.exact.step(C, tol) for C in Cs[Cs <= until]]
        known = known[: _held(known, tol)]
        rest = Cs[len(known) :]
        if not len(rest):
            return [known]
        walked = self.walker.walk(rest, bar)
        return [known + walked[0]] if known else walked

    def _path(self, facts: list[Facts], tol: float) -> RegularizationPath:
        first = facts[0]
        small, hard, exact = self.small, self.hard, self.exact
        assert small is not None
        assert hard is not None
        return RegularizationPath(
            Cs=self.Cs,
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
            exact_reason=self.exact_reason,
            tol=tol,
            estimator=clone(self.machine),
            _maker=self,
        )

    def _model(self, C: float, steps: list[Step]) -> Any:
        """Return a copy of the estimator with the solutions at C; the path says how they ended."""
        model = clone(self.machine).set_params(C=float(C))
        formulated = model.formulate(*self.data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", message="(?s).*not certified")
            return model.adopt(formulated, [step.result for step in steps])

    def model(self, C: float) -> Any:
        """Return the model at any C."""
        tol = float(self.machine.tol)
        if self.exact is not None and self.exact.path.end >= C:
            step = self.exact.step(C, tol)
            if step.result.certificate.holds(tol):
                return self._model(C, [step])
        nearest = int(np.abs(np.log(self.Cs / C)).argmin())
        if self.Cs[nearest] == C:
            return self._model(C, [steps[nearest] for steps in self.steps])
        self.walker.budget = Budget(self.machine.max_time)
        last = float(self.Cs[nearest])
        near = [PathPoint(last, steps[nearest].result.point) for steps in self.steps]
        return self._model(C, [self.walker.again(k, C, at) for k, at in enumerate(near)])


def _held(steps: list[Step], tol: float) -> int:
    """Return how many of the first steps are certified."""
    good = [step.result.certificate.holds(tol) for step in steps]
    return good.index(False) if False in good else len(good)


# ------------------------------------------------------------------- arguments


def _checked(estimator: Any, tol: float | None) -> Any:
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


def _checked_costs(Cs: Any) -> int | Floats:
    """Return how many Cs there are to be, or the Cs, ascending."""
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
