"""An estimator as the code that makes it, with the imports that the code needs.

Pipelines, column transformers, kernels and functions inside are written out. What cannot be
imported or written as code (a lambda, an object whose repr is no constructor call) stays in <…>,
and the code is marked as incomplete.
"""

import ast
import inspect
import math
import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from maxmargin.kernels import Kernel

WIDTH = 88  # characters in a line
_ENTRIES = 1000  # of an array, above which it is not written out
_PLAIN = (np.float64, np.int64, np.bool_, np.str_)  # Python's own types are as exact


class Code(NamedTuple):
    """Lines of imports, an expression that needs them, and whether Python can read it."""

    imports: tuple[str, ...]
    expression: str
    complete: bool


def write_code(estimator: Any, width: int = WIDTH, indent: int = 0) -> Code:
    r"""Return the code that makes an unfitted estimator like this one, in lines of this width.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from maxmargin import SVC
    >>> made = write_code(make_pipeline(StandardScaler(), SVC(C=10.0)))
    >>> print(*made.imports, made.expression, sep="\n")
    from maxmargin import SVC
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    make_pipeline(StandardScaler(), SVC(C=10.0))
    """
    writer = _Writer()
    node = writer.node(estimator)
    return Code(writer.lines(), _lay_out(node, width, indent), writer.complete)


def describe(estimator: Any) -> str:
    """Return the code that makes an estimator or a pipeline, in one line.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from maxmargin import SVC
    >>> describe(make_pipeline(StandardScaler(), SVC(C=10.0)))
    'make_pipeline(StandardScaler(), SVC(C=10.0))'
    """
    return _flat(_Writer().node(estimator))


def drop_addresses(text: str) -> str:
    """Return a text without memory addresses, which differ from run to run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


class _Node(NamedTuple):
    """Brackets around parts, each of them after a prefix such as ``name=``."""

    opening: str
    parts: list[tuple[str, Any]]
    closing: str


def _flat(node: _Node | str) -> str:
    if isinstance(node, str):
        return node
    inside = ", ".join(f"{prefix}{_flat(part)}" for prefix, part in node.parts)
    return f"{node.opening}{inside}{node.closing}"


def _lay_out(node: _Node | str, width: int, indent: int) -> str:
    """Return code in one line if it fits, else each part in lines of its own."""
    flat = _flat(node)
    if isinstance(node, str) or not node.parts or indent + len(flat) <= width:
        return flat
    inner = indent + 4
    lines = [
        f"{' ' * inner}{prefix}{_lay_out(part, width - len(prefix) - 1, inner)},"
        for prefix, part in node.parts
    ]
    closing = f"{' ' * indent}{node.closing[-1]}"
    return "\n".join([node.opening, *lines, closing])


class _Writer:
    """Writes values as code, and collects what has to be imported for them."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}  # where each name is imported from
        self.modules: set[str] = set()
        self.complete = True

    def lines(self) -> tuple[str, ...]:
        """Return the imports: whole modules first, then names, in the order of import sorters."""
        whole = [
            "import numpy as np" if name == "numpy" else f"import {name}"
            for name in sorted(self.modules)
        ]
        by_place: dict[str, list[str]] = {}
        for name, place in self.places.items():
            by_place.setdefault(place, []).append(name)
        names = (f"from {place} import {', '.join(sorted(by_place[place]))}" for place in by_place)
        return (*whole, *sorted(names))

    def node(self, value: Any) -> _Node | str:
        """Return a value as code."""
        if isinstance(value, BaseEstimator):
            return self._estimator(value)
        if isinstance(value, Kernel):
            return self._kernel(value)
        if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
            return self._named(value)
        if isinstance(value, np.ndarray | np.generic):
            return self._of_numpy(value)
        return self._plain(value)

    def _plain(self, value: Any) -> _Node | str:
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if value is None or isinstance(value, bool | int | complex | str | bytes):
            return repr(value)
        if isinstance(value, dict):
            pairs = [(f"{_flat(self.node(key))}: ", self.node(value[key])) for key in value]
            return _Node("{", pairs, "}")
        if isinstance(value, list):
            return _Node("[", self._each(value), "]")
        if isinstance(value, tuple):
            return _Node("(", self._each(value), ",)" if len(value) == 1 else ")")
        if isinstance(value, slice):
            return _Node("slice(", self._each((value.start, value.stop, value.step)), ")")
        return self._printed(value)

    def _each(self, values: Iterable[Any]) -> list[tuple[str, Any]]:
        return [("", self.node(value)) for value in values]

    def _estimator(self, estimator: Any) -> _Node:
        if hasattr(estimator, "steps") and _is_made(estimator):
            self.places["make_pipeline"] = "sklearn.pipeline"
            return _Node("make_pipeline(", self._each(step for _, step in estimator.steps), ")")
        given = estimator.get_params(deep=False)
        parts = []
        for name, accepted in inspect.signature(type(estimator)).parameters.items():
            if name in given and not _same(given[name], accepted.default):
                prefix = "" if accepted.default is inspect.Parameter.empty else f"{name}="
                parts.append((prefix, self.node(given[name])))
        return _Node(f"{self._named(type(estimator))}(", parts, ")")

    def _kernel(self, kernel: Kernel) -> str:
        """Return the repr of a kernel, which writes sums and products with operators."""
        written = drop_addresses(repr(kernel))
        for part in (kernel, *kernel.get_params(deep=True).values()):
            named = type(part) if isinstance(part, Kernel) else part
            if getattr(named, "__name__", None) in re.findall(r"\w+", written):
                self._named(named)
        return self._check_syntax(written)

    def _named(self, thing: Any) -> str:
        """Return the name of a class or function, and import it from its public module."""
        name: str = thing.__name__
        if getattr(np, name, None) is thing:
            self.modules.add("numpy")
            return f"np.{name}"
        place = _place(thing, name)
        if place is None:
            self.complete = False
            return f"<{'function' if name == '<lambda>' else name}>"
        if place == "builtins":
            return name
        if self.places.setdefault(name, place) != place:  # the name is taken by another object
            self.modules.add(place)
            return f"{place}.{name}"
        return name

    def _of_numpy(self, value: Any) -> _Node | str:
        if isinstance(value, _PLAIN):
            return self.node(value.item())
        if isinstance(value, np.ndarray) and value.size > _ENTRIES:
            self.complete = False
            return f"<array of shape {value.shape}>"
        self.modules.add("numpy")
        if isinstance(value, np.generic):
            return f"np.{type(value).__name__}({value.item()!r})"
        parts: list[tuple[str, Any]] = [("", self.node(value.tolist()))]
        return _Node("np.array(", [*parts, ("dtype=", repr(value.dtype.str))], ")")

    def _printed(self, value: Any) -> str:
        """Return the repr of an object, if it is a call of its own class."""
        written = drop_addresses(repr(value))
        if not written.startswith(f"{type(value).__name__}("):
            self.complete = False
            return f"<{written.strip('<>')}>"
        self._named(type(value))
        return self._check_syntax(written)

    def _check_syntax(self, written: str) -> str:
        try:
            ast.parse(written)
        except SyntaxError:
            self.complete = False
        return written


def _is_made(pipeline: Any) -> bool:
    """Return whether make_pipeline would have given the steps these names."""
    from sklearn.pipeline import Pipeline, make_pipeline  # which `import maxmargin` does without

    if type(pipeline) is not Pipeline:
        return False
    if not _same(pipeline.get_params(deep=False), Pipeline(pipeline.steps).get_params(deep=False)):
        return False
    names = [name for name, _ in make_pipeline(*(step for _, step in pipeline.steps)).steps]
    return names == [name for name, _ in pipeline.steps]


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, float) and isinstance(default, float):
        return value == default or (math.isnan(value) and math.isnan(default))
    # Arrays compare elementwise, and True == 1 although they are different parameters.
    if type(value) is not type(default) or isinstance(value, np.ndarray):
        return value is default
    return bool(value == default)


def _place(thing: Any, name: str) -> str | None:
    """Return the shortest module that has a thing under its name, or None."""
    parts = (getattr(thing, "__module__", None) or "").split(".")
    if parts == ["__main__"]:  # another script cannot import it
        return None
    for count in range(1, len(parts) + 1):
        place = ".".join(parts[:count])
        try:
            found = getattr(import_module(place), name, None)
        except (ImportError, ValueError):
            return None
        if found is thing and not parts[count - 1].startswith("_"):
            return place
    return ".".join(parts) if found is thing else None
