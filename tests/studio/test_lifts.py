"""Lifted points: the plane, the surface, and the circle in which they meet."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import maxmargin as mm
from maxmargin._typing import Floats, Ints
from maxmargin.studio.lifts import lift
from maxmargin.studio.scene import Choice, Scene, View
from tests.studio.test_runs import POINTS

RINGS, LABELS = mm.datasets.circles(80, random_state=0)
INNER = (LABELS > 0).astype(np.int64)
KINDS = ("circle", "gaussian")


def ask(points: Floats, labels: Ints, kind: str) -> dict[str, Any]:
    scene = Scene(points, labels, Choice("SVC", {"C": 1.0}, "RBF(gamma)"), View(-3, 3, -3, 3))
    reply = lift(scene, kind)
    assert len(json.dumps(reply, allow_nan=False)) < 1_000_000
    assert (reply["type"], reply["kind"]) == ("lift", kind)
    return reply


def score(reply: dict[str, Any], points: Floats) -> Floats:
    return np.asarray(points @ np.array(reply["plane"]["w"]) + reply["plane"]["b"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_the_plane_separates_and_has_the_largest_margin(kind: str, shift: float) -> None:
    reply = ask(RINGS + shift, INNER, kind)
    lifted = np.column_stack([reply["x"], reply["y"], reply["z"]])
    margins = np.where(INNER == 1, 1.0, -1.0) * score(reply, lifted)
    assert_allclose(margins.min(), 1.0, rtol=1e-5)
    if kind == "gaussian":  # the map is what is drawn
        best = mm.HardMarginSVC().fit(lifted, INNER)
        assert_allclose(reply["plane"]["w"], best.coef_[0], rtol=1e-5)
    assert reply["message"] == ""


@pytest.mark.parametrize("kind", KINDS)
def test_heights_are_those_of_the_lift(kind: str) -> None:
    reply = ask(RINGS, INNER, kind)
    center = np.zeros(2) if kind == "circle" else RINGS.mean(axis=0)
    scale = np.sqrt(np.mean((RINGS - center) ** 2))
    left, right, bottom, top = reply["surface"]["view"]
    corners = np.array([[left, bottom], [right, top]])
    for points, z in ((corners, np.array(reply["surface"]["z"])[[0, -1]]), (RINGS, reply["z"])):
        squares = ((points - center) ** 2).sum(axis=1)
        height = squares if kind == "circle" else np.exp(-squares / (2 * scale**2))
        assert_allclose(z, height, rtol=1e-6)


def test_the_circle_is_where_the_plane_meets_the_surface() -> None:
    points = RINGS + np.array([0.4, -0.3])
    reply = ask(points, INNER, "circle")
    circle, turn = reply["circle"], np.linspace(0, 2 * np.pi, 50)
    around = circle["center"] + circle["radius"] * np.column_stack([np.cos(turn), np.sin(turn)])
    z = (around**2).sum(axis=1)
    size = np.abs(reply["plane"]["w"]).max() * np.abs(points).max() ** 2
    assert_allclose(score(reply, np.column_stack([around, z])), 0.0, atol=1e-9 * max(1.0, size))
    away = np.linalg.norm(points - circle["center"], axis=1)
    assert ((away < circle["radius"]) == (away < away[INNER == 1].max() + 1e-9)).all()
    assert reply["facts"][0] == ["radius", f"{circle['radius']:.4g}"]


def test_points_that_no_plane_separates_have_a_soft_margin() -> None:
    labels = np.arange(80) % 2
    reply = ask(RINGS, labels, "circle")
    assert "soft margin" in reply["message"]
    assert reply["plane"] is not None
    wrong = int(dict(reply["facts"])["on the wrong side"].split()[0])
    assert 0 < wrong <= 40


@pytest.mark.parametrize("points", POINTS.values(), ids=POINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_scenes_with_little_on_them_are_answered(kind: str, points: Floats) -> None:
    for classes in (1, 2, 3):
        reply = ask(points, np.arange(len(points)) % classes, kind)
        assert len(reply["z"]) == len(points)
        assert reply["plane"] is not None or reply["message"]
