"""Dual coordinate descent with shrinking and active-set steps, for sparse and wide data.

A free intercept is the multiplier of Σβ = 0: the sweeps see a constant feature of size √τ next to a
fixed offset b̄ (a proximal term on b), and b̄ moves to where b has come after each round.

Sweeps find out which duals are free, and are slow to settle them. Where few come to a bound or
leave one, conjugate gradients minimise over the free ones, as Moré & Toraldo (SIAM J. Optim. 1991)
do between projected gradient steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.certificates.blocked import best_intercept_of
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.blocked import BlockedProblem
from maxmargin.problems.duality import within_groups
from maxmargin.problems.problem import Intercept, Iterate, LinearProblem, Point
from maxmargin.rows.blocks import Block
from maxmargin.runtime import clock
from maxmargin.solvers.checkpoints import KeptState
from maxmargin.solvers.newton import Newton
from maxmargin.solvers.row_sums import Passes, no_duals, repaired

_HALVINGS = 8  # of a step that costs more
_ROUNDING = 1e-15  # of a bound, by which it may be off


@dataclass(frozen=True)
class DualCD:
    """Settings of the method."""

    seed: int = 0
    threads: int | None = None
    cyclic: bool = False  # rows in the order given, instead of a new random one for each sweep
    sweeps: int = 200  # in a round, at most
    visits: int = 50  # of each row in a round, at most: shrunk rows are not visited
    first: float = 1.0  # violation at which the first round ends, in units of the residuals
    factor: float = 0.2  # of the largest violation, at which each next round ends
    rest: float = 0.1  # of the largest violation: rows at rest by more are shrunk
    settled: float = 0.02  # of the free duals, that may come or go in a sweep before a step on them
    step_part: float = 0.1  # of the residual that a step may leave
    most_steps: int = 60  # of conjugate gradients
    least_steps: int = 5  # before they end because duals leave their bounds …
    outside: float = 0.005  # … if more than this part of them does

    def iterates(self, problem: LinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each round of sweeps (unfinished ones in between).

        It ends when no row violates anything, or when a round took too many sweeps.
        """
        for _, iterate in self.steps(problem, start):
            yield iterate

    def steps(self, problem: LinearProblem, start: Point) -> Iterator[tuple[Point, Iterate]]:
        """Yield the same iterates with the point at which the sweeps stand.

        Its weights are those of its duals, while an iterate has the best of either so far.
        """
        state = _DualCDState(self, problem, start)
        at = Point(state.w, state.b, state.beta)
        while True:
            yield at, state.iterate()
            for _ in state.round():
                yield at, state.iterate().unfinished()
            state.check_optimality()
            if state.converged or state.slow:
                yield replace(at, b=float(state.b[0])), state.iterate()
                return


def _least_prox(loss: Loss) -> float:
    """Return how far b should move at least for a unit of Σβ: all duals together move it by 1."""
    total = float((loss.high - loss.low).sum())
    return 1.0 / total if np.isfinite(total) else 1e-300


class _DualCDState:
    def __init__(self, settings: DualCD, problem: LinearProblem, start: Point) -> None:
        self.settings, self.problem = settings, problem
        self.passes = passes = Passes(problem, settings.threads, centred=False)
        loss = problem.loss
        n = len(problem)
        self.beta, self.w = np.zeros(n), np.zeros(passes.d)
        if start.beta is not None:  # the first step of b is as long as Σβ, if it is free
            self.beta, _ = within_groups(loss, start.beta, problem.groups, problem.totals)
            self.w = passes.combination(self.beta)
        self.diagonal = np.empty(n)
        loops.dual_cd.squared_norms(passes.rows, 0, self.diagonal)
        self.free = problem.intercept is Intercept.FREE
        self.tau = problem.features.constant**2
        self.b = np.array([self.tau * self.beta.sum()])
        if self.free:
            self.tau = max(float(self.diagonal.mean()), _least_prox(loss))
            self.b[0] = start.b
        self.diagonal += self.tau + loss.quadratic
        self.order = np.arange(n)
        self.count = n  # of rows that are not shrunk: the first ones of the order
        self.random = np.array([settings.seed + 0x9E3779B97F4A7C15], np.uint64)
        self.limits = np.array([np.inf, -np.inf])
        self.converged = self.slow = False
        self.visited = 0  # rows, since others had a turn
        self.target = first = settings.first * losses.residual_unit(loss) / settings.factor
        self.f = np.zeros(n)
        self.primal, self.dual = np.inf, -np.inf
        self.best_w, self.best_b, self.best_beta = self.w.copy(), float(self.b[0]), np.zeros(n)
        self.check_optimality()
        if start.beta is None:  # what scores of 0 say about rows does not last
            self.limits[:] = np.inf, -np.inf
            self.target = first

    def iterate(self) -> Iterate:
        return Iterate(self.primal, self.dual, self.best_w, self.best_b, self.best_beta)

    def round(self) -> Iterator[None]:
        """Sweep until violations are small enough, leaving out rows at rest."""
        settings = self.settings
        self.target *= settings.factor
        self.slow = True
        left = settings.visits * len(self.order)
        waited, wait, before = 0, 2, np.inf  # sweeps since a step, and before the next
        for _ in range(settings.sweeps):
            left -= self.count
            worst = np.zeros(3)
            yield from self._sweep(worst)
            largest = max(worst[0], -worst[1])
            if largest <= self.target:
                self.slow = False
                break
            if left <= 0:
                break
            self.limits[:] = settings.rest * worst[:2]
            waited += 1
            if waited >= wait and worst[2] <= settings.settled * self.count:
                wait = 2 * wait if largest > 0.5 * before else 1
                waited, before = 0, largest
                left -= self._active_set_step(worst[2])
        if self.free:
            self.b[0] += self.tau * float(self.beta.sum())

    def _sweep(self, worst: Floats) -> Iterator[None]:
        """Visit the rows that are left once, pausing now and then, and shrink."""
        if self.settings.cyclic:
            self.order[: self.count].sort()
        else:
            loops.dual_cd.shuffle(self.order, self.count, self.random)
        begin = 0
        while begin < self.count:
            before = self.count - begin
            begin, self.count = loops.dual_cd.sweep(
                self.passes.rows, self.problem.loss, self.diagonal, self.order, begin,
                self.count, self.limits, self.tau, self.w, self.b, self.beta, worst,
            )  # fmt: skip
            self.visited += before - (self.count - begin)
            if self.visited >= loops.dual_cd.ROWS_A_CALL:
                self.visited = 0
                yield

    def _active_set_step(self, changed: float) -> int:
        """Minimise over the free duals, up to their bounds; return how many visits that took."""
        settings, rows, loss = self.settings, self.passes.rows, self.problem.loss
        free = self._free_rows()
        if changed > settings.settled * len(free) or not len(free):
            return 0
        first, image = np.empty(len(free)), np.empty(self.passes.d)
        curves, direction, step = np.zeros((3, len(free)))
        size = loops.dual_cd.residuals(
            rows, loss, free, self.diagonal, self.w, self.b, self.beta, first
        )
        enough, last, products, residual = settings.step_part**2 * size, np.inf, 0, first.copy()
        most = min(settings.most_steps, len(free), self.passes.d + 1)
        while size > enough and products < most:
            clock.check()
            following, outside = loops.dual_cd.conjugate_step(
                rows, loss, free, self.diagonal, self.tau, self.beta, size, last,
                image, curves, direction, step, residual,
            )  # fmt: skip
            size, last, products = following, size, products + 1
            if products >= settings.least_steps and outside > settings.outside * len(free):
                break
        for _ in range(_HALVINGS):
            if self._move(free, step, first):
                break
            step *= 0.5
        return (products + 2) * len(free)

    def _move(self, free: Ints, step: Floats, slopes: Floats) -> bool:
        """Move free duals up to their bounds, unless that costs more."""
        loss, old = self.problem.loss, self.beta[free]
        low, high = loss.low[free], loss.high[free]
        if loss.epsilon:  # a dual stays on its side of the kink
            low, high = np.where(old > 0, 0.0, low), np.where(old < 0, 0.0, high)
        new, image = np.clip(old + step, low, high), np.zeros(self.passes.d)
        step = new - old
        loops.dual_cd.combine(self.passes.rows, free, step, image)
        total = float(step.sum())
        curve = float(image @ image) + float(step @ (loss.quadratic[free] * step))
        if not float(slopes @ step) > 0.5 * (curve + self.tau * total**2):
            return False
        self.beta[free] = new
        self.w += image
        self.b[0] += self.tau * total
        return True

    def _free_rows(self) -> Ints:
        rows, loss = self.order[: self.count], self.problem.loss
        beta = self.beta[rows]
        free = (beta > loss.low[rows]) & (beta < loss.high[rows]) & (self.diagonal[rows] > 0)
        return np.sort(rows[free & (beta != 0)] if loss.epsilon else rows[free])

    def check_optimality(self) -> None:
        """Compute both bounds where we stand, keep the best, and choose the rows to go on with."""
        b = float(self.b[0])
        if self.w.any():
            self.passes.scores(self.w, b, self.f)
        else:
            self.f[:] = b
        self.count, largest, fitted, gain, lost, linear, square = loops.dual_cd.survey(
            self.problem.loss, self.f, self.beta, self.settings.rest, self.order, self.limits
        )
        norm2 = float(self.w @ self.w)
        primal = 0.5 * norm2 + fitted
        if not self.free and self.tau:
            primal += 0.5 * b * b / self.tau
        if primal <= self.primal + _ROUNDING * abs(primal):  # of equals the last is the nearest
            self.primal, self.best_w, self.best_b = min(primal, self.primal), self.w.copy(), b
        if self.free and gain != lost:
            beta, dual = repaired(self.problem, self.passes, self.beta)
        else:
            square += norm2 + (0.0 if self.free else self.tau * (gain - lost) ** 2)
            scale = min(1.0, max(linear, 0.0) / square) if square > 0 else 1.0
            beta, dual = scale * self.beta, scale * linear - 0.5 * scale**2 * square
        if dual >= self.dual - _ROUNDING * abs(dual):
            self.dual, self.best_beta = max(dual, self.dual), beta
        self.target = min(self.target, largest)
        self.converged = largest == 0.0 and not (self.free and self.beta.sum())


# ------------------------------------------------------------------- wide
#
# Sparse and wide data: coordinate descent while it is fast, Newton steps where it is not.


@dataclass(frozen=True)
class DualCDThenNewton:
    """Settings of both."""

    seed: int = 0
    threads: int | None = None
    cyclic: bool = False

    def iterates(self, problem: LinearProblem, start: Point) -> Iterator[Iterate]:
        """Yield iterates of the one, then of the other, never worse than before."""
        last: tuple[Point, Iterate] | None = None
        for last in DualCD(self.seed, self.threads, self.cyclic).steps(problem, start):
            yield last[1]
        if last is None:
            return
        at, best = last
        for iterate in Newton(self.threads).iterates(problem, at):
            best = iterate if iterate.converged else best.improved(iterate)
            yield replace(best, finished=iterate.finished)


# ------------------------------------------------------------------- rows in blocks
#
# Rows that are read leaf after leaf are swept several times while they are there: block
# minimisation, Yu, Hsieh, Chang & Lin (KDD 2010). Duals stay beside their rows; what goes from leaf
# to leaf are the weights that they imply.


@dataclass(frozen=True)
class BlockDualCD:
    """Settings of the method for rows in blocks, which Newton's method goes on from where it slows.

    The path is another than in memory, where sweeps go over all rows; but it is the same whatever
    the blocks, and wherever they are.
    """

    seed: int = 0
    threads: int | None = None
    cyclic: bool = False
    sweeps: int = 5  # of a leaf at each visit, at most
    rest: float = 0.1  # of the largest violation: rows at rest by more are shrunk
    enough: float = 0.1  # of the largest violation, at which a leaf is left
    patience: int = 8  # visits of all rows in which the gap must halve
    smooth_patience: int = 2  # the same where losses are smooth: Newton's method needs few passes

    def iterates(self, problem: BlockedProblem, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each pass, then after each Newton step, never worse than before.

        A pass is one over the rows that changes duals, and one that computes both bounds.
        """
        best: Iterate | None = None
        if start.beta is not None or not KeptState(problem, Newton.method).is_there:
            state = _BlockDescent(self, problem, start)
            for best in self._descend(state, KeptState(problem, state.method), start):
                yield best
            start = state.point()
        for iterate in Newton(self.threads).iterates(problem, start):
            best = iterate if best is None or iterate.converged else best.improved(iterate)
            yield replace(best, finished=iterate.finished)

    def _descend(self, state: "_BlockDescent", kept: KeptState, start: Point) -> Iterator[Iterate]:
        """Yield an iterate after each pass until the gap hardly shrinks any more."""
        if start.beta is None:
            kept.resume(state)
            yield from kept.repeated(state.iterate())
        while True:
            yield kept.note(state.iterate())
            if state.converged or state.slow:
                return
            state.advance()
            kept.save(state)


class _BlockDescent:
    """Where the method stands, and the best bounds so far."""

    method = "dual_cd"
    saved: tuple[str, ...] = ("beta", "best_beta")
    scratch: tuple[str, ...] = ("score",)

    def __init__(self, settings: BlockDualCD, problem: BlockedProblem, start: Point) -> None:
        self.settings, self.problem = settings, problem
        self.passes = passes = Passes(problem, settings.threads, centred=False)
        self.free = problem.intercept is Intercept.FREE
        passes.blocks.renew("beta", "best_beta")
        passes.fill("best_beta", no_duals)
        if start.beta is None:
            passes.fill("beta", no_duals)
        else:
            passes.blocks.put("given", start.beta)
            passes.clip("given", "beta")
            passes.blocks.renew("given")
        self._set_diagonal()
        self.offset = start.b if self.free else 0.0  # what b is beside τΣβ
        self.visited = 0  # how often the rows were
        self.primal, self.dual = np.inf, -np.inf
        self.gaps: list[float] = []
        self.best_w, self.best_b = np.zeros(passes.d), self.offset
        total = passes.measure("beta").total
        self.w = passes.combination("beta") if total or start.beta is not None else self.best_w
        self.b = self.offset + self.tau * total
        self._check_optimality()

    def _set_diagonal(self) -> None:
        """Set τ and the diagonal of the quadratic form."""
        blocks = self.passes.blocks
        squares, widths = blocks.map(_set_squares, writes=("diagonal",))
        self.tau = self.problem.constant**2
        if self.free:
            # A large τ, which lets b move far with Σβ while leaves are swept, makes the sum of the
            # duals stiff. After each visit of all rows the best b is found anew.
            least = 1.0 / widths if np.isfinite(widths) else 1e-300
            self.tau = max(squares / self.passes.n**1.5, least)
        blocks.map(_add_to_diagonal, self.tau, writes=("diagonal",), reads_rows=False)

    def get(self) -> dict[str, Any]:
        """Return where the method stands, but for vectors of rows."""
        scalars = self.offset, self.b, self.primal, self.dual, self.best_b
        return {
            "w": self.w,
            "best_w": self.best_w,
            "scalars": np.array(scalars),
            "visited": self.visited,
            "largest": self.largest,
            "gaps": np.array(self.gaps),
            "converged": self.converged,
        }

    def set(self, saved: dict[str, Any]) -> None:
        """Stand where another run stood, whose vectors of rows are there already."""
        self.w, self.best_w = saved["w"], saved["best_w"]
        self.offset, self.b, self.primal, self.dual, self.best_b = saved["scalars"].tolist()
        self.visited, self.largest = int(saved["visited"]), float(saved["largest"])
        self.gaps, self.converged = saved["gaps"].tolist(), bool(saved["converged"])

    def iterate(self) -> Iterate:
        """Return the best bounds so far, and what attains them."""
        duals = self.passes.blocks.vector("best_beta")
        return Iterate(self.primal, self.dual, self.best_w, self.best_b, duals)

    def point(self) -> Point:
        """Return where the method stands; those who go on change neither its duals nor the best."""
        blocks = self.passes.blocks
        duals = blocks.vector("beta")
        blocks.renew("beta", "best_beta", "diagonal")
        return Point(self.w, self.b, duals)

    @property
    def slow(self) -> bool:
        """Whether the gap hardly shrinks any more."""
        settings, gaps = self.settings, self.gaps
        smooth = self.passes.facts.smooth
        patience = settings.smooth_patience if smooth else settings.patience
        return len(gaps) > patience and 2 * gaps[-1] > gaps[-1 - patience]

    def advance(self) -> None:
        """Visit all rows, then compute both bounds."""
        settings = self.settings
        visit = Visit(
            settings.seed, self.visited, settings.sweeps, settings.rest, self.tau,
            np.array([1.0, -1.0]) * (settings.rest * self.largest),
            settings.enough * self.largest, settings.cyclic,
        )  # fmt: skip
        state = self.w.copy(), np.array([self.b])
        w, b = self.passes.blocks.fold(_descend, state, visit, writes=("beta",))
        self.w, self.b = w, float(b[0])
        self.visited += 1
        self._check_optimality()

    def _check_optimality(self) -> None:
        """Compute both bounds where we stand, and keep the best."""
        problem, found = self.problem, self.passes.compare(self.w, "beta")
        if self.free:
            self.b = best_intercept_of(self.passes.blocks, self.b)
        fitted, self.largest = self.passes.violation(self.b, "beta")
        primal = 0.5 * float(self.w @ self.w) + fitted
        if not self.free and self.tau:
            primal += 0.5 * self.b**2 / self.tau
        if primal <= self.primal + _ROUNDING * abs(primal):
            self.primal, self.best_w, self.best_b = min(primal, self.primal), self.w, self.b
        gain_scale, lost_scale, dual = found.repair(problem.intercept, problem.constant)
        if dual >= self.dual - _ROUNDING * abs(dual):
            self.dual = max(dual, self.dual)
            self.passes.scaled("beta", "best_beta", gain_scale, lost_scale)
        self.converged = self.largest == 0.0 and not (self.free and found.total)
        self.gaps.append(self.primal - self.dual)
        # Rounding adds up along the sweeps: go on from the weights that the duals imply.
        self.w = found.gains + found.losses
        if self.free:
            self.offset = self.b
        self.b = self.offset + self.tau * found.total


class Visit(NamedTuple):
    """What all leaves are told when they are visited."""

    seed: int
    number: int  # of the visit
    sweeps: int
    rest: float
    tau: float
    limits: Floats  # from rest, beyond which rows are shrunk
    enough: float  # violation at which a leaf is left
    cyclic: bool

    def random(self, first: int) -> Any:
        """Return the state of the random numbers of a leaf, which depends on nothing else."""
        mixed = np.random.SeedSequence([self.seed, self.number, first]).generate_state(1, np.uint64)
        return mixed | np.uint64(1)  # xorshift must not begin with 0


def _set_squares(block: Block) -> tuple[float, float]:
    """Set the diagonal to ‖x‖², and return their sum and that of the distances of bounds."""
    part = block["diagonal"][block.begin : block.end]
    loops.dual_cd.squared_norms(block.rows, block.begin, part)
    loss = block.loss.take(slice(block.begin, block.end))
    return float(part.sum()), float((loss.high - loss.low).sum())


def _add_to_diagonal(block: Block, tau: float) -> None:
    rows = slice(block.begin, block.end)
    block["diagonal"][rows] += tau + block.loss.quadratic[rows]


def _descend(block: Block, state: tuple[Floats, Floats], visit: Visit) -> tuple[Floats, Floats]:
    """Sweep a leaf a few times, leaving out rows at rest."""
    w, b = state
    random, limits = visit.random(block.first), visit.limits.copy()
    order, count = np.arange(block.begin, block.end), block.end - block.begin
    for _ in range(visit.sweeps):
        if visit.cyclic:
            order[:count].sort()
        else:
            loops.dual_cd.shuffle(order, count, random)
        worst, at = np.zeros(3), 0
        while at < count:
            clock.check()
            at, count = loops.dual_cd.sweep(
                block.rows, block.loss, block["diagonal"], order, at, count, limits,
                visit.tau, w, b, block["beta"], worst,
            )  # fmt: skip
        if max(worst[0], -worst[1]) <= visit.enough:
            break
        limits = visit.rest * worst[:2]
    return w, b
