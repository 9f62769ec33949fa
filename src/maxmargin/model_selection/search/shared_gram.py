"""All folds and all costs of a kernel on one matrix of its values."""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from queue import LifoQueue
from typing import Any

import numpy as np
from sklearn.base import clone

from maxmargin import clock
from maxmargin._typing import Floats, Ints
from maxmargin.estimators import SVC, SVR
from maxmargin.estimators.kernel_input import named_kernel
from maxmargin.estimators.machine import Formulated
from maxmargin.kernels import Kernel, Linear
from maxmargin.kernels.prepared import FloatArray
from maxmargin.model_selection.search.plan import Family, NotSharedError, Split, View
from maxmargin.problems.gram import SMALL, Gram
from maxmargin.solvers.on_matrix import COPIED, OnMatrix, Room

_AIM = 0.6  # part of tol
_SEED_GAP = 0.1
_SEEDED = 3  # splits of a kernel from which a common start is worth its while


@dataclass(frozen=True)
class Solved:
    """A family in one split: by cost, the scores of rows in each plane, gaps and seconds."""

    family: Family
    split: Split
    machine: Any  # with the classes of the split
    pairs: list[tuple[int, int]]
    test: Floats  # by (cost, row, plane)
    train: Floats | None
    gaps: Floats
    seconds: Floats


@dataclass(frozen=True)
class _Job:
    """A family in one split, as problems."""

    family: Family
    split: Split
    machine: Any
    formulated: Formulated

    def limited_to(self, places: list[int]) -> "_Job":
        """Return the job with some of the family's candidates only."""
        family = self.family
        some = Family(family.machine, family.costs[places], [family.candidates[k] for k in places])
        return replace(self, family=some)


def takes(machine: Any) -> bool:
    """Return whether a machine's kernel values are worth a matrix, and its problem is convex."""
    if not isinstance(machine, SVC | SVR):
        return False
    kernel = named_kernel(machine)
    return kernel.psd is True and type(kernel) is not Linear


def jobs_of(view: View, families: list[Family]) -> list[tuple[Kernel, list[_Job]]]:
    """Return the families in all splits, by kernel."""
    found: list[tuple[Kernel, list[_Job]]] = []
    for family in families:
        for split in view.splits:
            machine = clone(family.machine)
            job = _Job(family, split, machine, machine.formulate(*view.taken(split.train)))
            jobs = next((jobs for known, jobs in found if known == machine.kernel_), None)
            if jobs is None:
                found.append((machine.kernel_, [job]))
            else:
                jobs.append(job)
    return found


class SharedMatrix:
    """The kernel values of all rows of a view, in an order in which splits are long runs."""

    def __init__(self, view: View, labels: Ints | None, memory: int, threads: int) -> None:
        self.view, self.threads = view, threads
        n = len(view.y)
        learnt = np.zeros((n, len(view.splits)), bool)
        for k, split in enumerate(view.splits):
            learnt[split.train, k] = True
        self._used = np.flatnonzero(learnt.any(axis=1))
        keys = list(np.packbits(learnt, axis=1).T)
        self.order = np.lexsort([*keys, np.zeros(n) if labels is None else labels])
        self.position = np.empty(n, np.int64)
        self.position[self.order] = np.arange(n)
        size = n * n * (1 + threads * COPIED**2) * (4 if n > SMALL else 8)
        if size > memory:
            raise NotSharedError(
                f"a matrix of {n} × {n} kernel values takes {size / 2**20:.0f} MB, memory allows "
                f"{memory / 2**20:.0f}"
            )
        self._values: FloatArray | None = None
        self._kernel: Kernel | None = None

    def solved(self, kernel: Kernel, jobs: list[_Job], pool: Executor, train_scores: bool
               ) -> Iterator[Solved]:  # fmt: skip
        """Yield the jobs of a kernel as they are solved."""
        begun = clock.now()
        K = self._computed(kernel)
        rooms: LifoQueue[Room] = LifoQueue()
        widest = max(len(each) for job in jobs for each in job.formulated.problems)
        for _ in range(self.threads):
            rooms.put(Room.of(widest, K.dtype))
        shared = (clock.now() - begun) / sum(len(job.family.costs) for job in jobs)
        seeds = self._seeds(K, jobs, pool, rooms)

        def run(task: tuple[int, int]) -> tuple[Any, ...]:
            job, k = jobs[task[0]], task[1]
            stated = self._stated(job.split.train, job.formulated, k)
            seed = seeds.get((id(job.family), k))
            if seed is not None:
                duals, scores = seed
                cost = float(job.family.costs[0])
                stated.start(cost, duals[stated.rows], scores[stated.place])
            return self._timed(K, stated, job, self._judged(job, train_scores), rooms)

        tasks = [(i, k) for i, job in enumerate(jobs) for k in range(len(job.formulated.problems))]
        answers = pool.map(run, tasks)
        for job in jobs:
            yield self._joined(
                job, [next(answers) for _ in job.formulated.problems], train_scores, shared
            )

    def _computed(self, kernel: Kernel) -> FloatArray:
        if self._values is not None and self._kernel == kernel:
            return self._values
        self._kernel = kernel
        gram = Gram(kernel, self.view.X[self.order], threads=self.threads)
        self._values = gram.materialize(out=self._values)
        return self._values

    def _judged(self, job: _Job, train_scores: bool) -> Ints:
        rows = job.split.test
        if train_scores:
            rows = np.concatenate([rows, job.split.train])
        return np.sort(self.position[rows])

    def _stated(self, train: Ints, formulated: Formulated, k: int) -> OnMatrix:
        problem, rows = formulated.problems[k], formulated.rows[k]
        place = self.position[train[rows[problem.row]]]
        return OnMatrix.stated(problem.loss, len(problem.totals) > 0, place)

    def _timed(self, K: FloatArray, stated: OnMatrix, job: _Job, judged: Ints,
               rooms: "LifoQueue[Room]") -> tuple[Any, ...]:  # fmt: skip
        begun = clock.now()
        room = rooms.get()
        try:
            _, scores, _, gaps, rounds = stated.solve(
                K, job.family.costs, _AIM * job.machine.tol, room, judged
            )
        finally:
            rooms.put(room)
        seconds = (clock.now() - begun) * (rounds + 1) / (rounds + 1).sum()
        return scores, gaps, seconds

    def _seeds(self, K: FloatArray, jobs: list[_Job], pool: Executor, rooms: "LifoQueue[Room]"
               ) -> dict[tuple[int, int], tuple[Floats, Floats]]:  # fmt: skip
        """Return, by family and part, the duals and scores of all rows at the lowest cost.

        Folds start from there, without the duals of the rows that they leave out.
        """
        families = {id(job.family): job for job in jobs}
        if len(jobs) < _SEEDED * len(families):
            return {}
        full: dict[tuple[int, int], tuple[float, OnMatrix]] = {}
        for mark, job in families.items():
            formulated = clone(job.family.machine).formulate(*self.view.taken(self._used))
            count = len(formulated.problems)
            own = [other for other in jobs if other.family is job.family]
            if any(len(other.formulated.problems) != count for other in own):
                continue
            for k in range(count):
                problem = self._stated(self._used, formulated, k)
                full[mark, k] = float(job.family.costs[0]), problem

        def run(one: tuple[float, OnMatrix]) -> tuple[Floats, Floats]:
            cost, problem = one
            room = rooms.get()
            try:
                problem.solve(K, np.array([cost]), _SEED_GAP, room)
            finally:
                rooms.put(room)
            n = len(self.order)
            duals, scores = np.zeros((2, n))
            duals[problem.rows] = problem.duals
            scores[problem.place] = problem.f
            return duals, scores

        return dict(zip(full, pool.map(run, full.values()), strict=True))

    def _joined(self, job: _Job, answers: list[tuple[Any, ...]], train_scores: bool, shared: float
                ) -> Solved:  # fmt: skip
        judged = self._judged(job, train_scores)
        planes = np.stack([scores for scores, _, _ in answers], axis=2)
        test = planes[:, np.searchsorted(judged, self.position[job.split.test])]
        train = None
        if train_scores:
            train = planes[:, np.searchsorted(judged, self.position[job.split.train])]
        gaps = np.max([gaps for _, gaps, _ in answers], axis=0)
        seconds = np.sum([seconds for _, _, seconds in answers], axis=0) + shared
        return Solved(job.family, job.split, job.machine, _pairs(job), test, train, gaps, seconds)


def _pairs(job: _Job) -> list[tuple[int, int]]:
    """Return between which classes the planes are; none for regression."""
    if not hasattr(job.machine, "classes_"):
        return []
    return [(task.positive, task.negative) for task in job.formulated.data.tasks("ovo")]
