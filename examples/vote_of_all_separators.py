"""The vote of all separators, and the single line of largest margin.

    python examples/vote_of_all_separators.py [PICTURE.png]

Four points of one class and three of the other. The line of largest margin is one of infinitely
many lines that separate them. If all these lines vote, each point of the plane gets a probability.
Near the points it changes quickly from one class to the other. Far away, where no point says how
the line goes on, it stays close to ½ over a wide region. The curve on which the vote is even, P =
½, is not a line, although every voter is one.

To try: add a point far out. All voters are right about it, so the vote around it becomes clear.
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
        display = mm.plots.VersionSpaceDisplay.from_data(X, Y, view="plane")
        display.save(path, dpi=140)
    w, b = display.central
    along = np.array([-w[1], w[0]]) / np.linalg.norm(w)
    foot = -b * w / (w @ w)
    votes = display.probability(foot + np.outer([-3.0, 0.0, 3.0], along))
    shares = ", ".join(f"{vote:.0%}" for vote in votes)
    print(f"On the line of largest margin, from end to end, {shares} vote for the upper class")
    print(f"picture in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "vote_of_all_separators.png")
