"""Formulas as MathML, which browsers show by themselves: no script, no font, no network."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

logger = logging.getLogger(__name__)


def mathml(node: nodes.Element, display: str) -> str:
    """Return a formula as MathML; what cannot be converted is a warning, and so fails the build."""
    source = node.astext()
    try:
        made = convert(source, display=display)
    except Exception as error:
        logger.warning("formula %r: %r", source, error, location=node)
        return f"<code>{nodes.unescape(source)}</code>"
    if left := re.findall(r"\\[A-Za-z]+", re.sub(r'="[^"]*"', "", made)):
        logger.warning("formula %r: unknown %s", source, ", ".join(left), location=node)
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
