"""Signed rows in groups, each of which spans a convex hull."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Hulls:
    """Vectors z = factor·x + shift of their group; a point is Σαz with weights of sum 1 per group.

    The positive rows are one group and the negative ones, with factor −1, another: then a point is
    the difference of a point in either hull. Without an intercept all signed rows are one group.
    """

    def __init__(self, X: Any, factor: Floats, group: Ints, shift: Floats) -> None:
        self.X = X
        self.factor = factor
        self.group = group
        self.shift = shift  # one vector a group
        self.shifted = bool(shift.any())

    @classmethod
    def of(cls, X: Any, positive: npt.NDArray[np.bool_], intercept: bool) -> Self:
        """Return the hulls of two classes of float64 rows."""
        group = np.where(positive, 0, 1) if intercept else np.zeros(len(positive), dtype=int)
        return cls(X, np.where(positive, 1.0, -1.0), group, np.zeros((1 + intercept, X.shape[1])))

    def shrunk(self, part: float) -> "Hulls":
        """Return each group drawn by a part towards its mean."""
        return Hulls(self.X, (1 - part) * self.factor, self.group, part * self.means())

    def means(self) -> Floats:
        """Return the mean of each group."""
        even = 1.0 / np.bincount(self.group, minlength=len(self.shift))[self.group]
        return self.combinations(even)

    def of_rows(self, rows: Ints) -> "Hulls":
        """Return some of the rows."""
        return Hulls(self.X[rows], self.factor[rows], self.group[rows], self.shift)

    def __len__(self) -> int:
        return len(self.factor)

    @property
    def indicator(self) -> Floats:
        """One column a group: 1 for its members."""
        return np.eye(len(self.shift))[self.group]

    def products(self, direction: Floats) -> Floats:
        """Return z·direction for each row."""
        products: Floats = self.factor * np.asarray(self.X @ direction)
        if self.shifted:
            products += (self.shift @ direction)[self.group]
        return products

    def combination(self, weights: Floats) -> Floats:
        """Return Σ weight·z."""
        total = np.asarray(self.X.T @ (self.factor * weights))
        return total + self.sums(weights) @ self.shift if self.shifted else total

    def combinations(self, weights: Floats) -> Floats:
        """Return Σ weight·z of each group."""
        return np.array([self.combination(weights * side) for side in self.indicator.T])

    def sums(self, values: Floats) -> Floats:
        """Return the sum of each group."""
        sums = np.bincount(self.group, values, minlength=len(self.shift))
        return np.asarray(sums, dtype=np.float64)

    def lowest(self, values: Floats) -> Floats:
        """Return the smallest value of each group."""
        sides = range(len(self.shift))
        return np.array([values.min(where=self.group == k, initial=np.inf) for k in sides])

    def gram(self, other: "Hulls") -> Floats:
        """Return all products of these vectors with others."""
        plain = self.X @ other.X.T
        plain = plain.toarray() if sp.issparse(plain) else plain
        products = np.asarray(plain * self.factor[:, np.newaxis] * other.factor)
        if self.shifted:
            here = self.factor[:, np.newaxis] * np.asarray(self.X @ other.shift.T)
            there = other.factor * np.asarray(other.X @ self.shift.T).T
            products += here[:, other.group] + there[self.group]
            products += (self.shift @ other.shift.T)[np.ix_(self.group, other.group)]
        return products

    def dense(self) -> Floats:
        """Return the vectors as rows, without columns that are 0 in all of them."""
        X = self.X
        if sp.issparse(X):
            used = np.unique(X.indices) if not self.shifted else slice(None)
            X = X[:, used].toarray()
        rows = X * self.factor[:, np.newaxis]
        return np.asarray(rows + self.shift[self.group] if self.shifted else rows)

    def squares(self) -> Floats:
        """Return ‖z‖² of each row."""
        if self.shifted or not sp.issparse(self.X):
            rows = self.dense()
            return np.asarray(np.einsum("ij,ij->i", rows, rows))
        return np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel() * self.factor**2
