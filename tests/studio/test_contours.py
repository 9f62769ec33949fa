"""Lines are where they are said to be: vertices on level sets, regions on both sides of borders."""

from typing import Any

import numpy as np
import pytest

from maxmargin._typing import Floats
from maxmargin.studio.contours import Grid, find_roots, join, trace_borders, trace_levels
from maxmargin.studio.scene import View

VIEW = View(-2.0, 2.0, -1.5, 1.5)
GRID = Grid.of(VIEW, 41, 31)


def traced(function: Any, levels: list[float], grid: Grid = GRID) -> list[list[Floats]]:
    return trace_levels(function, grid, function(grid.points()).reshape(grid.shape), levels)


def radius(points: Floats) -> Floats:
    return np.asarray(np.hypot(*points.T))


def test_a_circle_is_one_closed_line_on_its_level() -> None:
    for level, lines in zip([1.0, 0.5, 1.3], traced(radius, [1.0, 0.5, 1.3]), strict=True):
        (line,) = lines
        np.testing.assert_array_equal(line[0], line[-1])
        np.testing.assert_allclose(radius(line), level, rtol=0, atol=1e-9)
        angles = np.unwrap(np.arctan2(line[:, 1], line[:, 0]))
        assert abs(abs(angles[-1] - angles[0]) - 2 * np.pi) < 1e-9  # once around, no gaps
        assert np.linalg.norm(np.diff(line, axis=0), axis=1).max() < 0.15


def test_an_open_line_begins_and_ends_on_the_edge_of_what_is_seen() -> None:
    ((line,),) = traced(lambda p: p[:, 1] - np.sin(2 * p[:, 0]), [0.0])
    np.testing.assert_allclose(line[:, 1], np.sin(2 * line[:, 0]), atol=1e-9)
    assert sorted(line[[0, -1], 0].tolist()) == [-2.0, 2.0]


def test_steep_and_kinked_functions_are_found_to_the_same_accuracy() -> None:
    def steep(p: Floats) -> Floats:
        return np.asarray(np.tanh(40 * (p[:, 0] - 0.123)) + 1e-3 * p[:, 0])

    def kinked(p: Floats) -> Floats:
        return np.where(p[:, 0] > 0.377, 1000.0, 1.0) * (p[:, 0] - 0.377)

    for function in (steep, kinked):
        ((line,),) = traced(function, [0.0])
        root = line[0, 0]
        np.testing.assert_allclose(line[:, 0], root, atol=1e-7)
        left, right = function(np.array([[root - 1e-6, 0.0], [root + 1e-6, 0.0]]))
        assert left < 0 < right


def test_both_arms_of_a_saddle_are_separate_lines() -> None:
    def saddle(p: Floats) -> Floats:
        return (p[:, 0] - 0.013) * (p[:, 1] + 0.021)

    for lines in traced(saddle, [1e-4, -1e-4]):
        assert len(lines) == 2
        for line in lines:  # an arm stays on its side of both axes
            assert len(np.unique(np.sign(line - [0.013, -0.021]), axis=0)) == 1


def test_a_level_at_the_places_of_the_grid_itself_is_found() -> None:
    ((line,),) = traced(lambda p: p[:, 0], [0.0])
    np.testing.assert_array_equal(line[:, 0], 0.0)


def test_there_is_no_line_where_there_is_no_level() -> None:
    assert traced(radius, [9.0, -1.0]) == [[], []]
    assert traced(lambda p: np.zeros(len(p)), [0.0]) == [[]]


def test_all_levels_take_one_evaluation_for_each_step() -> None:
    calls = []

    def counted(p: Floats) -> Floats:
        calls.append(len(p))
        return radius(p)

    values = counted(GRID.points()).reshape(GRID.shape)
    trace_levels(counted, GRID, values, [0.4, 0.8, 1.2])
    assert len(calls) < 10


@pytest.mark.parametrize("power", [1, 3, 9])
def test_roots_are_bracketed_to_the_tolerance(power: int) -> None:
    at = np.linspace(0.01, 0.99, 37)

    def function(t: Floats, chosen: Any) -> Floats:
        return np.asarray((t - at[chosen]) ** power)

    found = find_roots(function, -(at**power), (1 - at) ** power, tol=1e-8)
    far = np.abs(found - at)
    # A root of order p is only known as well as f resolves it.
    assert far.max() <= max(2e-8, 1e-12 ** (1 / power))


def test_borders_are_ties_and_three_regions_meet_in_one_point() -> None:
    w, b = np.array([[1.0, 0.1], [-0.5, 0.8], [-0.5, -0.9]]), np.array([0.0, 0.1, 0.2])

    def winner(p: Floats) -> Any:
        return (p @ w.T + b).argmax(axis=1)

    borders = trace_borders(winner, GRID, winner(GRID.points()).reshape(GRID.shape))
    assert sorted(border.pair for border in borders) == [(0, 1), (0, 2), (1, 2)]
    corner = np.linalg.solve(w[:2] - w[2], b[2] - b[:2])
    for (i, j), line in borders:
        scores = line @ w.T + b
        np.testing.assert_allclose(scores[:, i], scores[:, j], atol=1e-8)
        np.testing.assert_allclose(scores[:, i], scores.max(axis=1), atol=1e-8)
        near = np.linalg.norm(line[[0, -1]] - corner, axis=1)
        assert near.min() < 1e-8 < near.max()


def test_regions_like_a_chessboard_have_closed_borders_or_end_at_the_edge() -> None:
    def winner(p: Floats) -> Any:
        return (np.sin(3 * p[:, 0] + 0.1) * np.sin(3 * p[:, 1] + 0.2) > 0).astype(int)

    for _, line in trace_borders(winner, GRID, winner(GRID.points()).reshape(GRID.shape)):
        closed = np.array_equal(line[0], line[-1])
        on_edge = [abs(abs(x) - 2) < 1e-12 or abs(abs(y) - 1.5) < 1e-12 for x, y in line[[0, -1]]]
        assert closed or all(on_edge)


def test_one_region_has_no_border() -> None:
    assert trace_borders(lambda p: np.zeros(len(p), int), GRID, np.zeros(GRID.shape, int)) == []


def test_links_are_joined_to_chains() -> None:
    chains = join(np.array([[1, 2], [5, 6], [3, 2], [6, 7], [7, 5]]))
    assert sorted(map(len, chains)) == [3, 4]
    assert {tuple(sorted(set(chain))) for chain in chains} == {(1, 2, 3), (5, 6, 7)}
