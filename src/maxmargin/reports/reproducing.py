"""How to get the same again: code, versions, and a hash of the data."""

import ast
import hashlib
import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import maxmargin
from maxmargin.html import Html, html, joined, table, tag
from maxmargin.kernels import Kernel
from maxmargin.problem import Status
from maxmargin.reports.subject import Subject
from maxmargin.reports.summary import placeless

_DIGITS = 16  # of a hash
_LONG = 10**6  # characters of an estimator, before scikit-learn leaves some out


def reproducing(subject: Subject) -> Html:
    """Return code that makes the model, the data it needs, and the versions it was made with."""
    made = code(subject.model)
    lines = [*made.splitlines(), "model.fit(X)" if subject.y is None else "model.fit(X, y)"]
    rows = [("X", *_data(subject.X))]
    rows += [] if subject.y is None else [("y", *_data(subject.y))]
    return joined(
        [
            tag("pre", tag("code", Html("\n".join(html(line, _LONG) for line in lines)))),
            table(
                ["", "shape and type", "SHA-256, first digits"],
                rows,
                "The data. To compare: hashlib.sha256(numpy.ascontiguousarray(X)).hexdigest(), "
                "if it is an array of one type; weights of rows, if there were any, are not here.",
            ),
            table(["", "version"], versions()),
            *(tag("p", words) for words in _remarks(subject, made)),
        ]
    )


def _remarks(subject: Subject, made: str) -> Iterator[str]:
    """Yield the seeds, and what code cannot say."""
    params = subject.model.get_params(deep=True)
    seeds = {name: params[name] for name in params if name.split("__")[-1] == "random_state"}
    drawn = ", ".join(f"{name} = {placeless(str(seed))}" for name, seed in seeds.items())
    yield f"Seeds: {drawn or 'none, there is no random_state'}."
    if getattr(subject.machine, "status_", None) in (Status.MAX_TIME, Status.INTERRUPTED):
        yield "It was stopped by the clock or by hand: next time that may be elsewhere."
    try:
        ast.parse(made)
    except SyntaxError:
        yield "What is in <…> above cannot be written as code: put in the object that was used."


def code(model: Any) -> str:
    """Return Python that makes an unfitted model like this one."""
    made = placeless(model.__repr__(N_CHAR_MAX=_LONG))
    lines = sorted({_imported(part) for part in _parts(model)})
    if "np." in made:
        lines.insert(0, "import numpy as np")
    return "\n".join([*lines, "", f"model = {made}"])


def _parts(model: Any) -> list[Any]:
    inside = model.get_params(deep=True).values()
    return [model, *(part for part in inside if isinstance(part, BaseEstimator | Kernel))]


def _imported(part: Any) -> str:
    kind = type(part)
    name, place = kind.__name__, kind.__module__
    if place.startswith("maxmargin."):
        place = "maxmargin" if hasattr(maxmargin, name) else ".".join(place.split(".")[:2])
    else:
        public = place.split(".")
        hidden = next((k for k, word in enumerate(public) if word.startswith("_")), len(public))
        place = ".".join(public[:hidden]) or place
    return f"from {place} import {name}"


def versions() -> list[tuple[str, str]]:
    """Return what decides the digits of the answer."""
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    return [
        ("maxmargin", maxmargin.__version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in packages),
    ]


def _data(values: Any) -> tuple[str, str]:
    if sp.issparse(values):
        rows = sp.csr_array(values)
        shape, kind = values.shape, f"{values.dtype}, sparse (data, indices, indptr)"
        return f"{_times(shape)}, {kind}", digest(rows.data, rows.indices, rows.indptr)
    array = np.asarray(values)
    return f"{_times(array.shape)}, {array.dtype}", digest(array)


def _times(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))


def digest(*arrays: Any) -> str:
    """Return the first digits of the SHA-256 of arrays, as they lie in memory."""
    found = hashlib.sha256()
    for array in arrays:
        if array.dtype.hasobject:
            found.update("\0".join(map(repr, array.ravel().tolist())).encode("utf-8", "replace"))
        else:
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:_DIGITS]
