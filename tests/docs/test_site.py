"""The built site in a real browser: quiet, complete without a network, readable by everybody.

``./docs/build`` makes the site. Accessibility is judged by axe-core: MAXMARGIN_AXE is the path of
its ``axe.min.js`` (``npm install axe-core`` has it in ``node_modules/axe-core``).
"""

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import CHROMIUM

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
AXE = os.environ.get("MAXMARGIN_AXE", "")
PAGES = [
    "index.html",
    "get-started.html",
    "guide.html",
    "guide/soft-margin.html",
    "how-to/from-scikit-learn.html",
    "gallery/index.html",
    "gallery/margins/margins.html",
    "notebooks/*.html",
    "reference/index.html",
    "reference/estimators.html",
    "reference/generated/maxmargin.SVC.html",
    "reference/generated/maxmargin.certify.html",
    "benchmarks.html",
    "lectures.html",
    "command-line.html",
    "glossary.html",
    "search.html?q=certificate",
]
VIEWS = list(product((390, 1400), ("light", "dark")))

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium was found on this machine"),
    pytest.mark.skipif(not SITE.exists(), reason="there is no site yet: ./docs/build makes it"),
]


class Visit:
    """A page of the site, and all that it complained about and asked for."""

    def __init__(self, chromium: Any, width: int, scheme: str) -> None:
        size = {"width": width, "height": 900}
        self.context = chromium.new_context(viewport=size, color_scheme=scheme)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        self.page.on("requestfailed", lambda request: self.faults.append(f"failed: {request.url}"))
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.faults.append(f"asked for {request.url}")

    def open(self, name: str) -> "Visit":
        path, _, query = name.partition("?")
        found = sorted(SITE.glob(path))
        assert found, f"the site has no page {path}"
        self.page.goto(found[0].as_uri() + (f"?{query}" if query else ""))
        self.page.wait_for_load_state("load")
        return self


@pytest.fixture
def visit(chromium: Any, request: pytest.FixtureRequest) -> Iterator[Visit]:
    width, scheme = getattr(request, "param", (1400, "light"))
    visit = Visit(chromium, width, scheme)
    yield visit
    visit.context.close()


@pytest.mark.parametrize("visit", VIEWS, indirect=True, ids=lambda v: f"{v[0]}-{v[1]}")
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_quiet_complete_and_accessible(visit: Visit, name: str) -> None:
    page = visit.open(name).page
    assert page.locator("h1").count() >= 1
    missing = "all => all.filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
    assert page.locator("img:not([loading=lazy])").evaluate_all(missing) == []
    wide, window = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window
    assert visit.faults == []
    if not AXE:
        pytest.skip("all but accessibility was checked: MAXMARGIN_AXE names no axe.min.js")
    page.add_script_tag(path=AXE)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (fault["id"], node["html"][:200], node["failureSummary"][:300])
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"][:3]
    ]
    assert serious == []


def test_search_finds_pages_without_a_network(visit: Visit) -> None:
    page = visit.open("index.html").page
    page.keyboard.press("Control+k")
    page.keyboard.type("hyperplane")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=hyperplane*")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li").count() > 3
    page.locator("#search-results li a").first.click()
    page.wait_for_load_state("load")
    assert "search.html" not in page.url
    assert visit.faults == []


def test_formulas_are_shown_by_the_browser_itself(visit: Visit) -> None:
    page = visit.open("guide/soft-margin.html").page
    heights = page.locator("math").evaluate_all(
        "all => all.map((m) => m.getBoundingClientRect().height)"
    )
    assert len(heights) > 3
    assert min(heights) > 0
    assert page.locator("script[src*=athjax], script[src*=athJax]").count() == 0


def test_cards_and_pictures_lead_on(visit: Visit) -> None:
    page = visit.open("index.html").page
    titles = {"Get started": "", "For teaching": "lectures", "User guide": "", "Gallery": ""}
    for title, heading in titles.items():
        page.locator(f".sd-card:has-text('{title}')").first.click()
        page.wait_for_load_state("load")
        assert (heading or title).lower() in page.locator("h1").first.inner_text().lower()
        page.go_back()
    assert visit.faults == []
