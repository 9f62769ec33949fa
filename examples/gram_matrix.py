"""The Gram matrix of the irises: who resembles whom, and how many directions that takes.

    python examples/gram_matrix.py [PICTURE.png]

Each pixel is K(xᵢ, xⱼ) = exp(−γ‖xᵢ − xⱼ‖²) of two flowers, sorted by species. Setosa resembles
nothing but itself: its block stands alone, and any machine can tell it. Versicolor and virginica
resemble each other where they meet. On the right the eigenvalues fall geometrically: few directions
of the feature space matter, and none is negative, which is what makes K a kernel.
"""

import sys

import matplotlib as mpl
from sklearn.datasets import load_iris

import maxmargin as mm
from maxmargin.kernels import RBF


def main(path: str) -> None:
    mpl.use("Agg")
    irises = load_iris()
    species = irises.target_names[irises.target]
    with mm.plots.theme():
        display = mm.plots.GramDisplay.from_kernel(RBF(gamma=0.5), irises.data, species)
        display.save(path, dpi=110)
    share = display.eigenvalues.cumsum() / display.eigenvalues.sum()
    print(mm.check_kernel(display.matrix))
    print(f"{(share < 0.95).sum() + 1} of {len(share)} eigenvalues hold 95 % of the trace")
    print(f"picture in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "gram_matrix.png")
