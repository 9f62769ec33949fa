"""What a report is about: a model taken apart, and rows with what it says of them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.reports.scores import Scores, scored

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_OPERATIONS = 2e9  # of one part's predictions: a few seconds
_FEWEST, _UNKNOWN = 2000, 20_000  # rows judged at least; by models of unknown cost


@dataclass(frozen=True)
class Part:
    """Rows that were judged: all of the training or test rows, or a sample of them.

    ``rows`` are their numbers among ``total``; ``X``, ``y`` and ``scores`` are of these rows only.
    """

    name: str
    total: int
    rows: Ints
    X: Any
    y: Any
    scores: Scores

    @property
    def sampled(self) -> str:
        """A remark on what was left out, or nothing."""
        if len(self.rows) == self.total:
            return ""
        return f"{len(self.rows)} of {self.total} {self.name} rows, drawn at random"


@dataclass(frozen=True)
class Subject:
    """A fitted model, the machine at its end, and the rows it was given."""

    model: Any
    machine: Any
    search: Any
    X: Any
    y: Any
    train: Part
    test: Part | None
    names: list[str]
    title: str

    @property
    def classifies(self) -> bool:
        """Whether the answers are classes."""
        return bool(is_classifier(self.machine))

    @property
    def regresses(self) -> bool:
        """Whether the answers are numbers."""
        return bool(is_regressor(self.machine))

    @property
    def parts(self) -> list[Part]:
        """The test rows first: they say more."""
        return [self.test, self.train] if self.test else [self.train]

    def inner(self, X: Any) -> Any:
        """Return rows as the machine at the end of a pipeline sees them."""
        return inner(self.model, X)

    @cached_property
    def classes(self) -> list[Any]:
        """The labels the model knows."""
        return list(getattr(self.machine, "classes_", ()))


def inner(model: Any, X: Any) -> Any:
    """Return rows as the last step of a model sees them."""
    piped = isinstance(model, Pipeline) and len(model.steps) > 1
    return model[:-1].transform(X) if piped else X


def taken_apart(model: Any, search: Any) -> tuple[Any, Any, Any]:
    """Return the model that predicts, its last step, and the search it came from."""
    if hasattr(model, "cv_results_") and hasattr(model, "best_params_"):
        if not hasattr(model, "best_estimator_"):
            raise ValueError(
                "model is a search with refit=False, which has no fitted model; fit "
                "best_params_ yourself and give the search as search="
            )
        search = model if search is None else search
        model = model.best_estimator_
    if not hasattr(model, "predict") or isinstance(model, type):
        raise TypeError(
            f"model must be a fitted estimator with predict, got {model!r:.80}; "
            "for example mm.SVC().fit(X, y)"
        )
    if search is not None and not hasattr(search, "cv_results_"):
        raise TypeError(
            f"search must be a fitted SVCSearchCV or GridSearchCV, got {search!r:.80}; "
            "leave it out if there was none"
        )
    machine = model.steps[-1][1] if isinstance(model, Pipeline) else model
    check_is_fitted(machine)
    if not (is_classifier(machine) or is_regressor(machine) or is_outlier_detector(machine)):
        raise TypeError(f"report is for classifiers, regressors and outlier detectors, not {model}")
    return model, machine, search


def as_rows(X: Any) -> Any:
    """Return lists of numbers as an array; lists of anything else, and tables, as they are."""
    if not isinstance(X, list | tuple):
        return X
    try:
        rows = np.asarray(X)
    except ValueError:  # objects of several lengths
        return X
    return rows if rows.ndim == 2 and rows.dtype.kind in "biuf" else X


def judged(name: str, model: Any, machine: Any, X: Any, y: Any) -> Part:
    """Return what a model says of rows, or of a fixed random sample if they are too many."""
    total = _num_samples(X)
    if y is not None and _num_samples(y) != total:
        which = "" if name == "training" else "_test"
        raise ValueError(
            f"y{which} has {_num_samples(y)} entries, but X{which} has {total} rows; "
            "each row needs one"
        )
    rows = np.arange(total)
    most = _affordable(machine)
    if total > most:
        rows = np.sort(np.random.default_rng(0).choice(total, most, replace=False))
        X = _safe_indexing(X, rows)
    labels = None if y is None else y[rows]
    return Part(name, total, rows, X, labels, scored(model, machine, X, inner(model, X), labels))


def as_answers(name: str, machine: Any, y: Any) -> npt.NDArray[Any]:
    """Return labels or targets as one column; the model must know some of the labels."""
    answers = np.asarray(y)
    if answers.ndim == 0 or answers.size != len(answers):
        raise ValueError(f"{name} must be one column, got shape {answers.shape}")
    answers = answers.ravel()
    known: Any = getattr(machine, "classes_", ())
    if len(known) and len(answers) and not any(np.any(answers == label) for label in known):
        raise ValueError(
            f"{name} has no label that the model knows: it has {answers[0]!r:.40}, the model "
            f"{known[0]!r:.40}; write labels as those the model was fitted to"
        )
    return answers


def _affordable(machine: Any) -> int:
    if hasattr(machine, "dual_coef_") and not hasattr(machine, "coef_"):
        width = max(1, int(getattr(machine, "n_features_in_", 1)))
        count = max(1, np.shape(machine.dual_coef_)[1])
        return max(_FEWEST, int(_OPERATIONS / (width * count)))
    return 10**7 if hasattr(machine, "coef_") else _UNKNOWN


def column_names(X: Any, model: Any, given: Iterable[Any] | None) -> list[str]:
    """Return names of the columns of X: those given, its own, the model's, or numbers."""
    shape = np.shape(X)
    width = shape[1] if len(shape) == 2 else 0
    own = getattr(X, "columns", None)
    names = given if given is not None else own
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    chosen = [f"x{j + 1}" for j in range(width)] if names is None else [str(name) for name in names]
    if given is not None and len(chosen) != width:
        raise ValueError(
            f"feature_names has {len(chosen)} names, but X has {width} columns; give one for each"
        )
    return chosen if len(chosen) == width else [f"x{j + 1}" for j in range(width)]
