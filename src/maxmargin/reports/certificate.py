"""What is proved about the model, for readers who do not know optimisation.

The optimum lies between the dual and the primal objective. So no other weights can lower the
objective by more than the gap, and, if ½‖w‖² is part of it, better ones are at most √(2·gap) away
from these.
"""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from maxmargin.certificates import Certificate
from maxmargin.certificates.certificate import numbers
from maxmargin.estimators import NuSVC
from maxmargin.inspection.certify_model import certify
from maxmargin.plots.style import short_numbers
from maxmargin.reports.context import Context
from maxmargin.runtime.html import Html, joined, tag

_SECONDS = 5.0  # for the bound of a model that has no duals
_ROUNDING = 1e-8  # relative gaps below this are as good as none
_RECOMPUTED = (
    "The model comes without a proof: this one was computed from X and y, with weight 1 for every "
    "row. It says nothing about a model that was fitted with other weights."
)


class Finding(NamedTuple):
    """What is proved about a model: "proved" or "open", a sentence, and the numbers if any."""

    kind: str
    sentence: str
    certificate: Certificate | None = None
    brought: bool = True


def find_certificate(context: Context) -> Finding:
    """Return what is proved about the model, by its own certificate or by a new one."""
    machine = context.machine
    if hasattr(machine, "mistake_bound_"):
        made, bound = machine.updates_, machine.mistake_bound_
        if np.isfinite(bound):
            return Finding(
                "proved",
                f"It learnt with {made:.0f} corrections. The training rows are separable, so no "
                f"order of visiting them could have taken more than {bound:.6g}.",
            )
        return Finding(
            "open",
            f"It made {made:.0f} corrections. No boundary that separates all training rows was "
            "found, so there is no bound on how many it would go on to make: on classes that "
            "overlap a perceptron never settles.",
        )
    if context.guesses:
        return Finding("open", f"{type(machine).__name__} only guesses: there is nothing to prove.")
    if hasattr(machine, "standard_error_"):
        return Finding(
            "open",
            "There is none to give: the model is a vote, not an optimum. Drawing the voters at "
            f"random leaves a standard error of {machine.standard_error_:.2g} between the classes, "
            f"as {machine.effective_sample_size_:,.0f} independent ones would. "
            f"{machine.stop_reason_}",
        )
    certificate = getattr(machine, "certificate_", None)
    brought = isinstance(certificate, Certificate)
    if not brought:
        with warnings.catch_warnings(), suppress(TypeError, ValueError):
            warnings.simplefilter("ignore")
            rows = context.view.transform(context.X)
            certificate = certify(machine, rows, context.y, max_time=_SECONDS)
    if not isinstance(certificate, Certificate):
        return Finding(
            "open",
            f"There is none: {type(machine).__name__} does not prove how good it is, and nothing "
            "here can. Only held-out rows can tell.",
        )
    kind, sentence = verdict(certificate, _tolerance(machine), _what(context))
    return Finding(kind, context.worded(sentence), certificate, brought)


def proof(context: Context, found: Finding) -> Html:
    """Return the section on what is proved, why the solver stopped, and the numbers."""
    lines = [tag("p", found.sentence, class_=f"verdict {found.kind}")]
    messages = [] if found.brought else [_RECOMPUTED]
    if hasattr(context.machine, "mistake_bound_"):
        messages += _more_of_mistakes(context.machine)
    elif found.certificate is not None:
        messages += _more(found.certificate, context.machine)
    lines += [tag("p", context.worded(message)) for message in messages]
    return joined([*lines, "" if found.certificate is None else numbers(found.certificate)])


def proved(machine: Any) -> bool:
    """Return whether the model has a certificate that proves it."""
    found = getattr(machine, "certificate_", None)
    return isinstance(found, Certificate) and found.holds(_tolerance(machine))


def verdict(found: Certificate, tol: float, what: str) -> tuple[str, str]:
    """Return "proved" or "open", and a sentence."""
    if not np.isfinite(found.dual):
        why = short_numbers(found.caveat) or "there is no bound"
        return "open", f"Nothing is proved: {why}. The model may still predict well."
    gap = max([found.relative_gap, *(part.relative_gap for part in found.parts)])
    if found.holds(tol):
        better = f"can have an objective more than {_hundredths(gap)} % better than this one"
        if gap < _ROUNDING:
            better = "has a better objective, up to rounding (less than 0.000001 %)"
        return "proved", f"Proved: no other {what} {better}."
    if gap <= tol or found.rounding > tol:  # longer fits would not help
        lost = max([found.rounding, -found.relative_gap, *(part.rounding for part in found.parts)])
        return "open", (
            f"Not proved: float64 cannot resolve the objective better than {lost:.2g} of it, and "
            f"{tol:.2g} was asked for."
        )
    better = "a far better objective"
    if gap < 1:  # otherwise the bound may be below 0, which says nothing of an objective
        better = f"an objective up to {_hundredths(gap)} % better"
    return "open", (
        f"Not proved to the precision asked for ({_hundredths(tol)} %): another {what} could have "
        f"{better}. Fit longer (max_iter, max_time), or scale the columns."
    )


def _hundredths(share: float) -> str:
    """Return two digits of a share in percent, written out."""
    return np.format_float_positional(100 * share, 2, fractional=False, trim="-")


def _what(context: Context) -> str:
    if context.regresses:
        return "function of this kind"
    if not context.classifies:
        return "surface of this kernel"
    several = len(context.classes) > 2
    if hasattr(context.machine, "coef_"):
        return "set of hyperplanes" if several else "hyperplane"
    return "set of boundaries of this kernel" if several else "boundary of this kernel"


def _tolerance(machine: Any) -> float:
    tol = getattr(machine, "tol", None)
    ours = type(machine).__module__.startswith("maxmargin")
    return float(tol) if ours and isinstance(tol, int | float) else 1e-3


def _more(found: Certificate, machine: Any) -> Iterator[str]:
    reason = getattr(machine, "stop_reason_", "")
    if reason:
        yield reason
    length = _length(machine)
    if length and np.isfinite(found.distance_bound) and not found.parts:
        share = _hundredths(found.distance_bound / length)
        yield f"The optimal weights differ from these by at most {share} % of their length."
    if found.caveat and np.isfinite(found.dual):
        yield f"The bound rests on this: {found.caveat}."
    yield (
        "This is about the objective on the training rows. How well new rows are predicted is "
        "another question, which only held-out rows can answer."
    )


def _length(machine: Any) -> float:
    """Return ‖w‖ of a single plane in the units of its certificate, 0 if it is unknown."""
    if isinstance(machine, NuSVC):  # its certificate is about w before the margin is made 1
        return 0.0
    if hasattr(machine, "coef_"):
        w = np.asarray(machine.coef_)
        return float(np.linalg.norm(w)) if w.ndim == 1 or len(w) == 1 else 0.0
    margin = np.ravel(getattr(machine, "margin_", ()))
    return 1 / float(margin[0]) if len(margin) == 1 and 0 < margin[0] < np.inf else 0.0


def _more_of_mistakes(machine: Any) -> Iterator[str]:
    if np.isfinite(machine.margin_):
        side = "on the right side" if machine.margin_ > 0 else "on the wrong side"
        yield (
            f"The worst training row is {side}, {abs(machine.margin_):.4g} from the boundary. "
            "A perceptron takes any boundary that will do; HardMarginSVC and SVC find the one with "
            "the widest margin, and prove it."
        )
    yield machine.stop_reason_
