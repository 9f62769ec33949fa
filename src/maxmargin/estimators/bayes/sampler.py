"""Draws from a Gaussian cut by walls through the origin, and how far they can be trusted.

Several chains follow the paths of ``loops/truncated_gaussian.py``. Nothing is tuned but the
duration of the paths, and that only while the chains warm up: a quarter turn forgets where it began
if there are no walls; within narrow ones it meets thousands, and a shorter path that meets some
for each dimension forgets just as much.

Two moves in between help where paths are slow; both leave the density as it is.

A version space may be thin in one direction and long in another, and paths are adapted to the thin
one. If they had to be shortened, z also moves along straight lines (hit-and-run), in directions
from a fixed distribution that is as long and as thin as the version space seems from its centre: by
the Hessian I + Σ aaᵀ/(a·z)² of Gaussian and log-barrier, or as the last draws of the warm-up lie.

Where walls can be crossed, places that explain the labels equally well may be far apart with dear
walls between them, which a path rarely pays for. So z also moves along whole ellipses
z cos t + v sin t, with a new v ~ N(0, I) and t drawn from its exact density, which is constant
between two walls: no wall is in its way (Fagan, Bhandari & Cunningham 2016).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import ChainState


@dataclass(frozen=True)
class SamplerSettings:
    """Constants of the method."""

    # Paths of each chain in the rounds of the warm-up; their duration is adapted after each.
    warm_up: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    first_round: int = 100  # draws of each chain before they are judged for the first time
    reflections: int = 4  # of a path, for each dimension and one more: what it is adapted to
    meetings: int = 10  # times as many walls that it meets at most on average, crossed or not
    first_most: int = 40  # times as many at which a path of the warm-up is given up
    most: int = 100  # times as many at which a path is rejected
    together: int = 4  # paths that are followed between other moves
    lines: int = 4  # of these moves along lines, if paths were shortened
    products: int = 1 << 23  # numbers in the matrix of the walls' products, if it is kept
    work: float = 1e7  # multiplications in a compiled call: some hundredths of a second


_LONGEST = 0.5 * math.pi  # a quarter turn, which leads to the velocity if no wall is met
_WINDOW = 4.0  # standard deviations of the prior that a move along a line keeps within
_SHORTEST = 4  # draws of a chain whose halves can be compared
_REACH = 0.95  # of the way to a wall that a chain moves at most before it starts
_ROUNDING = 1e-12  # of the diagonal of a Hessian, which keeps it positive definite
_SPREAD = 3.0  # standard deviations of what a quadratic model says


# ------------------------------------------------------------------- walls


@dataclass(frozen=True)
class Walls:
    """Where the density changes: it is exp(−cost) times as large where normal·z < 0.

    Normals have length 1, and no two are equal or opposite.
    """

    normals: Floats  # of shape (m, dim)
    cost: Floats  # of shape (m,), > 0, or infinite for all of them

    @classmethod
    def of(cls, vectors: Floats, cost: Floats) -> "Walls":
        """Return walls with vectors of any length as normals; equal ones become one."""
        largest = np.abs(vectors).max(
            axis=1, initial=0.0
        )  # whose square may be too small for float64
        there = largest > 0  # a zero vector has no sides
        normals, cost = vectors[there] / largest[there, np.newaxis], cost[there]
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        if np.isfinite(cost).all():
            # Opposite walls are one, whose cost is the difference.
            leading = np.take_along_axis(normals, np.argmax(normals != 0, axis=1)[:, None], 1)[:, 0]
            turned = np.where(leading < 0, -1.0, 1.0)
            normals, cost = normals * turned[:, np.newaxis], cost * turned
        normals, place = _distinct(normals)
        if np.isfinite(cost).all():
            cost = np.bincount(place, cost, minlength=len(normals)).astype(np.float64)
            normals, cost = normals[cost != 0], cost[cost != 0]
            normals = normals * np.where(cost < 0, -1.0, 1.0)[:, np.newaxis]
            cost = np.abs(cost)
        else:
            cost = np.full(len(normals), np.inf)
        return cls(np.ascontiguousarray(normals), cost)

    def __len__(self) -> int:
        return len(self.cost)

    def products(self, most: int) -> Floats:
        """Return the products of all normals if they are worth keeping, else nothing."""
        m, dim = self.normals.shape
        if dim <= 4 or m * m > most:
            return np.zeros((0, 0))
        return self.normals @ self.normals.T

    @property
    def soft(self) -> bool:
        """Whether walls can be crossed."""
        return bool(np.isfinite(self.cost).all())

    def clear(self, z: Floats) -> bool:
        """Return whether z is on the right side of every wall."""
        return bool((self.normals @ z > 0).all())


def _distinct(normals: Floats) -> tuple[Floats, Ints]:
    """Return the distinct rows in an order of their own, and which of them each row is."""
    if not len(normals):
        return normals, np.zeros(0, np.int64)
    rows = np.ascontiguousarray(normals + 0.0)  # which makes −0 a 0
    content = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, place = np.unique(content, return_index=True, return_inverse=True)
    return rows[first], place.ravel().astype(np.int64)


def scattered(walls: Walls, centre: Floats, count: int, rng: np.random.Generator) -> list[Floats]:
    """Return points that are as far from the centre as draws are, or farther.

    A random part of the way to a wall in a random direction; as far as the centre is from the
    origin, if no wall is in the way. Walls that can be crossed stop nothing: there, it is as far as
    their Hessian says.
    """
    points = []
    shape = local_shape(walls, centre) if walls.soft else None
    for _ in range(count):
        direction = rng.standard_normal(len(centre))
        if shape is not None:
            points.append(centre + _SPREAD * (shape @ direction))
            continue
        direction /= np.linalg.norm(direction)
        p, q = walls.normals @ centre, walls.normals @ direction
        ahead = q < 0
        way = float((p[ahead] / -q[ahead]).min(initial=np.linalg.norm(centre)))
        z = np.asarray(centre + _REACH * rng.random() * way * direction)
        points.append(z if walls.clear(z) else centre)
    return points


def local_shape(walls: Walls, centre: Floats) -> Floats:
    """Return S with SSᵀ the inverse of the Hessian at the centre."""
    if not len(walls):
        return np.eye(len(centre))
    p = walls.normals @ centre
    # Walls that can be crossed have no barrier: they matter by their cost, within what is usual.
    scale = walls.cost / max(float(np.mean(p * p)), 1e-300) if walls.soft else 1.0 / (p * p)
    hessian = walls.normals.T @ (walls.normals * scale[:, np.newaxis])
    unit = 1 / np.sqrt(hessian.diagonal() + 1.0)  # it may span many orders of magnitude
    hessian[np.diag_indices(len(centre))] += 1.0
    scaled = hessian * unit * unit[:, np.newaxis]
    scaled[np.diag_indices(len(centre))] += _ROUNDING
    factor = np.linalg.cholesky(scaled)
    inverse = solve_triangular(factor, np.eye(len(centre)), lower=True, trans="T")
    return np.asarray(inverse * unit[:, np.newaxis])


# ------------------------------------------------------------------- chains


@dataclass(frozen=True)
class Draws:
    """The draws so far, of shape (chains, draws, dim), and what they say at the probe points."""

    z: Floats
    finished: bool
    reflections: int = 0  # per path
    rejected: float = 0.0  # share of the paths
    duration: float = _LONGEST
    effective: float = 1.0  # draws that would tell as much if they were independent
    r_hat: float = math.inf
    standard_error: float = math.inf

    @property
    def count(self) -> int:
        """How many draws there are."""
        return int(self.z.shape[0] * self.z.shape[1])

    @property
    def too_few(self) -> bool:
        """Whether chains are too short to be compared."""
        return bool(self.z.shape[1] < _SHORTEST)

    def __str__(self) -> str:
        return (
            f"{self.count} draws, effective {self.effective:.0f}, R̂ {self.r_hat:.3f}, standard "
            f"error {self.standard_error:.2g}"
        )


@dataclass(frozen=True)
class Sampler:
    """Chains from given starts; ``probes`` are vectors whose products with z have a sign."""

    walls: Walls
    starts: list[Floats]
    probes: Floats
    rng: np.random.Generator
    settings: SamplerSettings = SamplerSettings()

    def iterates(self, most: int) -> Iterator[Draws]:
        """Yield the draws after each round, and in between what there is: at most ``most``."""
        settings, dim = self.settings, len(self.starts[0])
        chains = [ChainState.at(start, len(self.walls)) for start in self.starts]
        products = self.walls.products(settings.products)
        target = settings.reflections * (dim + 1)
        yield _standing(chains)
        way = _Way(products, _LONGEST, settings.first_most * target)
        for paths in settings.warm_up:
            # A path whose duration is not known yet is not followed to any end.
            drawn = None
            for found in self._round(chains, way, paths):
                drawn = found
                yield _standing(chains)
            reflections, met = (sum(int(chain.counts[k]) for chain in chains) for k in (3, 5))
            rate = max(reflections, met / settings.meetings, 1)
            duration = target * sum(chain.times[1] for chain in chains) / rate
            way = way.lasting(min(_LONGEST, duration), self, drawn)
            for chain in chains:
                chain.times[1] = chain.counts[3] = chain.counts[4] = chain.counts[5] = 0
        way = replace(way, limit=settings.most * target)
        rounds: list[Floats] = []
        judged = None
        for size in self.sizes(most):
            for drawn in self._round(chains, way, size):
                if drawn is None:
                    yield replace(judged, finished=False) if judged else _standing(chains)
                else:
                    rounds.append(drawn)
                    judged = self._judged(np.concatenate(rounds, axis=1), chains, way.duration)
                    yield judged

    def sizes(self, most: int) -> list[int]:
        """Return the draws of a chain in each round: after each, there are twice as many."""
        sizes: list[int] = []
        left = -(-most // len(self.starts))
        while left > 0:
            sizes.append(min(left, max(self.settings.first_round, sum(sizes))))
            left -= sizes[-1]
        return sizes

    def _round(self, chains: list[ChainState], way: "_Way", size: int) -> Iterator[Floats | None]:
        """Let every chain follow some paths; yield None in between, their draws at the end."""
        walls, dim, settings = self.walls, len(self.starts[0]), self.settings
        out = np.empty((len(chains), size, dim))
        known = len(way.products) > 0
        step = max(len(walls), 1) * (1 if known else dim) + dim  # multiplications
        budget = max(1, int(settings.work / step))
        setup = 3 * dim if known else 3
        soft = walls.soft and len(walls) > 0
        together = settings.together if soft or way.shape is not None else size
        for k, chain in enumerate(chains):
            velocities = self.rng.standard_normal((size, dim))
            lengths = np.sqrt(self.rng.chisquare(dim, size))
            left = budget
            for begin in range(0, size, together):
                some = slice(begin, begin + together)
                chain.counts[0] = 0
                while chain.counts[0] < len(lengths[some]):
                    if left <= 0:
                        yield None
                        left = budget
                    left -= loops.truncated_gaussian.follow(
                        walls.normals, way.products, walls.cost, way.duration, way.limit,
                        velocities[some], lengths[some], chain, out[k, some], setup, left,
                    )  # fmt: skip
                if soft:
                    chain.z[:] = along_ellipse(walls, chain.z, self.rng)
                if way.shape is not None:
                    for _ in range(settings.lines):
                        chain.z[:] = along_line(walls, chain.z, way.direction(self.rng), self.rng)
                    left -= settings.lines
            yield None
        yield out

    def _judged(self, z: Floats, chains: list[ChainState], duration: float) -> Draws:
        paths = z.shape[0] * z.shape[1]
        scores = z @ self.probes.T / np.linalg.norm(z, axis=2, keepdims=True)
        effective, r_hat = mixing(scores)
        errors = standard_errors((scores > 0).astype(np.float64), float(effective.min()))
        return Draws(
            z,
            True,
            round(sum(int(c.counts[3]) for c in chains) / paths),
            sum(int(c.counts[4]) for c in chains) / paths,
            duration,
            float(effective.min()),
            float(r_hat.max()),
            float(errors.max()),
        )


def _standing(chains: list[ChainState]) -> Draws:
    """Return where chains stand that have no draws yet: a single one is worth as much."""
    # On a path under way, z may be on a wall.
    z = [chain.start if chain.counts[1] else chain.z for chain in chains]
    return Draws(np.array(z)[:, np.newaxis], False)


@dataclass(frozen=True)
class _Way:
    """How chains go on: products of the walls, duration of paths, walls they meet at most."""

    products: Floats
    duration: float
    limit: int
    # Directions of lines are either of these times N(0, I); None: there are no lines.
    shape: Floats | None = None
    cloud: Floats | None = None

    def lasting(self, duration: float, sampler: Sampler, drawn: Floats | None) -> "_Way":
        """Return the same with paths of another duration, and lines where the last draws are."""
        shape, cloud = self.shape, self.cloud
        if shape is None and duration < _LONGEST:
            shape = local_shape(sampler.walls, np.mean(sampler.starts, axis=0))
        if shape is not None and drawn is not None:
            points = drawn.reshape(-1, drawn.shape[2])
            points = points / np.linalg.norm(points, axis=1, keepdims=True)
            away = (points - points.mean(axis=0)).T
            cloud = away if away.any() else None
        return replace(self, duration=duration, shape=shape, cloud=cloud)

    def direction(self, rng: np.random.Generator) -> Floats:
        """Return the direction of a line."""
        known = self.cloud if self.cloud is not None and rng.random() < 0.5 else self.shape
        if known is None:
            raise RuntimeError("there are no lines")
        u = known @ rng.standard_normal(known.shape[1])
        return np.asarray(u / np.linalg.norm(u))


def along_line(walls: Walls, z: Floats, u: Floats, rng: np.random.Generator) -> Floats:
    """Return a point of a line through z with direction u, ‖u‖ = 1: Metropolis and Hastings.

    The proposal is drawn from the part of the density that is due to the walls, so that only the
    Gaussian decides whether it is accepted.
    """
    foot = -float(z @ u)  # where the line is nearest to the origin
    low, high = foot - _WINDOW, foot + _WINDOW
    if not low < 0 < high:
        return z
    p, q = walls.normals @ z, walls.normals @ u
    if walls.soft:
        met = q != 0
        ends = np.append(-p[met] / q[met], [low, high])
        change = np.append(-np.sign(q[met]) * walls.cost[met], [0.0, 0.0])
        inside = (ends >= low) & (ends <= high)
        t = _drawn_between(ends[inside], change[inside], rng)
    else:
        with np.errstate(divide="ignore"):
            way = -p / q
        low, high = way[q > 0].max(initial=low), way[q < 0].min(initial=high)
        t = low + rng.random() * (high - low)
    gained = 0.5 * foot**2 - 0.5 * (t - foot) ** 2
    if math.log(1 - rng.random()) >= gained:
        return z
    moved = z + t * u
    return moved if walls.soft or walls.clear(moved) else z


def along_ellipse(walls: Walls, z: Floats, rng: np.random.Generator) -> Floats:
    """Return a point of the ellipse through z and a new v ~ N(0, I), drawn from its density."""
    v = rng.standard_normal(len(z))
    p, q = walls.normals @ z, walls.normals @ v
    middle = np.arctan2(q, p)  # of the half of the ellipse that is on the right side
    ends = np.concatenate([middle - 0.5 * math.pi, middle + 0.5 * math.pi]) % (2 * math.pi)
    ends = np.append(ends, [0.0, 2 * math.pi])
    change = np.concatenate([-walls.cost, walls.cost, [0.0, 0.0]])
    t = _drawn_between(ends, change, rng)
    return np.asarray(math.cos(t) * z + math.sin(t) * v)


def _drawn_between(ends: Floats, change: Floats, rng: np.random.Generator) -> float:
    """Return a number with density exp(−cost), where the cost changes at the ends of intervals."""
    order = np.argsort(ends)
    ends, cost = ends[order], np.cumsum(change[order])[:-1]
    mass = np.cumsum(np.diff(ends) * np.exp(cost.min() - cost))
    k = min(int(np.searchsorted(mass, rng.random() * mass[-1], side="right")), len(mass) - 1)
    return float(ends[k] + rng.random() * (ends[k + 1] - ends[k]))


# ------------------------------------------------------------------- how far to trust them

_STILL = 1e-26  # variance of a quantity that is constant but for rounding, beside its square
_BLOCK = 1 << 22  # numbers whose autocorrelations are computed at a time


def mixing(series: Floats) -> tuple[Floats, Floats]:
    """Return the effective number of draws and R̂ of each quantity.

    ``series`` has shape (chains, draws, quantities). Chains are split in half, and correlations
    summed over pairs of lags as long as these are positive and fall (Geyer 1992; Vehtari et al.
    2021). A quantity that never changes counts with all its draws and R̂ = 1.
    """
    chains, draws, quantities = series.shape
    if draws < _SHORTEST:
        return np.ones(quantities), np.full(quantities, np.inf)
    half = draws // 2
    halves = np.concatenate([series[:, :half], series[:, draws - half :]])
    effective, r_hat = np.empty(quantities), np.empty(quantities)
    width = max(1, _BLOCK // (4 * halves.shape[0] * half))
    for begin in range(0, quantities, width):
        some = slice(begin, begin + width)
        effective[some], r_hat[some] = _mixing_of(halves[:, :, some], chains * draws)
    return effective, r_hat


def _mixing_of(series: Floats, total: int) -> tuple[Floats, Floats]:
    n = series.shape[1]
    means = series.mean(axis=1)
    centred = series - means[:, np.newaxis]
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    lagged = np.fft.irfft(power.mean(axis=0), size, axis=0)[:n] / (n - 1)
    within = lagged[0]
    overall = within * (n - 1) / n + means.var(axis=0, ddof=1)
    moving = overall > _STILL * (series * series).mean(axis=(0, 1))
    safe = np.where(moving, overall, 1.0)
    correlation = 1 - (within - lagged) / safe
    correlation[0] = 1.0
    even = n - n % 2
    pairs = correlation[0:even:2] + correlation[1:even:2]
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    falling = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    time = np.maximum(2 * falling.sum(axis=0) - 1, 1.0)
    stuck = moving & (within <= 0)  # chains that stand still in different places
    ratio = np.sqrt(safe / np.where(within > 0, within, 1.0))
    effective = np.where(stuck, 1.0, np.where(moving, total / time, total))
    return effective, np.where(stuck, np.inf, np.where(moving, ratio, 1.0))


def standard_errors(series: Floats, effective: float) -> Floats:
    """Return the standard error of the mean of each quantity between 0 and 1.

    ``series`` has shape (chains, draws, quantities). One more 0 and one more 1 are counted, so that
    a vote of which all draws agree is p̃ = (k + 1)/(n + 2) with an error of √(p̃(1 − p̃)/n), where n
    is the effective number of draws, at most ``effective`` for a quantity that hardly changes.
    """
    own, _ = mixing(series)
    still = series.reshape(-1, series.shape[2])
    mean, square = still.mean(axis=0), (still * still).mean(axis=0)
    rare = (square - mean * mean) * own < 1.0
    n = np.where(rare, np.minimum(own, effective), own)
    shifted = (n * mean + 1) / (n + 2)
    variance = (n * square + 1) / (n + 2) - shifted**2
    return np.asarray(np.sqrt(np.maximum(variance, 0.0) / n))
