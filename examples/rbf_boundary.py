"""A curved boundary is a plane in feature space, seen from two sides.

    python examples/rbf_boundary.py [PICTURE.png]

With K(x, x') = exp(−γ‖x − x'‖²) the machine's f = w·φ(x) + b is linear in φ(x), but not in x: on
the left f = 0 and f = ±1 wind through the data. On the right the same points are seen along w in
feature space, where these are parallel planes 1/‖w‖ apart and slack is a length again.
"""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.moons(160, noise=0.2, random_state=0)
    model = mm.SVC(C=5.0, gamma=2.0).fit(X, y)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(8.5, 4.6), width_ratios=(3, 2), layout="constrained"
    )
    mm.plots.MarginDisplay.from_estimator(model, X, y, ax=left)
    mm.plots.MarginDisplay.from_estimator(model, X, y, view="margin", ax=right)
    left.set_title("In the plane of the data")
    right.set_title("Along w, in feature space")
    figure.savefig(path, dpi=150)
    print(f"margin {model.margin_:.3f} in feature space, {len(model.support_)} support vectors")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "rbf_boundary.png")
