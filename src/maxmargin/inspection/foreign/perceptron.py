"""Perceptrons: they minimise nothing, so there are facts about them instead of a gap."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.geometry.inputs import row_products
from maxmargin.inspection.foreign.training import TrainingData, check_class_planes, class_codes
from maxmargin.separability import Separation, separate


@dataclass(frozen=True)
class PerceptronFacts:
    """What a perceptron achieved on its training rows; ``print`` it for a sentence.

    Attributes
    ----------
    rows, mistakes : int
        Rows with a weight, and how many of them are on the wrong side (or on the plane).
    margin : float
        Distance of the worst row to the plane between its class and the nearest other, below 0 on
        the wrong side.
    separation : Separation
        Whether any plane makes no mistakes, with a witness; its ``margin`` is the largest possible.
    """

    rows: int
    mistakes: int
    margin: float
    separation: Separation

    def __str__(self) -> str:
        if self.mistakes:
            done = f"{self.mistakes} of {self.rows} training rows are on the wrong side."
        else:
            done = f"All {self.rows} training rows are separated with margin {self.margin:.4g}."
        return f"{done} {self.separation}"


def describe_perceptron(model: Any, data: TrainingData) -> PerceptronFacts:
    """Return what a perceptron with explicit weights achieved."""
    kept = data.weight > 0
    codes = class_codes(model, data)[kept]
    X = data.X[kept]
    leads = _leads(model, X, codes)
    labels = model.classes_[codes]
    separation = separate(X, labels, intercept=bool(model.fit_intercept), max_time=data.max_time)
    return PerceptronFacts(len(codes), int((leads <= 0).sum()), float(leads.min()), separation)


def _leads(model: Any, X: Any, codes: Ints) -> Floats:
    """Return the signed distance of each row to the nearest plane between its class and another."""
    W, b = check_class_planes(model)
    scores = row_products(X, W.T) + b
    mine = np.arange(len(codes))
    leads = scores[mine, codes][:, np.newaxis] - scores
    apart = np.array([np.linalg.norm(W - w, axis=1) for w in W])[codes]
    leads = leads / np.where(apart > 0, apart, 1.0)
    leads[mine, codes] = np.inf
    return np.asarray(leads.min(axis=1))
