"""Hostile but honest use of every display: odd axes, backgrounds, names, models and scales."""

import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn import svm
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

import maxmargin as mm
from maxmargin.plots.style import foreground

pytestmark = pytest.mark.wide

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    return mm.datasets.separable(40, margin=0.3, random_state=0)


def named(y: Any, names: Any) -> Any:
    return np.array(names)[(np.asarray(y) == np.unique(y)[1]).astype(int)]


# Axes and backgrounds.


@pytest.mark.parametrize("ax", ["ax", 3, np.array([]), plt], ids=repr)
def test_what_is_no_axes_is_refused(ax: Any) -> None:
    with pytest.raises(TypeError, match="ax must be flat matplotlib axes"):
        mm.plots.SearchDisplay("C", [1, 2], [0.5, 0.6], (1,)).plot(ax)
    with pytest.raises(ValueError, match="panels"):
        mm.plots.GramDisplay.from_kernel("rbf", [[0.0], [1.0]], ax=ax)
    for projection in ("3d", "polar"):
        other = plt.figure().add_subplot(projection=projection)
        with pytest.raises(TypeError, match="ax must be flat matplotlib axes"):
            mm.plots.SearchDisplay("C", [1, 2], [0.5, 0.6], (1,)).plot(other)


@pytest.mark.parametrize(
    ("figure", "axes", "black"),
    [("white", "none", True), ("#111111", "none", False), ("white", (0, 0, 0, 0.2), True),
     ("none", "none", True), ("white", "#101010", False)],
)  # fmt: skip
def test_the_foreground_suits_what_shows_through_transparent_axes(
    figure: Any, axes: Any, black: bool
) -> None:
    with plt.rc_context({"figure.facecolor": figure, "axes.facecolor": axes}):
        part = plt.figure().subfigures(1, 1)
        assert (foreground(part.subplots()) == "#000000") == black


# Names and labels.


def test_letters_without_a_glyph_are_told_by_drawing_only(rows: Any) -> None:
    X, y = rows[0], named(rows[1], ("漢", "字"))
    model = mm.LinearSVC().fit(X, y)
    display = mm.plots.MarginDisplay.from_estimator(model, X, y)  # a warning would be an error
    with pytest.warns(UserWarning, match="Glyph"):
        display.figure_.savefig(io.BytesIO(), dpi=80)


def test_a_held_feature_s_name_is_escaped_once() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 3)), columns=["a", "b", "$c$"])
    y = rng.integers(2, size=30)
    display = mm.plots.MarginDisplay.from_estimator(
        mm.LinearSVC().fit(X, y), X, y, features=("a", "b")
    )
    assert any(r"slice with \$c\$ =" in words.get_text() for words in display.ax_.texts)


@pytest.mark.parametrize("bad", [None, np.nan], ids=str)
def test_missing_labels_are_refused(bad: Any, rows: Any) -> None:
    y = (np.asarray(rows[1]) == np.unique(rows[1])[1]).astype(object)
    y[3] = bad
    with pytest.raises(ValueError, match="y contains NaN, infinity or None"):
        mm.plots.SeparabilityDisplay.from_data(rows[0], y)


# Models.


@pytest.mark.parametrize(
    "draw",
    [
        lambda X, y: mm.plots.GramDisplay.from_estimator(mm.SVC(), X, y),
        lambda X, y: mm.plots.ConvergenceDisplay.from_estimator(mm.SVC(trace=True)),
        lambda X, y: mm.plots.SearchDisplay.from_estimator(mm.SVCSearchCV(mm.SVC(), {"C": [1]})),
        lambda X, y: mm.plots.MarginDisplay.from_estimator(mm.SVC(), X, y),
        lambda X, y: mm.plots.KernelPCADisplay.from_estimator(mm.KernelPCA(3), X, y),
        lambda X, y: mm.plots.PerceptronPathDisplay.from_estimator(mm.Perceptron(trace=True), X, y),
    ],
)
def test_unfitted_models_say_so(draw: Any, rows: Any) -> None:
    with pytest.raises(NotFittedError):
        draw(*rows)
    other = LinearRegression().fit(rows[0], np.arange(40.0))
    with pytest.raises(TypeError, match="LinearRegression is no classifier"):
        mm.plots.PerceptronPathDisplay.from_estimator(other, *rows)


def test_rows_beyond_the_margin_are_not_on_it() -> None:
    """At so small a nu the classes meet, and scikit-learn's machine breaks its own conditions."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 2)) * [1, rng.uniform(0.3, 3)]
    y = X @ rng.normal(size=2) + 0.6 * rng.normal(size=40) > 0
    model = svm.NuSVC(nu=0.2, kernel="linear", tol=1e-6).fit(X, y)
    display = mm.plots.MarginDisplay.from_estimator(model, X, y)
    margins = np.where(y, 1, -1) * model.decision_function(X)
    assert margins[model.support_].max() > 3  # else there is nothing to see
    np.testing.assert_allclose(margins[display.rows[display.kinds == "margin"]], 1, atol=1e-4)


# Scales.


def test_equal_points_have_no_line() -> None:
    X, y = np.ones((6, 2)), [0, 1] * 3
    display = mm.plots.MarginDisplay.from_estimator(mm.LinearSVC().fit(X, y), X, y)
    assert display.lines_ == {}
    assert display.slack_ is None


@pytest.mark.parametrize("value", [1e9, 1e17, -1e17])
def test_constant_columns_of_large_values(value: float) -> None:
    X, y = np.column_stack([np.arange(8.0), np.full(8, value)]), np.arange(8) % 2
    flat, undecided = np.full((8, 2), value), SimpleNamespace(separable=None, classes=[0, 1])
    for display in (
        mm.plots.MarginDisplay(X, y, [0, 1]).plot(),
        mm.plots.MarginDisplay(flat, y, [0, 1]).plot(),
        mm.plots.SeparabilityDisplay(flat, y, undecided).plot(),
    ):
        low, high = display.ax_.get_ylim()
        assert low < value < high
