"""The line of a perceptron as it learns.

In two dimensions the plane w·x + b = 0 is the line x₂ = −b/w₂ − (w₁/w₂)x₁, vertical if w₂ = 0 and
absent if w = 0, as before the first update from a zero start. An update w += ηyx, b += ηy on a
mistake turns and shifts the line towards putting x on its side.
"""

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.geometry import Hyperplane
from maxmargin.plots.display import Display
from maxmargin.plots.panels import legend_under
from maxmargin.plots.perceptron_movie import write_movie
from maxmargin.plots.perceptron_records import evenly, records
from maxmargin.plots.planar import (
    Planar,
    Window,
    draw_faded,
    draw_line,
    draw_points,
    planar,
    remarks,
    ring,
    signs,
    small_multiples,
    window,
    write_remarks,
)
from maxmargin.plots.style import GREEN, ink, legend_below, new_axes

Floats = npt.NDArray[np.float64]
_MOST_LINES = 60  # more would hide the points


class PerceptronPathDisplay(Display):
    """The line of a perceptron with two features after each update or epoch.

    Parameters
    ----------
    coef : ndarray of shape (n_records, 2)
        Weights w, from the start to the end.
    intercept : ndarray of shape (n_records,)
        The intercepts b that belong to them.
    moments : ndarray of int of shape (n_records,)
        After how many updates or epochs each record was taken; 0 is the start.
    X : ndarray of shape (n_samples, 2)
        Points to show.
    y : ndarray of shape (n_samples,)
        Their labels.
    classes : ndarray of shape (2,)
        Both labels; a positive score speaks for the second.
    every : {"update", "epoch"}, default="update"
        What ``moments`` counts.
    examples : ndarray of shape (n_records, 2) or None, default=None
        The point whose mistake led to each record (NaN: none); panels and films put a ring on it.
    model : (ndarray of shape (2,), float) or None, default=None
        Weights and intercept of the model itself, if they are not those of the last record: an
        average, or the best of the run.
    feature_names : (str, str), default=("x₁", "x₂")
        Names of the axes.
    panels : int or None, default=None
        None draws all lines in one picture, early ones faint; a number makes so many small
        pictures of one line each, from the start to the end.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn: axes, or an array of them with ``panels``.
    points_ : list
        The points, by class; with ``panels`` of all of them.
    lines_ : LineCollection or list of Line2D
        The earlier lines; with ``panels`` those of the panels.
    last_, model_ : Line2D or None
        The last line, and the model's where it differs (not with ``panels``).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.gaussians(100, variance=0.05, random_state=3)
    >>> model = mm.Perceptron(trace=True).fit(X, y)
    >>> display = mm.plots.PerceptronPathDisplay.from_estimator(model, X, y)
    >>> len(display.moments) == model.updates_ + 1
    True
    """

    lines_: Any
    last_: Any
    model_: Any

    def __init__(
        self,
        *,
        coef: Floats,
        intercept: Floats,
        moments: npt.NDArray[np.intp],
        X: Floats,
        y: npt.NDArray[Any],
        classes: npt.NDArray[Any],
        every: str = "update",
        examples: Floats | None = None,
        model: tuple[Floats, float] | None = None,
        feature_names: tuple[str, str] = ("x₁", "x₂"),
        panels: int | None = None,
    ) -> None:
        self.coef = coef
        self.intercept = intercept
        self.moments = moments
        self.X = X
        self.y = y
        self.classes = classes
        self.every = every
        self.examples = examples
        self.model = model
        self.feature_names = feature_names
        self.panels = panels

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
        X : array-like or sparse matrix of shape (n_samples, 2)
            Points to show: the training data, or others.
        y : array-like of shape (n_samples,)
            Their labels.
        every : {"update", "epoch"}, default="update"
            Show the line after each update, or after each epoch.
        panels : int ≥ 1 or None, default=None
            So many small pictures instead of one with all lines.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure, and so does ``panels``.
        """
        run = records(estimator, every)
        data = planar(X, y, estimator)
        return cls(**run._asdict(), **data._asdict(), every=every, panels=panels).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones for None, as must be with ``panels``."""
        if self.panels is None:
            return self._plot_all(new_axes(ax))
        if self.panels < 1:
            raise ValueError(f"panels must be 1 or more, or None, got {self.panels!r}")
        if ax is not None:
            raise ValueError("ax is one picture, but panels makes several: leave one of them out")
        return self._plot_panels(evenly(len(self.moments), self.panels))

    def animate(
        self, path: str | Path, *, fps: float = 4.0, most: int = 100, dpi: float = 100.0
    ) -> Path:
        """Write a film of the lines, one frame a record, and return its path.

        Parameters
        ----------
        path : str or Path
            ``.gif``, or ``.html`` for a page with a slider that needs nothing else.
        fps : float > 0, default=4
            Frames per second.
        most : int ≥ 1, default=100
            Longer runs are shown by so many records, evenly chosen; each frame says which.
        dpi : float, default=100
            Dots per inch.
        """
        if most < 1:
            raise ValueError(f"most must be 1 or more, got {most!r}")
        chosen = evenly(len(self.moments), most)
        ax = new_axes()
        legend_below(ax, handles=self._draw_points(ax))
        earlier: list[Any] = []

        def draw(frame: int) -> None:
            while earlier:
                earlier.pop().remove()
            earlier.extend(self._draw_moment(ax, int(chosen[frame])))

        return write_movie(ax.figure, draw, len(chosen), path, fps=fps, dpi=dpi)

    def _plot_all(self, ax: Any) -> Self:
        n, seen = len(self.moments), self._window
        earlier = evenly(n, _MOST_LINES)[:-1]
        self.points_ = self._draw_points(ax)
        self.lines_ = draw_faded(ax, [self._plane(k) for k in earlier], seen)
        bold = {"color": ink(ax), "linewidth": 2.2, "label": "last line"}
        self.last_ = draw_line(ax, self._plane(n - 1), seen, **bold)
        self.model_ = None
        if self.model is not None:
            own = {"color": GREEN, "linewidth": 2.2, "linestyle": "--", "label": "model's line"}
            self.model_ = draw_line(ax, Hyperplane(*self.model), seen, **own)
        ax.set_title(self._title)
        legend_below(ax, 2)
        sampled = f"{len(earlier) + 1} of {n} lines" if len(earlier) + 1 < n else ""
        zero = np.count_nonzero(~self.coef[earlier].any(axis=1))
        outside = len(earlier) - len(self.lines_.get_segments()) - zero
        absent = ["no line where w = 0" if zero else "", f"{outside} outside" if outside else ""]
        write_remarks(ax, remarks(len(self.X), sampled, *absent))
        return self._drawn(ax)

    def _plot_panels(self, chosen: npt.NDArray[np.intp]) -> Self:
        axes = small_multiples(len(chosen), self._title)
        self.points_, self.lines_, self.last_, self.model_ = [], [], None, None
        for ax, k in zip(axes.flat, chosen, strict=False):
            self.points_ += self._draw_points(ax, size=7.0, longest=14)
            self.lines_ += [a for a in self._draw_moment(ax, int(k)) if hasattr(a, "get_xdata")]
            ax.title.set_fontsize(8)
        words = remarks(len(self.X), "" if self.examples is None else "ring: the last mistake")
        legend_under(axes, self.points_[:2]).set_title("; ".join(words), {"size": 7})
        return self._drawn(axes)

    def _draw_moment(self, ax: Any, k: int) -> list[Any]:
        """Draw the line of one record and the mistake that led to it, with a title."""
        line = draw_line(ax, self._plane(k), self._window, color=ink(ax), linewidth=2.0)
        margins = self._plane(k).functional_margin(self.X, signs(self.y, self.classes))
        when = f"{self.every} {self.moments[k]}" if self.moments[k] else "start"
        absent = "line outside" if self.coef[k].any() else "w = 0"
        ax.set_title(f"{when}: {absent if line is None else f'{(margins <= 0).sum():,} wrong'}")
        place = None if self.examples is None else self.examples[k]
        circle = None if place is None or np.isnan(place).any() else ring(ax, place)
        return [artist for artist in (line, circle) if artist is not None]

    def _draw_points(self, ax: Any, **how: Any) -> list[Any]:
        data = Planar(self.X, self.y, self.classes, self.feature_names)
        return draw_points(ax, data, self._window, **how)

    def _plane(self, k: int) -> Hyperplane:
        return Hyperplane(self.coef[k], self.intercept[k])

    @property
    def _title(self) -> str:
        return f"A perceptron's line, {self.every} by {self.every}"

    @property
    def _window(self) -> Window:
        return window(self.X, room=0.15)
