"""Classes that overlap: the best possible rule, k nearest neighbours, and a line.

    python examples/overlap_and_neighbours.py [PICTURE.png]

Two Gaussian classes overlap so much that even the best rule, which knows their distribution, is
wrong for 20 % of new rows: the Bayes error. Its boundary is the dashed line. One nearest neighbour
has no training error at all and pays for it with islands around single rows; with many rows its
error would tend to at most twice the Bayes error. Averaging over 31 neighbours takes most of the
islands away. The linear machine is nearly as good as the best rule here, because the best rule is a
line. No machine gets below the Bayes error: to do better you need other features, not another
learner.

To try: bayes_error=0.05, where the differences shrink, or more neighbours.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import maxmargin as mm
from maxmargin.plots.style import BLUE, ORANGE, foreground, grid_of_axes, legend_under, scatter

SIDE = np.linspace(-3.5, 3.5, 141)
BAYES_ERROR = 0.2


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.overlapping(200, bayes_error=BAYES_ERROR, random_state=3)
    new = mm.datasets.overlapping(20_000, bayes_error=BAYES_ERROR, random_state=4)
    models: dict[str, Any] = {
        "1 neighbour": KNeighborsClassifier(1),
        "31 neighbours": KNeighborsClassifier(31),
        "linear SVM": mm.LinearSVC(C=1.0),
    }
    axes = grid_of_axes(1, 3, (8.4, 3.7), sharex=True, sharey=True)
    for ax, (name, model) in zip(axes[0], models.items(), strict=True):
        draw(ax, X, y, model.fit(X, y))
        error = 1 - model.score(*new)
        ax.set_title(f"{name}: error {error:.1%}", fontsize=10)
        print(
            f"{name}: {1 - model.score(X, y):.1%} wrong on training rows, {error:.1%} on new ones"
        )
    axes[0, 0].set_ylabel("x₂")
    legend_under(axes, axes[0, 0].get_legend_handles_labels()[0])
    axes[0, 0].figure.savefig(path, dpi=110)


def draw(ax: Any, X: Any, y: Any, model: Any) -> None:
    places = np.stack(np.meshgrid(SIDE, SIDE), axis=-1)
    regions = model.predict(places.reshape(-1, 2)).reshape(len(SIDE), -1)
    ax.contourf(SIDE, SIDE, regions, [-2, 0, 2], colors=[BLUE, ORANGE], alpha=0.18)
    scatter(ax, X, y, [-1, 1], size=9)
    best = {"color": foreground(ax), "linestyle": "--", "label": f"best rule: {BAYES_ERROR:.0%}"}
    ax.plot(SIDE, -SIDE, **best)
    ax.set(xlim=(-3.5, 3.5), ylim=(-3.5, 3.5), aspect="equal", xlabel="x₁")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "overlap_and_neighbours.png")
