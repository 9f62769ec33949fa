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


def test_a_run_follows_a_dragged_point(desk: StudioPage) -> None:
    desk.show(points=MANY, view=NARROW["view"]).choose("Perceptron")
    begin(desk, "perceptron")
    x, y, _ = MANY[0]
    desk.drag((x, y), (x - 0.05, y + 0.3))
    assert desk.state["points"] != MANY
    assert shown_run(desk) == known_run(desk, "Perceptron", "perceptron")


@pytest.mark.parametrize("model", ["LinearSVC", "SVC", "NuSVC", "OneClassSVM", "SVR"])
def test_the_gap_of_a_solver_closes(desk: StudioPage, model: str) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose(model)
    begin(desk, "solver")
    run = shown_run(desk)
    assert run == known_run(desk, model, "solver")
    gaps, _tol = run["curves"]
    assert gaps["y"][-1] <= 1e-3
    assert min(gaps["y"]) == pytest.approx(gaps["y"][-1], rel=1e3)
    paths = desk.page.locator(".curve-chart .curve").evaluate_all(
        "all => all.map((e) => e.getAttribute('d')?.length ?? 0)"
    )
    assert max(paths) > 10
    desk.button("Go to the end").click()
    kind = "curve" if model == "SVR" else "boundary"
    end = desk.lines(kind)
    assert "The model that fit returns" in desk.text(".caption")
    desk.button("Close the run").click()
    assert end
    assert desk.lines(kind)
    if model == "LinearSVC":
        np.testing.assert_allclose(end, desk.lines(kind), atol=1e-6)


def make_machine(model: str, C: float) -> Any:
    if model == "LinearSVC":
        return mm.LinearSVC(C=C, tol=1e-8)
    return mm.SVC(C=C, kernel=mm.kernels.RBF(1.0), tol=1e-10)


@pytest.mark.parametrize("model", ["LinearSVC", "SVC"])
def test_duals_along_c_are_those_of_python(desk: StudioPage, model: str) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose(model)
    begin(desk, "path")
    run = shown_run(desk)
    assert run["frames"][run["start"]]["x"] == 1.0
    assert frame_number(desk) == run["start"]
    X, y = data_of(OVERLAPPING)
    duals = {c["name"]: c for c in run["curves"] if c["kind"] == "dual"}
    assert len(duals) >= 4
    ends = run["frames"][0]["x"], run["frames"][-1]["x"]
    for C in np.geomspace(*ends, 4)[:-1].tolist():
        exact = np.ravel(make_machine(model, C).fit(X, y).alpha_)
        for name, curve in duals.items():
            row = int(name.removeprefix("point ")) - 1
            drawn = np.interp(C, curve["x"], curve["y"])  # linear between breakpoints
            assert drawn == pytest.approx(abs(exact[row]), abs=2e-5 * C), (name, C)
    for index in (0, run["start"], len(run["frames"]) - 1):
        desk.page.get_by_label("Step", exact=True).fill(str(index))
        C = run["frames"][index]["x"]
        exact = np.abs(np.ravel(make_machine(model, C).fit(X, y).alpha_)) / C
        rings = desk.page.locator(".rings .ring").evaluate_all(
            "all => all.map((e) => [Number(e.dataset.row), Number(e.dataset.alpha)])"
        )
        for row, share in rings:
            assert share == pytest.approx(exact[row], abs=2e-3)


def test_the_c_of_the_path_is_used(desk: StudioPage) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose("LinearSVC")
    begin(desk, "path")
    desk.page.get_by_label("Step", exact=True).fill("5")
    C = desk.run("(studio) => studio.timeline.run.frames[5].x")
    frame = desk.run("(studio) => studio.timeline.run.frames[5]")
    desk.page.get_by_role("button", name="Set the slider of the model to this C").click()
    desk.wait()
    assert desk.state["panes"][0]["parameters"]["C"] == C
    assert frame_number(desk) == 5
    desk.button("Close the run").click()
    (boundary,) = desk.wait().lines("boundary")
    assert is_on(boundary, np.array(frame["weights"]), frame["intercept"])


def test_a_press_on_the_curve_goes_there(desk: StudioPage) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose("LinearSVC")
    begin(desk, "path")
    chart = desk.page.locator(".curve-chart svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    for share in (0.3, 0.8):
        place = share * box["width"]
        desk.page.mouse.click(box["x"] + place, box["y"] + 0.5 * box["height"])
        wanted = desk.run("(studio, place) => studio.timeline.curve.across.value(place)", place)
        frames = desk.run("(studio) => studio.timeline.run.frames.map((frame) => frame.x)")
        log = desk.run("(studio) => studio.timeline.curve.across.log")
        distances = np.abs(np.log(np.array(frames) / wanted) if log else np.array(frames) - wanted)
        assert frame_number(desk) == int(np.argmin(distances))


def test_reduced_motion_plays_calmly(desk: StudioPage) -> None:
    desk.page.emulate_media(reduced_motion="reduce")
    desk.show(points=MANY, view=NARROW["view"]).choose("Perceptron")
    begin(desk, "perceptron")
    rate, _stride = desk.run("(studio) => (studio.timeline.speed = 1, studio.timeline.pace())")
    assert rate <= 1
    moving = desk.page.evaluate(
        "() => document.getAnimations().filter((a) => a.playState === 'running').length"
    )
    assert moving == 0
    desk.page.emulate_media(reduced_motion="no-preference")
