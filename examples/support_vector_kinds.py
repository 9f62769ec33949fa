"""The three kinds of support vectors, and what slack is.

    python examples/support_vector_kinds.py [PICTURE.png]

A soft margin machine minimises ½‖w‖² + C Σ ξ with ξ = max(0, 1 − y f). Its support vectors lie on
the margin (ξ = 0), inside it (ξ ≤ 1) or on the wrong side (ξ > 1). A dotted segment leads from a
point to the line f = ±1 of its class: it is ξ/‖w‖ long. All other points could be left out.
"""

import sys

import matplotlib as mpl
import numpy as np

import maxmargin as mm


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(80, means=((2, 2), (1, 1)), variance=0.16, random_state=1)
    model = mm.LinearSVC(C=2.0).fit(X, y)
    display = mm.plots.MarginDisplay.from_estimator(model, X, y)
    display.save(path)
    kinds, counts = np.unique(model.support_kind_, return_counts=True)
    print(", ".join(f"{n} {kind}" for kind, n in zip(kinds, counts, strict=True)))
    again = mm.LinearSVC(C=2.0).fit(X[model.support_], y[model.support_])
    change = np.abs(again.coef_ - model.coef_).max()
    print(f"without the other {len(X) - len(model.support_)} points, w changes by {change:.1e}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "support_vector_kinds.png")
