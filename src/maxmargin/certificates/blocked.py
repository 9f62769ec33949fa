"""Certificates of linear machines whose rows live in blocks: on disk, or on a cluster.

What is concluded is the same as for rows in memory, by the same code (``quadratic``); here are the
sums it needs, as passes over blocks. One pass reads the rows, or two if they lie so far from 0 that
they must be measured from elsewhere. The others read numbers of rows alone: scores, duals, labels.
Sums of leaves are merged without rounding, but for what is bounded.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from maxmargin import loops
from maxmargin._typing import Flags, Floats, Ints
from maxmargin.certificates.certificate import Certificate
from maxmargin.certificates.quadratic import (
    LinearWeights,
    centre_of_some,
    certified,
    linear_weights,
    shifted,
    stride_of,
    with_constant,
)
from maxmargin.loops.records import Loss
from maxmargin.problems.blocked import BlockedProblem
from maxmargin.problems.duality import BALANCED, best_intercept, imbalance
from maxmargin.problems.problem import Intercept, Point
from maxmargin.problems.rounding import (
    EPS,
    SCORES,
    Bounded,
    Combination,
    Weighed,
    added,
    passed_over,
    squared_norm,
    sum_error,
    weigh,
)
from maxmargin.rows.blocks import Block, Blocks, join


def certify_blocked(
    problem: BlockedProblem, point: Point, *, keep_intercept: bool = False
) -> tuple[Certificate, Any]:
    """Return the certificate of a point, and the feasible duals that it is about.

    Afterwards the vector "score" of the blocks is w·x of each row, without any intercept.

    Parameters
    ----------
    problem : BlockedProblem
        What was solved.
    point : Point
        Weights and intercept, and duals as ``Blocks.vector`` returns them.
    keep_intercept : bool, default=False
        Take the primal at the point's own intercept, rather than at the best one.

    Returns
    -------
    Certificate, vector
        The duals are of the kind that was given: an array, or a handle.
    """
    blocks = problem.blocks
    sums, infeasibility = _make_feasible(problem, point.beta)
    evaluated = _evaluate(problem, point, sums)
    certificate = certified(evaluated, infeasibility, evaluated.off, keep_intercept=keep_intercept)
    if evaluated.shift != 0:
        _map_numbers(blocks, _move, evaluated.shift, writes=("score",))
    duals = blocks.vector("certified")
    blocks.renew("certified", "score_error")
    return certificate, duals


def _map_numbers(blocks: Blocks, step: Any, *args: Any, **options: Any) -> Any:
    """Return what a step gives that reads a few numbers of each row."""
    return blocks.map(step, *args, reads_rows=False, numbers=4.0 * blocks.n, **options)


def _leaf(block: Block, *names: str) -> tuple[Loss, list[Floats]]:
    """Return the losses of the rows of a leaf, and vectors."""
    own = slice(block.begin, block.end)
    assert block.loss is not None
    return block.loss.take(own), [block.vectors[name][own] for name in names]


class LeafSum(NamedTuple):
    """A sum over leaves, of each of which the error is known."""

    value: float
    lost: float  # by additions of leaves: to be added to the value
    error: float
    size: float
    leaves: int

    @classmethod
    def of(cls, found: float, size: float, own: float, terms: int, count: int) -> "LeafSum":
        """Return the sum of a leaf as compiled loops find it, with the errors of its terms."""
        return cls(found, 0.0, sum_error(found, size, own, terms, count), abs(found), 1)

    def plus(self, other: "LeafSum") -> "LeafSum":
        """Return the sum of both."""
        value, lost = added((self.value, self.lost), (other.value, other.lost))
        error, size = self.error + other.error, self.size + other.size
        return LeafSum(value, lost, error, size, self.leaves + other.leaves)

    @property
    def bounded(self) -> Bounded:
        """The sum and its error."""
        if not np.isfinite(self.size):
            return Bounded(self.value, np.inf)
        found, merges = self.value + self.lost, (self.leaves - 1) * EPS
        rounded = EPS * abs(found) if self.lost != 0 else 0.0
        return Bounded(found, self.error * (1 + merges) + merges * merges * self.size + rounded)


# ------------------------------------------------------------------- duals


class DualSums(NamedTuple):
    """What is to be known of duals."""

    inside: bool  # whether all are within their bounds
    summed: tuple[float, float]  # Σβ, and what that has rounded off
    size: float  # Σ|β|
    positive: float  # Σβ over β > 0
    negative: float  # −Σβ over β < 0
    pulled: float  # Σ|tβ|
    gained: LeafSum  # Σ tβ − ε|β| − ½ quadratic β²
    largest: float

    def plus(self, other: "DualSums") -> "DualSums":
        """Return the sums over both."""
        return DualSums(
            self.inside and other.inside,
            added(self.summed, other.summed),
            self.size + other.size,
            self.positive + other.positive,
            self.negative + other.negative,
            self.pulled + other.pulled,
            self.gained.plus(other.gained),
            max(self.largest, other.largest),
        )


def _sum_duals(block: Block) -> DualSums:
    loss, [beta] = _leaf(block, "certified")
    sums, groups = np.zeros((3, 1)), np.zeros(len(beta), np.int64)
    inside = loops.rounding.sum_groups(loss.low, loss.high, beta, groups, sums)
    found, size, own, count, largest = loops.rounding.bound_dual(loss, beta)
    (summed,), (lost,), (much,) = sums.tolist()
    return DualSums(
        bool(inside),
        (summed, lost),
        much,
        float(beta[beta > 0].sum()),
        -float(beta[beta < 0].sum()),
        float(np.abs(loss.target * beta).sum()),
        LeafSum.of(found, size, own, len(beta), count),
        largest,
    )


def _make_feasible(problem: BlockedProblem, beta: Any) -> tuple[DualSums, float]:
    """Set the vector "certified" to feasible duals; return their sums, and the change.

    They are clipped to their box; if Σβ must be 0 and is not, but for rounding, then the heavier of
    their sides is scaled down (see ``duality.within_groups``).
    """
    blocks, free = problem.blocks, problem.intercept is Intercept.FREE
    blocks.put("certified", beta)
    sums = _map_numbers(blocks, _sum_duals, merge=DualSums.plus)
    if sums.inside and (not free or _is_balanced(sums)):
        return sums, 0.0
    blocks.put("claimed", beta)
    blocks.renew("certified")
    _map_numbers(blocks, _clip, writes=("certified",))
    clipped = _map_numbers(blocks, _sum_duals, merge=DualSums.plus)
    if free and not _is_balanced(clipped):
        up, down = clipped.positive, clipped.negative
        factors = (down / up, 1.0) if up > down else (1.0, up / down)
        _map_numbers(blocks, _scale, *factors, writes=("certified",))
        clipped = _map_numbers(blocks, _sum_duals, merge=DualSums.plus)
    change = float(_map_numbers(blocks, _distance))
    blocks.renew("claimed")
    return clipped, change / sums.size if sums.size > 0 else float(change > 0)


def _is_balanced(sums: DualSums) -> bool:
    return abs(sum(sums.summed)) <= BALANCED * sums.size


def _clip(block: Block) -> None:
    loss, [claimed, out] = _leaf(block, "claimed", "certified")
    finite = np.nan_to_num(claimed, posinf=0.0, neginf=0.0)
    np.minimum(np.maximum(finite, loss.low), loss.high, out=out)


def _scale(block: Block, positive: float, negative: float) -> None:
    _, [beta] = _leaf(block, "certified")
    beta *= np.where(beta > 0, positive, negative)


def _distance(block: Block) -> float:
    _, [claimed, beta] = _leaf(block, "claimed", "certified")
    return float(np.abs(beta - claimed).sum())


# ------------------------------------------------------------------- rows


def _evaluate(problem: BlockedProblem, point: Point, sums: DualSums) -> "BlockedEvaluation":
    """Compute the scores of a point, and the weights that the duals "certified" imply."""
    blocks, free = problem.blocks, problem.intercept is Intercept.FREE
    blocks.renew(*SCORES)
    centre, implied = _pass(blocks, np.asarray(point.w, dtype=np.float64), free)
    off, constant = np.zeros(0), 0.0
    if free:
        off = imbalance(np.array([sum(sums.summed)]), np.array([sums.size]), blocks.n + 1)
    elif problem.intercept is Intercept.PENALIZED:
        constant = problem.constant or 1.0
        _map_numbers(blocks, _shift, float(point.b), writes=SCORES)
        found = sum(sums.summed)
        summed = Bounded(found, sum_error(found, sums.size, 0.0, blocks.n, blocks.n))
        implied = with_constant(implied, constant, summed, sums.size)
    weights = linear_weights(point, centre, implied, free=free, constant=constant)
    return BlockedEvaluation(**vars(weights), blocks=blocks, sums=sums, off=off)


def _pass(blocks: Blocks, w: Floats, free: bool) -> tuple[Floats, Combination]:
    """Return a centre to measure rows from, and Σβ(x − centre); the scores are set."""
    zero = np.zeros(len(w))
    if not free or blocks.sparse:
        return zero, passed_over(blocks, w, zero)
    stride = stride_of(blocks.n)
    weighed, some = blocks.map(
        _weigh_and_sample, w, zero, stride, writes=SCORES, merge=_merge_samples
    )
    centre = centre_of_some(np.concatenate(some))
    return centre, passed_over(blocks, w, centre) if centre.any() else weighed.combination


def _weigh_and_sample(
    block: Block, w: Floats, centre: Floats, stride: int
) -> tuple[Weighed, list[Any]]:
    """Do what ``weigh`` does, and return every so many rows as well."""
    first = block.begin + -block.first % stride
    some = [np.array(block.X[first : block.end : stride])] if first < block.end else []
    return weigh(block, w, centre), some


def _merge_samples(one: Any, other: Any) -> Any:
    return one[0].plus(other[0]), one[1] + other[1]


def _shift(block: Block, own: float) -> None:
    _, [value, error] = _leaf(block, *SCORES)
    value[:], error[:] = shifted(Bounded(value, error), own)


def _move(block: Block, shift: float) -> None:
    _, [value] = _leaf(block, "score")
    value += shift


@dataclass(frozen=True)
class BlockedEvaluation(LinearWeights):
    """A point of a problem whose rows live in blocks."""

    blocks: Blocks
    sums: DualSums
    off: Floats  # what Σβ may be off by, if the intercept is free

    def implied_norm2(self, off: float = 0.0) -> Bounded:
        """Return ‖Σβφ‖²: while sums are mended no dual moves by more than a part of itself."""
        part = 4 * off / (self.sums.size or 1.0)
        return squared_norm(self.implied.value, self.implied.error + part * self.implied.size)

    def imbalance_cost(self, off: Floats) -> float:
        """Return what D loses at most while one side is scaled down until Σβ = 0 exactly."""
        lighter = min(self.sums.positive, self.sums.negative)
        return self.mending_cost(float(off.sum()), lighter, self.sums.pulled)

    def best_intercepts(self) -> Floats:
        """Return the free intercept that makes the objective smallest."""
        return np.array([best_intercept_of(self.blocks, float(self.b[0]))])

    def bound_losses(self, b: Floats, near: float) -> tuple[Bounded, float]:
        """Return Σ ℓ(w·x + b), and the worst violation of KKT."""
        offset, merge = float(b[0]) if len(b) else 0.0, _merge_losses
        summed, violation = _map_numbers(self.blocks, _bound_losses, offset, near, merge=merge)
        return summed.bounded, violation

    def bound_gains(self) -> tuple[Bounded, float]:
        """Return Σ tβ − ε|β| − ½ quadratic β², and the largest |β|."""
        return self.sums.gained.bounded, self.sums.largest


def _bound_losses(block: Block, b: float, near: float) -> tuple[LeafSum, float]:
    loss, [scores, errors, beta] = _leaf(block, *SCORES, "certified")
    n = len(beta)
    summed, own, count, violation = loops.rounding.bound_losses(
        loss, np.arange(n), np.zeros(n, np.int64), np.array([b, 0.0]), scores, errors, np.zeros(n),
        0.0, beta, near,
    )  # fmt: skip
    return LeafSum.of(summed, summed, own, n, count), violation


def _merge_losses(one: Any, other: Any) -> tuple[LeafSum, float]:
    return one[0].plus(other[0]), max(one[1], other[1])


# ------------------------------------------------------------------- the best intercept
#
# Σ ℓ(s + b) has two sides for each row: one pulls b up until b reaches the side's kink, the other
# pulls it down from there. Where rows are many, slopes at a few b say between which of them the
# minimum lies; sides whose kinks are elsewhere become a constant, or linear, part of the slope.

_FEW = 1 << 18  # kinks, or rows, that one place can hold
_FLAT = 1e-12  # a slope below this part of all slopes is rounding of sums
_FIRST_STEP, _LONGER, _STEPS = 1e-4, 100.0, 2  # to either side of where b is looked for
_CANDIDATES = 18  # b whose slopes are found in a pass
_PASSES = 12  # at most; one or two are usual


def best_intercept_of(blocks: Blocks, near: float) -> float:
    """Return the b that minimises Σ ℓ(score + b): see ``duality.best_intercept``."""
    if blocks.n <= _FEW:
        found = _map_numbers(blocks, _gather, merge=join)
        columns = zip(*(part for part, _ in found), strict=True)
        target, low, high, quadratic, scores = map(np.concatenate, columns)
        loss = Loss(target, low, high, quadratic, found[0][1])
        return best_intercept(loss, scores, near)
    begin, end = _bracket(blocks, near)
    inside = min(max(near, begin), end)
    outside, sides = _map_numbers(blocks, _split, begin, end, inside, merge=_merge_split)
    return _best_between(begin, end, inside, outside, sides)


def _gather(block: Block) -> list[Any]:
    loss, [scores] = _leaf(block, "score")
    return [((*loss[:4], scores), loss.epsilon)]


class Slopes(NamedTuple):
    """Slopes of Σ ℓ at some b: from the left, from the right, and how large all terms are."""

    slopes: Floats
    kinks: Ints  # how many there are between one b and the next …
    lowest: Floats  # … and the lowest and the highest of them
    highest: Floats

    def plus(self, other: "Slopes") -> "Slopes":
        """Return the slopes of both sums together."""
        return Slopes(
            self.slopes + other.slopes,
            self.kinks + other.kinks,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )

    def count_kinks(self, first: int, last: int) -> int:
        """Return how many different kinks there may be between some b."""
        kinks = np.where(self.lowest == self.highest, 1, self.kinks)
        return int(kinks[first:last].sum())


def _bracket(blocks: Blocks, near: float) -> tuple[float, float]:
    """Return between which two b the minimum lies, with few kinks between them."""
    steps = _FIRST_STEP * max(1.0, abs(near)) * _LONGER ** np.arange(_STEPS)
    candidates = np.unique(near + np.concatenate([-steps, [0.0], steps]))
    begin, end, tiny = -np.inf, np.inf, None
    for _ in range(_PASSES):
        found = _map_numbers(blocks, _slopes, candidates, merge=Slopes.plus)
        left, right, size = found.slopes.T
        if tiny is None:
            much = float(size[np.searchsorted(candidates, near)])
            tiny = _FLAT * max(much if np.isfinite(much) else 0.0, 1e-300)
        begin = float(candidates[right < -tiny].max(initial=begin))
        end = float(candidates[left > tiny].min(initial=end))
        first, last = np.searchsorted(candidates, [begin, end], side="right").tolist()
        if found.count_kinks(first, last + (end == np.inf)) <= _FEW:
            break
        lowest, highest = found.lowest.min() - 1.0, found.highest.max() + 1.0
        lowest, highest = max(begin, lowest), min(end, highest)
        candidates = np.unique(np.linspace(lowest, highest, _CANDIDATES))
    return begin, end


class Sides(NamedTuple):
    """Sides of losses: the slope is −bound, or +bound, beyond the kink, or grows to that."""

    sign: Floats  # 1: it pulls b up; −1: down
    kink: Floats
    bound: Floats
    quadratic: Floats  # 0: the slope jumps; else the length of b over which it changes by 1

    @property
    def far(self) -> Floats:
        """Where the slope reaches its bound: another kink, which may be at infinity."""
        with np.errstate(invalid="ignore"):
            grown = np.where(self.quadratic > 0, self.quadratic * self.bound, 0.0)
        return np.asarray(self.kink - self.sign * grown)

    @property
    def kinks(self) -> Floats:
        """All kinks."""
        far = self.far
        return np.concatenate([self.kink, far[(self.quadratic > 0) & np.isfinite(far)]])

    def take(self, which: Flags) -> "Sides":
        """Return some of them."""
        return Sides(*(part[which] for part in self))

    def merged(self) -> "Sides":
        """Return the same sum of fewer sides: those with the same kinks become one."""
        if not len(self.kink):
            return self
        curved = self.quadratic > 0
        keys = [self.kink, np.where(curved, self.bound, 0.0), self.quadratic, self.sign]
        order = np.lexsort(keys)
        kink, bound, quadratic, sign = (key[order] for key in keys)
        new = np.ones(len(order), bool)
        new[1:] = np.any([key[1:] != key[:-1] for key in (kink, bound, quadratic, sign)], axis=0)
        first = np.flatnonzero(new)
        much = np.add.reduceat(np.where(curved, 1.0, self.bound)[order], first)
        kink, bound, quadratic, sign = (key[first] for key in (kink, bound, quadratic, sign))
        curved = quadratic > 0
        bound = np.where(curved, bound * much, much)
        return Sides(sign, kink, bound, np.where(curved, quadratic / much, 0.0))


def _sides(block: Block) -> tuple[Loss, Floats, Floats, Sides]:
    """Return the losses of a leaf, from where its rows pull b up and down, and their sides."""
    loss, [scores] = _leaf(block, "score")
    residual = loss.target - scores
    up, down = residual - loss.epsilon, residual + loss.epsilon
    pull, push = loss.high > 0, loss.low < 0
    sides = Sides(
        np.repeat([1.0, -1.0], [np.count_nonzero(pull), np.count_nonzero(push)]),
        np.concatenate([up[pull], down[push]]),
        np.concatenate([loss.high[pull], -loss.low[push]]),
        np.concatenate([loss.quadratic[pull], loss.quadratic[push]]),
    )
    return loss, up, down, sides


def _slopes(block: Block, candidates: Floats) -> Slopes:
    loss, up, down, sides = _sides(block)
    rows = up, down, loss.low, loss.high, loss.quadratic
    slopes = np.array([loops.loss.slopes(*rows, b) for b in candidates.tolist()])
    cells = len(candidates) + 1
    counts, lowest, highest = (
        np.zeros(cells, np.int64),
        np.full(cells, np.inf),
        np.full(cells, -np.inf),
    )
    loops.loss.count_kinks(sides.kinks, candidates, counts, lowest, highest)
    return Slopes(slopes, counts, lowest, highest)


def _split(block: Block, begin: float, end: float, near: float) -> tuple[Floats, Sides]:
    """Return the sides with a kink between two b; and what others are there, in all.

    These pull up by a constant, or down, or are linear in b: Σ1/q, Σ(kink − near)/q and that of
    absolute values.
    """
    sides = _sides(block)[-1]
    far, kink, up = sides.far, sides.kink, sides.sign > 0
    inside = ((kink > begin) & (kink < end)) | ((far > begin) & (far < end))
    constant = ~inside & np.where(up, far >= end, far <= begin)
    active = np.where(up, kink >= end, kink <= begin)
    linear = sides.take(~inside & active & ~constant)
    away = (linear.kink - near) / linear.quadratic
    outside = [
        sides.bound[constant & up].sum(), sides.bound[constant & ~up].sum(),
        (1.0 / linear.quadratic).sum(), away.sum(), np.abs(away).sum(),
    ]  # fmt: skip
    return np.array(outside), sides.take(inside).merged()


def _merge_split(one: Any, other: Any) -> tuple[Floats, Sides]:
    sides = Sides(*map(np.concatenate, zip(one[1], other[1], strict=True)))
    return one[0] + other[0], sides.merged() if len(sides.kink) > _FEW else sides


def _best_between(begin: float, end: float, near: float, outside: Floats, sides: Sides) -> float:
    """Return the best b, given all sides with kinks between two b, and the sums of all others."""
    up, down, steep, away, size = outside.tolist()
    # What cancels is pulled up and down alike: slopes are 0 if they are small beside all of it.
    up, down = up + 0.5 * size, down + 0.5 * size
    pulls, beyond = sides.sign > 0, np.inf
    columns: list[list[Any]] = [
        [np.where(pulls, sides.kink, -beyond), [beyond, -beyond]],
        [np.where(pulls, beyond, sides.kink), [beyond, -beyond]],
        [np.where(pulls, 0.0, -sides.bound), [0.0, -down]],
        [np.where(pulls, sides.bound, 0.0), [up, 0.0]],
        [sides.quadratic, [0.0, 0.0]],
    ]
    if steep > 0:
        centre = near + away / steep
        for column, value in zip(
            columns, (centre, centre, -beyond, beyond, 1 / steep), strict=True
        ):
            column.append([value])
    rows = [np.concatenate(column) for column in columns]
    ends = [edge for edge in (begin, end) if np.isfinite(edge)]
    kinks = sides.kinks
    if near in ends and len(kinks):  # ends may be far away, where slopes are known to fewer digits
        near = min(max(near, float(kinks.min())), float(kinks.max()))
    return float(loops.loss.best_intercept(*rows, np.append(kinks, ends), near, 0.0))
