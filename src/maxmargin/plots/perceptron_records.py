"""What the trace of a fitted perceptron says about its line: one record per update or epoch."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

Floats = npt.NDArray[np.float64]


class Records(NamedTuple):
    """Weights, intercepts and the moments they belong to, as ``PerceptronPathDisplay`` has them."""

    coef: Floats
    intercept: Floats
    moments: npt.NDArray[np.intp]
    examples: Floats | None
    model: tuple[Floats, float] | None


def linear_trace(estimator: Any) -> Any:
    """Return the trace of a fitted linear perceptron with two features and two classes."""
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if not hasattr(estimator, "classes_"):
        raise TypeError(f"{name} is no classifier, so no line: use Perceptron with trace=True")
    if len(estimator.classes_) != 2:
        raise ValueError(
            f"{name} has {len(estimator.classes_)} classes, but a line has two sides: fit 2 of them"
        )
    if not hasattr(estimator, "coef_"):
        raise TypeError(f"{name} has no weights, so no line: use Perceptron with trace=True")
    if not hasattr(estimator, "trace_"):
        raise ValueError(f"{name} kept no trace: fit it with trace=True")
    if estimator.coef_.shape[1] != 2:
        raise ValueError(
            f"{name} has {estimator.coef_.shape[1]} features, but a line is drawn in a plane: "
            "fit 2 of them"
        )
    return estimator.trace_


def records(estimator: Any, every: str) -> Records:
    """Return the start and what followed, update by update or epoch by epoch."""
    trace = linear_trace(estimator)
    coef, intercept = trace.coef[:, 0], trace.intercept[:, 0]
    rows = _rows(trace, every)
    model = np.asarray(estimator.coef_[0]), float(estimator.intercept_[0])
    same = np.allclose([*model[0], model[1]], [*coef[-1], intercept[-1]], rtol=1e-9, atol=0.0)
    return Records(
        coef[rows],
        intercept[rows],
        rows if every == "update" else np.arange(len(rows)),
        np.vstack([np.full((1, 2), np.nan), moved(trace)]) if every == "update" else None,
        None if same else model,
    )


def moved(trace: Any) -> Floats:
    """Return the example of each update, as dense rows."""
    return np.asarray(trace.moved.toarray() if hasattr(trace.moved, "toarray") else trace.moved)


def first_updates(trace: Any) -> list[int]:
    """Return the first update of each sign that found a line, positive first."""
    had_line = trace.coef[:-1, 0].any(axis=1)
    firsts = [np.flatnonzero(had_line & (sign * trace.step > 0))[:1] for sign in (1, -1)]
    chosen = [int(k) for first in firsts for k in first]
    if not chosen:
        raise ValueError(
            "the trace has no update that found a line to move; name one in updates, or start the "
            "perceptron elsewhere (init)"
        )
    return chosen


def update_numbers(updates: Any, n: int) -> list[int]:
    """Return the numbers of updates, checked."""
    chosen = [int(k) for k in np.atleast_1d(updates)]
    if not chosen or min(chosen) < 0 or max(chosen) >= n:
        raise ValueError(f"updates must be numbers from 0 to {n - 1}, got {updates!r}")
    return chosen


def evenly(n: int, most: int) -> npt.NDArray[np.intp]:
    """Return at most so many of n moments, evenly spread, the last among them."""
    return np.unique(np.linspace(n - 1, 0, min(n, most)).round().astype(np.intp))


def _rows(trace: Any, every: str) -> npt.NDArray[np.intp]:
    """Return which of the vectors of a trace, the start included, to take."""
    n = len(trace.row)
    if every == "update":
        return np.arange(n + 1)
    if every != "epoch":
        raise ValueError(f"every must be 'update' or 'epoch', got {every!r}")
    ends = np.cumsum([0.0, *trace.updates])
    # Heavy rows count more than once, and an interrupted epoch is not counted at all.
    if ends[-1] != n:
        raise ValueError(
            f"every='epoch' needs whole epochs of rows that weigh 1, but the epochs count "
            f"{ends[-1]:g} updates and the trace has {n}: use every='update'"
        )
    return ends.astype(np.intp)
