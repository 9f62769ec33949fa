"""Perceptrons: ours and scikit-learn's, with the same step and the same rule for updates.

Both do w += y x where y f(x) ≤ 0. scikit-learn slows the intercept down on sparse rows (to a
hundredth), so on sparse rows nobody learns one.
"""

from dataclasses import dataclass
from typing import Any

import sklearn
import sklearn.linear_model

import maxmargin as mm
from benchmarks.datasets import Dataset
from benchmarks.solvers import Budget


@dataclass(frozen=True)
class Ours:
    """``maxmargin.Perceptron``, or its averaged form. A step is an epoch."""

    shuffle: bool
    averaged: bool = False
    version: str = mm.__version__

    @property
    def name(self) -> str:
        """The library's name."""
        return "maxmargin, averaged" if self.averaged else "maxmargin"

    def fit(self, dataset: Dataset, budget: Budget) -> Any:
        """Make exactly so many epochs."""
        kind = mm.AveragedPerceptron if self.averaged else mm.Perceptron
        model = kind(
            stop="epochs",
            max_epochs=budget.steps,
            shuffle=self.shuffle,
            fit_intercept=not dataset.sparse,
        )
        return model.fit(dataset.X, dataset.y)


@dataclass(frozen=True)
class ScikitLearn:
    """``sklearn.linear_model.Perceptron``: several classes one against the rest."""

    shuffle: bool
    version: str = sklearn.__version__

    @property
    def name(self) -> str:
        """The library's name."""
        return "scikit-learn"

    def fit(self, dataset: Dataset, budget: Budget) -> Any:
        """Make exactly so many epochs."""
        model = sklearn.linear_model.Perceptron(
            tol=None,
            max_iter=budget.steps,
            shuffle=self.shuffle,
            fit_intercept=not dataset.sparse,
        )
        return model.fit(dataset.X, dataset.y)
