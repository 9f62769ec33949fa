"""One kernel, two ways to its parameters: marginal likelihood and cross-validation.

    python examples/svm_beside_gp.py

A kernel is also the covariance of a Gaussian process. The process chooses its parameters by the
likelihood of the labels and keeps every row; the support vector machine chooses them by held-out
errors and keeps some rows.
"""

import numpy as np
from sklearn.datasets import load_iris

import maxmargin as mm
from maxmargin.kernels import RBF, Linear


def main() -> None:
    rng = np.random.default_rng(0)
    X, inside = mm.datasets.circles(120, random_state=0)
    X = X + rng.normal(scale=0.3, size=X.shape)
    print(mm.compare_gp(X, inside, RBF(gamma=1.0), cv=3), end="\n\n")
    flowers, species = load_iris(return_X_y=True)
    print(mm.compare_gp(flowers[:, :2], species, RBF(gamma=1.0), cv=3), end="\n\n")
    X = rng.uniform(-5, 5, size=(100, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 0] + rng.normal(scale=0.2, size=100)
    print(mm.compare_gp(X, y, 1.0 * RBF(gamma=1.0) + 0.1 * Linear(), cv=3))


if __name__ == "__main__":
    main()
