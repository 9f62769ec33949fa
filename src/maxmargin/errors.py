"""Errors that carry more than a message, warnings that point at the caller, and spelling hints."""

import inspect
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import TypeVar
from weakref import WeakKeyDictionary

__all__ = ["DataFileError", "DistributedFitError", "ModelFileError", "NotSeparableError"]

# Packages between a user's line and ours; a warning points at the first line outside them.
_PASSED_THROUGH = {"maxmargin", "sklearn", "joblib", "threading", "concurrent", "functools"}
_RECORDED: ContextVar[list[str] | None] = ContextVar("recorded", default=None)
_WARNED: WeakKeyDictionary[object, set[type[Warning]]] = WeakKeyDictionary()


Wrong = TypeVar("Wrong", bound=Exception)


def about(parameter: str, error: Wrong) -> Wrong:
    """Return an error that carries the name of the parameter it is about.

    Whoever offers the parameter under another name, as the command line does, can then name that.

    >>> parameter_of(about("C", ValueError("C=-1 is not valid")))
    'C'
    """
    error.parameter = parameter  # type: ignore[attr-defined]
    return error


def parameter_of(error: BaseException) -> str | None:
    """Return the parameter that an error is about, if it carries one."""
    found: str | None = getattr(error, "parameter", None)
    return found


class NotSeparableError(ValueError):
    """No hyperplane separates the classes; ``witness`` proves it.

    Parameters
    ----------
    message : str
        What was found, and the way out.
    witness : object, default=None
        Rows and weights that prove it.
    """

    def __init__(self, message: str, witness: object = None) -> None:
        super().__init__(message)
        self.witness = witness


class DataFileError(ValueError):
    """A data file cannot be read; the message names the file, the line and the way out."""


class ModelFileError(ValueError):
    """A model file cannot be read; the message names the file, the place and the way out."""


class DistributedFitError(RuntimeError):
    """A cluster failed; the message names the block of rows and says how to go on."""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return the question for a word that is not among those known but close to one; or nothing.

    >>> did_you_mean("rfb", ["linear", "poly", "rbf"])
    " Did you mean 'rbf'?"
    """
    by_lower = {name.lower(): name for name in known}
    near = get_close_matches(str(word).lower(), by_lower, n=1)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the caller's line: the innermost one outside this library and scikit-learn.

    Of the candidates of one of scikit-learn's searches only the first warns, and says so; the
    model that is refitted to all rows warns for itself.
    """
    if (recorded := _RECORDED.get()) is not None:
        recorded.append(message)
        return
    level, frame, search, validated = 1, inspect.currentframe(), None, False
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_THROUGH:
        module = frame.f_globals["__name__"]
        validated |= module == "sklearn.model_selection._validation"
        if module == "sklearn.model_selection._search" and validated:
            search = frame.f_locals.get("base_estimator", search)  # a new one for each call of fit
        level, frame = level + 1, frame.f_back
    if search is not None:
        if category in _WARNED.setdefault(search, set()):
            return
        _WARNED[search].add(category)
        message += " Only the first such fit of this search is reported."
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def recorded_warnings() -> Iterator[list[str]]:
    """Return a list of what this library warns of in this thread, instead of showing it.

    Unlike ``warnings.catch_warnings`` it leaves other threads alone.
    """
    recorded: list[str] = []
    token = _RECORDED.set(recorded)
    try:
        yield recorded
    finally:
        _RECORDED.reset(token)


# Public names that went, and what to use instead. A name stays here for one version.
REMOVED = {
    "maxmargin.CircleMap": "maxmargin.geometry.lift_points",
    "maxmargin.DataFileError": "maxmargin.errors.DataFileError",
    "maxmargin.DistributedFitError": "maxmargin.errors.DistributedFitError",
    "maxmargin.ModelFileError": "maxmargin.errors.ModelFileError",
    "maxmargin.NotSeparableError": "maxmargin.errors.NotSeparableError",
    "maxmargin.PolynomialMap": "sklearn.preprocessing.PolynomialFeatures",
    "maxmargin.RandomFourier": "sklearn.kernel_approximation.RBFSampler",
    "maxmargin.SKOPS_TRUSTED_TYPES": "maxmargin.files.SKOPS_TRUSTED_TYPES",
    "maxmargin.on_cluster": "SVCSearchCV(client=...), or maxmargin.data.open(..., client=...)",
    "maxmargin.show_versions": "maxmargin.reports.show_versions",
    "maxmargin.data.BlockOptions": "the options of maxmargin.data.open",
    "maxmargin.data.Converted": "the number of rows that maxmargin.data.convert returns",
    "maxmargin.data.FollowedRows": "partial_fit on blocks of maxmargin.data.read_rows",
    "maxmargin.data.Part": "what maxmargin.data.RowSource.load returns",
    "maxmargin.data.RowBlock": "what maxmargin.data.read_rows yields",
    "maxmargin.data.Svmlight": "what maxmargin.data.read_svmlight returns",
    "maxmargin.data.follow": "partial_fit on blocks of maxmargin.data.read_rows",
    "maxmargin.datasets.band": "maxmargin.datasets.xor",
    "maxmargin.datasets.discs": "maxmargin.datasets.xor",
    "maxmargin.model_selection.map_gap": "certificate_.primal on the map over certificate_.dual "
    "without it (see docs/how-to/a-million-rows.md)",
    "maxmargin.plots.KernelLiftDisplay": "examples/circle_lift.py",
    "maxmargin.plots.LossDisplay": "examples/hinge_family.py",
    "maxmargin.plots.PriorSamplesDisplay": "examples/draws_from_a_prior.py",
    "maxmargin.plots.SeparatorsDisplay": "examples/many_separators.py",
    "maxmargin.plots.UpdateDisplay": "examples/one_update.py",
    "maxmargin.plots.VersionSpaceDisplay": "examples/version_space.py",
    "maxmargin.structured.Multilabel": "sklearn.multioutput.MultiOutputClassifier",
    "maxmargin.structured.Ranking": "a model of your own (see examples/ranking_model.py)",
}


def no_attribute(module: str, name: str) -> AttributeError:
    """Return the error for a name that a module does not have, with what replaces a removed one."""
    message = f"module {module!r} has no attribute {name!r}"
    instead = REMOVED.get(f"{module}.{name}")
    return AttributeError(f"{message}: use {instead}" if instead else message)
