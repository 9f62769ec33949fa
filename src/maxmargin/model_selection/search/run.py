"""Running a search: which candidates in which splits, by what route, and which are given up."""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from maxmargin import clock
from maxmargin.certificates import Certificate
from maxmargin.model_selection.search.lazy_model import Cell, Judge, Rows
from maxmargin.model_selection.search.plan import (
    Family,
    NotSharedError,
    Split,
    View,
    last_step,
    stages,
    steps_of,
    views,
    weight_name,
)
from maxmargin.model_selection.search.shared_gram import SharedMatrix, Solved, jobs_of, takes
from maxmargin.progress import Bar

# ------------------------------------------------------------------- search chains
#
# Searches that share no matrix: fits one after the other by rising C, each from the last.


def chain(view: View, family: Family, split: Split, wanted: list[int]
          ) -> Iterator[tuple[int, Any, float, float]]:  # fmt: skip
    """Yield, by rising C, the place of a candidate in its family, its model, seconds and gap."""
    X, y, weight = view.taken(split.train)
    machine = clone(family.machine).set_params(warm_start=_convex(family.machine))
    for k in wanted:
        machine.set_params(C=float(family.costs[k]))
        begun = clock.now()
        machine.fit(X, y, sample_weight=weight)
        yield k, machine, clock.now() - begun, largest_gap(machine.certificate_)


def _convex(machine: Any) -> bool:
    """Return whether the solution is the same from wherever one starts."""
    return not hasattr(machine, "kernel") or machine._named_kernel().psd is True


def largest_gap(certificate: Certificate) -> float:
    """Return the largest relative gap of the problems that a model is made of."""
    return float(max(part.relative_gap for part in certificate.parts or (certificate,)))


def whole(before: Any, name: str, machine: Any) -> Any:
    """Return a machine with the fitted steps that come before it."""
    if not name:
        return machine
    return Pipeline([*([] if before is None else before.steps), (name, machine)])


# -------------------------------------------------------------------


Result = dict[str, Any]


class Means(NamedTuple):
    """What a search may use."""

    threads: int
    memory: int
    pool: Executor


class Race:
    """Which candidates can still win: their mean score, if the rest of it were the best possible.

    Only a candidate that is judged in all splits puts others out of the race.
    """

    def __init__(self, n_splits: int, limit: float | None) -> None:
        self._n_splits, self._limit = n_splits, limit
        self._scores: dict[int, list[float]] = {}
        self._best = -np.inf

    @property
    def on(self) -> bool:
        """Whether candidates are given up at all."""
        return self._limit is not None

    def enter(self, candidate: int, score: Any) -> None:
        """Note a score."""
        if self._limit is None:
            return
        scores = self._scores.setdefault(candidate, [])
        scores.append(float(score))
        if len(scores) == self._n_splits and np.isfinite(scores).all():
            self._best = max(self._best, float(np.mean(scores)))

    def lost(self, candidate: int) -> bool:
        """Return whether a candidate cannot win any more."""
        if self._limit is None:
            return False
        scores = self._scores.get(candidate, [])
        rest = self._limit * (self._n_splits - len(scores))
        best = self._best - 1e-12 * max(1.0, abs(self._best))
        return (sum(scores) + rest) / self._n_splits < best


class SearchRun:
    """The candidates of a search in all its splits."""

    def __init__(
        self,
        estimator: Any,
        candidates: list[dict[str, Any]],
        splits: list[Split],
        judge: Judge,
        race: Race,
        tell: Callable[[int, int, Result], None],
        bar: Bar,
    ) -> None:
        self._estimator, self._candidates, self._splits = estimator, candidates, splits
        self._judge, self._race, self._tell, self._bar = judge, race, tell, bar
        self.results: dict[tuple[int, int], Result] = {}
        self.matrices = self.chains = 0
        self.why_chains = ""

    def run(self, X: Any, y: Any, fit_params: dict[str, Any], means: Means) -> None:
        """Judge every candidate in every split."""
        weight = fit_params.get(weight_name(self._estimator))
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        self._rows = {split.number: Rows(X, y, split, fit_params) for split in self._splits}
        train_scores = self._judge.train_scores
        for stage in stages(self._estimator, self._candidates):
            for view, before in views(stage, X, y, weight, self._splits, train_scores):
                shared = [family for family in stage.families if takes(family.machine)]
                others = [family for family in stage.families if not takes(family.machine)]
                try:
                    self._by_matrix(view, shared, means)
                except NotSharedError as why:
                    self.why_chains, others = str(why), stage.families
                self._by_chains(view, others, before, means)

    # ------------------------------------------------------------ one matrix for all

    def _by_matrix(self, view: View, families: list[Family], means: Means) -> None:
        if not families:
            return
        labels = None
        if hasattr(families[0].machine, "class_weight"):
            labels = np.unique(view.y, return_inverse=True)[1]
        matrix = SharedMatrix(view, labels, means.memory, means.threads)
        for kernel, jobs in jobs_of(view, families):
            self.matrices += 1
            for some in self._rounds(jobs):
                train_scores = self._judge.train_scores
                for solved in matrix.solved(kernel, some, means.pool, train_scores):
                    self._judge_all(solved)

    def _rounds(self, jobs: list[Any]) -> Iterator[list[Any]]:
        """Yield the jobs all at once, or split by split with what is still in the race."""
        if not self._race.on:
            yield jobs
            return
        for split in self._splits:
            here = [job for job in jobs if job.split.number == split.number]
            some = [job.limited_to(self._running(job.family, split)) for job in here]
            some = [job for job in some if len(job.family.costs)]
            if some:
                yield some

    def _running(self, family: Family, split: Split) -> list[int]:
        """Return the places in a family of candidates that can win; give up the others."""
        places = []
        for place, candidate in enumerate(family.candidates):
            if self._race.lost(candidate):
                self._bar.advance()
                self._enter(candidate, split, self._judge.abandoned())
            else:
                places.append(place)
        return places

    def _judge_all(self, solved: Solved) -> None:
        rows = self._rows[solved.split.number]
        for place, candidate in enumerate(solved.family.candidates):
            model = self._model(candidate)
            gap, seconds = float(solved.gaps[place]), float(solved.seconds[place])
            cell: Any = Cell(model, solved, place, rows)
            if gap > solved.machine.tol:  # the estimator has more ways to get there
                cell = cell.fitted()
                gap = largest_gap(last_step(cell).certificate_)
            self._enter(candidate, solved.split, self._judged(cell, rows, seconds, gap))

    def _judged(self, model: Any, rows: Rows, seconds: float, gap: float) -> Result:
        result = self._judge.result(model, rows, seconds, gap)
        self._bar.advance()
        return result

    def _model(self, candidate: int) -> Any:
        params = clone(self._candidates[candidate], safe=False)
        return clone(self._estimator).set_params(**params)

    # ------------------------------------------------------------ one after the other

    def _by_chains(self, view: View, families: list[Family], before: Any, means: Means) -> None:
        self.chains += len(families) * len(view.splits)
        name = steps_of(self._estimator)[-1][0]

        def run(task: tuple[Family, Split, list[int]]) -> list[tuple[int, Result]]:
            family, split, places = task
            rows = self._rows[split.number]
            return [
                (
                    family.candidates[place],
                    self._judged(whole(before, name, machine), rows, seconds, gap),
                )
                for place, machine, seconds, gap in chain(view, family, split, places)
            ]

        for family in families:
            groups = [[split] for split in view.splits] if self._race.on else [view.splits]
            for splits in groups:
                tasks = [(family, split, self._running(family, split)) for split in splits]
                with warnings.catch_warnings():  # here, as threads have their filters in common
                    warnings.simplefilter("ignore", ConvergenceWarning)  # gaps are in the results
                    answers = list(means.pool.map(run, tasks))
                for (_, split, _), found in zip(tasks, answers, strict=True):
                    for candidate, result in found:
                        self._enter(candidate, split, result)

    def _enter(self, candidate: int, split: Split, result: Result) -> None:
        self.results[candidate, split.number] = result
        if not result["abandoned"]:
            self._race.enter(candidate, result["test_scores"])
            self._tell(candidate, split.number, result)

    @property
    def sharing(self) -> str:
        """A sentence on what was shared."""
        parts = []
        if self.matrices:
            folds = len(self._splits)
            noun = "matrix" if self.matrices == 1 else "matrices"
            parts.append(f"{self.matrices} kernel {noun} served {folds} splits and all costs")
        if self.chains:
            parts.append(f"{self.chains} chains of fits by rising C, each from the last")
            if self.why_chains:
                parts[-1] += f" ({self.why_chains})"
        return "; ".join(parts)
