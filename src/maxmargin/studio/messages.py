"""Requests of the page, read strictly: what is unknown, missing, too large or wrong is refused.

A request is an object of JSON with a type, a number ``seq`` that its reply repeats, and the fields
of its type. The fields of a scene stand beside them::

    {"type": "fit", "seq": 7, "pane": 0, "grid": [96, 64], "wants": ["separability"],
     "x": [0.0, 1.5], "y": [0.5, -1.0], "label": [0, 1], "view": [-3, 3, -2, 2],
     "model": "SVC", "parameters": {"C": 10}, "kernel": "RBF(gamma)"}
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.errors import did_you_mean
from maxmargin.studio.catalogue import KERNEL_SLIDERS, MODELS, SLIDERS, Slider
from maxmargin.studio.kernel_grammar import KernelSyntaxError, parse_kernel
from maxmargin.studio.scene import FARTHEST, MOST_CLASSES, MOST_POINTS, Choice, Scene, View

LARGEST_MESSAGE = 2_000_000  # bytes
LARGEST_SEQ = 2**53
PANES = 2
GRID = (2, 256)  # columns and rows of a field, at least and at most
NARROWEST = 1e-9  # side of a view
LONGEST_NAME = 200  # characters of the name of a preset or a lesson
LONGEST_ANSWER = 1000
MOST_PARAMETERS = 50  # of a preset
MOST_COLUMNS = 10_000  # of a table
LARGEST_SEED = 2**32 - 1
MOST_PAGES = 1000  # of a lesson, and most items of a page
_SHOWN = 60  # characters of a value in a message
_ROUNDING = 1e-9  # by which a slider on a log scale may be beyond its end


class MessageError(ValueError):
    """A message is no request; ``seq`` and ``pane`` are those of the message, if it has them."""

    def __init__(self, message: str, seq: int | None = None, pane: int | None = None) -> None:
        super().__init__(message)
        self.seq, self.pane = seq, pane


# ------------------------------------------------------------------- requests


@dataclass(frozen=True, eq=False)
class Request:
    """What the page asks for; the reply repeats ``seq``."""

    seq: int


@dataclass(frozen=True, eq=False)
class Hello(Request):
    """Ask what there is to choose from."""


@dataclass(frozen=True, eq=False)
class Fit(Request):
    """Ask for the picture of a scene, with a field of so many columns and rows."""

    pane: int
    scene: Scene
    grid: tuple[int, int]
    wants: tuple[str, ...] = ()  # of "separability"


@dataclass(frozen=True, eq=False)
class Run(Request):
    """Ask for the way to a model, step by step: "perceptron", "solver" or "path"."""

    pane: int
    scene: Scene
    kind: str


@dataclass(frozen=True, eq=False)
class Lift(Request):
    """Ask for the points in three dimensions: "circle" or "gaussian"."""

    scene: Scene
    kind: str
    center: tuple[float, float] | None = None
    scale: float | None = None


@dataclass(frozen=True, eq=False)
class Diagnose(Request):
    """Ask what kind of data was drawn."""

    scene: Scene


@dataclass(frozen=True, eq=False)
class Preset(Request):
    """Ask for the points of a preset."""

    name: str
    parameters: Mapping[str, float]
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Table(Request):
    """Ask for the points of a table.

    ``columns`` are those of the plane, and ``label`` is that of the labels, -1 if there is none;
    None: they are chosen.
    """

    text: str
    columns: tuple[int, int] | None = None
    label: int | None = None


@dataclass(frozen=True, eq=False)
class KernelText(Request):
    """Ask whether a text, as it was typed, is a kernel; the reply says what is wrong with it."""

    text: str
    parameters: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Code(Request):
    """Ask for Python code that draws a scene, whose own choice is the first of all."""

    scene: Scene
    choices: tuple[Choice, ...]


@dataclass(frozen=True, eq=False)
class OpenLesson(Request):
    """Ask for the pages of a lesson."""

    id: str


@dataclass(frozen=True, eq=False)
class Answer(Request):
    """Ask whether an item of a page is answered correctly."""

    lesson: str
    page: int
    item: int
    value: str
    scene: Scene


@dataclass(frozen=True, eq=False)
class Tasks(Request):
    """Ask which tasks of a page a scene fulfils."""

    lesson: str
    page: int
    scene: Scene


@dataclass(frozen=True, eq=False)
class Cancel(Request):
    """Stop what is computed for a pane."""

    pane: int


# ------------------------------------------------------------------- reading


def parse(text: str | bytes) -> Request:
    """Return the request that a message is.

    Raises
    ------
    MessageError
        With one sentence that names the field, its value and the way out.

    Examples
    --------
    >>> parse('{"type": "cancel", "seq": 3, "pane": 1}')
    Cancel(seq=3, pane=1)
    """
    try:
        data = text.encode() if isinstance(text, str) else text
        if len(data) > LARGEST_MESSAGE:
            raise MessageError(
                f"A message may have {LARGEST_MESSAGE:,} bytes, this one has {len(data):,}; "
                "send fewer points or a shorter table."
            )
        found = json.loads(
            data.decode(), parse_constant=_refuse_constant, object_pairs_hook=_object
        )
    except MessageError:
        raise
    except UnicodeError:
        raise MessageError("The message is not text in UTF-8; send JSON in UTF-8.") from None
    except json.JSONDecodeError as error:
        raise MessageError(
            f"The message is not JSON: {error.msg} at character {error.pos + 1}."
        ) from None
    except RecursionError:
        raise MessageError("The message is nested too deeply; a request is flat.") from None
    except ValueError:  # more digits than Python reads
        raise MessageError(
            "The message has a whole number with too many digits; send numbers up to 1e6."
        ) from None
    return read(found)


def read(mapping: Any) -> Request:
    """Return the request that a message is which was parsed already; see ``parse``."""
    if not isinstance(mapping, dict):
        raise MessageError(f"A message is an object with a type, got {_shown(mapping)}.")
    try:
        return _read(_Fields(mapping))
    except MessageError as error:
        error.seq = _whole_or_none(mapping.get("seq"), LARGEST_SEQ)
        error.pane = _whole_or_none(mapping.get("pane"), PANES - 1)
        raise


def _read(fields: "_Fields") -> Request:
    kind = _KINDS[fields.one_of("type", _KINDS)]
    fields.refuse_others(("type", "seq", *kind.required, *kind.optional), kind.required)
    return kind.make(fields.whole("seq", 0, LARGEST_SEQ), fields)


def _whole_or_none(value: Any, high: int) -> int | None:
    return value if type(value) is int and 0 <= value <= high else None


def _refuse_constant(name: str) -> float:
    raise MessageError(f"The message has {name}, which is no number of JSON; send finite numbers.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counted = Counter(key for key, _ in pairs)
        twice = next(key for key, times in counted.items() if times > 1)
        raise MessageError(f"The message has the field {_shown(twice)} twice; send it once.")
    return found


def _shown(value: Any) -> str:
    """Return a value as a message shows it: never long, however large or deep it is."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else f"{value[: _SHOWN - 1]}…")
    if isinstance(value, int) and value.bit_length() > 100:
        return "a whole number with too many digits"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        flat = len(value) <= 4 and not any(isinstance(each, list | tuple | dict) for each in value)
        text = f"[{', '.join(map(_shown, value))}]" if flat else ""
        return text if 0 < len(text) <= _SHOWN else f"a list of {len(value):,} values"
    return "an object" if isinstance(value, dict) else f"a value of type {type(value).__name__:.40}"


class _Fields:
    """The fields of a message; each method returns one of them as what it must be, or refuses it.

    ``place`` is where they are, if not in the message itself.
    """

    def __init__(self, mapping: Mapping[str, Any], place: str = "") -> None:
        self.mapping = mapping
        self.place = place

    def refuse_others(self, known: Iterable[str], required: Iterable[str] = ()) -> None:
        """Refuse fields that are not known, and name those that are missing."""
        where = self.place or "The message"
        known = tuple(known)
        for name in self.mapping:
            if name not in known:
                raise MessageError(
                    f"{where} has the field {_shown(name)}, which is not known."
                    f"{did_you_mean(str(name)[:_SHOWN], known) or ' Leave it out.'}"
                )
        missing = [name for name in required if name not in self.mapping]
        if missing:
            raise MessageError(f"{where} lacks {', '.join(map(repr, missing))}.")

    def refuse(self, name: str, must: str, value: Any) -> MessageError:
        """Return the error that says what a field must be, and what it is."""
        return MessageError(f"{self.placed(name)} must be {must}, got {_shown(value)}.")

    def placed(self, name: str) -> str:
        """Return the name of a field, with the place where it is."""
        return f"{name!r} of {self.place}" if self.place else repr(name)

    def get(self, name: str) -> Any:
        """Return a field that may be missing, then as None."""
        return self.mapping.get(name)

    def whole(self, name: str, low: int, high: int) -> int:
        """Return a whole number between two others."""
        value = self.get(name)
        if type(value) is not int or not low <= value <= high:
            raise self.refuse(name, f"a whole number from {low} to {high}", value)
        return value

    def number(self, name: str, low: float, high: float) -> float:
        """Return a number between two others."""
        value = self.get(name)
        if type(value) not in (int, float) or not low <= value <= high:
            raise self.refuse(name, f"a number from {low:g} to {high:g}", value)
        return float(value)

    def text(self, name: str, longest: int) -> str:
        """Return a text that can be sent back."""
        value = self.get(name)
        if type(value) is not str:
            raise self.refuse(name, "a text", value)
        if len(value) > longest:
            raise self.refuse(name, f"a text of at most {longest:,} characters", value)
        if not _is_unicode(value):
            raise self.refuse(name, "a text of whole characters", value)
        return value

    def one_of(self, name: str, known: Iterable[str]) -> str:
        """Return a word of a list."""
        value, known = self.get(name), tuple(known)
        if type(value) is not str or value not in known:
            question = did_you_mean(value[:_SHOWN], known) if type(value) is str else ""
            refused = self.refuse(name, f"one of {', '.join(known)}", value)
            raise MessageError(f"{refused}{question}")
        return value

    def items(self, name: str, size: tuple[int, int], must: str) -> list[Any]:
        """Return a list with at least and at most so many values."""
        value = self.get(name)
        if not isinstance(value, list | tuple) or not size[0] <= len(value) <= size[1]:
            raise self.refuse(name, must, value)
        return list(value)

    def inner(self, name: str) -> "_Fields":
        """Return the fields of an object, which is empty if it is missing."""
        value = self.mapping.get(name, {})
        if not isinstance(value, dict):
            raise self.refuse(name, "an object of names and numbers", value)
        return _Fields(value, self.placed(name))

    def coordinates(self, name: str) -> Floats:
        """Return numbers of the plane."""
        must = f"a list of at most {MOST_POINTS:,} numbers"
        values = self.items(name, (0, MOST_POINTS), must)
        if not set(map(type, values)) <= {int, float}:
            wrong = next(k for k, each in enumerate(values) if type(each) not in (int, float))
            raise self.refuse(f"{name}[{wrong}]", "a number", values[wrong])
        try:
            found = np.array(values, dtype=np.float64)
        except OverflowError:
            found = np.array([min(max(each, -1e300), 1e300) for each in values], dtype=np.float64)
        inside = np.abs(found) <= FARTHEST
        if not inside.all():
            wrong = int(np.argmin(inside))
            must = f"a number from {-FARTHEST:g} to {FARTHEST:g}"
            raise self.refuse(f"{name}[{wrong}]", must, values[wrong])
        return found

    def labels(self, name: str) -> Ints:
        """Return numbers of classes."""
        must = f"a list of at most {MOST_POINTS:,} labels"
        values = self.items(name, (0, MOST_POINTS), must)
        if set(map(type, values)) <= {int} and set(values) <= set(range(MOST_CLASSES)):
            return np.array(values, dtype=np.int64)
        wrong = next(
            k for k, each in enumerate(values)
            if type(each) is not int or not 0 <= each < MOST_CLASSES
        )  # fmt: skip
        must = f"a whole number from 0 to {MOST_CLASSES - 1}"
        raise self.refuse(f"{name}[{wrong}]", must, values[wrong])


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeError:  # one half of a pair of surrogates
        return False
    return True


# ------------------------------------------------------------------- scenes

_POINTS = ("x", "y", "label", "view")
_CHOICE = ("model",)
_OPTIONS = ("parameters", "kernel")


def _read_scene(fields: _Fields, choice: Choice | None = None) -> Scene:
    x, y, labels = fields.coordinates("x"), fields.coordinates("y"), fields.labels("label")
    if not len(x) == len(y) == len(labels):
        raise MessageError(
            "'x', 'y' and 'label' must have one value for each point, got "
            f"{len(x):,}, {len(y):,} and {len(labels):,} values."
        )
    view = _read_view(fields)
    return Scene(np.column_stack([x, y]), labels, choice or _read_choice(fields), view)


def _read_view(fields: _Fields) -> View:
    must = f"[left, right, bottom, top], four numbers from {-FARTHEST:g} to {FARTHEST:g}"
    values = fields.items("view", (4, 4), must)
    if not all(type(each) in (int, float) and abs(each) <= FARTHEST for each in values):
        raise fields.refuse("view", must, values)
    view = View(*map(float, values))
    if not (view.right - view.left >= NARROWEST and view.top - view.bottom >= NARROWEST):
        must = "[left, right, bottom, top] with left below right and bottom below top"
        raise fields.refuse("view", must, values)
    return view


def _read_choice(fields: _Fields) -> Choice:
    name = fields.one_of("model", MODELS)
    parameters = _read_parameters(fields)
    kernel = fields.text("kernel", LARGEST_MESSAGE) if fields.get("kernel") is not None else ""
    default = MODELS[name].kernel
    if kernel and not default:
        raise fields.refuse("kernel", f"empty for {name}, which has no kernel", kernel)
    if default:
        kernel = kernel or default
        try:
            _check_kernel(kernel, *map(parameters.__getitem__, KERNEL_SLIDERS))
        except KernelSyntaxError as error:
            must = f"empty or a kernel such as {default!r}"
            raise MessageError(f"{fields.refuse('kernel', must, kernel)} {error}") from None
    return Choice(name, parameters, kernel)


@lru_cache(maxsize=64)  # while points are dragged, the kernel stays as it is
def _check_kernel(text: str, *values: float) -> None:
    parse_kernel(text, dict(zip(KERNEL_SLIDERS, values, strict=True)))


def _read_parameters(fields: _Fields) -> dict[str, float]:
    """Return the values of all sliders: those that are missing have their defaults."""
    given = fields.inner("parameters")
    given.refuse_others(SLIDERS)
    return {
        name: _read_slider(given, name, slider) if name in given.mapping else slider.default
        for name, slider in SLIDERS.items()
    }


def _read_slider(given: _Fields, name: str, slider: Slider) -> float:
    if slider.log:  # whose ends are powers of 10, up to rounding
        value = given.number(name, slider.low * (1 - _ROUNDING), slider.high * (1 + _ROUNDING))
        value = min(max(value, slider.low), slider.high)
    else:
        value = given.number(name, slider.low, slider.high)
    if slider.whole and value != math.floor(value):
        must = f"a whole number from {slider.low:g} to {slider.high:g}"
        raise given.refuse(name, must, value)
    return int(value) if slider.whole else value


# ------------------------------------------------------------------- the kinds of requests


def _read_pane(fields: _Fields) -> int:
    return fields.whole("pane", 0, PANES - 1)


def _read_fit(seq: int, fields: _Fields) -> Fit:
    low, high = GRID
    must = f"[columns, rows], two whole numbers from {low} to {high}"
    grid = fields.items("grid", (2, 2), must)
    if not all(type(each) is int and low <= each <= high for each in grid):
        raise fields.refuse("grid", must, grid)
    wants: list[Any] = []
    if "wants" in fields.mapping:
        wants = fields.items("wants", (0, 10), "a list of wishes")
        for each in wants:
            _Fields({"wants": each}).one_of("wants", ("separability",))
    columns, rows = grid
    return Fit(seq, _read_pane(fields), _read_scene(fields), (columns, rows), tuple(wants))


def _read_run(seq: int, fields: _Fields) -> Run:
    kind = fields.one_of("kind", ("perceptron", "solver", "path"))
    scene = _read_scene(fields)
    runs = MODELS[scene.choice.model].runs
    if kind not in runs:
        raise MessageError(
            f"{scene.choice.model} has no run 'kind' {kind!r}; "
            + (
                f"it has {' and '.join(map(repr, runs))}."
                if runs
                else "it cannot be stepped through."
            )
        )
    return Run(seq, _read_pane(fields), scene, kind)


def _read_lift(seq: int, fields: _Fields) -> Lift:
    center, scale = None, None
    if fields.get("center") is not None:
        must = "null or [x, y]"
        found = fields.items("center", (2, 2), must)
        if not all(type(each) in (int, float) and abs(each) <= FARTHEST for each in found):
            raise fields.refuse("center", must, found)
        center = (float(found[0]), float(found[1]))
    if fields.get("scale") is not None:
        scale = fields.number("scale", 1 / FARTHEST, FARTHEST)
    kind = fields.one_of("kind", ("circle", "gaussian"))
    return Lift(seq, _read_scene(fields), kind, center, scale)


def _read_preset(seq: int, fields: _Fields) -> Preset:
    given = fields.inner("parameters")
    if len(given.mapping) > MOST_PARAMETERS:
        raise fields.refuse("parameters", f"at most {MOST_PARAMETERS} numbers", given.mapping)
    parameters = {}
    for name in given.mapping:
        if type(name) is not str or len(name) > LONGEST_NAME or not _is_unicode(name):
            raise MessageError(f"'parameters' has the field {_shown(name)}, which is not known.")
        parameters[name] = given.number(name, -FARTHEST, FARTHEST)
    seed = fields.whole("seed", 0, LARGEST_SEED) if "seed" in fields.mapping else 0
    return Preset(seq, fields.text("name", LONGEST_NAME), parameters, seed)


def _read_table(seq: int, fields: _Fields) -> Table:
    columns, label = None, None
    if fields.get("columns") is not None:
        must = f"null or [i, j], two whole numbers from 0 to {MOST_COLUMNS - 1}"
        found = fields.items("columns", (2, 2), must)
        if not all(type(each) is int and 0 <= each < MOST_COLUMNS for each in found):
            raise fields.refuse("columns", must, found)
        columns = (found[0], found[1])
    if fields.get("label") is not None:
        label = fields.whole("label", -1, MOST_COLUMNS - 1)
    return Table(seq, fields.text("text", LARGEST_MESSAGE), columns, label)


def _read_kernel_text(seq: int, fields: _Fields) -> KernelText:
    return KernelText(seq, fields.text("text", LARGEST_MESSAGE), _read_parameters(fields))


def _read_code(seq: int, fields: _Fields) -> Code:
    must = f"a list of one to {PANES} models"
    choices = []
    for k, pane in enumerate(fields.items("panes", (1, PANES), must)):
        if not isinstance(pane, dict):
            raise fields.refuse(f"panes[{k}]", "an object with a model", pane)
        inner = _Fields(pane, f"panes[{k}]")
        inner.refuse_others((*_CHOICE, *_OPTIONS), _CHOICE)
        choices.append(_read_choice(inner))
    return Code(seq, _read_scene(fields, choices[0]), tuple(choices))


def _read_answer(seq: int, fields: _Fields) -> Answer:
    return Answer(
        seq,
        fields.text("lesson", LONGEST_NAME),
        fields.whole("page", 0, MOST_PAGES - 1),
        fields.whole("item", 0, MOST_PAGES - 1),
        fields.text("value", LONGEST_ANSWER),
        _read_scene(fields),
    )


def _read_tasks(seq: int, fields: _Fields) -> Tasks:
    page = fields.whole("page", 0, MOST_PAGES - 1)
    return Tasks(seq, fields.text("lesson", LONGEST_NAME), page, _read_scene(fields))


class _Kind(NamedTuple):
    make: Callable[[int, _Fields], Request]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


_SCENE = (*_POINTS, *_CHOICE)
_KINDS = {
    "hello": _Kind(lambda seq, _: Hello(seq)),
    "fit": _Kind(_read_fit, ("pane", "grid", *_SCENE), ("wants", *_OPTIONS)),
    "run": _Kind(_read_run, ("pane", "kind", *_SCENE), _OPTIONS),
    "lift": _Kind(_read_lift, ("kind", *_SCENE), ("center", "scale", *_OPTIONS)),
    "diagnose": _Kind(lambda seq, fields: Diagnose(seq, _read_scene(fields)), _SCENE, _OPTIONS),
    "preset": _Kind(_read_preset, ("name",), ("parameters", "seed")),
    "table": _Kind(_read_table, ("text",), ("columns", "label")),
    "kernel": _Kind(_read_kernel_text, ("text",), ("parameters",)),
    "code": _Kind(_read_code, (*_POINTS, "panes")),
    "lesson": _Kind(lambda seq, fields: OpenLesson(seq, fields.text("id", LONGEST_NAME)), ("id",)),
    "answer": _Kind(_read_answer, ("lesson", "page", "item", "value", *_SCENE), _OPTIONS),
    "tasks": _Kind(_read_tasks, ("lesson", "page", *_SCENE), _OPTIONS),
    "cancel": _Kind(lambda seq, fields: Cancel(seq, _read_pane(fields)), ("pane",)),
}
