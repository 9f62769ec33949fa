"""What memory is there decides how long a fit takes, and nothing else."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR
from maxmargin.kernels import RBF, Cosine, Kernel, Laplacian, Linear, Polynomial
from maxmargin.problems.gram import Gram
from maxmargin.problems.row_cache import RowCache

rng = np.random.default_rng(0)
X = rng.normal(size=(2300, 12))
LABELS = np.sign(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X)))
TARGETS = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=len(X))
WIDE = rng.normal(size=(2100, 70))  # too wide for its kernel values to be computed again and again
CLASSES = WIDE[:, :5].argmax(axis=1)
SPARSE = sp.random(2100, 300, density=0.02, random_state=0, format="csr")
FIT = {
    "SVC": (SVC(C=100), X, LABELS),
    "SVC in float64": (SVC(C=100), X[:1500], LABELS[:1500]),
    "SVC, wide": (SVC(C=3), WIDE, CLASSES > 2),
    "SVC, five classes": (SVC(C=3), WIDE, CLASSES),
    "SVC, sparse": (SVC(C=10), SPARSE, np.asarray(SPARSE.sum(axis=1)).ravel() > 3),
    "SVC, composed": (SVC(kernel=Laplacian(0.05) + Linear(), C=1), X, LABELS),
    "NuSVC": (NuSVC(nu=0.3), X, LABELS),
    "SVR": (SVR(C=3, epsilon=0.1), X, TARGETS),
    "QuantileSVR": (QuantileSVR(C=3, quantile=0.8), X, TARGETS),
    "NuSVR": (NuSVR(C=3, nu=0.3), X, TARGETS),
    "OneClassSVM": (OneClassSVM(nu=0.1), WIDE, None),
}


@pytest.mark.parametrize("name", FIT)
def test_memory_and_threads_change_no_bit(name: str) -> None:
    machine, rows, y = FIT[name]
    duals, intercepts = [], []
    for memory, threads in ((1, 1), (1_000_000, 2), ("auto", 2)):
        fitted = machine.set_params(memory=memory, n_jobs=threads).fit(rows, y)
        duals.append(fitted.dual_coef_)
        intercepts.append(fitted.intercept_)
    for other, b in zip(duals[1:], intercepts[1:], strict=True):
        np.testing.assert_array_equal(duals[0], other)
        np.testing.assert_array_equal(intercepts[0], b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel",
    [RBF(0.1), Linear(), Polynomial(3, 0.1), Cosine(), RBF(0.1) * Linear() + 1.0],
    ids=repr,
)
def test_values_do_not_depend_on_the_tile(kernel: Kernel, dtype: type) -> None:
    for width in (1, 7, 64, 300):
        rows = kernel.prepare(rng.normal(size=(700, width)).astype(dtype))
        whole = kernel.block(rows, rows[:])
        i, j = rng.choice(700, 33, replace=False), rng.choice(700, 531, replace=False)
        for some, others in ((i, j), (i[:1], j), (j, i[:3])):
            part = kernel.block(rows[some], rows[others])
            np.testing.assert_array_equal(part, whole[np.ix_(some, others)])
        assert np.allclose(whole, kernel.block(rows, rows), rtol=1e-4, atol=1e-4)


def test_a_store_with_little_room_gives_the_same_sums_and_blocks() -> None:
    full, small = (RowCache(g, g.tiles) for g in (Gram(RBF(0.1), X), Gram(RBF(0.1), X, memory=1)))
    assert small.capacity == 64 < full.capacity
    sums = np.zeros((2, len(X)))
    for _ in range(6):
        positions = np.sort(rng.choice(300, 150, replace=False))
        weights, keep = rng.normal(size=150), rng.random(150) < 0.6
        for store, f in zip((full, small), sums, strict=True):
            store.add_to(f, positions, weights, keep)
        np.testing.assert_array_equal(full.known, small.known)
        np.testing.assert_array_equal(*sums)
        np.testing.assert_array_equal(full.block(positions), small.block(positions))
    useful = np.arange(0, 300, 2)
    stay = np.setdiff1d(np.arange(len(X)), np.arange(1, 900, 7))
    for store in (full, small):
        store.shrink(stay, np.intersect1d(useful, stay))
        store.grow(store.gram.tiles, stay, np.arange(len(stay)))
    np.testing.assert_array_equal(full.known, small.known)
    assert full.known.any()
    np.testing.assert_array_equal(full.block(useful), small.block(useful))
