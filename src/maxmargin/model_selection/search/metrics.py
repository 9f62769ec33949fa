"""Common scores of predictions, equal to the last bit to scikit-learn's but without its checks.

On a few hundred rows these checks take longer than many a fit of a search. A function returns None
where scikit-learn warns or fails, or treats an input in a way of its own: ask its scorer then.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Metric = Callable[[npt.NDArray[Any], npt.NDArray[Any]], float | None]


def _accuracy(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float | None:
    return float(np.count_nonzero(y == predicted)) / len(y) if len(y) else None


def _balanced_accuracy(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float | None:
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2 or not np.isin(predicted, classes).all():
        return None
    hits = np.bincount(labels[y == predicted], minlength=len(classes))
    return float(np.mean(hits / np.bincount(labels)))


def _r2(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float | None:
    if not _are_floats(y, predicted) or len(y) < 2:
        return None
    y, predicted = y[:, np.newaxis], predicted[:, np.newaxis]
    lost = ((y - predicted) ** 2).sum(axis=0)
    spread = ((y - np.average(y, axis=0)) ** 2).sum(axis=0)
    return float((1 - lost / spread)[0]) if spread[0] != 0.0 and lost[0] != 0.0 else None


def _squared_error(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float | None:
    if not _are_floats(y, predicted):
        return None
    return -float(np.average((y[:, np.newaxis] - predicted[:, np.newaxis]) ** 2, axis=0)[0])


def _root_squared_error(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float | None:
    found = _squared_error(y, predicted)
    return None if found is None else -float(np.sqrt(-found))


def _absolute_error(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> float | None:
    if not _are_floats(y, predicted):
        return None
    return -float(np.average(np.abs(predicted[:, np.newaxis] - y[:, np.newaxis]), axis=0)[0])


def _are_floats(y: npt.NDArray[Any], predicted: npt.NDArray[Any]) -> bool:
    finite = y.dtype == predicted.dtype == np.float64 and len(y) > 0
    return bool(finite and np.isfinite(y).all() and np.isfinite(predicted).all())


METRICS: dict[str, Metric] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "r2": _r2,
    "neg_mean_squared_error": _squared_error,
    "neg_root_mean_squared_error": _root_squared_error,
    "neg_mean_absolute_error": _absolute_error,
}


def find_metrics(scoring: Any, classifies: bool) -> dict[str, Metric] | Metric | None:
    """Return the metrics that a ``scoring`` names, as one or by name; None: not all are here."""
    if scoring is None:
        return METRICS["accuracy" if classifies else "r2"]
    if isinstance(scoring, str):
        return METRICS.get(scoring)
    if isinstance(scoring, list | tuple | set):
        scoring = {name: name for name in scoring}
    if not isinstance(scoring, dict):
        return None
    names = [name for name in scoring.values() if isinstance(name, str) and name in METRICS]
    if not names or len(names) < len(scoring):
        return None
    return {key: METRICS[name] for key, name in scoring.items()}
