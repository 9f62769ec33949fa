"""Composition: the laws, the printed form, the parameters."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV

import maxmargin as mm
from maxmargin import kernels
from maxmargin.kernels import (
    RBF,
    Columns,
    Constant,
    Cosine,
    FromFunction,
    FromMap,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Power,
    Precomputed,
    Product,
    Scaled,
    Sigmoid,
    Sum,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 4))
K1, K2 = RBF(gamma=0.5), Polynomial(degree=2)


def test_gram_of_a_composition_is_the_composition_of_grams() -> None:
    g1, g2 = K1.gram(X), K2.gram(X)
    assert_allclose((K1 + K2).gram(X), g1 + g2, rtol=1e-12)
    assert_allclose((K1 * K2).gram(X), g1 * g2, rtol=1e-12)
    assert_allclose((2.5 * K1).gram(X), 2.5 * g1, rtol=1e-12)
    assert_allclose((K1**7).gram(X), g1**7, rtol=1e-12)
    assert_allclose((K1 + 3.0).gram(X), g1 + 3, rtol=1e-12)
    assert_allclose(Columns(K1, [2, 0]).gram(X), K1.gram(X[:, [2, 0]]), rtol=1e-12)
    assert_allclose((0 * K1).gram(X), 0)


def test_explicit_monomials_are_the_polynomial_kernel() -> None:
    # (1 + x·x′)² = 1 + 2Σxᵢxᵢ′ + Σxᵢ²xᵢ′² + 2Σᵢ<ⱼ xᵢxⱼxᵢ′xⱼ′
    pairs = [(i, j) for i in range(4) for j in range(i)]

    def monomials(X: Any) -> Any:
        cross = np.stack([X[:, i] * X[:, j] for i, j in pairs], axis=1)
        return np.hstack([np.ones((len(X), 1)), X, X**2, cross])

    weights = np.sqrt([1] + [2] * 4 + [1] * 4 + [2] * len(pairs))
    assert_allclose(FromMap(monomials, weights).gram(X), K2.gram(X), rtol=1e-12)


PRINTED = {
    "RBF(gamma=0.5) + 2 * Linear() * Polynomial(degree=2)": (
        RBF(gamma=0.5) + 2 * Linear() * Polynomial(degree=2)
    ),
    "Linear() + RBF() + Cosine()": Linear() + (RBF() + Cosine()),
    "Linear() * RBF() * Cosine()": Linear() * (RBF() * Cosine()),
    "(Linear() + RBF()) * Cosine()": (Linear() + RBF()) * Cosine(),
    "2 * (Linear() + RBF())": (Linear() + RBF()) * 2,
    "6 * Linear()": 2 * (3 * Linear()),
    "6.0 * Linear() * RBF()": (2 * Linear()) * (RBF() * 3.0),
    "8 * Linear() ** 3": (2 * Linear()) ** 3,
    "Linear() ** 6": (Linear() ** 2) ** 3,
    "(Linear() * RBF()) ** 2": (Linear() * RBF()) ** 2,
    "(Linear() + RBF()) ** 2 * Cosine()": (Linear() + RBF()) ** 2 * Cosine(),
    "RBF() + Constant(value=1.0)": RBF() + 1.0,
    "Constant(value=1.0) + RBF()": 1.0 + RBF(),
    "0.5 * RBF()": np.float64(0.5) * RBF(),
    "RBF(gamma=0.25)": RBF(gamma=np.float64(0.25)),
    "RBF() + Linear()": sum([RBF(), Linear()]),
    "Columns(kernel=RBF(), columns=[0, 1])": Columns(RBF(), np.array([0, 1])),
    "Sum(terms=[RBF()])": Sum([RBF()]),
    "Sum(terms=[Linear() + RBF(), Cosine()])": Sum([Linear() + RBF(), Cosine()]),
    "Product(factors=[2 * RBF(), Cosine()])": Product([2 * RBF(), Cosine()]),
    "Scaled(kernel=2 * RBF(), factor=3)": Scaled(2 * RBF(), 3),
    "Power(kernel=2 * RBF(), exponent=3)": Power(2 * RBF(), 3),
}


@pytest.mark.parametrize("text", PRINTED)
def test_prints_as_python_that_gives_it_back(text: str) -> None:
    kernel = PRINTED[text]
    assert repr(kernel) == text
    assert eval(text, vars(kernels)) == kernel


def test_equality_is_by_type_and_value() -> None:
    assert RBF(gamma=2) == RBF(gamma=2.0)
    assert RBF() != Laplacian()
    assert RBF() + Linear() != Linear() + RBF()
    assert FromMap(np.square, [1.0, 2.0]) == FromMap(np.square, np.array([1.0, 2.0]))
    assert FromMap(np.square, [1.0, 2.0]) != FromMap(np.square)
    assert RBF() != "rbf"
    with pytest.raises(TypeError, match="unhashable"):
        hash(RBF())


def test_members_are_copies() -> None:
    kernel = RBF()
    doubled = kernel + kernel
    doubled.set_params(rbf1__gamma=5.0)
    assert doubled.get_params()["rbf2__gamma"] == kernel.gamma == 1.0


def test_parameters_have_short_paths() -> None:
    assert set((RBF() + Linear()).get_params()) == {"terms", "rbf", "rbf__gamma", "linear"}
    assert set((2 * RBF()).get_params()) == {"factor", "gamma", "kernel"}
    assert set((2 * RBF() ** 3).get_params()) == {"factor", "exponent", "gamma", "kernel"}
    assert {"rbf__gamma", "rbf__factor"} <= set((2 * RBF() + Linear()).get_params())
    assert {"rbf1__gamma", "rbf2__gamma"} <= set((RBF() * RBF()).get_params())
    assert set((2 * (RBF() + Linear())).get_params()) >= {"rbf__gamma", "terms", "factor"}


def test_parameters_can_be_set_by_these_paths() -> None:
    kernel = 2 * Columns(RBF() + RBF(), [0]) ** 2
    kernel.set_params(factor=3.0, exponent=4, columns=[1], rbf2__gamma=0.5)
    assert kernel == 3.0 * Columns(RBF() + RBF(gamma=0.5), [1]) ** 4
    total = RBF() + Linear()
    total.set_params(rbf=Laplacian(), linear=RBF())
    assert total == Laplacian() + RBF()
    assert total.set_params(terms=[Linear(), RBF()], rbf__gamma=7.0) == Linear() + RBF(gamma=7.0)
    assert (2 * RBF()).set_params(kernel__gamma=3.0) == 2 * RBF(gamma=3.0)
    assert (2 * RBF()).set_params(kernel=Laplacian(), gamma=3.0) == 2 * Laplacian(gamma=3.0)


@pytest.mark.parametrize("kernel", [RBF() + Linear(), 2 * RBF(), RBF(), 2 * (RBF() + Linear())])
def test_unknown_parameters_are_refused_with_the_valid_ones(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match=r"'?sigma'?.*gamma"):
        kernel.set_params(sigma=1.0)
    with pytest.raises(ValueError, match="Invalid parameter"):
        kernel.set_params(rbf__sigma=1.0)


def test_grid_search_reaches_every_parameter() -> None:
    y = (np.linalg.norm(X, axis=1) > 1.8).astype(int)
    grid = {"kernel__rbf__gamma": [0.1, 1.0], "kernel__linear__factor": [0.0, 1.0]}
    search = GridSearchCV(mm.SVC(kernel=RBF() + 2 * Linear()), grid, cv=2).fit(X, y)
    chosen = search.best_estimator_.kernel
    assert chosen.get_params()["rbf__gamma"] == search.best_params_["kernel__rbf__gamma"]
    assert len(search.cv_results_["params"]) == 4
    kinds = GridSearchCV(mm.SVC(kernel=RBF()), {"kernel": [RBF(), Linear()]}, cv=2).fit(X, y)
    assert kinds.best_params_["kernel"] in [RBF(), Linear()]


@pytest.mark.parametrize("factor", [-1, -0.5, np.nan, np.inf])
def test_multiples_that_are_no_kernels_are_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="factor"):
        factor * RBF()
    with pytest.raises(ValueError, match="value"):
        RBF() + factor
    with pytest.raises(ValueError, match="factor"):
        Scaled(RBF(), factor).gram(X)
    with pytest.raises(ValueError, match="value"):
        Constant(factor).gram(X)


@pytest.mark.parametrize("exponent", [0, -1, 0.5, 2.5])
def test_powers_that_are_no_kernels_are_refused(exponent: float) -> None:
    with pytest.raises(ValueError, match="exponent must be a whole number of at least 1"):
        RBF() ** exponent
    with pytest.raises(ValueError, match="exponent"):
        Power(RBF(), exponent).gram(X)  # type: ignore[arg-type]


def test_operators_refuse_what_is_no_kernel() -> None:
    for other in ("rbf", None, [1.0], True):
        with pytest.raises(TypeError):
            RBF() + other
        with pytest.raises(TypeError):
            other * RBF()
        with pytest.raises(TypeError):
            RBF() ** other
    with pytest.raises(TypeError):
        RBF() - 1.0  # type: ignore[operator]
    with pytest.raises(TypeError, match="terms must hold kernels"):
        Sum([RBF(), "linear"]).gram(X)  # type: ignore[list-item]
    with pytest.raises(TypeError, match="factors must be a list"):
        Product([]).gram(X)
    with pytest.raises(TypeError, match="kernel must be a Kernel"):
        Scaled("rbf", 2).gram(X)  # type: ignore[arg-type]


def test_columns_are_checked() -> None:
    with pytest.raises(ValueError, match="below 4"):
        Columns(RBF(), [0, 4]).gram(X)
    for columns in (["a"], [], 3, [0.5]):
        with pytest.raises(TypeError, match="list of column numbers"):
            Columns(RBF(), columns).gram(X)


def test_flags_combine() -> None:
    unknown = FromFunction(np.dot)
    assert (RBF() + Linear()).psd is True
    assert (RBF() * Sigmoid()).psd is False
    assert (RBF() + unknown).psd is None
    assert (unknown + Sigmoid()).psd is False
    assert (2 * unknown**2).psd is None
    assert Precomputed().psd is None
    assert Polynomial(coef0=-1.0).psd is False
    assert RBF(gamma="scale").psd is True
    assert (2 * RBF() * Laplacian() ** 2 + 1.0).stationary
    assert Columns(RBF(), [0]).stationary
    assert not (RBF() + Linear()).stationary
    assert not Cosine().stationary


def test_members_share_their_rows() -> None:
    kernel = RBF() + RBF(2.0) + Linear() * Polynomial()
    prepared = kernel.prepare(X)[np.array([3, 1])]
    rbf, wider, product = prepared.parts
    assert product.parts[0].parts[0] is product.parts[1].parts[0]
    assert rbf.parts[0] is wider.parts[0]


class Halved(Linear):
    def fill_tile(self, a: Any, b: Any, out: Any) -> None:
        super().fill_tile(a, b, out)
        out /= 2


class Renamed(Linear):
    pass


def test_other_values_inherit_neither_gradient_nor_gaussian_process() -> None:
    W = np.ones((12, 12))
    with pytest.raises(TypeError, match=r"derivative of Halved\(\) is not known"):
        Halved().weighted_gradient(X, X, W)
    assert_allclose(kernels.to_sklearn(Halved())(X, X[:5]), X @ X[:5].T / 2)
    assert_allclose(Renamed().weighted_gradient(X, X, W), W @ X)
    assert kernels.to_sklearn(Renamed()).metric == "linear"
