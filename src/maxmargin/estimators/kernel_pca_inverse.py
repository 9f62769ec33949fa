"""From projections back to rows.

With the linear kernel a row is x̄ + Σ zₘ uₘ. Otherwise no row need have the projections asked for,
and one near it is sought:

- ridge: a kernel machine learns x − x̄ from the projections of the training rows (Bakır, Weston and
  Schölkopf, NIPS 2003);
- fixed point, for K = exp(−γ‖x − x′‖²): the row nearest in feature space to the point P with these
  projections, P = Σ cᵢφ(xᵢ), c = 1/n + Az, where x = Σ cᵢK(x, xᵢ)xᵢ / Σ cᵢK(x, xᵢ)
  (Mika et al., NIPS 1998). The mean is in c: its weights sum to 1.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from maxmargin.kernels import RBF, Kernel, Laplacian, Polynomial, Sigmoid

Floats = npt.NDArray[np.float64]

MOST_ROWS = 4096  # for which the ridge is solved with all rows
_SOME_ROWS = 2048  # beyond
_CHUNK = 1024
_STEPS = 200
_STILL = 1e-9  # change of a row, relative to the spread of the data


class Ridge(NamedTuple):
    """x(z) = x̄ + K(z, Z) B."""

    kernel: Kernel
    Z: Floats
    B: Floats
    mean: Floats

    def of(self, Z: Floats) -> Floats:
        """Return rows for projections."""
        right = self.kernel.prepare(self.Z)
        left = self.kernel.prepare(Z, like=right)
        return self.kernel.dot(left, right, self.B) + self.mean


def ridge(kernel: Kernel, Z: Floats, X: Floats, alpha: float, rng: np.random.Generator) -> Ridge:
    """Learn rows from projections; from many rows, by an expansion over some of them."""
    if type(kernel) not in (RBF, Laplacian, Polynomial, Sigmoid):
        # Kernels of histograms, columns or objects mean nothing for projections.
        kernel = RBF(gamma="scale").resolved(Z)
    mean = X.mean(axis=0, dtype=np.float64)
    targets = X.astype(np.float64) - mean
    if len(Z) <= MOST_ROWS:
        K = kernel.gram(Z)
        K.flat[:: len(K) + 1] += alpha
        return Ridge(kernel, Z, _solved(K, targets), mean)
    some = Z[np.sort(rng.choice(len(Z), _SOME_ROWS, replace=False))]
    A = alpha * kernel.gram(some)
    right = np.zeros((_SOME_ROWS, targets.shape[1]))
    for top in range(0, len(Z), _CHUNK):
        K = kernel.gram(Z[top : top + _CHUNK], some)
        A += K.T @ K
        right += K.T @ targets[top : top + _CHUNK]
    return Ridge(kernel, some, _solved(A, right), mean)


def _solved(A: Any, right: Floats) -> Floats:
    try:
        return np.asarray(scipy.linalg.solve(A, right, assume_a="pos"))
    except np.linalg.LinAlgError:  # indefinite, or singular to rounding
        return np.asarray(scipy.linalg.lstsq(A, right)[0])


def fixed_point(
    kernel: Kernel, Z: Floats, rows: Any, A: Floats, base: Floats, trained: Floats
) -> Floats:
    """Return the rows nearest in feature space, each sought from the nearest training row.

    Parameters
    ----------
    kernel : RBF
        The kernel.
    Z : array of shape (m, k)
        Projections.
    rows : matrix of shape (n, d)
        The rows of the expansion.
    A : array of shape (n, k)
        Coefficients of the directions.
    base : array of shape (n,)
        Coefficients of the mean in feature space.
    trained : array of shape (n, k)
        Projections of ``rows``.
    """
    X = rows.astype(np.float64)
    right = kernel.prepare(X)
    out = np.empty((len(Z), X.shape[1]))
    dense = X.toarray() if hasattr(X, "toarray") else X
    still = _STILL * float(np.sqrt(dense.var(axis=0).sum()) or 1.0)
    for top in range(0, len(Z), _CHUNK):
        z = Z[top : top + _CHUNK]
        weights = base + z @ A.T
        apart = (trained**2).sum(axis=1) - 2 * z @ trained.T
        out[top : top + _CHUNK] = _iterated(
            kernel, dense[np.argmin(apart, axis=1)], weights, dense, right, still
        )
    return out


def _iterated(
    kernel: Kernel, start: Floats, weights: Floats, X: Floats, right: Any, still: float
) -> Floats:
    x = start.copy()
    moving = np.arange(len(x))
    for _ in range(_STEPS):
        K = kernel.block(kernel.prepare(x[moving], like=right), right) * weights[moving]
        total = K.sum(axis=1)
        # Where the weighted kernel vanishes the step is not defined: the row stays.
        stuck = total <= 1e-12 * np.abs(K).sum(axis=1)
        new = np.where(stuck[:, None], x[moving], (K @ X) / np.where(stuck, 1.0, total)[:, None])
        change = np.linalg.norm(new - x[moving], axis=1)
        x[moving] = new
        moving = moving[change > still]
        if not len(moving):
            break
    return x
