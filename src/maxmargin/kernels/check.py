"""Whether a Gram matrix is symmetric and positive semidefinite, and how to repair one."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.utils import check_array

from maxmargin._typing import Floats
from maxmargin.kernels.base import Kernel
from maxmargin.kernels.names import as_kernel
from maxmargin.kernels.precomputed import asymmetry, is_symmetric
from maxmargin.runtime.html import table, tag


@dataclass(frozen=True)
class KernelCheck:
    """What ``check_kernel`` found; ``print`` it for a sentence.

    Attributes
    ----------
    symmetric : bool
        Whether the asymmetry is rounding: at most √ε of the number type.
    asymmetry : float
        max |K − Kᵀ| / max |K|.
    lambda_min, lambda_max : float
        The extreme eigenvalues of (K + Kᵀ)/2.
    psd : bool
        Whether the matrix is symmetric with λ_min ≥ −n·ε·max |λ|, which is what rounding alone can
        do to a positive semidefinite matrix (ε of the type the matrix came in).
    spectrum : tuple of eigenvalues and eigenvectors
        Of (K + Kᵀ)/2, in ascending order.
    """

    symmetric: bool
    asymmetry: float
    lambda_min: float
    lambda_max: float
    psd: bool
    spectrum: tuple[Floats, Floats] = field(repr=False, compare=False)

    def __str__(self) -> str:
        shape = "symmetric" if self.symmetric else f"not symmetric (by {self.asymmetry:.2g})"
        verdict = "positive semidefinite" if self.psd else "not a kernel matrix"
        way_out = "" if self.psd else "; repair() gives the nearest that is"
        return (
            f"{verdict}: {shape}, eigenvalues from {self.lambda_min:.4g} "
            f"to {self.lambda_max:.4g}{way_out}"
        )

    def _repr_html_(self) -> str:
        values = self.spectrum[0]
        below, total = values[values < 0], float(np.abs(values).sum())
        share = float(-below.sum()) / total if total else 0.0
        lines = [
            ("Asymmetry", f"{self.asymmetry:.3g}", "max |K − Kᵀ| / max |K|"),
            ("λ_min", f"{self.lambda_min:.4g}", "the smallest eigenvalue of (K + Kᵀ)/2"),
            ("λ_max", f"{self.lambda_max:.4g}", "the largest"),
            ("Negative", f"{len(below)} of {len(values)}", "eigenvalues below 0, also by rounding"),
            ("Negative share", f"{share:.2g}", "their part of the sum of all |λ|"),
        ]
        title = "Positive semidefinite" if self.psd else "Not a kernel matrix"
        return tag(
            "div",
            tag("p", tag("b", title)),
            tag("p", str(self)),
            table(["Quantity", "Value", "What it is"], lines),
        )

    def repair(self, method: str = "clip") -> Floats:
        """Return a symmetric positive semidefinite matrix close to K.

        Parameters
        ----------
        method : {"clip", "shift", "flip"}, default="clip"
            What to do with negative eigenvalues: set them to 0 (the nearest such matrix), add
            |λ_min| to all (only the diagonal changes), or take absolute values.
        """
        values, vectors = self.spectrum
        match method:
            case "clip":
                repaired = np.maximum(values, 0)
            case "shift":
                repaired = values - min(values[0], 0)
            case "flip":
                repaired = np.abs(values)
            case _:
                raise ValueError(f"method must be 'clip', 'shift' or 'flip', got {method!r}")
        root = vectors * np.sqrt(repaired)
        K = root @ root.T
        return (K + K.T) / 2


def check_kernel(kernel: Any, X: Any = None) -> KernelCheck:
    """Test whether a Gram matrix is symmetric and positive semidefinite.

    Parameters
    ----------
    kernel : array of shape (n, n), or Kernel, name or function
        A matrix, or what computes one from X.
    X : array of shape (n, d), optional
        The rows, if ``kernel`` is not a matrix.

    Examples
    --------
    >>> from maxmargin.kernels import Sigmoid, check_kernel
    >>> found = check_kernel(Sigmoid(coef0=-1.0), [[0.0], [1.0]])
    >>> found.psd
    False
    >>> print(check_kernel(found.repair()))
    positive semidefinite: symmetric, eigenvalues from 0 to 0.4707
    """
    K = _matrix(kernel, X)
    eps = float(np.finfo(K.dtype).eps)
    by, symmetric = asymmetry(K), is_symmetric(K)
    K = K.astype(np.float64)
    values, vectors = scipy.linalg.eigh((K + K.T) / 2)
    floor = -len(K) * eps * float(np.abs(values).max())
    return KernelCheck(
        symmetric=symmetric,
        asymmetry=by,
        lambda_min=float(values[0]),
        lambda_max=float(values[-1]),
        psd=symmetric and bool(values[0] >= floor),
        spectrum=(values, vectors),
    )


def _matrix(kernel: Any, X: Any) -> Any:
    if X is not None:
        # Both triangles are computed: a function that is not symmetric must be seen.
        resolved = as_kernel(kernel).resolved(X)
        return resolved.gram(X, X)
    if isinstance(kernel, Kernel | str) or callable(kernel):
        raise TypeError("check_kernel(kernel, X) needs the rows X, unless it is given a matrix")
    K = check_array(kernel, dtype=[np.float64, np.float32])
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"a Gram matrix is square, got shape {K.shape}")
    return K
