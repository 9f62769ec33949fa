"""Block-coordinate Frank–Wolfe with working sets, for structured machines.

    max  Σ αᵢ(y) loss(yᵢ, y) − ½‖w‖²,    αᵢ(y) ≥ 0,  Σᵧ αᵢ(y) = Cᵢ,  w = Σ αᵢ(y) ψ-difference

A round decodes every example at one fixed w, which gives both bounds, and adds the outputs found to
the examples' working sets. Sweeps then move the duals of one example after the other between the
outputs of its set, by pairwise steps with exact line search, which needs no decoder: they go on
until what is to gain within the sets is small beside what the decoder found. Every few sweeps, a
step along what they did together saves many of them. Where sweeps zigzag, as they do if columns
differ in scale, and the sets are small, an interior-point method takes their place.

The first rounds have few examples: outputs found at w = 0 say little, those found at a w learned
from some of the examples say much.

Lacoste-Julien, Jaggi, Schmidt, Pletscher (ICML 2013); caching and pairwise steps: Osokin,
Alayrac, Lukasewitz, Dokania, Lacoste-Julien (ICML 2016).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.problems.problem import Iterate, Point, relative_gap
from maxmargin.structured.model import Cuts, joined_cuts
from maxmargin.structured.problem import OutputDuals, StructuredProblem

_INSIDE = 60  # interior-point steps at most
_RIDGE = 1e-13  # of the diagonal: where differences are dependent
_NOISE = 1e-13  # of the terms of a sum: what is below may be rounding


@dataclass(frozen=True)
class FrankWolfe:
    """Settings of the method."""

    seed: int = 0
    first: int = 200  # examples of the first rounds
    growth: int = 4  # times as many in those after them
    rough: float = 0.1  # relative gap at which more examples are taken
    rounds: int = 8  # after which they are taken anyway
    inner: float = 0.2  # of the gap that the decoder found: where sweeps end
    sweeps: int = 200  # at most, between two passes of the decoder
    run: int = 2  # sweeps between two extrapolations
    steps: int = 4  # pairwise steps at an example, for each output of its set
    inside: int = 10**8  # outputs times weights², up to which interior points replace zigzag
    idle: int = 5  # rounds without a dual after which an output is forgotten
    entries: int = 1 << 23  # of differences visited by one compiled call, at most
    group: int = 1 << 12  # examples decoded between two iterates

    def iterates(self, problem: StructuredProblem, start: Point) -> Iterator[Iterate]:
        """Yield ever better iterates; before all examples were decoded once, P is infinite."""
        rng = np.random.default_rng(self.seed)
        sets = WorkingSets(problem, start)
        order, count, made = rng.permutation(len(problem)), self.first, 0
        best: Iterate | None = None
        while best is None or not best.converged:
            rows = np.sort(order[:count])
            w, found = sets.point(), []
            for begin in range(0, len(rows), self.group):
                found.append(problem.examples.decode(rows[begin : begin + self.group], w))
                yield (best or sets.unknown()).unfinished()
            primal, dual, added = sets.take_in(rows, joined_cuts(found), w, self.idle)
            if len(rows) == len(problem):
                reached = Iterate(primal, dual, w, 0.0, sets.duals())
                best = reached if best is None else best.improved(reached)
                done = not added and best.relative_gap <= _NOISE
                best = replace(best, converged=done)
                yield best
            elif relative_gap(primal, dual) <= self.rough or made == self.rounds:
                count, made = count * self.growth, 0
            made += 1
            if sets.zigzags and len(sets.alpha) * problem.size**2 <= self.inside:
                sets.solve_inside()
                continue
            for _ in self._sweeps(sets, rows, primal - dual, rng):
                yield (best or sets.unknown()).unfinished()

    def _sweeps(
        self, sets: "WorkingSets", rows: Ints, gap: float, rng: np.random.Generator
    ) -> Iterator[None]:
        """Move duals within the working sets until little is to gain there."""
        for made in range(self.sweeps):
            if made % self.run == 0:
                sets.extrapolate()
            order = rng.permutation(rows)
            pieces = 1 + int(sets.matrix.nnz // self.entries)
            for some in np.array_split(order, pieces):
                sets.sweep(some, self.steps)
                yield
            if float(sets.gaps[rows].sum()) <= self.inner * gap:
                return
        sets.zigzags = True  # C is large, or columns differ in scale


class WorkingSets:
    """The outputs kept for each example, the true one first, with their duals.

    Outputs of an example are next to each other: example i has those from begin[i] on.
    """

    def __init__(self, problem: StructuredProblem, start: Point) -> None:
        n = len(problem)
        self.problem = problem
        self.rows, self.begin = np.arange(n), np.arange(n + 1)
        self.outputs: list[Any] = [None] * n  # the true ones, which nobody asks for
        self.loss, self.alpha = np.zeros(n), problem.cost.copy()
        self.idle = np.zeros(n, np.int64)
        self.matrix = sp.csr_matrix((n, problem.size))
        self.square, self.products = np.arange(n), np.zeros(n)
        self.gaps, self.zigzags = np.zeros(n), False
        self._inside: Floats | None = None
        self._mark: tuple[Floats, Floats] | None = None
        self._dense = np.zeros(problem.size)
        if start.beta is not None and len(start.beta):
            self._adopt(start.beta)

    def _adopt(self, duals: OutputDuals) -> None:
        """Start from given duals, which are feasible."""
        cuts = self.problem.examples.cuts(duals.rows, duals.outputs)
        self._merge(duals.rows, cuts, duals.alpha, np.ones(len(self.rows), bool))
        truths = self.begin[:-1]
        given = np.bincount(duals.rows, duals.alpha, minlength=len(truths))
        self.alpha[truths] = np.maximum(self.problem.cost - given, 0.0)

    def weights(self) -> Floats:
        """Return w = Σ α·difference."""
        return np.asarray(self.matrix.T @ self.alpha)

    def point(self) -> Floats:
        """Return where to decode: w, which interior-point steps know better than sums of duals."""
        return self.weights() if self._inside is None else self._inside

    def duals(self) -> OutputDuals:
        """Return the outputs and their duals, without those of true outputs."""
        others = np.ones(len(self.rows), bool)
        others[self.begin[:-1]] = False
        kept = np.flatnonzero(others & (self.alpha > 0))
        return OutputDuals(self.rows[kept], [self.outputs[k] for k in kept], self.alpha[kept])

    def unknown(self) -> Iterate:
        """Return where this is before P is known."""
        w = self.weights()
        dual = float(self.alpha @ self.loss - 0.5 * w @ w)
        return Iterate(np.inf, dual, w, 0.0, self.duals())

    def take_in(self, rows: Ints, found: Cuts, w: Floats, idle: int) -> tuple[float, float, int]:
        """Add outputs that violate more than those known; return P of the examples, D, how many.

        Outputs that had no dual for so many rounds are forgotten.
        """
        h = self.loss - self.matrix @ w
        top = np.maximum.reduceat(h, self.begin[:-1])[rows]
        violation = found.violations(w)
        own = self.weights()
        primal = 0.5 * float(w @ w) + float(self.problem.cost[rows] @ np.maximum(violation, top))
        dual = float(self.alpha @ self.loss) - 0.5 * float(own @ own)
        noise = _NOISE * (found.loss + abs(found.matrix(len(w))) @ np.abs(w))
        new = np.flatnonzero(violation > top + noise)
        self.idle = np.where(self.alpha > 0, 0, self.idle + 1)
        kept = self.idle <= idle
        kept[self.begin[:-1]] = True
        self._merge(rows[new], _chosen(found, new), np.zeros(len(new)), kept)
        return primal, dual, len(new)

    def _merge(self, rows: Ints, cuts: Cuts, alpha: Floats, kept: Any) -> None:
        """Keep some of the outputs, and add others."""
        old = np.flatnonzero(kept)
        owner = np.concatenate([self.rows[old], rows])
        order = np.argsort(owner, kind="stable")
        place = old - self.begin[self.rows[old]]  # of the old ones, in the sets so far
        source = np.concatenate([place, np.full(len(rows), -1)])[order]
        width, square, products = np.diff(self.begin), self.square, self.products
        self.matrix = sp.vstack(
            [self.matrix[old], cuts.matrix(self.matrix.shape[1])], format="csr"
        )[order]
        outputs = [*(self.outputs[k] for k in old), *cuts.outputs]
        self.outputs = [outputs[k] for k in order]
        self.rows = owner[order]
        self.loss = np.concatenate([self.loss[old], cuts.loss])[order]
        self.alpha = np.concatenate([self.alpha[old], alpha])[order]
        self.idle = np.concatenate([self.idle[old], np.zeros(len(rows), np.int64)])[order]
        counts = np.bincount(self.rows, minlength=len(width))
        self.begin = np.concatenate([[0], np.cumsum(counts)])
        ends = np.cumsum(counts**2)
        self.square, self.products = ends - counts**2, np.empty(int(ends[-1]))
        self._indptr = self.matrix.indptr.astype(np.int64)
        loops.frank_wolfe.fill_products(
            self.begin, self._indptr, self.matrix.indices, self.matrix.data, self.square,
            self.products, source, square, width, products, self._dense,
        )  # fmt: skip
        self._widest = int(counts.max())
        self._w = self.weights()
        self._mark = None

    def extrapolate(self) -> None:
        """Go on in the direction that duals went since the last call, if that gains anything.

        Sweeps zigzag where C is large: a step along what several of them did together, as long as
        is best before duals are made feasible again, saves most of them.
        """
        w, alpha = self._w, self.alpha
        if self._mark is not None:
            away, change = w - self._mark[1], alpha - self._mark[0]
            rise, bend = float(change @ self.loss - w @ away), float(away @ away)
            if rise > 0 and bend > 0:
                moved, there = self._feasible(np.maximum(alpha + (rise / bend) * change, 0.0))
                gain = (moved - alpha) @ self.loss - 0.5 * (there - w) @ (there + w)
                if gain > 0:
                    self.alpha, self._w = moved, there
        self._mark = self.alpha.copy(), self._w.copy()

    def sums(self, values: Floats) -> Floats:
        """Return the sum over the outputs of each example."""
        return np.asarray(np.add.reduceat(values, self.begin[:-1]))

    def _feasible(self, alpha: Floats) -> tuple[Floats, Floats]:
        """Return duals scaled to the sums they must have, and their weights."""
        sums = self.sums(alpha)
        alpha = alpha * (self.problem.cost / np.where(sums > 0, sums, 1.0))[self.rows]
        return alpha, np.asarray(self.matrix.T @ alpha)

    def solve_inside(self) -> None:
        """Solve for the weights and all duals by an interior-point method."""
        alpha, self._inside = _follow_inside(self, self.matrix.toarray())
        self.alpha, self._w = self._feasible(alpha)

    def sweep(self, order: Ints, steps: int) -> None:
        """Visit examples in this order."""
        h, before = np.empty((2, self._widest))
        loops.frank_wolfe.sweep(
            order, self.begin, self._indptr, self.matrix.indices, self.matrix.data, self.loss,
            self.alpha, self.square, self.products, self._w, h, before, steps * self._widest,
            self.gaps,
        )  # fmt: skip


# ------------------------------------------------------------------- interior points
#
# With z = ξ − H ≥ 0 the slack of outputs, w = Σ α·difference, Σα = C and αz = μ are followed to
# μ = 0 (Mehrotra's predictor and corrector). No scale of columns slows this down: its equations are
# those of the weights, whose Cholesky factor does not depend on the units of columns.


class _Inner(NamedTuple):
    """Where the method stands."""

    w: Floats
    xi: Floats
    alpha: Floats
    z: Floats


def _follow_inside(o: WorkingSets, M: Floats) -> tuple[Floats, Floats]:
    """Return duals, whose sums are right but for rounding, and the best weights for outputs."""
    xi = np.full(len(o.problem), 1.0 + float(o.loss.max(initial=0.0)))
    alpha = (o.problem.cost / o.sums(np.ones(len(o.rows))))[o.rows]
    at = _Inner(np.zeros(M.shape[1]), xi, alpha, xi[o.rows] - o.loss)
    for _ in range(_INSIDE):
        total = float(at.alpha @ at.z)
        try:
            factor = _factor_inside(o, M, at)
        except (LinAlgError, ValueError):  # numbers that are not finite
            break
        ahead = _step_inside(o, M, at, factor, 0.0)
        alpha = at.alpha + _room(at.alpha, ahead.alpha) * ahead.alpha
        left = float(alpha @ (at.z + _room(at.z, ahead.z) * ahead.z)) / total
        aim = left**3 * total / len(at.z) - ahead.alpha * ahead.z
        step = _step_inside(o, M, at, factor, aim)
        far = 0.99 * min(_room(at.alpha, step.alpha), _room(at.z, step.z))  # nothing below 0
        at = _Inner(*(x + far * dx for x, dx in zip(at, step, strict=True)))
        if total <= _NOISE * abs(float(at.alpha @ o.loss)):
            break
    return at.alpha, at.w


def _factor_inside(o: WorkingSets, M: Floats, at: _Inner) -> tuple[Any, Floats]:
    """Return the factor of the equations of the weights, and the units that they are in."""
    h = (at.alpha / at.z)[:, np.newaxis]
    means = o.sums(h * M) / o.sums(h)
    centred = np.sqrt(h) * (M - means[o.rows])
    normal = centred.T @ centred
    unit = 1.0 / np.sqrt(1.0 + normal.diagonal())
    normal *= unit[:, np.newaxis] * unit
    normal[np.diag_indices(len(unit))] += unit * unit + _RIDGE  # weights may depend on others
    return cho_factor(normal), unit


def _step_inside(
    o: WorkingSets, M: Floats, at: _Inner, factor: tuple[Any, Floats], aim: Any
) -> _Inner:
    """Return the Newton step to where all αz are ``aim``."""
    (w, xi, alpha, z), (cholesky, unit) = at, factor
    h, off = alpha / z, xi[o.rows] - o.loss + M @ w - z
    lacking, weight = o.problem.cost - o.sums(alpha), o.sums(h)
    q = aim / z - alpha - h * off
    right = M.T @ (alpha + q - h * ((o.sums(q) - lacking) / weight)[o.rows]) - w
    dw = unit * cho_solve(cholesky, unit * right, check_finite=False)
    dxi = (o.sums(q - h * (M @ dw)) - lacking) / weight
    rise = dxi[o.rows] + M @ dw
    return _Inner(dw, dxi, q - h * rise, rise + off)


def _room(x: Floats, step: Floats) -> float:
    """Return the part of a step, at most all, that takes no x below 0."""
    falls = step < 0
    return float(np.min(-x[falls] / step[falls], initial=1.0))


def _chosen(cuts: Cuts, which: Ints) -> Cuts:
    matrix = cuts.matrix(int(cuts.indices.max(initial=0)) + 1)[which]
    outputs = [cuts.outputs[k] for k in which]
    indptr = matrix.indptr.astype(np.int64)
    return Cuts(outputs, cuts.loss[which], indptr, matrix.indices, matrix.data)
