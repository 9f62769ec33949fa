"""Pictures of large margins, following scikit-learn's Display convention.

A display holds the data of a picture: ``from_estimator`` computes them, and ``plot(ax=None)`` draws
them and keeps ``ax_`` and ``figure_``. matplotlib (the ``plot`` extra) is loaded by the first
``plot``.
"""

from importlib import import_module
from typing import Any

from maxmargin.errors import no_attribute

_MODULES = {
    "ConvergenceDisplay": "convergence",
    "GramDisplay": "gram",
    "KernelPCADisplay": "components",
    "MarginDisplay": "margin",
    "PathDisplay": "path",
    "PerceptronPathDisplay": "perceptron_path",
    "SearchDisplay": "search",
    "SeparabilityDisplay": "separability",
    "theme": "style",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"maxmargin.plots.{_MODULES[name]}"), name)
    raise no_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])


__all__ = [*_MODULES]
