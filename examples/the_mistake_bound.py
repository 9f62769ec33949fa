"""Why a perceptron stops: two inequalities that cannot both hold for ever.

    python examples/the_mistake_bound.py [PICTURE.png]

Let u be the unit vector that separates the lifted points (x, 1) with the largest margin γ̃, and R̃
the length of the longest of them. After k updates from zero, γ̃k ≤ w̃·u ≤ ‖w̃‖ ≤ R̃√k: both lengths
stay in the grey wedge. On logarithmic scales its sides are straight lines, and they meet at
k = R̃²/γ̃². No perceptron makes more updates than that, in whatever order it sees the rows; the one
drawn here makes far fewer.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import BLUE, GREY, ORANGE, foreground, grid_of_axes, legend_below


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(200, means=((2, 2), (1, 1)), variance=0.05, random_state=3)
    model = mm.Perceptron(trace=True, random_state=1).fit(X, y)
    with mm.plots.theme():
        left, right = grid_of_axes(1, 2, (7.2, 4.4))[0]
        display = mm.plots.PerceptronPathDisplay.from_estimator(model, X, y, ax=left)
        draw_proof(right, model, X, y)
        display.save(path, dpi=140)
    print(f"{model.updates_} updates, bound {model.mistake_bound_:.0f}; picture in {path}")


def draw_proof(ax: Any, model: Any, X: Any, y: Any) -> None:
    lifted = np.hstack([X, np.ones((len(X), 1))])
    best = mm.HardMarginSVC(intercept="none").fit(lifted, y)
    u = best.coef_[0] / np.linalg.norm(best.coef_)
    gamma, R = (y * (lifted @ u)).min(), np.linalg.norm(lifted, axis=1).max()
    crossing = (R / gamma) ** 2
    path = np.hstack([model.trace_.coef[:, 0], model.trace_.intercept])[1:]
    k, made = np.geomspace(1, 4 * crossing, 50), np.arange(1, len(path) + 1)
    before = k <= crossing
    ax.fill_between(k, gamma * k, R * np.sqrt(k), where=before, color=GREY, alpha=0.2, linewidth=0)
    ax.loglog(k, R * np.sqrt(k), color=ORANGE, linestyle="--", label="R̃√k, not below ‖w̃‖")
    ax.loglog(k, gamma * k, color=BLUE, linestyle="--", label="γ̃k, not above w̃·u")
    ax.loglog(made, np.linalg.norm(path, axis=1), color=ORANGE, label="‖w̃‖ of the perceptron")
    ax.loglog(made, path @ u, color=BLUE, label="w̃·u of the perceptron")
    for stop in (len(path), crossing):
        ax.axvline(stop, color=foreground(ax), linewidth=0.8, linestyle=":")
    ax.plot(crossing, gamma * crossing, "o", color=foreground(ax), zorder=4)
    note = f"the bound:\nk = {crossing:.0f}"
    place = {"xytext": (-8, 12), "textcoords": "offset points", "ha": "right", "fontsize": 8}
    ax.annotate(note, (crossing, gamma * crossing), **place)
    place |= {"xytext": (4, 4), "ha": "left"}
    ax.annotate(f"stops at k = {len(path)}", (len(path), gamma), **place)
    ax.set(xlabel="updates k", ylabel="length", title="It must stop before the lines cross")
    legend_below(ax, 2)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "the_mistake_bound.png")
