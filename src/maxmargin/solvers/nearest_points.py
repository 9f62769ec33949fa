"""The point nearest to 0 in the hull of differences: how far apart two convex hulls are.

    min ‖p − q‖    p ∈ conv{xᵢ : yᵢ = +1},  q ∈ conv{xⱼ : yⱼ = −1}

and without an intercept min ‖p‖ over conv{yᵢxᵢ}. A *corral* of affinely independent vertices is
kept; its point nearest to 0 in the affine sense is moved to, dropping vertices whose weight would
become negative, and the vertex that lies furthest towards 0 joins next. It ends after finitely many
steps. Wolfe (1976), "Finding the nearest point in a polytope".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_GONE = 1e-14  # a weight below this is 0


@dataclass(frozen=True)
class Nearest:
    """An iterate: convex weights of vertices, their point, and how low the hull reaches towards it.

    ``lowest`` = min over all vertices v of point·v. The point is optimal when that is ‖point‖²,
    and if it is positive the point itself separates. ``rows`` are (positive, negative) pairs, or
    single rows without an intercept.
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

    def __str__(self) -> str:
        return f"distance {np.sqrt(self.squared_norm):.3g}, {len(self.weights)} vertices"


class Vertices:
    """The differences of positive and negative rows (or the signed rows), never listed."""

    def __init__(self, X: Any, positive: npt.NDArray[np.bool_], intercept: bool) -> None:
        self._X = X
        self._sign = np.where(positive, 1.0, -1.0)
        self._groups = [np.flatnonzero(positive), np.flatnonzero(~positive)] if intercept else None

    def first(self) -> Ints:
        """Return some vertex, by its rows."""
        return np.array([group[0] for group in self._groups] if self._groups else [0])

    def lowest(self, direction: Floats) -> tuple[Ints, float]:
        """Return the vertex with the smallest product with a direction, and that product."""
        leads = self._sign * np.asarray(self._X @ direction)
        if self._groups is None:
            row = int(leads.argmin())
            return np.array([row]), float(leads[row])
        rows = np.array([group[leads[group].argmin()] for group in self._groups])
        return rows, float(leads[rows].sum())

    def vector(self, rows: Ints) -> Floats:
        """Return a vertex as a vector."""
        picked = self._X[rows]
        picked = picked.toarray() if sp.issparse(picked) else picked
        return np.asarray(self._sign[rows] @ picked)


def nearest_points(vertices: Vertices) -> Iterator[Nearest]:
    """Yield ever nearer points until no vertex lies further towards 0."""
    rows = vertices.first()[np.newaxis]
    corral = vertices.vector(rows[0])[np.newaxis]
    weights = np.ones(1)
    while True:
        point = weights @ corral
        joining, lowest = vertices.lowest(point)
        size = float(np.sqrt(np.einsum("ij,ij->i", corral, corral).max()))
        yield Nearest(point, lowest, rows, weights, size)
        if (rows == joining).all(axis=1).any():
            return  # rounding: the best vertex is in the corral already
        rows = np.vstack([rows, joining])
        corral = np.vstack([corral, vertices.vector(joining)])
        weights = np.append(weights, 0.0)
        kept, weights = _settled(corral, weights)
        rows, corral = rows[kept], corral[kept]


def _settled(corral: Floats, weights: Floats) -> tuple[Ints, Floats]:
    """Return which vertices stay, and their weights, all positive."""
    kept = np.arange(len(weights))
    while True:
        target = _affine_weights(corral[kept])
        if (target > _GONE).all():
            return kept, target
        falling = target <= _GONE
        room = weights[falling] / np.maximum(weights[falling] - target[falling], 1e-300)
        weights = weights + min(1.0, float(room.min())) * (target - weights)
        stays = weights > _GONE
        if stays.all():
            stays[np.argmin(weights)] = False
        kept, weights = kept[stays], weights[stays] / weights[stays].sum()


def _affine_weights(corral: Floats) -> Floats:
    """Return the weights, of sum 1 but any sign, whose point is nearest to 0."""
    lifted = np.vstack([np.ones(len(corral)), corral.T])
    triangle = scipy.linalg.qr(lifted, mode="r", check_finite=False)[0][: len(corral)]
    diagonal = np.abs(np.diag(triangle))
    if len(triangle) < len(corral) or diagonal.min() <= 1e-14 * diagonal.max():
        solution = np.linalg.lstsq(lifted.T @ lifted, np.ones(len(corral)), rcond=None)[0]
    else:
        half = scipy.linalg.solve_triangular(triangle, np.ones(len(corral)), trans="T")
        solution = scipy.linalg.solve_triangular(triangle, half)
    return np.asarray(solution / solution.sum())
