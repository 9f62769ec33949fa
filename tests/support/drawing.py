"""What tests of pictures ask of a drawn figure."""

from itertools import pairwise
from typing import Any


def assert_fits(figure: Any, slack: float = 2.0) -> None:
    """Titles, axis labels, legends and tick labels lie inside the figure, within some pixels."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    whole = figure.bbox
    for axes in figure.axes:
        seen = [axes.title, axes.xaxis.label, axes.yaxis.label]
        if axes.get_legend() is not None:
            seen += axes.get_legend().get_texts()
        for artist in seen:
            if not artist.get_text().strip() or not artist.get_visible():
                continue
            box = artist.get_window_extent(renderer)
            inside = (
                box.x0 >= whole.x0 - slack
                and box.y0 >= whole.y0 - slack
                and box.x1 <= whole.x1 + slack
                and box.y1 <= whole.y1 + slack
            )
            assert inside, (artist.get_text(), box.bounds, whole.bounds)


def assert_apart(figure: Any) -> None:
    """No title touches the title of another panel, and no two tick labels of an axis overlap."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    titles = [a.title.get_window_extent(renderer) for a in figure.axes if a.get_title()]
    for k, one in enumerate(titles):
        assert not any(one.overlaps(other) for other in titles[k + 1 :])
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [label for label in axis.get_ticklabels() if label.get_text()]
            boxes = [label.get_window_extent(renderer) for label in labels]
            for one, other in pairwise(boxes):
                assert not one.padded(-1).overlaps(other.padded(-1))


def assert_whole(display: Any) -> None:
    """Everything written, also beside the axes, is inside the figure, and nothing overlaps."""
    figure = display.figure_
    assert_fits(figure)
    figure.set_layout_engine("none")  # it is settled: what follows is quicker without
    assert_apart(figure)
    renderer = figure.canvas.get_renderer()
    seen = [text for legend in figure.legends for text in legend.get_texts()]
    seen += [a.zaxis.label for a in figure.axes if hasattr(a, "zaxis")]
    seen += [figure._suptitle] if figure._suptitle is not None else []
    for artist in seen:
        box = artist.get_window_extent(renderer)
        assert box.x0 >= -1, artist
        assert box.y0 >= -1, artist
        assert box.x1 <= figure.bbox.x1 + 1, artist
        assert box.y1 <= figure.bbox.y1 + 1, artist
