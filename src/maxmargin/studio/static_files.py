"""The files of the page, and its modules joined into one.

The page in the browser and the widget in Jupyter run the same text. Jupyter takes one module, so
the modules of ``static/`` are joined in the order of ``MODULES``. Each becomes the body of a
function that returns what it exports::

    const { Plot } = (() => {
      …
      return { Plot };
    })();

So what a module exports is there for those that follow, which need no ``import``, and what it does
not export stays its own. Only the last module is left as it is, with its exports.
"""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable

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
# Files that are served as they are, and what they are.
KINDS = {
    "page.js": "text/javascript; charset=utf-8",
    "studio.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
PAGE = "index.html"

_IMPORT = re.compile(r"""^import\s+\{[^}]*\}\s+from\s+["'][^"']+["'];?\n""", re.MULTILINE)
_EXPORT = re.compile(
    r"^export\s+(?=(?:async\s+)?(?:function\*?|class|const|let)\s+(\w+))", re.MULTILINE
)


def _folder() -> Traversable:
    return files("maxmargin.studio") / "static"


def read(name: str) -> bytes | None:
    """Return the content of a file of the page, or None if there is none of this name."""
    if name not in KINDS and name != PAGE:
        return None
    file = _folder() / name
    return file.read_bytes() if file.is_file() else None


def module() -> str:
    """Return the modules of the page as one."""
    *inner, last = (_folder() / name for name in MODULES)
    texts = [wrap(file.read_text(encoding="utf-8")) for file in inner if file.is_file()]
    return "\n".join([*texts, drop_imports(last.read_text(encoding="utf-8"))])


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
