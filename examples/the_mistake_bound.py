"""A perceptron's path on two Gaussians, and the two inequalities that end it.

    python examples/the_mistake_bound.py [PICTURE.png]

After k updates from zero, with u a unit vector that separates the lifted points (x, 1) by γ̃ and
R̃ the longest of them:  kγ̃ ≤ w̃·u ≤ ‖w̃‖ ≤ R̃√k. A line outgrows a square root: the outer curves
cross at k = R̃²/γ̃², and no order of the rows makes more updates than that.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import BLUE, ORANGE, foreground, grid_of_axes, legend_below


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(200, means=((2, 2), (1, 1)), variance=0.05, random_state=3)
    model = mm.Perceptron(trace=True, random_state=1).fit(X, y)
    left, right = grid_of_axes(1, 2, (8.6, 4.4))[0]
    display = mm.plots.PerceptronPathDisplay.from_estimator(model, X, y, ax=left)
    draw_proof(right, model, X, y)
    display.save(path, dpi=110)
    print(f"{model.updates_} updates, bound {model.mistake_bound_:.0f}; picture in {path}")


def draw_proof(ax: Any, model: Any, X: Any, y: Any) -> None:
    lifted = np.hstack([X, np.ones((len(X), 1))])
    path = np.hstack([model.trace_.coef[:, 0], model.trace_.intercept])
    u = path[-1] / np.linalg.norm(path[-1])
    gamma, R = (y * (lifted @ u)).min(), np.linalg.norm(lifted, axis=1).max()
    k = np.arange(len(path))
    ax.plot(k, R * np.sqrt(k), color=ORANGE, linestyle="--", label="R̃√k, never below")
    ax.plot(k, np.linalg.norm(path, axis=1), color=foreground(ax), label="‖w̃‖ after k updates")
    ax.plot(k, path @ u, color=BLUE, label="w̃·u, along the separator")
    ax.plot(k, gamma * k, color=BLUE, linestyle="--", label="γ̃k, never above")
    ax.set(xlabel="updates k", ylabel="length", title="Why it must stop")
    legend_below(ax, 2)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "the_mistake_bound.png")
