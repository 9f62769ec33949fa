"""How separating lines look: a perceptron's, another's, the rest, and the central one."""

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.geometry import Hyperplane
from maxmargin.plots.planar import Window
from maxmargin.plots.style import AMBER, GREEN, PINK

CENTRAL = -1  # the number of the central line; the others count from 0


def line_looks(margins: dict[int, float], bands: bool, paper: str) -> dict[int, dict[str, Any]]:
    """Return how to draw each line: some in colour, with their margins if bands are drawn."""
    others = [k for k in margins if k != CENTRAL]
    looks: dict[int, dict[str, Any]] = {
        k: {"color": paper, "alpha": 0.2 if bands else 0.4, "linewidth": 0.7} for k in others
    }
    marked = {CENTRAL: (GREEN, "central"), **({0: (PINK, "perceptron")} if others else {})}
    if bands and len(others) > 1:
        marked[max(others[1:], key=lambda k: margins[k])] = (AMBER, "another")
    for k, (colour, name) in marked.items():
        label = f"{name} ±{margins[k]:.2g}" if bands else name
        looks[k] = {"color": colour, "linewidth": 2.4 if k == CENTRAL else 1.8, "label": label}
        looks[k]["zorder"] = 2.2  # above the others
    if rest := [k for k in others if k not in marked]:
        looks[rest[0]]["label"] = "other perceptrons"
    return looks


def draw_bands(
    ax: Any,
    lines: dict[int, Hyperplane],
    margins: dict[int, float],
    looks: dict[int, dict[str, Any]],
    seen: Window,
) -> dict[int, Any]:
    """Fill the empty bands around the lines in colour."""
    how = {"alpha": 0.3, "linewidth": 0, "zorder": 0.5}
    return {
        k: ax.fill(*band(lines[k], margins[k], seen).T, color=look["color"], **how)[0]
        for k, look in looks.items()
        if "alpha" not in look
    }


def band(line: Hyperplane, half_width: float, seen: Window) -> npt.NDArray[np.float64]:
    """Return the corners of a band around a line, long enough to leave the window."""
    foot = line.project([0.5 * (seen.low + seen.high)])[0]
    along = np.array([-line.normal[1], line.normal[0]])
    reach = 2.0 * float(np.linalg.norm(seen.high - seen.low))
    return np.stack(
        [
            foot + far * reach * along + side * half_width * line.normal
            for far, side in ((-1, -1), (1, -1), (1, 1), (-1, 1))
        ]
    )
