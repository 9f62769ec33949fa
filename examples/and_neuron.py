"""A neuron that computes AND.

    python examples/and_neuron.py [PICTURE.png]

With w = (1, 1) and b = −1.5 the step neuron puts out 1 where w·x + b ≥ 0; of the four corners of
{0, 1}² that is only (1, 1). The vector w is orthogonal to the line x₁ + x₂ = 1.5 and points to the
side where the output is 1. A perceptron that is shown the four corners and starts from zero (right)
finds another line: it stops as soon as all four are right.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots import planar
from maxmargin.plots.style import BLUE, ORANGE, foreground, grid_of_axes, legend_under, scatter

CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
SEEN = mm.geometry.Window(np.array([-0.6, -0.6]), np.array([2.1, 2.1]), equal=True)


def main(path: str) -> None:
    mpl.use("Agg")
    neuron = mm.geometry.Hyperplane([1, 1], -1.5)
    outputs = neuron.step(CORNERS)
    learner = mm.Perceptron(shuffle=False).fit(CORNERS, outputs)
    w, b = learner.coef_[0], float(learner.intercept_[0])
    learnt = mm.geometry.Hyperplane(w, b)
    with mm.plots.theme():
        left, right = grid_of_axes(1, 2, (7.2, 4.2))[0]
        draw_neuron(left, neuron, "Chosen by hand: step(x₁ + x₂ − 1.5)")
        draw_neuron(right, learnt, f"Found by a perceptron after {learner.updates_:g} updates")
        for ax in (left, right):
            artists = scatter(ax, CORNERS, outputs, [0, 1], size=70, zorder=5)
            planar.show_window(ax, SEEN)
            ax.set(xlabel="x₁", ylabel="x₂", xticks=[0, 1, 2], yticks=[0, 1, 2])
            ax.label_outer()
        legend_under(np.array([left]), artists)
        left.figure.savefig(path, dpi=140)
    print("AND of 00, 01, 10, 11 is", *outputs)
    print(f"The perceptron found w = {w}, b = {b:g} after {learner.updates_} updates")


def draw_neuron(ax: Any, neuron: mm.geometry.Hyperplane, title: str) -> None:
    side = np.array([SEEN.low[0], SEEN.high[0]])
    ends = neuron.line(side)
    ax.fill_between(side, ends, SEEN.high[1], color=ORANGE, alpha=0.15, linewidth=0)
    ax.fill_between(side, SEEN.low[1], ends, color=BLUE, alpha=0.15, linewidth=0)
    planar.draw_line(ax, neuron, SEEN, color=foreground(ax), linewidth=2.0)
    foot = neuron.project([[1.5, 0.0]])[0]
    arrow = {"arrowstyle": "-|>", "color": foreground(ax), "linewidth": 1.6, "shrinkA": 0}
    tip = foot + 0.5 * neuron.normal
    ax.annotate("", tip, foot, arrowprops=arrow | {"shrinkB": 0})
    ax.annotate(
        f"w = ({neuron.w[0]:g}, {neuron.w[1]:g})", tip, (tip[0] - 0.06, tip[1] + 0.1), ha="center"
    )
    ax.annotate("output 1", (1.3, 1.65), ha="center", va="center")
    ax.annotate("output 0", (0.35, 0.4), ha="center", va="center")
    ax.set_title(title)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "and_neuron.png")
