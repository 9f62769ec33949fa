"""A certificate in a notebook."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from maxmargin.html import Html, table, tag

if TYPE_CHECKING:
    from maxmargin.certificates.certificate import Certificate


def as_html(found: "Certificate") -> Html:
    """Return the sentence, and the numbers with what they mean."""
    return tag("div", tag("p", str(found)), numbers(found))


def numbers(found: "Certificate") -> Html:
    """Return a table of all numbers."""
    return table(["Quantity", "Value", "What it is"], _lines(found))


def _lines(found: "Certificate") -> Iterator[tuple[str, str, str]]:
    yield "primal", f"{found.primal:.10g}", "the objective that was reached"
    yield "dual", f"{found.dual:.10g}", "no choice of weights can get below this"
    yield "gap", f"{found.gap:.3g}", "primal − dual: the most that can be gained"
    yield "relative gap", f"{found.relative_gap:.3g}", "the gap beside the larger of the two"
    yield "infeasibility", f"{found.infeasibility:.3g}", "change of the duals to make them feasible"
    yield "drift", f"{found.drift:.3g}", "how far the weights are from those of the duals, relative"
    yield (
        "KKT violation",
        f"{found.max_kkt_violation:.3g}",
        "largest violation of an optimality condition, in units of the score",
    )
    yield "distance bound", f"{found.distance_bound:.3g}", "no optimal weights are further away"
    if found.intercept_cost > 0:
        yield (
            "intercept cost",
            f"{found.intercept_cost:.3g}",
            "part of the gap from the intercept",
        )
    if found.rounding > 0:
        yield "rounding", f"{found.rounding:.3g}", "the most that rounding can change, relative"
    if found.parts:
        worst = max(part.relative_gap for part in found.parts)
        yield "problems", f"{len(found.parts)}", "solved side by side; the sums are above"
        yield "worst of them", f"{worst:.3g}", "the largest relative gap of a single problem"
