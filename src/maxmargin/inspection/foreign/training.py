"""The training data of a model of another library, checked against the model."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Ints
from maxmargin.inspection.model_view import to_dense
from maxmargin.validation.data import check_labels


@dataclass(frozen=True)
class TrainingData:
    """What a model was fitted to: checked rows, raw targets and a weight for each row.

    ``max_time`` is the number of seconds allowed for finding a bound, for each problem.
    """

    X: Any
    y: Any
    weight: Floats
    max_time: float | None


def class_codes(model: Any, data: TrainingData) -> Ints:
    """Return the position of each row's label among the classes of the model."""
    y = check_labels(data.y, data.X.shape[0])
    classes = model.classes_
    if (y.dtype.kind in "OUST") is not (classes.dtype.kind in "OUST"):
        raise ValueError(f"y has labels like {y[0]!r}, but the model's classes are {classes}.")
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = y[classes[codes] != y]
    if len(unknown):
        raise ValueError(
            f"y contains {unknown.tolist()[0]!r}, which is not among the classes "
            f"{classes.tolist()} that the model was trained on."
        )
    return np.asarray(codes)


def check_planes(model: Any, count: int) -> tuple[Floats, Floats]:
    """Return the weights and intercepts of this many planes; refuse any other number."""
    W, b = np.atleast_2d(to_dense(model.coef_)), np.ravel(to_dense(model.intercept_))
    finite = bool(np.isfinite(W).all() and np.isfinite(b).all())
    if len(W) != count or len(b) not in (1, count) or not finite:
        raise ValueError(
            f"coef_ and intercept_ of this {type(model).__name__} must be those of {count} "
            f"planes, and finite; got shapes {W.shape} and {b.shape}: fit it again."
        )
    return W, np.broadcast_to(b, (count,))


def check_class_planes(model: Any) -> tuple[Floats, Floats]:
    """Return one plane for each class; for two classes, models keep only their difference."""
    K = len(model.classes_)
    if K > 2:
        return check_planes(model, K)
    w, b = check_planes(model, 1)
    half = np.array([[-0.5], [0.5]])  # the weights of all classes sum to 0
    return half * w, half[:, 0] * b
