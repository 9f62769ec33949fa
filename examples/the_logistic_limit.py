"""Logistic regression with a vanishing penalty turns towards the hard-margin plane, slowly.

    python examples/the_logistic_limit.py [PICTURE.png]

On separable data the minimiser of λ/2‖w‖² + Σ log(1 + exp(−y f)) grows without bound as λ → 0:
every row is right, and all that is left to gain is size. Its direction tends to that of the largest
margin, at worst at the rate 1/log(1/λ), as the rows nearest to the plane outweigh all others in the
end. The hard-margin machine gets there at once, and says which rows they are (rings).
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.linear_model import LogisticRegression

import maxmargin as mm
from maxmargin.plots.style import BLUE, GREEN, foreground, grid_of_axes, legend_below, scatter


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.separable(60, margin=0.15, random_state=4)
    hard = mm.HardMarginSVC().fit(X, y)
    penalties = np.logspace(1, -8, 19)
    planes = [logistic_plane(X, y, penalty) for penalty in penalties]
    best = mm.geometry.Hyperplane(hard.coef_[0], float(hard.intercept_[0]))
    angles = [angle(plane.normal, best.normal) for plane in planes]
    with mm.plots.theme():
        left, right = grid_of_axes(1, 2, (8.0, 4.2)).flat
        draw_planes(left, X, y, planes, best)
        rings = {"s": 90, "facecolors": "none", "edgecolors": foreground(left)}
        left.scatter(*X[hard.support_].T, label="support", **rings)
        legend_below(left)
        right.loglog(penalties, angles, "o-", color=BLUE, markersize=4)
        right.invert_xaxis()
        right.set(
            xlabel="penalty λ", ylabel="degrees", title="Angle to the plane of largest margin"
        )
        left.figure.savefig(path, dpi=110)
    print(f"from {angles[0]:.1f} to {angles[-1]:.2f} degrees; picture in {path}")


def logistic_plane(X: Any, y: Any, penalty: float) -> mm.geometry.Hyperplane:
    model = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=100_000, solver="newton-cholesky")
    model.fit(X, y)
    return mm.geometry.Hyperplane(model.coef_[0], float(model.intercept_[0]))


def angle(v: Any, w: Any) -> float:
    return float(np.degrees(np.arccos(np.clip(v @ w, -1, 1))))


def draw_planes(ax: Any, X: Any, y: Any, planes: Any, best: mm.geometry.Hyperplane) -> None:
    ends = np.array([X[:, 0].min() - 0.2, X[:, 0].max() + 0.2])
    for k, plane in enumerate(planes):
        name = "logistic" if k == len(planes) - 1 else None
        shade = 0.2 + 0.6 * k / len(planes)
        ax.plot(ends, plane.line(ends), color=GREEN, alpha=shade, linewidth=1, label=name)
    ax.plot(ends, best.line(ends), color=foreground(ax), label="largest margin")
    scatter(ax, X, y, (-1, 1))
    ax.set(xlim=ends, ylim=(X[:, 1].min() - 0.2, X[:, 1].max() + 0.2), aspect="equal")
    ax.set(xlabel="x₁", ylabel="x₂", title="Logistic planes, darker as λ → 0")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "the_logistic_limit.png")
