"""Every control does what it says: the page shows what Python fits with these values."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.studio import expressions, presets
from maxmargin.studio.catalogue import MODELS, SLIDERS
from tests.studio.in_browser.conftest import OpenPage, StudioPage
from tests.studio.in_browser.test_page import OVERLAPPING, SEPARABLE, VIEW
from tests.support import studio_reference as reference

THREE = [*OVERLAPPING, [0.0, -1.8, 2], [0.4, -1.5, 2], [-0.3, -1.4, 2]]
# A value for each slider, typed and taken as it is.
VALUES = {
    "C": 0.37, "gamma": 2.5, "degree": 2, "coef0": 0.5, "nu": 0.42, "epsilon": 0.05, "eta": 0.3,
    "margin": 0.7, "epochs": 7, "label_noise": 0.1, "component": 2,
}  # fmt: skip
WITH_SLIDERS = [name for name, model in MODELS.items() if model.sliders or model.kernel]


def known_picture(studio: StudioPage, *wants: str, pane: int = 0, **choice: Any) -> dict[str, Any]:
    """Return what Python draws with the points and in the part of the plane that the page shows."""
    view, grid = studio.run(
        "(studio, pane) => [studio.plots[pane].seen(), studio.plots[pane].cells()]", pane
    )
    return reference.draw(reference.make_scene(studio.state["points"], view, **choice), grid, wants)


def facts_of(studio: StudioPage, pane: int = 0) -> list[list[str]]:
    """Return the numbers that can be read beside a picture."""
    found = (
        studio.page.locator(".found dl.facts")
        .nth(pane)
        .evaluate("list => [...list.children].map((e) => [e.tagName, e.textContent])")
    )
    facts: list[list[str]] = []
    for tag, text in found:
        if tag == "DT":
            facts.append([text])
        elif text:
            facts[-1].append(text)
    return [[name, ": ".join(rest)] for name, *rest in facts]


def field_of(studio: StudioPage, name: str) -> Any:
    """Return the field for the exact value of a slider of the model."""
    return studio.page.locator(".models").get_by_label(f"{SLIDERS[name].symbol}, exact value")


def kernel_field(studio: StudioPage) -> Any:
    return studio.page.get_by_label("Expression of the kernel")


# ------------------------------------------------------------------------------------- models


@pytest.mark.parametrize("model", MODELS)
def test_each_model_shows_what_python_finds(desk: StudioPage, model: str) -> None:
    desk.show(points=SEPARABLE, view=VIEW)
    desk.page.get_by_role("combobox", name="Model", exact=True).select_option(MODELS[model].title)
    known = known_picture(desk, model=model)
    picture = desk.picture()
    assert reference.strip(picture) == known
    assert known["lines"] or model == "KernelPCA"
    assert facts_of(desk) == known["facts"]
    assert desk.page.locator(".lines .line").count() == len(known["lines"])
    proof = desk.page.locator(".proof")
    assert proof.is_visible() == (known["certificate"] is not None)
    if known["certificate"]:
        assert proof.locator(".sentence").inner_text() == known["certificate"]["sentence"]
        assert ("✓ Proved" in proof.inner_text()) == known["certificate"]["holds"]
    assert desk.text(".model .help") == MODELS[model].help


@pytest.mark.parametrize("model", WITH_SLIDERS)
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
    desk.press("PageDown")
    assert desk.state["panes"][0]["parameters"]["C"] == pytest.approx(10**-0.9, rel=1e-2)


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
    desk.drag((0.7, 1.6), (0.2, 1.2))  # points are those of both
    assert reference.strip(desk.picture(0)) == known_picture(desk, model="LinearSVC")
    known = known_picture(desk, pane=1, model="Perceptron", parameters={"eta": 0.5})
    assert reference.strip(desk.picture(1)) == known
    compare.click()
    desk.wait()
    assert desk.page.locator(".scene").count() == 1
    assert [pane["model"] for pane in desk.state["panes"]] == ["LinearSVC"]


# ------------------------------------------------------------------------------------ kernels


@pytest.mark.parametrize("name", [kernel["name"] for kernel in expressions.describe()])
def test_each_kernel_of_the_menu_is_drawn(desk: StudioPage, name: str) -> None:
    positive = [[x + 2, y + 2, label] for x, y, label in SEPARABLE]
    desk.show(points=positive, view=[0, 4, 0, 4])
    desk.page.get_by_label("Choose a kernel").select_option(name)
    desk.wait()
    (call,) = [kernel["call"] for kernel in expressions.describe() if kernel["name"] == name]
    assert desk.state["panes"][0]["kernel"] in (call, "" if call == "RBF(gamma)" else call)
    assert reference.strip(desk.picture()) == known_picture(desk, model="SVC", kernel=call)


@pytest.mark.parametrize(
    "wrong", ["RBF(", "RBF(gamma) +", "Foo()", "__import__('os')", "RBF(delta)", "RBF(-1)", ""]
)
def test_a_wrong_kernel_is_explained_and_nothing_changes(desk: StudioPage, wrong: str) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose("SVC", "Linear()")
    before = desk.picture()
    lines = desk.lines("boundary")
    sent = desk.run("(studio) => studio.link.channels.get('fit0').sent")
    field = kernel_field(desk)
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


def test_an_example_follows_its_sliders_and_is_drawn_again(desk: StudioPage) -> None:
    desk.page.get_by_role("combobox", name="Example").select_option("moons")
    desk.wait()
    card = desk.page.get_by_role("region", name="Points")
    card.get_by_label("noise, exact value").fill("0.4")
    desk.press("Enter")
    parameters = presets.PRESETS["moons"].sliders
    values = {key: slider.default for key, slider in parameters.items()} | {"noise": 0.4}
    for seed in (0, 1):
        known = presets.make("moons", values, seed)
        drawn = np.array(desk.state["points"])
        np.testing.assert_array_equal(
            drawn, np.column_stack([known["x"], known["y"], known["label"]])
        )
        desk.page.get_by_role("button", name="other random numbers").click()
        desk.wait()
    desk.button("Undo").click()
    assert np.array_equal(np.array(desk.wait().state["points"]), drawn)


def test_clear_takes_all_points_away(desk: StudioPage) -> None:
    desk.show(points=SEPARABLE)
    desk.button("Delete all points").click()
    assert desk.wait().state["points"] == []
    assert desk.button("Delete all points").is_disabled()
    assert desk.lines("boundary") == []
    assert desk.text(".found .message") == "Add some points."
    desk.button("Undo").click()
    assert desk.wait().state["points"] == SEPARABLE


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
        assert desk.page.locator(part).first.is_visible() or name == "Slack"
        box = desk.page.get_by_label(name, exact=True)
        shown = desk.page.locator(f"{part}:not([hidden])")
        assert shown.count() > 0
        box.uncheck()
        desk.wait()
        assert shown.count() == 0
        box.check()
        desk.wait()
        assert shown.count() > 0


@pytest.mark.parametrize("separable", [True, False])
def test_separability_has_a_witness(desk: StudioPage, separable: bool) -> None:
    points = SEPARABLE if separable else OVERLAPPING
    desk.show(points=points, view=VIEW).choose("LinearSVC")
    assert desk.page.locator(".witness > *").count() == 0
    desk.page.get_by_label("Separable?").check()
    witness = desk.picture()["witness"]
    assert desk.text(".witness-sentence") == witness["sentence"]
    known = mm.separate(np.array(points)[:, :2], np.array(points)[:, 2].astype(int))
    assert known.separable is separable
    if separable:
        assert witness["margin"] == pytest.approx(known.margin, rel=1e-6)
        assert desk.page.locator(".witness .separator").count() == 1
    else:
        assert desk.page.locator(".witness .hull").count() == 2
        for members in witness["sets"]:  # the same point is a mean of both sets
            rows, weights = zip(*members, strict=True)
            assert sum(weights) == pytest.approx(1)
            mean = np.array(weights) @ np.array(points)[list(rows), :2]
            assert mean == pytest.approx(witness["point"], abs=1e-6)


def test_the_diagnosis_is_that_of_python(desk: StudioPage) -> None:
    points = [[x + dx, y, label] for x, y, label in OVERLAPPING for dx in (0.0, 0.1, 0.2)]
    desk.show(points=points, view=VIEW)
    desk.page.get_by_role("button", name="Diagnose").click()
    desk.page.wait_for_selector(".diagnosis .verdict")
    data = np.array(points)
    known = mm.diagnose(data[:, :2], data[:, 2].astype(int), max_time=10)
    verdict = desk.text(".diagnosis .verdict").lower()
    assert str(known.verdict).replace("_", " ").lower() in verdict
    desk.drag((-1.5, 0.4), (-1.6, 0.4))
    assert desk.page.get_by_text("The points have changed since.").is_visible()


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


def test_fit_view_shows_all_points(desk: StudioPage) -> None:
    desk.show(points=[[x + 50, 10 * y, label] for x, y, label in SEPARABLE], view=VIEW)
    desk.button("Show all points").click()
    desk.wait()
    left, right, bottom, top = desk.run("(studio) => studio.plots[0].seen()")
    data = np.array(desk.state["points"])
    assert left < data[:, 0].min() < data[:, 0].max() < right
    assert bottom < data[:, 1].min() < data[:, 1].max() < top


def test_tools_and_classes_are_chosen(desk: StudioPage) -> None:
    desk.show(points=SEPARABLE, view=VIEW)
    desk.page.get_by_role("button", name="Move the view").click()
    desk.drag((0.0, 0.0), (1.0, 0.5))
    assert desk.state["points"] == SEPARABLE
    assert desk.state["view"] == pytest.approx([-4, 2, -2.5, 1.5], abs=0.02)
    desk.page.get_by_role("button", name="Draw and drag").click()
    for label in range(5):
        desk.page.get_by_role("button", name="Draw points of class").nth(label).click()
        desk.click(-2.0 + 0.5 * label, -1.8)
    assert [label for *_, label in desk.state["points"][-5:]] == [0, 1, 2, 3, 4]


def test_what_the_symbols_mean_is_in_the_legend(desk: StudioPage) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose("LinearSVC")
    desk.page.get_by_text("What do I see?").click()
    legend = desk.text("details.symbols dl")
    for text in ("Boundary between the classes", "Margin lines", "on the margin", "Slack"):
        assert text in legend
    desk.choose("Perceptron", epochs=1)
    assert "Margin lines" not in desk.text("details.symbols dl")
    desk.page.get_by_text("What do I see?").click()
