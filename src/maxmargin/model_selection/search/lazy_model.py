"""The models of a search as scorers see them."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection._validation import _score
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import available_if

from maxmargin import clock
from maxmargin._typing import Floats, Ints
from maxmargin.estimators.reductions import best_classes, combined_scores
from maxmargin.model_selection.search.plan import Split
from maxmargin.model_selection.search.shared_gram import Solved


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

    def __sklearn_clone__(self) -> Any:
        return clone(self._model)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._model)

    def __reduce__(self) -> Any:
        return _itself, (self.fitted(),)

    def __getitem__(self, step: Any) -> Any:
        return self.fitted()[step]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        model = self._model
        if name in vars(model) and not isinstance(model, Pipeline):
            return getattr(model, name)  # a parameter
        if not (name.endswith("_") or hasattr(model, name)):
            raise AttributeError(f"{type(model).__name__} has no attribute {name!r}")
        return getattr(self.fitted(), name)

    def fitted(self) -> Any:
        """Return the model itself, fitted."""
        if self._known is None:
            rows = self._rows
            self._known = clone(self._model).fit(*rows.learnt, **rows.fit_params)
        return self._known

    def _planes(self, X: Any) -> Floats | None:
        """Return the scores of rows in each plane, if they are known."""
        if X is self._rows.X_test:
            return np.asarray(self._solved.test[self._cost])
        if self._solved.train is not None and X is self._rows.learnt[0]:
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

    @available_if(lambda self: bool(self._solved.pairs))
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
    """The rows of a split as scorers get them: the ones given, before any pipeline.

    Those to learn from are taken when asked for: they would be many copies of X.
    """

    def __init__(self, X: Any, y: Any, split: Split, fit_params: dict[str, Any]) -> None:
        self._given, self.split = (X, y, fit_params), split
        self.X_test, self.y_test = _safe_indexing(X, split.test), _safe_indexing(y, split.test)

    @cached_property
    def learnt(self) -> tuple[Any, Any]:
        """Rows to learn from, and their answers."""
        X, y, _ = self._given
        return _safe_indexing(X, self.split.train), _safe_indexing(y, self.split.train)

    @property
    def fit_params(self) -> dict[str, Any]:
        """What else ``fit`` is given."""
        return _of_rows(self._given[2], self.split.train)


class Judge:
    """Scores models as a search asks for it."""

    def __init__(
        self, scorers: Any, params: dict[str, Any], error_score: Any, train_scores: bool
    ) -> None:
        self._scorers, self._params, self._error_score = scorers, params, error_score
        self.train_scores = train_scores

    def result(self, model: Any, rows: Rows, seconds: float, gap: float) -> dict[str, Any]:
        """Return what ``cv_results_`` is made of, for one model."""
        begun = clock.now()
        result: dict[str, Any] = {"fit_time": seconds, "relative_gap": gap, "abandoned": False}
        result["test_scores"] = self._score(model, rows.X_test, rows.y_test, rows.split.test)
        result["score_time"] = clock.now() - begun
        if self.train_scores:
            train = rows.split.train
            result["train_scores"] = self._score(model, *rows.learnt, train)
        return result

    def abandoned(self) -> dict[str, Any]:
        """Return the same for a candidate that was given up before."""
        result = {"fit_time": 0.0, "score_time": 0.0, "relative_gap": np.nan, "abandoned": True}
        return result | {"test_scores": np.nan, "train_scores": np.nan}

    def _score(self, model: Any, X: Any, y: Any, places: Ints) -> Any:
        params = _of_rows(self._params, places)
        return _score(model, X, y, self._scorers, params, self._error_score)


def _of_rows(params: dict[str, Any], places: Ints) -> dict[str, Any]:
    return {name: _safe_indexing(values, places) for name, values in params.items()}


def _itself(model: Any) -> Any:
    return model
