"""One pass over the data or many: the last vector, the vote and the average.

    python examples/one_pass_or_many.py [PICTURE.png]

Two Gaussians overlap in ten dimensions, so no perceptron converges: the accuracy of the last vector
goes up and down, after one epoch as after twelve. The average and the vote are good after one pass,
which is all that a stream allows, and gain little from more. The lines are means over eight runs
with different data and orders; the shaded bands reach from the worst run to the best.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import colour, legend_below, new_axes

EPOCHS, RUNS = 12, 8
LEARNERS = {
    "last vector": mm.Perceptron,
    "voted": mm.VotedPerceptron,
    "averaged": mm.AveragedPerceptron,
}


def main(path: str) -> None:
    mpl.use("Agg")
    with mm.plots.theme():
        draw(path)


def draw(path: str) -> None:
    ax = new_axes(size=(5.6, 3.9))
    epochs = np.arange(1, EPOCHS + 1)
    for k, (name, learner) in enumerate(LEARNERS.items()):
        scores = np.array([accuracies(learner(), seed) for seed in range(RUNS)])
        ax.fill_between(epochs, scores.min(axis=0), scores.max(axis=0), color=colour(k), alpha=0.15)
        look = {"color": colour(k), "linestyle": ("-", "--", "-.")[k]}
        ax.plot(epochs, scores.mean(axis=0), marker="o", markersize=3, label=name, **look)
        first, last = scores[:, [0, -1]].mean(axis=0)
        print(f"{name}: accuracy {first:.3f} after one epoch, {last:.3f} after {EPOCHS}")
    ax.set(xlabel="epochs", ylabel="accuracy on new data")
    ax.set_title("One pass is enough for an average or a vote")
    legend_below(ax)
    ax.figure.savefig(path, dpi=140)


def accuracies(model: Any, seed: int) -> list[float]:
    """Return the accuracy on new data after each epoch."""
    rng = np.random.default_rng(seed)
    means = np.full((2, 10), 0.3) * [[1], [-1]]
    X, y = mm.datasets.gaussians(300, means, variance=1.0, random_state=rng)
    fresh = mm.datasets.gaussians(2000, means, variance=1.0, random_state=rng)
    scores = []
    for _ in range(EPOCHS):
        order = rng.permutation(len(X))
        model.partial_fit(X[order], y[order], classes=[-1, 1])
        scores.append(model.score(*fresh))
    return scores


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "one_pass_or_many.png")
