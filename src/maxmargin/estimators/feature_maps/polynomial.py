"""The map behind the polynomial kernel, in full: all monomials, with their multinomial weights.

(coef0 + γ x·x′)^p = Σₐ [p!/(a₀! a₁! … a_d!)] coef0^a₀ γ^|a| · xᵃ x′ᵃ,     a₀ = p − |a|
"""

import math
from itertools import chain, combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from maxmargin._typing import Floats, Ints
from maxmargin.estimators.feature_maps.base import FeatureMap, largest_square
from maxmargin.estimators.feature_maps.source_rows import SourceRows, resolved
from maxmargin.geometry.inputs import largest_squared_norm
from maxmargin.kernels import Polynomial
from maxmargin.validation.data import refuse_overflow
from maxmargin.validation.parameters import check_number

_QUICK = 3  # degrees up to which scikit-learn expands sparse rows quickly


class PolynomialMap(FeatureMap):
    """The features of the polynomial kernel: φ(x)·φ(x′) = (coef0 + γ x·x′)^degree, exactly.

    All monomials of up to ``degree`` factors (of exactly ``degree`` if coef0 = 0), each times the
    root of its multinomial weight. A linear machine on them *is* the machine with this kernel.

    Parameters
    ----------
    degree : int, default=2
        The power, ≥ 1.
    gamma : float, "scale" or "auto", default=1.0
        γ > 0, or 1/(d·Var X), or 1/d.
    coef0 : float, default=1.0
        ≥ 0: below 0 the kernel has no such features.
    max_columns : int, default=100000
        More features are refused: there are C(d + degree, degree).

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, with a number for γ.
    n_components_ : int
        How many features there are.
    powers_ : ndarray of shape (n_components_, degree)
        The columns whose product each feature is, with repetition (x₀²x₁ is 0, 0, 1); −1 stands
        for no column.
    weights_ : ndarray of shape (n_components_,)
        The factors of the monomials.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> phi = mm.PolynomialMap(degree=2).fit(X)
    >>> print(*phi.get_feature_names_out(), sep=", ")
    1, x0, x1, x0^2, x0 x1, x1^2
    >>> (phi.transform(X) @ phi.transform(X).T).round(6)
    array([[ 36., 144.],
           [144., 676.]])
    """

    _stays_sparse = True

    def __init__(
        self,
        degree: int = 2,
        *,
        gamma: float | str = 1.0,
        coef0: float = 1.0,
        max_columns: int = 100_000,
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.max_columns = max_columns

    _takes_sources = True

    def _learn(self, X: Any) -> None:
        check_number(self, "degree", at_least=1, integer=True)
        check_number(self, "coef0", at_least=0)
        check_number(self, "max_columns", at_least=1, integer=True)
        kernel: Any = Polynomial(int(self.degree), self.gamma, float(self.coef0))
        self._refuse_many(X.shape[1])
        kernel = resolved(kernel, X)
        self._refuse_overflow(X, kernel)
        self.kernel_ = kernel
        self.powers_ = list_monomials(X.shape[1], int(self.degree), self.coef0 > 0)
        self.weights_ = weigh_monomials(self.powers_, float(kernel.gamma), float(self.coef0))
        self.n_components_ = len(self.powers_)

    def _refuse_many(self, d: int) -> None:
        columns = count_monomials(d, int(self.degree), self.coef0 > 0)
        if columns > self.max_columns:
            raise ValueError(
                f"degree={self.degree!r} makes {columns:,} features of {d} columns, more than "
                f"max_columns={self.max_columns:,}. Raise max_columns if you have the memory, "
                "lower degree, or use SVC(kernel='poly') or Nystroem(kernel='poly'), which do not "
                "need these features."
            )

    def _refuse_overflow(self, X: Any, kernel: Any) -> None:
        """Raise if the largest value of the kernel does not fit."""
        with np.errstate(over="ignore"):
            stored = isinstance(X, SourceRows)
            square = X.columns.largest_square if stored else largest_squared_norm(X)
            inner = kernel.gamma * np.float64(square) + kernel.coef0
            largest = np.power(np.float64(inner), kernel.degree)
        if stored:
            X.refuse_overflow(float(largest), largest_square(X))
        else:
            refuse_overflow(self, X, float(largest), largest_square(X))

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        X = super()._check_input(X, reset=reset)
        if not reset:
            self._refuse_overflow(X, self.kernel_)
        return X

    def _width(self) -> int:
        return 2 * self.n_components_

    def _fill(self, X: Any, out: Any) -> None:
        X = X.toarray() if sp.issparse(X) else X
        np.multiply(self._expand(X), self.weights_.astype(out.dtype), out=out)

    def _sparse_block(self, X: Any) -> Any:
        block = type(X)(self._expand(X))
        block.data *= self.weights_[block.indices].astype(block.dtype)
        return block

    def _expand(self, X: Any) -> Any:
        kernel: Any = self.kernel_
        return expand(X, int(kernel.degree), kernel.coef0 > 0)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the monomials, such as "x0^2 x1"; their weights are in ``weights_``.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns; by default those of the frame, or x0, x1, …
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array([_name(row[row >= 0], names) for row in self.powers_], dtype=object)


def count_monomials(d: int, degree: int, lower: bool) -> int:
    """Return how many monomials of d columns have ``degree`` factors, or with ``lower``, up to."""
    return math.comb(d + degree, degree) if lower else math.comb(d + degree - 1, degree)


def list_monomials(d: int, degree: int, lower: bool) -> Ints:
    """Return the columns in each product, −1 for none, in the order of ``expand``."""
    levels = []
    for k in range(0 if lower else degree, degree + 1):
        chosen = chain.from_iterable(combinations_with_replacement(range(d), k))
        level = np.fromiter(chosen, np.int64).reshape(count_monomials(d, k, False), k)
        levels.append(np.pad(level, ((0, 0), (0, degree - k)), constant_values=-1))
    return np.vstack(levels)


def expand(X: Any, degree: int, lower: bool) -> Any:
    """Return the monomials of rows with exactly, or with ``lower`` up to, ``degree`` factors."""
    from sklearn.preprocessing import PolynomialFeatures  # slow to import

    monomials = PolynomialFeatures((0 if lower else degree, degree), include_bias=lower)
    monomials.set_output(transform="default")
    if sp.issparse(X) and degree > _QUICK:
        return type(X)(monomials.fit_transform(X.toarray()))
    return monomials.fit_transform(X)


def weigh_monomials(powers: Ints, gamma: float, coef0: float) -> Floats:
    """Return the root of each multinomial weight."""
    degree = powers.shape[1]
    factors = (powers >= 0).sum(axis=1)
    logs = math.lgamma(degree + 1) - np.array([math.lgamma(degree - k + 1) for k in factors])
    run = np.zeros(len(powers))
    for k in range(degree):  # a! of each exponent a is the product of the lengths of a run so far
        repeated = powers[:, k] == powers[:, k - 1] if k else np.zeros(len(powers), dtype=bool)
        run = np.where(repeated, run + 1, 1.0)
        logs -= np.where(powers[:, k] >= 0, np.log(run), 0.0)
    logs += factors * math.log(gamma)
    if coef0 > 0:
        logs += (degree - factors) * math.log(coef0)
    roots: Floats = np.exp(0.5 * logs)
    return roots


def _name(columns: Ints, names: npt.NDArray[Any]) -> str:
    used, times = np.unique(columns, return_counts=True)
    parts = [
        names[j] if k == 1 else f"{names[j]}^{k}"
        for j, k in zip(used.tolist(), times.tolist(), strict=True)
    ]
    return " ".join(parts) or "1"
