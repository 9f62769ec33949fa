"""One search in this process: its candidates in all splits, and which of them are refined."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.kernels import Kernel
from maxmargin.model_selection.search.contenders import Standings
from maxmargin.model_selection.search.evaluation import (
    Evaluated,
    SearchFits,
    SparseDuals,
)
from maxmargin.model_selection.search.plan import Family, Split, View, group
from maxmargin.model_selection.search.shared_gram import (
    Job,
    SharedGram,
    find_shortage,
    state_jobs,
    suits_matrix,
)
from maxmargin.runtime.progress import Bar
from maxmargin.runtime.threads import one_blas_thread

_ABANDONED = {
    "fit_time": 0.0, "score_time": 0.0, "relative_gap": np.nan, "abandoned": True,
    "test_scores": np.nan, "train_scores": np.nan,
}  # fmt: skip


_WIDE = 0.01  # relative gap of fits on a matrix whose candidates may be out
_ENOUGH_ROWS = 500  # to learn from, for such gaps to save anything


class Starts:
    """Duals of fits that may be refined: of as many of them as fit into the memory, the latest."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._kept: dict[tuple[int, int], SparseDuals] = {}

    def keep(self, found: Evaluated) -> None:
        """Keep the duals of a fit."""
        if found.duals is None:
            return
        size = _bytes_of(found.duals)
        if size <= self._memory:
            self._memory -= size
            self._kept[found.candidate, found.split] = found.duals

    def take(self, family: Family, split: int) -> list[SparseDuals] | None:
        """Return the duals of a family's candidates, and forget them; None: some are not there."""
        found = [self._kept.pop((c, split), None) for c in family.candidates.tolist()]
        kept = [duals for duals in found if duals is not None]
        self._memory += sum(map(_bytes_of, kept))
        return kept if len(kept) == len(found) else None


def _bytes_of(duals: SparseDuals) -> int:
    return 16 * sum(len(used) for used, _ in duals)


def lay_out_starts(job: Job, kept: list[SparseDuals] | None) -> list[Floats] | None:
    """Return duals that were kept for each cost of a job as arrays, by plane."""
    if kept is None:
        return None
    out = []
    for k, problem in enumerate(job.formulated.problems):
        duals = np.zeros((len(kept), len(problem.row)))
        for planes, row in zip(kept, duals, strict=True):
            used, values = planes[k]
            row[used] = values
        out.append(duals)
    return out


class Racing:
    """Which candidates can still win: their mean score, if the rest of it were the best possible.

    Only a candidate that was scored in all splits eliminates others.
    """

    def __init__(self, n_splits: int, best_score: float | None) -> None:
        self.active = best_score is not None
        self._n_splits, self._best_score = n_splits, best_score
        self._scores: dict[int, list[float]] = {}
        self._leading = -np.inf

    def enter(self, candidate: int, score: float) -> None:
        """Note the score of a candidate in one more split."""
        scores = self._scores.setdefault(candidate, [])
        scores.append(float(score))
        if len(scores) == self._n_splits and np.isfinite(scores).all():
            self._leading = max(self._leading, float(np.mean(scores)))

    def is_lost(self, candidate: int) -> bool:
        """Return whether a candidate cannot win any more."""
        if self._best_score is None:
            return False
        scores = self._scores.get(candidate, [])
        rest = self._best_score * (self._n_splits - len(scores))
        leading = self._leading - 1e-12 * max(1.0, abs(self._leading))
        return (sum(scores) + rest) / self._n_splits < leading


@dataclass(eq=False)
class SearchRun:
    """The candidates of a search in all its splits."""

    evaluation: SearchFits
    candidates: list[dict[str, Any]]
    racing: Racing
    verbose: int
    bar: Bar
    deciding: Callable[[Any], float] | None = None  # reads the score by which candidates win
    results: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    matrices: int = 0
    chains: int = 0
    why_chains: str = ""
    wide: float = field(init=False)  # the gap that fits on a matrix are solved to at first
    starts: Starts = field(init=False)
    refined: int = 0
    _final: Flags = field(init=False)  # which candidates are solved to their ``tol``
    _shared: list[tuple[SharedGram, Kernel, list[Job]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        few = max(len(split.train) for split in self.evaluation.splits) < _ENOUGH_ROWS
        self.wide = 0.0 if self.deciding is None or few else _WIDE
        self.starts = Starts(self.evaluation.memory // 8)
        self._final = np.ones(len(self.candidates), bool)

    def run(self) -> None:
        """Score every candidate in every split."""
        if self.verbose > 0:
            n, m = len(self.candidates), len(self.evaluation.splits)
            sys.stdout.write(f"{n} candidates in {m} splits: {n * m} fits\n")
        with ThreadPoolExecutor(self.evaluation.threads) as pool, one_blas_thread():
            self._evaluate_all(pool)
            self._refine(pool)

    def _evaluate_all(self, pool: Executor) -> None:
        """Score families on one matrix of kernel values if they can share it, else in chains."""
        evaluation = self.evaluation
        for stage in group(evaluation.models):
            for view in evaluation.views(stage.steps, evaluation.splits):
                shared = self._choose_shared(view, stage.families)
                if shared:
                    self._evaluate_on_matrix(view, shared, pool)
                for family in stage.families:
                    if family not in shared:
                        self._evaluate_in_chains(view, family, pool)

    def _choose_shared(self, view: View, families: list[Family]) -> list[Family]:
        """Return the families that are solved on a matrix of kernel values."""
        shared = [family for family in families if suits_matrix(family.machine)]
        evaluation = self.evaluation
        why = view.objection or find_shortage(len(view.y), evaluation.memory, evaluation.threads)
        if shared and why:
            self.why_chains, shared = why, []
        if self.wide > 0.0:
            for family in shared:
                self._final[family.candidates] = family.machine.tol >= self.wide
        return shared

    def _evaluate_on_matrix(self, view: View, families: list[Family], pool: Executor) -> None:
        gram = self.evaluation.gram_of(view, families)
        for kernel, jobs in state_jobs(view, families):
            self.matrices += 1
            for some in self._rounds(jobs):
                self._solve(gram, kernel, some, pool, self.wide)
            if self.wide > 0.0:
                self._shared.append((gram, kernel, jobs))
        gram.forget()

    def _solve(
        self, gram: SharedGram, kernel: Kernel, jobs: list[Job], pool: Executor, wide: float
    ) -> None:
        starts = [
            lay_out_starts(job, self.starts.take(job.family, job.split.number)) for job in jobs
        ]
        for found in self.evaluation.solve(gram, kernel, jobs, pool, wide, starts):
            self._enter(found)

    def _refine(self, pool: Executor) -> None:
        """Solve what may still win to ``tol``, until the winner is settled."""
        if self.wide == 0.0 or not self.matrices:
            return
        splits = self.evaluation.splits
        scored = sum(len(split.test) for split in splits)
        scores = np.array([self._mean_score(k) for k in range(len(self.candidates))])
        standings = Standings(scores, self._final, 1.0 / max(1, scored))
        while len(chosen := standings.contenders()):
            self.bar.update(
                total=(self.bar.total or 0) + len(chosen) * len(splits),
                note=f"{len(chosen)} candidates that may win",
            )
            self._solve_to_tol(chosen, pool)
            for candidate in chosen.tolist():
                standings.enter(candidate, self._mean_score(candidate))
        self.refined = int(np.count_nonzero(standings.final))

    def _solve_to_tol(self, chosen: Ints, pool: Executor) -> None:
        for place, (gram, kernel, jobs) in enumerate(self._shared):
            there = [np.flatnonzero(np.isin(job.family.candidates, chosen)) for job in jobs]
            some = [job.take(places.tolist()) for job, places in zip(jobs, there, strict=True)]
            some = [job for job in some if len(job.family.costs)]
            if some:
                self._solve(gram, kernel, some, pool, 0.0)
            if place + 1 == len(self._shared) or self._shared[place + 1][0] is not gram:
                gram.forget()

    def _mean_score(self, candidate: int) -> float:
        assert self.deciding is not None
        count = len(self.evaluation.splits)
        results = [self.results[candidate, k]["test_scores"] for k in range(count)]
        return float(np.mean([self.deciding(scores) for scores in results]))

    def _rounds(self, jobs: list[Job]) -> Iterator[list[Job]]:
        """Yield the jobs all at once, or split by split those not yet eliminated."""
        if not self.racing.active:
            yield jobs
            return
        for split in self.evaluation.splits:
            here = [job for job in jobs if job.split.number == split.number]
            some = [job.take(self._drop_lost(job.family, job.split)) for job in here]
            some = [job for job in some if len(job.family.costs)]
            if some:
                yield some

    def _drop_lost(self, family: Family, split: Split) -> list[int]:
        """Return the places in a family of candidates that can win; abandon the others."""
        places = []
        for place, candidate in enumerate(family.candidates.tolist()):
            if self.racing.is_lost(candidate):
                self._enter(Evaluated(candidate, split.number, _ABANDONED))
            else:
                places.append(place)
        return places

    def _evaluate_in_chains(self, view: View, family: Family, pool: Executor) -> None:
        """Fit by rising C in each split, each time starting from the last solution."""
        self.chains += len(view.splits)
        for splits in [[split] for split in view.splits] if self.racing.active else [view.splits]:
            places = [self._drop_lost(family, split) for split in splits]
            chains = pool.map(self.evaluation.follow_chain, [view] * len(splits),
                              [family] * len(splits), splits, places)  # fmt: skip
            for chain in list(chains):
                for each in chain:
                    self._enter(each)

    def _enter(self, found: Evaluated) -> None:
        """Note a result, and the duals of a fit that may be refined."""
        self.bar.advance()
        candidate, split, result, _ = found
        before = self.results.get((candidate, split))
        if before is not None:  # it was refined
            for name in ("fit_time", "score_time"):
                result[name] += before[name]
        self.results[candidate, split] = result
        if result["abandoned"]:
            return
        self.starts.keep(found)
        if self.racing.active:
            self.racing.enter(candidate, result["test_scores"])
        if self.verbose > 1:
            settings = ", ".join(f"{k}={v}" for k, v in self.candidates[candidate].items())
            sys.stdout.write(
                f"[split {split + 1}/{len(self.evaluation.splits)}] {settings}: "
                f"score={result['test_scores']}, gap {result['relative_gap']:.1e}, "
                f"{result['fit_time']:.2f} s\n"
            )

    @property
    def sharing(self) -> str:
        """A sentence on what was shared."""
        parts, splits = [], len(self.evaluation.splits)
        if self.matrices:
            noun = "matrix" if self.matrices == 1 else "matrices"
            parts.append(f"{self.matrices} kernel {noun} served {splits} splits and all costs")
        if self.chains:
            why = f" ({self.why_chains})" if self.why_chains else ""
            parts.append(f"{self.chains} chains of fits by rising C, each from the last{why}")
        if self.refined:
            parts.append(
                f"{self.refined} of {len(self.candidates)} candidates were solved to tol, the "
                f"others to relative gaps of at most {_WIDE}"
            )
        return "; ".join(parts)
