"""Logistic regression with a vanishing penalty turns towards the plane of largest margin, slowly.

    python examples/the_logistic_limit.py [PICTURE.png]

On separable data the minimiser of λ/2‖w‖² + Σ log(1 + exp(−y f)) grows without bound as λ → 0,
and its direction tends to that of the largest margin: in the end the rows nearest to the plane
outweigh all others. The angle between the two falls only like 1/log(1/λ): at λ = 10⁻⁴⁰ it is still
almost one degree. Few solvers can handle such penalties, so the script has its own Newton's method.
HardMarginSVC computes the limit directly, and names the rows that decide it (rings).
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from scipy.special import expit

import maxmargin as mm
from maxmargin.plots import planar
from maxmargin.plots.style import BLUE, GREEN, foreground, grid_of_axes, legend_below, scatter

PENALTIES = 10.0 ** -np.arange(-1.0, 41.0)
DRAWN = (0, 3, 6, 11, 41)  # places of the penalties whose planes are drawn


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(40, means=((2, 2), (0.8, 0.8)), variance=0.12, random_state=39)
    hard = mm.HardMarginSVC().fit(X, y)
    best = mm.geometry.Hyperplane(hard.coef_[0], float(hard.intercept_[0]))
    planes = logistic_planes(X, y)
    angles = np.array([angle(plane.normal, best.normal) for plane in planes])
    with mm.plots.theme():
        left, right = grid_of_axes(1, 2, (7.2, 4.2)).flat
        draw_planes(left, X, y, [planes[k] for k in DRAWN], best)
        planar.draw_rings(left, X[hard.support_], zorder=4, label="support vectors")
        legend_below(left, 2)
        draw_angles(right, angles)
        left.figure.savefig(path, dpi=140)
    print(f"from {angles[0]:.1f} to {angles[-1]:.2f} degrees; picture in {path}")


def logistic_planes(X: Any, y: Any) -> list[mm.geometry.Hyperplane]:
    """Solve for one penalty after another by Newton's method, each from the solution before."""
    A = y[:, np.newaxis] * np.hstack([X, np.ones((len(X), 1))])
    ridge = np.diag([1.0, 1.0, 0.0])  # the intercept has no penalty
    v, planes = np.zeros(3), []

    def objective(v: Any, penalty: float) -> float:  # divided by λ, so that it keeps its size
        return float(np.logaddexp(0, -A @ v).sum() / penalty + 0.5 * v @ ridge @ v)

    for penalty in PENALTIES:
        for _ in range(100):
            p = expit(-A @ v) / penalty
            gradient = ridge @ v - A.T @ p
            step = np.linalg.solve(ridge + (A.T * p * (1 - penalty * p)) @ A, gradient)
            while objective(v - step, penalty) > objective(v, penalty):
                step *= 0.5
            v = v - step
            if np.abs(step).max() <= 1e-12 * np.abs(v).max():
                break
        planes.append(mm.geometry.Hyperplane(v[:2], float(v[2])))
    return planes


def angle(v: Any, w: Any) -> float:
    return float(np.degrees(np.arccos(np.clip(v @ w, -1, 1))))


def draw_planes(ax: Any, X: Any, y: Any, planes: Any, best: mm.geometry.Hyperplane) -> None:
    seen = mm.geometry.window(X, equal=True)
    for k, plane in enumerate(planes):
        shade = 0.25 + 0.75 * k / (len(planes) - 1)
        name = f"logistic, λ = {latex(PENALTIES[DRAWN[k]])}" if k in (0, len(planes) - 1) else None
        planar.draw_line(ax, plane, seen, color=GREEN, alpha=shade, linewidth=1.4, label=name)
    look = {"color": foreground(ax), "linestyle": "--", "linewidth": 1.6}
    planar.draw_line(ax, best, seen, label="largest margin", **look)
    scatter(ax, X, y, (-1, 1))
    planar.show_window(ax, seen)
    values = ", ".join(latex(PENALTIES[k]) for k in DRAWN)
    ax.set(xlabel="x₁", ylabel="x₂", title=f"λ = {values}")


def draw_angles(ax: Any, angles: Any) -> None:
    ax.loglog(PENALTIES, angles, "o-", color=BLUE, markersize=3.5, label="angle")
    small = PENALTIES <= 1e-4
    constant = angles[-1] * np.log(1 / PENALTIES[-1])
    rate = constant / np.log(1 / PENALTIES[small])
    name = f"{constant:.0f}° / log(1/λ)"
    ax.loglog(PENALTIES[small], rate, "--", color=foreground(ax), linewidth=1, label=name)
    ax.invert_xaxis()
    ax.set_yticks([1, 2, 5, 10, 20, 50], ["1°", "2°", "5°", "10°", "20°", "50°"])
    ax.minorticks_off()
    ax.set(xlabel="penalty λ, smaller to the right", ylabel="angle to the plane of largest margin")
    ax.set(title="The angle falls like 1/log(1/λ)", ylim=(0.7, 60))
    legend_below(ax, 2)


def latex(penalty: float) -> str:
    power = round(np.log10(penalty))
    return "10" if power == 1 else f"$10^{{{power}}}$"


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "the_logistic_limit.png")
