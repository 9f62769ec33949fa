"""Learning from a stream, and measuring it on the way: each block is predicted, then learnt from.

Dawid (1984) called this the prequential approach: the score of a row is that of a model which has
never seen it, and yet all rows are learnt from.
"""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from maxmargin.rows.row_source import RowSource
from maxmargin.validation.data import classes_of

_BLOCK_ROWS = 1000  # of a source, that are predicted, then learnt, at a time


@dataclass
class Prequential:
    """How well a model predicted the rows of a stream before it learnt from them.

    Attributes
    ----------
    metric : {"accuracy", "mean absolute error"}
        What the scores are: of classifiers and of regressors.
    window : int
        As it was given.
    rows, blocks : int
        How many have been learnt from.
    weight : float
        The number of rows that were predicted, each as often as its weight says. Rows of the first
        block are not among them, unless the model had been fitted before.
    score, recent : float
        Over all predicted rows, and over those of the last ``window`` rows; NaN if there are none.
    curve : list of tuple
        After each block that was predicted: rows learnt from, score and recent score.
    """

    metric: str
    window: int
    rows: int = 0
    blocks: int = 0
    weight: float = 0.0
    score: float = math.nan
    recent: float = math.nan
    curve: list[tuple[int, float, float]] = field(default_factory=list)

    def __str__(self) -> str:
        shown = "{:.2%}" if self.metric == "accuracy" else "{:.6g}"
        if math.isnan(self.score):
            return f"{self.rows:,} rows: none predicted yet"
        last = f"{shown.format(self.recent)} over the last {min(self.window, self.rows):,}"
        return f"{self.rows:,} rows: {self.metric} {shown.format(self.score)}, {last}"


def prequential(model: Any, stream: Any, *, classes: Any = None, window: int = 1000) -> Prequential:
    """Learn from a stream block by block, and measure how each block is predicted before that.

    Each block is first predicted and then given to ``partial_fit``. The model is the same, to the
    last bit, as after ``partial_fit`` of the same blocks.

    Parameters
    ----------
    model : estimator
        What has ``partial_fit``: Perceptron, AveragedPerceptron, LinearSVC, LinearSVR, …; it is
        changed in place.
    stream : iterable or mm.data.open(…)
        Blocks of rows: ``(X, y)``, ``(X, y, weight)``, or what has these as attributes. Each is
        used once and not kept. Of a source, a thousand rows are a block.
    classes : array-like, optional
        All labels that will ever occur. By default, those of the first block; a model cannot learn
        a class that comes later, so such a label is an error.
    window : int, default 1000
        The number of last rows over which ``recent`` is.

    Returns
    -------
    Prequential
        Numbers of rows, scores and the curve.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.separable(5000, margin=0.1, random_state=0)
    >>> stream = mm.data.chunks(X, y, rows=100)
    >>> found = mm.model_selection.prequential(mm.AveragedPerceptron(), stream)
    >>> found.rows, found.score > 0.9, found.recent > found.score, len(found.curve)
    (5000, True, True, 49)
    """
    if isinstance(window, bool) or not isinstance(window, int | np.integer) or window < 1:
        raise ValueError(f"window={window!r} is not valid: it must be an integer from 1 on.")
    if not hasattr(model, "partial_fit"):
        raise TypeError(
            f"{type(model).__name__} cannot learn from a stream, as it has no partial_fit: use "
            "Perceptron, AveragedPerceptron, LinearSVC or LinearSVR."
        )
    names = is_classifier(model)
    found = Prequential("accuracy" if names else "mean absolute error", int(window))
    last: deque[tuple[float, float]] = deque(maxlen=int(window))  # losses and weights
    total = 0.0
    for X, y, weight in _blocks(stream):
        first = not hasattr(model, "n_features_in_")
        given = {} if weight is None else {"sample_weight": weight}
        if names and first:
            given["classes"] = classes_of(y if classes is None else np.asarray(classes))
        try:
            predicted = None if first else model.predict(X)
            model.partial_fit(X, y, **given)
        except ValueError as wrong:
            where = f"Rows {found.rows + 1:,} to {found.rows + len(y):,} of the stream"
            raise ValueError(f"{where}: {wrong}") from wrong
        found.rows, found.blocks = found.rows + len(y), found.blocks + 1
        if predicted is None:
            continue
        losses = (predicted != y).astype(np.float64) if names else np.abs(predicted - y)
        each = np.ones(len(y)) if weight is None else weight
        total, found.weight = total + float(each @ losses), found.weight + float(each.sum())
        last.extend(zip((each * losses).tolist(), each.tolist(), strict=True))
        lost, of = (math.fsum(column) for column in zip(*last, strict=True))
        found.score, found.recent = _score(names, total, found.weight), _score(names, lost, of)
        found.curve.append((found.rows, found.score, found.recent))
    if found.rows == 0:
        raise ValueError("The stream is empty: at least one row is needed.")
    return found


def _score(names: bool, lost: float, weight: float) -> float:
    if weight == 0:
        return math.nan
    return (weight - lost) / weight if names else lost / weight


def _blocks(stream: Any) -> Iterator[tuple[Any, Any, Any]]:
    source = isinstance(stream, RowSource)
    for part in map(stream.load, range(len(stream))) if source else stream:
        if hasattr(part, "X") and hasattr(part, "y"):
            part = part.X, part.y, getattr(part, "weight", None)
        if not isinstance(part, tuple) or len(part) not in (2, 3):
            raise TypeError(f"A stream gives (X, y) or (X, y, weight), not {type(part).__name__}.")
        X, y, weight = (*part, None)[:3]
        if y is None:
            raise ValueError("The stream has rows without labels, and learning needs one for each.")
        size = _BLOCK_ROWS if source else max(1, len(y))
        for rows in (slice(begin, begin + size) for begin in range(0, len(y), size)):
            each = None if weight is None else np.asarray(weight[rows], np.float64)
            yield X[rows] if source else X, np.asarray(y[rows]), each
