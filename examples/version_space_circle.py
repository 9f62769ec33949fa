"""The version space on a circle: where the largest margin and the Bayes point differ.

    python examples/version_space_circle.py [PICTURE.png]

A line through the origin is a direction w, a point of a circle. Each row allows the directions that
are right about it, half of the circle: the thin arcs. The arc that all rows share, drawn bold, is
the version space. Its middle is the Bayes point, the mean of all separators. If all rows had the
same length, the line of largest margin would be there, too, because distances from the line would
depend on angles alone. Here one row is much longer than the others. Even at a small angle it is far
from the line, so the largest margin takes a direction near that row's end of the arc. A perceptron
may stop anywhere in the arc.

To try: normalise the rows to length 1, and the two directions agree.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import (
    AMBER,
    GREEN,
    PINK,
    colour,
    foreground,
    grid_of_axes,
    legend_below,
    scatter,
    settle,
)

X = np.array([[0.5, 1.1], [1.2, 0.8], [1.6, 0.2], [-0.9, 0.1], [0.5, -3.0], [-1.0, -0.7]])
Y = np.array([1, 1, 1, -1, -1, -1])


def main(path: str) -> None:
    mpl.use("Agg")
    widest = mm.HardMarginSVC(intercept="none").fit(X, Y).coef_[0]
    bayes = mm.BayesPointClassifier(intercept_scaling=0.0, tol=0.003).fit(X, Y).coef_[0]
    perceptrons = [
        mm.Perceptron(fit_intercept=False, init="random", random_state=seed).fit(X, Y).coef_[0]
        for seed in range(12)
    ]
    left, right = grid_of_axes(1, 2, (8.4, 4.7))[0]
    found = {"largest margin": (widest, GREEN, "P"), "Bayes point": (bayes, PINK, "*")}
    draw_rows(left, found)
    draw_circle(right, found, perceptrons)
    settle(left.figure)
    left.figure.savefig(path, dpi=110)
    for name, (w, _, _) in found.items():
        margin = mm.geometry.Hyperplane(w).geometric_margin(X, Y).min()
        print(f"{name}: direction {degrees(w):.1f}°, margin {margin:.3f}")
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    same = mm.HardMarginSVC(intercept="none").fit(unit, Y).coef_[0]
    print(f"largest margin of rows of length 1: direction {degrees(same):.1f}°")


def degrees(w: Any) -> float:
    return float(np.degrees(np.arctan2(w[1], w[0])))


def draw_rows(ax: Any, found: Any) -> None:
    scatter(ax, X, Y, [-1, 1], size=36, zorder=3)
    for style, (name, (w, shade, _)) in zip(("-", "--"), found.items(), strict=True):
        ax.axline((0, 0), (-w[1], w[0]), color=shade, linestyle=style, linewidth=2, label=name)
    ax.plot(0, 0, "+", color=foreground(ax), markersize=10, label="origin")
    ax.set(xlim=(-2.4, 3.2), ylim=(-3.5, 2.1), aspect="equal", xlabel="x₁", ylabel="x₂")
    ax.set_title("Rows, and two lines through the origin")
    legend_below(ax, 3)


def draw_circle(ax: Any, found: Any, perceptrons: Any) -> None:
    angles = np.linspace(-np.pi, np.pi, 2881)
    units = np.column_stack([np.cos(angles), np.sin(angles)])
    right = Y * (units @ X.T) > 0
    for k, row in enumerate(right.T):
        arc = np.where(row[:, np.newaxis], (1.1 + 0.09 * k) * units, np.nan)
        ax.plot(*arc.T, color=colour(int(Y[k] > 0)), linewidth=1.4)
    ax.plot(*units.T, color=foreground(ax), linewidth=0.8)
    space = np.where(right.all(axis=1)[:, np.newaxis], units, np.nan)
    ax.plot(*space.T, color=AMBER, linewidth=9, alpha=0.7, label="version space")
    stops = np.array([w / np.linalg.norm(w) for w in perceptrons])
    ax.plot(*stops.T, "o", color=foreground(ax), markersize=3.5, label="perceptrons")
    for name, (w, shade, marker) in found.items():
        ax.plot(*(w / np.linalg.norm(w)), marker, color=shade, markersize=13, label=name)
    ax.plot(0, 0, "+", color=foreground(ax), markersize=10)
    ax.set(xlim=(-1.7, 1.7), ylim=(-1.7, 1.7), aspect="equal", xlabel="w₁", ylabel="w₂")
    ax.set_title("Directions w, and what each row allows")
    legend_below(ax, 2)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "version_space_circle.png")
