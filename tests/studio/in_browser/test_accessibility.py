"""The page for those who do not see it, see it faintly, or have no mouse."""

from typing import Any

import pytest

from tests.studio.in_browser.conftest import OpenPage, StudioPage
from tests.studio.in_browser.test_page import OVERLAPPING, VIEW

NAMED = {
    *("button", "textbox", "slider", "combobox", "checkbox", "radio", "spinbutton", "menuitem"),
    *("application", "toolbar", "dialog", "alertdialog", "menu", "group"),
}

# Returns texts that cannot be read well: their colours, and the contrast between them.
CONTRASTS = """() => {
  const parse = (text) => {
    const found = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith("color(") ? 255 : 1;
    return [...found.slice(0, 3).map((value) => value * scale), found[3] ?? 1];
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((value, k) => a * value + (1 - a) * below[k]);
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const light = (rgb) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const poor = [];
  let count = 0;
  const texts = ".mm-studio *:not(svg *):not(option):not(optgroup)";
  for (const element of document.querySelectorAll(texts)) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const field = /^(INPUT|SELECT|TEXTAREA)$/.test(element.tagName) && element.type !== "range";
    if (!(own || field) || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest(".visually-hidden, [aria-hidden=true], :disabled")) continue;
    const style = getComputedStyle(element);
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) {
      opacity *= Number(getComputedStyle(at).opacity);
    }
    const below = background(element);
    const [r, g, b, a] = parse(style.color);
    const text = over([r, g, b, a * opacity], below);
    const [dark, bright] = [light(text), light(below)].sort((x, y) => x - y);
    const contrast = (bright + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    count += 1;
    if (contrast < needed - 0.01) {
      const name = `${element.tagName}.${element.className}`;
      poor.push(`${name} ${element.textContent.slice(0, 30)}: ${contrast.toFixed(2)}`);
    }
  }
  return [count, poor];
}"""


def furnish(studio: StudioPage) -> None:
    """Open everything that a page can have open at once."""
    studio.page.locator("select.lessons").select_option(index=7)
    studio.page.wait_for_selector(".lesson h2")
    studio.show(points=OVERLAPPING, view=VIEW).choose("LinearSVC")
    studio.page.get_by_label("Separable?").check()
    studio.page.get_by_text("What do I see?").click()
    studio.page.locator(".starts [data-run=path]").click()
    studio.wait()
    studio.run("(studio) => studio.tell('A sentence.')")


def nodes(studio: StudioPage) -> list[dict[str, Any]]:
    """Return what a screen reader is told of."""
    tools = studio.page.context.new_cdp_session(studio.page)
    tree = tools.send("Accessibility.getFullAXTree")["nodes"]
    tools.detach()
    return [node for node in tree if not node.get("ignored")]


def test_everything_to_use_has_a_name(desk: StudioPage) -> None:
    furnish(desk)
    found = [
        (node["role"]["value"], node.get("name", {}).get("value", "").strip())
        for node in nodes(desk)
        if node["role"]["value"] in NAMED
    ]
    assert len(found) > 40
    nameless = [role for role, name in found if not name]
    assert not [role for role in nameless if role != "group"]
    symbols = [name for _, name in found if name and not any(map(str.isalnum, name))]
    assert not symbols  # "✕" says nothing when it is read aloud


def test_the_page_has_landmarks_and_says_what_happens(desk: StudioPage) -> None:
    desk.show(points=OVERLAPPING, view=VIEW)
    page = desk.page
    assert page.evaluate("() => document.documentElement.lang") == "en"
    assert page.title()
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("banner").count() == 1
    assert page.locator("[aria-live=polite]").count() >= 2
    assert page.locator("[role=alert]").count() >= 2
    scene = page.locator(".scene")
    assert scene.get_attribute("aria-label") == "Plot with 10 points of 2 classes"
    keys = scene.get_attribute("aria-describedby")
    assert "Enter draws a point" in page.locator(f"#{keys}").inner_text()
    missing = page.evaluate(
        """() => ["aria-labelledby", "aria-describedby", "for", "aria-controls"].flatMap((name) =>
          [...document.querySelectorAll(`[${name}]`)]
            .flatMap((e) => e.getAttribute(name).split(" "))
            .filter((id) => !document.getElementById(id)))"""
    )
    assert missing == []
    twice = page.evaluate(
        """() => [...document.querySelectorAll("[id]")].map((e) => e.id)
          .filter((id, k, all) => all.indexOf(id) !== k)"""
    )
    assert twice == []


def test_tab_reaches_everything_and_shows_where_it_is(desk: StudioPage) -> None:
    desk.show(points=OVERLAPPING, view=VIEW).choose("SVC")
    page = desk.page
    page.evaluate("() => document.activeElement.blur()")
    page.evaluate("() => getSelection().removeAllRanges()")
    wanted = page.evaluate(
        """() => [...document.querySelectorAll(
             ".mm-studio :is(button, input, select, summary, [tabindex])")]
          .filter((e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility()).length"""
    )
    reached: set[str] = set()
    for _ in range(2 * wanted):
        page.keyboard.press("Tab")
        name, seen = page.evaluate(
            """() => {
              const element = document.activeElement;
              const { outlineStyle, boxShadow } = getComputedStyle(element);
              const reached = document.querySelectorAll("[data-reached]").length;
              element.dataset.reached ??= String(reached);
              return [element.tagName + element.dataset.reached,
                element === document.body || outlineStyle !== "none" || boxShadow !== "none"];
            }"""
        )
        assert seen, name
        reached.add(name)
    assert len({name for name in reached if not name.startswith("BODY")}) == wanted


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_enough_contrast(open_page: OpenPage, scheme: str) -> None:
    studio = open_page(color_scheme=scheme)
    furnish(studio)
    studio.page.evaluate("() => document.activeElement.blur()")
    studio.page.mouse.move(0, 0)
    studio.page.evaluate(
        "() => Promise.all(document.getAnimations().map((a) => a.finished.catch(() => {})))"
    )
    count, poor = studio.page.evaluate(CONTRASTS)
    assert count > 60
    assert not poor, poor


def test_nothing_moves_for_those_who_want_no_motion(open_page: OpenPage) -> None:
    # But for the sign that something is being computed, which turns slowly.
    studio = open_page(reduced_motion="reduce")
    studio.show(points=OVERLAPPING, view=VIEW, lift="circle")
    assert (
        studio.run("(studio) => studio.lift.risen") == 1
    )  # the points do not rise, they are there
    lasting = studio.page.evaluate(
        """() => [...document.querySelectorAll(".mm-studio *:not(.spinner)")].filter((e) => {
          const { transitionDuration, animationName, animationDuration } = getComputedStyle(e);
          const long = (text) => text.split(",").some((time) => parseFloat(time) > 0.05);
          return long(transitionDuration) || (animationName !== "none" && long(animationDuration));
        }).map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert lasting == []
