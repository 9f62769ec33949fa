"""What is noted of each C along a path."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin import losses
from maxmargin.certify import Certificate
from maxmargin.model_selection.path_walk import Step
from maxmargin.problem import Intercept, KernelProblem, MulticlassProblem, Status

Floats = npt.NDArray[np.float64]

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
    joint = isinstance(steps[0].problem, MulticlassProblem)
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
        sum(step.outcome.solution.run.seconds for step in steps),
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
    solution, certificate = step.outcome.solution, step.outcome.certificate
    counts, errors = _rows(step)
    alpha = np.zeros(n_rows)
    alpha[kept] = np.abs(solution.beta)
    return Facts(
        None if isinstance(step.problem, KernelProblem) else solution.w,
        certificate.intercept,
        alpha,
        certificate,
        _margin(step),
        _slack_sum(step, C),
        counts,
        errors,
        solution.run.status,
        solution.run.seconds,
    )


def _scores(step: Step) -> Floats:
    return step.scores + step.outcome.certificate.intercept


def _rows(step: Step) -> tuple[dict[str, float], float]:
    """Return how many support vectors are of each kind, and how many rows are wrong.

    All of them are NaN where scores are.
    """
    if np.isnan(step.scores).any():
        return dict.fromkeys(_KINDS, np.nan), np.nan
    functional = step.problem.terms.target * _scores(step)
    slack = np.maximum(0.0, 1 - functional)[step.outcome.solution.beta != 0]
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
    w = step.outcome.solution.w
    square = float(w @ step.scores) if isinstance(step.problem, KernelProblem) else float(w @ w)
    return float(1 / np.sqrt(square)) if not square <= 0 else np.inf


def _slack_sum(step: Step, C: float) -> float:
    return float(losses.values(step.problem.terms, _scores(step)).sum()) / C


def _joint_slack(step: Step, C: float) -> float:
    """Return Σ c·ξ of classes together: what of the objective is not the penalty."""
    solution, problem = step.outcome.solution, step.problem
    penalty = 0.5 * float((solution.w**2).sum())
    if problem.intercept is Intercept.PENALIZED:
        penalty += 0.5 * float(np.sum((np.asarray(solution.b) / problem.lift) ** 2))
    return max(step.outcome.certificate.primal - penalty, 0.0) / C
