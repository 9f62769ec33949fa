"""How to get the same again: code, versions, and a hash of the data."""

import hashlib
import platform
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import maxmargin
from maxmargin.html import Html, html, joined, table, tag
from maxmargin.kernels import Kernel
from maxmargin.report.subject import Subject

_DIGITS = 16  # of a hash
_LONG = 10**6  # characters of an estimator, before scikit-learn leaves some out


def reproducing(subject: Subject) -> Html:
    """Return code that makes the model, the data it needs, and the versions it was made with."""
    lines = [*code(subject.model).splitlines(), "model.fit(X, y)"]
    rows = [("X", *_data(subject.X))]
    rows += [] if subject.y is None else [("y", *_data(subject.y))]
    seed = subject.machine.get_params().get("random_state", "none: nothing is drawn at random")
    return joined(
        [
            tag("pre", tag("code", Html("\n".join(html(line, _LONG) for line in lines)))),
            table(
                ["", "shape and type", "SHA-256, first digits"],
                rows,
                "The data. To compare: hashlib.sha256(numpy.ascontiguousarray(X)).hexdigest()",
            ),
            table(["", "version"], versions()),
            tag("p", f"random_state: {seed}"),
        ]
    )


def code(model: Any) -> str:
    """Return Python that makes an unfitted model like this one."""
    made = model.__repr__(N_CHAR_MAX=_LONG)
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
