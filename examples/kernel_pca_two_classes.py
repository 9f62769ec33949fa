"""Two classes that no line separates, and three directions in which a plane does.

    python examples/kernel_pca_two_classes.py

With K = exp(−‖x − x′‖²) the first principal components in feature space unroll a ring around a
disc. Whether the classes are separable is not a matter of looking: ``separate`` proves either.
"""

import maxmargin as mm
from maxmargin.kernels import RBF


def main() -> None:
    X, y = mm.datasets.circles(300, radii=(0.25, 1.0), random_state=0)
    print(f"in the plane: {mm.separate(X, y)}")
    model = mm.KernelPCA(3, kernel=RBF(gamma=1.0))
    Z = model.fit_transform(X)
    for count in (1, 2, 3):
        share = model.explained_variance_ratio_[:count].sum()
        verdict = mm.separate(Z[:, :count], y).separable
        print(f"PC1–{count}: {share:.0%} of the variance, separable: {verdict}")
    print(f"with all three: {mm.separate(Z, y)}")
    print(f"residuals of the eigenpairs: at most {model.residuals_.max():.1g} of the largest")


if __name__ == "__main__":
    main()
