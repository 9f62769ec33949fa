"""The points of convex hulls that are nearest to each other.

    min ‖p − q‖    p ∈ conv{xᵢ : yᵢ = +1},  q ∈ conv{xⱼ : yⱼ = −1}

and without an intercept min ‖p‖ over conv{yᵢxᵢ}. A *corral* of independent rows is kept; the point
of its affine hulls nearest to 0 is moved to, dropping rows whose weight would become negative, and
rows that lie further towards 0 join next. Every move comes nearer, so it ends after finitely many.
Wolfe (1976), "Finding the nearest point in a polytope"; here several rows may join at once, and
they are sought in a pool of the likeliest before all rows are searched again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf
from sklearn.utils.extmath import row_norms

from maxmargin._typing import Floats, Ints
from maxmargin.runtime.threads import one_blas_thread


@dataclass(frozen=True)
class CorralSettings:
    """How the corral is kept, and which rows join it."""

    gone: float = 1e-14  # a weight below this is 0
    cheap: float = 2e5  # multiplications for which QR is always worth it
    pivot: float = 1e-9  # a row this near to depending on others, in squares, is not for Cholesky
    waiting: int = 64  # rows that may wait to be dropped from a Cholesky factor
    refinements: int = 4
    sums: float = 1e-6  # how far off sums of weights may be before they are moved to
    even: float = 1e-12  # how different products with the point may be, relative to their size
    joining: int = 512  # rows that join the pool after all were searched
    pool: int = 8192  # rows in the pool beyond which a new one is begun
    thorough: float = (
        0.1  # the search in the pool ends at this part of the violations it began with
    )
    at_once: int = 4  # a quarter as many rows as the corral has may join it at once
    worst: float = 0.1  # those that join violate at least this part of the worst
    rounding: float = 1e-15


_SETTINGS = CorralSettings()


# ------------------------------------------------------------------- hulls


class Hulls:
    """Vectors z = factor·x in groups; a point is Σαz with weights of sum 1 in each group.

    The positive rows are one group and the negative ones, with factor −1, another: then a point is
    the difference of a point in either hull. Without an intercept all signed rows are one group.
    """

    def __init__(self, X: Any, factor: Floats, group: Ints, groups: int) -> None:
        self.X, self.factor, self.group, self.groups = X, factor, group, groups

    @classmethod
    def of(cls, X: Any, positive: npt.NDArray[np.bool_], intercept: bool) -> Self:
        """Return the hulls of two classes of float64 rows."""
        group = np.where(positive, 0, 1) if intercept else np.zeros(len(positive), dtype=int)
        return cls(X, np.where(positive, 1.0, -1.0), group, 1 + intercept)

    def means(self) -> Floats:
        """Return the mean of each group."""
        return self.combinations(1.0 / np.bincount(self.group)[self.group])

    def take(self, rows: Ints) -> "Hulls":
        """Return some of the rows."""
        return Hulls(self.X[rows], self.factor[rows], self.group[rows], self.groups)

    def __len__(self) -> int:
        return len(self.factor)

    @property
    def indicator(self) -> Floats:
        """A column for each group: 1 for its members."""
        return np.eye(self.groups)[self.group]

    def products(self, direction: Floats) -> Floats:
        """Return z·direction for each row."""
        return np.asarray(self.factor * (self.X @ direction))

    def combination(self, weights: Floats) -> Floats:
        """Return Σ weight·z."""
        return np.asarray(self.X.T @ (self.factor * weights))

    def combinations(self, weights: Floats) -> Floats:
        """Return Σ weight·z of each group."""
        return np.array([self.combination(weights * side) for side in self.indicator.T])

    def sums(self, values: Floats) -> Floats:
        """Return the sum of each group."""
        sums = np.bincount(self.group, values, minlength=self.groups)
        return np.asarray(sums, dtype=np.float64)

    def lowest(self, values: Floats) -> Floats:
        """Return the smallest value of each group."""
        sides = range(self.groups)
        return np.array([values.min(where=self.group == k, initial=np.inf) for k in sides])

    def gram(self, other: "Hulls") -> Floats:
        """Return all products of these vectors with others."""
        plain = self.X @ other.X.T
        plain = plain.toarray() if sp.issparse(plain) else plain
        return np.asarray(plain * self.factor[:, np.newaxis] * other.factor)

    def dense(self) -> Floats:
        """Return the vectors as rows, without columns that are 0 in all of them."""
        X = self.X[:, np.unique(self.X.indices)].toarray() if sp.issparse(self.X) else self.X
        return np.asarray(X * self.factor[:, np.newaxis])

    def squares(self) -> Floats:
        """Return ‖z‖² of each row."""
        return np.asarray(row_norms(self.X, squared=True) * self.factor**2)


# ------------------------------------------------------------------- corral
#
# Rows whose weights are free, and the point of their affine hulls nearest to 0.
#
#     min ‖Zᵀα‖²    s.t. the weights α of each group sum to 1
#
# With E the groups' indicators and A = (cE, Z), the solution is α = (AAᵀ)⁻¹Eτ for the τ that makes
# the sums 1. A triangle R with RᵀR = AAᵀ gives it: α = R⁻¹Gτ, where G = R⁻ᵀE and GᵀGτ = 1. Few
# rows have theirs by QR of Aᵀ, which gives G as a part of Q; many by a Cholesky factor of their
# products, to which rows are added as blocks. Either is followed by steps of refinement against
# the rows themselves, and where those show that products were too coarse, QR takes over.


class Corral:
    """Rows with positive weights, each group's summing to 1, whose point is nearest to 0."""

    def __init__(self, hulls: Hulls, rows: Ints) -> None:
        self._hulls = hulls
        self.rows = rows
        self.weights = np.ones(len(rows))
        self.vectors = hulls.take(rows)
        self._lift = np.sqrt(self.vectors.squares().max()) or 1.0
        self._products: Floats | None = None  # AAᵀ, if R comes from Cholesky
        self._factorize()
        self._locate()

    def _locate(self) -> None:
        """Set the point, and the product with it that the rows of a group have in common."""
        self.point = _CorralPlan(self).evened(self.vectors.combination(self.weights))
        self.levels = self.vectors.sums(self.weights * self.vectors.products(self.point))

    @property
    def size(self) -> float:
        """The largest norm of a vertex: a row of one group minus the point of the other."""
        vectors = self.vectors
        others = self.point - vectors.combinations(self.weights)
        cross = np.column_stack([vectors.products(other) for other in others])
        squares = vectors.squares() + (others * others).sum(axis=1)[vectors.group]
        squares += 2 * (cross * vectors.indicator).sum(axis=1)
        return float(np.sqrt(max(squares.max(), 0.0)))

    def admit(self, rows: Ints) -> None:
        """Take in the first row or more, and drop those whose weight would not be positive.

        Every row must lie further towards 0 than its group does; then the point comes nearer. One
        such row never depends on those in the corral, but several may.
        """
        few = self.vectors.X.shape[1] * len(self.rows) ** 2 <= _SETTINGS.cheap
        if few or not self._extend(rows):
            self._append(rows[:1])
            self._factorize()
        self._settle()
        self._locate()

    def _append(self, rows: Ints) -> None:
        self.rows = np.append(self.rows, rows)
        self.weights = np.append(self.weights, np.zeros(len(rows)))
        self.vectors = self._hulls.take(self.rows)

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        self.rows, self.weights = self.rows[kept], self.weights[kept]
        self.vectors = self._hulls.take(self.rows)
        if self._products is None:
            self._factorize()
            return
        self._products = self._products[np.ix_(kept, kept)]
        self._cholesky()

    def _cholesky(self) -> None:
        try:
            triangle = scipy.linalg.cholesky(self._products, check_finite=False)
        except scipy.linalg.LinAlgError:
            self._factorize()
            return
        squares = np.diagonal(triangle) ** 2
        if squares.min() > _SETTINGS.pivot * squares.max():
            self._adopt(np.asfortranarray(triangle))
        else:
            self._factorize()

    def _adopt(self, triangle: Floats) -> None:
        self._triangle = triangle
        self._order = np.arange(len(self.rows))
        self.half_indicator = self.half_solve(self.vectors.indicator)

    def _factorize(self) -> None:
        """Set R by QR with large columns first, so that tiny ones beside them still count."""
        self._products = None
        lifted = np.hstack([self._lift * self.vectors.indicator, self.vectors.dense()])
        by_size = np.argsort(-np.abs(lifted).max(axis=0), kind="stable")
        lifts = np.eye(lifted.shape[1])[: self.vectors.groups, by_size]
        part, triangle, self._order = scipy.linalg.qr_multiply(
            lifted[:, by_size].T, lifts, mode="right", pivoting=True
        )
        m, rank = len(self.rows), len(triangle)
        self._triangle = np.zeros((m, m), order="F")
        self._triangle[:rank] = triangle
        self.half_indicator = np.zeros((m, len(lifts)))
        self.half_indicator[:rank] = part.T / self._lift
        # Rows that depend on others leave 0 on the diagonal: any huge weights will do, as then one
        # of the rows is dropped at the first step towards them.
        diagonal = np.einsum("ii->i", self._triangle)
        least = 1e-30 * max(float(np.abs(diagonal).max()), 1e-270)
        diagonal[np.abs(diagonal) < least] = least

    def _extend(self, rows: Ints) -> bool:
        """Add to a Cholesky factor the rows that do not depend on others; False if none does."""
        if self._products is None:
            self._products = self._lifted_products(self.vectors, self.vectors)
            self._cholesky()
            if self._products is None:
                return False
        new = self._hulls.take(rows)
        cross = self._lifted_products(self.vectors, new)
        own = self._lifted_products(new, new)
        above = dtrsm(1.0, self._triangle, cross, trans_a=1)
        rest, pivots, rank, _ = dpstrf(
            own - above.T @ above, tol=_SETTINGS.pivot * own.diagonal().max()
        )
        if rank == 0:
            return False
        taken = pivots[:rank] - 1
        m = len(self.rows)
        triangle = np.zeros((m + rank, m + rank), order="F")
        triangle[:m, :m] = self._triangle
        triangle[:m, m:] = above[:, taken]
        triangle[m:, m:] = np.triu(rest[:rank, :rank])
        self._products = np.block([[self._products, cross[:, taken]],
                                   [cross[:, taken].T, own[np.ix_(taken, taken)]]])  # fmt: skip
        self._append(rows[taken])
        self._adopt(triangle)
        return True

    def _lifted_products(self, some: Hulls, others: Hulls) -> Floats:
        together = some.group[:, np.newaxis] == others.group
        return np.asarray(some.gram(others) + self._lift**2 * together)

    def _settle(self) -> None:
        """Move to the nearest point, dropping rows whose weight falls to 0 on the way."""
        plan = _CorralPlan(self)
        while True:
            target, sound = plan.target()
            if not sound and self._products is not None:
                self._products = None
                self._keep(plan.live)
                plan = _CorralPlan(self)
                continue
            if not plan.adds_up(target):  # rounding rules: stay where we are
                self._keep(self.weights > 0)
                return
            falling = plan.live & (target <= _SETTINGS.gone)
            if not falling.any():
                break
            gone = self._approach(target, falling)
            if self._products is None or len(plan.waiting) + gone.sum() > _SETTINGS.waiting:
                self._keep(plan.live & ~gone)
                plan = _CorralPlan(self)
            else:
                plan.drop(np.flatnonzero(gone))
        self.weights = target
        if len(plan.waiting):
            self._keep(plan.live)

    def _approach(self, target: Floats, falling: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Move weights towards their target until one is 0; return which are."""
        fall = np.maximum(self.weights - target, 1e-300)
        room = float((self.weights[falling] / fall[falling]).min())
        self.weights = self.weights + min(1.0, room) * (target - self.weights)
        gone = falling & (self.weights <= _SETTINGS.gone)
        if not gone.any():
            gone[np.flatnonzero(falling)[self.weights[falling].argmin()]] = True
        self.weights[gone] = 0.0
        self.weights = np.maximum(self.weights, 0.0)
        self.weights /= self.vectors.sums(self.weights)[self.vectors.group]
        return gone

    def half_solve(self, columns: Floats) -> Floats:
        """Return R⁻ᵀ·columns."""
        return np.asarray(dtrsm(1.0, self._triangle, columns[self._order], trans_a=1))

    def other_half(self, columns: Floats) -> Floats:
        """Return R⁻¹·columns."""
        solved = np.empty(columns.shape)
        solved[self._order] = dtrsm(1.0, self._triangle, columns)
        return solved


class _CorralPlan:
    """The weights to move to: sums of 1 in each group, and 0 for rows that wait to be dropped."""

    def __init__(self, corral: Corral) -> None:
        self._corral = corral
        self._indicator = corral.vectors.indicator
        self._halves = corral.half_indicator  # R⁻ᵀ·(what is constrained)
        self.waiting: Ints = np.zeros(0, dtype=int)
        self.live = np.ones(len(corral.rows), dtype=bool)

    def drop(self, rows: Ints) -> None:
        """Keep the weights of these at 0."""
        units = np.zeros((len(self.live), len(rows)))
        units[rows, np.arange(len(rows))] = 1.0
        self._halves = np.hstack([self._halves, self._corral.half_solve(units)])
        self.waiting = np.append(self.waiting, rows)
        self.live[rows] = False

    def target(self) -> tuple[Floats, bool]:
        """Return the weights of the nearest point, and whether they are accurate enough.

        They need not be accurate if some are negative anyway, as long as the way there is downhill.
        """
        weights = self._constrained(np.zeros(len(self.live)), self._sums_wanted())
        norms = [np.linalg.norm(self._corral.vectors.combination(each))
                 for each in (weights, self._corral.weights)]  # fmt: skip
        if (
            norms[0] < norms[1]
            and (weights[self.live] <= _SETTINGS.gone).any()
            and self.adds_up(weights)
        ):
            return weights, True
        return self._refined(weights)

    def _refined(self, weights: Floats) -> tuple[Floats, bool]:
        """Return weights for which the rows' own products with the point are even, and if they are.

        At the nearest point all rows of a group have the same product with it.
        """
        vectors = self._corral.vectors
        size = np.sqrt(vectors.squares().max())
        before = np.inf
        for _ in range(_SETTINGS.refinements):
            point = vectors.combination(weights)
            uneven = self._uneven(vectors.products(point))
            worst = float(np.abs(uneven).max())
            rounding = _SETTINGS.even * size * (float(np.linalg.norm(point)) + 1e-3 * size)
            if worst <= 1e-3 * rounding or worst > 0.5 * before:
                break
            before = worst
            missing = self._sums_wanted() - self._sums(weights)
            weights = weights + self._constrained(-uneven, missing)
        return weights, worst <= rounding and self.adds_up(weights)

    def adds_up(self, weights: Floats) -> bool:
        """Return whether the sums are what they must be, as they are unless rounding rules."""
        return bool(np.abs(self._sums(weights) - self._sums_wanted()).max() <= _SETTINGS.sums)

    def evened(self, point: Floats) -> Floats:
        """Return the point with its rounding removed, as far as the rows' products with it show.

        A sum of large rows that makes a small point has lost digits that no weights can restore.
        """
        vectors = self._corral.vectors
        before = np.inf
        for _ in range(_SETTINGS.refinements):
            uneven = self._uneven(vectors.products(point))
            worst = float(np.abs(uneven).max())
            if worst <= 1e-15 * float(point @ point) or worst > 0.5 * before:
                break
            before, best = worst, point
            missing = np.zeros(self._indicator.shape[1])
            point = point + vectors.combination(self._constrained(-uneven, missing))
        return point if worst <= before else best

    def _uneven(self, products: Floats) -> Floats:
        group = self._corral.vectors.group
        live = self.live.astype(np.float64)
        counts = np.maximum(self._corral.vectors.sums(live), 1.0)
        means = self._corral.vectors.sums(products * live) / counts
        return np.asarray((products - means[group]) * live)

    def _sums_wanted(self) -> Floats:
        return np.append(np.ones(self._indicator.shape[1]), np.zeros(len(self.waiting)))

    def _sums(self, weights: Any) -> Any:
        return np.concatenate([self._indicator.T @ weights, weights[self.waiting]])

    def _constrained(self, right: Floats, sums: Floats) -> Floats:
        """Return the α with AAᵀα = right + anything constant in a group, and the sums wanted."""
        alone = self._corral.half_solve(right[:, np.newaxis])
        missing = sums - (self._halves.T @ alone)[:, 0]
        shares = np.linalg.lstsq(self._halves.T @ self._halves, missing, rcond=None)[0]
        weights = self._corral.other_half(alone + self._halves @ shares[:, np.newaxis])[:, 0]
        weights[self.waiting] = 0.0
        return weights


# ------------------------------------------------------------------- the search over all rows


@dataclass(frozen=True)
class Nearest:
    """An iterate: convex weights of rows, their point, and how low the hulls reach towards it.

    ``lowest`` = min over all vertices v of point·v, where a vertex is a positive minus a negative
    row. The point is optimal when that is ‖point‖², and if it is positive the point itself
    separates. It is known (not −∞) when an iterate is finished: then all rows were searched.
    """

    point: Floats
    lowest: float
    rows: Ints
    weights: Floats
    size: float
    finished: bool = True

    @property
    def squared_norm(self) -> float:
        """‖point‖²."""
        return float(self.point @ self.point)

    def all_weights(self, n: int) -> Floats:
        """Return a weight for each of n rows, 0 for those not in the corral."""
        return np.bincount(self.rows, self.weights, minlength=n).astype(np.float64, copy=False)

    @property
    def relative_gap(self) -> float:
        """The relative duality gap of the hard margin: 1 − (lowest/‖point‖²)²."""
        if self.lowest <= 0:
            return np.inf
        return 1.0 - (self.lowest / self.squared_norm) ** 2

    def __str__(self) -> str:
        return (
            f"distance {np.sqrt(self.squared_norm):.3g}, relative gap {self.relative_gap:.2g}, "
            f"{len(self.weights)} rows"
        )


def nearest_points(hulls: Hulls) -> Iterator[Nearest]:
    """Yield ever nearer points until no row lies further towards 0."""
    with one_blas_thread():
        corral = Corral(hulls, _first(hulls))
    pool: Ints = np.zeros(0, dtype=int)
    while True:
        with one_blas_thread():
            products = hulls.products(corral.point)
            lowest = float(hulls.lowest(products).sum())
            size = corral.size
        yield Nearest(corral.point, lowest, corral.rows, corral.weights, size)
        with one_blas_thread():
            excess = corral.levels[hulls.group] - products
            excess[corral.rows] = 0.0  # only rounding keeps theirs from being 0
            joining = _largest(excess, _SETTINGS.joining)
            joining = joining[
                excess[joining] > _SETTINGS.rounding * size * np.linalg.norm(corral.point)
            ]
        if not len(joining):
            return
        pool = np.union1d(pool, joining) if len(pool) < _SETTINGS.pool else joining
        enough = _SETTINGS.thorough * float(excess[joining].max())
        for _ in _within(corral, hulls.take(pool), pool, enough):
            yield Nearest(corral.point, -np.inf, corral.rows, corral.weights, size, finished=False)


def _first(hulls: Hulls) -> Ints:
    """Return the row of each group that faces the other most, seen along their means."""
    products = hulls.products(hulls.means().sum(axis=0))
    members = [np.flatnonzero(hulls.group == k) for k in range(hulls.groups)]
    return np.array([rows[products[rows].argmin()] for rows in members])


def _within(corral: Corral, pooled: Hulls, pool: Ints, enough: float) -> Iterator[None]:
    """Let rows of the pool join the corral until none violates by more than enough."""
    before = np.inf
    while True:
        with one_blas_thread():
            excess = corral.levels[pooled.group] - pooled.products(corral.point)
            excess[np.isin(pool, corral.rows)] = 0.0
            worst = float(excess.max())
            now = float(corral.point @ corral.point)
            if worst <= enough or not now < before:
                return  # also when rounding keeps the point from coming nearer
            before = now
            joining = _largest(excess, max(1, len(corral.rows) // _SETTINGS.at_once))
            corral.admit(pool[joining[excess[joining] >= _SETTINGS.worst * worst]])
        yield


def _largest(values: Floats, count: int) -> Ints:
    """Return the places of the largest values, the largest first; ties in order of place."""
    if count < len(values):
        places = np.argpartition(-values, count)[:count]
    else:
        places = np.arange(len(values))
    return np.asarray(places[np.lexsort((places, -values[places]))])
