"""What all pictures share: colours, marks, axes, text that is safe to draw, and thinning.

Colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart; classes
differ in their marks as well. Ink adapts to the paper, so that dark styles work.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

BLUE, ORANGE, GREEN, PINK, SKY, AMBER = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
)
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)  # of classes, in the order of classes_
WRONG, GREY = "#E0315B", "#7D848C"  # of mistakes, and of what belongs to no class
MARKS = ("o", "s", "^", "D", "v", "P")  # the same, for those who see no colours
MOST_POINTS = 20_000  # more are sampled, and the picture says so
RASTER_FROM = 2_000  # points from which a vector file keeps them as pixels
COLUMN = 3.5  # inches: one column of a journal
_LONGEST = 28  # characters of a label
_ROOM = 0.95  # of a figure's width, for its legend
_ROUNDS = 12  # of laying out, at most
_DARK = {
    "figure.facecolor": "#15181c",
    "axes.facecolor": "#15181c",
    "savefig.facecolor": "#15181c",
    "text.color": "#e8e8e8",
    "axes.labelcolor": "#e8e8e8",
    "axes.edgecolor": "#9aa0a6",
    "axes.titlecolor": "#e8e8e8",
    "xtick.color": "#c8ccd0",
    "ytick.color": "#c8ccd0",
    "grid.color": "#3a4046",
}
_COMMON = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.0,
    "legend.fontsize": 8.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
}


@contextmanager
def theme(name: str = "light") -> Iterator[None]:
    """Draw what is plotted inside ``with`` in small type, on light or on dark paper.

    Parameters
    ----------
    name : {"light", "dark"}, default="light"
        The paper.

    Examples
    --------
    >>> import maxmargin as mm
    >>> with mm.plots.theme("dark"):
    ...     display = mm.plots.LossDisplay().plot()
    """
    if name not in ("light", "dark"):
        raise ValueError(f"theme must be 'light' or 'dark', got {name!r}")
    with pyplot().rc_context({**_COMMON, **(_DARK if name == "dark" else {})}):
        yield


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError(
            "maxmargin.plots needs matplotlib: pip install 'maxmargin[plot]'"
        ) from missing
    return plt


def new_axes(ax: Any = None, size: tuple[float, float] = (4.6, 3.8), **how: Any) -> Any:
    """Return the axes given, or those of a new figure whose labels do not overlap."""
    if ax is not None:
        if not is_axes(ax) or ax.name in ("3d", "polar"):
            raise TypeError(
                f"ax must be flat matplotlib axes, or None for new ones: got {ax!r:.60}"
            )
        return ax
    figure = pyplot().figure(figsize=size, layout="constrained")
    return figure.add_subplot(**how)


def grid_of_axes(rows: int, columns: int, size: tuple[float, float], **how: Any) -> Any:
    """Return an array of axes in one new figure; ``size`` is that of the figure."""
    figure = pyplot().figure(figsize=size, layout="constrained")
    return figure.subplots(rows, columns, squeeze=False, **how)


def is_axes(ax: Any) -> bool:
    """Whether there is something to draw on."""
    from matplotlib.axes import Axes

    return isinstance(ax, Axes)


def ink(ax: Any) -> str:
    """Return black on light paper, nearly white on dark."""
    from matplotlib.colors import to_rgba

    paper = np.ones(3)
    # What is transparent shows what is below.
    for sheet in (ax.figure.canvas.figure, ax.figure, ax):
        *painted, alpha = to_rgba(sheet.get_facecolor())
        paper = alpha * np.array(painted) + (1 - alpha) * paper
    red, green, blue = paper
    return "#000000" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "#f2f2f2"


def text(value: Any, longest: int = _LONGEST) -> str:
    """Return a name as matplotlib can draw it: short, on one line, and without mathematics.

    A dollar sign would start a formula, and a leading underscore would hide a legend's line.
    """
    name = one_line(value, longest).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name or " "


def one_line(value: Any, longest: int) -> str:
    """Return a name without what does not print, cut to a length."""
    name = "".join(c if c.isprintable() else " " for c in str(value))
    return name if len(name) <= longest else name[: longest - 1] + "…"


def colour(k: int) -> str:
    """Return the colour of the k-th class."""
    return COLOURS[k % len(COLOURS)]


def mark(k: int) -> str:
    """Return the mark of the k-th class."""
    return MARKS[(k + k // len(COLOURS)) % len(MARKS)]


def thinned(n: int, keep: Any = (), most: int = MOST_POINTS) -> npt.NDArray[np.intp]:
    """Return which of n points to draw: all, or a fixed random sample beside those to ``keep``."""
    if n <= most:
        return np.arange(n)
    chosen = np.random.default_rng(0).choice(n, most, replace=False)
    return np.union1d(chosen, np.asarray(keep, dtype=np.intp))


def scatter(
    ax: Any, X: Any, labels: Any, classes: Sequence[Any], size: float = 18.0, **how: Any
) -> list[Any]:
    """Draw points by class, each class with a colour and a mark, and return the artists.

    X has as many columns as the axes have dimensions. Many points become pixels in vector files.
    """
    how.setdefault("rasterized", len(X) > RASTER_FROM)
    how.setdefault("linewidths", 0)
    how.setdefault("alpha", 0.9 if len(X) <= RASTER_FROM else 0.5)
    artists = []
    for k, label in enumerate(classes):
        rows = X[np.asarray(labels) == label]
        artists.append(
            ax.scatter(*rows.T, s=size, c=colour(k), marker=mark(k), label=text(label), **how)
        )
    return artists


def legend_below(ax: Any, columns: int = 3, **how: Any) -> Any:
    """Put the legend under the axes, where it hides nothing, in so many columns as fit at most."""
    how.setdefault("frameon", False)
    # In units of the font, not of the axes: low axes have ticks and labels just as tall.
    how.setdefault("borderaxespad", 4.2)
    how |= {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
    return legend_that_fits(ax, ax.figure, columns, **how)


def legend_that_fits(place: Any, figure: Any, columns: int, **how: Any) -> Any:
    """Return a legend of axes or of a figure, in the most columns that the figure is wide for.

    Letters get smaller if a single column is too wide: axes would give way to it until none is
    left.
    """
    for count in range(columns, 0, -1):
        legend = place.legend(ncols=count, **how)
        with _unwarned():
            part = legend.get_window_extent().width / (_ROOM * figure.bbox.width)
        if part <= 1:
            return legend
        if count > 1:
            legend.remove()
    for words in legend.get_texts():
        words.set_fontsize(words.get_fontsize() / part)
    return legend


@contextmanager
def _unwarned() -> Iterator[None]:
    """Measure text without a word on letters that the font has not: drawing is to say so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def note(ax: Any, words: str) -> Any:
    """Write a remark small above the axes: what was sampled, what was held fixed.

    Call it after the title is set, which it lifts: both would stand in the same place.
    """
    if ax.get_title():
        ax.set_title(ax.get_title(), pad=6 + 9 * len(words.splitlines()))
    return ax.annotate(
        words,
        (1.0, 1.005),
        xycoords="axes fraction",
        ha="right",
        va="bottom",
        fontsize=7,
        alpha=0.8,
    )


def settle(figure: Any) -> None:
    """Lay a figure out until axes of equal scale have found their place.

    Such axes shrink after they were placed, so that titles and legends end up elsewhere: each
    round halves what is missing.
    """
    # A subfigure is laid out with the whole figure, of which parts may be empty as yet.
    engine = figure.get_layout_engine() if figure.figure is figure else None
    places: list[Any] = []
    for _ in range(_ROUNDS):
        if engine is None:
            return
        with _unwarned():
            engine.execute(figure)
        last, places = places, [axes.get_position().bounds for axes in figure.axes]
        if last and np.allclose(places, last, atol=1e-3):
            return
