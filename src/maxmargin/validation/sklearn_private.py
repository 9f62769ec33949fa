"""What scikit-learn keeps private and is needed here: stand-ins on public names, and the rest."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._typing import Ints


def take_rows(X: Any, rows: Ints) -> Any:
    """Return some rows of X, by their numbers, as what X is: an array, matrix, frame or list.

    Examples
    --------
    >>> take_rows([3, 5, 7], np.array([2, 0])), take_rows(np.eye(2), np.array([1])).tolist()
    ([7, 3], [[0.0, 1.0]])
    """
    if sp.issparse(X):
        return (X if hasattr(X, "__getitem__") else X.tocsr())[rows]
    if hasattr(X, "iloc"):
        return X.take(rows, axis=0)
    if isinstance(X, np.ndarray):
        return X[rows]
    import narwhals as nw

    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.DataFrame | nw.Series):
        return frame[rows].to_native()
    return X[rows] if hasattr(X, "shape") else [X[k] for k in rows]


def count_rows(X: Any) -> int:
    """Return how many rows X has.

    Examples
    --------
    >>> count_rows([3, 5, 7]), count_rows(np.zeros((2, 4)))
    (3, 2)
    """
    shape = getattr(X, "shape", None)
    if shape:
        return int(shape[0])
    if not hasattr(X, "__len__") or shape is not None:
        raise TypeError(f"Rows are needed, not {type(X).__name__}: an array, a frame or a list.")
    return len(X)


# The rest is imported when it is needed, since scikit-learn's searches are slow to import.


def fit_and_score(*arguments: Any, **options: Any) -> dict[str, Any]:
    """Return what a search of scikit-learn makes of one candidate in one split."""
    from sklearn.model_selection._validation import _fit_and_score

    return dict(_fit_and_score(*arguments, **options))


def report_failures(results: list[dict[str, Any]], error_score: Any) -> None:
    """Warn about fits that failed, or raise if all of them did."""
    from sklearn.model_selection._validation import _warn_or_raise_about_fit_failures

    _warn_or_raise_about_fit_failures(results, error_score)


def insert_error_scores(results: list[dict[str, Any]], error_score: Any) -> None:
    """Give fits that failed the score of an error, by the names that a callable scoring has."""
    from sklearn.model_selection._validation import _insert_error_scores

    _insert_error_scores(results, error_score)


def scorers_of(scorers: Any) -> Any:
    """Return the scorers of a search as they are kept in ``scorer_``: several by their names."""
    return getattr(scorers, "_scorers", scorers)
