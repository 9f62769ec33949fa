"""Values of rows to show beside them, of the columns that matter most to the model.

A column matters as much as the scores change, on average, when its values are dealt out anew among
the rows. That treats all models alike, and pipelines in the columns that the user knows.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from maxmargin.html import visible
from maxmargin.reports.scores import raw_scores
from maxmargin.reports.subject import Subject, inner

SHOWN = 5  # columns
_ROWS, _TRIED = 200, 60  # rows dealt among, and columns tried
_VALUE = 24  # characters of a value


def important(subject: Subject) -> list[int]:
    """Return the columns that matter most, the most important first; all if they are few."""
    width = len(subject.names)
    if width <= SHOWN:
        return list(range(width))
    X = subject.train.X
    if hasattr(X, "columns") and not hasattr(X, "iloc"):  # another frame than pandas'
        return list(range(SHOWN))
    some = np.random.default_rng(0).permutation(len(subject.train.rows))[:_ROWS]
    rows = _safe_indexing(X, np.sort(some))
    before = _said(subject, rows)
    tried = _candidates(rows, before, width)
    change = [np.abs(_said(subject, _dealt(rows, j)) - before).mean() for j in tried]
    return [int(tried[k]) for k in np.argsort(change, kind="stable")[::-1][:SHOWN]]


def values(X: Any, row: int, columns: list[int]) -> list[str]:
    """Return the values of a row in some columns, as text; an object that is no row as itself."""
    one = _safe_indexing(X, np.array([row]))
    if not columns:
        return [visible(next(iter(one)), 2 * _VALUE)]
    if sp.issparse(one):
        one = sp.csr_array(one)[:, columns].toarray()
        return [f"{value:.5g}" for value in one[0]]
    cells = one.iloc[0, columns].tolist() if hasattr(one, "iloc") else np.asarray(one)[0, columns]
    return [_text(value) for value in cells]


def _text(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float | np.floating) else visible(value, _VALUE)


def _said(subject: Subject, X: Any) -> npt.NDArray[np.float64]:
    if not is_classifier(subject.machine):
        judge = subject.model.predict if subject.regresses else subject.model.decision_function
        return np.asarray(judge(X), dtype=np.float64)
    classes = np.asarray(subject.machine.classes_)
    return raw_scores(subject.machine, inner(subject.model, X), classes)[0]


def _candidates(rows: Any, scores: Any, width: int) -> npt.NDArray[np.int64]:
    """Return the columns to try: all, or those that go most with a score, by covariance."""
    if width <= _TRIED or hasattr(rows, "columns"):
        return np.arange(min(width, _TRIED))
    centred = np.reshape(scores, (len(scores), -1))
    centred = centred - centred.mean(axis=0)
    together = np.abs(np.asarray(rows.T @ centred)).max(axis=1)
    return np.sort(np.argsort(together, kind="stable")[::-1][:_TRIED])


def _dealt(X: Any, column: int) -> Any:
    """Return the rows with the values of one column in another order."""
    n = X.shape[0]
    order = np.random.default_rng(column).permutation(n)
    if hasattr(X, "iloc"):
        X = X.copy()
        X.isetitem(column, X.iloc[order, column].to_numpy())
        return X
    if sp.issparse(X):
        X = sp.csc_array(X, copy=True)
        entries = slice(X.indptr[column], X.indptr[column + 1])
        X.indices[entries] = order[X.indices[entries]]  # rows move, values stay in their column
        X.has_sorted_indices = False
        return sp.csr_array(X)
    X = np.array(X)
    X[:, column] = X[order, column]
    return X
