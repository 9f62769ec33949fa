"""Three ways to see a machine's margin on paper.

- Two features: the points themselves, and f over the paper.
- A slice of d features: x = (x_i, x_j) and the rest held. The points are projected; f = ±1 of a
  linear machine is 1/√(w_i² + w_j²) away from f = 0 there, which is further than 1/‖w‖.
- Along w: the signed distance f/‖w‖ to the right, and upwards the first principal direction of
  φ(x) without its part along w. On this paper w is (‖w‖, 0) and b is 0, for every number of
  features and every kernel: the boundary is at 0, f = ±1 at ±1/‖w‖, and nothing is distorted.

With K the kernel and s = (f − b)/‖w‖, the part of φ(x) without w has the kernel K(x, x') − s s'.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.plots.margin_drawing import Box, Grid
from maxmargin.plots.margin_machines import Machine
from maxmargin.plots.margin_rows import columns, middle, names, off_slice, on_slice, taken
from maxmargin.plots.style import one_line

Floats = npt.NDArray[np.float64]

_SAMPLE = 300  # rows at most from which the first principal direction is taken
_FEW = 2  # features whose values are said one by one


@dataclass(frozen=True)
class View:
    """Points on paper, what f is there (weights and intercept, or a grid), and words for it."""

    points: Floats
    labels: tuple[str, str]
    box: Box
    weights: Floats | None = None
    intercept: float = 0.0
    grid: Grid | None = None
    true: bool = True  # whether f of the paper is f of the points
    words: str = ""
    off: npt.NDArray[np.bool_] | None = None  # points that are not on the slice


def two_features(
    machine: Machine, X: Any, rows: Any, features: Any, at: Any, resolution: int
) -> View:
    """Return the plane of two features, the others held."""
    i, j = _chosen(X, features)
    points = columns(taken(X, rows), [i, j])
    box = padded(points)
    all_names = names(X)
    labels = all_names[i], all_names[j]
    rest = [k for k in range(X.shape[1]) if k not in (i, j)]
    held = middle(X, at) if rest else np.zeros(2)
    words = _held_words(held, rest, all_names, at)
    off = off_slice(taken(X, rows), held, rest) if rest else None
    if machine.straight:
        assert machine.plane is not None
        w = machine.plane.w.copy()  # type: ignore[union-attr]
        drawn = w[[i, j]]
        w[[i, j]] = 0.0
        b = float(w @ held) + machine.plane.b
        return View(points, labels, box, drawn, b, None, not rest, words, off)
    grid = _grid(machine, X, held, (i, j), box, resolution)
    return View(points, labels, box, None, 0.0, grid, False, words, off)


def along_w(machine: Machine, X: Any, rows: Any) -> View:
    """Return signed distances, and the first principal direction of the rest."""
    norm = machine.norm
    if norm == 0.0:
        raise ValueError("w is zero: it has no direction, so view='margin' shows nothing")
    drawn = taken(X, rows)
    distances = machine.scores(drawn) / norm
    inner = machine.inner(drawn)
    sample = np.unique(np.linspace(0, len(rows) - 1, _SAMPLE).astype(int))
    products = machine.products(inner, inner[sample], rows[sample])
    points = np.column_stack([distances, _first_direction(products, distances, sample)])
    left, right, bottom, top = padded(points)
    if len(machine.levels) > 1:  # the margin is seen even if all points are inside it
        left, right = min(left, -1.15 / norm), max(right, 1.15 / norm)
    labels = "signed distance f/‖w‖", "largest spread beside w"
    return View(points, labels, (left, right, bottom, top), np.array([norm, 0.0]))


def _first_direction(products: Floats, distances: Floats, sample: Any) -> Floats:
    """Return coordinates along the first principal direction of what is orthogonal to w.

    ``products`` is K(row, sample row). A constant in s only shifts what is centred here anyway.
    """
    from scipy.linalg import eigh

    s = distances
    rest = products - np.outer(s, s[sample])
    means = rest[sample].mean(axis=0)
    # Only differences from the sample's mean matter, in rows as in columns.
    centred = rest - means
    centred -= centred.mean(axis=1, keepdims=True)
    square = centred[sample]
    values, vectors = eigh(0.5 * (square + square.T), driver="evd")
    values, vectors = values[-1:], vectors[:, -1:]
    if values[0] <= 1e-12 * max(1e-300, float(np.abs(products).max()) * len(square)):
        return np.zeros(len(products))  # w is the only direction there is
    a = vectors[:, 0] * np.sign(vectors[np.argmax(np.abs(vectors[:, 0])), 0])
    return np.asarray(centred @ a / np.sqrt(values[0]))


def padded(points: Floats, part: float = 0.08) -> Box:
    """Return the limits of a picture of these points, with some room around them."""
    low, high = points.min(axis=0), points.max(axis=0)
    # Where all are the same, the room must not be lost in a large value's rounding.
    room = part * np.where(high > low, high - low, np.maximum(1.0, 1e-9 * np.abs(high)))
    (left, bottom), (right, top) = (low - room).tolist(), (high + room).tolist()
    return left, right, bottom, top


def _grid(
    machine: Machine, X: Any, held: Floats, drawn: tuple[int, int], box: Box, resolution: int
) -> Grid:
    """Return f, or with several classes the one predicted, over the paper."""
    x1, x2 = np.linspace(*box[:2], resolution), np.linspace(*box[2:], resolution)
    paper = np.column_stack([axis.ravel() for axis in np.meshgrid(x1, x2)])
    answer = machine.scores if machine.binary else machine.regions
    values = [answer(rows) for rows in on_slice(X, held, drawn, paper)]
    return x1, x2, np.concatenate(values).reshape(resolution, resolution)


def _chosen(X: Any, features: Any) -> tuple[int, int]:
    """Return the numbers of the two features to draw."""
    width = X.shape[1]
    if features is None:
        if width != 2:
            raise ValueError(
                f"X has {width} features, and paper has two: choose features=(i, j), or "
                "view='margin' for all of them"
            )
        return 0, 1
    if isinstance(features, str) or len(features) != 2:
        raise ValueError(f"features must be two of the features of X, got {features!r:.80}")
    i, j = (_place(X, feature) for feature in features)
    if i == j:
        raise ValueError(f"features must be two different features, got {features!r:.80}")
    return i, j


def _place(X: Any, feature: Any) -> int:
    known: list[Any] = list(X.columns) if hasattr(X, "columns") else []
    if feature in known:
        return known.index(feature)
    if isinstance(feature, int | np.integer) and -X.shape[1] <= feature < X.shape[1]:
        return int(feature % X.shape[1])
    kind = "the names of its columns or " if known else ""
    raise ValueError(
        f"features: {feature!r:.60} is not in X; take {kind}numbers from 0 to {X.shape[1] - 1}"
    )


def _held_words(held: Floats, rest: list[int], all_names: list[str], at: Any) -> str:
    if not rest:
        return ""
    if len(rest) <= _FEW:
        values = ", ".join(f"{one_line(all_names[k], 16)} = {held[k]:.3g}" for k in rest)
        return f"slice at {values}"
    where = f"their {at}" if isinstance(at, str) else "given values"
    return f"slice: {len(rest)} other features at {where}"
