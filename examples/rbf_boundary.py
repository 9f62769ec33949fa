"""A curved boundary is a plane in feature space, seen from two sides.

    python examples/rbf_boundary.py [PICTURE.png]

With K(x, x') = exp(−γ‖x − x'‖²) the machine's f = w·φ(x) + b is linear in φ(x), but not in x. On
the left f = 0 and f = ±1 wind through the data. On the right the same points are drawn by their
distance from the plane f = 0 in feature space: now f = ±1 are parallel to it, 1/‖w‖ away, and slack
is a length again (dotted).
"""

import sys

import matplotlib as mpl

import maxmargin as mm
from maxmargin.plots.style import grid_of_axes, legend_that_fits


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.moons(160, noise=0.3, random_state=0)
    model = mm.SVC(C=2.0, gamma=1.5).fit(X, y)
    with mm.plots.theme():
        axes = grid_of_axes(1, 2, (7.2, 4.2), width_ratios=(3, 2))
        left, right = axes[0]
        mm.plots.MarginDisplay.from_estimator(model, X, y, ax=left)
        mm.plots.MarginDisplay.from_estimator(model, X, y, view="margin", ax=right)
        left.set_title("In the plane of the data")
        right.set_title("Along w, in feature space")
        for ax in (left, right):
            ax.get_legend().remove()
            ax.set_aspect("auto")
        entries = right.get_legend_handles_labels()[0]
        legend_that_fits(left.figure, 4, handles=entries, loc="outside lower center", frameon=False)
        left.figure.savefig(path, dpi=140)
    print(f"margin {model.margin_:.3f} in feature space, {len(model.support_)} support vectors")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "rbf_boundary.png")
