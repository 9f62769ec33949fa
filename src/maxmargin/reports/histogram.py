"""Two pictures that every model has: a histogram of scores, and for regression the fit.

The histogram counts y f/‖w‖ (two classes), leads (several), residuals or f/‖w‖ (outliers), of the
training and of the test rows.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.plots.display import Display
from maxmargin.plots.style import COLOURS, MARKS, ink, legend_below, new_axes, note, thinned
from maxmargin.reports.subject import Part

_TITLES = {
    "classes": "Right of 0: right",
    "leads": "Right of 0: right",
    "numbers": "True − predicted",
    "outliers": "Left of 0: outliers",
}
_BINS = 40
_NARROW = 1e-6  # of the values: a range that is but rounding


class ScoresDisplay(Display):
    """Histogram of what a model says of rows.

    Parameters
    ----------
    parts : list of Part
        Test and training rows.
    kind : {"classes", "leads", "numbers", "outliers"}
        What the scores are.
    """

    def __init__(self, parts: list[Part], kind: str) -> None:
        self.parts = parts
        self.kind = kind

    def plot(self, ax: Any = None) -> Self:
        """Draw shares of rows by their score, one outline for each part."""
        ax = new_axes(ax, (4.6, 3.4))
        scores = [part.scores.values[np.isfinite(part.scores.values)] for part in self.parts]
        edges = _edges(np.concatenate(scores))
        self.steps_ = []
        for k, (part, values) in enumerate(zip(self.parts, scores, strict=True)):
            counts = np.histogram(values, edges)[0] / max(1, len(values))
            style = {"color": COLOURS[k], "linestyle": ("-", "--")[k], "linewidth": 1.4}
            self.steps_.append(ax.stairs(counts, edges, label=f"{part.name} rows", **style))
            ax.stairs(counts, edges, fill=True, color=COLOURS[k], alpha=0.18)
        self.line_ = ax.axvline(0.0, color=ink(ax), linewidth=1.0, linestyle=":")
        if any(part.sampled for part in self.parts):
            note(ax, "a sample of the rows")
        ax.set(xlabel=self.parts[0].scores.unit, ylabel="share of rows")
        ax.set_title(_TITLES[self.kind], loc="left")
        legend_below(ax, columns=2)
        return self._drawn(ax)


def _edges(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return bins around values, which may all be the same up to rounding."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if high - low <= _NARROW * max(abs(low), abs(high)):
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    return np.linspace(low, high, _BINS + 1)


class FitDisplay(Display):
    """Predicted against true values.

    Parameters
    ----------
    parts : list of Part
        Test and training rows.
    """

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts

    def plot(self, ax: Any = None) -> Self:
        """Draw points and the diagonal, where predictions are right."""
        ax = new_axes(ax, (4.6, 4.4))
        self.points_ = []
        ends = []
        for k, part in reversed([*enumerate(self.parts)]):
            some = thinned(len(part.rows))
            true, said = np.asarray(part.y, float)[some], part.scores.raw[some, 0]
            how = {"color": COLOURS[k], "marker": MARKS[k], "s": 12, "linewidths": 0, "alpha": 0.7}
            label = f"{part.name} rows"
            many = len(some) > 2000
            self.points_.append(ax.scatter(true, said, label=label, rasterized=many, **how))
            ends += [true.min(), true.max(), said.min(), said.max()]
            if len(some) < part.total:
                note(ax, "a sample of the rows")
        low, high = float(min(ends)), float(max(ends))
        self.line_ = ax.plot([low, high], [low, high], color=ink(ax), linewidth=1.0)[0]
        ax.set_aspect("equal", adjustable="datalim")
        ax.set(xlabel="true", ylabel="predicted")
        ax.set_title("On the diagonal: right", loc="left")
        legend_below(ax, columns=2)
        return self._drawn(ax)
