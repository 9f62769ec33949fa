"""Lines are where they are said to be: vertices on level sets, regions on both sides of borders."""

import numpy as np

from maxmargin._typing import Floats
from maxmargin.studio.contours import Grid, refine, trace_borders, trace_levels
from maxmargin.studio.scene import View

GRID = Grid.of(View(-2.0, 2.0, -1.5, 1.5), 81, 61)
CELL = 0.05


def test_a_line_of_steps_is_refined_to_where_they_are() -> None:
    def steps(p: Floats) -> Floats:
        return np.where(p[:, 0] + 0.5 * p[:, 1] > 0.377, 5.0, -1.0)

    ((line,),) = trace_levels(GRID, steps(GRID.points()), [0.0])
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
