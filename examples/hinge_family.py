"""What a row costs by its margin: the losses behind perceptrons, SVMs, ridge and logistic models.

    python examples/hinge_family.py [PICTURE.png]

A row is right if y f > 0. Counting mistakes is not convex, so learners minimise something convex:
the hinge max(0, 1 − y f) and its square, the logistic loss log₂(1 + exp(−y f)) and the squared
loss (1 − y f)² all lie above the count, so a small sum of them means few mistakes; the perceptron's
max(0, −y f) does not, which is why it is content with any separator. From y f = 1 on the hinge
losses are 0: rows beyond the margin have no say. The squared loss punishes them.
"""

import sys

import matplotlib as mpl

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    with mm.plots.theme():
        display = mm.plots.LossDisplay().plot()
    display.save(path, dpi=110)
    far = {name: line.get_ydata()[-1] for name, line in display.lines_.items()}
    print("loss of a row with y f = 3:")
    print(", ".join(f"{name} {loss:.2g}" for name, loss in far.items()))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "hinge_family.png")
