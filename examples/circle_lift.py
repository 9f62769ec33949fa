"""A circle becomes a plane: two lifts, and the circle that the plane's weights stand for.

    python examples/circle_lift.py [PICTURE.png]

In (‖x‖², −2x, 1) the circle around c of radius r is the plane ‖x‖² − 2x·c + ‖c‖² − r² = 0, so that
a linear machine finds it. The hill exp(−‖x − x̄‖²/2s²) over the plane does it for the eye.
"""

import sys
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle

import maxmargin as mm

BLUE, ORANGE = "#0072b2", "#d55e00"


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.circles(200, random_state=0)
    lift = mm.CircleMap().fit(X)
    model = mm.HardMarginSVC().fit(lift.transform(X), y)
    circle = lift.circle(model)
    print(f"centre {circle.center.round(3)}, radius {circle.radius:.3f}, inside: {circle.inside}")
    figure = plt.figure(figsize=(10, 4.6), layout="constrained")
    draw_circle(figure.add_subplot(1, 2, 1), X, y, circle, lift, model)
    draw_hill(figure.add_subplot(1, 2, 2, projection="3d"), X, y)
    figure.savefig(path, dpi=150)
    print(f"picture in {path}")


def draw_circle(ax: Any, X: Any, y: Any, circle: Any, lift: Any, model: Any) -> None:
    scatter(ax, X, y)
    ax.add_patch(Circle(circle.center, circle.radius, fill=False, color="black"))
    span = np.linspace(1.1 * X.min(), 1.1 * X.max(), 200)
    grid = np.stack(np.meshgrid(span, span), axis=-1)
    f = model.decision_function(lift.transform(grid.reshape(-1, 2))).reshape(200, 200)
    ax.contour(span, span, f, levels=[-1, 1], colors="black", linestyles="--", linewidths=0.8)
    ax.scatter(*X[model.support_].T, s=90, facecolors="none", edgecolors="black")
    ax.set(xlabel="x₁", ylabel="x₂", aspect="equal")
    ax.set_title("The plane of largest margin in (‖x‖², −2x, 1), seen in x")


def draw_hill(ax: Any, X: Any, y: Any) -> None:
    lifted = mm.CircleMap("gaussian").fit_transform(X)
    scatter(ax, lifted, y)
    plane = mm.HardMarginSVC().fit(lifted, y)
    w, b = plane.coef_[0], plane.intercept_[0]
    corners = np.array([X.min(), X.max()])
    x1, x2 = np.meshgrid(corners, corners)
    ax.plot_surface(x1, x2, -(w[0] * x1 + w[1] * x2 + b) / w[2], alpha=0.3, color="grey")
    ax.set(xlabel="x₁", ylabel="x₂", zlabel="r", zlim=(0, 1))
    ax.set_title("The hill r = exp(−‖x − x̄‖²/2s²), and a plane between")


def scatter(ax: Any, X: Any, y: Any) -> None:
    for label, colour, marker in zip(np.unique(y), (BLUE, ORANGE), "os", strict=True):
        ax.scatter(*X[y == label].T, s=16, color=colour, marker=marker, label=f"class {label}")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "circle_lift.png")
