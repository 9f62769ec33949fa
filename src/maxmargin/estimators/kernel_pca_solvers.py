"""Kernel PCA by the Gram matrix: which way to its eigenpairs, and in which number type."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import clock
from maxmargin.estimators.kernel_pca_eigen import (
    Budget,
    Eigenpairs,
    Times,
    block_width,
    dense,
    krylov,
    refined,
)
from maxmargin.estimators.kernel_pca_gram import CentredGram, rounding, size
from maxmargin.kernels import Kernel, Precomputed
from maxmargin.progress import Bar, progress

_SMALL = 1000  # rows up to which LAPACK is as fast as anything
_ALWAYS_DOUBLE = 2000  # rows up to which float32 would save nothing worth having
_COPIES = 4  # of the matrix, that LAPACK needs
_BLOCKS = 12  # in the basis, unless memory is short
_LEAST_BLOCKS = 4
_FOLLOWING = 5  # products in float32 that take as long as what follows a search


@dataclass(frozen=True)
class Task:
    """What is asked for: the largest eigenpairs of HKH on the rows X."""

    kernel: Kernel
    X: Any
    count: int
    tol: float
    max_iter: int
    max_time: float | None
    memory: int
    threads: int | None
    rng: np.random.Generator

    def __len__(self) -> int:
        return int(self.X.shape[0])


def too_few(task: Task) -> bool:
    """Return whether a basis of some blocks would be about as large as the matrix."""
    width = task.count + max(4, task.count // 10)
    return len(task) < task.count + (_LEAST_BLOCKS + 1) * width


def direct(task: Task) -> bool:
    """Return whether LAPACK is the better choice for so many eigenpairs, and fits."""
    n, width = len(task), block_width(task.count, True)
    small = n <= _SMALL or 6 * max(width, task.count) >= n
    return small and _COPIES * size(n, np.float64) <= max(task.memory, size(_SMALL, "f8"))


def solve_dense(task: Task) -> tuple[Eigenpairs, CentredGram]:
    """Return the eigenpairs by LAPACK."""
    needed = _COPIES * size(len(task), np.float64)
    if needed > max(task.memory, size(_SMALL, "f8")):
        raise ValueError(
            f"All eigenpairs of {len(task)} rows need {needed / 1e9:.3g} GB, and "
            f"memory={task.memory} bytes are allowed: ask for fewer n_components with "
            "eigen_solver='iterative', choose eigen_solver='nystroem', or allow more memory."
        )
    gram = _gram(task, _exact(task))
    return dense(gram.centred(), task.count, whole=task.kernel.psd is not True), gram


def solve_iterative(task: Task) -> tuple[Eigenpairs, CentredGram]:
    """Return the eigenpairs from products with blocks.

    On many rows the search is in float32, if its rounding is far below ``tol``; what is returned
    is proven in float64 in any case.
    """
    with progress(
        "Finding components",
        unit="product",
        tol=task.tol,
        measure="residual",
        max_time=task.max_time,
    ) as bar:
        pace = _Pace(task.max_time)
        with clock.limited(pace.allowed):
            return _iterated(task, bar, pace)


class _Pace:
    """How long products take, and whether there is time for more.

    What follows a search, in float64 and for the means of columns, may end a fifth of ``max_time``
    and half a second late. A first product that takes half of that as well is given up: there must
    be time for another way.
    """

    def __init__(self, max_time: float | None) -> None:
        self.allowed = None if max_time is None else 1.2 * max_time + 0.5
        self._started, self._max_time = clock.now(), np.inf if max_time is None else max_time
        self._longest = 0.0

    def timed(self, times: Times, V: Any) -> Any:
        """Return a product, and remember what it took."""
        started = clock.now()
        most = None
        if self.allowed is not None and self._longest == 0.0:
            most = self._started + 0.5 * (self._max_time + self.allowed) - started
        with clock.limited(most):
            product = times(V)
        self._longest = max(self._longest, clock.now() - started)
        return product

    def late(self) -> bool:
        """Return whether it is time for what follows a search."""
        gone = clock.now() - self._started
        following = gone + _FOLLOWING * self._longest
        return gone > self._max_time or (self.allowed is not None and following > self.allowed)


def _iterated(task: Task, bar: Bar, pace: _Pace) -> tuple[Eigenpairs, CentredGram]:
    prepared = _exact(task)
    single = _single(task, prepared)
    if single is None:
        gram = _gram(task, prepared)
        return _search(task, gram, task.max_iter, pace, bar), gram
    found = _search(task, _gram(task, single), task.max_iter, pace, bar)
    gram = _gram(task, prepared, keep=False)  # for one product
    proven = refined(gram.times, found.vectors)
    steps = found.n_iter + 1
    reached = bool(proven.residuals.max() <= task.tol * abs(proven.values[0]))
    lowest = min(found.lowest, proven.lowest)
    if not reached and steps < task.max_iter and not pace.late():
        gram = _gram(task, prepared)
        again = _search(task, gram, task.max_iter - steps, pace, bar, proven.vectors)
        lowest = min(lowest, again.lowest)
        return again._replace(n_iter=steps + again.n_iter, lowest=lowest), gram
    return proven._replace(n_iter=steps, converged=reached, lowest=lowest), gram


def _search(
    task: Task, gram: CentredGram, max_iter: int, pace: _Pace, bar: Bar, start: Any = None
) -> Eigenpairs:
    n, width = len(task), block_width(task.count, gram.kept)
    if start is None:
        start = task.rng.standard_normal((n, width))
    width = start.shape[1]
    affordable = task.memory // (4 * 8 * n)
    least = task.count + _LEAST_BLOCKS * width
    usual = _BLOCKS * block_width(task.count, False)
    columns = min(max(least, min(usual, affordable)), n - width)

    def tell(residual: float) -> None:
        bar.update(gap=residual)

    budget = Budget(task.tol, max_iter, pace.late, columns, gram.floor, tell)

    def times(V: Any) -> Any:
        bar.advance()
        return pace.timed(gram.times, V)

    return krylov(times, start, task.count, budget, task.rng)


def _gram(task: Task, prepared: Any, keep: bool = True) -> CentredGram:
    gram = CentredGram(task.kernel, prepared, task.memory if keep else 0, task.threads)
    if isinstance(task.kernel, Precomputed):  # rounded before it came here
        gram.eps = float(np.finfo(task.X.dtype).eps)
    return gram


def _exact(task: Task) -> Any:
    X = task.X
    if isinstance(task.kernel, Precomputed) or not task.kernel.takes_objects:
        X = X.astype(np.float64, copy=False)
    return task.kernel.prepare(X)


def _single(task: Task, exact: Any) -> Any:
    """Return the rows prepared in float32, or None if they are few or its rounding would show."""
    if len(task) <= _ALWAYS_DOUBLE or task.kernel.takes_gram or task.kernel.takes_objects:
        return None
    prepared = task.kernel.prepare_float32(task.X)
    if prepared is None or rounding(task.kernel, prepared, exact) > task.tol / 2:
        return None
    return prepared
