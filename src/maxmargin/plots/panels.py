"""Pictures of several panels: their axes, one legend for all, and what stands for a column."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.plots.style import RASTER_FROM, grid_of_axes, is_axes, legend_that_fits, pyplot

_MOST_ENTRIES = 12  # of a legend, beyond which it would be larger than the picture
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def panels(ax: Any, rows: int, columns: int, size: tuple[float, float], **how: Any) -> Any:
    """Return the array of axes given, or that of a new figure; panels are counted row by row."""
    if ax is None:
        return grid_of_axes(rows, columns, size, **how)
    axes = np.asarray(ax, dtype=object)
    if axes.size != rows * columns or not all(map(is_axes, axes.flat)):
        raise ValueError(
            f"ax={ax!r} is not valid: this picture has {rows * columns} panels. Give an array of "
            f"as many axes, such as figure.subplots({rows}, {columns}), or None for a new figure."
        )
    return axes


def dot_size(n: int) -> float:
    """Return the size of n marks: large where they are few."""
    return 14.0 if n <= RASTER_FROM else 4.0


def flat_and_solid(size: tuple[float, float]) -> Any:
    """Return two axes beside each other in a new figure, the second of three dimensions."""
    figure = pyplot().figure(figsize=size, layout="constrained")
    pair = figure.subplot_mosaic("xz", per_subplot_kw={"z": {"projection": "3d"}})
    return np.array(list(pair.values()), dtype=object)


def legend_under(axes: Any, handles: Sequence[Any]) -> Any:
    """Put one legend under all panels, in as many columns as the figure is wide enough for."""
    from matplotlib.lines import Line2D

    shown = list(handles[:_MOST_ENTRIES])
    if len(handles) > len(shown):
        words = f"and {len(handles) - len(shown)} more"
        shown.append(Line2D([], [], linestyle="none", label=words))
    figure = axes.flat[0].figure
    how = {"loc": "outside lower center", "frameon": False, "columnspacing": 1.2}
    return legend_that_fits(figure, figure, len(shown), handles=shown, **how)


def column_names(X: Any, count: int) -> list[str]:
    """Return the names of columns: those of a frame, or x₁, x₂ and so on."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    return [f"x{k}".translate(_SUBSCRIPTS) for k in range(1, count + 1)]


def kernel_name(kernel: Any) -> str:
    """Return a kernel as it prints, with four digits of its numbers."""
    from maxmargin.kernels.base import literal

    name = kernel if isinstance(kernel, str) else literal(kernel)
    return re.sub(r"\d+\.\d{4,}(e[-+]?\d+)?", lambda found: f"{float(found[0]):.4g}", name)


def check_label_per_row(y: Any, n_rows: int) -> tuple[npt.NDArray[Any], list[Any]]:
    """Return labels as an array, one for each row, and the classes among them in order."""
    from maxmargin.estimators.inputs import check_labels

    labels = check_labels(y, n_rows)
    return labels, np.unique(labels).tolist()
