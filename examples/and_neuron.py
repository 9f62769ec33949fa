"""A neuron that computes AND.

    python examples/and_neuron.py [PICTURE.png]

With w = (1, 1) and b = -1.5 the step neuron puts out 1 where w·x + b ≥ 0: on {0, 1}² only at
(1, 1). The line x₁ + x₂ = 1.5 has that corner on its one side and the other three on its other; w
is orthogonal to it and points to the side of the 1. A perceptron that is shown the four corners
finds a line of its own.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import foreground, grid_of_axes, legend_below, scatter

CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def main(path: str) -> None:
    mpl.use("Agg")
    neuron = mm.geometry.Hyperplane([1, 1], -1.5)
    outputs = neuron.step(CORNERS)
    learnt = mm.Perceptron(trace=True, shuffle=False).fit(CORNERS, outputs)
    axes = grid_of_axes(1, 2, (7.6, 4.4))
    draw_neuron(axes[0, 0], neuron, outputs)
    display = mm.plots.PerceptronPathDisplay.from_estimator(learnt, CORNERS, outputs, ax=axes[0, 1])
    display.save(path, dpi=110)
    print("AND of 00, 01, 10, 11 is", *outputs)
    w, b = learnt.coef_[0], learnt.intercept_[0]
    print(f"The perceptron found w = {w}, b = {b:g} after {learnt.updates_} updates")


def draw_neuron(ax: Any, neuron: mm.geometry.Hyperplane, outputs: Any) -> None:
    ends = np.array([-0.4, 1.7])
    ax.plot(ends, neuron.line(ends), color=foreground(ax), linewidth=2.2, label="x₁ + x₂ = 1.5")
    scatter(ax, CORNERS, outputs, [0, 1], size=70, zorder=3)
    how = {"angles": "xy", "scale_units": "xy", "scale": 1, "color": foreground(ax)}
    ax.quiver(1.1, 0.4, *(0.4 * neuron.normal), **how)
    ax.annotate("w", (1.42, 0.7))
    ax.set(xlim=ends, ylim=ends, aspect="equal", xlabel="x₁", ylabel="x₂")
    ax.set_title("The neuron step(x₁ + x₂ − 1.5)")
    legend_below(ax)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "and_neuron.png")
