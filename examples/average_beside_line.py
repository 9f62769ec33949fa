"""One line, or the average of all lines that separate.

    python examples/average_beside_line.py [PICTURE.png]

Left: the line of largest margin. It divides the plane into two sides and is as sure of a point far
from all rows as of one among them. The grey lines separate the rows just as well. Right: the
average over all of them, each with one vote. Shading is the share of votes for class 1, in steps of
5 %. Near the rows the lines agree; far away, where no row says how the line goes on, the vote is
open. At the three queries the single line gives a label, and the average says how sure one can be
of it.

The average rests on assumptions, too: that a line is the right rule, that no label is wrong, and
that every line was equally likely before, up to its prior (w and b standard normal).

To try: 6 rows instead of 14. The vote is then open over a larger part of the plane.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

import maxmargin as mm
from maxmargin.plots.style import (
    BLUE,
    GREY,
    ORANGE,
    foreground,
    grid_of_axes,
    legend_under,
    scatter,
)

QUERIES = np.array([[0.3, 2.2], [3.2, -1.0], [-3.2, 2.4]])
SIDE = np.linspace(-4, 4, 121)


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(14, ((0.7, 1.0), (-0.6, -0.9)), variance=0.25, random_state=4)
    hard = mm.HardMarginSVC().fit(X, y)
    average = mm.BayesPointClassifier().fit(X, y)
    axes = grid_of_axes(1, 2, (8.4, 4.9), sharex=True, sharey=True)
    left, right = axes[0]
    for w1, w2, b in average.samples_[0][::60]:
        left.axline((0, -b / w2), slope=-w1 / w2, color=GREY, linewidth=0.5, alpha=0.6)
    labels = [f"{label:+d}".replace("-", "−") for label in hard.predict(QUERIES)]
    # Nearly a step: 0 on one side, 1 on the other.
    draw(left, X, y, lambda rows: np.clip(0.5 + 2 * hard.decision_function(rows), 0, 1), labels)
    shares = [f"{share:.0%}" for share in average.predict_proba(QUERIES)[:, 1]]
    draw(right, X, y, lambda rows: average.predict_proba(rows)[:, 1], shares)
    left.plot([], [], color=GREY, linewidth=0.8, label="other separating lines")
    left.set(title="The line of largest margin", ylabel="x₂")
    right.set_title("The share of all separating lines for class 1")
    legend_under(axes, left.get_legend_handles_labels()[0])
    left.figure.savefig(path, dpi=110)
    for query, label, share in zip(QUERIES, labels, shares, strict=True):
        print(f"at {query} the line says {label}, and {share} of all lines say +1")


def draw(ax: Any, X: Any, y: Any, score: Any, answers: Any) -> None:
    places = np.stack(np.meshgrid(SIDE, SIDE), axis=-1).reshape(-1, 2)
    P = score(places).reshape(len(SIDE), -1)
    shades = LinearSegmentedColormap.from_list("", [BLUE, "white", ORANGE])
    ax.contourf(SIDE, SIDE, P, np.linspace(0, 1, 21), cmap=shades, alpha=0.4)
    ax.contour(SIDE, SIDE, P, [0.5], colors=foreground(ax))
    ax.plot([], [], color=foreground(ax), label="even: the boundary")
    scatter(ax, X, y, [-1, 1], size=22, zorder=3)
    ax.plot(*QUERIES.T, "*", color=foreground(ax), markersize=9, label="query")
    for query, answer in zip(QUERIES, answers, strict=True):
        ax.annotate(answer, query, (0, 7), textcoords="offset points", ha="center")
    ax.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal", xlabel="x₁")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "average_beside_line.png")
