"""The perceptron in dual form: f(x) = Σ aᵢK(xᵢ, x) + b, for any kernel.

Freund & Schapire (1999).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin import loops
from maxmargin.gram import Gram
from maxmargin.kernels import Kernel
from maxmargin.loops.records import Rule
from maxmargin.solvers.epochs import Counts, relative

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ROWS_PER_BLOCK = 256
# Kernel values of a slab of rows with all support vectors: 32 MB.
_VALUES_PER_SLAB = 2**22


class Expansion(NamedTuple):
    """A function f(x) = Σ aᵢK(xᵢ, x) + b by its support vectors, with ‖w‖²."""

    kernel: Kernel
    support: Any
    coefficients: Floats
    intercept: Floats
    squared_norm: float

    def norm(self) -> float:
        """Return ‖(w, b)‖."""
        return float(np.hypot(np.sqrt(self.squared_norm), np.linalg.norm(self.intercept)))

    def scores(self, bound: Any) -> Floats:
        """Return f on rows bound by the kernel, a slab at a time: (n, K)."""
        slab = max(1, _VALUES_PER_SLAB // max(1, len(self.support)))
        out = np.empty((len(bound), len(self.intercept)))
        for i in range(0, len(bound), slab):
            values = self.kernel.between(bound[i : i + slab], self.support)
            out[i : i + slab] = values @ self.coefficients
        return out + self.intercept


class KernelLearner:
    """Dual form: w = w₀ + Σ aᵢφ(xᵢ) on n training rows, with f kept up to date on all of them.

    Rows are taken in blocks: within a block its small Gram matrix carries each update to the rows
    after it; then one BLAS product carries the block's updates to all rows. The result is that of
    the row-by-row algorithm.
    """

    def __init__(
        self,
        kernel: Kernel,
        rule: Rule,
        X: Any,
        labels: Ints,
        weight: Floats,
        outputs: int,
        start: Expansion | None = None,
        counts: Counts | None = None,
    ) -> None:
        self.kernel = kernel
        self.rule = rule
        self.X, self._labels, self._weight = X, labels, weight
        self.start = start
        self.start_norm = 0.0 if start is None else start.norm()
        self.counts = counts or Counts()
        self.squared_radius = np.inf  # until somebody who knows the kernel says otherwise
        self.gram = Gram(kernel, X, like=None if start is None else start.support)
        self.coefficients = np.zeros((len(self.gram), outputs))
        self.intercept = np.zeros(outputs) if start is None else start.intercept.copy()
        self._start_scores = (
            np.zeros_like(self.coefficients) if start is None else start.scores(self.gram.bound)
        )
        self.scores = self._start_scores.copy()

    def visit(self, order: Ints) -> Iterator[None]:
        """Visit rows in the given order, pausing after each block."""
        for start in range(0, len(order), _ROWS_PER_BLOCK):
            block = order[start : start + _ROWS_PER_BLOCK]
            steps = np.zeros((len(block), self.scores.shape[1]))
            counts = loops.perceptron.kernel_pass(
                self.gram.block(block, block), self._labels[block], self._weight[block], self.rule,
                self.scores[block], steps, tuple(self.counts),
            )  # fmt: skip
            self._spread(block, steps, Counts(*counts))
            yield

    def _spread(self, block: Ints, steps: Floats, counts: Counts) -> None:
        """Carry the steps of a block to all rows: first the slow part, then all state at once."""
        changed = steps.any(axis=1)
        lift = steps.sum(axis=0) * self.rule.fit_intercept
        scores = self.gram.rows(block[changed]).T @ steps[changed]
        self.coefficients[block] += steps
        self.scores += scores + lift
        self.intercept += lift
        self.counts = counts

    def training_scores(self) -> Floats:
        """Return f on the training rows: (n, 1) for two classes, else (n, K)."""
        return self.scores

    def snapshot(self) -> tuple[Floats, Floats, Floats]:
        """Return a copy of the coefficients, scores and intercept."""
        return self.coefficients.copy(), self.scores.copy(), self.intercept.copy()

    def restore(self, snapshot: tuple[Floats, Floats, Floats]) -> None:
        """Go back to a snapshot."""
        self.coefficients, self.scores, self.intercept = snapshot

    def squared_norm(self) -> float:
        """Return ‖w‖² = ‖w₀‖² + Σ aᵢ(w·φ(xᵢ) + w₀·φ(xᵢ))."""
        began = 0.0 if self.start is None else self.start.squared_norm
        first = 0.0 if self.start is None else self.start.intercept
        both_ends = (self.scores - self.intercept) + (self._start_scores - first)
        return max(0.0, began + float(np.sum(self.coefficients * both_ends)))

    def relative_change(self, snapshot: tuple[Floats, Floats, Floats]) -> float:
        """Return ‖w − w'‖/‖w‖ for an earlier w', by ‖w − w'‖² = Σ (aᵢ − aᵢ')(w − w')·φ(xᵢ)."""
        coefficients, scores, intercept = snapshot
        step = (self.scores - self.intercept) - (scores - intercept)
        change = float(np.sum((self.coefficients - coefficients) * step))
        return relative(np.sqrt(max(change, 0.0)), np.sqrt(self.squared_norm()))
