"""What a row costs by its margin: the losses behind perceptrons, SVMs, ridge and logistic models.

    python examples/hinge_family.py [PICTURE.png]

A row is classified correctly if y f > 0. The number of mistakes is not a convex function of f, so
learners minimise something convex instead. The hinge max(0, 1 − y f) and its square, the logistic
loss log₂(1 + exp(−y f)) and the squared loss (1 − y f)² all lie above the count of mistakes, so a
small sum of them means few mistakes. The perceptron's max(0, −y f) does not: it is 0 for every
separator. From y f = 1 on both hinge losses are 0, so rows beyond the margin have no influence;
the squared loss grows again, and penalises rows for being far on their correct side.
"""

import sys

import matplotlib as mpl

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    with mm.plots.theme():
        display = mm.plots.LossDisplay().plot()
    display.save(path, dpi=140)
    far = {name: line.get_ydata()[-1] for name, line in display.lines_.items()}
    print("loss of a row with y f = 3:")
    print(", ".join(f"{name} {loss:.2g}" for name, loss in far.items()))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "hinge_family.png")
