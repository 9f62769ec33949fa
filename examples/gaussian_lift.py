"""A hill over the plane: two rings that no line separates, and a plane that does.

    python examples/gaussian_lift.py [PICTURE.png]

The height r = exp(−‖x − c‖²/2s²), with c the mean and s the spread of the points, puts the inner
ring near the top of a hill and the outer one at its foot. The plane of largest margin in (x, r)
cuts the hill in the curve on the left. The margin is measured in x too, so the plane tilts a
little, and the curve is nearly, but not quite, a circle.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np

import maxmargin as mm
from maxmargin.plots import planar
from maxmargin.plots.style import GREY, foreground, legend_under, pyplot, scatter

X, Y = mm.datasets.circles(200, random_state=0)
CENTRE = X.mean(axis=0)
SPREAD = float(np.sqrt(np.mean((X - CENTRE) ** 2)))


def main(path: str) -> None:
    mpl.use("Agg")
    model = mm.HardMarginSVC().fit(lifted(X), Y)
    w, b = model.coef_[0], float(model.intercept_[0])
    with mm.plots.theme():
        figure = pyplot().figure(figsize=(8.0, 4.0), layout="constrained")
        left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2, projection="3d")
        contours = draw_plane_of_x(left, w, b)
        draw_hill(right, w, b, contours.get_paths()[1].to_polygons(closed_only=False))
        legend_under(np.array([left, right]), left.get_legend_handles_labels()[0])
        figure.savefig(path, dpi=140)
    print(f"in the plane: {mm.separate(X, Y)}")
    print(f"on the hill: {mm.separate(lifted(X), Y)}")
    print(f"picture in {path}")


def lifted(X: Any) -> Any:
    """Return points with r as their last coordinate."""
    return mm.geometry.lift_points(X, "gaussian", CENTRE, SPREAD)


def draw_plane_of_x(ax: Any, w: Any, b: float) -> Any:
    """Draw the points and the curves f = −1, 0 and 1, and return these."""
    seen = mm.geometry.window(X, equal=True)
    x1, x2 = (np.linspace(low, high, 241) for low, high in zip(*seen[:2], strict=True))
    f = lifted(np.stack(np.meshgrid(x1, x2), axis=-1)) @ w + b
    scatter(ax, X, Y, [-1, 1], size=14)
    contours = planar.draw_contours(ax, (x1, x2, f))
    planar.show_window(ax, seen)
    ax.set(xlabel="x₁", ylabel="x₂", title="A curve in the plane …")
    return contours


def draw_hill(ax: Any, w: Any, b: float, curves: Any) -> None:
    """Draw the lifted points, the hill as rings and rays, the plane, and where they meet."""
    scatter(ax, lifted(X), Y, [-1, 1], size=14, depthshade=False)
    turn = np.linspace(0, 2 * np.pi, 97)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    reach = np.linspace(0, np.linalg.norm(X - CENTRE, axis=1).max(), 41)
    net = lifted(CENTRE + reach[:, np.newaxis, np.newaxis] * circle)
    for line in (*net[8::8], *net.swapaxes(0, 1)[:-1:8]):
        ax.plot(*line.T, color=GREY, linewidth=0.6, alpha=0.5)
    low, high = mm.geometry.pad(lifted(np.vstack([X, CENTRE])))
    x1, x2 = np.meshgrid([low[0], high[0]], [low[1], high[1]])
    height = -(w[0] * x1 + w[1] * x2 + b) / w[2]
    ax.plot_surface(x1, x2, height, color=foreground(ax), alpha=0.18, shade=False)
    for curve in curves:
        ax.plot(*lifted(curve).T, color=foreground(ax), linewidth=1.6)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_pane_color((0.5, 0.5, 0.5, 0.06))
    ax.locator_params(nbins=4)
    ax.view_init(elev=20)
    ax.set_box_aspect(None, zoom=1.05)  # so that its labels stay inside the figure
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    ax.set(xlabel="x₁", ylabel="x₂", title="… is a plane in z = exp(−‖x − c‖²/2s²)")
    ax.set_zlabel("z", labelpad=-2.0)
    ax.set_zticks([0.5, 1.0])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "gaussian_lift.png")
