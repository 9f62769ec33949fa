"""Pictures of kernel machines: how many times faster, seconds by rows, seconds by memory."""

from collections.abc import Sequence
from typing import Any

from benchmarks import pictures
from benchmarks.pictures import COLOURS, MARKERS
from benchmarks.solvers.kernel import PEERS
from benchmarks.suite.kernel_growth import Caps, Growth
from benchmarks.suite.kernel_race import Race

WIDTH = 0.8  # of all bars of one case


def picture(races: Sequence[Race], growth: Growth | None, caps: Caps | None) -> Any:
    """Draw a panel per number of threads, one for the growth and one for the memory."""
    counts = sorted({threads for found in races for threads in found.counts})
    panels = len(counts) + (growth is not None) + (caps is not None)
    drawn, axes = pictures.figure(panels, width=5.2, height=4.2)
    for axis, threads in zip(axes, counts, strict=False):
        _ratios(axis, races, threads)
    if growth is not None:
        _growth(axes[len(counts)], growth)
    if caps is not None:
        _caps(axes[-1], caps)
    return drawn


def _ratios(axis: Any, races: Sequence[Race], threads: int) -> None:
    for k, peer in enumerate(PEERS):
        found = [(place, race.ratio(peer, threads)) for place, race in enumerate(races)]
        shown = [(place, ratio.values.median) for place, ratio in found if ratio is not None]
        thick = WIDTH / len(PEERS)
        axis.barh(
            [place - WIDTH / 2 + thick * (k + 0.5) for place, _ in shown],
            [median for _, median in shown],
            thick,
            color=COLOURS[k],
            label=f"{peer} / maxmargin",
        )
    axis.axvline(1.0, color="black", linewidth=0.8)
    axis.set(xscale="log", xlabel="times our fit's seconds", title=f"{threads} thread(s)")
    axis.set(yticks=range(len(races)), yticklabels=[race.name for race in races])
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
    axis.legend()


def _growth(axis: Any, growth: Growth) -> None:
    rows, seconds = [s.rows for s in growth.sizes], [s.wall.median for s in growth.sizes]
    axis.plot(rows, seconds, color=COLOURS[0], marker=MARKERS[0])
    title = f"covtype: seconds ∝ n^{growth.exponents()[0]:.2f}"
    axis.set(title=title, xlabel="rows", ylabel="seconds", xscale="log", yscale="log")
    axis.grid(alpha=0.3)


def _caps(axis: Any, caps: Caps) -> None:
    seconds = [sum(caps.timings.wall(cap)) / len(caps.timings.wall(cap)) for cap in caps.caps]
    axis.plot(caps.caps, seconds, color=COLOURS[0], marker=MARKERS[0])
    axis.set(title="a cap on memory", xlabel="bytes", ylabel="seconds", xscale="log")
    axis.set(ylim=(0, None))
    axis.grid(alpha=0.3)
