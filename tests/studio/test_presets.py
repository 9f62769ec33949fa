"""Presets: what their titles and sliders promise holds for the rounded points."""

import json
import math
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.studio import presets
from maxmargin.studio.catalogue import MODELS
from maxmargin.studio.scene import MOST_CLASSES, MOST_POINTS

NAMES = list(presets.PRESETS)


def drawn(name: Any, seed: Any = 0, **parameters: Any) -> Any:
    reply = presets.make(name, parameters, seed)
    return np.column_stack([reply["x"], reply["y"]]), np.array(reply["label"])


def is_separable(points: Any, labels: Any) -> bool:
    return bool(mm.separate(points, labels).separable)


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_is_complete_and_plain_json(name: Any) -> None:
    reply = presets.make(name)
    assert json.loads(json.dumps(reply, allow_nan=False)) == reply
    x, y, label = reply["x"], reply["y"], reply["label"]
    assert reply["type"] == "points"
    assert 0 < len(x) == len(y) == len(label) <= MOST_POINTS
    assert set(label) == set(range(len(reply["names"])))
    assert len(reply["names"]) <= MOST_CLASSES
    left, right, bottom, top = reply["view"]
    assert left < min(x) <= max(x) < right
    assert bottom < min(y) <= max(y) < top
    assert reply["axes"] is None or len(reply["axes"]) == 2


@pytest.mark.parametrize("name", NAMES)
def test_coordinates_are_short(name: Any) -> None:
    reply = presets.make(name)
    for value in reply["x"] + reply["y"]:
        assert value == round(value, presets.DECIMALS)
        assert math.copysign(1.0, value) == 1.0 or value != 0.0


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_repeats_and_another_one_does_not(name: Any) -> None:
    assert presets.make(name, seed=7) == presets.make(name, seed=7)
    if presets.PRESETS[name].sliders:
        assert presets.make(name, seed=7) != presets.make(name, seed=8)


@pytest.mark.parametrize("name", [name for name in NAMES if presets.PRESETS[name].sliders])
@pytest.mark.parametrize("end", ["low", "high"])
def test_every_slider_works_at_both_ends(name: Any, end: Any) -> None:
    for key, slider in presets.PRESETS[name].sliders.items():
        reply = presets.make(name, {key: getattr(slider, end)})
        assert np.isfinite(reply["x"] + reply["y"]).all()
        if key == "points":
            assert len(reply["x"]) == getattr(slider, end)
    together = {key: getattr(each, end) for key, each in presets.PRESETS[name].sliders.items()}
    assert presets.make(name, together)["label"]


def test_the_description_tells_the_page_what_it_needs() -> None:
    described = presets.describe()
    assert [each["name"] for each in described] == NAMES
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    for each in described:
        assert {"name", "title", "group", "sliders", "default", "model"} == set(each)
        assert each["model"] in {"", *MODELS}
        for key, slider in each["sliders"].items():
            assert slider["low"] <= slider["default"] <= slider["high"]
            assert each["default"][key] == slider["default"]
            assert not slider["log"] or slider["low"] > 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("margin", [0.02, 0.3])
def test_separable_stays_separable_with_its_margin(seed: Any, margin: Any) -> None:
    found = mm.separate(*drawn("separable", seed, margin=margin, points=300))
    assert found.separable
    assert found.margin == pytest.approx(margin, abs=2 * 10.0**-presets.DECIMALS)


@pytest.mark.parametrize("seed", range(5))
def test_conflicts_stay_conflicts(seed: Any) -> None:
    points, labels = drawn("conflicts", seed, share=0.5, points=200)
    assert len(np.unique(points, axis=0)) == 150
    assert not is_separable(points, labels)
    _, place, times = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    for twin in np.flatnonzero(times == 2):
        assert set(labels[place.ravel() == twin]) == {0, 1}
    assert is_separable(*drawn("conflicts", seed, share=0.0))


def test_shares_and_counts_are_those_of_the_sliders() -> None:
    for name in ("gaussians", "random_labels"):
        points, labels = drawn(name, share=0.2, points=50)
        assert (len(points), labels.sum()) == (50, 10)
    points, labels = drawn("blobs", classes=5, points=100)
    assert np.bincount(labels).tolist() == [20] * 5
    _, clean = drawn("flipped", flipped=0.0)
    _, dirty = drawn("flipped", flipped=0.1)
    assert (clean != dirty).sum() == 10


def test_the_distance_and_variance_of_two_gaussians() -> None:
    points, labels = drawn("gaussians", distance=4.0, variance=0.25, points=2000)
    between = points[labels == 1].mean(axis=0) - points[labels == 0].mean(axis=0)
    assert np.linalg.norm(between) == pytest.approx(4.0, abs=0.1)
    assert points[labels == 0].var(axis=0) == pytest.approx([0.25, 0.25], abs=0.05)


def test_shapes_are_not_separable_by_a_line_but_by_their_rule() -> None:
    for name in ("circles", "moons", "xor", "spirals", "neuron_xor"):
        assert not is_separable(*drawn(name))
    points, labels = drawn("circles", inner=1.0, noise=0.4)
    assert ((np.linalg.norm(points, axis=1) < 1.5) == (labels == 1)).all()
    points, labels = drawn("xor", noise=0.9)
    assert ((points.prod(axis=1) < 0) == (labels == 1)).all()


@pytest.mark.parametrize(("gate", "rule"), [("and", np.logical_and), ("or", np.logical_or)])
def test_the_neurons_gates(gate: Any, rule: Any) -> None:
    points, labels = drawn(f"neuron_{gate}")
    assert labels.tolist() == rule(points[:, 0], points[:, 1]).astype(int).tolist()
    assert is_separable(points, labels)


def test_real_data_are_named_and_comfortable() -> None:
    for name, rows in [("iris", 150), ("wine", 178), ("breast_cancer", 569), ("digits", 357)]:
        reply = presets.make(name)
        assert len(reply["x"]) == rows
        assert all(reply["axes"])
        assert max(map(abs, reply["x"] + reply["y"])) < 8
    assert presets.make("iris")["names"] == ["setosa", "versicolor", "virginica"]
    model = mm.LinearSVC().fit(*drawn("breast_cancer"))
    assert model.score(*drawn("breast_cancer")) > 0.9


@pytest.mark.parametrize("points", [np.zeros((0, 2)), np.zeros((3, 2)), [[1e-5, 5e5]]])
def test_a_view_is_a_rectangle_around_any_points(points: Any) -> None:
    points = np.asarray(points, dtype=float)
    left, right, bottom, top = presets.view_of(points)
    assert left < right
    assert bottom < top
    for x, y in points:
        assert left < x < right
        assert bottom < y < top


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "There is no preset 'nothing'; choose one of gaussians"),
        (("moons", {"sigma": 1}), "Moons has no slider 'sigma'; it has noise, points"),
        (("iris", {"noise": 1}), "it has none"),
        (("moons", {"noise": 2}), "noise of Moons must be between 0 and 0.6, not 2"),
        (("moons", {"noise": math.nan}), "must be between 0 and 0.6, not nan"),
        (("moons", {}, -1), "The seed must be a whole number from 0 to 4294967295, not -1"),
        (("moons", {}, 1.5), "not 1.5"),
    ],
)
def test_wrong_requests_are_refused_with_a_sentence(arguments: Any, message: Any) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        presets.make(*arguments)
