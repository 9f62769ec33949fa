"""One update of a perceptron, on a positive and on a negative example.

    python examples/one_update.py [PICTURE.png]

Without an intercept, w·x > 0 means that w and x make an angle below 90°. A positive example on the
wrong side is added to w, which turns towards it; a negative one is subtracted, and w turns away
from it. The green arrow is the step ηyx, from the tip of the old w to that of the new one.
Either way y w·x rises by η‖x‖²; with an intercept y f rises by η(‖x‖² + 1). Here η = 1.
"""

import sys
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

import maxmargin as mm
from maxmargin.geometry import Hyperplane
from maxmargin.plots import planar
from maxmargin.plots.style import GREEN, GREY, colour, foreground, grid_of_axes, legend_under, mark

W = np.array([1.0, 0.6])
X, Y = np.array([[-1.1, 0.7], [1.3, -0.5]]), np.array([1, -1])
OLD: dict[str, Any] = {"linestyle": "--", "alpha": 0.5}
POSITIVE: dict[str, Any] = {"color": colour(1), "alpha": 0.12}


def main(path: str) -> None:
    mpl.use("Agg")
    with mm.plots.theme():
        axes = grid_of_axes(1, 2, (7.2, 4.6))
        points = [draw(ax, x, y) for ax, x, y in zip(axes.flat, X, Y, strict=True)]
        black = foreground(axes[0, 0])
        handles = [
            Line2D([], [], color=black, linewidth=3, alpha=0.5, label="w before"),
            Line2D([], [], color=black, linewidth=3, label="w after"),
            Line2D([], [], color=GREEN, linewidth=3, label="ηyx, the step"),
            Line2D([], [], color=black, linewidth=1.2, label="line before", **OLD),
            Line2D([], [], color=black, linewidth=1.2, label="line after"),
            Patch(linewidth=0, label="positive side after", **POSITIVE),
        ]
        legend_under(axes, [*handles, *points])
        axes[0, 0].figure.savefig(path, dpi=140)
    rise = Y * np.sum(Y[:, np.newaxis] * X * X, axis=1)
    print(f"y w·x rises by {rise.round(2)}, and ‖x‖² is {np.sum(X**2, axis=1).round(2)}")


def draw(ax: Any, x: Any, y: int) -> Any:
    """Draw the update on one example, and return the artist of the example."""
    new, black = W + y * x, foreground(ax)
    centre = np.mean([np.max([0 * x, W, new, x], axis=0), np.min([0 * x, W, new, x], axis=0)], 0)
    seen = mm.geometry.Window(centre - 1.4, centre + 1.4, equal=True)
    # The positive side is a band beside the line, wider than the window.
    planar.draw_band(ax, Hyperplane(new / np.linalg.norm(new), -9.0), 9.0, seen, **POSITIVE)
    planar.draw_line(ax, Hyperplane(W), seen, color=black, linewidth=1.2, **OLD)
    planar.draw_line(ax, Hyperplane(new), seen, color=black, linewidth=1.2)
    arrow: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.012}
    ax.quiver(0, 0, *W, color=black, alpha=0.5, zorder=3, **arrow)
    ax.quiver(*W, *y * x, color=GREEN, zorder=3, **arrow)
    ax.quiver(0, 0, *new, color=black, zorder=3, **arrow)
    ax.plot([0, x[0]], [0, x[1]], color=GREY, linewidth=1, linestyle=":")
    draw_angle(ax, W, x, 0.28, **OLD)
    draw_angle(ax, new, x, 0.2)
    for name, tip in (("w", W), ("new w", new), ("x", x)):
        place = {"textcoords": "offset points", "ha": "center", "va": "center"}
        ax.annotate(name, tip, 10 * tip / np.linalg.norm(tip), zorder=5, **place)
    planar.show_window(ax, seen)
    scores = f"y = {y:+d}: y f from {y * (W @ x):.3g} to {y * (new @ x):.3g}".replace("-", "−")
    ax.set_title(f"{scores}\nangle of w and x: {degrees(W, x):.0f}° → {degrees(new, x):.0f}°")
    ax.set(xlabel="x₁", ylabel="x₂")
    positive, name = int(y > 0), "positive example" if y > 0 else "negative example"
    dot = {"s": 45, "c": colour(positive), "marker": mark(positive), "zorder": 4}
    return ax.scatter(*x, label=name, **dot)


def degrees(w: Any, x: Any) -> float:
    return float(np.degrees(np.arccos(w @ x / np.linalg.norm(w) / np.linalg.norm(x))))


def draw_angle(ax: Any, w: Any, x: Any, radius: float, **options: Any) -> None:
    """Draw the angle of two vectors at the origin."""
    start, end = np.arctan2(w[1], w[0]), np.arctan2(x[1], x[0])
    turn = start + np.linspace(0, (end - start + np.pi) % (2 * np.pi) - np.pi, 40)
    arc = radius * np.array([np.cos(turn), np.sin(turn)])
    ax.plot(*arc, color=foreground(ax), linewidth=1, **options)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "one_update.png")
