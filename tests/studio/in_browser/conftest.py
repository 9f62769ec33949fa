"""The studio in a real browser: a server in its own process, and Chromium driven by Playwright.

Whatever a test does, its pages must leave the console empty and ask nobody but their own server.
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.browser import CHROMIUM

_LONG = 60.0  # seconds after which a process that does not answer fails the test
# Nothing is asked, and what was answered is painted in the size that the page has now.
_IDLE = """() => {
  const studio = window.maxmarginStudio;
  if (!studio?.plots.length) return false;
  const { link, lift, timeline, store, plots, cards } = studio;
  const channels = [...link.channels.values()];
  return link.waiting.size === 0 && channels.every((c) => !c.flying && !c.pending) &&
    plots.every((plot, k) => !plot.scheduled &&
      plot.size[0] === plot.element.clientWidth && plot.size[1] === plot.element.clientHeight &&
      (plot.picture ? plot.element.dataset.seq === String(plot.picture.seq)
        : cards[k].facts.message.classList.contains("error"))) &&
    (!store.state.lift || lift.reply !== null) &&
    (!timeline.open || (timeline.run !== null && timeline.asking === null && !timeline.asked));
}"""
_FRESH = """(studio) => {
  studio.timeline.close();
  studio.lesson.leave();
  studio.notice.hidden = true;
  studio.chooseTool("point");
  studio.chooseLabel(0);
  studio.store.change({
    points: [], names: ["A", "B", "C", "D", "E"], view: [-3, 3, -2, 2], lift: null,
    panes: [{ model: "SVC", parameters: {}, kernel: "" }],
    show: { field: true, margins: true, slack: true, separability: false },
  });
  studio.points.show({});
  studio.points.say("");
}"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = pytest.mark.skip(reason="no Chromium was found on this machine")
    for item in items:
        if "in_browser" in item.nodeid:
            item.add_marker(pytest.mark.browser)
            if not CHROMIUM:
                item.add_marker(missing)


class Server:
    """A ``maxmargin studio`` in its own process."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "maxmargin", "studio", "--no-browser", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if found := re.search(r"http://\S+", line):
                self.url = found.group()
                return
        raise RuntimeError(said)

    def close(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.wait(_LONG)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


class StudioPage:
    """A page with the studio, and hands for it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.set_default_timeout(20_000)
        self.console: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.console.append(f"uncaught: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: self.requests.append(socket.url))

    def open(self, url: str) -> "StudioPage":
        """Open an address and wait until everything is there."""
        self.page.goto(url)
        return self.wait()

    def wait(self) -> "StudioPage":
        """Wait until nothing is asked and everything is painted."""
        self.page.wait_for_function(_IDLE, timeout=1e3 * _LONG)
        return self

    def run(self, expression: str, argument: Any = None) -> Any:
        """Return what a function of the studio (and an argument) returns, in the page."""
        return self.page.evaluate(
            f"(argument) => ({expression})(window.maxmarginStudio, argument)", argument
        )

    @property
    def state(self) -> Any:
        """The state of the page."""
        return self.run("(studio) => studio.store.state")

    def picture(self, pane: int = 0) -> Any:
        """Return what Python said last about a pane."""
        self.wait()
        return self.run("(studio, pane) => studio.plots[pane].picture", pane)

    def show(self, **patch: Any) -> "StudioPage":
        """Change the state, as a link or a lesson does."""
        self.run("(studio, patch) => studio.store.change(patch)", patch)
        return self.wait()

    def choose(self, model: str, kernel: str = "", **parameters: float) -> "StudioPage":
        """Choose the model of the left pane, with its sliders."""
        return self.show(panes=[{"model": model, "parameters": parameters, "kernel": kernel}])

    def place(self, x: float, y: float, pane: int = 0) -> tuple[float, float]:
        """Return where a point of the plane is on the screen."""
        box = self.page.locator(".scene").nth(pane).bounding_box()
        px, py = self.run(
            "(studio, [pane, x, y]) => studio.plots[pane].toPixels(x, y)", [pane, x, y]
        )
        return box["x"] + px, box["y"] + py

    def click(self, x: float, y: float, **options: Any) -> "StudioPage":
        """Click at a point of the plane."""
        self.page.mouse.click(*self.place(x, y), **options)
        return self.wait()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> "StudioPage":
        """Drag from one point of the plane to another."""
        self.page.mouse.move(*self.place(*start))
        self.page.mouse.down()
        self.page.mouse.move(*self.place(*end), steps=8)
        self.page.mouse.up()
        return self.wait()

    def lines(self, kind: str, pane: int = 0) -> list[list[float]]:
        """Return the coordinates of lines as they are drawn: they are those of the data."""
        drawn = self.page.locator(".scene").nth(pane).locator(f".lines .{kind}")
        return [
            [float(number) for number in text.replace(",", " ").split()]
            for text in drawn.evaluate_all("all => all.map((e) => e.getAttribute('points'))")
        ]

    def button(self, name: str) -> Any:
        """Return the button with a name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def press(self, *keys: str) -> "StudioPage":
        """Press keys one after the other."""
        for key in keys:
            self.page.keyboard.press(key)
        return self.wait()

    def text(self, selector: str) -> str:
        """Return what stands in an element."""
        return str(self.page.locator(selector).first.inner_text())

    def wait_for(self, expression: str, argument: Any = None) -> None:
        """Wait until a function of the studio (and an argument) is true."""
        self.page.wait_for_function(
            f"(argument) => ({expression})(window.maxmarginStudio, argument)",
            arg=argument,
            timeout=1e3 * _LONG,
        )

    def check(self) -> None:
        """See that the page complained about nothing and asked nobody but its server."""
        assert self.console == []
        hosts = {urlsplit(url).hostname for url in self.requests if not url.startswith("blob:")}
        assert hosts <= {"127.0.0.1", None}, hosts

    def close(self) -> None:
        """Close the page, and see that it complained about nothing and asked nobody else."""
        self.page.context.close()
        self.check()


OpenPage = Callable[..., StudioPage]


@pytest.fixture
def open_page(server: Server, chromium: Any) -> Iterator[OpenPage]:
    """Open the studio in a window of its own."""
    opened: list[StudioPage] = []

    def open_one(
        width: int = 1400,
        height: int = 860,
        fragment: str = "",
        url: str | None = None,
        **context: Any,
    ) -> StudioPage:
        size = {"width": width, "height": height}
        page = StudioPage(chromium.new_context(viewport=size, **context).new_page())
        opened.append(page)
        return page.open((url or server.url) + fragment)

    yield open_one
    for page in opened:
        page.close()


@pytest.fixture
def studio(open_page: OpenPage) -> StudioPage:
    """A page of the usual size."""
    return open_page()


@pytest.fixture(scope="module")
def _shared(server: Server, chromium: Any) -> Iterator[StudioPage]:
    size = {"width": 1400, "height": 860}
    page = StudioPage(chromium.new_context(viewport=size).new_page()).open(server.url)
    yield page
    page.close()


@pytest.fixture
def desk(_shared: StudioPage) -> Iterator[StudioPage]:
    """A page that tests of a file share, for it takes a while to open; everything is cleared."""
    _shared.run(_FRESH)
    yield _shared.wait()
    _shared.check()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that happens outside the page."""
    until = time.monotonic() + _LONG
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)
