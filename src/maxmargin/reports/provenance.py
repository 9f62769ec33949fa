"""Where the model comes from: the search, and a script that makes the same model.

The script needs only the data; if it is known how they were read and split, it does that too.
"""

import hashlib
import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor

from maxmargin import plots
from maxmargin.inspection.code import drop_addresses, write_code
from maxmargin.plots.search import read_candidates
from maxmargin.plots.style import short_numbers
from maxmargin.problems.problem import Status
from maxmargin.reports.context import Context
from maxmargin.reports.figures import ReportFigure, draw_figure
from maxmargin.reports.versions import package_version
from maxmargin.runtime.html import Html, html, joined, table, tag, visible

_DIGITS = 16  # of a hash
_LINE = 10**5  # characters of a line of code
_SETTINGS = 10  # of a search
_REGRESSION = {"R²": "r2", "mean absolute error": "neg_mean_absolute_error"}
_CLASSIFICATION = {
    "accuracy": "accuracy",
    "balanced accuracy": "balanced_accuracy",
    "F1, mean of the classes": "f1_macro",
}
_LONGEST, _VALUE = 240, 60  # characters of a setting, and of one value in it


def provenance(context: Context, script: str | None) -> Html:
    """Return a script that makes the model, the data it needs, and the versions used."""
    lines = (script if script is not None else default_script(context)).splitlines()
    rows = [("X", *_data(context.X))]
    rows += [] if context.y is None else [("y", *_data(context.y))]
    return joined(
        [
            tag("pre", tag("code", Html("\n".join(html(line, _LINE) for line in lines)))),
            *(tag("p", message) for message in _messages(context)),
            table(["", "shape and type", "SHA-256, first digits"], rows, "The training data"),
            tag(
                "p",
                "To compare: hashlib.sha256(numpy.ascontiguousarray(X)).hexdigest(), for an array "
                "of one type. Sample weights, if there were any, are not included.",
            ),
            table(["", "version"], versions()),
        ]
    )


def default_script(context: Context) -> str:
    """Return a script for rows that the reader has: X and y, and those for tests."""
    made = write_code(context.model)
    labels = "" if context.y is None else ", y"
    lines = [*made.imports, "", f"model = {made.expression}", f"model.fit(X{labels})"]
    if context.test is not None and context.test.y is not None:
        lines += figures_code(context.model, "X_test", "y_test")
    known = f"X{' and y' if labels else ''}"
    if context.test is not None:
        known = "X, y, X_test and y_test"
    return program(lines, f"{known}: your data, as described below")


def program(lines: list[str], comment: str = "") -> str:
    """Return lines of code as a program: comments, all imports, then the rest."""
    made = ", ".join(f"{name} {number}" for name, number in versions())
    comments = [f"# {text}" for text in (f"Made with {made}.", comment) if text]
    imports = {line for line in lines if line.startswith(("import ", "from "))}
    rest = "\n".join(line for line in lines if line not in imports).strip("\n")
    return "\n".join([*comments, *sorted(imports), "", rest]) + "\n"


def figures_code(model: Any, X: str, y: str) -> list[str]:
    """Return code that prints figures of the report's first table for rows of these names."""
    figures, written = _REGRESSION, "{abs(value):.4g}"
    if not is_regressor(model):
        figures, written = dict(_CLASSIFICATION), "{value:.2%}"
        scored = hasattr(model, "decision_function") or hasattr(model, "predict_proba")
        if not hasattr(model, "classes_"):
            return []
        if len(model.classes_) == 2 and scored:
            figures["AUC"] = "roc_auc"
    return [
        "from sklearn.metrics import get_scorer",
        "",
        f"figures = {figures!r}",
        "for name, scorer in figures.items():",
        f"    value = get_scorer(scorer)(model, {X}, {y})",
        f'    print(f"{{name}}: {written}")',
    ]


def _messages(context: Context) -> Iterator[str]:
    """Yield the seeds, and what the script cannot reproduce."""
    params = context.model.get_params(deep=True)
    seeds = {name: params[name] for name in params if name.split("__")[-1] == "random_state"}
    drawn = ", ".join(f"{name} = {drop_addresses(str(seed))}" for name, seed in seeds.items())
    yield f"Seeds: {drawn or 'none, there is no random_state'}."
    if getattr(context.machine, "status_", None) in (Status.MAX_TIME, Status.INTERRUPTED):
        yield "It was stopped by the clock or by hand: the next run may stop elsewhere."
    if not write_code(context.model).complete:
        yield "What is in <…> above cannot be written as code: insert the object that was used."


def versions() -> list[tuple[str, str]]:
    """Return the versions of what decides the digits of the result."""
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    return [
        ("maxmargin", package_version("maxmargin") or ""),
        ("Python", platform.python_version()),
        *((name, package_version(name) or "") for name in packages),
    ]


def _data(values: Any) -> tuple[str, str]:
    rows: Any = sp.csr_array(values) if sp.issparse(values) else np.asarray(values)
    kind = f"{' × '.join(map(str, rows.shape))}, {rows.dtype}"
    if sp.issparse(rows):
        kind += ", sparse (data, indices, indptr)"
        return kind, digest(rows.data, rows.indices, rows.indptr)
    return kind, digest(rows)


def digest(*arrays: Any) -> str:
    """Return the first digits of the SHA-256 of arrays, as they lie in memory."""
    found = hashlib.sha256()
    for array in arrays:
        if array.dtype.hasobject:
            found.update("\0".join(map(repr, array.ravel().tolist())).encode("utf-8", "replace"))
        else:
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:_DIGITS]


def search_results(search: Any, theme: str) -> Html:
    """Return the map of a search and a table of its best candidates."""
    found = read_candidates(search)
    total = len(found.params)
    lines = []
    for k in np.argsort(found.ranks, kind="stable")[:_SETTINGS]:
        values = {name: short_numbers(str(value)) for name, value in found.params[k].items()}
        setting = (f"{name} = {visible(drop_addresses(values[name]), _VALUE)}" for name in values)
        scores = f"{found.means[k]:.4g}", f"{found.deviations[k]:.2g}"
        lines.append((visible(", ".join(setting), _LONGEST), *scores))
    message = f"{total} settings, each fitted on {search.n_splits_} folds."
    if hasattr(search, "sharing_"):
        message += f" Shared between fits: {search.sharing_}."
    caption = f"The best {len(lines)} of {total}" if len(lines) < total else "All settings"
    searched = ReportFigure(
        "What was searched: mean score over the folds for each setting.",
        lambda: plots.SearchDisplay.from_estimator(search),
    )
    return joined(
        [
            tag("p", message),
            draw_figure(searched, theme),
            table(["setting", "mean score", "deviation over the folds"], lines, caption),
        ]
    )
