"""Points lifted into three dimensions."""

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
    desk.wait_for("(studio) => studio.lift.risen === 1")
    assert is_painted(desk)
    facts = desk.text(".lift .facts")
    assert all(name in facts for name, _ in known["facts"])


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
