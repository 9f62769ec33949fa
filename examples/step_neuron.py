"""A neuron: a weighted sum, and a step.

    python examples/step_neuron.py [PICTURE.png]

Left: the neuron multiplies each input by its weight, adds the bias b, and puts out 1 if the sum a
is at least 0, otherwise 0. Right: the sums of the four corners of {0, 1}² for w = (1, 1) and three
biases. The bias moves the four sums together along the axis, and with them the outputs: b = −0.5
makes the neuron compute OR, b = −1.5 makes it compute AND, and with b = 0.5 it always puts out 1.

To try: w = (−1, −1) and b = 1.5 give NAND. No w and b give XOR, because no line has the corners 01
and 10 on one side and 00 and 11 on the other.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.patches import Circle

import maxmargin as mm
from maxmargin.plots.style import BLUE, GREEN, ORANGE, foreground, grid_of_axes, legend_below

CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
NAMES = {-1.5: "AND", -0.5: "OR", 0.5: "always 1"}
LOOKS = {-1.5: (BLUE, "o"), -0.5: (ORANGE, "s"), 0.5: (GREEN, "^")}


def main(path: str) -> None:
    mpl.use("Agg")
    left, right = grid_of_axes(1, 2, (8.4, 3.9), width_ratios=[1, 1.15])[0]
    draw_neuron(left)
    draw_step(right)
    left.figure.savefig(path, dpi=110)


def draw_neuron(ax: Any) -> None:
    black = foreground(ax)
    arrow = {"arrowstyle": "-|>", "color": black, "shrinkA": 0, "shrinkB": 0}
    body, out = np.array([0.52, 0.5]), np.array([0.97, 0.5])
    inputs = {"x₁": (0.8, "w₁"), "x₂": (0.5, "w₂"), "1": (0.2, "b")}
    for name, (height, weight) in inputs.items():
        start = np.array([0.08, height])
        reach = body - start
        end = body - 0.155 * reach / np.linalg.norm(reach)
        ax.annotate("", end, start, arrowprops=arrow)
        ax.text(0.05, height, name, ha="right", va="center", fontsize=12)
        middle = (start + end) / 2
        ax.text(middle[0], middle[1] + 0.035, weight, ha="center", color=BLUE, fontsize=12)
    ax.add_patch(Circle((body[0], body[1]), 0.15, fill=False, edgecolor=black, linewidth=1.6))
    step = np.array([[-0.09, -0.05], [0, -0.05], [0, 0.05], [0.09, 0.05]]) + body
    ax.plot(*step.T, color=ORANGE, linewidth=2.5)
    ax.annotate("", out, body + np.array([0.15, 0]), arrowprops=arrow)
    ax.text(0.82, 0.55, "0 or 1", ha="center")
    ax.text(0.52, 0.86, "a = w₁x₁ + w₂x₂ + b", ha="center", fontsize=11)
    ax.text(0.52, 0.1, "output = step(a)", ha="center", fontsize=11)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title="The neuron")
    ax.set_axis_off()


def draw_step(ax: Any) -> None:
    for start, end, output in ((-2.1, 0, 0), (0, 3.1, 1)):
        ax.plot([start, end], [output, output], color=foreground(ax), linewidth=1.6)
    ax.plot(0, 1, "o", color=foreground(ax), markersize=5)
    ax.plot(0, 0, "o", markerfacecolor="none", color=foreground(ax), markersize=5)
    for k, (b, name) in enumerate(NAMES.items()):
        neuron = mm.geometry.Hyperplane([1, 1], b)
        sums, outputs = neuron.decision_function(CORNERS), neuron.step(CORNERS)
        colour, marker = LOOKS[b]
        shift = 0.09 * (k + 1)  # above the step, so that equal sums of different neurons show
        label = f"b = {b:g}: {name}".replace("-", "−")
        ax.plot(sums, outputs + shift, marker, color=colour, label=label)
        for place in np.unique(sums):
            corners = ["".join(map(str, c)) for c in CORNERS[sums == place]]
            words = " ".join(corners)
            at = (place, float(place >= 0) + shift)
            ax.annotate(words, at, (7, -3), textcoords="offset points", fontsize=7, color=colour)
        print(f"b = {b:g}: outputs {outputs} for 00, 01, 10, 11: {name}")
    ax.set(xlim=(-2.1, 3.1), ylim=(-0.15, 1.5), xlabel="a = x₁ + x₂ + b", ylabel="output")
    ax.set_yticks([0, 1])
    ax.set_title("The step, and the corners of {0, 1}²")
    legend_below(ax, 3, fontsize=8, columnspacing=1.0, handletextpad=0.2)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "step_neuron.png")
