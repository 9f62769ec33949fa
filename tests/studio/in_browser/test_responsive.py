"""The page under the hand while Python is slow, and what is left of it afterwards."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from maxmargin.studio import pictures
from maxmargin.studio.session import Session
from tests.studio.in_browser.conftest import OpenPage, StudioPage, wait_until
from tests.studio.in_browser.test_page import SEPARABLE, VIEW, fitted
from tests.studio.test_app import TOKEN, served


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


def test_nothing_grows(open_page: OpenPage) -> None:
    studio = open_page()
    tools = studio.page.context.new_cdp_session(studio.page)
    tools.send("Performance.enable")
    kinds = ["LinearSVC", "SVC", "KernelPCA", "Perceptron", "SVR"]

    def play(times: int) -> Any:
        """Drag a point, change models and lifts; return the nodes and listeners that are left."""
        for k in range(times):
            studio.show(points=SEPARABLE, view=VIEW, lift="circle" if k % 5 == 0 else None)
            studio.choose(kinds[k % 5]).drag((0.9, -1.0), (0.4 + 0.01 * k, -1.2))
        studio.show(points=SEPARABLE, view=VIEW, lift=None).choose("LinearSVC")
        tools.send("HeapProfiler.collectGarbage")
        found = {m["name"]: m["value"] for m in tools.send("Performance.getMetrics")["metrics"]}
        assert studio.run("(studio) => studio.link.waiting.size") == 0
        return np.array([found["Nodes"], found["JSEventListeners"]])

    play(10)
    before = play(10)
    grown = play(60) - before
    assert (grown < [60, 30]).all(), grown  # one for each drag would be too many
