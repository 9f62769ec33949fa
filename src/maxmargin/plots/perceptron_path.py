"""The line of a perceptron as it learns.

In two dimensions the plane w·x + b = 0 is the line x₂ = −b/w₂ − (w₁/w₂)x₁, vertical if w₂ = 0 and
absent if w = 0, as before the first update from a zero start. An update w += ηyx, b += ηy on a
mistake turns and shifts the line towards putting x on its side. Panels count the points that are
wrong and state the perceptron criterion E = Σ max(0, −y f), which the updates descend.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats
from maxmargin.geometry import Hyperplane, Window, segment, window
from maxmargin.geometry.criterion import criterion_of_margins
from maxmargin.inspection.model_view import read_trace, to_dense
from maxmargin.plots import planar, style
from maxmargin.plots.planar import draw_line
from maxmargin.plots.style import Rows, foreground

_MOST_LINES = 60  # more would hide the points


@dataclass(eq=False, repr=False)
class PerceptronPathDisplay(style.Display):
    """The line of a perceptron with two features after each update or epoch.

    Parameters
    ----------
    coef, intercept : ndarray of shape (n_records, 2) and (n_records,)
        Weights w and intercepts b, from the start to the end.
    moments : ndarray of int of shape (n_records,)
        After how many updates or epochs each record was taken; 0 is the start.
    X, y : ndarray of shape (n_samples, 2) and (n_samples,)
        Points to show, and their labels.
    classes : ndarray of shape (2,)
        Both labels; a positive score speaks for the second.
    every : {"update", "epoch"}, default="update"
        What ``moments`` counts.
    examples : ndarray of shape (n_records, 2) or None, default=None
        The misclassified point that led to each record, NaN for none; panels ring it.
    model : (ndarray of shape (2,), float) or None, default=None
        Weights and intercept of the model itself, if they are not those of the last record: an
        average, or the best of the run.
    feature_names : (str, str), default=("x₁", "x₂")
        Names of the axes.
    panels : int or None, default=None
        None draws all lines in one picture, early ones faint; a number draws this many small
        panels with one line each, from the start to the end, with the number of points that are
        wrong and the perceptron criterion E on them.

    Attributes
    ----------
    points_ : list
        The points, by class; with ``panels`` those of all panels.
    lines_ : LineCollection or list of Line2D
        The earlier lines; with ``panels`` those of the panels.
    last_, model_ : Line2D or None
        The last line, and the model's if it differs (not with ``panels``).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(100, variance=0.05, random_state=3)
    >>> model = mm.Perceptron(trace=True).fit(X, y)
    >>> display = mm.plots.PerceptronPathDisplay.from_estimator(model, X, y)
    >>> len(display.moments) == model.updates_ + 1
    True
    """

    _: KW_ONLY
    coef: Floats
    intercept: Floats
    moments: Rows
    X: Floats
    y: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    every: str = "update"
    examples: Floats | None = None
    model: tuple[Floats, float] | None = None
    feature_names: tuple[str, str] = ("x₁", "x₂")
    panels: int | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        every: str = "update",
        panels: int | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the lines that a fitted perceptron passed through.

        Parameters
        ----------
        estimator : Perceptron, AveragedPerceptron or VotedPerceptron
            Fitted with ``trace=True`` on two features and two classes.
        X, y : array-like of shape (n_samples, 2) and (n_samples,)
            Points to show, sparse or dense, and their labels: the training data, or others.
        every : {"update", "epoch"}, default="update"
            Show the line after each update, or after each epoch.
        panels : int ≥ 1 or None, default=None
            This many small panels instead of one picture with all lines.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure, and so does ``panels``.
        """
        run = _read_run(estimator, every)
        data = planar.check_planar(X, y, estimator)
        return cls(**run, **data._asdict(), every=every, panels=panels).plot(ax)

    def _axes(self, ax: Any) -> Any:
        if self.panels is None:
            return style.new_axes(ax)
        if self.panels < 1:
            raise ValueError(f"panels must be 1 or more, or None, got {self.panels!r}")
        if ax is not None:
            raise ValueError(
                "panels makes its own figure, so ax is of no use: leave one of them out"
            )
        return style.small_multiples(min(self.panels, len(self.moments)), (2.0, 2.0), (0.3, 0.7))

    def _draw(self, axes: Any) -> None:
        if self.panels is None:
            self._draw_all(axes)
            return
        axes[0].figure.suptitle(self._title, fontsize=10)
        self.lines_: Any = []
        self.points_, self.last_, self.model_ = [], None, None
        for ax, k in zip(axes, _pick_evenly(len(self.moments), len(axes)), strict=True):
            self.points_ += planar.draw_points(ax, self, self._window, size=7.0, longest=14)
            if (line := self._draw_moment(ax, int(k))) is not None:
                self.lines_.append(line)
            ax.title.set_fontsize(8)
        rings = "" if self.examples is None else "ring: the last mistake"
        messages = "; ".join(planar.sampling_messages(len(self.X), rings))
        style.legend_under(axes, self.points_[:2]).set_title(messages, {"size": 7})

    def _draw_all(self, ax: Any) -> None:
        from matplotlib.collections import LineCollection
        from matplotlib.colors import to_rgba

        n, seen = len(self.moments), self._window
        earlier = _pick_evenly(n, _MOST_LINES)[:-1]
        self.points_ = planar.draw_points(ax, self, seen)
        ends = {place: segment(self._plane(k), seen) for place, k in enumerate(earlier)}
        inside = {place: both for place, both in ends.items() if both is not None}
        # The first ones are faint.
        shades = [to_rgba(foreground(ax), 0.12 + 0.5 * place / len(ends)) for place in inside]
        self.lines_ = LineCollection(list(inside.values()), colors=shades, linewidths=0.8)
        ax.add_collection(self.lines_, autolim=False)
        if inside:
            ax.plot([], [], color=foreground(ax), alpha=0.4, linewidth=0.8, label="earlier lines")
        bold = {"color": foreground(ax), "linewidth": 2.2, "label": "last line"}
        self.last_ = draw_line(ax, self._plane(n - 1), seen, **bold)
        self.model_ = None
        if self.model is not None:
            own = bold | {"color": style.GREEN, "linestyle": "--", "label": "model's line"}
            self.model_ = draw_line(ax, Hyperplane(*self.model), seen, **own)
        ax.set_title(self._title)
        style.legend_below(ax, 2)
        zero = np.count_nonzero(~self.coef[earlier].any(axis=1))
        outside = len(earlier) - len(inside) - zero
        planar.write_messages(
            ax,
            len(self.X),
            style.sampled(len(earlier) + 1, n, "lines"),
            "no line where w = 0" if zero else "",
            f"{outside} outside" if outside else "",
        )

    def _draw_moment(self, ax: Any, k: int) -> Any:
        """Draw the line of one record and the mistake that led to it, and return the line."""
        line = draw_line(ax, self._plane(k), self._window, color=foreground(ax), linewidth=2.0)
        margins = self._plane(k).functional_margin(self.X, planar.signs(self.y, self.classes))
        when = f"{self.every} {self.moments[k]}" if self.moments[k] else "start"
        absent = "line outside" if self.coef[k].any() else "w = 0"
        seen = f"{(margins <= 0).sum():,} wrong" if line is not None else absent
        E = criterion_of_margins(margins, np.ones(len(margins)))
        ax.set_title(f"{when}: {seen}, E = {E:.3g}")
        if self.examples is not None and not np.isnan(self.examples[k]).any():
            planar.draw_rings(ax, self.examples[k])
        return line

    def _plane(self, k: int) -> Hyperplane:
        return Hyperplane(self.coef[k], self.intercept[k])

    @property
    def _title(self) -> str:
        return f"A perceptron's line, {self.every} by {self.every}"

    @property
    def _window(self) -> Window:
        return window(self.X, share=0.15)


def _read_run(estimator: Any, every: str) -> dict[str, Any]:
    """Return the lines of a fitted perceptron, from the start on, by update or by epoch."""
    if every not in ("update", "epoch"):
        raise ValueError(f"every must be 'update' or 'epoch', got {every!r}")
    trace = read_trace(estimator)
    n = len(trace.row)
    rows = moments = np.arange(n + 1)
    examples: Floats | None = np.vstack([np.full((1, 2), np.nan), to_dense(trace.moved)])
    if every == "epoch":
        ends = np.cumsum([0.0, *trace.updates])
        # A row of weight k counts k times, and an interrupted epoch is not counted at all.
        if ends[-1] != n:
            raise ValueError(
                f"every='epoch' needs complete epochs and rows of weight 1, but the epochs count "
                f"{ends[-1]:g} updates and the trace has {n}: use every='update'"
            )
        rows, moments, examples = ends.astype(np.intp), np.arange(len(ends)), None
    coef, intercept = trace.coef[:, 0], trace.intercept[:, 0]
    model = np.asarray(estimator.coef_[0]), float(estimator.intercept_[0])
    same = np.allclose([*model[0], model[1]], [*coef[-1], intercept[-1]], rtol=1e-9, atol=0.0)
    return {
        "coef": coef[rows],
        "intercept": intercept[rows],
        "moments": moments,
        "examples": examples,
        "model": None if same else model,
    }


def _pick_evenly(n: int, most: int) -> Rows:
    """Return at most this many of n moments, evenly spaced, the last one included."""
    return np.unique(np.linspace(n - 1, 0, min(n, most)).round().astype(np.intp))
