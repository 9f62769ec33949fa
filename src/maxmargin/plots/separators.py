"""Many lines separate the same classes; one of them leaves the widest band empty.

A line w·x + b = 0 with y f = y(w·x + b) > 0 for all points has the margin γ = min y f/‖w‖, half
the width of the empty band around it. The central line maximises γ, midway between the two marginal
classifiers, which are parallel to it and touch a point of either class. Where lines disagree, the
data do not say which one is right.
"""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from maxmargin._typing import Floats
from maxmargin.errors import NotSeparableError
from maxmargin.estimators import HardMarginSVC, Perceptron
from maxmargin.geometry import Hyperplane, Window, marginal_classifiers, window
from maxmargin.plots import planar, style
from maxmargin.plots.planar import Planar, draw_line, signs
from maxmargin.plots.style import AMBER, GREEN, PINK, foreground

_CENTRAL = -1  # the number of the central line; the others count from 0
_GRID = 61  # candidate points for the query along each side
_BAND: dict[str, Any] = {"alpha": 0.3, "zorder": 0.5}


@dataclass(eq=False, repr=False)
class SeparatorsDisplay(style.Display):
    """Lines that separate two classes in the plane, and the central one among them.

    Parameters
    ----------
    coef, intercept : ndarray of shape (m, 2) and (m,)
        Lines that separate, found by perceptrons; the first starts from zero.
    central : (ndarray of shape (2,), float)
        Weights and intercept of the line of largest margin.
    X, y : ndarray of shape (n, 2) and (n,)
        The points and their labels.
    classes : ndarray of shape (2,)
        Both labels; lines are positive on the side of the second.
    query : ndarray of shape (2,) or None, default=None
        A point whose label the lines vote on.
    bands : bool, default=False
        Fill the widest empty band around the central line, around the first of the others, and
        around the best of the rest.
    asked : int or None, default=None
        How many perceptrons were run, if more than m.
    feature_names : (str, str), default=("x₁", "x₂")
        Names of the axes.

    Attributes
    ----------
    margins, central_margin : ndarray of shape (m,), float
        Geometric margins of the lines: half the widths of the empty bands around them.
    votes : (int, int)
        How many lines, including the central one, put the query on the side of the first and of
        the second class.
    lines_ : list of Line2D
        The lines of ``coef`` that the window shows.
    central_, marginal_ : Line2D, list of two Line2D
        The central line, and the marginal classifiers: touching the first, and the second class.
    bands_ : dict of int to Polygon
        With ``bands``: the bands by the number of their line, −1 for the central one.
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

    _: KW_ONLY
    coef: Floats
    intercept: Floats
    central: tuple[Floats, float]
    X: Floats
    y: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    query: Floats | None = None
    bands: bool = False
    asked: int | None = None
    feature_names: tuple[str, str] = ("x₁", "x₂")
    _size = (4.6, 5.0)

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
            Number of perceptrons to run, from different starts and in different orders.
        query : "auto", None or array-like of shape (2,), default="auto"
            A point to vote on; "auto" finds one on which the lines disagree.
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
        data = planar.check_planar(X, y)
        try:
            model = HardMarginSVC().fit(data.X, data.y)
        except NotSeparableError as error:
            raise NotSeparableError(
                f"{error} There is no separator to draw; mm.separate(X, y) gives the points that "
                "prove it.",
                error.witness,
            ) from error
        central = Hyperplane(model.coef_[0], float(model.intercept_[0]))
        lines = _perceptron_lines(data, n_lines, random_state)
        place = query
        if isinstance(query, str) and query == "auto":
            place = _disputed_point([*lines, central], data.X, window(data.X, equal=True))
        elif query is not None:
            place = np.ravel(query).astype(np.float64) if np.size(query) == 2 else np.empty(0)
            if len(place) != 2 or not np.isfinite(place).all():
                raise ValueError(f"query must be 'auto', None or two finite numbers, got {query!r}")
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
        """How many lines predict the first class, and how many the second."""
        if self.query is None:
            return 0, 0
        lines = (*self._lines, Hyperplane(*self.central))
        votes = [line.predict([self.query])[0] for line in lines]
        return votes.count(-1), votes.count(1)

    def _draw(self, ax: Any) -> None:
        seen = window(self.X if self.query is None else np.vstack([self.X, self.query]), equal=True)
        central = Hyperplane(*self.central)
        lines = dict(enumerate(self._lines)) | {_CENTRAL: central}
        margins = dict(enumerate(self.margins)) | {_CENTRAL: self.central_margin}
        styles = _line_styles(margins, self.bands, foreground(ax))
        planar.draw_points(ax, self, seen)
        self.bands_ = {
            k: planar.draw_band(ax, lines[k], margins[k], seen, color=line["color"], **_BAND)
            for k, line in styles.items()
            if self.bands and "alpha" not in line
        }
        drawn = {k: draw_line(ax, line, seen, **styles[k]) for k, line in lines.items()}
        self.central_ = drawn.pop(_CENTRAL)
        self.lines_ = list(drawn.values())
        edge = {"color": GREEN, "linewidth": 1.2, "linestyle": "--"}
        touching = marginal_classifiers(central, self.X, self._signs)
        self.marginal_ = [draw_line(ax, line, seen, **edge) for line in touching]
        self.marginal_[0].set_label("marginal lines")
        self.query_ = None
        if self.query is not None:
            star = {"s": 110, "marker": "*", "c": foreground(ax), "zorder": 5, "label": "query"}
            self.query_ = ax.scatter(*np.asarray(self.query), **star)
        ax.set_title("Many separators, one widest band" if self.bands else "Many lines separate")
        style.legend_below(ax, 2)
        lost = (self.asked or 0) - len(self.coef)
        first, second = (style.text(label, 10) for label in self.classes)
        vote = f"query: {self.votes[0]} lines say {first}, {self.votes[1]} say {second}"
        planar.write_messages(
            ax,
            len(self.X),
            f"{lost} perceptrons gave up" if lost > 0 else "",
            "" if seen.equal else "scales differ: widths mislead",
            "" if self.query is None else vote,
        )
        style.settle(ax.figure)

    @property
    def _lines(self) -> list[Hyperplane]:
        return [Hyperplane(w, b) for w, b in zip(self.coef, self.intercept, strict=True)]

    @property
    def _signs(self) -> Floats:
        return signs(self.y, self.classes)

    def _margin(self, line: Hyperplane) -> float:
        return float(line.geometric_margin(self.X, self._signs).min())


def _perceptron_lines(data: Planar, count: int, random_state: Any) -> list[Hyperplane]:
    """Return the lines of this many perceptrons, except those that gave up before separating.

    The first starts from zero, the others from random weights, each with its own order of rows.
    Columns are centred and scaled, which maps lines to lines: otherwise R̃²/γ̃² may be huge. Only
    the corners of the classes' convex hulls are used, as a line that separates them separates all.
    """
    rng = np.random.default_rng(random_state)
    centre = data.X.mean(axis=0)
    scale = np.abs(data.X - centre).max(axis=0)
    scale[scale == 0] = 1.0
    y, rows = signs(data.y, data.classes), (data.X - centre) / scale
    members = [np.flatnonzero(y == sign) for sign in (-1, 1)]
    corners = np.concatenate([own[planar.hull_corners(rows[own])] for own in members])
    lines = []
    for k in range(count):
        start = "zeros" if k == 0 else (2.0 * rng.standard_normal(2), rng.standard_normal())
        model = Perceptron(init=start, random_state=int(rng.integers(2**31)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows[corners], y[corners])
        w = model.coef_[0] / scale
        line = Hyperplane(w, float(model.intercept_[0] - w @ centre))
        if line.norm > 0 and line.functional_margin(data.X, y).min() > 0:
            lines.append(line)
    return lines


def _disputed_point(lines: list[Hyperplane], X: Floats, seen: Window) -> Floats | None:
    """Return a point in the window, away from the data, on which the lines disagree most evenly."""
    from scipy.spatial import cKDTree

    sides = [np.linspace(low, high, _GRID)[3:-3] for low, high in zip(*seen[:2], strict=True)]
    places = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    share = np.mean([line.predict(places) > 0 for line in lines], axis=0)
    size = seen.high - seen.low
    near, _ = cKDTree(X / size).query(places / size)
    # An even vote comes first; among equal votes, the point nearest to the middle of the data.
    middle = np.linalg.norm((places - X.mean(axis=0)) / size, axis=1)
    cost = np.abs(share - 0.5).round(1) + 0.1 * middle + np.where(near > 0.04, 0.0, 1.0)
    best = int(np.argmin(cost))
    return places[best] if 0.0 < share[best] < 1.0 else None


def _line_styles(margins: dict[int, float], bands: bool, plain: str) -> dict[int, dict[str, Any]]:
    """Return the style of each line: some in colour, with their margins if bands are drawn."""
    others = [k for k in margins if k != _CENTRAL]
    styles: dict[int, dict[str, Any]] = {
        k: {"color": plain, "alpha": 0.2 if bands else 0.4, "linewidth": 0.7} for k in others
    }
    marked = {_CENTRAL: (GREEN, "central"), **({0: (PINK, "perceptron")} if others else {})}
    if bands and len(others) > 1:
        marked[max(others[1:], key=lambda k: margins[k])] = (AMBER, "another")
    for k, (colour, name) in marked.items():
        label = f"{name} ±{margins[k]:.2g}" if bands else name
        styles[k] = {"color": colour, "linewidth": 2.4 if k == _CENTRAL else 1.8, "label": label}
        styles[k]["zorder"] = 2.2  # above the others
    if rest := [k for k in others if k not in marked]:
        styles[rest[0]]["label"] = "other perceptrons"
    return styles
