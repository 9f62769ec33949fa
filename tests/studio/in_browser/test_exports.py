"""What is taken away from the page: files that stand alone, code that runs, links without token."""

import csv
import json
import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin.studio import tables
from tests.studio.in_browser.conftest import OpenPage, StudioPage

POINTS = [[-1.5, 0.25, 0], [-0.5, -1.0, 0], [1 / 3, 0.1, 1], [1.25, 1e-7, 1], [0.1, 0.2, 0]]
NAMES = ['a "quoted", name', " with spaces ", "C", "D", "E"]
VIEW = [-3.0, 3.0, -2.0, 2.0]
BOTH = [
    {"model": "SVC", "parameters": {"C": 2.0}, "kernel": "RBF(gamma)"},
    {"model": "LinearSVC", "parameters": {"C": 0.5}, "kernel": ""},
]
SVG = "{http://www.w3.org/2000/svg}"


def choose(studio: StudioPage, item: str) -> None:
    studio.button("Export").click()
    studio.page.get_by_role("menuitem", name=item, exact=True).click()


def save(studio: StudioPage, item: str, folder: Path) -> Path:
    """Choose an item that saves a file, and return the file."""
    with studio.page.expect_download() as begun:
        choose(studio, item)
    file = folder / str(begun.value.suggested_filename)
    begun.value.save_as(file)
    return file


def numbers(text: str | None) -> list[float]:
    return [float(number) for number in re.findall(r"-?[\d.]+(?:e-?\d+)?", text or "")]


def test_the_menu_is_used_by_keyboard(desk: StudioPage) -> None:
    page = desk.page
    focused = "() => document.activeElement.textContent"
    page.get_by_role("button", name="Export").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.textContent === 'Copy link'")
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused) == "Save CSV"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "Copy as Python"
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.activeElement.textContent === 'Export'")
    assert page.locator(".menu").is_hidden()
    page.wait_for_selector(".export > button[aria-expanded=false]")  # told by an event that follows


def test_a_table_has_all_digits_and_is_read_back(desk: StudioPage, tmp_path: Path) -> None:
    desk.show(points=POINTS, names=NAMES)
    file = save(desk, "Save CSV", tmp_path)
    assert file.name == "maxmargin-points.csv"
    with file.open(newline="", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    assert header == ["x1", "x2", "label"]
    assert [[float(x), float(y), NAMES.index(name)] for x, y, name in rows] == POINTS
    read = tables.read(file.read_text(encoding="utf-8"))
    assert len(read["x"]) == len(POINTS)


def test_an_svg_stands_alone_with_the_lines_of_both_panes(desk: StudioPage, tmp_path: Path) -> None:
    desk.show(points=POINTS, view=VIEW, panes=BOTH)
    file = save(desk, "Save SVG", tmp_path)
    assert file.name == "maxmargin-SVC-LinearSVC.svg"
    text = file.read_text(encoding="utf-8")
    root = ET.fromstring(text)
    assert "class=" not in text
    assert "style" not in text
    assert "var(" not in text
    images = [image.get("href", "") for image in root.iter(f"{SVG}image")]
    assert len(images) == 2
    assert all(image.startswith("data:image/png;base64,") for image in images)
    # The last polyline with two points is the straight boundary or one of its margins.
    drawn = [numbers(line.get("points")) for line in root.iter(f"{SVG}polyline")]
    (boundary,) = desk.lines("boundary", 1)
    ends = np.reshape(boundary, (-1, 2)).tolist()
    pixels = desk.run(
        "(studio, ends) => ends.flatMap(([x, y]) => studio.plots[1].toPixels(x, y))", ends
    )
    assert any(np.allclose(line, pixels, atol=1e-3) for line in drawn if len(line) == len(pixels))


def test_a_png_has_twice_the_pixels(desk: StudioPage, tmp_path: Path) -> None:
    desk.show(points=POINTS, view=VIEW)
    file = save(desk, "Save PNG", tmp_path)
    assert file.name == "maxmargin-SVC.png"
    size = desk.run("(studio) => studio.plots[0].size")
    assert list(struct.unpack(">II", file.read_bytes()[16:24])) == [2 * side for side in size]


def copied(studio: StudioPage, item: str) -> str:
    """Choose an item that copies a text, and return what is in the clipboard."""
    studio.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    choose(studio, item)
    studio.page.wait_for_selector("dialog .status:not(:empty)")
    text: str = studio.page.evaluate("() => navigator.clipboard.readText()")
    assert text == studio.page.locator("dialog textarea").input_value()
    studio.page.keyboard.press("Escape")
    studio.page.wait_for_function("() => !document.querySelector('dialog')")
    return text


def test_code_draws_what_is_seen(desk: StudioPage) -> None:
    desk.show(points=POINTS, view=VIEW, panes=BOTH)
    code = copied(desk, "Copy as Python")
    compile(code, "copied", "exec")
    assert "SVC(C=2.0" in code
    assert "LinearSVC(C=0.5" in code
    desk.show(points=[])
    choose(desk, "Copy as Python")
    desk.page.wait_for_selector(".notice:not([hidden])")
    assert "no points" in desk.text(".notice")


def test_a_link_has_no_token_and_is_pasted_into_any_studio(
    desk: StudioPage, open_page: OpenPage
) -> None:
    desk.show(points=POINTS, names=NAMES, view=VIEW, panes=BOTH)
    link = copied(desk, "Copy link")
    assert "token" not in link
    other = open_page()
    paste(other, link)
    other.wait_for("(studio, points) => studio.store.state.points.length === points", len(POINTS))
    expected = {**desk.state, "names": [name.strip() for name in NAMES]}
    assert other.wait().state == expected
    paste(other, "x,y,class\n0,0,no\n1,1,yes\n0,1,no\n")
    other.wait_for("(studio) => studio.store.state.points.length === 3")
    assert other.wait().state["names"][:2] == ["no", "yes"]


def paste(studio: StudioPage, text: str) -> None:
    studio.page.evaluate(
        """(text) => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", text);
          const options = { clipboardData, bubbles: true, cancelable: true };
          document.querySelector(".scene").dispatchEvent(new ClipboardEvent("paste", options));
        }""",
        text,
    )


# ------------------------------------------------------------------- links of strangers


def fragment_of(studio: StudioPage, state: Any) -> str:
    """Return a state, or any JSON, as the fragment of a link."""
    packed: str = studio.page.evaluate(
        """async (text) => {
          const packing = new CompressionStream("deflate-raw");
          const stream = new Blob([text]).stream().pipeThrough(packing);
          const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
          return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
        }""",
        state if isinstance(state, str) else json.dumps(state),
    )
    return "#s=" + packed.replace("+", "-").replace("/", "_").rstrip("=")


@pytest.mark.parametrize(
    "state", ["no JSON", "[]", "3", "null", '{"version": 99}', "[" * 3_000_000], ids=lambda s: s[:9]
)
def test_a_link_that_cannot_be_read_says_so(desk: StudioPage, state: str) -> None:
    desk.show(points=POINTS)
    desk.run("(studio, link) => studio.openLink(link)", fragment_of(desk, state))
    assert "The link cannot be read" in desk.text(".notice")
    assert desk.state["points"] == POINTS


def test_a_hostile_link_holds_only_what_the_page_would_make(desk: StudioPage) -> None:
    state = {
        "points": [[0, 0, 0], [1e7, 0, 0], [0, 0, 5], [0, 0, 0.5], ["0", 0, 0], [1, 2], None],
        "names": ["x" * 1000, {"a": 1}, None, 7],
        "view": [1e6, 1e6, 0, 1],
        "panes": [
            {"model": "constructor"},
            {"model": "SVC", "parameters": {"C": 1e5, "toString": 1, "degree": 2.6}, "kernel": 3},
        ],
        "show": {"field": "yes", "margins": False, "more": True},
        "lift": "__proto__",
    }
    desk.run("(studio, link) => studio.openLink(link)", fragment_of(desk, state))
    assert "6 points of the link are left out" in desk.text(".notice")
    read = desk.wait().state
    assert read["points"] == [[0, 0, 0]]
    assert read["names"] == ["x" * 60, "B", "C", "7", "E"]
    assert read["view"] == VIEW
    expected = {"model": "SVC", "parameters": {"C": 1e4, "degree": 3}, "kernel": ""}
    assert read["panes"] == [expected]
    shown = {"field": True, "margins": False, "slack": True, "separability": False}
    assert read["show"] == shown
    assert read["lift"] is None
