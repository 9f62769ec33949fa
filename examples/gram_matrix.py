"""The Gram matrix of the iris data: which flowers are similar, and the spectrum of the matrix.

    python examples/gram_matrix.py [PICTURE.png]

Each pixel is K(xᵢ, xⱼ) = exp(−γ‖xᵢ − xⱼ‖²) for two flowers, sorted by species. Setosa is similar
to no other species: its block stands alone, so it is easy to recognise. Versicolor and virginica
have flowers that are similar to each other. On the right the eigenvalues fall geometrically, so a
few directions of the feature space hold most of the variance. None is negative beyond rounding: a
kernel has a positive semidefinite matrix on any rows.
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
        display.save(path, dpi=140)
    share = display.eigenvalues.cumsum() / display.eigenvalues.sum()
    print(mm.check_kernel(display.matrix))
    print(f"{(share < 0.95).sum() + 1} of {len(share)} eigenvalues hold 95 % of the trace")
    print(f"picture in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "gram_matrix.png")
