"""Pre-images: from projections back to rows.

With the linear kernel a row is x̄ + Σ zₘ uₘ. With other kernels there may be no row with the given
projections, and one whose projections are near is sought:

- ridge: a kernel machine learns x − x̄ from the projections of the training rows (Bakır, Weston and
  Schölkopf, NIPS 2003);
- fixed point, for K = exp(−γ‖x − x′‖²): the row nearest in feature space to the point P with these
  projections, P = Σ cᵢφ(xᵢ), c = 1/n + Az, where x = Σ cᵢK(x, xᵢ)xᵢ / Σ cᵢK(x, xᵢ)
  (Mika et al., NIPS 1998). The mean is in c: its weights sum to 1; those of rows replace 1/n by π.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from maxmargin._typing import Floats
from maxmargin.kernels import RBF, Kernel, Laplacian, Polynomial, Sigmoid


@dataclass(frozen=True)
class PreimageSettings:
    """How much is computed for pre-images."""

    all_rows: int = 4096  # up to which the ridge is an expansion over all rows …
    some_rows: int = 2048  # … and over this many of more
    chunk: int = 1024  # rows at a time
    steps: int = 200  # of a fixed point, at most
    converged: float = 1e-9  # change of a row in a step, relative to the spread of the data
    vanished: float = 1e-12  # of Σ|cᵢ|K(x, xᵢ): below, Σ cᵢK(x, xᵢ) counts as 0


_SETTINGS = PreimageSettings()


class RidgePreimage(NamedTuple):
    """x(z) = x̄ + K(z, Z) B."""

    kernel: Kernel
    Z: Floats
    B: Floats
    mean: Floats

    def invert(self, Z: Floats) -> Floats:
        """Return rows for projections."""
        right = self.kernel.prepare(self.Z)
        left = self.kernel.prepare(Z, like=right)
        return self.kernel.dot(left, right, self.B) + self.mean


def learn_ridge(
    kernel: Kernel, Z: Floats, X: Any, weight: Floats, alpha: float, rng: np.random.Generator
) -> RidgePreimage:
    """Learn rows from projections; from many rows, by an expansion over some of them.

    Minimised is Σ wᵢ‖xᵢ − x̄ − f(zᵢ)‖² + α‖f‖².
    """
    if kernel.takes_gram or kernel.takes_objects:
        raise ValueError(
            "fit_inverse_transform=True needs rows of numbers: a precomputed kernel, or one of "
            "objects, has none to go back to."
        )
    if sp.issparse(X):
        raise TypeError(
            "fit_inverse_transform=True makes dense rows: pass X.toarray(), or leave it False."
        )
    if type(kernel) not in (RBF, Laplacian, Polynomial, Sigmoid):
        # Kernels of histograms or columns are meaningless for projections.
        even = (weight == weight[0]).all()
        kernel = RBF(gamma="scale").resolved(Z, None if even else weight)
    share = weight / weight.sum()
    targets = X.astype(np.float64)
    mean = share @ targets
    targets -= mean
    if len(Z) <= _SETTINGS.all_rows:
        K = kernel.gram(Z)
        K.flat[:: len(K) + 1] += alpha / weight
        return RidgePreimage(kernel, Z, _solve(K, targets), mean)
    some = Z[np.sort(rng.choice(len(Z), _SETTINGS.some_rows, replace=False))]
    A = alpha * kernel.gram(some)
    right = np.zeros((len(some), targets.shape[1]))
    for top in range(0, len(Z), _SETTINGS.chunk):
        part = slice(top, top + _SETTINGS.chunk)
        K = kernel.gram(Z[part], some)
        weighted = K.T * weight[part]
        A += weighted @ K
        right += weighted @ targets[part]
    return RidgePreimage(kernel, some, _solve(A, right), mean)


def _solve(A: Any, right: Floats) -> Floats:
    try:
        return np.asarray(scipy.linalg.solve(A, right, assume_a="pos"))
    except np.linalg.LinAlgError:  # indefinite, or singular to rounding
        return np.asarray(scipy.linalg.lstsq(A, right)[0])


def find_fixed_points(kernel: Kernel, projection: Any, Z: Floats, threads: int | None) -> Floats:
    """Return the rows nearest in feature space to projections Z, from the nearest training rows."""
    if type(kernel) is not RBF:
        raise ValueError(
            f"inverse='fixed_point' is for the RBF kernel, got {kernel!r}: choose "
            "inverse='ridge' with fit_inverse_transform=True."
        )
    rows = projection.support_vectors_
    trained = projection.project(rows, threads)
    X = rows.astype(np.float64)
    right = kernel.prepare(X)
    dense = X.toarray() if sp.issparse(X) else X
    out = np.empty((len(Z), dense.shape[1]))
    converged = _SETTINGS.converged * float(np.sqrt(dense.var(axis=0).sum()) or 1.0)
    for top in range(0, len(Z), _SETTINGS.chunk):
        part = slice(top, top + _SETTINGS.chunk)
        weights = projection.base + Z[part] @ projection.coefficients.T
        distances = (trained**2).sum(axis=1) - 2 * Z[part] @ trained.T
        start = dense[np.argmin(distances, axis=1)]
        out[part] = _iterate(kernel, start, weights, dense, right, converged)
    return out


def _iterate(
    kernel: Kernel, start: Floats, weights: Floats, X: Floats, right: Any, converged: float
) -> Floats:
    x = start.copy()
    moving = np.arange(len(x))
    for _ in range(_SETTINGS.steps):
        K = kernel.block(kernel.prepare(x[moving], like=right), right) * weights[moving]
        total = K.sum(axis=1)
        # If the weighted kernel vanishes the step is not defined: the row stays.
        stuck = total <= _SETTINGS.vanished * np.abs(K).sum(axis=1)
        new = np.where(stuck[:, None], x[moving], (K @ X) / np.where(stuck, 1.0, total)[:, None])
        change = np.linalg.norm(new - x[moving], axis=1)
        x[moving] = new
        moving = moving[change > converged]
        if not len(moving):
            break
    return x
