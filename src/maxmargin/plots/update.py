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
from maxmargin.geometry import Hyperplane, Window, window
from maxmargin.inspection.model_view import moved_rows, read_trace
from maxmargin.plots import planar, style
from maxmargin.plots.style import GREEN, foreground

_OLD: dict[str, Any] = {"linestyle": "--", "alpha": 0.5}
_NEW: dict[str, Any] = {"linestyle": "-"}
_SHADE = 0.12  # opacity of the positive side
_KINDS = ("negative example", "positive example")


@dataclass(eq=False, repr=False)
class UpdateDisplay(style.Display):
    """Updates of a perceptron with two features: weights before, the step, weights after.

    Parameters
    ----------
    w, b : ndarray of shape (k, 2) and (k,)
        Weights and intercepts before each of the k updates.
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
    arrows_, lines_ : list of dict
        For each panel the arrows "old", "step" and "new", and the lines "old" and "new"; a line
        that does not exist (w = 0) or is outside the panel is missing.
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
        weights, examples, signs = (np.asarray(each, dtype=np.float64) for each in (w, X, y))
        if weights.shape != (2,) or not np.isfinite(weights).all():
            raise ValueError(f"w must be two finite weights, got {w!r}")
        if examples.ndim != 2 or examples.shape[1] != 2 or not np.isfinite(examples).all():
            raise ValueError(
                f"X must be finite examples with 2 columns, got shape {examples.shape}; "
                "write one example as [[x1, x2]]"
            )
        if signs.shape != (len(examples),) or not np.isin(signs, (-1, 1)).all() or not len(signs):
            raise ValueError(f"y must be -1 or +1 for each of {len(examples)} examples, got {y!r}")
        if not (np.isfinite(eta) and eta > 0):
            raise ValueError(f"eta must be a finite number above 0, got {eta!r}")
        scores = signs * (examples @ weights + (b or 0.0))
        if scores.max() > 0:
            k = int(scores.argmax())
            raise ValueError(
                f"X[{k}] is no mistake: y f = {scores[k]:g} is above 0, so a perceptron would not "
                "update; flip its label or choose another"
            )
        return cls(
            w=np.tile(weights, (len(signs), 1)),
            b=np.full(len(signs), b or 0.0),
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
            Their numbers, from 0. None: of those that found a line before them, the first on a
            positive and the first on a negative example.
        ax : array of matplotlib Axes, one Axes for one update, or None, default=None
            Where to draw; None makes a figure.
        """
        trace = read_trace(estimator)
        n = len(trace.step)
        if updates is None:
            had_line = trace.coef[:-1, 0].any(axis=1)
            firsts = [np.flatnonzero(had_line & (sign * trace.step > 0))[:1] for sign in (1, -1)]
            chosen = np.concatenate(firsts)
        else:
            chosen = np.atleast_1d(updates).astype(np.intp)
            if not len(chosen) or chosen.min() < 0 or chosen.max() >= n:
                raise ValueError(f"updates must be numbers from 0 to {n - 1}, got {updates!r}")
        if not len(chosen):
            raise ValueError(
                "no update in the trace found a line before it; choose one with updates, or start "
                "the perceptron from other weights (init)"
            )
        names = getattr(estimator, "feature_names_in_", ("x₁", "x₂"))
        return cls(
            w=trace.coef[chosen, 0],
            b=trace.intercept[chosen, 0],
            X=moved_rows(trace)[chosen],
            steps=trace.step[chosen],
            lift=trace.lift,
            feature_names=(str(names[0]), str(names[1])),
        ).plot(ax)

    def _axes(self, ax: Any) -> Any:
        return style.panels(ax, 1, len(self.X), (3.4 * len(self.X) + 0.4, 4.6))

    def _draw(self, axes: Any) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        self.arrows_: list[dict[str, Any]] = []
        self.lines_: list[dict[str, Any]] = []
        self.points_: list[Any] = []
        for k, panel in enumerate(axes.flat):
            self._draw_panel(panel, k)
        black = foreground(axes.flat[0])
        shared = [  # arrows and lines look the same in all panels
            Line2D([], [], color=black, linewidth=3, alpha=_OLD["alpha"], label="w before"),
            Line2D([], [], color=black, linewidth=3, label="w after"),
            Line2D([], [], color=GREEN, linewidth=3, label="ηyx, the step"),
            Line2D([], [], color=black, linewidth=1.2, label="line before", **_OLD),
            Line2D([], [], color=black, linewidth=1.2, label="line after", **_NEW),
            Patch(color=style.colour(1), alpha=_SHADE, linewidth=0, label="positive side after"),
        ]
        examples = {point.get_label(): point for point in self.points_}
        style.legend_under(axes, [*shared, *examples.values()])

    def _draw_panel(self, ax: Any, k: int) -> None:
        seen, black = self._window(k), foreground(ax)
        side = seen.high[0] - seen.low[0]
        before = Hyperplane(self.w[k], self.b[k])
        after = Hyperplane(self.w_new[k], self.b_new[k])
        line = {"color": black, "linewidth": 1.2}
        _shade_positive_side(ax, after, seen)
        lines = {
            "old": planar.draw_line(ax, before, seen, **line, **_OLD),
            "new": planar.draw_line(ax, after, seen, **line, **_NEW),
        }
        self.lines_.append({name: line for name, line in lines.items() if line is not None})
        arrow = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.012, "zorder": 3}
        arrows = {
            "old": ax.quiver(0, 0, *before.w, color=black, alpha=_OLD["alpha"], **arrow),
            "step": ax.quiver(*before.w, *self.steps[k] * self.X[k], color=GREEN, **arrow),
            "new": ax.quiver(0, 0, *after.w, color=black, **arrow),
        }
        self.arrows_.append(arrows)
        ax.plot(*np.stack([np.zeros(2), self.X[k]]).T, color=style.GREY, linewidth=1, linestyle=":")
        _draw_angle(ax, before.w, self.X[k], 0.10 * side, color=black, **_OLD)
        _draw_angle(ax, after.w, self.X[k], 0.07 * side, color=black, **_NEW)
        positive = int(self.steps[k] > 0)
        dot = {"s": 45, "c": style.colour(positive), "marker": style.mark(positive), "zorder": 4}
        self.points_.append(ax.scatter(*self.X[k], label=_KINDS[positive], **dot))
        for name, tip in (("w", before.w), ("new w", after.w), ("x", self.X[k])):
            _name_tip(ax, name, tip)
        planar.show_window(ax, seen)
        style.label_axes(ax, self.feature_names)
        ax.set_title(self._title(k), fontsize=9)

    def _window(self, k: int) -> Window:
        """Return squares of one size, so that panels can be compared with each other."""
        around = [
            window(np.stack([np.zeros(2), w, new, x]), share=0.16)
            for w, new, x in zip(self.w, self.w_new, self.X, strict=True)
        ]
        half = 0.5 * max((each.high - each.low).max() for each in around)
        centre = 0.5 * (around[k].low + around[k].high)
        return Window(centre - half, centre + half, equal=True)

    def _title(self, k: int) -> str:
        x, sign = self.X[k], np.sign(self.steps[k])
        old = sign * (self.w[k] @ x + self.b[k])
        new = sign * (self.w_new[k] @ x + self.b_new[k])
        angles = f"{_angle(self.w[k], x)} → {_angle(self.w_new[k], x)}"
        scores = f"y = {sign:+.0f}: y f from {old:.3g} to {new:.3g}".replace("-", "−")
        return f"{scores}\nangle of w and x: {angles}"


def _angle(w: Floats, x: Floats) -> str:
    """Return the angle of two vectors in degrees; a zero vector has none."""
    lengths = np.linalg.norm(w) * np.linalg.norm(x)
    if lengths == 0:
        return "none"
    return f"{np.degrees(np.arccos(np.clip(w @ x / lengths, -1.0, 1.0))):.0f}°"


def _shade_positive_side(ax: Any, plane: Hyperplane, seen: Window) -> None:
    """Fill the side of a line where f > 0; without a line there is none."""
    if plane.norm > 0:
        far = float(np.linalg.norm(seen.high - seen.low))
        middle = Hyperplane(plane.normal, plane.b / plane.norm - far)
        filled = {"color": style.colour(1), "alpha": _SHADE, "zorder": 0.5}
        planar.draw_band(ax, middle, far, seen, **filled)


def _name_tip(ax: Any, name: str, tip: Floats) -> None:
    """Write a name beyond the tip of a vector from the origin; a zero vector has none."""
    if tip.any():
        away = 10.0 * tip / np.linalg.norm(tip)
        place = {"textcoords": "offset points", "ha": "center", "va": "center", "zorder": 5}
        ax.annotate(name, tip, away, fontsize=9, **place)


def _draw_angle(ax: Any, w: Floats, x: Floats, radius: float, **options: Any) -> None:
    """Draw the angle of two vectors at the origin; a zero vector has none."""
    if not (w.any() and x.any()):
        return
    start = np.arctan2(w[1], w[0])
    turn = (np.arctan2(x[1], x[0]) - start + np.pi) % (2 * np.pi) - np.pi
    way = start + np.linspace(0.0, turn, 40)
    ax.plot(radius * np.cos(way), radius * np.sin(way), linewidth=1, **options)
