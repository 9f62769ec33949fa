"""The multiclass machine of Crammer and Singer: dual blocks row by row, then Newton's digits.

    min  ½Σₖ‖wₖ‖² + Σᵢ Cᵢ · (maxₖ (1 − δ(k, yᵢ) + fₖ(xᵢ)) − f_yᵢ(xᵢ))

*Sweeps* solve for the duals of one row after the other, exactly and in random order; rows that seem
to have converged are shrunk until the next optimality check of all rows. A free intercept is a
multiplier of Σβ = 0: it moves after each round of sweeps (proximal steps on b alone), and the lower
bound is taken at duals repaired to meet that equation exactly. Sweeps are cheap and soon near;
where the weights, or the duals still free, are few enough for a factorization, semismooth Newton
steps take over and close the gap to rounding, whatever the units of the columns.
Keerthi et al. (KDD 2008) for the sweeps; the Newton steps are described below.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.certificates.multiclass import best_intercept_step, duals_of, feasible_masses
from maxmargin.problems.features import LinearFeatures
from maxmargin.problems.problem import Intercept, Iterate, MulticlassProblem, Point, relative_gap
from maxmargin.runtime import clock
from maxmargin.solvers.linear_systems import solve_positive
from maxmargin.solvers.row_sums import sum_squares


@dataclass(frozen=True)
class SequentialDual:
    """Settings of the method: dual blocks of one row each, and Newton steps at the end."""

    seed: int = 0  # of the order of visits: it changes only the last digits of the answer
    # sweeps
    sweeps: int = 4  # visits of each row in a round, before the optimality check of all rows
    soft: float = 0.03  # how far sweeps let an intercept move at once: τ over the mean ‖x‖²
    near: float = 1e-3  # the gap at which Newton takes over, where weights or free duals are few
    rounds: int = 3  # in which the gap must fall
    slow: float = 0.3  # to this part: otherwise Newton takes over, where the weights are few
    chunk: float = 2e7  # products between two yields
    refresh: int = 8  # optimality checks after which weights are computed anew
    # Newton steps
    largest: int = 1600  # unknowns of a system: beyond, a factorization is no short step
    small: int = 600  # unknowns up to which weights are solved for: their units do not matter
    free_scale: float = 1e3  # τ over the mean ‖x‖²
    growth: float = 4.0  # of σ when the centre moves
    stiffest: float = 1e7  # σ beyond this turns rounding of the claims into masses
    longest: float = 64.0  # no step is longer, in units of Newton's
    hold: float = 0.1  # the inner error allowed, as a part of how far the hold was stretched
    of_gap: float = 0.02  # and as a part of the gap that is left
    patience: int = 40  # steps that may pass without a smaller gap

    def iterates(self, problem: MulticlassProblem, start: Point | None = None) -> Iterator[Iterate]:
        """Yield ever better iterates until the gap is down to rounding.

        Parts of an iteration that take long yield in between, not ``finished``.
        """
        machine = JointMachine(self, problem, start or Point())
        if not len(machine.kept) or problem.n_classes < 2:
            machine.primal = machine.dual = 0.0  # nothing can be lost
            yield _iterate(machine, converged=True)
            return
        rng = np.random.default_rng(self.seed)
        rounds = self.rounds
        while True:
            yield from _sweeps(machine, rng, rounds)
            newton = JointNewton(machine)
            yield from _newton_steps(machine, newton)
            if newton.size <= self.largest:
                newton.finish()
                yield _iterate(machine, converged=True)
                return
            # Too many duals became free: sweep on, and longer than before.
            machine.restart(newton.mass, newton.b)
            rounds *= 2


_ROUNDING = 1e-15  # no inner error below this part of the objective can be told from rounding
_RESOLVED = 1e-14  # no relative gap below this means anything


def middle_step(claims: Floats, mass: Floats) -> Floats:
    """Return the step of b to the middle of all that are optimal for these weights and masses.

    A step s keeps all mass where claims are largest if s[l] − s[k] ≤ the least lead of k over l in
    the rows where k holds mass. The longest such steps are shortest paths, from and to each class;
    their mean is feasible as they are, treats classes alike, and for two is the midpoint.
    """
    K = claims.shape[1]
    far = np.empty((K, K))  # far[k, l]: how far l may rise above k
    for k in range(K):
        loops.crammer_singer.price_list(claims, mass, k, far[k])
    np.fill_diagonal(far, 0.0)
    for k in range(K):
        far = np.minimum(far, far[:, k : k + 1] + far[k])
    present = np.flatnonzero((mass > 0).any(axis=0))
    inner = far[np.ix_(present, present)]
    step = np.zeros(K)
    step[present] = 0.5 * (inner.mean(axis=0) - inner.mean(axis=1))
    step[present] -= step[present].mean()
    for absent in np.setdiff1d(np.arange(K), present):  # as high as costs nothing
        step[absent] = (step[present] + far[present, absent]).min()
    return step


# ------------------------------------------------------------------- weights
#
# Weights are arrays of shape (d, K), with a column for each class.


class ColumnWeights:
    """Weights of the columns of rows of numbers, measured from their mean if b is free."""

    def __init__(self, features: LinearFeatures, cost: Floats, free: bool) -> None:
        self.matrix, self.centre = features.X, np.zeros(features.X.shape[1])
        if free and not sp.issparse(self.matrix) and len(cost):
            # Weights, not repetitions, must give the same mean: it only decides how we round.
            self.centre = np.average(self.matrix, axis=0, weights=cost).astype(np.float64)
            self.matrix = np.ascontiguousarray(self.matrix - self.centre)
        self.rows: Any = loops.rows.rows(self.matrix)
        self.norms = np.empty(len(cost))
        loops.dual_cd.squared_norms(self.rows, 0, self.norms)

    def shift(self, W: Floats) -> Floats:
        """Return what intercepts are more where rows are measured from the centre."""
        return np.asarray(self.centre @ W)

    def unknowns(self, n_classes: int) -> float:
        """Return how many numbers weights and intercepts are."""
        return float(self.matrix.shape[1] + 1) * n_classes

    def combine(self, beta: Floats) -> Floats:
        """Return Σ xβᵀ."""
        W = np.zeros((self.matrix.shape[1], beta.shape[1]))
        loops.crammer_singer.add_rows(self.rows, beta, W)
        return W

    def claims(self, labels: Ints, W: Floats, b: Floats, out: Floats) -> None:
        """Do out = w·x + b + (1 − δ) for each row and class."""
        loops.crammer_singer.claims_of(self.rows, labels, W, b, out)

    def sizes(self, cost: Floats) -> Floats:
        """Return Σ C x² of each column: its unit."""
        return sum_squares(self.matrix, cost, np.zeros(self.matrix.shape[1]))

    def lifted(self, rows: Ints, root: float) -> Floats:
        """Return rows with a constant column."""
        picked = self.matrix[rows]
        picked = picked.toarray() if sp.issparse(picked) else picked
        return np.hstack([picked, np.full((len(rows), 1), root)])

    def gram(self, rows: Ints) -> Floats:
        """Return the products of rows with each other."""
        picked = self.matrix[rows]
        found = picked @ picked.T
        return np.asarray(found.toarray() if sp.issparse(found) else found, dtype=np.float64)

    def spread(self, rows: Ints, beta: Floats) -> Floats:
        """Return Σ xβᵀ over some rows."""
        return np.asarray(self.matrix[rows].T @ beta)

    def round(self, machine: "JointMachine", rng: np.random.Generator) -> Iterator[None]:
        """Visit rows that are active until the visits make a few sweeps; pause now and then."""
        visits = machine.settings.sweeps * len(machine.labels)
        n, d = self.matrix.shape
        width = (self.matrix.nnz / n if sp.issparse(self.matrix) else d) * machine.W.shape[1]
        rows_per_chunk = max(1, int(machine.settings.chunk / max(width, 1.0)))
        unpaused = 0
        threshold = machine.violation
        while visits > 0:
            active = np.flatnonzero(~machine.shrunk)
            order = active[rng.permutation(len(active))]
            worst = 0.0
            for first in range(0, len(order), rows_per_chunk):
                part = order[first : first + rows_per_chunk]
                met = loops.crammer_singer.sweep(
                    self.rows, machine.labels, machine.cost, self.norms, part, machine.scale,
                    machine.offset, machine.W, machine.total, machine.mass, threshold,
                    machine.shrunk,
                )  # fmt: skip
                worst = max(worst, float(met))
                unpaused += len(part)
                if unpaused >= rows_per_chunk:
                    unpaused = 0
                    yield
            visits -= len(active)
            threshold = worst
            if worst <= 0.0:
                break


# ------------------------------------------------------------------- masses, weights and bounds
#
# Masses m = Cδ − β are kept rather than β: row i spreads its cost Cᵢ over the classes. A free
# intercept asks that each class be given as much as its own rows bring, Σᵢ mᵢ[k] = Σ_{yᵢ=k} Cᵢ;
# until it is so, the intercept is held near an ``offset``: b = offset + scale Σβ.


class JointMachine:
    """Masses, the weights they imply, and the best bounds met so far."""

    def __init__(self, settings: SequentialDual, problem: MulticlassProblem, start: Point) -> None:
        self.settings, self.problem = settings, problem
        self.free = problem.intercept is Intercept.FREE
        self.kept = np.flatnonzero(problem.cost > 0)
        self.labels = np.ascontiguousarray(problem.labels[self.kept], dtype=np.int64)
        self.cost = np.ascontiguousarray(problem.cost[self.kept], dtype=np.float64)
        features = problem.features
        if len(self.kept) < len(problem):
            features = features.take(self.kept)
        self.space = ColumnWeights(features, self.cost, self.free)
        shape = len(self.kept), problem.n_classes
        self.claims = np.empty(shape)
        self.shrunk = np.zeros(shape[0], dtype=np.bool_)
        beta = np.zeros((len(problem), shape[1])) if start.beta is None else start.beta
        self.mass = feasible_masses(problem, beta)[0][self.kept]
        self.scale = problem.features.constant**2
        if self.free:
            self.scale = settings.soft * self.typical_norm()
        self.W, self.total = self.implied(self.mass)
        self.offset = np.zeros(shape[1])
        if self.free:
            self.offset += np.asarray(start.b) + self.space.shift(self.W)
        self.primal, self.dual = np.inf, -np.inf
        self.best_W, self.best_b, self.best_mass = self.W, self.offset, self.mass
        self.violation = np.inf
        self._checks = 0

    def typical_norm(self) -> float:
        """Return the mean ‖x‖², or 1 where all rows are 0."""
        norms = self.space.norms
        return float(np.average(norms, weights=self.cost)) or 1.0 if len(norms) else 1.0

    def implied(self, mass: Floats) -> tuple[Floats, Floats]:
        """Return Σ xβᵀ and Σβ."""
        beta = duals_of(self.labels, mass)
        return self.space.combine(beta), beta.sum(axis=0)

    def b(self) -> Floats:
        """Return the intercept that goes with the masses."""
        return np.asarray(self.offset + self.scale * self.total)

    def restart(self, mass: Floats, b: Floats) -> None:
        """Go on from other masses."""
        self.mass = mass.copy()
        self.W, self.total = self.implied(self.mass)
        if self.free:
            self.offset = b.copy()

    def free_count(self, mass: Floats) -> int:
        """Return how many masses can change by the smallest step."""
        return int(np.maximum((mass > 0).sum(axis=1) - 1, 0).sum())

    def check_optimality(self) -> None:
        """Bound the optimum by the masses and their weights; wake the rows that may change."""
        self._checks += 1
        if self._checks % self.settings.refresh == 0:  # many small changes add up their rounding
            self.W, self.total = self.implied(self.mass)
        self.space.claims(self.labels, self.W, self.b(), self.claims)
        loss, gain, self.violation = loops.crammer_singer.check_optimality(
            self.labels, self.cost, self.claims, self.mass, self.violation, self.shrunk
        )
        self.offer(self.W, self.b(), loss, self.mass, self.W, self.total, gain)

    def offer(
        self, W: Floats, b: Floats, loss: float,
        mass: Floats, implied: Floats, total: Floats, gain: float,
    ) -> None:  # fmt: skip
        """Take note of weights, ``claims`` being theirs, and of masses, if none were better."""
        mass, value = self._dual(mass, implied, total, gain)
        b, primal = self._primal(W, b, loss)
        if primal < self.primal:
            self.primal, self.best_W, self.best_b = primal, W.copy(), b
        if value > self.dual:
            self.dual, self.best_mass = value, mass.copy()

    def _primal(self, W: Floats, b: Floats, loss: float) -> tuple[Floats, float]:
        """Return the intercepts, better ones if they are free, and the objective there."""
        if self.free:
            step, loss = best_intercept_step(self.claims, self.labels, self.cost, loss, 1)
            b = b + step
        return b, self._penalty(W, b) + loss

    def adopt(self, W: Floats, b: Floats, mass: Floats) -> None:
        """Prefer a point to the best met if it is as good to rounding; ``claims`` are its own.

        A free intercept goes to the middle of those that are as good.
        """
        if self.free:
            step = middle_step(self.claims, np.where(mass > 1e-9 * self.cost[:, None], mass, 0.0))
            b = b + step
            self.claims += step
        loss, gain, _ = loops.crammer_singer.check_optimality(
            self.labels, self.cost, self.claims, mass, 0.0, self.shrunk
        )
        primal, rounding = self._penalty(W, b) + loss, 1e-12 * abs(self.primal)
        mass, dual = self._dual(mass, W, duals_of(self.labels, mass).sum(axis=0), gain)
        if primal <= self.primal + rounding:
            self.primal, self.best_W, self.best_b = primal, W.copy(), b
        if dual >= self.dual - rounding:
            self.dual, self.best_mass = dual, mass.copy()

    def _penalty(self, W: Floats, b: Floats) -> float:
        half = 0.5 * float(np.vdot(W, W))
        if self.problem.intercept is Intercept.PENALIZED:
            half += 0.5 * float(b @ b) / self.scale
        return half

    def _dual(self, mass: Floats, W: Floats, total: Floats, gain: float) -> tuple[Floats, float]:
        """Return masses that are feasible, and the dual objective there."""
        if not self.free:
            quadratic = float(np.vdot(W, W)) + self.scale * float(total @ total)
            return mass, gain - 0.5 * quadratic
        if total.any():
            mass, change = self._balanced(mass, total)
            moved = np.flatnonzero(change.any(axis=1))
            W = W + self.space.spread(moved, change[moved])
            gain = float(duals_of(self.labels, mass)[np.arange(len(mass)), self.labels].sum())
        return mass, gain - 0.5 * float(np.vdot(W, W))

    def _balanced(self, mass: Floats, total: Floats) -> tuple[Floats, Floats]:
        """Return masses of the right sums for each class, and by how much their duals changed.

        What a class has too much of goes to classes that lack it, within rows, from the rows where
        that costs least: where the claims differ least.
        """
        moved = mass.copy()
        surplus, prices = -total, np.empty(len(total))
        for _ in range(2 * len(surplus)):
            clock.check()
            giver = int(surplus.argmax())
            if surplus[giver] <= 0 or surplus.min() >= 0:
                break
            loops.crammer_singer.price_list(self.claims, moved, giver, prices)
            taker = int(np.where(surplus < 0, prices, np.inf).argmin())
            holders = np.flatnonzero(moved[:, giver] > 0)
            price = self.claims[holders, giver] - self.claims[holders, taker]
            asked = min(surplus[giver], -surplus[taker])
            self._transfer(moved, holders[np.argsort(price)], giver, taker, asked)
            surplus[giver] -= asked
            surplus[taker] += asked
        return moved, mass - moved

    @staticmethod
    def _transfer(mass: Floats, rows: Ints, giver: int, taker: int, asked: float) -> None:
        """Move this much mass from one class to another, taking from the first rows first."""
        before = np.concatenate([[0.0], np.cumsum(mass[rows, giver])])[:-1]
        part = np.clip(asked - before, 0.0, mass[rows, giver])
        mass[rows, giver] -= part
        mass[rows, taker] += part

    def point(self) -> tuple[Floats, Floats, Floats]:
        """Return the best W, b and β for the problem as it was given."""
        beta = np.zeros((len(self.problem), self.claims.shape[1]))
        beta[self.kept] = duals_of(self.labels, self.best_mass)
        b = self.best_b - self.space.shift(self.best_W)
        if self.free:
            b = b - b.mean()  # the same for all classes, it changes nothing
        return self.best_W.copy(), b, beta


# ------------------------------------------------------------------- the last digits
#
# Semismooth Newton on a proximal dual.
#
# Masses are held near a ``centre`` by ‖m − centre‖²/2σC, row by row, and a free intercept near an
# offset by ‖b − offset‖²/2τ. For given weights U = (W, v), b = offset + √τ v, the masses are then
# the projection of centre + σC·claims, and what is left is smooth:
#
#     φ(U) = ½‖U‖² + Σ …,     ∇φ = U − Σ x̃βᵀ,     ∇²φ ∋ I + σ Σ Cᵢ x̃ᵢx̃ᵢᵀ ⊗ Jᵢ,      x̃ = (x, √τ)
#
# where Jᵢ removes the mean over the classes that hold mass in row i. ½‖∇φ‖² *is* the gap of the
# held problem: when it is small beside the hold itself, centre and offset move up and σ grows.
# Rows of one class alone have Jᵢ = 0, so a step costs little; it is solved in the space of weights
# or in that of the free masses, whichever is smaller. Li, Sun & Toh (2018) for the lasso's kin.


class JointNewton:
    """Newton steps from the best point a machine has met."""

    def __init__(self, machine: JointMachine) -> None:
        self.machine, self.settings = machine, machine.settings
        # Far below their costs the duals of separable classes live: hold those tighter.
        typical = float(
            duals_of(machine.labels, machine.best_mass).clip(0).sum() / machine.cost.sum()
        )
        self.sigma = self.least = float(np.clip(typical, 1e-4, 1.0))
        scale = self.settings.free_scale * machine.typical_norm() if machine.free else machine.scale
        self.root = float(np.sqrt(scale))
        self.offset = machine.best_b.copy() if machine.free else np.zeros(len(machine.best_b))
        self.centre = machine.best_mass.copy()
        self.mass = self.centre.copy()
        self.W = machine.best_W
        self.v = (machine.best_b - self.offset) / (self.root or 1.0)
        self.slopes = np.zeros(self.centre.shape)
        self.stuck = self.blocked = False
        # What the Hessian's diagonal would be if all masses were free: the units of its columns.
        columns = machine.space.sizes(machine.cost)
        self.sizes = np.append(columns, scale * machine.cost.sum())[:, np.newaxis]
        self.damping = 0.0
        self.least_wrong, self.nearest = np.inf, (self.mass, self.offset)
        self._evaluate()

    @property
    def size(self) -> int:
        """How many unknowns the next step has."""
        return int(min(self.unknowns, self.machine.free_count(self.mass)))

    @property
    def unknowns(self) -> float:
        """How many weights and intercepts there are."""
        return self.machine.space.unknowns(len(self.v))

    def _evaluate(self) -> None:
        """Find masses and gradient at the weights, and offer both to the machine."""
        machine = self.machine
        self.b = self.offset + self.root * self.v
        machine.space.claims(machine.labels, self.W, self.b, machine.claims)
        self._project(0.0)
        implied, total = machine.implied(self.mass)
        self.gradient = np.vstack([self.W - implied, self.v - self.root * total])
        loss, gain, _ = loops.crammer_singer.check_optimality(
            machine.labels, machine.cost, machine.claims, self.mass, 0.0, machine.shrunk
        )
        machine.offer(self.W, self.b, loss, self.mass, implied, total, gain)

    def _project(self, step: float) -> float:
        machine = self.machine
        return float(loops.crammer_singer.project_rows(
            self.centre, machine.claims, self.slopes, step, self.sigma * machine.cost,
            machine.cost, self.mass,
        ))  # fmt: skip

    def step(self) -> Iterator[None]:
        """Make one Newton step, pausing between its parts.

        Where the held problem is solved, hold on to its solution.
        """
        direction = self._direction()
        yield
        change, lift = direction[:-1], direction[-1]
        self.slopes[:] = self._scores(change, lift)
        self._move(change, lift)
        yield
        self._evaluate()
        if self._solved():
            self.centre = self.mass.copy()
            if self.machine.free:
                self.offset, self.v = self.b, np.zeros(len(self.b))
            growth = self.settings.growth
            self.sigma = self.sigma / growth if self.blocked else growth * self.sigma
            self.sigma = min(max(self.sigma, self.least), self.settings.stiffest)
            self._evaluate()

    def finish(self) -> None:
        """Prefer the weights that the best masses imply to others as good to rounding.

        Of points whose objectives differ by rounding alone, this is the one that meets the
        optimality conditions best; a free intercept goes to the middle of those as good.
        """
        machine = self.machine
        mass, b = self.nearest
        W, total = machine.implied(mass)
        b = b if machine.free else machine.scale * total
        machine.space.claims(machine.labels, W, b, machine.claims)
        machine.adopt(W, b, mass)

    def _solved(self) -> bool:
        """Return whether the held problem is; and remember the point that is nearest to optimal.

        Inner error and hold, both in units of the objective, are all that is wrong with a point.
        """
        stretch = ((self.mass - self.centre) ** 2).sum(axis=1) / (self.sigma * self.machine.cost)
        held = float(stretch.sum()) + (float(self.v @ self.v) if self.machine.free else 0.0)
        W, lift = self.gradient[:-1], self.gradient[-1]
        error = float(np.vdot(W, W)) + float(lift @ lift)
        if error + held <= self.least_wrong:
            self.least_wrong, self.nearest = error + held, (self.mass.copy(), self.b)
        gap = self.machine.primal - self.machine.dual
        return self.stuck or error <= max(
            self.settings.hold**2 * held,
            _ROUNDING * abs(self.machine.primal),
            self.settings.of_gap * gap,
        )

    def _scores(self, change: Floats, lift: Floats) -> Floats:
        out = np.empty(self.mass.shape)
        machine = self.machine
        machine.space.claims(machine.labels, change, self.root * lift, out)
        out -= 1.0
        out[np.arange(len(out)), machine.labels] += 1.0
        return out

    def _move(self, change: Floats, lift: Floats) -> None:
        """Go along the direction to where φ is lowest, or where its slope is a fraction."""
        machine = self.machine
        own = float(machine.cost @ self.slopes[np.arange(len(self.slopes)), machine.labels])
        first = float(np.vdot(self.W, change)) + float(self.v @ lift) - own
        curve = float(np.vdot(change, change)) + float(lift @ lift)
        begin = first + self._project(0.0)
        step = self._lowest(begin, first, curve) if begin < 0 else 0.0
        # A slope that is a difference of much larger numbers says no more: as good as solved.
        self.blocked = step <= 0
        self.stuck = self.blocked or bool(abs(begin) <= 4 * np.finfo(float).eps * abs(own))
        if step < 1e-2 and not self.stuck:  # rows without a say in the Hessian came into play
            self.damping = min(max(8 * self.damping, 1e-6), 1.0)
        else:
            self.damping = self.damping / 64 if self.damping > 1e-9 and step < 0.5 else 0.0
        self.W = self.W + step * change
        self.v = self.v + step * lift

    def _lowest(self, begin: float, first: float, curve: float) -> float:
        """Return where the slope, which only rises, is nearly 0: false position, then halving."""
        low, high, step = 0.0, np.inf, 1.0
        slope_low, slope_high = begin, np.inf
        for trial in range(40):
            clock.check()
            slope = first + step * curve + self._project(step)
            if abs(slope) <= 0.1 * abs(begin):
                return step
            if slope < 0:
                low, slope_low = step, slope
            else:
                high, slope_high = step, slope
            if high == np.inf and step >= self.settings.longest:
                return step
            if high == np.inf:
                step *= 2
            elif high - low <= 1e-3 * low:
                return low
            elif trial % 3 == 2:
                step = 0.5 * (low + high) if low > 0 else high / 64
            else:
                step = low + (high - low) * slope_low / (slope_low - slope_high)
        return low

    def _direction(self) -> Floats:
        held = self.mass > 0
        shared = np.flatnonzero(held.sum(axis=1) > 1)
        if not len(shared):
            return -self.gradient / (1.0 + self.sigma * self.sizes)
        if self.settings.small < self.unknowns > self.machine.free_count(self.mass):
            return self._by_masses(held[shared], shared)
        return self._by_weights(held[shared], shared)

    def _by_weights(self, held: npt.NDArray[np.bool_], rows: Ints) -> Floats:
        """Solve in the space of weights: the Hessian is a Laplacian of pairs of classes."""
        D, K = self.gradient.shape
        hessian = np.zeros((K, D, K, D))
        strength = self.sigma * self.machine.cost[rows] / held.sum(axis=1)
        for k in range(K):
            for l in range(k):
                clock.check()
                both = np.flatnonzero(held[:, k] & held[:, l])
                if not len(both):
                    continue
                x = self.machine.space.lifted(rows[both], self.root)
                pair = x.T @ (x * strength[both, np.newaxis])
                hessian[k, :, l] -= pair
                hessian[l, :, k] -= pair
                hessian[k, :, k] += pair
                hessian[l, :, l] += pair
        square = hessian.reshape(K * D, K * D)
        damping = self.damping * self.sigma * np.tile(self.sizes.ravel(), K)
        square[np.diag_indices(K * D)] += 1.0 + damping
        return -solve_positive(square, self.gradient.T.ravel()).reshape(K, D).T

    def _by_masses(self, held: npt.NDArray[np.bool_], rows: Ints) -> Floats:
        """Solve in the space of free masses (Woodbury's identity)."""
        owner, basis = _contrasts(held)
        space = self.machine.space
        gram = (space.gram(rows) + self.root**2)[np.ix_(owner, owner)] * (basis @ basis.T)
        gram[np.diag_indices(len(owner))] += 1.0 / (self.sigma * self.machine.cost[rows][owner])
        scores = space.matrix[rows] @ self.gradient[:-1] + self.root * self.gradient[-1]
        z = solve_positive(gram, (scores[owner] * basis).sum(axis=1))
        coefficients = np.zeros(held.shape)
        np.add.at(coefficients, owner, z[:, np.newaxis] * basis)
        lifts = self.root * coefficients.sum(axis=0)
        return np.asarray(np.vstack([space.spread(rows, coefficients), lifts]) - self.gradient)


def _contrasts(held: npt.NDArray[np.bool_]) -> tuple[Ints, Floats]:
    """Return, row by row, an orthonormal basis of the changes that keep a row's mass (Helmert)."""
    before: Ints = np.cumsum(held, axis=1) - held  # how many holders precede
    owner, last = np.nonzero(held & (before > 0))
    count: Floats = before[owner, last].astype(np.float64)
    basis = np.where(held[owner] & (np.arange(held.shape[1]) < last[:, np.newaxis]), 1.0, 0.0)
    basis[np.arange(len(owner)), last] = -count
    return owner, basis / np.sqrt(count * (count + 1))[:, np.newaxis]


# ------------------------------------------------------------------- rounds


def _iterate(machine: JointMachine, finished: bool = True, converged: bool = False) -> Iterate:
    return Iterate(machine.primal, machine.dual, *machine.point(), finished, converged)


def _sweeps(machine: JointMachine, rng: np.random.Generator, at_least: int) -> Iterator[Iterate]:
    """Make rounds of sweeps until Newton steps are possible and worth it."""
    settings = machine.settings
    few_weights = machine.space.unknowns(machine.W.shape[1]) <= settings.largest
    machine.check_optimality()
    rounds = 0
    gaps: list[float] = []
    while True:
        yield _iterate(machine)
        gap = relative_gap(machine.primal, machine.dual)
        gaps.append(gap)
        slow = rounds >= settings.rounds and gap > settings.slow * gaps[-1 - settings.rounds]
        if few_weights and (gap <= settings.near or slow):
            return
        few_free = machine.free_count(machine.mass) <= settings.largest
        if few_free and gap <= settings.near and rounds >= at_least - settings.rounds:
            return
        for _ in machine.space.round(machine, rng):
            yield _iterate(machine, finished=False)
        if machine.free:  # it is held near where it is now
            machine.offset = machine.b()
        machine.check_optimality()
        rounds += 1


def _newton_steps(machine: JointMachine, newton: JointNewton) -> Iterator[Iterate]:
    """Make Newton steps while they are affordable and the gap shrinks."""
    best, idle = (np.inf, -np.inf), 0
    patience = machine.settings.patience
    while newton.size <= machine.settings.largest:
        for _ in newton.step():
            yield _iterate(machine, finished=False)
        gap = relative_gap(machine.primal, machine.dual)
        gain = max(best[0] - machine.primal, machine.dual - best[1])
        idle = 0 if gain > 0.05 * (machine.primal - machine.dual) else idle + 1
        best = best if idle else (machine.primal, machine.dual)
        if gap <= _RESOLVED or idle >= (patience if gap > 1e-9 else patience // 4):
            return
        yield _iterate(machine)
