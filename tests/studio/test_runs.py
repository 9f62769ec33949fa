"""Runs that are stepped through: every frame says what is true at that step."""

import json
import math
from contextlib import nullcontext
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin._typing import Floats, Ints
from maxmargin.studio import runs
from maxmargin.studio.catalogue import MODELS
from maxmargin.studio.pictures import build, training_data
from maxmargin.studio.scene import Choice, Scene, View

pytestmark = pytest.mark.wide

VIEW = View(-3.0, 3.0, -2.5, 2.5)
Data = tuple[Floats, Ints]


def make(data: Data, model: str, kernel: str = "", **parameters: float) -> Scene:
    return Scene(*data, Choice(model, parameters, kernel or MODELS[model].kernel), VIEW)


@cache
def step(kind: str, scene: Scene) -> dict[str, Any]:
    reply = runs.step_through(scene, kind, lambda: False)
    text = json.dumps(reply, allow_nan=False)
    assert len(text) <= 1_000_000
    assert {"type": "run", "kind": kind}.items() <= reply.items()
    assert len(reply["frames"]) <= runs.MOST_FRAMES
    assert 0 <= reply["start"] < max(1, len(reply["frames"]))
    return reply


def numbered(X: Floats, y: Any) -> Data:
    return X, np.unique(y, return_inverse=True)[1].astype(np.int64)


APART = numbered(*mm.datasets.gaussians(40, variance=0.05, random_state=3))
OVERLAPPING = numbered(*mm.datasets.gaussians(50, variance=0.5, random_state=3))
RINGS = numbered(*mm.datasets.circles(40, random_state=0))
LINEAR_PERCEPTRONS = ("Perceptron", "AveragedPerceptron", "VotedPerceptron")


def on_line(frame: dict[str, Any], level: float = 0.0) -> Floats:
    """Return f at the ends of the straight lines of a frame, which must be at a level."""
    at = [line["at"] for line in frame["lines"] if line["level"] == level]
    ends = np.reshape([coordinate for line in at for coordinate in line], (-1, 2))
    return np.asarray(ends @ frame["weights"] + frame["intercept"])


# ------------------------------------------------------------------- the perceptron


@pytest.mark.parametrize("model", LINEAR_PERCEPTRONS)
@pytest.mark.parametrize("eta", [0.5, 4.0])
def test_the_proof_of_the_bound_holds_in_every_frame(model: str, eta: float) -> None:
    X, y = APART
    reply = step("perceptron", make(APART, model, eta=eta))
    lifted, signs = np.column_stack([X, np.ones(len(X))]), np.where(y == 1, 1.0, -1.0)
    best = mm.HardMarginSVC(intercept="none").fit(lifted, signs).coef_[0]
    best = best / np.linalg.norm(best)
    gamma, radius = (signs * (lifted @ best)).min(), np.linalg.norm(lifted, axis=1).max()
    lines = [f for f in reply["frames"] if not f["caption"].startswith("The model")]
    assert [frame["x"] for frame in lines] == list(range(len(lines)))
    for frame in lines:
        k, w = frame["x"], np.array([*frame["weights"], frame["intercept"]])
        along, length = w @ best, np.linalg.norm(w)
        assert k * eta * gamma <= along + 1e-9 <= length + 2e-9
        assert length <= eta * radius * math.sqrt(k) + 1e-9
    _, left = reply["curves"]
    assert left["kind"] == "bound"
    assert_allclose(left["y"][0], (radius / gamma) ** 2, rtol=1e-6)
    assert_allclose(np.diff(left["y"]), -np.diff(left["x"]))
    assert left["y"][-1] >= 0


def test_every_update_is_made_on_a_mistake_and_follows_the_rule() -> None:
    X, y = APART
    frames = step("perceptron", make(APART, "Perceptron"))["frames"]
    assert [frames[0][name] for name in ("lines", "focus", "arrow")] == [[], None, None]
    for before, after in pairwise(frames):
        row = after["focus"]
        sign = 1.0 if y[row] == 1 else -1.0
        assert sign * (X[row] @ before["weights"] + before["intercept"]) <= 0
        assert before["rows"]["kind"][row] == 5
        assert_allclose(after["weights"], before["weights"] + sign * X[row], atol=1e-12)
        assert_allclose(after["intercept"], before["intercept"] + sign)
        assert after["caption"].startswith(f"Update {after['x']}: point {row + 1} was a mistake")
        assert_allclose(on_line(after), 0.0, atol=1e-12)


@pytest.mark.parametrize("model", ["Perceptron", "AveragedPerceptron"])
@pytest.mark.parametrize("data", [APART, OVERLAPPING], ids=["apart", "overlapping"])
def test_the_last_frame_is_the_fitted_line(model: str, data: Data) -> None:
    scene = make(data, model, epochs=20)
    last = step("perceptron", scene)["frames"][-1]
    never = model == "Perceptron" and data is OVERLAPPING
    with pytest.warns(ConvergenceWarning) if never else nullcontext():
        fitted = build(scene).fit(*data)
    assert_allclose(last["weights"], fitted.coef_[0], rtol=1e-12)
    assert_allclose(last["intercept"], fitted.intercept_[0], rtol=1e-12)
    assert last["arrow"] is not None
    arrow = np.array(last["arrow"][2:]) - last["arrow"][:2]
    assert_allclose(arrow[0] * fitted.coef_[0, 1], arrow[1] * fitted.coef_[0, 0], atol=1e-9)
    assert arrow @ fitted.coef_[0] > 0


def test_overlapping_classes_have_no_bound_and_many_updates_are_thinned() -> None:
    reply = step("perceptron", make(OVERLAPPING, "Perceptron", epochs=100))
    assert "No line separates the classes" in reply["message"]
    assert "are shown" in reply["message"]
    assert [curve["name"] for curve in reply["curves"]] == ["updates made"]
    assert "bound" not in reply["frames"][-1]["caption"]
    assert reply["frames"][-1]["x"] == reply["curves"][0]["x"][-1]


@pytest.mark.parametrize("data", [RINGS, OVERLAPPING], ids=["rings", "overlapping"])
def test_the_kernel_perceptron_is_replayed_as_it_was_fitted(data: Data) -> None:
    scene = make(data, "KernelPerceptron", gamma=2.0, epochs=30)
    reply = step("perceptron", scene)
    fitted = build(scene)
    with pytest.warns(ConvergenceWarning) if data is OVERLAPPING else nullcontext():
        fitted.fit(*data)
    frames = reply["frames"]
    assert frames[-1]["x"] == fitted.updates_
    size = np.zeros(len(data[1]))
    size[fitted.support_] = np.abs(fitted.dual_coef_[0]) / np.abs(fitted.dual_coef_).max()
    assert_allclose(frames[-1]["rows"]["alpha"], size, atol=6e-4)
    for line in frames[-1]["lines"]:
        scores = fitted.decision_function(np.reshape(line["at"], (-1, 2)))
        assert np.abs(scores).max() < 2e-3 * np.abs(fitted.dual_coef_).sum()
    wrong = np.where(data[1] == 1, 1, -1) * fitted.decision_function(data[0]) <= 0
    assert_allclose(np.array(frames[-1]["rows"]["kind"]) == 5, wrong)


# ------------------------------------------------------------------- solvers


SOLVED = {
    "LinearSVC": make(OVERLAPPING, "LinearSVC", C=1.0),
    "LinearSVC, large C": make(OVERLAPPING, "LinearSVC", C=1e3),
    "SVC": make(OVERLAPPING, "SVC", C=10.0, gamma=0.5),
    "SVC, linear": make(APART, "SVC", "Linear()", C=10.0),
    "NuSVC": make(OVERLAPPING, "NuSVC", nu=0.4),
    "OneClassSVM": make(RINGS, "OneClassSVM", nu=0.3),
    "SVR": make(OVERLAPPING, "SVR", C=1.0),
}


@pytest.mark.parametrize("scene", SOLVED.values(), ids=SOLVED)
def test_every_iterate_has_bounds_and_the_gap_closes(scene: Scene) -> None:
    reply = step("solver", scene)
    frames = reply["frames"]
    optimum = frames[-1]["primal"]
    for frame in frames:
        slip = 1e-9 * max(1.0, abs(optimum))
        assert frame["dual"] <= optimum + slip
        assert frame["primal"] >= frames[-1]["dual"] - slip
    assert len(frames) >= 5
    assert frames[-1]["relative_gap"] <= 1e-4
    gap, tol = reply["curves"]
    assert gap["x"] == list(range(len(gap["x"])))
    assert gap["y"][-2] <= tol["y"][0]  # before the model that fit returns
    assert gap["y"][0] > 10 * gap["y"][-2]
    assert reply["axes"]["y_log"] is True


@pytest.mark.parametrize("scene", SOLVED.values(), ids=SOLVED)
def test_the_last_iterate_is_the_fitted_model(scene: Scene) -> None:
    last = step("solver", scene)["frames"][-1]
    fitted = build(scene).fit(*training_data(scene))
    assert_allclose(last["primal"], fitted.certificate_.primal, rtol=1e-9)
    name = scene.choice.model
    assert {line["kind"] for line in last["lines"]} <= {"boundary", "margin", "tube", "curve"}
    for line in last["lines"]:
        at = np.reshape(line["at"], (-1, 2))
        if name == "SVR":
            off = at[:, 1] - fitted.predict(at[:, :1]) - line["level"]
        else:
            off = fitted.decision_function(at) - line["level"]
        straight = len(at) == 2
        scale = 1.0 if straight else max(1.0, float(np.abs(fitted.dual_coef_).sum()))
        assert np.abs(off).max() < (1e-9 if straight else 1e-3) * scale
    bound = scene.choice.parameters.get("C", fitted.alpha_.max())
    assert_allclose(last["rows"]["alpha"], np.abs(fitted.alpha_).ravel() / bound, atol=6e-4)
    assert np.count_nonzero(last["rows"]["kind"]) == len(fitted.support_)


# ------------------------------------------------------------------- along C


ALONG = {
    "linear": make(OVERLAPPING, "LinearSVC", C=0.3),
    "separable": make(APART, "LinearSVC", C=0.3),
    "kernel": make(OVERLAPPING, "SVC", C=2.0, gamma=0.5),
}


@pytest.mark.parametrize("scene", ALONG.values(), ids=ALONG)
def test_frames_of_the_path_are_fits(scene: Scene) -> None:
    reply = step("path", scene)
    frames, (X, y) = reply["frames"], training_data(scene)
    assert frames[reply["start"]]["x"] == scene.choice.parameters["C"]
    signs = np.where(y == 1, 1.0, -1.0)
    for frame in [frames[0], frames[reply["start"]], frames[len(frames) // 2], frames[-1]]:
        fitted = build(scene, C=frame["x"]).fit(X, y)
        norm = fitted.certificate_.distance_bound + 1e-4
        if "weights" in frame:
            w = np.array(frame["weights"])
            assert np.linalg.norm(w - fitted.coef_[0]) <= norm
            slack = np.maximum(0, 1 - signs * (X @ w + frame["intercept"])).sum()
            primal = 0.5 * w @ w + frame["x"] * slack
            assert_allclose(primal, fitted.certificate_.primal, rtol=1e-4)
        for line in frame["lines"]:
            f = fitted.decision_function(np.reshape(line["at"], (-1, 2)))
            assert_allclose(f, line["level"], atol=2e-2 if len(f) == 2 else 0.2)


@pytest.mark.parametrize("scene", ALONG.values(), ids=ALONG)
def test_duals_are_linear_between_breakpoints(scene: Scene) -> None:
    reply = step("path", scene)
    X, y = training_data(scene)
    breaks = mm.regularization_path(X, y, build(scene), Cs=[1e-3, 1e4]).breakpoints
    assert breaks is not None
    curves = [curve for curve in reply["curves"] if curve["kind"] == "dual"]
    assert 3 <= len(curves) <= 40
    frames = {frame["x"]: frame["rows"]["alpha"] for frame in reply["frames"]}
    for curve in curves:
        C, alpha = np.array(curve["x"]), np.array(curve["y"])
        assert (np.diff(C) > 0).all()
        assert (alpha >= 0).all()
        assert (alpha <= C * (1 + 1e-9)).all()
        turns = np.abs(np.diff(np.diff(alpha) / np.diff(C))) > 1e-5
        for at in C[1:-1][turns]:
            assert np.isclose(breaks, at, rtol=1e-6).any()
        row = int(curve["name"].split()[1]) - 1
        for at, shares in frames.items():
            if C[0] <= at <= C[-1]:
                assert abs(np.interp(at, C, alpha) / at - shares[row]) < 1e-3


# ------------------------------------------------------------------- scenes with little on them


POINTS = {
    "no points": np.zeros((0, 2)),
    "one point": np.array([[0.5, 0.5]]),
    "equal points": np.tile([[1.0, -1.0]], (6, 1)),
    "two points": np.array([[0.0, 0.0], [1.0, 1.0]]),
    "far away": np.array([[1e5, -1e5], [-1e5, 1e5], [0.0, 1e5]]),
    "three classes": np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]),
}


@pytest.mark.parametrize("points", POINTS.values(), ids=POINTS)
@pytest.mark.parametrize("model", [name for name in MODELS if MODELS[name].runs])
def test_scenes_with_little_on_them_are_answered(model: str, points: Floats) -> None:
    for classes in (1, 2, 3):
        labels = np.arange(len(points)) % classes
        for kind in MODELS[model].runs:
            reply = step(kind, make((points, labels), model, epochs=5))
            assert reply["frames"] or reply["message"]


def test_a_run_that_nobody_waits_for_ends() -> None:
    scene = make(OVERLAPPING, "Perceptron")
    assert len(runs.step_through(scene, "perceptron", lambda: True)["frames"]) == 0
