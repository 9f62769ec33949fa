"""Nyström's features against the kernel, and linear machines on them against kernel machines."""

import math
import pickle
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from maxmargin.estimators.feature_maps import nystroem
from maxmargin.estimators.kernel_pca.operators import ExplicitFeatures
from maxmargin.kernels import RBF, ChiSquared, Cosine, FromFunction, Laplacian, Linear, Polynomial

VARIANTS = [
    mm.Nystroem(),
    mm.Nystroem(landmarks="leverage", n_components=8),
    mm.Nystroem(landmarks="kmeans", n_components=8),
    mm.Nystroem("laplacian", n_components=4, n_landmarks=9),
]


def some_rows(n: int = 60, d: int = 4, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, d))


def sparse_rows(n: int = 60, d: int = 7, seed: int = 0) -> Any:
    return sp.random_array(
        (n, d), density=0.3, format="csr", rng=np.random.default_rng(seed), dtype=np.float64
    )


# ------------------------------------------------------------------- the contract of all maps


@pytest.mark.parametrize("phi", VARIANTS, ids=str)
def test_types_names_frames_chunks_and_pickles(phi: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X = some_rows()
    phi = clone(phi).fit(X)
    F = phi.transform(X)
    assert F.shape == (60, phi.n_components_) == (60, len(phi.get_feature_names_out()))
    for chunks in (phi.transform_chunks(X, rows=17), phi.transform_chunks(iter([X[:9], X[9:]]))):
        assert_allclose(np.vstack(list(chunks)), F, atol=1e-6)
    assert_array_equal(pickle.loads(pickle.dumps(phi)).transform(X), F)
    assert_array_equal(clone(phi).fit_transform(X), F)
    single = clone(phi).fit(X.astype(np.float32)).transform(X.astype(np.float32))
    assert single.dtype == np.float32
    frame = pandas.DataFrame(X, columns=list("abcd"))
    framed = clone(phi).set_output(transform="pandas").fit_transform(frame)
    assert_array_equal(framed.to_numpy(), F)
    assert list(framed.columns) == list(clone(phi).fit(frame).get_feature_names_out())


@pytest.mark.parametrize("phi", VARIANTS, ids=str)
def test_sparse_rows_get_the_same_features(phi: Any) -> None:
    X = sparse_rows()
    for rows in (X, X.toarray()):
        fitted = clone(phi).fit(rows)
        assert_allclose(fitted.transform(X), fitted.transform(X.toarray()), atol=1e-6)


@pytest.mark.parametrize("phi", VARIANTS, ids=str)
@pytest.mark.parametrize(
    "X",
    [np.zeros((5, 3)), np.ones((5, 3)), np.repeat(some_rows(2, 3), 5, axis=0), some_rows(1, 3)],
    ids=["zeros", "constant", "duplicates", "one row"],
)
def test_degenerate_rows_give_finite_features(phi: Any, X: Any) -> None:
    phi = clone(phi).fit(X)
    assert np.isfinite(phi.transform(X)).all()
    assert np.isfinite(phi.transform(X + 1)).all()


def test_beyond_the_features_transform_needs_a_few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nystroem, "_NUMBERS", 1 << 16)
    X = some_rows(150_000, 2)
    phi = mm.Nystroem(n_components=32).fit(X)
    phi.transform(X[:1000])
    tracemalloc.start()
    try:
        F = phi.transform(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Blocks of half a megabyte; looking for the longest row takes 8 MB.
    assert peak < F.nbytes + 15e6


def test_chunks_are_rows_whatever_their_labels_or_format() -> None:
    pandas = pytest.importorskip("pandas")
    X = some_rows()
    phi = mm.Nystroem(n_components=5).fit(X)
    frame = pandas.DataFrame(X, index=np.arange(60) * 7.0)
    framed = mm.Nystroem(n_components=5).fit(frame)
    for made, rows in ((framed, frame), (phi, sp.dia_array(X)), (phi, sp.coo_array(X))):
        parts = list(made.transform_chunks(rows, rows=25))
        assert [part.shape[0] for part in parts] == [25, 25, 10]
        assert_allclose(np.vstack(parts), phi.transform(X), atol=1e-6)


# ------------------------------------------------------------------- bad input


BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "NaN": (lambda m: m.fit([[np.nan, 1.0]]), ValueError, "Input X contains NaN"),
    "inf": (lambda m: m.fit([[np.inf, 1.0]]), ValueError, "contains infinity"),
    "empty": (lambda m: m.fit(np.empty((0, 2))), ValueError, "0 sample(s)"),
    "no features": (lambda m: m.fit(np.empty((3, 0))), ValueError, "0 feature(s)"),
    "1-D": (lambda m: m.fit([1.0, 2.0]), ValueError, "Expected 2D array"),
    "3-D": (lambda m: m.fit(np.ones((2, 2, 2))), ValueError, "dim 3"),
    "strings": (lambda m: m.fit([["a", "b"]]), ValueError, "could not convert string"),
    "ragged": (lambda m: m.fit([[1.0], [1.0, 2.0]]), ValueError, "inhomog"),
    "complex": (lambda m: m.fit(np.array([[1j, 2.0]])), ValueError, "Complex data not supported"),
    "1e300": (lambda m: m.fit([[0.0, 1e300], [1, 1]]), ValueError, "Column 1 of X reaches 1e+300"),
    "huge later": (
        lambda m: m.fit(some_rows(d=2)).transform([[0.0, 1e300]]), ValueError, "Column 1 of X"
    ),
    "1e30 in float32": (
        lambda m: m.fit(np.array([[0, 1e30]], np.float32)), ValueError, "Column 1 of X"
    ),
    "not fitted": (lambda m: m.transform([[1.0, 2.0]]), NotFittedError, "is not fitted yet"),
    "not fitted, chunks": (lambda m: m.transform_chunks([]), NotFittedError, "is not fitted yet"),
    "other width": (
        lambda m: m.fit(some_rows()).transform(some_rows(d=3)), ValueError, "X has 3 features, but"
    ),
    "bad chunks": (
        lambda m: m.fit(some_rows()).transform_chunks(some_rows(), rows=0), ValueError, "rows=0"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("kind", [mm.Nystroem, mm.KernelPCA])
def test_bad_rows(kind: Any, case: str) -> None:
    act, error, message = BAD[case]
    if "chunks" in case and kind is mm.KernelPCA:
        return
    if case == "1e30 in float32" and kind is mm.KernelPCA:  # which computes in double
        return
    with pytest.raises(error, match=re.escape(message)):
        act(kind())


def number(value: Any) -> Any:
    """Hide a wrong type from the type checker."""
    return value


@pytest.mark.parametrize(
    ("phi", "error", "message"),
    [
        (mm.Nystroem("rbff"), ValueError, "kernel='rbff' is not known"),
        (mm.Nystroem(3), TypeError, "kernel must be"),
        (mm.Nystroem(RBF(), gamma=2.0), ValueError, "gamma=2.0 is for kernels given by name"),
        (mm.Nystroem(gamma=-1.0), ValueError, "gamma"),
        (mm.Nystroem(gamma="wide"), TypeError, "gamma"),
        (mm.Nystroem(n_components=0), ValueError, "n_components=0"),
        (mm.Nystroem(n_components=number(2.0)), TypeError, "n_components=2.0"),
        (mm.Nystroem(n_landmarks=5), ValueError, "n_landmarks=5"),
        (mm.Nystroem(landmarks="best"), ValueError, "landmarks='best'"),
        (mm.Nystroem(error_rows=0), ValueError, "error_rows=0"),
        (mm.Nystroem(n_jobs=0), ValueError, "n_jobs=0"),
        (mm.Nystroem(random_state=-1), ValueError, "random_state=-1"),
        (mm.Nystroem("precomputed"), ValueError, "must be a square matrix"),
        (mm.Nystroem(lambda A, B: np.zeros(3)), ValueError, "shape"),
    ],
)
def test_bad_parameters(phi: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        phi.fit(some_rows())


def test_sparse_where_it_cannot_be() -> None:
    with pytest.raises(TypeError, match="dense data is required"):
        mm.Nystroem("precomputed").fit(sp.eye_array(3, format="csr"))


# ------------------------------------------------------------------- Nyström


@pytest.mark.parametrize(
    "kernel",
    [RBF(0.3), Laplacian(0.2), Polynomial(3), Linear(), Cosine(), RBF(0.1) + 2 * Linear(),
     ChiSquared(0.5), FromFunction(lambda A, B: (A @ B.T) ** 2)],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("landmarks", ["uniform", "leverage", "kmeans"])
def test_with_all_rows_as_landmarks_nystroem_is_exact(kernel: Any, landmarks: str) -> None:
    X = np.abs(some_rows(40))
    phi = mm.Nystroem(kernel, n_components=40, landmarks=landmarks).fit(X)
    F = phi.transform(X)
    K = kernel.gram(X)
    assert_allclose(F @ F.T, K, atol=1e-10 * K.max() * len(K))
    assert phi.relative_error_ < 1e-9


@pytest.mark.parametrize("landmarks", ["uniform", "leverage", "kmeans"])
def test_the_trace_bounds_the_spectral_error(landmarks: str) -> None:
    X = some_rows(120)
    K = RBF(0.5).gram(X)
    for m in (1, 5, 20, 60):
        phi = mm.Nystroem(RBF(0.5), n_components=m, landmarks=landmarks).fit(X)
        F = phi.transform(X)
        error = K - F @ F.T
        eigenvalues = np.linalg.eigvalsh(error)
        assert eigenvalues[0] > -1e-9  # a projection: nothing is added
        assert_allclose(phi.error_, np.trace(error), rtol=1e-9)
        assert phi.error_bound_ == phi.error_
        assert_allclose(phi.relative_error_, np.trace(error) / np.trace(K))
        assert_allclose(phi.spectral_estimate_, eigenvalues[-1], rtol=1e-6)
        assert eigenvalues[-1] <= phi.error_bound_


def test_errors_from_a_sample_bound_the_whole() -> None:
    X = some_rows(2000)
    whole = mm.Nystroem(gamma=0.3, n_components=20).fit(X)
    for seed in range(10):
        part = mm.Nystroem(gamma=0.3, n_components=20, error_rows=100, random_state=seed).fit(X)
        F = part.transform(X)
        truth = len(X) - np.sum(F**2)
        assert part.error_rows_ == 100
        assert part.error_ < part.error_bound_
        assert truth <= part.error_bound_
        assert_allclose(part.error_, truth, rtol=0.5)
    assert whole.error_rows_ == 2000


def test_more_landmarks_than_components_keep_the_leading_directions() -> None:
    X = some_rows(200)
    errors = [
        mm.Nystroem(gamma=0.1, n_components=10, n_landmarks=m).fit(X).error_ for m in (10, 40, 200)
    ]
    assert errors[0] > errors[1] > errors[2]
    # With all rows these are the leading eigenvectors: no other ten features err less.
    K = RBF(0.1).gram(X)
    assert_allclose(errors[2], np.linalg.eigvalsh(K)[:-10].sum(), rtol=1e-6)


def test_duplicated_landmarks_are_one() -> None:
    X = np.repeat(some_rows(5), 6, axis=0)
    phi = mm.Nystroem(n_components=30).fit(X)
    assert phi.n_components_ == 5
    F = phi.transform(X)
    assert_allclose(F @ F.T, phi.kernel_.gram(X), atol=1e-9)


def test_leverage_and_clusters_find_what_is_rare() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(scale=0.05, size=(1900, 2))
    rare = rng.normal(scale=3.0, size=(100, 2)) + 10
    X = np.vstack([common, rare])

    def error(landmarks: str) -> float:
        fits = [
            mm.Nystroem(gamma=0.5, n_components=30, landmarks=landmarks, random_state=k).fit(X)
            for k in range(5)
        ]
        return float(np.mean([phi.error_ for phi in fits]))

    assert error("leverage") < 0.7 * error("uniform")
    assert error("kmeans") < error("uniform")


def test_errors_that_are_all_alike_are_measured() -> None:
    """K ≈ I: of eigenvalues that are all equal, LAPACK may not find the last by its number."""
    for seed in range(12):
        X = some_rows(100 + seed, 6, seed)
        phi = mm.Nystroem(gamma=100.0, n_components=20).fit(X)
        assert_allclose(phi.spectral_estimate_, 1.0, atol=1e-3)


def test_precomputed_and_objects() -> None:
    X, new = some_rows(50), some_rows(10, seed=1)
    given = mm.Nystroem("precomputed", n_components=15).fit(RBF(0.2).gram(X))
    rows = mm.Nystroem(RBF(0.2), n_components=15).fit(X)
    assert_allclose(given.transform(RBF(0.2).gram(new, X)), rows.transform(new), atol=1e-8)
    assert_allclose(given.error_, rows.error_)
    with pytest.raises(ValueError, match="landmarks='kmeans' needs rows of numbers"):
        mm.Nystroem("precomputed", landmarks="kmeans").fit(np.eye(3))
    words = ["margin", "gain", "loss", "again", "gloss"]

    def common(A: Any, B: Any) -> Any:
        return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])

    phi = mm.Nystroem(common, n_components=5).fit(words)
    F = phi.transform(words)
    assert_allclose(F @ F.T, common(words, words), atol=1e-9)


def test_an_indefinite_kernel_is_said_to_be_one() -> None:
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        phi = mm.Nystroem("sigmoid", coef0=-1.0).fit(some_rows())
    assert phi.error_bound_ == math.inf
    assert np.isfinite(phi.transform(some_rows())).all()
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        mm.Nystroem(lambda A, B: -(A @ B.T)).fit(some_rows())


# ------------------------------------------------------------------- machines


def labels_of(X: Any) -> Any:
    return (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 0.7).astype(int)


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("coef0", [0.0, 0.7, 2.0])
def test_monomials_with_their_weights_are_the_kernel(degree: int, coef0: float) -> None:
    X, kernel = some_rows(30, 5), Polynomial(degree, 0.4, coef0)
    F = ExplicitFeatures(kernel, 5).compute(X)
    assert_allclose(F @ F.T, kernel.gram(X), rtol=1e-10, atol=1e-12)
    assert F.shape[1] == math.comb(5 + degree - (coef0 == 0), degree)


@pytest.mark.parametrize("landmarks", ["uniform", "leverage", "kmeans"])
def test_a_linear_machine_on_all_landmarks_is_the_kernel_machine(landmarks: str) -> None:
    X = some_rows(150, 3)
    y = labels_of(X)
    phi = mm.Nystroem(gamma=0.4, n_components=150, landmarks=landmarks).fit(X)
    linear = mm.LinearSVC(C=3.0, tol=1e-6).fit(phi.transform(X), y)
    exact = mm.SVC(C=3.0, gamma=0.4, tol=1e-6).fit(X, y)
    assert_allclose(linear.certificate_.primal, exact.certificate_.primal, rtol=1e-5)


def test_the_primal_of_a_nystroem_machine_bounds_the_exact_optimum_from_above() -> None:
    """The linear machine's own: w lies in the kernel's feature space, and is as long there."""
    X = some_rows(300, 3)
    y = labels_of(X)
    phi = mm.Nystroem(gamma=0.5, n_components=20).fit(X)
    linear = mm.LinearSVC(tol=1e-6).fit(phi.transform(X), y)
    assert linear.certificate_.primal >= mm.SVC(gamma=0.5, tol=1e-6).fit(X, y).certificate_.dual


@pytest.mark.parametrize("kind", ["frame", "sparse"])
def test_a_kernel_of_pairs_takes_every_kind_of_rows(kind: str) -> None:
    """Rows of a frame or a sparse matrix are rows in ``transform`` as they are in ``fit``."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = np.arange(20) % 2
    other = sp.csr_array(X)
    if kind == "frame":
        other = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
    kernel = FromFunction(lambda x, z: float(np.exp(-((x - z) ** 2).sum())), on="pairs")
    for model in (mm.KernelPCA(2, kernel=kernel), mm.Nystroem(kernel, n_components=5)):
        expected = clone(model).fit(X).transform(X)
        assert_allclose(model.fit(other).transform(other), expected, atol=1e-12)
    perceptron = mm.KernelPerceptron(kernel=kernel)
    expected = clone(perceptron).fit(X, y).decision_function(X)
    assert_allclose(perceptron.fit(other, y).decision_function(other), expected, atol=1e-12)


def test_polynomial_features_are_arrays_whatever_the_output_is_configured_to_be() -> None:
    pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(30, 2))
    expected = mm.KernelPCA(2, kernel="poly", eigen_solver="explicit").fit(X)
    with config_context(transform_output="pandas"):
        model = mm.KernelPCA(2, kernel="poly", eigen_solver="explicit").fit(X)
    assert_array_equal(model.eigenvalues_, expected.eigenvalues_)
