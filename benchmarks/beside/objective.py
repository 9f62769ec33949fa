"""What is minimised, the same for every tool, and how near to the optimum somebody came."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Dataset

ROWS_AT_ONCE = 1 << 16  # of float32 rows, float64 copies are made


@dataclass(frozen=True)
class Objective:
    """½‖w‖² + C Σ loss, and ½b² too where the intercept b is penalised."""

    C: float = 1.0
    gamma: float | None = None  # w is in the feature space of exp(−γ‖x − x′‖²), or of the rows
    epsilon: float | None = None  # the loss is max(0, |y − f| − ε), or max(0, 1 − y f)
    intercept: Literal["free", "penalized"] = "free"

    def __str__(self) -> str:
        said = [f"C={self.C:g}"]
        said += [f"γ={self.gamma:.3g}"] if self.gamma is not None else []
        said += [f"ε={self.epsilon:.3g}"] if self.epsilon is not None else []
        said += ["penalised intercept"] if self.intercept == "penalized" else []
        return ", ".join(said)

    @property
    def linear(self) -> bool:
        """Whether there is no kernel."""
        return self.gamma is None

    @property
    def regression(self) -> bool:
        """Whether y is a number to be near to."""
        return self.epsilon is not None

    @property
    def parameters(self) -> dict[str, Any]:
        """C, γ and ε as scikit-learn's kernel machines call them."""
        said: dict[str, Any] = {"C": self.C, "kernel": "linear" if self.linear else "rbf"}
        said |= {} if self.linear else {"gamma": self.gamma}
        return said | ({"epsilon": self.epsilon} if self.regression else {})

    def value(self, dataset: Dataset, w: npt.NDArray[np.float64], b: float) -> float:
        """Return the objective of a linear machine at a plane, in float64."""
        total = 0.0
        for start in range(0, dataset.X.shape[0], ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            scores, y = dataset.X[rows] @ w + b, dataset.y[rows]
            if self.epsilon is None:
                total += float(np.maximum(0.0, 1.0 - y * scores).sum())
            else:
                total += float(np.maximum(0.0, np.abs(y - scores) - self.epsilon).sum())
        penalised = float(w @ w) + (b * b if self.intercept == "penalized" else 0.0)
        return 0.5 * penalised + self.C * total


def suboptimality(value: float, bound: float) -> float:
    """Return how far a value is above a lower bound of the optimum, relative to the bound."""
    return (value - bound) / max(abs(bound), 1e-300)
