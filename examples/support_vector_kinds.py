"""The three kinds of support vectors, and what slack is.

    python examples/support_vector_kinds.py [PICTURE.png]

A soft margin machine minimises ½‖w‖² + C Σ ξ with ξ = max(0, 1 − y f). Its support vectors lie on
the margin (ξ = 0), inside it (ξ ≤ 1) or on the wrong side of the boundary (ξ > 1). A dotted segment
leads from each point with slack to the line f = ±1 of its class, and is ξ/‖w‖ long. The other
points are not needed: without them the machine is the same, as the script shows.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(
        50, means=((2.1, 2.1), (0.9, 0.9)), variance=0.18, random_state=1420
    )
    model = mm.LinearSVC(C=2.0).fit(X, y)
    with mm.plots.theme():
        display = mm.plots.MarginDisplay.from_estimator(model, X, y)
        display.ax_.set_title("Three kinds of support vectors")
        for row in model.support_[model.support_kind_ == "wrong side"]:
            note = f"ξ = {model.slack_[row]:.2f}"
            away = (0, -13) if y[row] > 0 else (0, 6)  # from the segment
            place = {"xytext": away, "textcoords": "offset points", "ha": "center"}
            display.ax_.annotate(note, X[row], fontsize=8, **place)
        display.save(path, dpi=160)
    kinds, counts = np.unique(model.support_kind_, return_counts=True)
    print(", ".join(f"{n} {kind}" for kind, n in zip(kinds, counts, strict=True)))
    again = mm.LinearSVC(C=2.0).fit(X[model.support_], y[model.support_])
    change = np.abs(again.coef_ - model.coef_).max()
    print(f"without the other {len(X) - len(model.support_)} points, w changes by {change:.1e}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "support_vector_kinds.png")
