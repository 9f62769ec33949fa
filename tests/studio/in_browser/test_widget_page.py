"""The widget of a notebook in a real browser: what is drawn there comes back to Python."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from tests.studio.in_browser.conftest import StudioPage, wait_until
from tests.support.widget_host import Comm, host_page

pytest.importorskip("anywidget")

X = [[-1.0, -0.5], [-1.5, 0.4], [1.1, 0.2], [0.9, -1.0]]
Y = ["no", "no", "yes", "yes"]


class Cell:
    """A cell of a notebook that shows a widget."""

    def __init__(self, chromium: Any, shown: Any) -> None:
        self.shown = shown
        context = chromium.new_context(viewport={"width": 1000, "height": 800})
        self.studio = StudioPage(context.new_page())
        self.page = self.studio.page
        self.comm = Comm(shown.widget, self.page.evaluate)
        self.page.set_content(host_page(shown.widget))
        self.pump(lambda: self.page.locator(".plot[data-seq]").count() > 0)

    def pump(self, until: Callable[[], bool]) -> None:
        """Carry messages to and fro until something holds."""

        def step() -> bool:
            self.comm.pump()
            return until()

        wait_until(step, "the widget does not answer")

    def count(self) -> int:
        return int(self.page.locator(".points .point").count())

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point of the plane is: lines have a transform from there to pixels."""
        at = self.page.locator(".scene .data").evaluate(
            """(group, [x, y]) => {
              const { a, b, c, d, e, f } = group.getScreenCTM();
              return [a * x + c * y + e, b * x + d * y + f];
            }""",
            [x, y],
        )
        return at[0], at[1]


@pytest.fixture
def cell(chromium: Any) -> Iterator[Cell]:
    shown = mm.Studio(X, Y, model="LinearSVC", C=10.0)
    made = Cell(chromium, shown)
    yield made
    made.studio.close()
    shown.close()


def test_the_page_begins_with_what_python_has(cell: Cell) -> None:
    assert cell.count() == 4
    assert cell.page.get_by_role("combobox", name="Model", exact=True).input_value() == "LinearSVC"
    assert "yes" in cell.page.locator(".chips").inner_text()
    boundary = cell.page.locator(".lines .boundary").get_attribute("points")
    ends = np.reshape([float(number) for number in boundary.replace(",", " ").split()], (-1, 2))
    known = mm.LinearSVC(C=10.0).fit(X, Y)
    np.testing.assert_allclose(known.decision_function(ends), 0, atol=1e-6)


def test_a_point_that_is_drawn_is_in_python(cell: Cell) -> None:
    cell.page.get_by_role("button", name="Draw points of class yes").click()
    cell.page.mouse.click(*cell.place(0.2, 0.8))
    cell.pump(lambda: len(cell.shown.X) == 5)
    assert cell.shown.X[-1] == pytest.approx([0.2, 0.8], abs=0.02)
    assert cell.shown.y.tolist() == [*Y, "yes"]
    known = mm.LinearSVC(C=10.0).fit(cell.shown.X, cell.shown.y)
    np.testing.assert_allclose(cell.shown.model.coef_, known.coef_, rtol=1e-6)
    np.testing.assert_array_equal(cell.shown.X[:4], X)


def test_leaving_takes_everything_away(cell: Cell) -> None:
    cell.page.evaluate("() => window.leave()")
    cell.page.mouse.move(*cell.place(0.0, 0.0))
    sent = cell.page.evaluate("() => window.sent.length")
    cell.page.evaluate("() => window.deliver({ type: 'points', seq: -1 })")  # nobody listens
    assert sent == cell.page.evaluate("() => window.sent.length")
