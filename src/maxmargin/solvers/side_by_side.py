"""Problems on rows of one Gram matrix, such as pairs of classes, solved side by side in threads."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.certificates.quadratic import scores_of_rest
from maxmargin.kernels.prepared import FloatArray
from maxmargin.loops.records import Variables
from maxmargin.problems.duality import feasible_start
from maxmargin.problems.gram import SMALL
from maxmargin.problems.problem import Iterate, KernelProblem, Point
from maxmargin.runtime import clock
from maxmargin.runtime.threads import share_work
from maxmargin.solvers.decomposition import measure

_VALUES, _FEW_ROWS = 1 << 23, 16  # of a matrix, that are kept; rows at least
_FAR_AWAY = 1e30  # of a norm, beside which kernel values are 0


class Classes:
    """Runs of rows of a Gram matrix, such as classes, of which problems take one or two.

    The block of a run is computed once for all problems, as long as blocks fit into the memory.
    """

    def __init__(self, problems: list[KernelProblem]) -> None:
        self.gram = gram = problems[0].features.gram
        marks = np.random.default_rng(0).integers(1 << 62, size=len(problems))
        mark = np.zeros(len(gram), np.int64)  # the same for rows that are in the same problems
        for problem, own in zip(problems, marks, strict=True):
            mark[problem.features.rows] += own
        cuts = np.flatnonzero(np.diff(mark)) + 1
        self._starts = np.concatenate([[0], cuts, [len(gram)]])
        self.are_runs = len(np.unique(mark[self._starts[:-1]])) == len(self._starts) - 1
        self._rows = [gram.tiles[begin:end] for begin, end in pairwise(self._starts.tolist())]
        self._blocks: dict[int, FloatArray] = {}
        self.dtype = gram.tiles.dtype
        self.factor = gram.kernel.gaussian_factor(gram.tiles) if gram.cheap else None

    def of(self, problem: KernelProblem) -> tuple[int, ...]:
        """Return the numbers of the runs that a problem takes."""
        rows = problem.features.rows
        first, last = np.searchsorted(self._starts, rows[[0, -1]], side="right").tolist()
        return (first - 1,) if first == last else (first - 1, last - 1)

    def compute(self, runs: Ints, memory: int, threads: int) -> None:
        """Compute the blocks of these runs, as far as the memory goes."""
        todo = deque[int]()
        for run in runs.tolist():
            memory -= len(self._rows[run]) ** 2 * self.dtype.itemsize
            if memory >= 0:
                todo.append(run)

        def compute(run: int) -> None:
            self._blocks[run] = self.block(run, run)

        share_work(compute, todo, threads)

    def block(self, run: int, other: int, memory: FloatArray | None = None) -> FloatArray:
        """Return the values of two runs, which may be one; in this memory if they are computed."""
        if run == other and run in self._blocks:
            return self._blocks[run]
        left, right = self._rows[run], self._rows[other]
        out = None
        if memory is not None:
            out = memory[: len(left) * len(right)].reshape(len(left), len(right))
        return self.gram.kernel.block(left, right, out=out, threads=1)

    def gaussian(self, runs: tuple[int, ...], size: int) -> Any:
        """Return what rows of the matrix of runs are computed of, one by one.

        Rows beyond them are far away from all others.
        """
        assert self.factor is not None
        rows, norms = zip(*(self._rows[run].parts for run in runs), strict=True)
        columns = np.zeros((rows[0].shape[1], size), self.dtype)
        far = np.full(size, _FAR_AWAY, self.dtype)
        begin = 0
        for some, own in zip(rows, norms, strict=True):
            columns[:, begin : begin + len(own)] = some.T
            far[begin : begin + len(own)] = own
            begin += len(own)
        return loops.shrinking.Gaussian(columns, far, self.dtype.type(self.factor))


class Buffers(NamedTuple):
    """Memory in which a thread solves one problem after the other: first use of it costs time."""

    rows: FloatArray  # of the matrix, as far as they are needed
    active: FloatArray  # the same for active variables
    blocks: FloatArray

    @classmethod
    def of(cls, sizes: tuple[int, int, int], dtype: Any) -> Self:
        """Return memory for so many kernel values."""
        return cls(*(np.empty(size, dtype) for size in sizes))


def _buffers(size: int, classes: Classes) -> tuple[int, int, int]:
    """Return how many kernel values a thread keeps of a problem of this size."""
    rows = max(min(size, _FEW_ROWS) * size, min(size * size, _VALUES))
    return rows, rows, 0 if classes.factor is not None else size * size


@dataclass(frozen=True)
class SideBySide:
    """Problems on rows of one Gram matrix, each solved by one thread.

    Where few variables become support vectors, steps of pairs that shrink take less than rounds: a
    row of the matrix is made once a step needs it. Where they are many, memory for rows is full
    before the end, and rounds go on from there.
    """

    problems: list[KernelProblem]
    classes: Classes
    runs: dict[int, tuple[int, ...]]  # of those problems that are small enough
    threads: int
    buffers: tuple[int, int, int]
    free: list[Buffers]

    most_rows: ClassVar[int] = 3000  # of a problem, if the matrix is computed, whatever the memory
    kept: ClassVar[float] = 0.5  # of the memory, for blocks that problems share
    falls: ClassVar[tuple[float, float]] = 0.015, 0.5  # of the violation until the next check
    aim: ClassVar[float] = 0.7  # of tol, at which the next gap is to be
    chunk: ClassVar[float] = 3e7  # steps times variables in one compiled call: less than 0.1 s
    patience: ClassVar[int] = 400  # steps for each variable, after which it gives up
    overflows: ClassVar[int] = 1  # of the memory for rows, likewise: rounds take fewer of them

    @classmethod
    def of(cls, problems: list[Any], threads: int) -> Self | None:
        """Return the problems that are suited, None if there are none.

        They share a Gram matrix, are not small (these are polished), and have no kink at 0.
        """
        gram, one = problems[0].features.shared_gram(), problems[0]
        if gram is None or len(gram) <= SMALL or one.loss.epsilon > 0.0 or len(one) < len(one.row):
            return None
        classes = Classes(problems)
        most = len(gram) if classes.factor is not None else cls.most_rows
        small = [p for p in problems if len(p) <= most]
        if not small or not classes.are_runs:
            return None
        runs = {k: classes.of(p) for k, p in enumerate(problems) if len(p) <= most}
        # What memory there is decides how many threads work, and nothing else.
        buffers = _buffers(max(map(len, small)) + 1, classes)
        each = sum(buffers) * classes.dtype.itemsize
        count = max(1, int((1 - cls.kept) * gram.memory / each))
        count = min(threads, count if gram.kernel.thread_safe else 1)
        return cls(problems, classes, runs, count, buffers, [])

    @property
    def longest_first(self) -> list[int]:
        """The numbers of the problems: so no thread is left with a long one at the end."""
        return sorted(self.runs, key=lambda k: -len(self.problems[k]))

    def prepare(self, chosen: Iterable[int]) -> None:
        """Compute what these of the problems share."""
        if self.classes.factor is not None:
            return
        every = np.array([run for k in chosen for run in self.runs[k]], np.int64)
        runs, counts = np.unique(every, return_counts=True)
        memory = int(self.kept * self.classes.gram.memory)
        self.classes.compute(runs[counts > 1], memory, self.threads)

    def solve(self, k: int, start: Point, tol: float) -> tuple[Iterate, int]:
        """Solve a problem to a relative gap, or as far as it goes; count the optimality checks."""
        problem, beta = self.problems[k], start.beta
        if beta is None:
            beta = feasible_start(problem.loss, problem.groups, problem.totals)
        if np.count_nonzero(beta) * len(beta) > self.buffers[0]:  # rows that a start needs
            return Iterate(np.inf, -np.inf, beta, np.zeros(len(problem.totals)), beta), 0
        memory = self.free.pop() if self.free else Buffers.of(self.buffers, self.classes.dtype)
        try:
            values = self._values(self.runs[k], memory, len(beta) + (not len(problem.totals)))
            whole = _Whole(problem, beta, values, memory)
            closed = self._close_gap(whole, tol)
            if self.classes.factor is None:  # to compute values again would take longer
                scores_of_rest(problem.features, whole.v.x, values)  # for the certificate
            return closed
        finally:
            self.free.append(memory)

    def _close_gap(self, whole: "_Whole", tol: float) -> tuple[Iterate, int]:
        n, checks = len(whole.v.x), 0
        row = n * (1.0 + 0.1 * (self.classes.gram.exact.width or 0))  # the cost of a new one, too
        left, most = self.patience * n, max(1, int(self.chunk / row))
        while True:
            (gap, dual, b, violation), checks = measure(whole.v, whole.groups), checks + 1
            wanted = tol * max(abs(dual), abs(dual + gap))
            if gap <= wanted or left <= 0 or whole.overflows > self.overflows:
                return Iterate(dual + gap, dual, whole.v.x, b, whole.v.x), checks
            violation *= float(np.clip(self.aim * wanted / gap, *self.falls))
            made = most
            while made == most and left > 0 and whole.overflows <= self.overflows:
                clock.check()
                made = whole.make_steps(violation, most)
                left -= max(made, 1)
            whole.take_over()

    def _values(self, runs: tuple[int, ...], memory: Buffers, size: int) -> Any:
        """Return what the matrix of a problem of this size is made of."""
        if self.classes.factor is not None:
            return self.classes.gaussian(runs, size)
        if len(runs) == 1:
            block = self.classes.block(*runs, *runs, memory.blocks)
            return loops.shrinking.Halves(block, block[:, :0], block[:0, :0])
        blocks, begin = [], 0
        for one, other in ((0, 0), (0, 1), (1, 1)):
            blocks.append(self.classes.block(runs[one], runs[other], memory.blocks[begin:]))
            begin += blocks[-1].size
        return loops.shrinking.Halves(*blocks)


class _Whole:
    """All variables of a problem; rows of its matrix are made as steps need them."""

    every = 64  # steps after which variables are shrunk,
    part = 0.6  # if no more than so many of them stay active

    def __init__(self, problem: KernelProblem, beta: Floats, values: Any, memory: Buffers) -> None:
        n, self.groups, self._values = len(beta), len(problem.totals), values
        size = n + (self.groups == 0)  # with a variable that takes any value, as the sum may
        target, low, high, shift, _ = problem.loss
        self.v = Variables(
            target, low, high, shift, problem.groups, beta.copy(), problem.row, np.zeros(n)
        )
        own = np.append(problem.features.squared_norms() + shift, np.zeros(size - n))
        ends = np.array([size])
        if self.groups:
            ends = np.searchsorted(problem.groups, np.arange(self.groups), side="right")
        self._all, self._part = (
            _new_whole(size, ends.copy(), rows) for rows in (memory.rows, memory.active)
        )
        scale = 1.0 / (float(own.max()) or 1.0)
        self._rule = loops.shrinking.ShrinkRule(scale, self.every, self.part)
        self._active = np.empty(size, np.int64)
        every = self._all
        every.r[:n], every.low[:n], every.high[:n] = target, low, high
        every.low[n:], every.high[n:] = -np.inf, np.inf
        every.own[:], every.curvatures[:] = own, scale * own
        for k in np.flatnonzero(beta).tolist():
            clock.check()
            loops.shrinking.add_to(values, every, k, float(beta[k]))
        every.x[:n] = beta
        every.up[every.x >= every.high] = -loops.smo.FAR
        every.down[every.x <= every.low] = loops.smo.FAR
        self.take_over()

    def make_steps(self, violation: float, most: int) -> int:
        """Make steps until no violation is larger; return how many."""
        made = loops.shrinking.make_steps(
            self._values, self._all, self._part, self._active, self._rule, violation, most
        )
        return int(made)

    @property
    def overflows(self) -> int:
        """How often memory for rows was full."""
        return int(self._all.made[1] + self._part.made[1])

    def take_over(self) -> None:
        """Set variables and scores to what the steps have made of them."""
        v, n = self.v, len(self.v.x)
        v.x[:] = self._all.x[:n]
        v.f[:] = v.target - self._all.r[:n] - v.shift * v.x


def _new_whole(size: int, ends: Ints, memory: FloatArray) -> Any:
    """Return variables at 0."""
    rows = memory[: len(memory) // size * size].reshape(-1, size)
    return loops.shrinking.Whole(
        *np.zeros((7, size)), np.empty(size, np.float32), ends, rows[:size],
        np.full(size, -1), np.zeros(2, np.int64),
    )  # fmt: skip
