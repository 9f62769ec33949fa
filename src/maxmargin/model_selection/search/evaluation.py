"""The fits of a search and their scores: pure functions of the rows, in this process or another."""

import warnings
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection._validation import _score
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from maxmargin._typing import Floats, Ints
from maxmargin.certificates import Certificate
from maxmargin.estimators.kernel_input import named_kernel
from maxmargin.kernels import Kernel
from maxmargin.model_selection.search.lazy_model import Fold, LazyModel
from maxmargin.model_selection.search.metrics import Metric
from maxmargin.model_selection.search.plan import Family, Split, View, steps_of, views
from maxmargin.model_selection.search.shared_gram import Job, SharedGram
from maxmargin.runtime import clock

SparseDuals = list[tuple[Ints, Floats]]  # by plane: which are not 0, and their values


class Scoring(NamedTuple):
    """How models are scored."""

    scorers: Any
    metrics: dict[str, Metric] | Metric | None  # what the scorers compute, if it is known
    params: dict[str, Any]
    error_score: Any
    train_scores: bool

    def result(self, model: Any, fold: Fold, seconds: float, gap: float) -> dict[str, Any]:
        """Return what ``cv_results_`` is made of, for one model."""
        began = clock.now()
        result: dict[str, Any] = {"fit_time": seconds, "relative_gap": gap, "abandoned": False}
        result["test_scores"] = self._score(model, fold.X_test, fold.y_test, fold.split.test)
        result["score_time"] = clock.now() - began
        if self.train_scores:
            result["train_scores"] = self._score(model, *fold.learnt, fold.split.train)
        return result

    def _score(self, model: Any, X: Any, y: Any, rows: Ints) -> Any:
        if isinstance(model, LazyModel) and self.metrics is not None and not self.params:
            found = _measure(self.metrics, np.asarray(y), model.predict(X))
            if found is not None:
                return found
        params = {name: _safe_indexing(values, rows) for name, values in self.params.items()}
        return _score(model, X, y, self.scorers, params, self.error_score)


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
                model: Any = LazyModel(self.models[candidate], solved, place, fold)
                gap = float(solved.gaps[place])
                if gap > max(wide, job.machine.tol):  # the estimator has more ways to get there
                    model = model.fitted
                    gap = _largest_gap(steps_of(model)[-1][1].certificate_)
                result = self.scoring.result(model, fold, float(solved.seconds[place]), gap)
                duals = [_without_zeros(plane[place]) for plane in solved.duals]
                yield Evaluated(candidate, job.split.number, result, duals if wide > 0.0 else None)

    def follow_chain(
        self, view: View, family: Family, split: Split, places: list[int]
    ) -> list[Evaluated]:
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
        for place in places:
            machine.set_params(C=float(family.costs[place]))
            began = clock.now()
            machine.fit(X, y, sample_weight=weight)
            seconds, gap = clock.now() - began, _largest_gap(machine.certificate_)
            result = self.scoring.result(model, self.folds[split.number], seconds, gap)
            found.append(Evaluated(int(family.candidates[place]), split.number, result))
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
