"""Lines are where they are said to be: vertices on level sets, regions on both sides of borders."""

from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.studio.contours import Grid, refine, trace_borders, trace_levels
from maxmargin.studio.scene import View

GRID = Grid.of(View(-2.0, 2.0, -1.5, 1.5), 81, 61)
CELL = 0.05


def traced(function: Any, levels: list[float]) -> list[list[Floats]]:
    return trace_levels(GRID, function(GRID.points()).reshape(GRID.shape), levels)


def radius(points: Floats) -> Floats:
    return np.asarray(np.hypot(*points.T))


def test_a_circle_is_one_closed_line_on_its_level() -> None:
    for level, lines in zip([1.0, 0.5, 1.3], traced(radius, [1.0, 0.5, 1.3]), strict=True):
        (line,) = lines
        np.testing.assert_array_equal(line[0], line[-1])
        np.testing.assert_allclose(radius(line), level, rtol=0, atol=0.02 * CELL)
        angles = np.unwrap(np.arctan2(line[:, 1], line[:, 0]))
        assert abs(abs(angles[-1] - angles[0]) - 2 * np.pi) < 1e-9  # once around, no gaps


def test_an_open_line_begins_and_ends_on_the_edge_of_what_is_seen() -> None:
    ((line,),) = traced(lambda p: p[:, 1] - np.sin(2 * p[:, 0]), [0.0])
    np.testing.assert_allclose(line[:, 1], np.sin(2 * line[:, 0]), atol=0.05 * CELL)
    assert sorted(line[[0, -1], 0].tolist()) == [-2.0, 2.0]


def test_there_is_no_line_where_there_is_no_level() -> None:
    assert traced(radius, [9.0, -1.0]) == [[], []]
    assert traced(lambda p: np.zeros(len(p)), [0.0]) == [[]]


def test_a_line_of_steps_is_refined_to_where_they_are() -> None:
    def steps(p: Floats) -> Floats:
        return np.where(p[:, 0] + 0.5 * p[:, 1] > 0.377, 5.0, -1.0)

    ((line,),) = traced(steps, [0.0])
    off = np.abs(line @ [1.0, 0.5] - 0.377)
    better = np.abs(refine(line, GRID, steps) @ [1.0, 0.5] - 0.377)
    assert better.max() < 0.01 * CELL < off.max()


def test_borders_are_ties_and_three_regions_meet_in_one_point() -> None:
    w, b = np.array([[1.0, 0.1], [-0.5, 0.8], [-0.5, -0.9]]), np.array([0.0, 0.1, 0.2])
    borders = trace_borders(GRID, lambda p: np.asarray(p @ w.T + b))
    assert len(borders) == 3
    corner = np.linalg.solve(w[:2] - w[2], b[2] - b[:2])
    for line in borders:
        first, second, third = np.sort(line @ w.T + b, axis=1).T[::-1]
        np.testing.assert_allclose(first, second, atol=0.02 * CELL)
        assert (third <= second + 0.1 * CELL).all()
        near = np.linalg.norm(line[[0, -1]] - corner, axis=1)
        assert near.min() < 0.2 * CELL < near.max()


def test_one_region_has_no_border() -> None:
    assert trace_borders(GRID, lambda p: np.tile([1.0, 0.0, -1.0], (len(p), 1))) == []
