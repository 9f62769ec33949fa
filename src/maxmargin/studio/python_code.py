"""A picture of the page as Python code that draws it again."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from maxmargin.inspection import write_code
from maxmargin.studio import pictures
from maxmargin.studio.catalogue import MODELS
from maxmargin.studio.scene import Choice, Scene

_WIDTH = 88  # characters in a line
_INDENT = "    "
_PAGE_ONLY = ("max_time", "callback")  # what keeps the page quick is no part of the model
_NAMES = ("model", "second")
_CERTIFIED = ("HardMarginSVC", "LinearSVC", "SVC", "NuSVC", "OneClassSVM", "SVR")
_UPDATES = 'print({model}.updates_, "updates; the bound is", {model}.mistake_bound_)'
_CERTIFICATE = "print({model}.certificate_)"
_MARGIN = "MarginDisplay.from_estimator({model}, X{labels})"
# Each value on the grid is a vote, which takes time.
_VOTES = "MarginDisplay.from_estimator({model}, X{labels}, grid_resolution=60)"
_COMPONENTS = "KernelPCADisplay.from_estimator({model}, X{labels})"
_DISPLAYS = {"KernelPCA": _COMPONENTS, "BayesPointClassifier": _VOTES}
_TUBE = """\
figure, ax = plt.subplots()
ax.scatter(X[:, 0], X[:, 1], s=14)
x = np.linspace({left!r}, {right!r}, 500)
curve = {model}.predict(x[:, None])
ax.plot(x, curve)
ax.fill_between(x, curve - {model}.epsilon, curve + {model}.epsilon, alpha=0.2)"""


def write(scene: Scene, choices: Sequence[Choice] | None = None) -> str:
    """Return code that fits and draws the models of a scene.

    Parameters
    ----------
    scene : Scene
        Points, and a choice of model.
    choices : sequence of Choice, optional
        The models side by side; by default only that of the scene.
    """
    if not len(scene.points):
        raise ValueError("There are no points yet; draw some first.")
    choices = tuple(choices or (scene.choice,))
    labelled = any(MODELS[choice.model].most_classes > 1 for choice in choices)
    arrays = [_write_array("X", [f"[{x!r}, {y!r}]" for x, y in scene.points.tolist()])]
    if labelled or len(np.unique(scene.labels)) > 1:
        arrays.append(_write_array("y", map(str, scene.labels.tolist())))
    imports = {"import matplotlib.pyplot as plt", "import numpy as np"}
    parts = []
    for name, choice in zip(_NAMES, choices, strict=False):
        parts.append(_write_part(name, choice, scene, imports))
    return "\n".join([*sorted(imports, key=_order), "", *arrays, "", *parts, "plt.show()", ""])


def write_reply(scene: Scene, choices: Sequence[Choice]) -> dict[str, str]:
    """Return the code of a scene as the page reads it."""
    return {"type": "code", "text": write(scene, choices)}


def plain_model(choice: Choice) -> Any:
    """Return the estimator of a choice, not yet fitted, as one would make it without the page."""
    model = pictures.build(choice)
    default = type(model)().get_params(deep=False)
    model.set_params(**{key: default[key] for key in _PAGE_ONLY if key in default})
    return model


def _write_part(name: str, choice: Choice, scene: Scene, imports: set[str]) -> str:
    """Return the lines that fit and draw a model; add what they import."""
    made = write_code(plain_model(choice))
    imports.update(made.imports)
    data, labels = _arguments(choice, scene)
    lines = [f"{name} = {made.expression}", f"{name}.fit({data})"]
    if "perceptron" in MODELS[choice.model].runs:
        lines.append(_UPDATES.format(model=name))
    elif choice.model in _CERTIFIED:
        lines.append(_CERTIFICATE.format(model=name))
    if choice.model == "SVR":
        left, right = scene.view[:2]
        lines.append(_TUBE.format(model=name, left=left, right=right))
    else:
        display = _DISPLAYS.get(choice.model, _MARGIN)
        imports.add(f"from maxmargin.plots import {display.partition('.')[0]}")
        lines.append(display.format(model=name, labels=labels))
    return "\n".join([*lines, ""])


def _arguments(choice: Choice, scene: Scene) -> tuple[str, str]:
    """Return what a model is fitted to, as code, and the labels that its picture shows."""
    if choice.model == "SVR":
        return "X[:, :1], X[:, 1]", ""
    if MODELS[choice.model].most_classes > 1:
        return "X, y", ", y"
    shown = choice.model == "KernelPCA" and len(np.unique(scene.labels)) > 1
    return "X", ", y" if shown else ""


def _write_array(name: str, items: Iterable[str]) -> str:
    """Return an array as code, in lines that are not too long."""
    rows = textwrap.fill(
        ", ".join(items), _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT
    )
    return f"{name} = np.array([\n{rows},\n])"


def _order(line: str) -> tuple[bool, str]:
    """Return by what imports are sorted: modules first, then names."""
    return line.startswith("from "), line
