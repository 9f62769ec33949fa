"""Runs are stepped through, played and rewound, and every frame is a moment of the model."""

from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.inspection.model_view import read_trace
from maxmargin.studio import presets, runs
from tests.studio.in_browser.conftest import StudioPage
from tests.studio.in_browser.test_page import OVERLAPPING, VIEW, is_on
from tests.support import studio_reference as reference

NARROW = presets.make("separable", {"margin": 0.05, "points": 40})
MANY = [
    list(point) for point in zip(NARROW["x"], NARROW["y"], NARROW["label"], strict=True)
]  # a perceptron makes a dozen mistakes on them


def begin(studio: StudioPage, kind: str) -> None:
    studio.page.locator(f".starts [data-run={kind}]").click()
    studio.wait()


def known_run(studio: StudioPage, model: str, kind: str, **parameters: float) -> dict[str, Any]:
    """Return what Python sends about the same run."""
    view = studio.run("(studio) => studio.plots[0].seen()")
    scene = reference.make_scene(studio.state["points"], view, model, parameters=parameters)
    return reference.strip(runs.step_through(scene, kind, lambda: False))


def shown_run(studio: StudioPage) -> dict[str, Any]:
    return reference.strip(studio.wait().run("(studio) => studio.timeline.run"))


def frame_number(studio: StudioPage) -> int:
    return int(studio.page.locator(".timeline").get_attribute("data-frame"))


def data_of(points: list[list[float]]) -> tuple[Any, Any]:
    data = np.array(points)
    return data[:, :2], data[:, 2].astype(int)


def test_each_update_of_a_perceptron_is_shown(desk: StudioPage) -> None:
    desk.show(points=MANY, view=NARROW["view"]).choose("Perceptron")
    begin(desk, "perceptron")
    trace = read_trace(mm.Perceptron(trace=True).fit(*data_of(MANY)))
    count = len(trace.row)
    assert count >= 5
    assert shown_run(desk) == known_run(desk, "Perceptron", "perceptron")
    desk.button("Rewind to the start").click()
    assert desk.lines("boundary") == []  # w = 0
    forward = desk.button("Step forward")
    for k in range(1, count + 1):
        forward.click()
        assert frame_number(desk) == k
        for line in desk.lines("boundary"):
            assert is_on(line, trace.coef[k, 0], float(trace.intercept[k, 0]))
        x, y = desk.page.locator(".marks .focus").evaluate(
            "(e) => [Number(e.getAttribute('cx')), Number(e.getAttribute('cy'))]"
        )
        moved = MANY[int(trace.row[k - 1])]
        assert [x, y] == pytest.approx(
            desk.run("(studio, [x, y]) => studio.plots[0].toPixels(x, y)", moved[:2]), abs=0.1
        )
        assert desk.text(".caption").startswith(f"Update {k}: point {trace.row[k - 1] + 1} ")
    forward.click()  # at the end it stays
    assert frame_number(desk) == count
    desk.button("Step back").click()
    assert frame_number(desk) == count - 1
    desk.button("Close the run").click()
    known = mm.Perceptron().fit(*data_of(MANY))
    (boundary,) = desk.lines("boundary")
    assert is_on(boundary, np.ravel(known.coef_), float(known.intercept_[0]))


def test_a_run_is_played_paused_and_gone_through_by_keys(desk: StudioPage) -> None:
    desk.show(points=MANY, view=NARROW["view"]).choose("Perceptron")
    begin(desk, "perceptron")
    last = desk.run("(studio) => studio.timeline.last()")
    desk.button("Go to the end").click()
    assert frame_number(desk) == last
    slider = desk.page.get_by_label("Step", exact=True)
    slider.focus()
    desk.press("Home")
    assert frame_number(desk) == 0
    desk.press("ArrowRight", "ArrowRight")
    assert frame_number(desk) == 2
    desk.press("End")
    assert frame_number(desk) == last
    desk.press("Space")  # plays from the start
    desk.wait_for("(studio) => studio.timeline.playing && studio.timeline.index > 0")
    desk.press("Space")
    assert desk.run("(studio) => studio.timeline.playing") == 0
    paused = frame_number(desk)
    assert 0 < paused < last
    desk.page.get_by_label("Speed").select_option("4 ×")
    desk.button("Play").click()
    assert desk.button("Pause").is_visible()
    desk.wait_for("(studio) => !studio.timeline.playing")
    assert frame_number(desk) == last
    slider.focus()
    desk.press("Escape")
    assert not desk.page.locator(".player").is_visible()
    desk.page.get_by_label("Speed", exact=True).evaluate("(e) => (e.value = '1')")


@pytest.mark.parametrize(
    ("model", "kind"),
    [("SVC", "solver"), ("SVR", "solver"), ("OneClassSVM", "solver"), ("SVC", "path")],
)
def test_a_run_is_that_of_python(desk: StudioPage, model: str, kind: str) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose(model)
    begin(desk, kind)
    run = shown_run(desk)
    assert run == known_run(desk, model, kind)
    assert frame_number(desk) == run["start"]
    desk.button("Go to the end").click()
    assert desk.text(".caption") == run["frames"][-1]["caption"]
    assert desk.lines("curve" if model == "SVR" else "boundary")
