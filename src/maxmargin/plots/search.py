"""The scores of a search over parameters: their means over the splits, as a map or as a curve.

Two parameters span a map with one cell for each pair of values; one parameter gives a curve with
the standard deviation over the splits. Further parameters are held at the values of the best
candidate. All cells of a map have the same size, so that grids on any scale are legible.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.plots import style
from maxmargin.plots.style import text

_WRITTEN = (10, 8)  # rows and columns of a map up to which the scores are written in the cells
_TICK_LETTERS = 30  # that fit along an axis


@dataclass(eq=False, repr=False)
class SearchDisplay(style.Display):
    """Scores of a grid search against one or two parameters.

    Parameters
    ----------
    x : str
        Parameter along the first axis.
    x_values : sequence
        Its values, in order.
    scores : array-like of shape (n_x,) or (n_y, n_x)
        Mean scores; NaN where there is none, which leaves a cell empty.
    best : (int,) or (int, int)
        Index of the best score: of x, or of y and x.
    y : str, default=None
        Parameter along the second axis; None: a curve over x.
    y_values : sequence, default=()
        Its values, in order.
    deviations : array-like of the shape of ``scores``, default=None
        Standard deviations over the splits.
    held : dict, default=None
        Parameters that are held fixed, with their values.
    metric : str, default="score"
        Name of the scores.

    Attributes
    ----------
    image_, line_ : QuadMesh, ErrorbarContainer
        The map of two parameters, or the curve of one.
    best_ : Rectangle or PathCollection
        The marker of the best score.
    texts_ : list of Text
        Scores written into the cells of a small map.

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

    x: str
    x_values: Any
    scores: Any
    best: Any
    _: KW_ONLY
    y: str | None = None
    y_values: Any = ()
    deviations: Any = None
    held: Mapping[str, Any] | None = None
    metric: str = "score"
    _size = (4.6, 4.0)

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
        """Draw the scores of a fitted search.

        Parameters
        ----------
        search : SVCSearchCV or GridSearchCV
            Fitted.
        x, y : str, default=None
            Parameters along the axes, with all others held at the best; x alone gives a curve.
            By default those with several values, C along x and gamma along y if present.
        metric : str, default=None
            Which of several scorings; by default the one that chose the best, or else the first.
        ax : matplotlib Axes, default=None
            Where; None: in a new figure.
        """
        found = read_candidates(search, metric)
        return cls(**_tabulate(found, x, y), metric=found.metric).plot(ax)

    def _draw(self, ax: Any) -> None:
        scores = np.asarray(self.scores, dtype=np.float64)
        values = [self.x_values] if self.y is None else [self.y_values, self.x_values]
        shape = tuple(map(len, values))
        if scores.shape != shape:
            raise ValueError(
                f"scores has shape {scores.shape}, but the values of the parameters make {shape}."
            )
        if self.y is None:
            self._draw_curve(ax, scores)
        else:
            self._draw_map(ax, scores)
        ax.set_title(f"Cross-validated {text(self.metric)}")
        if self.held:
            fixed = ", ".join(_format_parameter(*held) for held in self.held.items())
            style.note(ax, f"with {text(fixed, 60)}")
        style.legend_below(ax, columns=1)

    def _draw_map(self, ax: Any, scores: Floats) -> None:
        from matplotlib.patches import Rectangle
        from matplotlib.patheffects import withStroke

        rows, columns = scores.shape
        found = np.ma.masked_invalid(scores)
        self.image_ = ax.pcolormesh(np.arange(columns), np.arange(rows), found, shading="nearest")
        ax.figure.colorbar(self.image_, ax=ax, pad=0.02, label=f"mean {text(self.metric)}")
        # Black with a white rim is visible on every colour of the map and on any background.
        cell = Rectangle((self.best[1] - 0.5, self.best[0] - 0.5), 1, 1, fill=False, linewidth=1.8)
        cell.set(path_effects=[withStroke(linewidth=4, foreground="white")], edgecolor="black")
        cell.set(clip_on=False, zorder=3, label=self._best_label(scores))
        self.best_ = ax.add_patch(cell)
        self.texts_ = []
        if rows <= _WRITTEN[0] and columns <= _WRITTEN[1]:
            options = {"ha": "center", "va": "center", "fontsize": 7 if columns <= 6 else 6}
            for row, column in np.argwhere(np.isfinite(scores)):
                score = scores[row, column]
                dark = style.is_dark(self.image_.cmap(self.image_.norm(score))[:3])
                number = f"{score:.2f}" if abs(score) < 10 else f"{score:.3g}"
                self.texts_.append(
                    ax.text(column, row, number, color="w" if dark else "k", **options)
                )
        _name_ticks(ax.xaxis, self.x, self.x_values)
        _name_ticks(ax.yaxis, str(self.y), self.y_values)

    def _draw_curve(self, ax: Any, scores: Floats) -> None:
        numbers = all(isinstance(_key(value), float) for value in self.x_values)
        at = np.asarray(self.x_values, dtype=np.float64) if numbers else np.arange(len(scores))
        curve = {"color": style.colour(0), "marker": "o", "markersize": 4, "capsize": 2.5}
        curve |= {"linewidth": 1.4 if numbers else 0, "elinewidth": 0.9}
        label = "mean ± deviation over the splits"
        self.line_ = ax.errorbar(at, scores, yerr=self.deviations, label=label, **curve)
        star = {"s": 130, "marker": "*", "color": style.colour(1), "zorder": 3}
        label = self._best_label(scores)
        self.best_ = ax.scatter(at[self.best], scores[self.best], label=label, **star)
        ax.set_ylabel(f"mean {text(self.metric)}")
        if not numbers:
            _name_ticks(ax.xaxis, self.x, self.x_values)
            ax.set_xlim(-0.5, len(at) - 0.5)
            return
        ax.set_xlabel(text(self.x))
        if len(at) > 1 and at.min() > 0 and at.max() > 10 * at.min():
            ax.set_xscale("log")

    def _best_label(self, scores: Floats) -> str:
        where = [_format_parameter(self.x, self.x_values[self.best[-1]])]
        if self.y is not None:
            where.append(_format_parameter(self.y, self.y_values[self.best[0]]))
        line = ", ".join(where)
        if len(line) >= 30:  # a legend wider than the axes would shrink them
            line = "\n".join(where)
        return f"best: {scores[self.best]:.3g} at\n{line}"


# ------------------------------------------------------------------------- the results of a search


class Candidates(NamedTuple):
    """What a search tried, with means and deviations over the splits of one metric."""

    params: list[dict[str, Any]]
    means: Floats
    deviations: Floats
    ranks: Ints
    best: int
    metric: str


def read_candidates(search: Any, metric: str | None = None) -> Candidates:
    """Return the candidates of a fitted search, with the scores of one of its scorings.

    By default that is the one that chose the best, or the first one if none did.
    """
    if hasattr(search, "cv"):
        check_is_fitted(search, "cv_results_")
    if not hasattr(search, "cv_results_"):
        raise TypeError(
            f"search={type(search).__name__} has no cv_results_: give a fitted SVCSearchCV or "
            "GridSearchCV."
        )
    results = search.cv_results_
    scorings = [key.removeprefix("mean_test_") for key in results if key.startswith("mean_test_")]
    if metric is not None and metric not in scorings:
        raise ValueError(f"metric={metric!r} is not valid: the search has {scorings}.")
    refit, scoring = getattr(search, "refit", None), getattr(search, "scoring", None)
    deciding = refit if isinstance(refit, str) and refit in scorings else scorings[0]
    name = deciding if metric is None else metric
    decided = len(scorings) == 1 or name == refit
    ranks = np.asarray(results[f"rank_test_{name}"])
    return Candidates(
        list(results["params"]),
        np.asarray(results[f"mean_test_{name}"], dtype=np.float64),
        np.asarray(results[f"std_test_{name}"], dtype=np.float64),
        ranks,
        int(search.best_index_ if decided and hasattr(search, "best_index_") else ranks.argmin()),
        scoring if name == "score" and isinstance(scoring, str) else name,
    )


def _key(value: Any) -> float | str:
    """Return the number or text by which values of a parameter are compared."""
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        return float(value)
    return repr(value)


def _distinct(params: list[dict[str, Any]], name: str) -> list[Any]:
    """Return the values of a parameter: numbers ascending, others in order of appearance."""
    found = {_key(one[name]): one[name] for one in params if name in one}
    numbers = all(isinstance(key, float) for key in found)
    return [found[key] for key in (sorted(found) if numbers else found)]


def _tabulate(found: Candidates, x: str | None, y: str | None) -> dict[str, Any]:
    """Return scores over x, or over y and x; all other parameters are those of the best one."""
    best = found.params[found.best]
    # There may be several grids: those with other parameters than the best cannot be compared.
    grid = {k: one for k, one in enumerate(found.params) if one.keys() == best.keys()}
    distinct = {name: _distinct(list(grid.values()), name) for name in best}
    x, y = _choose_axes(distinct, x, y)
    drawn = [name for name in (y, x) if name is not None]
    keys = {name: [_key(value) for value in distinct[name]] for name in drawn}
    others = [name for name in best if name not in drawn]

    def cell(one: dict[str, Any]) -> tuple[int, ...]:
        return tuple(keys[name].index(_key(one[name])) for name in drawn)

    shape = tuple(map(len, keys.values()))
    scores, deviations = np.full(shape, np.nan), np.full(shape, np.nan)
    for k, one in grid.items():
        if all(_key(one[name]) == _key(best[name]) for name in others):
            at = cell(one)
            scores[at], deviations[at] = found.means[k], found.deviations[k]
    return {
        "x": x,
        "x_values": distinct[x],
        "y": y,
        "y_values": () if y is None else distinct[y],
        "scores": scores,
        "deviations": deviations,
        "best": cell(best),
        "held": {name: best[name] for name in others if len(_distinct(found.params, name)) > 1},
    }


def _choose_axes(
    values: Mapping[str, list[Any]], x: str | None, y: str | None
) -> tuple[str, str | None]:
    """Return which parameters to draw along x and along y, the latter None for a curve."""
    for argument, name in (("x", x), ("y", y)):
        if name is not None and name not in values:
            raise ValueError(
                f"{argument}={name!r} is not valid: the best candidate has {', '.join(values)}."
            )
    if y is not None and (x is None or x == y):
        raise ValueError(f"y={y!r} needs another parameter along x; got x={x!r}.")
    if x is not None:
        return x, y
    varied = [name for name in values if len(values[name]) > 1] or list(values)[:1]
    if not varied:
        raise ValueError("the search has no parameters to draw: its grid is empty.")
    # The usual map has C along x and gamma along y.
    varied.sort(key=lambda name: (name.split("__")[-1] != "C", name.split("__")[-1] != "gamma"))
    return varied[0], varied[1] if len(varied) > 1 else None


# ------------------------------------------------------------------------------ the cells of a map


def _name_ticks(axis: Any, name: str, values: Any) -> None:
    """Label an axis with one tick for each value, or for some of them if there are many."""
    labels = [_format_value(value) for value in values]
    wide = max(map(len, labels)) + 1 if axis.axis_name == "x" else 3  # side by side, or stacked
    every = -(-len(labels) * wide // _TICK_LETTERS)
    axis.set_ticks(np.arange(0, len(labels), every), labels[::every])
    axis.set_label_text(text(name))


def _format_value(value: Any) -> str:
    """Return a value, short enough for a tick."""
    key = _key(value)
    if not isinstance(key, float):
        return text(value, 12)
    return f"{key:.0f}" if key.is_integer() and abs(key) < 1e5 else f"{key:.3g}"


def _format_parameter(name: str, value: Any) -> str:
    """Return a parameter with its value."""
    return f"{text(name, 16)} = {_format_value(value)}"
