"""Three ways to decide among more than two classes: pairs, one against the rest, all at once.

    python examples/multiclass_regions.py [PICTURE.png]

The same linear machine on the same rows, with the region of each class in its colour. One against
one draws a line for each pair of classes and lets them vote. One against the rest draws a line for
each class. No line cuts the class in the middle off from all others, so its score is poor, and its
region is too small. Crammer and Singer find the scores of all classes in one joint problem, in
which a row's own class has to lead all others by 1. The class in the middle then needs no line that
cuts it off, only the largest score where its rows are.

To try: mm.SVC, whose kernel is RBF by default, in place of LinearSVC. The three then agree about
nearly all rows and differ mainly where there are none.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import grid_of_axes

WAYS = {"ovo": "One against one", "ovr": "One against the rest", "crammer_singer": "Crammer–Singer"}
CENTRES = np.array([[-2.2, -0.4], [0.0, 0.5], [2.2, -0.4], [0.0, 2.8]])


def main(path: str) -> None:
    mpl.use("Agg")
    rng = np.random.default_rng(0)
    y = np.arange(200) % len(CENTRES)
    X = CENTRES[y] + rng.normal(scale=0.5, size=(200, 2))
    with mm.plots.theme():
        axes = grid_of_axes(1, 3, (8.4, 3.2))[0]
        for ax, (way, name) in zip(axes, WAYS.items(), strict=True):
            model = mm.LinearSVC(C=1.0, multi_class=way).fit(X, y)
            display = mm.plots.MarginDisplay.from_estimator(model, X, y, ax=ax)
            wrong = int((model.predict(X) != y).sum())
            ax.set_title(f"{name}: {wrong} wrong")
            print(f"{name}: {wrong} of {len(X)} rows wrong")
        display.save(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "multiclass_regions.png")
