"""The tiled driver and its loops: exactness, tiles, threads, numbers out of range."""

import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise
from threadpoolctl import threadpool_info, threadpool_limits

from maxmargin import loops
from maxmargin.kernels import (
    RBF,
    ChiSquared,
    Cosine,
    FromFunction,
    Intersection,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
)
from maxmargin.kernels.tiles import TILE_BYTES, TILE_COLUMNS, StoredProduct, SymmetricProduct
from maxmargin.problems.gram import Gram

rng = np.random.default_rng(0)


def blas_threads() -> list[int]:
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_exponential_knows_its_limits(dtype: Any) -> None:
    values = np.array([[-2000.0, -1e30, -np.inf, 3.0, np.inf, np.nan]], dtype)
    loops.kernel_tiles.exponential(values, dtype(1))
    assert_array_equal(values, np.array([[0, 0, 0, 1, 1, np.nan]], dtype))


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (Linear(), pairwise.linear_kernel),
        (Polynomial(4, 0.3, 0.5), lambda A, B: pairwise.polynomial_kernel(A, B, 4, 0.3, 0.5)),
        (RBF(0.3), lambda A, B: pairwise.rbf_kernel(A, B, 0.3)),
        (Laplacian(0.3), lambda A, B: pairwise.laplacian_kernel(A, B, 0.3)),
        (ChiSquared(0.3), lambda A, B: pairwise.chi2_kernel(A, B, 0.3)),
        (Cosine(), pairwise.cosine_similarity),
        (Sigmoid(0.3, 0.1), lambda A, B: pairwise.sigmoid_kernel(A, B, 0.3, 0.1)),
    ],
    ids=lambda value: str(value) if isinstance(value, Kernel) else "",
)
def test_agrees_with_scikit_learn(kernel: Kernel, reference: Any) -> None:
    A, B = rng.random((60, 7)), rng.random((40, 7))
    A[3] = 0
    assert_allclose(kernel.gram(A, B), reference(A, B), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_tiles_meet_without_a_seam(dtype: Any, form: str) -> None:
    height = TILE_BYTES // (TILE_COLUMNS * np.dtype(dtype).itemsize)
    X = rng.standard_normal((TILE_COLUMNS + height + 1, 3)).astype(dtype)
    kernel = RBF() + Laplacian()
    X64 = X.astype(np.float64)
    exact = pairwise.rbf_kernel(X64, X64, 1.0) + pairwise.laplacian_kernel(X64, X64, 1.0)
    prepared = kernel.prepare(sp.csr_array(X) if form == "sparse" else X)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    sizes = [1, height - 1, height, height + 1, TILE_COLUMNS - 1, TILE_COLUMNS, TILE_COLUMNS + 1]
    for rows in sizes:
        part = prepared[:rows]
        assert_allclose(kernel.block(part, part), exact[:rows, :rows], atol=tolerance)
        for columns in (1, TILE_COLUMNS, TILE_COLUMNS + 1):
            block = kernel.block(part, prepared[:columns])
            assert_allclose(block, exact[:rows, :columns], atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", [1, 3, 511, 1300])
def test_half_of_the_tiles_gives_the_whole_product(dtype: Any, form: Any, n: int) -> None:
    kernel = RBF(gamma=0.3) + 0.5 * Polynomial(degree=2)
    X = rng.normal(size=(n, 4)).astype(dtype)
    V = rng.normal(size=(n, 6))
    prepared = kernel.prepare(form(X))
    expected = kernel.gram(X.astype(np.float64)) @ V
    tolerance = 1e-12 if dtype is np.float64 else 1e-5
    size = np.abs(expected).max()
    stored = StoredProduct(kernel, prepared, None)
    for product in (stored, stored, SymmetricProduct(kernel, prepared, 1)):
        assert_allclose(product.dot(V), expected, rtol=0, atol=tolerance * size)
    assert_array_equal(stored.dot(V), StoredProduct(kernel, prepared, 1).dot(V))
    assert_array_equal(
        kernel.dot(prepared, prepared, V), SymmetricProduct(kernel, prepared, 1).dot(V)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 3, 20, 200])
def test_products_and_sums_of_dense_rows_end_anywhere(dtype: Any, d: int) -> None:
    X = rng.normal(size=(530, d)).astype(dtype)
    kernel, W = RBF(1 / d), rng.normal(size=(530, 2))
    prepared, exact = kernel.prepare(X), pairwise.rbf_kernel(X.astype(np.float64), gamma=1 / d)
    products, tolerance = X.astype(np.float64) @ X.T, 1e-12 if dtype is np.float64 else 3e-5
    for n in (0, 1, 6, 7, 530):
        for m in (0, 1, 8, 16, 17, 256, 257, 530):
            a, b = prepared[:n], prepared[530 - m :]
            block = kernel.block(a, b)
            assert_allclose(block, exact[:n, 530 - m :], atol=tolerance)
            assert_array_equal(block, kernel.block(b, a).T)
            dots = Linear().gram(X[:n], X[530 - m :]) if n and m else products[:n, 530 - m :]
            assert_allclose(dots, products[:n, 530 - m :], atol=10 * d * tolerance)
            size = np.abs(W).sum()
            both = kernel.dot_with_magnitudes(a, b, W[530 - m :], 1)
            for found, weights in zip(both, (W, np.abs(W)), strict=True):
                expected = exact[:n, 530 - m :] @ weights[530 - m :]
                assert_allclose(found, expected, atol=tolerance * size)
        half = kernel.dot(prepared[:n], prepared[:n], W[:n])
        same = prepared[:n]
        assert_allclose(half, exact[:n, :n] @ W[:n], atol=tolerance * np.abs(W).sum())
        assert_allclose(kernel.dot(same, same, W[:n]), half, atol=tolerance * np.abs(W).sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_dense_rows_are_the_same_in_any_panels(dtype: Any) -> None:
    kernel, W = RBF(0.2), rng.normal(size=(700, 1))
    rows = kernel.prepare(rng.normal(size=(3000, 9)).astype(dtype))
    whole = kernel.dot(rows, rows[:700], W, 1)
    assert_array_equal(kernel.dot(rows, rows[:700], W, 2), whole)
    for some in (slice(0, 1), slice(7, 1900), slice(2990, 3000)):
        assert_array_equal(kernel.dot(rows[some], rows[:700], W, 1), whole[some])


def test_a_few_rows_far_out_do_not_forbid_float32() -> None:
    X = rng.normal(size=(2500, 5))
    for far, expected in ((10, np.float32), (100, np.float64)):
        X[:far] = rng.normal(size=(far, 5)) + 20.0 * np.eye(5)[rng.integers(0, 5, far)]
        gram = Gram(RBF(3.0), X)
        assert gram.tiles.dtype == expected
        some = gram.tiles[:200]
        assert_allclose(gram.kernel.block(some, some), gram.kernel.gram(X[:200]), 2e-3, 1e-37)


def test_half_of_the_tiles_refuses_overflow() -> None:
    kernel = Polynomial(degree=9)
    prepared = kernel.prepare(np.full((5, 1), 1e60))
    with pytest.raises(ValueError, match="overflow the number type"):
        SymmetricProduct(kernel, prepared, None).dot(np.ones((5, 1)))


def test_writes_where_it_is_told() -> None:
    kernel, X = RBF(), rng.standard_normal((700, 3))
    prepared = kernel.prepare(X)
    ring = np.zeros((2, 700, 1500))
    target = ring[1, :, 100:800]
    assert kernel.block(prepared, prepared[:], out=target) is target
    assert_array_equal(target, kernel.block(prepared, prepared[:]))
    assert not ring[0].any()
    assert not ring[1, :, 800:].any()
    with pytest.raises(ValueError, match=r"shape \(700, 700\)"):
        kernel.block(prepared, prepared, out=np.empty((700, 3)))
    with pytest.raises(ValueError, match="float64"):
        kernel.block(prepared, prepared, out=np.empty((700, 700), np.float32))


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (Polynomial(degree=50), np.full((3, 2), 1e30)),
        (Linear(), np.full((3, 2), 1e200)),
        (Linear() ** 9, np.full((3, 2), 1e20)),
        (1e30 * Linear(), np.full((3, 2), 1e20, np.float32)),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_overflow_is_an_error(kernel: Kernel, X: Any) -> None:
    with pytest.raises(ValueError, match=r"Linear|degree=50"):
        kernel.gram(X)
    with pytest.raises(ValueError, match="not finite"):
        kernel.gram(X, X[:2])
    with pytest.raises(ValueError, match="not finite"):
        kernel.diag(X)


@pytest.mark.parametrize("kernel", [RBF(), Laplacian(), Linear(), ChiSquared(), Intersection()])
def test_sparse_in_all_its_forms(kernel: Kernel) -> None:
    X = rng.random((30, 6)) * (rng.random((30, 6)) < 0.5)
    expected = kernel.gram(X)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert_allclose(kernel.gram(wide), expected, atol=1e-12)
    coo = sp.csr_array(X).tocoo()
    doubled = sp.csr_array(
        (
            np.tile(coo.data / 2, 2),
            np.tile(coo.col, 2),
            np.arange(0, 2 * coo.nnz + 1, 2 * coo.nnz),
        ),
        shape=(1, 6),
    )  # every value stored in two halves, in one row
    assert not doubled.has_canonical_format
    total = np.asarray(sp.csr_array(X).sum(axis=0)).reshape(1, -1)
    assert_allclose(kernel.gram(doubled, X), kernel.gram(total, X), atol=1e-12)
    explicit = sp.csr_array(X)
    explicit.data[::3] = 0
    assert_allclose(kernel.gram(explicit), kernel.gram(explicit.toarray()), atol=1e-12)
    assert_allclose(kernel.gram(sp.csr_array((3, 6)), X), kernel.gram(np.zeros((3, 6)), X))


def test_wide_sparse_rows_stay_sparse() -> None:
    X = sp.random_array((200, 2_000_000), density=1e-5, format="csr", rng=rng)
    K = RBF(gamma=0.1).gram(X)
    assert_allclose(K[:5, :5], pairwise.rbf_kernel(X[:5], gamma=0.1), atol=1e-12)
    dense = X[:1].toarray()
    assert_allclose(Laplacian().gram(dense, X), Laplacian().gram(X[:1], X), atol=1e-12)
    assert_allclose(Laplacian().gram(X, dense), Laplacian().gram(X, X[:1]), atol=1e-12)


def test_blas_threads_are_restored_whoever_leaves_last() -> None:
    X = rng.standard_normal((600, 8))
    prepared = RBF().prepare(X)
    before = blas_threads()
    with ThreadPoolExecutor(6) as pool:
        blocks = list(pool.map(lambda _: RBF().block(prepared, prepared), range(24)))
    assert blas_threads() == before
    for block in blocks[1:]:
        assert_array_equal(block, blocks[0])
    with pytest.raises(ZeroDivisionError):
        FromFunction(lambda A, B: 1 / 0).gram(X)
    assert blas_threads() == before


def test_limits_set_outside_are_respected() -> None:
    X = rng.standard_normal((600, 8))
    names: set[str] = set()

    class Watching(Linear):
        def fill_tile(self, a: Any, b: Any, out: Any) -> None:
            names.add(threading.current_thread().name)
            super().fill_tile(a, b, out)

    with threadpool_limits(1, user_api="blas"):
        Watching().gram(X)
    assert names == {threading.main_thread().name}


def test_a_kernel_may_call_a_kernel() -> None:
    X = rng.standard_normal((1100, 3))

    class Nested(Linear):
        def fill_tile(self, a: Any, b: Any, out: Any) -> None:
            out[...] = Linear().gram(a.parts[0], b.parts[0])

    prepared = Nested().prepare(X)
    assert_allclose(Nested().block(prepared, prepared, threads=4), X @ X.T, atol=1e-12)


def test_functions_of_the_user_run_in_one_thread() -> None:
    names = set()

    def function(A: Any, B: Any) -> Any:
        names.add(threading.get_ident())
        return A @ B.T

    kernel = RBF() * FromFunction(function)
    prepared = kernel.prepare(rng.standard_normal((1100, 3)))
    kernel.block(prepared, prepared, threads=4)
    assert names == {threading.get_ident()}


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_threads_are_checked(threads: Any) -> None:
    prepared = RBF().prepare(rng.standard_normal((600, 3)))
    with pytest.raises(ValueError, match="threads"):
        RBF().block(prepared, prepared, threads=threads)


def _in_child(queue: Any) -> None:
    prepared = RBF().prepare(np.random.default_rng(1).standard_normal((900, 4)))
    queue.put(float(RBF().block(prepared, prepared, threads=2).sum()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_works_in_a_forked_child() -> None:
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    prepared = RBF().prepare(np.random.default_rng(1).standard_normal((900, 4)))
    expected = float(RBF().block(prepared, prepared, threads=2).sum())
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert queue.get() == expected


def test_rows_prepared_in_different_types_are_refused() -> None:
    X = rng.standard_normal((5, 2))
    with pytest.raises(ValueError, match="float32 and float64"):
        RBF().block(RBF().prepare(X.astype(np.float32)), RBF().prepare(X))
    with pytest.raises(TypeError, match="slice or an array"):
        RBF().prepare(X)[1.5]
    with pytest.raises(TypeError, match="slice or an array"):
        RBF().prepare(X)[3]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_float32_distances_are_widened_where_rounding_would_show(form: Any) -> None:
    rng = np.random.default_rng(0)
    near = rng.normal(size=(30, 4))
    X = np.vstack([near, near + 1e4]).astype(np.float32)
    for kernel in (RBF(0.5), RBF(0.5) + 0 * Linear(), 2 * RBF(1e6)):
        single, double = kernel.gram(form(X)), kernel.gram(X.astype(np.float64))
        assert single.dtype == np.float32
        assert_allclose(single, double, atol=2e-4 * abs(double).max())


@pytest.mark.parametrize("n", [1, 63, 200])
def test_values_from_distances_that_all_gammas_share(n: int) -> None:
    X = np.random.default_rng(n).normal(size=(n, 5)) + 3.0
    distances = None
    for gamma in (0.01, 0.4, 7.0):
        kernel = RBF(gamma)
        if distances is None:
            distances = kernel.squared_distances(kernel.prepare(X), threads=1)
            assert distances is not None
        values = np.empty((n, n))
        kernel.block_of_distances(distances, values, threads=2)
        exact = np.exp(-gamma * np.square(X[:, np.newaxis] - X).sum(axis=2))
        np.testing.assert_allclose(values, exact, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(values, values.T)
    sparse = RBF(0.4).prepare(sp.csr_array(X))
    assert RBF(0.4).squared_distances(sparse, threads=1) is None
