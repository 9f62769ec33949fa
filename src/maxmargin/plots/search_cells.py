"""Cells of a map of scores: hatches, numbers, and the values along its sides."""

from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.plots.search_results import key_of
from maxmargin.plots.style import ink, text

Floats = npt.NDArray[np.float64]

_LETTERS = 30  # side by side along an axis


def hatched(ax: Any, cells: Any, hatch: str, label: str) -> Any:
    """Hatch cells of a map, if there are any."""
    from matplotlib.collections import PolyCollection

    if not cells.any():
        return None
    corner = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    middles = np.argwhere(cells)[:, np.newaxis, ::-1]
    how: dict[str, Any] = {"facecolor": "none", "edgecolor": ink(ax), "linewidth": 0}
    return ax.add_collection(PolyCollection(middles + corner, hatch=hatch, label=label, **how))


def written(ax: Any, image: Any, scores: Floats) -> list[Any]:
    """Write the scores into the cells, dark on light colours and light on dark ones."""
    size = 7 if scores.shape[1] <= 6 else 6
    texts = []
    for (row, column), score in np.ndenumerate(scores):
        if np.isfinite(score):
            red, green, blue, _ = image.cmap(image.norm(score))
            dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.5
            texts.append(
                ax.text(column, row, f"{score:.2f}" if abs(score) < 10 else f"{score:.3g}",
                        ha="center", va="center", fontsize=size,
                        color="white" if dark else "black")
            )  # fmt: skip
    return texts


def name_steps(axis: Any, name: str, values: Any) -> None:
    """Name an axis with one step for each value, leaving out some where there are many."""
    labels = [short(value) for value in values]
    wide = max(map(len, labels)) + 1 if axis.axis_name == "x" else 3  # side by side, or stacked
    every = -(-len(labels) * wide // _LETTERS)
    axis.set_ticks(np.arange(0, len(labels), every), labels[::every])
    axis.set_label_text(text(name))


def short(value: Any) -> str:
    """Return a value as a tick can show it."""
    key = key_of(value)
    if not isinstance(key, float):
        return text(value, 12)
    return f"{key:.0f}" if key.is_integer() and abs(key) < 1e5 else f"{key:.3g}"


def named(name: str, value: Any) -> str:
    """Return a parameter with its value."""
    return f"{text(name, 16)} = {short(value)}"
