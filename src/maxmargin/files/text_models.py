"""What model files of LIBSVM and LIBLINEAR have in common: strict text, and labels of any kind.

A file is a header of lines ``key value …``, a line that ends it, and a body of numbers. Everything
is read once, line after line, and nothing is allocated because a header says so.

Both programs know whole numbers of 32 bits as labels only. For other labels the numbers 0 … K − 1
stand in the file, and a last line, which neither program reads, says what they mean:

    labels ["cat", "dog"]
"""

import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin._typing import Floats, Ints
from maxmargin.errors import ModelFileError, did_you_mean, warn
from maxmargin.files.known_classes import make
from maxmargin.files.nodes import parse
from maxmargin.inspection.model_view import view_model
from maxmargin.problems.problem import Status
from maxmargin.runtime.atomic_write import write_atomically
from maxmargin.validation.parameters import check_cost, check_number

AnyPath = str | os.PathLike[str]
LIBSVM, LIBLINEAR = "LIBSVM file", "LIBLINEAR file"

NUMBER = rb"[+-]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d{1,6}+)?+"
_SPACES = rb"[ \t]++"
LARGEST = 1e145  # rows with larger numbers are refused by ``fit``, too
_MOST = 2**31 - 1  # what a 32-bit integer holds
_LABELS = b"labels "
_SPARE = 64  # characters that an array of labels may have for each that is in the file
_NUMBERS = re.compile(rb"(?:%b(?:%b|$))*+" % (NUMBER, _SPACES))
_WHOLE = re.compile(rb"(?:[+-]?+\d{1,10}+(?:%b|$))*+" % _SPACES)


# ------------------------------------------------------------------- reading


class ModelText:
    """A text file that is being read: its lines, and errors that name the place."""

    def __init__(self, path: AnyPath, file: BinaryIO) -> None:
        self.path, self._file = os.fspath(path), file
        self.line = self.size = 0

    def next_line(self) -> bytes | None:
        """Return the next line without its end; None if there is none.

        The programs end every line, so one without an end was cut off.
        """
        raw = self._file.readline()
        self.size += len(raw)
        if not raw:
            return None
        self.line += 1
        if not raw.endswith(b"\n"):
            raise self.error("the file ends within this line: it is truncated", len(raw) + 1)
        return raw[:-2] if raw.endswith(b"\r\n") else raw[:-1]

    def read_end(self, numbers: Ints | None) -> npt.NDArray[Any] | None:
        """Return what the numbers of classes mean, and raise if more than a line says so."""
        labels: npt.NDArray[Any] | None = None
        while (line := self.next_line()) is not None:
            if numbers is not None and labels is None and line.startswith(_LABELS):
                labels = self._read_labels(numbers, line.removeprefix(_LABELS))
            elif line.strip():
                raise self.error(f"more lines than the header says: {shown(line)}")
        return numbers if labels is None else labels

    def _read_labels(self, numbers: Ints, text: bytes) -> npt.NDArray[Any]:
        """Return the labels that numbers from 0 on stand for: one for each, no two the same."""
        try:
            labels = parse(text.decode("ascii"))
        except ValueError as wrong:
            raise self.error(f"the labels are no JSON: {wrong}") from None
        kinds = {type(each) for each in labels} if isinstance(labels, list) else set()
        if not kinds or not (kinds <= {int, float} or kinds in ({str}, {bool})):
            raise self.error("labels must be a list of strings, of numbers, or of true and false")
        longest = max(len(each) for each in labels) if kinds == {str} else 1
        if len(labels) * longest > max(_SPARE * len(text), 1 << 20):
            raise self.error("a label is much longer than the others")
        found = np.array(labels)
        if found.dtype.kind == "O" or len(np.unique(found)) < len(found):
            raise self.error("two labels are the same, or one has more than 64 bits")
        if sorted(numbers.tolist()) != list(range(len(found))):
            raise self.error(f"there are {len(found)} labels, but others are in the header")
        return found[numbers]

    def error(self, message: str, column: int = 1) -> ModelFileError:
        """Return an error about the line that was read last."""
        return ModelFileError(f"{self.path}:{max(self.line, 1)}:{column}: {end(message)}")

    def fault(self, message: str) -> ModelFileError:
        """Return an error about the file as a whole."""
        return ModelFileError(f"{self.path}: {end(message)}")


def end(message: str) -> str:
    """Return a message as a sentence that has an end."""
    return message if message.endswith((".", "?")) else f"{message}."


def shown(text: bytes) -> str:
    """Return some bytes of a file as they may stand in a message."""
    return repr(text[:40].decode("ascii", "backslashreplace"))


def read_text(path: AnyPath, parse: Callable[[ModelText], Any]) -> tuple[ModelText, Any]:
    """Return a text that was read, and what ``parse`` found in it."""
    with open(path, "rb") as file:
        text = ModelText(path, file)
        return text, parse(text)


def model_of(model: Any, origin: str, state: dict[str, Any]) -> Any:
    """Return a fitted model, which says where it comes from, and that it proves nothing."""
    report = {
        "origin_": origin,
        "status_": Status.READ,
        "solver_": origin,
        "stop_reason_": f"{origin}: {Status.READ.value}.",
    }
    return make(type(model), {**model.get_params(deep=False), **state, **report})


def set_costs(model: Any, given: dict[str, Any]) -> None:
    """Set the parameters of the problem, which a file does not hold; None: nobody gave them."""
    for name, value in given.items():
        if hasattr(model, name):
            setattr(model, name, value)
        elif value is not None:
            raise ValueError(
                f"{name}={value!r} is no parameter of the {type(model).__name__} that this file "
                "holds: leave it out."
            )
    if given["C"] is not None:
        check_cost(model)
    if given["epsilon"] is not None:
        check_number(model, "epsilon", at_least=0)
    if given.get("nu") is not None:
        check_number(model, "nu", above=0, at_most=1)


class Header:
    """The lines ``key value …`` at the head of a model file, each key once."""

    def __init__(self, text: ModelText, known: Iterable[str], last: str) -> None:
        self._text, known = text, list(known)
        self._values: dict[str, tuple[int, int, bytes]] = {}  # with line and column
        while True:
            line = text.next_line()
            if line is None:
                raise text.fault(f"there is no line {last!r}: it is truncated, or no such file")
            key, _, rest = line.partition(b" ")
            name = key.decode("ascii", "replace")
            if name == last and not rest.strip():
                return
            if name not in known:
                hint = did_you_mean(name, [*known, last])
                raise text.error(f"{shown(key)} is no key of such a file.{hint}")
            if name in self._values:
                raise text.error(f"{name!r} is given twice")
            self._values[name] = text.line, len(key) + 2, rest.strip(b" \t")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def error(self, name: str, message: str) -> ModelFileError:
        """Return an error about the value of a key."""
        if name not in self._values:
            return self._text.fault(f"{name} is missing: {message}")
        line, column, _ = self._values[name]
        return ModelFileError(f"{self._text.path}:{line}:{column}: {name}: {end(message)}")

    def word(self, name: str, choices: Iterable[str]) -> str:
        """Return a word, which must be one of the choices."""
        choices = list(choices)
        value = self._value(name).decode("ascii", "replace")
        if value not in choices:
            hint = did_you_mean(value, choices)
            raise self.error(name, f"{value[:40]!r} is not one of {', '.join(choices)}.{hint}")
        return value

    def numbers(self, name: str, count: int) -> Floats:
        """Return so many finite numbers."""
        values = self._list(name, _NUMBERS, "numbers", count)
        if not fit_to_compute(values):
            raise self.error(name, "a number is too large")
        return values

    def integers(self, name: str, count: int, least: int = -_MOST - 1, most: int = _MOST) -> Ints:
        """Return so many integers of 32 bits, none below ``least`` or above ``most``."""
        values = self._list(name, _WHOLE, "whole numbers", count)
        wrong = (values < least) | (values > most)
        if wrong.any():
            raise self.error(name, f"{values[wrong][0]:.0f} is not between {least} and {most}")
        return values.astype(np.int64)

    def integer(self, name: str, least: int, most: int = _MOST) -> int:
        """Return an integer."""
        return int(self.integers(name, 1, least, most)[0])

    def number(self, name: str) -> float:
        """Return a finite number."""
        return float(self.numbers(name, 1)[0])

    def labels(self, n_classes: int) -> Ints:
        """Return the labels of the classes, all different."""
        labels = self.integers("label", n_classes)
        if len(np.unique(labels)) < n_classes:
            raise self.error("label", "a label stands here twice")
        return labels

    def _value(self, name: str) -> bytes:
        if name not in self._values:
            raise self._text.fault(f"the key {name!r} is missing")
        return self._values[name][2]

    def _list(self, name: str, pattern: re.Pattern[bytes], kind: str, count: int) -> Floats:
        value = self._value(name)
        found = pattern.match(value)
        end = 0 if found is None else found.end()
        if end < len(value):
            raise self.error(name, f"{shown(value[end:])} is not one of {kind}")
        values = to_floats(value)
        if len(values) != count:
            raise self.error(name, f"{count} {kind} must stand here, but there are {len(values)}")
        return values


def column_of(text: bytes, nth: int) -> int:
    """Return the column, from 1, of the nth word (from 0) of a text."""
    for k, found in enumerate(re.finditer(rb"[^ \t]++", text)):
        if k == nth:
            return found.start() + 1
    return len(text) + 1


def fit_to_compute(values: Floats) -> bool:
    """Return whether numbers are so small that no sum of products of two of them is infinite."""
    return bool((np.abs(values) <= LARGEST).all())


def to_floats(text: bytes) -> Floats:
    """Return numbers that a pattern has checked, correctly rounded."""
    if not text.strip():
        return np.zeros(0)
    return np.asarray(np.fromstring(text, dtype=np.float64, sep=" "))


# ------------------------------------------------------------------- writing


def find_machine(model: Any, program: str) -> Any:
    """Return the machine itself, of a search the best one; a pipeline has no place in a file."""
    view = view_model(model)
    if view.steps or hasattr(view.model, "steps"):
        raise TypeError(
            f"A {program} file holds a {type(view.machine).__name__} but no other steps of a "
            "pipeline: save the pipeline with maxmargin.save, or its last step alone and transform "
            "rows before they are predicted."
        )
    return view.machine


def joined(values: Any) -> str:
    """Return numbers as they stand in a line, without loss."""
    return " ".join(f"{value:.17g}" for value in np.ravel(values).tolist())


# ------------------------------------------------------------------- labels


class NumberedLabels(NamedTuple):
    """The numbers that stand for classes in a file, and what they mean if that is not the same."""

    numbers: Ints  # in the order of the classes
    meaning: list[Any] | None


def number_labels(classes: npt.NDArray[Any]) -> NumberedLabels:
    """Return the labels of a model as integers of 32 bits, or their places with what they mean."""
    if classes.dtype.kind in "iuf":
        whole = classes.dtype.kind != "f" or bool((classes % 1 == 0).all())
        if whole and bool((classes >= -_MOST - 1).all() and (classes <= _MOST).all()):
            return NumberedLabels(classes.astype(np.int64), None)
    for label in classes.tolist():
        if not isinstance(label, str | bool | int | float):
            raise TypeError(
                f"The label {label!r} is neither a number nor a string, so it cannot stand in such "
                "a file: map the labels to strings, or save the model with maxmargin.save."
            )
    return NumberedLabels(np.arange(len(classes)), classes.tolist())


def write_model(
    path: AnyPath, labels: NumberedLabels | None, header: list[str], body: Iterable[str]
) -> None:
    """Write a model file; its last line says what labels mean that are no integers."""
    meaning = None if labels is None else labels.meaning

    def fill(draft: Path) -> None:
        with draft.open("w", encoding="ascii", newline="\n") as file:
            file.writelines(f"{line}\n" for line in header)
            file.writelines(body)
            if meaning is not None:
                file.write(f"{_LABELS.decode()}{json.dumps(meaning)}\n")

    write_atomically(path, fill)
    if meaning is not None:
        some = ", ".join(f"{k} is {label!r}" for k, label in enumerate(meaning[:10]))
        warn(
            f"{os.fspath(path)}: labels can be integers of 32 bits only, so numbers stand for them "
            f"({some}{', …' if len(meaning) > 10 else ''}); the last line of the file says so.",
            UserWarning,
        )
