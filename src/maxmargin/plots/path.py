"""What changes with the cost C of slack.

    w(C), b(C) = argmin ½‖w‖² + C Σ ξ,        ξ = max(0, 1 − y f)

‖w‖ never falls and Σξ never grows with C, so the margin 1/‖w‖ never grows; the number of mistakes
may go up and down, but stays at or below Σξ, as a mistake has ξ ≥ 1. Up to some C the duals are
proportional to C; for separable classes the soft margin is the hard margin from some C on.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.plots import style
from maxmargin.plots.style import text


@dataclass(eq=False, repr=False)
class PathDisplay(style.Display):
    """Margin, slack and mistakes, and kinds of support vectors along C, in three panels.

    Parameters
    ----------
    path : RegularizationPath
        As ``mm.regularization_path`` returns it.
    problem : int, default=0
        Which binary problem, if there are several, in the order of the estimator.

    Attributes
    ----------
    margin_line_, slack_line_, errors_line_, support_lines_ : Line2D, dict of str to Line2D
        The curves of the first panel, of the second, and of the third by kind.
    end_lines_ : dict of str to list of Line2D
        Vertical lines at the "small" and the "hard" C, if they are known and finite.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(60, random_state=0)
    >>> display = mm.plots.PathDisplay.from_path(mm.regularization_path(X, y))
    >>> [panel.get_ylabel() for panel in display.ax_.flat]
    ['margin 1/‖w‖', 'Σξ, mistakes', 'support vectors']
    """

    path: Any
    problem: int = 0

    @classmethod
    def from_path(cls, path: Any, *, problem: int | None = None, ax: Any = None) -> Self:
        """Draw a path that has been computed.

        Parameters
        ----------
        path : RegularizationPath
            As ``mm.regularization_path`` returns it.
        problem : int, default=None
            Which binary problem, if there are several, in the order of the estimator.
        ax : array of three matplotlib Axes, default=None
            Where; None: in a new figure.
        """
        if not hasattr(path, "slack_sums"):
            raise TypeError(f"path={path!r} is not a path: give what regularization_path returns.")
        count = np.shape(path.margins)[1] if np.ndim(path.margins) > 1 else 1
        if problem is None and count > 1:
            raise ValueError(
                f"the path is of {count} binary problems: choose one, problem=0 to {count - 1}."
            )
        if problem is not None and not (0 <= problem < count):
            raise ValueError(
                f"problem={problem!r} is not valid: the path has {count}, counted from 0."
            )
        return cls(path, problem or 0).plot(ax)

    def _axes(self, ax: Any) -> Any:
        return style.panels(ax, 3, 1, (4.6, 5.6), sharex=True)

    def _draw(self, axes: Any) -> None:
        top, middle, bottom = axes.flat
        draw, Cs = style.draw_curve, np.asarray(self.path.Cs)
        squared = str(getattr(self.path.estimator, "loss", "")).startswith("squared")
        regression = "outside" in self.path.support_counts
        names = "Σξ²" if squared else "Σξ", "outside the tube" if regression else "mistakes"
        margins, slack = self._curve(self.path.margins), self._curve(self.path.slack_sums)
        errors = self._curve(self.path.training_errors)
        counts = {kind: self._curve(count) for kind, count in self.path.support_counts.items()}
        self.margin_line_ = draw(top, Cs, margins, 0)
        self.slack_line_ = draw(middle, Cs, slack, 0, label=names[0])
        self.errors_line_ = draw(middle, Cs, errors, 1, label=names[1])
        self.support_lines_ = {
            kind: draw(bottom, Cs, count, k, label=text(kind, 12))
            for k, (kind, count) in zip((2, 0, 1), counts.items(), strict=False)
        }
        self._draw_ends(axes)
        if 0 < 10 * margins.min() < margins.max() < np.inf:
            top.set_yscale("log")
            top.yaxis.set_major_formatter("{x:g}")
            top.minorticks_off()
        _count_to(middle, max(1.0, slack.max(), errors.max()))
        _count_to(bottom, max(1.0, *(count.max() for count in counts.values())))
        top.set_ylabel("margin 1/‖w‖")
        top.set_title("The larger C, the narrower the margin", pad=20 if self.end_lines_ else 6)
        middle.set(ylabel=", ".join(names))
        bottom.set(ylabel="support vectors", xlabel="cost of slack C")
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 0.98), "frameon": False}
        for ax in (top, middle, bottom):
            ax.set_xscale("log")
            if ax.get_legend_handles_labels()[0]:
                style.legend_that_fits(ax, 3, borderpad=0.2, columnspacing=1.2, **above)

    def _curve(self, values: Any) -> npt.NDArray[Any]:
        """Return the values of the problem that is drawn."""
        return np.reshape(values, (len(self.path.Cs), -1))[:, self.problem]

    def _draw_ends(self, axes: Any) -> None:
        self.end_lines_: dict[str, list[Any]] = {}
        for end, C, dashes, label in (
            ("small", self.path.small_C, ":", "left: α ∝ C"),
            ("hard", self.path.hard_C, "--", "right: hard margin"),
        ):
            if C is not None and np.isfinite(C):
                line = {"color": style.foreground(axes.flat[0]), "linestyle": dashes}
                self.end_lines_[end] = [ax.axvline(C, linewidth=1.0, **line) for ax in axes.flat]
                self.end_lines_[end][0].set_label(label)


def _count_to(ax: Any, most: float) -> None:
    """Scale an axis of counts: from 1 on logarithmic, so that a few are visible beside many."""
    ax.set_yscale("symlog", linthresh=1.0)
    ax.set_ylim(-0.3, 2.0 * most)
    ticks = [0.0, *10.0 ** np.arange(1 + np.floor(np.log10(2.0 * most)))]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
