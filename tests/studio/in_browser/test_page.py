"""Points under the hand, and the lines that follow them."""

from typing import Any

import numpy as np
import pytest

from maxmargin._typing import Floats
from maxmargin.studio import pictures
from maxmargin.studio.catalogue import MODELS
from maxmargin.studio.scene import Choice
from tests.studio.in_browser.conftest import OpenPage, StudioPage

SEPARABLE = [
    *([-1.0, -0.5, 0], [-1.5, 0.4, 0], [-0.8, 0.9, 0], [-1.2, 1.3, 0]),
    *([1.1, 0.2, 1], [0.9, -1.0, 1], [1.6, 0.8, 1], [0.7, 1.6, 1]),
]
OVERLAPPING = [*SEPARABLE, [0.9, 0.5, 0], [-1.1, 0.1, 1]]
VIEW = [-3, 3, -2, 2]


def fitted(model: str, points: list[list[float]], **parameters: float) -> Any:
    """Return the model that Python itself fits to points."""
    data = np.array(points, dtype=float)
    estimator = pictures.build(Choice(model, parameters, MODELS[model].kernel))
    return estimator.fit(data[:, :2], data[:, 2].astype(int))


def is_on(line: list[float], w: Floats, b: float) -> bool:
    """Tell whether all of a line is on w·x + b = 0, to 1e-6 of a unit."""
    places = np.reshape(line, (-1, 2))
    return bool(np.all(np.abs(places @ w + b) / np.linalg.norm(w) <= 1e-6))


def test_a_dragged_point_takes_the_line_along(studio: StudioPage) -> None:
    studio.show(points=SEPARABLE, view=VIEW).choose("HardMarginSVC")
    before = studio.lines("boundary")
    studio.drag((0.9, -1.0), (0.4, -1.2))
    points = studio.state["points"]
    assert points[5][:2] == pytest.approx([0.4, -1.2], abs=0.01)
    assert [p for k, p in enumerate(points) if k != 5] == [
        p for k, p in enumerate(SEPARABLE) if k != 5
    ]
    known = fitted("HardMarginSVC", points)
    (boundary,) = studio.lines("boundary")
    assert boundary != before[0]
    assert is_on(boundary, np.ravel(known.coef_), float(known.intercept_[0]))


def test_points_are_drawn_labelled_and_deleted(studio: StudioPage) -> None:
    studio.show(points=[], view=VIEW)
    assert studio.page.get_by_text("Click to draw a point").is_visible()
    studio.click(-1.0, 0.5)
    studio.page.get_by_role("button", name="Draw points of class").nth(1).click()
    studio.click(1.0, -0.5)
    assert [label for _, _, label in studio.state["points"]] == [0, 1]
    assert len(studio.lines("boundary")) == 1
    studio.page.keyboard.down("Alt")  # Alt gives a point the class in the hand
    studio.click(-1.0, 0.5)
    studio.page.keyboard.up("Alt")
    assert [label for _, _, label in studio.state["points"]] == [1, 1]
    studio.click(1.0, -0.5, button="right")
    assert len(studio.state["points"]) == 1


def test_undo_goes_back_gesture_by_gesture(studio: StudioPage) -> None:
    studio.show(points=SEPARABLE, view=VIEW)
    studio.drag((0.9, -1.0), (0.4, -1.2))
    moved = studio.state["points"]
    studio.page.get_by_role("button", name="Undo").click()
    assert studio.wait().state["points"] == SEPARABLE
    studio.page.get_by_role("button", name="Redo").click()
    assert studio.wait().state["points"] == moved
    studio.page.locator(".scene").focus()
    studio.page.keyboard.press("Control+z")
    assert studio.wait().state["points"] == SEPARABLE


def test_a_cloud_is_sprayed_and_erased(studio: StudioPage) -> None:
    studio.show(points=[], view=VIEW)
    studio.page.get_by_role("button", name="Spray").click()
    studio.page.mouse.move(*studio.place(0.0, 0.0))
    studio.page.mouse.down()
    studio.page.wait_for_function("() => maxmarginStudio.store.state.points.length >= 10")
    studio.page.mouse.up()
    sprayed = studio.wait().state["points"]
    assert len(sprayed) >= 10
    assert np.ptp(np.array(sprayed)[:, :2], axis=0).min() > 0
    studio.page.get_by_role("button", name="Undo").click()
    assert studio.wait().state["points"] == []  # a cloud is one gesture
    studio.page.get_by_role("button", name="Redo").click()
    studio.page.get_by_role("button", name="Erase points").click()
    studio.click(0.0, 0.0)
    assert studio.state["points"] == []


def test_keyboard_alone_draws_moves_and_deletes(studio: StudioPage) -> None:
    studio.show(points=[], view=VIEW)
    page = studio.page
    page.locator(".scene").focus()
    for key in ("ArrowLeft", "ArrowLeft", "Shift+ArrowUp", "Enter"):
        page.keyboard.press(key)
    page.keyboard.press("2")
    for key in ("Shift+ArrowRight", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    studio.wait()
    (x, y, label), (x1, _, label1) = studio.state["points"]
    assert (label, label1) == (0, 1)
    assert x < 0 < y
    assert x1 > x
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    assert "Point 1, class" in page.locator("[role=status][aria-live]").first.inner_text()
    page.keyboard.press("Shift+ArrowDown")
    assert studio.wait().state["points"][0][1] < y
    page.keyboard.press("Delete")
    assert len(studio.wait().state["points"]) == 1


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off(open_page: OpenPage, width: int, scheme: str) -> None:
    studio = open_page(width, 844, color_scheme=scheme)
    wide = studio.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= width
    box = studio.page.locator(".scene").bounding_box()
    assert box["width"] >= 0.6 * min(width, 1000)
    assert box["height"] >= 300
    back = studio.page.evaluate(
        "() => getComputedStyle(document.querySelector('.plot')).backgroundColor"
    )
    assert (sum(map(int, back[4:-1].split(","))) < 384) == (scheme == "dark")


def test_touch_draws_and_pinches(open_page: OpenPage) -> None:
    studio = open_page(390, 844, has_touch=True, is_mobile=True)
    studio.show(points=[], view=VIEW)
    studio.page.touchscreen.tap(*studio.place(0.5, 0.5))
    assert studio.wait().state["points"][0][:2] == pytest.approx([0.5, 0.5], abs=0.05)


def test_the_wheel_zooms_about_the_pointer(studio: StudioPage) -> None:
    studio.show(points=SEPARABLE, view=VIEW)
    before = studio.place(1.1, 0.2)
    studio.page.mouse.move(*before)
    studio.page.mouse.wheel(0, -200)
    studio.wait()
    assert studio.place(1.1, 0.2) == pytest.approx(before, abs=1.0)
    left, right, _, _ = studio.state["view"]
    assert right - left < 6


def test_rings_show_support_vectors_by_kind(studio: StudioPage) -> None:
    studio.show(points=OVERLAPPING, view=VIEW).choose("LinearSVC", C=1.0)
    known = fitted("LinearSVC", OVERLAPPING, C=1.0)
    drawn = studio.page.locator(".rings .ring").evaluate_all(
        "all => all.map((e) => [Number(e.dataset.row), e.classList[1].replace('-', ' ')])"
    )
    assert dict(drawn) == dict(zip(known.support_.tolist(), known.support_kind_, strict=True))
