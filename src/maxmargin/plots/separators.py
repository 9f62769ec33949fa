"""Many lines separate the same classes; one of them leaves the widest band empty.

A line w·x + b = 0 with y f = y(w·x + b) > 0 for all points has the margin γ = min y f/‖w‖, half
the width of the empty band around it. The central line maximises γ, midway between the two marginal
classifiers, which are parallel to it and touch a point of either class. Where lines disagree, the
data do not say who is right.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.geometry import Hyperplane, marginal_classifiers
from maxmargin.plots.display import Display
from maxmargin.plots.perceptron_lines import central_line, disputed, perceptron_lines
from maxmargin.plots.perceptron_looks import CENTRAL, draw_bands, line_looks
from maxmargin.plots.planar import (
    Planar,
    Window,
    draw_line,
    draw_points,
    planar,
    remarks,
    signs,
    window,
    write_remarks,
)
from maxmargin.plots.style import GREEN, ink, legend_below, new_axes, settle, text

Floats = npt.NDArray[np.float64]


class SeparatorsDisplay(Display):
    """Lines that separate two classes in the plane, and the central one among them.

    Parameters
    ----------
    coef, intercept : ndarray of shape (m, 2) and (m,)
        Lines that separate, found by perceptrons; the first from a zero start.
    central : (ndarray of shape (2,), float)
        Weights and intercept of the line of largest margin.
    X, y : ndarray of shape (n, 2) and (n,)
        The points and their labels.
    classes : ndarray of shape (2,)
        Both labels; lines are positive on the side of the second.
    query : ndarray of shape (2,) or None, default=None
        A point whose label the lines vote on.
    bands : bool, default=False
        Fill the widest empty band around the central line, the first of the others, and the best of
        the rest.
    asked : int or None, default=None
        How many perceptrons were run, if more than ``m``.
    feature_names : (str, str), default=("x₁", "x₂")
        Names of the axes.

    Attributes
    ----------
    margins, central_margin : ndarray of shape (m,), float
        Geometric margins of the lines: half the widths of the empty bands around them.
    votes : (int, int)
        How many lines, the central one included, put the query on the side of the first and of the
        second class.
    ax_, figure_
        Where it was drawn.
    lines_ : list of Line2D
        The lines of ``coef`` that the window shows.
    central_, marginal_ : Line2D, list of two Line2D
        The central line, and the marginal classifiers: touching the first, and the second class.
    bands_ : dict of int to Polygon
        With ``bands``: the bands by the number of their line; −1 is the central one's.
    query_ : PathCollection or None
        The query.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.separable(40, margin=0.3, random_state=0)
    >>> display = mm.plots.SeparatorsDisplay.from_data(X, y, bands=True)
    >>> round(display.central_margin, 6), bool((display.margins < 0.3).all())
    (0.3, True)
    """

    lines_: list[Any]
    central_: Any
    marginal_: list[Any]
    bands_: dict[int, Any]
    query_: Any

    def __init__(
        self,
        *,
        coef: Floats,
        intercept: Floats,
        central: tuple[Floats, float],
        X: Floats,
        y: npt.NDArray[Any],
        classes: npt.NDArray[Any],
        query: Floats | None = None,
        bands: bool = False,
        asked: int | None = None,
        feature_names: tuple[str, str] = ("x₁", "x₂"),
    ) -> None:
        self.coef = coef
        self.intercept = intercept
        self.central = central
        self.X = X
        self.y = y
        self.classes = classes
        self.query = query
        self.bands = bands
        self.asked = asked
        self.feature_names = feature_names

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: Any,
        *,
        n_lines: int = 20,
        query: Any = "auto",
        bands: bool = False,
        random_state: Any = 0,
        ax: Any = None,
    ) -> Self:
        """Separate two classes by many perceptrons and by the largest margin, and draw the lines.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, 2)
            Points that a line can separate.
        y : array-like of shape (n,)
            Labels of two classes.
        n_lines : int ≥ 1, default=20
            How many perceptrons to run, from different starts and in different orders.
        query : "auto", None or array-like of shape (2,), default="auto"
            A point to vote on; "auto" looks for one on which the lines disagree.
        bands : bool, default=False
            Fill the empty bands around some lines.
        random_state : int, Generator or None, default=0
            Seed of starts and orders.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Raises
        ------
        NotSeparableError
            If no line separates the classes; its ``witness`` proves it.
        """
        if n_lines < 1:
            raise ValueError(f"n_lines must be 1 or more, got {n_lines!r}")
        data = planar(X, y)
        central = central_line(data)
        lines = perceptron_lines(data, n_lines, random_state)
        if isinstance(query, str) and query == "auto":
            place = disputed([*lines, central], data.X, window(data.X, equal=True))
        else:
            place = None if query is None else _point(query)
        return cls(
            coef=np.array([line.w for line in lines]).reshape(-1, 2),
            intercept=np.array([line.b for line in lines]),
            central=(central.w, central.b),
            **data._asdict(),
            query=place,
            bands=bands,
            asked=n_lines,
        ).plot(ax)

    @property
    def margins(self) -> Floats:
        """The geometric margin of each line."""
        return np.array([self._margin(line) for line in self._lines])

    @property
    def central_margin(self) -> float:
        """The geometric margin of the central line, the largest there is."""
        return self._margin(Hyperplane(*self.central))

    @property
    def votes(self) -> tuple[int, int]:
        """How many lines say the first, and how many the second class."""
        if self.query is None:
            return 0, 0
        said = [line.predict([self.query])[0] for line in (*self._lines, Hyperplane(*self.central))]
        return said.count(-1), said.count(1)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones for None."""
        ax = new_axes(ax, (4.6, 5.0))
        seen = self._window
        central = Hyperplane(*self.central)
        lines = {**dict(enumerate(self._lines)), CENTRAL: central}
        margins = {**dict(enumerate(self.margins)), CENTRAL: self.central_margin}
        looks = line_looks(margins, self.bands, ink(ax))
        draw_points(ax, Planar(self.X, self.y, self.classes, self.feature_names), seen)
        self.bands_ = draw_bands(ax, lines, margins, looks, seen) if self.bands else {}
        drawn = {k: draw_line(ax, line, seen, **looks[k]) for k, line in lines.items()}
        self.central_ = drawn.pop(CENTRAL)
        self.lines_ = list(drawn.values())
        edge = {"color": GREEN, "linewidth": 1.2, "linestyle": "--"}
        touching = marginal_classifiers(central, self.X, self._signs)
        self.marginal_ = [draw_line(ax, line, seen, **edge) for line in touching]
        self.marginal_[0].set_label("marginal lines")
        self.query_ = None if self.query is None else self._draw_query(ax)
        ax.set_title("Many separators, one widest band" if self.bands else "Many lines separate")
        legend_below(ax, 2)
        write_remarks(ax, remarks(len(self.X), *self._remarks(seen)))
        settle(ax.figure)
        return self._drawn(ax)

    @property
    def _lines(self) -> list[Hyperplane]:
        return [Hyperplane(w, b) for w, b in zip(self.coef, self.intercept, strict=True)]

    @property
    def _signs(self) -> Floats:
        return signs(self.y, self.classes)

    @property
    def _window(self) -> Window:
        shown = self.X if self.query is None else np.vstack([self.X, self.query])
        return window(shown, equal=True)

    def _margin(self, line: Hyperplane) -> float:
        return float(line.geometric_margin(self.X, self._signs).min())

    def _draw_query(self, ax: Any) -> Any:
        look = {"s": 110, "marker": "*", "c": ink(ax), "zorder": 5, "label": "query"}
        return ax.scatter(*np.reshape(np.asarray(self.query), (2, 1)), **look)

    def _remarks(self, seen: Window) -> list[str]:
        first, second = (text(label, 10) for label in self.classes)
        vote = f"query: {self.votes[0]} lines say {first}, {self.votes[1]} say {second}"
        lost = (self.asked or 0) - len(self.coef)
        return [
            f"{lost} perceptrons gave up" if lost > 0 else "",
            "" if seen.equal else "scales differ: widths mislead",
            "" if self.query is None else vote,
        ]


def _point(query: Any) -> Floats:
    point = np.asarray(query, dtype=np.float64) if not isinstance(query, str) else np.empty(0)
    if point.shape != (2,) or not np.isfinite(point).all():
        raise ValueError(f"query must be 'auto', None or two finite numbers, got {query!r}")
    return point
