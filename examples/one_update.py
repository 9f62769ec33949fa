"""One update of a perceptron, on a positive and on a negative example.

    python examples/one_update.py [PICTURE.png]

Without an intercept, w·x > 0 means that w and x make an angle below 90°. A positive example on the
wrong side is added to w, which turns towards it; a negative one is subtracted, and w turns away
from it. The green arrow is the step ηyx, from the tip of the old w to that of the new one.
Either way y w·x rises by η‖x‖²; with an intercept y f rises by η(‖x‖² + 1). Here η = 1.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = np.array([[-1.1, 0.7], [1.3, -0.5]]), np.array([1, -1])
    with mm.plots.theme():
        display = mm.plots.UpdateDisplay.from_examples(w=(1.0, 0.6), X=X, y=y)
        display.save(path, dpi=140)
    rise = y * np.sum((display.w_new - display.w) * X, axis=1)
    print(f"y w·x rises by {rise.round(2)}, and ‖x‖² is {np.sum(X**2, axis=1).round(2)}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "one_update.png")
