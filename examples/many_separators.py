"""Many lines separate the same classes, and the data choose none of them.

    python examples/many_separators.py [PICTURE.png]

Every perceptron that stops has found a separator, a different one for each start and order of the
rows. All these lines agree on the points seen, and they disagree on the query (star). Each line has
an empty band around it, twice as wide as its margin. The widest band belongs to the central line,
midway between the two marginal lines; HardMarginSVC finds it for any order of the rows.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.geometry import Hyperplane, marginal_classifiers
from maxmargin.plots import planar
from maxmargin.plots.style import GREEN, PINK, foreground, grid_of_axes, legend_below, note, settle

X, Y = mm.datasets.separable(40, margin=0.5, w=(1, 2), random_state=5)
SEEN = mm.geometry.window(X, equal=True)


def main(path: str) -> None:
    mpl.use("Agg")
    central = plane_of(mm.HardMarginSVC().fit(X, Y))
    lines = perceptron_lines(12)
    query = disputed_point([*lines, central])
    votes = [line.predict([query])[0] for line in (*lines, central)]
    vote = f"query: {votes.count(-1)} lines say −1, {votes.count(1)} say 1"
    with mm.plots.theme():
        left, right = grid_of_axes(1, 2, (7.2, 4.7))[0]
        draw(left, lines, central)
        star = {"s": 110, "marker": "*", "c": foreground(left), "zorder": 5, "label": "query"}
        left.scatter(*query, **star)
        draw(right, lines[:1], central, bands=True)
        for ax in (left, right):
            legend_below(ax, 2)
        left.set_title("Twelve perceptrons, and the central line", pad=15)
        right.set_title("Empty bands around two of the lines", pad=15)
        note(left, vote)
        settle(left.figure)
        left.figure.savefig(path, dpi=140)
    margins = [margin(line) for line in lines]
    print(f"Margins of {len(lines)} perceptrons: {min(margins):.4f} to {max(margins):.4f}")
    print(f"The largest margin there is: {margin(central):.4f}")
    print(vote)


def plane_of(model: Any) -> Hyperplane:
    return Hyperplane(model.coef_[0], float(model.intercept_[0]))


def margin(line: Hyperplane) -> float:
    return float(line.geometric_margin(X, Y).min())


def perceptron_lines(count: int) -> list[Hyperplane]:
    """Return the lines of perceptrons: the first from zero, the others from random starts."""
    rng = np.random.default_rng(0)
    lines = []
    for k in range(count):
        start = "zeros" if k == 0 else (2 * rng.standard_normal(2), rng.standard_normal())
        model = mm.Perceptron(init=start, eta=0.5, random_state=k).fit(X, Y)
        lines.append(plane_of(model))
    return lines


def disputed_point(lines: list[Hyperplane]) -> Any:
    """Return a point between the classes, away from the data, on which the lines disagree."""
    sides = [np.linspace(low, high, 61)[3:-3] for low, high in zip(*SEEN[:2], strict=True)]
    places = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    share = np.mean([line.predict(places) > 0 for line in lines], axis=0)
    near = np.linalg.norm(places[:, np.newaxis] - X, axis=2).min(axis=1)
    middle = np.linalg.norm(places - X.mean(axis=0), axis=1)
    return places[np.argmin(np.abs(share - 0.5).round(1) + 0.02 * middle + (near < 0.3))]


def draw(ax: Any, lines: list[Hyperplane], central: Hyperplane, bands: bool = False) -> None:
    """Draw points, the central line with its marginal lines, and lines of perceptrons."""
    points = planar.Planar(X, Y, np.array([-1, 1]), ("x₁", "x₂"))
    planar.draw_points(ax, points, SEEN)
    for line, shade, name in ((central, GREEN, "central"), (lines[0], PINK, "perceptron")):
        label = f"{name} ±{margin(line):.2g}" if bands else name
        planar.draw_line(ax, line, SEEN, color=shade, linewidth=2.2, label=label, zorder=2.2)
        if bands:
            planar.draw_band(ax, line, margin(line), SEEN, color=shade, alpha=0.3, zorder=0.5)
    for k, line in enumerate(lines[1:]):
        name = "" if k else "other perceptrons"
        planar.draw_line(ax, line, SEEN, color=foreground(ax), alpha=0.4, linewidth=0.7, label=name)
    for k, line in enumerate(marginal_classifiers(central, X, Y)):
        name = "" if k else "marginal lines"
        planar.draw_line(ax, line, SEEN, color=GREEN, linewidth=1.2, linestyle="--", label=name)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "many_separators.png")
