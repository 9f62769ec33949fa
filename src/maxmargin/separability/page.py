"""An answer about separability in a notebook."""

from typing import TYPE_CHECKING, Any

from maxmargin.html import Html, table, tag, visible

if TYPE_CHECKING:
    from maxmargin.separability.answers import Separation

_NAME = 60  # characters of a label
_SHOWN = 30  # pairs of classes


def as_html(found: "Separation") -> Html:
    """Return the sentence, the numbers, and a line for each pair of several classes."""
    title = {True: "Separable", False: "Not separable", None: "Undecided"}[found.separable]
    return tag("div", tag("p", tag("b", title)), tag("p", str(found)), _numbers(found))


def _numbers(found: "Separation") -> Html:
    if found.pairs:
        pairs = list(found.pairs.items())
        more = f"{_SHOWN} of {len(pairs)} pairs" if len(pairs) > _SHOWN else ""
        lines = [(*(visible(c, _NAME) for c in who), *_answer(one)) for who, one in pairs[:_SHOWN]]
        return table(["Class", "Class", "Separable", "Margin", "Mistake bound"], lines, more)
    return table(["Separable", "Margin", "Mistake bound"], [_answer(found)])


def _answer(found: "Separation") -> tuple[Any, ...]:
    words = {True: "yes", False: "no", None: "undecided"}[found.separable]
    if not found.separable:
        return words, "–", "–"
    return words, f"{found.margin:.4g}", f"{found.mistake_bound:.4g}"
