"""The files of the page, and its modules joined into one.

A browser loads the modules of ``static/`` one by one. Jupyter takes one module, so for the widget
they are joined in the order of ``MODULES``. Each becomes the body of a function that returns what
it exports::

    const { Plot } = (() => {
      …
      return { Plot };
    })();

So what a module exports is there for those that follow, which need no ``import``, and what it does
not export stays its own. Only the last module is left as it is, with its exports.
"""

import re
from importlib.resources import files

MODULES = (
    "state.js",
    "link.js",
    "draw.js",
    "plot.js",
    "controls.js",
    "facts.js",
    "timeline.js",
    "lift.js",
    "projection.js",
    "lesson.js",
    "exports.js",
    "studio.js",
)

_IMPORT = re.compile(r"""^import\s+\{[^}]*\}\s+from\s+["'][^"']+["'];?\n""", re.MULTILINE)
_EXPORT = re.compile(
    r"^export\s+(?=(?:async\s+)?(?:function\*?|class|const|let)\s+(\w+))", re.MULTILINE
)


def read(name: str) -> str:
    """Return the text of a file of the page."""
    return (files("maxmargin.studio") / "static" / name).read_text(encoding="utf-8")


def module() -> str:
    """Return the modules of the page as one."""
    *inner, last = map(read, MODULES)
    return "\n".join([*map(wrap, inner), drop_imports(last)])


def drop_imports(text: str) -> str:
    """Return a module without what it imports."""
    return _IMPORT.sub("", text.replace("\r\n", "\n"))


def wrap(text: str) -> str:
    r"""Return a module as a declaration of what it exports.

    >>> print(wrap('import { a } from "./a.js";\nexport const b = a;\n'))
    const { b } = (() => {
    const b = a;
    return { b };
    })();
    """
    text = drop_imports(text)
    names = ", ".join(_EXPORT.findall(text))
    return f"const {{ {names} }} = (() => {{\n{_EXPORT.sub('', text)}return {{ {names} }};\n}})();"
