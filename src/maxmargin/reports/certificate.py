"""What is proved about the model, for readers who do not know optimisation.

The optimum lies between the dual and the primal objective. So no other weights can lower the
objective by more than the gap.
"""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from maxmargin.certificates import Certificate
from maxmargin.certificates.certificate import numbers
from maxmargin.inspection.certify_model import certify
from maxmargin.reports.context import Context
from maxmargin.runtime.html import Html, joined, tag

_SECONDS = 5.0  # for the bound of a model that has no duals
_ROUNDING = 1e-8  # relative gaps below this are as good as none
_RECOMPUTED = (
    "The model comes without a proof: this one was computed from X and y, with weight 1 for every "
    "row. It says nothing about a model that was fitted with other weights."
)
_ABOUT_TRAINING = (
    "This is about the objective on the training rows. How well new rows are predicted is another "
    "question, which only held-out rows can answer."
)


class Finding(NamedTuple):
    """What is proved about a model: whether anything is, a sentence, and the numbers if any."""

    proved: bool
    sentence: str
    certificate: Certificate | None = None
    brought: bool = True


def find_certificate(context: Context) -> Finding:
    """Return what is proved about the model, by its own certificate or by a new one."""
    machine = context.machine
    name = type(machine).__name__
    if hasattr(machine, "mistake_bound_"):
        return _find_mistake_bound(machine)
    if context.guesses:
        return Finding(False, f"{name} only guesses: there is nothing to prove.")
    certificate = getattr(machine, "certificate_", None)
    brought = isinstance(certificate, Certificate)
    if not brought:
        with warnings.catch_warnings(), suppress(TypeError, ValueError):
            warnings.simplefilter("ignore")
            rows = context.view.transform(context.X)
            certificate = certify(machine, rows, context.y, max_time=_SECONDS)
    if not isinstance(certificate, Certificate):
        return Finding(
            False,
            f"There is none: {name} does not prove how good it is, and nothing here can. Only "
            "held-out rows can tell.",
        )
    found = verdict(certificate, _tolerance(machine), _what(context))
    return Finding(*found, certificate, brought)


def _find_mistake_bound(machine: Any) -> Finding:
    made, bound = machine.updates_, machine.mistake_bound_
    if np.isfinite(bound):
        return Finding(
            True,
            f"It learnt with {made:.0f} corrections. The training rows are separable, so no order "
            f"of visiting them could have taken more than {bound:.6g}.",
        )
    return Finding(
        False,
        f"It made {made:.0f} corrections. No boundary that separates all training rows was found, "
        "so there is no bound on how many it would go on to make: on classes that overlap a "
        "perceptron never settles.",
    )


def proof(context: Context, found: Finding) -> Html:
    """Return the section on what is proved, why the solver stopped, and the numbers."""
    kind = "verdict proved" if found.proved else "verdict open"
    messages = [tag("p", message) for message in _messages(context.machine, found)]
    shown = "" if found.certificate is None else numbers(found.certificate)
    return joined([tag("p", found.sentence, class_=kind), *messages, shown])


def _messages(machine: Any, found: Finding) -> Iterator[str]:
    if not found.brought:
        yield _RECOMPUTED
    if reason := getattr(machine, "stop_reason_", ""):
        yield reason
    if found.certificate is not None:
        yield _ABOUT_TRAINING


def is_proved(machine: Any) -> bool:
    """Return whether the model has a certificate that proves it."""
    found = getattr(machine, "certificate_", None)
    return isinstance(found, Certificate) and found.holds(_tolerance(machine))


def verdict(found: Certificate, tol: float, what: str) -> tuple[bool, str]:
    """Return whether a certificate proves what was asked for, and a sentence."""
    if not found.holds(tol):
        return False, f"Not proved to the precision asked for ({_percent(tol)}). {found}"
    gap = max([_ROUNDING, found.relative_gap, *(part.relative_gap for part in found.parts)])
    caveat = f" This rests on a condition: {found.caveat}." if found.caveat else ""
    return True, (
        f"Proved: no other {what} can have an objective more than {_percent(gap)} better than this "
        f"one.{caveat}"
    )


def _percent(share: float) -> str:
    """Return two digits of a share in percent, written out."""
    return np.format_float_positional(100 * share, 2, fractional=False, trim="-") + " %"


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
