"""Draws from a Gaussian cut by walls through the origin, and how far they can be trusted.

Several chains follow the paths of ``loops/truncated_gaussian.py``. Nothing is tuned but the
duration of the paths, and that only while the chains warm up: a quarter turn forgets where it began
if there are no walls; within narrow ones it meets thousands, and a shorter path that meets some
for each dimension forgets just as much.

Where walls can be crossed, places that explain the labels equally well may be far apart with dear
walls between them, which a path rarely pays for. So after every few paths z moves along a whole
ellipse z cos t + v sin t, with a new v ~ N(0, I) and t drawn from its exact density, which is
constant between two walls: such a move leaves the density as it is, and no wall is in its way
(Fagan, Bhandari & Cunningham 2016).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.loops.records import Chain


@dataclass(frozen=True)
class SamplerSettings:
    """Constants of the method."""

    # Paths of each chain in the rounds of the warm-up; their duration is adapted after each.
    warm_up: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    first_round: int = 100  # draws of each chain before they are judged for the first time
    reflections: int = 4  # of a path, for each dimension and one more
    first_most: int = 4  # times as many, at which a path of the warm-up is given up
    most: int = 50  # times as many: beyond that it is rejected
    crossings: int = 10  # of each wall that can be crossed, beyond which a path is rejected
    jump: int = 4  # paths after which a chain moves along an ellipse, if walls can be crossed
    products: int = 1 << 23  # numbers in the matrix of the walls' products, if it is kept
    work: float = 1e7  # multiplications in a compiled call: some hundredths of a second


_LONGEST = 0.5 * math.pi  # a quarter turn, which leads to the velocity if no wall is met
_REACH = 0.95  # of the way to a wall that a chain moves at most before it starts


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
        lengths = np.linalg.norm(vectors, axis=1)
        there = lengths > 0  # a zero vector has no sides
        normals = vectors[there] / lengths[there, np.newaxis]
        cost = cost[there]
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


def scattered(walls: Walls, centre: Floats, rng: np.random.Generator) -> Floats:
    """Return a point a random part of the way from the centre to a wall in a random direction.

    Where no wall is in the way, as far as the centre is from the origin.
    """
    direction = rng.standard_normal(len(centre))
    direction /= np.linalg.norm(direction)
    way = float(np.linalg.norm(centre))
    if not walls.soft:
        p, q = walls.normals @ centre, walls.normals @ direction
        ahead = q < 0
        way = float((p[ahead] / -q[ahead]).min(initial=way))
    z = np.asarray(centre + _REACH * rng.random() * way * direction)
    return z if walls.clear(z) or walls.soft else centre


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
        chains = [Chain.at(start, len(self.walls)) for start in self.starts]
        products = self.walls.products(settings.products)
        target = settings.reflections * (dim + 1)
        crossings = settings.crossings * int(np.isfinite(self.walls.cost).sum())
        yield _standing(chains)
        duration = _LONGEST
        for paths in settings.warm_up:
            # A path of which the duration is not known yet is not followed to any end.
            limit = settings.first_most * target + crossings
            for _ in self._round(chains, products, duration, limit, paths):
                yield _standing(chains)
            reflections = max(1, sum(int(chain.counts[3]) for chain in chains))
            duration = min(_LONGEST, target * sum(c.times[1] for c in chains) / reflections)
            for chain in chains:
                chain.times[1] = chain.counts[3] = chain.counts[4] = 0
        limit = settings.most * target + crossings
        rounds: list[Floats] = []
        judged = None
        for size in self.sizes(most):
            for drawn in self._round(chains, products, duration, limit, size):
                if drawn is None:
                    yield replace(judged, finished=False) if judged else _standing(chains)
                else:
                    rounds.append(drawn)
                    judged = self._judged(np.concatenate(rounds, axis=1), chains, duration)
                    yield judged

    def sizes(self, most: int) -> list[int]:
        """Return the draws of a chain in each round: after each, there are twice as many."""
        sizes: list[int] = []
        left = -(-most // len(self.starts))
        while left > 0:
            sizes.append(min(left, max(self.settings.first_round, sum(sizes))))
            left -= sizes[-1]
        return sizes

    def _round(
        self, chains: list[Chain], products: Floats, duration: float, limit: int, size: int
    ) -> Iterator[Floats | None]:
        """Let every chain follow some paths; yield None in between, their draws at the end."""
        walls, dim, settings = self.walls, len(self.starts[0]), self.settings
        out = np.empty((len(chains), size, dim))
        step = max(len(walls), 1) * (1 if len(products) else dim) + dim
        budget = max(1, int(settings.work / step))
        together = settings.jump if walls.soft and len(walls) else size
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
                        walls.normals, products, walls.cost, duration, limit, velocities[some],
                        lengths[some], chain, out[k, some], left,
                    )  # fmt: skip
                if together < size:
                    chain.z[:] = along_ellipse(walls, chain.z, self.rng)
                    left -= 1
            yield None
        yield out

    def _judged(self, z: Floats, chains: list[Chain], duration: float) -> Draws:
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


def _standing(chains: list[Chain]) -> Draws:
    """Return where chains stand that have no draws yet: a single one is worth as much."""
    return Draws(np.array([chain.z for chain in chains])[:, np.newaxis], False)


def along_ellipse(walls: Walls, z: Floats, rng: np.random.Generator) -> Floats:
    """Return a point of the ellipse through z and a new v ~ N(0, I), drawn from its density."""
    v = rng.standard_normal(len(z))
    p, q = walls.normals @ z, walls.normals @ v
    middle = np.arctan2(q, p)  # of the half of the ellipse that is on the right side
    angles = np.concatenate([middle - 0.5 * math.pi, middle + 0.5 * math.pi]) % (2 * math.pi)
    order = np.argsort(angles)
    change = np.concatenate([-walls.cost, walls.cost])[order]
    ends = np.concatenate([[0.0], angles[order], [2 * math.pi]])
    cost = np.concatenate([[0.0], np.cumsum(change)])
    mass = np.cumsum(np.diff(ends) * np.exp(cost.min() - cost))
    drawn = rng.random() * mass[-1]
    k = min(int(np.searchsorted(mass, drawn, side="right")), len(mass) - 1)
    t = ends[k] + rng.random() * (ends[k + 1] - ends[k])
    return np.asarray(math.cos(t) * z + math.sin(t) * v)


# ------------------------------------------------------------------- how far to trust them

_BLOCK = 1 << 22  # numbers whose autocorrelations are computed at a time


def mixing(series: Floats) -> tuple[Floats, Floats]:
    """Return the effective number of draws and R̂ of each quantity.

    ``series`` has shape (chains, draws, quantities). Chains are split in half, and correlations
    summed over pairs of lags as long as these are positive and fall (Geyer 1992; Vehtari et al.
    2021). A quantity that never changes counts with all its draws and R̂ = 1.
    """
    chains, draws, quantities = series.shape
    if draws < 4:
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
    moving = overall > 0
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
