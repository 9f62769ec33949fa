"""Parameters, names, given kernels, checks, and scikit-learn's Gaussian processes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.svm import SVC

from maxmargin.kernels import (
    RBF,
    ChiSquared,
    Columns,
    Constant,
    Cosine,
    FromFunction,
    FromMap,
    FromSklearn,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    as_kernel,
    check_kernel,
    from_sklearn,
    sample_prior,
    to_sklearn,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((20, 3))


# ---------------------------------------------------------------- parameters


@pytest.mark.parametrize("kind", [RBF, Laplacian, ChiSquared, Polynomial, Sigmoid])
@pytest.mark.parametrize(
    ("gamma", "error"),
    [
        (0, ValueError),
        (-1.0, ValueError),
        (np.nan, ValueError),
        (np.inf, ValueError),
        ("x", TypeError),
        (None, TypeError),
        (True, TypeError),
        ([1.0], TypeError),
    ],
)
def test_gamma_is_checked_when_used(kind: Any, gamma: Any, error: type[Exception]) -> None:
    kernel = kind(gamma=gamma)
    for use in (kernel.gram, kernel.diag, kernel.prepare, kernel.resolved):
        with pytest.raises(error, match=f"{kind.__name__}: gamma"):
            use(np.abs(X))


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (Polynomial(degree=-1), ValueError, "degree must be a whole number of at least 0"),
        (Polynomial(degree=2.5), ValueError, "degree"),  # type: ignore[arg-type]
        (Polynomial(degree="2"), TypeError, "degree"),  # type: ignore[arg-type]
        (Polynomial(coef0="2"), TypeError, "coef0"),  # type: ignore[arg-type]
        (Sigmoid(coef0=np.nan), ValueError, "coef0 must be finite"),
        (Constant("1"), TypeError, "value"),  # type: ignore[arg-type]
        (Intersection(), ValueError, "every value must be at least 0"),
        (ChiSquared(), ValueError, "every value must be at least 0"),
        (FromFunction(3), TypeError, "function must be callable"),  # type: ignore[arg-type]
        (FromFunction(np.dot, on="rows"), ValueError, "'blocks', 'objects' or 'pairs'"),
        (FromMap(3), TypeError, "phi must be a function"),  # type: ignore[arg-type]
        (FromMap(np.sum), ValueError, "2D array"),
        (FromMap(lambda X: X[:3]), ValueError, "each of 20 rows"),
        (FromMap(np.abs, [1.0]), ValueError, "weights must be one finite number"),
        (FromMap(np.abs, [1.0, np.nan, 1.0]), ValueError, "weights"),
        (FromSklearn(3), TypeError, "gp_kernel"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(kernel: Kernel, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel.gram(X)


def test_gamma_may_wait_for_the_data() -> None:
    with pytest.raises(ValueError, match=r"resolved\(X\)"):
        RBF(gamma="scale").gram(X)
    assert RBF("auto").resolved(X) == RBF(1 / 3)
    gamma = RBF("scale").resolved(X).gamma
    assert gamma == pytest.approx(SVC().fit(X, X[:, 0] > 0)._gamma)
    assert RBF("scale").resolved(sp.csr_array(X)).gamma == pytest.approx(gamma)
    assert RBF("scale").resolved(np.ones((3, 2))) == RBF(1.0)
    composed = 2 * RBF("scale") + Columns(Laplacian("scale") * Linear(), [0]) ** 2
    resolved = composed.resolved(X)
    assert resolved.get_params()["rbf__gamma"] == gamma
    inner = resolved.get_params()["product__laplacian__gamma"]
    assert inner == pytest.approx(1 / X[:, 0].var())
    assert composed.get_params()["rbf__gamma"] == "scale"
    assert resolved.gram(X).shape == (20, 20)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("linear", Linear()),
        ("poly", Polynomial(2, 0.5, 1.5)),
        ("polynomial", Polynomial(2, 0.5, 1.5)),
        ("rbf", RBF(0.5)),
        ("sigmoid", Sigmoid(0.5, 1.5)),
        ("laplacian", Laplacian(0.5)),
        ("cosine", Cosine()),
        ("chi2", ChiSquared(0.5)),
        ("intersection", Intersection()),
        ("precomputed", Precomputed()),
    ],
)
def test_names_stand_for_kernels(name: str, kernel: Kernel) -> None:
    assert as_kernel(name, gamma=0.5, degree=2, coef0=1.5) == kernel


def test_what_is_no_kernel_is_refused() -> None:
    kernel = RBF()
    assert as_kernel(kernel) is kernel
    assert as_kernel(np.dot) == FromFunction(np.dot)
    with pytest.raises(ValueError, match=r"'rbff' is not known.*'rbf'"):
        as_kernel("rbff")
    for wrong in (3, None, RBF):
        with pytest.raises(TypeError, match="a name, a function"):
            as_kernel(wrong)


# ---------------------------------------------------------------- given kernels


def test_rows_of_zeros_have_no_cosine() -> None:
    Z = np.array([[0.0, 0.0], [1e-200, 0.0], [3.0, 4.0], [1e200, 0.0]])
    expected: Any = [[0, 0, 0, 0], [0, 1, 0.6, 1], [0, 0.6, 1, 0.6], [0, 1, 0.6, 1]]
    assert_allclose(Cosine().gram(Z), expected)
    assert_allclose(Cosine().gram(sp.csr_array(Z)), expected)
    assert_array_equal(Cosine().diag(Z), [0, 1, 1, 1])


def common_letters(word: str, other: str) -> float:
    return float(len(set(word) & set(other)))


def test_objects_can_be_composed() -> None:
    words, others = ["margin", "gain", "loss"], ("gin", "sun")
    letters = FromFunction(common_letters, on="pairs")
    K = (2 * letters**2 + 1.0).gram(words, others)
    assert_array_equal(K, 2 * letters.gram(words, others) ** 2 + 1)
    assert_array_equal(letters.gram(pd.Series(words)), letters.gram(words))
    lengths = FromMap(lambda block: np.array([[float(len(word))] for word in block]))
    assert_array_equal((lengths * letters).diag(words), [36 * 6, 16 * 4, 16 * 3])
    assert_array_equal(Constant(2.0).gram(words, others), np.full((3, 2), 2.0))
    with pytest.raises(ValueError, match="could not convert"):
        RBF().gram(words)


def test_no_pair_is_asked_for_twice() -> None:
    asked = []

    def function(x: Any, z: Any) -> float:
        asked.append((int(x), int(z)))
        return float(x * z)

    FromFunction(function, on="pairs").gram(list(range(30)))
    off_diagonal = [pair for pair in asked if pair[0] != pair[1]]
    assert len(off_diagonal) == len({frozenset(pair) for pair in off_diagonal}) == 30 * 29 // 2


@pytest.mark.parametrize(
    ("function", "on", "message"),
    [
        (lambda A, B: A, "blocks", r"shape \(20, 20\).*got shape \(20, 3\)"),
        (lambda A, B: 1.0, "blocks", r"on='pairs'"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "blocks", "finite"),
        (lambda x, z: x, "pairs", "one finite number"),
        (lambda x, z: np.inf, "pairs", "one finite number"),
    ],
)
def test_functions_are_held_to_their_promise(function: Any, on: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FromFunction(function, on=on).gram(X)


def test_maps_are_held_to_their_width() -> None:
    with pytest.raises(ValueError, match="returned 20 features, then 5"):
        FromMap(lambda X: X @ X.T).gram(X, X[:5])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_precomputed_rows_remember_their_number(form: Any) -> None:
    K, test = Linear().gram(X), Linear().gram(rng.standard_normal((4, 3)), X)
    kernel = Precomputed()
    train = kernel.prepare(form(K))
    index = np.array([7, 2, 2])
    assert_array_equal(kernel.block(train[index], train[3:9]), K[index, 3:9])
    assert_array_equal(kernel.block(kernel.prepare(form(test)), train[index]), test[:, index])
    assert_array_equal(kernel.gram(form(test), form(K)), test)
    assert_array_equal(kernel.gram(form(K)), K)
    assert_array_equal(kernel.diag(form(K)), K.diagonal())
    assert_array_equal((2 * kernel).block(train[index], train[index]), 2 * K[index][:, index])
    with pytest.raises(ValueError, match="square matrix"):
        kernel.gram(form(test))
    with pytest.raises(ValueError, match="not symmetric"):
        kernel.gram(form(K + np.triu(K)))
    with pytest.raises(ValueError, match="20 and 4"):
        kernel.gram(form(K), form(K[:4, :4]))


# ---------------------------------------------------------------- checks and draws


def test_check_sees_what_is_no_kernel() -> None:
    assert check_kernel(RBF(), X).psd
    assert check_kernel("rbf", X).psd
    assert check_kernel(RBF().gram(X.astype(np.float32))).psd
    lopsided = check_kernel(FromFunction(lambda A, B: A @ np.triu(np.ones((3, 3))) @ B.T), X)
    assert not lopsided.symmetric
    assert not lopsided.psd
    assert "not symmetric" in str(lopsided)
    flat = check_kernel(-np.eye(3))
    assert flat.symmetric
    assert (flat.lambda_min, flat.lambda_max) == (-1, -1)
    assert "not a kernel" in str(flat)
    assert check_kernel(np.zeros((3, 3))).psd
    with pytest.raises(TypeError, match="needs the rows X"):
        check_kernel(RBF())
    with pytest.raises(ValueError, match="square"):
        check_kernel(np.ones((2, 3)))


@pytest.mark.parametrize("method", ["clip", "shift", "flip"])
def test_repair_gives_a_kernel(method: str) -> None:
    K = rng.standard_normal((15, 15))
    found = check_kernel(K)
    repaired = found.repair(method)
    assert_array_equal(repaired, repaired.T)
    assert check_kernel(repaired).psd
    good = RBF().gram(X)
    assert_allclose(check_kernel(good).repair(method), good, atol=1e-12)
    with pytest.raises(ValueError, match="'clip', 'shift' or 'flip'"):
        found.repair("hope")


def test_clipping_is_the_nearest_repair_and_shifting_keeps_the_rest() -> None:
    K = rng.standard_normal((15, 15))
    K = K + K.T
    found = check_kernel(K)
    distance = {m: np.linalg.norm(found.repair(m) - K) for m in ("clip", "shift", "flip")}
    assert distance["clip"] == min(distance.values())
    moved = found.repair("shift") - K
    assert_allclose(moved, -found.lambda_min * np.eye(15), atol=1e-10)


def test_draws_have_the_kernel_as_covariance() -> None:
    kernel = 2 * RBF(gamma=0.5) + Linear()
    draws = sample_prior(kernel, X[:6], n_samples=40_000, random_state=0)
    K = kernel.gram(X[:6])
    # The standard error of a covariance of m draws is at most √(2/m) times the variances.
    error = np.sqrt(2 / 40_000 * np.outer(np.diag(K), np.diag(K)))
    assert (np.abs(draws.T @ draws / 40_000 - K) < 5 * error).all()
    assert_array_equal(draws[:3], sample_prior(kernel, X[:6], 40_000, random_state=0)[:3])
    assert sample_prior("rbf", X).shape == (1, 20)
    with pytest.raises(ValueError, match="no Gaussian process"):
        sample_prior(Sigmoid(coef0=-1.0), X)
    with pytest.raises(ValueError, match="n_samples"):
        sample_prior(RBF(), X, n_samples=0)


# ---------------------------------------------------------------- scikit-learn's covariances

H = np.abs(X)
POLY = gp.PairwiseKernel(metric="poly", gamma=0.5, pairwise_kernels_kwargs={"degree": 2})
COVARIANCES = [
    gp.RBF(0.7),
    gp.RBF([0.5, 1.0, 2.0]),
    gp.ConstantKernel(2.0),
    gp.DotProduct(0.5),
    3.0 * gp.RBF() + gp.DotProduct() * gp.RBF(2.0),
    gp.RBF() ** 2,
    gp.RBF() ** 1.5,
    gp.Matern(nu=1.5),
    2.0 * gp.RationalQuadratic() + gp.ExpSineSquared(),
    POLY,
    *(
        gp.PairwiseKernel(metric=metric, gamma=0.5)
        for metric in ("linear", "cosine", "rbf", "laplacian", "chi2", "sigmoid", "polynomial")
    ),
    gp.PairwiseKernel(metric="additive_chi2"),
]


@pytest.mark.parametrize("covariance", COVARIANCES, ids=str)
def test_covariances_come_and_go(covariance: Any) -> None:
    kernel = from_sklearn(covariance)
    assert_allclose(kernel.gram(H, H[:5]), covariance(H, H[:5]), rtol=1e-11, atol=1e-13)
    assert_allclose(kernel.diag(H), covariance.diag(H), rtol=1e-11)
    assert_allclose(to_sklearn(kernel)(H, H[:5]), covariance(H, H[:5]), rtol=1e-11, atol=1e-13)


def test_lengths_of_columns_can_be_learned() -> None:
    y = np.sin(3 * X[:, 0]) + np.sin(X[:, 1])
    covariance = to_sklearn(Columns(RBF(), [0]) * Columns(RBF(), [1]))
    model = GaussianProcessRegressor(covariance, alpha=1e-4).fit(X, y)
    assert model.log_marginal_likelihood_value_ > model.log_marginal_likelihood(covariance.theta)
    learned = from_sklearn(model.kernel_)
    assert_allclose(learned.gram(X), model.kernel_(X), rtol=1e-10)


def test_noise_is_no_function_of_two_points() -> None:
    for covariance in (gp.WhiteKernel(), gp.RBF() + gp.WhiteKernel(), gp.WhiteKernel() ** 2):
        with pytest.raises(ValueError, match="not a function of two points"):
            from_sklearn(covariance)
        with pytest.raises(ValueError, match="WhiteKernel"):
            FromSklearn(covariance).gram(X)
    with pytest.raises(ValueError, match="several kernels"):
        from_sklearn(gp.CompoundKernel([gp.RBF()]))
    with pytest.raises(TypeError, match="gp_kernel"):
        from_sklearn("rbf")


def test_only_known_covariances_are_positive_semidefinite() -> None:
    known = gp.Matern() * gp.RationalQuadratic() + gp.Exponentiation(gp.Matern(), 2)
    assert FromSklearn(known).psd is True
    for unknown in (gp.ExpSineSquared(), gp.PairwiseKernel(metric="additive_chi2")):
        assert FromSklearn(unknown).psd is None
    assert FromSklearn(gp.Exponentiation(gp.Matern(), 1.5)).psd is None


def test_one_length_scale_a_column_and_no_column_without() -> None:
    kernel = from_sklearn(gp.RBF([1.0, 2.0]))
    assert_allclose(kernel.gram(X[:, :2]), gp.RBF([1.0, 2.0])(X[:, :2]), rtol=1e-12)
    with pytest.raises(ValueError, match="X must have 2 columns, got 3"):
        kernel.gram(X)
