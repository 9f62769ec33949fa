"""C against the error on new rows: too soft, too hard, and a valley between.

    python examples/C_and_test_error.py [PICTURE.png]

Two classes that overlap, a quarter of the rows in the smaller one, 60 training rows, an RBF
machine, and C from 0.01 to 10,000. Lines are means over 20 training sets, and bands reach from the
10th to the 90th percentile. If slack is cheap, the machine gives up the smaller class, a quarter of
the rows. As slack becomes more expensive, the error on the training rows falls to 0. On new rows it
falls, too, but then rises again, because the machine begins to follow single rows. It never gets
below the Bayes error, the dotted line, which no rule can beat. So choose C by cross-validation,
never by the training error; powers of ten are fine enough to start with.

To try: more rows. The valley becomes wider, and its floor comes closer to the dotted line.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import BLUE, ORANGE, foreground, grid_of_axes, legend_below

COSTS = np.logspace(-2, 4, 13)
SETS = 20
TRUTH: dict[str, Any] = {"bayes_error": 0.1, "balance": 0.25}


def main(path: str) -> None:
    mpl.use("Agg")
    new = mm.datasets.overlapping(2000, **TRUTH, random_state=1000)
    errors = np.array([draw_errors(seed, *new) for seed in range(SETS)])
    ax = grid_of_axes(1, 1, (6.6, 4.2))[0, 0]
    looks = ((BLUE, "o", "new rows"), (ORANGE, "s", "training rows"))
    for k, (colour, marker, name) in enumerate(looks):
        low, high = np.quantile(errors[:, k], [0.1, 0.9], axis=0)
        ax.fill_between(COSTS, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(COSTS, errors[:, k].mean(axis=0), marker + "-", color=colour, label=name)
    line = {"color": foreground(ax), "linestyle": ":", "label": "Bayes error"}
    ax.axhline(100 * TRUTH["bayes_error"], **line)
    ax.set(xscale="log", xlabel="C, the cost of slack", ylabel="error in %", ylim=(0, None))
    ax.set_title(f"Error against C: mean of {SETS} training sets, and 10 to 90 %")
    legend_below(ax, 3)
    ax.figure.savefig(path, dpi=110)
    means = errors[:, 0].mean(axis=0)
    best = int(np.argmin(means))
    print(f"on new rows {means[0]:.1f} % with C = {COSTS[0]:g}, {means[-1]:.1f} % at the other end")
    print(f"the least is {means[best]:.1f} % with C = {COSTS[best]:.2g}")


def draw_errors(seed: int, X_new: Any, y_new: Any) -> Any:
    """Return the errors in percent on new rows and on the training rows, for each C."""
    X, y = mm.datasets.overlapping(60, **TRUTH, random_state=seed)
    models = [mm.SVC(C=C, gamma=1.0).fit(X, y) for C in COSTS]
    scores = [[model.score(X_new, y_new), model.score(X, y)] for model in models]
    return 100 * (1 - np.array(scores).T)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "C_and_test_error.png")
