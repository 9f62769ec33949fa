"""Logistic regression with a vanishing penalty turns towards the hard-margin plane, slowly.

    python examples/the_logistic_limit.py [PICTURE.png]

On separable data the minimiser of λ/2‖w‖² + Σ log(1 + exp(−y f)) grows without bound as λ → 0, and
its direction tends to that of the largest margin, at worst at the rate 1/log(1/λ).
"""

import sys
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import maxmargin as mm

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.separable(60, margin=0.15, random_state=4)
    hard = mm.HardMarginSVC().fit(X, y)
    penalties = np.logspace(1, -8, 19)
    planes = [logistic_plane(X, y, penalty) for penalty in penalties]
    angles = [angle(w, hard.coef_[0]) for w, _ in planes]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    draw_planes(left, X, y, hard, planes)
    right.loglog(penalties, angles, "o-", color=BLUE)
    right.invert_xaxis()
    right.set(xlabel="penalty λ", ylabel="degrees", title="Angle to the plane of largest margin")
    figure.savefig(path, dpi=150)
    print(f"from {angles[0]:.1f} to {angles[-1]:.2f} degrees; picture in {path}")


def logistic_plane(X: Any, y: Any, penalty: float) -> tuple[Any, float]:
    model = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=100_000, solver="newton-cholesky")
    model.fit(X, y)
    return model.coef_[0], float(model.intercept_[0])


def angle(v: Any, w: Any) -> float:
    cosine = v @ w / np.linalg.norm(v) / np.linalg.norm(w)
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


def draw_planes(ax: Any, X: Any, y: Any, hard: Any, planes: Any) -> None:
    ends = np.array([X[:, 0].min() - 0.2, X[:, 0].max() + 0.2])
    for k, (w, b) in enumerate(planes):
        shade = 0.15 + 0.5 * k / len(planes)
        line = mm.geometry.Hyperplane(w, b).line(ends)
        ax.plot(ends, line, color=BLUE, alpha=shade, linewidth=1)
    plane = mm.geometry.Hyperplane(hard.coef_[0], hard.intercept_[0])
    ax.plot(ends, plane.line(ends), color="black", label="largest margin")
    for label, colour, marker in ((1, BLUE, "o"), (-1, ORANGE, "s")):
        ax.scatter(*X[y == label].T, s=16, color=colour, marker=marker, label=f"y = {label:+d}")
    ax.scatter(*X[hard.support_].T, s=90, facecolors="none", edgecolors="black", label="support")
    ax.set(xlim=ends, ylim=(X[:, 1].min() - 0.2, X[:, 1].max() + 0.2), xlabel="x₁", ylabel="x₂")
    ax.set_title("Logistic planes, darker as λ → 0")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, frameon=False)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "the_logistic_limit.png")
