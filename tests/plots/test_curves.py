"""Curves, paths, maps and answers: what is drawn is what was computed, and the theorems hold."""

from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.plots.planar import hull_corners
from tests.support.drawing import assert_apart, assert_fits

mpl.use("Agg")
plots: Any = mm.plots

UNDECIDED = SimpleNamespace(separable=None, classes=(0, 1))
COLUMN = 3.5  # width of one column of a journal, in inches


@pytest.fixture(scope="module")
def blobs() -> tuple[Any, Any]:
    return mm.datasets.gaussians(80, variance=0.25, random_state=0)


@pytest.fixture(scope="module")
def apart() -> tuple[Any, Any]:
    return mm.datasets.separable(60, margin=0.2, random_state=0)


@pytest.fixture(scope="module")
def linear(blobs: tuple[Any, Any]) -> Any:
    return mm.LinearSVC(trace=True).fit(*blobs)


@pytest.fixture(scope="module")
def path(apart: tuple[Any, Any]) -> Any:
    return mm.regularization_path(*apart)


@pytest.fixture(scope="module")
def search(blobs: tuple[Any, Any]) -> Any:
    grid = {"C": [10, 0.1, 1], "gamma": [0.1, 1.0], "kernel": ["rbf", "laplacian"]}
    return mm.SVCSearchCV(mm.SVC(), grid, cv=3).fit(*blobs)


def settled(figure: Any) -> Any:
    """Return a figure drawn once: where scales are equal, its layout needs that to come to rest."""
    figure.draw_without_rendering()
    return figure


def cross(a: Any, b: Any) -> Any:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def legend_of(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def inside(polygon: Any, point: Any, slack: float = 1e-9) -> bool:
    """Return whether a convex polygon, counter-clockwise, contains a point."""
    side = np.roll(polygon, -1, axis=0) - polygon
    way = np.asarray(point) - polygon
    return bool((cross(side, way) >= -slack).all())


# ------------------------------------------------------------------- convergence


def test_convergence_draws_the_trace(linear: Any, blobs: Any) -> None:
    slow = mm.LinearSVC(solver="dual_cd", tol=1e-6, trace=True).fit(*blobs)
    models = {"fast": linear, "slow": slow}
    by_seconds = plots.ConvergenceDisplay.from_estimators(models)
    by_iterations = plots.ConvergenceDisplay.from_estimators(models, x="iterations")
    for name, model in models.items():
        trace = np.array(model.trace_)
        above = trace[:, 1] > 0
        for display in (by_seconds, by_iterations):
            assert_array_equal(display.lines_[name][0].get_ydata()[above], trace[above, 1])
            assert (display.lines_[name][0].get_ydata()[~above] < trace[above, 1].min()).all()
        assert_array_equal(by_seconds.lines_[name][0].get_xdata(), trace[:, 0])
        assert_array_equal(by_iterations.lines_[name][0].get_xdata(), np.arange(len(trace)) + 1)
    assert [line.get_ydata()[0] for line in by_seconds.tol_lines_] == [1e-6, 1e-4]
    assert by_seconds.ax_.get_yscale() == "log"
    assert by_seconds.ax_.get_xlabel() == "seconds"
    assert legend_of(by_seconds.ax_) == ["fast", "slow", "tol = 1e-06", "tol = 0.0001"]


def test_convergence_of_several_problems_and_of_pipelines() -> None:
    X, y = mm.datasets.gaussians(60, random_state=0)
    X, y = np.vstack([X, X + 3]), np.concatenate([y, y + 3])
    model = make_pipeline(StandardScaler(), mm.SVC(trace=True)).fit(X, y)
    display = plots.ConvergenceDisplay.from_estimator(model)
    assert len(display.lines_["SVC"]) == 6
    assert legend_of(display.ax_)[0] == "SVC, 6 problems"


def test_a_gap_of_zero_is_drawn_and_said() -> None:
    trace = [(0.1, 1.0), (0.2, 1e-3), (0.3, 0.0)]
    display = plots.ConvergenceDisplay({"it": [trace]}, tols=[1e-2]).plot()
    assert display.lines_["it"][0].get_ydata()[-1] < 1e-3
    assert "gaps of 0" in display.ax_.texts[0].get_text()
    assert_apart(settled(display.figure_))


def test_models_without_a_trace_are_told_how_to_get_one(blobs: Any) -> None:
    draw = plots.ConvergenceDisplay.from_estimator
    with pytest.raises(ValueError, match=r"LinearSVC\(trace=True\)"):
        draw(mm.LinearSVC().fit(*blobs))
    with pytest.raises(TypeError, match="keeps no trace"):
        draw(mm.HardMarginSVC())
    with pytest.raises(TypeError, match="mistakes"):
        draw(mm.Perceptron(trace=True, stop="epochs").fit(*blobs))
    with pytest.raises(TypeError, match="dict of fitted models"):
        plots.ConvergenceDisplay.from_estimators([])
    with pytest.raises(ValueError, match="x='hours'"):
        plots.ConvergenceDisplay({"a": [[(1, 1)]]}, x="hours").plot()
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        plots.ConvergenceDisplay({"a": [(1, 1)]}).plot()


# ------------------------------------------------------------------- path


def test_the_path_is_drawn_and_monotone(path: Any) -> None:
    display = plots.PathDisplay.from_path(path)
    for line, values in (
        (display.margin_line_, path.margins),
        (display.slack_line_, path.slack_sums),
        (display.errors_line_, path.training_errors),
        *((display.support_lines_[kind], n) for kind, n in path.support_counts.items()),
    ):
        assert_array_equal(line.get_xdata(), path.Cs)
        assert_array_equal(line.get_ydata(), values)
    norms = 1 / display.margin_line_.get_ydata()
    assert (np.diff(norms) >= -1e-6 * norms[:-1]).all()
    slack = display.slack_line_.get_ydata()
    assert (np.diff(slack) <= 1e-6 * slack[0]).all()
    assert (display.errors_line_.get_ydata() <= slack + 1e-9).all()
    assert display.end_lines_["small"][0].get_xdata()[0] == path.small_C
    assert display.end_lines_["hard"][2].get_xdata()[0] == path.hard_C
    top, middle, bottom = display.ax_.flat
    assert top.get_xlim() == bottom.get_xlim()
    assert top.get_xscale() == "log"
    assert legend_of(middle) == ["Σξ", "mistakes"]
    assert legend_of(bottom) == ["margin", "inside", "wrong side"]


def test_paths_of_losses_regressions_and_several_problems(apart: Any) -> None:
    X, y = apart
    squared = mm.regularization_path(X, y, mm.LinearSVC(loss="squared_hinge"), Cs=[0.1, 1, 10])
    display = plots.PathDisplay.from_path(squared)
    assert legend_of(display.ax_.flat[1]) == ["Σξ²", "mistakes"]
    numbers = mm.regularization_path(X, X[:, 0] ** 2, mm.LinearSVR(epsilon=0.1), Cs=[0.1, 1])
    tube = plots.PathDisplay.from_path(numbers)
    assert legend_of(tube.ax_.flat[2]) == ["on the tube", "outside"]
    three = np.where(X[:, 0] > 0.5, 2, y)
    many = mm.regularization_path(X, three, Cs=[0.1, 1])
    with pytest.raises(ValueError, match="problem=0 to 2"):
        plots.PathDisplay.from_path(many)
    with pytest.raises(ValueError, match="problem=3"):
        plots.PathDisplay.from_path(many, problem=3)
    drawn = plots.PathDisplay.from_path(many, problem=2)
    assert_array_equal(drawn.margin_line_.get_ydata(), many.margins[:, 2])
    with pytest.raises(TypeError, match="regularization_path"):
        plots.PathDisplay.from_path(3)
    with pytest.raises(ValueError, match="3 panels"):
        plots.PathDisplay.from_path(squared, ax=plt.figure().add_subplot())


# ------------------------------------------------------------------- search


def scores_of(search: Any, **params: Any) -> float:
    results = search.cv_results_
    (k,) = (k for k, one in enumerate(results["params"]) if params.items() <= one.items())
    return float(results["mean_test_score"][k])


def test_the_map_shows_the_scores(search: Any) -> None:
    display = plots.SearchDisplay.from_estimator(search)
    best = search.best_params_
    assert (display.x, display.y, display.held) == ("C", "gamma", {"kernel": best["kernel"]})
    assert list(display.x_values) == [0.1, 1, 10]
    drawn = display.image_.get_array().reshape(2, 3)
    for row, gamma in enumerate([0.1, 1.0]):
        for column, C in enumerate([0.1, 1, 10]):
            assert drawn[row, column] == scores_of(search, C=C, gamma=gamma, kernel=best["kernel"])
    corner = np.array(display.best_.get_xy()) + 0.5
    assert [display.x_values[int(corner[0])], display.y_values[int(corner[1])]] == [
        best["C"],
        best["gamma"],
    ]
    assert len(display.texts_) == 6
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["0.1", "1", "10"]
    assert f"best: {search.best_score_:.3g}" in legend_of(display.ax_)[0]
    assert best["kernel"] in display.ax_.texts[-1].get_text()
    assert len(display.figure_.axes) == 2, "no colour bar"


def test_one_parameter_is_a_curve_with_error_bars(blobs: Any) -> None:
    search = GridSearchCV(mm.LinearSVC(), {"C": [100, 1, 0.01]}, cv=3).fit(*blobs)
    display = plots.SearchDisplay.from_estimator(search)
    line, _, (bars,) = display.line_
    results = search.cv_results_
    order = np.argsort([one["C"] for one in results["params"]])
    assert_array_equal(line.get_xdata(), [0.01, 1, 100])
    assert_array_equal(line.get_ydata(), results["mean_test_score"][order])
    lengths = [np.ptp(segment[:, 1]) for segment in bars.get_segments()]
    assert_allclose(lengths, 2 * results["std_test_score"][order], atol=1e-12)
    assert_allclose(display.best_.get_offsets()[0], [search.best_params_["C"], search.best_score_])
    assert display.ax_.get_xscale() == "log"


def test_axes_are_chosen_by_name(search: Any) -> None:
    display = plots.SearchDisplay.from_estimator(search, x="kernel", y="C")
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("kernel", "C")
    assert list(display.held) == ["gamma"]
    curve = plots.SearchDisplay.from_estimator(search, x="kernel")
    assert [t.get_text() for t in curve.ax_.get_xticklabels()] == ["rbf", "laplacian"]


def test_several_grids_and_several_scorings(blobs: Any) -> None:
    X, y = blobs
    grids = [{"kernel": ["linear"], "C": [0.1, 1]}, {"kernel": ["rbf"], "gamma": [1.0, 2.0]}]
    display = plots.SearchDisplay.from_estimator(GridSearchCV(mm.SVC(), grids, cv=2).fit(X, y))
    assert (display.x in ("C", "gamma"), display.y) == (True, None)
    assert list(display.held) == ["kernel"]
    both = GridSearchCV(
        mm.LinearSVC(), {"C": [0.1, 1]}, cv=2, scoring=["accuracy", "f1"], refit="f1"
    ).fit(X, y)
    shown = plots.SearchDisplay.from_estimator(both)
    assert shown.metric == "f1"
    assert_array_equal(shown.scores, both.cv_results_["mean_test_f1"])
    other = plots.SearchDisplay.from_estimator(both, metric="accuracy")
    assert_array_equal(other.scores, both.cv_results_["mean_test_accuracy"])
    both.refit = False
    assert plots.SearchDisplay.from_estimator(both).metric == "accuracy"  # the first


def test_bad_searches(search: Any) -> None:
    draw = plots.SearchDisplay.from_estimator
    with pytest.raises(TypeError, match="cv_results_"):
        draw(mm.SVC())
    for how, words in (
        ({"x": "c"}, "x='c'"),
        ({"y": "C"}, "another parameter along x"),
        ({"x": "C", "y": "C"}, "another parameter along x"),
        ({"metric": "f1"}, "metric='f1'"),
    ):
        with pytest.raises(ValueError, match=words):
            draw(search, **how)
    with pytest.raises(ValueError, match=r"scores has shape \(1,\)"):
        plots.SearchDisplay("C", [1, 2], [0.5], (0,)).plot()


def test_large_maps_are_legible() -> None:
    values = np.geomspace(1e-5, 1e5, 37)
    scores = np.linspace(0, 1, 37 * 37).reshape(37, 37)
    with plots.theme():
        large = plots.SearchDisplay("C", values, scores, (36, 36), y="gamma", y_values=values)
        large.plot().figure_.set_size_inches(COLUMN, COLUMN)
        assert not large.texts_
        assert_apart(settled(large.figure_))
        assert_fits(large.figure_)


# ------------------------------------------------------------------- separability


def test_the_drawn_line_separates(apart: Any) -> None:
    X, y = apart
    display = plots.SeparabilityDisplay.from_data(X, y)
    (x0, y0), (x1, y1) = display.line_.get_xydata()
    side = (x1 - x0) * (X[:, 1] - y0) - (y1 - y0) * (X[:, 0] - x0)
    distance = side / np.hypot(x1 - x0, y1 - y0)
    assert len(set(np.sign(distance) * y)) == 1
    assert_allclose(np.abs(distance).min(), 0.2)
    near = np.flatnonzero(np.abs(distance) < 0.2 + 1e-6)
    assert_allclose(display.carriers_.get_offsets(), X[near])
    band = display.band_.get_xy()[:4]
    assert inside(band if cross(band[1] - band[0], band[2] - band[1]) > 0 else band[::-1],
                  X[near[0]], 1e-6)  # fmt: skip
    assert "0.2" in display.ax_.get_title()
    assert display.ax_.get_aspect() == 1
    drawn = np.vstack([points.get_offsets() for points in display.points_])
    assert_array_equal(np.unique(drawn, axis=0), np.unique(X, axis=0))


def test_the_hulls_contain_the_common_point(blobs: Any) -> None:
    X, y = blobs
    display = plots.SeparabilityDisplay.from_data(X, y)
    point, witness = display.common_.get_offsets()[0], display.found.witness
    for label, polygon in zip((-1, 1), display.hulls_, strict=True):
        corners = polygon.get_xy()[:-1]
        assert inside(corners, point)
        assert all(inside(corners, row) for row in X[y == label])
        assert {tuple(corner) for corner in corners} <= {tuple(row) for row in X[y == label]}
        own = y[witness.rows] == label
        weights = witness.weights[own]
        assert (weights >= 0).all()
        assert_allclose(weights.sum(), 1)
        assert_allclose(weights @ X[witness.rows[own]], point)
    assert_array_equal(display.carriers_.get_offsets(), X[witness.rows])
    assert display.line_ is None


def test_hulls_of_any_points() -> None:
    rng = np.random.default_rng(0)
    for points in (rng.standard_normal((50, 2)), rng.integers(0, 4, (40, 2)).astype(np.float64)):
        corners = points[hull_corners(points)]
        assert all(inside(corners, point) for point in points)
        turns = cross(np.roll(corners, -1, 0) - corners, np.roll(corners, -2, 0) - corners)
        assert (turns > 0).all(), "a corner that is none"
    assert_array_equal(hull_corners(np.array([[1.0, 1], [2, 2], [0, 0], [1, 1]])), [1, 2])
    assert_array_equal(hull_corners(np.ones((3, 2))), [0])


def test_more_columns_are_left_to_other_displays() -> None:
    X, y = mm.datasets.separable(80, 5, margin=0.3, random_state=0)
    with pytest.raises(ValueError, match="projections of hulls may meet"):
        plots.SeparabilityDisplay.from_data(X, y)


def test_one_column_is_a_line_and_undecided_is_said() -> None:
    display = plots.SeparabilityDisplay.from_data([[0.0], [2.0], [1.0], [3.0]], [0, 0, 1, 1])
    assert display.found.separable is False
    assert 1 <= display.common_.get_offsets()[0, 0] <= 2
    assert_fits(settled(display.figure_))
    gap = plots.SeparabilityDisplay.from_data([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    assert_allclose(np.ravel(gap.line_.get_xdata()), 2)
    unknown = plots.SeparabilityDisplay(np.eye(2), [0, 1], UNDECIDED).plot()
    assert "undecided" in unknown.ax_.get_title()
    assert unknown.common_ is unknown.carriers_ is None


def test_of_several_classes_the_deciding_pair_is_drawn(apart: Any) -> None:
    X, y = apart
    three = np.where(X[:, 1] > 1, 7, y)
    display = plots.SeparabilityDisplay.from_data(X, three)
    assert display.found.separable == mm.separate(X, three).separable
    assert len(display.found.classes) == 2
    chosen = plots.SeparabilityDisplay.from_data(X, three, pair=(1, -1))
    assert (chosen.found.classes, chosen.found.separable) == ((-1, 1), True)
    with pytest.raises(ValueError, match=r"pair=\(1, 2\)"):
        plots.SeparabilityDisplay.from_data(X, three, pair=(1, 2))


def test_many_rows_are_thinned_openly_and_hulls_are_of_all() -> None:
    X, y = mm.datasets.gaussians(100_000, variance=0.25, random_state=0)
    display = plots.SeparabilityDisplay.from_data(X, y)
    assert sum(len(points.get_offsets()) for points in display.points_) < 21_000
    assert "of 100,000" in display.ax_.texts[0].get_text()
    assert all(inside(display.hulls_[1].get_xy()[:-1], row) for row in X[y == 1][::97])
    assert_apart(settled(display.figure_))
