"""Random problems in which one class has very few rows."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp


class Imbalanced(NamedTuple):
    """Rows, labels (1 is the rare one) and parameters of a linear machine."""

    X: Any
    y: Any
    C: float
    class_weight: str | None

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that every machine takes."""
        return {"C": self.C, "class_weight": self.class_weight}

    @property
    def best_constant(self) -> float:
        """What the objective is at w = 0 and the best intercept: one side pays 2 for each row."""
        rare = int(self.y.sum())
        count = np.array([len(self.y) - rare, rare])
        if self.class_weight == "balanced":
            return float(self.C * len(self.y))
        return float(2 * self.C * count.min())


def imbalanced(seed: int, most: int = 100_000) -> Imbalanced:
    """Return a problem with 2 to 50 rare rows among 500 to ``most``, in 2 to 50 columns."""
    random = np.random.default_rng(seed)
    n = int(np.exp(random.uniform(np.log(500), np.log(most))))
    d = int(np.exp(random.uniform(np.log(2), np.log(51))))
    rare = int(random.integers(2, 51))
    X, y = random.normal(size=(n, d)), np.zeros(n, dtype=np.int64)
    y[random.permutation(n)[:rare]] = 1
    X[y == 1] += random.choice([0.0, 0.5, 1.0, 3.0])
    if sparse := random.random() < 0.15:
        X[random.random((n, d)) > 0.2] = 0.0
    C, weight = 10.0 ** random.uniform(-2, 2), random.choice(["", "", "balanced"])
    return Imbalanced(sp.csr_array(X) if sparse else X, y, C, str(weight) or None)
