"""Lessons: reading them, the course, and answers that are computed."""

import json
import math
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.studio import lessons
from maxmargin.studio.lessons import (
    LessonError,
    Question,
    judge,
    read_lesson,
)
from maxmargin.studio.quantities import QUANTITIES, Numbers
from maxmargin.studio.scene import Choice, Scene, View

pytestmark = pytest.mark.wide

State = dict[str, Any]
COURSE = [lesson["id"] for lesson in lessons.titles()]
FENCE = "```"


def block(kind: str, *lines: str) -> str:
    return "\n".join(["# Title", "", f"{FENCE}{kind}", *lines, FENCE])


def make_scene(model: str = "LinearSVC", kernel: str = "", **parameters: float) -> Scene:
    points = np.array([[-2.0, 0.0], [-3.0, 1.0], [2.0, 0.0], [3.0, -1.0]])
    choice = Choice(model, parameters, kernel)
    return Scene(points, np.array([0, 0, 1, 1]), choice, View(-4, 4, -3, 3))


# ------------------------------------------------------------------- reading


def test_a_lesson_is_read_into_blocks() -> None:
    lesson = read_lesson(
        "# One *title*\n\nA **bold** `word`\nand [a link](https://x.org).\n\n    f(x) = w·x\n\n"
        "- one\n- two\n  goes on\n\n## Page two\n\n1. first\n\n### Inside\n\n<b>raw</b>"
    )
    first, second = lesson.pages
    assert (lesson.title, first.title, second.title) == ("One title", "One title", "Page two")
    assert [each["kind"] for each in first.blocks] == ["paragraph", "formula", "list"]
    assert first.blocks[0]["spans"] == [
        {"text": "A ", "style": None},
        {"text": "bold", "style": "strong"},
        {"text": " ", "style": None},
        {"text": "word", "style": "code"},
        {"text": " and [a link](https://x.org).", "style": None},
    ]
    assert first.blocks[1]["text"] == "f(x) = w·x"
    assert first.blocks[2]["items"][1] == [{"text": "two goes on", "style": None}]
    assert second.blocks[0]["ordered"]
    assert second.blocks[2]["spans"] == [{"text": "<b>raw</b>", "style": None}]


def test_a_state_is_that_of_the_page() -> None:
    lesson = read_lesson(
        block(
            "studio",
            "points: (0, 1, A) (1.5, -2, B)",
            "    (3, 3, C)",
            "view: -4 4 -3 3",
            "model: SVC",
            "kernel: RBF(gamma)",
            "C: 10",
            "second model: Perceptron",
            "second eta: 0.5",
            "show: margins, slack",
            "lift: circle",
            "run: path",
        )
    )
    assert lesson.pages[0].state == {
        "points": [[0.0, 1.0, 0], [1.5, -2.0, 1], [3.0, 3.0, 2]],
        "names": [],
        "view": [-4.0, 4.0, -3.0, 3.0],
        "panes": [
            {"model": "SVC", "parameters": {"C": 10.0}, "kernel": "RBF(gamma)"},
            {"model": "Perceptron", "parameters": {"eta": 0.5}, "kernel": ""},
        ],
        "lift": "circle",
        "run": "path",
        "show": {"field": False, "margins": True, "slack": True, "separability": False},
    }


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("Text first", 1, "begins with its title"),
        ("# A\n\n# B", 3, "one title"),
        (block("studoi", "model: SVC"), 3, "a block is 'studio', 'question' or 'task'"),
        (block("studio", "modle: SVC"), 4, "Did you mean 'model'?"),
        (block("studio", "model: NuSVM"), 4, "Did you mean 'NuSVC'?"),
        (block("studio", "model: SVC", "", "C: much"), 6, "C must be a number"),
        (block("studio", "model: SVC", "C: 1e9"), 5, "'C'"),
        (block("studio", "model: SVC", "kernel: RFB(gamma)"), 5, "RBF"),
        (block("studio", "model: SVC", "C: 1", "C: 2"), 6, "twice"),
        (block("studio", "model: SVC", "preset: mons"), 5, "There is no preset 'mons'"),
        (block("studio", "preset: moons(noise=9)", "model: SVC"), 4, "noise"),
        (block("studio", "points: (0, 1)", "model: SVC"), 4, "(x, y, A)"),
        (block("studio", "model: SVC", "points: (1e7, 1, A)"), 5, "Expected 'float' <= 1000000.0"),
        (block("studio", "model: SVC", "show: margin"), 5, "Did you mean 'margins'?"),
        (block("studio", "model: HardMarginSVC", "run: path"), 5, "Known are: none."),
        (block("studio", "model: SVC", "view: 1 0 0 1"), 5, "left"),
        (block("studio", "just text"), 4, "key: value"),
        (block("question", "ask: What?"), 3, "either an answer or choices"),
        (block("question", "ask: What?", "answer: marign"), 5, "Did you mean 'margin'?"),
        (block("question", "ask: What?", "choices:", "  a", "  b"), 5, "condition"),
        (block("task", "do: It.", "until: margin"), 5, "must be a condition"),
        (block("task", "do: It.", "until: margin > "), 5, "invalid syntax"),
        (block("task", "until: margin > 1"), 3, "do: …"),
    ],
)
def test_slips_are_named_with_their_line(text: str, line: int, message: str) -> None:
    with pytest.raises(LessonError) as caught:
        read_lesson(text)
    assert caught.value.line == line
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"Line {line}: ")


def test_a_lesson_has_a_limited_size_and_number_of_pages() -> None:
    read_lesson("# A\n" + "## Page\n" * (lessons.MOST_PAGES - 1))
    with pytest.raises(LessonError, match="at most 100 pages"):
        read_lesson("# A\n" + "## Page\n" * 20_000)
    with pytest.raises(LessonError, match="256 KB"):
        read_lesson("# A\n" + "ä" * 140_000)


_LINES = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["# A", "## B", "### C", "```studio", "```question", "```task", "```", "~~~", "- x",
         "    y", "model: SVC", "C: 3", "points: (0, 0, A)", "preset: xor(noise=0.1)", "ask: *a?",
         "answer: 1/0 + margin", "choices:", "  a | C > 1", "  b", "until: C > 1", "do: {C}",
         "done: {C}", "view: 0 1 0 1", "explain: {C + }", "second C: 1"]
    ),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(_LINES, max_size=25).map("\n".join))
def test_any_text_is_a_lesson_or_a_lesson_error(text: str) -> None:
    for whole in (text, "# Title\n" + text):
        try:
            lesson = read_lesson(whole)
        except LessonError:
            continue
        json.dumps(lesson.describe(), allow_nan=False)


@pytest.mark.parametrize(
    "line",
    [
        "`" * 200_000 + "a",
        "a`" * 100_000 + "``",
        "# " + "#" * 200_000 + "a",
        "[a](" * 60_000,
        "[" * 200_000,
        "- " * 100_000,
        block("studio", "points: (" + " " * 200_000, "model: SVC").removeprefix("# Title"),
        block("studio", "C: " + "1" * 200_000 + "x", "model: SVC").removeprefix("# Title"),
        block("question", "ask: " + "{" * 100_000, "answer: C").removeprefix("# Title"),
    ],
    ids=range(9),
)
def test_no_text_takes_long_to_read(line: str) -> None:
    """A pattern that goes back and forth would take hours for these."""
    try:
        read_lesson(f"# Title\n\n{line}")
    except LessonError as error:
        assert len(str(error)) < 400  # noqa: PT017


def test_the_guide_for_teachers_shows_a_lesson_that_can_be_read() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "lessons.md").read_text(encoding="utf-8")
    example = guide.split("````markdown\n")[1].split("````")[0]
    page = read_lesson(example).pages[0]
    assert page.state
    assert page.questions
    assert page.tasks
    numbers = Numbers(lessons.scene_of(page.state))
    assert not page.tasks[0].until.holds(numbers)
    table = [f"| `{name}` | {found.help} |".replace("|b|", "&#124;b&#124;")
             for name, found in QUANTITIES.items()]  # fmt: skip
    assert "\n".join(table) in guide
    keys = [key for key in lessons.STUDIO_KEYS if not key.startswith("second ")]
    for key in (*keys, *lessons.QUESTION_KEYS, *lessons.TASK_KEYS):
        assert f"`{key}`" in guide, key


# ------------------------------------------------------------------- quantities


def test_quantities_of_a_street_that_is_known() -> None:
    numbers = Numbers(make_scene("HardMarginSVC", "Linear()"))
    known = {
        "margin": 2.0, "best_margin": 2.0, "width": 4.0, "norm_w": 0.5, "b": 0.0, "w1": 0.5,
        "w2": 0.0, "angle": 0.0, "origin_distance": 0.0, "errors": 0.0,
        "support_vectors": 2.0, "on_margin": 2.0, "inside": 0.0, "classes": 2.0,
        "slack_sum": 0.0, "alpha_sum": 0.25, "alpha_max": 0.125, "radius": math.sqrt(10.0),
        "separable": 1.0, "leave_one_out": 0.0,
    }  # fmt: skip
    for name, value in known.items():
        assert numbers[name] == pytest.approx(value, abs=1e-6), name
    # On lifted points (x, 1): γ̃ = 2 for w̃ = (1, 0, 0), and R̃² = 11.
    assert numbers["mistake_bound"] == pytest.approx(11 / 4, rel=1e-6)


@pytest.mark.parametrize("model", ["Perceptron", "SVC", "SVR", "OneClassSVM", "KernelPCA", "NuSVC"])
def test_every_quantity_is_a_number_a_word_or_unknown(model: str) -> None:
    one_class = Scene(np.zeros((1, 2)), np.zeros(1, dtype=int), Choice(model, {}), View(0, 1, 0, 1))
    none = Scene(np.zeros((0, 2)), np.zeros(0, dtype=int), Choice(model, {}), View(0, 1, 0, 1))
    for scene in (make_scene(model), one_class, none):
        numbers = Numbers(scene)
        for name, quantity in QUANTITIES.items():
            if name != "verdict":
                kind = str if quantity.kind == "word" else float
                assert isinstance(numbers[name], kind), name


# ------------------------------------------------------------------- answers


def ask(*lines: str) -> Question:
    return read_lesson(block("question", "ask: What?", *lines)).pages[0].questions[0]


@pytest.mark.parametrize(
    ("answer", "value", "correct"),
    [
        ("width", "4", True),
        ("width", "4.1", True),  # as exactly as it can be read off the picture
        ("width", "5", False),
        ("support_vectors", "2", True),
        ("support_vectors", "2.1", False),
        ("10 * norm_w", "5,0", True),
        ("width", "wide", None),
        ("updates", "3", None),
    ],
)
def test_answers_are_judged_by_the_scene(answer: str, value: str, correct: bool | None) -> None:
    question = ask(f"answer: {answer}", "explain: It is {width}.", "hint: Look at {points} points.")
    found = judge(question, value, Numbers(make_scene("HardMarginSVC", "Linear()")))
    assert found.correct is correct
    starts = {True: "Correct. It is 4.", False: "Not quite. Look at 4 points.", None: ""}
    assert found.message.startswith(starts[correct])


def test_choices_are_decided_by_conditions() -> None:
    question = ask("choices:", "  *Yes* | separable == 1", "  No | separable == 0", "  Perhaps")
    assert judge(question, "0", Numbers(make_scene())).correct
    wrong = judge(question, "1", Numbers(make_scene()))
    assert (wrong.correct, wrong.expected) == (False, "Yes")
    assert judge(question, "7", Numbers(make_scene())).correct is None
    assert judge(question, "²", Numbers(make_scene())).correct is None
    lonely = Scene(np.zeros((1, 2)), np.zeros(1, dtype=int), Choice("SVC", {}), View(0, 1, 0, 1))
    assert judge(question, "2", Numbers(lonely)).correct


def test_requests_about_lessons() -> None:
    own = read_lesson(
        block("question", "ask: What?", "answer: points")
        + "\n\n"
        + block("task", "do: It.", "until: points > 5", "done: {points}.").removeprefix("# Title\n")
    )
    scene = make_scene()
    replied = lessons.answer("own", 0, 0, "4", scene, own)
    assert (replied["type"], replied["correct"]) == ("answer", True)
    replied = lessons.tasks("own", 0, scene, own)
    assert (replied["done"], replied["numbers"]) == ([False], [[["points", "4"]]])
    assert lessons.open_lesson("own", own)["title"] == "Title"
    for name, page, item in [("none", 0, 0), ("own", 1, 0), ("own", 0, 1), ("own", 0, -1)]:
        with pytest.raises(ValueError, match=r"no (lesson|page|question)"):
            lessons.answer(name, page, item, "4", scene, own)


# ------------------------------------------------------------------- the course


def change(state: State, pane: State | None = None, **parameters: float) -> State:
    changed = deepcopy(state)
    changed["panes"][0] |= pane or {}
    changed["panes"][0]["parameters"] |= parameters
    return changed


def move(state: State, where: Callable[[int, list[float]], list[float] | None]) -> State:
    """Return a state with points elsewhere; those that are nowhere are deleted."""
    changed = deepcopy(state)
    found = [where(k, point) for k, point in enumerate(state["points"])]
    changed["points"] = [[*at[:2], state["points"][k][2]] for k, at in enumerate(found) if at]
    return changed


def spread(distance: float) -> Callable[[int, list[float]], list[float]]:
    """Move the first class to the lower left, and the second one to the upper right."""
    return lambda k, p: [p[0] + distance * (2 * p[2] - 1), p[1] + distance * (2 * p[2] - 1)]


def keep(rows: Any) -> Callable[[int, list[float]], list[float] | None]:
    return lambda k, p: p if k in set(rows) else None


def intrude(state: State) -> State:
    """Drag a point of the first class into the middle of the second."""
    points = np.array(state["points"])
    first = int(np.flatnonzero(points[:, 2] == 0)[0])
    middle = points[points[:, 2] == 1, :2].mean(axis=0).tolist()
    return move(state, lambda k, p: middle if k == first else p)


def support(state: State) -> list[int]:
    return [int(row) for row in Numbers(lessons.scene_of(state)).model.support_]


def approach(state: State) -> State:
    """Drag the point of the first class that is nearest to the line closer to it."""
    numbers = Numbers(lessons.scene_of(change(state, {"model": "HardMarginSVC"})))
    model, points = numbers.model, numbers.scene.points
    row = next(int(k) for k in model.support_ if numbers.scene.labels[k] == 0)
    w = np.ravel(model.coef_)
    at = points[row] + 1.3 * w / float(w @ w)
    return move(state, lambda k, p: at.tolist() if k == row else p)


def drop_ten(state: State) -> State:
    others = sorted(set(range(len(state["points"]))) - set(support(state)))
    return move(state, keep(set(range(len(state["points"]))) - set(others[:10])))


HARD = {"model": "HardMarginSVC", "kernel": "Linear()"}
RBF = {"model": "SVC", "kernel": "RBF(gamma)"}
SOLUTIONS: dict[str, list[Callable[[State], State]]] = {
    "01_hyperplane": [lambda s: move(s, lambda k, p: [k % 5 - 2, 4 * p[2] - 2])],
    "02_margins": [lambda s: change(s, HARD), lambda s: change(move(s, spread(1.0)), HARD)],
    "03_perceptron": [approach, intrude],
    "04_mistake_bound": [lambda s: move(s, spread(1.0))],
    "05_best_separator": [lambda s: move(s, keep(support(s))), intrude],
    "06_slack": [lambda s: change(s, C=0.02), lambda s: change(move(s, spread(1.0)), C=10)],
    "07_dual": [lambda s: change(s, C=1000), drop_ten],
    "08_kernels": [lambda s: change(s, RBF), lambda s: change(s, RBF, gamma=100)],
    "09_kernel_pca": [lambda s: change(s, gamma=1), lambda s: change(s, gamma=0.01)],
    "10_which_model": [
        lambda s: change(s, RBF),
        lambda s: move(s, lambda k, p: p if p[1] > 0 and abs(p[0]) > 0.3 else None),
    ],
}


def test_the_course_has_ten_lessons_in_order() -> None:
    assert list(SOLUTIONS) == COURSE
    assert len(COURSE) == 10
    for entry in lessons.titles():
        lesson = lessons.find_lesson(entry["id"])
        assert (lesson.id, lesson.title) == (entry["id"], entry["title"])
        json.dumps(lesson.describe(), allow_nan=False)


@pytest.mark.parametrize("name", COURSE)
def test_a_lesson_can_be_worked_through(name: str) -> None:
    (page,) = lessons.find_lesson(name).pages
    assert page.state is not None
    assert page.questions
    assert page.tasks
    scene = lessons.scene_of(page.state)
    numbers = Numbers(scene)
    assert numbers.model is not None, numbers.reason
    for question in page.questions:
        check_question(question, numbers)
    begun = lessons.tasks(name, 0, scene)
    assert not any(begun["done"])
    for k, solve in enumerate(SOLUTIONS[name]):
        solved = lessons.scene_of(solve(page.state))
        replied = lessons.tasks(name, 0, solved)
        assert replied["done"][k], (page.tasks[k].until.text, replied["numbers"][k])
        assert "unknown" not in replied["messages"][k]
    assert len(page.tasks) == len(SOLUTIONS[name])


def check_question(question: Question, numbers: Numbers) -> None:
    """Check that there is one right answer, and that what is said about it has all numbers."""
    if question.answer is None:
        right = [c for c in question.choices if c[1] is not None and c[1].holds(numbers)]
        assert len(right) == 1
        wrong, value = "", str(question.choices.index(right[0]))
    else:
        expected = question.answer.evaluate(numbers)
        assert isinstance(expected, float)
        assert 0 < expected < 1000
        value, wrong = repr(expected), repr(2 * expected + 1)
    assert question.hint.parts
    assert "unknown" not in question.hint.fill(numbers)
    found = judge(question, value, numbers)
    assert found.correct
    assert "unknown" not in found.message
    if wrong:
        assert judge(question, wrong, numbers).correct is False
