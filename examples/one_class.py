"""One class: where most of the rows are, and which of them are unusual.

    python examples/one_class.py [PICTURE.png]

The machine sees rows without labels. In the feature space of an RBF kernel it looks for the plane
farthest from the origin that has most rows beyond it; in the plane of the picture that is a curve
around them. At most the share ν of the rows lie outside, and at least that share are support
vectors. So ν is the share of outliers that you are ready to declare. A small ν follows the rows as
far as they go; a large one keeps only their core.

To try: gamma=0.1 for a rounder curve, gamma=5 for one that falls apart into islands.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import grid_of_axes


def main(path: str) -> None:
    mpl.use("Agg")
    rng = np.random.default_rng(2)
    X, _ = mm.datasets.moons(200, noise=0.25, random_state=1)
    X = np.vstack([X, rng.uniform(-2.2, 3, size=(8, 2))])
    with mm.plots.theme():
        axes = grid_of_axes(1, 3, (8.4, 3.6))[0]
        for ax, nu in zip(axes, (0.05, 0.2, 0.5), strict=True):
            model = mm.OneClassSVM(nu=nu, gamma=1.0).fit(X)
            display = mm.plots.MarginDisplay.from_estimator(model, X, ax=ax)
            outside, support = model.outlier_fraction_, model.support_fraction_
            ax.set_title(f"ν = {nu:g}: {outside:.1%} outside")
            print(f"ν = {nu:g}: {outside:.1%} outside, {support:.1%} support vectors")
        display.save(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "one_class.png")
