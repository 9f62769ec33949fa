"""Gaussian bumps on an ever finer grid become the RBF kernel.

    python examples/bumps_and_rbf.py [PICTURE.png]

A point x has one feature for each bump of a grid: the height exp(−(x − c)²/2s²) of the bump at x,
scaled. Left: the bumps of width s = 1 on a grid of spacing h = 2s, and their heights at one point.
Middle: the products of all features with those of that point. On a coarse grid they depend on where
the point lies between the centres; with h = s they cannot be told from exp(−γ(x − x′)²) with
γ = 1/(4s²) by eye. Right: the error falls as 2 exp(−π²s²/h²), and from h = s/2 on only rounding is
left. The RBF kernel is the inner product of infinitely many features, computed without any of them.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

from maxmargin.kernels import RBF, gaussian_bumps
from maxmargin.plots import theme
from maxmargin.plots.style import BLUE, ORANGE, colour, foreground, grid_of_axes, legend_below

LINE = np.linspace(-4, 4, 401)[:, np.newaxis]
POINT = np.array([[0.6]])
LIMIT = RBF(gamma=1 / 4)


def main(path: str) -> None:
    mpl.use("Agg")
    with theme():
        axes = grid_of_axes(1, 3, (8.4, 3.8))[0]
        draw_bumps(axes[0])
        draw_kernels(axes[1])
        draw_errors(axes[2])
        axes[0].figure.savefig(path, dpi=130)


def draw_bumps(ax: Any) -> None:
    phi: Any = gaussian_bumps(LINE, spacing=2.0, reach=2.0).phi
    heights, at = phi(LINE), phi(POINT)[0]
    height_of_one = heights.max()
    ax.plot(LINE, heights / height_of_one, color=BLUE, linewidth=1)
    ax.axvline(POINT[0, 0], color=foreground(ax), linewidth=0.8, linestyle=":")
    ax.plot(np.full(len(at), POINT[0, 0]), at / height_of_one, "o", color=ORANGE, markersize=4,
            label="features of this x")  # fmt: skip
    ax.plot(phi.centres[:, 0], np.zeros(len(at)), "|", color=foreground(ax), label="centres c")
    ax.set(xlabel="x", title="Bumps, h = 2s", ylabel="height", xlim=(-4, 4))
    legend_below(ax, 2)


def draw_kernels(ax: Any) -> None:
    for k, spacing in enumerate((3.0, 2.0, 1.0)):
        K = gaussian_bumps(LINE, spacing=spacing).gram(LINE, POINT)[:, 0]
        dashes = (":", "--", "-")[k]
        ax.plot(LINE, K, color=colour(k), linestyle=dashes, label=f"h = {spacing:g}s")
    ax.plot(LINE, LIMIT.gram(LINE, POINT)[:, 0], color=foreground(ax), linewidth=4, alpha=0.25,
            label="RBF, γ = 1/(4s²)")  # fmt: skip
    ax.axvline(POINT[0, 0], color=foreground(ax), linewidth=0.8, linestyle=":")
    ax.set(xlabel="x", title="Products with one point", ylabel="Σ φ(x)φ(x′)", xlim=(-4, 4))
    legend_below(ax, 2)


def draw_errors(ax: Any) -> None:
    rows = np.random.default_rng(0).uniform(-2, 2, (40, 1))
    spacings = np.geomspace(3.0, 0.3, 40)
    kernels: list[Any] = [gaussian_bumps(rows, spacing=h) for h in spacings]
    errors = [np.abs(kernel.gram(rows) - LIMIT.gram(rows)).max() for kernel in kernels]
    bounds = [kernel.phi.error_bound for kernel in kernels]
    ax.semilogy(1 / spacings, errors, "o", color=ORANGE, markersize=4, label="largest error")
    ax.semilogy(1 / spacings, bounds, color=BLUE, label="bound")
    ax.axhline(np.finfo(float).eps, color=foreground(ax), linewidth=0.8, linestyle=":",
               label="rounding")  # fmt: skip
    ax.set(xlabel="s/h: bumps per width", title="Faster than any power", ylabel="error")
    ax.set_ylim(1e-17, 10)
    legend_below(ax, 2)
    reached = spacings[np.argmax(np.array(bounds) < np.finfo(float).eps)]
    print(f"the bound is below rounding from h = {reached:.2f}s on; largest error then "
          f"{max(e for e, b in zip(errors, bounds, strict=True) if b < 2e-16):.1e}")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "bumps_and_rbf.png")
