"""The models of a search as scorers see them."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection._validation import _score
from sklearn.utils import _safe_indexing

from maxmargin.estimators.reductions import best_classes, combined_scores
from maxmargin.model_selection.search_matrix import Solved
from maxmargin.model_selection.search_plan import Split

Floats = npt.NDArray[np.float64]


class Cell:
    """Stands for a model fitted in one split, whose scores of the split's rows are known.

    Whatever else it is asked for, it fits the model and passes the question on.
    """

    def __init__(self, model: Any, solved: Solved, cost: int, rows: "Rows") -> None:
        self._model, self._solved, self._cost, self._rows = model, solved, cost, rows
        self._known: Any = None
        if hasattr(solved.machine, "classes_"):
            self.classes_ = solved.machine.classes_

    def __sklearn_tags__(self) -> Any:
        return self._model.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not (name.endswith("_") or hasattr(type(self._model), name)):
            raise AttributeError(f"{type(self._model).__name__} has no attribute {name!r}")
        return getattr(self.fitted(), name)

    def fitted(self) -> Any:
        """Return the model itself, fitted."""
        if self._known is None:
            rows = self._rows
            self._known = clone(self._model).fit(rows.X_train, rows.y_train, **rows.fit_params)
        return self._known

    def _planes(self, X: Any) -> Floats | None:
        """Return the scores of rows in each plane, if they are known."""
        if X is self._rows.X_test:
            return np.asarray(self._solved.test[self._cost])
        if X is self._rows.X_train and self._solved.train is not None:
            return np.asarray(self._solved.train[self._cost])
        return None

    def _votes(self, planes: Floats) -> Floats:
        if len(self.classes_) == 2:
            return planes[:, 0]
        return combined_scores(planes, self._solved.pairs, len(self.classes_))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return what the model predicts."""
        planes = self._planes(X)
        if planes is None:
            return np.asarray(self.fitted().predict(X))
        if not self._solved.pairs:
            return planes[:, 0]
        return best_classes(self._votes(planes), self.classes_)

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the model."""
        planes = self._planes(X)
        several = len(self.classes_) > 2
        ovo = several and self._solved.machine.decision_function_shape == "ovo"
        if planes is None or ovo:
            return np.asarray(self.fitted().decision_function(X))
        return self._votes(planes)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return accuracy, or R² of a regression."""
        kind: Any = ClassifierMixin if self._solved.pairs else RegressorMixin
        return float(kind.score(self, X, y, sample_weight))


class Rows:
    """The rows of a split as scorers get them: the ones given, before any pipeline."""

    def __init__(self, X: Any, y: Any, split: Split, fit_params: dict[str, Any]) -> None:
        self.X_train, self.y_train = _safe_indexing(X, split.train), _safe_indexing(y, split.train)
        self.X_test, self.y_test = _safe_indexing(X, split.test), _safe_indexing(y, split.test)
        self.fit_params = {
            name: _safe_indexing(values, split.train) for name, values in fit_params.items()
        }


class Judge:
    """Scores models as a search asks for it."""

    def __init__(self, scorers: Any, error_score: Any, train_scores: bool) -> None:
        self._scorers, self._error_score = scorers, error_score
        self.train_scores = train_scores

    def result(self, model: Any, rows: Rows, seconds: float, gap: float) -> dict[str, Any]:
        """Return what ``cv_results_`` is made of, for one model."""
        begun = time.perf_counter()
        result: dict[str, Any] = {"fit_time": seconds, "relative_gap": gap, "abandoned": False}
        result["test_scores"] = self._score(model, rows.X_test, rows.y_test)
        result["score_time"] = time.perf_counter() - begun
        if self.train_scores:
            result["train_scores"] = self._score(model, rows.X_train, rows.y_train)
        return result

    def abandoned(self) -> dict[str, Any]:
        """Return the same for a candidate that was given up before."""
        result = {"fit_time": 0.0, "score_time": 0.0, "relative_gap": np.nan, "abandoned": True}
        return result | {"test_scores": np.nan, "train_scores": np.nan}

    def _score(self, model: Any, X: Any, y: Any) -> Any:
        return _score(model, X, y, self._scorers, {}, self._error_score)
