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
    reply = presets.make(name, seed=7)
    assert json.loads(json.dumps(reply, allow_nan=False)) == reply == presets.make(name, seed=7)
    x, y, label = reply["x"], reply["y"], reply["label"]
    assert 0 < len(x) == len(y) == len(label) <= MOST_POINTS
    assert set(label) == set(range(len(reply["names"])))
    assert len(reply["names"]) <= MOST_CLASSES
    assert [round(value, presets.DECIMALS) for value in x + y] == x + y
    left, right, bottom, top = reply["view"]
    assert left < min(x) <= max(x) < right
    assert bottom < min(y) <= max(y) < top
    assert presets.PRESETS[name].model in {"", *MODELS}


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


@pytest.mark.parametrize("seed", range(3))
def test_what_is_promised_of_separability_holds(seed: Any) -> None:
    found = mm.separate(*drawn("separable", seed, margin=0.3, points=300))
    assert found.separable
    assert found.margin == pytest.approx(0.3, abs=2 * 10.0**-presets.DECIMALS)
    points, labels = drawn("conflicts", seed, share=0.5, points=200)
    assert len(np.unique(points, axis=0)) == 150
    assert not is_separable(points, labels)
    assert is_separable(*drawn("conflicts", seed, share=0.0))
    for name in ("circles", "moons", "xor", "spirals", "neuron_xor"):
        assert not is_separable(*drawn(name, seed))
    assert is_separable(*drawn("neuron_and"))


def test_shares_counts_and_means_are_those_of_the_sliders() -> None:
    points, labels = drawn("gaussians", distance=4.0, variance=0.25, share=0.2, points=2000)
    assert (len(points), labels.sum()) == (2000, 400)
    between = points[labels == 1].mean(axis=0) - points[labels == 0].mean(axis=0)
    assert np.linalg.norm(between) == pytest.approx(4.0, abs=0.15)
    assert points[labels == 0].var(axis=0) == pytest.approx([0.25, 0.25], abs=0.05)
    _, labels = drawn("blobs", classes=5, points=100)
    assert np.bincount(labels).tolist() == [20] * 5


@pytest.mark.parametrize("points", [np.zeros((0, 2)), np.zeros((3, 2)), [[1e-5, 5e5]]])
def test_a_view_is_a_rectangle_around_any_points(points: Any) -> None:
    left, right, bottom, top = presets.view_of(np.asarray(points, dtype=float))
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
        (("moons", {"noise": 2}), "noise of Moons must be between 0 and 0.6, not 2"),
        (("moons", {"noise": math.nan}), "must be between 0 and 0.6, not nan"),
    ],
)
def test_wrong_requests_are_refused_with_a_sentence(arguments: Any, message: Any) -> None:
    with pytest.raises(ValueError, match=message):
        presets.make(*arguments)
