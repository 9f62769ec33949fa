"""The figures of a report: those that suit the model, drawn as images embedded in the page.

A class has the same colour in all of them, mistakes are red, and what belongs to no class is grey.
"""

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

from maxmargin import plots
from maxmargin._typing import Floats
from maxmargin.inspection.model_view import take_rows
from maxmargin.plots import style
from maxmargin.plots.style import GREY, WRONG, colour, foreground, legend_below
from maxmargin.reports.context import Context, ScoredRows
from maxmargin.reports.tables import inner_names
from maxmargin.runtime.html import Html, html, joined, tag, visible

_DPI = 130
_COMPONENT_ROWS = 1000  # for kernel principal components
_OPERATIONS = 2e9  # for drawing a boundary in the plane: a few seconds
_FINEST, _COARSEST = 200, 40  # points along a side of its grid
_BINS = 40
_NARROW = 1e-6  # relative range of values below which they differ only by rounding
_LINES = ("-", "--")  # of the test rows, if there are any, and of the training rows
_WIDE = 1.6  # width by height of a figure that needs the whole column
_BACKGROUNDS = {"auto": ("light", "dark"), "light": ("light",), "dark": ("dark",)}


class ReportFigure(NamedTuple):
    """A caption, and a function that makes the display."""

    caption: str
    make: Callable[[], Any]


def figures(context: Context, theme: str) -> Html:
    """Return all figures that suit the model."""
    shown = [draw_figure(figure, theme) for figure in choose_figures(context)]
    if context.guesses:
        message = f"{type(context.machine).__name__} draws no boundary, so there is none to show."
        shown.insert(0, tag("p", message, class_="wide"))
    return joined(shown)


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


_SCORES = {  # the title of the histogram, and its caption
    "classes": (
        "Left of 0: wrong",
        "How far the rows are on their own side of the boundary: those left of 0 are wrong.",
    ),
    "leads": (
        "Left of 0: wrong",
        "By how much each row's own class leads: rows left of 0 are wrong.",
    ),
    "numbers": ("True − predicted", "How far off the predictions are, true minus predicted."),
    "outliers": (
        "Left of 0: outliers",
        "How far the rows are inside the surface: rows left of 0 are outliers.",
    ),
}


def choose_figures(context: Context) -> Iterator[ReportFigure]:
    """Yield the figures that suit the model."""
    if not context.guesses:
        yield from _boundaries(context)
        yield from _score_figures(context)
    yield from _components(context)
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
    parts, kind = context.parts, "outliers"
    if context.classifies:
        kind = "classes" if len(context.classes) == 2 else "leads"
    elif context.regresses:
        kind = "numbers"
        caption = "Predicted against true values: a perfect model has all points on the diagonal."
        yield ReportFigure(caption, lambda: FitDisplay(parts))
        caption = "Residuals, true minus predicted: a pattern among them is left to be learnt."
        yield ReportFigure(caption, lambda: FitDisplay(parts, residuals=True))
    yield ReportFigure(_SCORES[kind][1], lambda: ScoresDisplay(parts, kind, context.classes))
    part = parts[0]
    if kind != "classes" or not np.isin(context.classes, part.y).all():
        return
    if not np.ptp(part.scores.raw):  # no order among the rows
        return
    caption = (
        "ROC curve: how many rows of one class are found (up) as more of the other are taken for "
        "it (right). Guessing is the dotted line."
    )
    yield ReportFigure(caption, lambda: RocDisplay(part, context.classes))
    caption = (
        "Precision and recall of each class, for every threshold. Dotted: the share of the class "
        "among the rows, which is the precision of guessing."
    )
    yield ReportFigure(caption, lambda: PrecisionRecallDisplay(part, context.classes))


def _components(context: Context) -> Iterator[ReportFigure]:
    """Yield the kernel matrix and kernel components; for linear machines, plain components."""
    kernel = getattr(context.machine, "kernel_", None)
    straight = hasattr(context.machine, "coef_") or not hasattr(kernel, "gram")
    part = context.train
    labels = part.y if context.classifies else None

    def gram() -> Any:
        rows = context.view.transform(part.X)
        return plots.GramDisplay.from_estimator(context.machine, rows, labels)

    def components() -> Any:
        from maxmargin.estimators import KernelPCA

        some = np.sort(np.random.default_rng(0).permutation(len(part.rows))[:_COMPONENT_ROWS])
        rows = context.view.transform(take_rows(part.X, some))
        fitted = KernelPCA(3, kernel="linear" if straight else kernel).fit(rows)
        chosen = None if labels is None else labels[some]
        display = plots.KernelPCADisplay.from_estimator(fitted, rows, chosen)
        if np.ndim(rows) == 2 and rows.shape[1] > 1 and context.named:
            display.names = inner_names(context, rows.shape[1])[:2]
        return display

    if not straight:
        order = "sorted by class" if context.classifies else "sorted by their first component"
        caption = f"The kernel matrix of training rows, {order}, and its spectrum."
        yield ReportFigure(caption, gram)
    if context.pairwise or getattr(kernel, "takes_objects", False):
        return
    if not straight:
        caption = "Training rows as the kernel sees them: their first kernel principal components."
        yield ReportFigure(caption, components)
    elif len(context.names) > 2 and context.numeric:
        yield ReportFigure("Training rows in their first principal components.", components)


@dataclass(eq=False, repr=False)
class ScoresDisplay(style.Display):
    """Histogram of the scores of test and training rows.

    ``kind`` says what the scores are: "classes", "leads", "numbers" or "outliers". Two classes are
    shown in their colours.
    """

    parts: list[ScoredRows]
    kind: str
    classes: Any = ()
    _size = (4.6, 3.6)

    def _draw(self, ax: Any) -> None:
        scores = [part.scores.values for part in self.parts]
        edges = _edges(np.concatenate(scores))
        if self.kind == "classes":
            self._fill_classes(ax, edges)
        self.steps_ = []
        for k, (part, values) in enumerate(zip(self.parts, scores, strict=True)):
            heights = _heights(values, edges, int(np.isfinite(values).sum()))
            line = {"color": GREY if k else foreground(ax), "linestyle": _LINES[k]}
            label = f"{part.name} rows"
            self.steps_.append(ax.stairs(heights, edges, label=label, linewidth=1.2, **line))
            if self.kind != "classes" and not k:
                ax.stairs(heights, edges, fill=True, color=GREY, alpha=0.35)
        if self.kind in ("classes", "leads") and edges[0] < 0:
            ax.axvspan(edges[0], min(0.0, edges[-1]), color=WRONG, alpha=0.12, linewidth=0)
        self.line_ = ax.axvline(0.0, color=foreground(ax), linewidth=1.0, linestyle=":")
        if any(part.sampled for part in self.parts):
            style.note(ax, "a sample of the rows")
        ax.set(xlabel=self.parts[0].scores.unit, ylabel="share of rows")
        ax.set_title(_SCORES[self.kind][0], loc="left")
        legend_below(ax, columns=2)

    def _fill_classes(self, ax: Any, edges: Floats) -> None:
        """Fill the histogram of the first part by class, stacked."""
        part = self.parts[0]
        values = part.scores.values
        total, below = int(np.isfinite(values).sum()), np.zeros(len(edges) - 1)
        for k, label in enumerate(self.classes):
            heights = below + _heights(values[part.y == label], edges, total)
            options = {"fill": True, "color": colour(k), "alpha": 0.7, "linewidth": 0}
            ax.stairs(heights, edges, baseline=below, label=style.text(label), **options)
            below = heights


def _heights(values: Floats, edges: Floats, total: int) -> Floats:
    return np.histogram(values[np.isfinite(values)], edges)[0] / max(1, total)


def _edges(values: Floats) -> Floats:
    """Return bins around values, which may all be the same up to rounding."""
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    if high - low <= _NARROW * max(abs(low), abs(high)):
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    return np.linspace(low, high, _BINS + 1)


@dataclass(eq=False, repr=False)
class RocDisplay(style.Display):
    """Share of the second of two classes that is found, against that of the first taken for it."""

    part: ScoredRows
    classes: Any
    _size = (4.6, 4.0)

    def _draw(self, ax: Any) -> None:
        second, scores = self.part.y == self.classes[1], self.part.scores.raw[:, 0]
        across, up, _ = roc_curve(second, scores)
        self.curve_ = ax.plot(across, up, color=foreground(ax), linewidth=1.6, label="the model")[0]
        ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="guessing")
        one, other = (style.text(label, 16) for label in self.classes)
        ax.set(xlabel=f"share of {one} taken for {other}", ylabel=f"share of {other} found")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        area = auc(across, up)
        ax.set_title(f"ROC, {self.part.name} rows: area {area:.2%}", loc="left")
        legend_below(ax, 2)


@dataclass(eq=False, repr=False)
class PrecisionRecallDisplay(style.Display):
    """Precision against recall, for each of two classes."""

    part: ScoredRows
    classes: Any
    _size = (4.6, 4.0)

    def _draw(self, ax: Any) -> None:
        self.curves_, self.lines_ = [], []
        for k, label in enumerate(self.classes):
            own, scores = self.part.y == label, (2 * k - 1) * self.part.scores.raw[:, 0]
            precision, recall, _ = precision_recall_curve(own, scores)
            mean = average_precision_score(own, scores)
            options = {"color": colour(k), "linewidth": 1.6, "drawstyle": "steps-post"}
            name = f"{style.text(label, 16)} (mean precision {mean:.2%})"
            self.curves_ += ax.plot(recall, precision, label=name, **options)
            line = {"color": colour(k), "linestyle": ":", "linewidth": 1.2}
            self.lines_.append(ax.axhline(own.mean(), **line))
        ax.set(xlabel="recall", ylabel="precision", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        ax.set_title(f"Precision and recall, {self.part.name} rows", loc="left")
        legend_below(ax, 1)


@dataclass(eq=False, repr=False)
class FitDisplay(style.Display):
    """Predicted against true values of test and training rows, or residuals against predictions."""

    parts: list[ScoredRows]
    residuals: bool = False
    _size = (4.6, 4.4)

    def _draw(self, ax: Any) -> None:
        self.points_, ends = [], []
        for k, part in reversed([*enumerate(self.parts)]):
            some = style.thin(len(part.rows))
            true, predicted = np.asarray(part.y, float)[some], part.scores.raw[some, 0]
            dots = {"color": GREY if k else foreground(ax), "marker": style.MARKS[k], "s": 12}
            dots |= {"linewidths": 0, "alpha": 0.7, "rasterized": len(some) > style.RASTER_FROM}
            shown = (predicted, true - predicted) if self.residuals else (true, predicted)
            self.points_.append(ax.scatter(*shown, label=f"{part.name} rows", **dots))
            ends += [true.min(), true.max(), predicted.min(), predicted.max()]
            if len(some) < part.total:
                style.note(ax, "a sample of the rows")
        legend_below(ax, columns=2)
        if self.residuals:
            self.line_ = ax.axhline(0.0, color=foreground(ax), linewidth=1.0)
            ax.set(xlabel="predicted", ylabel="true − predicted", title="")
            ax.set_title("On the line: right", loc="left")
            return
        low, high = float(min(ends)), float(max(ends))
        self.line_ = ax.plot([low, high], [low, high], color=foreground(ax), linewidth=1.0)[0]
        ax.set_aspect("equal", adjustable="datalim")
        ax.set(xlabel="true", ylabel="predicted")
        ax.set_title("On the diagonal: right", loc="left")
