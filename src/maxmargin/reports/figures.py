"""The figures of a report: those that suit the model, drawn as images embedded in the page.

A class has the same colour in all of them, mistakes are red, and what belongs to no class is grey.
"""

import base64
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import PrecisionRecallDisplay, PredictionErrorDisplay, RocCurveDisplay

from maxmargin import plots
from maxmargin._typing import Floats
from maxmargin.plots import style
from maxmargin.plots.style import GREY, WRONG, colour, foreground, legend_below
from maxmargin.reports.context import Context, ScoredRows
from maxmargin.runtime.html import Html, html, joined, tag, visible

_DPI = 130
_OPERATIONS = 2e9  # for drawing a boundary in the plane: a few seconds
_FINEST, _COARSEST = 200, 40  # points along a side of its grid
_BINS = 40
_NARROW = 1e-6  # relative range of values below which they differ only by rounding
_WIDE = 1.6  # width by height of a figure that needs the whole column
_BACKGROUNDS = {"auto": ("light", "dark"), "light": ("light",), "dark": ("dark",)}


class ReportFigure(NamedTuple):
    """A caption, and a function that makes the display."""

    caption: str
    make: Callable[[], Any]


def figures(context: Context, theme: str) -> Html:
    """Return all figures that suit the model."""
    return joined(draw_figure(figure, theme) for figure in choose_figures(context))


def draw_figure(figure: ReportFigure, theme: str) -> Html:
    """Return a figure on light and dark background, or a sentence on why it cannot be drawn."""
    try:
        images, wide = _images(figure.make, _BACKGROUNDS[theme])
    except Exception as failure:  # the reader must not lose the rest of the report
        why = f"{type(failure).__name__}: {visible(failure, 200)}"
        message = f"This figure could not be drawn ({why}). It would have shown: {figure.caption}"
        return tag("p", message, class_="missing")
    light, *dark = images
    inside = f'<img src="{light}" alt="{html(figure.caption)}">'
    if dark:
        inside = f'<source media="(prefers-color-scheme: dark)" srcset="{dark[0]}">{inside}'
    kind = {"class_": "wide"} if wide else {}
    picture = Html(f"<picture>{inside}</picture>")
    return tag("figure", picture, tag("figcaption", figure.caption), **kind)


def _images(make: Callable[[], Any], backgrounds: tuple[str, ...]) -> tuple[list[str], bool]:
    """Return a figure as data URLs, one for each background, and whether it is wide."""
    plt = style.pyplot()
    images, display = [], None
    open_before = set(plt.get_fignums())
    try:
        for background in backgrounds:
            with plt.style.context("default"), style.theme(background), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as missing glyphs in a label
                display = make() if display is None else display
                figure = display.plot().figure_
                file = io.BytesIO()
                figure.savefig(file, format="png", dpi=_DPI, metadata={"Software": None})
            data = base64.b64encode(file.getvalue()).decode("ascii")
            images.append(f"data:image/png;base64,{data}")
    finally:
        for number in set(plt.get_fignums()) - open_before:
            plt.close(number)
    width, height = figure.get_size_inches()
    return images, bool(width > _WIDE * height)


@dataclass(eq=False, repr=False)
class Drawing(style.Display):
    """A figure that a function draws on its axes."""

    draw: Callable[[Any], None]
    _size = (4.6, 4.0)

    def _draw(self, ax: Any) -> None:
        self.draw(ax)


def choose_figures(context: Context) -> Iterator[ReportFigure]:
    """Yield the figures that suit the model."""
    if not context.guesses:
        yield from _boundaries(context)
        yield from _score_figures(context)
    if isinstance(getattr(context.machine, "trace_", None), list):
        caption = "How the gap closed: the distance to the best possible objective over time."
        make = plots.ConvergenceDisplay.from_estimator
        yield ReportFigure(caption, lambda: make(context.machine))


def _boundaries(context: Context) -> Iterator[ReportFigure]:
    """Yield the data with the boundary: in the plane, or along it."""
    if context.regresses or not hasattr(context.machine, "decision_function"):
        return
    whole = context.train if context.train.sampled else context
    X, y = whole.X, whole.y if context.classifies else None
    flat = len(context.names) == 2 and context.numeric

    def make(**options: Any) -> Any:
        # Rows that are not numbers, such as texts, are drawn as the last step sees them.
        seen = context.model, X
        if not context.numeric:
            seen = context.machine, context.view.transform(X)
        display = plots.MarginDisplay.from_estimator(*seen, y, **options)
        if flat and not options.get("view"):
            display.axis_labels = tuple(context.names)
        return display

    if flat and not context.pairwise:
        caption = "The data and the boundary, with margins and support vectors if it has any."
        count = np.shape(getattr(context.machine, "dual_coef_", np.zeros((1, 1))))[-1]
        finest = np.clip(np.sqrt(_OPERATIONS / max(1, 4 * count)), _COARSEST, _FINEST)
        yield ReportFigure(caption, lambda: make(grid_resolution=int(finest)))
    if len(context.classes) == 2 and not flat and context.train.scores.unit == "distance":
        caption = (
            "The data seen along the boundary: to the right, the signed distance; upwards, the "
            "direction of the largest spread beside it."
        )
        yield ReportFigure(caption, lambda: make(view="margin"))


def _score_figures(context: Context) -> Iterator[ReportFigure]:
    """Yield figures of the scores: how far off, how confident and how well ordered they are."""
    part, classes = context.parts[0], context.classes
    if context.regresses:
        caption = "True against predicted values: a perfect model has all points on the diagonal."
        yield ReportFigure(caption, lambda: Drawing(lambda ax: draw_fit(ax, part)))
        caption = "Residuals, true minus predicted: a pattern among them is left to be learnt."
        yield ReportFigure(caption, lambda: Drawing(lambda ax: draw_fit(ax, part, True)))
        return
    caption = "How far the rows are inside the surface: rows left of 0 are outliers."
    if context.classifies:
        caption = (
            "How far the rows are on their own side of the boundary: those left of 0 are wrong."
        )
    if len(classes) > 2:
        caption = "By how much each row's own class leads: rows left of 0 are wrong."
    yield ReportFigure(caption, lambda: Drawing(lambda ax: draw_scores(ax, part, classes)))
    # Curves need rows of both classes, and an order among them.
    if len(classes) != 2 or not np.isin(classes, part.y).all() or not np.ptp(part.scores.raw):
        return
    caption = (
        "ROC curve: how many rows of one class are found (up) as more of the other are taken for "
        "it (right). Guessing is the dotted line."
    )
    yield ReportFigure(caption, lambda: Drawing(lambda ax: draw_roc(ax, part, classes)))
    caption = (
        "Precision and recall of each class, for every threshold. Dotted: the share of the class "
        "among the rows, which is the precision of guessing."
    )
    yield ReportFigure(caption, lambda: Drawing(lambda ax: draw_precision(ax, part, classes)))


def draw_scores(ax: Any, part: ScoredRows, classes: Sequence[Any]) -> None:
    """Draw a histogram of scores; two classes are shown in their colours."""
    values = part.scores.values
    known = np.isfinite(values)
    chosen, options = [known], {"color": [GREY]}
    if len(classes) == 2:
        chosen = [known & (part.y == label) for label in classes]
        names = [style.text(label) for label in classes]
        options = {"color": [colour(0), colour(1)], "label": names}
    edges = _edges(values[known])
    shares = [np.full(one.sum(), 1 / max(1, known.sum())) for one in chosen]
    ax.hist([values[one] for one in chosen], edges, weights=shares, stacked=True, **options)
    ax.axvline(0.0, color=foreground(ax), linewidth=1.0, linestyle=":")
    meaning, paint = ("wrong", WRONG) if len(classes) else ("outliers", GREY)
    if edges[0] < 0:
        ax.axvspan(edges[0], min(0.0, edges[-1]), color=paint, alpha=0.12, linewidth=0)
    ax.set(xlabel=part.scores.unit, ylabel="share of rows")
    _finish(ax, part, f"{part.name} rows; left of 0: {meaning}")


def _edges(values: Floats) -> Floats:
    """Return bins around values, which may all be the same up to rounding."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if high - low <= _NARROW * max(abs(low), abs(high)):
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    return np.linspace(low, high, _BINS + 1)


def draw_roc(ax: Any, part: ScoredRows, classes: Sequence[Any]) -> None:
    """Draw the share of the second of two classes found against that of the first taken for it."""
    second, scores = part.y == classes[1], part.scores.raw[:, 0]
    guessing = {"color": GREY, "linestyle": ":", "label": "guessing"}
    shown = RocCurveDisplay.from_predictions(
        second, scores, ax=ax, plot_chance_level=True, chance_level_kw=guessing
    )
    shown.line_.set(color=foreground(ax), label=f"the model (area {shown.roc_auc:.2%})")
    one, other = (style.text(label, 16) for label in classes)
    ax.set(xlabel=f"share of {one} taken for {other}", ylabel=f"share of {other} found")
    _finish(ax, part, f"ROC, {part.name} rows")


def draw_precision(ax: Any, part: ScoredRows, classes: Sequence[Any]) -> None:
    """Draw precision against recall, for each of two classes."""
    for k, label in enumerate(classes):
        guessing = {"color": colour(k), "linestyle": ":", "label": None}
        scores = (2 * k - 1) * part.scores.raw[:, 0]
        shown = PrecisionRecallDisplay.from_predictions(
            part.y == label, scores, ax=ax, plot_chance_level=True, chance_level_kw=guessing
        )
        name = f"{style.text(label, 16)} (mean precision {shown.average_precision:.2%})"
        shown.line_.set(color=colour(k), label=name)
    ax.set(xlabel="recall", ylabel="precision")
    _finish(ax, part, f"Precision and recall, {part.name} rows")


def draw_fit(ax: Any, part: ScoredRows, residuals: bool = False) -> None:
    """Draw true values or residuals against predictions."""
    PredictionErrorDisplay.from_predictions(
        np.asarray(part.y, dtype=np.float64),
        part.scores.raw[:, 0],
        kind="residual_vs_predicted" if residuals else "actual_vs_predicted",
        subsample=min(len(part.rows), style.MOST_POINTS),
        random_state=0,
        ax=ax,
        scatter_kwargs={"color": colour(0), "s": 12, "alpha": 0.7, "linewidths": 0},
        line_kwargs={"color": foreground(ax)},
    )
    ax.set(xlabel="predicted", ylabel="true − predicted" if residuals else "true")
    _finish(ax, part, f"{part.name} rows; on the line: right")


def _finish(ax: Any, part: ScoredRows, title: str) -> None:
    ax.set_title(f"{title[:1].upper()}{title[1:]}", loc="left")
    if part.sampled:
        style.note(ax, "a sample of the rows")
    if ax.get_legend_handles_labels()[0]:
        legend_below(ax, 1)
