"""The perceptron in dual form: f(x) = Σ aᵢK(xᵢ, x) + b, for any kernel.

Freund & Schapire (1999).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from maxmargin import loops
from maxmargin._typing import Floats, Ints
from maxmargin.kernels import Kernel
from maxmargin.loops.records import Rule
from maxmargin.problems.gram import Gram
from maxmargin.problems.row_cache import RowCache
from maxmargin.solvers.epochs import Counts, relative

# Kernel values of a slab of rows with all support vectors: 32 MB.
_VALUES_PER_SLAB = 2**22
_LARGEST_BLOCK = 256
_KEPT_BYTES = 2**29  # for rows of the Gram matrix


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

    def scores(self, prepared: Any) -> Floats:
        """Return f on rows prepared by the kernel: (n, K)."""
        return self.kernel.dot(prepared, self.support, self.coefficients) + self.intercept


class KernelState(NamedTuple):
    """Coefficients and scores (n, K) and intercept (K,) on the training rows, with the counts."""

    coefficients: Floats
    scores: Floats
    intercept: Floats
    counts: Counts


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
        self.squared_radius = np.inf  # until somebody who knows the kernel says otherwise
        self.gram = Gram(kernel, X, like=None if start is None else start.support)
        self.gram.memory = min(self.gram.memory, _KEPT_BYTES)
        self._store = RowCache(self.gram, self.gram.prepared, least=_LARGEST_BLOCK)
        nothing = np.zeros((len(self.gram), outputs))
        self._start_scores = nothing if start is None else start.scores(self.gram.prepared)
        self.now = KernelState(
            nothing,
            self._start_scores,
            np.zeros(outputs) if start is None else start.intercept,
            counts or Counts(),
        )
        # So many rows that their kernel values with all others take about 32 MB.
        self._block = int(np.clip(_VALUES_PER_SLAB // len(self.gram), 16, _LARGEST_BLOCK))

    @property
    def counts(self) -> Counts:
        """Visits, mistakes and updates so far."""
        return self.now.counts

    def visit(self, order: Ints) -> Iterator[None]:
        """Visit rows in the given order, pausing after each block."""
        for start in range(0, len(order), self._block):
            block = order[start : start + self._block]
            steps = np.zeros((len(block), self.now.scores.shape[1]))
            counts = loops.perceptron.kernel_pass(
                self.gram.block(block, block), self._labels[block], self._weight[block], self.rule,
                self.now.scores[block], steps, tuple(self.now.counts),
            )  # fmt: skip
            # In one assignment: an interruption finds the state before or after, never between.
            self.now = self._after(block, steps, Counts(*counts))
            yield

    def _after(self, block: Ints, steps: Floats, counts: Counts) -> "KernelState":
        changed = steps.any(axis=1)
        if not changed.any():
            return self.now._replace(counts=counts)
        lift = steps.sum(axis=0) * self.rule.fit_intercept
        scores = self.now.scores + self._rows(block[changed]).T @ steps[changed] + lift
        coefficients = self.now.coefficients.copy()
        coefficients[block] += steps
        return KernelState(coefficients, scores, self.now.intercept + lift, counts)

    def _rows(self, i: Ints) -> Floats:
        return np.asarray(self._store.values[self._store.fetch(i)], np.float64)

    def training_scores(self) -> Floats:
        """Return f on the training rows: (n, 1) for two classes, else (n, K)."""
        return self.now.scores

    def snapshot(self) -> "KernelState":
        """Return the state, which is never changed in place."""
        return self.now

    def restore(self, snapshot: "KernelState") -> None:
        """Go back to a snapshot, keeping the counts."""
        self.now = snapshot._replace(counts=self.now.counts)

    def squared_norm(self) -> float:
        """Return ‖w‖² = ‖w₀‖² + Σ aᵢ(w·φ(xᵢ) + w₀·φ(xᵢ))."""
        began = 0.0 if self.start is None else self.start.squared_norm
        first = 0.0 if self.start is None else self.start.intercept
        both_ends = (self.now.scores - self.now.intercept) + (self._start_scores - first)
        return max(0.0, began + float(np.sum(self.now.coefficients * both_ends)))

    def relative_change(self, snapshot: "KernelState") -> float:
        """Return ‖w − w'‖/‖w‖ for an earlier w', by ‖w − w'‖² = Σ (aᵢ − aᵢ')(w − w')·φ(xᵢ)."""
        step = (self.now.scores - self.now.intercept) - (snapshot.scores - snapshot.intercept)
        change = float(np.sum((self.now.coefficients - snapshot.coefficients) * step))
        return relative(np.sqrt(max(change, 0.0)), np.sqrt(self.squared_norm()))
