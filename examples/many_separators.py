"""Many lines separate the same classes, and the data choose none of them.

    python examples/many_separators.py [PICTURE.png]

Every perceptron that stops has found a separator, a different one for each start and order of the
rows. All these lines agree on the points seen, and they disagree on the query (star). Each line has
an empty band around it, twice as wide as its margin. The widest band belongs to the central line,
midway between the two marginal lines; HardMarginSVC finds it for any order of the rows.
"""

import sys

import matplotlib as mpl

import maxmargin as mm
from maxmargin.plots.style import grid_of_axes


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.separable(40, margin=0.5, w=(1, 2), random_state=5)
    with mm.plots.theme():
        left, right = grid_of_axes(1, 2, (7.2, 4.7))[0]
        display = mm.plots.SeparatorsDisplay.from_data(X, y, n_lines=12, ax=left)
        mm.plots.SeparatorsDisplay.from_data(X, y, n_lines=1, bands=True, query=None, ax=right)
        left.set_title("Twelve perceptrons, and the central line", pad=15)
        right.set_title("Empty bands around two of the lines", pad=15)
        display.save(path, dpi=140)
    least, most = display.margins.min(), display.margins.max()
    print(f"Margins of {len(display.margins)} perceptrons: {least:.4f} to {most:.4f}")
    print(f"The largest margin there is: {display.central_margin:.4f}")
    print("Of the query, {} lines say -1 and {} say 1".format(*display.votes))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "many_separators.png")
