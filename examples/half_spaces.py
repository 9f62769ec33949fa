"""Half-spaces: what w does, and what b does.

    python examples/half_spaces.py [PICTURE.png]

The line w·x + b = 0 cuts the plane into two half-spaces: the shaded one, where w·x + b > 0, is
called positive. The arrow w is orthogonal to the line and points into the positive half-space, so w
decides how the line is turned. The intercept b decides where it lies: at the distance −b/‖w‖ from
the origin, measured along w. A larger b therefore moves the line against w, and more points become
positive. Here ‖w‖ = 2, so a step of 2 in b moves the line by 1.

To try: multiply w and b by the same positive number, and nothing changes; change the signs of both,
and the two half-spaces change places.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import GREEN, ORANGE, foreground, grid_of_axes, legend_under, scatter

W = np.array([1.2, 1.6])  # of length 2


def main(path: str) -> None:
    mpl.use("Agg")
    X = np.random.default_rng(1).uniform(-2.6, 2.6, size=(40, 2))
    axes = grid_of_axes(1, 3, (8.4, 3.5), sharex=True, sharey=True)
    for ax, b in zip(axes[0], (-2.0, 0.0, 2.0), strict=True):
        draw(ax, mm.geometry.Hyperplane(W, b), X)
    axes[0, 0].set_ylabel("x₂")
    legend_under(axes, axes[0, 0].get_legend_handles_labels()[0])
    axes[0, 0].figure.savefig(path, dpi=110)


def draw(ax: Any, plane: mm.geometry.Hyperplane, X: Any) -> None:
    side = np.linspace(-3, 3, 2)
    f = [plane.decision_function(np.column_stack([side, [x2, x2]])) for x2 in side]
    ax.contourf(side, side, f, levels=[0, 20], colors=[ORANGE], alpha=0.12)
    ax.plot(side, plane.line(side), color=foreground(ax), linewidth=1.6, label="w·x + b = 0")
    labels = plane.predict(X)
    scatter(ax, X, labels, [-1, 1], size=16)
    foot = plane.project([[0.0, 0.0]])[0]
    ax.plot(*np.array([[0, 0], foot]).T, color=GREEN, linewidth=3, label="distance |b|/‖w‖")
    ax.plot(0, 0, "+", color=foreground(ax), markersize=9, label="origin")
    arrow = {"arrowstyle": "-|>", "color": foreground(ax), "linewidth": 1.6}
    start = foot + np.array([-0.8, 0.6])  # another point of the line
    ax.annotate("", start + 0.55 * W, start, arrowprops=arrow)
    ax.annotate("w", start + 0.55 * W, (3, 3), textcoords="offset points")
    positive = int((labels > 0).sum())
    sign = "−" if plane.b < 0 else ""
    ax.set_title(f"b = {sign}{abs(plane.b):g}: {positive} of {len(X)} positive", fontsize=10)
    ax.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xlabel="x₁")
    print(f"b = {plane.b:g}: offset {plane.offset:g} along w, {positive} of {len(X)} positive")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "half_spaces.png")
