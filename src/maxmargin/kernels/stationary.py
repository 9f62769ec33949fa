"""Kernels of a distance: Gaussian (RBF) and Laplacian. Both are stationary."""

import math
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats
from maxmargin.kernels.base import KernelWithGamma
from maxmargin.kernels.dot_products import Linear
from maxmargin.kernels.prepared import (
    BUFFER_COLUMNS,
    FloatArray,
    PreparedRows,
    Source,
    SparseRows,
    absolute_sums,
    as_dense,
    count_terms,
    fill_dense,
    fill_products,
    fill_sums,
    squared_norms,
)
from maxmargin.kernels.tiles import FLOAT32_ERROR, WORK, scratch
from maxmargin.loops.records import read_only
from maxmargin.runtime import clock
from maxmargin.runtime.threads import share_work

# The loops raise 2, not e, to a power: it is cheaper and as accurate.
LOG2_E = math.log2(math.e)
FLOAT64_ERROR = 1e-9  # of γ‖x − x′‖²: beyond it, float64 computes differences instead of norms
_AT_ONCE = 64  # rows of a matrix whose distances become values
_BY_DIFFERENCES = 5e6  # n²·d up to which certificates compare rows by their differences


_U = 2.0**-24  # half of float32's ε
_MODERATE = 1e-30  # γ between this and its inverse, and rows as float32 takes them: no underflow
_FAR_OUT, _FEW = 10.0, 0.01  # the error of rows that are far out, and how many may be
_MOST_TERMS = 1e6  # of a sum in float32 whose error is known


def exponent_rounding(terms: float, sizes: FloatArray) -> tuple[Floats, Floats] | None:
    """Return what ``Kernel.float32_rounding`` does, for 2^t with t off by ``terms``·u·sizes each.

    2^t itself is off by less than 4u (see ``loops.kernel_tiles``), of which 3u are counted for
    either row.
    """
    if terms > _MOST_TERMS:
        return None
    part = terms * _U / (1 - terms * _U)
    return 1.0001 * part * sizes.astype(np.float64) + 3 * _U, np.zeros(len(sizes))


class RBF(KernelWithGamma):
    """The Gaussian kernel, K = exp(−γ ‖x − x′‖²).

    Parameters
    ----------
    gamma : float, "scale" or "auto", default=1.0
        γ > 0; a large one makes the kernel narrow. ``resolved(X)`` replaces the two words by
        numbers: 1/(d·Var X) and 1/d.

    Notes
    -----
    Distances come from norms and one matrix product, of dense rows after subtracting their mean.

    Examples
    --------
    >>> from maxmargin.kernels import RBF
    >>> RBF(gamma=0.5).gram([[0.0], [1.0], [2.0]]).round(3)
    array([[1.   , 0.607, 0.135],
           [0.607, 1.   , 0.607],
           [0.135, 0.607, 1.   ]])
    >>> RBF(gamma="scale").resolved([[0.0], [1.0], [2.0]])
    RBF(gamma=1.5)
    """

    psd = True
    stationary = True
    nonnegative = True
    bounded = True
    needs_centring = True

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Keep the rows minus their origin and γ log₂e ‖x‖², or the rows alone."""
        rows = source.centred
        norms = squared_norms(rows)
        # The error of γ‖x − x′‖² in this type is the relative error of the value.
        error = self._gamma * np.finfo(norms.dtype).eps * norms.max(initial=0)
        if norms.dtype != np.float64 and error > FLOAT32_ERROR:
            rows = source.cast(np.float64).centred
            norms = squared_norms(rows)
            error = self._gamma * np.finfo(np.float64).eps * norms.max(initial=0)
        if norms.dtype == np.float64 and error > FLOAT64_ERROR:
            return PreparedRows(source, rows)
        prepared = PreparedRows(source, rows, norms.dtype.type(self._gamma * LOG2_E) * norms)
        prepared.wide = isinstance(rows, np.ndarray) and rows.dtype == source.dtype
        return prepared

    def narrowed(self, a: PreparedRows) -> PreparedRows | None:
        """Return the rows in float32 with their own norms, unless these would cancel too much.

        A few rows may be far out: nearly all of their values are near 0.
        """
        if len(a.parts) < 2 or not _MODERATE < self._gamma < 1 / _MODERATE:
            return None
        error = a.parts[1] * (float(np.finfo(np.float32).eps) / LOG2_E)
        if error.max(initial=0.0) > _FAR_OUT * FLOAT32_ERROR:
            return None
        if np.count_nonzero(error > FLOAT32_ERROR) > _FEW * len(a):
            return None
        if (narrow := a.narrowed()) is None:
            return None
        rows = narrow.parts[0]
        norms = self._gamma * LOG2_E * squared_norms(rows, np.float64)
        return narrow.with_parts([rows, norms.astype(np.float32)])

    def gaussian_factor(self, a: PreparedRows) -> float | None:
        """Return 2γ log₂e, if there are norms and the rows are dense."""
        dense = len(a.parts) == 2 and isinstance(a.parts[0], np.ndarray)
        return 2 * self._gamma * LOG2_E if dense else None

    def float32_rounding(self, a: PreparedRows) -> tuple[Floats, Floats] | None:
        """Return the rounding of the exponent, as a part of values.

        In units of u(γ‖x‖² + γ‖x′‖²), where u is half of float32's ε: d products and their sum, the
        rows themselves 4, the factor and the product with it 2, the norms 1, differences 4.
        """
        terms = count_terms(a.parts[0]) + 12
        return exponent_rounding(terms, a.parts[1] / LOG2_E)

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Fill a tile, in float64 if one side was prepared in it; without norms, by differences."""
        x, z = a.parts[0], b.parts[0]
        if out.dtype != np.float64 and np.float64 in (x.dtype, z.dtype):
            with scratch(out.shape, np.float64) as wide:
                self.fill_tile(a, b, wide)
                out[...] = wide
        elif len(a.parts) == len(b.parts) == 2:
            (_, x_norms), (_, z_norms), factor = a.parts, b.parts, 2 * self._gamma * LOG2_E
            if isinstance(x, SparseRows) or isinstance(z, SparseRows):
                fill_products(a, b, out)
                x_norms, z_norms = (
                    each.astype(out.dtype, copy=False) for each in (x_norms, z_norms)
                )
                loops.kernel_tiles.exponential_of_sums(
                    out, out.dtype.type(factor), x_norms, z_norms
                )
            else:
                fill_dense(a, x_norms, b, z_norms, factor, out, exponential=True)
        else:
            x = as_dense(x).astype(np.float64, copy=False)
            z = as_dense(z).astype(np.float64, copy=False)
            fill_sums(loops.kernel_tiles.Squares(), x, z, out)
            loops.kernel_tiles.exponential(out, -self._gamma * LOG2_E)

    def sums(self, b: PreparedRows, weights: FloatArray, run: int) -> "GaussianSums | None":
        """Return sums by compiled code, in which no value leaves the nearest cache."""
        if not b.wide:
            return None
        z = b.strips(b.dtype, b.parts[1])
        padded = np.zeros((weights.shape[1], len(z.numbers)), b.dtype)
        padded[:, : len(b)] = weights.T
        factor = b.dtype.type(2 * self._gamma * LOG2_E)
        return GaussianSums(z, read_only(padded), factor, min(run, BUFFER_COLUMNS), len(b))

    def squared_distances(self, a: PreparedRows, threads: int | None) -> FloatArray | None:
        """Return ‖x − x′‖² of all pairs of rows, which all γ share; None: not of such rows."""
        rows = a.parts[0]
        if len(a.parts) < 2 or isinstance(rows, SparseRows):
            return None
        linear, norms = Linear(), squared_norms(rows)
        prepared = linear.prepare(rows)
        out = linear.block(prepared, prepared, threads=threads)
        for top in range(0, len(out), _AT_ONCE):  # symmetric to the last bit, as the products are
            some = slice(top, top + _AT_ONCE)
            out[some] = np.maximum((norms[some, np.newaxis] + norms) - 2 * out[some], 0)
        np.fill_diagonal(out, 0)
        return out

    def block_of_distances(self, distances: FloatArray, out: FloatArray, threads: int) -> None:
        """Fill a matrix of K, given ‖x − x′‖² of all rows."""
        factor = out.dtype.type(-self._gamma * LOG2_E)

        def fill(top: int) -> None:
            some = out[top : top + _AT_ONCE]
            some[...] = distances[top : top + _AT_ONCE]
            loops.kernel_tiles.exponential(some, factor)

        fill(0)
        share_work(fill, deque(range(_AT_ONCE, len(out), _AT_ONCE)), threads)

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Return ones."""
        return np.ones(len(a), a.dtype)

    def rounding(self, a: PreparedRows) -> Floats:
        """Return the rounding of ‖x − x′‖², computed from norms or from centred differences."""
        rows = a.parts[0]
        if len(a.parts) > 1:  # the norms carry γ log₂e
            return np.asarray(4 + (count_terms(rows) + 6) * a.parts[1] / LOG2_E, np.float64)
        lengths = np.sqrt(self._gamma * squared_norms(rows.astype(np.float64, copy=False)))
        return np.asarray(4 + 0.2 * (count_terms(rows) + 4) + lengths, np.float64)

    def sharpened(self, a: PreparedRows) -> PreparedRows:
        """Return rows without norms if they are few: these are compared by their differences."""
        values = len(a) ** 2 * (a.width or 0)
        few = values <= _BY_DIFFERENCES and a.dtype == np.float64
        if few:
            a = a.with_parts(a.parts[:1])
            a.wide = False
        return a

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Use ∂K/∂x = −2γ (x − z) K."""
        G = W * self.gram(X, Z)
        # Measured from an origin near the rows: a large mean would cost digits.
        centre = Z.mean(axis=0)
        away = G.sum(axis=1)[:, None] * (X - centre) - G @ (Z - centre)
        return np.asarray(-2.0 * self._gamma * away)

    def to_gaussian_process(self, gp: Any, convert: Any) -> Any:
        """Return RBF(length_scale), with γ = 1/(2·length_scale²)."""
        return gp.RBF(length_scale=float(1 / np.sqrt(2 * self._gamma)))


class GaussianSums(NamedTuple):
    """Sums Σ K(x, z)·weights over rows z in strips."""

    z: Any
    weights: FloatArray  # a row for each sum, with 0 for what the last strip has too many
    factor: Any
    run: int
    size: int  # how many rows z there are

    def add(self, a: PreparedRows, out: Floats) -> None:
        """Add the sums of some rows."""
        none = self.weights[:, :0]
        self._add(a, 0, out, len(self.z.values), none, np.empty((len(none), 0), none.dtype))

    def add_half(self, a: PreparedRows, top: int, out: Floats) -> None:
        """Add the sums of some rows z, the first of which begins a strip, as far as z ≥ these.

        And the sums of those beyond these rows, as far as they are sums over these rows.
        """
        lanes, bottom = self.z.values.shape[2], top + len(a)
        own = np.ascontiguousarray(self.weights[:, top:bottom])
        turned = np.zeros_like(self.weights)
        beyond = -(-bottom // lanes)
        self._add(a, top // lanes, out[top:bottom], beyond, read_only(own), turned)
        out[bottom:] += turned[:, bottom : self.size].T

    def _add(self, a: PreparedRows, first: int, out: Floats, beyond: int, own: FloatArray,
             turned: FloatArray) -> None:  # fmt: skip
        rows, norms, dtype = read_only(a.parts[0]), read_only(a.parts[1]), self.weights.dtype
        memory = np.empty((loops.intrinsics.ROWS, BUFFER_COLUMNS), dtype)
        count, columns, lanes = self.z.values.shape
        whole = BUFFER_COLUMNS // lanes
        step = max(1, WORK // (len(rows) * BUFFER_COLUMNS * (columns + 32))) * whole
        for begin in range(first, count, step):
            clock.check()
            loops.kernel_tiles.gaussian_sums(
                rows, norms, self.z, self.factor, self.weights, self.run, begin,
                min(begin + step, count), memory, out, beyond, own, turned,
            )  # fmt: skip


class ExponentialOfSum(KernelWithGamma):
    """K = exp(−γ Σₖ t(xₖ, x′ₖ)) for terms t ≥ 0 with t(x, x) = 0.

    Sparse rows need only the columns that both store, as t(x, z) = |x| + |z| − w·s(x, z), where
    s(x, z) is 0 if x or z is.
    """

    float32_safe = True  # nothing cancels
    nonnegative = True
    _shared_weight: float  # w

    def _term(self) -> Any:
        """Return the record of the compiled loops for t (dense rows) and s (sparse rows)."""
        raise NotImplementedError(f"{type(self).__name__} does not define _term")

    def prepare_rows(self, source: Source) -> PreparedRows:
        """Keep the rows and γ log₂e ‖x‖₁."""
        factor = source.dtype.type(self._gamma * LOG2_E)
        return PreparedRows(source, source.rows, factor * absolute_sums(source.rows))

    def fill_tile(self, a: PreparedRows, b: PreparedRows, out: FloatArray) -> None:
        """Fill a tile, of dense rows over all columns, else over the columns that both store."""
        (x, x_sums), (z, z_sums) = a.parts, b.parts
        factor = self._gamma * LOG2_E
        fill_sums(self._term(), x, z, out)
        if not isinstance(x, SparseRows) and not isinstance(z, SparseRows):
            loops.kernel_tiles.exponential(out, out.dtype.type(-factor))
        else:
            shared = out.dtype.type(self._shared_weight * factor)
            loops.kernel_tiles.exponential_of_sums(out, shared, x_sums, z_sums)

    def diagonal(self, a: PreparedRows) -> FloatArray:
        """Return ones."""
        return np.ones(len(a), a.dtype)

    def rounding(self, a: PreparedRows) -> Floats:
        """Return the rounding of the sum over all columns, or over those that sparse rows share."""
        rows, sums_of_rows = a.parts
        if isinstance(rows, SparseRows):
            return np.asarray(4 + (2 * count_terms(rows) + 6) * sums_of_rows / LOG2_E, np.float64)
        # A sum z is off by εz/2 for each term, and z·exp(−z) is at most 0.37.
        return np.full(len(a), 4 + 0.2 * (count_terms(rows) + 6))


class Laplacian(ExponentialOfSum):
    """The Laplacian kernel, K = exp(−γ ‖x − x′‖₁).

    Parameters
    ----------
    gamma : float, "scale" or "auto", default=1.0
        γ > 0; a large one makes the kernel narrow. ``resolved(X)`` replaces the two words by
        numbers.

    Examples
    --------
    >>> from maxmargin.kernels import Laplacian
    >>> Laplacian().gram([[0.0], [1.0], [3.0]]).round(3)
    array([[1.   , 0.368, 0.05 ],
           [0.368, 1.   , 0.135],
           [0.05 , 0.135, 1.   ]])
    """

    psd = True
    stationary = True
    pairwise_metric = "laplacian"
    _shared_weight = -1.0

    def _term(self) -> Any:
        return loops.kernel_tiles.Differences()

    def narrowed(self, a: PreparedRows) -> PreparedRows | None:
        """Return the rows in float32, dense ones after a shift that lets it keep more digits."""
        rows = a.parts[0]
        if not isinstance(rows, SparseRows):
            a = a.with_parts([rows - rows.mean(axis=0), a.parts[1]])
        if (narrow := a.narrowed()) is None or not _MODERATE < self._gamma < 1 / _MODERATE:
            return None
        rows = narrow.parts[0]
        sums = self._gamma * LOG2_E * absolute_sums(rows, np.float64)
        return narrow.with_parts([rows, sums.astype(np.float32)])

    def float32_rounding(self, a: PreparedRows) -> tuple[Floats, Floats] | None:
        """Return the rounding of the exponent, as a part of values.

        In units of u(γ‖x‖₁ + γ‖x′‖₁): d terms, the rows themselves 2, three differences in each of
        the terms of sparse rows 3, the factor and the product with it 2, the sums 1, differences 4.
        """
        return exponent_rounding(count_terms(a.parts[0]) + 13, a.parts[1] / LOG2_E)

    def weighted_gradient(self, X: Floats, Z: Floats, W: Floats) -> Floats:
        """Use ∂K/∂xₖ = −γ sign(xₖ − zₖ) K."""
        G = -self._gamma * W * self.gram(X, Z)
        return sum_slopes(lambda x, z: np.sign(x - z), G, X, Z)


def sum_slopes(slope: Callable[[Any, Any], Any], G: Floats, X: Floats, Z: Floats) -> Floats:
    """Return Σⱼ Gᵢⱼ slope(xᵢₖ, zⱼₖ) for each row i, one column k after the other."""
    columns = range(X.shape[1])
    return np.column_stack([(G * slope(X[:, k, None], Z[None, :, k])).sum(axis=1) for k in columns])
