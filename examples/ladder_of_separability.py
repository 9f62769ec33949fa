"""Which learner suits which data: six small sets, the verdict of mm.diagnose, and its advice.

    python examples/ladder_of_separability.py [PICTURE.png]

A plane separates the first set. In the second, six rows (rings) are on the wrong side of any good
plane and have to be given up. The third needs a curved boundary, and a kernel. The fourth has ten
columns, and the product of two of them decides: a kernel of distances drowns in the other eight,
a network learns which ones matter. Two columns are drawn, with the other eight held at their means.
In the fifth set one class lies inside the other. They overlap for good: the best boundary is
curved, and more rows would not lower its error, as the learning curve shows. In the last the labels
were drawn by lot, and nothing beats naming the larger class. The boundaries are those of the models
that ``recommend("ladder")`` returns. Every verdict rests on evidence: a separating plane, rows to
be removed, a significant difference on held-out rows, or a curve.
"""

import sys
import warnings
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.plots import planar
from maxmargin.plots.style import BLUE, ORANGE, foreground, grid_of_axes, legend_under, scatter

SHOWN = 300  # points of a panel at most


def main(path: str) -> None:
    mpl.use("Agg")
    with mm.plots.theme():
        axes = grid_of_axes(2, 3, (7.2, 5.8))
        for ax, (X, y) in zip(axes.flat, sets(), strict=True):
            found = mm.diagnose(X, y)
            with warnings.catch_warnings():  # the network stops after 100 steps, as it was scored
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = found.recommend("ladder").fit(X, y)
            draw_regions(ax, model, X)
            artists = scatter(ax, X[:SHOWN, :2], y[:SHOWN], (-1, 1), size=9)
            if found.verdict == "almost linearly separable":
                planar.draw_rings(ax, X[model.predict(X) != y])
            ax.set(title=found.verdict, xlabel=f"use {name_of(model)}")
            ax.set(xticks=[], yticks=[], box_aspect=1)
            print(f"{found.verdict}: {found.reason}")
        legend_under(axes, artists)
        axes[0, 0].figure.savefig(path, dpi=140)


def sets() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(2)
    narrow, wide = 0.5 * rng.standard_normal((500, 2)), 1.6 * rng.standard_normal((500, 2))
    mixed = rng.permutation(1000)
    apart = mm.datasets.gaussians(150, means=((0.8, -1), (-0.8, 1)), variance=0.2, random_state=3)
    return [
        mm.datasets.separable(150, margin=0.5, w=(1, 1), random_state=0),
        mm.datasets.flipped(*apart, 0.04, random_state=1),
        mm.datasets.moons(150, noise=0.15, random_state=0),
        mm.datasets.xor(400, noise=0.95, n_features=10, random_state=0),
        (np.vstack([narrow, wide])[mixed], np.repeat([1, -1], 500)[mixed]),
        mm.datasets.noise(150, random_state=0),
    ]


def draw_regions(ax: Any, model: Any, X: Any) -> None:
    """Fill the region of each class in the plane of the first two columns."""
    low, high = mm.geometry.pad(X[:SHOWN, :2])
    sides = [np.linspace(start, end, 200) for start, end in zip(low, high, strict=True)]
    grid = np.tile(X.mean(axis=0), (200 * 200, 1))
    grid[:, :2] = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    predicted = model.predict(grid).reshape(200, 200)
    ax.contourf(*sides, predicted, levels=[-2, 0, 2], colors=[BLUE, ORANGE], alpha=0.15)
    if np.ptp(predicted):
        ax.contour(*sides, predicted, levels=[0], colors=foreground(ax), linewidths=1.2)


def name_of(model: Any) -> str:
    return type(model.steps[-1][1] if hasattr(model, "steps") else model).__name__


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "ladder_of_separability.png")
