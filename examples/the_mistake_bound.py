"""A perceptron's path on two Gaussians, and the two inequalities that end it.

    python examples/the_mistake_bound.py [PICTURE.png]

After k updates from zero, with u a unit vector that separates the lifted points (x, 1) by γ̃ and
R̃ the longest of them:  kγ̃ ≤ w̃·u ≤ ‖w̃‖ ≤ R̃√k. The outer curves cross at k = R̃²/γ̃².
"""

import sys
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(200, means=((2, 2), (1, 1)), variance=0.05, random_state=3)
    model = mm.Perceptron(trace=True, random_state=1).fit(X, y)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    draw_path(left, model, X, y)
    draw_proof(right, model, X, y)
    figure.savefig(path, dpi=150)
    print(f"{model.updates_} updates, bound {model.mistake_bound_:.0f}; picture in {path}")


def draw_path(ax: Any, model: Any, X: Any, y: Any) -> None:
    ends = np.array([X[:, 0].min() - 0.3, X[:, 0].max() + 0.3])
    path = list(zip(model.trace_.coef[:, 0], model.trace_.intercept[:, 0], strict=True))
    for k, (w, b) in enumerate(path[1:], 1):
        if abs(w[1]) > 1e-9:
            line = mm.geometry.Hyperplane(w, b).line(ends)
            ax.plot(ends, line, color=GREY, alpha=0.1 + 0.4 * k / len(path), linewidth=0.8)
    ax.plot(ends, mm.geometry.Hyperplane(*path[-1]).line(ends), color="black", label="last line")
    for label, colour, marker in ((1, BLUE, "o"), (-1, ORANGE, "s")):
        ax.scatter(*X[y == label].T, s=16, color=colour, marker=marker, label=f"y = {label:+d}")
    ax.set(xlim=ends, ylim=(X[:, 1].min() - 0.3, X[:, 1].max() + 0.3))
    ax.set(xlabel="x₁", ylabel="x₂", title=f"The line after each of {model.updates_} updates")
    below(ax, 3)


def draw_proof(ax: Any, model: Any, X: Any, y: Any) -> None:
    lifted = np.hstack([X, np.ones((len(X), 1))])
    path = np.hstack([model.trace_.coef[:, 0], model.trace_.intercept])
    u = path[-1] / np.linalg.norm(path[-1])
    gamma, R = (y * (lifted @ u)).min(), np.linalg.norm(lifted, axis=1).max()
    k = np.arange(len(path))
    ax.plot(k, R * np.sqrt(k), color=ORANGE, linestyle="--", label="R̃ √k, never above")
    ax.plot(k, np.linalg.norm(path, axis=1), color="black", label="‖w̃‖ after k updates")
    ax.plot(k, path @ u, color=BLUE, label="w̃ · u, towards the separator")
    ax.plot(k, gamma * k, color=BLUE, linestyle="--", label="γ̃ k, never below")
    ax.set(xlabel="updates k", ylabel="length", title="Why it must stop")
    below(ax, 2)


def below(ax: Any, columns: int) -> None:
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=columns, frameon=False)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "the_mistake_bound.png")
