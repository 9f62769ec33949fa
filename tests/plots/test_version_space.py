"""The version space as a picture: what is drawn is what it is."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose

import maxmargin as mm
from tests.support.version_space import polygon, polygon_centre

mpl.use("Agg")
import matplotlib.pyplot as plt

X = np.array(
    [[0.0, 1.6], [0.9, 2.0], [1.9, 1.1], [2.6, 2.0], [0.4, -0.4], [1.4, -1.0], [2.9, -0.6]]
)
Y = np.array(["up", "up", "up", "up", "down", "down", "down"])


@pytest.mark.wide
@pytest.mark.parametrize("view", ["sphere", "plane"])
def test_centres_and_votes_are_those_of_the_polygon(view: str) -> None:
    display = mm.plots.VersionSpaceDisplay.from_data(X, Y, view=view)
    plt.close("all")
    walls = display.walls
    assert_allclose(display.bayes_point, polygon_centre(walls), atol=0.03)
    near = (walls @ display.ball_centre).min()
    assert near > (display.draws @ walls.T).min(axis=1).max() - 1e-9  # no larger ball fits in
    assert (display.perceptrons @ walls.T > 0).all()
    places = np.array([[1.0, 0.3], [-1.0, 0.3], [4.0, 0.3], [1.0, 1.2]])
    rows = np.column_stack([places, np.ones(4)])
    exact = [polygon(np.vstack([walls, row])) / polygon(walls) for row in rows]
    assert_allclose(display.probability(places), exact, atol=0.03)


@pytest.mark.wide
def test_the_even_vote_is_drawn_where_it_is() -> None:
    display = mm.plots.VersionSpaceDisplay.from_data(X, Y, view="plane")
    curve = np.vstack([path.vertices for path in display.vote_.get_paths()])
    plt.close("all")
    assert_allclose(display.probability(curve), 0.5, atol=0.03)


@pytest.mark.parametrize("wrong", [{"view": "moon"}, {"n_perceptrons": -1}])
def test_what_cannot_be_drawn_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        mm.plots.VersionSpaceDisplay.from_data(X, Y, **wrong)
    with pytest.raises(mm.NotSeparableError):
        mm.plots.VersionSpaceDisplay.from_data(X, np.arange(7) % 2)
