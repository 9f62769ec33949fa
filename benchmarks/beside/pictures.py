"""Pictures of what was measured; colours that colour-blind readers can tell apart."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

# Okabe & Ito (2008), the yellow left out: it is too faint for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
ACROSS = 4  # panels


class Curve(NamedTuple):
    """A named course: seconds (or rows), and what was reached by then."""

    name: str
    seconds: Sequence[float]
    values: Sequence[float]


class Panel(NamedTuple):
    """Curves under a title, with what the axes are called."""

    title: str
    curves: Sequence[Curve]
    ylabel: str
    xlabel: str = "seconds"


def courses(panels: Sequence[Panel]) -> Any:
    """Draw curves on logarithmic axes, each name in one colour throughout."""
    from matplotlib.figure import Figure

    across = min(ACROSS, len(panels))
    down = math.ceil(len(panels) / across)
    drawn = Figure(figsize=(4.2 * across, 3.6 * down), layout="constrained")
    axes = list(drawn.subplots(down, across, squeeze=False).ravel())
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    lines: dict[str, Any] = {}
    for axis, panel in zip(axes, panels, strict=False):
        for curve in panel.curves:
            k = names.index(curve.name)
            colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
            (lines[curve.name],) = axis.loglog(
                curve.seconds, curve.values, color=colour, marker=marker, markersize=5
            )
        axis.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)
        axis.grid(alpha=0.3)
    drawn.legend(list(lines.values()), list(lines), loc="outside upper center", ncols=4)
    return drawn
