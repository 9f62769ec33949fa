"""The perceptron criterion as a surface, beside the number of mistakes.

    python examples/criterion_surface.py [PICTURE.png]

Both surfaces stand over the plane of the weights (w₁, w₂) of a line through the origin. Left: the
number of mistakes is a staircase. It is flat between its steps, so its gradient is 0 and shows no
way down. Right: the perceptron criterion E(w) = Σ max(0, −y w·x) adds how wrong each mistake is. It
is convex and continuous, and slopes down towards the green wedge, where both surfaces are 0: the
weights that separate the classes. E is also 0 at w = 0, the tip of the cone, although w = 0
separates nothing. All weights in the wedge are equally good to the criterion, which is why a
perceptron may stop at a line that passes close to a point.

To try: raise the variance until the classes overlap. The wedge closes, and only w = 0 is left at
the bottom.
"""

import sys
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import maxmargin as mm
from maxmargin.geometry import Hyperplane, perceptron_criterion
from maxmargin.plots.style import GREEN

RADII = np.linspace(1e-3, 1, 15)


def main(path: str) -> None:
    mpl.use("Agg")
    X, y = mm.datasets.gaussians(24, means=((0.9, 0.4), (-0.4, -0.9)), variance=0.1, random_state=2)
    angles = angles_of_w(X)
    units = np.column_stack([np.cos(angles), np.sin(angles)])
    # Along a ray from the origin the mistakes stay the same, and E grows with the length of w.
    wrong = np.array([(Hyperplane(u).functional_margin(X, y) <= 0).sum() for u in units])
    E = np.array([perceptron_criterion(Hyperplane(u), X, y) for u in units])
    figure = plt.figure(figsize=(8.4, 4.2))
    left, right = (figure.add_subplot(1, 2, k, projection="3d") for k in (1, 2))
    draw(left, units, np.tile(wrong, (len(RADII), 1)), wrong == 0)
    draw(right, units, np.outer(RADII, E), wrong == 0)
    left.set_title("The number of mistakes", y=0.98)
    right.set_title("The perceptron criterion E(w)", y=0.98)
    figure.subplots_adjust(left=0.0, right=0.97, bottom=0.03, top=0.95, wspace=0.05)
    figure.savefig(path, dpi=110)
    wedge = np.degrees(np.ptp(angles[wrong == 0])) if (wrong == 0).any() else 0.0
    print(f"The directions that separate span {wedge:.0f} of 360 degrees")


def angles_of_w(X: Any) -> Any:
    """Return angles of w, with one on either side of each line w·x = 0, where mistakes change."""
    jumps = np.arctan2(X[:, 1], X[:, 0]) + np.array([[-1], [1]]) * np.pi / 2
    sides = np.concatenate([jumps.ravel() - 1e-6, jumps.ravel() + 1e-6])
    even = np.linspace(0, 2 * np.pi, 181)
    return np.unique(np.concatenate([sides % (2 * np.pi), even]))


def draw(ax: Any, units: Any, height: Any, separates: Any) -> None:
    w1, w2 = (np.outer(RADII, part) for part in units.T)
    shades = plt.get_cmap("cividis")(0.1 + 0.85 * height / height.max())
    shades[:, separates] = mpl.colors.to_rgba(GREEN)
    whole = {"rcount": len(RADII), "ccount": len(units), "shade": False, "antialiased": False}
    ax.plot_surface(w1, w2, height, facecolors=shades, linewidth=0, **whole)
    ax.view_init(elev=33, azim=75)
    ax.set(xlabel="w₁", ylabel="w₂", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    ax.set_zticks(range(0, 25, 5))
    ax.tick_params(pad=0)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "criterion_surface.png")
