"""What every kernel obeys: see ``kernel_suite`` for the list."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from maxmargin import kernels
from maxmargin.kernels import check_kernel, from_sklearn, to_sklearn
from tests.support.kernel_suite import CASES, Case

every_case = pytest.mark.parametrize("case", CASES, ids=str)

SPARSE = {
    "csr matrix": sp.csr_matrix,
    "csc matrix": sp.csc_matrix,
    "csr array": sp.csr_array,
    "csc array": sp.csc_array,
    "coo array": sp.coo_array,
}


@every_case
def test_equals_its_definition(case: Case) -> None:
    A, B = case.rows(9), case.rows(6, seed=1)
    by_definition = [[case.pair(a, b) for b in B] for a in A]
    assert_allclose(case.kernel.gram(A, B), by_definition, rtol=1e-11, atol=1e-12)


@every_case
def test_symmetric_with_its_own_diagonal(case: Case) -> None:
    X = case.rows(23)
    K = case.kernel.gram(X)
    assert_array_equal(K, K.T)
    assert_array_equal(case.kernel.diag(X), K.diagonal())
    assert_allclose(K, case.kernel.gram(X, X), rtol=1e-12, atol=1e-13)


@every_case
@pytest.mark.parametrize("seed", range(3))
def test_positive_semidefinite_or_flagged(case: Case, seed: int) -> None:
    if case.kernel.psd:
        assert check_kernel(case.kernel, case.rows(30, seed=seed)).psd


@every_case
@pytest.mark.parametrize("form", SPARSE)
def test_sparse_equals_dense(case: Case, form: str) -> None:
    A, B = case.rows(17), case.rows(11, seed=1)
    dense = case.kernel.gram(A, B)
    left, right = SPARSE[form](A), SPARSE[form](B)
    assert_allclose(case.kernel.gram(left, right), dense, rtol=1e-12, atol=1e-12)
    assert_allclose(case.kernel.gram(left), case.kernel.gram(A), rtol=1e-12, atol=1e-12)
    assert_allclose(case.kernel.diag(left), case.kernel.diag(A), rtol=1e-12, atol=1e-12)


@every_case
def test_sparse_meets_dense(case: Case) -> None:
    A, B = case.rows(17), case.rows(11, seed=1)
    dense = case.kernel.gram(A, B)
    assert_allclose(case.kernel.gram(sp.csr_array(A), B), dense, rtol=1e-12, atol=1e-12)
    assert_allclose(case.kernel.gram(A, sp.csr_array(B)), dense, rtol=1e-12, atol=1e-12)


@every_case
def test_float32_in_float32_out(case: Case) -> None:
    A, B = case.rows(17), case.rows(11, seed=1)
    single = case.kernel.gram(A.astype(np.float32), B.astype(np.float32))
    assert single.dtype == np.float32
    assert case.kernel.diag(A.astype(np.float32)).dtype == np.float32
    assert case.kernel.gram(A.astype(np.float32), B).dtype == np.float64
    assert_allclose(single, case.kernel.gram(A, B), rtol=2e-4, atol=2e-5)


@every_case
def test_a_large_mean_costs_stationary_kernels_no_digits(case: Case) -> None:
    if not case.kernel.stationary:
        return
    far = (case.rows(17) + 1000).astype(np.float32)
    exact = case.kernel.gram(far.astype(np.float64) - 1000)
    prepared = case.kernel.prepare(far)
    assert_allclose(case.kernel.gram(far), exact, atol=2e-4)
    assert_allclose(case.kernel.block(prepared[3:9], prepared), exact[3:9], atol=2e-4)


@every_case
def test_prepared_rows_can_be_taken_in_any_order(case: Case) -> None:
    A, B = case.rows(17), case.rows(11, seed=1)
    K = case.kernel.gram(A, B)
    b = case.kernel.prepare(B)
    a = case.kernel.prepare(A, like=b)
    index = np.array([5, 0, 5, 16])
    assert len(a[index]) == 4
    assert_allclose(case.kernel.block(a[index], b[2:9:3]), K[index][:, 2:9:3], atol=1e-12)
    assert_allclose(case.kernel.block(a[3:8][1:], b[::-1]), K[4:8, ::-1], atol=1e-12)
    assert_allclose(case.kernel.diag(a[index]), case.kernel.diag(A)[index], atol=1e-12)
    mask = A[:, 0] > 0
    assert_allclose(case.kernel.block(a[mask], b), K[mask], atol=1e-12)
    assert case.kernel.block(a[:0], b).shape == (0, 11)


@every_case
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_threads_change_nothing(case: Case, dtype: Any, form: str) -> None:
    if case.name == "pairs":
        pytest.skip("one thread only")
    A, B = case.rows(400, dtype=dtype), case.rows(1100, seed=1, dtype=dtype)
    if form == "sparse":
        A, B = sp.csr_array(A), sp.csr_array(B)
    b = case.kernel.prepare(B)
    a = case.kernel.prepare(A, like=b)
    one = case.kernel.block(a, b, threads=1)
    for threads in (2, 5):
        assert_array_equal(case.kernel.block(a, b, threads=threads), one)
    assert_array_equal(case.kernel.block(b, b, threads=1), case.kernel.block(b, b, threads=3))


@every_case
def test_its_gaussian_process_has_the_same_values(case: Case) -> None:
    X = case.rows(13)
    covariance = to_sklearn(case.kernel)
    K = case.kernel.gram(X)
    assert_allclose(covariance(X), K, rtol=1e-10, atol=1e-12)
    assert_allclose(covariance.diag(X), K.diagonal(), rtol=1e-10, atol=1e-12)
    assert_allclose(from_sklearn(covariance).gram(X), K, rtol=1e-10, atol=1e-12)


@every_case
def test_survives_clone_pickle_and_print(case: Case) -> None:
    assert clone(case.kernel) == case.kernel
    assert clone(case.kernel) is not case.kernel
    assert pickle.loads(pickle.dumps(case.kernel)) == case.kernel
    assert case.kernel != None  # noqa: E711
    if case.name not in ("blocks", "pairs", "map", "weighted map", "matern"):
        assert eval(repr(case.kernel), vars(kernels)) == case.kernel


@every_case
def test_leaves_its_input_alone(case: Case, tmp_path: Any) -> None:
    X = case.rows(13)
    expected = case.kernel.gram(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    assert_array_equal(case.kernel.gram(frozen), expected)
    np.save(tmp_path / "X.npy", X)
    assert_array_equal(case.kernel.gram(np.load(tmp_path / "X.npy", mmap_mode="r")), expected)
    assert_allclose(case.kernel.gram(np.asfortranarray(X)), expected, rtol=1e-12, atol=1e-14)
    assert_array_equal(X, case.rows(13))


@every_case
def test_refuses_rows_of_different_width(case: Case) -> None:
    with pytest.raises(ValueError, match="5 and 6"):
        case.kernel.gram(case.rows(4), case.rows(4, d=6))


@every_case
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_refuses_numbers_that_are_none(case: Case, bad: float) -> None:
    X = case.rows(4)
    X[1, 1] = bad
    if not isinstance(case.kernel, kernels.Constant):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            case.kernel.gram(X)
