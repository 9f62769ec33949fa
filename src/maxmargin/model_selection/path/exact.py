"""The entire path of a two-class machine with hinge loss: its duals, piecewise linear in C.

    min_α  ½αᵀQα − Σα    s.t.  0 ≤ α ≤ C c,  Σαy = 0 with a free intercept,    Qᵢⱼ = yᵢyⱼKᵢⱼ

Rows inside the margin have α = C c, rows beyond it α = 0, and for rows on it y f = 1 is a linear
equation. So α, b and f are linear in C until a row changes its kind. Hastie, Rosset, Tibshirani &
Zhu (2004), "The entire regularization path for the support vector machine", JMLR 5.

Where several rows change at once, or rows depend on each other, the direction d = dα/dC is what
solves

    min_d  ½dᵀQd    s.t.  d = c inside, d = 0 beyond, Σdy = 0 with a free intercept,
                          d ≥ 0 for rows just at 0,  d ≤ c for rows just at their bound.

Its optimality conditions say which of these tight rows stay on the margin: with b′ the multiplier
of Σdy = 0, and f′ = K(dy) + b′, rows on the margin have y f′ = 0, rows held at 0 have y f′ ≥ 0, and
rows held at their bound have y f′ ≤ 0. As the equations of dependent rows have many solutions, the
smallest is taken; f′ is the same for all. Every breakpoint is checked; a path that cannot be
continued says why.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from maxmargin import loops
from maxmargin._typing import Flags, Floats
from maxmargin.certificates import certify
from maxmargin.model_selection.path.ends import Hinge, read_hinge
from maxmargin.model_selection.path.follow import Step
from maxmargin.problems.problem import Status
from maxmargin.runtime.threads import one_blas_thread
from maxmargin.solve import Result

Kinds = npt.NDArray[np.int64]

BEYOND, ON_MARGIN, INSIDE = 0, 1, 2

_NO_SLOPE = 1e-9
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
    """dα/dC and db/dC."""

    slope: Floats
    b_slope: float


@dataclass(frozen=True)
class PathEquations:
    """Kernel values, labels, weights, and whether there is a free intercept."""

    K: Floats
    y: Floats
    c: Floats
    free: bool

    @property
    def scale(self) -> float:
        """The size of kernel values."""
        return float(np.abs(self.K.diagonal()).max(initial=0.0)) or 1.0

    def solve(self, on: Flags, scores: Floats, total: float) -> tuple[Floats, float]:
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
        x = _solve_system(system, right)
        return y * x[:n], float(size * x[n]) if self.free else 0.0


def _solve_system(system: Floats, right: Floats) -> Floats:
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


def _find_direction(
    m: PathEquations, kinds: Kinds, tight: Tight, box: bool
) -> tuple[Direction | None, Kinds]:
    """Return the direction from a breakpoint, if one was found, and the kinds of rows on it.

    The kinds of tight rows, which may be of two kinds, are a first guess. With ``box``, as at
    C = 0, tight rows have both limits, 0 ≤ d ≤ c.
    """
    kinds = kinds.copy()
    either = np.flatnonzero(tight.zero | tight.upper)
    seen: set[bytes] = set()
    for turn in range(_ROUNDS + _SINGLE * max(1, len(either))):
        slope, b_slope, solved = _solve_slopes(m, kinds, tight)
        wrong = _find_wrong(m, kinds, tight, slope, b_slope, box) if solved else either
        if not len(wrong):
            return (Direction(slope, b_slope) if solved else None), kinds
        mark = kinds.tobytes()
        single = turn >= _ROUNDS or mark in seen
        if single and mark in seen and turn > _ROUNDS + 4 * len(either) + 4:
            break
        seen.add(mark)
        for i in wrong[-1:] if single else wrong:
            if kinds[i] != ON_MARGIN:
                kinds[i] = ON_MARGIN
            else:
                above = slope[i] > m.c[i] or (slope[i] >= 0 and tight.upper[i])
                kinds[i] = INSIDE if above else BEYOND
    return None, kinds


def _solve_slopes(m: PathEquations, kinds: Kinds, tight: Tight) -> tuple[Floats, float, bool]:
    """Return d and b′ for these kinds, and whether the equations have a solution."""
    on = kinds == ON_MARGIN
    slope = np.where(kinds == INSIDE, m.c, 0.0)
    pull = m.K @ (m.y * slope)
    total = float(m.y @ slope)
    if on.any():
        slope[on], b_slope = m.solve(on, -pull[on], -total)
        left = (m.K @ (m.y * slope) + b_slope)[on]
        size = m.scale * float(np.abs(slope).sum()) + 1e-300
        good = float(np.abs(left).max()) <= 1e-7 * size
        balanced = not m.free or abs(float(m.y @ slope)) <= 1e-7 * float(np.abs(slope).sum())
        return slope, b_slope, good and balanced
    if not m.free:
        return slope, 0.0, True
    # No row determines b′: any will do that keeps the tight rows where they are.
    held_low = (tight.zero & (kinds == BEYOND)) | (tight.upper & (kinds == INSIDE))
    up = held_low & ((m.y > 0) == (kinds == BEYOND))  # these need f′ ≥ 0
    down = held_low & ~up
    low, high = (-pull[up]).max(initial=-np.inf), (-pull[down]).min(initial=np.inf)
    ends = [end for end in (low, high) if np.isfinite(end)]
    b_slope = float(np.mean(ends)) if ends else 0.0
    return slope, b_slope, abs(total) <= 1e-9 * float(m.c.sum())


def _find_wrong(
    m: PathEquations, kinds: Kinds, tight: Tight, slope: Floats, b_slope: float, box: bool
) -> npt.NDArray[np.int64]:
    """Return the tight rows whose kind breaks a condition."""
    gain = m.y * (m.K @ (m.y * slope) + b_slope)
    still = _NO_SLOPE * m.scale * float(np.abs(slope).sum())
    small = _NO_SLOPE * m.c
    on = kinds == ON_MARGIN
    below, above = on & (slope < -small), on & (slope > m.c + small)
    either = tight.zero | tight.upper
    bad = ((tight.zero | box) & either & below) | ((tight.upper | box) & either & above)
    bad |= either & (kinds == BEYOND) & (gain < -still)
    bad |= either & (kinds == INSIDE) & (gain > still)
    return np.flatnonzero(bad)


# ------------------------------------------------------------------- from breakpoint to breakpoint


_NEAR = 1e-10  # of the size of scores and of C c: nearer than this is there
_WRONG = 1e-8  # a relative duality gap that ends the path
_EVENTS = 30  # for each row, at most
_BETWEEN = 1e-7  # of its bound: a dual of the first guess this far from its limits is free
_START_STEPS = 400_000
_ON_LAST = 1e-9  # of the last C: a breakpoint no further beyond it is on it, but for rounding
_FAR = 100.0  # times the last breakpoint, where the segment without an end is checked
_ROUNDING = "rounding hides which row comes next"


class Segment(NamedTuple):
    """A range of C in which α and b are linear: α + (C − start)·slope, likewise b."""

    start: float
    alpha: Floats
    slope: Floats
    b: float
    b_slope: float


class ExactPath(NamedTuple):
    """The path from C = 0 to ``end``, by its segments; ``reason`` says why it ends there."""

    segments: tuple[Segment, ...]
    end: float
    reason: str
    hard: bool  # on the last segment no row is inside the margin: soft is hard

    @property
    def breakpoints(self) -> Floats:
        """Where segments meet."""
        return np.array([segment.start for segment in self.segments[1:]])

    def at(self, C: float) -> tuple[Floats, float]:
        """Return the duals ≥ 0 and an intercept at a C on the path."""
        segment = self.segments[int(np.searchsorted(self.breakpoints, C, side="right"))]
        step = C - segment.start
        alpha = np.maximum(segment.alpha + step * segment.slope, 0.0)
        return alpha, segment.b + step * segment.b_slope


def exact_path(K: Floats, signs: Floats, weight: Floats, free: bool, last: float) -> ExactPath:
    """Return the path of a machine up to C = last, which may be infinite.

    It is given by its kernel values, labels ±1, factors of C > 0, and whether there is a free
    intercept.
    """
    with one_blas_thread():  # the systems are small: threads would wait for each other
        return _Follower(PathEquations(K, signs, weight, free)).follow(last)


class _Follower:
    """How far the path was followed: C, duals, intercept, and the kind of each row."""

    def __init__(self, machine: PathEquations) -> None:
        self.m = machine
        n = len(machine.y)
        self.C, self.alpha, self.b = 0.0, np.zeros(n), 0.0
        self.kinds: Kinds = np.full(n, INSIDE)
        self.hit = np.zeros(n, dtype=bool)  # which rows a segment ends for
        self.segments: list[Segment] = []

    def follow(self, last: float) -> ExactPath:
        """Return the path up to C = last."""
        direction = self._begin()
        for _ in range(_EVENTS * len(self.alpha) + 100):
            if direction is None:
                return self._end(self.C, "a direction that keeps all conditions was not found")
            slope, b_slope = direction
            step = self._largest_step(slope, b_slope)
            self.segments.append(Segment(self.C, self.alpha, slope, self.b, b_slope))
            if self.C + step >= last * (1 + _ON_LAST):
                return self._end_on_last(last, step == np.inf)
            self._go(step, slope, b_slope)
            if self._violation() > _WRONG:
                return self._end(self.segments[-1].start, _ROUNDING, drop=True)
            direction = self._turn()
            if self._violation() > _WRONG:
                return self._end(self.C, _ROUNDING)
        return self._end(self.C, "there are too many breakpoints")

    def _end_on_last(self, last: float, open_ended: bool) -> ExactPath:
        """End on the segment that leads to the last C, once it is seen to hold far out."""
        far = _FAR * max(self.C, 1.0) if last == np.inf else last
        before = self.C, self.alpha, self.b
        self._go(far - self.C, self.segments[-1].slope, self.segments[-1].b_slope)
        wrong = self._violation() > _WRONG
        self.C, self.alpha, self.b = before
        if wrong:
            return self._end(self.C, _ROUNDING, drop=True)
        return self._end(
            last, "no breakpoint is left" if open_ended else "no larger C was asked for"
        )

    def _end(self, end: float, reason: str, drop: bool = False) -> ExactPath:
        segments = self.segments[:-1] if drop else self.segments
        return ExactPath(tuple(segments), end, reason, not (self.kinds == INSIDE).any())

    # ------------------------------------------------------------ the small end

    def _begin(self) -> Direction | None:
        """Return the direction at C = 0: every dual of the lighter class grows with its bound."""
        m = self.m
        excess = float(m.c @ m.y)
        if not m.free or abs(excess) <= 1e-12 * float(m.c.sum()):
            return self._move_intercept(Direction(m.c.copy(), 0.0))
        heavier = np.sign(excess)
        self.b = float(heavier)
        some = np.flatnonzero(m.y == heavier)
        d = m.c.copy()
        d[some] = _nearest(m, some)
        middle = (d > _BETWEEN * m.c) & (d < (1 - _BETWEEN) * m.c)
        kinds = np.where(middle, ON_MARGIN, np.where(d > 0.5 * m.c, INSIDE, BEYOND))
        self.kinds[some] = kinds[some]
        either = m.y == heavier
        return self._choose_direction(Tight(either, either), box=True)

    # ------------------------------------------------------------ one segment

    def _largest_step(self, slope: Floats, b_slope: float) -> float:
        """Return how far C may grow before a row changes its kind."""
        m, kinds = self.m, self.kinds
        gain = m.y * (m.K @ (m.y * slope) + b_slope)  # of y f
        still = _NEAR * m.scale * float(np.abs(slope).sum())
        gap = 1 - m.y * self._scores()
        on, inside, beyond = kinds == ON_MARGIN, kinds == INSIDE, kinds == BEYOND
        relative = slope - m.c
        small = _NEAR * m.c
        steps = np.full((3, len(slope)), np.inf)
        np.divide(-self.alpha, slope, out=steps[0], where=on & (slope < -small))
        np.divide(self.C * m.c - self.alpha, relative, out=steps[1], where=on & (relative > small))
        leaves = (inside & (gain > still)) | (beyond & (gain < -still))
        np.divide(gap, gain, out=steps[2], where=leaves)
        if m.free and not on.any():
            return self._largest_step_off_margin()
        steps = np.maximum(steps, 0.0).min(axis=0)
        self.hit = steps <= (1 + _NEAR) * steps.min()
        return float(steps.min())

    def _largest_step_off_margin(self) -> float:
        """Return how far C may grow while some intercept suits all rows, none on the margin."""
        lower, upper, slopes = self._limits()
        i, j = np.flatnonzero(lower), np.flatnonzero(upper)
        apart = self.m.y - self.C * slopes  # where f = y
        rate = slopes[j][np.newaxis] - slopes[i][:, np.newaxis]
        gap = apart[j][np.newaxis] - apart[i][:, np.newaxis]
        closing = rate > _NEAR * self.m.scale * float(np.abs(slopes).max(initial=0.0))
        steps = np.full(rate.shape, np.inf)
        np.divide(np.maximum(gap, 0.0), rate, out=steps, where=closing)
        self.hit = np.zeros(len(slopes), dtype=bool)
        if steps.size:
            first = steps <= (1 + _NEAR) * steps.min()
            self.hit[i[first.any(axis=1)]] = self.hit[j[first.any(axis=0)]] = True
        return float(steps.min(initial=np.inf))

    def _limits(self) -> tuple[Flags, Flags, Floats]:
        """Return which rows bound b from below, which from above, and the slopes of their w·φ."""
        m = self.m
        inside = self.kinds == INSIDE
        lower = (m.y > 0) ^ inside
        return lower, ~lower, m.K @ (m.y * np.where(inside, m.c, 0.0))

    def _go(self, step: float, slope: Floats, b_slope: float) -> None:
        """Go to the next breakpoint, and solve the equations of the rows on the margin again."""
        m, on = self.m, self.kinds == ON_MARGIN
        self.C += step
        self.b += step * b_slope
        self.alpha = np.where(self.kinds == INSIDE, self.C * m.c, 0.0) + np.where(
            on, self.alpha + step * slope, 0.0
        )
        self._solve_margin()
        if m.free and not on.any():
            self.b = self._middle(self.C)

    def _solve_margin(self) -> None:
        """Solve y f = 1 for the duals of the rows on the margin, and for b."""
        m, on = self.m, self.kinds == ON_MARGIN
        if on.any():
            missing = (m.y - self._scores())[on]
            change, b_change = m.solve(on, missing, -float(m.y @ self.alpha))
            self.alpha[on] += change
            self.b += b_change

    def _turn(self) -> Direction | None:
        """Return the direction from a breakpoint on."""
        m, kinds = self.m, self.kinds
        near = _NEAR * (1 + m.scale * float(self.alpha.sum()))
        gap = 1 - m.y * self._scores()
        top = self.C * m.c
        on = kinds == ON_MARGIN
        low, hit = self.alpha < 0.5 * top, self.hit
        bound = hit | (np.minimum(self.alpha, top - self.alpha) <= _NEAR * top)
        at_zero = (on & low & bound) | ((kinds == BEYOND) & (hit | (gap >= -near)))
        at_upper = (on & ~low & bound) | ((kinds == INSIDE) & (hit | (gap <= near)))
        self.alpha = np.where(at_zero, 0.0, np.where(at_upper, top, self.alpha))
        left = (at_zero | at_upper) & on
        self.kinds = np.where(at_zero | at_upper, ON_MARGIN, kinds)
        # First guess: what came to the margin stays there, what came to a bound stays at it.
        self.kinds[left & at_zero], self.kinds[left & at_upper] = BEYOND, INSIDE
        direction = self._choose_direction(Tight(at_zero, at_upper))
        self._solve_margin()
        return direction

    def _choose_direction(self, tight: Tight, box: bool = False) -> Direction | None:
        found, kinds = _find_direction(self.m, self.kinds, tight, box)
        if found is None:
            return None
        self.kinds = kinds
        return self._move_intercept(found)

    def _move_intercept(self, found: Direction) -> Direction:
        """Return the direction; if no row determines b, one on which it suits all rows."""
        if not self.m.free or (self.kinds == ON_MARGIN).any():
            return found
        step = self._largest_step_off_margin()
        step = step if np.isfinite(step) else max(self.C, 1.0)
        self.b = self._middle(self.C)
        return Direction(found.slope, (self._middle(self.C + step) - self.b) / step)

    def _middle(self, C: float) -> float:
        """Return the middle of the intercepts that suit all rows at C, none on the margin."""
        lower, upper, slopes = self._limits()
        apart = self.m.y - C * slopes
        low, high = apart[lower].max(initial=-np.inf), apart[upper].min(initial=np.inf)
        ends = [end for end in (low, high) if np.isfinite(end)]
        return float(np.mean(ends))

    def _scores(self) -> Floats:
        return np.asarray(self.m.K @ (self.m.y * self.alpha) + self.b)

    def _violation(self) -> float:
        """Return the relative duality gap, or by how much the duals are not feasible if more."""
        m, top = self.m, self.C * self.m.c
        gap = 1 - m.y * self._scores()
        alpha = np.clip(self.alpha, 0.0, top)
        terms = top * np.maximum(gap, 0.0) - alpha * gap  # each is 0 at the optimum
        size = max(float(alpha.sum()) - 0.5 * float(alpha @ (1 - gap)), 1e-300)
        outside = float(np.maximum(-self.alpha, self.alpha - top).max())
        loose = abs(float(m.y @ self.alpha)) if m.free else 0.0
        return max(float(terms.sum()) / size, (outside + loose) / float(top.sum()))


def _nearest(m: PathEquations, some: npt.NDArray[np.int64]) -> Floats:
    """Return the weights ≤ c of the heavier class with a sum nearest to the lighter one's."""
    others = np.setdiff1d(np.arange(len(m.y)), some)
    K = np.ascontiguousarray(m.K[np.ix_(some, some)])
    x: Floats = m.c[some] * (m.c[others].sum() / m.c[some].sum())
    r = m.K[np.ix_(some, others)] @ m.c[others] - K @ x
    tol = 1e-11 * m.scale * float(m.c.sum())
    ends = np.array([len(some)])
    loops.smo.pairs(
        K, K.diagonal().copy(), r, x, np.zeros(len(x)), m.c[some].copy(), ends, tol, _START_STEPS
    )
    return x


# ------------------------------------------------------------------- its solutions, certified


_FEW_ROWS = 300  # up to which exact="auto" takes the exact path: about a second
_MOST_ROWS = 2000


class ExactSolutions(NamedTuple):
    """The exact path of a problem stated at C = 1, and its solution at any C on it."""

    problem: Any
    hinge: Hinge
    path: ExactPath

    def steps(self, Cs: Floats, tol: float) -> list[Step]:
        """Return the solutions at these Cs (ascending), up to the first that is not certified."""
        steps = []
        for C in Cs[self.path.end >= Cs].tolist():
            problem = self.problem.scaled(C)
            alpha, b = self.path.at(C)
            beta = self.hinge.signs * np.minimum(alpha, C * self.hinge.weight)
            point = problem.implied(beta, b)
            certificate = certify(problem, point)
            if not certificate.holds(tol):
                break
            result = Result(point, certificate, Status.OPTIMAL, 0, 0.0, "exact path")
            steps.append(Step(C, problem, result, problem.products(point.w)))
        return steps


def solve_exactly(
    problems: list[Any], exact: bool | str, last: float
) -> tuple[ExactSolutions | None, str]:
    """Return the exact path up to C = last if it is wanted, and why it ends or why there is none.

    ``exact`` is that of ``regularization_path``; True raises if there is no exact path.
    """
    if exact is False:
        return None, "not asked for"
    problem, hinge = problems[0], read_hinge(problems[0])
    refusal = _refuse(problems, hinge, _MOST_ROWS if exact is True else _FEW_ROWS)
    if refusal and exact is True:
        raise ValueError(f"exact=True is not possible: {refusal}. Use exact='auto'.")
    if hinge is None or refusal:
        return None, refusal
    K = problem.features.block(problem.row, problem.row)
    path = exact_path(0.5 * (K + K.T), *hinge, last)
    return (ExactSolutions(problem, hinge, path) if path.segments else None), path.reason


def _refuse(problems: list[Any], hinge: Hinge | None, most: int) -> str:
    """Return why there is no exact path for the problems, or nothing."""
    if len(problems) > 1:
        return f"it is for two classes, and these make {len(problems)} problems"
    if hinge is None:
        return "it is for the hinge loss with the penalty ½‖w‖² only"
    if len(hinge.signs) > most:
        return f"it is for at most {most} rows, and these are {len(hinge.signs)}"
    if (kernel := problems[0].features.kernel).psd is False:
        return f"{kernel!r} is not positive semidefinite"
    return ""
