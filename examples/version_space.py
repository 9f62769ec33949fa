"""All lines that separate two classes, as points of a sphere.

    python examples/version_space.py [PICTURE.png]

A line w·x + b = 0 is a point (w₁, w₂, b) of a sphere, if it is scaled to length 1. Each row puts a
wall through the sphere: on one side of it are the lines that are right about the row. The lines
that are right about all rows are the patch between the walls, the version space. A perceptron stops
somewhere in it. The cross is the centre of the largest ball that fits between the walls. It is the
separator of largest margin if all rows (x, 1) are scaled to length 1 and the bias counts as a
weight like the others. The star is the Bayes point, the mean of the whole patch. Where the patch is
long, the ball fills only a part of it, and the two differ.

To try: leave out a row. If its wall borders the patch, the patch grows; otherwise it stays.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import (
    AMBER,
    GREEN,
    GREY,
    PINK,
    colour,
    foreground,
    legend_below,
    new_axes,
    settle,
)

X = np.array(
    [[0.0, 1.6], [0.9, 2.0], [1.9, 1.1], [2.6, 2.0], [0.4, -0.4], [1.4, -1.0], [2.9, -0.6]]
)
Y = np.array([1, 1, 1, 1, -1, -1, -1])
TURN = np.linspace(0, 2 * np.pi, 600)
CIRCLE = np.column_stack([np.cos(TURN), np.sin(TURN)])


def main(path: str) -> None:
    mpl.use("Agg")
    rows = unit(np.column_stack([X, np.ones(len(X))]))
    walls = rows * Y[:, np.newaxis]  # a separator u has a positive product with each of them
    bayes = mm.BayesPointClassifier(intercept_scaling=0, n_samples=8000, random_state=0)
    draws = unit(bayes.fit(rows, Y).samples_[0])
    mean = unit(draws.mean(axis=0))
    ball = unit(mm.HardMarginSVC(intercept="none").fit(rows, Y).coef_[0])
    perceptrons = unit(np.array([perceptron(rows, seed) for seed in range(30)]))
    with mm.plots.theme():
        ax = new_axes(size=(4.6, 5.0))
        frame = frame_of(mean)  # the sphere is seen from above the Bayes point
        draw_space(ax, walls, frame)
        radius = (walls @ ball).min()
        rim = np.sqrt(1 - radius**2) * ball + radius * CIRCLE @ frame_of(ball)[:2]
        ax.plot(*(rim @ frame[:2].T).T, color=GREEN, linewidth=1.2, linestyle="--")
        for place, size, marker, shade, name in (
            (perceptrons, 26, ".", GREY, "perceptrons"),
            (ball, 60, "P", GREEN, "largest ball (SVM)"),
            (mean, 110, "*", PINK, "Bayes point"),
        ):
            dots = {"s": size, "marker": marker, "zorder": 3, "linewidths": 0}
            ax.scatter(*frame[:2] @ place.T, c=shade, label=name, **dots)
        legend_below(ax, 2)
        settle(ax.figure)
        ax.figure.savefig(path, dpi=140)
    print(f"Bayes point and ball's centre are {np.degrees(np.arccos(ball @ mean)):.1f}° apart")
    print(f"Nearest wall: {radius:.3f} from the centre, {(walls @ mean).min():.3f} from the mean")
    print(f"{len(perceptrons)} perceptrons; picture in {path}")


def unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def frame_of(u: Any) -> Any:
    """Return three orthogonal rows of length 1, the last of which is u."""
    first = np.linalg.svd(u[np.newaxis])[2][1]
    return np.array([first, np.cross(u, first), u])


def perceptron(rows: Any, seed: int) -> Any:
    start = np.random.default_rng(seed).standard_normal(3)
    model = mm.Perceptron(fit_intercept=False, init=(start, 0.0), random_state=seed)
    return model.fit(rows, Y).coef_[0]


def draw_space(ax: Any, walls: Any, frame: Any) -> None:
    """Draw the near half of the sphere, its walls, and the patch between them."""
    side = np.linspace(-1.06, 1.06, 300)
    flat = np.stack(np.meshgrid(side, side), axis=-1)
    height = np.sqrt(np.maximum(1 - (flat**2).sum(axis=-1), 0))
    u = np.concatenate([flat, height[..., np.newaxis]], axis=-1) @ frame
    inside = np.where(height > 0, (u @ walls.T).min(axis=-1), -1)
    ax.contourf(side, side, inside, levels=[0, 2], colors=[AMBER], alpha=0.35, zorder=0.5)
    ax.plot(*CIRCLE.T, color=foreground(ax), linewidth=1.0)
    for k, sign in enumerate((-1, 1)):
        for i, wall in enumerate(walls[sign == Y]):
            seen = CIRCLE @ frame_of(wall)[:2] @ frame.T
            seen[seen[:, 2] < 0] = np.nan  # behind the sphere
            name = "" if i else f"walls of {k}"
            ax.plot(*seen[:, :2].T, color=colour(k), linewidth=1.0, alpha=0.75, label=name)
    ax.set(xlim=(-1.06, 1.06), ylim=(-1.06, 1.06), aspect="equal", xticks=[], yticks=[])
    ax.set(xlabel="seen from above the Bayes point", ylabel="(w₁, w₂, b) of length 1")
    ax.set_title("All separators: the version space")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "version_space.png")
