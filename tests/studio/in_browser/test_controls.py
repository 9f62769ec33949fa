"""Every control does what it says: the page shows what Python fits with these values."""

import re
from pathlib import Path
from typing import Any

import pytest

from maxmargin.studio import expressions, presets
from maxmargin.studio.catalogue import MODELS, SLIDERS
from tests.studio.in_browser.conftest import OpenPage, StudioPage
from tests.studio.in_browser.test_page import OVERLAPPING, SEPARABLE, VIEW
from tests.support import studio_reference as reference

# A value for each slider, typed and taken as it is.
VALUES = {
    "C": 0.37, "gamma": 2.5, "degree": 2, "coef0": 0.5, "nu": 0.42, "epsilon": 0.05, "eta": 0.3,
    "margin": 0.7, "epochs": 7, "label_noise": 0.1, "component": 2,
}  # fmt: skip


def known_picture(studio: StudioPage, *wants: str, pane: int = 0, **choice: Any) -> dict[str, Any]:
    """Return what Python draws with the points and in the part of the plane that the page shows."""
    view, grid = studio.run(
        "(studio, pane) => [studio.plots[pane].seen(), studio.plots[pane].cells()]", pane
    )
    return reference.draw(reference.make_scene(studio.state["points"], view, **choice), grid, wants)


def field_of(studio: StudioPage, name: str) -> Any:
    """Return the field for the exact value of a slider of the model."""
    return studio.page.locator(".models").get_by_label(f"{SLIDERS[name].symbol}, exact value")


# ------------------------------------------------------------------------------------- models


@pytest.mark.parametrize("model", MODELS)
def test_each_model_shows_what_python_finds(desk: StudioPage, model: str) -> None:
    desk.show(points=SEPARABLE, view=VIEW)
    desk.page.get_by_role("combobox", name="Model", exact=True).select_option(MODELS[model].title)
    known = known_picture(desk, model=model)
    picture = desk.picture()
    assert reference.strip(picture) == known
    assert known["lines"] or model == "KernelPCA"
    shown = desk.text(".found dl.facts")
    assert all(name in shown for name, _ in known["facts"])
    assert desk.page.locator(".lines .line").count() == len(known["lines"])
    proof = desk.page.locator(".proof")
    assert proof.is_visible() == (known["certificate"] is not None)
    if known["certificate"]:
        assert proof.locator(".sentence").inner_text() == known["certificate"]["sentence"]
        assert ("✓ Proved" in proof.inner_text()) == known["certificate"]["holds"]
    assert desk.text(".model .help") == MODELS[model].help


@pytest.mark.parametrize("model", ["SVC", "SVR", "Perceptron", "KernelPCA"])
def test_each_slider_is_a_parameter_of_the_model(desk: StudioPage, model: str) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose(model)
    shown = desk.page.locator(".models .slider").count()
    names = [*MODELS[model].sliders, *expressions.names_in(MODELS[model].kernel or "Linear()")]
    assert shown == len(names)
    changed: dict[str, float] = {}
    for name in names:
        before = desk.picture()
        field_of(desk, name).fill(str(VALUES[name]))
        desk.press("Enter")
        changed[name] = VALUES[name]
        picture = reference.strip(desk.picture())
        assert picture == known_picture(desk, model=model, parameters=changed), name
        assert desk.picture()["seq"] > before["seq"]
    assert desk.state["panes"][0]["parameters"] == changed


def test_a_slider_is_moved_by_hand_and_by_keys_and_undone_at_once(desk: StudioPage) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose("LinearSVC")
    slider = desk.page.locator(".models").get_by_label("C", exact=True)
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    desk.page.mouse.move(box["x"] + box["width"] * 3 / 7, middle)  # at 1, its value
    desk.page.mouse.down()
    desk.page.mouse.move(box["x"] + 0.9 * box["width"], middle, steps=5)
    desk.page.mouse.up()
    moved = desk.wait().state["panes"][0]["parameters"]["C"]
    assert moved > 100
    assert reference.strip(desk.picture()) == known_picture(
        desk, model="LinearSVC", parameters={"C": moved}
    )
    desk.button("Undo").click()
    assert desk.wait().state["panes"][0]["parameters"] == {}
    slider.focus()
    desk.press("ArrowRight")
    assert desk.state["panes"][0]["parameters"]["C"] == pytest.approx(10**0.1, rel=1e-2)


def test_a_second_model_has_its_own_controls(desk: StudioPage) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose("LinearSVC")
    compare = desk.page.get_by_role("button", name="second model")
    compare.click()
    desk.wait()
    assert compare.get_attribute("aria-pressed") == "true"
    right = desk.page.get_by_role("region", name="Model 2")
    right.get_by_role("combobox", name="Model", exact=True).select_option("Perceptron")
    right.get_by_label("η, exact value").fill("0.5")
    desk.press("Enter")
    known = known_picture(desk, pane=1, model="Perceptron", parameters={"eta": 0.5})
    assert reference.strip(desk.picture(1)) == known
    assert reference.strip(desk.picture(0)) == known_picture(desk, model="LinearSVC")
    compare.click()
    desk.wait()
    assert desk.page.locator(".scene").count() == 1
    assert [pane["model"] for pane in desk.state["panes"]] == ["LinearSVC"]


# ------------------------------------------------------------------------------------ kernels


@pytest.mark.parametrize("name", [kernel["name"] for kernel in expressions.describe()])
def test_each_kernel_of_the_menu_is_drawn(desk: StudioPage, name: str) -> None:
    desk.show(points=SEPARABLE, view=VIEW)
    desk.page.get_by_label("Choose a kernel").select_option(name)
    desk.wait()
    (call,) = [kernel["call"] for kernel in expressions.describe() if kernel["name"] == name]
    assert desk.state["panes"][0]["kernel"] in (call, "" if call == "RBF(gamma)" else call)
    assert reference.strip(desk.picture()) == known_picture(desk, model="SVC", kernel=call)


@pytest.mark.parametrize("wrong", ["RBF(", "__import__('os')", ""])
def test_a_wrong_kernel_is_explained_and_nothing_changes(desk: StudioPage, wrong: str) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose("SVC", "Linear()")
    before = desk.picture()
    lines = desk.lines("boundary")
    sent = desk.run("(studio) => studio.link.channels.get('fit0').sent")
    field = desk.page.get_by_label("Expression of the kernel")
    field.fill(wrong)
    desk.page.wait_for_selector(".kernel .message.error")
    assert "The picture still has Linear()." in desk.text(".kernel .message")
    assert field.get_attribute("aria-invalid") == "true"
    desk.wait()
    assert desk.picture() == before
    assert desk.lines("boundary") == lines
    assert desk.run("(studio) => studio.link.channels.get('fit0').sent") == sent
    field.press("Escape")
    assert field.input_value() == "Linear()"
    assert desk.text(".kernel .message") == ""


# ------------------------------------------------------------------------------------- points


@pytest.mark.parametrize("name", presets.PRESETS)
def test_each_example_brings_its_points(desk: StudioPage, name: str) -> None:
    desk.page.get_by_role("combobox", name="Example").select_option(name)
    desk.wait()
    known = presets.make(name)
    assert desk.state["points"] == [
        list(point) for point in zip(known["x"], known["y"], known["label"], strict=True)
    ]
    assert desk.state["names"][: len(known["names"])] == known["names"]
    assert desk.state["view"] == list(known["view"])
    wanted = presets.PRESETS[name].model
    assert desk.state["panes"][0]["model"] == (wanted or "SVC")
    assert desk.page.locator(".points .point").count() == len(known["x"])


TABLE = "height,weight,kind,age\n1.5,2.5,cat,3\n2.5,3.5,dog,1\n3.5,1.5,cat,2\n0.5,4.5,dog,7\n"


def test_a_table_is_opened_and_its_columns_chosen(desk: StudioPage, tmp_path: Path) -> None:
    path = tmp_path / "pets.csv"
    path.write_text(TABLE)
    desk.page.get_by_label("CSV file", exact=True).set_input_files(path)
    desk.wait_for("(studio) => studio.store.state.points.length === 4")
    card = desk.page.get_by_role("region", name="Points")
    for title, column in (("Across", "height"), ("Up", "age"), ("Class", "kind")):
        card.get_by_label(title).select_option(column)
        desk.wait()
    points = desk.state["points"]
    assert desk.state["names"][:2] == ["cat", "dog"]
    assert points == [[1.5, 3, 0], [2.5, 1, 1], [3.5, 2, 0], [0.5, 7, 1]]
    card.get_by_label("Class").select_option("none")
    assert {label for *_, label in desk.wait().state["points"]} == {0}


# -------------------------------------------------------------------------------- what is shown


def test_boxes_show_and_hide(desk: StudioPage) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose("LinearSVC")
    parts = {
        "Score": "canvas.field",
        "Margin": ".lines .margin",
        "Slack": ".slack line",
    }
    for name, part in parts.items():
        shown = desk.page.locator(f"{part}:not([hidden])")
        assert shown.count() > 0
        desk.page.get_by_label(name, exact=True).uncheck()
        desk.wait()
        assert shown.count() == 0
        desk.page.get_by_label(name, exact=True).check()


def test_light_and_dark_are_chosen_and_remembered(open_page: OpenPage) -> None:
    studio = open_page(color_scheme="light")
    back = "(studio) => getComputedStyle(studio.root).backgroundColor"

    def is_dark() -> bool:
        return sum(map(int, re.findall(r"\d+", studio.run(back))[:3])) < 384

    assert not is_dark()
    studio.button("Light or dark").click()
    assert is_dark()
    studio.page.reload()
    studio.wait()
    assert is_dark()
    studio.button("Light or dark").click()
    assert not is_dark()
