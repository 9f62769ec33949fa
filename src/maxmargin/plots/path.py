"""What changes with the cost C of slack.

    w(C), b(C) = argmin ½‖w‖² + C Σ ξ,        ξ = max(0, 1 − y f)

‖w‖ never falls and Σξ never grows with C, so the margin 1/‖w‖ never grows; the number of mistakes
may go up and down, but stays at or below Σξ, as a mistake has ξ ≥ 1. Up to some C the duals are
proportional to C; for separable classes the soft margin is the hard margin from some C on.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.model_selection import regularization_path
from maxmargin.plots import style
from maxmargin.plots.style import text


@dataclass(eq=False, repr=False)
class PathDisplay(style.Display):
    """Margin, slack and mistakes, and kinds of support vectors along C, in three panels.

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,)
        Costs of slack, > 0, ascending.
    margins : array-like of shape (n_Cs,)
        1/‖w‖.
    slack_sums : array-like of shape (n_Cs,)
        Σξ, or Σξ² for squared losses.
    training_errors : array-like of shape (n_Cs,)
        Rows on the wrong side; in regression, outside the tube.
    support_counts : dict of str to array-like of shape (n_Cs,)
        Support vectors by kind.
    small_C, hard_C : float or None, default=None
        C up to which α/C is constant, and C from which on the soft margin is the hard margin.
    slack_name, errors_name : str
        Names of the curves in the second panel.

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

    Cs: Any
    margins: Any
    slack_sums: Any
    training_errors: Any
    support_counts: Mapping[str, Any]
    _: KW_ONLY
    small_C: float | None = None
    hard_C: float | None = None
    slack_name: str = "Σξ"
    errors_name: str = "mistakes"

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

        def chosen(values: Any) -> npt.NDArray[Any]:
            return np.reshape(values, (len(path.Cs), -1))[:, problem or 0]

        regression = "outside" in path.support_counts
        squared = str(getattr(path.estimator, "loss", "")).startswith("squared")
        return cls(
            np.asarray(path.Cs),
            chosen(path.margins),
            chosen(path.slack_sums),
            chosen(path.training_errors),
            {kind: chosen(counts) for kind, counts in path.support_counts.items()},
            small_C=path.small_C,
            hard_C=path.hard_C,
            slack_name="Σξ²" if squared else "Σξ",
            errors_name="outside the tube" if regression else "mistakes",
        ).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        Cs: Any = 20,
        sample_weight: Any = None,
        problem: int | None = None,
        ax: Any = None,
    ) -> Self:
        """Compute the path of a machine along C and draw it.

        Parameters
        ----------
        estimator : LinearSVC, SVC, LinearSVR or SVR
            Fitted or not; its parameters other than C are used.
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels, or numbers for a regression.
        Cs : int or array-like, default=20
            The costs, or how many of them, from one end of the path to the other.
        sample_weight : array-like of shape (n_samples,), default=None
            How many times each row counts.
        problem : int, default=None
            Which binary problem, if there are several.
        ax : array of three matplotlib Axes, default=None
            Where; None: in a new figure.
        """
        path = regularization_path(X, y, estimator, Cs=Cs, sample_weight=sample_weight)
        return cls.from_path(path, problem=problem, ax=ax)

    def _axes(self, ax: Any) -> Any:
        return style.panels(ax, 3, 1, (4.6, 5.6), sharex=True)

    def _draw(self, axes: Any) -> None:
        top, middle, bottom = axes.flat
        draw, Cs = style.draw_curve, self.Cs
        self.margin_line_ = draw(top, Cs, self.margins, 0)
        slack, errors = text(self.slack_name, 16), text(self.errors_name, 16)
        self.slack_line_ = draw(middle, Cs, self.slack_sums, 0, label=slack)
        self.errors_line_ = draw(middle, Cs, self.training_errors, 1, label=errors)
        self.support_lines_ = {
            kind: draw(bottom, Cs, counts, k, label=text(kind, 12))
            for k, (kind, counts) in zip((2, 0, 1), self.support_counts.items(), strict=False)
        }
        self.end_lines_ = {}
        for end, C, dashes, label in (
            ("small", self.small_C, ":", "left: α ∝ C"),
            ("hard", self.hard_C, "--", "right: hard margin"),
        ):
            if C is not None and np.isfinite(C):
                line = {"color": style.foreground(top), "linestyle": dashes, "linewidth": 1.0}
                self.end_lines_[end] = [ax.axvline(C, **line) for ax in axes.flat]
                self.end_lines_[end][0].set_label(label)
        self._dress(top, middle, bottom)

    def _dress(self, top: Any, middle: Any, bottom: Any) -> None:
        from matplotlib.ticker import StrMethodFormatter

        low, high = np.min(self.margins), np.max(self.margins)
        if 0 < 10 * low < high < np.inf:
            top.set_yscale("log")
            top.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            top.minorticks_off()
        _count_to(middle, max(1.0, *np.ravel(self.slack_sums), *self.training_errors))
        _count_to(bottom, max(1.0, *(np.max(counts) for counts in self.support_counts.values())))
        top.set_ylabel("margin 1/‖w‖")
        top.set_title("The larger C, the narrower the margin", pad=20 if self.end_lines_ else 6)
        middle.set(ylabel=f"{text(self.slack_name, 16)}, {text(self.errors_name, 16)}")
        bottom.set(ylabel="support vectors", xlabel="cost of slack C")
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 0.98), "frameon": False}
        for ax in (top, middle, bottom):
            ax.set_xscale("log")
            if ax.get_legend_handles_labels()[0]:
                style.legend_that_fits(ax, 3, borderpad=0.2, columnspacing=1.2, **above)


def _count_to(ax: Any, most: float) -> None:
    """Scale an axis of counts: from 1 on logarithmic, so that a few are visible beside many."""
    ax.set_yscale("symlog", linthresh=1.0)
    ax.set_ylim(-0.3, 2.0 * most)
    ticks = [0.0, *10.0 ** np.arange(1 + np.floor(np.log10(2.0 * most)))]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
