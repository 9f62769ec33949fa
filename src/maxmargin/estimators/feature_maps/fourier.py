"""Random Fourier features: a stationary kernel as a mean of cosines.

    k(x − x′) = E cos(w·(x − x′))  over  w ~ the Fourier transform of k  (Bochner)

The Gaussian kernel exp(−γ‖·‖²) has w ~ N(0, 2γI), the Laplacian exp(−γ‖·‖₁) has Cauchy
coordinates of scale γ. A cosine and a sine for each w make the cosine of a difference a dot
product. Rahimi and Recht (NIPS 2007); orthogonal directions: Yu et al. (NIPS 2016).
"""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from maxmargin._typing import Floats
from maxmargin.estimators.feature_maps.base import FAILURE, FeatureMap
from maxmargin.estimators.feature_maps.source_rows import is_sparse, mean_of, resolved
from maxmargin.kernels import RBF, Laplacian, as_kernel
from maxmargin.validation.data import generator
from maxmargin.validation.parameters import check_flag, check_number

_COMPARED = 128  # rows on all pairs of which φ(x)·φ(x′) is compared with the kernel


class RandomFourier(ClassNamePrefixFeaturesOutMixin, FeatureMap):
    """Random Fourier features: φ(x)·φ(x′) is the Gaussian or Laplacian kernel on average.

    φ(x) = √(2/D) (cos w₁·x, …, sin w₁·x, …), with D/2 random frequencies w. The error of one kernel
    value falls as 1/√D, whatever the number of columns in X.

    Parameters
    ----------
    kernel : {"rbf", "laplacian"} or Kernel, default="rbf"
        exp(−γ‖x − x′‖²) or exp(−γ‖x − x′‖₁); or ``mm.kernels.RBF`` or ``Laplacian`` with its γ.
    gamma : float, "scale" or "auto", default="scale"
        γ > 0 of a kernel given by name, or 1/(d·Var X), or 1/d.
    n_components : int, default=256
        Features D, ≥ 1. Each frequency has a cosine and a sine; if D is odd, the last one has only
        a cosine with a random phase, which is less accurate.
    orthogonal : bool, default=False
        Whether frequencies are orthogonal in blocks of d: the error is smaller. For "rbf" only,
        whose frequencies have no preferred direction.
    random_state : int, Generator, RandomState or None, default=0
        For the frequencies, and the rows that errors are measured on. None: different in every fit.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features, ⌈D/2⌉)
        The w, one per column.
    phase_ : float
        The random phase of the last cosine, if D is odd.
    center_ : ndarray of shape (n_features,) or None
        What dense rows are measured from: it changes no kernel value, and saves digits.
    kernel_ : Kernel
        The kernel, with a number for γ.
    n_components_ : int
        D.
    error_max_, error_rms_ : float
        The largest and the root mean square error of kernel values, over all pairs of up to 128
        sampled rows.
    error_bound_ : float
        Hoeffding's bound: with probability 0.999 over the frequencies, no error on these pairs is
        larger. It does not depend on the data, and is several times the measured error. With
        orthogonal frequencies only blocks are independent, and it is wider still.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.circles(500, random_state=0)
    >>> phi = mm.RandomFourier(n_components=512).fit(X)
    >>> phi.error_max_ < phi.error_bound_
    True
    >>> mm.LinearSVC().fit(phi.transform(X), y).score(phi.transform(X), y)
    1.0
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | str = "scale",
        n_components: int = 256,
        orthogonal: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state

    _threaded = True
    _takes_sources = True

    def _learn(self, X: Any) -> None:
        kernel = self._check_kernel()
        rng = generator(self.random_state)
        self.kernel_: Any = resolved(kernel, X)
        n, d = X.shape
        self.center_ = None if is_sparse(X) else mean_of(X)
        self.frequencies_ = self._draw(d, -(-int(self.n_components) // 2), rng)
        self.phase_ = float(rng.uniform(0, 2 * math.pi))
        self.n_components_ = int(self.n_components)
        self._measure(X[np.sort(rng.choice(n, min(n, _COMPARED), replace=False))])

    def _check_kernel(self) -> Any:
        kernel = self.kernel
        named = isinstance(kernel, str) and kernel in ("rbf", "laplacian")
        if not named and not isinstance(kernel, RBF | Laplacian):
            raise ValueError(
                f"kernel={kernel!r} is not valid for RandomFourier: choose 'rbf', 'laplacian', "
                "mm.kernels.RBF(…) or mm.kernels.Laplacian(…). Nystroem takes every kernel."
            )
        made = as_kernel(kernel, gamma=self.gamma)
        check_number(self, "n_components", at_least=1, integer=True)
        check_flag(self, "orthogonal")
        if self.orthogonal and isinstance(made, Laplacian):
            raise ValueError(
                "orthogonal=True is for kernel='rbf': the frequencies of the Laplacian kernel are "
                "not alike in all directions. Choose orthogonal=False."
            )
        return made

    def _draw(self, d: int, count: int, rng: np.random.Generator) -> Floats:
        """Return frequencies, one per column."""
        gamma = float(self.kernel_.gamma)
        if isinstance(self.kernel_, Laplacian):
            return gamma * rng.standard_cauchy((d, count))
        spread = math.sqrt(2 * gamma)
        if not self.orthogonal:
            return spread * rng.standard_normal((d, count))
        directions = [_draw_rotation(d, rng) for _ in range(-(-count // d))]
        lengths = np.sqrt(rng.chisquare(d, count))
        return spread * lengths * np.hstack(directions)[:, :count]

    def _measure(self, rows: Any) -> None:
        """Compare kernel values with dot products, on all pairs of some rows."""
        n, pairs = rows.shape[0], max(1, rows.shape[0] * (rows.shape[0] - 1) // 2)
        rows = rows.astype(np.float64)
        phi = self._map(rows)
        errors = (self.kernel_.gram(rows) - phi @ phi.T)[np.triu_indices(n, 1)]
        self.error_max_ = float(np.abs(errors).max(initial=0.0))
        self.error_rms_ = float(np.sqrt(np.mean(errors**2))) if len(errors) else 0.0
        self.error_bound_ = self._hoeffding(pairs)

    def _hoeffding(self, pairs: int) -> float:
        """Return ε with P(the error of some pair exceeds ε) ≤ FAILURE.

        A sum of N cosines is a sum of independent terms within ±nᵦ: nᵦ = 1, or the number of
        frequencies in a block, and one more if the last has a random phase. Then
        P(|mean − k| > ε) ≤ 2 exp(−N²ε² / 2Σnᵦ²).
        """
        d, count = self.frequencies_.shape
        sizes = np.ones(count)
        if self.orthogonal:
            sizes = np.diff(np.append(np.arange(0, count, d), count)).astype(np.float64)
        sizes[-1] += self.n_components_ % 2
        return float(np.sqrt(2 * np.log(2 * pairs / FAILURE) * (sizes**2).sum()) / count)

    def _width(self) -> int:
        return self.n_components_ + len(self.frequencies_)

    def _fill(self, X: Any, out: Any) -> None:
        half, count = self.n_components_ // 2, self.frequencies_.shape[1]
        frequencies = self.frequencies_.astype(out.dtype, copy=False)
        if self.center_ is None:
            phase = X @ frequencies
        else:
            center = self.center_.astype(out.dtype, copy=False)
            phase = ((X.toarray() if sp.issparse(X) else X) - center) @ frequencies
        np.cos(phase[:, :half], out=out[:, :half])
        np.sin(phase[:, :half], out=out[:, half : 2 * half])
        if half < count:
            out[:, -1] = math.sqrt(2) * np.cos(phase[:, -1] + self.phase_)
        out *= out.dtype.type(math.sqrt(1 / count))


def _draw_rotation(d: int, rng: np.random.Generator) -> Floats:
    """Return an orthogonal matrix drawn uniformly (Haar)."""
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    rotation: Floats = q * np.where(np.diag(r) < 0, -1.0, 1.0)
    return rotation
