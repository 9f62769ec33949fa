"""What a search over parameters found: mean scores over the splits, as a map or as a curve.

Two parameters span a map with one cell for each pair of values; one parameter gives a curve with
the standard deviation over the splits. Further parameters are held at the values of the best
candidate. All cells of a map have the same size, so that grids on any scale are legible.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.plots.display import Display
from maxmargin.plots.search_cells import hatched, name_steps, named, written
from maxmargin.plots.search_results import axes, candidates, key_of, table
from maxmargin.plots.style import colour, ink, legend_below, new_axes, note, text

Floats = npt.NDArray[np.float64]

_ABANDONED = "given up: it could not win any more"
_WRITTEN = (10, 8)  # rows and columns of a map up to which the scores are written in the cells


class SearchDisplay(Display):
    """Scores of a grid search against one or two parameters.

    Parameters
    ----------
    x : str
        Parameter along the first axis.
    x_values : sequence
        Its values, in order.
    scores : array-like of shape (n_x,) or (n_y, n_x)
        Mean scores; NaN where there is none.
    best : (int,) or (int, int)
        Index of the best score: of x, or of y and x.
    y : str, default=None
        Parameter along the second axis; None: a curve over x.
    y_values : sequence, default=()
        Its values, in order.
    deviations : array-like, default=None
        Standard deviations over the splits, of the shape of ``scores``.
    abandoned : array-like of bool, default=None
        Which candidates were given up, of the shape of ``scores``.
    held : dict, default=None
        Parameters that are held fixed, with their values.
    metric : str, default="score"
        What the scores are.

    Attributes
    ----------
    image_ : QuadMesh
        The map (two parameters only).
    line_ : ErrorbarContainer
        The curve (one parameter only).
    best_ : Rectangle or PathCollection
        The mark on the best.
    abandoned_ : PolyCollection (map), PathCollection (curve) or None
        Marks on the candidates given up.
    texts_ : list of Text
        Scores written into the cells of a small map.
    ax_, figure_ :
        Where they were drawn.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(100, random_state=0)
    >>> grid = {"C": [0.1, 1, 10], "gamma": [0.1, 1, 10]}
    >>> search = mm.SVCSearchCV(mm.SVC(), grid, cv=3).fit(X, y)
    >>> display = mm.plots.SearchDisplay.from_estimator(search)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('C', 'gamma')
    >>> bool(display.scores[display.best] == search.best_score_)
    True
    """

    def __init__(
        self,
        x: str,
        x_values: Any,
        scores: Any,
        best: Any,
        *,
        y: str | None = None,
        y_values: Any = (),
        deviations: Any = None,
        abandoned: Any = None,
        held: Mapping[str, Any] | None = None,
        metric: str = "score",
    ) -> None:
        self.x = x
        self.x_values = x_values
        self.scores = scores
        self.best = best
        self.y = y
        self.y_values = y_values
        self.deviations = deviations
        self.abandoned = abandoned
        self.held = held
        self.metric = metric

    @classmethod
    def from_estimator(
        cls,
        search: Any,
        *,
        x: str | None = None,
        y: str | None = None,
        metric: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw what a fitted search found.

        Parameters
        ----------
        search : SVCSearchCV or GridSearchCV
            Fitted.
        x, y : str, default=None
            Parameters along the axes, with all others held at the best; x alone gives a curve.
            None: those with several values, C along x and gamma along y if they are among them.
        metric : str, default=None
            Which of several scorings; None: the one that chose the best.
        ax : matplotlib Axes, default=None
            Where; None: in a new figure.

        Returns
        -------
        SearchDisplay
        """
        found = candidates(search, metric)
        return cls(**table(found, *axes(found, x, y)), metric=found.metric).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the map or the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where; None: in a new figure.

        Returns
        -------
        self
        """
        scores = np.asarray(self.scores, dtype=np.float64)
        sides = [self.x_values] if self.y is None else [self.y_values, self.x_values]
        shape = tuple(map(len, sides))
        if scores.shape != shape:
            raise ValueError(
                f"scores has shape {scores.shape}, but the values of the parameters make {shape}."
            )
        abandoned = np.zeros(shape, bool) if self.abandoned is None else np.asarray(self.abandoned)
        ax = new_axes(ax, (4.6, 4.0))
        if self.y is None:
            self._draw_curve(ax, scores, abandoned)
        else:
            self._draw_map(ax, scores, abandoned)
        if self.held:
            fixed = ", ".join(named(*held) for held in self.held.items())
            note(ax, f"with {text(fixed, 60)}")
        ax.set_title(f"Cross-validated {text(self.metric)}", pad=16 if self.held else None)
        legend_below(ax, columns=1)
        return self._drawn(ax)

    def _draw_map(self, ax: Any, scores: Floats, abandoned: Any) -> None:
        from matplotlib.patches import Rectangle
        from matplotlib.patheffects import withStroke

        rows, columns = scores.shape
        self.image_ = ax.pcolormesh(
            np.arange(columns), np.arange(rows), np.ma.masked_invalid(scores), shading="nearest"
        )
        ax.figure.colorbar(self.image_, ax=ax, pad=0.02, label=f"mean {text(self.metric)}")
        # Black with a white rim is seen on every colour of the map, and on any paper.
        self.best_ = ax.add_patch(
            Rectangle(
                (self.best[1] - 0.5, self.best[0] - 0.5), 1, 1, fill=False, linewidth=1.8,
                edgecolor="black", path_effects=[withStroke(linewidth=4, foreground="white")],
                label=self._best_words(scores), clip_on=False, zorder=3,
            )
        )  # fmt: skip
        self.abandoned_ = hatched(ax, abandoned, "////", _ABANDONED)
        hatched(ax, np.isnan(scores) & ~abandoned, "..", "no score")
        small = rows <= _WRITTEN[0] and columns <= _WRITTEN[1]
        self.texts_ = written(ax, self.image_, scores) if small else []
        name_steps(ax.xaxis, self.x, self.x_values)
        name_steps(ax.yaxis, str(self.y), self.y_values)

    def _draw_curve(self, ax: Any, scores: Floats, abandoned: Any) -> None:
        numbers = all(isinstance(key_of(value), float) for value in self.x_values)
        at = np.asarray(self.x_values, dtype=np.float64) if numbers else np.arange(len(scores))
        self.line_ = ax.errorbar(
            at, scores, yerr=self.deviations, color=colour(0), marker="o", markersize=4,
            linewidth=1.4 if numbers else 0, capsize=2.5, elinewidth=0.9,
            label="mean ± deviation over the splits",
        )  # fmt: skip
        self.best_ = ax.scatter(
            at[self.best], scores[self.best], s=130, marker="*", color=colour(1), zorder=3,
            label=self._best_words(scores),
        )  # fmt: skip
        self.abandoned_ = None
        if abandoned.any():
            where = at[abandoned]
            self.abandoned_ = ax.scatter(
                where, np.full(len(where), 0.04), s=24, marker="x", color=ink(ax),
                transform=ax.get_xaxis_transform(), label=_ABANDONED,
            )  # fmt: skip
        ax.set_ylabel(f"mean {text(self.metric)}")
        if not numbers:
            name_steps(ax.xaxis, self.x, self.x_values)
            ax.set_xlim(-0.5, len(at) - 0.5)
            return
        ax.set_xlabel(text(self.x))
        if len(at) > 1 and at.min() > 0 and at.max() > 10 * at.min():
            ax.set_xscale("log")

    def _best_words(self, scores: Floats) -> str:
        names = [self.x] if self.y is None else [self.y, self.x]
        sides = [self.x_values] if self.y is None else [self.y_values, self.x_values]
        where = [named(n, v[k]) for n, v, k in zip(names, sides, self.best, strict=True)][::-1]
        line = ", ".join(where)
        # A legend wider than the axes would squeeze them.
        return f"best: {scores[self.best]:.3g} at\n" + (
            line if len(line) < 30 else "\n".join(where)
        )
