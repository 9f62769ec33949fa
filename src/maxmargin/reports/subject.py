"""What a report is about: a model taken apart, and rows with what it says of them.

What it says has one sign convention for all models: positive where it is right. Two classes:
y f/‖w‖, the distance to the boundary. More: the score of a row's own class minus the best other
one. Numbers: the residual y − f. Outlier detectors: f/‖w‖, negative for outliers.
"""

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from maxmargin.estimators import VotedPerceptron
from maxmargin.geometry import hyperplane
from maxmargin.html import Html, html, visible

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NAME = 40  # characters of a label or of a column's name
_TITLE = 200  # characters of the heading
_OPERATIONS = 2e9  # of predictions for the training rows: a few seconds
_EXPONENTIAL = 30  # operations of a kernel value beside those of its columns
_FEWEST, _UNKNOWN = 2000, 20_000  # rows judged at least; by models of unknown cost
_CHEAP = 10**7  # rows judged by planes
_TEST = 10  # times as many test rows: what is said of them must be said of all if it can be


@dataclass(frozen=True)
class Scores:
    """Predictions, which of them are right, and by how much.

    ``values`` are signed as the module says; of residuals, |value| is the error. ``raw`` are f, a
    column for each class of several. ``unit`` says what the values are.
    """

    predicted: npt.NDArray[Any]
    right: npt.NDArray[np.bool_]
    values: Floats
    raw: Floats
    unit: str


def scored(machine: Any, rows: Any, y: Any) -> Scores:
    """Return what the machine at the end of a model says of rows, as it sees them."""
    if is_classifier(machine) and hasattr(machine, "dual_coef_") and len(machine.classes_) == 2:
        # A kernel's values take the time: once for the scores, whose signs are the predictions.
        raw, unit = raw_scores(machine, rows, machine.classes_)
        predicted = np.asarray(machine.classes_)[(raw > 0).astype(int)]
        return _of_two(predicted, raw, unit, machine.classes_, y)
    predicted = np.asarray(machine.predict(rows))
    if is_regressor(machine):
        f = predicted.astype(np.float64).reshape(len(predicted), -1)
        off = np.asarray(y, dtype=np.float64) - f[:, 0]
        return Scores(predicted, np.ones(len(off), dtype=bool), off, f, "residual")
    if not is_classifier(machine):
        f, unit = _distances(machine, rows)
        return Scores(predicted, predicted > 0, f, f[:, np.newaxis], unit)
    classes = np.asarray(machine.classes_)
    raw, unit = raw_scores(machine, rows, classes)
    if raw.ndim == 1:
        return _of_two(predicted, raw, unit, classes, y)
    return Scores(predicted, predicted == y, _leads(raw, y, classes), raw, f"lead, in {unit}")


def _of_two(predicted: Any, raw: Floats, unit: str, classes: Any, y: Any) -> Scores:
    values = np.where(y == classes[1], raw, np.where(y == classes[0], -raw, np.nan))
    return Scores(predicted, predicted == y, values, raw[:, np.newaxis], unit)


def raw_scores(machine: Any, rows: Any, classes: npt.NDArray[Any]) -> tuple[Floats, str]:
    """Return one number for each row (two classes) or one for each row and class."""
    if len(classes) == 2 and hasattr(machine, "decision_function"):
        return _distances(machine, rows)
    if hasattr(machine, "decision_function"):
        if getattr(machine, "decision_function_shape", "ovr") == "ovo":
            machine = copy.copy(machine).set_params(decision_function_shape="ovr")
        f = np.asarray(machine.decision_function(rows), dtype=np.float64)
        if f.ndim == 2 and f.shape[1] == len(classes):
            return f, "units of the score"
    if hasattr(machine, "predict_proba"):
        p = np.asarray(machine.predict_proba(rows), dtype=np.float64)
        if len(classes) == 2:
            return p[:, 1] - p[:, 0], "difference in probability"
        return p, "probability"
    said = np.asarray(machine.predict(rows))
    return (said[:, np.newaxis] == classes).astype(np.float64), "votes"


def _distances(machine: Any, rows: Any) -> tuple[Floats, str]:
    if hasattr(machine, "distance"):
        return np.asarray(machine.distance(rows), dtype=np.float64), "distance"
    f = np.asarray(machine.decision_function(rows), dtype=np.float64)
    if isinstance(machine, VotedPerceptron):  # many planes: no one length
        return f, "score"
    try:
        length = hyperplane(machine).norm
    except (ValueError, TypeError):
        return f, "score"
    return (f / length, "distance") if length > 0 else (f, "score")


def _leads(raw: Floats, y: Any, classes: npt.NDArray[Any]) -> Floats:
    """Return by how much a row's own class leads; NaN for labels that the model does not know."""
    own = np.asarray(y)[:, np.newaxis] == classes
    best = np.where(own, -np.inf, raw).max(axis=1)
    mine = np.where(own, raw, -np.inf).max(axis=1)
    return np.where(own.any(axis=1), mine - best, np.nan)


@dataclass(frozen=True)
class Part:
    """Rows that were judged: all of the training or test rows, or a sample of them.

    ``rows`` are their positions among ``total``, ``numbers`` what the user calls them; ``X``, ``y``
    and ``scores`` are of these rows only.
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
        """A remark on what was left out, or nothing."""
        if len(self.rows) == self.total:
            return ""
        return f"{len(self.rows)} of {self.total} {self.name} rows, drawn at random"


@dataclass(frozen=True)
class Words:
    """How the reader knows things: names of rows and of the label, options, and what to beware of.

    ``options`` are parameters under the name that the reader gave them by.
    """

    row: str = "row"
    label: str = "label"
    options: Mapping[str, str] = field(default_factory=dict)
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class Subject:
    """A fitted model, the machine at its end, and the rows it was given.

    ``numbers`` are those of all training rows, as the user counts them; ``named`` says whether
    the columns have names of their own.
    """

    model: Any
    machine: Any
    search: Any
    X: Any
    y: Any
    numbers: npt.NDArray[Any]
    train: Part
    test: Part | None
    names: list[str]
    named: bool
    title: str
    words: Words

    @property
    def classifies(self) -> bool:
        """Whether the answers are classes."""
        return bool(is_classifier(self.machine))

    @property
    def regresses(self) -> bool:
        """Whether the answers are numbers."""
        return bool(is_regressor(self.machine))

    @property
    def guesses(self) -> bool:
        """Whether the model looks at no column."""
        return isinstance(self.machine, DummyClassifier | DummyRegressor)

    @property
    def parts(self) -> list[Part]:
        """The test rows first: they say more."""
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
        """The labels the model knows."""
        return list(getattr(self.machine, "classes_", ()))

    def inner(self, X: Any) -> Any:
        """Return rows as the machine at the end of a pipeline sees them."""
        return inner(self.model, X)

    def worded(self, sentence: str, columns: bool = False) -> str:
        """Return text or markup with options, and numbered columns, by the names the reader knows.

        ``columns`` says that "column 3" in it is the one at position 3 of X.
        """
        safe = html if isinstance(sentence, Html) else str
        for name, given in self.words.options.items():
            if name not in self.names:  # else it may be about that column
                sentence = safe(given).join(re.split(rf"\b{re.escape(name)}\b", sentence))
        if columns:
            sentence = re.sub(r"\bcolumn (\d+)\b", lambda of: safe(self._named(of)), sentence)
        return sentence

    def _named(self, column: re.Match[str]) -> str:
        j = int(column[1])
        return f"column {visible(self.names[j], NAME)!r}" if j < len(self.names) else column[0]


def subject_of(
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
    words: Words | None = None,
) -> Subject:
    """Return a model and its rows, checked."""
    X, X_test = as_rows(X), as_rows(X_test)
    model, machine, search = taken_apart(model, search)
    outliers = not hasattr(machine, "classes_") and hasattr(machine, "offset_")
    if y is None and not outliers:
        raise ValueError(f"y is missing: {type(machine).__name__} learns from labels or targets")
    if (X_test is None) != (y_test is None) and not (outliers and y_test is None):
        raise ValueError("X_test and y_test belong together; give both or neither")
    if X_test is None and rows_test is not None:
        raise ValueError("rows_test are numbers of test rows, but there is no X_test")
    y = None if outliers else as_answers("y", machine, y)
    y_test = None if outliers or y_test is None else as_answers("y_test", machine, y_test)
    numbers = _numbers("rows", rows, X)
    numbers_test = None if X_test is None else _numbers("rows_test", rows_test, X_test)
    return Subject(
        model,
        machine,
        search,
        X,
        y,
        numbers,
        train=judged("training", model, machine, X, y, numbers),
        test=None
        if numbers_test is None
        else judged("test", model, machine, X_test, y_test, numbers_test),
        names=(names := column_names(X, model, feature_names)),
        named=names != column_names(X, None, None),
        title=visible(title or type(machine).__name__, _TITLE),
        words=words or Words(),
    )


def inner(model: Any, X: Any) -> Any:
    """Return rows as the last step of a model sees them."""
    for step in before(model):
        X = step.transform(X)
    return X


def before(model: Any) -> list[Any]:
    """Return what is done to rows before the last step, through pipelines inside pipelines."""
    steps = []
    while isinstance(model, Pipeline):
        steps += [step for _, step in model.steps[:-1] if hasattr(step, "transform")]
        model = model.steps[-1][1]
    return steps


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
    machine = model
    while isinstance(machine, Pipeline):
        machine = machine.steps[-1][1]
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


def _numbers(name: str, given: Any, X: Any) -> npt.NDArray[Any]:
    """Return what the user calls each row: by default its position, from 0."""
    total = _num_samples(X)
    if given is None:
        return np.arange(total)
    numbers = np.asarray(given).ravel()
    if len(numbers) != total:
        raise ValueError(f"{name} has {len(numbers)} entries for {total} rows; give one for each")
    return numbers


def judged(name: str, model: Any, machine: Any, X: Any, y: Any, numbers: npt.NDArray[Any]) -> Part:
    """Return what a model says of rows, or of a fixed random sample if they are too many."""
    total = _num_samples(X)
    if y is not None and _num_samples(y) != total:
        which = "" if name == "training" else "_test"
        raise ValueError(
            f"y{which} has {_num_samples(y)} entries, but X{which} has {total} rows; "
            "each row needs one"
        )
    rows = np.arange(total)
    most = _affordable(model) * (_TEST if name == "test" else 1)
    if total > most:
        rows = np.sort(np.random.default_rng(0).choice(total, most, replace=False))
        X = _safe_indexing(X, rows)
    labels = None if y is None else y[rows]
    said = scored(machine, inner(model, X), labels)
    return Part(name, total, rows, numbers[rows], X, labels, said)


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


def _affordable(model: Any) -> int:
    cost = operations(model)
    if cost is None:
        return _UNKNOWN
    return max(_FEWEST, int(_OPERATIONS / cost)) if cost else _CHEAP


def operations(model: Any) -> float | None:
    """Return what a prediction for one row takes, feature maps included; None if it is unknown.

    Planes take next to nothing: where rows are sparse, their columns do not count.
    """
    machine = model
    while isinstance(machine, Pipeline):
        machine = machine.steps[-1][1]
    cost = sum(
        step.n_components_ * (step.n_features_in_ + step.n_components_)
        for step in before(model)
        if hasattr(step, "n_components_") and hasattr(step, "n_features_in_")
    )
    if hasattr(machine, "coef_"):
        return float(cost)
    if not hasattr(machine, "dual_coef_"):
        return None
    width = max(1, int(getattr(machine, "n_features_in_", 1)))
    return float(cost + max(1, np.shape(machine.dual_coef_)[-1]) * (width + _EXPONENTIAL))


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
