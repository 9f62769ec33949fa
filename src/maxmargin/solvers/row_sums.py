"""Sums over the rows of a problem, as maps over its blocks of rows."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.geometry.inputs import BLOCK_SIZE, blocks
from maxmargin.loops.records import Loss
from maxmargin.problems import losses
from maxmargin.problems.blocked import BlockedProblem
from maxmargin.problems.problem import Intercept, LinearProblem
from maxmargin.rows.blocks import Block, RowsInMemory, join

AnyLinearProblem = LinearProblem | BlockedProblem
Vector = str | Floats
Fill = Callable[..., Floats]  # (loss of a leaf, *args) -> a number for each of its rows

_BUFFER_BYTES = 1 << 19
_CACHED = 1 << 14  # numbers


class Sums(NamedTuple):
    """What a pass over scores adds up."""

    loss: float
    gain: float  # Σβ over β > 0
    gain_value: float  # Σ tβ − slope|β| there
    gain_square: float  # Σ ½ shift β² there
    lost: float  # −Σβ over β < 0
    lost_value: float
    lost_square: float

    def dual(self, gain_scale: float, lost_scale: float) -> float:
        """Return the dual objective but for ½‖w‖², either side of β scaled."""
        return (
            gain_scale * self.gain_value
            - gain_scale**2 * self.gain_square
            + lost_scale * self.lost_value
            - lost_scale**2 * self.lost_square
        )


class Passes:
    """The rows of a problem, measured from a centre, and the passes over them.

    Vectors (scores, duals) are given by their names among those of the blocks, or, if the rows are
    in memory, as arrays.
    """

    def __init__(
        self, problem: AnyLinearProblem, threads: int | None = None, *, centred: bool = True
    ) -> None:
        self.blocks = blocks = blocks_of(problem, threads)
        self.n, self.d, self.sparse = blocks.n, blocks.d, blocks.sparse
        per_row = blocks.numbers / self.n if self.sparse else self.d
        self.outer = self.sparse and 2.5 * per_row < self.d
        centred = centred and problem.intercept is Intercept.FREE and not self.outer
        self.centre = self._mean() if centred else np.zeros(self.d)

    @property
    def rows(self) -> Any:
        """The rows for compiled loops, if they are in memory."""
        return self.blocks.rows

    def _named(self, vector: Vector, name: str) -> str:
        if isinstance(vector, str):
            return vector
        self.blocks.put(name, vector)
        return name

    def array(self, vector: Vector) -> Floats:
        """Return a vector as an array, if the rows are in memory."""
        return np.asarray(self.blocks.vector(vector)) if isinstance(vector, str) else vector

    def scores(self, w: Floats, b: float, out: Vector) -> Any:
        """Set out = (x − centre)·w + b for every row."""
        offset = b - float(self.centre @ w) if self.sparse else b
        name = self._named(out, "scores")
        self.blocks.map(_set_scores, self.centre, w, offset, name, writes=(name,))
        return out

    def fill(self, out: str, rule: Fill, *args: Any) -> None:
        """Set a vector by a rule: what it is for each row of a block, given its loss."""
        self.blocks.map(_fill, out, rule, args, writes=(out,), reads_rows=False, numbers=4 * self.n)

    def copy(self, vector: str, out: str) -> None:
        """Do out = vector."""
        self.blocks.map(_copy, vector, out, writes=(out,), reads_rows=False, numbers=self.n)

    def scaled(self, beta: str, out: str, gain_scale: float, lost_scale: float) -> None:
        """Set out to β with either side scaled, in a new vector."""
        self.blocks.renew(out)
        self.blocks.map(
            _scale, beta, out, gain_scale, lost_scale,
            writes=(out,), reads_rows=False, numbers=2 * self.n,
        )  # fmt: skip

    def losses(self, f: Vector) -> float:
        """Return Σ ℓ at the scores f."""
        name = self._named(f, "losses")
        [total] = self.blocks.map(_add_losses, name, reads_rows=False, numbers=4 * self.n)
        return float(total)

    def losses_at(self, score: float) -> float:
        """Return Σ ℓ where all scores are the same."""
        [total] = self.blocks.map(_add_losses, score, reads_rows=False, numbers=4 * self.n)
        return float(total)

    def complementarity(self, f: str, beta: str) -> float:
        """Return the duality gap where w = Σβx and Σβ = 0: a sum of terms that are not negative."""
        [total] = self.blocks.map(
            _add_complementarity, f, beta, reads_rows=False, numbers=4 * self.n
        )
        return float(total)

    # Passes of Newton's method, over the vectors "f" (scores), "q" (their change along a step),
    # "prox_centre", "beta" and "h" (duals and curvatures of the smoothed losses).

    def project(self, p: Floats, p_b: float, width: float) -> tuple[float, float]:
        """Set q of a step, and return the derivatives of the smoothed losses at f + q."""
        offset = p_b - float(self.centre @ p) if self.sparse else p_b
        slope, curve = self.blocks.map(_project, self.centre, p, offset, width, writes=("q",))
        return slope, curve

    def line(self, width: float, step: float) -> tuple[float, float]:
        """Return the derivatives of the smoothed losses along q at f + step·q."""
        slope, curve = self.blocks.map(_add_line, width, step, reads_rows=False, numbers=4 * self.n)
        return slope, curve

    def look(self, move: "Move", width: float, *, squares: bool) -> "Look":
        """Move the scores, set β and h, and return their sums.

        With ``squares``, also Σβ(x − c) over β > 0 and over β < 0, and Σh(x − c, 1)(x − c, 1)ᵀ, of
        which only the upper triangle is sure to be there.
        """
        offset = move.b
        if move.w is not None and self.sparse:
            offset -= float(self.centre @ move.w)
        told = move._replace(b=offset)
        add = None if not squares else _add_outer if self.outer else _add_squares
        found = Look(
            *self.blocks.map(
                _look, told, width, self.centre, add, writes=move.writes,
                reads_rows=squares or move.w is not None,
            )
        )  # fmt: skip
        if squares and self.sparse and not self.outer:
            found.gains[:] -= found.sums.gain * self.centre
            found.losses[:] += found.sums.lost * self.centre
        return found

    def squares(self, h: str) -> Floats:
        """Return Σh(x − c)² of each column, and Σh."""
        plain, square, total = self.blocks.map(_add_weighted_squares, self.centre, h)
        if self.sparse:  # whose rows are not centred
            square += self.centre * (total * self.centre - 2 * plain)
        return np.append(square, total)

    def products(self, p: Floats, p_b: float, h: str) -> Floats:
        """Return Σh((x − c)·p + p_b)(x − c, 1)."""
        offset = p_b - float(self.centre @ p) if self.sparse else p_b
        image, total = self.blocks.map(_add_products, self.centre, p, offset, h)
        if self.sparse:
            image -= total * self.centre
        return np.append(image, total)

    def _mean(self) -> Floats:
        """Return the mean of each column; of a constant one in a dense X, exactly its value."""
        start = np.zeros(self.d) if self.sparse else self.blocks.first_row()
        [total] = self.blocks.map(_add_rows, start)
        return np.asarray(start + total / self.n)

    def combinations(self, beta: Vector) -> tuple[Floats, Floats]:
        """Return Σβ(x − c) over β > 0 and over β < 0."""
        read = None
        if not isinstance(beta, str):
            read = self.blocks.numbers * np.count_nonzero(beta) / max(self.n, 1)
        name = self._named(beta, "combined")
        gains, losses, gain, lost = self.blocks.map(_combine, self.centre, name, numbers=read)
        if self.sparse and self.centre.any():
            gains -= gain * self.centre
            losses -= lost * self.centre
        return gains, losses

    def combination(self, beta: Vector) -> Floats:
        """Return Σβ(x − c)."""
        gains, losses = self.combinations(beta)
        return gains + losses

    def compare(self, w: Floats, beta: str) -> "SignedSums":
        """Set "score" to w·x, and return what duals sum up to: one pass for both."""
        return SignedSums(*self.blocks.map(_compare, self.centre, w, beta, writes=("score",)))

    def violation(self, b: float, beta: str) -> tuple[float, float]:
        """Return Σ ℓ at score + b, and by how much duals violate a condition there at most."""
        total, largest = self.blocks.map(
            _find_violation, b, beta, reads_rows=False, merge=_add_and_max, numbers=4 * self.n
        )
        return total, largest

    def count_free(self, beta: str) -> int:
        """Return how many duals are neither at a bound nor 0."""
        [count] = self.blocks.map(_count_free, beta, reads_rows=False, numbers=4 * self.n)
        return int(count)

    def take_free(self, beta: str) -> "FreeRows":
        """Return the rows whose duals are neither at a bound nor 0."""
        found: list[FreeRows] = self.blocks.map(_take_free, beta, merge=join)
        columns = zip(*found, strict=True)
        number, X, values, *bounds = (np.concatenate(column) for column in columns)
        return FreeRows(number, X - self.centre, values, *bounds)

    def replace(self, vector: str, out: str, rows: Ints, values: Floats) -> None:
        """Set out to a vector with other values in some rows, within the bounds of duals."""
        self.blocks.renew(out)
        self.blocks.map(
            _replace, vector, out, rows, values,
            writes=(out,), reads_rows=False, numbers=2 * self.n,
        )  # fmt: skip

    def measure(self, vector: str) -> "Sizes":
        """Return what a vector sums to, and how large it is."""
        found = self.blocks.map(
            _measure, vector, reads_rows=False, merge=Sizes.joined, numbers=2 * self.n
        )
        return Sizes(*found)

    def clip(self, vector: str, out: str) -> None:
        """Set out to a vector, within the bounds of duals."""
        none = np.zeros(0)
        self.replace(vector, out, none.astype(np.int64), none)

    @cached_property
    def facts(self) -> "LossFacts":
        """What a solver wants to know about the losses of all rows."""
        found = self.blocks.map(
            _find_loss_facts, self.n, reads_rows=False, merge=LossFacts.joined, numbers=4 * self.n
        )
        return LossFacts(*found)


class Move(NamedTuple):
    """What becomes of scores before duals are looked at: f + t·q, or those of weights.

    With weights, the duals of the last width of smoothing become the prox centre.
    """

    t: float = 0.0
    w: Floats | None = None
    b: float = 0.0
    width: float = 0.0

    @property
    def writes(self) -> tuple[str, ...]:
        """The vectors that it changes."""
        if self.w is not None:
            return "f", "prox_centre", "beta", "h"
        return ("f", "beta", "h") if self.t else ("beta", "h")


class Look(NamedTuple):
    """What a pass over the rows finds at scores f."""

    sums: Sums
    gains: Any = None
    losses: Any = None
    hessian: Any = None


class SignedSums(NamedTuple):
    """What duals add up to, those above 0 and those below apart."""

    sums: Sums  # without losses
    gains: Floats  # Σβx over β > 0
    losses: Floats  # the same over β < 0

    @property
    def total(self) -> float:
        """Σβ."""
        return self.sums.gain - self.sums.lost

    def repair(self, intercept: Intercept, constant: float) -> tuple[float, float, float]:
        """Return by how much to scale either side of β, and the dual objective that gives.

        The heavier side is scaled down so that Σβ = 0 where the intercept is free, and then both
        if that helps.
        """
        sums, gain_scale, lost_scale, spread = self.sums, 1.0, 1.0, constant * self.total
        if intercept is Intercept.FREE and sums.gain != sums.lost:
            less = min(sums.gain, sums.lost)
            gain_scale = less / sums.gain if sums.gain > 0 else 1.0
            lost_scale = less / sums.lost if sums.lost > 0 else 1.0
        implied = gain_scale * self.gains + lost_scale * self.losses
        linear = gain_scale * sums.gain_value + lost_scale * sums.lost_value
        square = gain_scale**2 * sums.gain_square + lost_scale**2 * sums.lost_square
        square = 2 * square + float(implied @ implied) + spread * spread
        scale = min(1.0, max(linear, 0.0) / square) if square > 0 else 1.0
        dual = scale * linear - 0.5 * scale**2 * square
        return scale * gain_scale, scale * lost_scale, dual


class Sizes(NamedTuple):
    """The sum of a vector, of its absolute values, and the largest of these."""

    total: float
    size: float
    largest: float

    @classmethod
    def joined(cls, one: Any, other: Any) -> Any:
        """Return the same of both runs of rows."""
        return one[0] + other[0], one[1] + other[1], max(one[2], other[2])


def _measure(block: Block, vector: str) -> tuple[float, float, float]:
    part = _part(block, vector)
    sizes = np.abs(part)
    return float(part.sum()), float(sizes.sum()), float(sizes.max(initial=0.0))


class LossFacts(NamedTuple):
    """What a solver wants to know about the losses of all rows."""

    epsilon: float
    smooth: bool  # whether all are curved
    two_sided: bool  # whether any cost on both sides, as in regression
    targets: list[Any]  # some, spread evenly over the rows
    sums: Floats  # of the targets: how many, their mean, Σ(t − mean)²

    @classmethod
    def joined(cls, one: Any, other: Any) -> Any:
        """Return what is known of both runs of rows."""
        (n, mean, square), (m, more, extra) = one[4], other[4]
        apart, total = more - mean, n + m
        sums = np.array(
            [total, mean + apart * m / total, square + extra + apart * apart * n * m / total]
        )
        return one[0], one[1] and other[1], one[2] or other[2], one[3] + other[3], sums

    @property
    def unit(self) -> float:
        """The unit of residuals t − f: 1 for labels, the spread of the targets in regression."""
        count, _, square = self.sums
        return (float(np.sqrt(square / count)) or 1.0) if self.two_sided else 1.0

    @property
    def median(self) -> float:
        """The median of the targets, or of some of many."""
        return float(np.median(np.concatenate(self.targets)))


class FreeRows(NamedTuple):
    """Rows whose duals are neither at a bound nor 0, written out densely."""

    number: Ints  # among all rows
    X: Floats  # measured from the centre
    beta: Floats
    target: Floats
    low: Floats
    high: Floats


def blocks_of(problem: AnyLinearProblem, threads: int | None = None) -> Any:
    """Return the rows of a problem with their losses, in blocks."""
    if isinstance(problem, BlockedProblem):
        return problem.blocks
    return RowsInMemory(problem.features.X, problem.loss, threads)


def rare_rows(blocks: Any, most: int) -> Ints:
    """Return the rows of the class that has fewer, if they are so few; none of numbers to learn."""
    sides = blocks.map(_count_sides, reads_rows=False, numbers=blocks.n)
    if min(sides) > most or sum(sides) > blocks.n:
        return np.empty(0, np.int64)
    found = blocks.map(_find_side, int(np.argmin(sides)), reads_rows=False, merge=join)
    return np.concatenate(found)


# ------------------------------------------------------------------- what is done with a leaf


def _sides(block: Block) -> tuple[Any, Any]:
    """Return which rows want a higher score, and which a lower one."""
    loss = _loss(block)
    return loss.high > 0, loss.low < 0


def _count_sides(block: Block) -> tuple[int, int]:
    up, down = _sides(block)
    return int(np.count_nonzero(up)), int(np.count_nonzero(down))


def _find_side(block: Block, side: int) -> list[Ints]:
    return [block.first + np.flatnonzero(_sides(block)[side])]


def _part(block: Block, name: str) -> Any:
    return block[name][block.begin : block.end]


def _set_scores(block: Block, centre: Floats, w: Floats, offset: float, out: str) -> None:
    loops.newton.scores(block.rows, block.begin, block.end, centre, w, offset, block[out])


def _fill(block: Block, out: str, rule: Fill, args: tuple[Any, ...]) -> None:
    _part(block, out)[:] = rule(_loss(block), *args)


def no_duals(loss: Loss) -> Floats:
    """Return duals of 0."""
    return np.zeros(len(loss.low))


def _loss(block: Block) -> Loss:
    loss: Loss = block.loss.take(slice(block.begin, block.end))
    return loss


def _copy(block: Block, vector: str, out: str) -> None:
    _part(block, out)[:] = _part(block, vector)


def _scale(block: Block, beta: str, out: str, gain_scale: float, lost_scale: float) -> None:
    part = _part(block, beta)
    np.multiply(part, np.where(part > 0, gain_scale, lost_scale), out=_part(block, out))


def _add_losses(block: Block, f: str | float) -> tuple[float]:
    if isinstance(f, float):
        loss = _loss(block)
        return (loops.newton.losses(loss, 0, len(loss.low), np.full(len(loss.low), f)),)
    return (loops.newton.losses(block.loss, block.begin, block.end, block[f]),)


def _add_complementarity(block: Block, f: str, beta: str) -> tuple[float]:
    loss, scores, duals = _loss(block), _part(block, f), _part(block, beta)
    away = duals * (loss.target - scores)
    each = losses.values(loss, scores) + loss.epsilon * np.abs(duals) - away
    return (float(np.maximum(each, 0.0).sum()),)


def _project(
    block: Block, centre: Floats, p: Floats, offset: float, width: float
) -> tuple[float, float]:
    _set_scores(block, centre, p, offset, "q")
    return _add_line(block, width, 1.0)


def _add_line(block: Block, width: float, step: float) -> tuple[float, float]:
    vectors = block["f"], block["q"], block["prox_centre"]
    slope, curve = loops.newton.line(block.loss, block.begin, block.end, *vectors, width, step)
    return slope, curve


def _look(block: Block, move: Move, width: float, centre: Floats, add: Any) -> tuple[Any, ...]:
    if move.w is not None:
        _set_scores(block, centre, move.w, move.b, "f")
        _set_duals(block, move.width)
        _copy(block, "beta", "prox_centre")
    elif move.t:
        part = _part(block, "f")
        part += move.t * _part(block, "q")
    sums = Sums(*_set_duals(block, width))
    return (sums,) if add is None else (sums, *add(block, centre))


def _set_duals(block: Block, width: float) -> Any:
    vectors = block["f"], block["prox_centre"], width, block["beta"], block["h"]
    return loops.newton.duals(block.loss, block.begin, block.end, *vectors)


def _add_squares(block: Block, centre: Floats) -> tuple[Floats, ...]:
    d, begin, end = len(centre), block.begin, block.end
    gains, losses, hessian = np.zeros(d), np.zeros(d), np.zeros((d + 1, d + 1))
    buffer = np.empty((max(32, min(end - begin, _BUFFER_BYTES // (8 * (d + 1)))), d + 1))
    while begin < end:
        begin, filled = loops.newton.gather(
            block.rows, begin, end, centre, block["beta"], block["h"], gains, losses, buffer
        )
        if filled:
            hessian += buffer[:filled].T @ buffer[:filled]
    return gains, losses, hessian


def _add_outer(block: Block, centre: Floats) -> tuple[Floats, ...]:
    d = len(centre)
    gains, losses, hessian = np.zeros(d), np.zeros(d), np.zeros((d + 1, d + 1))
    loops.newton.outer(
        block.rows, block.begin, block.end, block["beta"], block["h"], gains, losses, hessian
    )
    return gains, losses, hessian


def _add_weighted_squares(block: Block, centre: Floats, h: str) -> tuple[Floats, Floats, float]:
    plain, square = np.zeros((2, len(centre)))
    total = loops.newton.add_squares(
        block.rows, block.begin, block.end, centre, block[h], plain, square
    )
    return plain, square, total


def _add_products(
    block: Block, centre: Floats, p: Floats, offset: float, h: str
) -> tuple[Floats, float]:
    image = np.zeros(len(centre))
    total = loops.newton.add_products(
        block.rows, block.begin, block.end, centre, p, offset, block[h], image
    )
    return image, total


def _add_rows(block: Block, centre: Floats) -> tuple[Floats]:
    total = np.zeros(len(centre))
    loops.newton.add_rows(block.rows, block.begin, block.end, centre, total)
    return (total,)


def _combine(block: Block, centre: Floats, beta: str) -> tuple[Floats, Floats, float, float]:
    gains, losses = np.zeros((2, len(centre)))
    loops.newton.combine(block.rows, block.begin, block.end, centre, block[beta], gains, losses)
    if not centre.any():
        return gains, losses, 0.0, 0.0
    part = _part(block, beta)
    return gains, losses, float(part[part > 0].sum()), float(part[part < 0].sum())


def _compare(block: Block, centre: Floats, w: Floats, beta: str) -> tuple[Any, ...]:
    _set_scores(block, centre, w, 0.0, "score")
    loss, duals = _loss(block), _part(block, beta)
    up, down = duals > 0, duals < 0
    values = loss.target * duals - loss.epsilon * np.abs(duals)
    squares = 0.5 * loss.quadratic * duals * duals
    gain = float(duals[up].sum()), float(values[up].sum()), float(squares[up].sum())
    lost = -float(duals[down].sum()), float(values[down].sum()), float(squares[down].sum())
    gains, losses, *_ = _combine(block, centre, beta)
    return Sums(0.0, *gain, *lost), gains, losses


def _find_violation(block: Block, b: float, beta: str) -> tuple[float, float]:
    loss, duals = _loss(block), _part(block, beta)
    order, limits = np.empty(len(duals), np.int64), np.array([np.inf, -np.inf])
    _, largest, fitted, *_ = loops.dual_cd.survey(
        loss, _part(block, "score") + b, duals, 0.0, order, limits
    )
    return fitted, largest


def _add_and_max(one: Any, other: Any) -> Any:
    return one[0] + other[0], max(one[1], other[1])


def _free(block: Block, beta: str) -> Ints:
    loss, part = _loss(block), _part(block, beta)
    return np.flatnonzero((part > loss.low) & (part < loss.high) & (part != 0.0))


def _count_free(block: Block, beta: str) -> tuple[int]:
    return (len(_free(block, beta)),)


def _take_free(block: Block, beta: str) -> list[FreeRows]:
    free, loss = _free(block, beta), _loss(block)
    X = block.X[block.begin + free]
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    bounds = loss.target[free], loss.low[free], loss.high[free]
    return [FreeRows(block.first + free, X, _part(block, beta)[free], *bounds)]


def _replace(block: Block, vector: str, out: str, rows: Ints, values: Floats) -> None:
    begin, end = np.searchsorted(rows, [block.first, block.first + block.end - block.begin])
    loss, changed = _loss(block), _part(block, vector).copy()
    changed[rows[begin:end] - block.first] = values[begin:end]
    np.clip(changed, loss.low, loss.high, out=_part(block, out))


_TARGETS = 100_000


def _find_loss_facts(block: Block, n: int) -> tuple[float, bool, bool, list[Any], Floats]:
    loss, step = _loss(block), max(1, n // _TARGETS)
    two_sided = bool(((loss.low < 0) & (loss.high > 0)).any())
    mean = float(loss.target.mean())
    sums = np.array([len(loss.target), mean, float(((loss.target - mean) ** 2).sum())])
    targets = loss.target[-block.first % step :: step] if two_sided else loss.target[:0]
    # A view would keep the losses of all rows.
    return loss.epsilon, bool((loss.quadratic > 0).all()), two_sided, [targets.copy()], sums


def repaired(problem: LinearProblem, passes: Passes, beta: Floats) -> tuple[Floats, float]:
    """Return β with Σβ = 0 where the intercept is free, and its dual objective.

    The heavier side is scaled down, and then both if that helps. ``passes`` must not be centred.
    """
    loss = problem.loss
    gains, losses = passes.combinations(beta)
    gain, lost = float(beta[beta > 0].sum()), -float(beta[beta < 0].sum())
    if problem.intercept is Intercept.FREE and gain != lost:
        gain_scale, lost_scale = (lost / gain, 1.0) if gain > lost else (1.0, gain / lost)
        beta = np.where(beta > 0, gain_scale, lost_scale) * beta
        gains, losses = gain_scale * gains, lost_scale * losses
    implied = gains + losses
    linear = float((loss.target * beta - loss.epsilon * np.abs(beta)).sum())
    square = float(implied @ implied) + float((loss.quadratic * beta * beta).sum())
    square += (problem.features.constant * (gain - lost)) ** 2
    scale = min(1.0, max(linear, 0.0) / square) if square > 0 else 1.0
    return scale * beta, scale * linear - 0.5 * scale**2 * square


def sum_squares(X: Any, weight: Floats, centre: Floats) -> Floats:
    """Return Σ weightᵢ(xᵢⱼ − centreⱼ)² of each column j (sparse rows have no centre)."""
    if sp.issparse(X):
        return np.asarray(X.astype(np.float64, copy=False).power(2).T @ weight)
    total, start = np.zeros(X.shape[1]), 0
    for block in _small_blocks(X):
        total += weight[start : start + len(block)] @ (block - centre) ** 2
        start += len(block)
    return total


def _small_blocks(X: Any) -> Iterator[Any]:
    """Yield consecutive rows as float64, few enough to stay in the cache with a copy of them."""
    return blocks(X, BLOCK_SIZE // max(1, _CACHED // X.shape[1]))
