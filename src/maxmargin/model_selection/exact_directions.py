"""Where duals go as C grows: the small problem at each breakpoint of an exact path.

    min_d  ½dᵀQd    s.t.  d = c inside, d = 0 beyond, Σdy = 0 with a free intercept,
                          d ≥ 0 for rows just at 0,  d ≤ c for rows just at their bound

Its optimality conditions say which of the tight rows stay on the margin: with b′ the multiplier of
Σdy = 0, and f′ = K(dy) + b′, rows on the margin have y f′ = 0, rows held at 0 have y f′ ≥ 0, rows
held at their bound y f′ ≤ 0. As the equations of dependent rows have many solutions, the smallest
is taken; f′ is the same for all.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.int64]

BEYOND, ON_MARGIN, INSIDE = 0, 1, 2

_NEAR = 1e-9
_SINGULAR = 1e-10  # ratio of pivots
_RESIDUAL = 1e-10  # of a linear system, up to which its solution is taken
_RANK = 1e-12  # of the largest singular value, below which one counts as 0
_ROUNDS = 8  # in which all rows that are wrong change; then one at a time
_SINGLE = 40  # times the number of tight rows


class Tight(NamedTuple):
    """Rows just at 0, and rows just at their upper bound."""

    zero: Flags
    upper: Flags


class Direction(NamedTuple):
    """dα/dC, db/dC, and the kind that each row has from here on."""

    slope: Floats
    b_slope: float
    kinds: Kinds


@dataclass(frozen=True)
class Machine:
    """Kernel values, labels, weights, and whether there is a free intercept."""

    K: Floats
    y: Floats
    c: Floats
    free: bool

    @property
    def scale(self) -> float:
        """The size of kernel values."""
        return float(np.abs(self.K.diagonal()).max(initial=0.0)) or 1.0

    def solved(self, on: Flags, scores: Floats, total: float) -> tuple[Floats, float]:
        """Return a and b with K(ay) + b = scores and Σay = total on some rows: the smallest such.

        The scores are of rows, not times their labels.
        """
        rows = np.flatnonzero(on)
        n, y, size = len(rows), self.y[rows], self.scale
        system = np.zeros((n + self.free, n + self.free))
        system[:n, :n] = self.K[np.ix_(rows, rows)] / size
        right = np.zeros(n + self.free)
        right[:n] = scores / size
        if self.free:
            system[n, :n] = system[:n, n] = 1.0
            right[n] = total
        x = _solution(system, right)
        return y * x[:n], float(size * x[n]) if self.free else 0.0


def _solution(system: Floats, right: Floats) -> Floats:
    """Return the solution, the smallest one where there are many."""
    factor, order, failed = scipy.linalg.lapack.dgetrf(system)
    pivots = np.abs(factor.diagonal())
    if not failed and pivots.min() > _SINGULAR * pivots.max():
        x = scipy.linalg.lapack.dgetrs(factor, order, right)[0]
        x += scipy.linalg.lapack.dgetrs(factor, order, right - system @ x)[0]
        if float(np.abs(right - system @ x).max()) <= _RESIDUAL * float(np.abs(right).max()):
            return np.asarray(x)
    x = scipy.linalg.lstsq(system, right, cond=_RANK, check_finite=False)[0]
    x += scipy.linalg.lstsq(system, right - system @ x, cond=_RANK, check_finite=False)[0]
    return np.asarray(x)


def direction(m: Machine, kinds: Kinds, tight: Tight, *, box: bool = False) -> Direction | None:
    """Return the direction from a breakpoint, or None if none was found.

    Parameters
    ----------
    m : Machine
        The problem.
    kinds : ndarray
        The kind of each row; of tight rows a first guess.
    tight : Tight
        The rows that may be of two kinds.
    box : bool
        At C = 0 tight rows have both limits, 0 ≤ d ≤ c.
    """
    kinds = kinds.copy()
    either = np.flatnonzero(tight.zero | tight.upper)
    seen: set[bytes] = set()
    for turn in range(_ROUNDS + _SINGLE * max(1, len(either))):
        slope, b_slope, residual = _slopes(m, kinds, tight)
        wrong = _wrong(m, kinds, tight, slope, b_slope, box) if residual else either
        if not len(wrong):
            return Direction(slope, b_slope, kinds) if residual else None
        mark = kinds.tobytes()
        single = turn >= _ROUNDS or mark in seen
        if single and mark in seen and turn > _ROUNDS + 4 * len(either) + 4:
            return None
        seen.add(mark)
        for i in wrong[-1:] if single else wrong:
            kinds[i] = _other(int(kinds[i]), bool(tight.upper[i]), float(slope[i]), float(m.c[i]))
    return None


def _other(kind: int, upper: bool, slope: float, bound: float) -> int:
    """Return what a row is to be that cannot be of this kind."""
    if kind != ON_MARGIN:
        return ON_MARGIN
    if slope > bound:
        return INSIDE
    return BEYOND if slope < 0 else (INSIDE if upper else BEYOND)


def _slopes(m: Machine, kinds: Kinds, tight: Tight) -> tuple[Floats, float, bool]:
    """Return d and b′ for these kinds, and whether the equations have a solution."""
    on = kinds == ON_MARGIN
    slope = np.where(kinds == INSIDE, m.c, 0.0)
    pull = m.K @ (m.y * slope)
    total = float(m.y @ slope)
    if on.any():
        slope[on], b_slope = m.solved(on, -pull[on], -total)
        left = (m.K @ (m.y * slope) + b_slope)[on]
        size = m.scale * float(np.abs(slope).sum()) + 1e-300
        good = float(np.abs(left).max()) <= 1e-7 * size
        balanced = not m.free or abs(float(m.y @ slope)) <= 1e-7 * float(np.abs(slope).sum())
        return slope, b_slope, good and balanced
    if not m.free:
        return slope, 0.0, True
    # No row settles b′: any will do that keeps the tight rows where they are.
    held_low = (tight.zero & (kinds == BEYOND)) | (tight.upper & (kinds == INSIDE))
    up = held_low & ((m.y > 0) == (kinds == BEYOND))  # these need f′ ≥ 0
    down = held_low & ~up
    low, high = (-pull[up]).max(initial=-np.inf), (-pull[down]).min(initial=np.inf)
    ends = [end for end in (low, high) if np.isfinite(end)]
    b_slope = float(np.mean(ends)) if ends else 0.0
    return slope, b_slope, abs(total) <= 1e-9 * float(m.c.sum())


def _wrong(
    m: Machine, kinds: Kinds, tight: Tight, slope: Floats, b_slope: float, box: bool
) -> npt.NDArray[np.int64]:
    """Return the tight rows whose kind breaks a condition."""
    gain = m.y * (m.K @ (m.y * slope) + b_slope)
    still = _NEAR * m.scale * float(np.abs(slope).sum())
    small = _NEAR * m.c
    on = kinds == ON_MARGIN
    below, above = on & (slope < -small), on & (slope > m.c + small)
    either = tight.zero | tight.upper
    bad = ((tight.zero | box) & either & below) | ((tight.upper | box) & either & above)
    bad |= either & (kinds == BEYOND) & (gain < -still)
    bad |= either & (kinds == INSIDE) & (gain > still)
    return np.flatnonzero(bad)
