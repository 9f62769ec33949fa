"""Questions and tasks of a lesson, judged by numbers of the learner's own scene."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from maxmargin.studio.expressions import Expression
from maxmargin.studio.quantities import Numbers, parse_expression, write_number
from maxmargin.studio.scene import View
from maxmargin.studio.spans import plain_text


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
    text = re.sub(r"\s", "", text).lower().replace("−", "-").lstrip("=≈~")
    if text in ("∞", "inf", "infinity", "infinite"):
        return math.inf
    match = _TYPED.fullmatch(text)
    if match is None:
        return None
    number, divisor = (float((part or "1").replace(",", ".")) for part in match.group(1, 2))
    if divisor == 0.0 or not math.isfinite(number):
        return None
    return number / divisor / (100.0 if match[3] else 1.0)
