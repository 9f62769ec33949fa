"""Points lifted into three dimensions."""

import numpy as np
import pytest

from maxmargin.studio import lifts, presets
from tests.studio.in_browser.conftest import StudioPage
from tests.support import studio_reference as reference

MADE = presets.make("circles", {"noise": 0.05, "points": 60})
CIRCLES = [list(p) for p in zip(MADE["x"], MADE["y"], MADE["label"], strict=True)]


def lift(studio: StudioPage, kind: str) -> None:
    studio.page.get_by_label("Lift into three dimensions").select_option(kind)
    studio.wait()


def is_painted(studio: StudioPage) -> bool:
    """Tell whether there is anything on the canvas."""
    return bool(
        studio.page.locator(".lift canvas").evaluate(
            """(canvas) => {
              const { width, height } = canvas;
              const context = new OffscreenCanvas(width, height).getContext("2d");
              context.drawImage(canvas, 0, 0);
              return context.getImageData(0, 0, width, height).data.some((value) => value > 0);
            }"""
        )
    )


@pytest.mark.parametrize("kind", ["circle", "gaussian"])
def test_a_lift_is_that_of_python(desk: StudioPage, kind: str) -> None:
    desk.show(points=CIRCLES, view=MADE["view"])
    lift(desk, kind)
    reply = desk.run("(studio) => studio.lift.reply")
    view = desk.run("(studio) => studio.plots[0].seen()")
    scene = reference.make_scene(CIRCLES, view, "SVC")
    known = lifts.lift(scene, kind)
    assert reference.strip(reply) == reference.strip(known)
    z, w, b = np.array(reply["z"]), np.array(reply["plane"]["w"]), reply["plane"]["b"]
    sides = np.column_stack([reply["x"], reply["y"], z]) @ w + b
    labels = np.array(reply["label"])
    assert len(set(zip((sides > 0).tolist(), labels.tolist(), strict=True))) == 2  # separated
    desk.wait_for("(studio) => studio.lift.risen === 1")
    assert is_painted(desk)
    facts = desk.text(".lift .facts")
    assert all(name in facts for name, _ in known["facts"])


def test_the_plane_cuts_a_circle_out_of_the_plot(desk: StudioPage) -> None:
    desk.show(points=CIRCLES, view=MADE["view"])
    lift(desk, "circle")
    cx, cy, radius = desk.page.locator(".lift-cut circle").evaluate(
        "(e) => ['cx', 'cy', 'r'].map((name) => Number(e.getAttribute(name)))"
    )
    data = np.array(CIRCLES)
    inside = np.hypot(data[:, 0] - cx, data[:, 1] - cy) < radius
    assert len(set(zip(inside.tolist(), data[:, 2].tolist(), strict=True))) == 2
    reply = desk.run("(studio) => studio.lift.reply")
    angle = np.linspace(0, 6, 7)
    rim = np.column_stack([cx + radius * np.cos(angle), cy + radius * np.sin(angle)])
    # On the circle, the height of the paraboloid is that of the plane.
    points = np.column_stack([reply["x"], reply["y"], np.ones(len(data))])
    squares = np.sum(points[:, :2] ** 2, axis=1)
    offset, *_ = np.linalg.lstsq(points, np.array(reply["z"]) - squares, rcond=None)
    heights = np.sum(rim**2, axis=1) + np.column_stack([rim, np.ones(7)]) @ offset
    w, b = np.array(reply["plane"]["w"]), reply["plane"]["b"]
    np.testing.assert_allclose(np.column_stack([rim, heights]) @ w + b, 0, atol=1e-6)


def test_a_lift_is_turned_by_mouse_and_keys(desk: StudioPage) -> None:
    desk.show(points=CIRCLES, view=MADE["view"])
    lift(desk, "circle")
    camera = "(studio) => studio.lift.camera"
    start = desk.run(camera)
    box = desk.page.locator(".lift canvas").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    desk.page.mouse.move(*middle)
    desk.page.mouse.down()
    desk.page.mouse.move(middle[0] + 80, middle[1] + 20, steps=3)
    desk.page.mouse.up()
    turned = desk.run(camera)
    assert turned["turn"] > start["turn"]
    assert turned["tilt"] > start["tilt"]
    desk.page.mouse.wheel(0, -120)
    desk.wait_for("(studio, zoom) => studio.lift.camera.zoom > zoom", turned["zoom"])
    desk.page.locator(".lift canvas").focus()
    desk.press("ArrowLeft", "ArrowUp", "-")
    assert desk.run(camera)["turn"] < turned["turn"]
    desk.press("Home")
    assert desk.run(camera) == start
    assert is_painted(desk)


def test_a_lift_follows_the_points_and_goes_away(desk: StudioPage) -> None:
    desk.show(points=CIRCLES, view=MADE["view"])
    lift(desk, "circle")
    x, y, _ = CIRCLES[0]
    desk.drag((x, y), (x + 0.1, y + 0.1))
    reply = desk.run("(studio) => studio.lift.reply")
    assert [reply["x"][0], reply["y"][0]] == desk.state["points"][0][:2]
    lift(desk, "")
    assert not desk.page.locator(".lift").is_visible()
    assert desk.page.locator(".lift-cut").count() == 0
    assert desk.lines("boundary")
