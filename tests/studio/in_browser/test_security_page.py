"""What the page does when somebody means ill, or when Python is gone."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.studio.in_browser.conftest import OpenPage, Server, StudioPage
from tests.studio.in_browser.test_page import SEPARABLE, VIEW


@pytest.fixture
def loud(chromium: Any) -> Iterator[StudioPage]:
    """A page whose console may have errors, as its browser reports what it refused."""
    page = StudioPage(chromium.new_context().new_page())
    yield page
    page.page.context.close()


def test_a_page_without_token_gets_nothing(loud: StudioPage, server: Server) -> None:
    for url in (server.url.split("?")[0], server.url[:-3] + "abc"):
        assert loud.page.goto(url).status == 403
        assert "token" in loud.page.locator("body").inner_text()
        assert loud.page.locator("script").count() == 0


def test_the_token_is_nowhere_in_the_page(open_page: OpenPage, server: Server) -> None:
    studio = open_page()
    token = server.url.split("token=")[1]
    assert token not in studio.page.content()
    assert studio.page.evaluate("() => Object.values(localStorage).join() + document.cookie") == ""
    assert studio.page.evaluate("() => document.referrer") == ""


def test_names_are_text_wherever_they_are_shown(desk: StudioPage) -> None:
    evil = '<img src=x onerror="window.hacked=1">'
    table = (
        f'a,{evil.replace(",", "")},kind\n1,2,"{evil.replace(chr(34), chr(39))}"\n3,4,b\n5,1,b\n'
    )
    desk.run("(studio, text) => studio.points.openText(text)", table)
    desk.wait_for("(studio) => studio.store.state.points.length === 3")
    desk.wait()
    assert "<img" in " ".join(desk.state["names"])
    assert desk.page.locator(".mm-studio img").count() == 0
    assert desk.page.evaluate("() => window.hacked") is None
    assert "<img" in desk.page.locator(".chips").inner_text()


def test_a_page_says_that_python_is_gone(loud: StudioPage) -> None:
    own = Server()
    loud.open(own.url)
    loud.show(points=SEPARABLE, view=VIEW)
    assert not loud.page.locator(".banner").is_visible()
    own.process.kill()
    own.close()
    loud.page.wait_for_selector(".banner:not([hidden])")
    assert "The connection to Python is lost" in loud.text(".banner")
    count = len(loud.state["points"])
    loud.page.mouse.click(*loud.place(0.2, 0.3))  # points can still be drawn
    assert len(loud.state["points"]) == count + 1
    assert loud.page.locator(".points .point").count() == count + 1
    loud.button("Undo").click()
    assert len(loud.state["points"]) == count
    assert not [line for line in loud.console if line.startswith("uncaught")]


def test_a_page_goes_on_when_its_socket_is_open_again(loud: StudioPage, server: Server) -> None:
    loud.open(server.url)
    loud.show(points=SEPARABLE, view=VIEW).choose("HardMarginSVC")
    before = loud.picture()["seq"]
    loud.run("(studio) => studio.link.carrier.socket.close()")
    loud.page.wait_for_selector(".banner:not([hidden])", state="attached")
    loud.page.wait_for_selector(".banner", state="hidden")
    loud.wait_for("(studio, before) => studio.plots[0].picture.seq > before", before)
    loud.drag((0.9, -1.0), (0.5, -1.0))
    assert len(loud.lines("boundary")) == 1
    assert loud.console == []
