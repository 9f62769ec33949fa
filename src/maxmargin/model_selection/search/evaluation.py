"""The fits of a search and their scores: pure functions of the rows, in this process or another."""

import warnings
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from numbers import Number
from traceback import format_exc
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate
from maxmargin.errors import warn
from maxmargin.estimators.kernel_input import named_kernel
from maxmargin.estimators.reductions import best_classes, combined_scores
from maxmargin.kernels import Kernel
from maxmargin.model_selection.search.metrics import Metric
from maxmargin.model_selection.search.plan import Family, Split, View, steps_of, views
from maxmargin.model_selection.search.shared_gram import Job, SharedGram, SolvedJob, find_shortage
from maxmargin.runtime import clock
from maxmargin.validation.sklearn_private import count_rows, take_rows

SparseDuals = list[tuple[Ints, Floats]]  # by plane: which are not 0, and their values


class Fold:
    """The rows of a split as scorers get them: the ones given, before any pipeline.

    Those to learn from are taken when they are needed: they would be many copies of X.
    """

    def __init__(self, X: Any, y: Any, split: Split, fit_params: dict[str, Any]) -> None:
        self._given, self.split = (X, y, fit_params), split
        self.X_test, self.y_test = take_rows(X, split.test), take_rows(y, split.test)

    @cached_property
    def learnt(self) -> tuple[Any, Any]:
        """Rows to learn from, and their targets."""
        X, y, _ = self._given
        return take_rows(X, self.split.train), take_rows(y, self.split.train)

    @property
    def fit_params(self) -> dict[str, Any]:
        """What else ``fit`` is given."""
        params = self._given[2].items()
        return {name: take_rows(values, self.split.train) for name, values in params}


class KnownScores:
    """A model of one split as scikit-learn's scorers see it: its scores of the rows are known.

    Probabilities, and scores of each pair of classes, are those of the model itself, fitted.
    """

    def __init__(self, model: Any, solved: SolvedJob, cost: int, fold: Fold) -> None:
        self._model, self._fold = model, fold
        self._machine, self._pairs = solved.job.machine, solved.job.pairs
        self._scores: Floats = solved.scores[cost]
        if self._pairs:
            self.classes_ = self._machine.classes_

    def __sklearn_tags__(self) -> Any:
        return self._model.__sklearn_tags__()

    @cached_property
    def fitted(self) -> Any:
        """The model itself, fitted."""
        return clone(self._model).fit(*self._fold.learnt, **self._fold.fit_params)

    def _votes(self, X: Any) -> Floats:
        """Return the scores of rows: of the split's test rows, or of those it learns from."""
        n_test = len(self._fold.split.test)
        known = self._scores[:n_test] if X is self._fold.X_test else self._scores[n_test:]
        assert len(known) == count_rows(X), "a scorer asks for other rows than it was given"
        if not self._pairs or len(self.classes_) == 2:
            return known[:, 0]
        return combined_scores(known, self._pairs, len(self.classes_))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return what the model predicts."""
        votes = self._votes(X)
        return best_classes(votes, self.classes_) if self._pairs else votes

    @available_if(lambda self: bool(self._pairs))
    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the model."""
        if len(self.classes_) > 2 and self._machine.decision_function_shape == "ovo":
            return np.asarray(self.fitted.decision_function(X))
        return self._votes(X)

    @available_if(lambda self: hasattr(self._model, "predict_proba"))
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes."""
        return np.asarray(self.fitted.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return accuracy, or R² of a regression."""
        kind: Any = ClassifierMixin if self._pairs else RegressorMixin
        return float(kind.score(self, X, y, sample_weight))


class Scoring(NamedTuple):
    """How models are scored."""

    scorers: Any
    metrics: dict[str, Metric] | Metric | None  # what the scorers compute, if it is known
    by_function: bool  # which may ask a model for anything
    params: dict[str, Any]
    error_score: Any
    train_scores: bool

    def result(self, model: Any, fold: Fold, seconds: float, gap: float) -> dict[str, Any]:
        """Return what ``cv_results_`` is made of, for one model."""
        began = clock.now()
        result: dict[str, Any] = {"fit_time": seconds, "relative_gap": gap}
        result["test_scores"] = self._score(model, fold.X_test, fold.y_test, fold.split.test)
        result["score_time"] = clock.now() - began
        if self.train_scores:
            result["train_scores"] = self._score(model, *fold.learnt, fold.split.train)
        return result

    def _score(self, model: Any, X: Any, y: Any, rows: Ints) -> Any:
        if isinstance(model, KnownScores) and self.metrics is not None and not self.params:
            found = _measure(self.metrics, np.asarray(y), model.predict(X))
            if found is not None:
                return found
        params = {name: take_rows(values, rows) for name, values in self.params.items()}
        try:
            scores = self.scorers(model, X, y, **params)
        except Exception:
            if self.error_score == "raise":
                raise
            return self._failed(format_exc())
        if not isinstance(scores, dict):
            return self._number(scores)
        return {name: self._number(score) for name, score in scores.items()}

    def _number(self, score: Any) -> Any:
        """Return a score as a plain number; of several scorers, one that failed gives a text."""
        if isinstance(score, str) and not self.by_function:
            return self._failed(score)
        if np.size(score) == 1 and hasattr(score, "item"):
            score = score.item()
        if not isinstance(score, Number):
            raise ValueError(
                f"scoring must return a number, got {score} ({type(score)}) instead. "
                f"(scorer={self.scorers})"
            )
        return score

    def _failed(self, details: str) -> Any:
        warn(
            "Scoring failed. The score on this train-test partition for these parameters will be "
            f"set to {self.error_score}. Details: \n{details}",
            UserWarning,
        )
        return self.error_score


def _measure(metrics: Any, y: Any, predicted: Any) -> Any:
    """Return what metrics say of predictions, or None if one of them does not know."""
    if not isinstance(metrics, dict):
        return metrics(y, predicted)
    found = {name: metric(y, predicted) for name, metric in metrics.items()}
    return None if None in found.values() else found


class Evaluated(NamedTuple):
    """A candidate that was fitted and scored in one split."""

    candidate: int
    split: int
    result: dict[str, Any]
    duals: SparseDuals | None = None  # of a fit that may be refined


@dataclass(frozen=True, eq=False)
class SearchFits:
    """Rows, splits and models of a search, and how these are scored."""

    X: Any
    y: Any
    weight: Floats | None
    fit_params: dict[str, Any]
    splits: list[Split]
    models: list[Any]  # the candidates as unfitted estimators
    scoring: Scoring
    memory: int  # bytes for kernel values
    threads: int

    @cached_property
    def folds(self) -> list[Fold]:
        """The rows of each split as scorers get them."""
        return [Fold(self.X, self.y, split, self.fit_params) for split in self.splits]

    def views(self, steps: Any, splits: list[Split]) -> Iterator[View]:
        """Yield the rows that the machine sees in these splits, after steps."""
        return views(steps, self.X, self.y, self.weight, splits, self.scoring.train_scores)

    def objection_to(self, view: View) -> str:
        """Return why a view's kernel values are not shared, or an empty string if they are."""
        if self.scoring.by_function:
            return "scoring is a function, which gets the models themselves"
        return view.objection or find_shortage(len(view.y), self.memory, self.threads)

    def gram_of(self, view: View, families: list[Family]) -> SharedGram:
        """Return the kernel values that these families share."""
        return SharedGram(view, families, self.threads, self.memory)

    def solve(
        self,
        gram: SharedGram,
        kernel: Kernel,
        jobs: list[Job],
        pool: Executor,
        wide: float,
        starts: list[list[Floats] | None],
    ) -> Iterator[Evaluated]:
        """Solve jobs to a wide gap, or to ``tol`` if that is wider, and score them."""
        for solved in gram.solve(kernel, jobs, pool, self.scoring.train_scores, wide, starts):
            job, fold = solved.job, self.folds[solved.job.split.number]
            for place, candidate in enumerate(job.family.candidates.tolist()):
                model: Any = KnownScores(self.models[candidate], solved, place, fold)
                gap = float(solved.gaps[place])
                if gap > max(wide, job.machine.tol):  # the estimator has more ways to get there
                    model = model.fitted
                    gap = _largest_gap(steps_of(model)[-1][1].certificate_)
                result = self.scoring.result(model, fold, float(solved.seconds[place]), gap)
                duals = [_without_zeros(plane[place]) for plane in solved.duals]
                yield Evaluated(candidate, job.split.number, result, duals if wide > 0.0 else None)

    def follow_chain(self, view: View, family: Family, split: Split) -> list[Evaluated]:
        """Fit a family by rising C in one split, each time starting from the last solution."""
        X, y, weight = view.take(split.train)
        machine = clone(family.machine)
        # Only where the optimum is unique may the start be anywhere.
        convex = not hasattr(machine, "kernel") or named_kernel(machine).psd is True
        machine.set_params(warm_start=convex)
        name, model = steps_of(self.models[0])[-1][0], machine
        if name:
            before = [] if view.steps is None else view.steps.steps
            model = Pipeline([*before, (name, machine)])
        found = []
        for candidate, cost in zip(family.candidates.tolist(), family.costs.tolist(), strict=True):
            machine.set_params(C=cost)
            began = clock.now()
            machine.fit(X, y, sample_weight=weight)
            seconds, gap = clock.now() - began, _largest_gap(machine.certificate_)
            result = self.scoring.result(model, self.folds[split.number], seconds, gap)
            found.append(Evaluated(candidate, split.number, result))
        return found


@contextmanager
def quietly() -> Iterator[None]:
    """Let fits that stop early not warn, as their gaps are in the results."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _without_zeros(duals: Floats) -> tuple[Ints, Floats]:
    used = np.flatnonzero(duals)
    return used, duals[used]


def _largest_gap(certificate: Certificate) -> float:
    """Return the largest relative gap of the problems that a model is made of."""
    return float(max(part.relative_gap for part in certificate.parts or (certificate,)))
