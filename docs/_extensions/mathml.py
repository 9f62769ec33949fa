"""Formulas as MathML, which browsers show by themselves: no script, no font, no network."""

import re
from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

logger = logging.getLogger(__name__)

# Delimiters that latex2mathml knows, but not after \big and its sisters.
DELIMITERS = {
    r"\langle": "⟨",
    r"\rangle": "⟩",
    r"\lVert": "‖",
    r"\rVert": "‖",
    r"\|": "‖",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\{": "{",
    r"\}": "}",
}
BIG = re.compile(r"(\\[bB]igg?[lrm]?)\s*(\\(?:[lr](?:angle|Vert|vert)(?![A-Za-z])|[|{}]))")
# In a formula of its own, what goes under min and max stands below them.
LIMITS = re.compile(
    r"<msub>(<mo[^>]*>(?:arg&#x02009;)?(?:min|max|sup|inf)</mo>)"
    r"(<m[in]>[^<]*</m[in]>|<mrow>(?:(?!</?mrow>).)*</mrow>)</msub>"
)
STYLES = {  # browsers know no mathvariant but "normal"
    "bold": "font-weight: bold",
    "monospace": "font-family: monospace",
}


def prepared(source: str) -> str:
    """Return a formula in the words that latex2mathml knows."""
    source = re.sub(r"\\(begin|end)\{(?:aligned|align\*?)\}", r"\\\1{split}", source)
    source = re.sub(r"\\operatorname\*?\{arg\\,\s*(max|min)\}|\\arg\s*\\(max|min)", _arg, source)
    return BIG.sub(lambda match: match[1] + DELIMITERS[match[2]], source)


def _arg(match: re.Match[str]) -> str:
    return rf"\arg{match[1] or match[2]}"


def mathml(node: nodes.Element, display: str) -> str:
    """Return a formula as MathML; what cannot be converted is a warning, and so fails the build."""
    source = node.astext()
    try:
        made = convert(prepared(source), display=display)
    except Exception as error:
        logger.warning("formula %r: %r", source, error, location=node)
        return f"<code>{escape(source)}</code>"
    made = made.replace(r"\_", "_")
    if display == "block":
        made = LIMITS.sub(r"<munder>\1\2</munder>", made)
    if left := re.findall(r"\\[A-Za-z]+|\\\W|>&<", re.sub(r'="[^"]*"', "", made)):
        logger.warning("formula %r: unknown %s", source, ", ".join(left), location=node)
    for variant, style in STYLES.items():
        made = made.replace(f'mathvariant="{variant}"', f'style="{style}"')
    return made


def visit_inline(self: Any, node: nodes.Element) -> None:
    """Write a formula in a line."""
    self.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.Element) -> None:
    """Write a formula of its own, which scrolls where the screen is too narrow."""
    self.body.append(self.starttag(node, "div", CLASS="formula", TABINDEX="0"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({node["number"]})</span>')
    self.body.append(mathml(node, "block") + "</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Offer the renderer to Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
