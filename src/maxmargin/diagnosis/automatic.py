"""Diagnose, tune and fit within a time: one call from rows to a fitted model.

What is done follows from the numbers of rows, columns and classes and from ``max_time``, not from
how fast the machine is: the same data give the same model anywhere, unless the time runs out. If
it runs out before the diagnosis has compared planes with kernels, the search compares them.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline, make_pipeline

from maxmargin._typing import Floats, Ints
from maxmargin.data.columns import number_equal_rows
from maxmargin.diagnosis.inputs import draw_rows
from maxmargin.diagnosis.ladder import diagnose
from maxmargin.diagnosis.result import Diagnosis
from maxmargin.estimators import SVC, SVR, LinearSVC, LinearSVR, Nystroem
from maxmargin.inspection.code import describe
from maxmargin.inspection.model_view import take_rows
from maxmargin.kernels import RBF
from maxmargin.model_selection import SVCSearchCV
from maxmargin.problems.problem import Status
from maxmargin.runtime.clock import Clock
from maxmargin.validation.parameters import check_number

DIAGNOSIS_SHARE, FIT_SHARE = 0.5, 0.35  # of max_time; the search takes what its rows take
LATE_SHARE = 0.25  # of the work planned, if not even the diagnosis was finished in time
LEAST_SHARE = 0.1  # of max_time, which a fit gets in any case
SEARCHED_ROWS = 2500  # learnt from in a search, if there are 30 seconds
SCORED_ROWS = 2  # times as many others, if rows are too many to cross-validate
FACTORS = 4.0 ** np.arange(-2, 3)  # of the recommended C and gamma, which the search tries
KERNEL_WORK = 4e9  # rows² × (columns + 30) of a kernel machine that fit into a second
MAP_WORK = 3e9  # rows × features² of a map with a plane that fit into a second
MAP_FEATURES = (50, 1000)
MAP_WIDTHS, MAP_COSTS = (1.0, 0.25), (1.0, 16.0)  # times those of the kernel machine
SAMPLED_ROWS = 15_000  # of a kernel machine that is fitted to a part of the rows
SLOW_ROWS = 1500  # rows of networks and neighbours that fit into a second
SLOW_MODELS = ("MLPClassifier", "KNeighborsClassifier")


class Untuned(Enum):
    """Why no parameters were searched for."""

    NO_COST = "the recommended model has no C"
    TOO_FEW_ROWS = "there are too few rows to cross-validate"


@dataclass(frozen=True)
class Tuning:
    """What the search around the recommended model found.

    Attributes
    ----------
    searches : tuple of SVCSearchCV
        One, or two if the diagnosis had no time to compare planes with kernels.
    best : int or None
        The position of the search whose best candidate is used.
    seconds : tuple of float
        How long each search took.
    n_fitted, n_scored : int or None
        The rows that candidates were fitted to and scored on; None if they were cross-validated.
    untuned : Untuned or None
        Why there was no search, if there was none.
    reason : str
        What is wrong with the rows, for TOO_FEW_ROWS.
    """

    searches: tuple[Any, ...] = ()
    best: int | None = None
    seconds: tuple[float, ...] = ()
    n_fitted: int | None = None
    n_scored: int | None = None
    untuned: Untuned | None = None
    reason: str = ""

    @property
    def search(self) -> Any:
        """The search whose best candidate is used, if any."""
        return None if self.best is None else self.searches[self.best]


@dataclass(frozen=True)
class Replacement:
    """What takes the place of a model that could not be fitted to all rows within the time.

    Attributes
    ----------
    slow : str
        The class of that model.
    n_rows : int
        How many rows the model is fitted to.
    n_features : int or None
        How many features of the kernel were tried with a plane; None if a plane replaces it.
    n_fitted, n_scored : int
        The numbers of rows that both were fitted to and scored on.
    map_score, kernel_score : float
        The scores of the best map and of the kernel machine, by the diagnosis's ``scoring``.
    by_map : bool
        Whether the map is as good as the kernel machine within noise, and replaces it.
    """

    slow: str
    n_rows: int
    n_features: int | None = None
    n_fitted: int = 0
    n_scored: int = 0
    map_score: float = math.nan
    kernel_score: float = math.nan
    by_map: bool = False


@dataclass(frozen=True)
class AutomaticFit:
    """What ``fit_automatically`` did, step by step, and the fitted model.

    Attributes
    ----------
    model : estimator or Pipeline
        The fitted model; with ``prepare`` as its first step, if that was given.
    diagnosis : Diagnosis
        Which kind of model the data need.
    tuning : Tuning
        The search for its parameters.
    replacement : Replacement or None
        What was done if the model could not be fitted to all rows within the time.
    rows : array of int
        The rows that the model was fitted to.
    out_of_time : bool
        Whether the fit stopped at ``max_time``.
    seconds : float
        How long the last fit took.
    """

    model: Any
    diagnosis: Diagnosis
    tuning: Tuning
    replacement: Replacement | None
    rows: Ints
    out_of_time: bool
    seconds: float

    def __str__(self) -> str:
        return f"{self.diagnosis}\nFitted: {describe(self.model)}, to {len(self.rows)} rows"

    def __repr__(self) -> str:
        return f"<AutomaticFit: {describe(self.model)}; print it for the reasons>"


def fit_automatically(
    X: Any,
    y: Any,
    *,
    max_time: float = 60.0,
    task: str | None = None,
    feature_names: Any = None,
    prepare: Any = None,
    random_state: int = 0,
    callback: Callable[[Any], None] | None = None,
) -> AutomaticFit:
    """Diagnose the data, tune the recommended model, and fit it, within a time.

    - :func:`diagnose` says which kind of model suits the data, in half of the time.
    - :class:`SVCSearchCV` searches C, and the width of the kernel, around the recommended values;
      if there are many rows, on some of them.
    - A kernel machine that could not be fitted to all rows in time is compared with features of
      its kernel and a plane (:class:`Nystroem`). The plane on all rows replaces it if it is as good
      on a sample within two standard errors; else the kernel machine is fitted to some of the rows.
    - The model is fitted in what is left of the time, with its certificate if it has one.

    It is not scored: hold back rows to see how good it is.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n, d)
        Rows: numbers, or whatever ``prepare`` makes numbers of.
    y : array-like of shape (n,)
        Labels, two or more classes; or numbers to be predicted.
    max_time : float, default=60.0
        Seconds for all of it, compilation aside.
    task : {None, "classification", "regression"}, default=None
        What y is for; None decides as :func:`diagnose` does.
    feature_names : sequence of str, optional
        What the diagnosis calls the columns of X; by default those of a frame, else numbers.
    prepare : transformer, optional
        What makes numbers of the rows, not fitted, such as the ``prepare`` of
        :func:`maxmargin.data.read_labelled`. It becomes the first step of the model.
    random_state : int, default=0
        For everything that is drawn. The same seed gives the same model.
    callback : callable, optional
        Called with the Diagnosis, the Tuning, and the Replacement if there is one, as soon as each
        is known.

    Returns
    -------
    AutomaticFit
        Its ``model`` is fitted.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(300, random_state=0)
    >>> found = mm.fit_automatically(X[:200], y[:200])
    >>> found.diagnosis.verdict
    'non-linearly separable'
    >>> found.model.score(X[200:], y[200:])
    1.0
    """
    given = _Arguments(max_time, random_state)
    check_number(given, "max_time", above=0)
    check_number(given, "random_state", at_least=0, integer=True)
    X, y = X if hasattr(X, "shape") else np.asarray(X), np.asarray(y)
    tell = callback or (lambda _: None)
    clock = Clock(float(max_time))
    numbers, names = X, feature_names
    if prepare is not None:
        prepared = clone(prepare)
        numbers = prepared.fit_transform(X)
        names = None if names is None else prepared.get_feature_names_out(names).tolist()
    diagnosis = diagnose(
        numbers,
        y,
        feature_names=names,
        task=task,
        groups=number_equal_rows(X),
        max_time=DIAGNOSIS_SHARE * max_time,
        random_state=random_state,
    )
    tell(diagnosis)
    work = _Work(numbers, y, diagnosis, float(max_time), random_state)
    model, tuning = work.tune()
    tell(tuning)
    model, replacement = work.make_affordable(model)
    rows = np.arange(len(y))
    if replacement is not None:
        tell(replacement)
        if replacement.n_rows < len(y):
            rows = np.random.default_rng(random_state).permutation(rows)[: replacement.n_rows]
    if prepare is not None:
        model = make_pipeline(clone(prepare), *steps_of(model))
    late, seconds = _fit(model, take_rows(X, rows), y[rows], clock)
    return AutomaticFit(model, diagnosis, tuning, replacement, rows, late, seconds)


@dataclass
class _Arguments(BaseEstimator):
    """What is checked like an estimator's parameters."""

    max_time: Any
    random_state: Any


_Arguments.__name__ = "fit_automatically"  # what error messages call it


def _fit(model: Any, X: Any, y: Any, clock: Clock) -> tuple[bool, float]:
    """Fit a model in the time left; return whether the time stopped it, and how long it took."""
    machine, begun = steps_of(model)[-1], time.perf_counter()
    limited = "max_time" in machine.get_params()
    if limited:
        machine.set_params(max_time=max(clock.left, LEAST_SHARE * clock.max_time))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the result says the same
        model.fit(X, y)
    late = getattr(machine, "status_", None) is Status.MAX_TIME
    if limited and not late:
        machine.set_params(max_time=None)  # it made no difference
    return late, time.perf_counter() - begun


# ------------------------------------------------------------------- between diagnosis and fit


class _Work:
    """Rows as numbers, their diagnosis, and the seconds that work is planned for."""

    def __init__(
        self, X: Any, y: Any, diagnosis: Diagnosis, max_time: float, random_state: int
    ) -> None:
        self.X = X if sp.issparse(X) else np.asarray(X)
        self.y, self.diagnosis, self.random_state = y, diagnosis, random_state
        self.late = any(rung.late for rung in diagnosis.rungs)
        self.seconds = max_time * (LATE_SHARE if self.late else 1.0)
        self.searched_rows = int(SEARCHED_ROWS * min(1.0, math.sqrt(self.seconds / 30)))

    def tune(self) -> tuple[Any, Tuning]:
        """Return the best model around the recommended one, and the searches that found it.

        If the time ran out before the diagnosis came to kernels, they are searched beside planes.
        """
        models = [self.diagnosis.recommend()]
        if not _make_grid(models[0]):
            return models[0], Tuning(untuned=Untuned.NO_COST)
        X, y, cv = self.X, self.y, None
        if len(y) > self.searched_rows:
            X, y, cv = self._draw_sample()
        tried = {offer.rung for offer in self.diagnosis.alternatives if offer.score is not None}
        compared = self.diagnosis.verdict == "linearly separable" or "kernels" in tried
        if self.late and not compared:
            models.append(_make_kernel_machine(models[0], X))
        searches, seconds = [], []
        for model in models:
            begun = time.perf_counter()
            try:
                searches.append(self._search(model, X, y, cv))
            except ValueError as too_few:
                return models[0], Tuning(untuned=Untuned.TOO_FEW_ROWS, reason=str(too_few))
            seconds.append(time.perf_counter() - begun)
        best = max(
            range(len(models)), key=lambda k: searches[k].best_score_
        )  # the plane, of equals
        n_fitted, n_scored = (None, None) if cv is None else map(len, cv[0])
        model = models[best].set_params(**searches[best].best_params_)
        return model, Tuning(tuple(searches), best, tuple(seconds), n_fitted, n_scored)

    def _search(self, model: Any, X: Any, y: Any, cv: Any) -> Any:
        """Return a search of costs and widths around those of a model."""
        scoring = self.diagnosis.scoring
        search = SVCSearchCV(model, _make_grid(model), scoring=scoring, refit=False, cv=cv)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # classes with fewer rows than folds
            return search.fit(X, y)

    def _draw_sample(self) -> tuple[Any, Any, Any]:
        """Return some rows, their labels, and a split into rows to fit to and rows to score on."""
        n, rng = len(self.y), np.random.default_rng(self.random_state)
        classes = np.zeros(n, dtype=np.int64)
        if self.diagnosis.classes:
            classes = np.unique(self.y, return_inverse=True)[1]
        fitted = draw_rows(classes, min(self.searched_rows, n // 2), rng)
        others = np.setdiff1d(np.arange(n), fitted)
        scored = others[draw_rows(classes[others], SCORED_ROWS * len(fitted), rng)]
        some = np.concatenate([fitted, scored])
        split = np.split(np.arange(len(some)), [len(fitted)])
        return self.X[some], self.y[some], [split]

    def make_affordable(self, model: Any) -> tuple[Any, Replacement | None]:
        """Return a model that can be fitted within the time, and what it replaces, if anything.

        Which one follows from the numbers of rows and columns and from the time.
        """
        (n, d), seconds = self.X.shape, FIT_SHARE * self.seconds
        slow, kernel = type(steps_of(model)[-1]).__name__, model
        if isinstance(steps_of(model)[-1], SVC | SVR):
            if n**2 * (d + 30) <= KERNEL_WORK * seconds:
                return model, None
        elif slow not in SLOW_MODELS or n <= SLOW_ROWS * seconds:
            return model, None
        else:
            offers = {offer.rung: offer for offer in self.diagnosis.alternatives}
            if offers["kernels"].score is None:
                return offers["planes"].estimator, Replacement(slow, n)
            kernel = offers["kernels"].estimator
        mapped, found = self._compare_maps(kernel, seconds)
        if found["by_map"]:
            return mapped, Replacement(slow, n, **found)
        count = int(min(n, SAMPLED_ROWS, math.sqrt(KERNEL_WORK * seconds / (d + 30))))
        return kernel, Replacement(slow, max(count, min(n, self.searched_rows)), **found)

    def _compare_maps(self, kernel: Any, seconds: float) -> tuple[Any, dict[str, Any]]:
        """Return the best map of a kernel with a plane, and how it compares on a sample.

        Both are fitted to the same few rows. Features that do as well there do better with all
        rows.
        """
        X, y, ((fitted, scored),) = self._draw_sample()
        count = int(np.clip(math.sqrt(MAP_WORK * seconds / len(self.y)), *MAP_FEATURES))
        maps = [
            _make_map(kernel, count, width, cost, self.random_state)
            for width in MAP_WIDTHS
            for cost in MAP_COSTS
        ]
        gains = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # bounded iterations: the score shows their worth
            for model in (kernel, *maps):
                predicted = clone(model).fit(X[fitted], y[fitted]).predict(X[scored])
                gains.append(_gains(self.diagnosis.scoring, y[scored], predicted))
        exact, *scores = (float(gain.mean()) for gain in gains)
        best = int(np.argmax(scores))
        noise = 2 * float(gains[0].std()) / math.sqrt(len(scored))  # two standard errors
        return maps[best], {
            "n_features": count,
            "n_fitted": len(fitted),
            "n_scored": len(scored),
            "map_score": scores[best],
            "kernel_score": exact,
            "by_map": scores[best] >= exact - noise,
        }


def _gains(scoring: str, y: Any, predicted: Any) -> Floats:
    """Return what each row adds to a score: their mean is the score."""
    if scoring == "neg_mean_absolute_error":
        return np.asarray(-np.abs(y - predicted))
    right = np.asarray(y == predicted, dtype=np.float64)
    if scoring == "accuracy":
        return right
    _, classes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.asarray(right * len(y) / (len(counts) * counts[classes]))


# ------------------------------------------------------------------- models


def steps_of(model: Any) -> list[Any]:
    """Return the steps of a pipeline, or the model as the only one."""
    return [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]


def _make_grid(model: Any) -> dict[str, list[float]]:
    """Return costs, and widths of the kernel, around those of a model."""
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    params = steps_of(model)[-1].get_params()
    return {
        f"{prefix}{name}": (params[name] * FACTORS).tolist()
        for name in ("C", "gamma")
        if isinstance(params.get(name), float) and math.isfinite(params[name])
    }


def _make_kernel_machine(plane: Any, X: Any) -> Any:
    """Return an RBF machine on rows prepared as for the plane, as wide as they are spread."""
    *before, machine = steps_of(plane)
    seen = make_pipeline(*map(clone, before)).fit_transform(X) if before else X
    gamma = float(f"{RBF(gamma='scale').resolved(seen).gamma:.2g}")
    kernel: Any = SVC(gamma=gamma, class_weight=machine.get_params().get("class_weight"))
    if isinstance(machine, LinearSVR):
        spread = 10 * machine.epsilon  # of the targets, by which a diagnosis chooses the tube
        kernel = SVR(C=spread, epsilon=machine.epsilon, gamma=gamma)
    return make_pipeline(*before, kernel) if before else kernel


def _make_map(kernel: Any, count: int, width: float, cost: float, random_state: int) -> Pipeline:
    """Return features of a kernel machine's kernel, and a plane."""
    *before, machine = steps_of(kernel)
    gamma, C = (float(f"{value:.3g}") for value in (width * machine.gamma, cost * machine.C))
    features = Nystroem(n_components=count, gamma=gamma, random_state=random_state)
    if isinstance(machine, SVR):
        plane: Any = LinearSVR(C=C, epsilon=machine.epsilon)
    else:
        plane = LinearSVC(C=C, class_weight=machine.class_weight)
    return make_pipeline(*before, features, plane)
