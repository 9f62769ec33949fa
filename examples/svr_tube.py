"""Support vector regression: a tube in which errors cost nothing.

    python examples/svr_tube.py [PICTURE.png]

The machine minimises ½‖w‖² + C Σ max(0, |y − f(x)| − ε). Errors up to ε are free, so the rows
inside the tube, of half-width ε, have no say: leave them out, and the curve stays the same. Only
rows on the edge of the tube or outside it are support vectors, ringed here. A wider tube needs
fewer of them, and its curve is flatter. A tube as wide as the noise is a good first choice; the
noise here has a standard deviation of 0.2.

To try: C = 0.1 for a flatter curve in the same tube, or mm.NuSVR, which takes the share of rows
outside the tube and finds ε.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots.style import (
    BLUE,
    GREY,
    ORANGE,
    SKY,
    foreground,
    grid_of_axes,
    legend_under,
)

LINE = np.linspace(0, 6, 301)[:, np.newaxis]


def main(path: str) -> None:
    mpl.use("Agg")
    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(0, 6, 60))[:, np.newaxis]
    y = np.sin(1.5 * X[:, 0]) + rng.normal(scale=0.2, size=60)
    axes = grid_of_axes(1, 3, (8.4, 3.5), sharey=True)
    for ax, epsilon in zip(axes[0], (0.05, 0.2, 0.5), strict=True):
        draw(ax, X, y, epsilon)
    axes[0, 0].set_ylabel("y")
    legend_under(axes, axes[0, 0].get_legend_handles_labels()[0])
    axes[0, 0].figure.savefig(path, dpi=110)


def draw(ax: Any, X: Any, y: Any, epsilon: float) -> None:
    model = mm.SVR(C=10.0, gamma=0.5, epsilon=epsilon).fit(X, y)
    f = model.predict(LINE)
    ax.fill_between(LINE[:, 0], f - epsilon, f + epsilon, color=SKY, alpha=0.3, label="the tube")
    ax.plot(LINE, f, color=BLUE, linewidth=2, label="f(x)")
    ax.plot(LINE, np.sin(1.5 * LINE), color=GREY, linestyle=":", label="the truth")
    ax.plot(X, y, "o", color=ORANGE, markersize=3.5, label="rows")
    rings = {"s": 55, "facecolors": "none", "edgecolors": foreground(ax), "linewidths": 0.8}
    ax.scatter(X[model.support_], y[model.support_], label="support vectors", **rings)
    ax.set_title(f"ε = {epsilon}: {len(model.support_)} of {len(X)} support", fontsize=10)
    ax.set(xlabel="x", ylim=(-1.9, 1.9))
    again = mm.SVR(C=10.0, gamma=0.5, epsilon=epsilon).fit(X[model.support_], y[model.support_])
    change = np.abs(again.predict(LINE) - f).max()
    print(f"ε = {epsilon}: without the rows inside, f changes by at most {change:.0e}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "svr_tube.png")
