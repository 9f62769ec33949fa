"""The margins of a given line: functional, geometric and absolute, by point and by class.

    python examples/margins.py [PICTURE.png]

The line is f(x) = w·x + b = 0; it is a given line, not the best one. Each point has the functional
margin y f, which grows with the length of w, and the geometric margin y f/‖w‖, which is a distance
with a sign: negative for the point on the wrong side. Without the sign it is the absolute distance.
On the right the line separates the classes. Each class then has a margin, the distance of its
nearest point. The two marginal lines pass through these points, parallel to f = 0; they are the
total margin apart, and that is the same for every parallel line between them.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots import planar
from maxmargin.plots.style import (
    GREEN,
    PINK,
    WRONG,
    foreground,
    grid_of_axes,
    legend_under,
    scatter,
)

NEGATIVE = [[0.3, 1.7], [0.6, 0.5], [1.0, 1.5], [1.6, 1.0], [0.2, 2.3], [1.9, 0.2], [0.7, 1.1]]
POSITIVE = [[2.6, 3.6], [3.2, 2.6], [3.7, 3.5], [4.2, 2.8], [3.1, 4.1], [2.4, 2.6], [4.3, 3.9]]
STRAY = [3.3, 1.2]  # a negative point on the positive side
SEEN = mm.geometry.Window(np.array([-0.1, -0.7]), np.array([5.1, 4.5]), equal=True)


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = np.array(NEGATIVE + POSITIVE), np.repeat([-1, 1], [len(NEGATIVE), len(POSITIVE)])
    plane = mm.geometry.Hyperplane([1.5, 1.2], -4.9)
    with mm.plots.theme():
        axes = grid_of_axes(1, 2, (7.2, 4.6), sharey=True)
        left, right = axes[0]
        stray = np.vstack([X, STRAY]), np.append(y, -1)
        for ax, (rows, labels) in ((left, stray), (right, (X, y))):
            look = {"color": foreground(ax), "linewidth": 1.8, "zorder": 1.5}
            planar.draw_line(ax, plane, SEEN, label="f = 0", **look)
            scatter(ax, rows, labels, (-1, 1), size=26)
            planar.show_window(ax, SEEN)
            ax.set(xlabel="x₁", ylabel="x₂")
            ax.label_outer()
        draw_normal(left, plane)
        draw_margins_of_points(left, plane, *stray)
        draw_margins_of_classes(right, plane, X, y)
        legend_under(axes, right.get_legend_handles_labels()[0])
        left.figure.savefig(path, dpi=140)
    negative, positive = plane.class_margins(X, y)
    print(f"classes: {negative:.3f} + {positive:.3f} = {plane.total_margin(X, y):.3f} in total")
    twice = plane.scaled(2.0).functional_margin(*stray)[-1]
    print(f"stray point: y f = {plane.functional_margin(*stray)[-1]:.3f}, and {twice:.3f} "
          "if w and b are doubled")  # fmt: skip


def draw_normal(ax: Any, plane: mm.geometry.Hyperplane) -> None:
    foot = plane.project([[0.4, 3.6]])[0]
    arrow = {"arrowstyle": "-|>", "color": foreground(ax), "linewidth": 1.6, "shrinkA": 0}
    ax.annotate("", foot + 0.6 * plane.normal, foot, arrowprops=arrow)
    ax.annotate("w", foot + 0.7 * plane.normal, va="center")


def draw_margins_of_points(ax: Any, plane: mm.geometry.Hyperplane, X: Any, y: Any) -> None:
    """Draw the distances of the wrong point, and of one point of each class."""
    margins = plane.geometric_margin(X, y)
    functional = plane.functional_margin(X, y)
    notes = {1: (-8, -28, "left"), len(NEGATIVE): (-6, 6, "right"), len(X) - 1: (0, -28, "left")}
    for row, (right, up, side) in notes.items():
        colour = WRONG if margins[row] < 0 else GREEN
        ends = np.stack([X[row], plane.project(X[row : row + 1])[0]])
        ax.plot(*ends.T, color=colour, linewidth=1.6, zorder=1.4)
        note = f"y f = {functional[row]:.1f}\ny f/‖w‖ = {margins[row]:.2f}".replace("-", "−")
        place = {"xytext": (right, up), "textcoords": "offset points", "ha": side}
        ax.annotate(note, X[row], color=colour, fontsize=8, **place)
    ax.set_title("Margins of three points, one of them wrong")


def write(ax: Any, note: str, place: Any, offset: Any, colour: str) -> None:
    ax.annotate(note, place, offset, textcoords="offset points", color=colour, fontsize=8)


def draw_margins_of_classes(ax: Any, plane: mm.geometry.Hyperplane, X: Any, y: Any) -> None:
    """Draw the marginal lines, the distance of each from f = 0, and that between them."""
    marginal = mm.geometry.marginal_classifiers(plane, X, y)
    for line, name in zip(marginal, ("marginal lines", None), strict=True):
        planar.draw_line(ax, line, SEEN, color=GREEN, linestyle="--", label=name)
    for sign, margin in zip((-1, 1), plane.class_margins(X, y), strict=True):
        own = X[y == sign]
        nearest = own[np.argmin(plane.absolute_distance(own))]
        ends = np.stack([nearest, plane.project([nearest])[0]])
        name = "margins of the classes" if sign > 0 else None
        ax.plot(*ends.T, color=PINK, linewidth=2, zorder=1.4, label=name)
        write(ax, f"{margin:.2f}", ends.mean(axis=0), (-22, 4), PINK)
    tips = [line.project([[2.7, 0.9]])[0] for line in marginal]
    arrow = {"arrowstyle": "<->", "color": GREEN, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", *tips, arrowprops=arrow)
    total = f"total margin {plane.total_margin(X, y):.2f}"
    write(ax, total, tips[1], (5, -2), GREEN)
    ax.set_title("Margins of the classes, and in total")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "margins.png")
