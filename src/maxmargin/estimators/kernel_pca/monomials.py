"""The features of the polynomial kernel in full: all monomials, with their multinomial weights.

(coef0 + γ x·x′)^p = Σₐ [p!/(a₀! a₁! … a_d!)] coef0^a₀ γ^|a| · xᵃ x′ᵃ,     a₀ = p − |a|
"""

import math
from itertools import chain, combinations_with_replacement

import numpy as np

from maxmargin._typing import Floats, Ints


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


def expand(X: Floats, degree: int, lower: bool) -> Floats:
    """Return the monomials of rows with exactly, or with ``lower`` up to, ``degree`` factors."""
    from sklearn.preprocessing import PolynomialFeatures  # slow to import

    monomials = PolynomialFeatures((0 if lower else degree, degree), include_bias=lower)
    return np.asarray(monomials.set_output(transform="default").fit_transform(X))


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
