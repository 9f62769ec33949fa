"""What holds for every display: it draws where it is told, on any background, with any names."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import maxmargin as mm
from maxmargin.plots.style import foreground
from tests.support.drawing import assert_fits, assert_whole

mpl.use("Agg")
import matplotlib.pyplot as plt

plots: Any = mm.plots
ROWS = mm.datasets.separable(40, margin=0.3, w=(1, 2), b=0.5, random_state=0)
HOSTILE = [("<script>alert(1)</script>$\\frac{", "'\"`"), ("x" * 10_000, "_hidden\nשלום\0")]


def names(y: Any) -> list[str]:
    return [str(label) for label in np.unique(y)]


def mixed(y: Any) -> Any:
    """Labels that no line separates."""
    return np.random.default_rng(0).permutation(y)


def perceptron(X: Any, y: Any) -> Any:
    return mm.Perceptron(trace=True).fit(X, y)


def search(labels: Any, **more: Any) -> Any:
    one, other = names(labels)
    return plots.SearchDisplay(one, [one, "b", 3], held={other: one}, metric=other, **more)


MAKERS: dict[str, Callable[[Any, Any], Any]] = {
    "convergence": lambda X, y: plots.ConvergenceDisplay(
        {name: [[(0.1, 0.5), (0.2, 0.1), (0.5, 1e-4)]] for name in names(y)}, tols=[1e-3]
    ),
    "path": lambda X, y: plots.PathDisplay.from_path(mm.regularization_path(X, y, Cs=5)),
    "map": lambda X, y: search(
        y, scores=[[0.1, 0.2, np.nan], [0.5, 0.6, 0.7]], best=(1, 2), y=names(y)[1], y_values=[1, 2]
    ),
    "curve": lambda X, y: search(y, scores=[0.1, 0.2, 0.3], best=(2,)),
    "plane": lambda X, y: plots.SeparabilityDisplay.from_data(X, y),
    "hulls": lambda X, y: plots.SeparabilityDisplay.from_data(X, mixed(y)),
    "margin": lambda X, y: plots.MarginDisplay.from_estimator(mm.LinearSVC().fit(X, y), X, y),
    "margin along w": lambda X, y: plots.MarginDisplay.from_estimator(
        mm.SVC().fit(X, mixed(y)), X, mixed(y), view="margin"
    ),
    "margin of a kernel": lambda X, y: plots.MarginDisplay.from_estimator(
        mm.SVC().fit(X, mixed(y)), X, mixed(y)
    ),
    "lines": lambda X, y: plots.PerceptronPathDisplay.from_estimator(perceptron(X, y), X, y),
    "panels": lambda X, y: plots.PerceptronPathDisplay.from_estimator(
        perceptron(X, y), X, y, panels=6
    ),
    "components": lambda X, y: plots.KernelPCADisplay.from_estimator(
        mm.KernelPCA(3, kernel="rbf").fit(X), X, y
    ),
    "gram": lambda X, y: plots.GramDisplay.from_kernel("rbf", X, y),
}
NARROW = ("convergence", "path", "map", "curve", "plane", "hulls", "margin", "margin along w",
          "margin of a kernel", "lines")  # fmt: skip


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def assert_complete(display: Any) -> None:
    """Everything is named, everything written is inside the figure, and nothing overlaps."""
    figure, axes = display.figure_, np.ravel(display.ax_)
    figure.draw_without_rendering()
    assert_whole(display)
    assert any(panel.get_title() for panel in axes)
    assert all(panel.get_ylabel() or not panel.axison or panel.get_images() for panel in axes)
    assert axes[-1].get_xlabel()
    assert figure.legends or any(panel.get_legend() for panel in axes)


def is_black(artist: Any) -> bool:
    given = artist.get_color() if hasattr(artist, "get_color") else artist.get_edgecolor()
    shades = mpl.colors.to_rgba_array(given)
    return any(shade[:3].sum() == 0 and shade[3] > 0 for shade in shades)


@pytest.mark.wide
@pytest.mark.parametrize("background", ["light", "dark"])
@pytest.mark.parametrize("name", MAKERS)
def test_everything_is_visible_on_any_background(name: str, background: str) -> None:
    with plots.theme(background):
        display = MAKERS[name](*ROWS).plot()
        assert_complete(display)
    for panel in np.ravel(display.ax_):
        assert (foreground(panel) == "#f2f2f2") == (background == "dark")
        if background == "dark":
            assert max(mpl.colors.to_rgb(panel.get_facecolor())) < 0.3
            assert not [a for a in [*panel.lines, *panel.collections] if is_black(a)]


@pytest.mark.wide
@pytest.mark.parametrize("name", NARROW)
def test_one_column_of_a_journal_is_enough_and_axes_are_taken(name: str) -> None:
    with plots.theme():
        display = MAKERS[name](*ROWS)
        figure = plt.figure(figsize=(3.5, 4.6), layout="constrained")
        axes = figure.subplots(3, 1) if name == "path" else figure.subplots()
        assert display.plot(axes) is display
        assert display.figure_ is figure
        assert display.ax_ is axes or name == "path"
        assert_complete(display)


@pytest.mark.wide
@pytest.mark.parametrize("pair", HOSTILE, ids=["markup", "long"])
@pytest.mark.parametrize("name", MAKERS)
def test_hostile_names_are_drawn_as_text(name: str, pair: tuple[str, str], tmp_path: Any) -> None:
    X, y = ROWS
    with plots.theme():
        display = MAKERS[name](pd.DataFrame(X, columns=pair), np.where(y > 0, *pair))
        assert display.save(tmp_path / "picture.svg").stat().st_size > 1000
    assert min(np.ravel(display.ax_)[0].get_position().size) > 0.1
    assert_fits(display.figure_)


def test_a_display_that_fails_leaves_no_figure_behind() -> None:
    with pytest.raises(ValueError, match=r"scores has shape \(1,\)"):
        plots.SearchDisplay("C", [1, 2], [0.5], (0,)).plot()
    assert not plt.get_fignums()


@pytest.mark.wide
def test_importing_displays_loads_no_matplotlib() -> None:
    code = "from maxmargin.plots import *; import sys; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
