"""Two proofs: a line that separates, or a point that both classes share.

    python examples/separability_witnesses.py [PICTURE.png]

Either a line separates two classes, or their convex hulls have a point in common; never both. So
there is a short proof of either answer, and mm.separate returns it. Left: the line, with the empty
band around it. You can check that every point is on its side. Right: one point of the class 1 has
moved, and no line separates the classes any more. The ringed points of each class mix to the same
point, the star. If a line had all points of a class on one side, their mixture would be there too,
but the star cannot be on both sides. The weights of the mixture are printed: they are positive, and
sum to 1 in each class.

To try: move the point back a little at a time, and see when the answer changes.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import grid_of_axes


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(30, variance=0.12, random_state=8)
    moved = X.copy()
    moved[np.flatnonzero(y > 0)[0]] = [1.0, 0.6]
    left, right = grid_of_axes(1, 2, (8.4, 4.6))[0]
    for ax, rows in ((left, X), (right, moved)):
        display = mm.plots.SeparabilityDisplay.from_data(rows, y, ax=ax)
        print(mm.separate(rows, y))
    display.save(path, dpi=110)
    witness = display.found.witness
    for row, weight in zip(witness.rows, witness.weights, strict=True):
        print(f"{weight:.3f} × row {row}, {moved[row].round(2)}, of class {y[row]}")
    print(f"in both classes the sum is {witness.point}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "separability_witnesses.png")
