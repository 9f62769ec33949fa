"""Where the multiclass solver stands, and the bounds of the optimum it knows.

Masses m = Cδ − β are kept rather than β: row i spreads its cost Cᵢ over the classes. A free
intercept asks that each class be given as much as its own rows bring, Σᵢ mᵢ[k] = Σ_{yᵢ=k} Cᵢ; until
it is so, the intercept is held near an ``offset``: b = offset + scale Σβ.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.geometry.inputs import blocks
from maxmargin.problems.problem import Intercept, MulticlassProblem
from maxmargin.solvers.crammer_singer_intercepts import better_intercept, middle_step

_SOFT = 0.03  # how far sweeps let an intercept move at once: τ over the mean ‖x‖²


@dataclass(frozen=True)
class MulticlassStart:
    """A point to start from: duals of shape (n, K), and the intercept that goes with them."""

    beta: Floats | None = None
    b: Floats | float = 0.0
    w: Floats | None = None  # implied by beta


class Machine:
    """Masses, the weights they imply, and the best bounds met so far."""

    def __init__(self, problem: MulticlassProblem, start: MulticlassStart) -> None:
        self.problem = problem
        self.free = problem.intercept is Intercept.FREE
        self.kept = np.flatnonzero(problem.cost > 0)
        self.matrix, self.centre = self._matrix()
        self.rows: Any = loops.rows.rows(self.matrix)
        self.labels = np.ascontiguousarray(problem.labels[self.kept], dtype=np.int64)
        self.cost = np.ascontiguousarray(problem.cost[self.kept], dtype=np.float64)
        shape = len(self.kept), problem.n_classes
        self.norms = np.empty(shape[0])
        loops.crammer_singer.squared_norms(self.rows, self.norms)
        self.claims = np.empty(shape)
        self.asleep = np.zeros(shape[0], dtype=np.bool_)
        self.mass = self._first_masses(start)
        self.scale = {Intercept.FREE: _SOFT * self.typical_norm(), Intercept.NONE: 0.0,
                      Intercept.PENALIZED: problem.lift**2}[problem.intercept]  # fmt: skip
        self.W, self.total = self.implied(self.mass)
        self.offset = np.zeros(shape[1])
        if self.free:
            self.offset += np.asarray(start.b) + self.centre @ self.W
        self.primal, self.dual = np.inf, -np.inf
        self.best_W, self.best_b, self.best_mass = self.W, self.offset, self.mass
        self.violation = np.inf
        self._looks = 0

    def _matrix(self) -> tuple[Any, Floats]:
        """Return the rows with a cost, measured from their mean where an intercept makes up."""
        X = self.problem.X
        if len(self.kept) < X.shape[0]:
            X = X[self.kept]
        if not self.free or sp.issparse(X) or not len(self.kept):
            return X, np.zeros(X.shape[1])
        # Weights, not repetitions, must give the same mean: it only decides how we round.
        centre = np.average(X, axis=0, weights=self.problem.cost[self.kept])
        return np.ascontiguousarray(X - centre), np.asarray(centre, dtype=np.float64)

    def _first_masses(self, start: MulticlassStart) -> Floats:
        own = np.zeros(self.claims.shape)
        own[np.arange(len(own)), self.labels] = self.cost
        if start.beta is None:
            return own
        mass = np.maximum(own - start.beta[self.kept], 0.0)
        sums = mass.sum(axis=1)
        usable = np.isfinite(sums) & (sums > 0)
        mass[usable] *= (self.cost[usable] / sums[usable])[:, np.newaxis]
        mass[~usable] = own[~usable]
        return mass

    def typical_norm(self) -> float:
        """Return the mean ‖x‖², or 1 where all rows are 0."""
        return float(np.average(self.norms, weights=self.cost)) or 1.0 if len(self.norms) else 1.0

    def column_sizes(self, lift: float) -> Floats:
        """Return Σ C x² of each column, and of a constant one."""
        sizes = np.zeros(self.matrix.shape[1])
        first = 0
        for rows in blocks(self.matrix):
            squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
            sizes += np.asarray(self.cost[first : first + rows.shape[0]] @ squares).ravel()
            first += rows.shape[0]
        return np.append(sizes, lift**2 * self.cost.sum())

    def duals(self, mass: Floats) -> Floats:
        """Return β = Cδ − m of the rows with a cost."""
        beta = np.empty(mass.shape)
        loops.crammer_singer.duals_of(self.labels, mass, beta)
        return beta

    def implied(self, mass: Floats) -> tuple[Floats, Floats]:
        """Return Σ xβᵀ and Σβ."""
        beta = self.duals(mass)
        W = np.zeros((self.matrix.shape[1], beta.shape[1]))
        loops.crammer_singer.add_rows(self.rows, beta, W)
        return W, beta.sum(axis=0)

    def b(self) -> Floats:
        """Return the intercept that goes with the masses."""
        return np.asarray(self.offset + self.scale * self.total)

    def move_offset(self) -> None:
        """Let a free intercept be held near where it is now."""
        if self.free:
            self.offset = self.b()

    def restart(self, mass: Floats, b: Floats) -> None:
        """Go on from other masses."""
        self.mass = mass.copy()
        self.W, self.total = self.implied(self.mass)
        if self.free:
            self.offset = b.copy()

    def free_count(self, mass: Floats) -> int:
        """Return how many masses can change by the smallest step."""
        return int(np.maximum((mass > 0).sum(axis=1) - 1, 0).sum())

    def entries_per_row(self) -> float:
        """Return how many numbers a row has."""
        n, d = self.matrix.shape
        return float(self.matrix.nnz / n) if sp.issparse(self.matrix) else float(d)

    def sweep(self, order: Ints, threshold: float) -> float:
        """Solve for the masses of each row in order; return the largest violation met."""
        return float(loops.crammer_singer.sweep(
            self.rows, self.labels, self.cost, self.norms, order, self.scale, self.offset,
            self.W, self.total, self.mass, threshold, self.asleep,
        ))  # fmt: skip

    def look(self) -> None:
        """Bound the optimum by the masses and their weights; wake the rows that may change."""
        self._looks += 1
        if self._looks % 8 == 0:  # many small changes of W add up their rounding
            self.W, self.total = self.implied(self.mass)
        loops.crammer_singer.claims_of(self.rows, self.labels, self.W, self.b(), self.claims)
        loss, gain, self.violation = loops.crammer_singer.look(
            self.labels, self.cost, self.claims, self.mass, self.violation, self.asleep
        )
        self.offer_primal(self.W, self.b(), loss)
        self.offer_dual(self.mass, self.W, self.total, gain)

    def offer_primal(self, W: Floats, b: Floats, loss: float) -> None:
        """Take note of weights if none were better; ``claims`` are theirs."""
        if self.free:
            b, loss = better_intercept(self.claims, self.labels, self.cost, b, loss)
        value = self._penalty(W, b) + loss
        if value < self.primal:
            self.primal, self.best_W, self.best_b = value, W.copy(), b

    def offer_dual(self, mass: Floats, W: Floats, total: Floats, gain: float) -> None:
        """Take note of masses if none were better; W and total are what they imply."""
        mass, value = self._dual(mass, W, total, gain)
        if value > self.dual:
            self.dual, self.best_mass = value, mass.copy()

    def adopt(self, W: Floats, b: Floats, mass: Floats) -> None:
        """Prefer a point to the best met if it is as good to rounding; ``claims`` are its own.

        A free intercept goes to the middle of those that are as good.
        """
        if self.free:
            step = middle_step(self.claims, np.where(mass > 1e-9 * self.cost[:, None], mass, 0.0))
            b = b + step
            self.claims += step
        loss, gain, _ = loops.crammer_singer.look(
            self.labels, self.cost, self.claims, mass, 0.0, self.asleep
        )
        value = self._penalty(W, b) + loss
        rounding = 1e-12 * abs(self.primal)
        if value <= self.primal + rounding:
            self.primal, self.best_W, self.best_b = value, W.copy(), b
        mass, value = self._dual(mass, W, self.implied(mass)[1], gain)
        if value >= self.dual - rounding:
            self.dual, self.best_mass = value, mass.copy()

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
            W = W.copy()
            loops.crammer_singer.add_rows(self.rows, change, W)
            gain = float(self.duals(mass)[np.arange(len(mass)), self.labels].sum())
        return mass, gain - 0.5 * float(np.vdot(W, W))

    def _balanced(self, mass: Floats, total: Floats) -> tuple[Floats, Floats]:
        """Return masses of the right sums for each class, and by how much their duals changed.

        What a class has too much of goes to classes that lack it, within rows, from the rows where
        that costs least: where the claims differ least.
        """
        moved = mass.copy()
        surplus, prices = -total, np.empty(len(total))
        for _ in range(2 * len(surplus)):
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
        """Move so much mass from one class to another, taking from the first rows first."""
        before = np.concatenate([[0.0], np.cumsum(mass[rows, giver])])[:-1]
        part = np.clip(asked - before, 0.0, mass[rows, giver])
        mass[rows, giver] -= part
        mass[rows, taker] += part

    def point(self) -> tuple[Floats, Floats, Floats]:
        """Return the best W, b and β for the problem as it was given."""
        beta = np.zeros((self.problem.X.shape[0], self.claims.shape[1]))
        beta[self.kept] = self.duals(self.best_mass)
        b = self.best_b - self.centre @ self.best_W
        if self.free:
            b -= b.mean()  # the same for all classes, it changes nothing
        return self.best_W.copy(), b, beta
