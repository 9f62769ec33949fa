"""Two classes that no line separates, and three directions in which a plane does.

    python examples/kernel_pca_two_classes.py [PICTURE.png]

One ring surrounds another. The principal components are those of the feature space of
K = exp(−‖x − x′‖²). In the first two, one class still surrounds the other; the third grows with the
distance from the middle, and a plane separates the classes. A picture does not prove that, but
``separate`` does: the script prints its answers for the plane, for PC1–2 and for PC1–3.
"""

import sys

import matplotlib as mpl

import maxmargin as mm
from maxmargin.kernels import RBF


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.circles(300, radii=(0.25, 1.0), random_state=0)
    model = mm.KernelPCA(3, kernel=RBF(gamma=1.0)).fit(X)
    with mm.plots.theme():
        display = mm.plots.KernelPCADisplay.from_estimator(model, X, y)
        display.save(path, dpi=140)
    print(f"in the plane: {mm.separate(X, y)}")
    print(f"in PC1–2: {mm.separate(display.projections[:, :2], y)}")
    print(f"in PC1–3: {mm.separate(display.projections, y)} Picture in {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "kernel_pca_two_classes.png")
