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
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

import maxmargin as mm
from maxmargin.plots import planar
from maxmargin.plots.style import GREEN, PINK, colour, foreground, legend_below, new_axes, settle

X = np.array(
    [[0.0, 1.6], [0.9, 2.0], [1.9, 1.1], [2.6, 2.0], [0.4, -0.4], [1.4, -1.0], [2.9, -0.6]]
)
Y = np.array([1, 1, 1, 1, 0, 0, 0])


def main(path: str) -> None:
    mpl.use("Agg")
    model = mm.HardMarginSVC().fit(X, Y)
    central = mm.geometry.Hyperplane(model.coef_[0], float(model.intercept_[0]))
    # Rows (x₁, x₂, 1) of length 1 have the same separators through the origin.
    rows = with_one(X) / np.linalg.norm(with_one(X), axis=1, keepdims=True)
    bayes = mm.BayesPointClassifier(intercept_scaling=0, n_samples=8000, random_state=0)
    draws = bayes.fit(rows, Y).samples_[0]
    with mm.plots.theme():
        ax = new_axes(size=(4.6, 5.0))
        draw(ax, draws, central)
        ax.figure.savefig(path, dpi=140)
    along = np.array([-central.normal[1], central.normal[0]])
    foot = central.project([[0.0, 0.0]])[0]
    votes = probability(draws, foot + np.outer([-3.0, 0.0, 3.0], along))
    shares = ", ".join(f"{vote:.0%}" for vote in votes)
    print(f"On the line of largest margin, from end to end, {shares} vote for the upper class")
    print(f"picture in {path}")


def with_one(X: Any) -> Any:
    return np.column_stack([X, np.ones(len(X))])


def probability(draws: Any, X: Any) -> Any:
    """Return the share of the separators that put each point on the side of the upper class."""
    return (with_one(X) @ draws.T > 0).mean(axis=1)


def draw(ax: Any, draws: Any, central: mm.geometry.Hyperplane) -> None:
    seen = mm.geometry.window(X, equal=True, share=0.35)
    x1, x2 = (np.linspace(low, high, 121) for low, high in zip(*seen[:2], strict=True))
    vote = np.array([probability(draws, np.column_stack([x1, np.full(121, x)])) for x in x2])
    shades = LinearSegmentedColormap.from_list("vote", [colour(0), "#9a9a9a", colour(1)])
    extent = (x1[0], x1[-1], x2[0], x2[-1])
    ax.imshow(vote, shades, vmin=0, vmax=1, extent=extent, origin="lower", alpha=0.35)
    thin = {"colors": [foreground(ax)], "linewidths": 0.7, "linestyles": ":"}
    lines = ax.contour(x1, x2, vote, levels=[0.05, 0.25, 0.75, 0.95], **thin)
    ax.clabel(lines, fmt=lambda level: f"{level:.0%}", fontsize=7)
    ax.contour(x1, x2, vote, levels=[0.5], colors=[PINK], linewidths=2.2)
    ax.plot([], [], color=PINK, linewidth=2.2, label="even vote, P = ½")
    line = {"color": GREEN, "linewidth": 1.8, "linestyle": "--", "label": "largest margin"}
    planar.draw_line(ax, central, seen, **line)
    planar.draw_points(ax, planar.Planar(X, Y, np.array([0, 1]), ("x₁", "x₂")), seen)
    ax.set_title("The vote of all separators")
    planar.write_messages(ax, len(X), f"{len(draws):,} draws")
    legend_below(ax, 2)
    settle(ax.figure)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "vote_of_all_separators.png")
