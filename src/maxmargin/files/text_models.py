"""What model files of LIBSVM and LIBLINEAR have in common: strict text, and labels beside it.

A file is a header of lines ``key value …``, a line that ends it, and a body of numbers. Everything
is read once, line after line, and nothing is allocated because a header says so.

Both programs know whole numbers of 32 bits as labels only. For other labels the numbers 0 … K − 1
stand in the file, and a file ``<path>.labels.json`` beside it says what they mean:

    {"labels": {"0": "cat", "1": "dog"}, "sha256": "…"}

``sha256`` is that of the model file, so that labels of another model are noticed; a file written
by hand may leave it out.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterable
from hashlib import sha256
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
_NUMBERS = re.compile(rb"(?:%b(?:%b|$))*+" % (NUMBER, _SPACES))
_WHOLE = re.compile(rb"(?:[+-]?+\d{1,10}+(?:%b|$))*+" % _SPACES)


# ------------------------------------------------------------------- reading


class ModelText:
    """A text file that is being read: its lines, and errors that name the place."""

    def __init__(self, path: AnyPath, file: BinaryIO) -> None:
        self.path, self._file = os.fspath(path), file
        self._digest = sha256()
        self.line = self.size = 0

    def next_line(self) -> bytes | None:
        """Return the next line without its end; None if there is none.

        The programs end every line, so one without an end was cut off.
        """
        raw = self._file.readline()
        self._digest.update(raw)
        self.size += len(raw)
        if not raw:
            return None
        self.line += 1
        if not raw.endswith(b"\n"):
            raise self.error("the file ends within this line: it is truncated", len(raw) + 1)
        return raw[:-2] if raw.endswith(b"\r\n") else raw[:-1]

    def expect_end(self) -> None:
        """Raise unless nothing but empty lines is left."""
        while (line := self.next_line()) is not None:
            if line.strip():
                raise self.error(f"more lines than the header says: {shown(line)}")

    @property
    def sha256(self) -> str:
        """Of what was read so far."""
        return self._digest.hexdigest()

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


def read_text(
    path: AnyPath, parse: Callable[[ModelText], Any]
) -> tuple[ModelText, Any, npt.NDArray[Any] | None]:
    """Return a text that was read, what ``parse`` found in it, and what its labels mean."""
    with open(path, "rb") as file:
        text = ModelText(path, file)
        parsed = parse(text)
        return text, parsed, None if parsed.labels is None else read_labels(text, parsed.labels)


def model_of(model: Any, origin: str, state: dict[str, Any]) -> Any:
    """Return a fitted model, which says where it comes from, and that it proves nothing."""
    report = {
        "origin_": origin,
        "status_": Status.READ,
        "solver_": origin,
        "stop_reason_": f"{origin}: {Status.READ.value}.",
    }
    return make(type(model), {**model.get_params(deep=False), **state, **report})


def check_costs(model: Any, given: dict[str, Any]) -> None:
    """Check the parameters of the problem that were given, which a file does not hold."""
    if given["C"] is not None:
        check_cost(model)
    if given["epsilon"] is not None:
        check_number(model, "epsilon", at_least=0)
    if given["nu"] is not None:
        check_number(model, "nu", above=0, at_most=1)


def check_labels(header: "Header", n_classes: int) -> Ints:
    """Return the labels of a file, all different."""
    labels = header.integers("label", n_classes)
    if len(np.unique(labels)) < n_classes:
        raise header.error("label", "a label stands here twice")
    return labels


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

    def integers(self, name: str, count: int, least: int = -_MOST - 1) -> Ints:
        """Return so many integers of 32 bits, none below ``least``."""
        values = self._list(name, _WHOLE, "whole numbers", count)
        wrong = (values < least) | (values > _MOST)
        if wrong.any():
            raise self.error(name, f"{values[wrong][0]:.0f} is not between {least} and {_MOST}")
        return values.astype(np.int64)

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
    meaning: dict[str, Any] | None


def number_labels(classes: npt.NDArray[Any]) -> NumberedLabels:
    """Return the labels of a model as integers of 32 bits, or their places with a map."""
    if classes.dtype.kind in "iuf":
        whole = classes.dtype.kind != "f" or bool((classes % 1 == 0).all())
        if whole and bool((classes >= -_MOST - 1).all() and (classes <= _MOST).all()):
            return NumberedLabels(classes.astype(np.int64), None)
    meaning = {}
    for k, label in enumerate(classes.tolist()):
        if not isinstance(label, str | bool | int | float):
            raise TypeError(
                f"The label {label!r} is neither a number nor a string, so it can stand neither in "
                "the model file nor in its file of labels: map the labels to strings, or save the "
                "model with maxmargin.save."
            )
        meaning[str(k)] = label
    return NumberedLabels(np.arange(len(classes)), meaning)


def label_file(path: AnyPath) -> Path:
    """Return where the meaning of labels stands that are not integers."""
    return Path(f"{os.fspath(path)}.labels.json")


class Meaning(NamedTuple):
    """What the numbers of one model file stand for (None: themselves), and its content's digest."""

    labels: dict[str, Any] | None
    sha256: str | None  # None in a file written by hand, which is for any content

    def is_of(self, digest: str) -> bool:
        """Tell whether this is about a model file with that digest."""
        return self.sha256 is None or self.sha256 == digest


def write_model(
    path: AnyPath, labels: NumberedLabels | None, header: list[str], body: Iterable[str]
) -> None:
    """Write a model file and, if its labels need one, the file that says what they mean.

    That one comes first, and knows both models by their content until the old one is replaced: so
    whichever a crash leaves has its labels.
    """
    beside = label_file(path)
    meaning = None if labels is None else labels.meaning
    known = _read_other_labels(beside)

    def fill(draft: Path) -> None:
        with draft.open("w", encoding="ascii", newline="\n") as file:
            file.writelines(f"{line}\n" for line in header)
            file.writelines(body)
        if meaning is None and not known:
            return
        entries = [Meaning(meaning, _digest_of(draft))]
        if Path(path).is_file():
            old = _digest_of(Path(path))
            found = next((entry.labels for entry in known if entry.is_of(old)), None)
            entries.append(Meaning(found, old))
        _write_label_file(beside, entries)
        written.extend(entries)

    written: list[Meaning] = []
    write_atomically(path, fill)
    if len(written) > 1 and meaning is not None:
        _write_label_file(beside, written[:1])
    if meaning is not None:
        some = ", ".join(f"{k} is {label!r}" for k, label in list(meaning.items())[:10])
        warn(
            f"{os.fspath(path)}: labels can be integers of 32 bits only, so numbers stand for them "
            f"({some}{', …' if len(meaning) > 10 else ''}); {beside.name} beside it says so.",
            UserWarning,
        )
    elif beside.exists():
        beside.unlink()
        warn(
            f"{beside} was removed: it named the labels of the model that was replaced.",
            UserWarning,
        )


def _digest_of(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _write_label_file(beside: Path, entries: list[Meaning]) -> None:
    content: dict[str, Any] = entries[0]._asdict()
    if len(entries) > 1:
        content["before"] = entries[1]._asdict()
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    write_atomically(beside, lambda draft: draft.write_text(text, encoding="utf-8"))


def _read_other_labels(beside: Path) -> list[Meaning]:
    """Return what a file of labels says that is already there; refuse any other file."""
    try:
        return _read_label_file(beside) if beside.exists() else []
    except ModelFileError as other:
        raise ValueError(
            f"{beside} is where labels are kept that are not integers, but it is something else: "
            f"move it, or choose another path. ({other})"
        ) from other


def read_labels(text: ModelText, numbers: Ints) -> npt.NDArray[Any]:
    """Return what the numbers in a file that was read to its end mean: labels, all different."""
    beside = label_file(text.path)
    if not beside.exists():
        return numbers
    entries = [entry for entry in _read_label_file(beside) if entry.is_of(text.sha256)]
    if not entries:
        raise ModelFileError(
            f"{beside}: it belongs to another content of {text.path}, as its sha256 says. If the "
            "model was replaced, remove this file; if not, save both again."
        )
    meaning = entries[0].labels
    if meaning is None:
        return numbers
    if set(meaning) != {str(number) for number in numbers.tolist()}:
        raise ModelFileError(
            f"{beside}: it names the labels {', '.join(sorted(meaning))[:80]}, but the model has "
            f"{', '.join(map(str, numbers.tolist()))[:80]}. If the model was replaced, remove this "
            "file."
        )
    labels = [meaning[str(number)] for number in numbers.tolist()]
    if all(isinstance(label, str) for label in labels):
        return np.array(labels)
    kinds = {type(label) for label in labels}
    if kinds <= {int, float} or kinds == {bool}:
        return np.array(labels)
    raise ModelFileError(f"{beside}: labels must be all strings, all numbers or all true or false.")


_SMALL = 1 << 26  # bytes; no file of labels is larger


def _read_label_file(beside: Path) -> list[Meaning]:
    """Return what the file says of its model and, while that is replaced, of the one before."""
    if beside.stat().st_size > _SMALL:
        raise ModelFileError(f"{beside}: it is too large for a file of labels.")
    try:
        content = parse(beside.read_bytes().decode("utf-8"))
    except ValueError as wrong:
        raise ModelFileError(f"{beside}: it is no JSON file of labels: {wrong}.") from wrong
    if not isinstance(content, dict) or "before" not in content:
        return [_read_meaning(beside, content)]
    before = content.pop("before")
    entries = [_read_meaning(beside, content, True), _read_meaning(beside, before, True)]
    if any(entry.sha256 is None for entry in entries):
        raise ModelFileError(f"{beside}: of two models, each must be named by its sha256.")
    return entries


def _read_meaning(beside: Path, content: Any, optional: bool = False) -> Meaning:
    known = isinstance(content, dict) and set(content) <= {"labels", "sha256"}
    meaning = content.get("labels") if known else None
    digest = content.get("sha256") if known else None
    unsaid = optional and known and meaning is None
    if not (isinstance(meaning, dict) or unsaid) or not isinstance(digest, str | None):
        raise ModelFileError(
            f'{beside}: it must be like {{"labels": {{"0": "cat", "1": "dog"}}, "sha256": "…"}}.'
        )
    labels = list((meaning or {}).values())
    good = all(isinstance(label, str | bool | int | float) for label in labels)
    finite = all(math.isfinite(label) for label in labels if isinstance(label, float))
    if not good or not finite or len(set(labels)) < len(labels):
        raise ModelFileError(
            f"{beside}: labels must be strings or finite numbers, and no two the same."
        )
    return Meaning(meaning, digest)
