"""A film of a perceptron: one line for each update, until no row is wrong.

    python examples/perceptron_film.py [PICTURE.png]

Each picture shows the line after an update, and the misclassified row that caused it, ringed. An
update turns and shifts the line towards the right side of that row, though not always far enough,
and it may lose other rows: the number of wrong rows can go up. The run ends all the same, because
the classes are separable. The example also writes a film with every update, an animated GIF. If you
give animate() a path that ends in .html, you get a page with a slider that needs no other files.

To try: another order of the rows (random_state), or a larger η (eta), with which fewer but larger
steps are made.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(
        60, means=((0.8, 0.6), (-0.5, -0.7)), variance=0.15, random_state=5
    )
    start = np.array([-1.0, 0.6]), 0.3  # w and b of a bad line
    learner = mm.Perceptron(eta=0.2, init=start, trace=True, random_state=5).fit(X, y)
    with mm.plots.theme():
        display = mm.plots.PerceptronPathDisplay.from_estimator(learner, X, y, panels=6)
        display.save(path, dpi=110)
        film = display.animate(Path(path).with_suffix(".gif"), fps=2.0, dpi=100)
    print(f"{learner.updates_} updates in {learner.n_iter_} epochs; film in {film}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "perceptron_film.png")
