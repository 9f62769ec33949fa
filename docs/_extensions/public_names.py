"""Names in the reference: which members of a class are shown, and other names of the same thing.

Docstrings are written for people who read them in a terminal: ``|x|`` and ``coef_`` mean just that
there, and not the markup that reStructuredText takes them for.
"""

import inspect
import re
from importlib import import_module
from typing import Any

from docutils import nodes

# Of the methods that come from scikit-learn, those that people call by hand.
BORROWED = {"fit_predict", "fit_transform", "get_params", "score", "set_params"}
SPECIAL = {"__call__"}
# What rooms of the library ask an estimator for, and nobody else.
INTERNAL = {"adopt", "check_parameters", "formulate", "solution"}


def find(fullname: str) -> Any:
    """Return what has a name, or None."""
    parts = fullname.split(".")
    for k in range(len(parts) - 1, 0, -1):
        try:
            found = import_module(".".join(parts[:k]))
            for part in parts[k:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found
    return None


class Members:
    """What templates ask for the members of a class; an object, as Sphinx keeps no functions."""

    def __call__(self, fullname: str, kind: str) -> list[str]:
        """Return the members that the page of a class shows: "methods" or "properties"."""
        return members(fullname, kind)

    def __repr__(self) -> str:
        return "Members()"


def members(fullname: str, kind: str) -> list[str]:
    """Return the members of a class that its page shows: "methods" or "properties"."""
    cls = find(fullname)
    chosen = []
    for name, member in inspect.getmembers_static(cls):
        home = next(c for c in cls.__mro__ if name in vars(c))
        if not _is_shown(cls, home, name) or type(member).__name__ == "RequestMethod":
            continue  # a RequestMethod sets the routing of metadata: set_fit_request, …
        if isinstance(member, property) or type(member).__name__ == "cached_property":
            said = inspect.getdoc(member) or ""  # some properties stand for settings of a class
            if kind == "properties" and said and not said.startswith("Not there"):
                chosen.append(name)
        elif (
            kind == "methods" and callable(getattr(cls, name, None)) and not inspect.isclass(member)
        ):
            chosen.append(name)
    return chosen


def _is_shown(cls: type, home: type, name: str) -> bool:
    ours = home.__module__.startswith("maxmargin")
    if name.startswith("_"):
        return ours and name in SPECIAL
    if name in INTERNAL and hasattr(cls, "fit"):
        return False
    return ours or name in BORROWED


def other_name(app: Any, env: Any, node: Any, contnode: nodes.Node) -> nodes.Node | None:
    """Link a public name to the page of the same object under its first public name."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("maxmargin."):
        return None
    found = find(target)
    if found is None or not hasattr(found, "__name__"):
        return None
    objects = env.get_domain("py").objects
    for name in (f"maxmargin.{found.__name__}", f"{found.__module__}.{found.__qualname__}"):
        if name in objects and find(name) is found:
            page = objects[name]
            uri = app.builder.get_relative_uri(node["refdoc"], page.docname) + "#" + page.node_id
            return nodes.reference("", "", contnode, internal=True, refuri=uri)
    return None


def plain(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep ``|`` and trailing ``_`` from being read as markup, except in code."""
    if (getattr(obj, "__module__", None) or "").startswith("sklearn"):
        linked = re.compile(r":(?:ref|term):`([^`<]*?)\s*(?:<[^`]*>)?`")  # to pages of its own site
        lines[:] = linked.sub(r"\1", "\n".join(lines)).split("\n")
    literal = None  # the indentation of the line above a literal block
    code = False  # in an example
    kept: list[str] = []  # paragraphs, as inline code may go on in the next line
    for line in [*lines, ""]:
        indent = len(line) - len(line.lstrip())
        if line.strip() and literal is not None and indent <= literal:
            literal = None
        code = bool(line.strip()) and (code or line.lstrip().startswith(">>>"))
        if code or literal is not None or line.lstrip().startswith(".. "):
            kept.append("\0" + line)
        else:
            kept.append(line)
            if line.endswith("::"):
                literal = indent
    parts = re.split(r"(\0[^\n]*\n|``.+?``|`[^`]+`)", "\n".join(kept), flags=re.DOTALL)
    parts[::2] = [re.sub(r"(?<!\\)(\||(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
    lines[:] = "".join(parts).replace("\0", "").split("\n")[:-1]


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("missing-reference", other_name)
    app.connect("autodoc-process-docstring", plain, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
