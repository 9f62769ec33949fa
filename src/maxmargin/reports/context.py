"""What a report is about: a fitted model, and its scores for training and test rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Ints
from maxmargin.inspection.model_view import (
    ModelView,
    Scores,
    score_rows,
    take_rows,
    view_model,
)
from maxmargin.plots import style
from maxmargin.runtime.html import visible
from maxmargin.validation.sklearn_private import count_rows

NAME = 40  # characters in a label or in the name of a column
_TITLE = 200  # characters in the heading
_OPERATIONS = 2e9  # for predictions for the training rows: a few seconds
_FEWEST, _UNKNOWN = 2000, 20_000  # rows scored at least, and by models of unknown cost
_CHEAP = 10**7  # rows scored by planes
_TEST = 10  # test rows may be this many times more: they matter more


@dataclass(frozen=True)
class ScoredRows:
    """The training or test rows, or a sample of them, with the scores of the model.

    ``rows`` are their positions among ``total``, ``numbers`` what the user calls them; ``X``, ``y``
    and ``scores`` are those of these rows only.
    """

    name: str
    total: int
    rows: Ints
    numbers: npt.NDArray[Any]
    X: Any
    y: Any
    scores: Scores

    @property
    def sampled(self) -> str:
        """A message about how the rows were sampled, or an empty one."""
        if len(self.rows) == self.total:
            return ""
        return f"{len(self.rows)} of {self.total} {self.name} rows, drawn at random"


@dataclass(frozen=True)
class Wording:
    """The reader's words for rows and for the label, and messages to pass on."""

    row: str = "row"
    label: str = "label"
    messages: Sequence[str] = ()


@dataclass(frozen=True)
class Context:
    """A fitted model and the rows it was given.

    ``numbers`` are what the user calls the training rows; ``named`` says whether the columns have
    names of their own.
    """

    view: ModelView
    X: Any
    y: Any
    numbers: npt.NDArray[Any]
    train: ScoredRows
    test: ScoredRows | None
    names: list[str]
    named: bool
    title: str
    wording: Wording

    @property
    def model(self) -> Any:
        """The model that predicts."""
        return self.view.model

    @property
    def machine(self) -> Any:
        """The last step of the model."""
        return self.view.machine

    @property
    def classifies(self) -> bool:
        """Whether the model predicts classes."""
        return bool(is_classifier(self.machine))

    @property
    def regresses(self) -> bool:
        """Whether the model predicts numbers."""
        return bool(is_regressor(self.machine))

    @property
    def guesses(self) -> bool:
        """Whether the model ignores all columns."""
        return isinstance(self.machine, DummyClassifier | DummyRegressor)

    @property
    def pairwise(self) -> bool:
        """Whether the rows are those of a kernel matrix."""
        return bool(self.model.__sklearn_tags__().input_tags.pairwise)

    @property
    def parts(self) -> list[ScoredRows]:
        """The test rows, if there are any, before the training rows."""
        return [self.test, self.train] if self.test else [self.train]

    @cached_property
    def numeric(self) -> bool:
        """Whether X is a table of finite numbers."""
        if sp.issparse(self.X):
            return True
        if not self.names:
            return False
        values = np.asarray(self.X)
        return values.dtype.kind in "biu" or (
            values.dtype.kind == "f" and bool(np.isfinite(values).all())
        )

    @cached_property
    def classes(self) -> list[Any]:
        """The labels that the model knows."""
        return list(getattr(self.machine, "classes_", ()))


def make_context(
    model: Any,
    X: Any,
    y: Any,
    *,
    X_test: Any = None,
    y_test: Any = None,
    search: Any = None,
    title: Any = None,
    feature_names: Any = None,
    rows: Any = None,
    rows_test: Any = None,
    wording: Wording | None = None,
) -> Context:
    """Return a model and its rows, checked and scored."""
    X, X_test = as_rows(X), as_rows(X_test)
    view = _view(model, search)
    outliers = view.detects_outliers
    if y is None and not outliers:
        name = type(view.machine).__name__
        raise ValueError(f"y is missing: {name} learns from labels or targets")
    if (X_test is None) != (y_test is None) and not (outliers and y_test is None):
        raise ValueError("X_test and y_test belong together; give both or neither")
    if X_test is None and rows_test is not None:
        raise ValueError("rows_test are numbers of test rows, but there is no X_test")
    y = None if outliers else check_column("y", view.machine, y)
    y_test = None if outliers or y_test is None else check_column("y_test", view.machine, y_test)
    numbers, names = _numbers("rows", rows, X), column_names(X, view.model, feature_names)
    test = None
    if X_test is not None:
        numbers_test = _numbers("rows_test", rows_test, X_test)
        test = score_part("test", view, X_test, y_test, numbers_test)
    return Context(
        view,
        X,
        y,
        numbers,
        train=score_part("training", view, X, y, numbers),
        test=test,
        names=names,
        named=names != style.column_names(None, len(names)),
        title=visible(title or type(view.machine).__name__, _TITLE),
        wording=wording or Wording(),
    )


def _view(model: Any, search: Any) -> ModelView:
    """Return a fitted model taken apart, with the search it came from; refuse anything else."""
    view = view_model(model)
    if isinstance(view.model, type) or not hasattr(view.model, "predict"):
        raise TypeError(
            f"model must be a fitted estimator with predict, got {view.model!r:.80}; "
            "for example mm.SVC().fit(X, y)"
        )
    if search is not None and not hasattr(search, "cv_results_"):
        raise TypeError(
            f"search must be a fitted SVCSearchCV or GridSearchCV, got {search!r:.80}; "
            "leave it out if there was none"
        )
    machine = view.machine
    check_is_fitted(machine)
    if not (is_classifier(machine) or is_regressor(machine) or is_outlier_detector(machine)):
        raise TypeError(
            f"report is for classifiers, regressors and outlier detectors, not {view.model}"
        )
    return view if search is None else view._replace(search=search)


def as_rows(X: Any) -> Any:
    """Return lists of numbers as an array, and anything else as it is."""
    if not isinstance(X, list | tuple):
        return X
    try:
        rows = np.asarray(X)
    except ValueError:  # objects of several lengths
        return X
    return rows if rows.ndim == 2 and rows.dtype.kind in "biuf" else X


def _numbers(name: str, given: Any, X: Any) -> npt.NDArray[Any]:
    """Return the user's number of each row: by default its position, from 0."""
    total = count_rows(X)
    if given is None:
        return np.arange(total)
    numbers = np.asarray(given).ravel()
    if len(numbers) != total:
        raise ValueError(f"{name} has {len(numbers)} entries for {total} rows; give one for each")
    return numbers


def score_part(name: str, view: ModelView, X: Any, y: Any, numbers: npt.NDArray[Any]) -> ScoredRows:
    """Return the scores of rows, or of a fixed random sample if there are too many."""
    total = count_rows(X)
    if y is not None and count_rows(y) != total:
        which = "" if name == "training" else "_test"
        raise ValueError(
            f"y{which} has {count_rows(y)} entries, but X{which} has {total} rows; "
            "each row needs one"
        )
    rows = np.arange(total)
    cost = view.count_operations()
    most = _UNKNOWN
    if cost is not None:
        most = max(_FEWEST, int(_OPERATIONS / cost)) if cost else _CHEAP
    most *= _TEST if name == "test" else 1
    if total > most:
        rows = np.sort(np.random.default_rng(0).choice(total, most, replace=False))
        X = take_rows(X, rows)
    labels = None if y is None else y[rows]
    scores = score_rows(view.machine, view.transform(X), labels)
    return ScoredRows(name, total, rows, numbers[rows], X, labels, scores)


def check_column(name: str, machine: Any, y: Any) -> npt.NDArray[Any]:
    """Return labels or targets as one column; the model must know some of the labels."""
    targets = np.asarray(y)
    if targets.ndim == 0 or targets.size != len(targets):
        raise ValueError(f"{name} must be one column, got shape {targets.shape}")
    targets = targets.ravel()
    known: Any = getattr(machine, "classes_", ())
    if len(known) and len(targets) and not any(np.any(targets == label) for label in known):
        raise ValueError(
            f"{name} has no label that the model knows: it has {targets[0]!r:.40}, the model "
            f"{known[0]!r:.40}; use the labels that the model was fitted to"
        )
    return targets


def column_names(X: Any, model: Any, given: Iterable[Any] | None) -> list[str]:
    """Return names of the columns of X: those given, its own, the model's, or numbers."""
    shape = np.shape(X)
    width = shape[1] if len(shape) == 2 else 0
    own = getattr(X, "columns", getattr(model, "feature_names_in_", ()))
    names = [str(name) for name in (own if given is None else given)]
    if len(names) == width:
        return names
    if given is not None:
        raise ValueError(
            f"feature_names has {len(names)} names, but X has {width} columns; give one for each"
        )
    return style.column_names(None, width)
