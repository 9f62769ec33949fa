"""Requests are read as they are written, and everything else is refused by one error."""

import copy
import json
import math
from typing import Any

import numpy as np
import pytest

from maxmargin.studio import messages
from maxmargin.studio.catalogue import MODELS, SLIDERS
from maxmargin.studio.messages import MessageError, parse, read
from maxmargin.studio.scene import FARTHEST, MOST_POINTS, Scene

pytestmark = pytest.mark.wide

SCENE: dict[str, Any] = {
    "x": [0.0, 1.5, -2], "y": [0.5, -1.0, 3], "label": [0, 1, 4], "view": [-3, 3, -2, 2],
    "model": "SVC", "parameters": {"C": 10, "gamma": 0.5}, "kernel": "RBF(gamma)",
}  # fmt: skip
POINTS = {name: SCENE[name] for name in ("x", "y", "label", "view")}
EXAMPLES: dict[str, dict[str, Any]] = {
    "hello": {},
    "fit": {**SCENE, "pane": 1, "grid": [96, 64], "wants": ["separability"]},
    "run": {**SCENE, "pane": 0, "kind": "path"},
    "lift": {**SCENE, "kind": "circle"},
    "diagnose": SCENE,
    "preset": {"name": "moons", "parameters": {"noise": 0.25}, "seed": 7},
    "table": {"text": "a,b\n1,2\n", "columns": [1, 0], "label": -1},
    "kernel": {"text": "RBF(", "parameters": {"gamma": 3}},
    "code": {
        **POINTS,
        "panes": [{"model": "SVC", "kernel": "rbf(2)"}, {"model": "LinearSVC", "parameters": {}}],
    },
    "lesson": {"id": "margins"},
    "answer": {**SCENE, "lesson": "margins", "page": 2, "item": 1, "value": "0.5"},
    "tasks": {**SCENE, "lesson": "margins", "page": 2},
    "cancel": {"pane": 1},
}
MESSAGES = [{"type": kind, "seq": 5, **fields} for kind, fields in EXAMPLES.items()]
TYPES = {
    "kernel": messages.KernelText, "lesson": messages.OpenLesson,
    **{kind: getattr(messages, kind.capitalize()) for kind in EXAMPLES
       if kind not in ("kernel", "lesson")},
}  # fmt: skip
OPTIONAL = {"parameters", "kernel", "wants", "seed", "columns"}


def message(kind: str = "fit", /, **changes: Any) -> dict[str, Any]:
    """Return a valid message with some fields changed."""
    return {"type": kind, "seq": 5, **copy.deepcopy(EXAMPLES[kind]), **changes}


def refusal(sent: Any) -> MessageError:
    """Return the error by which a message is refused, which can be sent and read."""
    with pytest.raises(MessageError) as refused:
        parse(sent) if isinstance(sent, str | bytes) else read(sent)
    check_error(refused.value)
    return refused.value


def check_error(error: MessageError) -> None:
    text = str(error)
    assert len(text) < 800
    assert text[-1] in ".?"
    assert "Traceback" not in text
    assert "maxmargin/" not in text
    text.encode()


# ------------------------------------------------------------------- what is read


@pytest.mark.parametrize("sent", MESSAGES, ids=lambda sent: sent["type"])
def test_examples_are_read(sent: dict[str, Any]) -> None:
    for request in (parse(json.dumps(sent)), parse(json.dumps(sent).encode()), read(sent)):
        assert type(request) is TYPES[sent["type"]]
        for name in set(request.__struct_fields__) & set(sent) - {"panes"}:
            value = getattr(request, name)
            assert (list(value) if isinstance(value, tuple) else value) == sent[name]


def test_a_scene() -> None:
    request = read(message())
    assert isinstance(request, messages.Fit)
    assert (request.pane, request.grid, request.wants) == (1, (96, 64), ("separability",))
    scene = request.scene
    assert scene.points.tolist() == [[0.0, 0.5], [1.5, -1.0], [-2.0, 3.0]]
    assert scene.points.flags.c_contiguous
    assert scene.labels.tolist() == [0, 1, 4]
    assert scene.labels.dtype == np.int64
    assert scene.view == (-3.0, 3.0, -2.0, 2.0)
    assert scene.choice.model == "SVC"
    assert scene.choice.kernel == "RBF(gamma)"
    defaults = {name: slider.default for name, slider in SLIDERS.items()}
    assert scene.choice.parameters == {**defaults, "C": 10.0, "gamma": 0.5}


@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind, fields in EXAMPLES.items() for field in ("type", "seq", *fields)],
)
def test_fields_that_are_missing(kind: str, field: str) -> None:
    sent = message(kind)
    del sent[field]
    optional = field in OPTIONAL or (kind, field) == ("table", "label")
    if optional:
        assert type(read(sent)) is TYPES[kind]
    else:
        assert repr(field) in str(refusal(sent))


# ------------------------------------------------------------------- what is refused

ALWAYS_WRONG: list[Any] = [
    True, math.nan, math.inf, 10**400, {"a": []}, [[]], [None], [True], "\ud800", ["x", {}],
    np.float64(1), 1j,
]  # fmt: skip
WRONG: dict[str, list[Any]] = {
    "type": ["", "Fit", "fit ", None, 1],
    "seq": [-1, 2**53 + 1, 1.0, "1", None, [], {}],
    "pane": [-1, 2, 0.0, "0", None, [], {}],
    "grid": [[96], [96, 64, 3], [1, 64], [96, 257], [96.0, 64], "ab", None, 9, {}],
    "wants": [["beauty"], "separability", None, 1, ["separability"] * 11, {}],
    "kind": ["", "spiral", None, 1, [], {}],
    "x": [[1, 2], [1, 2, "3"], [1, 2, 1e7], [1, 2, -(10**30)], None, 1, "123", {}],
    "y": [[1, 2, 3, 4], [1, 2, None], [0, 0, math.inf], [[1], [2], [3]], None, {}],
    "label": [[0, 1, 5], [0, 1, -1], [0, 1, 1.0], [0, 1, "1"], [0, 1, 10**30], [], "012", {}],
    "view": [
        [0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, math.inf], [0, 1, 0, 1e7],
        [0, 1, 0, "1"], None, {}, "0101", [0, 1e-12, 0, 1],
    ],
    "model": ["", "svc", "SVC ", "maxmargin.SVC", "__class__", None, 1, [], {}],
    "kernel": ["RFB()", "RBF(gamma", "eval(1)", "RBF()" * 100, 1, [], {}],
    "name": ["n" * 201, None, 1, [], {}],
    "seed": [-1, 2**32, 1.0, "1", None, [], {}],
    "text": [None, 1, [], {}],
    "columns": [[0], [0, 1, 2], [0, -1], [0, 1.0], [0, "1"], [0, 10_000], 1, "01", {}],
    "panes": [[], [{}], [{"model": "SVC"}] * 3, [{"model": "SVC", "pane": 0}], None, "SVC", {},
              [{"model": "SVC", "kernel": "R"}], [{"model": "SVC", "parameters": {"C": 0}}]],
    "id": ["n" * 201, None, 1, [], {}],
    "lesson": ["n" * 201, None, 1, [], {}],
    "page": [-1, 1000, 1.0, "1", None, [], {}],
    "item": [-1, 1000, 1.0, "1", None, [], {}],
    "value": ["n" * 1001, None, 1, [], {}],
    "parameters": [
        None, 1, "C", [], [["C", 1]], {"C": None}, {"C": "1"}, {"C": True}, {"C": math.nan},
        {"C": 10**400}, {"C": [1]}, {"gamma": math.inf}, {"gamma": -1e7},
    ],
}  # fmt: skip
LABELS_OF_TABLES = [-2, 10_000, 1.0, "1", [], {}]
CASES = [
    (kind, field, value)
    for kind, fields in EXAMPLES.items()
    for field in ("type", "seq", *fields)
    for value in [
        *ALWAYS_WRONG,
        *(LABELS_OF_TABLES if (kind, field) == ("table", "label") else WRONG[field]),
    ]
]


def test_every_malformed_field_is_refused_by_name() -> None:
    for kind, field, value in CASES:
        if value in (math.inf, None) or value != value:  # null in JSON
            continue
        sent = message(kind, **{field: value})
        try:
            error = refusal(sent)
        except BaseException as wrong:
            raise AssertionError(f"{kind} {field} {value!r:.100}") from wrong
        if "written as JSON" in str(error):
            continue
        named = field in str(error) or field in ("parameters", "panes")  # by what is in them
        assert named, (kind, field, str(error))
        assert error.seq == (None if field == "seq" else 5)
        if "pane" in EXAMPLES[kind]:
            assert error.pane == (None if field == "pane" else EXAMPLES[kind]["pane"])


@pytest.mark.parametrize("kind", EXAMPLES)
def test_unknown_fields_are_refused_by_name(kind: str) -> None:
    for name in ("colour", "X", "a" * 10_000, "self"):
        assert f"unknown field '{name[:30]}" in str(refusal(message(kind, **{name: 1})))


def test_texts_that_are_no_messages() -> None:
    for text in ("[" * 100_000, '{"a":' * 100_000, "[" * 900_000 + "]" * 900_000):
        refusal(text)
    assert "2,000,001" in str(refusal(" " * 2_000_001))
    assert "2,000,002" in str(refusal("é" * 1_000_001))  # bytes count, not characters
    for text in (
        "",
        " ",
        "{",
        "{]",
        "'",
        "{'a': 1}",
        '{"a": 01}',
        "\x00",
        "NaN",
        '{"x": Infinity}',
    ):
        assert "not JSON" in str(refusal(text))
    for text in ("1", "null", "true", '"hello"', "[]", '["hello"]'):
        assert "an object with a type" in str(refusal(text))
    for raw in (b"\xff", "\ud800", '{"type":"hello","seq":' + "9" * 5000 + "}"):
        refusal(raw)
    assert read({"type": "lesson", "seq": 1, "id": "\U0001f600"})


def test_objects_that_are_no_messages() -> None:
    for sent in (None, 1, [], (), "hello", [("type", "hello")], object(), Scene, {1: 2}):
        with pytest.raises(MessageError):
            read(sent)
    nested: Any = []
    for _ in range(5000):
        nested = [nested]
    for field in ("x", "view", "parameters", "kernel", "type", "seq"):
        refusal(message(**{field: nested}))


# ------------------------------------------------------------------- limits


def test_most_points() -> None:
    full: dict[str, Any] = {
        "x": [FARTHEST] * MOST_POINTS,
        "y": [-FARTHEST] * MOST_POINTS,
        "label": [0] * MOST_POINTS,
    }
    request = parse(json.dumps(message(**full)))
    assert isinstance(request, messages.Fit)
    assert request.scene.points.shape == (MOST_POINTS, 2)
    error = refusal(message(**{name: [*values, 0] for name, values in full.items()}))
    assert "length <= 5000" in str(error)


@pytest.mark.parametrize("name", SLIDERS)
def test_sliders_go_from_end_to_end(name: str) -> None:
    slider = SLIDERS[name]

    def placed(value: float) -> float:
        request = read(message(parameters={name: value}))
        assert isinstance(request, messages.Fit)
        return request.scene.choice.parameters[name]

    for value in (slider.low, slider.high, slider.default):
        assert placed(value) == value
    for value in (slider.low - 0.01 * abs(slider.low) - 0.01, slider.high * 1.01):
        assert f"'{name}' of 'parameters' must be" in str(
            refusal(message(parameters={name: value}))
        )
    if slider.whole:
        assert "a whole number" in str(refusal(message(parameters={name: slider.low + 0.5})))
    if slider.log:  # 10 ** log10(10000) need not be 10000
        assert placed(slider.high * (1 + 1e-15)) == slider.high


@pytest.mark.parametrize("name", MODELS)
def test_models_have_their_kernels_and_runs(name: str) -> None:
    model = MODELS[name]
    request = read(message(model=name, kernel=""))
    assert isinstance(request, messages.Fit)
    assert request.scene.choice.kernel == model.kernel
    if not model.kernel:
        assert "has no kernel" in str(refusal(message(model=name, kernel="Linear() + 1")))
    for kind in ("perceptron", "solver", "path"):
        asked = message("run", model=name, kind=kind, kernel="")
        if kind in model.runs:
            assert isinstance(read(asked), messages.Run)
        else:
            assert repr(kind) in str(refusal(asked))
