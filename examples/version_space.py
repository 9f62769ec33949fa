"""All lines that separate two classes, as points of a sphere.

    python examples/version_space.py [PICTURE.png]

A line w·x + b = 0 is a point (w₁, w₂, b) of a sphere, if it is scaled to length 1. Each row puts a
wall through the sphere: on one side of it are the lines that are right about the row. The lines
that are right about all rows are the patch between the walls, the version space. A perceptron stops
somewhere in it. The cross is the centre of the largest ball that fits between the walls. It is the
separator of largest margin if all rows (x, 1) are scaled to length 1 and the bias counts as a
weight like the others. The star is the Bayes point, the mean of the whole patch. Where the patch is
long, the ball fills only a part of it, and the two differ.

To try: leave out a row. If its wall borders the patch, the patch grows; otherwise it stays.
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
        display.save(path, dpi=140)
    apart = np.degrees(np.arccos(display.ball_centre @ display.bayes_point))
    near = (display.walls @ display.ball_centre).min(), (display.walls @ display.bayes_point).min()
    print(f"Bayes point and centre of the largest ball are {apart:.1f}° apart")
    print(f"Nearest wall: {near[0]:.3f} from the centre of the ball, {near[1]:.3f} from the mean")
    print(f"{len(display.perceptrons)} perceptrons; picture in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "version_space.png")
