"""Code for a picture: run, it fits exactly what the page shows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from maxmargin.studio import pictures, presets, python_code
from maxmargin.studio.catalogue import MODELS
from maxmargin.studio.scene import Choice, Scene, View

pytestmark = pytest.mark.wide

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def no_window(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


def scene_of(preset: str, model: str, kernel: str = "", **parameters: float) -> Scene:
    reply = presets.make(preset, {"points": 30} if presets.PRESETS[preset].sliders else {})
    points = np.column_stack([reply["x"], reply["y"]])
    choice = Choice(model, parameters, kernel)
    return Scene(points, np.array(reply["label"]), choice, View(*reply["view"]))


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "picture.py", "exec"), names)
    return names


def outputs(model: Any, X: Any) -> Any:
    for method in ("decision_function", "transform", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(X)
    raise AssertionError("a model without outputs")


def assert_same_fit(scene: Scene, model: Any) -> None:
    X, y = pictures.training_data(scene)
    expected = pictures.build(scene)
    expected = expected.fit(X) if y is None else expected.fit(X, y)
    np.testing.assert_array_equal(outputs(model, X), outputs(expected, X))
    if hasattr(expected, "coef_"):
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_array_equal(model.intercept_, expected.intercept_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few epochs
@pytest.mark.parametrize("preset", ["separable", "blobs"])
@pytest.mark.parametrize("model", list(MODELS))
def test_the_code_of_every_model_fits_what_the_page_shows(
    model: str, preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = {"C": 3.25, "gamma": 0.37, "nu": 0.2, "epsilon": 0.05, "eta": 0.5, "epochs": 7}
    known = {*MODELS[model].sliders, *(("gamma",) if MODELS[model].kernel else ())}
    parameters = {name: value for name, value in changed.items() if name in known}
    kernel = MODELS[model].kernel and "RBF(gamma)"
    if model == "BayesPointClassifier":  # samples from a space with as many dimensions as this
        kernel = "Linear()"
    scene = scene_of(preset, model, kernel, **parameters)
    names = run(python_code.write(scene))
    np.testing.assert_array_equal(names["X"], scene.points)
    if "y" in names:
        np.testing.assert_array_equal(names["y"], scene.labels)
    assert_same_fit(scene, names["model"])
    assert len(plt.get_fignums()) == 1
    printed = capsys.readouterr().out
    if hasattr(names["model"], "certificate_"):
        assert printed.strip() == str(names["model"].certificate_)


def test_two_panes_are_two_models_on_the_same_points() -> None:
    scene = scene_of("moons", "SVC", "0.5 * RBF(gamma) + Polynomial(degree)", gamma=2.0)
    second = Choice("LinearSVC", {"C": 10.0})
    code = python_code.write(scene, (scene.choice, second))
    names = run(code)
    assert_same_fit(scene, names["model"])
    assert_same_fit(Scene(scene.points, scene.labels, second, scene.view), names["second"])
    assert code.count("np.array") == 2


def test_without_points_there_is_nothing_to_write() -> None:
    scene = Scene(np.zeros((0, 2)), np.zeros(0, int), Choice("SVC", {}), View(-1, 1, -1, 1))
    with pytest.raises(ValueError, match="There are no points yet"):
        python_code.write(scene)
