"""Rows φ(x) of a problem: the only difference between linear and kernel machines."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.geometry.inputs import row_products
from maxmargin.kernels import Kernel, Linear
from maxmargin.loops.records import Loss
from maxmargin.problems.gram import Gram

_SOME = 1000  # rows whose means are a first guess
_DRAWN = 512  # rows that stand for all
_COMPARED = 20  # rows of either class that a kernel machine's first guess compares with


@dataclass(frozen=True)
class LinearFeatures:
    """Rows of numbers, with a constant feature if ``constant`` is not 0."""

    X: Any  # C-ordered float32/float64 array, or CSR
    constant: float = 0.0

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return int(self.X.nnz if hasattr(self.X, "nnz") else self.X.size)

    def scores(self, w: Floats) -> Floats:
        """Return w·φ(x) of each row."""
        scores = row_products(self.X, w[: self.X.shape[1], np.newaxis])[:, 0]
        return np.asarray(scores + self.constant * w[-1] if self.constant else scores)

    def columns(self, w: Floats) -> Floats:
        """Return w·φ(x) of each row for weights in columns."""
        return np.asarray(row_products(self.X, np.ascontiguousarray(w)))

    def combine(self, beta: Floats) -> Floats:
        """Return Σβφ(x)."""
        w = np.asarray(self.X.T @ beta, dtype=np.float64).ravel()
        return np.append(w, self.constant * beta.sum()) if self.constant else w

    def squared_length(self, w: Floats, scores: Floats) -> float:
        """Return ‖w‖²."""
        return float(np.vdot(w, w))

    def squared_norms(self) -> Floats:
        """Return ‖φ(x)‖² of each row."""
        X = self.X.astype(np.float64, copy=False)
        squares = X.multiply(X) if hasattr(X, "multiply") else X * X
        return np.asarray(squares.sum(axis=1)).ravel() + self.constant**2

    def take(self, rows: Ints) -> "LinearFeatures":
        """Return some of the rows."""
        return LinearFeatures(self.X[rows], self.constant)

    def join(self, w: Floats, b: Any) -> Floats:
        """Return all weights."""
        return np.append(w, float(b) / self.constant) if self.constant else w

    def block(self, i: Ints, j: Ints) -> Floats:
        """Return the products of some rows with others."""
        left, right = (self.X[rows].astype(np.float64, copy=False) for rows in (i, j))
        products = left @ right.T
        products = products.toarray() if hasattr(products, "toarray") else products
        return np.asarray(products + self.constant**2)

    def restrict(self, w: Floats, rows: Ints) -> Floats:
        """Return the weights: they are of columns."""
        return w

    def scores_by(self, w: Floats, rows: Ints, i: Ints) -> Floats:
        """Return w·φ(x) of the rows i."""
        some = self.take(i)
        return some.scores(w) if w.ndim == 1 else some.columns(w)

    def coef(self, w: Floats) -> Floats | None:
        """Return the weights of the columns."""
        return w

    @property
    def kernel(self) -> Kernel:
        """The linear kernel, plus a constant."""
        return Linear() + self.constant**2 if self.constant else Linear()

    def as_kernel(self) -> "KernelFeatures":
        """Return the same rows by their products alone."""
        gram = Gram(self.kernel, self.X.astype(np.float64, copy=False))
        return KernelFeatures(gram, np.arange(len(self)))

    def certificate_work(self, beta: Floats | None) -> int:
        """Return the number of rows: each is read once."""
        return len(self)

    def shared_gram(self) -> Gram | None:
        """Return None: rows of numbers are faster than products of rows."""
        return None

    def between_means(self, labels: Ints, n_classes: int) -> tuple[Floats, Floats]:
        """Return planes, one per class, whose score grows as a row gets nearer to the class mean.

        That is −‖x − m‖² but for what all classes share, in units of the distance between means.
        """
        some = slice(None, None, max(1, len(self) // _SOME))
        rows, labels = self.X[some], labels[some]
        counts = np.bincount(labels, minlength=n_classes)
        member = np.eye(n_classes)[:, labels] / np.maximum(counts, 1)[:, np.newaxis]
        means = np.asarray(rows.T.astype(np.float64) @ member.T)
        middle = means[:, counts > 0].mean(axis=1, keepdims=True)
        away = np.where(counts > 0, means - middle, 0.0)
        unit = float((away * away).sum(axis=0).max()) or 1.0
        w = away / unit
        return w, -(0.5 * (away * away).sum(axis=0) / unit + middle[:, 0] @ w)

    def guess(self, loss: Loss, beta: Floats, row: Ints) -> tuple[Floats, float, Floats]:
        """Return the plane whose scores are ±1 at the class means, or the median of numbers."""
        if not _are_labels(loss.target):
            return np.zeros(self.X.shape[1]), float(np.median(loss.target)), beta
        w, b = self.between_means((loss.target > 0).astype(np.int64), 2)
        return w[:, 1] - w[:, 0], float(b[1] - b[0]), beta


@dataclass(frozen=True)
class KernelFeatures:
    """Rows in the feature space of a kernel; weights are coefficients of these rows."""

    gram: Gram
    rows: Ints  # of the Gram matrix, ascending
    passes: list[Any] = field(default_factory=list, compare=False, repr=False)  # for a certificate
    constant: ClassVar[float] = 0.0

    def __len__(self) -> int:
        return len(self.rows)

    def scores(self, w: Floats) -> Floats:
        """Return w·φ(x) of each row."""
        return self.gram.dot(w, self.rows)

    def combine(self, beta: Floats) -> Floats:
        """Return Σβφ(x): coefficients are what weights are."""
        return beta

    def squared_length(self, w: Floats, scores: Floats) -> float:
        """Return ‖w‖² from the scores of the rows."""
        return float(np.vdot(w, scores))

    @property
    def size(self) -> int:
        """How many coefficients weights have."""
        return len(self)

    def shared_gram(self) -> Gram | None:
        """Return the Gram matrix that problems share, if the kernel is positive semidefinite."""
        return self.gram if self.gram.kernel.psd is True else None

    def squared_norms(self) -> Floats:
        """Return K(x, x) of each row."""
        return self.gram.diagonal[self.rows]

    def lengths(self, centred: bool) -> Floats:
        """Return ‖φ(x)‖ of each row, or its distance from the shortest row."""
        squares = self.squared_norms()
        if centred:
            least = int(squares.argmin())
            products = self.gram.block(self.rows, self.rows[least : least + 1])[:, 0]
            squares = squares + squares[least] - 2 * products
        return np.sqrt(np.maximum(squares, 0.0))

    def take(self, rows: Ints) -> "KernelFeatures":
        """Return some of the rows."""
        return KernelFeatures(self.gram, self.rows[rows])

    def join(self, w: Floats, b: Any) -> Floats:
        """Return the weights: there is no constant feature."""
        return w

    def block(self, i: Ints, j: Ints) -> Floats:
        """Return kernel values of some rows with others."""
        left = self.rows[i]
        return self.gram.block(left, left if j is i else self.rows[j])

    def restrict(self, w: Floats, rows: Ints) -> Floats:
        """Return the coefficients of these rows."""
        return w[rows]

    def scores_by(self, w: Floats, rows: Ints, i: Ints) -> Floats:
        """Return w·φ(x) of the rows i."""
        return self.gram.dot(w, self.rows[i], self.rows[rows])

    def coef(self, w: Floats) -> Floats | None:
        """Return None: the feature space has no columns."""
        return None

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.gram.kernel

    def as_kernel(self) -> "KernelFeatures":
        """Return the features themselves."""
        return self

    def certificate_work(self, beta: Floats | None) -> int:
        """Return the number of kernel values: of all rows with those that have a coefficient."""
        if beta is None:
            return 0
        return len(self) * int(np.count_nonzero(beta if beta.ndim == 1 else beta.any(axis=1)))

    def guess(self, loss: Loss, beta: Floats, row: Ints) -> tuple[Floats, float, Floats]:
        """Return a function that compares a row with some rows of either class.

        Duals are as large as their bounds allow, so that scores are not small beside a margin of 1.
        """
        if _are_labels(loss.target) and not beta.any():
            beta, most = beta.copy(), np.inf
            for sign, bound in ((1.0, loss.high), (-1.0, -loss.low)):
                rows = np.flatnonzero(loss.target == sign)
                few = rows[:: max(1, len(rows) // _COMPARED)]
                beta[few] = sign / max(len(few), 1)
                most = min(most, len(few) * float(bound[few].min(initial=np.inf)))
            beta *= most if 0 < most < np.inf else 1.0
        return np.bincount(row, beta, minlength=len(self)).astype(np.float64), 0.0, beta


Features = LinearFeatures | KernelFeatures


def drawn_rows(n: int) -> Ints:
    """Return some of n rows, drawn by lot: they stand for all, other than rows with a dual."""
    return np.unique(np.random.default_rng(0).integers(n, size=_DRAWN))


def _are_labels(target: Floats) -> bool:
    return bool(np.isin(target, (-1.0, 1.0)).all())
