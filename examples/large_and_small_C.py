"""What C does: a wide margin with much slack, or a narrow one with little.

    python examples/large_and_small_C.py [PICTURE.png]

C is the price of slack in ½‖w‖² + C Σ ξ. If slack is cheap, the machine takes a wide margin and
lets many points into it; the dearer slack is, the longer w and the narrower the margin 1/‖w‖. As C
grows, ‖w‖ never falls and Σ ξ never rises.
"""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(80, means=((2, 2), (1, 1)), variance=0.13, random_state=7)
    figure, panels = plt.subplots(1, 2, figsize=(8, 4.6), layout="constrained")
    for ax, C in zip(panels, (0.1, 100.0), strict=True):
        model = mm.LinearSVC(C=C).fit(X, y)
        mm.plots.MarginDisplay.from_estimator(model, X, y, ax=ax)
        ax.set_title(f"C = {C:g}: margin {model.margin_:.2f}, slack {model.slack_.sum():.1f}")
        print(
            f"C = {C:g}: margin {model.margin_:.3f}, total slack {model.slack_.sum():.2f}, "
            f"{len(model.support_)} support vectors"
        )
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "large_and_small_C.png")
