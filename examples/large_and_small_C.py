"""What C does: a wide margin with much slack, or a narrow one with little.

    python examples/large_and_small_C.py [PICTURE.png]

C is the price of slack in ½‖w‖² + C Σ ξ. If slack is cheap (left), the machine takes a wide margin
and lets many points into it. If slack is expensive (right), w is longer and the margin 1/‖w‖
narrower. As C grows, ‖w‖ never falls and Σ ξ never rises.
"""

import sys

import matplotlib as mpl

import maxmargin as mm
from maxmargin.plots.style import grid_of_axes


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(
        50, means=((2.1, 2.1), (0.9, 0.9)), variance=0.18, random_state=1420
    )
    with mm.plots.theme():
        panels = grid_of_axes(1, 2, (7.2, 4.7))
        for ax, C in zip(panels.flat, (0.1, 1000.0), strict=True):
            model = mm.LinearSVC(C=C).fit(X, y)
            display = mm.plots.MarginDisplay.from_estimator(model, X, y, ax=ax)
            margin, slack = model.margin_, model.slack_.sum()
            ax.set_title(f"C = {C:g}: margin {margin:.2f}, total slack {slack:.1f}")
            print(f"C = {C:g}: margin {margin:.3f}, total slack {slack:.2f}, "
                  f"{len(model.support_)} support vectors")  # fmt: skip
        display.save(path, dpi=140)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "large_and_small_C.png")
