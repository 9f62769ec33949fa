"""The files of the page, and its modules joined into one.

The page in the browser and the widget in Jupyter run the same text. Jupyter takes one module, so
the modules of ``static/`` are joined in the order of ``MODULES``: what each imports from the others
is then declared above it, so ``import`` lines go; only the last module keeps its exports. Names at
the top of a module must therefore be unique among all of them.
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
    "lesson.js",
    "exports.js",
    "studio.js",
)
# Files that are served as they are, and what they are.
KINDS = {
    "studio.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "page.js": "text/javascript; charset=utf-8",
}
PAGE = "index.html"

_IMPORT = re.compile(
    r"""^import\s+(?:\{[^}]*\}|\*\s+as\s+\w+|\w+)\s+from\s+["'][^"']+["'];?\n""", re.M
)
_EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function|class|const|let)\b)", re.M)


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
    texts = []
    for name in MODULES:
        file = _folder() / name
        if file.is_file():
            text = file.read_text(encoding="utf-8").replace("\r\n", "\n")
            texts.append(join_text(text, keep_exports=name == MODULES[-1]))
    return "\n".join(texts)


def join_text(text: str, *, keep_exports: bool) -> str:
    r"""Return a module without imports, and without exports unless they are kept.

    >>> join_text('import { a } from "./a.js";\nexport const b = a;\n', keep_exports=False)
    'const b = a;\n'
    """
    text = _IMPORT.sub("", text)
    return text if keep_exports else _EXPORT.sub("", text)
