"""Lessons: pages of text with pictures to set up, questions, and tasks, written in Markdown.

A lesson begins with ``# Title``; each ``## Title`` begins a page. Fenced blocks, ``studio``,
``question`` and ``task``, hold lines ``key: value``, which go on in lines that are indented.
Answers, conditions and numbers in braces name functions of ``quantities``: they are computed from
what the learner has on the page. Text becomes spans, never HTML, so that nothing in a lesson can do
more than be read.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

try:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
except ImportError:
    raise ImportError(
        "lessons need the package markdown-it-py: pip install markdown-it-py"
    ) from None

from maxmargin.errors import did_you_mean
from maxmargin.geometry import LIFTS
from maxmargin.studio import messages, presets
from maxmargin.studio.catalogue import MODELS, SLIDERS
from maxmargin.studio.expressions import Expression, ExpressionError
from maxmargin.studio.quantities import Numbers, parse_expression, write_number
from maxmargin.studio.scene import Scene, View

LARGEST_LESSON = 256 * 1024  # bytes
MOST_PAGES = 100  # each may have thousands of points
OWN = "own"  # the id of a lesson that was opened from a file
SHOWN = ("field", "margins", "slack", "separability")  # what can be switched on and off


# ------------------------------------------------------------------- text as spans


Spans = list[dict[str, str | None]]

MARKDOWN = MarkdownIt("zero").enable(
    ["heading", "list", "fence", "code", "emphasis", "backticks", "escape", "newline"]
)


def read_spans(text: str) -> Spans:
    """Return text in pieces, with the style of each: "em", "strong", "code" or None."""
    return list_spans(MARKDOWN.parseInline(text)[0].children or [])


def list_spans(tokens: Sequence[Token]) -> Spans:
    """Return the tokens of a line of text as spans."""
    spans: Spans = []
    styles: list[str] = []
    for token in tokens:
        text, style = token.content, styles[-1] if styles else None
        if token.type in ("em_open", "strong_open"):
            styles.append(token.type.removesuffix("_open"))
        elif token.type in ("em_close", "strong_close"):
            styles.pop()
        elif token.type == "softbreak":
            text = " "
        elif token.type == "code_inline":
            style = "code"
        if text and spans and spans[-1]["style"] == style:
            spans[-1]["text"] = f"{spans[-1]['text']}{text}"
        elif text:
            spans.append({"text": text, "style": style})
    return spans


def plain_text(text: str) -> str:
    """Return a text without marks of emphasis."""
    return "".join(str(span["text"]) for span in read_spans(text))


# ------------------------------------------------------------------- lessons and their pages


class LessonError(ValueError):
    """A lesson cannot be read; ``line`` is where, counted from 1."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(f"Line {line}: {message}")
        self.line = line


@dataclass(frozen=True)
class Template:
    """A text with expressions in braces, which are filled with numbers."""

    parts: tuple[str | Expression, ...] = ()

    def fill(self, numbers: Numbers) -> str:
        """Return the text with the numbers of a scene, without marks of emphasis."""
        return plain_text(
            "".join(part if isinstance(part, str) else _write(part, numbers) for part in self.parts)
        )


def _write(expression: Expression, numbers: Numbers) -> str:
    """Return the value of an expression as text: yes or no, if it is a condition."""
    value = expression.evaluate(numbers)
    if expression.kind == "flag" and value in (0.0, 1.0):
        return "yes" if value else "no"
    return write_number(value)


@dataclass(frozen=True)
class Question:
    """A question for a number, ``answer``, or for one of several ``choices``.

    A choice is a text and the condition under which it is right; None: it is right if no other is.
    """

    ask: str
    answer: Expression | None
    choices: tuple[tuple[str, Expression | None], ...] = ()
    tolerance: float | None = None
    relative: bool = False  # whether the tolerance is a share of the answer
    hint: Template = Template()
    explain: Template = Template()


@dataclass(frozen=True)
class Task:
    """Something to do on the page, until a condition holds."""

    do: str
    until: Expression
    done: Template = Template()


@dataclass
class Page:
    """Text, questions and tasks in the order of ``blocks``, and a picture to begin with."""

    title: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    state: dict[str, Any] | None = None


@dataclass(frozen=True)
class Lesson:
    """A title and pages."""

    id: str
    title: str
    pages: tuple[Page, ...]

    def describe(self) -> dict[str, Any]:
        """Return the lesson as the page reads it."""
        pages = [{"title": p.title, "blocks": p.blocks, "state": p.state} for p in self.pages]
        return {"type": "lesson", "id": self.id, "title": self.title, "pages": pages}


# ------------------------------------------------------------------- the lessons that come along


@cache
def _texts() -> dict[str, str]:
    """Return the text of each lesson that comes along, by its id."""
    folder = resources.files("maxmargin.studio").joinpath("lesson_pages")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".md")), key=lambda f: f.name)
    return {f.name.removesuffix(".md"): f.read_text(encoding="utf-8") for f in files}


def titles() -> list[dict[str, str]]:
    """Return id and title of each lesson that comes along, in order."""
    return [
        {"id": name, "title": text.partition("\n")[0].removeprefix("# ").strip()}
        for name, text in _texts().items()
    ]


@cache
def _read_text(name: str) -> Lesson:
    return replace(read_lesson(_texts()[name]), id=name)


def find_lesson(name: str, own: Lesson | None = None) -> Lesson:
    """Return a lesson that comes along, or the one that was opened from a file."""
    if own is not None and name == own.id:
        return own
    if name not in _texts():
        raise ValueError(f"There is no lesson {name!r:.60}; choose one of {', '.join(_texts())}.")
    return _read_text(name)


def find_page(name: str, number: int, own: Lesson | None) -> Page:
    """Return a page of a lesson."""
    pages = find_lesson(name, own).pages
    if not 0 <= number < len(pages):
        raise ValueError(f"This lesson has no page {number + 1}; open it again.")
    return pages[number]


def open_lesson(name: str, own: Lesson | None = None) -> dict[str, Any]:
    """Return a lesson as the page reads it."""
    return find_lesson(name, own).describe()


def answer(
    lesson: str, page: int, item: int, value: str, scene: Scene, own: Lesson | None = None
) -> dict[str, Any]:
    """Judge what was answered, by numbers of the learner's own scene."""
    questions = find_page(lesson, page, own).questions
    if not 0 <= item < len(questions):
        raise ValueError(f"This page has no question {item + 1}; open the lesson again.")
    found = judge(questions[item], value, Numbers(scene))
    return {"type": "answer", "page": page, "item": item, **found._asdict()}


def tasks(lesson: str, page: int, scene: Scene, own: Lesson | None = None) -> dict[str, Any]:
    """Say which tasks of a page are done, and how far the others are."""
    found = report_tasks(find_page(lesson, page, own).tasks, Numbers(scene))
    return {"type": "tasks", "page": page, **found}


# ------------------------------------------------------------------- reading


def load_lesson(path: str | Path) -> Lesson:
    """Read a lesson from a file; see ``read_lesson``."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_LESSON + 1)
        return read_lesson(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise LessonError("This is not text in UTF-8; save the file as UTF-8.", line) from None


def read_lesson(text: str) -> Lesson:
    r"""Read a lesson that is written in Markdown.

    Raises
    ------
    LessonError
        With the line, what is wrong with it, and the way out.

    Examples
    --------
    >>> read_lesson("# Margins\n\nA *line* has two sides.").pages[0].title
    'Margins'
    """
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST_LESSON:
        raise LessonError(f"A lesson has at most {LARGEST_LESSON // 1024} KB; divide it into two.")
    return _Reader(text).read()


class _Reader:
    """Takes the tokens of a text one by one, and puts what it finds on pages."""

    def __init__(self, text: str) -> None:
        self.tokens = iter(MARKDOWN.parse(text))
        self.pages: list[Page] = []

    def read(self) -> Lesson:
        for token in self.tokens:
            line = (token.map or [0])[0] + 1
            if not self.pages and token.tag != "h1":
                raise LessonError("A lesson begins with its title, such as '# Margins'.", line)
            self._take(token, line)
            if len(self.pages) > MOST_PAGES:
                raise LessonError(f"A lesson has at most {MOST_PAGES} pages; divide it.", line)
        if not self.pages or not self.pages[0].title:
            raise LessonError("A lesson begins with its title, such as '# Margins'.")
        title, first = self.pages[0].title, self.pages[0]
        if len(self.pages) > 1 and not first.blocks and first.state is None:
            del self.pages[0]
        return Lesson(OWN, title, tuple(self.pages))

    def _add(self, kind: str, **fields: Any) -> None:
        self.pages[-1].blocks.append({"kind": kind, **fields})

    def _take(self, token: Token, line: int) -> None:
        if token.type == "heading_open":
            self._take_heading(token.tag, next(self.tokens), line)
        elif token.type == "inline":
            self._add("paragraph", spans=list_spans(token.children or []))
        elif token.type == "code_block":
            self._add("formula", text=token.content.rstrip())
        elif token.type == "fence":
            self._take_fence(token, line)
        elif token.type.endswith("_list_open"):
            ordered = token.type == "ordered_list_open"
            self._add("list", ordered=ordered, items=list(self._list_items(token)))

    def _take_heading(self, level: str, text: Token, line: int) -> None:
        spans = list_spans(text.children or [])
        title = "".join(str(span["text"]) for span in spans)
        if level == "h1" and self.pages:
            raise LessonError("A lesson has one title; begin a page with '## '.", line)
        if level in ("h1", "h2"):
            self.pages.append(Page(title or f"Page {len(self.pages)}" * bool(self.pages)))
        else:
            self._add("heading", spans=spans)

    def _list_items(self, start: Token) -> Iterator[Spans]:
        """Yield the items of a list; what is inside an item becomes its text."""
        item: list[Token] = []
        for token in self.tokens:
            if token.level == start.level + 1 and token.type == "list_item_close":
                yield list_spans(item)
                item = []
            elif token.level == start.level:
                return
            elif token.type in ("inline", "fence", "code_block"):
                item += item and [Token("softbreak", "br", 0)]
                item += token.children or [token]

    def _take_fence(self, token: Token, line: int) -> None:
        language, page = token.info.strip(), self.pages[-1]
        body = list(enumerate(token.content.split("\n"), line + 1))
        if language == "studio":
            if page.state is not None:
                raise LessonError("A page has one studio block; begin another page.", line)
            page.state = _read_state(_Fields(line, body, STUDIO_KEYS))
        elif language == "question":
            question = _read_question(_Fields(line, body, QUESTION_KEYS))
            choices = [read_spans(text) for text, _ in question.choices]
            item = len(page.questions)
            self._add("question", item=item, ask=read_spans(question.ask), choices=choices)
            page.questions.append(question)
        elif language == "task":
            task = _read_task(_Fields(line, body, TASK_KEYS))
            self._add("task", item=len(page.tasks), do=read_spans(task.do))
            page.tasks.append(task)
        else:
            known = "a block is 'studio', 'question' or 'task'"
            raise LessonError(f"There is no block {language!r:.60}; {known}.", line)


# ------------------------------------------------------------------- fenced blocks


_TWO_PANES = ("model", "kernel", *SLIDERS)
STUDIO_KEYS = (
    *("preset", "seed", "points", "view", "show", "lift", "run", *_TWO_PANES),
    *(f"second {key}" for key in _TWO_PANES),
)
QUESTION_KEYS = ("ask", "answer", "choices", "tolerance", "hint", "explain")
TASK_KEYS = ("do", "until", "done")


class _Fields:
    """The lines ``key: value`` of a block."""

    def __init__(self, line: int, body: list[tuple[int, str]], known: tuple[str, ...]) -> None:
        self.line = line
        self.lines: dict[str, int] = {}
        parts: dict[str, list[str]] = {}
        key = ""
        for number, text in body:
            if text.startswith((" ", "\t")) and key:
                parts[key].append(text.strip())
            elif text.strip():
                key, value = _split_line(number, text, known)
                if key in parts:
                    raise LessonError(f"{key!r} stands twice in this block; keep one.", number)
                parts[key], self.lines[key] = [value], number
        self.values = {key: "\n".join(filter(None, lines)) for key, lines in parts.items()}

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def refuse(self, key: str, message: str) -> LessonError:
        """Return the error about a value."""
        return LessonError(message, self.lines.get(key, self.line))

    def need(self, key: str) -> str:
        """Return a value that must be there."""
        if not self.values.get(key):
            raise LessonError(f"This block needs a line '{key}: …'.", self.line)
        return self.values[key]

    def text(self, key: str) -> str:
        """Return a value that is a text, in one line."""
        return " ".join(self.need(key).split())

    def number(self, key: str) -> float:
        """Return a value that is a number."""
        value = read_number(self.need(key))
        if value is None or not math.isfinite(value):
            raise self.refuse(key, f"{key} must be a number, not {self.values[key]!r:.60}.")
        return value

    def one_of(self, key: str, known: Sequence[str]) -> str:
        """Return a value that is one of several words."""
        value = self.need(key)
        if value not in known:
            meant = did_you_mean(value, known) or f" Known are: {', '.join(known) or 'none'}."
            raise self.refuse(key, f"There is no {key} {value!r:.60}.{meant}")
        return value

    def expression(self, key: str, text: str) -> Expression:
        """Return a value, or a part of it, that is an expression."""
        try:
            return parse_expression(text)
        except ExpressionError as error:
            raise self.refuse(key, f"In {text.strip()!r:.60}: {error}") from None

    def template(self, key: str) -> Template:
        """Return a text with expressions in braces, which may be missing."""
        pieces = re.split(r"\{([^{}]*)\}", self.text(key) if key in self else "")
        return Template(
            tuple(self.expression(key, piece) if k % 2 else piece for k, piece in enumerate(pieces))
        )


def _split_line(number: int, text: str, known: tuple[str, ...]) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    key = " ".join(key.split())
    if not colon:
        raise LessonError(
            f"A line of this block is 'key: value', or goes on if it is indented: {text!r:.60}.",
            number,
        )
    if key not in known:
        meant = did_you_mean(key, known) or f" Known are {', '.join(known[:8])}, …"
        raise LessonError(f"There is no key {key!r:.60} in this block.{meant}", number)
    return key, value.strip()


def _read_question(fields: _Fields) -> Question:
    ask = fields.text("ask")
    if ("answer" in fields) == ("choices" in fields):
        raise LessonError("A question has either an answer or choices.", fields.line)
    if "choices" in fields and "tolerance" in fields:
        raise fields.refuse("tolerance", "A question with choices has no tolerance.")
    choices = tuple(_read_choices(fields)) if "choices" in fields else ()
    answer = fields.expression("answer", fields.text("answer")) if not choices else None
    tolerance = fields.number("tolerance") if "tolerance" in fields else None
    relative = fields.values.get("tolerance", "").endswith("%")
    texts = fields.template("hint"), fields.template("explain")
    return Question(ask, answer, choices, tolerance, relative, *texts)


def _read_choices(fields: _Fields) -> Iterator[tuple[str, Expression | None]]:
    """Yield the choices, one in each line: a text, a bar, and the condition."""
    lines = fields.need("choices").split("\n")
    if len(lines) < 2 or sum("|" not in line for line in lines) > 1:
        raise fields.refuse(
            "choices",
            "Choices are two or more indented lines, 'text | condition'; one of them may have no "
            "condition, and is right if no other is.",
        )
    for line in lines:
        text, bar, condition = line.rpartition("|")
        when = fields.expression("choices", condition) if bar else None
        yield (text.strip(), when) if bar else (line, None)


def _read_task(fields: _Fields) -> Task:
    until = fields.expression("until", fields.text("until"))
    if until.kind != "flag":
        raise fields.refuse("until", "until must be a condition, such as 'errors == 0'.")
    return Task(fields.text("do"), until, fields.template("done"))


# ------------------------------------------------------------------- states


def _read_state(fields: _Fields) -> dict[str, Any]:
    """Return the state of the page that a studio block describes."""
    found = _read_preset(fields) if "preset" in fields else _read_points(fields)
    if "view" in fields:
        found["view"] = _read_view(fields)
    panes = [_read_pane(fields, "")]
    if any(key.startswith("second ") for key in fields.values):
        panes.append(_read_pane(fields, "second "))
    state = {
        "points": [list(p) for p in zip(found["x"], found["y"], found["label"], strict=True)],
        "names": found["names"],
        "view": found["view"],
        "panes": panes,
        "lift": fields.one_of("lift", LIFTS) if "lift" in fields else None,
        "run": fields.one_of("run", MODELS[panes[0]["model"]].runs) if "run" in fields else None,
    }
    if "show" in fields:
        state["show"] = _read_shown(fields)
    for pane in range(len(panes)):
        _check_scene(fields, state, pane)
    return state


_CALL = re.compile(r"(\w+)\s*(?:\((.*)\))?", re.DOTALL)


def _read_preset(fields: _Fields) -> dict[str, Any]:
    if "points" in fields:
        raise fields.refuse("points", "A studio block has either a preset or points.")
    match = _CALL.fullmatch(fields.text("preset"))
    if match is None:
        raise fields.refuse("preset", "A preset is written as moons or moons(noise=0.1).")
    name, inside = match[1], match[2] or ""
    parameters: dict[str, float] = {}
    for part in filter(str.strip, inside.split(",")):
        key, _, value = (each.strip() for each in part.partition("="))
        number = read_number(value)
        if number is None:
            raise fields.refuse("preset", f"{part.strip()!r:.60} must be written as name=number.")
        parameters[key] = number
    seed = fields.number("seed") if "seed" in fields else 0.0
    if not seed.is_integer():
        raise fields.refuse("seed", f"seed must be a whole number, not {seed:g}.")
    try:
        return presets.make(name, parameters, int(seed))
    except ValueError as error:
        raise fields.refuse("preset", str(error)) from None


_POINT = re.compile(r"\(([^,()]{1,60}),([^,()]{1,60}),\s*([A-E])\s*\)[\s,;]*")


def _read_points(fields: _Fields) -> dict[str, Any]:
    text, place = fields.need("points") if "points" in fields else "", 0
    points: list[tuple[float, float, int]] = []
    while place < len(text):
        match = _POINT.match(text, place)
        numbers = [read_number(part) for part in match.group(1, 2)] if match else [None]
        if match is None or None in numbers:
            shown = text[place:].split("\n")[0][:40]
            raise fields.refuse(
                "points", f"Points are written as (x, y, A), with a class from A to E: {shown!r}."
            )
        points.append((float(numbers[0] or 0), float(numbers[1] or 0), "ABCDE".index(match[3])))
        place = match.end()
    columns = [list(column) for column in zip(*points, strict=True)] or [[], [], []]
    view = presets.view_of(np.array([p[:2] for p in points]).reshape(-1, 2))
    return dict(zip(("x", "y", "label"), columns, strict=True)) | {"view": list(view), "names": []}


def _read_view(fields: _Fields) -> list[float]:
    numbers = [read_number(part) for part in fields.text("view").replace(";", " ").split()]
    if len(numbers) != 4 or None in numbers:
        raise fields.refuse("view", "A view is written as four numbers: left right bottom top.")
    return [float(number or 0.0) for number in numbers]


def _read_pane(fields: _Fields, prefix: str) -> dict[str, Any]:
    model = fields.one_of(f"{prefix}model", tuple(MODELS))
    parameters = {
        name: fields.number(f"{prefix}{name}") for name in SLIDERS if f"{prefix}{name}" in fields
    }
    for name, value in parameters.items():
        if SLIDERS[name].whole and value.is_integer():
            parameters[name] = int(value)
    kernel = fields.values.get(f"{prefix}kernel") or MODELS[model].kernel
    return {"model": model, "parameters": parameters, "kernel": kernel}


def _read_shown(fields: _Fields) -> dict[str, bool]:
    wanted = [each.strip() for each in fields.text("show").split(",")]
    for each in wanted:
        if each not in SHOWN and each != "nothing":
            meant = did_you_mean(each, SHOWN) or f" Choose from {', '.join(SHOWN)} or nothing."
            raise fields.refuse("show", f"{each!r:.60} cannot be shown.{meant}")
    return {name: name in wanted for name in SHOWN}


def scene_of(state: dict[str, Any], pane: int = 0) -> Scene:
    """Return the scene of a pane of a state, checked as if the page had sent it."""
    points, labels = [p[:2] for p in state["points"]], [p[2] for p in state["points"]]
    return messages.read_scene(points, labels, state["view"], state["panes"][pane])


def _check_scene(fields: _Fields, state: dict[str, Any], pane: int) -> None:
    """Refuse what the page could not send: sliders beyond their ends, or a slip in a kernel."""
    try:
        scene_of(state, pane)
    except messages.MessageError as error:
        field, prefix = error.field, "second " if pane else ""
        key = "points" if field in ("x", "y", "label") else f"{prefix}{field}"
        raise fields.refuse(key, str(error)) from None


# ------------------------------------------------------------------- answers


class Judgement(NamedTuple):
    """Whether an answer is correct; None if that cannot be said."""

    correct: bool | None
    message: str
    expected: str = ""
    explain: str = ""


def judge(question: Question, value: str, numbers: Numbers) -> Judgement:
    """Compare an answer with what is computed from a scene."""
    if question.answer is None:
        return _judge_choice(question, value, numbers)
    expected = question.answer.evaluate(numbers)
    if isinstance(expected, str):
        return _conclude(question, value.strip().lower() == expected.lower(), expected, numbers)
    if math.isnan(expected):
        return _give_up(numbers)
    given = read_number(value)
    if given is None:
        example = f"Please type a number, such as 3, 0.5 or 1/2, instead of {value!r:.40}."
        return Judgement(None, example)
    if question.answer.kind == "share" and abs(given) > 1.0:  # percent, without the sign
        given /= 100.0
    tolerated = _tolerate(question, expected, numbers.scene.view)
    right = given == expected or abs(given - expected) <= tolerated
    aside = f" The number is {'smaller' if expected < given else 'larger'}."
    return _conclude(question, right, write_number(expected), numbers, aside)


def _judge_choice(question: Question, value: str, numbers: Numbers) -> Judgement:
    choices = list(enumerate(question.choices))
    right = [k for k, (_, when) in choices if when is not None and when.holds(numbers)]
    right = right or [k for k, (_, when) in choices if when is None]
    if not right:
        return _give_up(numbers)
    if not value.strip().isdecimal() or int(value) >= len(choices):
        return Judgement(None, "Please choose one of the answers.")
    expected = plain_text(question.choices[right[0]][0])
    return _conclude(question, int(value) in right, expected, numbers)


def _conclude(
    question: Question, right: bool, expected: str, numbers: Numbers, aside: str = ""
) -> Judgement:
    explain = question.explain.fill(numbers)
    if right:
        return Judgement(True, f"Correct. {explain}".strip(), expected, explain)
    hint = question.hint.fill(numbers)
    return Judgement(False, f"Not quite.{f' {hint}' if hint else aside}", expected, explain)


def report_tasks(tasks: Sequence[Task], numbers: Numbers) -> dict[str, Any]:
    """Return which tasks are done, the numbers that they depend on, and what there is to say."""
    done = [task.until.holds(numbers) for task in tasks]
    pairs = list(zip(tasks, done, strict=True))
    return {
        "done": done,
        "numbers": [
            [[name.replace("_", " "), _write(parse_expression(name), numbers)]
             for name in task.until.names]
            for task in tasks
        ],
        "messages": [task.done.fill(numbers) if ready else "" for task, ready in pairs],
    }  # fmt: skip


def _give_up(numbers: Numbers) -> Judgement:
    why = f" {numbers.reason}" if numbers.reason else ""
    message = f"There is no answer for the points and the model as they are now.{why}"
    return Judgement(None, message)


# How exactly a number must be known, if the question does not say so.
_READING = 0.015  # of the shorter side of the view: what can be read off a picture
_RELATIVE = 0.05
_ABSOLUTE = {"share": 0.01, "angle": 3.0, "count": 1e-9, "flag": 1e-9}


def _tolerate(question: Question, expected: float, view: View) -> float:
    assert question.answer is not None
    if question.tolerance is not None:
        return question.tolerance * (abs(expected) if question.relative else 1.0)
    kind = question.answer.kind
    if kind in _ABSOLUTE:
        return _ABSOLUTE[kind]
    reading = min(view.right - view.left, view.top - view.bottom) * _READING
    return max(_RELATIVE * abs(expected), reading if kind == "length" else 0.0)


_NUMBER = r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[+-]?\d+)?"
_TYPED = re.compile(rf"({_NUMBER})(?:/({_NUMBER}))?(%?)", re.ASCII)
_LONGEST_NUMBER = 100  # characters


def read_number(text: str) -> float | None:
    """Return the number that was typed, or None.

    >>> read_number("1/2"), read_number("0,5"), read_number("50 %"), read_number("half")
    (0.5, 0.5, 0.5, None)
    """
    if len(text) > _LONGEST_NUMBER:
        return None
    match = _TYPED.fullmatch(re.sub(r"\s", "", text).lower().replace("−", "-"))
    if match is None:
        return None
    number, divisor = (float((part or "1").replace(",", ".")) for part in match.group(1, 2))
    if divisor == 0.0 or not math.isfinite(number):
        return None
    return number / divisor / (100.0 if match[3] else 1.0)
