"""One search in this process: its candidates in all splits, and which of them are refined."""

import math
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from maxmargin._typing import Flags, Floats, Ints
from maxmargin.kernels import Kernel
from maxmargin.model_selection.search.evaluation import (
    Evaluated,
    SearchFits,
    SparseDuals,
)
from maxmargin.model_selection.search.plan import Family, View, group
from maxmargin.model_selection.search.shared_gram import (
    Job,
    SharedGram,
    state_jobs,
    suits_matrix,
)
from maxmargin.runtime.progress import Bar
from maxmargin.runtime.threads import one_blas_thread

_WIDE = 0.01  # relative gap of fits on a matrix whose candidates may be out
_ENOUGH_ROWS = 500  # to learn from, for such gaps to save anything


# ------------------------------------------------------------------- which candidates can still win
#
# A fit with an absolute duality gap g is no farther than √(2g) from the optimum, so its score of a
# row x is off by at most √(2g·K(x, x)). At gaps worth having that is more than most scores, and it
# rules out next to nothing. So the change is measured: the best candidates are solved to ``tol``,
# and how much their scores change says how much others may. A candidate is out if it would not win
# even if its score rose by twice the largest change seen and three rows more. All that are not out
# are solved to ``tol``, which may show larger changes, and so on.

_SAFETY = 2.0  # times the largest change seen
_ROWS = 3  # whose weight is added, as few changes may have been seen, and small ones
_FIRST = 0.1  # part of the candidates whose change is measured first
_LEAST = 5  # of them


class Standings:
    """The mean scores of candidates, some solved to ``tol``, others to a wide gap.

    ``unit`` is the weight of one scored row in a mean score.
    """

    def __init__(self, scores: Floats, final: Flags, unit: float) -> None:
        self.scores, self.final, self.unit = scores.copy(), final.copy(), unit
        self._changes: list[float] = []

    def enter(self, candidate: int, score: float) -> None:
        """Note the score of a candidate that has been solved to ``tol`` now."""
        change = abs(score - self.scores[candidate])
        if math.isfinite(change):
            self._changes.append(float(change))
        self.scores[candidate], self.final[candidate] = score, True

    @property
    def margin(self) -> float:
        """By how much the score of a candidate may rise that was solved to a wide gap."""
        return _SAFETY * max(self._changes, default=0.0) + _ROWS * self.unit

    def contenders(self) -> Ints:
        """Return the candidates that may still win and are not solved to ``tol``."""
        wide = np.flatnonzero(~self.final)
        reach = np.nan_to_num(self.scores[wide], nan=np.inf)  # they may have a score at ``tol``
        if not self._changes:
            first = max(_LEAST, math.ceil(_FIRST * len(self.scores)))
            return np.sort(wide[np.argsort(-reach, kind="stable")[:first]])
        leading = np.nan_to_num(self.scores[self.final], nan=-np.inf).max()
        return np.asarray(wide[reach + self.margin >= leading])


# ------------------------------------------------------------------- starts, and the run


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


class SearchRun:
    """The candidates of a search in all its splits.

    ``deciding`` reads the score by which candidates win; if it is None, all are solved to ``tol``.
    """

    def __init__(
        self,
        fits: SearchFits,
        candidates: list[dict[str, Any]],
        deciding: Callable[[Any], float] | None,
        bar: Bar,
        verbose: int,
    ) -> None:
        self.fits, self.candidates = fits, candidates
        self._deciding, self._bar, self._verbose = deciding, bar, verbose
        few = max(len(split.train) for split in fits.splits) < _ENOUGH_ROWS
        self.wide = 0.0 if deciding is None or few else _WIDE  # gap of first fits on a matrix
        self.results: dict[tuple[int, int], dict[str, Any]] = {}  # by candidate and split
        self.starts = Starts(fits.memory // 8)
        self.matrices = self.chains = self.refined = 0
        self.why_chains = ""
        self._final = np.ones(len(candidates), bool)  # which candidates are solved to ``tol``
        self._shared: list[tuple[SharedGram, Kernel, list[Job]]] = []

    def run(self) -> None:
        """Score every candidate in every split."""
        if self._verbose > 0:
            n, m = len(self.candidates), len(self.fits.splits)
            sys.stdout.write(f"{n} candidates in {m} splits: {n * m} fits\n")
        with ThreadPoolExecutor(self.fits.threads) as pool, one_blas_thread():
            self._evaluate_all(pool)
            self._refine(pool)

    def _evaluate_all(self, pool: Executor) -> None:
        """Score families on one matrix of kernel values if they can share it, else in chains."""
        fits = self.fits
        for stage in group(fits.models):
            for view in fits.views(stage.steps, fits.splits):
                shared = self._choose_shared(view, stage.families)
                if shared:
                    self._evaluate_on_matrix(view, shared, pool)
                for family in stage.families:
                    if family not in shared:
                        self._evaluate_in_chains(view, family, pool)

    def _choose_shared(self, view: View, families: list[Family]) -> list[Family]:
        """Return the families that are solved on a matrix of kernel values."""
        shared = [family for family in families if suits_matrix(family.machine)]
        why = self.fits.objection_to(view)
        if shared and why:
            self.why_chains, shared = why, []
        if self.wide > 0.0:
            for family in shared:
                self._final[family.candidates] = family.machine.tol >= self.wide
        return shared

    def _evaluate_on_matrix(self, view: View, families: list[Family], pool: Executor) -> None:
        gram = self.fits.gram_of(view, families)
        for kernel, jobs in state_jobs(view, families):
            self.matrices += 1
            self._solve(gram, kernel, jobs, pool, self.wide)
            if self.wide > 0.0:
                self._shared.append((gram, kernel, jobs))
        gram.forget()

    def _solve(
        self, gram: SharedGram, kernel: Kernel, jobs: list[Job], pool: Executor, wide: float
    ) -> None:
        starts = [
            lay_out_starts(job, self.starts.take(job.family, job.split.number)) for job in jobs
        ]
        for found in self.fits.solve(gram, kernel, jobs, pool, wide, starts):
            self._enter(found)

    def _refine(self, pool: Executor) -> None:
        """Solve what may still win to ``tol``, until the winner is settled."""
        if self.wide == 0.0 or not self.matrices:
            return
        splits = self.fits.splits
        scored = sum(len(split.test) for split in splits)
        scores = np.array([self._mean_score(k) for k in range(len(self.candidates))])
        standings = Standings(scores, self._final, 1.0 / max(1, scored))
        while len(chosen := standings.contenders()):
            self._bar.update(
                total=(self._bar.total or 0) + len(chosen) * len(splits),
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
        assert self._deciding is not None
        count = len(self.fits.splits)
        results = [self.results[candidate, k]["test_scores"] for k in range(count)]
        return float(np.mean([self._deciding(scores) for scores in results]))

    def _evaluate_in_chains(self, view: View, family: Family, pool: Executor) -> None:
        """Fit by rising C in each split, each time starting from the last solution."""
        self.chains += len(view.splits)
        for chain in list(pool.map(partial(self.fits.follow_chain, view, family), view.splits)):
            for each in chain:
                self._enter(each)

    def _enter(self, found: Evaluated) -> None:
        """Note a result, and the duals of a fit that may be refined."""
        self._bar.advance()
        candidate, split, result, _ = found
        before = self.results.get((candidate, split))
        if before is not None:  # it was refined
            for name in ("fit_time", "score_time"):
                result[name] += before[name]
        self.results[candidate, split] = result
        self.starts.keep(found)
        if self._verbose > 1:
            settings = ", ".join(f"{k}={v}" for k, v in self.candidates[candidate].items())
            sys.stdout.write(
                f"[split {split + 1}/{len(self.fits.splits)}] {settings}: "
                f"score={result['test_scores']}, gap {result['relative_gap']:.1e}, "
                f"{result['fit_time']:.2f} s\n"
            )

    @property
    def sharing(self) -> str:
        """A sentence on what was shared."""
        parts, splits = [], len(self.fits.splits)
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
