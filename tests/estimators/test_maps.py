"""Feature maps: φ(x)·φ(x′) against the kernel, and linear machines on φ against kernel machines."""

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
from sklearn.preprocessing import PolynomialFeatures

import maxmargin as mm
from maxmargin.estimators.feature_maps import base
from maxmargin.kernels import RBF, ChiSquared, Cosine, FromFunction, Laplacian, Linear, Polynomial

MAPS: list[Any] = [
    mm.Nystroem(),
    mm.RandomFourier(),
    mm.PolynomialMap(),
    mm.CircleMap(),
]
VARIANTS = [
    *MAPS,
    mm.Nystroem(landmarks="leverage", n_components=8),
    mm.Nystroem(landmarks="kmeans", n_components=8),
    mm.Nystroem("laplacian", n_components=4, n_landmarks=9),
    mm.RandomFourier("laplacian", n_components=9),
    mm.RandomFourier(orthogonal=True),
    mm.PolynomialMap(3, coef0=0.0, gamma="scale"),
    mm.CircleMap("gaussian"),
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
        got, want = fitted.transform(X), fitted.transform(X.toarray())
        if sp.issparse(got):
            assert type(got) is type(X)
            assert type(fitted.transform(sp.csr_matrix(X))) is sp.csr_matrix
            got = got.toarray()
        assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize("phi", VARIANTS, ids=str)
def test_single_precision_is_near_double(phi: Any) -> None:
    X = some_rows() + 3
    F = clone(phi).fit(X).transform(X)
    single = clone(phi).fit(X.astype(np.float32)).transform(X.astype(np.float32)).astype(float)
    assert_allclose(single @ single.T, F @ F.T, rtol=1e-4, atol=1e-4)


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


@pytest.mark.parametrize(
    "phi",
    [
        mm.Nystroem(n_components=32),
        mm.RandomFourier(n_components=32),
        mm.PolynomialMap(6),
        mm.CircleMap(),
    ],
    ids=lambda phi: type(phi).__name__,
)
def test_beyond_the_features_transform_needs_a_few_blocks(
    phi: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "_NUMBERS", 1 << 16)
    X = some_rows(150_000, 2)
    phi = clone(phi).fit(X)
    phi.transform(X[:1000])
    tracemalloc.start()
    try:
        F = phi.transform(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Blocks of half a megabyte; looking for the longest row takes 8 MB, whatever the map.
    assert peak < F.nbytes + 15e6


def test_chunks_are_rows_whatever_their_labels_or_format() -> None:
    pandas = pytest.importorskip("pandas")
    X = some_rows()
    phi = mm.PolynomialMap().fit(X)
    frame = pandas.DataFrame(X, index=np.arange(60) * 7.0)
    framed = mm.PolynomialMap().fit(frame)
    for made, rows in ((framed, frame), (phi, sp.dia_array(X)), (phi, sp.coo_array(X))):
        parts = list(made.transform_chunks(rows, rows=25))
        assert [part.shape[0] for part in parts] == [25, 25, 10]
        parts = [part.toarray() if sp.issparse(part) else part for part in parts]
        assert_allclose(np.vstack(parts), phi.transform(X))


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


@pytest.mark.parametrize("phi", MAPS, ids=lambda phi: type(phi).__name__)
@pytest.mark.parametrize("case", BAD)
def test_bad_rows(phi: Any, case: str) -> None:
    act, error, message = BAD[case]
    with pytest.raises(error, match=re.escape(message)):
        act(clone(phi))


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
        (mm.RandomFourier("poly"), ValueError, "Nystroem takes every kernel"),
        (mm.RandomFourier(gamma=0), ValueError, "gamma"),
        (mm.RandomFourier(n_components=0), ValueError, "n_components=0"),
        (mm.RandomFourier(orthogonal=number(1)), TypeError, "orthogonal=1"),
        (mm.RandomFourier("laplacian", orthogonal=True), ValueError, "orthogonal=True is for"),
        (mm.RandomFourier(random_state="a"), TypeError, "random_state='a'"),
        (mm.PolynomialMap(0), ValueError, "degree=0"),
        (mm.PolynomialMap(number(1.5)), TypeError, "degree=1.5"),
        (mm.PolynomialMap(coef0=-1.0), ValueError, "coef0=-1.0"),
        (mm.PolynomialMap(gamma=0.0), ValueError, "gamma"),
        (mm.PolynomialMap(40), ValueError, "makes 135,751 features of 4 columns"),
        (mm.CircleMap("cone"), ValueError, "lift='cone'"),
        (mm.CircleMap(center=[1.0]), ValueError, "must be 4 finite numbers"),
        (mm.CircleMap(center="middle"), ValueError, "must be 4 finite numbers"),
        (mm.CircleMap(width=1.0), ValueError, "width=1.0 is for lift='gaussian'"),
        (mm.CircleMap("gaussian", width=0), ValueError, "width=0"),
    ],
)
def test_bad_parameters(phi: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        phi.fit(some_rows())


def test_sparse_where_it_cannot_be() -> None:
    with pytest.raises(TypeError, match="dense data is required"):
        mm.CircleMap(center=np.ones(7)).fit(sparse_rows())
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


def test_long_indices_are_clustered_too() -> None:
    X = sparse_rows()
    want = mm.Nystroem(n_components=5, landmarks="kmeans").fit(X).transform(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert_allclose(mm.Nystroem(n_components=5, landmarks="kmeans").fit(X).transform(X), want)


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


# ------------------------------------------------------------------- random Fourier features


@pytest.mark.parametrize("kernel", [RBF(0.2), Laplacian(0.1)], ids=repr)
@pytest.mark.parametrize("odd", [0, 1])
def test_fourier_features_tend_to_the_kernel(kernel: Any, odd: int) -> None:
    X = some_rows(30)
    K = kernel.gram(X)

    def error(D: int) -> float:
        squares = []
        for seed in range(16):
            F = mm.RandomFourier(kernel, n_components=D, random_state=seed).fit_transform(X)
            squares.append(np.mean((F @ F.T - K)[np.triu_indices(30, 1)] ** 2))
        return float(np.sqrt(np.mean(squares)))

    few, many = error(32 + odd), error(32 * 16 + odd)
    assert 3.0 < few / many < 5.5  # 4 = √16
    # The mean of D/2 values of cos(w·Δ), whose variance is (1 + k(2Δ))/2 − k².
    if isinstance(kernel, RBF) and not odd:
        variance = (0.5 * (1 + K**4) - K**2)[np.triu_indices(30, 1)]
        assert_allclose(few, np.sqrt(variance.mean() / 16), rtol=0.15)


def test_orthogonal_frequencies_vary_less() -> None:
    X = some_rows(30, 16)
    K = RBF(0.05).gram(X)

    def error(orthogonal: bool) -> float:
        maps = [
            mm.RandomFourier(RBF(0.05), n_components=64, orthogonal=orthogonal, random_state=k)
            for k in range(30)
        ]
        features = [phi.fit_transform(X) for phi in maps]
        return float(np.mean([np.mean((F @ F.T - K) ** 2) for F in features]))

    assert error(True) < 0.8 * error(False)
    W = mm.RandomFourier(n_components=32, orthogonal=True).fit(X).frequencies_
    products = W.T @ W
    assert_allclose(products, np.diag(np.diag(products)), atol=1e-9)


def test_fourier_errors_are_within_hoeffdings_bound() -> None:
    X = some_rows(100)
    for orthogonal in (False, True):
        for D in (1, 7, 64, 1000):
            phi = mm.RandomFourier(n_components=D, orthogonal=orthogonal).fit(X)
            assert 0 < phi.error_rms_ <= phi.error_max_ <= phi.error_bound_
    bounds = [mm.RandomFourier(n_components=D).fit(X).error_bound_ for D in (100, 400)]
    assert_allclose(bounds[0] / bounds[1], 2.0)


def test_seeds_decide() -> None:
    X = some_rows()
    F = [mm.RandomFourier(random_state=seed).fit_transform(X) for seed in (0, 0, 1, None, None)]
    assert_array_equal(F[0], F[1])
    assert not np.array_equal(F[0], F[2])
    assert not np.array_equal(F[3], F[4])


def test_a_large_mean_costs_no_digits() -> None:
    X = some_rows(40).astype(np.float32)
    near = mm.RandomFourier(gamma=0.5).fit_transform(X).astype(float)
    far = mm.RandomFourier(gamma=0.5).fit_transform(X + np.float32(1024)).astype(float)
    assert_allclose(far @ far.T, near @ near.T, atol=2e-3)


# ------------------------------------------------------------------- polynomials


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("coef0", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_polynomial_features_are_the_kernel(degree: int, coef0: float, sparse: bool) -> None:
    X = sparse_rows(30, 5) if sparse else some_rows(30, 5)
    phi = mm.PolynomialMap(degree, gamma=0.4, coef0=coef0).fit(X)
    F = phi.transform(X)
    K = Polynomial(degree, 0.4, coef0).gram(X)
    product = (F @ F.T).toarray() if sparse else F @ F.T
    assert_allclose(product, K, rtol=1e-10, atol=1e-12)
    assert F.shape[1] == math.comb(5 + degree - (coef0 == 0), degree)
    if sparse:
        assert F.nnz < F.shape[0] * F.shape[1]
        assert_allclose(F.toarray(), phi.transform(X.toarray()), atol=1e-12)


def test_names_and_order_are_those_of_scikit_learn() -> None:
    X = some_rows(10, 3)
    ours, theirs = mm.PolynomialMap(3).fit(X), PolynomialFeatures(3).fit(X)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert_allclose(ours.transform(X), theirs.transform(X) * ours.weights_)
    assert [-1, -1, -1] in ours.powers_.tolist()


def test_more_columns_are_allowed_where_asked_for() -> None:
    X = some_rows(3, 50)
    with pytest.raises(ValueError, match=r"makes 316,251 features of 50 columns"):
        mm.PolynomialMap(4).fit(X)
    assert mm.PolynomialMap(4, max_columns=400_000).fit_transform(X).shape == (3, 316_251)


def test_features_that_overflow_later_are_refused() -> None:
    phi = mm.PolynomialMap(3).fit(some_rows(5, 2))
    with pytest.raises(ValueError, match="Column 1 of X reaches"):
        phi.transform([[0.0, 1e60]])


# ------------------------------------------------------------------- circles


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("far", [0.0, 100.0])
def test_the_circle_is_found(inside: bool, d: int, far: float) -> None:
    rng = np.random.default_rng(d)
    center, radius = rng.normal(size=d) + far, 1.5
    away = rng.normal(size=(400, d))
    lengths = np.concatenate([rng.uniform(0, 1.4, 200), rng.uniform(1.6, 3, 200)])
    X = center + away * (lengths / np.linalg.norm(away, axis=1))[:, None]
    y = (lengths < radius) == inside
    lift = mm.CircleMap(center=X.mean(axis=0)).fit(X)
    model = mm.HardMarginSVC().fit(lift.transform(X), y)
    circle = lift.circle(model)
    assert circle.inside == ("positive" if inside else "negative")
    assert_allclose(circle.center, center, atol=0.1)
    assert 1.4 < circle.radius < 1.6
    # The circle is where the model changes its mind, and on it f = 0.
    on = circle.center + circle.radius * away / np.linalg.norm(away, axis=1)[:, None]
    scores = model.decision_function(lift.transform(on))
    assert_allclose(scores, 0.0, atol=1e-6 * np.abs(model.coef_).sum())


def test_the_square_lift_is_the_one_of_the_book() -> None:
    X = some_rows(5, 3)
    phi = mm.CircleMap().fit(X)
    assert_allclose(phi.transform(X), np.c_[(X**2).sum(axis=1), -2 * X, np.ones(5)])
    assert phi.get_feature_names_out().tolist() == ["|x|^2", "-2 x0", "-2 x1", "-2 x2", "1"]


def test_the_gaussian_lift_separates_circles() -> None:
    X, y = mm.datasets.circles(200, random_state=0)
    phi = mm.CircleMap("gaussian", width=1.0).fit(X)
    F = phi.transform(X)
    hill = np.exp(-((X - X.mean(axis=0)) ** 2).sum(axis=1) / 2)
    assert_allclose(F, np.c_[X, hill])
    assert not mm.separate(X, y).separable
    assert mm.separate(F, y).separable


def test_what_is_no_circle_is_said_to_be_none() -> None:
    X = some_rows(20, 2)
    lift = mm.CircleMap().fit(X)

    class Plane:
        intercept_ = 1.0

        def __init__(self, *w: float) -> None:
            self.coef_ = np.array([w])

    with pytest.raises(ValueError, match="straight line"):
        lift.circle(Plane(0.0, 1.0, 1.0, 0.0))
    with pytest.raises(ValueError, match="does not meet"):
        lift.circle(Plane(1.0, 0.0, 0.0, 1.0))
    with pytest.raises(ValueError, match="has shape"):
        lift.circle(Plane(1.0, 0.0))
    with pytest.raises(TypeError, match="no coef_"):
        lift.circle(3)
    with pytest.raises(ValueError, match="lift='gaussian' has no circle"):
        mm.CircleMap("gaussian").fit(X).circle(Plane(1.0, 0.0, 0.0))


# ------------------------------------------------------------------- machines


def labels_of(X: Any) -> Any:
    return (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 > 0.7).astype(int)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_linear_machine_on_polynomial_features_is_the_kernel_machine(C: float) -> None:
    X = some_rows(150, 3)
    y = labels_of(X)
    phi = mm.PolynomialMap(3, gamma=0.5, coef0=1.0).fit(X)
    linear = mm.LinearSVC(C=C, tol=1e-7).fit(phi.transform(X), y)
    exact = mm.SVC(C=C, kernel=phi.kernel_, tol=1e-7).fit(X, y)
    assert_allclose(linear.certificate_.primal, exact.certificate_.primal, rtol=2e-7)
    new = some_rows(50, 3, seed=1)
    scores = linear.decision_function(phi.transform(new))
    assert_allclose(scores, exact.decision_function(new), atol=1e-2 * np.abs(scores).max())


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
        features = mm.PolynomialMap(2).fit_transform(X)
    assert_array_equal(model.eigenvalues_, expected.eigenvalues_)
    assert list(features.columns[:3]) == ["1", "x0", "x1"]


@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_sparse_rows_get_the_features_of_dense_ones_at_any_degree(coef0: float) -> None:
    X = sp.random(60, 5, 0.4, format="csr", random_state=0)
    for degree in (1, 2, 3, 4, 5):
        phi = mm.PolynomialMap(degree, coef0=coef0).fit(X)
        features = phi.transform(X)
        assert features.has_canonical_format
        assert_allclose(features.toarray(), phi.transform(X.toarray()), rtol=1e-12)
        assert_allclose((features @ features.T).toarray(), phi.kernel_.gram(X), atol=1e-12)
