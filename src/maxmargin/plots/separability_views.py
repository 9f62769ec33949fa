"""Answers about separability in the plane that is drawn."""

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.geometry import Hyperplane
from maxmargin.geometry.inputs import is_sparse

Floats = npt.NDArray[np.float64]

VIEW = ("distance from the plane", "direction within the plane")


def rows_of(X: Any, y: Any, pair: Any) -> tuple[Any, Any]:
    """Return the rows of two classes."""
    chosen = [label for label in np.unique(y).tolist() if label in tuple(pair)]
    if len(chosen) != 2 or len(tuple(pair)) != 2:
        raise ValueError(f"pair={pair!r} is not valid: name two of {np.unique(y).tolist()}.")
    kept = np.isin(y, chosen)
    return X[kept], y[kept]


def answer_in_the_plane(X: Any, y: Any, names: list[str], found: Any) -> dict[str, Any]:
    """Return what the display holds: the answer, in the plane that is drawn."""
    d = X.shape[1]
    held = {"y": y, "classes": found.classes, "separable": found.separable}
    if d > 2 and not found.separable:
        raise ValueError(
            f"X has {d} columns, and no plane separates the classes: a picture of their hulls "
            "needs 1 or 2 columns, as projections of hulls may meet where the hulls do not."
        )
    if d > 2:
        seen = _edge_on(X, found.witness)
        edge_on = Hyperplane([1.0, 0.0], 0.0)
        return {**held, "points": seen, "plane": edge_on, "margin": found.margin, "names": VIEW}
    dense = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
    flat = np.zeros((len(dense), 2 - d))  # one column is drawn along a line
    held |= {"points": np.hstack([dense, flat]), "names": (*names, " ")[:2]}
    if found.separable:
        plane = Hyperplane(np.append(found.witness.w, flat[0]), found.witness.b)
        return {**held, "plane": plane, "margin": found.margin}
    if found.separable is None:
        return held
    witness = found.witness
    common = np.append(witness.point, flat[0])
    return {**held, "rows": witness.rows, "weights": witness.weights, "common": common}


def _edge_on(X: Any, plane: Hyperplane) -> Floats:
    """Return rows as seen along a plane: signed distances, and the widest direction within it.

    The two directions are orthogonal unit vectors, so distances from the plane are true, and no
    others are larger than they are.
    """
    u = plane.normal
    rng = np.random.default_rng(0)
    v = rng.standard_normal(len(u))
    middle = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    # Power iteration on the rows' covariance within the plane; any v would do, the widest is best.
    for _ in range(30):
        v -= (v @ u) * u
        v /= np.linalg.norm(v)
        along = X @ v - middle @ v
        v = np.asarray(X.T @ along, dtype=np.float64) - middle * along.sum()
        if not v.any():
            break
    return np.column_stack([plane.signed_distance(X), along])
