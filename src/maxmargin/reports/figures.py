"""The pictures of a report: which fit this model, drawn as images that the page carries itself."""

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from maxmargin.html import Html, html, tag, visible
from maxmargin.reports.subject import Subject

_DPI = 130
_COMPONENT_ROWS = 1000  # for kernel principal components
_OPERATIONS = 2e9  # of a boundary in the plane
_FINEST, _COARSEST = 200, 40  # points along a side of its grid
_WIDE = 1.6  # width by height of a picture that needs the whole column
_PAPERS = {"auto": ("light", "dark"), "light": ("light",), "dark": ("dark",)}


class Picture(NamedTuple):
    """A caption, and what makes a display."""

    caption: str
    make: Callable[[], Any]


def figures(subject: Subject, theme: str) -> Html:
    """Return all pictures that fit the model."""
    return Html("".join(drawn(picture, theme) for picture in pictures(subject)))


def pictures(subject: Subject) -> Iterator[Picture]:
    """Yield the pictures that fit the model."""
    if not subject.regresses and hasattr(subject.machine, "decision_function"):
        yield from _margins(subject)
    from maxmargin.reports.histogram import FitDisplay, ScoresDisplay

    if subject.regresses:
        caption = "Predicted against true values: a perfect model would put all on the diagonal."
        yield Picture(caption, lambda: FitDisplay(subject.parts))
    yield Picture(_SCORES[_kind(subject)], lambda: ScoresDisplay(subject.parts, _kind(subject)))
    yield from _kernels(subject)
    if isinstance(getattr(subject.machine, "trace_", None), list):
        caption = "How the gap closed: the distance to the best possible objective by time."
        yield Picture(caption, lambda: _plots().ConvergenceDisplay.from_estimator(subject.machine))


def search_picture(search: Any) -> Picture:
    """Return the map of a search."""
    caption = "What was searched: mean score over the folds for each setting."
    return Picture(caption, lambda: _plots().SearchDisplay.from_estimator(search))


def drawn(picture: Picture, theme: str) -> Html:
    """Return a figure on light and dark paper, or a sentence on why it could not be drawn."""
    try:
        images, wide = _images(picture.make, _PAPERS[theme])
    except Exception as failure:  # one picture must not cost the reader all the rest
        why = f"{type(failure).__name__}: {visible(failure, 200)}"
        words = f"This picture could not be drawn ({why}). It would have shown: {picture.caption}"
        return tag("p", words, class_="missing")
    sources = [
        f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">' for dark in images[1:]
    ]
    image = f'<img src="{images[0]}" alt="{html(picture.caption)}">'
    inside = Html(f"<picture>{''.join(sources)}{image}</picture>")
    kind = {"class_": "wide"} if wide else {}
    return tag("figure", inside, tag("figcaption", picture.caption), **kind)


def _images(make: Callable[[], Any], papers: tuple[str, ...]) -> tuple[list[str], bool]:
    """Return a picture as addresses that hold it, one for each paper; and whether it is wide."""
    plt = _style().pyplot()
    images = []
    display = None
    open_before = set(plt.get_fignums())
    try:
        for paper in papers:
            with plt.style.context("default"), _style().theme(paper), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as a font without the letters of a label
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


def _plots() -> Any:
    import maxmargin.plots

    return maxmargin.plots


def _style() -> Any:
    import maxmargin.plots.style

    return maxmargin.plots.style


# ------------------------------------------------------------ which ones

_SCORES = {
    "classes": "How far the rows are on their own side of the boundary: those left of 0 are wrong.",
    "leads": "By how much each row's own class leads: rows left of 0 are wrong.",
    "numbers": "How far off the predictions are, true minus predicted.",
    "outliers": "How far the rows are inside of the surface: rows left of 0 are outliers.",
}


def _kind(subject: Subject) -> str:
    if subject.regresses:
        return "numbers"
    if not subject.classifies:
        return "outliers"
    return "classes" if len(subject.classes) == 2 else "leads"


def _margins(subject: Subject) -> Iterator[Picture]:
    whole = subject.train if subject.train.sampled else subject
    X, y = whole.X, whole.y if subject.classifies else None
    width = len(subject.names)

    def make(**how: Any) -> Any:
        # Rows without columns, such as texts, are seen as the last step sees them.
        seen = (subject.model, X) if width else (subject.machine, subject.inner(X))
        display = _plots().MarginDisplay.from_estimator(*seen, y, **how)
        if width == 2 and not how.get("view"):
            display.axis_labels = tuple(subject.names)
        return display

    if width == 2 and not _pairwise(subject):
        caption = "The data and the boundary, with margins and support vectors if it has any."
        yield Picture(caption, lambda: make(grid_resolution=_resolution(subject)))
    if len(subject.classes) == 2 and width != 2 and subject.train.scores.unit == "distance":
        caption = (
            "The data seen along the boundary: to the right, the signed distance; upwards, the "
            "direction of the largest spread beside it."
        )
        yield Picture(caption, lambda: make(view="margin"))


def _resolution(subject: Subject) -> int:
    """Return how fine a grid the boundary can be drawn on in a few seconds."""
    count = np.shape(getattr(subject.machine, "dual_coef_", np.zeros((1, 1))))[-1]
    return int(np.clip(np.sqrt(_OPERATIONS / max(1, 4 * count)), _COARSEST, _FINEST))


def _pairwise(subject: Subject) -> bool:
    return bool(subject.model.__sklearn_tags__().input_tags.pairwise)


def _kernels(subject: Subject) -> Iterator[Picture]:
    """Yield what the kernel makes of the rows; of a linear machine, plain principal components."""
    kernel = getattr(subject.machine, "kernel_", None)
    straight = hasattr(subject.machine, "coef_") or not hasattr(kernel, "gram")
    part = subject.train
    labels = part.y if subject.classifies else None

    def gram() -> Any:
        rows = subject.inner(part.X)
        return _plots().GramDisplay.from_estimator(subject.machine, rows, labels)

    def components() -> Any:
        from maxmargin.estimators import KernelPCA

        some = np.sort(np.random.default_rng(0).permutation(len(part.rows))[:_COMPONENT_ROWS])
        rows = subject.inner(_safe_indexing(part.X, some))
        fitted = KernelPCA(3, kernel="linear" if straight else kernel).fit(rows)
        chosen = None if labels is None else labels[some]
        return _plots().KernelPCADisplay.from_estimator(fitted, rows, chosen)

    if not straight:
        caption = "The kernel matrix of training rows, sorted by class, and its spectrum."
        yield Picture(caption, gram)
    if _pairwise(subject) or getattr(kernel, "takes_objects", False):
        return
    if not straight:
        caption = "Training rows as the kernel sees them: their first kernel principal components."
        yield Picture(caption, components)
    elif len(subject.names) > 2:
        yield Picture("Training rows in their first principal components.", components)
