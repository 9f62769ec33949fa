"""The picture of a margin says what the machine says: lines, distances, kinds, slack."""

from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import maxmargin as mm
from maxmargin.plots.style import MOST_POINTS
from tests.support.drawing import assert_fits

mpl.use("Agg")
import matplotlib.pyplot as plt

KINDS = ("margin", "inside", "wrong side")


def draw(model: Any, X: Any, y: Any = None, **how: Any) -> Any:
    """Draw on plain axes: laying a figure out takes longer than all the rest."""
    how.setdefault("ax", Figure().add_subplot())
    return mm.plots.MarginDisplay.from_estimator(model, X, y, **how)


@pytest.fixture(scope="module")
def clouds() -> tuple[Any, Any]:
    return mm.datasets.gaussians(120, variance=0.15, random_state=0)


@pytest.fixture(scope="module")
def five() -> tuple[Any, Any]:
    X, y = mm.datasets.gaussians(120, variance=0.15, random_state=0)
    return np.hstack([X, np.random.default_rng(0).normal(size=(120, 3))]), y


@pytest.fixture(scope="module")
def moons() -> tuple[Any, Any]:
    return mm.datasets.moons(150, random_state=0)


@pytest.fixture(scope="module")
def iris() -> Any:
    frame, target = load_iris(return_X_y=True, as_frame=True)
    return frame, np.array(["setosa", "versicolor", "virginica"])[target]


def apart(display: Any, one: float, other: float) -> float:
    """Return the distance of a drawn line from another, as drawn."""
    start, end = display.lines_[one].get_xydata()
    along = (end - start) / np.linalg.norm(end - start)
    away = display.lines_[other].get_xydata() - start
    distances = np.abs(away[:, 0] * along[1] - away[:, 1] * along[0])
    assert_allclose(distances[0], distances[1], rtol=1e-9)  # parallel
    return float(distances[0])


def marked(display: Any, kind: str) -> npt.NDArray[np.float64]:
    return np.asarray(display.support_[kind].get_offsets())


def by_rows(points: Any) -> Any:
    return np.asarray(sorted(np.asarray(points).tolist()))


LINEAR = [
    mm.LinearSVC(C=0.3),
    mm.LinearSVC(loss="squared_hinge"),
    mm.SVC(kernel="linear", C=5),
    mm.NuSVC(kernel="linear", nu=0.4),
    svm.SVC(kernel="linear"),
    svm.LinearSVC(tol=1e-8, max_iter=100_000),
]


# ---------------------------------------------------------------- lines


@pytest.mark.parametrize("model", LINEAR, ids=str)
def test_margin_lines_are_one_over_w_away(model: Any, clouds: Any) -> None:
    X, y = clouds
    display = draw(model.fit(X, y), X, y)
    norm = np.linalg.norm(mm.geometry.hyperplane(model).norm)
    if display.lines_:  # a linear kernel without coef_ has contours
        for side in (-1.0, 1.0):
            assert_allclose(apart(display, 0.0, side), 1.0 / norm, rtol=1e-9)
    for level, line in display.lines_.items():
        assert_allclose(model.decision_function(line.get_xydata()), level, atol=1e-9)
        left, right, bottom, top = display.box
        x1, x2 = line.get_xydata().T
        on_edge = np.isclose(x1, left) | np.isclose(x1, right)
        assert (on_edge | np.isclose(x2, bottom) | np.isclose(x2, top)).all()


def test_slice_has_the_distance_of_the_slice(five: Any) -> None:
    X, y = five
    for width in (5, 4):
        model = mm.LinearSVC().fit(X[:, :width], y)
        display = draw(model, X[:, :width], y, features=(0, 3))
        w = model.coef_[0]
        assert_allclose(apart(display, 0.0, 1.0), 1.0 / np.hypot(w[0], w[3]), rtol=1e-9)
        medians = np.median(X[:, :width], axis=0)
        for level, line in display.lines_.items():
            rows = np.tile(medians, (2, 1))
            rows[:, [0, 3]] = line.get_xydata()
            assert_allclose(model.decision_function(rows), level, atol=1e-9)
        assert_array_equal(display.points, X[:, [0, 3]])
        held = "3 other features at their median"
        assert (held if width == 5 else f"feature 2 = {medians[2]:.3g}") in display.remark
        assert display.slack_ is None  # the points are not on the slice: no segment ends on a line


@pytest.mark.parametrize(
    "model",
    [*LINEAR, mm.HardMarginSVC(kernel="rbf", gamma=5.0), mm.SVC(), mm.NuSVC(nu=0.3), svm.SVC()],
    ids=str,
)
def test_margin_view_is_true_in_any_space(model: Any, five: Any) -> None:
    X, y = five
    display = draw(model.fit(X, y), X, y, view="margin")
    norm = mm.geometry.hyperplane(model).norm
    for side in (-1.0, 1.0):
        assert_allclose(display.lines_[side].get_xdata(), side / norm, rtol=1e-7)
    assert_allclose(display.lines_[0.0].get_xdata(), 0.0, atol=1e-12)
    assert_allclose(display.points[:, 0], model.decision_function(X) / norm, rtol=1e-7)


def test_height_of_margin_view_is_the_first_direction_beside_w(five: Any) -> None:
    X, y = five
    model = mm.LinearSVC().fit(X, y)
    u = model.coef_[0] / np.linalg.norm(model.coef_)
    rest = X - X.mean(axis=0)
    rest -= np.outer(rest @ u, u)
    first = np.linalg.svd(rest)[2][0]
    height = draw(model, X, y, view="margin").points[:, 1]
    assert_allclose(np.abs(height), np.abs(rest @ first), atol=1e-9)
    # A linear kernel is the same space.
    kernel = mm.SVC(kernel=mm.kernels.Linear()).fit(X, y)
    assert_allclose(draw(kernel, X, y, view="margin").points[:, 1], height, atol=1e-3)
    assert_allclose(draw(model, sp.csr_array(X), y, view="margin").points[:, 1], height, atol=1e-9)


@pytest.mark.parametrize("model", [mm.SVC(), mm.SVC(kernel="poly"), mm.NuSVC(nu=0.2)], ids=str)
def test_contours_lie_on_levels(model: Any, moons: Any) -> None:
    X, y = moons
    display = draw(model.fit(X, y), X, y)
    assert_array_equal(display.contours_.levels, [-1.0, 0.0, 1.0])
    for level, path in zip(display.contours_.levels, display.contours_.get_paths(), strict=True):
        assert len(path.vertices) > 50
        assert_allclose(model.decision_function(path.vertices), level, atol=0.02)


def test_pipeline_is_drawn_in_the_data_s_own_coordinates(clouds: Any) -> None:
    X, y = clouds
    X = X * [100.0, 1.0]
    model = make_pipeline(StandardScaler(), mm.LinearSVC()).fit(X, y)
    display = draw(model, X, y)
    for level, path in zip(display.contours_.levels, display.contours_.get_paths(), strict=True):
        assert_allclose(model.decision_function(path.vertices), level, atol=1e-6)
    assert sum(len(marked(display, kind)) for kind in display.support_) == len(model[-1].support_)
    along = draw(model, X, y, view="margin")
    assert_allclose(along.lines_[1.0].get_xdata(), model[-1].margin_)


def test_lines_outside_the_picture_are_named(clouds: Any) -> None:
    X, y = clouds
    display = draw(mm.LinearSVC(C=1e-4).fit(X, y), X, y)
    assert set(display.lines_) <= {0.0}
    assert "f = -1" in display.ax_.texts[0].get_text()
    rbf = draw(mm.SVC(C=1e-4).fit(X, y), X, y)
    assert "and +1 not in the picture" in rbf.ax_.texts[0].get_text()
    seen = draw(mm.LinearSVC(C=1e-4).fit(X, y), X, y, view="margin")
    assert set(seen.lines_) == {-1.0, 0.0, 1.0}


# ---------------------------------------------------------------- points, kinds, slack


@pytest.mark.parametrize("model", [mm.SVC(), mm.LinearSVC(), mm.NuSVC(nu=0.3)], ids=str)
@pytest.mark.parametrize("view", ["data", "margin"])
def test_marks_are_the_support_vectors(model: Any, view: str, clouds: Any) -> None:
    X, y = clouds
    display = draw(model.fit(X, y), X, y, view=view)
    for kind in KINDS:
        rows = model.support_[model.support_kind_ == kind]
        if not len(rows):
            assert kind not in display.support_
            continue
        assert_array_equal(by_rows(marked(display, kind)), by_rows(display.points[rows]))
        assert f"({len(rows)})" in display.support_[kind].get_label()
    drawn = np.vstack([points.get_offsets() for points in display.points_])
    assert_array_equal(by_rows(drawn), by_rows(display.points))
    for points, label in zip(display.points_, (-1, 1), strict=True):
        assert_array_equal(points.get_offsets(), display.points[y == label])
        assert points.get_label() == str(label)


@pytest.mark.parametrize("view", ["data", "margin"])
@pytest.mark.parametrize("model", [mm.LinearSVC(), mm.SVC(kernel="linear", C=0.1)], ids=str)
def test_slack_is_perpendicular_and_as_long_as_said(model: Any, view: str, clouds: Any) -> None:
    X, y = clouds
    display = draw(model.fit(X, y), X, y, view=view)
    segments = np.array(display.slack_.get_segments())
    rows = model.support_[model.support_kind_ != "margin"]
    steps = segments[:, 1] - segments[:, 0]
    lengths = np.linalg.norm(steps, axis=1)
    assert_allclose(np.sort(lengths), np.sort(model.slack_[rows]) * model.margin_, rtol=1e-6)
    start, end = display.lines_[0.0].get_xydata()
    assert_allclose(steps @ (end - start), 0.0, atol=1e-9)
    drawn = segments[:, 1] @ display.weights + display.intercept
    assert_allclose(np.abs(drawn), 1.0, atol=1e-9)
    assert any("slack" in words.get_text() for words in display.ax_.get_legend().get_texts())


def test_kinds_of_scikit_learn_follow_from_scores(clouds: Any) -> None:
    X, y = clouds
    ours = draw(mm.SVC(kernel="linear", tol=1e-8).fit(X, y), X, y)
    theirs = draw(svm.SVC(kernel="linear", tol=1e-6).fit(X, y), X, y)
    assert_array_equal(ours.kinds, theirs.kinds)
    plain = svm.LinearSVC(loss="hinge", C=0.1, tol=1e-6, max_iter=1_000_000).fit(X, y)
    display = draw(plain, X, y)
    margins = y * plain.decision_function(X)
    assert_array_equal(display.kinds == "wrong side", margins < 0)
    assert_array_equal(display.kinds == "", margins > 1 + 1e-5)


def test_rows_it_was_not_fitted_to_have_no_support_vectors(clouds: Any) -> None:
    X, y = clouds
    for model in (mm.SVC(), mm.LinearSVC(), svm.SVC(), mm.HardMarginSVC(kernel="rbf", gamma=50)):
        model.fit(X[:60], y[:60])
        for part in (slice(60, 120), slice(0, 120)):
            display = draw(model, X[part], y[part])
            assert display.kinds is None
            assert display.support_ == {}
            assert "no support vectors" in display.remark


@pytest.mark.parametrize(
    "model",
    [
        mm.Perceptron(stop="epochs", max_epochs=5),
        mm.AveragedPerceptron(),
        mm.VotedPerceptron(),
        mm.KernelPerceptron(stop="epochs", max_epochs=5),
        LogisticRegression(),
    ],
    ids=str,
)
def test_models_without_margins_have_a_boundary(model: Any, clouds: Any) -> None:
    X, y = clouds
    display = draw(model.fit(X, y), X, y)
    assert display.levels == (0.0,)
    assert display.support_ == {}
    if display.lines_:
        assert_allclose(model.decision_function(display.lines_[0.0].get_xydata()), 0, atol=1e-9)
    else:
        # Votes jump: then f changes its sign within a cell of the grid.
        assert_array_equal(display.contours_.levels, [0.0])
    assert "margin" not in display.ax_.get_title()


def test_outlier_detectors(clouds: Any) -> None:
    X, _ = clouds
    model = mm.OneClassSVM(nu=0.1).fit(X)
    display = draw(model, X)
    assert_array_equal(display.labels == "inlier", model.predict(X) > 0)
    outside = model.support_[model.support_kind_ == "outside"]
    assert_array_equal(by_rows(marked(display, "outside")), by_rows(X[outside]))
    assert_allclose(
        model.decision_function(display.contours_.get_paths()[0].vertices), 0, atol=0.02
    )


# ---------------------------------------------------------------- several classes


@pytest.mark.parametrize(
    "model",
    [
        mm.SVC(),
        mm.SVC(kernel="linear"),
        mm.LinearSVC(multi_class="ovo"),
        mm.HardMarginSVC(kernel="rbf", gamma=20.0),
        svm.SVC(),
        svm.SVC(kernel="linear"),
    ],
    ids=str,
)
@pytest.mark.parametrize("pair", [("virginica", "setosa"), ("versicolor", "virginica")])
def test_a_pair_is_the_machine_of_its_rows(model: Any, pair: Any, iris: Any) -> None:
    X, y = iris[0].iloc[::2].to_numpy() + 0.0, iris[1][::2]
    # gamma is a number, so that the pair alone has the same kernel.
    if getattr(model, "kernel", "") == "rbf":
        model.set_params(gamma=model.gamma if isinstance(model.gamma, float) else 0.5)
    both = np.isin(y, pair)
    display = draw(model.fit(X, y), X, y, pair=pair, view="margin")
    assert_array_equal(display.rows, np.flatnonzero(both))
    single = type(model)(**model.get_params()).fit(X[both], y[both])
    alone = draw(single, X[both], y[both], view="margin")
    assert display.classes == sorted(pair)
    assert_allclose(display.points[:, 0], alone.points[:, 0], atol=5e-3)
    assert_allclose(display.weights, alone.weights, rtol=1e-2)
    agree = np.mean(display.kinds == alone.kinds)
    assert agree >= 0.97


def test_several_classes_have_regions(iris: Any) -> None:
    X, y = iris
    model = mm.SVC().fit(X, y)
    display = draw(model, X, y, features=(2, 3))
    x1, x2, number = display.grid
    rows = np.tile(X.median().to_numpy(), (len(x1), 1))
    rows[:, 2], rows[:, 3] = x1, x2
    predicted = model.predict(pd.DataFrame(rows, columns=X.columns))
    assert_array_equal(np.array(display.classes)[np.diag(number)], predicted)
    assert display.support_ == {}
    assert display.ax_.get_xlabel() == "petal length (cm)"
    assert len(display.contours_) == len(np.unique(number)) - 1
    with pytest.raises(ValueError, match="choose pair"):
        draw(model, X, y, view="margin")
    with pytest.raises(ValueError, match="pair=None for regions"):
        draw(mm.LinearSVC().fit(X, y), X, y, features=(0, 1), pair=("setosa", "virginica"))


# ---------------------------------------------------------------- tables, names, sizes


@pytest.mark.parametrize("model", [mm.LinearSVC(), mm.SVC()], ids=str)
def test_other_tables_draw_the_same(model: Any, five: Any) -> None:
    X, y = five
    same = draw(model.fit(X, y), X, y, features=(1, 2), grid_resolution=30)
    for kind in (sp.csr_array, sp.csc_matrix, np.asfortranarray, lambda A: A.tolist()):
        table = kind(X)
        display = draw(model.fit(table, y), table, y, features=(1, 2), grid_resolution=30)
        assert_allclose(display.points, same.points)
        assert_array_equal(display.kinds, same.kinds)
        if same.grid is not None:
            assert_allclose(display.grid[2], same.grid[2], atol=1e-3)
    single = draw(model.fit(np.float32(X), y), np.float32(X), y, features=(1, 2))
    assert (single.kinds != "").any()
    frame = pytest.importorskip("polars").DataFrame(X, schema=[f"c{k}" for k in range(5)])
    named = draw(model.fit(frame, y), frame, y, features=("c1", "c4"), grid_resolution=20)
    assert named.ax_.get_ylabel() == "c4"


def test_precomputed_kernels_along_w(moons: Any) -> None:
    X, y = moons
    K = mm.kernels.RBF(2.0).gram(X, X)
    given = mm.SVC(kernel="precomputed").fit(K, y)
    own = mm.SVC(gamma=2.0).fit(X, y)
    one, other = draw(given, K, y, view="margin"), draw(own, X, y, view="margin")
    assert_allclose(one.points, other.points, atol=1e-3)
    assert_allclose(draw(given, K, y).points, one.points)  # more than two columns: the same view
    with pytest.raises(ValueError, match="view='margin'"):
        draw(given, K, y, view="data")


@pytest.mark.wide
def test_many_points_are_thinned_openly(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = mm.datasets.gaussians(100_000, variance=0.15, random_state=0)
    model = mm.LinearSVC(C=1e-3).fit(X, y)
    display = draw(model, X, y)
    assert len(display.points) <= MOST_POINTS + 5_000
    vectors = len(model.support_)
    shown = (display.kinds != "").sum()
    assert min(5_000, vectors) <= shown <= vectors
    assert f"of 100,000 points drawn, {shown:,} of {vectors:,} support vectors" in display.remark
    assert all(points.get_rasterized() for points in display.points_)
    # As many scores are computed as are drawn, and not one for every row.
    few = mm.SVC(C=1).fit(X[:300], y[:300])
    asked: list[int] = []
    scores = mm.SVC.decision_function

    def counted(self: mm.SVC, rows: Any) -> Any:
        asked.append(len(rows))
        return scores(self, rows)

    monkeypatch.setattr(mm.SVC, "decision_function", counted)
    draw(few, X, y, grid_resolution=50)
    assert sum(asked) <= MOST_POINTS + 50**2


def test_few_support_vectors_among_many_points_are_all_kept() -> None:
    X, y = mm.datasets.separable(50_000, margin=0.3, random_state=0)
    model = mm.HardMarginSVC().fit(X, y)
    display = draw(model, X, y)
    assert set(model.support_) <= set(display.rows)
    assert f"all {len(model.support_)} support vectors" in display.remark


# ---------------------------------------------------------------- looks


def test_subfigures(clouds: Any) -> None:
    X, y = clouds
    model = mm.LinearSVC().fit(X, y)
    with mm.plots.theme():
        figure = plt.figure(figsize=(8.0, 4.6), layout="constrained")
        parts: Any = figure.subfigures(1, 2)
        for part in parts:
            draw(model, X, y, ax=part.add_subplot())
        assert_fits(figure)


def test_uneven_features_are_not_squeezed(clouds: Any) -> None:
    X, y = clouds
    X = X * [1000.0, 1.0]
    display = draw(mm.LinearSVC().fit(X, y), X, y)
    assert display.ax_.get_aspect() == "auto"
    assert "different scale" in display.ax_.texts[0].get_text()


# ---------------------------------------------------------------- bad input


def test_bad_input(clouds: Any, five: Any) -> None:
    X, y = clouds
    model = mm.LinearSVC().fit(X, y)
    wide, labels = five
    broad = mm.SVC().fit(wide, labels)
    wrong: list[tuple[Any, Any, Any, dict[str, Any], str]] = [
        (model, X, y, {"view": "3d"}, "view must be"),
        (model, X, y, {"view": "margin", "features": (0, 1)}, "view='data'"),
        (model, X, y, {"grid_resolution": 1}, "grid_resolution"),
        (model, X, y, {"grid_resolution": 20.5}, "grid_resolution"),
        (model, X, y[:-1], {}, "y has 119 labels"),
        (model, X, None, {}, "y is None"),
        (model, X, y + 7, {}, "not a class"),
        (model, X, y, {"pair": (1, 2)}, "pair must be"),
        (model, X, y, {"pair": (1, 1)}, "pair must be"),
        (model, X[:, 0], y, {}, "X must be a table"),
        (broad, wide, labels, {"view": "data"}, r"features=\(i, j\)"),
        (broad, wide, labels, {"features": (0, 9)}, "9 is not in X"),
        (broad, wide, labels, {"features": (0, "a")}, "'a' is not in X"),
        (broad, wide, labels, {"features": (0, 0)}, "two different"),
        (broad, wide, labels, {"features": "ab"}, "two of the features"),
        (mm.VotedPerceptron().fit(X, y), X, y, {"view": "margin"}, "take view='data'"),
    ]
    for estimator, rows, answers, options, words in wrong:
        with pytest.raises(ValueError, match=words):
            draw(estimator, rows, answers, **options)
    with pytest.raises(TypeError, match="classifier"):
        draw(mm.SVR().fit(X, y), X, y)
    with pytest.raises(TypeError, match="classifier"):
        draw("model", X, y)
    with pytest.raises(ValueError, match="not fitted"):
        draw(mm.SVC(), X, y)


def test_columns_without_numbers(clouds: Any) -> None:
    X, y = clouds
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=np.where(X[:, 0] > 1, "u", "v"))
    ahead = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    model = make_pipeline(ahead, mm.LinearSVC()).fit(frame, y)
    with pytest.raises(ValueError, match="'c' of X does not hold numbers"):
        draw(model, frame, y, features=("a", "b"))
    display = draw(model, frame, y, view="margin")
    assert_allclose(display.lines_[1.0].get_xdata(), model[-1].margin_)
