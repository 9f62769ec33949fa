"""What all displays share: their base class, colours, markers, axes, legends and safe text.

Colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart; classes also
differ in their markers. The foreground colour follows the background, so that dark styles work.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.runtime.html import visible

Rows = npt.NDArray[np.intp]

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
PINK, SKY, AMBER = "#CC79A7", "#56B4E9", "#E69F00"
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)  # of the classes, in the order of classes_
WRONG, GREY = "#E0315B", "#7D848C"  # of mistakes, and of what belongs to no class
MARKS = ("o", "s", "^", "D", "v", "P")  # of the classes, for readers who cannot see colours
MOST_POINTS = 20_000  # if there are more, a sample is drawn, and the figure says so
RASTER_FROM = 2_000  # above this many points, vector files keep them as pixels
_LINES = ("-", "--", "-.", ":")  # of curves
_FEW = 40  # points of a curve up to which each has a marker
_LONGEST = 28  # characters in a label
_LEGEND_WIDTH = 0.95  # largest share of the figure's width that a legend may take
_MOST_ENTRIES = 12  # in a legend below several panels: with more it would be larger than they are
_LAYOUT_ROUNDS = 12  # at most
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Display:
    """The data of a figure, and how to draw it.

    Displays are dataclasses: their fields are what is drawn, and ``plot`` adds the artists, under
    names that end in an underscore; ``ax_`` and ``figure_`` are where they were drawn. Subclasses
    define ``_draw``; those with several panels define ``_axes``, too.
    """

    ax_: Any
    figure_: Any
    _size = (4.6, 3.8)  # inches of a new figure with one panel

    def plot(self, ax: Any = None) -> Self:
        """Draw, keep ``ax_`` and ``figure_``, and return the display.

        Parameters
        ----------
        ax : matplotlib Axes, array of Axes or None, default=None
            Where to draw: an array, counted row by row, if the display has several panels. None:
            in a new figure.
        """
        axes = self._axes(ax)
        figure = np.ravel(axes)[0].figure
        try:
            self._draw(axes)
        except Exception:
            if ax is None:  # otherwise a notebook would show an empty figure
                pyplot().close(figure)
            raise
        self.ax_, self.figure_ = axes, figure
        return self

    def save(self, path: str | Path, dpi: float = 150.0) -> Path:
        """Write the whole figure to a file, drawing it first if necessary; return the path.

        Parameters
        ----------
        path : str or Path
            Its suffix is the format: png, svg, pdf.
        dpi : float, default=150
            Dots per inch of a pixel format.
        """
        if not hasattr(self, "figure_"):
            self.plot()
        whole = self.figure_.canvas.figure  # figure_ may be a subfigure
        settle(whole)
        whole.savefig(path, dpi=dpi)
        return Path(path)

    def _axes(self, ax: Any) -> Any:
        """Return the axes to draw on, or an array of them: those given, or new ones for None."""
        return new_axes(ax, self._size)

    def _draw(self, axes: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _draw")


@contextmanager
def theme(name: str = "light") -> Iterator[None]:
    """Draw what is plotted inside ``with`` in small type, on a light or a dark background.

    Parameters
    ----------
    name : {"light", "dark"}, default="light"
        The background.

    Examples
    --------
    >>> import maxmargin as mm
    >>> with mm.plots.theme("dark"):
    ...     display = mm.plots.GramDisplay.from_kernel("rbf", [[0.0], [1.0]])
    """
    if name not in ("light", "dark"):
        raise ValueError(f"theme must be 'light' or 'dark', got {name!r}")
    styles = ["maxmargin.plots.small", "maxmargin.plots.dark"]
    with pyplot().style.context(styles if name == "dark" else styles[:1]):
        yield


def pyplot() -> Any:
    """Return matplotlib.pyplot; if it is missing, the error says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError("maxmargin.plots needs matplotlib: pip install matplotlib") from missing
    return plt


def new_axes(ax: Any = None, size: tuple[float, float] = (4.6, 3.8)) -> Any:
    """Return the given axes, or those of a new figure whose labels do not overlap."""
    if ax is None:
        return grid_of_axes(1, 1, size)[0, 0]
    if not isinstance(ax, pyplot().Axes) or ax.name in ("3d", "polar"):
        raise TypeError(f"ax must be flat matplotlib axes, or None for new ones: got {ax!r:.60}")
    return ax


def grid_of_axes(rows: int, columns: int, size: tuple[float, float], **options: Any) -> Any:
    """Return an array of axes in one new figure of this size."""
    figure = pyplot().figure(figsize=size, layout="constrained")
    return figure.subplots(rows, columns, squeeze=False, **options)


def panels(ax: Any, rows: int, columns: int, size: tuple[float, float], **options: Any) -> Any:
    """Return the given array of axes, or one in a new figure; panels are counted row by row."""
    if ax is None:
        return grid_of_axes(rows, columns, size, **options)
    axes, kind = np.asarray(ax, dtype=object), pyplot().Axes
    if axes.size != rows * columns or not all(isinstance(one, kind) for one in axes.flat):
        raise ValueError(
            f"ax={ax!r} is not valid: this display has {rows * columns} panels. Give an array of "
            f"that many axes, such as figure.subplots({rows}, {columns}), or None for a new figure."
        )
    return axes


def small_multiples(count: int, cell: tuple[float, float], extra: tuple[float, float]) -> Any:
    """Return the axes of this many panels of a new figure, three in a row.

    ``cell`` is the size of a panel, ``extra`` that of what surrounds them, in inches.
    """
    columns = min(count, 3)
    rows = -(-count // columns)
    axes = grid_of_axes(rows, columns, (cell[0] * columns + extra[0], cell[1] * rows + extra[1]))
    for ax in axes.flat[count:]:
        ax.remove()
    return axes.ravel()[:count]


def foreground(ax: Any) -> str:
    """Return black on a light background, nearly white on a dark one."""
    from matplotlib.colors import to_rgba

    background = np.ones(3)
    # A transparent layer shows what is below it.
    for layer in (ax.figure.canvas.figure, ax.figure, ax):
        *colours, alpha = to_rgba(layer.get_facecolor())
        background = alpha * np.array(colours) + (1 - alpha) * background
    return "#f2f2f2" if is_dark(background) else "#000000"


def is_dark(rgb: Any) -> bool:
    """Return whether light text is easier to read on this colour than dark text."""
    return bool(np.dot((0.3, 0.59, 0.11), rgb) <= 0.5)


def text(value: Any, longest: int = _LONGEST) -> str:
    """Return a name that is safe to draw: short, on one line, and never parsed as a formula.

    A dollar sign would start a formula, and a leading underscore would hide a legend entry.
    """
    name = visible(value, longest).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name or " "


def label_axes(ax: Any, names: Sequence[Any], longest: int = _LONGEST) -> None:
    """Name both axes; ``longest`` is the number of characters that fit beside them."""
    ax.set(xlabel=text(names[0], longest), ylabel=text(names[1], longest))


def column_names(X: Any, count: int) -> list[str]:
    """Return the names of the columns: those of a frame, or x₁, x₂ and so on."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    return [f"x{k}".translate(_SUBSCRIPTS) for k in range(1, count + 1)]


def short_numbers(sentence: str) -> str:
    """Return a text with its longer numbers rounded to four digits."""
    long = r"\d+\.\d{4,}(e[-+]?\d+)?"
    return re.sub(long, lambda number: f"{float(number[0]):.4g}", sentence)


def colour(k: int) -> str:
    """Return the colour of the k-th class."""
    return COLOURS[k % len(COLOURS)]


def mark(k: int) -> str:
    """Return the marker of the k-th class."""
    return MARKS[(k + k // len(COLOURS)) % len(MARKS)]


def thin(n: int, keep: Any = (), most: int = MOST_POINTS) -> Rows:
    """Return which of n points to draw: all, or a fixed random sample with those to ``keep``."""
    if n <= most:
        return np.arange(n)
    chosen = np.random.default_rng(0).choice(n, most, replace=False)
    return np.union1d(chosen, np.asarray(keep, dtype=np.intp))


def sampled(shown: int, total: int, what: str = "points") -> str:
    """Return how many of all points or rows are drawn, or an empty message if all are."""
    return f"{shown:,} of {total:,} {what}" if shown < total else ""


def scatter(
    ax: Any, X: Any, labels: Any, classes: Sequence[Any], size: float = 18.0, **options: Any
) -> list[Any]:
    """Draw points, with a colour and a marker for each class, and return one artist per class.

    X has as many columns as the axes have dimensions. Many points become pixels in vector files.
    """
    options.setdefault("rasterized", len(X) > RASTER_FROM)
    options.setdefault("linewidths", 0)
    options.setdefault("alpha", 0.9 if len(X) <= RASTER_FROM else 0.5)
    artists = []
    for k, label in enumerate(classes):
        rows = X[np.asarray(labels) == label]
        artists.append(
            ax.scatter(*rows.T, s=size, c=colour(k), marker=mark(k), label=text(label), **options)
        )
    return artists


def draw_curve(ax: Any, x: Any, y: Any, k: int, **options: Any) -> Any:
    """Draw the k-th curve in its colour and line style, with markers if its points are few."""
    options = {"color": colour(k), "linewidth": 1.4, "markersize": 4.0, **options}
    options["linestyle"] = _LINES[(k // len(COLOURS) + k) % len(_LINES)]
    return ax.plot(x, y, marker=mark(k) if len(x) <= _FEW else None, **options)[0]


def legend_below(ax: Any, columns: int = 3, **options: Any) -> Any:
    """Put the legend below the axes, where it hides nothing, in at most this many columns."""
    options |= {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "frameon": False}
    # The pad is in units of the font: tick labels are equally tall below low axes.
    return legend_that_fits(ax, columns, borderaxespad=4.2, **options)


def legend_that_fits(place: Any, columns: int, **options: Any) -> Any:
    """Return a legend of axes or of a figure, in as many columns as the figure is wide enough for.

    If even one column is too wide, the font shrinks: otherwise the layout would shrink the axes
    to nothing.
    """
    for count in range(columns, 0, -1):
        legend = place.legend(ncols=count, **options)
        with _ignore_missing_glyphs():
            ratio = legend.get_window_extent().width / (_LEGEND_WIDTH * legend.figure.bbox.width)
        if ratio <= 1:
            return legend
        if count > 1:
            legend.remove()
    for entry in legend.get_texts():
        entry.set_fontsize(entry.get_fontsize() / ratio)
    return legend


def legend_under(axes: Any, handles: Sequence[Any]) -> Any:
    """Put one legend below all panels, in as many columns as the figure is wide enough for."""
    from matplotlib.lines import Line2D

    shown = list(handles[:_MOST_ENTRIES])
    if len(handles) > len(shown):
        rest = f"and {len(handles) - len(shown)} more"
        shown.append(Line2D([], [], linestyle="none", label=rest))
    options = {"loc": "outside lower center", "frameon": False, "columnspacing": 1.2}
    return legend_that_fits(axes.flat[0].figure, len(shown), handles=shown, **options)


@contextmanager
def _ignore_missing_glyphs() -> Iterator[None]:
    """Measure text without warnings about missing glyphs; drawing it warns about them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def note(ax: Any, message: str) -> Any:
    """Write a message in small type above the axes: what was sampled, what is held fixed.

    Call it after the title is set: it raises the title, which would be in the same place.
    """
    if ax.get_title():
        ax.set_title(ax.get_title(), pad=6 + 9 * len(message.splitlines()))
    place = {"xycoords": "axes fraction", "ha": "right", "va": "bottom"}
    return ax.annotate(message, (1.0, 1.005), fontsize=7, alpha=0.8, **place)


def settle(figure: Any) -> None:
    """Repeat the layout of a figure until axes of equal scale have found their place.

    Such axes shrink after they are placed, so that titles and legends are misplaced: each round
    halves the error.
    """
    # A subfigure is laid out with the whole figure, parts of which may still be empty.
    engine = figure.get_layout_engine() if figure.figure is figure else None
    places: list[Any] = []
    for _ in range(_LAYOUT_ROUNDS):
        if engine is None:
            return
        with _ignore_missing_glyphs():
            engine.execute(figure)
        last, places = places, [axes.get_position().bounds for axes in figure.axes]
        if last and np.allclose(places, last, atol=1e-3):
            return
