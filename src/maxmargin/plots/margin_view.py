"""Three ways to see the margin of a classifier in two dimensions.

- Two features: the points themselves, and f in their plane.
- A slice through d features: x = (x_i, x_j), with the others held fixed. The points are projected;
  the lines f = ±1 of a linear machine are 1/√(w_i² + w_j²) away from f = 0, which is more than
  1/‖w‖.
- Along w: the signed distance f/‖w‖ to the right, and upwards the first principal direction of
  φ(x) without its component along w. In this plane w is (‖w‖, 0) and b is 0, for any number of
  features and any kernel: the boundary is at 0, f = ±1 at ±1/‖w‖, and nothing is distorted.

With K the kernel and s = (f − b)/‖w‖, the part of φ(x) orthogonal to w has the kernel
K(x, x') − s s'.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.geometry import Hyperplane
from maxmargin.inspection.model_view import Boundary, take_rows
from maxmargin.plots.planar import column_number, columns, pad
from maxmargin.plots.style import column_names, one_line

Box = tuple[float, float, float, float]
Grid = tuple[Floats, Floats, npt.NDArray[Any]]

_SAMPLE = 300  # rows at most from which the first principal direction is computed
_FEW = 2  # features whose fixed values are listed one by one
_BLOCK = 4_000_000  # numbers in a block of rows


@dataclass(frozen=True)
class MarginView:
    """Points in the plane drawn, and f there: weights and intercept, or values on a grid."""

    points: Floats
    labels: tuple[str, str]
    box: Box
    weights: Floats | None = None
    intercept: float = 0.0
    grid: Grid | None = None
    exact: bool = True  # whether f in the plane is f of the points
    message: str = ""
    off_slice: npt.NDArray[np.bool_] | None = None  # which points are not on the slice


def as_table(X: Any) -> Any:
    """Return X as a table with a shape and rows to choose; frames stay as they are."""
    table = X.tocsr() if sp.issparse(X) else X if hasattr(X, "columns") else np.asarray(X)
    if len(table.shape) != 2 or not all(table.shape):
        raise ValueError(f"X must be a table of rows and columns, got shape {table.shape}")
    return table


def box_around(points: Floats) -> Box:
    """Return the limits of x₁ and x₂ around points, with a margin."""
    (left, bottom), (right, top) = (corner.tolist() for corner in pad(points))
    return left, right, bottom, top


# -------------------------------------------------------------------------------- along w


def view_along_w(boundary: Boundary, X: Any, rows: Any) -> MarginView:
    """Return signed distances, and the first principal direction of the rest."""
    norm = boundary.norm
    if norm is None:
        raise ValueError(
            f"view='margin' needs w, and {type(boundary.machine).__name__} is not one plane that "
            "can be read; take view='data'"
        )
    if norm == 0.0:
        raise ValueError("w is zero: it has no direction, so view='margin' shows nothing")
    drawn = take_rows(X, rows)
    distances = boundary.scores(drawn) / norm
    inner = boundary.transform(drawn)
    sample = np.unique(np.linspace(0, len(rows) - 1, _SAMPLE).astype(int))
    products = boundary.products(inner, inner[sample], rows[sample])
    points = np.column_stack([distances, _first_direction(products, distances, sample)])
    left, right, bottom, top = box_around(points)
    if boundary.has_margins:  # the margin is visible even if all points are inside it
        left, right = min(left, -1.15 / norm), max(right, 1.15 / norm)
    labels = "signed distance f/‖w‖", "largest spread beside w"
    return MarginView(points, labels, (left, right, bottom, top), np.array([norm, 0.0]))


def _first_direction(products: Floats, s: Floats, sample: Any) -> Floats:
    """Return coordinates along the first principal direction of what is orthogonal to w.

    ``products`` is K(row, sample row) and s the distance along w; a constant added to s only
    shifts what is centred here anyway.
    """
    from scipy.linalg import eigh

    rest = products - np.outer(s, s[sample])
    # Only differences from the sample's mean matter, in rows as in columns.
    centred = rest - rest[sample].mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    square = centred[sample]
    values, vectors = eigh(0.5 * (square + square.T), driver="evd")
    largest, v = values[-1], vectors[:, -1]
    if largest <= 1e-12 * max(1e-300, float(np.abs(products).max()) * len(square)):
        return np.zeros(len(products))  # there is no direction but w
    return np.asarray(centred @ (v * np.sign(v[np.argmax(np.abs(v))])) / np.sqrt(largest))


# -------------------------------------------------------------- two features, the others held


def view_two_features(
    boundary: Boundary, X: Any, rows: Any, features: Any, at: Any, resolution: int
) -> MarginView:
    """Return the plane of two features, with the others held fixed."""
    i, j = _check_features(X, features)
    drawn = take_rows(X, rows)
    points = columns(drawn, [i, j])
    box = box_around(points)
    names = _feature_names(X)
    labels = names[i], names[j]
    rest = [k for k in range(X.shape[1]) if k not in (i, j)]
    held = _held_values(X, at) if rest else np.zeros(2)
    message = _slice_message(held, rest, names, at)
    off = _off_slice(drawn, held, rest) if rest else None
    if boundary.straight:
        assert isinstance(boundary.plane, Hyperplane)
        w = boundary.plane.w.copy()
        weights = w[[i, j]]
        w[[i, j]] = 0.0
        b = float(w @ held) + boundary.plane.b
        return MarginView(points, labels, box, weights, b, None, not rest, message, off)
    grid = _grid(boundary, X, held, (i, j), box, resolution)
    return MarginView(points, labels, box, None, 0.0, grid, False, message, off)


def _check_features(X: Any, features: Any) -> tuple[int, int]:
    """Return the numbers of the two features to draw."""
    width = X.shape[1]
    if features is None:
        if width != 2:
            raise ValueError(
                f"X has {width} features, and two can be drawn: choose features=(i, j), or "
                "view='margin' for all of them"
            )
        return 0, 1
    if isinstance(features, str) or len(features) != 2:
        raise ValueError(f"features must be two of the features of X, got {features!r:.80}")
    i, j = (column_number(X, feature) for feature in features)
    if i == j:
        raise ValueError(f"features must be two different features, got {features!r:.80}")
    return i, j


def _feature_names(X: Any) -> list[str]:
    """Return the names of a frame's columns, x₁ and x₂, or the numbers that ``features`` takes."""
    if hasattr(X, "columns") or X.shape[1] == 2:
        return column_names(X, X.shape[1])
    return [f"feature {k}" for k in range(X.shape[1])]


def _held_values(X: Any, at: Any) -> Floats:
    """Return a value for each column: its median, its mean, or those given."""
    if isinstance(at, str):
        if at not in ("median", "mean"):
            raise ValueError(f"at must be 'median', 'mean' or an array of values, got {at!r}")
        if sp.issparse(X):
            from sklearn.utils.sparsefuncs import csc_median_axis_0

            found = X.mean(axis=0) if at == "mean" else csc_median_axis_0(X.tocsc())
            return np.asarray(found, dtype=np.float64).ravel()
        average = np.median if at == "median" else np.mean
        return np.asarray(average(columns(X, range(X.shape[1])), axis=0))
    values = np.asarray(at, dtype=np.float64)
    if values.shape != (X.shape[1],) or not np.isfinite(values).all():
        raise ValueError(
            f"at must hold one finite value for each of the {X.shape[1]} features (those of the "
            f"two drawn are not used), got shape {values.shape}"
        )
    return values


def _slice_message(held: Floats, rest: list[int], names: list[str], at: Any) -> str:
    if not rest:
        return ""
    if len(rest) <= _FEW:
        values = ", ".join(f"{one_line(names[k], 16)} = {held[k]:.3g}" for k in rest)
        return f"slice at {values}"
    where = f"their {at}" if isinstance(at, str) else "given values"
    return f"slice: {len(rest)} other features at {where}"


def _off_slice(X: Any, held: Floats, rest: list[int]) -> npt.NDArray[np.bool_]:
    """Return which rows differ from the fixed values in one of the features."""
    off = np.zeros(X.shape[0], dtype=bool)
    step = max(1, _BLOCK // max(1, X.shape[0]))
    for start in range(0, len(rest), step):
        block = rest[start : start + step]
        values = columns(X, block)
        rounding = 1e-9 * np.maximum(1.0, np.abs(values).max(axis=0))
        off |= (np.abs(values - held[block]) > rounding).any(axis=1)
        if off.all():
            break
    return off


def _grid(
    boundary: Boundary, X: Any, held: Floats, drawn: tuple[int, int], box: Box, resolution: int
) -> Grid:
    """Return f, or with several classes the predicted one, at the points of a grid."""
    x1, x2 = np.linspace(*box[:2], resolution), np.linspace(*box[2:], resolution)
    points = np.column_stack([axis.ravel() for axis in np.meshgrid(x1, x2)])
    evaluate = boundary.scores if boundary.binary else boundary.predict
    values = [evaluate(rows) for rows in _rows_on_slice(X, held, drawn, points)]
    return x1, x2, np.concatenate(values).reshape(resolution, resolution)


def _rows_on_slice(X: Any, held: Floats, drawn: tuple[int, int], points: Floats) -> Iterator[Any]:
    """Yield blocks of rows like X: the drawn features of the points, the others held fixed.

    Models that were fitted with column names expect rows with these names.
    """
    step = max(1, _BLOCK // len(held))
    for start in range(0, len(points), step):
        block = points[start : start + step]
        rows = np.tile(held, (len(block), 1))
        rows[:, drawn] = block
        if hasattr(X, "columns"):
            names = {"columns" if hasattr(X, "iloc") else "schema": list(X.columns)}
            yield type(X)(rows, **names)
        else:
            yield rows
