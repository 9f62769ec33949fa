"""Many lines separate the same classes, and the data choose none of them.

    python examples/many_separators.py [PICTURE.png]

Every perceptron that stops has found a separator, a different one for each start and order of
rows. They agree on all points seen and disagree on the query. Each line has an empty band around
it, as wide as twice its margin; the widest belongs to the central line, midway between the two
marginal classifiers, which HardMarginSVC finds whatever the order.
"""

import sys

import matplotlib as mpl

import maxmargin as mm
from maxmargin.plots.style import grid_of_axes


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.separable(40, margin=0.4, w=(1, 2), random_state=5)
    axes = grid_of_axes(1, 2, (8.6, 5.4))
    display = mm.plots.SeparatorsDisplay.from_data(X, y, ax=axes[0, 0])
    mm.plots.SeparatorsDisplay.from_data(X, y, bands=True, query=None, ax=axes[0, 1])
    display.save(path, dpi=110)
    least, most = display.margins.min(), display.margins.max()
    print(f"Margins of {len(display.margins)} perceptrons: {least:.4f} to {most:.4f}")
    print(f"The largest margin there is: {display.central_margin:.4f}")
    print("Of the query, {} lines say -1 and {} say 1".format(*display.votes))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "many_separators.png")
