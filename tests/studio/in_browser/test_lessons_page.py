"""All lessons are opened, and one is worked through without a mouse."""

from maxmargin.studio import lessons
from maxmargin.studio.quantities import Numbers
from tests.studio.in_browser.conftest import StudioPage
from tests.support import studio_reference as reference


def tab_to(studio: StudioPage, selector: str, backwards: bool = False) -> None:
    """Press Tab until something has the focus."""
    for _ in range(120):
        studio.page.keyboard.press("Shift+Tab" if backwards else "Tab")
        if studio.page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached by Tab")


def numbers(studio: StudioPage) -> Numbers:
    """Return what can be computed from the picture on the left."""
    state = studio.state
    pane = state["panes"][0]
    view = studio.run("(studio) => studio.plots[0].seen()")
    return Numbers(
        reference.make_scene(
            state["points"], view, pane["model"], pane["kernel"], pane["parameters"]
        )
    )


def number(studio: StudioPage, name: str) -> float:
    value = numbers(studio)[name]
    assert isinstance(value, int | float)
    return float(value)


def test_each_lesson_is_opened_by_the_menu(desk: StudioPage) -> None:
    course = lessons.titles()
    assert len(course) == 10
    for lesson in course:
        desk.page.get_by_role("combobox", name="Lesson").select_option(lesson["title"])
        desk.wait_for("(studio, id) => studio.lesson.lesson?.id === id", lesson["id"])
        desk.wait()
        assert desk.text(".lesson h2") == lesson["title"]
        (page,) = lessons.find_lesson(lesson["id"]).pages
        assert page.state is not None
        assert desk.state["points"] == page.state["points"]
        asked = desk.page.locator(".lesson form.question").count()
        tasks = desk.page.locator(".lesson .tasks li").count()
        assert asked + tasks >= 2  # something to do and something to answer
        assert asked == len(page.questions)
        assert tasks == len(page.tasks)
        if page.state.get("run"):
            assert desk.page.locator(".player").is_visible()


def test_a_lesson_is_done_with_keys_alone(studio: StudioPage) -> None:
    tab_to(studio, "select.lessons")
    studio.press("ArrowDown", "ArrowDown")
    studio.wait_for("(studio) => studio.lesson.lesson?.id.includes('margins')")
    studio.wait()
    assert [pane["model"] for pane in studio.state["panes"]] == ["Perceptron", "HardMarginSVC"]
    answer_questions(studio)
    choose_the_widest(studio)
    move_points_apart(studio)
    tab_to(studio, ".lesson-pages .primary", backwards=True)
    studio.page.keyboard.press("Enter")
    studio.wait_for("(studio) => studio.lesson.lesson?.id.includes('perceptron')")
    tab_to(studio, ".lesson .close", backwards=True)
    studio.page.keyboard.press("Enter")
    assert studio.page.locator(".lesson").is_hidden()
    assert studio.page.evaluate("() => document.activeElement.matches('select.lessons')")


def answer_questions(studio: StudioPage) -> None:
    """Give a wrong answer, then right ones."""
    page, keyboard = studio.page, studio.page.keyboard
    first, second = ".question:nth-of-type(1)", ".question:nth-of-type(2)"
    tab_to(studio, f"{first} input")
    keyboard.type("17")
    keyboard.press("Enter")
    page.wait_for_selector(f"{first} .verdict.wrong")
    assert page.locator(f"{first} input").get_attribute("aria-invalid") == "true"
    keyboard.press("Control+a")
    keyboard.type(f"{number(studio, 'margin'):.4f}")
    keyboard.press("Enter")
    page.wait_for_selector(f"{first} .verdict.right")
    tab_to(studio, f"{second} input")
    keyboard.type(f"{number(studio, 'best_margin') / number(studio, 'margin'):.3f}")
    tab_to(studio, f"{second} button[type=submit]")
    keyboard.press("Space")
    page.wait_for_selector(f"{second} .verdict.right")


def choose_the_widest(studio: StudioPage) -> None:
    """Do the first task: choose another model on the left."""
    assert studio.page.locator(".tasks li.is-done").count() == 0
    tab_to(studio, ".models select")
    studio.page.keyboard.type("Hard")
    studio.wait_for("(studio) => studio.store.state.panes[0].model === 'HardMarginSVC'")
    studio.page.wait_for_selector(".tasks li:nth-child(1).is-done")


def move_points_apart(studio: StudioPage) -> None:
    """Do the second task: move the points of the second class away, one after the other."""
    tab_to(studio, ".scene", backwards=True)
    across, up = studio.picture()["weights"]
    keys = ["ArrowRight" if across > 0 else "ArrowLeft"] if abs(across) > 0.3 else []
    keys += ["ArrowUp" if up > 0 else "ArrowDown"] if abs(up) > 0.3 else []
    for point in studio.state["points"]:
        studio.page.keyboard.press("n")
        for key in keys * (4 if point[2] == 1 else 0):
            studio.page.keyboard.press(f"Shift+{key}")
    studio.wait()
    assert number(studio, "margin") >= 0.6
    studio.page.wait_for_selector(".tasks li:nth-child(2).is-done")
    assert "The street is" in studio.page.locator(".tasks li").nth(1).inner_text()
    assert len(studio.state["points"]) == 24
