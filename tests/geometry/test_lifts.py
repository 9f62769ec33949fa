"""Lifted points, the part of a plane inside a box, and the part of a line inside a window."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from maxmargin.geometry import Hyperplane, Window, cut_box, segment, window

UNIT = Window(np.zeros(2), np.ones(2), equal=True)


@pytest.mark.parametrize(
    ("w", "b", "ends"),
    [
        ((1, 0), -0.25, [[0.25, 0], [0.25, 1]]),
        ((0, -3), 1.5, [[0, 0.5], [1, 0.5]]),
        ((1, 1), -1.5, [[0.5, 1], [1, 0.5]]),
        ((1e200, -1e200), 0, [[0, 0], [1, 1]]),
    ],
)
def test_ends_on_the_border(w: Any, b: float, ends: Any) -> None:
    found = segment(Hyperplane(w, b), UNIT)
    assert found is not None
    assert_allclose(found[np.lexsort(found.T[::-1])], ends, atol=1e-12)


@pytest.mark.parametrize(("w", "b"), [((0, 0), 1), ((1, 0), -2), ((0, 1), 0.5), ((1, 1), -3)])
def test_nothing_of_no_line_or_one_outside(w: Any, b: float) -> None:
    assert segment(Hyperplane(w, b), UNIT) is None


def test_random_lines_stay_inside_and_satisfy_their_equation() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        w, b = rng.standard_normal(2), 0.7 * rng.standard_normal()
        ends = segment(Hyperplane(w, b), UNIT)
        corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) @ w + b
        assert (ends is None) == bool((corners > 0).all() or (corners < 0).all())
        if ends is not None:
            assert np.linalg.norm(ends[1] - ends[0]) > 0
            assert_allclose(ends @ w + b, 0.0, atol=1e-9)
            assert ends.min() >= -1e-12
            assert ends.max() <= 1 + 1e-12


def test_a_window_of_one_point_is_not_empty() -> None:
    seen = window(np.ones((3, 2)))
    assert (seen.high > seen.low).all()


@pytest.mark.parametrize("w", [(0, 0, 1.0), (1.0, 0.3, 0), (1.0, -2.0, 0.01), (1.0, 1.0, 1.0)])
def test_a_cut_box_is_a_convex_polygon_on_the_plane(w: Any) -> None:
    low, high = np.array([-1.0, -2.0, 0.0]), np.array([1.0, 2.0, 50.0])
    normal = np.array(w)
    b = -float(normal @ (low + high) / 2)
    corners = cut_box(normal, b, low, high)
    assert 3 <= len(corners) <= 6
    assert_allclose(corners @ normal + b, 0, atol=1e-9)
    assert (corners >= low - 1e-9).all()
    assert (corners <= high + 1e-9).all()
    sides = np.roll(corners, -1, axis=0) - corners
    turns = np.cross(sides, np.roll(sides, -1, axis=0)) @ normal
    assert (turns > 0).all() or (turns < 0).all()


def test_a_plane_beside_the_box_is_not_drawn() -> None:
    assert cut_box(np.array([0.0, 0.0, 1.0]), 9.0, np.zeros(3), np.ones(3)).shape == (0, 3)
