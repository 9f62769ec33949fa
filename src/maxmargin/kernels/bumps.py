"""Gaussian bumps on a grid, and the RBF kernel that they tend to.

    φ_c(x) = (h²/πs²)^(d/4) exp(−‖x − c‖²/2s²),    Σ φ_c(x)φ_c(x′) → exp(−‖x − x′‖²/4s²)

over centres c on a grid of spacing h. The sum is the trapezoidal rule for the integral over c of a
Gaussian around the midpoint of x and x′, and its error is about 2e^(−π²s²/h²) per column (Poisson's
summation formula): halving h takes it to its fourth power. So the RBF kernel with γ = 1/(4s²) has
bumps of width s everywhere as its features, and counts them all without visiting any.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels.prepared import Source, as_dense
from maxmargin.kernels.user_defined import FromMap

_MOST = 1_000_000  # bumps: 8 MB for each row


@dataclass(frozen=True, eq=False, repr=False)
class GaussianBumps:
    """The map from a row to the heights of all bumps of a grid, scaled.

    Attributes
    ----------
    axes : tuple of ndarray
        The coordinates of the centres in each column: centres are all their combinations, the last
        column running fastest.
    width, spacing, reach : float
        s, h, and how many widths the grid reaches beyond the rows that it was made for.
    """

    axes: tuple[Floats, ...]
    width: float
    spacing: float
    reach: float

    def __call__(self, X: Any) -> Floats:
        """Return φ_c(x) for each row x and each centre c."""
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.axes):
            raise ValueError(
                f"gaussian_bumps: the grid has {len(self.axes)} columns, got rows of shape "
                f"{rows.shape}"
            )
        scale = math.sqrt(self.spacing / (self.width * math.sqrt(math.pi)))
        heights = np.ones((len(rows), 1))
        for x, centres in zip(rows.T, self.axes, strict=True):  # a product over columns
            bumps = scale * np.exp(-(((x[:, np.newaxis] - centres) / self.width) ** 2) / 2)
            heights = (heights[:, :, np.newaxis] * bumps[:, np.newaxis, :]).reshape(len(rows), -1)
        return heights

    @property
    def centres(self) -> Floats:
        """The centres of all bumps: (n_bumps, d)."""
        every = np.meshgrid(*self.axes, indexing="ij")
        return np.column_stack([axis.ravel() for axis in every])

    @property
    def error_bound(self) -> float:
        """The most by which a kernel value can differ from its limit, but for rounding.

        It holds between rows within the box that the grid was made for: (1 + a + t)ᵈ − 1, with
        a = 2 Σ exp(−π²k²s²/h²) over k ≥ 1 for the gaps between centres, and t for the centres that
        are missing beyond the grid.
        """
        ratio = self.width / self.spacing
        k = np.arange(1, 2 + math.ceil(8 / ratio))  # beyond these, e^(−600)
        gaps = 2 * float(np.exp(-((math.pi * k * ratio) ** 2)).sum())
        first = math.exp(-(self.reach**2)) / (ratio * math.sqrt(math.pi))
        beyond = 2 * first + math.erfc(self.reach)
        return math.expm1(len(self.axes) * math.log1p(gaps + beyond))

    def __repr__(self) -> str:
        count = math.prod(map(len, self.axes))
        return f"<{count:,} Gaussian bumps of width {self.width:g}, {self.spacing:g} apart>"


def gaussian_bumps(
    X: Any, width: float = 1.0, spacing: float | None = None, reach: float = 6.0
) -> FromMap:
    """Return the kernel whose features are Gaussian bumps centred on a grid.

    On an ever finer and wider grid it tends to the RBF kernel with γ = 1/(4·width²): with the
    default spacing and reach it is there, to rounding. The number of bumps grows exponentially with
    the columns; the limit is computed at no such cost, so use ``RBF`` for anything but the limit
    itself.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows; the grid covers the box around them.
    width : float, default=1.0
        s > 0 of exp(−‖x − c‖²/2s²).
    spacing : float, optional
        h > 0, between neighbouring centres. By default width/2; the error is about
        2d·exp(−π²·width²/spacing²).
    reach : float, default=6.0
        How many widths the grid reaches beyond the box, ≥ 0. Without the centres beyond it kernel
        values are too small, by up to half per column near the border; the share that is missing
        falls as erfc(reach).

    Returns
    -------
    FromMap
        Its ``phi`` maps rows to features, and has ``centres`` and the ``error_bound``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels import RBF, gaussian_bumps
    >>> X = np.array([[0.0], [1.0], [2.5]])
    >>> limit = RBF(gamma=1 / 4).gram(X)
    >>> for spacing in (2.0, 1.0, 0.5):
    ...     error = np.abs(gaussian_bumps(X, spacing=spacing).gram(X) - limit).max()
    ...     print(f"{spacing}: {max(error, 1e-15):.0e}")
    2.0: 1e-01
    1.0: 6e-05
    0.5: 1e-15
    """
    rows = as_dense(Source(X).rows)
    apart = width / 2 if spacing is None else spacing
    for name, value in (("width", width), ("spacing", apart)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"gaussian_bumps: {name} must be finite and above 0, got {value!r}")
    if not (math.isfinite(reach) and reach >= 0):
        raise ValueError(f"gaussian_bumps: reach must be finite and at least 0, got {reach!r}")
    low, high = (np.asarray(end, np.float64) for end in (rows.min(axis=0), rows.max(axis=0)))
    steps = np.ceil((high - low + 2 * reach * width) / apart)
    count = float(np.prod(steps + 1))
    if count > _MOST:
        raise ValueError(
            f"gaussian_bumps: a grid with spacing={apart:g} over {rows.shape[1]} columns has "
            f"{count:.3g} bumps, and {_MOST:,} are allowed; choose a wider spacing or fewer "
            f"columns, or the limit itself: RBF(gamma={1 / (4 * width**2):.4g})"
        )
    # Centred on the box: what the steps are longer than the box is shared out.
    begins = (low + high - steps * apart) / 2
    axes = [begin + apart * np.arange(int(n) + 1) for begin, n in zip(begins, steps, strict=True)]
    return FromMap(GaussianBumps(tuple(axes), float(width), float(apart), float(reach)))
