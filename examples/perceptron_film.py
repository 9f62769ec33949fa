"""A film of a perceptron: one line for each update, until no row is wrong.

    python examples/perceptron_film.py [PICTURE.png]

Each picture shows the line after an update, and the misclassified row that caused it, ringed. An
update turns and shifts the line towards the right side of that row, though not always far enough,
and it may lose other rows: the number of wrong rows can go up. The run ends all the same, because
the classes are separable. The example also writes a film with every update, an animated GIF.

To try: another order of the rows (random_state), or a larger η (eta), with which fewer but larger
steps are made.
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

import maxmargin as mm
from maxmargin.plots import planar
from maxmargin.plots.style import foreground, legend_below, new_axes


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(
        60, means=((0.8, 0.6), (-0.5, -0.7)), variance=0.15, random_state=5
    )
    start = np.array([-1.0, 0.6]), 0.3  # w and b of a bad line
    learner = mm.Perceptron(eta=0.2, init=start, trace=True, random_state=5).fit(X, y)
    film = Path(path).with_suffix(".gif")
    with mm.plots.theme():
        display = mm.plots.PerceptronPathDisplay.from_estimator(learner, X, y, panels=6)
        display.save(path, dpi=110)
        shoot(display, film)
    print(f"{learner.updates_} updates in {learner.n_iter_} epochs; film in {film}")


def shoot(display: Any, film: Path) -> None:
    """Write a film with a frame for each line of the display; the last one stays longer."""
    ax, seen = new_axes(), mm.geometry.window(display.X, share=0.15)
    legend_below(ax, handles=planar.draw_points(ax, display, seen))
    (line,) = ax.plot([], [], color=foreground(ax), linewidth=2.0)
    (ring,) = ax.plot([], [], "o", color=foreground(ax), markersize=9.5, fillstyle="none")

    def draw(k: int) -> list[Any]:
        plane = mm.geometry.Hyperplane(display.coef[k], display.intercept[k])
        ends = mm.geometry.segment(plane, seen)
        line.set_data(*(([], []) if ends is None else ends.T))
        ring.set_data(*display.examples[k][:, np.newaxis])
        wrong = int((plane.functional_margin(display.X, display.y) <= 0).sum())
        E = mm.geometry.perceptron_criterion(plane, display.X, display.y)
        ax.set_title(f"update {k}: {wrong} wrong, E = {E:.3g}" if k else f"start: {wrong} wrong")
        return [line, ring]

    last = len(display.coef) - 1
    frames = [*range(last), *[last] * 4]
    FuncAnimation(ax.figure, draw, frames).save(film, PillowWriter(fps=2), dpi=100)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "perceptron_film.png")
