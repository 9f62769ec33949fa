"""The perceptron criterion, and a perceptron on its way down.

    python examples/perceptron_criterion.py [PICTURE.png]

E(w) = −Σ y w·x over the mistakes. Here there is no intercept, so that w is a point of the plane. E
is convex and piecewise linear, a cone with its tip at 0. It is 0 in the wedge of all weights that
have every row right. Left: each update is a step down the gradient of one mistake's share of E.
Most updates lead down and some lead up, but on separable classes they end in the wedge. Right: E
after each epoch. If the classes can be separated, it becomes 0 and stays 0; if they overlap, it
never does.

To try: a smaller η (eta). The steps are shorter, and more of them lead down.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.geometry import Hyperplane, perceptron_criterion
from maxmargin.plots.style import (
    BLUE,
    GREEN,
    ORANGE,
    colour,
    foreground,
    grid_of_axes,
    legend_below,
)

EPOCHS = 12


def main(path: str) -> None:
    mpl.use("Agg")
    with mm.plots.theme():
        left, right = grid_of_axes(1, 2, (7.2, 4.4))[0]
        draw_landscape(left)
        draw_epochs(right)
        left.figure.savefig(path, dpi=140)


def draw_landscape(ax: Any) -> None:
    X, y = mm.datasets.separable(40, margin=0.15, w=(1, 0.4), b=0, random_state=2)
    start = np.array([-1.6, 1.9])
    model = mm.Perceptron(eta=0.4, fit_intercept=False, init=start, trace=True, random_state=4).fit(
        X, y
    )
    path = model.trace_.coef[:, 0]
    side = np.linspace(-2.4, 2.4, 121)
    E = [[perceptron_criterion(Hyperplane([a, b]), X, y) for a in side] for b in side]
    levels = np.arange(10, np.max(E), 10)
    contours = ax.contour(side, side, E, levels, colors=[foreground(ax)], linewidths=0.6, alpha=0.6)
    ax.clabel(contours, levels[1::2], fontsize=7, fmt="E = %d")
    angles = np.linspace(-np.pi, np.pi, 7201)
    units = np.column_stack([np.cos(angles), np.sin(angles)])
    wedge = units[(y[:, np.newaxis] * (X @ units.T) > 0).all(axis=0)]
    corners = np.vstack([[0, 0], 9 * wedge[[0, -1]]])
    ax.fill(*corners.T, color=GREEN, alpha=0.25, linewidth=0, label="E = 0: all rows right")
    ax.plot(*path.T, color=BLUE, marker="o", markersize=3.5, linewidth=1, label="updates of w")
    ax.plot(*path[-1], color=ORANGE, marker="*", markersize=13, linestyle="", label="the last w")
    ax.set(xlabel="w₁", ylabel="w₂", title="Down the cone, one mistake at a time")
    ax.set(xlim=side[[0, -1]], ylim=side[[0, -1]], aspect="equal")
    legend_below(ax, 2)
    values = [perceptron_criterion(Hyperplane(w), X, y) for w in path]
    up = int(np.sum(np.diff(values) > 0))
    print(f"{model.updates_} updates, {up} of them up; E {values[0]:.1f} → {values[-1]:.1f}")


def draw_epochs(ax: Any) -> None:
    for k, variance in enumerate((0.03, 0.2, 0.5)):
        X, y = mm.datasets.gaussians(200, variance=variance, random_state=3)
        model = mm.Perceptron(trace=True, stop="epochs", max_epochs=EPOCHS).fit(X, y)
        E = model.trace_.criterion
        look = {"color": colour(k), "linestyle": ("-", "--", ":")[k], "marker": "os^"[k]}
        ax.plot(np.arange(1, EPOCHS + 1), E, markersize=4, label=f"variance {variance}", **look)
        print(f"variance {variance}: E = {E[-1]:.1f} after {EPOCHS} epochs")
    ax.axhline(0, color=foreground(ax), linewidth=0.6)
    ax.set(xlabel="epoch", ylabel="E of the weights after it", title="Epoch by epoch")
    ax.set_xticks(range(2, EPOCHS + 1, 2))
    legend_below(ax, 2)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "perceptron_criterion.png")
