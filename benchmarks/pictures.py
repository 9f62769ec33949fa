"""Pictures of what was measured; colours that colour-blind readers can tell apart."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.measure import Spread

# Okabe & Ito (2008), the yellow left out: it is too faint for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


Bar = tuple[Spread, float | None]  # a length, and the target where there is one


class Curve(NamedTuple):
    """One solver's course: seconds, and what was reached by then."""

    name: str
    seconds: Sequence[float]
    values: Sequence[float]


def figure(panels: int, width: float = 4.2, height: float = 3.6) -> tuple[Any, list[Any]]:
    """Return a figure of one row of panels, drawn without a screen."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width * panels, height), layout="constrained")
    return drawn, list(drawn.subplots(1, panels, squeeze=False)[0])


def against_seconds(panels: Mapping[str, Sequence[Curve]], ylabel: str, log: bool) -> Any:
    """Draw one panel per data set: what was reached against seconds (a gap: ``log`` both ways)."""
    drawn, axes = figure(len(panels))
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for k, curve in enumerate(curves):
            axis.plot(
                curve.seconds, curve.values, color=COLOURS[k], marker=MARKERS[k], label=curve.name
            )
        axis.set(title=title, xlabel="seconds")
        axis.grid(alpha=0.3)
        if log:
            axis.set(xscale="log", yscale="log")
        else:
            last = max(max(curve.seconds) for curve in curves)
            most = max(max(curve.values) for curve in curves)
            axis.set(xlim=(0, 1.06 * last), ylim=(0, 1.08 * most or 1))
    axes[0].set_ylabel(ylabel)
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return drawn


def bars(
    panels: Mapping[str, Mapping[str, Sequence[Spread]]], groups: Sequence[str], ylabel: str
) -> Any:
    """Draw grouped bars with quartiles: per panel, each candidate has one bar in every group."""
    drawn, axes = figure(len(panels), width=5.2)
    for axis, (title, candidates) in zip(axes, panels.items(), strict=True):
        thick = 0.8 / len(candidates)
        for k, (name, spreads) in enumerate(candidates.items()):
            places = [g - 0.4 + thick * (k + 0.5) for g in range(len(groups))]
            axis.bar(
                places,
                [s.median for s in spreads],
                thick,
                yerr=_whiskers(spreads),
                label=name,
                color=COLOURS[k],
                ecolor="#444444",
            )
        axis.set(title=title, xticks=range(len(groups)), xticklabels=groups)
        axis.grid(axis="y", alpha=0.3)
    axes[0].set_ylabel(ylabel)
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return drawn


def lying_bars(panels: Mapping[str, Mapping[str, Bar]], label: str) -> Any:
    """Draw a lying bar per name with quartiles, and a black mark at its target if it has one."""
    drawn, axes = figure(len(panels), width=6.0, height=3.8)
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        for k, (spread, target) in enumerate(rows.values()):
            axis.barh(
                k, spread.median, xerr=_whiskers([spread]), color=COLOURS[0], ecolor="#444444"
            )
            if target is not None:
                axis.plot([target, target], [k - 0.45, k + 0.45], color="black", linewidth=2.5)
        axis.set(title=title, xlabel=label, yticks=range(len(rows)), yticklabels=list(rows))
        axis.invert_yaxis()
        axis.grid(axis="x", alpha=0.3)
    return drawn


def _whiskers(spreads: Sequence[Spread]) -> list[list[float]]:
    return [[s.median - s.low for s in spreads], [s.high - s.median for s in spreads]]
