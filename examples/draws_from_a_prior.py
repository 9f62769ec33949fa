"""What a kernel believes: functions drawn from Gaussian processes.

    python examples/draws_from_a_prior.py [PICTURE.png]

A kernel is also a covariance, so functions f ~ N(0, K) can be drawn from it before any label is
seen. Draws of the RBF kernel are smooth, and vary faster the larger γ is; those of the Laplacian
are rough. The linear kernel gives lines through the origin, and (1 + linear)² gives parabolas. The
sum of two kernels gives sums of their functions, and a product with the linear kernel grows away
from the origin. At each x the grey band holds f(x) for 95 % of all draws.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.kernels import RBF, Laplacian, Linear, sample_prior
from maxmargin.plots.style import colour, foreground, grid_of_axes, legend_under

KERNELS = {
    "RBF, γ = 0.5": RBF(gamma=0.5),
    "RBF, γ = 10": RBF(gamma=10.0),
    "Laplacian, γ = 1": Laplacian(gamma=1.0),
    "(1 + linear)²": (Linear() + 1.0) ** 2,
    "linear + 0.2 RBF": Linear() + 0.2 * RBF(gamma=10.0),
    "linear × RBF": Linear() * RBF(gamma=5.0),
}


def main(path: str) -> None:
    mpl.use("Agg")
    x = np.linspace(-3.0, 3.0, 200)
    inside = []
    with mm.plots.theme():
        axes = grid_of_axes(2, 3, (9.3, 5.1))
        for ax, (name, kernel) in zip(axes.flat, KERNELS.items(), strict=True):
            draws = sample_prior(kernel, x[:, None], 4, random_state=1)
            deviation, black = np.sqrt(kernel.diag(x[:, None])), foreground(ax)
            lines = ax.plot(x, draws.T, linewidth=1.1, label="draws")
            for k, line in enumerate(lines):
                line.set_color(colour(k))
            mean = ax.axhline(0.0, color=black, linewidth=0.8, linestyle="--", label="mean")
            shade = {"color": black, "alpha": 0.12, "linewidth": 0, "label": "± 2 sd"}
            band = ax.fill_between(x, -2 * deviation, 2 * deviation, **shade)
            ax.set(xlabel="x", ylabel="f(x)", xlim=(-3, 3), title=name)
            inside.append(np.abs(draws) <= 2 * deviation)
        legend_under(axes, [lines[0], mean, band])
        axes[0, 0].figure.savefig(path, dpi=120)
    print(f"{np.mean(inside):.0%} of all values drawn are in their bands; picture in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "draws_from_a_prior.png")
