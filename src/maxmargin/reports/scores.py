"""What a model says of rows, in one sign convention for all: positive where it is right.

Two classes: y f/‖w‖, the distance to the boundary. More: the score of a row's own class minus the
best other one. Numbers: the residual y − f. Outlier detectors: f/‖w‖, negative for outliers.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier, is_regressor

from maxmargin.estimators import VotedPerceptron
from maxmargin.geometry import hyperplane

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """Predictions, which of them are right, and by how much.

    ``values`` are signed as the module says; of residuals, |value| is the error. ``raw`` are f, a
    column for each class of several. ``unit`` says what the values are.
    """

    predicted: npt.NDArray[Any]
    right: npt.NDArray[np.bool_]
    values: Floats
    raw: Floats
    unit: str


def scored(model: Any, machine: Any, X: Any, rows: Any, y: Any) -> Scores:
    """Return what a model says of X, which its last step sees as ``rows``."""
    predicted = np.asarray(model.predict(X))
    if is_regressor(machine):
        f = predicted.astype(np.float64).reshape(len(predicted), -1)
        off = np.asarray(y, dtype=np.float64) - f[:, 0]
        return Scores(predicted, np.ones(len(off), dtype=bool), off, f, "residual")
    if not is_classifier(machine):
        f, unit = _distances(machine, rows)
        return Scores(predicted, predicted > 0, f, f[:, np.newaxis], unit)
    classes = np.asarray(machine.classes_)
    right = predicted == y
    raw, unit = raw_scores(machine, rows, classes)
    if raw.ndim == 1:
        values = np.where(y == classes[1], raw, np.where(y == classes[0], -raw, np.nan))
        return Scores(predicted, right, values, raw[:, np.newaxis], unit)
    return Scores(predicted, right, _leads(raw, y, classes), raw, f"lead, in {unit}")


def raw_scores(machine: Any, rows: Any, classes: npt.NDArray[Any]) -> tuple[Floats, str]:
    """Return one number for each row (two classes) or one for each row and class."""
    if len(classes) == 2 and hasattr(machine, "decision_function"):
        return _distances(machine, rows)
    if hasattr(machine, "decision_function"):
        if getattr(machine, "decision_function_shape", "ovr") == "ovo":
            machine = copy.copy(machine).set_params(decision_function_shape="ovr")
        f = np.asarray(machine.decision_function(rows), dtype=np.float64)
        if f.ndim == 2 and f.shape[1] == len(classes):
            return f, "units of the score"
    if hasattr(machine, "predict_proba"):
        p = np.asarray(machine.predict_proba(rows), dtype=np.float64)
        return (
            (p[:, 1] - p[:, 0], "difference in probability")
            if len(classes) == 2
            else (
                p,
                "probability",
            )
        )
    said = np.asarray(machine.predict(rows))
    return (said[:, np.newaxis] == classes).astype(np.float64), "votes"


def _distances(machine: Any, rows: Any) -> tuple[Floats, str]:
    if hasattr(machine, "distance"):
        return np.asarray(machine.distance(rows), dtype=np.float64), "distance"
    f = np.asarray(machine.decision_function(rows), dtype=np.float64)
    if isinstance(machine, VotedPerceptron):  # many planes: no one length
        return f, "score"
    try:
        length = hyperplane(machine).norm
    except (ValueError, TypeError):
        return f, "score"
    return (f / length, "distance") if length > 0 else (f, "score")


def _leads(raw: Floats, y: Any, classes: npt.NDArray[Any]) -> Floats:
    """Return by how much a row's own class leads; NaN for labels that the model does not know."""
    own = np.asarray(y)[:, np.newaxis] == classes
    best = np.where(own, -np.inf, raw).max(axis=1)
    mine = np.where(own, raw, -np.inf).max(axis=1)
    return np.where(own.any(axis=1), mine - best, np.nan)
