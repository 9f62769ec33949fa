"""Shapes in the plane that no line separates: rings, corners, moons and spirals."""

import math

import numpy as np

from maxmargin.datasets.arguments import (
    Labels,
    Points,
    Seed,
    check_count,
    check_range,
    draw_labels,
)
from maxmargin.validation.data import generator


def circles(
    n_samples: int = 200,
    radii: tuple[float, float] = (1.0, 2.0),
    noise: float = 0.1,
    *,
    center: tuple[float, float] = (0.0, 0.0),
    balance: float = 0.5,
    random_state: Seed = 0,
) -> tuple[Points, Labels]:
    """Draw two rings around one centre: no line separates them, the distance to the centre does.

    The distance separates them whenever ``noise`` is below half the difference of the radii.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 2.
    radii : pair of float, default (1, 2)
        Radius of the positive ring, then of the negative one; at least 0.
    noise : float, default 0.1
        Greatest distance of a point from its ring.
    center : pair of float, default (0, 0)
        The common centre.
    balance : float, default 0.5
        Share of positive rows.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = circles(100, radii=(1, 2), noise=0.1)
    >>> bool((((X**2).sum(axis=1) < 1.5**2) == (y > 0)).all())
    True
    """
    if len(radii) != 2:
        raise ValueError(f"radii must be two numbers (positive ring, negative ring), got {radii!r}")
    for radius in radii:
        check_range("radii", radius, 0.0)
    middle = np.asarray(center, dtype=np.float64)
    if middle.shape != (2,) or not np.isfinite(middle).all():
        raise ValueError(f"center must be a finite point of the plane, got {center!r}")
    rng = generator(random_state)
    y = draw_labels(n_samples, balance, rng)
    ring = _on_circle(rng.uniform(0.0, 2.0 * math.pi, len(y)))
    ring *= np.where(y > 0, *radii)[:, None]
    return middle + ring + _in_disc(len(y), noise, rng), y


def xor(
    n_samples: int = 200, noise: float = 0.4, *, random_state: Seed = 0
) -> tuple[Points, Labels]:
    """Draw clouds at the four corners (±1, ±1), positive where the signs differ.

    No line separates them while ``noise`` < 1/√2: the segments that join equal corners must cross.
    The product x₁x₂ separates them while ``noise`` < 1.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 4; the corners share them equally.
    noise : float, default 0.4
        Greatest distance of a point from its corner.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = xor(200)
    >>> bool(((X[:, 0] * X[:, 1] < 0) == (y > 0)).all())
    True
    """
    rng = generator(random_state)
    corner = rng.permutation(np.arange(check_count("n_samples", n_samples, 4)) % 4)
    corners = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    y = np.where(corner % 2 == 1, 1, -1).astype(np.int64)
    return corners[corner] + _in_disc(len(y), noise, rng), y


def moons(
    n_samples: int = 200, noise: float = 0.1, *, balance: float = 0.5, random_state: Seed = 0
) -> tuple[Points, Labels]:
    """Draw two interleaved half circles of radius 1, half a unit apart.

    The positive moon opens downwards around (0, 0), the negative one upwards around (1, ½); the
    classes cannot touch while ``noise`` < ¼.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 2.
    noise : float, default 0.1
        Greatest distance of a point from its half circle.
    balance : float, default 0.5
        Share of positive rows.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = moons(100, noise=0)
    >>> bool(np.allclose(np.linalg.norm(X[y > 0], axis=1), 1))
    True
    """
    rng = generator(random_state)
    y = draw_labels(n_samples, balance, rng)
    arc = _on_circle(rng.uniform(0.0, math.pi, len(y)))
    arc[y < 0] = [1.0, 0.5] - arc[y < 0]
    return arc + _in_disc(len(y), noise, rng), y


def spirals(
    n_samples: int = 200,
    turns: float = 1.5,
    noise: float = 0.1,
    *,
    balance: float = 0.5,
    random_state: Seed = 0,
) -> tuple[Points, Labels]:
    """Draw two spiral arms, each the other turned by half a circle.

    An arm starts at radius ½ and grows by 2 a turn; along a ray the arms alternate at distance 1,
    and the classes cannot touch while ``noise`` < 0.4.

    Parameters
    ----------
    n_samples : int, default 200
        Rows in total, at least 2.
    turns : float, default 1.5
        Turns of each arm, above 0.
    noise : float, default 0.1
        Greatest distance of a point from its arm.
    balance : float, default 0.5
        Share of positive rows.
    random_state : int, Generator, RandomState or None, default 0
        Source of randomness.

    Examples
    --------
    >>> X, y = spirals(100, turns=2, noise=0)
    >>> bool(np.linalg.norm(X, axis=1).max() <= 4.5)
    True
    """
    check_range("turns", turns, 0.0, above=True)
    rng = generator(random_state)
    y = draw_labels(n_samples, balance, rng)
    inner, outer = 0.5, 0.5 + 2.0 * turns
    # Uniform in r², so that the points are spread evenly along the arm, whose length grows as r².
    radius = np.sqrt(rng.uniform(inner**2, outer**2, len(y)))
    arm = _on_circle(math.pi * radius) * (y * radius)[:, None]
    return arm + _in_disc(len(y), noise, rng), y


def _on_circle(angle: Points) -> Points:
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _in_disc(n: int, radius: float, rng: np.random.Generator) -> Points:
    check_range("noise", radius, 0.0)
    length = radius * np.sqrt(rng.uniform(size=n))
    return _on_circle(rng.uniform(0.0, 2.0 * math.pi, n)) * length[:, None]
