"""Pictures of linear machines: gap against seconds, and seconds against rows."""

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.pictures import COLOURS, MARKERS
from benchmarks.solvers.linear import CANDIDATES, Ours
from benchmarks.suite.linear_growth import TARGET, Growth
from benchmarks.suite.linear_race import TARGETS, Race

ACROSS = 4
LOOK = dict(zip(CANDIDATES, zip(COLOURS, MARKERS, strict=False), strict=False))


def picture(races: Sequence[Race], growth: Growth | None) -> Any:
    """Draw a panel per race, and one for the growth."""
    from matplotlib.figure import Figure

    panels = len(races) + (growth is not None)
    across = min(ACROSS, panels)
    down = math.ceil(panels / across)
    drawn = Figure(figsize=(4.2 * across, 3.6 * down + 0.4), layout="constrained")
    axes = drawn.subplots(down, across, squeeze=False).ravel()
    for axis, found in zip(axes, races, strict=False):
        _gaps(axis, found)
    if growth is not None:
        _growth(axes[len(races)], growth)
    for axis in axes[panels:]:
        axis.set_axis_off()
    lines = [line for axis in axes for line in axis.get_legend_handles_labels()[0]]
    names = {line.get_label(): line for line in lines}
    drawn.legend(names.values(), names.keys(), loc="outside upper center", ncols=len(names))
    return drawn


def _gaps(axis: Any, found: Race) -> None:
    for curve in found.curves():
        colour, marker = LOOK[curve.name]
        size = 3 if curve.name == Ours.name else 6
        axis.plot(
            curve.seconds,
            curve.values,
            color=colour,
            marker=marker,
            markersize=size,
            label=curve.name,
        )
    for target in TARGETS:
        axis.axhline(target, color="#444444", linewidth=0.6, linestyle=":")
    axis.set(title=found.name, xlabel="seconds", xscale="log", yscale="log")
    axis.set_ylabel("ours: relative gap; others: suboptimality")
    axis.grid(alpha=0.3)


def _growth(axis: Any, growth: Growth) -> None:
    slope, _ = growth.slopes()
    colour, marker = LOOK[Ours.name]
    axis.plot(growth.rows, growth.seconds(), color=colour, marker=marker, label=Ours.name)
    title = f"to {TARGET:.0e}: seconds ∝ n^{slope:.2f}"
    axis.set(title=title, xlabel="rows", ylabel="seconds", xscale="log", yscale="log")
    axis.grid(alpha=0.3)
