"""The bias as a feature: the weight of an input that is always 1.

    python examples/bias_as_a_feature.py [PICTURE.png]

Left: a single feature x, and beside it a second one that is 1 for every row. A threshold on x
becomes a line through the origin with the normal (w, b): it crosses the row of points at x = −b/w.
A perceptron makes the same updates either way. Right: for a support vector machine it makes a
difference, because the weight of a feature is penalised and the intercept is not. The classes are
moved along x by a shift. With a free intercept the threshold moves with them and stays midway. With
the bias as a feature a large b is expensive, so the threshold lags behind until it leaves the gap,
shaded here, and rows are misclassified. A larger constant makes b cheaper, and the two machines
agree again.

To try: standardise the rows first. Then the shift is 0, and the two hardly differ.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import (
    GREEN,
    colour,
    draw_curve,
    foreground,
    grid_of_axes,
    legend_below,
    scatter,
)

SHIFTS = np.linspace(0, 10, 21)


def main(path: str) -> None:
    mpl.use("Agg")
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], 12)
    X = (y * (0.5 + rng.exponential(0.6, size=24)))[:, np.newaxis]
    left, right = grid_of_axes(1, 2, (8.4, 4.2))[0]
    draw_lift(left, X + 1.5, y)
    draw_shifts(right, X, y)
    left.figure.savefig(path, dpi=110)


def draw_lift(ax: Any, X: Any, y: Any) -> None:
    lifted = np.hstack([X, np.ones_like(X)])
    model = mm.Perceptron(fit_intercept=False, random_state=0).fit(lifted, y)
    usual = mm.Perceptron(random_state=0).fit(X, y)
    w, b = model.coef_[0]
    print(f"constant feature: ({w:.3f}, {b:g}) after {model.updates_} updates")
    print(
        f"intercept: ({usual.coef_[0, 0]:.3f}, {usual.intercept_[0]:g}), {usual.updates_} updates"
    )
    scatter(ax, lifted, y, [-1, 1], size=30, zorder=3)
    ax.axhline(1, color=foreground(ax), linewidth=0.6)
    ax.axline((0, 0), (-b, w), color=foreground(ax), linewidth=1.8, label="w x + b·1 = 0")
    ax.plot(0, 0, "+", color=foreground(ax), markersize=10, label="origin")
    ax.plot(-b / w, 1, "D", color=GREEN, markersize=6, label="x = −b/w", zorder=4)
    ax.set(xlim=(-2.2, 5.2), ylim=(-0.6, 2.2), xlabel="x", ylabel="the constant feature")
    ax.set_title("A threshold becomes a line through 0")
    legend_below(ax, 3)


def draw_shifts(ax: Any, X: Any, y: Any) -> None:
    machines: dict[str, Any] = {
        "free intercept": {"intercept": "free"},
        "constant 1": {"intercept": "penalized"},
        "constant 10": {"intercept": "penalized", "intercept_scaling": 10.0},
    }
    ax.axhspan(X[y < 0].max(), X[y > 0].min(), color=colour(4), alpha=0.25, label="the gap")
    for k, (name, options) in enumerate(machines.items()):
        thresholds = []
        for shift in SHIFTS:
            model = mm.LinearSVC(C=1.0, **options).fit(X + shift, y)
            thresholds.append(-model.intercept_[0] / model.coef_[0, 0] - shift)
        draw_curve(ax, SHIFTS, thresholds, k, label=name)
        print(
            f"{name}: the threshold is off by {thresholds[-1]:.2f} after a shift of {SHIFTS[-1]:g}"
        )
    ax.set(xlabel="shift of all rows", ylabel="threshold − shift")
    ax.set_title("What it does to a support vector machine")
    legend_below(ax, 2)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "bias_as_a_feature.png")
