"""Lessons: pages of text with pictures to set up, questions, and tasks, written in Markdown.

A lesson begins with ``# Title``; each ``## Title`` begins a page. Three kinds of fenced blocks hold
lines ``key: value``, which go on in lines that are indented::

    ```studio
    preset: moons(noise=0.1, points=60)
    model: SVC
    C: 10
    ```

    ```question
    ask: How many support vectors are there?
    answer: support_vectors
    explain: There are {support_vectors}, of which {on_margin} lie on the margin.
    ```

    ```task
    do: Lower C until the street holds a point.
    until: inside > 0
    ```

Answers, conditions and numbers in braces are expressions of ``quantities``: they are computed from
what the learner has on the page. Text becomes spans, never HTML, so that nothing in a lesson can do
more than be read.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin.errors import did_you_mean
from maxmargin.studio import messages, presets
from maxmargin.studio.catalogue import MODELS, SLIDERS
from maxmargin.studio.quantities import (
    Expression,
    ExpressionError,
    Numbers,
    parse_expression,
    write_number,
)
from maxmargin.studio.scene import MOST_CLASSES, Scene, View

LARGEST_LESSON = 256 * 1024  # bytes
MOST_BLOCKS = 1_000
MOST_PAGES = 100  # each may have thousands of points
OWN = "own"  # the id of a lesson that was opened from a file
SHOWN = ("field", "margins", "slack", "separability")  # what can be switched on and off
LIFTS = ("circle", "gaussian")
_COURSE = "lesson_pages"

Spans = list[dict[str, str | None]]


class LessonError(ValueError):
    """A lesson cannot be read; ``line`` is where, counted from 1."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(f"Line {line}: {message}")
        self.line = line


# ------------------------------------------------------------------- what a lesson is


@dataclass(frozen=True)
class Template:
    """A text with expressions in braces, which are filled with numbers."""

    parts: tuple[str | Expression, ...]

    def fill(self, numbers: Numbers) -> str:
        """Return the text with the numbers of a scene, without marks of emphasis."""
        text = "".join(
            part if isinstance(part, str) else _write(part, numbers) for part in self.parts
        )
        return "".join(str(span["text"]) for span in read_spans(text))


def _write(expression: Expression, numbers: Numbers) -> str:
    """Return the value of an expression as text: yes or no, if it is a condition."""
    value = expression.evaluate(numbers)
    if expression.kind == "flag" and value in (0.0, 1.0):
        return "yes" if value else "no"
    return write_number(value)


class Option(NamedTuple):
    """One of several answers; ``when`` is the condition under which it is right.

    None: it is right if no other is.
    """

    text: str
    when: Expression | None


@dataclass(frozen=True)
class Question:
    """A question for a number, ``answer``, or for one of several ``choices``."""

    ask: Spans
    answer: Expression | None
    choices: tuple[Option, ...] = ()
    tolerance: tuple[float, bool] | None = None  # and whether it is relative
    hint: Template | None = None
    explain: Template | None = None


@dataclass(frozen=True)
class Task:
    """Something to do on the page, until a condition holds."""

    do: Spans
    until: Expression
    done: Template | None = None


@dataclass(frozen=True)
class Page:
    """Text, questions and tasks in the order of ``blocks``, and a picture to begin with."""

    title: str
    blocks: tuple[dict[str, Any], ...]
    questions: tuple[Question, ...] = ()
    tasks: tuple[Task, ...] = ()
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


# ------------------------------------------------------------------- the course, and requests


@cache
def _course() -> dict[str, str]:
    """Return the text of each lesson of the course, by its id."""
    folder = resources.files("maxmargin.studio").joinpath(_COURSE)
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".md")), key=lambda f: f.name)
    return {f.name.removesuffix(".md"): f.read_text(encoding="utf-8") for f in files}


def titles() -> list[dict[str, str]]:
    """Return id and title of each lesson of the course, in order."""
    return [
        {"id": name, "title": text.partition("\n")[0].removeprefix("# ").strip()}
        for name, text in _course().items()
    ]


@cache
def _lesson_of_course(name: str) -> Lesson:
    return replace(read_lesson(_course()[name]), id=name)


def find_lesson(name: str, own: Lesson | None = None) -> Lesson:
    """Return a lesson of the course, or the one that was opened from a file."""
    if own is not None and name == own.id:
        return own
    if name not in _course():
        raise ValueError(f"There is no lesson {name!r:.60}; choose one of {', '.join(_course())}.")
    return _lesson_of_course(name)


def open_lesson(name: str, own: Lesson | None = None) -> dict[str, Any]:
    """Return a lesson as the page reads it."""
    return find_lesson(name, own).describe()


def answer(request: messages.Answer, own: Lesson | None = None) -> dict[str, Any]:
    """Judge what was answered, by numbers of the learner's own scene."""
    page = _find_page(request.lesson, request.page, own)
    if not 0 <= request.item < len(page.questions):
        raise ValueError(f"This page has no question {request.item + 1}; open the lesson again.")
    found = judge(page.questions[request.item], request.value, Numbers(request.scene))
    return {
        "type": "answer",
        "seq": request.seq,
        "page": request.page,
        "item": request.item,
        **found._asdict(),
    }


def tasks(request: messages.Tasks, own: Lesson | None = None) -> dict[str, Any]:
    """Say which tasks of a page are done, and how far the others are."""
    page = _find_page(request.lesson, request.page, own)
    numbers = Numbers(request.scene)
    done = [task.until.holds(numbers) for task in page.tasks]
    said = [
        task.done.fill(numbers) if ready and task.done is not None else ""
        for task, ready in zip(page.tasks, done, strict=True)
    ]
    return {
        "type": "tasks",
        "seq": request.seq,
        "page": request.page,
        "done": done,
        "numbers": [_list_numbers(task.until, numbers) for task in page.tasks],
        "messages": said,
    }


def _list_numbers(condition: Expression, numbers: Numbers) -> list[list[str]]:
    """Return what a condition names, and the value of each, as text."""
    return [
        [name.replace("_", " "), _write(parse_expression(name), numbers)]
        for name in condition.names
    ]


def _find_page(name: str, number: int, own: Lesson | None) -> Page:
    pages = find_lesson(name, own).pages
    if not 0 <= number < len(pages):
        raise ValueError(f"This lesson has no page {number + 1}; open it again.")
    return pages[number]


# ------------------------------------------------------------------- judging answers


class Judgement(NamedTuple):
    """Whether an answer is correct; None if that cannot be said."""

    correct: bool | None
    message: str
    expected: str
    explain: str = ""


def judge(question: Question, value: str, numbers: Numbers) -> Judgement:
    """Compare an answer with what is computed from a scene."""
    if question.answer is None:
        return _judge_choice(question, value, numbers)
    expected = question.answer.evaluate(numbers)
    if isinstance(expected, float) and math.isnan(expected):
        return Judgement(None, _say_unknown(numbers), "")
    if isinstance(expected, str):
        return _say(question, value.strip().lower() == expected.lower(), expected, numbers)
    given = read_number(value)
    if given is None:
        return Judgement(
            None, f"Please type a number, such as 3, 0.5 or 1/2, instead of {value!r:.40}.", ""
        )
    if question.answer.kind == "share" and abs(given) > 1.0:  # percent, without the sign
        given /= 100.0
    right = given == expected or abs(given - expected) <= _tolerate(
        question, expected, numbers.scene.view
    )
    aside = "" if right else f" The number is {'smaller' if expected < given else 'larger'}."
    return _say(question, right, write_number(expected), numbers, aside)


def _judge_choice(question: Question, value: str, numbers: Numbers) -> Judgement:
    options = list(enumerate(question.choices))
    right = [k for k, option in options if option.when and option.when.holds(numbers)]
    right = right or [k for k, option in options if option.when is None]
    if not right:
        return Judgement(None, _say_unknown(numbers), "")
    if not value.strip().isdecimal() or int(value) >= len(options):
        return Judgement(None, "Please choose one of the answers.", "")
    return _say(question, int(value) in right, _plain(question.choices[right[0]].text), numbers)


def _say(
    question: Question, right: bool, expected: str, numbers: Numbers, aside: str = ""
) -> Judgement:
    explain = question.explain.fill(numbers) if question.explain is not None else ""
    if right:
        return Judgement(True, f"Correct. {explain}".strip(), expected, explain)
    hint = f" {question.hint.fill(numbers)}" if question.hint is not None else aside
    return Judgement(False, f"Not quite.{hint}", expected, explain)


def _say_unknown(numbers: Numbers) -> str:
    why = f" {numbers.reason}" if numbers.reason else ""
    return f"There is no answer for the points and the model as they are now.{why}"


# How exactly a number must be known, if the question does not say so.
_READING = 0.015  # of the shorter side of the view: what can be read off a picture
_RELATIVE = 0.05
_ABSOLUTE = {"share": 0.01, "angle": 3.0, "count": 1e-9, "flag": 1e-9}


def _tolerate(question: Question, expected: float, view: View) -> float:
    assert question.answer is not None
    if question.tolerance is not None:
        size, relative = question.tolerance
        return size * abs(expected) if relative else size
    kind = question.answer.kind
    if kind in _ABSOLUTE:
        return _ABSOLUTE[kind]
    reading = min(view.right - view.left, view.top - view.bottom) * _READING
    return max(_RELATIVE * abs(expected), reading if kind == "length" else 0.0)


_NUMBER = r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[+-]?\d+)?"
_TYPED = re.compile(rf"({_NUMBER})(?:/({_NUMBER}))?(%?)", re.ASCII)
_LONGEST_NUMBER = 100  # characters
_INFINITE = {"∞": math.inf, "inf": math.inf, "infinity": math.inf, "infinite": math.inf}


def read_number(text: str) -> float | None:
    """Return the number that was typed, or None.

    >>> read_number("1/2"), read_number("0,5"), read_number("50 %"), read_number("half")
    (0.5, 0.5, 0.5, None)
    """
    if len(text) > _LONGEST_NUMBER:
        return None
    text = re.sub(r"\s", "", text).lower().replace("−", "-").lstrip("=≈~")
    if text in _INFINITE:
        return _INFINITE[text]
    match = _TYPED.fullmatch(text)
    if match is None:
        return None
    number, divisor = (float((part or "1").replace(",", ".")) for part in match.group(1, 2))
    if divisor == 0.0 or not math.isfinite(number):
        return None
    return number / divisor / (100.0 if match[3] else 1.0)


# ------------------------------------------------------------------- reading a lesson


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
    lines = text.replace("\r\n", "\n").split("\n")
    reader = _Reader(lines)
    return Lesson(OWN, *reader.read())


class _Line(NamedTuple):
    number: int
    text: str


class _Draft:
    """A page while it is read."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.blocks: list[dict[str, Any]] = []
        self.questions: list[Question] = []
        self.tasks: list[Task] = []
        self.state: dict[str, Any] | None = None

    def finish(self) -> Page:
        return Page(
            self.title,
            tuple(self.blocks),
            tuple(self.questions),
            tuple(self.tasks),
            self.state,
        )

    @property
    def empty(self) -> bool:
        return not self.blocks and self.state is None


# None of these patterns takes more than linear time, whatever the text.
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)$")
_FENCE = re.compile(r" {0,3}(`{3,}(?!`)|~{3,}(?!~))([^`]*)$")
_ITEM = re.compile(r" {0,3}(?:[-*+]|(\d{1,9})[.)])[ \t]+(?=\S)")
_FORMULA = re.compile(r"(?: {4}|\t)(?=.*\S)")


class _Reader:
    """Reads lines from top to bottom, and puts what it finds on pages."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = [_Line(k + 1, line.rstrip()) for k, line in enumerate(lines)]
        self.at = 0
        self.drafts: list[_Draft] = []
        self.blocks = 0  # on all pages

    @property
    def line(self) -> _Line | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def read(self) -> tuple[str, tuple[Page, ...]]:
        self._skip_blank()
        match = _HEADING.match(self.line.text) if self.line else None
        if match is None or match[1] != "#" or not _read_title(match[2]):
            number = self.line.number if self.line else 1
            raise LessonError("A lesson begins with its title, such as '# Margins'.", number)
        title = _read_title(match[2])
        self.at += 1
        self.drafts = [_Draft(title)]
        while (line := self.line) is not None:
            self._read_block(line)
            if self.blocks > MOST_BLOCKS or len(self.drafts) > MOST_PAGES:
                raise LessonError(
                    f"A lesson has at most {MOST_PAGES} pages and {MOST_BLOCKS:,} blocks; "
                    "divide it into two.",
                    line.number,
                )
        if len(self.drafts) > 1 and self.drafts[0].empty:
            del self.drafts[0]
        return title, tuple(draft.finish() for draft in self.drafts)

    @property
    def page(self) -> _Draft:
        return self.drafts[-1]

    def _read_block(self, line: _Line) -> None:
        if not line.text:
            self.at += 1
        elif _HEADING.match(line.text):
            self._read_heading(line)
        elif _FENCE.match(line.text):
            self._read_fence(line)
        elif _ITEM.match(line.text):
            self._read_list()
        elif _FORMULA.match(line.text):
            lines = self._take_while(lambda text: bool(_FORMULA.match(text)))
            self._add("formula", text="\n".join(_dedent(each.text) for each in lines))
        else:
            self._read_paragraph()

    def _add(self, kind: str, **fields: Any) -> None:
        self.page.blocks.append({"kind": kind, **fields})
        self.blocks += 1

    def _skip_blank(self) -> None:
        while self.line is not None and not self.line.text:
            self.at += 1

    def _take_while(self, wanted: Any) -> list[_Line]:
        start = self.at
        while self.line is not None and wanted(self.line.text):
            self.at += 1
        return self.lines[start : self.at]

    def _read_heading(self, line: _Line) -> None:
        match = _HEADING.match(line.text)
        assert match is not None
        self.at += 1
        if match[1] == "#":
            raise LessonError("A lesson has one title; begin a page with '## '.", line.number)
        if match[1] == "##":
            self.drafts.append(_Draft(_read_title(match[2]) or f"Page {len(self.drafts)}"))
        else:
            self._add("heading", spans=read_spans(match[2]))

    def _read_paragraph(self) -> None:
        first = self.at
        lines = self._take_while(lambda text: self.at == first or not _begins_block(text))
        self._add("paragraph", spans=read_spans(" ".join(each.text.strip() for each in lines)))

    def _read_list(self) -> None:
        items: list[list[str]] = []
        assert self.line is not None
        first = _ITEM.match(self.line.text)
        assert first is not None
        while self.line is not None and self.line.text:
            text = self.line.text
            if match := _ITEM.match(text):
                items.append([text[match.end() :]])
            elif _begins_block(text) and not text.startswith((" ", "\t")):
                break
            else:
                items[-1].append(text.strip())
            self.at += 1
        spans = [read_spans(" ".join(each)) for each in items]
        self._add("list", ordered=first[1] is not None, items=spans)

    def _read_fence(self, line: _Line) -> None:
        match = _FENCE.match(line.text)
        assert match is not None
        fence, language = match[1], match[2].strip().partition(" ")[0]
        self.at += 1
        end = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}$")
        body = self._take_while(lambda text: not end.match(text))
        if self.line is None:
            raise LessonError(f"This block is never closed; add a line {fence:.12}.", line.number)
        self.at += 1
        self._place(line, language, body)

    def _place(self, line: _Line, language: str, body: list[_Line]) -> None:
        if language == "studio":
            if self.page.state is not None:
                raise LessonError("A page has one studio block; begin another page.", line.number)
            self.page.state = _read_state(_Fields(line.number, body, STUDIO_KEYS))
        elif language == "question":
            question = _read_question(_Fields(line.number, body, QUESTION_KEYS))
            choices = [read_spans(choice.text) for choice in question.choices]
            item = len(self.page.questions)
            self._add("question", item=item, ask=question.ask, choices=choices)
            self.page.questions.append(question)
        elif language == "task":
            task = _read_task(_Fields(line.number, body, TASK_KEYS))
            self._add("task", item=len(self.page.tasks), do=task.do)
            self.page.tasks.append(task)
        elif meant := did_you_mean(language, ("studio", "question", "task")):
            raise LessonError(f"There is no block {language!r:.60}.{meant}", line.number)
        else:
            self._add("code", text="\n".join(each.text for each in body))


def _read_title(text: str) -> str:
    """Return a heading without the signs that may close it."""
    return _plain(text.rstrip("# \t"))


def _begins_block(text: str) -> bool:
    return not text or any(begin.match(text) for begin in (_HEADING, _FENCE, _ITEM))


def _dedent(text: str) -> str:
    return text.removeprefix("\t") if text.startswith("\t") else text[4:]


_SPAN = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?<!`)(?P<ticks>`{1,3})(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|\*\*(?=\S)(?P<strong>[^*]+)(?<=\S)\*\*"
    r"|\*(?=\S)(?P<em>[^*]+)(?<=\S)\*"
    r"|\[(?P<link>[^\[\]]*)\]\((?P<target>(?:[^()\s]|\([^()\s]*\))*)\)"
)


def read_spans(text: str) -> Spans:
    """Return text in pieces, with the style of each: "em", "strong", "code" or None."""
    spans: Spans = []
    plain, place = "", 0
    for match in _SPAN.finditer(text):
        plain += text[place : match.start()]
        place = match.end()
        if match["escaped"] is not None:
            plain += match["escaped"]
        elif match["link"] is not None:
            plain += f"{match['link']} ({match['target']})" if match["target"] else match["link"]
        else:
            style = next(name for name in ("code", "strong", "em") if match[name] is not None)
            spans += [{"text": plain, "style": None}] if plain else []
            spans.append({"text": match[style], "style": style})
            plain = ""
    plain += text[place:]
    return spans + ([{"text": plain, "style": None}] if plain else [])


def _plain(text: str) -> str:
    return "".join(str(span["text"]) for span in read_spans(text))


# ------------------------------------------------------------------- reading fenced blocks


_TWO_PANES = ("model", "kernel", *SLIDERS)
STUDIO_KEYS = (
    *("preset", "seed", "points", "names", "view", "show", "lift", "run", *_TWO_PANES),
    *(f"second {key}" for key in _TWO_PANES),
)
QUESTION_KEYS = ("ask", "answer", "choices", "tolerance", "hint", "explain")
TASK_KEYS = ("do", "until", "done")


class _Fields:
    """The lines ``key: value`` of a block."""

    def __init__(self, line: int, body: list[_Line], known: tuple[str, ...]) -> None:
        self.line = line
        self.lines: dict[str, int] = {}
        parts: dict[str, list[str]] = {}
        key = ""
        for number, text in body:
            if not text:
                continue
            if text.startswith((" ", "\t")) and key:
                parts[key].append(text.strip())
                continue
            key, value = _split_line(number, text, known)
            if key in parts:
                raise LessonError(f"{key!r} stands twice in this block; keep one.", number)
            parts[key], self.lines[key] = [value] if value else [], number
        self.values = {key: "\n".join(lines) for key, lines in parts.items()}

    def get(self, key: str) -> str | None:
        """Return a value, or None if the key is missing."""
        return self.values.get(key)

    def need(self, key: str) -> str:
        """Return a value that must be there."""
        if not self.values.get(key):
            raise LessonError(f"This block needs a line '{key}: …'.", self.line)
        return self.values[key]

    def refuse(self, key: str, message: str) -> LessonError:
        """Return the error about a value."""
        return LessonError(message, self.lines.get(key, self.line))

    def text(self, key: str) -> str:
        """Return a value that is a text, in one line."""
        return " ".join(self.need(key).split())

    def spans(self, key: str) -> Spans:
        """Return a text that is shown before anything is computed."""
        template = self.template(key)
        if template is not None and len(template.parts) > 1:
            message = f"Numbers in braces are computed in hint, explain and done, not in {key}."
            raise self.refuse(key, message)
        return read_spans(self.text(key))

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
            meant = did_you_mean(value, known) or f" Choose one of {', '.join(known)}."
            raise self.refuse(key, f"There is no {key} {value!r:.60}.{meant}")
        return value

    def expression(self, key: str, text: str | None = None) -> Expression:
        """Return a value that is an expression, or a part of it."""
        try:
            return parse_expression(self.text(key) if text is None else text)
        except ExpressionError as error:
            raise self.refuse(key, str(error)) from None

    def template(self, key: str) -> Template | None:
        """Return a text with expressions in braces, or None if it is missing."""
        if self.get(key) is None:
            return None
        pieces = re.split(r"\{([^{}]*)\}", self.text(key))
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
    ask = fields.spans("ask")
    if (fields.get("answer") is None) == (fields.get("choices") is None):
        raise LessonError("A question has either an answer or choices.", fields.line)
    hint, explain = fields.template("hint"), fields.template("explain")
    if fields.get("choices") is not None:
        if fields.get("tolerance") is not None:
            raise fields.refuse("tolerance", "A question with choices has no tolerance.")
        return Question(ask, None, tuple(_read_choices(fields)), hint=hint, explain=explain)
    tolerance = _read_tolerance(fields) if fields.get("tolerance") is not None else None
    return Question(ask, fields.expression("answer"), (), tolerance, hint, explain)


def _read_choices(fields: _Fields) -> Iterator[Option]:
    """Yield the choices, one in each line: a text, a bar, and the condition."""
    lines = fields.need("choices").split("\n")
    otherwise = sum("|" not in line for line in lines)
    if len(lines) < 2 or otherwise > 1:
        raise fields.refuse(
            "choices",
            "Choices are two or more indented lines, 'text | condition'; one of them may have no "
            "condition, and is right if no other is.",
        )
    for line in lines:
        text, bar, condition = line.rpartition("|")
        if not bar:
            yield Option(line, None)
            continue
        when = fields.expression("choices", condition)
        if when.kind == "word":
            raise fields.refuse("choices", f"{condition.strip()!r:.60} is no condition.")
        yield Option(text.strip(), when)


def _read_tolerance(fields: _Fields) -> tuple[float, bool]:
    size = fields.number("tolerance")
    if size < 0:
        raise fields.refuse("tolerance", f"tolerance must not be negative, got {size:g}.")
    return size, fields.need("tolerance").rstrip().endswith("%")


def _read_task(fields: _Fields) -> Task:
    until = fields.expression("until", fields.text("until"))
    if until.kind != "flag":
        raise fields.refuse("until", "until must be a condition, such as 'errors == 0'.")
    return Task(fields.spans("do"), until, fields.template("done"))


# ------------------------------------------------------------------- reading states


def _read_state(fields: _Fields) -> dict[str, Any]:
    """Return the state of the page that a studio block describes."""
    found = _read_points(fields)
    if fields.get("view") is not None:
        found["view"] = _read_view(fields)
    if fields.get("names") is not None:
        found["names"] = [_plain(each.strip()) for each in fields.text("names").split(",")]
    panes = [_read_pane(fields, "")]
    if any(key.startswith("second ") for key in fields.values):
        panes.append(_read_pane(fields, "second "))
    state = {
        "points": [list(p) for p in zip(found["x"], found["y"], found["label"], strict=True)],
        "names": found["names"][:MOST_CLASSES],
        "view": found["view"],
        "panes": panes,
        "lift": fields.one_of("lift", LIFTS) if fields.get("lift") is not None else None,
        "run": None,
    }
    if fields.get("show") is not None:
        state["show"] = _read_shown(fields)
    if fields.get("run") is not None:
        state["run"] = _read_run(fields, panes[0]["model"])
    for pane in range(len(panes)):
        _check_scene(fields, state, pane)
    return state


def _read_points(fields: _Fields) -> dict[str, Any]:
    if fields.get("preset") is not None:
        if fields.get("points") is not None:
            raise fields.refuse("points", "A studio block has either a preset or points.")
        return _read_preset(fields)
    points = list(_list_points(fields)) if fields.get("points") is not None else []
    x, y, label = (list(column) for column in zip(*points, strict=True)) if points else ([], [], [])
    view = list(presets.view_of(np.array([p[:2] for p in points]).reshape(-1, 2)))
    return {"x": x, "y": y, "label": label, "view": view, "names": []}


_CALL = re.compile(r"(\w+)\s*(?:\((.*)\))?", re.DOTALL)


def _read_preset(fields: _Fields) -> dict[str, Any]:
    match = _CALL.fullmatch(fields.text("preset"))
    if match is None:
        raise fields.refuse("preset", "A preset is written as moons or moons(noise=0.1).")
    name, inside = match[1], match[2] or ""
    if name not in presets.PRESETS:
        meant = did_you_mean(name, presets.PRESETS) or f" Known are {', '.join(presets.PRESETS)}."
        raise fields.refuse("preset", f"There is no preset {name!r:.60}.{meant}")
    parameters: dict[str, float] = {}
    for part in filter(str.strip, inside.split(",")):
        key, _, value = (each.strip() for each in part.partition("="))
        number = read_number(value)
        if number is None:
            raise fields.refuse("preset", f"{part.strip()!r:.60} must be written as name=number.")
        parameters[key] = number
    seed = fields.number("seed") if fields.get("seed") is not None else 0.0
    if not seed.is_integer():
        raise fields.refuse("seed", f"seed must be a whole number, not {seed:g}.")
    try:
        return presets.make(name, parameters, int(seed))
    except ValueError as error:
        raise fields.refuse("preset", str(error)) from None


_POINT = re.compile(r"\(([^,()]{1,60}),([^,()]{1,60}),([^,()]{1,20})\)[\s,;]*")
_LABELS = {**{str(k): k for k in range(MOST_CLASSES)}, **dict(zip("ABCDE", range(5), strict=True))}


def _list_points(fields: _Fields) -> Iterator[tuple[float, float, int]]:
    text, place = fields.need("points"), 0
    while place < len(text):
        match = _POINT.match(text, place)
        numbers = [read_number(part) for part in match.group(1, 2)] if match else [None]
        known = all(number is not None and math.isfinite(number) for number in numbers)
        if match is None or not known or match[3].strip() not in _LABELS:
            shown = text[place:].split("\n")[0][:40]
            raise fields.refuse(
                "points", f"Points are written as (x, y, A), with a class from A to E: {shown!r}."
            )
        yield float(numbers[0] or 0.0), float(numbers[1] or 0.0), _LABELS[match[3].strip()]
        place = match.end()


def _read_view(fields: _Fields) -> list[float]:
    numbers = [read_number(part) for part in fields.text("view").replace(";", " ").split()]
    if len(numbers) != 4 or None in numbers:
        raise fields.refuse("view", "A view is written as four numbers: left right bottom top.")
    return [float(number or 0.0) for number in numbers]


def _read_pane(fields: _Fields, prefix: str) -> dict[str, Any]:
    model = fields.one_of(f"{prefix}model", tuple(MODELS))
    parameters = {
        name: fields.number(f"{prefix}{name}")
        for name in SLIDERS
        if fields.get(f"{prefix}{name}") is not None
    }
    return {
        "model": model,
        "parameters": {
            name: int(value) if SLIDERS[name].whole and value.is_integer() else value
            for name, value in parameters.items()
        },
        "kernel": fields.get(f"{prefix}kernel") or MODELS[model].kernel,
    }


def _read_shown(fields: _Fields) -> dict[str, bool]:
    wanted = [each.strip() for each in fields.text("show").split(",")]
    for each in wanted:
        if each not in SHOWN and each != "nothing":
            meant = did_you_mean(each, SHOWN) or f" Choose from {', '.join(SHOWN)} or nothing."
            raise fields.refuse("show", f"{each!r:.60} cannot be shown.{meant}")
    return {name: name in wanted for name in SHOWN}


def _read_run(fields: _Fields, model: str) -> str:
    if not MODELS[model].runs:
        raise fields.refuse("run", f"{model} has no steps to watch; leave 'run' out.")
    return fields.one_of("run", MODELS[model].runs)


def scene_of(state: dict[str, Any], pane: int = 0) -> Scene:
    """Return the scene of a pane of a state, checked as if the page had sent it."""
    x, y, label = ([point[k] for point in state["points"]] for k in range(3))
    request = messages.read(
        {
            "type": "tasks", "seq": 0, "lesson": "", "page": 0,
            "x": x, "y": y, "label": label, "view": state["view"], **state["panes"][pane],
        }
    )  # fmt: skip
    assert isinstance(request, messages.Tasks)
    return request.scene


def _check_scene(fields: _Fields, state: dict[str, Any], pane: int) -> None:
    """Refuse what the page could not send: sliders beyond their ends, or a slip in a kernel."""
    try:
        scene_of(state, pane)
    except messages.MessageError as error:
        named = re.search(r"'(\w+)(?:\[\d+\])?'", str(error))
        key = f"{'second ' if pane else ''}{named[1]}" if named else ""
        if named and named[1] in ("x", "y", "label"):
            key = "points"
        if key not in fields.lines:
            key = next((each for each in fields.lines if each.endswith("kernel")), "")
        raise fields.refuse(key, str(error)) from None
