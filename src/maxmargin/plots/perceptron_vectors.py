"""Vectors in the plane: checked, drawn as arrows from the origin, and the angle between two."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def angle(w: Floats, x: Floats) -> str:
    """Return the angle of two vectors in degrees; a zero vector has none."""
    lengths = np.linalg.norm(w) * np.linalg.norm(x)
    if lengths == 0:
        return "none"
    return f"{np.degrees(np.arccos(np.clip(w @ x / lengths, -1.0, 1.0))):.0f}°"


def arrow(ax: Any, vector: Floats, **how: Any) -> Any:
    """Draw a vector from the origin."""
    return ax.quiver(
        0, 0, *vector, angles="xy", scale_units="xy", scale=1, width=0.012, zorder=3, **how
    )


def arc(ax: Any, w: Floats, x: Floats, radius: float, **how: Any) -> None:
    """Draw the angle of two vectors at the origin; a zero vector has none."""
    if not (w.any() and x.any()):
        return
    start = np.arctan2(w[1], w[0])
    turn = (np.arctan2(x[1], x[0]) - start + np.pi) % (2 * np.pi) - np.pi
    way = start + np.linspace(0.0, turn, 40)
    ax.plot(radius * np.cos(way), radius * np.sin(way), linewidth=1, **how)


def plane_vector(w: npt.ArrayLike) -> Floats:
    """Return two finite weights."""
    vector = np.asarray(w, dtype=np.float64)
    if vector.shape != (2,) or not np.isfinite(vector).all():
        raise ValueError(f"w must be two finite weights, got {w!r}")
    return vector


def examples_of(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return finite examples in the plane and their labels −1 and +1."""
    examples, signs = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if examples.ndim != 2 or examples.shape[1] != 2 or not np.isfinite(examples).all():
        raise ValueError(
            f"X must be finite examples with 2 columns, got shape {examples.shape}; "
            "write one example as [[x1, x2]]"
        )
    if signs.shape != (len(examples),) or not np.isin(signs, (-1, 1)).all() or not len(signs):
        raise ValueError(f"y must be -1 or +1 for each of {len(examples)} examples, got {y!r}")
    return examples, signs
