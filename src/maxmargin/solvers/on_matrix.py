"""A problem on rows of a matrix of kernel values that is there, solved at rising costs."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.kernels.prepared import FloatArray
from maxmargin.loops.records import Loss
from maxmargin.problems.duality import best_intercept, snapped
from maxmargin.problems.losses import split_tube

# ------------------------------------------------------------------- active sets
#
# Active-set steps: free variables go to where their equations say, as far as bounds allow.
#
#     max  rᵀδ − ½δᵀKδ    s.t.  −down ≤ δ ≤ up,  Σδ = 0 if there is an intercept
#
# Primal-dual active sets (Hintermüller, Ito & Kunisch 2003): variables whose step leads out are
# held at the bound, those held there against their will are let go. One Cholesky factor serves all
# these equations, by Schur complements.


_MOST_HELD = 250
_EXCHANGES = 30
_RIDGE = 1e-7  # on the diagonal of equations, times the root of their number
_MOST_RIDGE = 1e12  # times that
_ROUNDING = 1e-12  # of a bound, or of a box


def active_set_step(K: Floats, r: Floats, down: Floats, up: Floats, free: bool) -> Floats | None:
    """Return the step that solves the block within its bounds, or None if none was found.

    Variables may go down and up by so much, and their sum stays if ``free``.
    """
    factor = _factor(K)
    right = np.ones((2, len(r)))
    right[0] = r
    plain, ones = _solve(factor, right.T).T
    step = plain - plain.sum() / ones.sum() * ones if free else plain
    if (step > up).any() or (-step > down).any():
        step = _within(factor, plain, ones, down, up, free)
    return step if step is not None and step @ (r - 0.5 * (K @ step)) > 0.0 else None


def _within(
    factor: Floats, plain: Floats, ones: Floats, down: Floats, up: Floats, free: bool
) -> Floats | None:
    """Return the step with those variables at their bounds that it would lead out."""
    n = len(plain)
    # Columns of K⁻¹: that of the sum comes first, then those of variables that were ever held.
    inverse = np.empty((n, 1 + min(n, _MOST_HELD)), order="F")
    inverse[:, 0] = ones
    known, used = np.zeros(n, np.int64), 1
    side, bound = np.zeros(n, np.int64), np.zeros(n)
    for _ in range(_EXCHANGES):
        held = np.flatnonzero(side)
        new = held[known[held] == 0]
        if used + len(new) > inverse.shape[1]:
            return None
        if len(new):
            known[new] = np.arange(used, used + len(new))
            unit = np.zeros((n, len(new)), order="F")
            unit[new, np.arange(len(new))] = 1.0
            inverse[:, used : used + len(new)] = _solve(factor, unit)
            used += len(new)
        columns = inverse[:, np.append(0, known[held])] if free else inverse[:, known[held]]
        forces = _forces(columns, held, plain, bound, free)
        step = plain - columns @ forces
        if not _exchange(step, forces[int(free) :], held, down, up, side, bound):
            return np.where(side == 0, step, bound)
    return None


def _factor(K: Floats) -> Floats:
    """Return the Cholesky factor of K + ridge·I, with a larger ridge if it takes one."""
    ridge = _RIDGE * max(0.0, float(K.diagonal().max())) * np.sqrt(len(K))
    most = _MOST_RIDGE * ridge
    while True:
        lifted = K.copy(order="F")
        lifted.ravel("K")[:: len(K) + 1] += ridge
        factor, failed = lapack.dpotrf(lifted, lower=1, overwrite_a=1, clean=0)
        if not failed:
            return np.asarray(factor)
        ridge *= 10.0
        if not ridge <= most:
            return np.eye(len(K))


def _solve(factor: Floats, right: Floats) -> Floats:
    return np.asarray(lapack.dpotrs(factor, right, lower=1)[0])


def _forces(columns: Floats, held: Ints, plain: Floats, bound: Floats, free: bool) -> Floats:
    """Return the forces that keep the sum and bring held variables exactly to their bounds."""
    A, right = columns[held], plain[held] - bound[held]
    if free:
        A = np.vstack([columns.sum(axis=0), A])
        right = np.append(plain.sum(), right)
    if not len(right):
        return right
    _, forces, failed = lapack.dposv(A, right)
    # Where held variables determine each other, any forces that do it will do.
    return np.asarray(np.linalg.lstsq(A, right, rcond=None)[0] if failed else forces)


def _exchange(step: Floats, forces: Floats, held: Ints, down: Floats, up: Floats, side: Ints,
              bound: Floats) -> bool:  # fmt: skip
    """Hold variables that the step leads out, let go those held in vain; return whether any."""
    vain = held[forces * side[held] < 0.0]
    side[vain] = 0
    loose = side == 0
    above = np.flatnonzero(loose & (step > up * (1 + _ROUNDING)))
    below = np.flatnonzero(loose & (-step > down * (1 + _ROUNDING)))
    side[above], bound[above] = 1, up[above]
    side[below], bound[below] = -1, -down[below]
    return len(vain) + len(above) + len(below) > 0


# -------------------------------------------------------------------


COPIED = 0.6  # part of the rows of a problem that are copied together at most
_BLOCK = 256  # variables
ROUNDS = 20_000  # for each cost


class Room(NamedTuple):
    """Memory for a block of variables, and for the part of the matrix they move in."""

    block: FloatArray
    copied: FloatArray

    @classmethod
    def of(cls, rows: int, dtype: npt.DTypeLike) -> Self:
        """Return room for problems of up to so many rows."""
        return cls(np.empty(_BLOCK**2, dtype), np.empty(int((COPIED * rows) ** 2), dtype))


class Path(NamedTuple):
    """By cost: coefficients of the rows, scores of rows to be judged, and how it was solved."""

    coefficients: Floats
    scores: Floats
    intercepts: Floats
    gaps: Floats
    rounds: Ints


@dataclass(frozen=True)
class OnMatrix:
    """A problem with at most one intercept: its loss is that at cost 1."""

    loss: Loss
    free: bool  # whether there is an intercept
    place: Ints  # its rows in the matrix, ascending
    at: Ints  # the row of each variable, among these
    x: Floats  # where to start at the first cost; then the solution at the last
    f: Floats  # its scores

    split: bool  # whether a dual with a kink at 0 is two variables, one ≥ 0 and one ≤ 0

    @classmethod
    def stated(cls, loss: Loss, free: bool, rows: Ints) -> Self:
        """Return a problem whose duals belong to these rows of the matrix."""
        place, at = np.unique(rows, return_inverse=True)
        split = loss.epsilon > 0
        if split:
            loss, at = split_tube(loss), np.tile(at, 2)
        return cls(loss, free, place, at, np.zeros(len(at)), np.zeros(len(place)), split)

    @property
    def duals(self) -> Floats:
        """The solution."""
        return np.asarray(np.sum(np.split(self.x, 2), axis=0)) if self.split else self.x

    @property
    def rows(self) -> Ints:
        """The row of the matrix that each dual belongs to."""
        return self.place[self.at[: len(self.at) // (1 + self.split)]]

    def start(self, cost: float, duals: Floats, scores: Floats) -> None:
        """Start from duals, as far as limits and sum allow; scores say which give way first."""
        low, high = cost * self.loss.low, cost * self.loss.high
        self.x[:] = np.clip(np.tile(duals, 1 + self.split), low, high)
        if self.free:
            x = _balanced(self.loss, low, high, self.x, scores[self.at])
            self.x[:] = snapped(x, low, high)

    def solve(
        self,
        K: FloatArray,
        costs: Floats,
        tol: float,
        room: Room,
        judged: Ints | None = None,
        rounds: int = ROUNDS,
    ) -> Path:
        """Solve at ascending costs to relative gaps of ``tol``; judge rows of the matrix."""
        judged = np.empty(0, np.int64) if judged is None else judged
        count, loss = len(costs), self.loss
        path = Path(
            np.zeros((count, len(self.place))),
            np.zeros((count, len(judged))),
            np.zeros(count),
            np.zeros(count),
            np.zeros(count, np.int64),
        )
        runs, test_runs = _runs(self.place), _runs(judged)
        scratch = loops.cost_path.Scratch.of(*room, len(self.x))
        self._score(K, runs)
        for k, cost in enumerate(costs.tolist()):
            variables = loops.cost_path.MatrixVariables(
                loss.target, cost * loss.low, cost * loss.high, self.at, self.x, self.f
            )
            if k > 0:
                loops.cost_path.along(variables, cost / costs[k - 1])
            progress = np.array([0.0, 0.0, np.inf, -np.inf])
            again = True
            while again:
                path.gaps[k], path.intercepts[k], again = loops.cost_path.solve(
                    K, runs, self.place, variables, self.free, tol, rounds, progress, scratch
                )
                if again:
                    self._step(K, runs, variables.low, variables.high)
            path.intercepts[k] = self._intercept(cost, path.intercepts[k])
            path.rounds[k] = progress[0]
            path.coefficients[k] = self._by_row()
            path.scores[k] = path.intercepts[k]
            _add_rows(K, test_runs, self.place, path.coefficients[k], path.scores[k])
        return path

    def _step(self, K: FloatArray, runs: Ints, low: Floats, high: Floats) -> None:
        """Let the free variables go to where their equations say."""
        index = np.flatnonzero((self.x > low) & (self.x < high))
        rows = self.place[self.at[index]]
        x, low, high = self.x[index], low[index], high[index]
        r = self.loss.target[index] - self.f[self.at[index]]
        block = K[np.ix_(rows, rows)].astype(np.float64, copy=False)
        step = active_set_step(block, r, x - low, high - x, self.free)
        if step is not None:
            to = np.where(step == high - x, high, np.where(step == low - x, low, x + step))
            self.x[index] = to
            loops.cost_path.add_rows(K, runs, rows, step, self.f)

    def _intercept(self, cost: float, near: float) -> float:
        """Return the best intercept, the one that an estimator has: the middle of several."""
        if not self.free:
            return 0.0
        target, low, high, shift, slope = self.loss
        loss = Loss(target, cost * low, cost * high, shift, slope)
        return best_intercept(loss, self.f[self.at], near)

    def _by_row(self) -> Floats:
        return np.bincount(self.at, self.x, minlength=len(self.place)).astype(np.float64)

    def _score(self, K: FloatArray, runs: Ints) -> None:
        """Set the scores that belong to x."""
        self.f[:] = 0.0
        _add_rows(K, runs, self.place, self._by_row(), self.f)


def _add_rows(K: FloatArray, runs: Ints, place: Ints, coefficients: Floats, f: Floats) -> None:
    used = np.flatnonzero(coefficients)
    loops.cost_path.add_rows(K, runs, place[used], coefficients[used], f)


def _balanced(loss: Loss, low: Floats, high: Floats, x: Floats, f: Floats) -> Floats:
    """Return x with a sum of 0: those move first that gain most by it, or lose least."""
    total = float(x.sum())
    sign = 1.0 if total > 0 else -1.0
    order = np.argsort(sign * (loss.target - f), kind="stable")
    room = (x - low if sign > 0 else high - x)[order]
    before = np.cumsum(room) - room
    out = x.copy()
    out[order] -= sign * np.clip(abs(total) - before, 0.0, room)
    return out


def _runs(place: Ints) -> Ints:
    """Return ascending places as runs: (begin, end, first place)."""
    if not len(place):
        return np.empty((0, 3), np.int64)
    cuts = np.flatnonzero(np.diff(place) != 1) + 1
    begin, end = np.append(0, cuts), np.append(cuts, len(place))
    return np.stack([begin, end, place[begin]], axis=1)
