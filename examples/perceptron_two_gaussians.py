"""A perceptron learns to tell two Gaussians apart.

    python examples/perceptron_two_gaussians.py [PICTURE.png]

A hundred points lie around (2, 2) and a hundred around (1, 1), with variance 0.1 in each
coordinate. The weights start at random, uniform on (0, 1), and ten epochs follow with η = 0.05. The
classes overlap a little, so the line never comes to rest: whether it is good after the last epoch
is luck.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(200, means=((2, 2), (1, 1)), variance=0.1, random_state=0)
    learner = mm.Perceptron(eta=0.05, init="random", stop="epochs", max_epochs=10, trace=True)
    with mm.plots.theme():
        display = mm.plots.PerceptronPathDisplay.from_estimator(
            learner.fit(X, y), X, y, every="epoch", panels=6
        )
        display.save(path, dpi=140)
    wrong = [
        int(np.sum(mm.geometry.Hyperplane(w, b).functional_margin(X, y) <= 0))
        for w, b in zip(display.coef, display.intercept, strict=True)
    ]
    print(f"Wrong at the start and after each epoch: {wrong}")
    print(f"Mistakes made in each epoch: {[int(m) for m in learner.trace_.mistakes]}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "perceptron_two_gaussians.png")
