"""A linear machine on Gaussian bumps becomes the RBF machine.

    python examples/bumps_become_a_machine.py [PICTURE.png]

Each cross is the centre of a bump exp(−‖x − c‖²/2s²); some are outside the picture. A row has one
feature for each bump, the height of the bump there. A linear machine on these features draws a
curve. With few bumps the curve depends on where they happen to be; on a finer grid it settles. The
limit of infinitely many bumps is the RBF kernel with γ = 1/(4s²), which the last panel uses. It
places no bumps and computes no features, and yet finds the curve to which the others tend.

To try: a smaller width s. It needs more bumps before the curve settles, and the machine follows
single rows.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.kernels import RBF, gaussian_bumps
from maxmargin.plots.style import GREY, foreground, grid_of_axes, legend_under, scatter

WIDTH = 0.5
SIDES = np.linspace(-1.9, 2.9, 97), np.linspace(-1.6, 1.9, 71)
PLACES = np.stack(np.meshgrid(*SIDES), axis=-1).reshape(-1, 2)


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.moons(120, noise=0.3, random_state=1)
    limit = mm.SVC(C=10.0, kernel=RBF(gamma=1 / (4 * WIDTH**2)), tol=1e-8).fit(X, y)
    target = limit.decision_function(PLACES)
    with mm.plots.theme():
        axes = grid_of_axes(2, 2, (7.4, 5.6), sharex=True, sharey=True)
        for ax, spacing in zip(axes.flat, (1.6, 1.1, 0.6), strict=False):
            phi: Any = gaussian_bumps(X, width=WIDTH, spacing=spacing, reach=2.0).phi
            model = mm.LinearSVC(C=10.0, tol=1e-8).fit(phi(X), y)
            f = model.decision_function(phi(PLACES))
            ax.plot(*phi.centres.T, "x", color=GREY, markersize=4, label="centre of a bump")
            draw(ax, X, y, f, f"{len(phi.centres)} bumps")
            agree = np.mean((f > 0) == (target > 0))
            print(f"{len(phi.centres)} bumps: {agree:.1%} of the window as in the limit")
        draw(axes[1, 1], X, y, target, "infinitely many: the RBF kernel")
        legend_under(axes, axes[0, 0].get_legend_handles_labels()[0])
        axes[0, 0].figure.savefig(path, dpi=110)


def draw(ax: Any, X: Any, y: Any, f: Any, title: str) -> None:
    black = foreground(ax)
    scatter(ax, X, y, [-1, 1], size=10)
    for level, style, name in ((0, "-", "f = 0"), (-1, "--", "f = ±1"), (1, "--", None)):
        ax.contour(*SIDES, f.reshape(len(SIDES[1]), -1), [level], colors=black, linestyles=style)
        ax.plot([], [], color=black, linestyle=style, label=name)
    ax.set(xlim=SIDES[0][[0, -1]], ylim=SIDES[1][[0, -1]], title=title, xlabel="x₁", ylabel="x₂")
    ax.label_outer()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "bumps_become_a_machine.png")
