"""The last digits of the multiclass machine: semismooth Newton on a proximal dual.

Masses are held near a ``centre`` by ‖m − centre‖²/2σC, row by row, and a free intercept near an
offset by ‖b − offset‖²/2τ. For given weights U = (W, v), b = offset + √τ v, the masses are then the
projection of centre + σC·claims, and what is left is smooth:

    φ(U) = ½‖U‖² + Σ …,     ∇φ = U − Σ x̃βᵀ,     ∇²φ ∋ I + σ Σ Cᵢ x̃ᵢx̃ᵢᵀ ⊗ Jᵢ,      x̃ = (x, √τ)

where Jᵢ removes the mean over the classes that hold mass in row i. ½‖∇φ‖² *is* the gap of the held
problem: when it is small beside the hold itself, centre and offset move up and σ grows.
Rows of one class alone have Jᵢ = 0, so a step costs little; it is solved in the space of weights or
in that of the free masses, whichever is smaller. Li, Sun & Toh (2018) for the lasso's kin.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from maxmargin import loops
from maxmargin.solvers.crammer_singer_state import Machine

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LARGEST = 1600  # unknowns of a Newton system: beyond, a factorization is no short step
_SMALL = 600  # unknowns up to which weights are solved for anyway: their units do not matter
_FREE_SCALE = 1e3  # τ over the mean ‖x‖²
_GROWTH = 4.0
_LONGEST = 64.0  # no step is longer, in units of Newton's
_OF_GAP = 0.02  # and as a part of the gap that is left
_ROUNDING = 1e-15  # no inner error below this part of the objective can be told from rounding
_STIFFEST = 1e7  # σ beyond this turns rounding of the claims into masses
_HOLD = 0.1  # the inner error allowed, as a part of how far the hold was stretched


class Newton:
    """Newton steps from the best point a machine has met."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        # Far below their costs the duals of separable classes live: hold those tighter.
        typical = float(machine.duals(machine.best_mass).clip(0).sum() / machine.cost.sum())
        self.sigma = self.least = float(np.clip(typical, 1e-4, 1.0))
        scale = _FREE_SCALE * machine.typical_norm() if machine.free else machine.scale
        self.root = float(np.sqrt(scale))
        self.offset = machine.best_b.copy() if machine.free else np.zeros(len(machine.best_b))
        self.centre = machine.best_mass.copy()
        self.mass = self.centre.copy()
        self.W = machine.best_W
        self.v = (machine.best_b - self.offset) / (self.root or 1.0)
        self.slopes = np.zeros(self.centre.shape)
        self.stuck = self.blocked = False
        # What the Hessian's diagonal would be if all masses were free: the units of its columns.
        self.sizes = machine.column_sizes(self.root)[:, np.newaxis]
        self.damping = 0.0
        self.least_wrong, self.nearest = np.inf, (self.mass, self.offset)
        self._settle()

    @property
    def size(self) -> int:
        """How many unknowns the next step has."""
        return min(self.W.size + self.v.size, self.machine.free_count(self.mass))

    def _settle(self) -> None:
        """Find masses and gradient at the weights, and offer both to the machine."""
        machine = self.machine
        self.b = self.offset + self.root * self.v
        loops.crammer_singer.claims_of(machine.rows, machine.labels, self.W, self.b, machine.claims)
        self._project(0.0)
        implied, total = machine.implied(self.mass)
        self.gradient = np.vstack([self.W - implied, self.v - self.root * total])
        loss, gain, _ = loops.crammer_singer.look(
            machine.labels, machine.cost, machine.claims, self.mass, 0.0, machine.asleep
        )
        machine.offer_primal(self.W, self.b, loss)
        machine.offer_dual(self.mass, implied, total, gain)

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
        self._settle()
        if self._solved():
            self.centre = self.mass.copy()
            if self.machine.free:
                self.offset, self.v = self.b, np.zeros(len(self.b))
            self.sigma = self.sigma / _GROWTH if self.blocked else _GROWTH * self.sigma
            self.sigma = min(max(self.sigma, self.least), _STIFFEST)
            self._settle()

    def finish(self) -> None:
        """Prefer the weights that the best masses imply to others as good to rounding.

        Of points whose objectives differ by rounding alone, this is the one that meets the
        optimality conditions best; a free intercept goes to the middle of those as good.
        """
        machine = self.machine
        mass, b = self.nearest
        W, total = machine.implied(mass)
        b = b if machine.free else machine.scale * total
        loops.crammer_singer.claims_of(machine.rows, machine.labels, W, b, machine.claims)
        machine.adopt(W, b, mass)

    def _solved(self) -> bool:
        """Return whether the held problem is; and remember the point that is nearest to optimal.

        Inner error and hold, both in units of the objective, are all that is wrong with a point.
        """
        stretch = ((self.mass - self.centre) ** 2).sum(axis=1) / (self.sigma * self.machine.cost)
        held = float(stretch.sum()) + (float(self.v @ self.v) if self.machine.free else 0.0)
        error = float(np.vdot(self.gradient, self.gradient))
        if error + held <= self.least_wrong:
            self.least_wrong, self.nearest = error + held, (self.mass.copy(), self.b)
        gap = self.machine.primal - self.machine.dual
        return self.stuck or error <= max(
            _HOLD**2 * held, _ROUNDING * abs(self.machine.primal), _OF_GAP * gap
        )

    def _scores(self, change: Floats, lift: Floats) -> Floats:
        out = np.empty(self.mass.shape)
        machine = self.machine
        loops.crammer_singer.claims_of(machine.rows, machine.labels, change, self.root * lift, out)
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
            slope = first + step * curve + self._project(step)
            if abs(slope) <= 0.1 * abs(begin):
                return step
            if slope < 0:
                low, slope_low = step, slope
            else:
                high, slope_high = step, slope
            if high == np.inf and step >= _LONGEST:
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
        if _SMALL < self.gradient.size > self.machine.free_count(self.mass):
            return self._by_masses(held[shared], shared)
        return self._by_weights(held[shared], shared)

    def _lifted(self, rows: Ints) -> Floats:
        picked = self.machine.matrix[rows]
        picked = picked.toarray() if sp.issparse(picked) else picked
        return np.hstack([picked, np.full((len(rows), 1), self.root)])

    def _by_weights(self, held: npt.NDArray[np.bool_], rows: Ints) -> Floats:
        """Solve in the space of weights: the Hessian is a Laplacian of pairs of classes."""
        D, K = self.gradient.shape
        hessian = np.zeros((K, D, K, D))
        strength = self.sigma * self.machine.cost[rows] / held.sum(axis=1)
        for k in range(K):
            for l in range(k):
                both = np.flatnonzero(held[:, k] & held[:, l])
                if not len(both):
                    continue
                x = self._lifted(rows[both])
                pair = x.T @ (x * strength[both, np.newaxis])
                hessian[k, :, l] -= pair
                hessian[l, :, k] -= pair
                hessian[k, :, k] += pair
                hessian[l, :, l] += pair
        square = hessian.reshape(K * D, K * D)
        damping = self.damping * self.sigma * np.tile(self.sizes.ravel(), K)
        square[np.diag_indices(K * D)] += 1.0 + damping
        return -_solved(square, self.gradient.T.ravel()).reshape(K, D).T

    def _by_masses(self, held: npt.NDArray[np.bool_], rows: Ints) -> Floats:
        """Solve in the space of free masses (Woodbury's identity)."""
        owner, basis = _contrasts(held)
        picked = self.machine.matrix[rows]
        gram = picked @ picked.T
        gram = np.asarray(gram.toarray() if sp.issparse(gram) else gram, dtype=np.float64)
        gram = (gram + self.root**2)[np.ix_(owner, owner)] * (basis @ basis.T)
        gram[np.diag_indices(len(owner))] += 1.0 / (self.sigma * self.machine.cost[rows][owner])
        scores = picked @ self.gradient[:-1] + self.root * self.gradient[-1]
        z = _solved(gram, (scores[owner] * basis).sum(axis=1))
        coefficients = np.zeros(held.shape)
        np.add.at(coefficients, owner, z[:, np.newaxis] * basis)
        back = np.vstack([picked.T @ coefficients, self.root * coefficients.sum(axis=0)])
        return np.asarray(back - self.gradient)


def _contrasts(held: npt.NDArray[np.bool_]) -> tuple[Ints, Floats]:
    """Return, row by row, an orthonormal basis of the changes that keep a row's mass (Helmert)."""
    before: Ints = np.cumsum(held, axis=1) - held  # how many holders precede
    owner, last = np.nonzero(held & (before > 0))
    count: Floats = before[owner, last].astype(np.float64)
    basis = np.where(held[owner] & (np.arange(held.shape[1]) < last[:, np.newaxis]), 1.0, 0.0)
    basis[np.arange(len(owner)), last] = -count
    return owner, basis / np.sqrt(count * (count + 1))[:, np.newaxis]


def _solved(square: Floats, right: Floats) -> Floats:
    """Solve a positive definite system, whatever the units of its unknowns."""
    unit = 1.0 / np.sqrt(np.diagonal(square))
    square = square * unit * unit[:, np.newaxis]
    for ridge in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        square[np.diag_indices(len(square))] += ridge
        try:
            factor = scipy.linalg.cho_factor(square, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(unit * scipy.linalg.cho_solve(factor, unit * right, check_finite=False))
    return unit * unit * right
