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
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import colour, foreground, legend_below, new_axes, settle

M = np.linspace(-2.5, 3.0, 1101)  # margins y f, with 0 and 1 among them: there losses have kinks
LOSSES = {
    "0/1": (M <= 0) * 1.0,
    "perceptron": np.maximum(0.0, -M),
    "hinge": np.maximum(0.0, 1.0 - M),
    "squared hinge": np.maximum(0.0, 1.0 - M) ** 2,
    "logistic": np.logaddexp(0.0, -M) / np.log(2.0),
    "squared": (1.0 - M) ** 2,
}
DASHES = ("-", "--", "-", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
WIDTHS = {"hinge": 2.4, "squared hinge": 3.0}  # half of the latter is hidden by the squared loss


def main(path: str) -> None:
    mpl.use("Agg")
    with mm.plots.theme():
        ax = new_axes(size=(4.6, 3.6))
        for m in (0, 1):
            ax.axvline(m, color=foreground(ax), linewidth=0.6, alpha=0.5)
        for k, (name, loss) in enumerate(LOSSES.items()):
            line = {"color": colour(k) if k else foreground(ax), "linewidth": WIDTHS.get(name, 1.5)}
            ax.plot(M, loss, linestyle=DASHES[k], label=name, **line)
        ax.set(xlim=(-2.5, 3.0), ylim=(-0.2, 4.0), yticks=range(5))
        ax.set(xlabel="functional margin y f(x)", ylabel="loss of the row")
        ax.set_title("What a row costs, by its margin")
        legend_below(ax)
        settle(ax.figure)
        ax.figure.savefig(path, dpi=140)
    print("loss of a row with y f = 3:")
    print(", ".join(f"{name} {loss[-1]:.2g}" for name, loss in LOSSES.items()))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "hinge_family.png")
