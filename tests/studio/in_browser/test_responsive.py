"""The page under the hand while Python is slow, and what is left of it afterwards."""

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from maxmargin.studio import pictures
from maxmargin.studio.catalogue import MODELS
from maxmargin.studio.session import Session
from tests.studio.in_browser.conftest import OpenPage, StudioPage, wait_until
from tests.studio.in_browser.test_page import SEPARABLE, VIEW, fitted
from tests.studio.test_app import TOKEN, served

SEEN = """(studio) => {
  window.seen = [];
  studio.root.addEventListener("studio:painted", (event) => window.seen.push(event.detail.seq));
}"""


class Slow:
    """Sessions whose fits wait as long as they are held, and end early if they are not wanted."""

    def __init__(self) -> None:
        self.held = False
        self.started = 0
        self.stopped = 0

    def fit(self, request: Any, job: Any) -> None:
        self.started += 1
        while self.held and not job.stop():
            time.sleep(0.001)
        if job.stop():
            self.stopped += 1
        pictures.draw(request.scene, request.grid, request.wants, job.stop, job.send)

    def make(self, send: Any, *given: Any) -> Session:
        return Session(send, *given, handlers={"fit": self.fit})


@pytest.fixture(scope="module")
def slow_server() -> Iterator[tuple[Slow, str]]:
    slow = Slow()
    with served(session=slow.make) as server:
        yield slow, f"http://{server.host}/?token={TOKEN}"
        slow.held = False


@pytest.fixture
def slow_page(
    slow_server: tuple[Slow, str], open_page: OpenPage
) -> Iterator[tuple[Slow, StudioPage]]:
    slow, url = slow_server
    studio = open_page(url=url).show(points=SEPARABLE, view=VIEW).choose("HardMarginSVC")
    yield slow, studio
    slow.held = False


def hold(slow: Slow, studio: StudioPage) -> None:
    """Let a fit begin that does not end."""
    before = slow.started
    slow.held = True
    studio.page.mouse.move(*studio.place(0.9, -1.0))
    studio.page.mouse.down()
    studio.page.mouse.move(*studio.place(0.85, -1.0))
    wait_until(lambda: slow.started > before, "no fit began")


def test_points_are_dragged_while_a_fit_runs(slow_page: tuple[Slow, StudioPage]) -> None:
    slow, studio = slow_page
    hold(slow, studio)
    studio.page.wait_for_selector(".busy:not([hidden])")
    assert studio.page.get_by_role("button", name="Stop this fit").is_visible()
    assert studio.page.locator(".found.stale").count() == 1  # the numbers are those of before
    drawn = "(studio) => studio.plots[0].points.children[5].outerHTML"
    places = {studio.run(drawn)}
    for step in range(10):
        studio.page.mouse.move(*studio.place(0.8 - 0.03 * step, -1.1))
        # Two frames: the first one may have been under way when the point moved.
        studio.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        places.add(studio.run(drawn))
    assert len(places) == 11
    studio.page.mouse.up()
    slow.held = False
    points = studio.wait().state["points"]
    assert points[5][:2] == pytest.approx([0.53, -1.1], abs=0.02)
    assert studio.picture()["weights"] == pytest.approx(
        np.ravel(fitted("HardMarginSVC", points).coef_).tolist(), rel=1e-6
    )
    assert studio.page.locator(".stale").count() == 0
    assert studio.page.locator(".busy:not([hidden])").count() == 0


def test_a_slow_fit_is_cancelled(slow_page: tuple[Slow, StudioPage]) -> None:
    slow, studio = slow_page
    before = studio.picture()
    hold(slow, studio)
    studio.page.mouse.up()
    stopped = slow.stopped
    studio.page.get_by_role("button", name="Stop this fit").click()
    wait_until(lambda: slow.stopped > stopped, "the fit goes on")
    studio.page.wait_for_selector(".busy", state="hidden")
    assert studio.picture()["seq"] == before["seq"]  # nothing came of it
    assert studio.run("(studio) => studio.link.waiting.size") == 0
    slow.held = False
    studio.drag((0.85, -1.0), (0.6, -1.0))  # and the page goes on
    assert studio.picture()["seq"] > before["seq"]


def test_pictures_come_in_order_and_the_last_is_of_the_last_place(
    slow_page: tuple[Slow, StudioPage],
) -> None:
    slow, studio = slow_page
    studio.run(SEEN)
    chance = random.Random(3)
    x, y = studio.place(0.9, -1.0)
    studio.page.mouse.move(x, y)
    studio.page.mouse.down()
    for _ in range(60):
        slow.held = chance.random() < 0.3
        x, y = x + chance.uniform(-8, 4), y + chance.uniform(-4, 4)
        studio.page.mouse.move(x, y)
    slow.held = False
    studio.page.mouse.up()
    picture = studio.picture()
    seen = studio.page.evaluate("() => window.seen")
    assert seen == sorted(seen)
    assert seen[-1] == picture["seq"]
    points = studio.state["points"]
    assert points[5][:2] == pytest.approx(
        studio.run(
            "(studio, [x, y]) => { const box = studio.plots[0].svg.getBoundingClientRect();"
            " return studio.plots[0].toData(x - box.left, y - box.top); }",
            [x, y],
        ),
        abs=0.02,
    )
    assert picture["weights"] == pytest.approx(
        np.ravel(fitted("HardMarginSVC", points).coef_).tolist(), rel=1e-6
    )


def test_a_reply_that_was_overtaken_is_not_shown(desk: StudioPage) -> None:
    shown = desk.run(
        """async (studio) => {
          const sent = [];
          const carrier = { send: (message) => sent.push(message) };
          const link = new studio.link.constructor(carrier);
          const shown = [];
          const ask = (name) => link.latest("fit", { name }, (reply) => shown.push(reply.name));
          ask("first");
          ask("never sent");
          ask("second");
          while (sent.length < 2) await new Promise((done) => setTimeout(done, 20));
          for (const { seq, name } of sent.reverse()) carrier.receive({ seq, name });
          await new Promise((done) => setTimeout(done, 0));
          return [shown, sent.length, link.waiting.size];
        }"""
    )
    assert shown == [["second"], 2, 0]


# -------------------------------------------------------------------------------- what is left


def measure(studio: StudioPage, tools: Any) -> dict[str, float]:
    """Return how much the page holds, with points, model and history as they always are."""
    studio.run(
        """(studio) => {
          studio.timeline.close();
          for (let k = 0; k < 220; k += 1) {
            studio.store.change({ points: [[-1, k / 1000, 0], [1, 0, 1]], lift: null,
              panes: [{ model: "LinearSVC", parameters: {}, kernel: "" }] });
          }
          studio.lookAt([-3, 3, -2, 2]);
        }"""
    )
    studio.wait()
    for _ in range(2):
        tools.send("HeapProfiler.collectGarbage")
        studio.page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")
    found = {m["name"]: m["value"] for m in tools.send("Performance.getMetrics")["metrics"]}
    waiting, channels = studio.run(
        "(studio) => [studio.link.waiting.size, studio.link.channels.size]"
    )
    return {
        "elements": studio.page.evaluate("() => document.querySelectorAll('*').length"),
        "nodes": found["Nodes"],
        "listeners": found["JSEventListeners"],
        "documents": found["Documents"],
        "heap": found["JSHeapUsedSize"],
        "waiting": waiting,
        "channels": channels,
    }


def play(studio: StudioPage, chance: random.Random, times: int) -> None:
    """Drag points about at random, and now and then take another model, example or lift."""
    mouse, kinds = studio.page.mouse, [name for name in MODELS if name != "BayesPointClassifier"]
    box = studio.page.locator(".scene").first.bounding_box()

    def somewhere() -> tuple[float, float]:
        return (
            box["x"] + chance.uniform(0.05, 0.95) * 0.4 * box["width"],
            box["y"] + chance.uniform(0.05, 0.6) * box["height"],
        )

    for k in range(times):
        mouse.down()  # where the last drag ended
        mouse.move(*somewhere())
        mouse.up()
        if k % 10 == 0:
            panes = [{"model": chance.choice(kinds), "parameters": {}, "kernel": ""}]
            if k % 30 == 0:
                panes = [*panes, *panes]
            points = [[chance.gauss(-1, 1), chance.gauss(0, 1), j % 2] for j in range(40)]
            lift = chance.choice(["circle", "gaussian"]) if k % 50 == 0 else None
            patch = {"points": points, "panes": panes, "lift": lift}
            studio.run("(studio, patch) => studio.store.change(patch)", patch)
        if k % 60 == 0:
            studio.wait()
            if studio.page.locator(".starts button").count():
                studio.page.locator(".starts button").first.click()


def test_nothing_grows(open_page: OpenPage) -> None:
    studio = open_page()
    tools = studio.page.context.new_cdp_session(studio.page)
    tools.send("Performance.enable")
    chance = random.Random(7)
    play(studio, chance, 40)
    before = measure(studio, tools)
    play(studio, chance, 300)
    after = measure(studio, tools)
    heap = after.pop("heap") - before.pop("heap")
    nodes = after.pop("nodes") - before.pop("nodes")
    listeners = after.pop("listeners") - before.pop("listeners")
    assert after.pop("channels") <= 12  # one for each kind of request
    del before["channels"]
    assert after == before
    assert listeners <= 0
    assert nodes < 200  # a drag that leaks one would be 300
    assert heap < 2e6


def count_threads() -> int:
    return sum(thread.name.startswith("maxmargin-studio") for thread in threading.enumerate())


def test_a_closed_page_gives_its_threads_back(slow_server: tuple[Slow, str], chromium: Any) -> None:
    slow, url = slow_server
    wait_until(lambda: count_threads() == 0, "threads of earlier pages are there")
    studio = StudioPage(chromium.new_context().new_page()).open(url)
    assert count_threads() > 0
    studio.show(points=SEPARABLE, view=VIEW).choose("HardMarginSVC")
    hold(slow, studio)  # also what is in the middle of a fit
    studio.close()
    wait_until(lambda: count_threads() == 0, "threads are left")
    slow.held = False
