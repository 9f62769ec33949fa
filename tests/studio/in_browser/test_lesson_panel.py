"""Lessons in a real browser: pages, questions and tasks, by hand and by keyboard alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maxmargin.studio import lessons
from tests.studio.in_browser.conftest import OpenPage, Server, StudioPage

LESSON = """# <b>Mine</b>

## A page with <script>alert(1)</script>

Some *text*, a `word` and [a link](javascript:alert(1)).

```studio
points: (-2, 0, A) (-3, 1, A) (2, 0, B) (3, -1, B)
view: -5 5 -3 3
model: HardMarginSVC
```

```question
ask: How wide is the street?
answer: width
hint: Count from {-0.5 * width} to {0.5 * width}.
explain: It is {width} wide.
```

```task
do: Make it narrower.
until: width < 3
done: It is {width} wide.
```

## Another page

Without a picture.
"""


def tab_to(studio: StudioPage, selector: str) -> None:
    """Press Tab until something has the focus."""
    for _ in range(100):
        studio.page.keyboard.press("Tab")
        if studio.page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached by Tab")


def settle(studio: StudioPage) -> None:
    """Wait until the tasks of the page have been looked at."""
    studio.wait()
    studio.page.wait_for_function(
        "() => [...document.querySelectorAll('.tasks .numbers')].every((e) => e.textContent)"
    )
    studio.wait()


def test_all_pages_of_the_course_set_up_their_pictures(studio: StudioPage) -> None:
    page, course = studio.page, lessons.titles()
    page.select_option("select.lessons", course[0]["id"])
    for k, lesson in enumerate(course):
        page.wait_for_function(
            "(title) => document.querySelector('.lesson h2').textContent === title",
            arg=lesson["title"],
        )
        settle(studio)
        assert page.locator(".lesson .place").inner_text() == f"Page {k + 1} of {len(course)}"
        (found,) = lessons.find_lesson(lesson["id"]).pages
        assert found.state is not None
        assert studio.state["points"] == found.state["points"]
        assert [pane["model"] for pane in studio.state["panes"]] == [
            pane["model"] for pane in found.state["panes"]
        ]
        assert studio.picture()["lines"]
        assert page.locator(".lesson > .message").is_hidden()
        assert page.locator(".tasks li.is-done").count() == 0
        if k + 1 < len(course):
            page.get_by_role("button", name="Next page").click()
    assert page.get_by_role("button", name="Next page").is_disabled()
    page.get_by_role("button", name="Close the lesson").click()
    assert page.locator(".lesson").is_hidden()


def test_a_lesson_is_worked_through_by_keyboard_alone(studio: StudioPage) -> None:
    page, keyboard = studio.page, studio.page.keyboard
    tab_to(studio, "select.lessons")
    for _ in range(7):
        keyboard.press("ArrowDown")
    page.wait_for_function(
        "() => document.querySelector('.lesson .place').textContent === 'Page 7 of 10'"
    )
    settle(studio)
    tab_to(studio, ".question input")
    keyboard.type("3/2")
    keyboard.press("Enter")
    page.wait_for_selector(".question .verdict.right")
    tab_to(studio, ".question:nth-of-type(2) input")
    keyboard.type("1")
    tab_to(studio, "button[type=submit]")
    keyboard.press("Space")
    page.wait_for_selector(".question:nth-of-type(2) .verdict.wrong")
    tab_to(studio, ".question:nth-of-type(2) button[type=button]")
    keyboard.press("Enter")
    assert "The answer is: 9." in page.locator(".question .verdict").nth(1).inner_text()
    assert page.evaluate("document.activeElement.textContent") == "Check"
    tab_to(studio, ".models input[type=range]")
    keyboard.press("End")
    page.wait_for_selector(".tasks li.is-done")
    assert "This is the hard street" in page.locator(".tasks li").first.inner_text()
    page.locator(".lesson h2").focus()
    tab_to(studio, ".lesson-pages .primary")
    keyboard.press("Enter")
    page.wait_for_function(
        "() => document.querySelector('.lesson .place').textContent === 'Page 8 of 10'"
    )
    assert page.evaluate("document.activeElement.tagName") == "H2"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    path = tmp_path / "lesson.md"
    path.write_text(LESSON, encoding="utf-8")
    running = Server(str(path))
    yield running
    running.close()


def test_a_lesson_of_a_file_is_opened(own: Server, open_page: OpenPage) -> None:
    studio = open_page(url=own.url)
    page: Any = studio.page
    page.wait_for_selector(".lesson h2")
    settle(studio)
    assert page.locator(".lesson h2").inner_text() == "A page with <script>alert(1)</script>"
    assert page.locator(".lesson .place").inner_text() == "<b>Mine</b> · Page 1 of 2"
    assert page.locator(".lesson script, .lesson b, .lesson a").count() == 0
    assert "a link" in page.locator(".lesson-text p").first.inner_text()

    page.locator(".question input").fill("1")
    page.locator(".question input").press("Enter")
    page.wait_for_selector(".question .verdict.wrong")
    assert "Count from −2 to 2." in page.locator(".question .verdict").inner_text()
    page.locator(".question input").fill("4")
    page.locator(".question input").press("Enter")
    page.wait_for_selector(".question .verdict.right")

    studio.drag((2, 0), (0, 0))
    page.wait_for_selector(".tasks li.is-done")
    assert "It is 2 wide." in page.locator(".tasks li").inner_text()
    page.get_by_role("button", name="Set up the picture").click()
    settle(studio)
    assert studio.state["points"][2] == [2, 0, 1]
    assert page.locator(".tasks li.is-done").count() == 1  # what was done stays done

    page.get_by_role("button", name="Next page").click()
    assert page.locator(".lesson h2").inner_text() == "Another page"
    assert page.get_by_role("button", name="Set up the picture").is_hidden()
    assert page.get_by_role("button", name="Next page").is_disabled()
