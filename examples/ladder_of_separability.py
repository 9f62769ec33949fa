"""Which learner suits which data: six small sets, and the verdict that mm.diagnose gives each.

    python examples/ladder_of_separability.py [PICTURE.png]

Equal rows with different labels defeat every rule; a plane separates the next set, and all but a
few rows of the third; circles need a kernel. The fifth set has ten columns, of which the product of
two decides: a kernel of distances drowns in the others, a network learns which ones matter (only
these two are drawn). Labels drawn by lot cannot be predicted. Every verdict rests on evidence:
conflicts, a plane, or a significant difference in cross-validation.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import grid_of_axes, legend_below, scatter


def main(path: str) -> None:
    mpl.use("Agg")
    with mm.plots.theme():
        axes = grid_of_axes(2, 3, (7.6, 5.6))
        for ax, (X, y) in zip(axes.flat, sets(), strict=True):
            found = mm.diagnose(X, y)
            scatter(ax, X[:300, :2], y[:300], (-1, 1), size=9)
            ax.set(title=found.verdict, xticks=[], yticks=[], box_aspect=1)
            ax.set(xlabel=f"use {name_of(found.recommend())}")
            print(f"{found.verdict}: {found.reason}")
        legend_below(axes[1, 1])
        axes[0, 0].figure.savefig(path, dpi=110)


def sets() -> list[tuple[Any, Any]]:
    make = mm.datasets
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((500, 10))
    return [
        make.conflicts(150, fraction=0.3, random_state=0),
        make.separable(150, margin=0.2, random_state=0),
        make.flipped(*make.separable(150, margin=0.2, random_state=0), 0.03),
        make.circles(150, random_state=0),
        (wide, np.where(wide[:, 0] * wide[:, 1] > 0, 1, -1)),
        make.noise(150, random_state=0),
    ]


def name_of(model: Any) -> str:
    return type(model.steps[-1][1] if hasattr(model, "steps") else model).__name__


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "ladder_of_separability.png")
