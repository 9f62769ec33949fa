"""Rows in coordinates of a kernel's feature space: Z with ZZᵀ = K, from the Gram matrix itself.

The Cholesky factor with pivoting of K, its diagonal scaled to 1, stops where what is left of every
row is rounding: at max(n, 100)·ε of its ‖φ(x)‖². What such a factor cannot give back, K − ZZᵀ, is
then rounding too; where it is not, K is not positive semidefinite, and there is no feature space.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from maxmargin.gram import Gram
from maxmargin.kernels import Kernel, Precomputed
from maxmargin.kernels.precomputed import asymmetry
from maxmargin.solvers.pivoted_factor import pivoted_factor

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MATRICES = 5  # of n² doubles that are held at a time: K, its factor, and parts of both
_LEAST = 100  # rows, as fewer than which rounding is never taken to be
_DOUBT = 100  # times the rounding: what is left of K then is no rounding
_BLOCK = 1 << 22  # numbers in a block of K − ZZᵀ


@dataclass(frozen=True)
class FeatureRows:
    """Some rows of a Gram matrix: kernel values in float64, and vectors with these products."""

    kernel: Kernel
    K: Floats
    eps: float  # rounding of the kernel values
    gram: Gram
    places: Ints  # in ``gram``

    @classmethod
    def of(cls, gram: Gram) -> "FeatureRows":
        """Return all rows, with all their kernel values."""
        kernel, prepared = gram.kernel, gram.exact
        # Half of the matrix is enough of a kernel, but who knows whether a function is one?
        other = prepared if kernel.psd else prepared[:]
        values = kernel.block(prepared, other, threads=gram.threads)
        if not kernel.psd and asymmetry(values) > np.sqrt(np.finfo(gram.prepared.dtype).eps):
            raise ValueError(
                f"{kernel!r} is not symmetric, by {asymmetry(values):.2g} of its largest value: it "
                "is no kernel."
            )
        K = values.astype(np.float64, copy=False)
        given = gram.prepared.dtype
        if not kernel.psd:
            K = 0.5 * (K + K.T)
            # Once is enough to ask a user's function for all its values.
            gram = Gram(Precomputed(), K.astype(given), memory=gram.memory)
        return cls(kernel, K, float(np.finfo(given).eps), gram, np.arange(len(K)))

    def __getitem__(self, rows: Ints) -> "FeatureRows":
        part = self.K[np.ix_(rows, rows)]
        return FeatureRows(self.kernel, part, self.eps, self.gram, self.places[rows])

    def __len__(self) -> int:
        return len(self.K)

    @property
    def sizes(self) -> Floats:
        """‖φ(x)‖ of each row."""
        return np.asarray(np.sqrt(np.maximum(self.K.diagonal(), 0.0)))

    @property
    def precision(self) -> float:
        """The part of ‖φ(x)‖² up to which directions are dropped."""
        return max(len(self), _LEAST) * self.eps

    @cached_property
    def vectors(self) -> Floats:
        """Z, one row each."""
        Z = pivoted_factor(self.K, self.precision)
        if not self.kernel.psd:
            self._refuse_indefinite(Z)
        return Z

    def _refuse_indefinite(self, Z: Floats) -> None:
        unit = np.where(self.sizes > 0, self.sizes, 1.0)
        worst = 0.0
        step = max(1, _BLOCK // len(self))
        for start in range(0, len(self), step):
            part = slice(start, start + step)
            left = (self.K[part] - Z[part] @ Z.T) / unit / unit[part, np.newaxis]
            worst = max(worst, float(np.abs(left).max()))
        if worst > _DOUBT * self.precision:
            raise self.indefinite(f" (by {worst:.2g} of its diagonal)")

    def indefinite(self, how: str = "") -> ValueError:
        """Return the error for kernel values that are not those of a kernel."""
        return ValueError(
            f"{self.kernel!r} is not positive semidefinite on these rows{how}, so that there is no "
            "space to find a plane in: mm.check_kernel tells more and can repair a matrix. SVC "
            "takes such kernels, uncertified."
        )
