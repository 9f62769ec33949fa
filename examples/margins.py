"""The margins of a given line: functional, geometric and absolute, by point and by class.

    python examples/margins.py [PICTURE.png]

The line is f(x) = w·x + b = 0, not the best one. A point has the functional margin y f, which grows
with the scale of w, and the geometric margin y f/‖w‖, which is a length and negative on the wrong
side; without its sign it is the absolute distance. Each class has the distance of its nearest
point; the two parallel lines through these, the marginal planes, enclose the total margin, which
is the same for every line between them.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm

GREEN, PINK, SKY = "#009E73", "#CC79A7", "#56B4E9"


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(60, means=((3, 3), (1, 1)), variance=0.25, random_state=4)
    plane = mm.geometry.Hyperplane([3.0, 1.0], -8.2)
    display = mm.plots.MarginDisplay(
        X,
        y,
        [-1, 1],
        weights=plane.w,
        intercept=plane.b,
        levels=[0.0],
        axis_labels=("x₁", "x₂"),
        title="The margins of a given line",
    ).plot()
    ax = display.ax_
    draw_marginal_planes(ax, plane, X, y)
    for label in (-1, 1):
        rows = np.flatnonzero(y == label)
        nearest = rows[np.argmin(plane.absolute_distance(X[rows]))]
        draw_distance(ax, plane, X[nearest], PINK, f"nearest of {label:+d}: {{:.2f}}")
    chosen = int(np.argmin(X[:, 1]))
    functional = plane.functional_margin(X, y)[chosen]
    words = f"one point: y f = {functional:.2f}, y f/‖w‖ = {{:.2f}}"
    draw_distance(ax, plane, X[chosen], SKY, words)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False, fontsize=8)
    display.save(path)
    negative, positive = plane.class_margins(X, y)
    print(f"classes: {negative:.3f} + {positive:.3f} = {plane.total_margin(X, y):.3f} in total")
    twice = plane.scaled(2.0).functional_margin(X, y)[chosen]
    print(f"one point: y f = {functional:.3f}, and {twice:.3f} if w and b are doubled")


def draw_marginal_planes(ax: Any, plane: mm.geometry.Hyperplane, X: Any, y: Any) -> None:
    limits = ax.get_xlim(), ax.get_ylim()
    for k, marginal in enumerate(mm.geometry.marginal_classifiers(plane, X, y)):
        ends = np.array(limits[0])
        label = None if k else "marginal planes"
        ax.plot(ends, marginal.line(ends), color=GREEN, linestyle="--", label=label)
    ax.set(xlim=limits[0], ylim=limits[1])


def draw_distance(ax: Any, plane: Any, point: Any, colour: str, words: str) -> None:
    """Draw the segment from a point to the line, with its length in the legend."""
    foot = plane.project([point])[0]
    length = plane.absolute_distance([point])[0]
    ax.plot(*np.array([point, foot]).T, color=colour, linewidth=2, label=words.format(length))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "margins.png")
