"""The largest eigenvalues of a symmetric matrix: by LAPACK, or from products with blocks.

    A Q = Q T + P R Eᵀ,    T = QᵀAQ,    residual of a Ritz pair (θ, Qs):  ‖R s_last‖

Block Lanczos with full orthogonalisation and thick restarts (Wu and Simon, SIAM J. Matrix Anal.
2000). Residuals prove that what was found are eigenpairs.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from maxmargin.kernels.blas import one_blas_thread

Floats = npt.NDArray[np.float64]
Times = Callable[[Floats], Floats]

ROUNDING = 10 * float(np.finfo(np.float64).eps)  # of the largest |λ|: what it makes of λ = 0

_SMALL = 2000  # rows up to which one thread is faster than several
_CANCELLED = 1e-3  # of a block against its product, below which it is orthogonalised once more
_SQUARES = 1e-6  # of the largest diagonal entry, below which squares lose too much
_NEAR = 1e3  # times tol: so small a residual may be small enough after any step
_LOOKS, _FRESH = 3, 8  # products, and columns in each, by which missed copies are looked for …
_PART = 4  # … or one for so many that were needed before


class Eigenpairs(NamedTuple):
    """Eigenvalues in descending order, with what proves them."""

    values: Floats
    vectors: Floats  # orthonormal columns
    residuals: Floats  # ‖Av − λv‖
    lowest: float  # no eigenvalue is known to be lower
    n_iter: int  # products with a block; 1 for direct solvers
    converged: bool


class Budget(NamedTuple):
    """When to stop."""

    tol: float  # residuals at most tol·λ₁
    max_iter: int
    late: Callable[[], bool]  # whether there is no time for another product
    columns: int  # at most so many in the basis
    floor: float  # a matrix whose eigenvalues are no larger than this is rounding
    tell: Callable[[float], None]  # how large the residuals still are, relative to λ₁


def dense(A: Floats, count: int, whole: bool) -> Eigenpairs:
    """Return the ``count`` largest by LAPACK; with ``whole`` the lowest is known as well."""
    with few_threads(len(A)):
        return _dense(A, count, whole)


def few_threads(n: int) -> AbstractContextManager[None]:
    """Keep LAPACK to one thread on small matrices, where more would wait for each other."""
    return one_blas_thread() if n <= _SMALL else nullcontext()


def _dense(A: Floats, count: int, whole: bool) -> Eigenpairs:
    n = len(A)
    some = None if whole or count > n // 2 else _by_number(A, count)
    values, vectors = some or scipy.linalg.eigh(A, driver="evd", check_finite=False)
    values, lowest = values[::-1][:count], float(values[0])
    vectors = np.ascontiguousarray(vectors[:, ::-1][:, :count])
    residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    return Eigenpairs(values, vectors, residuals, lowest, 1, True)


def _by_number(A: Floats, count: int) -> tuple[Floats, Floats] | None:
    """Return the ``count`` largest; None if LAPACK misses some, as it does if many are equal."""
    n = len(A)
    try:
        values, vectors = scipy.linalg.eigh(
            A, subset_by_index=(n - count, n - 1), driver="evr", check_finite=False
        )
    except np.linalg.LinAlgError:
        return None
    return (values, vectors) if len(values) == count else None


def refined(times: Times, V: Floats) -> Eigenpairs:
    """Return the best pairs in the span of orthonormal columns, from one product."""
    W = times(V)
    with one_blas_thread():
        T = V.T @ W
        values, S = scipy.linalg.eigh((T + T.T) / 2)
        values, S = values[::-1], S[:, ::-1]
        vectors = V @ S
        residuals = np.linalg.norm(W @ S - vectors * values, axis=0)
    return Eigenpairs(values, vectors, residuals, float(values[-1]), 1, True)


def block_width(count: int, kept: bool) -> int:
    """Return how many columns to multiply at a time.

    Few need fewer products altogether; many are better where each costs the matrix anew.
    """
    every = count + max(4, count // 10)
    return min(every, max(16, count // 4)) if kept else every


def krylov(
    times: Times, start: Floats, count: int, budget: Budget, rng: np.random.Generator
) -> Eigenpairs:
    """Return the ``count`` largest eigenpairs of a matrix known by its products.

    A block narrower than ``count`` may miss copies of an eigenvalue that is repeated more often.
    So it is looked for larger eigenvalues outside of what was found, from a fresh random block;
    if there are any, all is done again with a block that cannot miss them.
    """
    with one_blas_thread():  # what is small here is slower on several
        found = _converged(times, start, count, budget)
        n, width = start.shape
        if width >= count or not found.converged:
            return found
        looks = max(_LOOKS, found.n_iter // _PART)  # a slow search needs a longer look
        left = budget.max_iter - found.n_iter - looks
        if left < 1:
            return found
        fresh = rng.standard_normal((n, _FRESH))
        seen = _outside(times, found, fresh, budget._replace(tol=0.0, max_iter=looks))
        steps, lowest = found.n_iter + seen.n_iter, min(found.lowest, seen.lowest)
        if seen.values[0] <= found.values[-1] + 2 * budget.tol * abs(found.values[0]):
            return found._replace(n_iter=steps, lowest=lowest)
        wide = rng.standard_normal((n, block_width(count, False)))
        again = _converged(times, wide, count, budget._replace(max_iter=left))
        return again._replace(n_iter=steps + again.n_iter, lowest=min(lowest, again.lowest))


def _outside(times: Times, found: Eigenpairs, fresh: Floats, budget: Budget) -> Eigenpairs:
    """Return what shows of the largest eigenvalue outside the span of those found."""
    V = found.vectors

    def outside(W: Floats) -> Floats:
        return np.asarray(W - V @ (V.T @ W))

    return _converged(lambda W: outside(times(outside(W))), outside(fresh), 1, budget)


def _converged(times: Times, start: Floats, count: int, budget: Budget) -> Eigenpairs:
    basis, near = _Basis(start, budget.columns), False
    for step in range(1, budget.max_iter + 1):
        basis.extend(times)
        over = step == budget.max_iter or budget.late()
        if not (over or basis.full or (basis.size >= count and (near or step % 3 == 0))):
            continue  # eigenpairs of T take time as well
        basis.look()
        residuals = basis.residuals(count)
        if len(residuals) == count and budget.tol > 0:
            budget.tell(float(residuals.max()) / (abs(float(basis.values[-1])) or 1.0))
        reached = len(residuals) == count and _small(residuals, basis.values, budget)
        if reached or over:
            break
        near = residuals.max() <= _NEAR * budget.tol * abs(basis.values[-1])
        if basis.full:
            basis.restart(count)
    values, vectors = basis.ritz(count)
    lowest = float(basis.values[0])
    return Eigenpairs(values, vectors, residuals[:count], lowest, step, reached)


def _small(residuals: Floats, values: Floats, budget: Budget) -> bool:
    """Return whether residuals are at most tol·λ₁; or λ₁ and they are nothing but rounding."""
    largest, worst = abs(float(values[-1])), float(residuals.max())
    noise = max(budget.floor, ROUNDING * abs(float(values[0])))
    return worst <= budget.tol * largest or max(worst, largest) <= noise


class _Basis:
    """Orthonormal columns Q, the matrix T = QᵀAQ, and the block P to go on with."""

    def __init__(self, start: Floats, columns: int) -> None:
        n, self.width = start.shape
        columns = min(columns, n)
        self._Q = np.empty((n, columns), order="F")
        self._T = np.zeros((columns, columns))
        self._next = _orthonormal(start)[0]
        self._coupled = 0  # from this column on Q meets the next product, but for rounding
        self.size = 0

    def extend(self, times: Times) -> None:
        """Take in the next block and its product."""
        before = self.size
        self.size = m = before + self.width
        self._Q[:, before:m] = self._next
        Q, W = self._Q[:, :m], times(self._next)
        near = Q[:, self._coupled :]
        shares = np.zeros((m, self.width))
        shares[self._coupled :] = near.T @ W
        W = W - near @ shares[self._coupled :]
        rest = Q.T @ W
        W -= Q @ rest
        shares += rest
        self._T[:m, before:m] = shares
        self._T[before:m, :before] = shares[:before].T
        P, R = _orthonormal(W)
        if np.abs(R.diagonal()).min() <= _CANCELLED * np.abs(shares).max():
            # Small differences are rounding in part, and that is not orthogonal to Q.
            P -= Q @ (Q.T @ P)
            P = np.linalg.qr(P)[0]
            R = P.T @ W
        self._next, self._beyond, self._coupled = P, R, before

    def look(self) -> None:
        """Find the Ritz pairs."""
        m = self.size
        T = self._T[:m, :m]
        self.values, self._S = scipy.linalg.eigh((T + T.T) / 2, driver="evd")

    def residuals(self, count: int) -> Floats:
        """Return ‖Av − θv‖ of the leading Ritz pairs, largest θ first."""
        last = self._S[-self._beyond.shape[1] :, ::-1][:, :count]
        return np.asarray(np.linalg.norm(self._beyond @ last, axis=0))

    def ritz(self, count: int) -> tuple[Floats, Floats]:
        """Return the leading Ritz values and vectors."""
        vectors = self._Q[:, : self.size] @ self._S[:, ::-1][:, :count]
        return self.values[::-1][:count].copy(), vectors

    @property
    def full(self) -> bool:
        """Whether no further block fits."""
        return bool(self.size + self.width > self._Q.shape[1])

    def restart(self, count: int) -> None:
        """Go on from the leading Ritz vectors."""
        columns = self._Q.shape[1]
        values, vectors = self.ritz(min(count + self.width, columns - self.width))
        kept = len(values)
        self._Q[:, :kept] = vectors
        self._T[:] = 0
        self._T[np.arange(kept), np.arange(kept)] = values
        self.size, self._coupled = kept, 0


def _orthonormal(W: Floats) -> tuple[Floats, Floats]:
    """Return P with orthonormal columns and R with PR = W: by Cholesky twice, where that is safe.

    The upper factor of WᵀW costs one product; a second time makes up for what the squares lost.
    """
    R = np.eye(W.shape[1])
    P = W
    for _ in range(2):
        try:
            factor = np.linalg.cholesky(P.T @ P).T
        except np.linalg.LinAlgError:
            return np.linalg.qr(W)
        size = np.abs(factor.diagonal())
        if size.min() <= _SQUARES * size.max():
            return np.linalg.qr(W)
        P = scipy.linalg.solve_triangular(factor, P.T, trans="T", check_finite=False).T
        R = factor @ R
    return P, R
