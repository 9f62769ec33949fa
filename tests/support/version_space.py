"""Exact answers about all separators of a few rows: arcs of the circle, polygons on the sphere."""

from typing import Any

import numpy as np

from maxmargin._typing import Floats


def arc(walls: Floats, cost: Any, x: Floats) -> tuple[float, Floats]:
    """Return P(w·x > 0), and E[w/‖w‖], for two weights.

    The angle of w has a density that is constant between the walls: exp(−Σ cost over the rows a of
    ``walls`` with a·w < 0).
    """
    normals = np.vstack([walls, x])
    angles = np.arctan2(normals[:, 1], normals[:, 0])
    ends = np.sort(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]) % (2 * np.pi))
    ends = np.append(ends, ends[0] + 2 * np.pi)
    middle = 0.5 * (ends[1:] + ends[:-1])
    w = np.column_stack([np.cos(middle), np.sin(middle)])
    wrong = walls @ w.T < 0
    costs = np.broadcast_to(cost, len(walls))[:, np.newaxis]
    density = np.exp(-np.where(wrong, costs, 0.0).sum(axis=0))
    mass = density * np.diff(ends)
    turned = np.column_stack([np.diff(np.sin(ends)), -np.diff(np.cos(ends))])
    return float(mass[w @ x > 0].sum() / mass.sum()), density @ turned / mass.sum()


def _corners(walls: Floats) -> list[tuple[int, int, Floats]]:
    """Return the corners of {u on the sphere: walls @ u ≥ 0} and the two walls that meet there."""
    i, j = np.triu_indices(len(walls), 1)
    corners = np.cross(walls[i], walls[j])
    corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    products = corners @ walls.T
    products[np.arange(len(i)), i] = products[np.arange(len(i)), j] = 0.0  # it is on both
    found = []
    for sign in (1.0, -1.0):
        for k in np.flatnonzero((sign * products >= 0).all(axis=1)):
            found.append((int(i[k]), int(j[k]), sign * corners[k]))
    return found


def polygon(walls: Floats) -> float:
    """Return the area of the spherical polygon between walls (Girard): 2π minus its turns."""
    walls = walls / np.linalg.norm(walls, axis=1, keepdims=True)
    corners = _corners(walls)
    if not corners:
        return 0.0
    return float(2 * np.pi - sum(_angle(walls[i], walls[j]) for i, j, _ in corners))


def polygon_centre(walls: Floats) -> Floats:
    """Return the direction of ∫ u over the polygon: Σ length of an edge × normal of its wall."""
    walls = walls / np.linalg.norm(walls, axis=1, keepdims=True)
    corners = _corners(walls)
    total = np.zeros(3)
    for i in range(len(walls)):
        ends = [corner for *pair, corner in corners if i in pair]
        if ends:
            total += _angle(*ends) * walls[i]
    return np.asarray(total / np.linalg.norm(total))


def _angle(a: Floats, b: Floats) -> float:
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b))


def two_rows(K: Floats) -> float:
    """Return P(f(x) > 0) given that f > 0 at two rows, by the kernel values of both and of x.

    With labels: K is that of y φ. The probability that three normal variables are all positive is
    ⅛ + Σ asin ρ/4π.
    """
    unit = 1 / np.sqrt(K.diagonal())
    rho = np.clip(K * unit * unit[:, np.newaxis], -1, 1)
    three = 1 / 8 + (np.arcsin(rho[0, 1]) + np.arcsin(rho[0, 2]) + np.arcsin(rho[1, 2])) / (
        4 * np.pi
    )
    return float(three / (1 / 4 + np.arcsin(rho[0, 1]) / (2 * np.pi)))
