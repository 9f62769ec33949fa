"""Kernel PCA with weights: a row of weight 2 is the row twice, one of weight 0 is absent."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import maxmargin as mm
from maxmargin.kernels import RBF, FromFunction, Polynomial
from maxmargin.problems import gram

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(60, 3)) + 2.0
NEW = RNG.normal(size=(7, 3)) + 2.0
WEIGHT = RNG.integers(0, 4, 60)
FRACTIONS = RNG.uniform(0.2, 3.0, 60)
KEPT = np.flatnonzero(WEIGHT)
REPEATED = np.repeat(ROWS, WEIGHT, axis=0)

ROUTES: dict[str, dict[str, Any]] = {
    "dense": {"eigen_solver": "dense", "kernel": "rbf", "gamma": 0.2},
    "iterative": {"eigen_solver": "iterative", "kernel": "rbf", "gamma": 0.2},
    "nystroem": {"eigen_solver": "nystroem", "kernel": "rbf", "gamma": 0.2},
    "explicit": {"eigen_solver": "explicit", "kernel": Polynomial(2, 0.1, 1.0)},
    "explicit linear": {"eigen_solver": "explicit"},
    "variance": {"kernel": "rbf", "gamma": "scale"},
    "sum": {"kernel": RBF(0.2) + 0.1 * Polynomial(3, 0.1, 0.5)},
    "function": {"kernel": FromFunction(lambda A, B: (1 + A @ B.T) ** 2)},
}


def model(route: str, **more: Any) -> Any:
    return mm.KernelPCA(3, **{"tol": 1e-12} | ROUTES[route] | more)


def centred(K: Any, weight: Any) -> Any:
    """Return D^½GKGᵀD^½, straight from the definition."""
    n = len(weight)
    G = np.eye(n) - np.outer(np.ones(n), weight / weight.sum())
    D = np.diag(np.sqrt(weight))
    return D @ G @ K @ G.T @ D


@pytest.mark.parametrize("route", ROUTES)
def test_projections_are_those_of_the_definition(route: str) -> None:
    weight = FRACTIONS
    fitted = model(route)
    Z = fitted.fit_transform(ROWS, sample_weight=weight)
    assert fitted.solver_ == fitted.eigen_solver or fitted.eigen_solver == "auto"
    K = fitted.kernel_.gram(ROWS)
    values, U = np.linalg.eigh(centred(K, weight))
    values, U = values[::-1][:3], U[:, ::-1][:, :3]
    share = weight / weight.sum()
    G = np.eye(60) - np.outer(np.ones(60), share)
    a = G.T @ (np.sqrt(weight)[:, None] * U) / np.sqrt(values)
    assert_allclose(fitted.eigenvalues_, values, rtol=1e-9)
    expected = (fitted.kernel_.gram(NEW, ROWS) - share @ K) @ a
    assert_allclose(np.abs(fitted.transform(NEW)), np.abs(expected), atol=1e-6)
    assert_allclose(fitted.transform(ROWS), Z, atol=1e-6)
    assert_allclose(np.abs(fitted.eigenvectors_), np.abs(U), atol=1e-6)
    # The projections have weighted mean 0 and variance λ/(Σw − 1).
    assert_allclose(share @ Z, 0, atol=1e-7)
    assert_allclose(fitted.explained_variance_, weight @ Z**2 / (weight.sum() - 1), rtol=1e-6)
    assert_allclose(fitted.explained_variance_, values / (weight.sum() - 1), rtol=1e-9)


@pytest.mark.parametrize("route", ROUTES)
def test_weights_are_repetitions(route: str) -> None:
    weighted, repeated = model(route), model(route)
    Z = weighted.fit_transform(ROWS, sample_weight=WEIGHT)
    many = repeated.fit_transform(REPEATED)
    assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-8)
    assert_allclose(weighted.explained_variance_, repeated.explained_variance_, rtol=1e-8)
    assert_allclose(
        weighted.explained_variance_ratio_, repeated.explained_variance_ratio_, rtol=1e-6
    )
    assert_allclose(np.repeat(Z, WEIGHT, axis=0), many, atol=1e-6)
    assert_allclose(weighted.transform(NEW), repeated.transform(NEW), atol=1e-6)
    assert weighted.n_samples_seen_ == repeated.n_samples_seen_ == WEIGHT.sum()
    assert weighted.rank_ == repeated.rank_
    # A repeated row has the weighted loading, shared out among its copies.
    shared = np.repeat(weighted.eigenvectors_ / np.sqrt(np.maximum(WEIGHT, 1))[:, None], WEIGHT, 0)
    assert_allclose(shared, repeated.eigenvectors_, atol=1e-6)


@pytest.mark.parametrize("route", ROUTES)
def test_rows_without_weight_are_absent_but_projected(route: str) -> None:
    weighted, without = model(route), model(route)
    Z = weighted.fit_transform(ROWS, sample_weight=WEIGHT)
    without.fit(ROWS[KEPT], sample_weight=WEIGHT[KEPT])
    assert len(KEPT) < len(ROWS)
    assert_allclose(weighted.eigenvalues_, without.eigenvalues_, rtol=1e-12)
    assert_allclose(weighted.transform(NEW), without.transform(NEW), atol=1e-9)
    assert_allclose(Z, without.transform(ROWS), atol=1e-6)
    assert weighted.eigenvectors_.shape == (60, 3)
    assert (weighted.eigenvectors_[WEIGHT == 0] == 0).all()
    assert_allclose(weighted.eigenvectors_[KEPT], without.eigenvectors_, atol=1e-12)


@pytest.mark.parametrize("solver", ["dense", "iterative", "nystroem"])
def test_given_matrices(solver: str) -> None:
    kernel = RBF(0.2)
    given = mm.KernelPCA(3, kernel="precomputed", eigen_solver=solver, tol=1e-12)
    Z = given.fit_transform(kernel.gram(ROWS), sample_weight=WEIGHT)
    rows = mm.KernelPCA(3, kernel=kernel, eigen_solver=solver, tol=1e-12)
    assert_allclose(Z, rows.fit_transform(ROWS, sample_weight=WEIGHT), atol=1e-6)
    # Columns of rows without weight are part of the matrix, and not used.
    values = kernel.gram(NEW, ROWS)
    assert_allclose(given.transform(values), rows.transform(NEW), atol=1e-6)
    values[:, WEIGHT == 0] = 1e6
    assert_allclose(given.transform(values), rows.transform(NEW), atol=1e-6)


@pytest.mark.wide
@pytest.mark.parametrize("factor", [1.0, 1e90])
def test_a_search_in_single_precision_is_proven_in_double(monkeypatch: Any, factor: float) -> None:
    monkeypatch.setattr(gram, "SMALL", 100)
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(500, 5)), factor * rng.uniform(0.5, 2.0, 500)
    A = centred(RBF(0.2).gram(X), weight)
    for tol in (1e-5, 1e-10):
        fitted = mm.KernelPCA(3, kernel=RBF(0.2), eigen_solver="iterative", tol=tol)
        fitted.fit(X, sample_weight=weight)
        V, values = fitted.eigenvectors_, fitted.eigenvalues_
        residuals = np.linalg.norm(A @ V - V * values, axis=0) / values[0]
        assert_allclose(residuals, fitted.residuals_, atol=1e-13)
        assert residuals.max() <= tol
        assert_allclose(values, np.linalg.eigvalsh(A)[::-1][:3], rtol=10 * tol)


def test_landmarks_are_drawn_as_often_as_weights_say() -> None:
    weight = np.where(np.arange(60) < 5, 1e6, 1e-6)
    some = model("nystroem", n_landmarks=5).fit(ROWS, sample_weight=weight)
    assert_array_equal(some.X_fit_, ROWS[:5])


def test_chunks_with_weights_are_chunks_with_repetitions() -> None:
    first = ROWS[:10]  # the landmarks
    weighted = model("nystroem").partial_fit(first).partial_fit(ROWS, sample_weight=WEIGHT)
    repeated = model("nystroem").partial_fit(first).partial_fit(REPEATED)
    assert weighted.error_bound_ == pytest.approx(repeated.error_bound_)
    assert weighted.angle_bound_ == pytest.approx(repeated.angle_bound_)
    assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-9)
    assert_allclose(weighted.transform(NEW), repeated.transform(NEW), atol=1e-8)
    assert weighted.n_samples_seen_ == 10 + WEIGHT.sum()
    halves = model("nystroem").partial_fit(first)
    for rows in np.array_split(np.arange(60), 4):
        halves.partial_fit(ROWS[rows], sample_weight=WEIGHT[rows])
    assert_allclose(halves.transform(NEW), weighted.transform(NEW), atol=1e-8)


@pytest.mark.parametrize(
    "how",
    [
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": 0.2, "fit_inverse_transform": True},
        {"kernel": "cosine", "fit_inverse_transform": True},
        {"kernel": "rbf", "gamma": 0.2, "inverse": "fixed_point"},
    ],
    ids=str,
)
def test_pre_images_of_repetitions(how: dict[str, Any]) -> None:
    weighted = mm.KernelPCA(2, **how).fit(ROWS, sample_weight=WEIGHT)
    repeated = mm.KernelPCA(2, **how).fit(REPEATED)
    Z = repeated.transform(NEW)
    assert_allclose(weighted.inverse_transform(Z), repeated.inverse_transform(Z), atol=1e-6)


@pytest.mark.parametrize("route", ["dense", "iterative", "nystroem", "explicit"])
@pytest.mark.parametrize("factor", [1e-90, 7.0, 1e90])
def test_a_common_factor_scales_eigenvalues_only(route: str, factor: float) -> None:
    weight = FRACTIONS
    plain = model(route).fit(ROWS, sample_weight=weight)
    scaled = model(route).fit(ROWS, sample_weight=factor * weight)
    assert_allclose(scaled.eigenvalues_, factor * plain.eigenvalues_, rtol=1e-9)
    assert_allclose(scaled.transform(NEW), plain.transform(NEW), atol=1e-6)
    assert_allclose(scaled.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9)
    assert_allclose(
        model(route).fit_transform(ROWS, sample_weight=factor * weight),
        plain.transform(ROWS),
        atol=1e-6,
    )


def test_one_row_has_no_variance() -> None:
    shares = np.full(60, 1 / 60)
    fitted = mm.KernelPCA(2, kernel="rbf").fit(ROWS, sample_weight=shares)
    assert np.isnan(fitted.explained_variance_).all()
    assert (fitted.explained_variance_ratio_ > 0).all()
    alone = mm.KernelPCA(1).fit(ROWS, sample_weight=np.eye(60)[3])
    assert_array_equal(alone.explained_variance_, [0])
    assert_array_equal(alone.transform(ROWS[3:4]), [[0]])


def test_what_is_refused() -> None:
    fit = mm.KernelPCA(3).fit
    with pytest.raises(ValueError, match="negative values"):
        fit(ROWS, sample_weight=np.where(np.arange(60) == 2, -1, 1))
    with pytest.raises(ValueError, match="zero or negative weights"):
        fit(ROWS, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match=r"sample_weight\.shape"):
        fit(ROWS, sample_weight=np.ones(59))
    with pytest.raises(ValueError, match="3 is not valid for 2 rows with a weight above 0"):
        fit(ROWS, sample_weight=np.arange(60) < 2)
