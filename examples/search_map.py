"""Where to look for C and gamma: cross-validated accuracy of an RBF machine on two moons.

    python examples/search_map.py [PICTURE.png]

A small gamma makes wide kernels and nearly straight boundaries; a large one makes an island around
each row. To some extent a large C makes up for a small gamma, so the best C differs from row to row
of the map: search for both together, on a logarithmic grid. All fits of one row of the map share
one kernel matrix.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.moons(240, noise=0.5, random_state=2)
    grid = {"C": np.logspace(-2, 4, 7), "gamma": np.logspace(-3, 2, 6)}
    search = mm.SVCSearchCV(mm.SVC(), grid, scoring="accuracy").fit(X, y)
    with mm.plots.theme():
        mm.plots.SearchDisplay.from_estimator(search).save(path, dpi=140)
    print(f"best {search.best_score_:.3f} at {search.best_params_}")
    print(f"shared by the fits: {search.sharing_}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "search_map.png")
