"""All folds and all costs of a kernel on one matrix of its values."""

import time
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from queue import LifoQueue
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from maxmargin import loops
from maxmargin.estimators import SVC, SVR
from maxmargin.estimators.kernel_models import Part
from maxmargin.estimators.reductions import binary_tasks
from maxmargin.kernels import Kernel
from maxmargin.kernels.rows import FloatArray
from maxmargin.model_selection.search_plan import Family, NotSharedError, Split, View

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SMALL = 2000  # rows up to which float64 costs little
_AIM = 0.6  # part of tol
_ROUNDS = 20_000  # for each cost
_SEEDED = 3  # splits of a kernel from which a common start is worth its while
_COMPACT = 0.6  # part of the rows of a problem that are copied together at most


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


@dataclass(frozen=True)
class _Stated:
    """A problem on rows of the matrix."""

    part: Part
    place: Ints  # its rows, in the order of the matrix
    at: Ints  # the row of each variable
    x: Floats
    f: Floats

    @property
    def free(self) -> bool:
        """Whether there is an intercept."""
        return len(self.part.totals) > 0

    def solve(self, K: FloatArray, costs: Floats, tol: float, judged: Ints, room: "_Room"
              ) -> tuple[Any, ...]:  # fmt: skip
        """Return, by cost: coefficients, scores of the rows to be judged, intercepts, gaps, rounds.

        x and f end as they are at the last cost.
        """
        count = len(costs)
        answers = (
            np.zeros((count, len(self.place))),
            np.zeros((count, len(judged))),
            np.zeros(count),
            np.zeros(count),
            np.zeros(count, np.int64),
        )
        terms = self.part.terms
        variables = loops.cost_path.Variables(
            terms.target, terms.low, terms.high, self.at, self.x, self.f
        )
        block, compact = room
        loops.cost_path.path(K, _runs(self.place), self.place, variables, costs, self.free,
                             tol, _ROUNDS, _runs(judged), block, compact, answers)  # fmt: skip
        return answers


_Room = tuple[FloatArray, FloatArray]


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
        self._dtype = np.float32 if n > _SMALL else np.float64
        size = n * n * (1 + threads * _COMPACT**2) * np.dtype(self._dtype).itemsize
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
        begun = time.perf_counter()
        K = self._computed(kernel)
        rooms: LifoQueue[_Room] = LifoQueue()
        widest = max(len(part.rows) for job in jobs for part in job.parts)
        for _ in range(self.threads):
            rooms.put((np.empty(128**2, K.dtype), np.empty(int((_COMPACT * widest) ** 2), K.dtype)))
        shared = (time.perf_counter() - begun) / sum(len(job.family.costs) for job in jobs)
        seeds = self._seeds(K, jobs, pool, rooms)

        def run(task: tuple[int, int]) -> tuple[Any, ...]:
            job, k = jobs[task[0]], task[1]
            stated = self._stated(job.split.train, job.data, job.parts[k])
            seed = seeds.get((id(job.family), k))
            if seed is not None:
                _start(stated, float(job.family.costs[0]), *seed)
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
        bound = kernel.bind_single(X) if self._dtype == np.float32 else None
        if bound is None:
            bound = kernel.bind(X.astype(np.float64))
        if self._values is None or self._values.dtype != bound.dtype:
            self._values = np.empty((len(self.order), len(self.order)), bound.dtype)
        return kernel.between(bound, bound, out=self._values, threads=self.threads)

    def _judged(self, job: _Job, train_scores: bool) -> Ints:
        rows = job.split.test
        if train_scores:
            rows = np.concatenate([rows, job.split.train])
        return np.sort(self.position[rows])

    def _stated(self, train: Ints, data: Any, part: Part) -> _Stated:
        rows = self.position[train[data.kept[part.rows]]]
        place, at = np.unique(rows, return_inverse=True)
        return _Stated(part, place, at, np.zeros(len(rows)), np.zeros(len(place)))

    def _timed(self, K: FloatArray, stated: _Stated, job: _Job, judged: Ints,
               rooms: "LifoQueue[_Room]") -> tuple[Any, ...]:  # fmt: skip
        begun = time.perf_counter()
        room = rooms.get()
        try:
            _, scores, _, gaps, rounds = stated.solve(
                K, job.family.costs, _AIM * job.machine.tol, judged, room
            )
        finally:
            rooms.put(room)
        seconds = (time.perf_counter() - begun) * (rounds + 1) / (rounds + 1).sum()
        return scores, gaps, seconds

    def _seeds(self, K: FloatArray, jobs: list[_Job], pool: Executor, rooms: "LifoQueue[_Room]"
               ) -> dict[tuple[int, int], tuple[Floats, Floats]]:  # fmt: skip
        """Return, by family and part, the duals and scores of all rows at the lowest cost.

        Folds start from there, without the duals of the rows that they leave out.
        """
        families = {id(job.family): job for job in jobs}
        if len(jobs) < _SEEDED * len(families):
            return {}
        full: list[tuple[int, int, _Job, _Stated]] = []
        for mark, job in families.items():
            machine = clone(job.family.machine)
            data = machine._training(*self.view.taken(self._used), reset=True)
            parts = machine._parts(data)
            if any(len(other.parts) != len(parts) for other in jobs if other.family is job.family):
                continue
            full += [
                (mark, k, job, self._stated(self._used, data, part)) for k, part in enumerate(parts)
            ]

        def run(one: tuple[int, int, _Job, _Stated]) -> tuple[Floats, Floats]:
            _, _, job, stated = one
            room = rooms.get()
            try:
                stated.solve(K, job.family.costs[:1], 0.1, np.empty(0, np.int64), room)
            finally:
                rooms.put(room)
            sides = int(stated.part.sides.max()) + 1
            duals, scores = np.zeros((sides, len(self.order))), np.zeros(len(self.order))
            duals[stated.part.sides, stated.place[stated.at]] = stated.x
            scores[stated.place] = stated.f
            return duals, scores

        return {
            (mark, k): seed for (mark, k, _, _), seed in zip(full, pool.map(run, full), strict=True)
        }

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


def _start(stated: _Stated, cost: float, duals: Floats, scores: Floats) -> None:
    """Set x to what the duals of all rows say, as far as limits and sum allow."""
    terms, x = stated.part.terms, stated.x
    low, high, f = cost * terms.low, cost * terms.high, scores[stated.place]
    x[:] = np.clip(duals[stated.part.sides, stated.place[stated.at]], low, high)
    if stated.free:
        loops.cost_path.balance(terms.target, low, high, stated.at, x, f)


def _pairs(job: _Job) -> list[tuple[int, int]]:
    """Return between which classes the planes are; none for regression."""
    if not hasattr(job.machine, "classes_"):
        return []
    tasks = binary_tasks(job.data.answers, len(job.machine.classes_), "ovo")
    return [(task.positive, task.negative) for task in tasks]


def _runs(place: Ints) -> Ints:
    """Return ascending places as runs: (begin, end, first place)."""
    if not len(place):
        return np.empty((0, 3), np.int64)
    cuts = np.flatnonzero(np.diff(place) != 1) + 1
    begin, end = np.append(0, cuts), np.append(cuts, len(place))
    return np.stack([begin, end, place[begin]], axis=1)
