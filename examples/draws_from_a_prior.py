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
from maxmargin.kernels import RBF, Laplacian, Linear


def main(path: str) -> None:
    mpl.use("Agg")
    kernels = {
        "RBF, γ = 0.5": RBF(gamma=0.5),
        "RBF, γ = 10": RBF(gamma=10.0),
        "Laplacian, γ = 1": Laplacian(gamma=1.0),
        "(1 + linear)²": (Linear() + 1.0) ** 2,
        "linear + 0.2 RBF": Linear() + 0.2 * RBF(gamma=10.0),
        "linear × RBF": Linear() * RBF(gamma=5.0),
    }
    with mm.plots.theme():
        display = mm.plots.PriorSamplesDisplay.from_kernels(kernels, random_state=1)
        display.save(path, dpi=120)
    pairs = zip(display.samples, display.deviations, strict=True)
    inside = np.mean([np.abs(draws) <= 2 * sd for draws, sd in pairs])
    print(f"{inside:.0%} of all values drawn are in their bands; picture in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "draws_from_a_prior.png")
