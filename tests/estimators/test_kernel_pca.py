"""Kernel PCA: the formulas, the special cases with a closed form, and scikit-learn where right."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import subspace_angles
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as Peer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm
from maxmargin.estimators.kernel_pca import KernelPCAStatus, preimage
from maxmargin.kernels import RBF, Columns, FromFunction, FromMap, Linear, Polynomial
from maxmargin.problems import gram

ROWS = np.random.default_rng(0).normal(size=(60, 4)) + 3.0
NEW = np.random.default_rng(1).normal(size=(7, 4)) + 3.0
GRAM_SOLVERS = ("dense", "iterative")


def by_the_formula(kernel: Any, X: Any, new: Any, count: int) -> tuple[Any, Any, Any]:
    """Return eigenvalues, |projections| of X and of new rows, straight from the definition."""
    n = len(X)
    H = np.eye(n) - 1 / n
    K = kernel.gram(X)
    values, V = np.linalg.eigh(H @ K @ H)
    values, V = values[::-1][:count], V[:, ::-1][:, :count]
    projected = (kernel.gram(new, X) - K.mean(axis=0)) @ H @ V / np.sqrt(values)
    return values, np.abs(V * np.sqrt(values)), np.abs(projected)


@parametrize_with_checks([mm.KernelPCA(2, kernel="rbf", eigen_solver="nystroem")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:X holds .* entries at repeated positions")
def test_common_checks_of_nystroem(estimator: Any, check: Any) -> None:
    check(estimator)


# ------------------------------------------------------------------- the formula


@pytest.mark.parametrize("solver", ["dense", "iterative", "nystroem", "auto"])
@pytest.mark.parametrize(
    "kernel",
    [RBF(0.1), Polynomial(2, 0.1, 1.0), RBF(0.1) + 0.5 * Linear(), Columns(RBF(0.3), [0, 2])],
    ids=str,
)
def test_projections_are_those_of_the_definition(solver: str, kernel: Any) -> None:
    model = mm.KernelPCA(3, kernel=kernel, eigen_solver=solver, tol=1e-12)
    Z = model.fit_transform(ROWS)
    values, trained, projected = by_the_formula(kernel, ROWS, NEW, 3)
    assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    assert_allclose(np.abs(Z), trained, atol=1e-6)
    assert_allclose(np.abs(model.transform(NEW)), projected, atol=1e-6)
    assert_allclose(model.transform(ROWS), Z, atol=1e-6)
    assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
    assert_allclose(model.explained_variance_, Z.var(axis=0, ddof=1), rtol=1e-9)
    assert (model.residuals_ <= 1e-10).all()


@pytest.mark.parametrize("solver", GRAM_SOLVERS)
def test_residuals_are_what_they_say(solver: str) -> None:
    X = np.random.default_rng(2).normal(size=(150, 5))
    model = mm.KernelPCA(4, kernel="rbf", eigen_solver=solver, tol=1e-4).fit(X)
    H = np.eye(150) - 1 / 150
    K = H @ model.kernel_.gram(X) @ H
    V, values = model.eigenvectors_, model.eigenvalues_
    assert_allclose(V.T @ V, np.eye(4), atol=1e-12)
    found = np.linalg.norm(K @ V - V * values, axis=0) / values[0]
    assert_allclose(found, model.residuals_, atol=1e-13)
    assert (found <= 1e-4).all()
    exact = np.linalg.eigvalsh(K)
    for value, residual in zip(values, model.residuals_ * values[0], strict=True):
        assert np.abs(exact - value).min() <= residual + 1e-12


def test_shares_of_variance_sum_to_one() -> None:
    model = mm.KernelPCA(kernel="rbf").fit(ROWS)
    assert model.n_components_ == model.rank_ == len(ROWS) - 1
    assert model.explained_variance_ratio_.sum() == pytest.approx(1)
    few = mm.KernelPCA(2, kernel="rbf", eigen_solver="iterative").fit(ROWS)
    assert_allclose(few.explained_variance_ratio_, model.explained_variance_ratio_[:2], rtol=1e-9)


# ------------------------------------------------------------------- linear kernel: PCA


@pytest.mark.parametrize("solver", ["auto", "dense", "iterative", "explicit", "nystroem"])
@pytest.mark.parametrize("sparse", [False, True])
def test_linear_kernel_is_pca_with_the_mean(solver: str, sparse: bool) -> None:
    X = sp.csr_array(ROWS) if sparse else ROWS
    model = mm.KernelPCA(3, eigen_solver=solver, tol=1e-13)
    Z = model.fit_transform(X)
    pca = PCA(3).fit(ROWS)
    new = sp.csr_array(NEW) if sparse else NEW
    assert_allclose(np.abs(Z), np.abs(pca.transform(ROWS)), atol=1e-7)
    assert_allclose(np.abs(model.transform(new)), np.abs(pca.transform(NEW)), atol=1e-7)
    assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-9)
    assert_allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-6)
    back = pca.inverse_transform(pca.transform(NEW))
    assert_allclose(model.inverse_transform(model.transform(new)), back, atol=1e-7)


@pytest.mark.parametrize("far", [1e6, 1e8, 1e10])
def test_a_large_mean_hides_no_direction(far: float) -> None:
    X = np.random.default_rng(0).normal(size=(300, 4)) * 2**10
    X = np.round(X) / 2**10 * 2**4 + far  # without rounding, and so is X − far
    near = np.linalg.eigvalsh(np.cov((X - far).T, ddof=1))[::-1]
    model = mm.KernelPCA().fit(X)
    assert_allclose(model.explained_variance_, near, rtol=1e-9)
    assert_allclose(model.inverse_transform(model.transform(X)), X, rtol=1e-15)
    assert mm.KernelPCA().fit(np.full((300, 4), far + 0.1)).rank_ == 0
    assert mm.KernelPCA().fit(X[:, :1] @ np.ones((1, 4)) + far / 3).rank_ == 1


# ------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "cosine"])
@pytest.mark.parametrize("solver", ["auto", *GRAM_SOLVERS])
def test_scikit_learn_agrees_sign_and_scale_included(kernel: str, solver: str) -> None:
    ours = mm.KernelPCA(3, kernel=kernel, eigen_solver=solver, tol=1e-13)
    theirs = Peer(3, kernel=kernel, eigen_solver="dense")
    assert_allclose(ours.fit_transform(ROWS), theirs.fit_transform(ROWS), atol=1e-6)
    assert_allclose(ours.transform(NEW), theirs.transform(NEW), atol=1e-6)
    assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    assert_allclose(ours.eigenvectors_, theirs.eigenvectors_, atol=1e-6)


@pytest.mark.parametrize("solver", ["auto", "dense", "iterative", "nystroem", "explicit"])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_zero_directions_are_zeros_in_both_transforms_sklearn_12141(
    solver: str, shift: float
) -> None:
    few = np.random.default_rng(0).normal(size=(8, 2)) + shift
    X = np.repeat(few, 10, axis=0)  # duplicated, and of rank 2
    model = mm.KernelPCA(5, eigen_solver=solver)
    Z = model.fit_transform(X)
    assert Z.shape == (80, 5)
    assert model.rank_ == 2
    assert_array_equal(Z[:, 2:], 0)
    assert_array_equal(model.transform(X + 1)[:, 2:], 0)
    assert_allclose(model.transform(X), Z, atol=1e-6)
    assert mm.KernelPCA(eigen_solver="dense").fit(X).n_components_ == 2


@pytest.mark.parametrize("solver", ["auto", "dense", "iterative", "nystroem"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("count", [None, 3])
def test_constant_rows_give_zeros(solver: str, kernel: str, count: int | None) -> None:
    if solver == "iterative" and count is None:
        pytest.skip("all components are LAPACK's")
    X = np.full((40, 3), 0.1)
    model = mm.KernelPCA(count, kernel=kernel, eigen_solver=solver)
    assert_array_equal(model.fit_transform(X), np.zeros((40, count or 1)))
    assert_array_equal(model.transform(X + 1.0), np.zeros((40, count or 1)))
    assert model.rank_ == 0
    assert np.isfinite(model.explained_variance_ratio_).all()


def test_gamma_of_none_is_one_over_columns_in_both_maps() -> None:
    one = mm.KernelPCA(3, kernel="rbf", fit_inverse_transform=True, alpha=1e-3).fit(ROWS)
    other = clone(one).set_params(gamma=0.25).fit(ROWS)
    assert one.gamma_ == other.gamma_ == 0.25
    Z = one.transform(NEW)
    assert_array_equal(one.inverse_transform(Z), other.inverse_transform(Z))


@pytest.mark.parametrize("solver", GRAM_SOLVERS)
def test_indefinite_kernels_are_reported_sklearn_8368(solver: str) -> None:
    D = np.abs(ROWS[:, :1] - ROWS[:, 0])  # distances are not kernel values
    model = mm.KernelPCA(2, kernel="precomputed", eigen_solver=solver)
    with pytest.warns(UserWarning, match=r"λ_min=-.* to λ_max="):
        Z = model.fit_transform(D)
    assert model.status_ is KernelPCAStatus.INDEFINITE
    assert np.isfinite(Z).all()


@pytest.mark.parametrize("solver", GRAM_SOLVERS)
def test_rounding_beside_negative_eigenvalues_is_no_direction(solver: str) -> None:
    """All of HDH is negative for distances on a line; the diagonal, 0, does not say its size."""
    D = np.abs(ROWS[:, :1] - ROWS[:, 0])
    model = mm.KernelPCA(2, kernel="precomputed", eigen_solver=solver)
    with pytest.warns(UserWarning, match="is indefinite"):
        assert_array_equal(model.fit_transform(D), 0)
    assert model.rank_ == 0


@pytest.mark.parametrize("n_landmarks", [3, 30, 60])
def test_nystroem_bounds_nothing_of_an_indefinite_kernel(n_landmarks: int) -> None:
    model = mm.KernelPCA(
        2, kernel="sigmoid", gamma=1.0, coef0=-1.0, eigen_solver="nystroem", n_landmarks=n_landmarks
    )
    with pytest.warns(UserWarning, match=r"landmarks has eigenvalues from λ_min=.* to λ_max="):
        model.fit(ROWS - 3)
    assert model.status_ is KernelPCAStatus.INDEFINITE
    assert (model.error_bound_, model.angle_bound_) == (np.inf, 1.0)
    assert np.isfinite(model.transform(NEW)).all()
    with pytest.warns(UserWarning, match="is indefinite"):
        clone(model).partial_fit(ROWS - 3)


@pytest.mark.parametrize("n_landmarks", [30, 60, 120])
def test_nystroem_of_a_given_float32_matrix_is_within_its_bound(n_landmarks: int) -> None:
    X = np.random.default_rng(0).normal(size=(120, 2))
    K = RBF(0.1).gram(X).astype(np.float32)
    model = mm.KernelPCA(2, kernel="precomputed", eigen_solver="nystroem", n_landmarks=n_landmarks)
    model.fit(K)
    features = model._stream.landmarks.features(K.astype(float), model._stream.root)
    assert np.linalg.norm(K - features @ features.T, 2) <= model.error_bound_


def test_rounding_of_a_given_float32_matrix_is_no_direction() -> None:
    K = Linear().gram(ROWS).astype(np.float32)
    model = mm.KernelPCA(10, kernel="precomputed").fit(K)
    assert model.rank_ == 4
    assert_array_equal(model.transform(K)[:, 4:], 0)


# ------------------------------------------------------------------- inverse


def test_ridge_pre_images_include_the_mean_sklearn_16654() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)) * [1.0, 0.5, 0.1] + 100.0
    model = mm.KernelPCA(10, kernel="rbf", gamma=0.3, fit_inverse_transform=True, alpha=1e-2)
    back = model.fit(X).inverse_transform(model.transform(X))
    assert np.abs(back - X).mean() < 0.25 * np.abs(X - X.mean(axis=0)).mean()
    far = model.set_params(alpha=1e9).fit(X)  # all penalty: what is left is the mean
    assert_allclose(far.inverse_transform(far.transform(X[:2])), [X.mean(axis=0)] * 2, atol=1e-4)


def test_fixed_points_are_nearest_in_feature_space() -> None:
    """At the result the distance to P = Σ cᵢφ(xᵢ) is stationary, and below that of the start."""
    X = np.random.default_rng(0).normal(size=(120, 2)) + 10
    model = mm.KernelPCA(4, kernel="rbf", gamma=0.3, inverse="fixed_point").fit(X)
    Z = model.transform(X[:5])
    back = model.inverse_transform(Z)
    a = model.eigenvectors_ / np.sqrt(model.eigenvalues_)
    weights = 1 / len(X) + Z @ a.T

    def value(rows: Any) -> Any:  # ⟨φ(x), P⟩, to be as large as possible: ‖φ(x)‖ = 1
        return np.einsum("ij,ij->i", model.kernel_.gram(rows, X), weights)

    assert (value(back) >= value(X[:5]) - 1e-9).all()
    for step in 1e-3 * np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]]):
        assert (value(back) >= value(back + step)).all()


def test_inverse_says_what_it_needs() -> None:
    model = mm.KernelPCA(2, kernel="rbf").fit(ROWS)
    with pytest.raises(NotFittedError, match="fit_inverse_transform=True"):
        model.inverse_transform(ROWS[:, :2])
    linear = mm.KernelPCA(2).fit(ROWS)
    with pytest.raises(ValueError, match="X has 4 columns"):
        linear.inverse_transform(ROWS)
    with pytest.raises(ValueError, match="for the RBF kernel"):
        linear.set_params(inverse="fixed_point").inverse_transform(ROWS[:, :2])
    with pytest.raises(ValueError, match="needs rows of numbers"):
        mm.KernelPCA(kernel="precomputed", fit_inverse_transform=True).fit(np.eye(4))
    with pytest.raises(TypeError, match=r"pass X\.toarray"):
        mm.KernelPCA(kernel="rbf", fit_inverse_transform=True).fit(sp.csr_array(ROWS))


# ------------------------------------------------------------------- iterative


@pytest.mark.parametrize("memory", ["auto", 1000])
def test_implicit_blocks_find_the_same_subspace(memory: Any) -> None:
    X = np.random.default_rng(0).normal(size=(600, 6))
    exact = mm.KernelPCA(6, kernel="rbf", eigen_solver="dense").fit(X)
    model = mm.KernelPCA(6, kernel="rbf", eigen_solver="iterative", memory=memory, tol=1e-10)
    model.fit(X)
    assert model.status_ is KernelPCAStatus.CONVERGED
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=1e-9)
    assert np.sin(subspace_angles(model.eigenvectors_, exact.eigenvectors_)).max() < 1e-6


def test_single_precision_search_is_proven_in_double(monkeypatch: Any) -> None:
    monkeypatch.setattr(gram, "SMALL", 100)
    X = np.random.default_rng(0).normal(size=(600, 6))
    exact = mm.KernelPCA(6, kernel="rbf", eigen_solver="dense").fit(X)
    for tol in (1e-5, 1e-11):
        model = mm.KernelPCA(6, kernel="rbf", eigen_solver="iterative", tol=tol).fit(X)
        assert (model.residuals_ <= tol).all()
        assert_allclose(model.eigenvalues_, exact.eigenvalues_, rtol=100 * tol)


def test_repeated_eigenvalues_are_all_found() -> None:
    """Equal clusters far apart: one eigenvalue, as often as there are clusters less one."""
    X = np.repeat(100 * np.eye(40), 30, axis=0)
    model = mm.KernelPCA(39, kernel="rbf", gamma=1.0, eigen_solver="iterative").fit(X)
    assert_allclose(model.eigenvalues_, 30.0, rtol=1e-9)
    narrow = mm.KernelPCA(39, kernel="rbf", gamma=1e4, eigen_solver="iterative")
    other = np.random.default_rng(0).normal(size=(1200, 3)) * 100
    assert_allclose(narrow.fit(other).eigenvalues_, 1.0, rtol=1e-6)


def test_running_out_is_said_and_the_best_is_kept() -> None:
    X = np.random.default_rng(0).normal(size=(900, 20))
    model = mm.KernelPCA(5, kernel="rbf", eigen_solver="iterative", max_iter=2, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(X)
    assert model.status_ is KernelPCAStatus.MAX_ITER
    assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="raise max_time"):
        late = clone(model).set_params(max_iter=100, max_time=1e-9).fit(X)
    assert late.status_ is KernelPCAStatus.MAX_TIME


@pytest.mark.parametrize("given", [False, True])
def test_any_number_of_threads_same_bits(given: bool) -> None:
    X = np.random.default_rng(0).normal(size=(700, 5))
    rows = RBF(0.3).gram(X) if given else X
    kernel = "precomputed" if given else RBF(0.3)
    fits = [
        mm.KernelPCA(3, kernel=kernel, eigen_solver="iterative", n_jobs=n_jobs).fit(rows)
        for n_jobs in (1, 2, 3, None)
    ]
    for other in fits[1:]:
        assert_array_equal(fits[0].eigenvectors_, other.eigenvectors_)


def test_memory_cap_refuses_what_cannot_be_had() -> None:
    X = np.random.default_rng(0).normal(size=(1200, 3))
    with pytest.raises(ValueError, match="memory=1000 bytes are allowed"):
        mm.KernelPCA(kernel="rbf", memory=1000).fit(X)


@pytest.mark.parametrize("solver", ["auto", "dense", "nystroem"])
def test_nearly_orthogonal_rows_have_all_their_components(solver: str) -> None:
    """K ≈ I: eigenvalues that are all equal, of which LAPACK may find none by their numbers."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(rng.integers(50, 150), 6))
        model = mm.KernelPCA(4, kernel=RBF(100.0), eigen_solver=solver).fit(X)
        assert_allclose(model.eigenvalues_, 1.0, atol=1e-3)
        assert model.rank_ == 4
        assert_allclose(model.eigenvectors_.T @ model.eigenvectors_, np.eye(4), atol=1e-9)


def with_eigenvalues(values: Any) -> Any:
    """Return a centred matrix with these eigenvalues and a 0."""
    n = len(values) + 1
    Q = np.random.default_rng(0).normal(size=(n, n))
    Q[:, 0] = 1
    Q = np.linalg.qr(Q)[0][:, 1:]
    K = (Q * values) @ Q.T
    return (K + K.T) / 2


@pytest.mark.wide
def test_copies_above_a_dense_spectrum_are_all_found() -> None:
    """A block of 16 columns sees 16 of 20 copies, and the next eigenvalue is not far below."""
    values = np.append(np.full(20, 2.0), np.random.default_rng(1).uniform(0, 1.9, 979))
    model = mm.KernelPCA(20, kernel="precomputed", eigen_solver="iterative")
    assert_allclose(model.fit(with_eigenvalues(values)).eigenvalues_, 2.0, rtol=1e-6)


def test_residuals_of_fast_decay_are_what_they_say() -> None:
    """Where blocks cancel, what is left must be orthogonal to the basis all the same."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 1)) @ rng.normal(size=(1, 3))
        kernel = RBF(10 ** rng.uniform(-2, 1))
        model = mm.KernelPCA(4, kernel=kernel, eigen_solver="iterative", tol=1e-10, memory=1).fit(X)
        K = kernel.gram(X)
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        V, values = model.eigenvectors_, model.eigenvalues_
        found = np.linalg.norm(K @ V - V * values, axis=0) / values[0]
        assert_allclose(found, model.residuals_, atol=1e-12)


# ------------------------------------------------------------------- explicit


@pytest.mark.parametrize(
    "kernel",
    [Polynomial(2, 0.1, 1.0), FromMap(lambda X: np.c_[X, (X**2).sum(axis=1)])],
    ids=["powers", "map"],
)
def test_few_features_need_no_gram_matrix(kernel: Any) -> None:
    X = np.random.default_rng(0).normal(size=(400, 4)) + 2
    model = mm.KernelPCA(4, kernel=kernel)
    Z = model.fit_transform(X)
    dense = mm.KernelPCA(4, kernel=kernel, eigen_solver="dense")
    assert_allclose(Z, dense.fit_transform(X), atol=1e-7)
    assert_allclose(model.transform(NEW), dense.transform(NEW), atol=1e-7)
    assert model.solver_ == "explicit"
    assert_allclose(model.residuals_, 0, atol=1e-12)


def test_explicit_refuses_kernels_without_a_map() -> None:
    with pytest.raises(ValueError, match="no known features"):
        mm.KernelPCA(kernel="rbf", eigen_solver="explicit").fit(ROWS)


# ------------------------------------------------------------------- Nyström


@pytest.mark.parametrize("n_landmarks", [30, 60, 100])
def test_nystroem_is_within_its_bounds(n_landmarks: int) -> None:
    X = np.random.default_rng(0).normal(size=(150, 3))
    kernel = RBF(0.2)
    model = mm.KernelPCA(2, kernel=kernel, eigen_solver="nystroem", n_landmarks=n_landmarks).fit(X)
    exact = mm.KernelPCA(2, kernel=kernel, eigen_solver="dense").fit(X)
    K = kernel.gram(X)
    L = kernel.gram(X, model.X_fit_)
    approximation = L @ np.linalg.pinv(kernel.gram(model.X_fit_), 1e-12, hermitian=True) @ L.T
    assert np.linalg.norm(K - approximation, 2) <= model.error_bound_ * (1 + 1e-6) + 1e-6
    gaps = exact.eigenvalues_ - model.eigenvalues_
    assert (gaps >= -1e-8).all()
    assert (gaps <= model.error_bound_).all()
    angles = subspace_angles(model.eigenvectors_, exact.eigenvectors_)
    assert np.sin(angles).max() <= model.angle_bound_
    assert model.status_ is KernelPCAStatus.APPROXIMATE


def test_bounds_hold_where_rounding_is_all_there_is() -> None:
    """The landmarks span all features there are, but hardly so."""
    for seed in range(30):
        X = np.random.default_rng(seed).normal(size=(70, 4)) * 100
        kernel = Polynomial(3, 1e-4, 1.0)  # of 35 features
        model = mm.KernelPCA(2, kernel=kernel, eigen_solver="nystroem", n_landmarks=36).fit(X)
        features = model._stream.landmarks.features(X, model._stream.root)
        error = np.linalg.norm(kernel.gram(X) - features @ features.T, 2)
        assert error <= model.error_bound_ <= 1e-6


def test_bounds_shrink_and_all_landmarks_are_exact() -> None:
    bounds = [
        mm.KernelPCA(2, kernel="rbf", eigen_solver="nystroem", n_landmarks=m).fit(ROWS).error_bound_
        for m in (5, 20, 60)
    ]
    assert bounds[0] > bounds[1] > bounds[2]
    assert bounds[2] < 1e-9


def test_chunks_are_the_whole() -> None:
    """With the landmarks of the first chunk, chunks give what all rows at once give."""
    X = np.random.default_rng(0).normal(size=(500, 3)) + 1
    model = mm.KernelPCA(3, kernel=RBF(0.3), n_landmarks=50)
    for part in np.split(X, 5):
        model.partial_fit(part)
    L = model.X_fit_
    root = np.linalg.pinv(np.linalg.cholesky(RBF(0.3).gram(L) + 1e-12 * np.eye(50)).T)
    whole = PCA(3).fit(RBF(0.3).gram(X, L) @ root)
    assert_allclose(model.explained_variance_, whole.explained_variance_, rtol=1e-5)
    assert model.n_samples_seen_ == 500
    assert_allclose(model.transform(X).mean(axis=0), 0, atol=1e-9)
    assert_allclose(model.transform(X).var(axis=0, ddof=1), model.explained_variance_, rtol=1e-8)
    assert not hasattr(model, "eigenvectors_")


def test_streams_of_the_linear_kernel_are_pca() -> None:
    model = mm.KernelPCA(2)
    for part in np.split(ROWS, 3):
        model.partial_fit(part)
    pca = PCA(2).fit(ROWS)
    assert_allclose(np.abs(model.transform(NEW)), np.abs(pca.transform(NEW)), atol=1e-8)
    back = pca.inverse_transform(pca.transform(NEW))
    assert_allclose(model.inverse_transform(model.transform(NEW)), back, atol=1e-8)


def test_a_stream_has_no_ridge_of_a_fit_before() -> None:
    model = mm.KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(ROWS)
    model.set_params(fit_inverse_transform=False).partial_fit(ROWS + 1)
    assert not hasattr(model, "dual_coef_")
    with pytest.raises(NotFittedError, match="fit_inverse_transform=True"):
        model.inverse_transform(ROWS[:, :2])


def test_chunks_need_nystroem() -> None:
    with pytest.raises(ValueError, match="eigen_solver='dense' is not valid for partial_fit"):
        mm.KernelPCA(eigen_solver="dense").partial_fit(ROWS)
    with pytest.raises(ValueError, match="not valid for partial_fit"):
        mm.KernelPCA(kernel="rbf", fit_inverse_transform=True).partial_fit(ROWS)
    assert not hasattr(mm.KernelPCA(kernel="precomputed"), "partial_fit")


# ------------------------------------------------------------------- what it takes


@pytest.mark.parametrize("solver", ["dense", "iterative", "nystroem"])
def test_sparse_precomputed_functions_and_objects_agree(solver: str) -> None:
    kernel = RBF(0.2)
    wanted = mm.KernelPCA(2, kernel=kernel, eigen_solver="dense").fit(ROWS)
    Z, new = np.abs(wanted.transform(ROWS)), np.abs(wanted.transform(NEW))

    def pair(x: Any, z: Any) -> float:
        return float(np.exp(-0.2 * np.sum((np.asarray(x) - np.asarray(z)) ** 2)))

    words, new_words = [tuple(row) for row in ROWS], [tuple(row) for row in NEW]
    cases: list[tuple[Any, Any, Any]] = [
        (kernel, sp.csr_array(ROWS), sp.csr_array(NEW)),
        ("precomputed", kernel.gram(ROWS), kernel.gram(NEW, ROWS)),
        (lambda A, B: kernel.gram(A, B), ROWS, NEW),
        (FromFunction(pair, on="pairs"), words, new_words),
    ]
    for given, X, other in cases:
        model = mm.KernelPCA(2, kernel=given, eigen_solver=solver, tol=1e-12)
        assert_allclose(np.abs(model.fit_transform(X)), Z, atol=1e-7)
        assert_allclose(np.abs(model.transform(other)), new, atol=1e-7)


def test_float32_and_frames_are_kept() -> None:
    pandas = pytest.importorskip("pandas")
    model = mm.KernelPCA(2, kernel="rbf").set_output(transform="pandas")
    frame = pandas.DataFrame(ROWS, columns=list("abcd"))
    Z = model.fit_transform(frame)
    assert list(Z.columns) == list(model.get_feature_names_out()) == ["kernelpca0", "kernelpca1"]
    assert list(model.transform(frame).columns) == ["kernelpca0", "kernelpca1"]
    for solver in ("dense", "iterative", "nystroem"):
        single = mm.KernelPCA(2, kernel="rbf", eigen_solver=solver)
        Z32 = single.fit_transform(ROWS.astype(np.float32))
        assert Z32.dtype == single.transform(ROWS.astype(np.float32)).dtype == np.float32
        assert_allclose(np.abs(Z32), np.abs(Z), atol=1e-4)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_components": 0}, ValueError, "n_components=0"),
        ({"n_components": 61}, ValueError, "at most as many components as there are rows"),
        ({"n_components": 2.0}, TypeError, "n_components=2.0"),
        ({"eigen_solver": "arpack"}, ValueError, "eigen_solver='arpack'"),
        ({"inverse": "guess"}, ValueError, "inverse='guess'"),
        ({"kernel": "gauss"}, ValueError, "kernel='gauss' is not known"),
        ({"kernel": RBF(), "gamma": 2.0}, ValueError, "gamma=2.0 is for kernels given by name"),
        ({"kernel": "rbf", "gamma": -1.0}, ValueError, "gamma"),
        ({"tol": -1}, ValueError, "tol=-1"),
        ({"max_iter": 0}, ValueError, "max_iter=0"),
        ({"max_time": 0}, ValueError, "max_time=0"),
        ({"alpha": 0}, ValueError, "alpha=0"),
        ({"memory": 0}, ValueError, "memory=0"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0"),
        ({"n_landmarks": 0}, ValueError, "n_landmarks=0"),
        ({"fit_inverse_transform": 1}, TypeError, "fit_inverse_transform=1"),
        ({"random_state": -1}, ValueError, "random_state=-1"),
    ],
    ids=str,
)
def test_bad_parameters(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mm.KernelPCA(**parameters).fit(ROWS)


def test_bad_matrices_and_the_wrong_moment() -> None:
    with pytest.raises(ValueError, match="square matrix"):
        mm.KernelPCA(kernel="precomputed").fit(ROWS)
    with pytest.raises(NotFittedError):
        mm.KernelPCA().transform(ROWS)
    with pytest.raises(ValueError, match="X has 3 features"):
        mm.KernelPCA().fit(ROWS).transform(ROWS[:, :3])


# ------------------------------------------------------------------- the classic picture


@pytest.mark.parametrize("solver", ["dense", "iterative", "nystroem"])
@pytest.mark.parametrize("seed", range(3))
def test_two_classes_become_separable_in_three_components(solver: str, seed: int) -> None:
    X, y = mm.datasets.circles(200, radii=(0.25, 1.0), random_state=seed)
    Z = mm.KernelPCA(3, kernel=RBF(1.0), eigen_solver=solver).fit_transform(X)
    assert not mm.separate(X, y).separable
    assert mm.separate(Z, y).separable


def test_ridge_from_many_rows_is_an_expansion_over_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than one system is solved for: as near to the rows as with all of them."""
    X, _ = mm.datasets.circles(600, radii=(0.25, 1.0), random_state=0)
    few: dict[str, Any] = {
        "kernel": "rbf",
        "gamma": 2.0,
        "fit_inverse_transform": True,
        "alpha": 1e-3,
    }
    whole = mm.KernelPCA(6, **few).fit(X)
    small = preimage.PreimageSettings(all_rows=200, some_rows=150, chunk=70)
    monkeypatch.setattr(preimage, "_SETTINGS", small)
    some = mm.KernelPCA(6, **few).fit(X)
    errors = [
        float(np.sqrt(((m.inverse_transform(m.transform(X)) - X) ** 2).sum(axis=1).mean()))
        for m in (whole, some)
    ]
    assert errors[1] < 1.2 * errors[0] + 1e-3
    assert errors[1] < 0.1
