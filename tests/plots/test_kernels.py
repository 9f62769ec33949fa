"""Pictures of kernels: what is drawn is what the mathematics says."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

import maxmargin as mm
from maxmargin.geometry import cut_box
from maxmargin.kernels import RBF, Laplacian, Linear, Sigmoid
from tests.support.drawing import assert_whole

Lift, PCA = mm.plots.KernelLiftDisplay, mm.plots.KernelPCADisplay
Gram, Prior = mm.plots.GramDisplay, mm.plots.PriorSamplesDisplay


@pytest.fixture(scope="module")
def rings() -> tuple[Any, Any]:
    return mm.datasets.circles(120, radii=(1.0, 2.0), center=(0.5, -0.25), random_state=0)


@pytest.fixture(scope="module")
def model(rings: tuple[Any, Any]) -> Any:
    return mm.KernelPCA(4, kernel=RBF(gamma=1.0)).fit(rings[0])


def offsets(artists: list[Any]) -> Any:
    """Return the points of scatters, class after class, in two or three dimensions."""
    if hasattr(artists[0], "_offsets3d"):
        return np.vstack(
            [np.column_stack([np.ma.getdata(c) for c in a._offsets3d]) for a in artists]
        )
    return np.vstack([a.get_offsets() for a in artists])


def by_class(X: Any, y: Any) -> Any:
    return np.vstack([X[y == label] for label in np.unique(y)])


# ------------------------------------------------------------------- the lift


@pytest.mark.parametrize("center", [None, (0.5, -0.25)])
def test_heights_are_squares(rings: tuple[Any, Any], center: Any) -> None:
    X, y = rings
    display = Lift.from_data(X, y, lift="circle", center=center)
    assert_array_equal(offsets(display.points_), by_class(X, y))
    points = offsets(display.lifted_)
    assert_array_equal(points[:, :2], by_class(X, y))
    c = np.zeros(2) if center is None else np.array(center)
    assert_allclose(points[:, 2], ((by_class(X, y) - c) ** 2).sum(axis=1))


def test_heights_are_those_of_the_hill(rings: tuple[Any, Any]) -> None:
    X, y = rings
    display = Lift.from_data(X, y, lift="gaussian")
    away = by_class(X, y) - X.mean(axis=0)
    s = np.sqrt(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean() / 2)
    assert_allclose(offsets(display.lifted_)[:, 2], np.exp(-(away**2).sum(axis=1) / (2 * s**2)))
    assert_allclose(
        display.lifted(X), mm.CircleMap("gaussian").fit_transform(X), rtol=1e-12, atol=1e-15
    )
    assert_whole(display)


@pytest.mark.parametrize("lift", ["circle", "gaussian"])
def test_the_plane_drawn_separates_the_points_drawn(rings: tuple[Any, Any], lift: str) -> None:
    X, y = rings
    display = Lift.from_data(X, y, lift=lift)
    corners = np.asarray(display.plane_._faces[0])
    normal = np.linalg.svd(corners - corners.mean(axis=0))[2][2]
    assert_allclose((corners - corners.mean(axis=0)) @ normal, 0, atol=1e-9)
    sides = [
        np.sign((p - corners.mean(axis=0)) @ normal)
        for p in (offsets([artist]) for artist in display.lifted_)
    ]
    assert {len(np.unique(side)) for side in sides} == {1}
    assert sides[0][0] == -sides[1][0]


@pytest.mark.parametrize("center", [None, (0.5, -0.25)])
def test_the_circle_drawn_is_that_of_the_map(rings: tuple[Any, Any], center: Any) -> None:
    X, y = rings
    display = Lift.from_data(X, y, lift="circle", center=center)
    mapped = mm.CircleMap(center=center).fit(X)
    circle = mapped.circle(mm.HardMarginSVC().fit(mapped.transform(X), y))
    assert_allclose(display.circle.center, circle.center)
    assert display.circle.radius == pytest.approx(circle.radius)
    middle = display.contour_.get_paths()[list(display.contour_.levels).index(0.0)].vertices
    distance = np.linalg.norm(middle - circle.center, axis=1)
    assert_allclose(distance, circle.radius, rtol=1e-3)
    (trace,) = display.trace_
    x1, x2, z = np.asarray(trace.get_data_3d())
    assert_allclose(display.coef @ [x1, x2, z] + display.intercept, 0, atol=2e-3)


@pytest.mark.parametrize("lift", ["circle", "gaussian"])
def test_margins_touch_the_nearest_points(rings: tuple[Any, Any], lift: str) -> None:
    X, y = rings
    display = Lift.from_data(X, y, lift=lift)
    f = display.lifted(X) @ display.coef + display.intercept
    assert (y * f).min() == pytest.approx(1.0, abs=1e-6)
    assert set(display.contour_.levels) == {-1.0, 0.0, 1.0}


def test_what_no_plane_separates_says_so() -> None:
    X, y = mm.datasets.xor(80, random_state=0)
    display = Lift.from_data(X, y, lift="circle")
    assert not display.separates
    assert "soft margin" in display.ax_[0].get_title()


@pytest.mark.parametrize("w", [(0, 0, 1.0), (1.0, 0.3, 0), (1.0, -2.0, 0.01), (1.0, 1.0, 1.0)])
def test_a_cut_box_is_a_convex_polygon_on_the_plane(w: Any) -> None:
    low, high = np.array([-1.0, -2.0, 0.0]), np.array([1.0, 2.0, 50.0])
    normal = np.array(w)
    b = -float(normal @ (low + high) / 2)
    corners = cut_box(normal, b, low, high)
    assert 3 <= len(corners) <= 6
    assert_allclose(corners @ normal + b, 0, atol=1e-9)
    assert (corners >= low - 1e-9).all()
    assert (corners <= high + 1e-9).all()
    sides = np.roll(corners, -1, axis=0) - corners
    turns = np.cross(sides, np.roll(sides, -1, axis=0)) @ normal
    assert (turns > 0).all() or (turns < 0).all()


def test_a_plane_beside_the_box_is_not_drawn() -> None:
    assert cut_box(np.array([0.0, 0.0, 1.0]), 9.0, np.zeros(3), np.ones(3)).shape == (0, 3)


def test_a_lift_takes_frames_sparse_rows_and_words(rings: tuple[Any, Any]) -> None:
    X, y = rings
    words = np.array(["in", "out"])[(y > 0).astype(int)]
    frame = pd.DataFrame(X.astype(np.float32), columns=["width", "length"])
    display = Lift.from_data(frame, pd.Series(words), lift="gaussian")
    assert display.ax_[0].get_xlabel() == "width"
    assert display.ax_[1].get_ylabel() == "length"
    texts = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert texts[:2] == ["in", "out"]
    sparse = Lift.from_data(sp.csr_matrix(X), y, lift="circle")
    assert_allclose(sparse.coef, Lift.from_data(X, y, lift="circle").coef)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"lift": "square"}, "lift='square'"),
        ({"X": np.ones((120, 3))}, "3 columns"),
        ({"y": np.arange(120) % 3}, "3 classes"),
        ({"y": np.ones(120)}, "1 classes"),
        ({"y": np.ones(7)}, "7 labels"),
        ({"width": 0.0, "lift": "gaussian"}, "width"),
        ({"ax": np.empty(3, object)}, "2 panels"),
    ],
)
def test_a_lift_refuses_nonsense(rings: tuple[Any, Any], wrong: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Lift.from_data(**{"X": rings[0], "y": rings[1], **wrong})


def test_a_lift_needs_a_third_dimension(rings: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match="three dimensions"):
        Lift.from_data(*rings, ax=plt.figure().subplots(1, 2))


# ------------------------------------------------------------------- principal components


def test_panels_show_the_columns_of_transform(rings: tuple[Any, Any], model: Any) -> None:
    X, y = rings
    display = PCA.from_estimator(model, X, y)
    Z = model.transform(X)
    assert_array_equal(offsets(display.points_[0]), by_class(X, y))
    for artists, pair in zip(display.points_[1:], ([0, 1], [0, 2], [1, 2]), strict=True):
        assert_array_equal(offsets(artists), by_class(Z[:, pair], y))
    labels = [(a.get_xlabel(), a.get_ylabel()) for a in display.ax_.flat[1:]]
    shares = [f"PC{k + 1} ({model.explained_variance_ratio_[k]:.1%} var.)" for k in range(3)]
    assert labels == [(shares[0], shares[1]), (shares[0], shares[2]), (shares[1], shares[2])]
    assert_whole(display)


def test_the_title_says_what_separate_says() -> None:
    X, y = mm.datasets.moons(100, random_state=0)
    rings_too = mm.datasets.circles(100, radii=(0.25, 1.0), random_state=0)
    verdicts = set()
    for rows, labels in ((X, y), rings_too):
        fitted = mm.KernelPCA(3, kernel=RBF(gamma=1.0)).fit(rows)
        display = PCA.from_estimator(fitted, rows, labels)
        found = mm.separate(fitted.transform(rows), labels).separable
        title = display.figure_._suptitle.get_text()
        assert title == f"The classes are {'' if found else 'not '}separable in PC1–3"
        verdicts.add(found)
    assert verdicts == {True, False}


def test_columns_are_chosen_by_number_or_name(model: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)).astype(np.float32)
    y = rng.permutation(np.repeat(["a", "b", "c", "d"], 10))
    fitted = mm.KernelPCA(3, kernel="rbf").fit(X)
    display = PCA.from_estimator(fitted, X, y, features=(3, 1))
    assert_array_equal(offsets(display.points_[0]), by_class(X[:, [3, 1]], y))
    assert display.ax_[0, 0].get_xlabel() == "x₄"
    frame = pd.DataFrame(X, columns=list("pqrs"))
    named = PCA.from_estimator(mm.KernelPCA(3).fit(frame), frame, y, features=("s", "q"))
    assert named.ax_[0, 0].get_ylabel() == "q"
    assert_array_equal(offsets(named.points_[0]), by_class(X[:, [3, 1]], y))
    sparse = PCA.from_estimator(fitted, sp.csr_matrix(X), y, features=(3, 1))
    assert_array_equal(offsets(sparse.points_[0]), by_class(X[:, [3, 1]], y))
    for wrong in (4, "p", True, 1.0):
        with pytest.raises(ValueError, match="is not in X"):
            PCA.from_estimator(fitted, X, y, features=(0, wrong))


def test_components_without_labels_columns_or_shares(rings: tuple[Any, Any]) -> None:
    from sklearn.decomposition import KernelPCA

    X, y = rings
    K = RBF(gamma=1.0).gram(X)
    display = PCA.from_estimator(mm.KernelPCA(3, kernel="precomputed").fit(K), K, y)
    assert display.points is None
    assert_whole(display)
    theirs = PCA.from_estimator(KernelPCA(3, kernel="rbf").fit(X), X)
    assert theirs.ax_[0, 1].get_xlabel() == "PC1"
    assert not theirs.figure_.legends
    assert_whole(theirs)
    line = PCA.from_estimator(mm.KernelPCA(3, kernel="rbf").fit(X[:, :1]), X[:, :1], y)
    assert_array_equal(offsets(line.points_[0])[:, 1], 0)


def test_components_refuse_nonsense(rings: tuple[Any, Any], model: Any) -> None:
    X, y = rings
    with pytest.raises(ValueError, match="2 components"):
        PCA.from_estimator(mm.KernelPCA(2).fit(X), X, y)
    with pytest.raises(TypeError, match="no transform"):
        PCA.from_estimator(mm.SVC(), X, y)
    with pytest.raises(ValueError, match="4 panels"):
        PCA.from_estimator(model, X, y, ax=plt.figure().subplots())
    with pytest.raises(ValueError, match="5 labels"):
        PCA.from_estimator(model, X, y[:5])


# ------------------------------------------------------------------- the Gram matrix


@pytest.mark.parametrize(
    ("kernel", "labelled"),
    [(RBF(gamma=0.7), True), (Linear(), False), (Sigmoid(gamma=0.5, coef0=-1.0), True)],
)
def test_the_image_is_the_gram_matrix_in_its_order(
    rings: tuple[Any, Any], kernel: Any, labelled: bool
) -> None:
    X, y = rings
    display = Gram.from_kernel(kernel, X, y if labelled else None)
    assert_array_equal(np.sort(display.order), np.arange(len(X)))
    K = kernel.gram(X[display.order])
    assert_allclose(display.image_.get_array(), K, rtol=1e-10, atol=1e-12)
    if labelled:
        assert_array_equal(display.labels, np.sort(y))
        assert_array_equal(display.labels, y[display.order])
    values = np.linalg.eigvalsh(kernel.gram(X))[::-1]
    assert_allclose(display.eigenvalues, values, atol=1e-9 * abs(values).max())
    assert_whole(display)


@pytest.mark.wide
def test_eigenvalues_are_drawn_by_sign(rings: tuple[Any, Any]) -> None:
    X, _ = rings
    display = Gram.from_kernel(Sigmoid(gamma=0.5, coef0=-1.0), X)
    values = np.linalg.eigvalsh(np.tanh(0.5 * X @ X.T - 1.0))[::-1]
    floor = len(X) * np.finfo(float).eps * abs(values).max()
    places, sizes = display.negative_.get_data()
    assert_allclose(sizes, -values[values < -floor], rtol=1e-3, atol=10 * floor)
    assert_array_equal(places, np.flatnonzero(values < -floor) + 1)
    assert_allclose(
        display.positive_.get_ydata(), values[values > floor], rtol=1e-3, atol=10 * floor
    )
    assert display.ax_[1].get_title() == "Spectrum:\nnot positive semidefinite"
    semidefinite = Gram.from_kernel(RBF(gamma=0.7), X)
    assert len(semidefinite.negative_.get_xdata()) == 0
    assert semidefinite.ax_[1].get_title() == "Spectrum:\npositive semidefinite"


def test_classes_are_bounded_and_named() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.repeat(["ash", "beech", "cedar"], [10, 20, 30])
    display = Gram.from_kernel("rbf", X, y)
    places = sorted({float(line.get_ydata()[0]) for line in display.boundaries_[::2]})
    assert places == [9.5, 29.5]
    assert [t.get_text() for t in display.ax_[0].get_yticklabels()] == ["ash", "beech", "cedar"]
    assert_array_equal(display.ax_[0].get_yticks(), [4.5, 19.5, 44.5])


def test_many_classes_do_not_write_over_each_other() -> None:
    X = np.random.default_rng(0).normal(size=(100, 2))
    assert_whole(Gram.from_kernel("rbf", X, np.arange(100) % 40))


def test_of_many_rows_a_sample_is_drawn_and_said() -> None:
    X = np.random.default_rng(0).normal(size=(5000, 2))
    y = np.zeros(5000, dtype=int)
    y[77] = 1
    kernel = RBF(gamma="scale")
    display = Gram.from_kernel(kernel, X, y, most=50)
    assert 50 <= len(display.matrix) <= 52
    assert 77 in display.order  # no class is lost
    assert "of 5,000 rows" in display.ax_[0].get_xlabel()
    # gamma is that of all the rows, not of the sample
    assert_allclose(display.matrix, kernel.resolved(X).gram(X[display.order]), rtol=1e-8)


@pytest.mark.wide
def test_the_kernel_of_a_model(rings: tuple[Any, Any], model: Any) -> None:
    X, y = rings
    fitted = mm.SVC(kernel="rbf", gamma=0.5).fit(X, y)
    display = Gram.from_estimator(fitted, X, y)
    assert_allclose(display.matrix, fitted.kernel_.gram(X[display.order]), rtol=1e-10)
    K = np.asarray(display.matrix)
    given = Gram.from_estimator(mm.SVC(kernel="precomputed").fit(K, display.labels), K)
    assert_allclose(given.matrix, K[np.ix_(given.order, given.order)])
    with pytest.raises(TypeError, match="no kernel_"):
        Gram.from_estimator(mm.LinearSVC().fit(X, y), X, y)


@pytest.mark.wide
def test_other_rows_than_floats(rings: tuple[Any, Any]) -> None:
    X, y = rings
    single = Gram.from_kernel("rbf", X.astype(np.float32), y)
    assert single.rounding > 1e-6  # that of float32
    assert single.ax_[1].get_title() == "Spectrum:\npositive semidefinite"
    frame = Gram.from_kernel("rbf", pd.DataFrame(X), pd.Series(y))
    sparse = Gram.from_kernel("rbf", sp.csr_matrix(X), y)
    assert_allclose(frame.eigenvalues, sparse.eigenvalues, atol=1e-10)


@pytest.mark.parametrize("most", [1, 2.5, True, "all"])
def test_gram_refuses_nonsense(rings: tuple[Any, Any], most: Any) -> None:
    with pytest.raises(ValueError, match="most"):
        Gram.from_kernel("rbf", *rings, most=most)


def test_gram_of_zeros() -> None:
    assert_whole(Gram.from_kernel("linear", np.zeros((5, 2))))


# ------------------------------------------------------------------- draws from a prior


@pytest.mark.wide
def test_draws_have_the_kernel_for_covariance() -> None:
    x = np.linspace(-2, 2, 9)
    N = 400
    kernels = [Laplacian(gamma=0.5), 0.3 * Linear() + 1.0]
    display = Prior.from_kernels(kernels, x, n_samples=N, random_state=0)
    for kernel, lines in zip(kernels, display.lines_, strict=True):
        drawn = np.array([line.get_ydata() for line in lines])
        K = kernel.gram(x[:, None])
        spread = np.sqrt((np.outer(np.diag(K), np.diag(K)) + K**2) / N)  # of one covariance
        assert (np.abs(drawn.T @ drawn / N - K) <= 4 * spread + 1e-12).all()
        assert (np.abs(drawn.mean(axis=0)) <= 4 * np.sqrt(np.diag(K) / N)).all()


def test_the_band_is_two_deviations() -> None:
    x = np.linspace(-1, 3, 30)
    kernel = Linear() + 0.5 * RBF(gamma=1.0)
    display = Prior.from_kernels(kernel, x[::-1])
    (path,) = display.bands_[0].get_paths()
    corners = {(round(a, 9), round(abs(b), 9)) for a, b in path.vertices}
    for at, sd in zip(x, np.sqrt(x**2 + 0.5), strict=True):
        assert (round(at, 9), round(2 * sd, 9)) in corners
    assert_array_equal(display.lines_[0][0].get_xdata(), x)


@pytest.mark.parametrize("count", [1, 4])
def test_one_panel_for_each_kernel(count: int) -> None:
    kernels = [RBF(gamma=float(k + 1)) for k in range(count)]
    display = Prior.from_kernels(kernels)
    assert display.ax_.size == count == len(display.figure_.axes)
    assert [a.get_title() for a in display.ax_] == [repr(kernel) for kernel in kernels]
    assert_whole(display)


def test_kernels_by_name_and_axes_given() -> None:
    figure = plt.figure(layout="constrained")
    display = Prior.from_kernels({"smooth": "rbf", "rough": "laplacian"}, ax=figure.subplots(2, 1))
    assert [a.get_title() for a in display.ax_] == ["smooth", "rough"]
    assert display.figure_ is figure
    again = Prior.from_kernels("rbf", ax=plt.figure().subplots())
    assert isinstance(again.ax_[0], Axes)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"kernels": []}, "empty"),
        ({"x": np.ones((4, 2))}, "one variable"),
        ({"x": [0.0, np.nan]}, "finite"),
        ({"x": [1.0]}, "two or more"),
        ({"n_samples": 0}, "n_samples"),
        ({"kernels": Sigmoid(gamma=1.0, coef0=-1.0)}, "covariance"),
        ({"kernels": ["rbf", "linear"], "ax": "here"}, "2 panels"),
    ],
)
def test_a_prior_refuses_nonsense(wrong: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Prior.from_kernels(**{"kernels": "rbf", **wrong})


# ------------------------------------------------------------------- all of them


@pytest.mark.wide
@pytest.mark.parametrize("which", ["circle", "components"])
def test_many_points_are_thinned_and_said(which: str) -> None:
    X, y = mm.datasets.circles(30_000, random_state=0)
    if which == "circle":
        display: Any = Lift.from_data(X, y)
        said, points = display.ax_[0].get_title(), offsets(display.points_)
    else:
        fitted = mm.KernelPCA(3, kernel="rbf").fit(X[:100])
        display = PCA.from_estimator(fitted, X, y)
        said, points = display.figure_._suptitle.get_text(), offsets(display.points_[1])
    assert "20,000 of 30,000 points" in said
    assert len(points) == 20_000
    assert_whole(display)


@pytest.mark.wide
def test_a_legend_of_many_long_names_fits() -> None:
    X = np.random.default_rng(0).normal(size=(45, 2))
    y = np.array([f"a class with a long name {k}" for k in range(15)])[np.arange(45) % 15]
    display = PCA.from_estimator(mm.KernelPCA(3, kernel="rbf").fit(X), X, y)
    texts = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert texts == [*np.unique(y)[:12], "and 3 more"]
    assert_whole(display)
