"""Pictures of kernels: what is drawn is what the mathematics says."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

mpl.use("Agg")

import matplotlib.pyplot as plt

import maxmargin as mm
from maxmargin.kernels import RBF, Linear, Sigmoid
from tests.support.drawing import assert_whole

PCA, Gram = mm.plots.KernelPCADisplay, mm.plots.GramDisplay


@pytest.fixture(scope="module")
def rings() -> tuple[Any, Any]:
    return mm.datasets.circles(120, radii=(1.0, 2.0), center=(0.5, -0.25), random_state=0)


@pytest.fixture(scope="module")
def model(rings: tuple[Any, Any]) -> Any:
    return mm.KernelPCA(4, kernel=RBF(gamma=1.0)).fit(rings[0])


def offsets(artists: list[Any]) -> Any:
    """Return the points of scatters, class after class."""
    return np.vstack([a.get_offsets() for a in artists])


def by_class(X: Any, y: Any) -> Any:
    return np.vstack([X[y == label] for label in np.unique(y)])


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


def test_columns_have_their_names() -> None:
    X = np.random.default_rng(0).normal(size=(40, 4))
    frame = pd.DataFrame(X, columns=list("pqrs"))
    for given, name in ((X, "x₂"), (frame, "q"), (sp.csr_array(X), "x₂")):
        display = PCA.from_estimator(mm.KernelPCA(3).fit(given), given)
        assert_array_equal(offsets(display.points_[0]), X[:, :2])
        assert display.ax_[0, 0].get_ylabel() == name


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
    pipeline = make_pipeline(StandardScaler(), mm.SVC(gamma=0.7)).fit(X, y)
    scaled = Gram.from_kernel(RBF(gamma=0.7), StandardScaler().fit_transform(X), y)
    assert_allclose(Gram.from_estimator(pipeline, X, y).matrix, scaled.matrix)
    K = np.asarray(display.matrix)
    given = Gram.from_estimator(mm.SVC(kernel="precomputed").fit(K, display.labels), K)
    assert_allclose(given.matrix, K[np.ix_(given.order, given.order)])
    with pytest.raises(TypeError, match="no kernel_"):
        Gram.from_estimator(mm.LinearSVC().fit(X, y), X, y)


@pytest.mark.parametrize("most", [1, 2.5, True, "all"])
def test_gram_refuses_nonsense(rings: tuple[Any, Any], most: Any) -> None:
    with pytest.raises(ValueError, match="most"):
        Gram.from_kernel("rbf", *rings, most=most)


@pytest.mark.wide
def test_a_legend_of_many_long_names_fits() -> None:
    X = np.random.default_rng(0).normal(size=(45, 2))
    y = np.array([f"a class with a long name {k}" for k in range(15)])[np.arange(45) % 15]
    display = PCA.from_estimator(mm.KernelPCA(3, kernel="rbf").fit(X), X, y)
    texts = [text.get_text() for text in display.figure_.legends[0].get_texts()]
    assert texts == [*np.unique(y)[:12], "and 3 more"]
    assert_whole(display)
