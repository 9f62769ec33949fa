"""The plane midway between two marginal classifiers, and the widest of all such pairs.

    python examples/central_plane.py [PICTURE.png]

For a direction w that separates, the two marginal classifiers are the parallel lines that touch one
class each; the line midway is as far from both as can be. On the left w is a perceptron's, on the
right it is turned until the lines are furthest apart: that is the maximum margin, and the points
on the lines are its support vectors.
"""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(60, means=((2, 2), (0.8, 0.8)), variance=0.08, random_state=5)
    w = mm.Perceptron(random_state=3).fit(X, y).coef_[0]
    midway = mm.geometry.Hyperplane(w, mm.geometry.best_offset(w, X, y))
    midway = mm.geometry.canonical(midway, X, y)  # f = ±1 are the marginal classifiers now
    model = mm.HardMarginSVC().fit(X, y)

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4.6), layout="constrained")
    mm.plots.MarginDisplay(
        X, y, [-1, 1], weights=midway.w, intercept=midway.b, axis_labels=("x₁", "x₂")
    ).plot(left)
    mm.plots.MarginDisplay.from_estimator(model, X, y, ax=right)
    left.set_title("Midway, in a perceptron's direction")
    right.set_title("Midway, in the best direction")
    figure.savefig(path, dpi=150)
    print(f"margin {1 / midway.norm:.3f} in a perceptron's direction, {model.margin_:.3f} at most")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "central_plane.png")
