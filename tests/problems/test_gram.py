"""The Gram matrix: every way to its values gives the values of the kernel."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from maxmargin.kernels import RBF, Kernel, Laplacian, Polynomial
from maxmargin.problems.gram import Gram

KERNELS = [RBF(0.3), Polynomial(degree=2, gamma=0.5, coef0=1.0), Laplacian(0.2)]
SIZES = {"float64": 1e-12, "float32": 1e-5}


def case(kernel: Kernel, dtype: str, sparse: bool, n: int = 60) -> tuple[Gram, np.ndarray]:
    """Return a Gram matrix of rows, and its values by the definition, in float64."""
    X = np.random.default_rng(0).standard_normal((n, 7)).astype(dtype)
    X[np.abs(X) < 0.3] = 0
    rows = sp.csr_array(X) if sparse else X
    return Gram(kernel, rows), kernel.gram(X.astype(np.float64))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_block_dot_and_diagonal_are_parts_of_the_matrix(
    kernel: Kernel, dtype: str, sparse: bool
) -> None:
    gram, K = case(kernel, dtype, sparse)
    rng, within = np.random.default_rng(1), SIZES["float64"] * np.abs(K).max()
    i, j = rng.permutation(60)[:11], rng.permutation(60)[:23]
    assert len(gram) == 60
    assert_allclose(gram.block(i, j), K[np.ix_(i, j)], atol=within)
    assert_allclose(gram.block(i, i), K[np.ix_(i, i)], atol=within)
    assert_allclose(gram.diagonal, K.diagonal(), atol=within)
    assert_allclose(gram.materialize(), K, atol=SIZES["float32"] * np.abs(K).max())
    for weights in (rng.standard_normal(23), rng.standard_normal((23, 3))):
        assert_allclose(gram.dot(weights, i, j), K[np.ix_(i, j)] @ weights, atol=100 * within)
    every = np.arange(60)
    weights = np.where(rng.random(60) < 0.5, 0.0, rng.standard_normal(60))
    assert_allclose(gram.dot(weights, every), K @ weights, atol=100 * within)
    assert_allclose(gram.dot(weights[i], i), K[np.ix_(i, i)] @ weights[i], atol=100 * within)


def test_a_product_with_nothing_is_nothing() -> None:
    gram, _ = case(RBF(1.0), "float64", sparse=False)
    i = np.arange(5)
    assert_array_equal(gram.dot(np.zeros(5), i), np.zeros(5))
    assert_array_equal(gram.dot(np.zeros((5, 2)), i), np.zeros((5, 2)))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads: int) -> None:
    X = np.random.default_rng(2).standard_normal((700, 9))
    one, more = Gram(RBF(0.1), X, threads=1), Gram(RBF(0.1), X, threads=threads)
    every, weights = np.arange(700), np.linspace(-1, 1, 700)
    assert_array_equal(one.materialize(), more.materialize())
    assert_array_equal(one.dot(weights, every), more.dot(weights, every))


@pytest.mark.wide
@pytest.mark.parametrize("memory", [1, None])
@pytest.mark.parametrize("columns", [9, 70])
def test_fast_blocks_are_parts_of_the_matrix_whatever_the_memory(
    columns: int, memory: int | None
) -> None:
    X = np.random.default_rng(3).standard_normal((2100, columns))  # enough rows for float32
    gram = Gram(RBF(0.01), X, memory=memory)
    i, every = np.arange(5, 300, 7), np.arange(2100)
    K = RBF(0.01).gram(X)
    assert_allclose(gram.block(i, i, fast=True), K[np.ix_(i, i)], atol=1e-5)
    assert_allclose(gram.block(every, every, fast=True), K, atol=1e-5)
    assert gram.block(i, i, fast=True).dtype == gram.tiles.dtype == np.float32
    if columns == 70:  # values are shared, or would be if they fitted
        again = Gram(RBF(0.01), X).block(i, i, fast=True)
        assert_array_equal(gram.block(i, i, fast=True), again)
