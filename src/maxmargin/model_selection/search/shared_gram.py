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
from maxmargin.estimators.kernel_models import Part
from maxmargin.estimators.reductions import binary_tasks
from maxmargin.kernels import Kernel
from maxmargin.kernels.rows import FloatArray
from maxmargin.model_selection.search.plan import Family, NotSharedError, Split, View
from maxmargin.solvers.on_matrix import COPIED, SMALL, OnMatrix, Room

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
    data: Any
    parts: list[Part]

    def limited_to(self, places: list[int]) -> "_Job":
        """Return the job with some of the family's candidates only."""
        family = self.family
        some = Family(family.machine, family.costs[places], [family.candidates[k] for k in places])
        return replace(self, family=some)


def takes(machine: Any) -> bool:
    """Return whether a machine's kernel values are worth a matrix, and its problem is convex."""
    if not isinstance(machine, SVC | SVR):
        return False
    kernel = machine._named_kernel()
    return kernel.psd is True and not machine._by_linear_machine(kernel)


def jobs_of(view: View, families: list[Family]) -> list[tuple[Kernel, list[_Job]]]:
    """Return the families in all splits, by kernel."""
    found: list[tuple[Kernel, list[_Job]]] = []
    for family in families:
        for split in view.splits:
            machine = clone(family.machine)
            data = machine._training(*view.taken(split.train), reset=True)
            job = _Job(family, split, machine, data, machine._parts(data))
            jobs = next((jobs for known, jobs in found if known == data.kernel), None)
            if jobs is None:
                found.append((data.kernel, [job]))
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
        self._dtype = np.float32 if n > SMALL else np.float64
        size = n * n * (1 + threads * COPIED**2) * np.dtype(self._dtype).itemsize
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
        widest = max(len(part.rows) for job in jobs for part in job.parts)
        for _ in range(self.threads):
            rooms.put(Room.of(widest, K.dtype))
        shared = (clock.now() - begun) / sum(len(job.family.costs) for job in jobs)
        seeds = self._seeds(K, jobs, pool, rooms)

        def run(task: tuple[int, int]) -> tuple[Any, ...]:
            job, k = jobs[task[0]], task[1]
            stated = self._stated(job.split.train, job.data, job.parts[k])
            seed = seeds.get((id(job.family), k))
            if seed is not None:
                duals, scores = seed
                place = stated.place
                own = duals[job.parts[k].sides, place[stated.at]]
                stated.start(float(job.family.costs[0]), own, scores[place])
            return self._timed(K, stated, job, self._judged(job, train_scores), rooms)

        tasks = [(i, k) for i, job in enumerate(jobs) for k in range(len(job.parts))]
        answers = pool.map(run, tasks)
        for job in jobs:
            yield self._joined(job, [next(answers) for _ in job.parts], train_scores, shared)

    def _computed(self, kernel: Kernel) -> FloatArray:
        if self._values is not None and self._kernel == kernel:
            return self._values
        self._kernel = kernel
        X = self.view.X[self.order]
        prepared = kernel.prepare_float32(X) if self._dtype == np.float32 else None
        if prepared is None:
            prepared = kernel.prepare(X.astype(np.float64))
        if self._values is None or self._values.dtype != prepared.dtype:
            self._values = np.empty((len(self.order), len(self.order)), prepared.dtype)
        return kernel.block(prepared, prepared, out=self._values, threads=self.threads)

    def _judged(self, job: _Job, train_scores: bool) -> Ints:
        rows = job.split.test
        if train_scores:
            rows = np.concatenate([rows, job.split.train])
        return np.sort(self.position[rows])

    def _stated(self, train: Ints, data: Any, part: Part) -> OnMatrix:
        rows = self.position[train[data.kept[part.rows]]]
        return OnMatrix.stated(part.loss, len(part.totals) > 0, rows)

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
        full: dict[tuple[int, int], tuple[float, Ints, OnMatrix]] = {}
        for mark, job in families.items():
            machine = clone(job.family.machine)
            data = machine._training(*self.view.taken(self._used), reset=True)
            parts = machine._parts(data)
            if any(len(other.parts) != len(parts) for other in jobs if other.family is job.family):
                continue
            for k, part in enumerate(parts):
                problem = self._stated(self._used, data, part)
                full[mark, k] = float(job.family.costs[0]), part.sides, problem

        def run(one: tuple[float, Ints, OnMatrix]) -> tuple[Floats, Floats]:
            cost, sides, problem = one
            room = rooms.get()
            try:
                problem.solve(K, np.array([cost]), _SEED_GAP, room)
            finally:
                rooms.put(room)
            n = len(self.order)
            duals, scores = np.zeros((int(sides.max()) + 1, n)), np.zeros(n)
            duals[sides, problem.place[problem.at]] = problem.x
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
    tasks = binary_tasks(job.data.answers, len(job.machine.classes_), "ovo")
    return [(task.positive, task.negative) for task in tasks]
