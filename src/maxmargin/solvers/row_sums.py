"""Sums over the rows of a problem, as maps over its blocks of rows."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.data.blocks import RowsInMemory
from maxmargin.geometry.inputs import BLOCK_SIZE, blocks
from maxmargin.problems.problem import Intercept, LinearProblem

_BUFFER_BYTES = 1 << 19
_CACHED = 1 << 14  # numbers


class Sums(NamedTuple):
    """What a pass over scores adds up."""

    loss: float
    gain: float  # Σβ over β > 0
    gain_value: float  # Σ tβ − slope|β| there
    gain_square: float  # Σ ½ shift β² there
    lost: float  # −Σβ over β < 0
    lost_value: float
    lost_square: float

    def dual(self, gain_scale: float, lost_scale: float) -> float:
        """Return the dual objective but for ½‖w‖², either side of β scaled."""
        return (
            gain_scale * self.gain_value
            - gain_scale**2 * self.gain_square
            + lost_scale * self.lost_value
            - lost_scale**2 * self.lost_square
        )


class Passes:
    """The rows of a problem, measured from a centre, and the passes over them."""

    def __init__(
        self, problem: LinearProblem, threads: int | None = None, *, centred: bool = True
    ) -> None:
        X = problem.features.X
        self.n, self.d = X.shape
        self.loss = problem.loss
        self.rows = loops.rows.rows(X)
        self.sparse = bool(sp.issparse(X))
        per_row = X.nnz / self.n if self.sparse else self.d
        self.outer = self.sparse and 2.5 * per_row < self.d
        centred = centred and problem.intercept is Intercept.FREE and not self.outer
        self.blocks = RowsInMemory(X, threads)
        self.centre = self._mean(X) if centred else np.zeros(self.d)

    def scores(self, w: Floats, b: float, out: Floats) -> Floats:
        """Set out = (x − centre)·w + b for every row."""
        offset = b - float(self.centre @ w) if self.sparse else b
        self.blocks.map(
            lambda begin, end: loops.newton.scores(
                self.rows, begin, end, self.centre, w, offset, out
            ),
        )
        return out

    def add(self, t: float, q: Floats, f: Floats) -> None:
        """Do f += t·q."""

        def add_block(begin: int, end: int) -> None:
            f[begin:end] += t * q[begin:end]

        self.blocks.map(add_block, 2 * self.n)

    def scaled(self, beta: Floats, gain_scale: float, lost_scale: float) -> Floats:
        """Return β with either side scaled."""
        out = np.empty(self.n)

        def scale_block(begin: int, end: int) -> None:
            part = beta[begin:end]
            np.multiply(part, np.where(part > 0, gain_scale, lost_scale), out=out[begin:end])

        self.blocks.map(scale_block, 2 * self.n)
        return out

    def losses(self, f: Floats) -> float:
        """Return Σ ℓ at the scores f."""
        parts = self.blocks.map(
            lambda begin, end: loops.newton.losses(self.loss, begin, end, f), 4 * self.n
        )
        return float(sum(parts))

    def line(
        self, f: Floats, q: Floats, prox_centre: Floats, width: float, step: float
    ) -> tuple[float, float]:
        """Return the derivatives of the smoothed losses along q at f + step·q."""
        parts = self.blocks.map(
            lambda begin, end: loops.newton.line(
                self.loss, begin, end, f, q, prox_centre, width, step
            ),
            4 * self.n,
        )
        return sum(part[0] for part in parts), sum(part[1] for part in parts)

    def duals(self, f: Floats, prox_centre: Floats, width: float, beta: Floats, h: Floats) -> Sums:
        """Set β and h of every row, and return their sums."""
        parts = self.blocks.map(
            lambda begin, end: loops.newton.duals(
                self.loss, begin, end, f, prox_centre, width, beta, h
            ),
            4 * self.n,
        )
        return Sums(*(sum(column) for column in zip(*parts, strict=True)))

    def curvature(self, beta: Floats, h: Floats, sums: Sums) -> tuple[Floats, Floats, Floats]:
        """Return Σβ(x − c) over β > 0 and over β < 0, and Σh(x − c, 1)(x − c, 1)ᵀ.

        Of the last only the upper triangle is sure to be there.
        """
        work = self._outer if self.outer else self._gather
        parts = self.blocks.map(lambda begin, end: work(begin, end, beta, h))
        gains, losses, hessian = parts[0]
        for more in parts[1:]:
            gains += more[0]
            losses += more[1]
            hessian += more[2]
        if self.sparse and not self.outer:
            gains -= sums.gain * self.centre
            losses += sums.lost * self.centre
        return gains, losses, hessian

    def _mean(self, X: Any) -> Floats:
        """Return the mean of each column; of a constant one in a dense X, exactly its value."""
        if self.sparse:
            return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        self.centre = X[0].astype(np.float64)
        return np.asarray(self.centre + self.combination(np.ones(self.n)) / self.n)

    def combinations(self, beta: Floats) -> tuple[Floats, Floats]:
        """Return Σβ(x − c) over β > 0 and over β < 0."""

        def combine(begin: int, end: int) -> tuple[Floats, Floats]:
            gains, losses = np.zeros((2, self.d))
            loops.newton.combine(self.rows, begin, end, self.centre, beta, gains, losses)
            return gains, losses

        gains, losses = np.zeros((2, self.d))
        read = self.blocks.numbers * np.count_nonzero(beta) / max(self.n, 1)
        for more in self.blocks.map(combine, read):
            gains += more[0]
            losses += more[1]
        if self.sparse and self.centre.any():
            gains -= float(beta[beta > 0].sum()) * self.centre
            losses -= float(beta[beta < 0].sum()) * self.centre
        return gains, losses

    def combination(self, beta: Floats) -> Floats:
        """Return Σβ(x − c)."""
        gains, losses = self.combinations(beta)
        return gains + losses

    def _gather(self, begin: int, end: int, beta: Floats, h: Floats) -> tuple[Floats, ...]:
        width = self.d + 1
        gains, losses, hessian = np.zeros(self.d), np.zeros(self.d), np.zeros((width, width))
        buffer = np.empty((max(32, min(end - begin, _BUFFER_BYTES // (8 * width))), width))
        while begin < end:
            begin, filled = loops.newton.gather(
                self.rows, begin, end, self.centre, beta, h, gains, losses, buffer
            )
            if filled:
                hessian += buffer[:filled].T @ buffer[:filled]
        return gains, losses, hessian

    def _outer(self, begin: int, end: int, beta: Floats, h: Floats) -> tuple[Floats, ...]:
        gains, losses = np.zeros(self.d), np.zeros(self.d)
        hessian = np.zeros((self.d + 1, self.d + 1))
        loops.newton.outer(self.rows, begin, end, beta, h, gains, losses, hessian)
        return gains, losses, hessian


def repaired(problem: LinearProblem, passes: Passes, beta: Floats) -> tuple[Floats, float]:
    """Return β with Σβ = 0 where the intercept is free, and its dual objective.

    The heavier side is scaled down, and then both if that helps. ``passes`` must not be centred.
    """
    loss = problem.loss
    gains, losses = passes.combinations(beta)
    gain, lost = float(beta[beta > 0].sum()), -float(beta[beta < 0].sum())
    if problem.intercept is Intercept.FREE and gain != lost:
        gain_scale, lost_scale = (lost / gain, 1.0) if gain > lost else (1.0, gain / lost)
        beta = np.where(beta > 0, gain_scale, lost_scale) * beta
        gains, losses = gain_scale * gains, lost_scale * losses
    implied = gains + losses
    linear = float((loss.target * beta - loss.epsilon * np.abs(beta)).sum())
    square = float(implied @ implied) + float((loss.quadratic * beta * beta).sum())
    square += (problem.features.constant * (gain - lost)) ** 2
    scale = min(1.0, max(linear, 0.0) / square) if square > 0 else 1.0
    return scale * beta, scale * linear - 0.5 * scale**2 * square


def sum_squares(X: Any, weight: Floats, centre: Floats) -> Floats:
    """Return Σ weightᵢ(xᵢⱼ − centreⱼ)² of each column j (sparse rows have no centre)."""
    if sp.issparse(X):
        return np.asarray(X.astype(np.float64, copy=False).power(2).T @ weight)
    total, start = np.zeros(X.shape[1]), 0
    for block in _small_blocks(X):
        total += weight[start : start + len(block)] @ (block - centre) ** 2
        start += len(block)
    return total


def _small_blocks(X: Any) -> Iterator[Any]:
    """Yield consecutive rows as float64, few enough to stay in the cache with a copy of them."""
    return blocks(X, BLOCK_SIZE // max(1, _CACHED // X.shape[1]))
