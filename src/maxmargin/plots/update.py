"""One update of a perceptron, as vectors.

On a mistake, y(w·x + b) ≤ 0, the rule w ← w + ηyx turns w towards a positive example and away from
a negative one. Without an intercept y w·x rises by η‖x‖²; with one, b ← b + ηy, and y f(x) rises by
η(‖x‖² + 1). One update need not be enough to put x on its side.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats
from maxmargin.geometry import Hyperplane
from maxmargin.inspection.model_view import moved_rows, read_trace
from maxmargin.plots.display import Display
from maxmargin.plots.planar import Window, draw_line, show_window, window
from maxmargin.plots.style import (
    GREEN,
    colour,
    foreground,
    legend_under,
    mark,
    panels,
    text,
)

_OLD: dict[str, Any] = {"linestyle": "--", "alpha": 0.5}
_NEW: dict[str, Any] = {"linestyle": "-"}
_KINDS = ("negative example", "positive example")


@dataclass(eq=False, repr=False)
class UpdateDisplay(Display):
    """Updates of a perceptron with two features: weights before, the step, weights after.

    Parameters
    ----------
    w : ndarray of shape (k, 2)
        Weights before each of the k updates.
    b : ndarray of shape (k,)
        Intercepts before.
    X : ndarray of shape (k, 2)
        The misclassified examples.
    steps : ndarray of shape (k,)
        ηy: positive for a positive example.
    lift : float, default=0.0
        1 if the intercept is learnt, 0 if there is none.
    feature_names : (str, str), default=("x₁", "x₂")
        Names of the axes.

    Attributes
    ----------
    w_new, b_new : ndarray
        Weights and intercepts after: w + ηyx and b + ηy (b without ``lift``).
    ax_, figure_
        An array of axes, one for each panel, and their figure.
    arrows_ : list of dict
        For each panel the arrows "old", "step" and "new".
    lines_ : list of dict
        For each panel the lines "old" and "new"; a line that does not exist (w = 0) or is not seen
        is missing.
    points_ : list
        For each panel the example.

    Examples
    --------
    >>> import maxmargin as mm
    >>> display = mm.plots.UpdateDisplay.from_examples(w=[1, 0.5], X=[[-1, 0.4]], y=[1])
    >>> display.w_new
    array([[0. , 0.9]])
    """

    _: KW_ONLY
    w: Floats
    b: Floats
    X: Floats
    steps: Floats
    lift: float = 0.0
    feature_names: tuple[str, str] = ("x₁", "x₂")

    @property
    def w_new(self) -> Floats:
        """The weights after each update."""
        return self.w + self.steps[:, np.newaxis] * self.X

    @property
    def b_new(self) -> Floats:
        """The intercepts after each update."""
        return self.b + self.lift * self.steps

    @classmethod
    def from_examples(
        cls,
        w: npt.ArrayLike = (1.0, 0.6),
        X: npt.ArrayLike = ((-1.1, 0.7), (1.3, -0.5)),
        y: npt.ArrayLike = (1, -1),
        *,
        b: float | None = None,
        eta: float = 1.0,
        ax: Any = None,
    ) -> Self:
        """Draw the update that the same weights make on each of some mistakes.

        Parameters
        ----------
        w : array-like of shape (2,), default=(1.0, 0.6)
            Weights before.
        X : array-like of shape (k, 2), default=((-1.1, 0.7), (1.3, -0.5))
            Examples that w misclassifies; each has a panel.
        y : array-like of shape (k,) of −1 and +1, default=(1, -1)
            Their labels.
        b : float or None, default=None
            Intercept before; None: there is none, and lines pass through the origin.
        eta : float > 0, default=1.0
            Step length η.
        ax : array of k matplotlib Axes, one Axes for one example, or None, default=None
            Where to draw; None makes a figure.
        """
        weights = _check_weights(w)
        examples, signs = _check_examples(X, y)
        if not (np.isfinite(eta) and eta > 0):
            raise ValueError(f"eta must be a finite number above 0, got {eta!r}")
        scores = signs * (examples @ weights + (b or 0.0))
        if (scores > 0).any():
            k = int(np.argmax(scores > 0))
            raise ValueError(
                f"X[{k}] is no mistake: y f = {scores[k]:g} is above 0, so a perceptron would not "
                "update; flip its label or choose another"
            )
        n = len(examples)
        return cls(
            w=np.tile(weights, (n, 1)),
            b=np.full(n, b or 0.0),
            X=examples,
            steps=eta * signs,
            lift=0.0 if b is None else 1.0,
        ).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, updates: Any = None, *, ax: Any = None) -> Self:
        """Draw updates that a fitted perceptron made.

        Parameters
        ----------
        estimator : Perceptron, AveragedPerceptron or VotedPerceptron
            Fitted with ``trace=True`` on two features and two classes.
        updates : sequence of int or None, default=None
            Their numbers, from 0. None: the first on a positive and the first on a negative example
            for which there was a line before.
        ax : array of matplotlib Axes, one Axes for one update, or None, default=None
            Where to draw; None makes a figure.
        """
        trace = read_trace(estimator)
        if updates is None:
            chosen = _first_updates(trace)
        else:
            chosen = _check_updates(updates, len(trace.step))
        names = getattr(estimator, "feature_names_in_", ("x₁", "x₂"))
        return cls(
            w=trace.coef[chosen, 0],
            b=trace.intercept[chosen, 0],
            X=moved_rows(trace)[chosen],
            steps=trace.step[chosen],
            lift=trace.lift,
            feature_names=(str(names[0]), str(names[1])),
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a panel for each update, on the given axes or in a new figure for None."""
        n = len(self.X)
        axes = panels(ax, 1, n, (3.1 * n + 0.4, 4.6))
        self.arrows_: list[dict[str, Any]] = []
        self.lines_: list[dict[str, Any]] = []
        self.points_: list[Any] = []
        for k, panel in enumerate(axes.flat):
            self._draw_panel(panel, k)
        _draw_legend(axes, self.points_)
        return self._keep_axes(axes)

    def _draw_panel(self, ax: Any, k: int) -> None:
        step, black = self.steps[k] * self.X[k], foreground(ax)
        seen = self._window(k)
        side = seen.high[0] - seen.low[0]
        before = Hyperplane(self.w[k], self.b[k])
        after = Hyperplane(self.w_new[k], self.b_new[k])
        self.lines_.append({})
        for name, plane, style in (("old", before, _OLD), ("new", after, _NEW)):
            line = draw_line(ax, plane, seen, color=black, linewidth=1.2, **style)
            if line is not None:
                self.lines_[k][name] = line
        self.arrows_.append(
            {
                "old": _draw_arrow(ax, before.w, color=black, alpha=_OLD["alpha"]),
                "step": _draw_arrow(ax, step, color=GREEN),
                "new": _draw_arrow(ax, after.w, color=black),
            }
        )
        # From the tip of the old w to that of the new one: the step again, head to tail.
        ax.plot(*np.stack([before.w, after.w]).T, color=GREEN, linewidth=1, linestyle=":")
        _draw_angle(ax, before.w, self.X[k], 0.10 * side, color=black, **_OLD)
        _draw_angle(ax, after.w, self.X[k], 0.07 * side, color=black, **_NEW)
        positive = int(self.steps[k] > 0)
        style = {"s": 45, "c": colour(positive), "marker": mark(positive), "zorder": 4}
        self.points_.append(ax.scatter(*self.X[k], label=_KINDS[positive], **style))
        show_window(ax, seen)
        ax.set(xlabel=text(self.feature_names[0]), ylabel=text(self.feature_names[1]))
        ax.set_title(self._title(k), fontsize=9)

    def _window(self, k: int) -> Window:
        step = self.steps[k] * self.X[k]
        ends = np.stack([np.zeros(2), self.w[k], step, self.w_new[k], self.X[k]])
        # Always a square, so that panels can be compared with each other.
        seen = window(ends, share=0.12)
        half = 0.5 * (seen.high - seen.low).max()
        centre = 0.5 * (seen.low + seen.high)
        return Window(centre - half, centre + half, equal=True)

    def _title(self, k: int) -> str:
        x, sign = self.X[k], np.sign(self.steps[k])
        old = sign * (self.w[k] @ x + self.b[k])
        new = sign * (self.w_new[k] @ x + self.b_new[k])
        angles = f"{_angle(self.w[k], x)} → {_angle(self.w_new[k], x)}"
        scores = f"y = {sign:+.0f}: y f from {old:.3g} to {new:.3g}".replace("-", "−")
        return f"{scores}\nangle of w and x: {angles}"


def _draw_legend(axes: Any, points: list[Any]) -> None:
    """Put one legend below all panels; arrows and lines look the same in each."""
    from matplotlib.lines import Line2D

    black = foreground(axes.flat[0])
    styles = (
        ("w before", {"color": black, "linewidth": 3, "alpha": _OLD["alpha"]}),
        ("w after", {"color": black, "linewidth": 3}),
        ("ηyx, the step", {"color": GREEN, "linewidth": 3}),
        ("line before", {"color": black, "linewidth": 1.2, **_OLD}),
        ("line after", {"color": black, "linewidth": 1.2, **_NEW}),
    )
    lines = [Line2D([], [], label=name, **style) for name, style in styles]
    examples = {point.get_label(): point for point in points}
    legend_under(axes, [*lines, *examples.values()])


def _first_updates(trace: Any) -> list[int]:
    """Return the first update of each sign for which there was a line, the positive one first."""
    had_line = trace.coef[:-1, 0].any(axis=1)
    firsts = [np.flatnonzero(had_line & (sign * trace.step > 0))[:1] for sign in (1, -1)]
    chosen = [int(k) for first in firsts for k in first]
    if not chosen:
        raise ValueError(
            "the trace has no update of a line that existed before; choose one with updates, or "
            "start the perceptron from other weights (init)"
        )
    return chosen


def _check_updates(updates: Any, n: int) -> list[int]:
    """Return the numbers of updates; refuse those that the trace does not have."""
    chosen = [int(k) for k in np.atleast_1d(updates)]
    if not chosen or min(chosen) < 0 or max(chosen) >= n:
        raise ValueError(f"updates must be numbers from 0 to {n - 1}, got {updates!r}")
    return chosen


def _angle(w: Floats, x: Floats) -> str:
    """Return the angle of two vectors in degrees; a zero vector has none."""
    lengths = np.linalg.norm(w) * np.linalg.norm(x)
    if lengths == 0:
        return "none"
    return f"{np.degrees(np.arccos(np.clip(w @ x / lengths, -1.0, 1.0))):.0f}°"


def _draw_arrow(ax: Any, vector: Floats, **style: Any) -> Any:
    """Draw a vector from the origin."""
    return ax.quiver(
        0, 0, *vector, angles="xy", scale_units="xy", scale=1, width=0.012, zorder=3, **style
    )


def _draw_angle(ax: Any, w: Floats, x: Floats, radius: float, **style: Any) -> None:
    """Draw the angle of two vectors at the origin; a zero vector has none."""
    if not (w.any() and x.any()):
        return
    start = np.arctan2(w[1], w[0])
    turn = (np.arctan2(x[1], x[0]) - start + np.pi) % (2 * np.pi) - np.pi
    way = start + np.linspace(0.0, turn, 40)
    ax.plot(radius * np.cos(way), radius * np.sin(way), linewidth=1, **style)


def _check_weights(w: npt.ArrayLike) -> Floats:
    """Return two finite weights."""
    vector = np.asarray(w, dtype=np.float64)
    if vector.shape != (2,) or not np.isfinite(vector).all():
        raise ValueError(f"w must be two finite weights, got {w!r}")
    return vector


def _check_examples(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return finite examples in the plane and their labels −1 and +1."""
    examples, signs = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if examples.ndim != 2 or examples.shape[1] != 2 or not np.isfinite(examples).all():
        raise ValueError(
            f"X must be finite examples with 2 columns, got shape {examples.shape}; "
            "write one example as [[x1, x2]]"
        )
    if signs.shape != (len(examples),) or not np.isin(signs, (-1, 1)).all() or not len(signs):
        raise ValueError(f"y must be -1 or +1 for each of {len(examples)} examples, got {y!r}")
    return examples, signs
