"""What a picture shows can be recomputed from it, whatever the points."""

import base64
import json
import threading
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin._typing import Floats
from maxmargin.errors import recorded_warnings, warn
from maxmargin.studio import pictures
from maxmargin.studio.catalogue import MODELS
from maxmargin.studio.scene import Choice, Scene, View

VIEW = View(-4.0, 5.0, -4.0, 4.0)
CELL = 9.0 / 39  # of the grid
OVERLAPPING = mm.datasets.overlapping(80, random_state=1)
SEPARABLE = mm.datasets.separable(60, margin=0.3, random_state=2)
WITH_KERNEL = [name for name, model in MODELS.items() if model.kernel]


def make_scene(
    model: str, points: Any = None, labels: Any = None, kernel: str = "", view: View = VIEW,
    **parameters: float,
) -> Scene:  # fmt: skip
    if points is None:
        points, signs = OVERLAPPING
        labels = (signs > 0).astype(np.int64)
    return Scene(
        np.asarray(points, dtype=np.float64).reshape(-1, 2),
        np.asarray(labels, dtype=np.int64),
        Choice(model, parameters, kernel),
        view,
    )


def separable(model: str, kernel: str = "", **parameters: float) -> Scene:
    points, signs = SEPARABLE
    return make_scene(model, points, signs > 0, kernel, VIEW, **parameters)


def clouds(model: str, kernel: str = "") -> Scene:
    labels = np.arange(90) % 3
    centres = np.array([[0.0, 0.0], [2.5, 0.0], [1.0, 2.5]])
    points = centres[labels] + np.random.default_rng(3).normal(scale=0.8, size=(90, 2))
    return make_scene(model, points, labels + 1, kernel)


def draw(scene: Scene, *wants: str, grid: tuple[int, int] = (40, 30)) -> Any:
    sent: list[Any] = []
    pictures.draw(scene, grid, wants, lambda: False, sent.append)
    (picture,) = sent
    return json.loads(json.dumps(picture, allow_nan=False))


def fitted(scene: Scene) -> Any:
    X, y = pictures.training_data(scene)
    with recorded_warnings():
        return pictures.build(scene).fit(X, y)


def vertices(line: Any) -> Floats:
    return np.array(line["at"]).reshape(-1, 2)


def by_level(picture: Any) -> dict[float, list[Any]]:
    found: dict[float, list[Any]] = {}
    for line in picture["lines"]:
        found.setdefault(line["level"], []).append(line)
    return found


# ------------------------------------------------------------------- lines


@pytest.mark.parametrize(
    ("model", "kernel"),
    [("LinearSVC", ""), ("SVC", "Linear()"), ("NuSVC", "Linear()"), ("HardMarginSVC", "")],
)
def test_straight_margins_are_exact_and_as_far_away_as_the_margin(model: str, kernel: str) -> None:
    scene = separable(model, kernel)
    picture, estimator = draw(scene), fitted(scene)
    w, b = np.array(picture["weights"]), picture["intercept"]
    np.testing.assert_array_equal(w, estimator.coef_[0])
    lines = by_level(picture)
    assert set(lines) == {-1.0, 0.0, 1.0}
    for level, (line,) in lines.items():
        ends = vertices(line)
        assert ends.shape == (2, 2)
        np.testing.assert_allclose(ends @ w + b, level, atol=1e-9 * np.abs(w).sum() * 5)
        left, right, bottom, top = VIEW
        assert ((ends >= [left, bottom]) & (ends <= [right, top])).all()
        assert line["kind"] == ("margin" if level else "boundary")
    apart = (vertices(lines[1.0][0]) - vertices(lines[0.0][0])[0]) @ w / np.linalg.norm(w)
    np.testing.assert_allclose(apart, 1 / np.linalg.norm(w), rtol=1e-9)
    assert picture["facts"][0] == ["margin", f"{float(estimator.margin_):.4g} data units"]


@pytest.mark.parametrize(
    ("model", "kernel"),
    [
        ("SVC", "RBF(gamma)"),
        ("SVC", "Laplacian(0.5) + 0.1 * Linear()"),
        ("NuSVC", "RBF(gamma) + RBF(0.1)"),
        ("SVC", "Polynomial(degree, 0.5, 1)"),
        ("KernelPerceptron", "RBF(gamma)"),
        ("OneClassSVM", "RBF(gamma)"),
    ],
)
def test_curved_lines_are_on_the_level_sets_of_the_model(model: str, kernel: str) -> None:
    scene = make_scene(model, kernel=kernel)
    picture, estimator = draw(scene), fitted(scene)
    assert picture["lines"]
    plane = mm.geometry.hyperplane(estimator)
    for line in picture["lines"]:
        at = vertices(line)
        off = np.abs(estimator.decision_function(at) - line["level"])
        steep = np.linalg.norm(plane.gradient(at), axis=1)
        assert (off <= 0.01 * CELL * steep + 1e-6).all()


def test_the_tube_is_the_curve_moved_by_epsilon() -> None:
    scene = make_scene("SVR", epsilon=0.3)
    picture, estimator = draw(scene), fitted(scene)
    lines = by_level(picture)
    assert set(lines) == {0.0, -0.3, 0.3}
    for level, (line,) in lines.items():
        at = vertices(line)
        np.testing.assert_allclose(at[:, 1], estimator.predict(at[:, :1]) + level, atol=1e-4)
    for row, x, y in picture["slack"]:
        assert x == scene.points[row, 0]
        assert abs(y - estimator.predict([[x]])[0]) == pytest.approx(0.3)
    assert len(picture["slack"]) == np.count_nonzero(estimator.slack_ > 0)


def test_levels_of_a_component_and_the_projection_are_its_scores() -> None:
    scene = make_scene("KernelPCA", component=2)
    picture, estimator = draw(scene), fitted(scene)
    scores = estimator.transform(scene.points)
    for line in picture["lines"]:
        off = estimator.transform(vertices(line))[:, 1] - line["level"]
        assert np.abs(off).max() <= 0.001 * np.ptp(scores[:, 1])
    np.testing.assert_allclose(picture["projection"]["x"], scores[:, 0], atol=1e-12)
    np.testing.assert_allclose(picture["projection"]["y"], scores[:, 1], atol=1e-12)
    share = f"{100 * estimator.explained_variance_ratio_[0]:.0f} %"
    assert picture["projection"]["names"][0] == f"PC1 ({share})"


# ------------------------------------------------------------------- fields and rows


def decoded(field: Any) -> tuple[Floats, Floats]:
    """Return bytes and the places that they are about: the middles of the pixels."""
    left, right, bottom, top = field["view"]
    x = left + (np.arange(field["cols"]) + 0.5) * (right - left) / field["cols"]
    y = bottom + (np.arange(field["rows"]) + 0.5) * (top - bottom) / field["rows"]
    values = np.frombuffer(base64.b64decode(field["values"]), dtype=np.uint8)
    places = np.column_stack([np.tile(x, len(y)), np.repeat(y, len(x))])
    return values.astype(np.float64), places


@pytest.mark.parametrize("model", ["LinearSVC", "SVC", "Perceptron", "OneClassSVM"])
def test_bytes_of_a_field_are_the_decision_function(model: str) -> None:
    scene = make_scene(model)
    picture, estimator = draw(scene), fitted(scene)
    values, places = decoded(picture["field"])
    f = estimator.decision_function(places)
    shares = values / 127.5 - 1
    if model in ("LinearSVC", "SVC"):
        np.testing.assert_allclose(shares, np.clip(f, -1, 1), atol=1 / 127)
    else:  # one scale for all
        inside = np.abs(shares) < 0.99
        scale = (f[inside] @ shares[inside]) / (shares[inside] @ shares[inside])
        np.testing.assert_allclose(shares, np.clip(f / scale, -1, 1), atol=0.02)
    if model == "Perceptron":
        mistakes = np.array(picture["rows"]["kind"]) == pictures.KINDS.index("mistake")
        np.testing.assert_array_equal(mistakes, estimator.predict(scene.points) != scene.labels)


@pytest.mark.parametrize("model", ["LinearSVC", "SVC", "NuSVC", "OneClassSVM"])
def test_rows_say_what_the_model_says_of_its_support_vectors(model: str) -> None:
    scene = make_scene(model)
    picture, estimator = draw(scene), fitted(scene)
    kinds = np.array(pictures.KINDS)[picture["rows"]["kind"]]
    np.testing.assert_array_equal(kinds[estimator.support_], estimator.support_kind_)
    assert not np.delete(kinds, estimator.support_).any() if len(estimator.support_) else True
    bound = getattr(estimator, "C", estimator.alpha_.max())
    np.testing.assert_allclose(picture["rows"]["alpha"], estimator.alpha_ / bound, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "kernel"),
    [("LinearSVC", ""), ("SVC", "RBF(gamma)"), ("SVC", "Linear()"), ("OneClassSVM", "")],
)
def test_slack_ends_where_f_has_its_target(model: str, kernel: str) -> None:
    scene = make_scene(model, kernel=kernel)
    picture, estimator = draw(scene), fitted(scene)
    assert picture["slack"]
    rows = np.array([row for row, _, _ in picture["slack"]])
    ends = np.array([end for _, *end in picture["slack"]])
    target = np.zeros(len(rows)) if model == "OneClassSVM" else 2.0 * scene.labels[rows] - 1
    np.testing.assert_allclose(estimator.decision_function(ends), target, atol=2e-5)
    assert (estimator.slack_[rows] > 0).all()
    way = ends - scene.points[rows]
    if not kernel and model == "LinearSVC":  # the shortest way
        lengths = np.linalg.norm(way, axis=1)
        np.testing.assert_allclose(
            lengths, estimator.slack_[rows] * float(estimator.margin_), rtol=1e-6
        )


# ------------------------------------------------------------------- what is said


@pytest.mark.parametrize("model", ["LinearSVC", "SVC", "NuSVC", "OneClassSVM", "SVR"])
def test_certificates_are_those_of_certify(model: str) -> None:
    scene = make_scene(model)
    stated = draw(scene)["certificate"]
    X, y = pictures.training_data(scene)
    known = mm.certify(fitted(scene), X, y)
    assert isinstance(known, mm.Certificate)
    assert stated["holds"]
    assert stated["holds"] == known.holds(stated["tol"])
    assert stated["primal"] == pytest.approx(known.primal, rel=1e-6, abs=1e-9)
    assert stated["dual"] == pytest.approx(known.dual, rel=1e-6, abs=1e-9)
    assert stated["sentence"].startswith("No answer is better by more than ")
    indefinite = draw(make_scene("SVC", kernel="Sigmoid(1, 1)"))["certificate"]
    assert (indefinite["holds"], indefinite["dual"]) == (False, None)


def test_a_fit_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MAX_TIME", 1e-9)
    picture = draw(make_scene("SVC"))
    assert "stopped after" in picture["message"]
    assert not picture["certificate"]["holds"]


# ------------------------------------------------------------------- witnesses


@pytest.mark.parametrize("model", ["HardMarginSVC", "BayesPointClassifier"])
def test_who_cannot_separate_shows_why(model: str) -> None:
    scene = make_scene(model)
    picture = draw(scene)
    assert picture["message"]
    assert picture["lines"] == []
    witness = picture["witness"]
    assert witness["kind"] == "overlap"
    for members, label in zip(witness["sets"], (0, 1), strict=True):
        rows, weights = np.array([row for row, _ in members]), np.array([w for _, w in members])
        assert (scene.labels[rows] == label).all()
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(weights @ scene.points[rows], witness["point"], atol=1e-9)


def test_a_separator_is_a_witness_too() -> None:
    scene = separable("SVC")
    witness = draw(scene, "separability")["witness"]
    assert witness["kind"] == "separated"
    (x0, y0), (x1, y1) = np.reshape(witness["line"], (2, 2))
    normal = np.array([y1 - y0, x0 - x1]) / np.hypot(y1 - y0, x0 - x1)
    distances = (scene.points - [x0, y0]) @ normal * (2 * scene.labels - 1)
    distances *= np.sign(distances[0])
    assert distances.min() == pytest.approx(witness["margin"], rel=1e-6)


# ------------------------------------------------------------------- stopping, warning


def test_nothing_is_sent_once_nobody_wants_it() -> None:
    sent: list[Any] = []
    answers = chain([False], repeat(True))
    pictures.draw(make_scene("SVC"), (8, 8), (), lambda: next(answers), sent.append)
    assert sent == []


def test_warnings_are_recorded_for_one_thread_alone() -> None:
    heard: list[str] = []

    def work() -> None:
        with recorded_warnings() as own:
            warn("another thread")
            heard.extend(own)

    with recorded_warnings() as recorded:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        warn("this thread")
    assert (recorded, heard) == (["this thread"], ["another thread"])
    with pytest.warns(UserWarning, match="everybody"):
        warn("everybody")


# ------------------------------------------------------------------- whatever the points

SCENES: dict[str, tuple[Any, list[int]]] = {
    "nothing": ([], []),
    "one point": ([[1, 2]], [0]),
    "two points": ([[0, 0], [1, 1]], [0, 1]),
    "one class": ([[0, 0], [1, 1], [2, 0]], [1, 1, 1]),
    "equal points": ([[1, 1]] * 4, [0, 0, 0, 0]),
    "equal points of two classes": ([[1, 1]] * 4, [0, 1, 0, 1]),
    "a conflict": ([[0, 0], [0, 0], [1, 1]], [0, 1, 1]),
    "huge numbers": ([[1e6, -1e6], [-1e6, 1e6], [1e6, 1e6], [9e5, 1e6]], [0, 1, 0, 1]),
    "tiny numbers": ([[1e-9, 0], [0, 1e-9], [2e-9, 2e-9]], [0, 1, 1]),
    "on a line": ([[0, 0], [1, 0], [2, 0], [3, 0]], [0, 2, 4, 2]),
    "five classes": ([[0, 0], [1, 0], [2, 0], [3, 3], [0, 4]], [0, 1, 2, 3, 4]),
}


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("model", MODELS)
def test_every_model_answers_whatever_the_points(model: str, name: str) -> None:
    points, labels = SCENES[name]
    for kernel in ("RBF(gamma)", "Linear()") if model in WITH_KERNEL else ("",):
        if model == "BayesPointClassifier" and name == "five classes":
            continue  # ten pairs, each with its own draws, take seconds
        picture = draw(make_scene(model, points, labels, kernel), "separability", grid=(9, 8))
        assert picture["lines"] or picture["message"]
        assert len(picture["rows"]["kind"]) == len(picture["rows"]["alpha"]) == len(points)
        assert len(picture["facts"]) <= 8
