"""The largest eigenpairs of D^½GKGᵀD^½: by LAPACK, or from products with blocks of columns.

    A Q = Q T + P R Eᵀ,    T = QᵀAQ,    residual of a Ritz pair (θ, Qs):  ‖R s_last‖

Block Lanczos with full orthogonalisation and thick restarts (Wu and Simon, SIAM J. Matrix Anal.
2000). Residuals prove that what was found are eigenpairs.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg

from maxmargin._typing import Floats
from maxmargin.estimators.feature_maps.nystroem import limit_threads
from maxmargin.estimators.kernel_pca.operators import CentredGram, Moments, measure_rounding
from maxmargin.kernels import PreparedRows
from maxmargin.problems.gram import Gram
from maxmargin.runtime import clock
from maxmargin.runtime.progress import Bar, progress
from maxmargin.runtime.threads import one_blas_thread

Dot = Callable[[Floats], Floats]

_ROUNDING = 10 * float(np.finfo(np.float64).eps)  # of the largest |λ|: what it makes of λ = 0


@dataclass(frozen=True)
class EigenSettings:
    """When LAPACK is used, and how block Lanczos goes about its search."""

    dense_rows: int = 1000  # up to which LAPACK is as fast as anything
    dense_copies: int = 4  # of the matrix, that LAPACK needs
    blocks: int = 12  # in the basis, unless memory is short
    fewest_blocks: int = 4
    products_after: int = 5  # in float32, that take as long as what follows a search
    small_block: float = 1e-3  # of a block against its product: below, orthogonalised once more
    unchecked: int = 16  # columns multiplied between two checks of residuals, at most
    probes: int = 2  # products that search for missed copies of an eigenvalue …
    probe_share: int = 8  # … or one for this many products of the search, if that is more …
    probe_width: int = 8  # … with at most this many columns


_SETTINGS = EigenSettings()


class Eigenpairs(NamedTuple):
    """Eigenvalues in descending order, with what proves them."""

    values: Floats
    vectors: Floats  # orthonormal columns
    residuals: Floats  # ‖Av − λv‖
    lowest: float  # no eigenvalue is known to be lower
    n_iter: int  # products with a block as wide as usual, or wider; 1 for direct solvers
    converged: bool


@dataclass(frozen=True)
class EigenProblem:
    """Wanted: the ``count`` largest eigenpairs of K̃ = D^½GKGᵀD^½."""

    gram: Gram
    weight: Floats
    count: int
    tol: float
    max_iter: int
    max_time: float | None
    rng: np.random.Generator

    def centred(self, rows: PreparedRows, keep: bool = True) -> CentredGram:
        """Return K̃ of the rows, prepared in whichever type."""
        return CentredGram(self.gram, rows, self.weight, keep)

    @property
    def too_small(self) -> bool:
        """Whether a basis of a few blocks would be about as large as the matrix."""
        width = _widest(self.count)
        return len(self.gram) < self.count + (_SETTINGS.fewest_blocks + 1) * width

    @property
    def suits_lapack(self) -> bool:
        """Whether LAPACK is the better choice for this many eigenpairs, and fits into memory."""
        n = len(self.gram)
        small = n <= _SETTINGS.dense_rows or 6 * max(_usual(self.count), self.count) >= n
        return small and self.fits_lapack

    @property
    def dense_bytes(self) -> int:
        """What LAPACK needs."""
        return _SETTINGS.dense_copies * 8 * len(self.gram) ** 2

    @property
    def fits_lapack(self) -> bool:
        """Whether the memory is enough for LAPACK: a small matrix is always allowed."""
        return self.dense_bytes <= max(self.gram.memory, 8 * _SETTINGS.dense_rows**2)

    @property
    def single(self) -> PreparedRows | None:
        """The rows in float32; None if that would save little, or its rounding would show."""
        gram, kernel = self.gram, self.gram.kernel
        if kernel.takes_gram or kernel.takes_objects or gram.tiles is gram.exact:
            return None
        rounding = measure_rounding(kernel, gram.tiles, gram.exact, self.weight)
        return gram.tiles if rounding <= self.tol / 2 else None


# ------------------------------------------------------------------- LAPACK


def solve_dense(problem: EigenProblem) -> tuple[Eigenpairs, CentredGram]:
    """Return the eigenpairs by LAPACK."""
    if not problem.fits_lapack:
        raise ValueError(
            f"All eigenpairs of {len(problem.gram)} rows need {problem.dense_bytes / 1e9:.3g} GB, "
            f"and memory={problem.gram.memory} bytes are allowed: ask for fewer n_components with "
            "eigen_solver='iterative', choose eigen_solver='nystroem', or allow more memory."
        )
    gram = problem.centred(problem.gram.exact)
    found = _call_lapack(gram.materialize(), problem.count, gram.kernel.psd is not True)
    return found, gram


def solve_scatter(moments: Moments, count: int) -> Eigenpairs:
    """Return the largest eigenpairs of a scatter; residuals are those of v, for K̃."""
    S = moments.scatter
    found = _call_lapack(S, min(count, len(S)), whole=False)
    r = S @ found.vectors - found.vectors * found.values
    squares = np.einsum("ij,ij->j", r, S @ r)
    safe = np.where(found.values > moments.floor, found.values, np.inf)
    return found._replace(residuals=np.sqrt(np.maximum(squares, 0.0) / safe), lowest=0.0)


def _call_lapack(A: Floats, count: int, whole: bool) -> Eigenpairs:
    """Return the ``count`` largest; with ``whole`` the lowest is known as well."""
    n = len(A)
    with limit_threads(n):
        values = np.zeros(0)
        if not whole and count <= n // 2:
            with suppress(np.linalg.LinAlgError):
                values, vectors = scipy.linalg.eigh(
                    A, subset_by_index=(n - count, n - 1), driver="evr", check_finite=False
                )
        if len(values) < count:  # LAPACK misses some if many are equal
            values, vectors = scipy.linalg.eigh(A, driver="evd", check_finite=False)
        values, lowest = values[::-1][:count], float(values[0])
        vectors = np.ascontiguousarray(vectors[:, ::-1][:, :count])
        residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    return Eigenpairs(values, vectors, residuals, lowest, 1, True)


# ------------------------------------------------------------------- block Lanczos


def solve_iterative(problem: EigenProblem) -> tuple[Eigenpairs, CentredGram]:
    """Return the eigenpairs from products with blocks.

    On many rows the search is in float32, if its rounding is far below ``tol``; what is returned
    is proven in float64 in any case.
    """
    with progress(
        "Finding components",
        unit="product",
        tol=problem.tol,
        measure="residual",
        max_time=problem.max_time,
    ) as bar:
        pace = _Pace(problem.max_time)
        with clock.limited(pace.allowed):
            double, single = problem.gram.exact, problem.single
            if single is None:
                gram = problem.centred(double)
                return _Search(problem, gram, pace, bar).run(problem.max_iter), gram
            found = _Search(problem, problem.centred(single), pace, bar).run(problem.max_iter)
            return _prove(problem, found, pace, bar)


def _prove(
    problem: EigenProblem, found: Eigenpairs, pace: "_Pace", bar: Bar
) -> tuple[Eigenpairs, CentredGram]:
    """Return what a product in float64 makes of eigenpairs in float32; search on if need be."""
    double = problem.gram.exact
    gram = problem.centred(double, keep=False)  # for one product
    proven = _refine(gram.dot, found.vectors)
    steps = found.n_iter + 1
    reached = bool(proven.residuals.max() <= problem.tol * abs(proven.values[0]))
    lowest = min(found.lowest, proven.lowest)
    if not reached and steps < problem.max_iter and not pace.late():
        gram = problem.centred(double)
        left = problem.max_iter - steps
        again = _Search(problem, gram, pace, bar).run(left, proven.vectors)
        lowest = min(lowest, again.lowest)
        return again._replace(n_iter=steps + again.n_iter, lowest=lowest), gram
    return proven._replace(n_iter=steps, converged=reached, lowest=lowest), gram


class _Pace:
    """How long products take, and whether there is time for more.

    What follows a search, in float64 and for the means of columns, may exceed ``max_time`` by a
    fifth and half a second. A first product that takes half of that as well is given up, so that
    there is time for Nyström's method instead.
    """

    def __init__(self, max_time: float | None) -> None:
        self.allowed = None if max_time is None else 1.2 * max_time + 0.5
        self._started, self._max_time = clock.now(), np.inf if max_time is None else max_time
        self._longest = 0.0

    def time(self, dot: Dot, V: Floats) -> Floats:
        """Return a product, and remember how long it took."""
        started = clock.now()
        most = None
        if self.allowed is not None and self._longest == 0.0:
            most = self._started + 0.5 * (self._max_time + self.allowed) - started
        with clock.limited(most):
            product = dot(V)
        self._longest = max(self._longest, clock.now() - started)
        return product

    def late(self) -> bool:
        """Return whether only what follows a search still has time."""
        gone = clock.now() - self._started
        end = gone + _SETTINGS.products_after * self._longest
        return gone > self._max_time or (self.allowed is not None and end > self.allowed)


def _widest(count: int) -> int:
    """Return the columns of a block that cannot miss copies of an eigenvalue."""
    return count + max(4, count // 10)


def _usual(count: int) -> int:
    """Return the columns of a block whose products ``max_iter`` counts."""
    return min(_widest(count), max(16, count // 4))


def _block_width(count: int, gram: CentredGram) -> int:
    """Return how many columns to multiply at a time.

    Narrow blocks need fewer columns altogether. Our product with stored tiles takes four columns
    in the time that it takes to read them, BLAS wants more, and tiles that are computed for each
    product want all.
    """
    if not gram.kept:
        return _widest(count)
    return _usual(count) if gram.given else min(_usual(count), max(4, count // 64 * 4))


def _refine(dot: Dot, V: Floats) -> Eigenpairs:
    """Return the best pairs in the span of orthonormal columns, from one product."""
    W = dot(V)
    with one_blas_thread():
        T = V.T @ W
        values, S = scipy.linalg.eigh((T + T.T) / 2)
        values, S = values[::-1], S[:, ::-1]
        vectors = V @ S
        residuals = np.linalg.norm(W @ S - vectors * values, axis=0)
    return Eigenpairs(values, vectors, residuals, float(values[-1]), 1, True)


class _Search:
    """The search for the largest eigenpairs of a matrix known by its products."""

    def __init__(self, problem: EigenProblem, gram: CentredGram, pace: _Pace, bar: Bar) -> None:
        self._problem, self._gram, self._pace, self._bar = problem, gram, pace, bar
        self._tol, self._count, self._rng = problem.tol, problem.count, problem.rng

    def run(self, max_iter: int, start: Floats | None = None) -> Eigenpairs:
        """Return the largest eigenpairs, after at most ``max_iter`` products.

        A block narrower than their number may miss copies of an eigenvalue that is repeated more
        often. So a fresh random block searches for larger eigenvalues outside the span of those
        found; if there are any, the search is repeated with a block that cannot miss them.
        """
        n, count, rng = len(self._gram), self._count, self._rng
        if start is None:
            start = rng.standard_normal((n, _block_width(count, self._gram)))
        width = start.shape[1]
        affordable = self._problem.gram.memory // (4 * 8 * n)
        fewest = count + _SETTINGS.fewest_blocks * width
        usual = _SETTINGS.blocks * _widest(count)
        self._columns = min(max(fewest, min(usual, affordable)), n - width)
        with one_blas_thread():  # the matrices here are so small that several would be slower
            found = self._iterate(self._dot, start, count, max_iter)
            if width >= count or not found.converged:
                return found
            probes = max(_SETTINGS.probes, -(-found.n_iter // _SETTINGS.probe_share))
            left = max_iter - found.n_iter - probes
            if left < 1:
                return found
            probed = self._probe_outside(found, probes, min(width, _SETTINGS.probe_width))
            steps, lowest = found.n_iter + probed.n_iter, min(found.lowest, probed.lowest)
            if probed.values[0] <= found.values[-1] + 2 * self._tol * abs(found.values[0]):
                return found._replace(n_iter=steps, lowest=lowest)
            wide = rng.standard_normal((n, _widest(count)))
            again = self._iterate(self._dot, wide, count, left)
            return again._replace(n_iter=steps + again.n_iter, lowest=min(lowest, again.lowest))

    def _dot(self, V: Floats) -> Floats:
        self._bar.advance()
        return self._pace.time(self._gram.dot, V)

    def _probe_outside(self, found: Eigenpairs, probes: int, width: int) -> Eigenpairs:
        """Return an estimate of the largest eigenpair outside the span of those found."""
        V = found.vectors

        def project(W: Floats) -> Floats:
            return np.asarray(W - V @ (V.T @ W))

        def dot(W: Floats) -> Floats:
            return project(self._dot(project(W)))

        fresh = self._rng.standard_normal((len(V), width))
        return self._iterate(dot, project(fresh), 1, probes, probing=True)

    def _iterate(
        self, dot: Dot, start: Floats, count: int, max_iter: int, probing: bool = False
    ) -> Eigenpairs:
        tol = 0.0 if probing else self._tol
        narrow = max(1, _usual(self._count) // start.shape[1])  # products that count as one
        basis, checks = _Basis(start, self._columns), _Checks(start.shape[1])
        for step in range(1, narrow * max_iter + 1):
            basis.extend(dot)
            over = step == narrow * max_iter or self._pace.late()
            if not (over or basis.full or (basis.size >= count and checks.due(step))):
                continue  # eigenpairs of T take time as well
            basis.find_ritz_pairs()
            residuals = basis.residuals(count)
            largest, worst = abs(float(basis.values[-1])), float(residuals.max())
            if len(residuals) == count and tol > 0:
                self._bar.update(gap=worst / (largest or 1.0))
            # It is small, too, if the largest eigenvalue and the residuals are only rounding.
            noise = max(self._gram.floor, _ROUNDING * abs(float(basis.values[0])))
            small = worst <= tol * largest or max(worst, largest) <= noise
            reached = len(residuals) == count and small
            if reached or over:
                break
            checks.plan_next(step, worst, tol * largest)
            if basis.full:
                basis.restart(count)
        values, vectors = basis.ritz_pairs(count)
        lowest = float(basis.values[0])
        n_iter = -(-step // narrow)
        return Eigenpairs(values, vectors, residuals[:count], lowest, n_iter, reached)


class _Checks:
    """When to check residuals: at half of the way that they have left at their present rate."""

    def __init__(self, width: int) -> None:
        self._most = max(1, _SETTINGS.unchecked // width)
        self._next, self._last = self._most, (0, np.inf)

    def due(self, step: int) -> bool:
        """Return whether to check residuals after this step."""
        return step >= self._next

    def plan_next(self, step: int, worst: float, wanted: float) -> None:
        """Choose the next check, from the largest residual of this one and what is wanted."""
        (before, then), self._last = self._last, (step, worst)
        pause = float(self._most)
        if 0 < wanted < worst < then < np.inf:
            pause = 0.5 * np.log(worst / wanted) / np.log(then / worst) * (step - before)
        self._next = step + max(1, int(min(pause, self._most)))


class _Basis:
    """Orthonormal columns Q, the matrix T = QᵀAQ, and the next block P."""

    def __init__(self, start: Floats, columns: int) -> None:
        n, self.width = start.shape
        columns = min(columns, n)
        self._Q = np.empty((n, columns), order="F")
        self._T = np.zeros((columns, columns))
        self._next = np.linalg.qr(start)[0]
        self._coupled = 0  # from this column on Q meets the next product, but for rounding
        self.size = 0

    def extend(self, dot: Dot) -> None:
        """Append the next block, and multiply it."""
        before = self.size
        self.size = m = before + self.width
        self._Q[:, before:m] = self._next
        Q, W = self._Q[:, :m], dot(self._next)
        near = Q[:, self._coupled :]
        shares = np.zeros((m, self.width))
        shares[self._coupled :] = near.T @ W
        W = W - near @ shares[self._coupled :]
        rest = Q.T @ W
        W -= Q @ rest
        shares += rest
        self._T[:m, before:m] = shares
        self._T[before:m, :before] = shares[:before].T
        P, R = np.linalg.qr(W)
        if np.abs(R.diagonal()).min() <= _SETTINGS.small_block * np.abs(shares).max():
            # Small differences are rounding in part, and that is not orthogonal to Q.
            P -= Q @ (Q.T @ P)
            P = np.linalg.qr(P)[0]
            R = P.T @ W
        self._next, self._beyond, self._coupled = P, R, before

    def find_ritz_pairs(self) -> None:
        """Set the eigenvalues and eigenvectors of T."""
        m = self.size
        T = self._T[:m, :m]
        self.values, self._S = scipy.linalg.eigh((T + T.T) / 2, driver="evd")

    def residuals(self, count: int) -> Floats:
        """Return ‖Av − θv‖ of the leading Ritz pairs, largest θ first."""
        last = self._S[-self._beyond.shape[1] :, ::-1][:, :count]
        return np.asarray(np.linalg.norm(self._beyond @ last, axis=0))

    def ritz_pairs(self, count: int) -> tuple[Floats, Floats]:
        """Return the leading Ritz values and vectors."""
        vectors = self._Q[:, : self.size] @ self._S[:, ::-1][:, :count]
        return self.values[::-1][:count].copy(), vectors

    @property
    def full(self) -> bool:
        """Whether no further block fits."""
        return bool(self.size + self.width > self._Q.shape[1])

    def restart(self, count: int) -> None:
        """Continue from the leading Ritz vectors only."""
        columns = self._Q.shape[1]
        values, vectors = self.ritz_pairs(min(count + self.width, columns - self.width))
        kept = len(values)
        self._Q[:, :kept] = vectors
        self._T[:] = 0
        self._T[np.arange(kept), np.arange(kept)] = values
        self.size, self._coupled = kept, 0
