"""The points of convex hulls that are nearest to each other.

    min ‖p − q‖    p ∈ conv{xᵢ : yᵢ = +1},  q ∈ conv{xⱼ : yⱼ = −1}

and without an intercept min ‖p‖ over conv{yᵢxᵢ}. A *corral* of independent rows is kept; the point
of its affine hulls nearest to 0 is moved to, dropping rows whose weight would become negative, and
rows that lie further towards 0 join next. Every move comes nearer, so it ends after finitely many.
Wolfe (1976), "Finding the nearest point in a polytope"; here several rows may join at once, and
they are sought in a pool of the likeliest before all rows are looked at again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin.kernels.blas import one_blas_thread
from maxmargin.solvers.corral import Corral
from maxmargin.solvers.hulls import Hulls

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_JOINING = 512  # rows that join the pool after all were looked at
_POOL = 8192  # rows in the pool beyond which it is begun anew
_AT_ONCE = 4  # a quarter as many rows as the corral has may join it at once
_WORST = 0.1  # those that join violate at least this part of the worst
_ROUNDING = 1e-15


@dataclass(frozen=True)
class Nearest:
    """An iterate: convex weights of rows, their point, and how low the hulls reach towards it.

    ``lowest`` = min over all vertices v of point·v, where a vertex is a positive minus a negative
    row. The point is optimal when that is ‖point‖², and if it is positive the point itself
    separates. It is known (not −∞) when an iterate is finished: then all rows were looked at.
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


def nearest_points(hulls: Hulls, thorough: float = 0.1) -> Iterator[Nearest]:
    """Yield ever nearer points until no row lies further towards 0.

    The search within the pool goes on until violations are a ``thorough`` part of what they were.
    """
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
            joining = _largest(excess, _JOINING)
            joining = joining[excess[joining] > _ROUNDING * size * np.linalg.norm(corral.point)]
        if not len(joining):
            return
        pool = np.union1d(pool, joining) if len(pool) < _POOL else joining
        for _ in _within(
            corral, hulls.of_rows(pool), pool, thorough * float(excess[joining].max())
        ):
            yield Nearest(corral.point, -np.inf, corral.rows, corral.weights, size, finished=False)


def _first(hulls: Hulls) -> Ints:
    """Return the row of each group that faces the other most, seen along their means."""
    products = hulls.products(hulls.means().sum(axis=0))
    members = [np.flatnonzero(hulls.group == k) for k in range(len(hulls.shift))]
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
            joining = _largest(excess, max(1, len(corral.rows) // _AT_ONCE))
            corral.admit(pool[joining[excess[joining] >= _WORST * worst]])
        yield


def _largest(values: Floats, count: int) -> Ints:
    """Return the places of the largest values, the largest first; ties in order of place."""
    if count < len(values):
        places = np.argpartition(-values, count)[:count]
    else:
        places = np.arange(len(values))
    return np.asarray(places[np.lexsort((places, -values[places]))])
