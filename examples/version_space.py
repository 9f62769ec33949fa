"""All lines that separate two classes, as points of a sphere.

    python examples/version_space.py [PICTURE.png]

A line w·x + b = 0 is a point (w₁, w₂, b) of the sphere, if scaled to length 1. Each row puts a wall
through the sphere, and the lines that are right about all rows are the patch between the walls: the
version space. A perceptron stops somewhere in it. With rows of length 1, the line of largest margin
is the centre of the largest ball that fits in; with longer rows some walls would count as nearer.
The Bayes point is the mean of the whole patch: where that is long, the ball sees only a part of it.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm

X = np.array(
    [[0.0, 1.6], [0.9, 2.0], [1.9, 1.1], [2.6, 2.0], [0.4, -0.4], [1.4, -1.0], [2.9, -0.6]]
)
Y = np.array([1, 1, 1, 1, 0, 0, 0])


def main(path: str) -> None:
    mpl.use("Agg")
    with mm.plots.theme():
        display = mm.plots.VersionSpaceDisplay.from_data(X, Y)
        display.save(path, dpi=110)
    apart = np.degrees(np.arccos(display.ball_centre @ display.bayes_point))
    near = (display.walls @ display.ball_centre).min(), (display.walls @ display.bayes_point).min()
    print(f"Bayes point and centre of the largest ball are {apart:.1f}° apart")
    print(f"Nearest wall: {near[0]:.3f} from the centre of the ball, {near[1]:.3f} from the mean")
    print(f"{len(display.perceptrons)} perceptrons; picture in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "version_space.png")
