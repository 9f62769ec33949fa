"""A circle becomes a plane: two rings, and the same rings on a bowl.

    python examples/circle_lift.py [PICTURE.png]

In (‖x‖², −2x, 1) the circle around c of radius r is the plane ‖x‖² − 2x·c + ‖c‖² − r² = 0, so that
a linear machine finds it. On the right each point is lifted to the height ‖x‖², onto a bowl (grey
net). The inner ring lies low, the outer one high, and the plane of largest margin passes between
them. It meets the bowl in the circle on the left, whose centre and radius follow from the weights.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots import planar
from maxmargin.plots.style import GREY, foreground, legend_under, pyplot, scatter


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.circles(200, random_state=0)
    features = np.column_stack([(X**2).sum(axis=1), -2 * X, np.ones(len(X))])
    model = mm.HardMarginSVC().fit(features, y)
    w, b = model.coef_[0], float(model.intercept_[0])
    centre = w[1:3] / w[0]
    radius = float(np.sqrt(centre @ centre - (w[3] + b) / w[0]))
    with mm.plots.theme():
        figure = pyplot().figure(figsize=(8.0, 4.0), layout="constrained")
        left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2, projection="3d")
        # Over (x₁, x₂) with the height z the plane is −2w₁x₁ − 2w₂x₂ + w₀z + w₃ + b = 0.
        draw_plane_of_x(left, X, y, [*-2 * w[1:3], w[0]], b + w[3])
        draw_bowl(right, X, y, [*-2 * w[1:3], w[0]], b + w[3], centre, radius)
        legend_under(np.array([left, right]), left.get_legend_handles_labels()[0])
        figure.savefig(path, dpi=140)
    inside = "positive" if w[0] < 0 else "negative"
    print(f"centre {centre.round(3)}, radius {radius:.3f}, inside: {inside}")
    print(f"picture in {path}")


def lifted(X: Any) -> Any:
    """Return points with ‖x‖² as their last coordinate."""
    return mm.geometry.lift_points(X, "circle", (0.0, 0.0))


def draw_plane_of_x(ax: Any, X: Any, y: Any, w: Any, b: float) -> None:
    """Draw the points, and the circles f = −1, 0 and 1."""
    seen = mm.geometry.window(X, equal=True)
    x1, x2 = (np.linspace(low, high, 241) for low, high in zip(*seen[:2], strict=True))
    f = lifted(np.stack(np.meshgrid(x1, x2), axis=-1)) @ w + b
    scatter(ax, X, y, [-1, 1], size=14)
    planar.draw_contours(ax, (x1, x2, f))
    planar.show_window(ax, seen)
    ax.set(xlabel="x₁", ylabel="x₂", title="A circle in the plane …")


def draw_bowl(ax: Any, X: Any, y: Any, w: Any, b: float, centre: Any, radius: float) -> None:
    """Draw the lifted points, the bowl as rings and rays, the plane, and where they meet."""
    scatter(ax, lifted(X), y, [-1, 1], size=14, depthshade=False)
    turn = np.linspace(0, 2 * np.pi, 97)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    reach = np.linspace(0, np.linalg.norm(X, axis=1).max(), 41)
    net = lifted(reach[:, np.newaxis, np.newaxis] * circle)
    for line in (*net[8::8], *net.swapaxes(0, 1)[:-1:8]):
        ax.plot(*line.T, color=GREY, linewidth=0.6, alpha=0.5)
    low, high = mm.geometry.pad(lifted(np.vstack([X, [[0, 0]]])))
    x1, x2 = np.meshgrid([low[0], high[0]], [low[1], high[1]])
    height = -(w[0] * x1 + w[1] * x2 + b) / w[2]
    ax.plot_surface(x1, x2, height, color=foreground(ax), alpha=0.18, shade=False)
    ax.plot(*lifted(centre + radius * circle).T, color=foreground(ax), linewidth=1.6)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_pane_color((0.5, 0.5, 0.5, 0.06))
    ax.locator_params(nbins=4)
    ax.view_init(elev=20)
    ax.set_box_aspect(None, zoom=1.05)  # so that its labels stay inside the figure
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.set(xlabel="x₁", ylabel="x₂", title="… is a plane in z = ‖x‖²")
    ax.set_zlabel("z", labelpad=-2.0)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "circle_lift.png")
