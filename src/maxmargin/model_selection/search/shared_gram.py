"""All splits and all costs of a kernel on one matrix of its values."""

from collections.abc import Iterator
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from numbers import Real
from queue import LifoQueue
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from maxmargin._typing import Floats, Ints
from maxmargin.estimators import SVC, SVR
from maxmargin.estimators.kernel_input import named_kernel
from maxmargin.estimators.machine import Formulated
from maxmargin.kernels import RBF, Kernel, Linear, PreparedRows
from maxmargin.kernels.prepared import FloatArray
from maxmargin.loops.records import Path
from maxmargin.model_selection.search.plan import Family, Split, View, identify
from maxmargin.problems.gram import SMALL, Gram
from maxmargin.runtime import clock
from maxmargin.solvers.decomposition import COPIED, OnMatrix, Workspace

_AIM = 0.6  # of tol, so that the certificate in float64 holds


@dataclass(frozen=True)
class Job:
    """A family in one split, stated as problems at C = 1."""

    family: Family
    split: Split
    machine: Any  # with the classes and the kernel of the split
    formulated: Formulated

    def take(self, places: list[int]) -> "Job":
        """Return the job with some of the family's candidates only."""
        return replace(self, family=self.family.take(places))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The classes that each plane lies between; none for a regression."""
        if not is_classifier(self.machine):
            return []
        return [
            (subproblem.positive, subproblem.negative)
            for subproblem in self.formulated.data.subproblems(self.machine.multi_class)
        ]


@dataclass(frozen=True)
class SolvedJob:
    """The scores of rows in each plane, gaps and seconds, by cost."""

    job: Job
    scores: Floats  # by (cost, row, plane): test rows, then training rows if they are scored
    gaps: Floats
    seconds: Floats
    duals: list[Floats]  # by plane: one row for each cost


def suits_matrix(machine: Any) -> bool:
    """Return whether kernel values are worth keeping: problems are binary, convex, not linear."""
    if not isinstance(machine, SVC | SVR):
        return False
    kernel = named_kernel(machine)
    return kernel.psd is True and type(kernel) is not Linear


def find_shortage(n_rows: int, memory: int, threads: int, matrices: int = 1) -> str:
    """Return why the kernel values of this many rows do not fit into memory, or nothing."""
    size = n_rows**2 * (matrices + threads * COPIED**2) * (4 if n_rows > SMALL else 8)
    if size <= memory:
        return ""
    return (
        f"a matrix of {n_rows} × {n_rows} kernel values takes {size / 2**20:.0f} MB, memory allows "
        f"{memory / 2**20:.0f}"
    )


def state_jobs(view: View, families: list[Family]) -> list[tuple[Kernel, list[Job]]]:
    """State the families in all splits; those that have a kernel in common are together."""
    found: list[tuple[Kernel, list[Job]]] = []
    stated: dict[tuple[str, int], Job] = {}
    for family in families:
        for split in view.splits:
            job = _state(view, family, split, stated)
            kernel = job.machine.kernel_
            jobs = next((jobs for known, jobs in found if known == kernel), None)
            if jobs is None:
                found.append((kernel, [job]))
            else:
                jobs.append(job)
    return found


def _state(view: View, family: Family, split: Split, stated: dict[tuple[str, int], Job]) -> Job:
    """State a family in a split; problems that differ in a given γ alone are stated once."""
    machine = clone(family.machine)
    given = isinstance(machine.kernel, str) and isinstance(machine.gamma, Real)
    known = identify(clone(machine).set_params(gamma=1.0)) if given else identify(machine)
    if (known, split.number) not in stated:
        formulated = machine.formulate(*view.take(split.train))
        stated[known, split.number] = Job(family, split, machine, formulated)
        return stated[known, split.number]
    first = stated[known, split.number]
    machine = copy(first.machine).set_params(gamma=machine.gamma)
    machine.kernel_ = named_kernel(machine)
    return Job(family, split, machine, first.formulated)


class SharedGram:
    """The kernel values of all rows of a view, in an order in which splits are long runs."""

    def __init__(self, view: View, families: list[Family], threads: int, memory: int) -> None:
        n = len(view.y)
        # What a value is computed from depends on nothing but the search as a whole, so that its
        # bits are the same wherever and in whatever order kernels come.
        several = _count_widths(families, view.splits) > 1
        self._by_distances = several and not find_shortage(n, memory, threads, matrices=2)
        by_class = is_classifier(families[0].machine)
        learnt = np.zeros((n, len(view.splits)), bool)
        for k, split in enumerate(view.splits):
            learnt[split.train, k] = True
        labels = np.unique(view.y, return_inverse=True)[1] if by_class else np.zeros(n)
        order = np.lexsort([*np.packbits(learnt, axis=1).T, labels])
        self._X, self._threads = view.X[order], threads
        self._position = np.argsort(order)
        self._kernel: Kernel | None = None
        self._values: FloatArray | None = None
        self._distances: FloatArray | None = None  # which RBF kernels share
        self._stated: dict[tuple[int, int], tuple[Formulated, OnMatrix]] = {}

    def solve(
        self,
        kernel: Kernel,
        jobs: list[Job],
        pool: Executor,
        train_scores: bool,
        gap: float = 0.0,
        starts: list[list[Floats] | None] | None = None,
    ) -> Iterator[SolvedJob]:
        """Yield the jobs of a kernel as they are solved to their ``tol``, or to a wider gap.

        ``starts`` has duals, by plane, for the costs of each job.
        """
        began = clock.now()
        K = self._materialize(kernel)
        buffers: LifoQueue[Workspace] = LifoQueue()
        widest = max(len(problem) for job in jobs for problem in job.formulated.problems)
        for _ in range(self._threads):
            buffers.put(Workspace.of(widest, K.dtype))
        shared = (clock.now() - began) / sum(len(job.family.costs) for job in jobs)
        scored = [self._scored_rows(job, train_scores) for job in jobs]
        subproblems = [
            (job, k, rows, max(gap, _AIM * job.machine.tol), None if start is None else start[k])
            for job, (rows, _), start in zip(
                jobs, scored, starts or [None] * len(jobs), strict=True
            )
            for k in range(len(job.formulated.problems))
        ]
        solved = pool.map(partial(self._follow_costs, K, buffers), subproblems)
        for job, (_, where) in zip(jobs, scored, strict=True):
            planes = list(islice(solved, len(job.formulated.problems)))
            yield SolvedJob(
                job,
                np.stack([path.scores for path, _ in planes], axis=2)[:, where],
                np.max([path.gaps for path, _ in planes], axis=0),
                np.sum([seconds for _, seconds in planes], axis=0) + shared,
                [path.duals for path, _ in planes],
            )

    def forget(self) -> None:
        """Give the memory of the values back."""
        self._kernel = self._values = self._distances = None
        self._stated.clear()

    def _materialize(self, kernel: Kernel) -> FloatArray:
        if self._values is None or self._kernel != kernel:
            gram = Gram(kernel, self._X, threads=self._threads)
            if not self._fill_by_distances(kernel, gram.tiles):
                self._values = gram.materialize(out=self._values)
            self._kernel = kernel
        assert self._values is not None
        return self._values

    def _fill_by_distances(self, kernel: Kernel, rows: PreparedRows) -> bool:
        """Compute the values from distances; return whether there are any to be shared."""
        if type(kernel) is not RBF or not self._by_distances or len(rows.parts) < 2:
            return False
        if self._distances is None:
            self._distances = kernel.squared_distances(rows, self._threads)
        known = self._distances
        if known is None or rows.dtype != known.dtype:
            return False
        if self._values is None or self._values.dtype != known.dtype:
            self._values = np.empty_like(known)
        kernel.block_of_distances(known, self._values, self._threads)
        return True

    def _scored_rows(self, job: Job, train_scores: bool) -> tuple[Ints, Ints]:
        """Return the rows of the matrix to be scored, and where those of the split are in them."""
        split = job.split
        rows = np.concatenate([split.test, split.train]) if train_scores else split.test
        return np.unique(self._position[rows], return_inverse=True)

    def _follow_costs(
        self,
        K: FloatArray,
        buffers: "LifoQueue[Workspace]",
        subproblem: tuple[Job, int, Ints, float, Floats | None],
    ) -> tuple[Path, Floats]:
        """Return the solutions of one problem at all costs, and the seconds that each took."""
        job, k, scored, gap, starts = subproblem
        began, costs = clock.now(), job.family.costs
        stated = self._restate(job, k)
        buffer = buffers.get()
        try:
            path = stated.solve(K, costs, gap, buffer, scored, starts=starts)
        finally:
            buffers.put(buffer)
        return path, (clock.now() - began) * (path.rounds + 1) / (path.rounds + 1).sum()

    def _restate(self, job: Job, k: int) -> OnMatrix:
        """Return a problem on the matrix, with all duals at 0; kernels share its statement."""
        known = self._stated.get((id(job.formulated), k))
        if known is not None:
            known[1].restart(np.zeros(len(known[1].duals)))
            return known[1]
        problem, rows = job.formulated.problems[k], job.formulated.rows[k]
        place = self._position[job.split.train[rows[problem.row]]]
        stated = OnMatrix.stated(problem.loss, len(problem.totals) > 0, place)
        self._stated[id(job.formulated), k] = job.formulated, stated
        return stated


def _count_widths(families: list[Family], splits: list[Split]) -> int:
    """Return how many RBF kernels there are; a width that rows decide is another in each split."""
    kernels = [named_kernel(family.machine) for family in families]
    widths = {repr(kernel): kernel.gamma for kernel in kernels if isinstance(kernel, RBF)}
    return sum(1 if isinstance(gamma, Real) else len(splits) for gamma in widths.values())
