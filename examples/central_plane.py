"""The line midway between two marginal lines, and the widest of all such pairs.

    python examples/central_plane.py [PICTURE.png]

For a direction w that separates the classes, the two marginal lines (dashed) are orthogonal to w
and touch one class each, at the ringed points; the line midway is as far from both as possible. On
the left w is a perceptron's. On the right it is turned until the marginal lines are as far apart as
they can be: that is the maximum margin, and the points on the lines are its support vectors.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots import planar
from maxmargin.plots.style import GREEN, foreground, grid_of_axes, legend_under, scatter


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(60, means=((2, 2), (0.8, 0.8)), variance=0.08, random_state=5)
    w = mm.Perceptron(random_state=3).fit(X, y).coef_[0]
    midway = mm.geometry.Hyperplane(w, mm.geometry.best_offset(w, X, y))
    model = mm.HardMarginSVC().fit(X, y)
    central = mm.geometry.Hyperplane(model.coef_[0], float(model.intercept_[0]))
    with mm.plots.theme():
        axes = grid_of_axes(1, 2, (7.2, 4.5), sharey=True)
        draw(axes[0, 0], midway, X, y, "In a perceptron's direction")
        draw(axes[0, 1], central, X, y, "In the best direction")
        legend_under(axes, axes[0, 0].get_legend_handles_labels()[0])
        axes[0, 0].figure.savefig(path, dpi=140)
    margin = midway.geometric_margin(X, y).min()
    print(f"margin {margin:.3f} in a perceptron's direction, {model.margin_:.3f} at most")


def draw(ax: Any, plane: mm.geometry.Hyperplane, X: Any, y: Any, title: str) -> None:
    """Draw a line with the band around it, its marginal lines, and the points that these touch."""
    seen, margins = mm.geometry.window(X, equal=True), plane.geometric_margin(X, y)
    margin = margins.min()
    scatter(ax, X, y, (-1, 1))
    planar.draw_line(ax, plane, seen, color=foreground(ax), linewidth=1.8, label="midway")
    for marginal, name in zip(
        mm.geometry.marginal_classifiers(plane, X, y), ("marginal lines", None), strict=True
    ):
        planar.draw_line(ax, marginal, seen, color=GREEN, linestyle="--", label=name)
    planar.draw_band(ax, plane, margin, seen, color=GREEN, alpha=0.15)
    touched = np.isclose(margins, margin, rtol=1e-6)
    planar.draw_rings(ax, X[touched], zorder=4, label="points touched")
    arrow = {"arrowstyle": "-|>", "color": foreground(ax), "linewidth": 1.6, "shrinkA": 0}
    foot = plane.project([[1.5, 1.4]])[0]
    ax.annotate("", foot + margin * plane.normal, foot, arrowprops=arrow | {"shrinkB": 0})
    place = {"xytext": (4, -10), "textcoords": "offset points"}
    ax.annotate(f"{margin:.2f}", foot + 0.5 * margin * plane.normal, **place)
    planar.show_window(ax, seen)
    ax.set(xlabel="x₁", ylabel="x₂", title=f"{title}: margin {margin:.2f}")
    ax.label_outer()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "central_plane.png")
