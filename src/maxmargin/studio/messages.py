"""Requests of the page, read strictly: what is unknown, missing, too large or wrong is refused.

A request is an object of JSON with a type, a number ``seq`` that its reply repeats, and the fields
of its type. The fields of a scene stand beside them::

    {"type": "fit", "seq": 7, "pane": 0, "grid": [96, 64], "wants": ["separability"],
     "x": [0.0, 1.5], "y": [0.5, -1.0], "label": [0, 1], "view": [-3, 3, -2, 2],
     "model": "SVC", "parameters": {"C": 10}, "kernel": "RBF(gamma)"}
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal

import numpy as np

try:
    import msgspec
    from msgspec import Meta, Struct
except ImportError:
    raise ImportError("the studio needs the package msgspec: pip install msgspec") from None

from maxmargin.errors import did_you_mean
from maxmargin.studio.catalogue import KERNEL_SLIDERS, MODELS, SLIDERS
from maxmargin.studio.expressions import ExpressionError, parse_kernel
from maxmargin.studio.scene import FARTHEST, MOST_CLASSES, MOST_POINTS, Choice, Scene, View

LARGEST_MESSAGE = 2_000_000  # bytes
LARGEST_SEQ = 2**53
PANES = 2
NARROWEST = 1e-9  # side of a view
MOST_PARAMETERS = 50  # of a preset
MOST_COLUMNS = 10_000  # of a table
_SHOWN = 60  # characters of a value in a message
_ROUNDING = 1e-9  # by which a slider on a log scale may be beyond its end

Seq = Annotated[int, Meta(ge=0, le=LARGEST_SEQ)]
Pane = Annotated[int, Meta(ge=0, le=PANES - 1)]
Coordinate = Annotated[float, Meta(ge=-FARTHEST, le=FARTHEST)]
Coordinates = Annotated[list[Coordinate], Meta(max_length=MOST_POINTS)]
Labels = Annotated[
    list[Annotated[int, Meta(ge=0, le=MOST_CLASSES - 1)]], Meta(max_length=MOST_POINTS)
]
Edges = tuple[Coordinate, Coordinate, Coordinate, Coordinate]
Side = Annotated[int, Meta(ge=2, le=256)]  # columns or rows of a field
Name = Annotated[str, Meta(max_length=200)]
Column = Annotated[int, Meta(ge=0, lt=MOST_COLUMNS)]
Place = Annotated[int, Meta(ge=0, lt=1000)]  # of a page in a lesson, or of an item on a page


class MessageError(ValueError):
    """A message is no request.

    ``seq`` and ``pane`` are those of the message, if it has them; ``field`` is what is wrong.
    """

    def __init__(
        self, message: str, field: str = "", seq: int | None = None, pane: int | None = None
    ) -> None:
        super().__init__(message)
        self.field, self.seq, self.pane = field, seq, pane


# ------------------------------------------------------------------- requests


class _Fields(Struct, eq=False, kw_only=True, dict=True, forbid_unknown_fields=True):
    """What is read strictly, and keeps what is made of it."""


class PaneChoice(_Fields):
    """A model, the positions of sliders, and an expression for its kernel."""

    model: str
    parameters: dict[str, float] = {}
    kernel: str | None = None

    def __post_init__(self) -> None:
        _ = self.choice  # refused now, or never

    @cached_property
    def choice(self) -> Choice:
        """The choice with all its sliders."""
        return _read_choice(self.model, self.parameters, self.kernel or "")


class Request(_Fields, tag_field="type"):
    """What the page asks for; the reply repeats ``seq``."""

    seq: Seq


class _Points(Request):
    x: Coordinates
    y: Coordinates
    label: Labels
    view: Edges

    def place(self, choice: Choice) -> Scene:
        """Return the scene of the points with a choice."""
        sizes = len(self.x), len(self.y), len(self.label)
        if len(set(sizes)) > 1:
            raise MessageError(
                "'x', 'y' and 'label' must have one value for each point, got "
                "{:,}, {:,} and {:,} values.".format(*sizes),
                "x",
            )
        view = View(*self.view)
        if not (view.right - view.left >= NARROWEST and view.top - view.bottom >= NARROWEST):
            must = "[left, right, bottom, top] with left below right and bottom below top"
            raise MessageError(f"'view' must be {must}, got {list(view)}.", "view")
        points = np.column_stack([np.array(self.x, dtype=np.float64), self.y])
        return Scene(points, np.array(self.label, dtype=np.int64), choice, view)


class _SceneRequest(_Points):
    model: str
    parameters: dict[str, float] = {}
    kernel: str | None = None

    def __post_init__(self) -> None:
        _ = self.scene  # refused now, or never

    @cached_property
    def scene(self) -> Scene:
        """Points, a choice, and what is seen."""
        return self.place(_read_choice(self.model, self.parameters, self.kernel or ""))


class Hello(Request, tag="hello"):
    """Ask what there is to choose from."""


class Fit(_SceneRequest, tag="fit", kw_only=True):
    """Ask for the picture of a scene, with a field of so many columns and rows."""

    pane: Pane
    grid: tuple[Side, Side]
    wants: Annotated[tuple[Literal["separability"], ...], Meta(max_length=10)] = ()


class Run(_SceneRequest, tag="run", kw_only=True):
    """Ask for the way to a model, step by step."""

    pane: Pane
    kind: Literal["perceptron", "solver", "path"]

    def __post_init__(self) -> None:
        super().__post_init__()
        runs = MODELS[self.model].runs
        if self.kind not in runs:
            has = f"it has {' and '.join(map(repr, runs))}" if runs else "it has none"
            sentence = f"{self.model} has no run of the 'kind' {self.kind!r}; {has}."
            raise MessageError(sentence, "kind")


class Lift(_SceneRequest, tag="lift", kw_only=True):
    """Ask for the points in three dimensions."""

    kind: Literal["circle", "gaussian"]


class Diagnose(_SceneRequest, tag="diagnose"):
    """Ask what kind of data was drawn."""


class Preset(Request, tag="preset"):
    """Ask for the points of a preset."""

    name: Name
    parameters: Annotated[dict[Name, Coordinate], Meta(max_length=MOST_PARAMETERS)] = {}
    seed: Annotated[int, Meta(ge=0, lt=2**32)] = 0


class Table(Request, tag="table"):
    """Ask for the points of a table.

    ``columns`` are those of the plane, and ``label`` is that of the labels, -1 if there is none;
    None: they are chosen.
    """

    text: str
    columns: tuple[Column, Column] | None = None
    label: Annotated[int, Meta(ge=-1, lt=MOST_COLUMNS)] | None = None


class KernelText(Request, tag="kernel"):
    """Ask whether a text, as it was typed, is a kernel; the reply says what is wrong with it."""

    text: str
    parameters: dict[str, float] = {}

    def __post_init__(self) -> None:
        _place_sliders(self.parameters)


class Code(_Points, tag="code"):
    """Ask for Python code that draws a scene, whose own choice is the first of all."""

    panes: Annotated[list[PaneChoice], Meta(min_length=1, max_length=PANES)]

    def __post_init__(self) -> None:
        _ = self.scene

    @cached_property
    def scene(self) -> Scene:
        """Points, the first choice, and what is seen."""
        return self.place(self.panes[0].choice)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The models side by side."""
        return tuple(pane.choice for pane in self.panes)


class OpenLesson(Request, tag="lesson"):
    """Ask for the pages of a lesson."""

    id: Name


class Answer(_SceneRequest, tag="answer", kw_only=True):
    """Ask whether an item of a page is answered correctly."""

    lesson: Name
    page: Place
    item: Place
    value: Annotated[str, Meta(max_length=1000)]


class Tasks(_SceneRequest, tag="tasks", kw_only=True):
    """Ask which tasks of a page a scene fulfils."""

    lesson: Name
    page: Place


class Cancel(Request, tag="cancel"):
    """Stop what is computed for a pane."""

    pane: Pane


AnyRequest = (
    Hello | Fit | Run | Lift | Diagnose | Preset | Table | KernelText | Code | OpenLesson
    | Answer | Tasks | Cancel
)  # fmt: skip
_DECODER: msgspec.json.Decoder[AnyRequest] = msgspec.json.Decoder(AnyRequest)
_TYPES: dict[str, type[Request]] = {
    str(kind.__struct_config__.tag): kind for kind in AnyRequest.__args__
}


# ------------------------------------------------------------------- choices


def _read_choice(model: str, given: Mapping[str, float], kernel: str) -> Choice:
    if model not in MODELS:
        raise _refuse_word("model", model, MODELS)
    parameters, default = _place_sliders(given), MODELS[model].kernel
    if kernel and not default:
        must = f"empty for {model}, which has no kernel"
        raise MessageError(f"'kernel' must be {must}, got {kernel!r:.{_SHOWN}}.", "kernel")
    kernel = kernel or default
    if kernel:
        _check_kernel(kernel, default, *map(parameters.__getitem__, KERNEL_SLIDERS))
    return Choice(model, parameters, kernel)


def _place_sliders(given: Mapping[str, float]) -> dict[str, float]:
    """Return the values of all sliders: those that are missing have their defaults."""
    for name in given:
        if name not in SLIDERS:
            raise _refuse_word("parameters", name, SLIDERS)
    return {
        name: _place_slider(name, given[name]) if name in given else slider.default
        for name, slider in SLIDERS.items()
    }


def _place_slider(name: str, value: float) -> float:
    slider = SLIDERS[name]
    if slider.log and abs(value) < math.inf:  # its ends are powers of 10, up to rounding
        ends = (end for end in (slider.low, slider.high) if abs(value - end) <= _ROUNDING * end)
        value = next(ends, value)
    if not slider.low <= value <= slider.high or (slider.whole and value != math.floor(value)):
        must = f"a {'whole ' * slider.whole}number from {slider.low:g} to {slider.high:g}"
        sentence = f"'{name}' of 'parameters' must be {must}, got {value!r}."
        raise MessageError(sentence, name)
    return int(value) if slider.whole else value


@lru_cache(maxsize=64)  # while points are dragged, the kernel stays as it is
def _check_kernel(text: str, default: str, *values: float) -> None:
    try:
        parse_kernel(text, dict(zip(KERNEL_SLIDERS, values, strict=True)))
    except ExpressionError as error:
        must = f"empty or a kernel such as {default!r}"
        sentence = f"'kernel' must be {must}, got {text!r:.{_SHOWN}}. {error}"
        raise MessageError(sentence, "kernel") from None


# ------------------------------------------------------------------- reading


def parse(text: str | bytes) -> AnyRequest:
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
        return _DECODER.decode(data)
    except msgspec.ValidationError as error:
        raise _refuse(error, data) from None
    except UnicodeError:
        raise MessageError("The message is not text in UTF-8; send JSON in UTF-8.") from None
    except msgspec.DecodeError as error:
        raise MessageError(f"The message is not JSON: {error}.") from None
    except RecursionError:
        raise MessageError("The message is nested too deeply; a request is flat.") from None


def read(mapping: Any) -> AnyRequest:
    """Return the request that a message is which was parsed already; see ``parse``."""
    try:
        data = msgspec.json.encode(mapping)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        sentence = f"The message cannot be written as JSON: {error!s:.100}."
        raise MessageError(sentence, "", _number(mapping, "seq", LARGEST_SEQ)) from None
    return parse(data)


def read_scene(
    points: Sequence[Sequence[float]],
    labels: Sequence[int],
    view: Sequence[float],
    choice: Mapping[str, Any],
) -> Scene:
    """Return a scene that is checked as if the page had sent it."""
    x, y = [point[0] for point in points], [point[1] for point in points]
    given = {"x": x, "y": y, "label": labels, "view": view, **choice}
    request = read({"type": "diagnose", "seq": 0, **given})
    assert isinstance(request, Diagnose)
    return request.scene


# ------------------------------------------------------------------- sentences


def _refuse(error: msgspec.ValidationError, data: bytes) -> MessageError:
    """Return the sentence about a message that is JSON, but no request."""
    try:
        message: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # further on in the message
        return MessageError(f"The message cannot be read: {error}.")
    if not isinstance(message, dict):
        return MessageError("A message is an object with a type; this one is none.")
    refused = _explain(error, message)
    refused.seq = _number(message, "seq", LARGEST_SEQ)
    refused.pane = _number(message, "pane", PANES - 1)
    return refused


def _number(message: Any, name: str, most: int) -> int | None:
    value = message.get(name) if isinstance(message, dict) else None
    return value if type(value) is int and 0 <= value <= most else None


def _explain(error: msgspec.ValidationError, message: dict[str, Any]) -> MessageError:
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        return _refuse_word("type", kind, _TYPES)
    if isinstance(error.__cause__, MessageError):
        return MessageError(str(error.__cause__), error.__cause__.field)
    field = re.search(r"\$\.(\w+)", str(error))
    return MessageError(f"{error!s:.200}.".replace("`", "'"), field[1] if field else "")


def _refuse_word(name: str, value: Any, known: Iterable[str]) -> MessageError:
    known, text = tuple(known), value[:_SHOWN] if isinstance(value, str) else ""
    must = f"one of {', '.join(known)}, got {text!r}"
    return MessageError(f"{name!r} must be {must}.{did_you_mean(text, known)}", name)
